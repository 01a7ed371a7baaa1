"""The list of runs of jobs: which job, where, when, and what became of each.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.facts import Size
from gwmond.model.pilot_life import Category, RunKey
from gwmond.model.pilots.stored_pilots import PilotRow, RunFilter, RunRow
from gwmond.model.runs.phases import FailedTransfer, Phases, failed_transfer
from gwmond.model.runs.run_facts import used_of
from gwmond.model.times import Period
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.pilots.listing import NOBODY
from gwmond.reports.render import fields
from gwmond.reports.render.categories import INFO, kinds_json
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.fields import LENGTH, TIME, Datum, Unit
from gwmond.reports.render.formats import words
from gwmond.reports.render.periods import both, short
from gwmond.reports.render.table import Cell, table
from gwmond.reports.stored.phases import phase_fields, phases


def category_cell(category: Category | None) -> Cell:
    return Cell(words(category) if category else "not settled", INFO[category].colour)


CATEGORY = Unit(lambda key, value: {key: value and value.value}, category_cell)
AMOUNTS = Unit(lambda key, value: {key: kinds_json(value)}, str)


class ListedRun(NamedTuple):
    """A run, the pilot on which it ran, and its phases."""

    row: RunRow
    pilot: PilotRow
    phases: Phases


def _length(run: Any) -> int | None:
    """Return how long it was; None: it has no end yet."""
    return None if run.row.end_us is None else run.row.end_us - run.row.start_us


def _job(run: Any) -> str:
    return f"{run.row.key.job} run {run.row.key.shadow_start or '?'}".lstrip()


OF_RUN: tuple[Datum[Any], ...] = (
    Datum("job", lambda run: run.row.key.job, 15, cell=_job, text=True),
    Datum("shadow_start", lambda run: run.row.key.shadow_start),
    Datum("start", lambda run: run.row.start_us, 2, "from (UTC)", TIME, text=True),
    Datum("end", lambda run: run.row.end_us, unit=TIME),
    Datum("duration", _length, unit=LENGTH),
    Datum("user", lambda run: run.row.user or None, 7, text=True),
    Datum("job_group", lambda run: run.row.job_group or None),
    Datum("project", lambda run: run.row.project or None),
    Datum("accounting_group", lambda run: run.row.accounting_group or None),
    Datum("cores", lambda run: run.row.size.cores, 8, cell=lambda x: f"{x.row.size.cores:g}"),
    Datum("memory_mib", lambda run: run.row.size.memory_mib),
    Datum("gpus", lambda run: run.row.size.gpus),
    Datum("gpus_used", lambda run: used_of(run.row.facts).gpus if run.row.size.gpus else None),
    Datum("settled", lambda run: run.row.outcome is not None),
    Datum(
        *("category", lambda run: run.row.outcome and run.row.outcome.category, 5),
        unit=CATEGORY,
        text=True,
    ),
    Datum("outcome", lambda run: run.row.outcome and run.row.outcome.label, 6, text=True),
    Datum("evidence", lambda run: run.row.outcome and run.row.outcome.evidence, 14, text=True),
)
"""What lists and pilots' stories have of a run: of anything that has a ``RunRow`` as ``row``."""


FIELDS: tuple[Datum[ListedRun], ...] = (
    Datum("pilot", lambda run: run.row.pilot, 16, name=True),
    Datum("site", lambda run: run.pilot.identity.key.site, 9, text=True),
    Datum("entry", lambda run: run.pilot.identity.key.entry, 10, text=True),
    Datum("group", lambda run: run.pilot.identity.group),
    Datum("node", lambda run: run.pilot.identity.node or None, 11, text=True),
    Datum("", _length, 3, "lasted", LENGTH, text=True),
    *OF_RUN,
    *phase_fields(lambda run: run.phases, lambda run: failed_transfer(run.row.facts)),
    Datum("result", lambda run: run.row.result or None),
    Datum("time", lambda run: run.row.settled, unit=AMOUNTS),
)
"""In the order of JSON; ``time`` is what is posted of it."""


def _blank() -> dict[str, Any]:
    """Return what has all columns, and no run is."""
    row = RunRow(
        0, RunKey("", 0), 0, 0, Size(0, 0), "", "", None, "", open=False, settled={}, facts=()
    )
    none = fields.record(FIELDS, ListedRun(row, NOBODY.row, Phases()))
    return none | {"failed_transfer": dict.fromkeys(FailedTransfer._fields)}


class RunList(NamedTuple):
    """The latest runs of a choice; ``truncated``: there are more."""

    age: Age
    period: Period
    runs: Sequence[ListedRun]
    truncated: bool

    @property
    def document(self) -> Document:
        """The list in all forms."""
        return Document(
            self._parts,
            self._record,
            lambda: (fields.record(FIELDS, run) for run in self.runs),
            _blank,
        )

    def _record(self) -> dict[str, Any]:
        return {
            **self.age.as_json(),
            "period": {**both("from", self.period.since_us), **both("to", self.period.until_us)},
            "runs": [fields.record(FIELDS, run) for run in self.runs],
        }

    def _parts(self) -> Iterator[Part]:
        yield Paragraph(self.age.text)
        if self.runs:
            yield table("", fields.columns(FIELDS), self.runs)
        else:
            since, until = map(short, self.period)
            yield Paragraph(f"No such run began from {since} to {until} UTC.")


def run_list(ledger: LedgerReader, age: Age, choice: RunFilter, most: int | None) -> RunList:
    """Return the latest runs of a choice, ``most`` of them (None: all)."""
    found = ledger.runs_begun(choice, None if most is None else most + 1)
    again = {row.key.job for row, _ in found if (row.key.shadow_start or 1) > 1}
    same_job = ledger.find_runs(again)
    listed = [
        ListedRun(row, pilot, phases(row, same_job.get(row.key.job, ())))
        for row, pilot in found[:most]
    ]
    return RunList(age, choice.period, listed, len(found) > len(listed))
