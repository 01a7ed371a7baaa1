"""Since when, and what changed: power, false alarms and coverage in weeks of the simulated pool.

The pool is played without gwmond, a week in half a minute, and its pilots and runs are counted by
hour as the ledger counts them.  Seeds draw the weeks, and what is changed: at a site, from a time
on, for so long, runs that succeed become misconfiguration badput with a probability.  So the
effect is known.  Healthy weeks have no incidents; in drawn ones (``tests.simulator.story``) there
are others beside.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from random import Random
from statistics import median
from typing import NamedTuple, TypeAlias

from gwmond.model.facts import Place
from gwmond.reports.changes.gather import LOSSES, is_of_place
from gwmond.reports.changes.since import Effect, HourlyShare, Stretch, effect, stretch, told
from tests.bench.harness import say
from tests.simulator.parts import Pilot
from tests.simulator.pool import Pool
from tests.simulator.story import Event, What, drawn
from tests.simulator.truth import category
from tests.simulator.world import BEGINS, ENTRIES, PRESENT_H

HOURS = int(PRESENT_H)
SITES = sorted({entry.site for entry in ENTRIES})
GOOD, BAD = "goodput", "misconfiguration_badput"
BLOCK = {"runs": 3, "pilots": 3, "time": 6}
_SIZES = 0.05, 0.1, 0.2, 0.4
_LASTS_H = 12, 24, 48, HOURS
_AROUND_H = 24


Key: TypeAlias = tuple[str, str]
"""A site and a loss."""


class Ended(NamedTuple):
    """A run, or a pilot, by its site: its category, and in which hour it began and ended."""

    site: str
    what: str
    began: int
    hour: int
    pilot: bool


class Injected(NamedTuple):
    """From an hour to before another runs at a site become bad with a probability."""

    site: str
    since: int
    until: int
    share: float


class Week(NamedTuple):
    """What ended by hour, and pilots' time by site, category and hour, in canonical hours."""

    ended: list[Ended]
    time: dict[tuple[str, str], list[float]]
    events: Sequence[Event]


def play(seed: int, events: Sequence[Event]) -> Week:
    """Play a week."""
    pool = Pool(seed, events)
    for _ in range(HOURS * 60):
        pool.step()
    ended, time = [], defaultdict[tuple[str, str], list[float]](lambda: [0.0] * HOURS)
    for pilot in pool.ended:
        site, hour = pilot.entry.site, _hour(pilot.end)
        none = not (pilot.past or pilot.fails)
        own = "validation_fails" if pilot.fails else "decision_problem" if none else "used"
        ended.append(Ended(site, own, _hour(pilot.started), hour, pilot=True))
        ended += [Ended(site, category(r), _hour(r.start), _hour(r.end), False) for r in pilot.past]
    for pilot in (*pool.ended, *pool.all_pilots()):
        for what, begin, end, units in _spent(pilot, pool.now):
            for hour in range(_hour(begin), min(HOURS, _hour(end) + 1)):
                first, last = BEGINS + hour * 3600, BEGINS + (hour + 1) * 3600
                part = max(0, min(end, last) - max(begin, first))
                time[pilot.entry.site, what][hour] += units * part / 3600
    return Week([one for one in ended if one.hour < HOURS], dict(time), events)


def _hour(at: int) -> int:
    return (at - BEGINS) // 3600


