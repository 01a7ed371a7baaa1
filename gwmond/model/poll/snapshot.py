"""What is known after one poll: immutable, swapped whole, and all that anybody is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from gwmond.model.entries.confidence import NO_CHECKS, Confidence
from gwmond.model.factory.totals import FactoryTotalKey
from gwmond.model.facts import (
    Berth,
    Cursor,
    EntryKey,
    EntryRequest,
    EntryTotals,
    JobCount,
    Stalled,
)
from gwmond.model.names import Together
from gwmond.model.pilot_life import Measure
from gwmond.model.pilots.stored_pilots import CountKey, PilotSeries
from gwmond.model.problem_names import ProblemName
from gwmond.model.totals import SiteKey, Total
from gwmond.model.units import Resource

if TYPE_CHECKING:
    from gwmond.model.demand.submitters import UsersNow
    from gwmond.model.entries.evaluation import Evaluation
    from gwmond.model.entries.suspects import Suspect
    from gwmond.model.factory.reconciliation import Reconciliation
    from gwmond.model.facts import Reported, Status
    from gwmond.model.monitor import EntryMonitor
    from gwmond.model.runs.waits import Wait


Stage: TypeAlias = Literal[
    "query", "state", "matching", "evaluation", "reasons", "pilots", "ledger"
]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""What a poll does, in this order."""


class PilotUnits(NamedTuple):
    """Canonical units of running pilots: ``total = busy + idle + remainder``."""

    total: int
    busy: int
    idle: int

    @property
    def remainder(self) -> int:
        """Units that neither jobs fill wholly nor a job of one unit could use."""
        return self.total - self.busy - self.idle


Overhead: TypeAlias = Literal[
    "start", "first_job", "between_jobs", "beside_jobs", "draining", "retirement"
]
GpuUse: TypeAlias = Literal["busy", "idle"]
OVERHEADS: tuple[Overhead, ...] = get_args(Overhead)
"""Why a pilot's units are idle: it has not registered yet, and is about to; it has not run a job
yet; it has none now; its jobs leave them; it is drained; it takes no more jobs."""


class PilotGroup(NamedTuple):
    """Pilots of one entry and frontend group in the collector, each in one of four states.

    ``retiring`` pilots take no more jobs; of the others ``busy`` ones run a job and ``idle`` ones
    none.  ``failed`` pilots have not registered: they only say that their validation failed.
    ``unused``: how many of the registered ones have not run a job yet.  ``overhead``: canonical
    units that no job takes now, by why.  ``stalled``: their jobs that use no CPU, of schedds that
    have told; None: none of these is known, and jobs run.  ``gpus``: how many, by model (empty: not
    known) and whether a job has them.
    """

    busy: int
    idle: int
    retiring: int
    unused: int
    units: Mapping[Resource, PilotUnits]
    failed: int = 0
    overhead: Mapping[tuple[Resource, Overhead], int] = MappingProxyType({})
    stalled: Stalled | None = None
    gpus: Mapping[tuple[str, GpuUse], int] = MappingProxyType({})

    @property
    def registered(self) -> int:
        """How many pilots run HTCondor."""
        return self.busy + self.idle + self.retiring


class Checked(NamedTuple):
    """How many verdicts on an entry pilots have checked, and with how many they agreed."""

    agreed: int
    checked: int

    def plus(self, other: Checked) -> Checked:
        """Return both together."""
        return Checked(self.agreed + other.agreed, self.checked + other.checked)


class KeptNames(NamedTuple):
    """Entries and groups whose counters are shown, and names that are taken together.

    ``weak`` are entries that were not seen for a day, and that nobody vouches for.
    """

    entries: frozenset[EntryKey]
    groups: frozenset[Berth]
    weak: frozenset[EntryKey]
    together: tuple[Together, ...]


class IdleReason(NamedTuple):
    """Why idle jobs are not running, in two levels, and where these could run.

    ``reason`` is how far they have come (``explain``'s tier), ``cause`` the bounded name of what
    keeps them there.  ``site``: where they could run; ``several``, or ``none``.  ``mover``: who can
    change that, in words.  Units are canonical.
    """

    reason: str
    cause: str
    site: str
    mover: str
    jobs: float
    cpu: float
    gpu: float


class HeldPilots(NamedTuple):
    """Pilots of an entry that are held for a reason, or were until they were removed lately.

    ``reason``, ``code`` (HoldReasonCode): None where the factory's queue is not read, so that only
    the number is known.  ``mover``, ``change``: whose move it is, and what would change it, in
    words.  ``since``: when this was seen first (epoch seconds), since gwmond started.
    """

    entry: EntryKey
    reason: str | None
    code: int | None
    pilots: int
    mover: str
    change: str
    since: float


class LedgerStatus(NamedTuple):
    """Whether totals are being kept.  ``standby``: by another gwmond, which has the ledger."""

    up: bool
    error: str
    last_commit: float | None
    waiting_increments: int
    standby: bool = False


class Credential(NamedTuple):
    """A certificate or token of gwmond's own: the option, or the file of tokens; epoch seconds.

    ``issued``: from when on it is valid; None if it does not say.
    """

    source: str
    issued: float | None
    expires: float


