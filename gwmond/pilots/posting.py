"""From one version of a pilot's facts to the next: what is added, what is corrected.

Units: amounts are micros, times microseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gwmond.model.facts import EntryKey
from gwmond.model.pilot_facts import (
    AttemptKey,
    Category,
    Measure,
)
from gwmond.model.pilot_sources import replace
from gwmond.model.stored_pilots import PilotIdentity, PilotSeries
from gwmond.model.units import Resource
from gwmond.pilots.open_attempt import held_at_once
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.pilot_time import (
    Account,
    Amounts,
    Delta,
    Row,
    advance,
    own_category,
    partition,
    total,
)
from gwmond.pilots.rules import FAR_US, Rules

RELABELLED, WITHDRAWN = "relabelled", "withdrawn"


class Posting(NamedTuple):
    """A signed amount for the ledger; ``cause`` is empty for an increment."""

    hour: int
    series: PilotSeries
    micros: int
    cause: str


def post(pilot: OpenPilot, known_us: int, rules: Rules) -> list[Posting] | None:
    """Post the difference between what is posted of a pilot and what is known of it now.

    Afterwards the pilot's ``settled``, ``mark_us``, ``known_us`` and ``booked`` are those of now.
    Return None where attempts are missing that bear on the difference.
    """
    known_us = max(min(known_us, _guard(pilot, rules)), pilot.known_us, 1)
    after, before = pilot.life(known_us), pilot.booked
    since = min(pilot.mark_us, pilot.from_us)
    if before is not None and own_category(before) != own_category(after):
        since = min(since, before.start_us, after.start_us)
    if pilot.loaded_from_us > 0 and (
        pilot.is_renamed or (pilot.ran_jobs and since < pilot.loaded_from_us)
    ):
        return None
    delta = advance(before, after, (since, FAR_US), rules.q)
    entries = _moved(pilot, rules) + _entries(delta, pilot)
    if entries or pilot.from_us < FAR_US:
        pilot.dirty = True
    pilot.booked, pilot.known_us = after, known_us
    pilot.mark_us = delta.settled_to_us
    pilot.from_us = FAR_US
    return entries


def _moved(pilot: OpenPilot, rules: Rules) -> list[Posting]:
    """Return what is posted of a pilot as moved to the name that it has now."""
    if pilot.posted_as is None or not pilot.is_renamed or pilot.booked is None:
        return []
    amounts: Amounts = partition(pilot.booked, None, rules.q).settled
    return [
        _entry(row, identity, sign * micros, RELABELLED)
        for identity, sign in ((pilot.posted_as, -1), (pilot.identity, 1))
        for row, micros in amounts.items()
    ]


def withdraw(pilot: OpenPilot, rules: Rules) -> list[Posting]:
    """Take out all of a pilot that never was; all its attempts must be in memory."""
    if pilot.booked is None:
        return []
    amounts: Amounts = partition(pilot.booked, None, rules.q).settled
    posted_as = pilot.posted_as or pilot.identity
    return [_entry(row, posted_as, -micros, WITHDRAWN) for row, micros in amounts.items()]


def imply(pilot: OpenPilot, q: int) -> None:
    """Take in the runs of a pilot that only they have: as large as they, no longer than they.

    It begins with its startd where a record has that, and has ``q`` MiB a core at least: a core
    brings a unit, as what a job was given of memory is not all that there was.
    """
    spans = [
        (attempt.start_us, attempt.end_us or attempt.start_us)
        for attempt in pilot.attempts.values()
    ]
    if not spans:
        return
    first_us, last_us = min(start for start, _ in spans), max(end for _, end in spans)
    most = held_at_once(pilot.attempts.values())
    held = most._replace(memory_mib=max(most.memory_mib, most.cores * q))
    before = pilot.facts.runs
    runs = replace(before, first_us=min(pilot.start_us, first_us), last_us=last_us, held=held)
    pilot.learn(replace(pilot.facts, runs=runs))


def grow(pilot: OpenPilot, guard_us: int) -> None:
    """Take in what runs held at once of a pilot whose size is an estimate: it has that at least.

    Runs that meet for ``guard_us`` only may have come one after the other, by another clock.
    """
    runs = [attempt for attempt in pilot.attempts.values() if not attempt.summarised]
    held = held_at_once(runs, guard_us)
    known = held if any(held) else None  # absent is not zero
    pilot.learn(replace(pilot.facts, runs=replace(pilot.facts.runs, held=known)))


def own(pilot: OpenPilot) -> Category | None:
    """Return the category of an ended pilot's own time, once it is decided."""
    return None if pilot.end_us is None or pilot.booked is None else own_category(pilot.booked)


