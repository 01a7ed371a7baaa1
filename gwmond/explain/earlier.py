"""How a job's earlier runs ended: it may begin over and over, and complete nothing.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from statistics import median_low
from typing import Any, NamedTuple

from gwmond.explain.situation import EarlierRun, Situation
from gwmond.model.pilot_life import Category, Outcome
from gwmond.model.runs.outcomes import COMPARED
from gwmond.model.times import SECOND_US
from gwmond.reports.render.document import Part
from gwmond.reports.render.formats import counted, words
from gwmond.reports.render.periods import rfc3339, short, span
from gwmond.reports.render.table import Column, table

_SHOWN = 20
_LEAST = 2
_HOW = {
    "transfer_input_failed": "failed in stage-in",
    "transfer_output_failed": "failed in stage-out",
}


class Streak(NamedTuple):
    """The last runs of a job, which ended alike and completed nothing, at least two.

    ``half_us``: half of them were over within this.  ``declared_us``: how long the job says that it
    runs; None: it does not.
    """

    number: int
    outcome: Outcome
    sites: frozenset[str]
    half_us: int
    declared_us: int | None = None

    @property
    def outlasts(self) -> bool:
        """Whether pilots ended while most ran for longer than the job says."""
        cut_off = self.outcome.category is Category.PREEMPTION_BADPUT
        return cut_off and self.declared_us is not None and self.half_us > self.declared_us

    @property
    def is_of_the_place(self) -> bool:
        """Whether these are failures at one site that places cause."""
        causes = self.outcome.category is Category.MISCONFIGURATION_BADPUT
        return len(self.sites) == 1 and (causes or self.outcome.label in COMPARED)

    @property
    def text(self) -> str:
        """What they are, in words."""
        label = self.outcome.label
        where = f"at {len(self.sites)} sites"
        if len(self.sites) == 1:
            where = f"all at {next(iter(self.sites)) or 'a site that is not known'}"
        how = _HOW.get(label, f"ended as {words(label)}")
        runs = counted(self.number, "run")
        half = f"half of them within {span(self.half_us)}"
        if self.outlasts:
            half = f"half of them after {span(self.half_us)}; it says that it runs for "
            half += span(self.declared_us or 0)
        return f"Its last {runs} in the ledger, {where}, {how}, {half}"


def streak(here: Situation) -> Streak | None:
    """Return the last runs that are over, if at least two of them ended alike."""
    over = [(run, run.outcome) for run in here.earlier if run.outcome is not None]
    if not over or over[0][1].category is Category.GOODPUT:
        return None
    last = over[0][1]
    alike = [run for run, outcome in takewhile(lambda one: one[1].label == last.label, over)]
    if len(alike) < _LEAST:
        return None
    half_us = median_low((run.end_us or run.start_us) - run.start_us for run in alike)
    declared_us = here.job.walltime_s and here.job.walltime_s * SECOND_US
    sites = frozenset(run.entry.site for run in alike)
    return Streak(len(alike), last, sites, half_us, declared_us)


def parts(here: Situation) -> Iterator[Part]:
    """Yield the last runs, the latest first; nothing where none is known."""
    columns: tuple[Column[EarlierRun], ...] = (
        Column("began", lambda run: short(run.start_us), name=True),
        Column("lasted", lambda run: "" if run.end_us is None else span(run.end_us - run.start_us)),
        Column("site", lambda run: run.entry.site, text=True),
        Column("entry", lambda run: run.entry.entry, text=True),
        Column("node", lambda run: run.node, text=True),
        Column("phases", _phases, text=True),
        Column("ended as", lambda run: words(run.outcome.label) if run.outcome else "", text=True),
    )
    if here.earlier:
        more = len(here.earlier) - _SHOWN
        note = f"And {more} more, before." if more > 0 else ""
        title = "Its runs, as the ledger has them (UTC):"
        yield table(title, columns, here.earlier[:_SHOWN], note=note)


def _phases(run: EarlierRun) -> str:
    """Return how long the phases lasted that records have, in words."""
    return ", ".join(f"{words(name)} {span(us)}" for name, us in run.phases.lengths.items())


def record(here: Situation) -> list[dict[str, Any]]:
    """Return all runs for programs, the latest first; times as RFC 3339."""
    return [
        {
            "start": rfc3339(run.start_us),
            "end": None if run.end_us is None else rfc3339(run.end_us),
            **run.entry._asdict(),
            "node": run.node or None,
            "outcome": run.outcome.label if run.outcome else None,
            "category": run.outcome.category.value if run.outcome else None,
            "phases": {name: us / SECOND_US for name, us in run.phases.lengths.items()},
        }
        for run in here.earlier
    ]
