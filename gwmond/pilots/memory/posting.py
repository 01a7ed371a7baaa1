"""From one version of a pilot's facts to the next: what is added and corrected, what is counted.

Units: amounts are micros, times microseconds.

How much of a pilot rests on which rule is counted with the pilot, in canonical micros of each
resource on which the rule bears: so it can be set against the canonical time of all pilots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import (
    Assumption,
    Category,
    Measure,
    Outcome,
    RunKey,
    divided,
)
from gwmond.model.pilots.pilot_facts import replace
from gwmond.model.pilots.stored_pilots import (
    ASSUMED,
    MICROS,
    Counted,
    CountKey,
    PilotCorrection,
    PilotIdentity,
    PilotSeries,
)
from gwmond.model.runs.phases import Measured, bucket_of, counted_lengths, moves_of
from gwmond.model.runs.run_facts import Move
from gwmond.model.times import SECOND_US
from gwmond.model.totals import Micros
from gwmond.model.units import RESOURCES, Resource
from gwmond.pilots.life.partition import (
    Account,
    Amounts,
    Delta,
    Row,
    advance,
    own_category,
    partition,
    total,
)
from gwmond.pilots.life.rules import FAR_US, Rules
from gwmond.pilots.memory.open_pilot import Increments, OpenPilot, OpenRun, held_at_once

RELABELLED, WITHDRAWN = "relabelled", "withdrawn"
REFRESHED = 30_000  # pilots within ``Rules.refresh``


def post(pilot: OpenPilot, known_us: int, now_us: int, rules: Rules) -> bool:
    """Post the difference between what is posted of a pilot and what is known of it now.

    Afterwards the pilot's ``settled``, ``settled_until_us``, ``known_us`` and ``posted`` are those
    of now; the difference is among what is to be stored.  Return False where runs are missing that
    bear on it.
    """
    known_us = max(min(known_us, _guard(pilot, rules)), pilot.known_us, 1)
    after, before = pilot.life(known_us), pilot.posted
    since = min(pilot.settled_until_us, pilot.changed_since_us)
    if before is not None and own_category(before) != own_category(after):
        since = min(since, before.start_us, after.start_us)
    away_us = pilot.loaded_from_us  # a run that ended then may have to be decided anew
    runs_missing = pilot.ran_jobs and (since < away_us or pilot.changed_since_us == away_us)
    if away_us > 0 and (pilot.is_renamed or runs_missing):
        return False
    pilot.unit_mib = pilot.unit_mib or rules.memory_per_unit_mib
    delta = advance(before, after, (since, FAR_US), pilot.unit_mib)
    corrections = [*_moved(pilot, now_us), *_corrected(pilot, delta, now_us)]
    increments = _added(pilot, delta)
    if corrections or increments:
        pilot.to_store().corrections += corrections
        pilot.to_store().increments += increments
    if corrections or increments or pilot.changed_since_us < FAR_US:
        pilot.dirty = True
    pilot.posted, pilot.known_us = after, known_us
    pilot.settled_until_us = delta.settled_to_us
    pilot.changed_since_us = FAR_US
    return True


def _moved(pilot: OpenPilot, now_us: int) -> list[PilotCorrection]:
    """Return what is posted of a pilot as moved to the name that it has now."""
    if pilot.posted_as is None or not pilot.is_renamed or pilot.posted is None:
        return []
    amounts: Amounts = partition(pilot.posted, None, pilot.unit_mib).settled
    return [
        _correction(pilot, row, identity, sign * micros, RELABELLED, now_us)
        for identity, sign in ((pilot.posted_as, -1), (pilot.identity, 1))
        for row, micros in amounts.items()
    ]


def withdraw(pilot: OpenPilot, now_us: int) -> None:
    """Take out all of a pilot that never was; all its runs must be in memory."""
    if pilot.posted is None or not pilot.unit_mib:  # nothing of it was posted
        return
    amounts: Amounts = partition(pilot.posted, None, pilot.unit_mib).settled
    posted_as = pilot.posted_as or pilot.identity
    pilot.to_store().corrections += [
        _correction(pilot, row, posted_as, -micros, WITHDRAWN, now_us)
        for row, micros in amounts.items()
    ]


def imply(pilot: OpenPilot, memory_per_unit_mib: int) -> None:
    """Take in the runs of a pilot that only they have: as large as they, no longer than they.

    A run that goes on lasts as long as a slot has shown it.

    It begins with its startd where a record has that, and has a unit's memory a core at least: a
    core brings a unit, as what a job was given of memory is not all that there was.
    """
    unit_mib = pilot.unit_mib or memory_per_unit_mib
    spans = [
        (run.start_us, max(run.start_us, run.end_us or run.last_shown_us or 0))
        for run in pilot.runs.values()
    ]
    if not spans:
        return
    first_us, last_us = min(start for start, _ in spans), max(end for _, end in spans)
    most = held_at_once(pilot.runs.values())
    held = most._replace(memory_mib=max(most.memory_mib, most.cores * unit_mib))
    before = pilot.facts.runs
    runs = replace(before, first_us=min(pilot.start_us, first_us), last_us=last_us, held=held)
    pilot.learn(replace(pilot.facts, runs=runs))


def grow(pilot: OpenPilot, guard_us: int) -> None:
    """Take in what runs held at once of a pilot whose size is an estimate: it has that at least.

    Runs that meet for ``guard_us`` only may have come one after the other, by another clock.
    """
    runs = [run for run in pilot.runs.values() if not run.summarised]
    held = held_at_once(runs, guard_us)
    size = held if any(held) else None  # absent is not zero
    pilot.learn(replace(pilot.facts, runs=replace(pilot.facts.runs, held=size)))


def own(pilot: OpenPilot) -> Category | None:
    """Return the category of an ended pilot's own time, once it is decided."""
    return None if pilot.end_us is None or pilot.posted is None else own_category(pilot.posted)