def counted(pilot: OpenPilot) -> Category | None:
    """Return under what a stored pilot was counted; one that was never booked was not."""
    return own(pilot) if pilot.known_us else None


def residual(pilot: OpenPilot, rules: Rules) -> dict[Measure, int]:
    """Return by how much what is booked misses a wholly settled pilot's total."""
    if pilot.booked is None:
        return {}
    missing: Counter[tuple[Resource, Measure]] = Counter(total(pilot.booked, None, rules.q))
    for (resource, measure, _, _), micros in pilot.settled.items():
        missing[resource, measure] -= micros
    sums: Counter[Measure] = Counter()
    for (_, measure), micros in missing.items():
        sums[measure] += abs(micros)
    return dict(sums)


def unsettled(pilots: Iterable[OpenPilot], q: int) -> dict[tuple[Resource, EntryKey, str], int]:
    """Return the canonical micros that are not settled yet, by resource, entry and group."""
    sums: Counter[tuple[Resource, EntryKey, str]] = Counter()
    for pilot in pilots:
        for resource, total_micros in pilot.canonical_totals(q).items():
            key = resource, pilot.identity.key, pilot.identity.group
            sums[key] += total_micros - pilot.canonical[resource]
    return dict(sums)


def _guard(pilot: OpenPilot, rules: Rules) -> int:
    """Return up to when time may be settled although an attempt may have begun a bit earlier.

    A slot tells of a claim later than the schedd says that it began.
    """
    starts = [
        attempt.start_us
        for attempt in pilot.attempts.values()
        if attempt.is_open and not attempt.merged.ending.over
    ]
    return min(starts, default=FAR_US) - rules.start_guard_us


def _entries(delta: Delta, pilot: OpenPilot) -> list[Posting]:
    """Return what is to be booked, attempts of a series together; add it to what the pilot has."""
    sums: dict[PilotSeries, dict[int, int]] = {}
    for account, hours in delta.hourly.items():
        series = _series(account, pilot.identity)
        _add(pilot, series, account.attempt, sum(hours.values()))
        summed = sums.setdefault(series, {})
        for hour, micros in hours.items():
            summed[hour] = summed.get(hour, 0) + micros
    entries = [
        Posting(hour, pilot_series, n, "")
        for pilot_series, hours in sums.items()
        for hour, n in hours.items()
    ]
    for row, micros, cause in delta.corrections:
        entries.append(_entry(row, pilot.identity, micros, cause.value))
        _add(pilot, entries[-1].series, row.attempt, micros)
    return entries


def _entry(row: Row, identity: PilotIdentity, micros: int, cause: str) -> Posting:
    return Posting(row.hour, _series(row, identity), micros, cause)


def _series(account: Row | Account, identity: PilotIdentity) -> PilotSeries:
    return PilotSeries(
        *(account.resource, account.measure, account.category, account.outcome),
        *(*identity.key, identity.group, account.evidence),
    )


def _add(pilot: OpenPilot, series: PilotSeries, key: AttemptKey | None, micros: int) -> None:
    pilot.settled[series.resource, series.measure, series.category, series.outcome] += micros
    if series.measure == "canonical":
        pilot.canonical[series.resource] += micros
    attempt = pilot.attempts.get(key) if key is not None else None
    if attempt is not None:
        attempt.settled[series.resource, series.measure] += micros
        attempt.dirty = True


def needs_posting(pilot: OpenPilot, now_us: int, known_us: int, rules: Rules) -> bool:
    """Return whether booking a pilot may change anything.

    One that runs is booked every ``refresh_us`` only, which is noted.  One that waits for its end
    is not booked before: its time may then be estimated.
    """
    if pilot.from_us < FAR_US or pilot.booked is None:
        return bool(pilot.known_us) or not pilot.waits
    attempts = pilot.attempts.values()
    limit = min(known_us, pilot.until_us)
    if pilot.end_us is not None and not any(attempt.is_open for attempt in attempts):
        return limit > pilot.mark_us or (pilot.counted is None and known_us >= pilot.end_us)
    if now_us < pilot.booked_at_us + rules.refresh_us:
        return False
    pilot.booked_at_us = now_us
    guard = rules.start_guard_us
    running = [
        attempt for attempt in attempts if attempt.is_open and not attempt.merged.ending.over
    ]
    if any(
        attempt.is_open and (attempt.merged.ending.over or attempt.gone) for attempt in attempts
    ):
        return True
    if pilot.end_us is not None:
        return True
    return limit > pilot.mark_us and all(
        attempt.start_us - guard > pilot.mark_us for attempt in running
    )
