"""Which names are kept apart: a limit on the names that strangers can make gwmond store.

Whoever may advertise a slot chooses the names of its site, entry and frontend group; whoever may
submit a job chooses its accounting group, and the servers of its files; schedds and frontends
choose their own names.  Of each kind a limited number of names is kept apart; all others are
accounted together as ``other`` (``OTHER_ENTRY``, ``OTHER``).

The rule, from the strongest claim on a place to the weakest (``Claim``):

=============== ==================================================================================
``ESTABLISHED`` seen for a day or longer, and not unseen for longer than it had been seen
``VOUCHED``     named within a day by a factory or a frontend in their own ads, or by a pledge
``SEEN``        seen within a day
``LAPSED``      none of these
=============== ==================================================================================

A newcomer takes a free place, else that of the weakest name whose claim is weaker than its own:
``VOUCHED``, or ``SEEN`` of any other.  So a flood of names displaces none that is there.
A name that was not seen for ``forget_s`` is forgotten, whatever its claim, and its place is free.
Where ``forget_s`` is less than a day it stands for the day, too.

Times are seconds since the epoch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import IntEnum
from heapq import nsmallest
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from gwmond.model.facts import Berth, EntryKey

OTHER = "other"
"""The name of all names that are not kept apart."""

OTHER_ENTRY = EntryKey(OTHER, "too_many_names")
"""Where pilots are accounted whose entry is not kept apart; no factory names an entry so."""

ACCOUNTING_GROUPS, SCHEDDS, FRONTENDS = "accounting groups", "schedds", "frontends"
SERVERS = "servers of files"
"""Kinds of names that are one word; each has its own limit."""

HOUR_S, DAY_S = 3600.0, 86400.0
MAX_CHARACTERS = 900_000
"""A text that the ledger keeps has at most a million."""

FEW = 5
"""So many of the names that were taken together are remembered, to be shown."""

Name = TypeVar("Name", EntryKey, Berth, str)


class Claim(IntEnum):
    """How strong a name's claim on a place is."""

    LAPSED = 0
    SEEN = 1
    VOUCHED = 2
    ESTABLISHED = 3


class Standing(NamedTuple):
    """When a name was seen first and last, and when it was vouched for last."""

    first: float
    last: float
    vouched: float | None = None


class NameLimits(NamedTuple):
    """How many names of each kind are kept apart; ``forget_s`` as in the rule."""

    entries: int
    groups: int
    accounting_groups: int
    forget_s: float
    schedds: int = 500
    frontends: int = 500
    servers: int = 200


class Together(NamedTuple):
    """``number`` names of a kind are taken together beside ``most`` others; a few of them."""

    kind: str
    number: int
    most: int
    few: tuple[str, ...]


class Register(Generic[Name]):
    """The names of one kind that are kept apart: ``most`` at most."""

    def __init__(self, most: int, forget_s: float) -> None:
        self._most, self._forget_s = most, forget_s
        self._day_s = min(DAY_S, forget_s)
        self._known: dict[Name, Standing] = {}

    @property
    def known(self) -> Mapping[Name, Standing]:
        """The names that are kept apart."""
        return MappingProxyType(self._known)

    @property
    def room(self) -> int:
        """How many places are free."""
        return self._most - len(self._known)

    def claim(self, name: Name, now: float) -> Claim:
        """Return the claim of a name that is kept apart."""
        first, last, vouched = self._known[name]
        if last - first >= self._day_s and now - last <= last - first:
            return Claim.ESTABLISHED
        if vouched is not None and now - vouched <= self._day_s:
            return Claim.VOUCHED
        return Claim.SEEN if now - last <= self._day_s else Claim.LAPSED

    def recall(self, names: Mapping[Name, Standing], now: float) -> None:
        """Take in names that were known before this process began: the strongest that fit."""
        for name, standing in names.items():
            here = self._known.get(name, standing)
            self._known[name] = here._replace(first=min(here.first, standing.first))
        self._forget(now)
        for name in self._weakest(now)[: max(0, -self.room)]:
            del self._known[name]

    def note(
        self, seen: Mapping[Name, int], vouched: Collection[Name], now: float
    ) -> frozenset[Name]:
        """Add all names that are seen now; return those without a place.

        ``seen`` says how often each occurs: of newcomers with the same claim the most frequent come
        first, then the alphabet decides.
        """
        for name in self._known.keys() & seen.keys():
            standing = self._known[name]._replace(last=now)
            self._known[name] = standing._replace(vouched=now) if name in vouched else standing
        self._forget(now)
        new = seen.keys() - self._known.keys()
        ranked = nsmallest(
            self._most, new, key=lambda name: (name not in vouched, -seen[name], name)
        )
        weakest = self._weakest(now) if len(new) > self.room else []
        for name in ranked:
            claim = Claim.VOUCHED if name in vouched else Claim.SEEN
            if self.room <= 0:
                if not weakest or self.claim(weakest[0], now) >= claim:
                    break
                del self._known[weakest.pop(0)]
            at = now if name in vouched else None
            self._known[name] = Standing(now, now, at)
        return frozenset(new - self._known.keys())

    def admit(self, name: Name, now: float) -> bool:
        """Return whether a name has a place, or takes a free one; it displaces nobody."""
        if name in self._known or self.room > 0:
            standing = self._known.get(name, Standing(now, now))
            self._known[name] = standing._replace(last=max(now, standing.last))
            return True
        return False

    def drop(self, names: Iterable[Name]) -> None:
        """Free the places of names."""
        for name in list(names):
            self._known.pop(name, None)

    def _forget(self, now: float) -> None:
        self.drop(
            [n for n, standing in self._known.items() if now - standing.last > self._forget_s]
        )

    def _weakest(self, now: float) -> list[Name]:
        """Return the names, those first that lose their places first."""
        return sorted(
            self._known,
            key=lambda n: (self.claim(n, now), self._known[n].last, -self._known[n].first, n),
        )


