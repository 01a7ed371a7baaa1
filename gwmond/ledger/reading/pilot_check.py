"""The proof of pilot time: what is stored at one place follows from what is stored at another.

- ``hours``: each series' total is what was pruned plus the sum of its hours (and its counter
  is not below it);
- ``pilots``, ``runs``: what is posted for each is what the partition of its stored life gives.
  Where retention took runs of a closed pilot out, the life cannot be divided again; then
  what is posted must be all that the pilot had to offer, or at most that if not all is known.
  Canonical units are those in which it was posted, whatever is configured now;
- ``series``: what is posted for all pilots (and was, for those pruned) sums to the totals;
- ``site_canonical``: site time, each total against its hours;
- ``factory``: the factory's own numbers, each total against its hours;
- ``factory.jobs``: what its queue recorded of each of its jobs can be read, and is found by its
  name.

All in one transaction, and some hundred pilots in memory at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import nlargest
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection, exists, func, select

from gwmond.ledger.database.schema import pilots, runs
from gwmond.ledger.reading.pilot_reader import PILOT_ROWS, RUN_ROWS
from gwmond.ledger.rows import counters, tables
from gwmond.ledger.rows.counters import Kind
from gwmond.ledger.rows.pilot_codec import pilot_row, run_row
from gwmond.model.pilot_life import (
    KINDS,
    Category,
    Measure,
    PilotLife,
    RunKey,
)
from gwmond.model.pilots.stored_pilots import (
    OwnAmounts,
    PilotDifference,
    PilotResidual,
    PilotRow,
    RunRow,
)
from gwmond.model.totals import Micros
from gwmond.model.units import MICRO, Resource
from gwmond.pilots.life.partition import Amounts, partition, total

Progress: TypeAlias = Callable[[str, int, int], None]
Place: TypeAlias = tuple[str, ...]
PILOTS_AT_ONCE = 200
WORST = 10


class _Residual:
    """Sums up differences; keeps the largest."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.checked = self.skipped = self.micros = 0
        self._worst: list[PilotDifference] = []

    def differ(self, where: str, micros: Micros) -> None:
        if micros:
            self.micros += abs(micros)
            self._worst.append(PilotDifference(where, micros))
            if len(self._worst) > 100:
                self._worst = self._largest()

    def _largest(self) -> list[PilotDifference]:
        return nlargest(WORST, self._worst, key=lambda residual: abs(residual.micros))

    def result(self) -> PilotResidual:
        worst = tuple(self._largest())
        return PilotResidual(self.what, self.checked, self.skipped, self.micros, worst)


def check(connection: Connection, progress: Progress, memory_mib: int) -> tuple[PilotResidual, ...]:
    """Return the residuals, each 0 in a sound ledger."""
    hours, series, totals = _series(connection, progress)
    of_pilots, of_runs = _Residual("pilots"), _Residual("runs")
    for row, run_rows in _lives(connection, progress):
        of_pilots.checked += 1
        of_runs.checked += len(run_rows)
        unit_mib = row.unit_mib or memory_mib
        if row.runs_pruned:
            of_pilots.skipped += 1
            of_runs.skipped += row.runs_pruned
            _check_pruned(row, run_rows, unit_mib, of_pilots)
        else:
            _check_life(row, run_rows, unit_mib, of_pilots, of_runs)
        place = *row.identity.key, row.identity.group
        for kind, micros in row.settled.items():
            totals[*map(str, kind), *place] -= micros
    _check_orphans(connection, of_runs)
    of_series = _Residual("series")
    of_series.checked = series
    for carried in counters.stored_series(connection, Kind.CARRIED):
        totals[carried.labels] -= carried.total
    for key, micros in totals.items():
        of_series.differ(" ".join(key), micros)
    site, factory = _Residual("site_canonical"), _Residual("factory")
    for proven in counters.prove(connection, Kind.SITE):
        site.checked += 1
        site.differ(" ".join(proven.series.labels), proven.difference)
    for proven in counters.prove(connection, Kind.FACTORY):
        factory.checked += proven.hours
        factory.differ(" ".join(proven.series.labels), proven.difference * MICRO)
    residuals = (hours, of_pilots, of_runs, of_series, site, factory, _places(connection))
    return tuple(residual.result() for residual in residuals)


def _series(connection: Connection, progress: Progress) -> tuple[_Residual, int, Counter[Place]]:
    """Check totals against hours; return the number of series, and totals without evidence."""
    progress("hours", 0, 1)
    residual, number = _Residual("hours"), 0
    totals: Counter[Place] = Counter()
    for series, difference, hours in counters.prove(connection, Kind.PILOT):
        where = " ".join(series.labels)
        residual.differ(where, difference)
        residual.differ(f"counter of {where}", min(0, series.high - series.total))
        residual.checked += hours
        number += 1
        totals[series.labels[:-1]] += series.total
    progress("hours", 1, 1)
    return residual, number, totals


