"""Typed facts, which sources give to the accounting; every unit is fixed here.

Facts are immutable, carry no HTCondor object, and cross a process boundary by pickle, so they are
named tuples.  Times are seconds since the epoch, memory is MiB, an absent value is ``None`` and
never zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.model.problem_names import ProblemName

AD_LIFETIME_S = 900
"""How long a collector believes in an ad that does not say (CLASSAD_LIFETIME)."""

FAILED_SILENT_S = 2 * 350
"""A pilot whose validation failed sends an ad every 250 to 350 s (glidein_startup.sh).  Without an
ad for longer it is gone."""

Evidence: TypeAlias = Literal["measured", "estimated"]
EVIDENCE: tuple[Evidence, ...] = ("measured", "estimated")


class EntryKey(NamedTuple):
    """A site (``GLIDEIN_Site``) and one of its entries (``GLIDEIN_Entry_Name``)."""

    site: str
    entry: str


class Place(NamedTuple):
    """Where pilots run, and for whom: a site, an entry, a frontend group; empty: whichever."""

    site: str = ""
    entry: str = ""
    group: str = ""

    @property
    def named(self) -> dict[str, str]:
        """The names that are not empty: by site, entry, group."""
        return {field: name for field, name in self._asdict().items() if name}

    def covers(self, *names: str) -> bool:
        """Return whether a site, an entry and a group are of it; those not given are."""
        return all(mine in ("", name) for mine, name in zip(self, names, strict=False))


ANYWHERE = Place()


class Size(NamedTuple):
    """Of a slot, a pilot, a job, or a run (what was provisioned, not the request)."""

    cores: float
    memory_mib: float
    gpus: float = 0

    @property
    def without_cores(self) -> Size:
        """The same on a virtual slot, whose cores are not there."""
        return self._replace(cores=0)

    def is_within(self, room: Size) -> bool:
        """Return whether no part of it is more than that of another."""
        return all(mine <= has for mine, has in zip(self, room, strict=True))


class Pilot(NamedTuple):
    """One running pilot: the slots of one startd taken together.

    ``free`` has one size for each slot that could take another job (a partitionable slot's
    remainder, an unclaimed static slot); ``jobs`` the size of each claim that runs.  ``size`` is
    None if its ads have none that makes sense.

    ``failed``: its validation failed, and that is all that it advertises (see
    ``htcondor.advertised``): it never registered, ``started`` is when it first said so, ``failure``
    is why.

    ``node`` is the machine, ``factory_job`` the pilot as a job of its factory
    (``schedd#cluster.proc``) or empty, ``retires`` and ``dies`` are epochs, ``ad_lifetime_s`` is
    how long a collector believes in the ad, ``shown`` are its attributes that are only shown.

    ``started`` is by the startd's clock, which is how claims name the startd; ``clock_s`` is what
    to add to have the collector's, 0 where the two are about the same.

    ``virtual_slots``: names of slots whose cores are not there (see ``pilots.slots``);
    neither ``size`` nor ``free`` has these cores.  Nor those of ``senders``: so many cores more has
    its slot, for jobs that only send their output (docs/overlap.md); such jobs are not in ``jobs``.

    ``idle_claims``: on so many of its claims no job runs.

    ``draining``: all its slots drain, or have drained (condor_drain, a peaceful end).
    """

    name: str
    started: int
    entry: EntryKey
    group: str
    factory: str
    size: Size | None
    free: tuple[Size, ...]
    jobs: tuple[Size, ...]
    accepting: bool
    remaining_s: int | None
    last_heard: int
    node: str = ""
    factory_job: str = ""
    retires: int | None = None
    dies: int | None = None
    ad_lifetime_s: int = 900
    failed: bool = False
    failure: str = ""
    clock_s: int = 0
    shown: tuple[tuple[str, str], ...] = ()
    virtual_slots: tuple[str, ...] = ()
    senders: float = 0.0
    idle_claims: int = 0
    draining: bool = False

    @property
    def began(self) -> int:
        """When its startd was started, by the collector's clock (epoch seconds); 0: not known."""
        return self.started + self.clock_s if self.started else 0


class Rejection(NamedTuple):
    """What the negotiator said of some jobs of a group, and when (epoch s); empty: nothing."""

    text: str
    at: int | None
    jobs: int


class Stalled(NamedTuple):
    """Running jobs on a pilot (its startd) whose programs have used almost no CPU for long.

    ``core_s``: core seconds that they hold, since their programs began.  ``unknown``: jobs that run
    as long, of which it is not known what they use.
    """

    startd: str
    jobs: int = 0
    core_s: float = 0.0
    unknown: int = 0

    def plus(self, other: Stalled) -> Stalled:
        """Return both together, without the pilot."""
        jobs, unknown = self.jobs + other.jobs, self.unknown + other.unknown
        return Stalled("", jobs, self.core_s + other.core_s, unknown)


class StalledJobs(NamedTuple):
    """Stalled jobs by pilot, of the schedds that have told; ``whole``: all have."""

    pilots: Mapping[str, Stalled]
    whole: bool


class DemandGroup(NamedTuple):
    """Idle jobs of one schedd which matching cannot distinguish.

    ``signature`` identifies all that matching depends on, so that two schedds' alike groups share
    cached evaluations; ``ad`` is the text of the job ad (new ClassAd syntax) to match with.

    ``identity`` identifies what the jobs themselves say, whatever pilots there are; ``wants`` their
    Requirements and requests, which records of their runs have too.
    ``rejections``: of which limits the negotiator said that they keep how many of them.
    ``sample``: the ``cluster.proc`` of one of them, or its cluster; empty: not known.
    """

    schedd: str
    accounting_group: str
    signature: str
    ad: str
    jobs: int
    size: Size
    walltime_s: int | None
    identity: str = ""
    wants: str = ""
    rejections: tuple[Rejection, ...] = ()
    sample: str = ""

    def plus(self, other: DemandGroup) -> DemandGroup:
        """Return it with the jobs of a group that is alike."""
        rejections = self.rejections + other.rejections
        return self._replace(jobs=self.jobs + other.jobs, rejections=rejections)

    def by_rejection(self) -> Iterator[Rejection]:
        """Yield all jobs, each once: those of which something was said, then the others."""
        left = self.jobs
        for rejection in (*self.rejections, Rejection("", None, left)):
            if (jobs := min(rejection.jobs, left)) > 0:
                yield rejection._replace(jobs=jobs)
            left -= jobs


class JobCount(NamedTuple):
    """Jobs of one schedd by status (``idle``, ``running``, ``held``, ``unmaterialized``, ...)."""

    schedd: str
    accounting_group: str
    status: str
    jobs: int


class Limit(NamedTuple):
    """A limit or curb that the frontend or the factory says it has hit, in its own words."""

    name: str
    text: str


class EntryRequest(NamedTuple):
    """One glideresource ad: the requests of one frontend group at one entry, and their results.

    ``monitor`` has pilots as the factory counts them, and the requests.  ``jobs_*`` are counted by
    the frontend.  ``whole`` has the entry's own numbers, over all its clients.
    """

    entry: EntryKey
    group: str
    factory: str
    down: bool
    last_heard: int
    whole: EntryMonitor = EntryMonitor()
    limits: tuple[Limit, ...] = ()
    jobs_matching: int | None = None
    jobs_proportional: int | None = None
    jobs_unique: int | None = None
    jobs_effective: int | None = None
    slots_idle: int | None = None
    pilot_size: Size | None = None
    monitor: Monitor = Monitor()
    here_contradicts: bool = False


class Template(NamedTuple):
    """An empty pilot of an entry and a frontend group, to match job groups against.

    ``refers`` are the attributes that its START expression seeks in a job.

    ``evidence`` is ``measured`` when made from a live healthy slot, ``estimated`` when only the
    glideresource ad describes it.

    ``start``: what is known of the group's START; where it is empty, an estimated template only
    shows which jobs cannot run there.  ``query``: the jobs that the group counts, where no START
    of the group is known.  In both TARGET says what is the job's.

    ``versions``: of HTCondor and of configurations, by what ``Changed`` calls them.
    """

    entry: EntryKey
    ad: str
    signature: str
    size: Size
    lifetime_s: int | None
    evidence: Evidence
    group: str = ""
    refers: tuple[str, ...] = ()
    start: str = ""
    query: str = ""
    versions: tuple[tuple[str, str], ...] = ()


class Verdict(StrEnum):
    """Whether a job group could run on an empty pilot of an entry."""

    YES = "yes"
    NO = "no"
    POSSIBLE = "possible"  # an attribute is undefined: counts as yes, and is estimated
    UNKNOWN = "unknown"  # nothing is known of which jobs its group starts


class Problem(NamedTuple):
    """Bad input, as a value that is counted and shown.

    ``records``: how many records of the source; None: it is about the source itself, and reported
    again it is the same problem; 0: nothing is new, but it lasts.
    """

    source: str
    problem: ProblemName
    detail: str
    records: int | None = None


class Cursor(NamedTuple):
    """How far a source's records have been read.

    ``state`` is the source's own text; ``complete_us`` (microseconds since the epoch): all
    records written before are known.
    """

    source: str
    kind: str
    state: str
    complete_us: int | None


class Gap(NamedTuple):
    """Records of a source that are lost for good, written within an interval (microseconds)."""

    source: str
    kind: str
    start_us: int | None
    end_us: int
    detail: str


Reach: TypeAlias = Literal["not_known", "here", "group", "everywhere"]
"""Where pilots do not register: at one entry alone, at all of its group alone, at all."""


class Unregistered(NamedTuple):
    """Pilots of an entry that ran by the factory's count, and that no collector knew.

    ``pilots``: how many, at every moment of a grace, the last one or one after which none
    registered; ``registered``: how many do now.
    ``test``: which test of the validation fails there; empty: not known.
    """

    pilots: int
    registered: int
    reach: Reach = "not_known"
    test: str = ""

    @property
    def most(self) -> bool:
        """Whether most of the pilots that run do not register."""
        return self.pilots > self.registered


class Hold(NamedTuple):
    """So many pilots that are held for a reason, with its HoldReasonCode."""

    reason: str
    code: int | None
    pilots: int


class Held(NamedTuple):
    """Pilots of an entry that are held in the factory's queue, or were until their removal lately.

    ``holds``: why, the most frequent reason first.  ``most``: no other pilot runs, and fewer wait.
    """

    holds: tuple[Hold, ...]
    most: bool

    @property
    def pilots(self) -> int:
        """How many they are."""
        return sum(hold.pilots for hold in self.holds)


class EntryTotals(NamedTuple):
    """The requests of all frontend groups at one entry, and their results.

    ``running`` are our pilots that run by the factory's count, ``others_running`` those of
    frontends whose ads are not in our collector.  ``unsubmitted``: pilots were requested, and none
    waited, at every moment of the last grace.  ``saturated``: pilots have waited there for longer.
    """

    groups: tuple[str, ...]
    down: bool
    pending: int | None
    held: int | None
    submitted_wait: int | None
    requested_idle: int | None
    total_pending: int | None
    total_running: int | None
    others_running: int | None
    max_pilots: int | None
    limits: tuple[Limit, ...]
    info_age_s: int | None
    jobs_matching: int | None
    jobs_proportional: int | None
    jobs_unique: int | None
    jobs_effective: int | None
    slots_idle: int | None
    pilot_size: Size | None
    running: int | None = None
    unregistered: Unregistered | None = None
    held_lately: Held | None = None
    unsubmitted: bool = False
    saturated: bool = False

    @property
    def idle_request(self) -> int:
        """How many pilots are requested while none waits, neither at the site nor on the way."""
        waits = self.pending is None or self.submitted_wait is None
        return 0 if waits or self.pending or self.submitted_wait else self.requested_idle or 0

    @property
    def barren(self) -> bool:
        """Whether pilots that wait there will come to nothing, as those before them did."""
        return any(sign is not None and sign.most for sign in (self.unregistered, self.held_lately))


class Status(NamedTuple):
    """How one kind of query to one source went last; ``problem``: None if it went well."""

    source: str
    kind: str
    up: bool
    duration_s: float
    cpu_s: float
    peak_mib: float
    last_success: float | None
    records: int
    skipped: int
    problem: ProblemName | None
    detail: str


class FrontendJobs(NamedTuple):
    """One frontend's count of idle jobs, and of those idle for 10 minutes and an hour."""

    frontend: str
    idle: int | None
    idle_600s: int | None
    idle_3600s: int | None


class Reported(NamedTuple):
    """What sources report that is shown as it is: by the kind of the source, of all collectors.

    A field stays empty as long as no collector has answered lately.
    """

    frontendmonitor: tuple[FrontendJobs, ...] = ()


class Berth(NamedTuple):
    """The pilots that run, or wait, at an entry for one frontend group."""

    entry: EntryKey
    group: str
