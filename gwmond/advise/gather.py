"""Reads what an advice is made of, some pilots at a time, while the daemon writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from gwmond.advise import judge
from gwmond.advise.tally import EntryTally, GroupTally, Tried
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.factory.totals import FactoryKind
from gwmond.model.facts import ANYWHERE, EntryKey, Place
from gwmond.model.times import HOUR_US, Period
from gwmond.model.units import DEFAULT_MEMORY_MIB
from gwmond.reports.ledger.ledger_reading import Report, pilots_ended
from gwmond.reports.stored.stored_pilot import AsOf

T = TypeVar("T")
_ASKED = frozenset(kind for kind in FactoryKind if kind.startswith(("asked_idle", "status_idle")))


class Advice(NamedTuple):
    """What would waste less, by the pilots that ended in a period and their runs.

    ``untimed``: of these ``pilots``, those whose waits for jobs are not known.
    ``total_micros``: their settled time, ``estimated_micros`` of it where a rule stands for a fact;
    ``unsettled_micros``: the rest of their time, which no loss has yet.
    """

    period: Period
    pilots: int
    runs: int
    untimed: int
    total_micros: int
    estimated_micros: int
    unsettled_micros: int
    losses: list[judge.PoolLoss]
    timeouts: list[judge.TimeoutLine]
    lost: list[judge.LostLine]
    requests: list[judge.RequestLine]
    asked: list[judge.AskedLine]
    overlaps: list[judge.OverlapLine]
    trials: list[judge.TrialLine]
    overloads: list[judge.TrialLine]


def gather(
    ledger: LedgerReader,
    period: Period,
    place: Place = ANYWHERE,
    *,
    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB,
    progress: Report = lambda *_: None,
) -> Advice:
    """Make the advice for pilots of a place that ended in a period.

    Only what is bounded is kept: see ``tally``.
    """
    entries: dict[EntryKey, EntryTally] = {}
    groups: dict[str, GroupTally] = {}
    as_of, runs, hours = AsOf(memory_per_unit_mib=memory_per_unit_mib), 0, 0
    for pilot in pilots_ended(ledger, period, place, as_of):
        key = pilot.identity.key
        entries.setdefault(key, EntryTally()).add(pilot)
        for run in pilot.jobs.runs:
            groups.setdefault(pilot.identity.group, GroupTally()).add(run, memory_per_unit_mib)
            runs += 1
        hours = max(hours, ((pilot.row.end_us or 0) - period.since_us) // HOUR_US)
        progress("hours of pilots", hours, period.length_us // HOUR_US)
    averages = _averages(ledger, period, place.group, set(entries))
    timeouts = []
    for done, key in enumerate(sorted(entries)):
        progress("entries", done, len(entries))
        pair = (judge.timeout_line(key, entries[key], first=first) for first in (True, False))
        timeouts += [line for line in pair if line is not None]
    return Advice(
        period,
        sum(tally.pilots for tally in entries.values()),
        runs,
        sum(tally.untimed for tally in entries.values()),
        sum(tally.amounts.total() for tally in entries.values()),
        sum(tally.estimated for tally in entries.values()),
        sum(tally.unsettled for tally in entries.values()),
        judge.losses(entries, groups),
        sorted(timeouts, key=lambda line: (-(line.saved_micros or 0), line.key, line.setting)),
        _lines(entries, judge.lost_line, lambda line: line.micros),
        [line for name in sorted(groups) for line in judge.request_lines(name, groups[name])],
        _lines(
            entries,
            lambda key, tally: judge.asked_line(key, tally, *averages.get(key, (None, None))),
            lambda line: line.never_micros,
        ),
        [line for lines in _lines(entries, judge.overlap_lines, _best) for line in lines],
        _trials(entries, "overlap"),
        _trials(entries, "overload"),
    )


def _trials(entries: dict[EntryKey, EntryTally], tried: Tried) -> list[judge.TrialLine]:
    return [line for key in sorted(entries) for line in judge.trial_lines(key, entries[key], tried)]


def _lines(
    entries: dict[EntryKey, EntryTally],
    make: Callable[[EntryKey, EntryTally], T | None],
    rank: Callable[[T], float],
) -> list[T]:
    """Return the lines of entries that have one, those of highest rank first."""
    lines = (make(key, entries[key]) for key in sorted(entries))
    return sorted((line for line in lines if line is not None), key=lambda line: -rank(line))


def _best(lines: list[judge.OverlapLine]) -> float:
    """Return the gain at an entry, which its first line has."""
    first = next((line.overlap for line in lines), None)
    return -1 if first is None else first.gain


def _averages(
    ledger: LedgerReader, period: Period, group: str, entries: set[EntryKey]
) -> dict[EntryKey, tuple[float | None, float | None]]:
    """Return how many idle pilots were asked for, and waited, on average, by entry.

    A factory's numbers name the entry alone: where several sites have an entry of that name, as the
    ledger knows them in these hours, the averages are not known.
    """
    sums: dict[str, Counter[tuple[str, FactoryKind]]] = {}
    places = set(entries)
    first, last = period.hours
    for day in range(first, last + 1, 24):
        hours = day, min(day + 23, last)
        places.update(EntryKey(total.key.site, total.key.entry) for total in ledger.hours(*hours))
        for key, number in ledger.factory_hours(*hours).items():
            if key.kind in _ASKED and group in ("", key.client):
                sums.setdefault(key.entry, Counter())[key.client, key.kind] += number
    named = Counter(place.entry for place in places)
    return {
        key: (_average(sums[key.entry], "asked_idle"), _average(sums[key.entry], "status_idle"))
        for key in entries
        if key.entry in sums and named[key.entry] == 1
    }


def _average(sums: Counter[tuple[str, FactoryKind]], name: str) -> float | None:
    """Return a mean over the time in which ads had it, of all clients; None: no ad did."""
    amount, time = FactoryKind(f"{name}_seconds"), FactoryKind(f"{name}_watched_seconds")
    watched = {client: number for (client, kind), number in sums.items() if kind is time}
    means = [sums[client, amount] / number for client, number in watched.items() if number]
    return sum(means) if means else None
