"""What the ledger tells of a job that waits: its runs, its reasons so far, when it may start.

A job may begin over and over, and complete nothing.  For which reasons jobs like it waited since
its submission, polls have found.  When it may start follows from how long jobs like it, and pilots
of its entries, waited lately.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from statistics import median_low
from typing import Any, NamedTuple

from gwmond.explain.phrases import duration
from gwmond.explain.situation import EarlierRun, Situation
from gwmond.model.demand.forecast import FEWEST, Forecast, Starts, forecast
from gwmond.model.demand.idle_history import WaitInterval, quantiles
from gwmond.model.pilot_life import Category, Outcome
from gwmond.model.runs.outcomes import COMPARED
from gwmond.model.times import SECOND_US
from gwmond.reports.render import fields
from gwmond.reports.render.document import Paragraph, Part
from gwmond.reports.render.fields import Datum, Unit
from gwmond.reports.render.forecasts import forecast_record, forecast_text
from gwmond.reports.render.formats import counted, words
from gwmond.reports.render.periods import rfc3339, short, span
from gwmond.reports.render.table import table

_AT = Unit(lambda key, us: {key: None if us is None else rfc3339(us)}, short)
_SHOWN = 20  # lines of a table
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
    alike = [run for run, outcome in takewhile(lambda pair: pair[1].label == last.label, over)]
    if len(alike) < _LEAST:
        return None
    half_us = median_low((run.end_us or run.start_us) - run.start_us for run in alike)
    declared_us = here.job.walltime_s and here.job.walltime_s * SECOND_US
    sites = frozenset(run.entry.site for run in alike)
    return Streak(len(alike), last, sites, half_us, declared_us)


_RUNS: tuple[Datum[EarlierRun], ...] = (
    Datum("start", lambda run: run.start_us, 1, "began", _AT, name=True),
    Datum("end", lambda run: run.end_us, unit=_AT),
    Datum("", lambda run: run.end_us and span(run.end_us - run.start_us), 2, "lasted"),
    Datum("site", lambda run: run.entry.site, 3, text=True),
    Datum("entry", lambda run: run.entry.entry, 4, text=True),
    Datum("node", lambda run: run.node or None, 5, text=True),
    Datum(
        *("outcome", lambda run: run.outcome and run.outcome.label, 7, "ended as"),
        cell=lambda run: words(run.outcome.label) if run.outcome else "",
        text=True,
    ),
    Datum("category", lambda run: run.outcome and run.outcome.category.value),
    Datum(
        *("phases", lambda run: {k: us / SECOND_US for k, us in run.phases.lengths.items()}, 6),
        cell=lambda run: ", ".join(
            f"{words(k)} {span(us)}" for k, us in run.phases.lengths.items()
        ),
        text=True,
    ),
)
"""Of a run: times as RFC 3339, phases that records have."""


def runs(here: Situation) -> Iterator[Part]:
    """Yield the last runs, the latest first; nothing where none is known."""
    if here.earlier:
        title = "Its runs, as the ledger has them (UTC):"
        shown = here.earlier[:_SHOWN]
        yield table(title, fields.columns(_RUNS), shown, note=_more(len(here.earlier)))


def runs_record(here: Situation) -> list[dict[str, Any]]:
    """Return all runs for programs, the latest first."""
    return [fields.record(_RUNS, run) for run in here.earlier]


def _more(number: int) -> str:
    return f"And {number - _SHOWN} more, before." if number > _SHOWN else ""


_WHERE = {"none": "", "several": "several sites"}


def _waits(now_us: int) -> tuple[Datum[WaitInterval], ...]:
    def length(row: WaitInterval) -> str:
        return span(max(0, (row.until_us or now_us) - row.since_us))

    return (
        Datum("since", lambda row: row.since_us, 1, "from", _AT, name=True),
        Datum(
            *("until", lambda row: row.until_us, 2, "to", _AT),
            cell=lambda row: short(row.until_us, "now"),
            text=True,
        ),
        Datum("", length, 3, "for"),
        Datum("reason", lambda row: row.reason, 4, cell=lambda row: words(row.reason), text=True),
        Datum("cause", lambda row: row.cause, 5, cell=lambda row: words(row.cause), text=True),
        Datum("site", lambda row: row.site, 6, "could run at", cell=_where, text=True),
    )


def _where(row: WaitInterval) -> str:
    return _WHERE.get(row.site, row.site)


def waits(here: Situation) -> Iterator[Part]:
    """Yield the last intervals, the latest first; nothing where none is known."""
    intervals = list(reversed(here.history))
    if not intervals:
        return
    now_us = round(here.now * SECOND_US)
    latest, *before = intervals
    if latest.until_us is None:
        yield Paragraph(
            f"Jobs like it have waited for this reason since {short(latest.since_us)} UTC "
            f"({span(max(0, now_us - latest.since_us))}): {_said(latest)}."
            + (f" Before: {_said(before[0])}." if before else "")
        )
    title = "Reasons since its submission, as gwmond's polls found them for jobs like it (UTC):"
    columns = fields.columns(_waits(now_us))
    yield table(title, columns, intervals[:_SHOWN], note=_more(len(intervals)))


def waits_record(here: Situation) -> list[dict[str, Any]]:
    """Return all intervals for programs, the first of them first."""
    return [fields.record(_waits(0), row) for row in here.history]


def _said(row: WaitInterval) -> str:
    return words(row.cause) + (f" ({_where(row)})" if _where(row) else "")


_PENDING = 3  # entries of which it is said


def waited_s(here: Situation) -> float:
    """Return for how long a job has waited: for its first run, or since it ran last."""
    job = here.job
    return max(0.0, here.now - ((job.since if job.runs else job.submitted) or here.now))


def start(here: Situation) -> tuple[Forecast | None, int]:
    """Return when a job starts, from now on, and how often that was tried.

    By the jobs of all users of its schedd; the rate is that of its own user's.
    """
    jobs = here.past.jobs if here.past else {}
    ahead = here.order.own_ahead if here.order else None
    users = {user: Starts(begun) for user, begun in jobs.items()}
    tried = [x for s in users.values() for x in s.tried(here.now, counted=ahead is not None)]
    own = users.get("" if here.is_planned else here.job.user)
    said_s = None if own is None else own.said_s(here.now, waited_s(here), ahead)
    return forecast(said_s, tried), len(tried)


def expected(here: Situation) -> Iterator[str]:
    """Yield the expected start in words, and how long pilots on their way may take."""
    past = here.past
    if past is None:
        yield "Expected start: not known: no ledger could be read."
        return
    begin, tried = start(here)
    if begin is None:
        few = f"jobs of its user that began, {counted(tried, 'moment')} that could be tried"
        yield f"Expected start: too little data ({few}; {FEWEST} are needed)."
    else:
        yield f"Expected start: {forecast_text(begin)} (estimated)."
    pending = [key.entry for key, row in here.fitting_rows.items() if row.pending_pilots]
    for entry in sorted(set(pending))[:_PENDING]:
        waits = past.pilots.get(entry, ())
        of_entry = quantiles(waits)
        if of_entry is None:
            text = f"too little data: the queue's records of {counted(len(waits), 'pilot')}"
        else:
            text = (
                f"half of {of_entry.number} waited {duration(of_entry.half_s)} or less from their "
                f"submission, nine of ten {duration(of_entry.nine_tenths_s)} (estimated)"
            )
        yield f"Pilots on their way to {entry}: {text}."


def expected_record(here: Situation) -> dict[str, Any] | None:
    """Return it as JSON has it; ``start`` is seconds from now on."""
    past = here.past
    if past is None:
        return None
    begin, pilots = start(here)[0], {entry: quantiles(past.pilots[entry]) for entry in past.pilots}
    return {
        "start": None if begin is None else forecast_record(begin),
        "pilots": {entry: None if q is None else q._asdict() for entry, q in pilots.items()},
        "evidence": "estimated",
    }