def counted(pilot: OpenPilot) -> Category | None:
    """Return under what a stored pilot was counted; None if it was never posted."""
    return own(pilot) if pilot.known_us else None


def residual(pilot: OpenPilot) -> dict[Measure, int]:
    """Return by how much what is posted misses a wholly settled pilot's total."""
    if pilot.posted is None:
        return {}
    missing: Counter[tuple[Resource, Measure]] = Counter(total(pilot.posted, None, pilot.unit_mib))
    for (resource, measure, _, _), micros in pilot.settled.items():
        missing[resource, measure] -= micros
    sums: Counter[Measure] = Counter()
    for (_, measure), micros in missing.items():
        sums[measure] += abs(micros)
    return dict(sums)


def unsettled(
    pilots: Iterable[OpenPilot], memory_per_unit_mib: int
) -> dict[tuple[Resource, EntryKey, str], int]:
    """Return the canonical micros that are not settled yet, by resource, entry and group."""
    sums: Counter[tuple[Resource, EntryKey, str]] = Counter()
    for pilot in pilots:
        identity, settled = pilot.identity, pilot.canonical
        for resource, total_micros in pilot.canonical_totals(memory_per_unit_mib).items():
            sums[resource, identity.key, identity.group] += total_micros - settled[resource]
    return dict(sums)


