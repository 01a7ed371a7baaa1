"""Which pilots still renew their ads, and how many units surely ran at once.

Units: times are epoch seconds by the collector's clock; units are whole canonical units.

A pilot that was killed, or whose node is gone, takes no leave: its ad stays in the collector until
it expires (CLASSAD_LIFETIME, 900 s), beside that of the pilot which has taken its place.

- **Late** is a pilot of which an update is overdue: whether it runs is an estimate.
- **Silent** is a pilot whose ad was not renewed for two updates (see ``model.pilots.update_gaps``),
  measured against the newest ad of the same collector: it does not run any more.  Neither does one
  of which something else has told that it **ended**, and that was not heard of since.
- If **no ad at all** was renewed for so long, it is in doubt whether pilots or collector are gone.
- A pilot **ran** from its start to its last contact; to its last sight if its ad was gone before it
  could be silent (it shut down cleanly).  For how much ran at once only this counts, once it is
  decided: up to the last contact of every pilot that is not silent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from gwmond.model.facts import EntryKey, Pilot
from gwmond.model.pilots.update_gaps import OwnGaps, UpdateGaps, is_timed
from gwmond.model.sizes import units_of_pilot
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource

_FAR = 1 << 62

Units: TypeAlias = dict[EntryKey, int]


class Gone(NamedTuple):
    """A pilot whose ad is not there any more, and until when it surely ran."""

    pilot: Pilot
    until: int


class Contacts(NamedTuple):
    """What is remembered of pilots' ads from one poll to the next.

    ``pilots`` are those that were seen last, by name; ``gone`` ended lately.  ``decided`` is
    the time up to which it is known what ran.  ``newest`` is the latest contact of any pilot.  By
    our clock: that was ``renewed`` last, ads are watched ``since``, and were seen last ``at``.
    ``gaps`` has the times between two contacts, ``own`` those of each pilot.  ``resting``: since
    when a pilot that accepts jobs has the same free slots, and the same jobs.
    """

    pilots: Mapping[str, Pilot] = MappingProxyType({})
    gone: tuple[Gone, ...] = ()
    decided: int | None = None
    newest: int = 0
    renewed: int = 0
    at: int = 0
    since: int | None = None
    gaps: UpdateGaps = UpdateGaps()
    own: Mapping[str, OwnGaps] = MappingProxyType({})
    resting: Mapping[str, int] = MappingProxyType({})

    def after(
        self,
        pilots: Iterable[Pilot],
        clocks: Sequence[int],
        now: int,
        ended: Mapping[str, int] = MappingProxyType({}),
    ) -> PilotsShown:
        """Take in the pilots that collectors show at ``now``, by our clock.

        ``clocks``: the latest contact that each collector had with any pilot.  ``ended``: of which
        pilots something else has told the end, and when that was.
        """
        shown, resting, own, gaps = self._compare(pilots, now)
        newest = max(clocks, default=self.newest)
        kept = self._replace(
            pilots=shown,
            newest=newest,
            renewed=self.renewed if shown and newest == self.newest else now,
            at=now,
            since=now if self.since is None else self.since,
            gaps=self.gaps.add(now, *gaps),
            own=own,
            resting=resting,
        )
        limits = {
            number: kept.two_updates(number) for number in {p.ad_lifetime_s for p in shown.values()}
        }
        clock = min(clocks, default=newest)
        silent = [
            key
            for key in shown.values()
            if key.last_heard > 0
            and (
                key.last_heard < clock - kept.stale_after(key, limits[key.ad_lifetime_s])
                or key.last_heard <= ended.get(key.name, -1)
            )
        ]
        names = {key.name for key in silent}
        running = (
            [key for key in shown.values() if key.name not in names] if names else shown.values()
        )
        heard = min((key.last_heard for key in running if key.last_heard), default=newest)
        decided = max(heard, self.decided or 0)
        first = decided if self.decided is None else self.decided
        left = [
            Gone(key, self._until(key, newest + now - kept.renewed))
            for name, key in self.pilots.items()
            if name not in shown or shown[name].started != key.started
        ]
        over = [key for key in (*self.gone, *left) if key.until > first]
        return PilotsShown(
            kept._replace(decided=decided, gone=tuple(over)),
            tuple(running),
            tuple(silent),
            first,
            tuple(over),
            late=frozenset(kept.late(running, clock + now - kept.renewed)),
            doubtful=bool(shown) and now - kept.renewed > min(limits.values()),
        )

    def stale_after(self, pilot: Pilot, usual_s: int) -> int:
        """Return after how many seconds without an update a pilot is silent."""
        own = self.own.get(pilot.name, OwnGaps())
        return own.two_updates(pilot.ad_lifetime_s, usual_s)

    def late(self, running: Iterable[Pilot], clock: int) -> Iterator[EntryKey]:
        """Yield the entries of pilots of which an update is overdue."""
        unknown, usual = OwnGaps(), dict[int, int]()
        for pilot in running:
            lifetime_s, age = pilot.ad_lifetime_s, clock - pilot.last_heard
            if lifetime_s not in usual:
                usual[lifetime_s] = self.two_updates(lifetime_s) // 2
            own = self.own.get(pilot.name, unknown)
            if pilot.last_heard and own.is_late(age, usual[lifetime_s]):
                yield pilot.entry

    def _compare(
        self, pilots: Iterable[Pilot], now: int
    ) -> tuple[dict[str, Pilot], dict[str, int], dict[str, OwnGaps], tuple[list[int], list[int]]]:
        """Return pilots by name, since when each rests, and times between two contacts.

        The times are those that a timer may have made, and others.
        """
        shown: dict[str, Pilot] = {}
        resting: dict[str, int] = {}
        own: dict[str, OwnGaps] = {}
        gaps: tuple[list[int], list[int]] = [], []
        for pilot in pilots:
            name = pilot.name
            shown[name] = pilot
            before = self.pilots.get(name)
            same_pilot = before is not None and before.started == pilot.started
            if same_pilot and before is not None and before.last_heard:
                own[name] = self.own.get(name, OwnGaps())
                gap = pilot.last_heard - before.last_heard
                # More than a lifetime: the collector was not to be asked.
                if 0 < gap <= pilot.ad_lifetime_s:
                    timed = is_timed(before.began, before.last_heard, gap)
                    if not pilot.senders:
                        gaps[not timed].append(gap)
                    if timed:
                        own[name] = own[name].add(gap)
            if pilot.free and pilot.accepting:
                same = same_pilot and before is not None and _is_same(pilot, before)
                resting[name] = self.resting.get(name, now) if same else now
        return shown, resting, own, gaps

    def two_updates(self, lifetime_s: int) -> int:
        """Return after how many seconds without an update a pilot is silent."""
        return self.gaps.two_updates(lifetime_s, self.at - (self.since or self.at))

    def unseen(self) -> PilotsShown:
        """Return what is known where no collector shows anything."""
        return PilotsShown(self, (), (), self.decided or 0, (), frozenset(), doubtful=False)

    def _until(self, pilot: Pilot, clock: int) -> int:
        """Return until when a pilot ran whose ad is gone: expired, or invalidated.

        ``clock``: the collector's now, at the least.
        """
        seen = self.newest + self.at - self.renewed  # by the same clock
        usual = self.two_updates(pilot.ad_lifetime_s)
        stale = seen - pilot.last_heard >= self.stale_after(pilot, usual)
        expired = pilot.last_heard + pilot.ad_lifetime_s < clock  # no leave is needed for that
        gone = pilot.last_heard and (stale or expired)
        return pilot.last_heard if gone else max(pilot.last_heard, seen)


def _is_same(pilot: Pilot, before: Pilot) -> bool:
    return pilot.free == before.free and pilot.jobs == before.jobs


class PilotsShown(NamedTuple):
    """What one poll shows; ``contacts`` are to be remembered.

    Of the pilots that are seen ``silent`` ones do not run any more.  ``ended`` are gone, and ran
    after ``first``, up to when it was known before what ran.  ``late``: entries of running pilots
    of which an update is overdue.  ``doubtful``: no pilot's ad was renewed for long.
    """

    contacts: Contacts
    running: tuple[Pilot, ...]
    silent: tuple[Pilot, ...]
    first: int
    ended: tuple[Gone, ...]
    late: frozenset[EntryKey]
    doubtful: bool

    def decided_at(self, now: float) -> float:
        """Return the time up to which it is known what ran, by our clock, which shows ``now``."""
        return now - (self.contacts.newest - (self.contacts.decided or 0))

    def resting(self, now: float, grace_s: int) -> tuple[Pilot, ...] | None:
        """Return running pilots with free slots on which nothing has changed for a grace.

        None as long as pilots have not been watched for so long.
        """
        contacts, last = self.contacts, now - grace_s
        if contacts.since is None or contacts.since > last:
            return None
        since = contacts.resting
        return tuple(key for key in self.running if since.get(key.name, now) <= last)

    def most(
        self,
        used: Mapping[EntryKey, int],
        resource: Resource,
        memory_per_unit_mib: int = DEFAULT_MEMORY_MIB,
    ) -> tuple[Units, Units]:
        """Return the most units that ran at once: where it is newly decided, and from there on.

        ``used`` are those of the running pilots.
        """
        lives = [(key, key.started, _FAR) for key in self.running if key.started > self.first]
        lives += [(key, key.started, until) for key, until in self.ended]
        lives += [(key, key.started, key.last_heard) for key in self.silent]
        steady: Units = dict(used)
        changes: defaultdict[EntryKey, list[tuple[int, int]]] = defaultdict(list)
        for pilot, started, until in lives:
            units = (
                0
                if pilot.size is None
                else units_of_pilot(pilot.size, resource, memory_per_unit_mib)
            )
            begin = max(started, self.first)
            if until < _FAR:
                steady[pilot.entry] = steady.get(pilot.entry, 0)
                if until > begin:
                    changes[pilot.entry] += [(begin, units), (until, -units)]
            else:
                steady[pilot.entry] -= units
                changes[pilot.entry].append((begin, units))
        decided = self.contacts.decided or 0
        before, after = dict(steady), dict(steady)
        for key, steps in changes.items():
            now = before[key]
            at_once = {True: [now], False: [0]}
            for time, units in sorted(steps):  # who ends makes room before another starts
                now += units
                at_once[time <= decided].append(now)
            before[key] = max(at_once[True])
            after[key] = max(at_once[True][-1], *at_once[False])
        return before, after
