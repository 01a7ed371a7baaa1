"""Pilots that are held, by entry and reason: whose move it is, and since when that is seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gwmond.explain.movers import UNKNOWN_HOLD, of_hold
from gwmond.model.facts import EntryKey, EntryTotals
from gwmond.model.poll.snapshot import HeldPilots
from gwmond.sites.held import alike


def held_pilots(
    totals: Mapping[EntryKey, EntryTotals], before: Iterable[HeldPilots], now: float
) -> tuple[HeldPilots, ...]:
    """Return the held pilots of a poll, the most first; ``before``: those of the last poll.

    Where the factory's queue is not read only their number is known, by the factory's ads.
    """
    since = {_key(held): held.since for held in before}
    every = (held._replace(since=since.get(_key(held), now)) for held in _all(totals, now))
    return tuple(sorted(every, key=lambda held: (-held.pilots, held.entry, held.reason or "")))


def _key(held: HeldPilots) -> tuple[EntryKey, str | None, int | None]:
    return held.entry, held.reason and alike(held.reason), held.code


def _all(totals: Mapping[EntryKey, EntryTotals], now: float) -> Iterator[HeldPilots]:
    for key, total in totals.items():
        holds = total.held_lately.holds if total.held_lately else ()
        for reason, code, pilots in holds:
            mover, change = of_hold(reason, code) or UNKNOWN_HOLD
            yield HeldPilots(key, reason, code, pilots, mover.text, change, now)
        if total.held and not holds:
            mover, change = UNKNOWN_HOLD
            yield HeldPilots(key, None, None, total.held, mover.text, change, now)
