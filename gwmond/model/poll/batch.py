"""What one poll stores in the ledger, and what the accounting goes on from, as frozen values.

Units: times are seconds since the epoch, ``*_us`` microseconds; amounts of time are micros (10^-6
of one core, chip or canonical unit for one second); ``units`` are whole canonical units.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.demand.idle_history import WaitInterval
from gwmond.model.elapsed import Tick
from gwmond.model.entries.changes import Value
from gwmond.model.entries.experiments import Experiment
from gwmond.model.factory.jobs import QueueRecord
from gwmond.model.factory.totals import FactoryKey, FactoryTotalKey
from gwmond.model.facts import Cursor, EntryKey, Gap, Problem
from gwmond.model.pilot_life import RunKey
from gwmond.model.pilots.stored_pilots import (
    CountKey,
    PilotCorrection,
    PilotId,
    PilotRow,
    PilotSeries,
    RunRow,
)
from gwmond.model.totals import Hour, Micros, SiteKey, Total
from gwmond.model.units import Resource


class EntryState(NamedTuple):
    """What is remembered of an entry; ``provisioned`` has the last trusted units per resource.

    ``last_accounted``: when it was seen last (epoch seconds).
    """

    first_seen: float
    last_accounted: float | None
    provisioned: Mapping[Resource, int]


Asked: TypeAlias = Literal["cpu_asked", "gpu_asked"]
"""Of a resource what ran while its entry was throttled (``sites.capacity``)."""


class Peak(NamedTuple):
    """The most canonical units that ran in any hour from ``hour`` on (a suffix maximum)."""

    resource: Resource | Asked
    hour: Hour
    units: int


class TimedProblem(NamedTuple):
    """A problem and when it was seen."""

    time: float
    problem: Problem


class Settled(NamedTuple):
    """What a trace can be made of from now on: a closed pilot, a run, or a job that has left.

    Of a pilot there is no ``job``, of a job that has left no ``number``.
    """

    pilot: PilotId
    job: str = ""
    number: int | None = None


class Batch(NamedTuple):
    """All that one poll changes; it is stored as a whole or not at all.

    ``before`` is the number of batches that the ledger holds, so that none is stored twice.

    Of pilots (``now_us``: when they were settled):
    - ``pilots``, ``runs``, ``cursors``, ``places`` (what the factory's queue and summary report
      of its jobs) and ``experiments`` replace what is stored under the same key;
    - ``moved`` are runs that are no longer where they were (their key or pilot has changed),
      ``withdrawn`` pilots that never were;
    - ``heard``: when pilots were last heard of, and found, whose rows are not among ``pilots``;
      ``sights``: when claims were last shown of which the rows are not among ``runs``;
    - ``increments`` are never negative; ``counts`` may be, for an outcome that was revised;
    - ``factory`` are the factory's own numbers, to be added.
    - ``settled`` is what is to be exported as traces, each once; ``stored_us`` this machine's time.

    Of sites:
    - ``tick``: up to when their time is accounted; None where a batch has none of it;
    - ``site_time`` was spent since ``site_since``, and is never negative;
    - ``entries`` are replaced one by one and never removed; ``peaks`` replaces all peaks of each
      entry that it names (an entry that it does not name keeps its own);
    - ``waits`` replace what is stored under the same key; ``values`` have changed;
    - ``found``: what the poll found, for who asks later (``reports.sites.polls``); empty: nothing.
    """

    before: int
    now_us: int
    pilots: tuple[PilotRow, ...] = ()
    runs: tuple[RunRow, ...] = ()
    moved: tuple[tuple[PilotId, RunKey], ...] = ()
    increments: Mapping[PilotSeries, Mapping[Hour, Micros]] = MappingProxyType({})
    corrections: tuple[PilotCorrection, ...] = ()
    counts: Mapping[CountKey, int] = MappingProxyType({})
    cursors: tuple[Cursor, ...] = ()
    gaps: tuple[Gap, ...] = ()
    problems: tuple[TimedProblem, ...] = ()
    factory: Mapping[FactoryKey, int] = MappingProxyType({})
    places: tuple[QueueRecord, ...] = ()
    heard: tuple[tuple[PilotId, int, int | None], ...] = ()
    sights: tuple[tuple[PilotId, RunKey, int | None], ...] = ()
    withdrawn: tuple[PilotId, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    settled: tuple[Settled, ...] = ()
    stored_us: int = 0
    tick: Tick | None = None
    site_time: Mapping[tuple[Hour, SiteKey], Micros] = MappingProxyType({})
    site_since: float = 0.0
    entries: Mapping[EntryKey, EntryState] = MappingProxyType({})
    peaks: Mapping[EntryKey, tuple[Peak, ...]] = MappingProxyType({})
    waits: tuple[WaitInterval, ...] = ()
    found: bytes = b""
    values: tuple[Value, ...] = ()

    def with_sites(self, sites: Batch) -> Batch:
        """Return this batch of pilots with what another has of sites."""
        return self._replace(
            problems=(*self.problems, *sites.problems),
            tick=sites.tick,
            site_time=sites.site_time,
            site_since=sites.site_since,
            entries=sites.entries,
            peaks=sites.peaks,
            waits=sites.waits,
            found=sites.found,
            values=sites.values,
        )


Part: TypeAlias = PilotId | str
"""What can be left out alone: a pilot, by its number, or a ``QueueRecord``, by its name."""

Parts: TypeAlias = Mapping[Part, Batch]
"""Of each what it alone changes; together they are a batch but for cursors, gaps and the like."""


class Totals(NamedTuple):
    """Counters: all of a ledger, or those that a batch has changed."""

    site: Mapping[SiteKey, Total] = MappingProxyType({})
    pilots: Mapping[PilotSeries, Total] = MappingProxyType({})
    counts: Mapping[CountKey, Total] = MappingProxyType({})
    factory: Mapping[FactoryTotalKey, Total] = MappingProxyType({})

    def updated(self, changed: Totals) -> Totals:
        """Return these with the changed ones in their place."""
        return Totals(
            {**self.site, **changed.site},
            {**self.pilots, **changed.pilots},
            {**self.counts, **changed.counts},
            {**self.factory, **changed.factory},
        )


class LedgerState(NamedTuple):
    """What the accounting goes on from; a new ledger has no batches and no tick.

    ``tick``: up to when site time is accounted.  ``pilots`` are those not closed; ``runs``
    theirs which are open or end after the pilot's mark; ``places``, ``experiments`` and ``waits``
    are those that are open, ``values`` the latest.  ``ended``: when pilots ended lately, by name
    (epoch seconds).
    """

    batches: int = 0
    tick: Tick | None = None
    totals: Totals = Totals()
    entries: Mapping[EntryKey, EntryState] = MappingProxyType({})
    peaks: Mapping[EntryKey, tuple[Peak, ...]] = MappingProxyType({})
    next_id: PilotId = 1
    pilots: tuple[PilotRow, ...] = ()
    runs: tuple[RunRow, ...] = ()
    cursors: Mapping[tuple[str, str], Cursor] = MappingProxyType({})
    places: tuple[QueueRecord, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    waits: tuple[WaitInterval, ...] = ()
    values: tuple[Value, ...] = ()
    ended: Mapping[str, int] = MappingProxyType({})