def _lives(connection: Connection, progress: Progress) -> Iterator[tuple[PilotRow, list[RunRow]]]:
    """Yield every pilot with all runs of it that are stored."""
    number, done, last = connection.scalar(select(func.count()).select_from(pilots)) or 0, 0, -1
    progress("pilots", 0, number)
    query = PILOT_ROWS.order_by(pilots.c.id).limit(PILOTS_AT_ONCE)
    while rows := [pilot_row(row) for row in connection.execute(query.where(pilots.c.id > last))]:
        rows_by_pilot: dict[int, list[RunRow]] = {row.id: [] for row in rows}
        between = runs.c.pilot.between(rows[0].id, rows[-1].id)
        for values in connection.execute(RUN_ROWS.where(between)):
            run = run_row(values)
            if run.pilot in rows_by_pilot:  # an orphan is found by ``_check_orphans``
                rows_by_pilot[run.pilot].append(run)
        for row in rows:
            yield row, rows_by_pilot[row.id]
        last, done = rows[-1].id, done + len(rows)
        progress("pilots", done, number)


def _check_life(
    row: PilotRow,
    run_rows: list[RunRow],
    memory_mib: int,
    of_pilots: _Residual,
    of_runs: _Residual,
) -> None:
    shares = posted(partition(life_of(row, run_rows), memory_per_unit_mib=memory_mib).settled)
    for key in row.settled.keys() | shares.pilot.keys():
        missing = shares.pilot.get(key, 0) - row.settled.get(key, 0)
        of_pilots.differ(f"pilot {row.id} {' '.join(key)}", missing)
    for run in run_rows:
        amounts = shares.runs.get(run.key, {})
        for kind in run.settled.keys() | amounts.keys():
            where = f"{run.key.job} run {run.key.number} {' '.join(kind)}"
            of_runs.differ(where, amounts.get(kind, 0) - run.settled.get(kind, 0))


def _check_pruned(
    row: PilotRow, run_rows: list[RunRow], memory_mib: int, of_pilots: _Residual
) -> None:
    """Check what can be without all runs: the pilot's own share is not known any more."""
    life = life_of(row, ())._replace(ran_jobs=True)
    offered, complete = (
        total(life, memory_per_unit_mib=memory_mib),
        life.known_us >= life.effective_end_us,
    )
    amounts: Counter[tuple[Resource, Measure]] = Counter()
    for (resource, measure, _, _), micros in row.settled.items():
        amounts[resource, measure] += micros
    for kind in KINDS:
        where = f"pilot {row.id} (runs pruned) {' '.join(kind)}"
        missing = offered.get(kind, 0) - amounts[kind]
        of_pilots.differ(where, missing if complete else min(0, missing))
    left: Counter[tuple[Resource, Measure, Category, str]] = Counter(dict(row.settled))
    for run in run_rows:
        if run.outcome is not None:
            for (resource, measure), micros in run.settled.items():
                left[resource, measure, *run.outcome[:2]] -= micros
    for key, micros in left.items():
        where = f"pilot {row.id} (runs pruned) {' '.join(key)}"
        of_pilots.differ(where, min(0, micros))


def _places(connection: Connection) -> _Residual:
    """Count each row that is not what it should be as one micro."""
    residual = _Residual("factory_jobs")
    residual.checked, wrong = tables.undecodable_places(connection)
    for name in wrong:
        residual.differ(f"factory job {name}", 1)
    return residual


def _check_orphans(connection: Connection, residual: _Residual) -> None:
    """Count each run without its pilot as one micro at least."""
    its_pilot = exists().where(pilots.c.id == runs.c.pilot)
    for row in connection.execute(RUN_ROWS.where(~its_pilot).limit(1000)):
        run = run_row(row)
        residual.checked += 1
        amount = max(1, sum(run.settled.values()))
        residual.differ(f"{run.key.job} run {run.key.number} without pilot", amount)


class Posted(NamedTuple):
    """Settled amounts as rows hold them: of the pilot, and of each run that has any."""

    pilot: OwnAmounts
    runs: dict[RunKey, dict[tuple[Resource, Measure], Micros]]


def life_of(row: PilotRow, runs: Iterable[RunRow]) -> PilotLife:
    """Return the life in rows; while it runs it lasts, for now, to its last contact."""
    return row.life._replace(
        runs=tuple(run.as_run for run in runs),
        known_until_us=row.known_until_us,
        ran_jobs=row.ran_jobs,
    )


def posted(settled: Amounts) -> Posted:
    """Sum up the settled part of a partition as rows hold it; what is 0 is left out."""
    own: Counter[tuple[Resource, Measure, Category, str]] = Counter()
    runs: dict[RunKey, dict[tuple[Resource, Measure], Micros]] = {}
    for account, micros in settled.items():
        own[account.resource, account.measure, account.category, account.outcome] += micros
        if account.run_key is not None and micros:
            kinds = runs.setdefault(account.run_key, {})
            kind = account.resource, account.measure
            kinds[kind] = kinds.get(kind, 0) + micros
    return Posted(dict(+own), runs)