class RefreshTurns(NamedTuple):
    """When pilots are posted of which nothing has changed: each once in ``every_us``.

    ``before_us``: when it was settled last; a daemon started anew keeps to the turns.
    """

    before_us: int = 0
    now_us: int = 0
    every_us: int = 0

    @classmethod
    def of(cls, before_us: int, now_us: int, pilots: int, rules: Rules) -> RefreshTurns:
        """Return the turns of a number of pilots; of very many, each comes less often."""
        return cls(before_us, now_us, rules.refresh_us * max(1, -(-pilots // REFRESHED)))

    def is_next(self, pilot: OpenPilot) -> bool:
        """Return whether a pilot's turn has come."""
        turn_us, every_us = pilot.id * SECOND_US, self.every_us
        if every_us <= 0:
            return True
        return (self.before_us - turn_us) // every_us < (self.now_us - turn_us) // every_us


def _guard(pilot: OpenPilot, rules: Rules) -> int:
    """Return up to when time may be settled although a run may have begun a bit earlier.

    A slot shows a claim later than the schedd says that it began.
    """
    starts = [
        run.start_us for run in pilot.runs.values() if run.is_open and not run.merged.ending.over
    ]
    return min(starts, default=FAR_US) - rules.start_guard_us


def _added(pilot: OpenPilot, delta: Delta) -> Increments:
    """Return what is new by hour; add it to what the pilot and its runs have."""
    for key, amounts in delta.increments.runs.items():
        _add_to_run(pilot, key, amounts)
    increments: Increments = []
    for account, hours in delta.increments.hourly.items():
        series = _series(account, pilot.identity)
        _add(pilot, series, sum(hours.values()))
        increments.append((series, hours))
    return increments


def _corrected(pilot: OpenPilot, delta: Delta, now_us: int) -> Iterator[PilotCorrection]:
    """Yield what was posted otherwise; add it to what the pilot and its runs have."""
    for row, micros, cause in delta.corrections:
        correction = _correction(pilot, row, pilot.identity, micros, cause.value, now_us)
        _add(pilot, correction.series, micros)
        if row.run_key is not None:
            _add_to_run(pilot, row.run_key, {(row.resource, row.measure): micros})
        yield correction


def _correction(
    pilot: OpenPilot, row: Row, identity: PilotIdentity, micros: int, cause: str, now_us: int
) -> PilotCorrection:
    return PilotCorrection(now_us, pilot.id, row.hour, _series(row, identity), micros, cause)


def _series(account: Row | Account, identity: PilotIdentity) -> PilotSeries:
    return PilotSeries(
        *(account.resource, account.measure, account.category, account.outcome),
        *(*identity.key, identity.group, account.evidence),
    )


def _add(pilot: OpenPilot, series: PilotSeries, micros: int) -> None:
    pilot.settled[series.resource, series.measure, series.category, series.outcome] += micros
    if series.measure == "canonical":
        pilot.canonical[series.resource] += micros


def _add_to_run(
    pilot: OpenPilot, key: RunKey, amounts: Mapping[tuple[Resource, Measure], int]
) -> None:
    run = pilot.runs.get(key)
    if run is not None:
        settled = {account: run.settled.get(account, 0) + n for account, n in amounts.items()}
        run.settled = {**run.settled, **settled}
        run.dirty = True


def needs_posting(pilot: OpenPilot, turns: RefreshTurns, known_us: int, rules: Rules) -> bool:
    """Return whether posting a pilot may change anything.

    A pilot that runs is posted in its turn only.  If it waits for its end it is not posted before:
    its time may then be estimated.
    """
    if pilot.changed_since_us < FAR_US or pilot.posted is None:
        return bool(pilot.known_us) or not pilot.end_unknown
    end_us, runs = pilot.derived.end_us, pilot.runs.values()
    if end_us is not None and not any(run.is_open for run in runs):
        limit = min(known_us, pilot.effective_end_us)
        return limit > pilot.settled_until_us or (pilot.counted is None and known_us >= end_us)
    if not turns.is_next(pilot):
        return False
    guard = rules.start_guard_us
    running = [run for run in runs if run.is_open and not run.merged.ending.over]
    if any(run.is_open and (run.merged.ending.over or run.gone) for run in runs):
        return True
    if end_us is not None:
        return True
    return min(known_us, pilot.effective_end_us) > pilot.settled_until_us and all(
        run.start_us - guard > pilot.settled_until_us for run in running
    )


# --- Counts of pilots and runs: the difference to how they were counted before -------------------


def count(pilot: OpenPilot, memory_per_unit_mib: int) -> None:
    """Count a pilot and its runs by what is decided of them now, under its name of now."""
    for run in pilot.removed:
        _run(run, None, known=False)
    pilot.removed.clear()
    if pilot.is_renamed:
        uncount(pilot, memory_per_unit_mib)
    pilot.posted_as = pilot.identity
    for run in pilot.runs.values():
        if run.dirty or run.counted != run.outcome:
            _run(run, run.outcome, known=True)
    _pilot(pilot, own(pilot), memory_per_unit_mib)


def uncount(pilot: OpenPilot, memory_per_unit_mib: int) -> None:
    """Take a pilot and its runs out, under the name under which they were counted."""
    for run in (*pilot.removed, *pilot.runs.values()):
        _run(run, None, known=False)
    _pilot(pilot, None, memory_per_unit_mib)


def _run(run: OpenRun, outcome: Outcome | None, *, known: bool) -> None:
    """Count a run by its outcome; one that is not ``known`` any more is not counted at all."""
    if run.summarised:
        return  # it is no run of a job
    none, place = Category.UNCLASSIFIED, _labels(run.pilot)
    lengths: Mapping[Measured, Micros] = {}
    if outcome is not None:
        lengths = counted_lengths(run.facts, run.start_us, run.end_us)
    failure = run.merged.ending.failed_transfer if known else None
    now = outcome, lengths, failure, moves_of(run.facts) if known else ()
    before = run.counted, run.counted_us, run.counted_failure, run.counted_moves
    if now == before:
        return
    change = run.pilot.to_store().counts
    for (counted, counted_us, failed, moves), sign in ((before, -1), (now, 1)):
        if counted is not None:
            change[CountKey("runs", counted.category, counted.label, *place)] += sign
        for measured, length_us in counted_us.items():
            change[CountKey(measured, none, bucket_of(measured, length_us), *place)] += sign
            change[CountKey(MICROS[measured], none, "", *place)] += sign * length_us
        if failed is not None:
            change[CountKey("failed_transfers", none, failed, *place)] += sign
        for move in moves:
            for what, amount in _amounts(move).items():
                if amount:
                    change[CountKey(what, none, move.server, *place)] += sign * amount
    run.counted, run.counted_us, run.counted_failure, run.counted_moves = now
    run.dirty = True


def _amounts(move: Move) -> dict[Counted, int | None]:
    return {
        "files_moved": move.files,
        "files_failed": move.failed,
        "files_again": move.again,
        "bytes_moved": move.moved,
        "moving_micros": move.took_us,
    }


def _pilot(pilot: OpenPilot, category: Category | None, memory_per_unit_mib: int) -> None:
    micros = _assumed(pilot, category, memory_per_unit_mib)
    before, now = (pilot.counted, pilot.counted_micros), (category, micros)
    if now == before:
        return
    change, place = pilot.to_store().counts, _labels(pilot)
    for (counted, amounts), sign in ((before, -1), (now, 1)):
        if counted is not None:
            change[CountKey("pilots", counted, "", *place)] += sign
        for (rule, resource), amount in amounts.items():
            key = CountKey(ASSUMED[resource], counted or Category.UNCLASSIFIED, rule, *place)
            change[key] += sign * amount
    pilot.counted, pilot.counted_micros = now
    pilot.dirty = True  # stored with the count, or it is counted again


def _assumed(
    pilot: OpenPilot, category: Category | None, memory_per_unit_mib: int
) -> Counter[tuple[Assumption, Resource]]:
    """Return how much of a counted pilot rests on which rule."""
    amounts: Counter[tuple[Assumption, Resource]] = Counter()
    for resource in RESOURCES if category is not None and pilot.assumed else ():
        for rule, within in divided(pilot.assumed, resource):
            amounts[rule, resource] += pilot.canonical_total(resource, memory_per_unit_mib, within)
    return +amounts


def _labels(pilot: OpenPilot) -> tuple[str, str, str]:
    """Return the site, entry and group under which a pilot is counted."""
    identity = pilot.posted_as or pilot.identity
    return *identity.key, identity.group
