"""The list of runs of jobs: which job, where, when, and what became of each.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gwmond.config.settings import Config
from gwmond.ledger.reader import RunFilter
from gwmond.model.pilot_facts import Category
from gwmond.model.stored_pilots import PilotRow, RunRow
from gwmond.model.times import Period
from gwmond.reports.categories import kinds_json
from gwmond.reports.ledger_reading import age_of, ledger_for_page
from gwmond.reports.periods import both
from gwmond.reports.render import fields
from gwmond.reports.render.fields import LENGTH, TIME, Datum, Unit

_AMOUNTS = Unit(lambda key, value: {key: kinds_json(value)}, str)


class ListedRun(NamedTuple):
    """A run, and the pilot on which it ran."""

    row: RunRow
    pilot: PilotRow

    @property
    def length_us(self) -> int | None:
        """How long it was; None: it has no end yet."""
        return None if self.row.end_us is None else self.row.end_us - self.row.start_us


FIELDS: tuple[Datum[ListedRun], ...] = (
    Datum("pilot", lambda run: run.row.pilot),
    Datum("site", lambda run: run.pilot.identity.key.site),
    Datum("entry", lambda run: run.pilot.identity.key.entry),
    Datum("group", lambda run: run.pilot.identity.group),
    Datum("node", lambda run: run.pilot.identity.node or None),
    Datum("job", lambda run: run.row.key.job),
    Datum("shadow_start", lambda run: run.row.key.shadow_start),
    Datum("start", lambda run: run.row.start_us, unit=TIME),
    Datum("end", lambda run: run.row.end_us, unit=TIME),
    Datum("duration", lambda run: run.length_us, unit=LENGTH),
    Datum("user", lambda run: run.row.user or None),
    Datum("job_group", lambda run: run.row.job_group or None),
    Datum("cores", lambda run: run.row.size.cores),
    Datum("memory_mib", lambda run: run.row.size.memory_mib),
    Datum("gpus", lambda run: run.row.size.gpus),
    Datum("settled", lambda run: run.row.outcome is not None),
    Datum("category", lambda run: run.row.outcome and run.row.outcome.category.value),
    Datum("outcome", lambda run: run.row.outcome and run.row.outcome.label),
    Datum("evidence", lambda run: run.row.outcome and run.row.outcome.evidence),
    Datum("result", lambda run: run.row.result or None),
    Datum("time", lambda run: run.row.settled, unit=_AMOUNTS),
)
"""In the order of JSON; ``time`` is what is posted of it.  The same names as in a pilot's story."""


class RunsListed(NamedTuple):
    """Which runs a list shows: those that began in a period; None does not matter.

    ``job``: a GlobalJobId.  ``skip``: so many of the latest are on pages before.
    """

    period: Period
    place: tuple[str | None, str | None, str | None]
    user: str | None
    job: str | None
    category: Category | None
    skip: int


def runs_json(
    config: Config, now_us: int, shown: RunsListed, most: int
) -> tuple[dict[str, Any], list[RunRow]]:
    """Return the latest ``most`` runs for programs, and the rows: one more, if there is one.

    Raises Unreadable.
    """
    wanted = RunFilter(None, None, *shown.place, shown.user)
    with ledger_for_page(config.ledger.url) as ledger:
        age = age_of(ledger, now_us, config.poll.interval)
        found = ledger.runs_begun(
            shown.period,
            wanted,
            job=shown.job,
            category=shown.category,
            limit=most + 1,
            skip=shown.skip,
        )
    record = {
        **age.as_json(),
        "period": {**both("from", shown.period.since_us), **both("to", shown.period.until_us)},
        "runs": [fields.record(FIELDS, ListedRun(*run)) for run in found[:most]],
    }
    return record, [row for row, _ in found]