class SilentPilot(NamedTuple):
    """A pilot whose ad was not renewed for two updates, and when it was heard of last."""

    name: str
    entry: EntryKey
    group: str
    last_heard_us: int


class PilotTime(NamedTuple):
    """What is shown of pilots' time; amounts are micros, ``unsettled`` canonical ones.

    ``residual`` is by how much pilots that were closed miss their totals, in micros.  ``factory``
    are the factory's own numbers (not micros); ``suspects`` places where jobs end far too soon,
    ``suspicions`` how many of them verdicts have confirmed and withdrawn;
    ``waits`` what runs that are over wait for.
    """

    shown: Mapping[PilotSeries, Total]
    counted: Mapping[CountKey, Total]
    unsettled: Mapping[tuple[Resource, EntryKey, str], int]
    residual: Mapping[Measure, int]
    contradictions: Mapping[str, int]
    known_us: int | None
    factory: Mapping[FactoryTotalKey, Total] = MappingProxyType({})
    suspects: tuple[Suspect, ...] = ()
    suspicions: Mapping[str, int] = MappingProxyType({})
    silent: tuple[SilentPilot, ...] = ()
    waits: tuple[Wait, ...] = ()


def checked_verdicts(counts: Mapping[CountKey, Total]) -> dict[EntryKey, Checked]:
    """Return how many verdicts were checked, of what was counted."""
    checked: dict[EntryKey, Checked] = {}
    for count_key, total in counts.items():
        if count_key.what == "verdicts":
            number = total.micros
            key = EntryKey(count_key.site, count_key.entry)
            more = Checked(number if count_key.outcome == "true" else 0, number)
            checked[key] = checked.get(key, Checked(0, 0)).plus(more)
    return checked


class Exemplar(NamedTuple):
    """A span that stands for a part of what was counted; ``at``: when it was sent, epoch seconds.

    ``value`` is in the unit of what is counted.
    """

    trace_id: str
    span_id: str
    value: float
    at: float = 0.0


RUNS_TOTAL, QUEUE_SECONDS = "gwmond_job_runs_total", "gwmond_job_queue_seconds"
"""The families that have exemplars."""

ExemplarKey: TypeAlias = tuple[str, ...]
"""A family and the labels of a series; of a histogram also the bucket's upper bound."""


class TraceExport(NamedTuple):
    """How the export of traces does, since gwmond started.

    - ``spans`` by result: accepted, refused.  ``requests``: accepted, refused, failed.
    - ``settled``: runs, jobs and pilots by result: exported, not_chosen, skipped, gone.
    - ``corrected``: pilots whose time was corrected after it was settled.
    - ``backlog_s``: how long the oldest that is to be exported waits; 0 if none waits.
    - ``exemplars``: spans that the receiver has.
    """

    spans: Mapping[str, int]
    requests: Mapping[str, int]
    settled: Mapping[str, int]
    sent_bytes: int
    corrected: int
    backlog_s: float
    last_success: float | None
    exemplars: Mapping[ExemplarKey, Exemplar] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One poll's outcome.

    ``pool_time`` is the pool's clock (accelerated in a replay), ``made_at`` this machine's, both
    epoch seconds; ``started_at`` is when this process began to count problems.  ``verdicts`` are
    those that pilots have checked, since the ledger began; None without a ledger.  ``names`` are
    those that are kept apart; None: all.  ``idle``: why jobs wait; they add up to all that are
    known.  ``confidence``: how sure verdicts are.  ``young_until``: when a collector that was just
    started will be trusted, by the pool's clock; None: all are.  ``poll_interval``: as configured.
    ``held``: pilots by entry and hold reason, the most first.
    ``users``: their jobs by the own count of schedds; None if no collector tells of any.
    ``silent``: names of pilots that do not run any more, although their ads are there.
    """

    pool_time: float
    made_at: float
    started_at: float
    poll_interval: float
    poll_seconds: float
    stages: Mapping[Stage, float]
    polls: int
    speed: float
    sources: tuple[Status, ...]
    records: Mapping[tuple[str, str], int]
    problems: Mapping[tuple[str, ProblemName], int]
    evaluation: Evaluation
    residual: int
    entries: Mapping[EntryKey, EntryTotals]
    requests: tuple[EntryRequest, ...]
    pilots: Mapping[Berth, PilotGroup]
    jobs: tuple[JobCount, ...]
    reported: Reported
    ledger: LedgerStatus
    totals: Mapping[SiteKey, Total]
    htcondor_version: str
    pilot_time: PilotTime | None = None
    cursors: tuple[Cursor, ...] = ()
    reconciliation: Reconciliation | None = None
    entry_monitors: Mapping[EntryKey, EntryMonitor] = field(default_factory=dict)
    verdicts: Mapping[EntryKey, Checked] | None = None
    confidence: Confidence = NO_CHECKS
    names: KeptNames | None = None
    young_until: float | None = None
    traces: TraceExport | None = None
    idle: tuple[IdleReason, ...] = ()
    silent: frozenset[str] = frozenset()
    credentials: tuple[Credential, ...] = ()
    held: tuple[HeldPilots, ...] = ()
    users: UsersNow | None = None