class Names:
    """The names of all kinds; use it from one thread.

    A frontend group counts once for each entry where it has or requests pilots.
    """

    def __init__(self, limits: NameLimits) -> None:
        self._limits = limits
        self._entries: Register[EntryKey] = Register(limits.entries, limits.forget_s)
        self._groups: Register[Berth] = Register(limits.groups, limits.forget_s)
        self._most = {
            ACCOUNTING_GROUPS: limits.accounting_groups,
            SCHEDDS: limits.schedds,
            FRONTENDS: limits.frontends,
            SERVERS: limits.servers,
        }
        self._words: dict[str, Register[str]] = {
            kind: Register(most, limits.forget_s) for kind, most in self._most.items()
        }
        self._together: dict[str, Together] = {}
        self._late: set[EntryKey] = set()
        self._now = 0.0

    def successor(self, limits: NameLimits) -> Names:
        """Return the same names within other limits."""
        after = Names(limits)
        after._entries.recall(self._entries.known, self._now)
        kept = after._entries.known
        groups = {b: standing for b, standing in self._groups.known.items() if _is_named(b, kept)}
        after._groups.recall(groups, self._now)
        for kind, register in self._words.items():
            after._words[kind].recall(register.known, self._now)
        after._now = self._now
        return after

    def recall(
        self,
        entries: Mapping[EntryKey, Standing],
        groups: Mapping[Berth, Standing],
        then: float,
        now: float,
    ) -> None:
        """Add the names that a ledger stored ``then``: the time since counts against none."""
        self._now = max(now, self._now)
        entries, groups = _later(entries, now - then), _later(groups, now - then)
        self._entries.recall(
            {k: standing for k, standing in entries.items() if k.site != OTHER}, now
        )
        kept = self._entries.known
        self._groups.recall(
            {b: standing for b, standing in groups.items() if _is_named(b, kept)}, now
        )

    def note(
        self,
        berths: Mapping[Berth, int],
        vouched: AbstractSet[Berth],
        now: float,
        *,
        by_name: AbstractSet[str] = frozenset(),
    ) -> None:
        """Add the places where pilots are, or are requested, with the number of ads for each.

        ``vouched`` are those that factories and frontends name, ``by_name`` entries and
        sites that are only known by name.
        """
        self._now = max(now, self._now)
        entries: Counter[EntryKey] = Counter()
        for (key, _), number in berths.items():
            if key != OTHER_ENTRY:
                entries[key] += number
        theirs = {key for key, _ in vouched}
        theirs |= {key for key in entries if key.entry in by_name or key.site in by_name}
        self._say("entries", self._entries.note(entries, theirs, now), self._limits.entries)
        kept = self._entries.known
        self._groups.drop([berth for berth in self._groups.known if berth.entry not in kept])
        named = {berth: number for berth, number in berths.items() if _is_named(berth, kept)}
        self._say("groups", self._groups.note(named, vouched, now), self._limits.groups)
        self._late.clear()

    def note_words(
        self, kind: str, seen: Mapping[str, int], now: float, vouched: Collection[str] = ()
    ) -> None:
        """Add the names of a kind that are seen, and how often each is."""
        self._now = max(now, self._now)
        named = {name: number for name, number in seen.items() if name != OTHER}
        without = self._words[kind].note(named, vouched, now)
        self._say(kind, without, self._most[kind])

    def bounded_words(self, kind: str, seen: Mapping[str, int]) -> dict[str, str]:
        """Add names that occur now and then, as of the last poll; return how each is shown."""
        if seen:
            self.note_words(kind, seen, self._now)
        return {name: self.word(kind, name) for name in seen}

    def dump(self) -> str:
        """Return the names that are one word, and in which hours each was seen first and last.

        In the order of their first sight, up to ``MAX_CHARACTERS``.
        """
        rows = sorted(
            (int(standing.first // HOUR_S), int(standing.last // HOUR_S), kind, name)
            for kind, register in self._words.items()
            for name, standing in register.known.items()
        )
        dumped: list[str] = []
        left = MAX_CHARACTERS
        for row in rows:
            dumped.append(json.dumps(row, separators=(",", ":")))
            left -= len(dumped[-1]) + 1
            if left < 0:
                dumped.pop()
                break
        return f"[{','.join(dumped)}]"

    def load(self, text: str, then: float, now: float) -> None:
        """Add the names that were dumped ``then``: the time since counts against none."""
        by_kind: dict[str, dict[str, Standing]] = {kind: {} for kind in self._words}
        for first, last, kind, name in json.loads(text or "[]"):
            if kind in by_kind:
                by_kind[kind][name] = Standing(first * HOUR_S, last * HOUR_S)
        for kind, standings in by_kind.items():
            self._words[kind].recall(_later(standings, now - then), now)

    def _say(self, kind: str, without: AbstractSet[Name], most: int) -> None:
        """Remember which names of a kind have no place."""
        self._together.pop(kind, None)
        if without:
            few = tuple("/".join(_words(name)) for name in nsmallest(FEW, without))
            self._together[kind] = Together(kind, len(without), most, few)

    @property
    def entries(self) -> Mapping[EntryKey, Standing]:
        """The entries that are kept apart."""
        return self._entries.known

    @property
    def groups(self) -> AbstractSet[Berth]:
        """The entries and their frontend groups that are kept apart."""
        return self._groups.known.keys()

    @property
    def weak(self) -> frozenset[EntryKey]:
        """The entries that were not seen for a day, and that nobody vouches for."""
        names = self._entries
        return frozenset(key for key in names.known if names.claim(key, self._now) <= Claim.SEEN)

    def room(self, kind: str) -> tuple[frozenset[str], int]:
        """Return the names of a kind that are kept apart, and how many more have room."""
        return frozenset(self._words[kind].known), self._words[kind].room

    @property
    def together(self) -> tuple[Together, ...]:
        """What is taken together now, by kind."""
        by_kind = dict(self._together)
        if self._late and "entries" not in by_kind:
            few = tuple("/".join(key) for key in sorted(self._late)[:FEW])
            by_kind["entries"] = Together("entries", len(self._late), self._limits.entries, few)
        return tuple(by_kind.values())

    def berth(self, key: EntryKey, group: str) -> Berth:
        """Return under which names pilots of an entry and a group are accounted."""
        if key not in self._entries.known:
            return Berth(OTHER_ENTRY, OTHER)
        berth = Berth(key, group)
        return berth if berth in self._groups.known else Berth(key, OTHER)

    def admit(self, key: EntryKey, group: str) -> Berth:
        """Return the same for a pilot that no ad has shown; its names may take free places."""
        if key == OTHER_ENTRY:
            return Berth(OTHER_ENTRY, OTHER)
        if not self._entries.admit(key, self._now):
            if len(self._late) < self._limits.entries:
                self._late.add(key)
            return Berth(OTHER_ENTRY, OTHER)
        if group != OTHER:
            self._groups.admit(Berth(key, group), self._now)
        return self.berth(key, group)

    def word(self, kind: str, name: str) -> str:
        """Return under which name a name of a kind is shown."""
        return name if name in self._words[kind].known else OTHER


def _later(standings: Mapping[Name, Standing], seconds: float) -> dict[Name, Standing]:
    more = max(0.0, seconds)
    return {
        n: standing._replace(first=standing.first + more, last=standing.last + more)
        for n, standing in standings.items()
    }


def _is_named(berth: Berth, entries: Mapping[EntryKey, Standing]) -> bool:
    return berth.entry in entries and berth.group != OTHER


def _words(name: EntryKey | Berth | str) -> tuple[str, ...]:
    if isinstance(name, str):
        return (name,)
    return (*name.entry, name.group) if isinstance(name, Berth) else name