def _spent(pilot: Pilot, now: int) -> Iterator[tuple[str, int, int, float]]:
    """Yield overhead and the rest of a pilot's time, in parts: what, from, to, canonical units."""
    runs = [(r.start, r.end or now, r.job.kind) for r in (*pilot.past, *pilot.jobs)]
    if pilot.fails or not runs:
        return
    end, entry = pilot.end or now, pilot.entry
    times = {pilot.ready, end, *(time for run in runs for time in run[:2])}
    for since, until in pairwise(sorted(time for time in times if time <= end)):
        there = [kind for begin, last, kind in runs if begin <= since and last >= until]
        cores = entry.cores - sum(kind.cores for kind in there)
        memory = entry.memory_mib - sum(kind.memory_mib for kind in there)
        idle = min(entry.units, max(0, min(cores, memory // 2000))) if there else entry.units
        yield "pilot_overhead", since, until, float(idle)
        yield "busy", since, until, float(entry.units - idle)


def series(
    week: Week, injected: Injected | None = None, draw: Random | None = None
) -> tuple[dict[Key, HourlyShare], float | None]:
    """Return the hours by site and loss; and the expected share of an injection in its first day.

    Who is drawn is expected to be bad with the injection's probability: this expectation, over the
    runs that ended there and then, is the true effect.
    """
    counts: defaultdict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    wholes: defaultdict[tuple[str, bool], Counter[int]] = defaultdict(Counter)
    could = runs = 0
    for one in week.ended:
        what = one.what
        if injected and one.site == injected.site and not one.pilot:
            begun = what == GOOD and injected.since <= one.began < injected.until
            if injected.since <= one.hour < min(injected.since + _AROUND_H, injected.until):
                runs, could = runs + 1, could + begun
            if begun and draw is not None and draw.random() < injected.share:
                what = BAD
        counts[one.site, what][one.hour] += 1
        wholes[one.site, one.pilot][one.hour] += 1
    found = {}
    for site in SITES:
        for name, of in LOSSES.items():
            if of in ("runs", "pilots"):
                lost, whole = counts[site, name], wholes[site, of == "pilots"]
                rows = [[float(hours[hour]) for hour in range(HOURS)] for hours in (lost, whole)]
                found[site, str(name)] = HourlyShare(*rows)
        idle, busy = (week.time.get((site, w), [0.0] * HOURS) for w in ("pilot_overhead", "busy"))
        sums = [a + b for a, b in zip(idle, busy, strict=True)]
        found[site, "pilot_overhead"] = HourlyShare(idle, sums)
    true = injected.share * could / runs if injected is not None and runs else None
    return found, true


def looked_at(found: dict[Key, HourlyShare]) -> dict[Key, Stretch]:
    """Return the stretch of each series that has one."""
    stretches = ((key, _stretch(key, of)) for key, of in found.items())
    return {key: since for key, since in stretches if since is not None}


def _stretch(key: Key, of: HourlyShare) -> Stretch | None:
    return stretch(of, BLOCK[LOSSES[key[1]]])


def alarms(found: dict[Key, HourlyShare], looked: dict[Key, Stretch]) -> dict[Key, Stretch]:
    """Return what is told of a week."""
    is_told = told([since.chance for since in looked.values()])
    chosen = {key: since for (key, since), yes in zip(looked.items(), is_told, strict=True) if yes}
    return {
        (site, name): since
        for (site, name), since in chosen.items()
        if is_of_place(Place(site), name, did(found, (site, name), since.first, since.end))
    }


def did(found: dict[Key, HourlyShare], key: Key, at: int, until: int = HOURS) -> Effect | None:
    """Return the effect on a loss of a change at an hour."""
    others = [one for (site, name), one in found.items() if name == key[1] and site != key[0]]
    after = slice(at, min(at + _AROUND_H, until))
    return effect(
        found[key], others, slice(max(0, at - _AROUND_H), at), after, BLOCK[LOSSES[key[1]]]
    )


def _is_true(week: Week, key: Key, since: Stretch) -> bool:
    """Return whether an incident of the week is what is told."""
    return any(
        (key[0].lower() in event.where.lower() or event.what is What.RELEASE)
        and event.begins_h < since.end
        and since.first < event.ends_h + 24
        for event in week.events
    )


def _injections(week: int, seed: int, number: int) -> Iterator[tuple[int, Injected, Random]]:
    for share in _SIZES:
        for lasts in _LASTS_H:
            for n in range(number):
                draw = Random(f"{seed} {week} {share} {lasts} {n}")
                since = draw.randint(30, HOURS - max(24, min(lasts, 60)))
                until = min(HOURS, since + lasts)
                yield lasts, Injected(draw.choice(SITES), since, until, share), draw


class _Tally:
    """Injections of one size and length: how many are told, how well, and the intervals."""

    def __init__(self) -> None:
        self.number = self.told = self.covered = self.judged = self.beside = 0
        self.begins: list[int] = []
        self.widths: list[float] = []


def main() -> None:
    """Play, inject, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench changes", description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="draws weeks and injections")
    parser.add_argument("--weeks", type=int, default=10, help="of each kind")
    parser.add_argument("--injections", type=int, default=1, help="of each size, a week")
    parser.add_argument("--kinds", nargs="*", default=("healthy", "drawn"))
    options = parser.parse_args()
    for kind in options.kinds:
        seeds = range(options.seed, options.seed + options.weeks)
        weeks = (play(seed, drawn(seed) if kind == "drawn" else ()) for seed in seeds)
        _print(kind, weeks, options.seed, options.injections)


def _print(kind: str, weeks: Iterable[Week], seed: int, number: int) -> None:
    tallies: defaultdict[tuple[float, int], _Tally] = defaultdict(_Tally)
    alone: Counter[str] = Counter()
    true: Counter[str] = Counter()
    zero: defaultdict[str, list[bool]] = defaultdict(list)
    played = 0
    for played, week in enumerate(weeks, 1):
        found, _ = series(week)
        looked = looked_at(found)
        for key, since in alarms(found, looked).items():
            (true if _is_true(week, key, since) else alone)[key[1]] += 1
        for key in found:
            at = Random(f"{seed} {played} {key}").randint(_AROUND_H, HOURS - _AROUND_H)
            if (rise := did(found, key, at)) is not None:
                zero[key[1]].append(rise.low <= 0 <= rise.high)
        for lasts, injected, draw in _injections(played, seed, number):
            _inject(week, looked, injected, draw, tallies[injected.share, lasts])
        say(f"{kind}: week {played}")
    print(f"\n{kind}: {played} weeks; told without an incident: {dict(alone)}; with: {dict(true)}")
    shown = {name: f"{sum(v) / len(v):.3f} of {len(v)}" for name, v in zero.items()}
    print(f"intervals at random times that hold 0: {shown}")
    print("| runs that become bad | for | told | begin: median, 90 % of errors | holds |")
    for (share, lasts), of in sorted(tallies.items()):
        errors = sorted(map(abs, of.begins))
        begin = f"{median(of.begins):+.0f} h, {errors[int(0.9 * len(errors))]} h" if errors else ""
        holds = f"{of.covered} of {of.judged}, width {median(of.widths):.2f}" if of.judged else ""
        print(f"| {share:.0%} | {lasts} h | {of.told} of {of.number} | {begin} | {holds} |")


def _inject(
    week: Week, looked: dict[Key, Stretch], injected: Injected, draw: Random, tally: _Tally
) -> None:
    found, true = series(week, injected, draw)
    key = injected.site, BAD
    mine = _stretch(key, found[key])  # the others are as before
    since = alarms(found, {**looked, key: mine}).get(key) if mine is not None else None
    tally.number += 1
    if since is not None and since.first < injected.until and injected.since < since.end:
        tally.told += 1
        tally.begins.append(since.first - injected.since)
    rise = did(found, key, injected.since, injected.until)
    if rise is not None and true is not None:
        tally.judged += 1
        tally.covered += rise.low <= true <= rise.high
        tally.widths.append(rise.high - rise.low)
