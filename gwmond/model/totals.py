"""What goes into the ledger and comes out of it, as frozen values.

Units: an amount is an exact ``int`` of micro canonical seconds (10^-6 of one canonical unit for
one second) and never a float; a time is seconds since the epoch; an hour is ``epoch // 3600`` in
UTC; ``units`` are whole canonical units.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from gwmond.model.elapsed import Tick
from gwmond.model.facts import EntryKey, Problem
from gwmond.model.units import Resource

if TYPE_CHECKING:  # their hours are ours
    from gwmond.model.stored_pilots import CountKey, PilotBatch

Micros: TypeAlias = int
Hour: TypeAlias = int

_K = TypeVar("_K")
_V = TypeVar("_V")


def _nothing() -> Mapping[_K, _V]:
    return MappingProxyType({})


class SiteKey(NamedTuple):
    """One series of site time: the labels of ``gwmond_site_canonical_seconds_total``."""

    resource: Resource
    state: str
    reason: str
    site: str
    entry: str


class Increment(NamedTuple):
    """``micros`` more for ``key``, spent evenly over the wall-clock interval [start, end)."""

    key: SiteKey
    micros: Micros
    start: float
    end: float


class EntryState(NamedTuple):
    """What is remembered of an entry; ``provisioned`` has the last trusted units per resource.

    ``last_accounted``: when it was seen last (epoch seconds).
    """

    first_seen: float
    last_accounted: float | None
    provisioned: Mapping[Resource, int]


class Peak(NamedTuple):
    """The most canonical units that ran in any hour from ``hour`` on (a suffix maximum)."""

    resource: Resource
    hour: Hour
    units: int


class TimedProblem(NamedTuple):
    """A problem and when it was seen."""

    time: float
    problem: Problem


class Batch(NamedTuple):
    """All that one poll changes; it is stored as a whole or not at all.

    ``before`` is the tick from which the increments were counted, ``None`` in a new ledger.
    ``entries`` are replaced one by one and never removed; ``peaks`` replaces all peaks of each
    entry that it names (an entry that it does not name keeps its own).  ``pilots`` are what pilots'
    time adds; the number of batches grows without them, too.
    """

    before: Tick | None
    tick: Tick
    increments: tuple[Increment, ...] = ()
    entries: Mapping[EntryKey, EntryState] = _nothing()
    peaks: Mapping[EntryKey, tuple[Peak, ...]] = _nothing()
    problems: tuple[TimedProblem, ...] = ()
    pilots: PilotBatch | None = None


class Total(NamedTuple):
    """A total for ever, and the start of its first increment."""

    micros: Micros
    created: float


class LedgerState(NamedTuple):
    """The memory that a daemon starts from; a new ledger has no tick and no commits.

    ``groups`` are the frontend groups for which pilots were accounted at entries, and since when.
    """

    tick: Tick | None
    commits: int
    totals: Mapping[SiteKey, Total]
    entries: Mapping[EntryKey, EntryState]
    peaks: Mapping[EntryKey, tuple[Peak, ...]]
    groups: Mapping[tuple[EntryKey, str], float] = _nothing()
    verdicts: Mapping[CountKey, int] = _nothing()


class HourTotal(NamedTuple):
    """The share of one series in one hour."""

    hour: Hour
    key: SiteKey
    micros: Micros
