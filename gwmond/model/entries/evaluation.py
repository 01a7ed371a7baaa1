"""The result of an evaluation of site time: types, their invariants, and summaries of states.

Units: capacity, use and spare are whole canonical units; parts and flows are in 1/``SCALE`` unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.entries.experiments import SiteVerdict
from gwmond.model.entries.waiting import PendingHistory
from gwmond.model.facts import Berth, DemandGroup, EntryKey, Evidence
from gwmond.model.states import State
from gwmond.model.units import Resource

PROVISIONED = "provisioned"
"""What our running pilots hold of an entry's capacity, busy or not."""


class Part(NamedTuple):
    """Spare capacity that is put down to one state, in 1/SCALE unit; ``reason`` may be empty."""

    state: State
    reason: str
    amount: int


class EntryTime(NamedTuple):
    """The state of one entry and resource.

    ``provisioned`` is None where the running pilots are not known; ``spare`` is then the capacity.
    ``evidence`` says whether state and parts rest on an estimate; the capacity carries its own.
    ``untaken``, in 1/SCALE unit: provisioned, and idle for long although jobs match; None if not
    known.
    """

    entry: EntryKey
    resource: Resource
    state: State
    reason: str
    capacity: Capacity
    provisioned: int | None
    spare: int
    parts: tuple[Part, ...]
    evidence: Evidence
    untaken: int | None = None

    @property
    def verdict(self) -> SiteVerdict:
        """What is reported, without its amounts."""
        return SiteVerdict(self.state, self.reason, self.evidence)

    @property
    def uses(self) -> Iterator[tuple[str, str, int]]:
        """The uses of the capacity: state, reason, and amount in 1/SCALE unit.

        The amounts sum to the capacity; of a saturated entry to what is provisioned: the site has
        no room for the rest.  Counters and gauges of canonical units have the same uses.
        """
        if self.provisioned is not None:
            yield PROVISIONED, "", self.provisioned * SCALE
        for part in self.parts:
            yield part.state.value, part.reason, part.amount


class DemandTotals(NamedTuple):
    """What became of the idle demand of one schedd, in 1/SCALE unit.

    Invariant: ``idle == absorbed + assigned + unmatched``.  Where the running pilots are not known
    only ``idle`` is, and the others are None.
    """

    idle: int
    absorbed: int | None
    assigned: int | None
    unmatched: int | None


class EntryJobs(NamedTuple):
    """Our counts of idle jobs, and by how much they exceed the frontend's.

    If they are not ``whole`` (a schedd did not answer, or there are jobs and no template of the
    entry to match them against) there may be more.  An excess is None if the frontend advertised no
    number, or if not all schedds answered us.  ``assigned`` are jobs, fractional where several
    entries share them; None where the running pilots are not known.
    """

    ours: JobCounts
    assigned: float | None
    matching_excess: int | None
    proportional_excess: int | None
    unique_excess: int | None
    whole: bool


class MatchedKind(NamedTuple):
    """The pilots of an entry and a frontend group; ``sure``: they certainly match, and are seen."""

    entry: EntryKey
    group: str
    sure: bool


class IdleJobs(NamedTuple):
    """The idle jobs of one group, and where they could run.

    ``cpu``, ``gpu``: units, the least that they take of empty pilots.  ``entries``: where they
    could run, sorted.  ``absorbed``: which part of them free slots and pending pilots take, each
    job once (0 to 1); ``free``: free slots are among these.  ``kinds``: the empty pilots on which
    they could run.  ``assigned``: which part spare capacity could take.
    """

    group: DemandGroup
    cpu: float
    gpu: float
    entries: tuple[EntryKey, ...]
    absorbed: float = 0.0
    free: bool = False
    kinds: tuple[MatchedKind, ...] = ()
    assigned: float = 0.0

    @property
    def is_lost(self) -> bool:
        """Whether they could run nowhere, or only on pilots of a kind that nobody has seen."""
        return not self.entries or (bool(self.kinds) and not any(kind.sure for kind in self.kinds))


