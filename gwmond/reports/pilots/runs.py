"""The list of runs of jobs: which job, where, when, and what became of each.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gwmond.config.settings import Config
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import PilotRow, RunFilter, RunRow
from gwmond.model.runs.phases import Phases, failed_transfer
from gwmond.reports.ledger.ledger_reading import age_of, ledger_for_page
from gwmond.reports.render import fields
from gwmond.reports.render.categories import INFO, kinds_json
from gwmond.reports.render.fields import LENGTH, TIME, Datum, Unit
from gwmond.reports.render.formats import words
from gwmond.reports.render.periods import both
from gwmond.reports.render.table import Cell
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
    Datum("cores", lambda run: run.row.size.cores, 8, cell=lambda x: f"{x.row.size.cores:g}"),
    Datum("memory_mib", lambda run: run.row.size.memory_mib),
    Datum("gpus", lambda run: run.row.size.gpus),
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
    Datum("pilot", lambda run: run.row.pilot),
    Datum("site", lambda run: run.pilot.identity.key.site),
    Datum("entry", lambda run: run.pilot.identity.key.entry),
    Datum("group", lambda run: run.pilot.identity.group),
    Datum("node", lambda run: run.pilot.identity.node or None),
    *OF_RUN,
    *phase_fields(lambda run: run.phases, lambda run: failed_transfer(run.row.facts)),
    Datum("result", lambda run: run.row.result or None),
    Datum("time", lambda run: run.row.settled, unit=AMOUNTS),
)
"""In the order of JSON; ``time`` is what is posted of it."""


def runs_json(
    config: Config, now_us: int, wanted: RunFilter, most: int
) -> tuple[dict[str, Any], list[RunRow]]:
    """Return the latest ``most`` runs for programs, and the rows: one more, if there is one.

    Raises Unreadable.
    """
    with ledger_for_page(config.ledger.url) as ledger:
        age = age_of(ledger, now_us, config.poll.interval)
        found = ledger.runs_begun(wanted, most + 1)
        again = {row.key.job for row, _ in found if (row.key.shadow_start or 1) > 1}
        same_job = ledger.find_runs(again)
    record = {
        **age.as_json(),
        "period": {**both("from", wanted.period.since_us), **both("to", wanted.period.until_us)},
        "runs": [
            fields.record(FIELDS, ListedRun(row, pilot, phases(row, same_job.get(row.key.job, ()))))
            for row, pilot in found[:most]
        ],
    }
    return record, [row for row, _ in found]