class Evaluation(NamedTuple):
    """The state of all entries at one moment.

    ``taken`` is to be remembered for the next one (see ``untaken``).  ``idle`` are the groups of
    idle jobs; ``left_out`` the schedds of some of them that frontends leave out, with why;
    ``unseen`` says that the frontends count none of them, or is empty.  ``coming``: entries with
    pilots that are about to register, which have taken their jobs.
    """

    rows: Mapping[tuple[EntryKey, Resource], EntryTime]
    demand: Mapping[tuple[str, Resource], DemandTotals]
    jobs: Mapping[EntryKey, EntryJobs]
    taken: Taken = MappingProxyType({})
    idle: tuple[IdleJobs, ...] = ()
    left_out: Mapping[str, str] = MappingProxyType({})
    unseen: str = ""
    coming: AbstractSet[EntryKey] = frozenset()


def overall(states: Iterable[State]) -> State:
    """Return the one state of an entry (from its resources) or a site (from its entries).

    First come states that are proven and that an operator can act on: a bottleneck anywhere, then
    waiting pilots (``filling``, ``saturated``).  ``insufficient_demand`` and ``full`` need that
    nothing is unknown, ``down`` that all is down.  No state at all is ``unknown``.
    """
    present = set(states)
    return next((state for state in State if state in present), State.UNKNOWN)


def entry_states(evaluation: Evaluation) -> dict[EntryKey, State]:
    """Return the overall state of each entry.

    A resource that the entry does not have is ignored, unless it is the only one.
    """
    rows: defaultdict[EntryKey, list[EntryTime]] = defaultdict(list)
    for (key, _), row in evaluation.rows.items():
        rows[key].append(row)
    return {
        key: overall(row.state for row in times if row.capacity.units > 0 or len(times) == 1)
        for key, times in rows.items()
    }


def residual(evaluation: Evaluation) -> int:
    """Return how far the evaluation is from its invariants, in 1/SCALE unit; 0 always.

    The parts of each row sum to its spare and are positive; provisioned and spare sum to the
    capacity, less only if the entry is saturated; the demand's totals sum up.
    """
    wrong = 0
    for row in evaluation.rows.values():
        wrong += abs(row.spare * SCALE - sum(part.amount for part in row.parts))
        wrong += sum(max(1 - part.amount, 0) for part in row.parts)
        idle = row.capacity.units - (row.provisioned or 0) - row.spare
        wrong += (max(-idle, 0) if row.state is State.SATURATED else abs(idle)) * SCALE
    for demand_totals in evaluation.demand.values():
        if (
            demand_totals.absorbed is not None
            and demand_totals.assigned is not None
            and demand_totals.unmatched is not None
        ):
            wrong += abs(
                demand_totals.idle
                - demand_totals.absorbed
                - demand_totals.assigned
                - demand_totals.unmatched
            )
            wrong += max(-demand_totals.unmatched, 0)
    return wrong


SCALE = 1000
"""Results are in 1/SCALE canonical units: fine enough to share one unit among many entries."""


CapacityEvidence: TypeAlias = Literal["pledge", "above_pledge", "peak", "limit", "none"]


class Capacity(NamedTuple):
    """Canonical units that an entry could run for us; ``none`` means that it is not known.

    ``above_pledge``: what runs, for that is more than was pledged.
    """

    units: int
    evidence: CapacityEvidence


class JobCounts(NamedTuple):
    """Idle jobs of one entry, counted as the frontend counts them.

    ``matching`` counts a job at each entry where it could run; ``proportional`` divides it among
    them (rounded up once, at the end); ``unique`` are those that can run nowhere else.
    """

    matching: int
    proportional: int
    unique: int


Taken: TypeAlias = Mapping[tuple[Berth, Resource], PendingHistory]
"""What jobs would have taken of free slots and pending pilots, over the last grace."""
