"""Pilots, their runs and their time, as the ledger holds them.

Units: times are whole microseconds since the epoch, an hour is ``epoch // 3600`` (UTC), amounts
are micros (10^-6 of one core, chip or canonical unit for one second), memory is MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.facts import EntryKey, Evidence, Place, Size
from gwmond.model.pilot_life import (
    Assumption,
    Category,
    End,
    Interval,
    Measure,
    Outcome,
    PilotLife,
    Run,
    RunKey,
    SizeStep,
    Validation,
    estimates,
)
from gwmond.model.pilots.pilot_facts import Origin, PilotFacts, ReportedSize
from gwmond.model.runs.phases import Measured, sends_us
from gwmond.model.runs.run_facts import RunFact
from gwmond.model.states import State
from gwmond.model.times import Period
from gwmond.model.totals import Hour, Micros
from gwmond.model.units import Resource

PilotId: TypeAlias = int
DoingNow: TypeAlias = Literal["running", "idle", "retiring", "silent"]
"""What a pilot that has not ended does."""
OwnAmounts: TypeAlias = Mapping[tuple[Resource, Measure, Category, str], Micros]


class PilotSeries(NamedTuple):
    """One series of pilot time; ``outcome`` is empty for the pilot's own time."""

    resource: Resource
    measure: Measure
    category: Category
    outcome: str
    site: str
    entry: str
    group: str
    evidence: Evidence


class PilotIdentity(NamedTuple):
    """Which pilot it is, and where; ``started`` is DaemonStartTime in epoch seconds.

    ``name`` is the startd's.  ``factory_job`` is ``schedd#cluster.proc`` of the factory, or empty.
    ``origin`` says whether a collector has shown it, or only records of jobs, or its own output.
    """

    name: str
    started: int
    factory_job: str
    factory: str
    key: EntryKey
    group: str
    node: str
    origin: Origin = "collector"

    @property
    def factory_number(self) -> str:
        """``cluster.proc`` of the factory, or empty."""
        return self.factory_job.rpartition("#")[2]


class PilotKind(NamedTuple):
    """What pilots of an entry have in common: what is known of them, and what was assumed."""

    reported: ReportedSize
    size: Size
    rules: frozenset[Assumption]
    site: str
    factory: str
    group: str
    origin: Origin


class PilotRow(NamedTuple):
    """A pilot as stored; ``id`` is given by the caller and never changes.

    - ``end_us`` None: it runs; ``end_source`` says how that is known (``shutdown``: it invalidated
      its ads ; ``ad_expired``: its ad expired, the end is the last contact; ``assumed``: no source
      has its end, and nothing was heard of it later; ``central_log``: a central log says so;
      ``queue``: its factory's queue or summary does; ``pilot_output``: its own output says so).
    - ``facts``: what each source reports on it; all else follows from that and from its runs.
    - ``posted_last_heard_us``: when it was last heard of, in the version that is posted.
    - ``last_heard_us``: when it was last heard of, whatever is posted; 0 if that was not stored.
    - ``settled_until_us``: all before is settled, and runs that ended before need not be loaded.
    - ``closed``: nothing more is expected of it.
    - ``failure``: why its validation failed: the class, and the test after a space.
    - ``assumed``: which rule stands for a missing fact, from when to when; ``assumed_micros``: how
      much of the pilot is counted under each, in canonical micros of a resource (``CountKey``).
    - ``validation_end_us``: when its validation ended, if its output or a summary has it.
    - ``settled``: what is posted for it, by resource, measure, category and outcome.
    - ``last_polled_us``: when a poll found an ad of it last; None: the last look did.
    - ``unit_mib``: MiB of a canonical unit, by which all of it is posted; 0 if not posted yet.
    - ``runs_pruned``: how many of its runs retention took out; the ledger's own, and
      ignored when written.
    """

    id: PilotId
    identity: PilotIdentity
    start_us: int
    end_us: int | None
    posted_last_heard_us: int
    steps: tuple[SizeStep, ...]
    validation: Validation
    assumed: Mapping[Assumption, Interval]
    end_source: End
    retire_us: int | None
    die_us: int | None
    known_until_us: int | None
    settled_until_us: int
    ran_jobs: bool
    closed: bool
    settled: OwnAmounts
    runs_pruned: int = 0
    failure: str = ""
    validation_end_us: int | None = None
    last_heard_us: int = 0
    assumed_micros: Mapping[tuple[Assumption, Resource], Micros] = MappingProxyType({})
    facts: PilotFacts = PilotFacts()
    last_polled_us: int | None = None
    unit_mib: int = 0

    @property
    def life(self) -> PilotLife:
        """Its life without its runs; while it runs it lasts, for now, to its last contact."""
        return PilotLife(
            start_us=self.start_us,
            end_us=self.end_us,
            now_us=self.posted_last_heard_us,
            steps=self.steps,
            validation=self.validation,
            estimated=estimates(self.assumed),
            end_source=self.end_source,
            validation_end_us=self.validation_end_us,
            failure=self.failure,
            assumed=self.assumed,
        )


class RunRow(NamedTuple):
    """A run as stored; ``facts`` are all its facts, so that it can be merged anew.

    ``settled`` are the micros posted for it by (resource, measure); ``result`` is what it says
    about early failures (``comparison.Result`` or empty); ``executed_us`` how long the program
    ran, if known; ``open`` as long as its outcome is not known or may still be revised;
    ``last_shown_us`` when a slot showed it last (None: at the last look, or it is over).
    """

    pilot: PilotId
    key: RunKey
    start_us: int
    end_us: int | None
    size: Size
    user: str
    job_group: str
    outcome: Outcome | None
    result: str
    open: bool
    settled: Mapping[tuple[Resource, Measure], Micros]
    facts: tuple[RunFact, ...]
    last_shown_us: int | None = None

    @property
    def unnamed(self) -> RunRow:
        """It without its job and its user."""
        return self._replace(key=self.key._replace(job=""), user="", job_group="")

    @property
    def project(self) -> str:
        """The ProjectName of its job; empty: none, or not known."""
        return self._about_job("project")

    @property
    def accounting_group(self) -> str:
        """The AcctGroup of its job; empty: none, or not known."""
        return self._about_job("accounting_group")

    def _about_job(self, name: str) -> str:
        about = (getattr(fact.about_job, name, "") for fact in self.facts)
        return next(filter(None, about), "")

    @property
    def schedd(self) -> str:
        """The schedd in its GlobalJobId; empty where a log has the job's number alone."""
        schedd, _, number = self.key.job.partition("#")
        return schedd if number else ""

    @property
    def as_run(self) -> Run:
        """It as it was posted; what its facts say by today's rules may differ."""
        sent_us = sends_us(self.facts)
        return Run(self.key, self.start_us, self.end_us, self.size, self.outcome, sent_us)


class PilotCorrection(NamedTuple):
    """A signed change of what was posted before; ``time_us`` is when it was made."""

    time_us: int
    pilot: PilotId
    hour: Hour
    series: PilotSeries
    micros: Micros
    cause: str


Counted: TypeAlias = Literal[
    "runs",
    "pilots",
    "assumed",
    "assumed_gpu",
    "verdicts",
    "queue",
    "queue_micros",
    "stage_in",
    "stage_in_micros",
    "stage_out",
    "stage_out_micros",
    "failed_transfers",
    "files_moved",
    "files_failed",
    "files_again",
    "bytes_moved",
    "moving_micros",
]


class CountKey(NamedTuple):
    """What is counted: ``runs`` by category and outcome, ``pilots`` by their own category.

    ``verdicts`` that pilots have checked: by the entry's state (as ``category``), and by whether it
    agreed with what the pilot met (``outcome``, "true" or "false").

    ``assumed``: canonical micros of CPU of pilots that are counted, by their own category and by
    the rule (as ``outcome``) that stands for a missing fact in that time; ``assumed_gpu``: of GPUs.

    ``queue``: first runs of jobs, by how long these had waited: ``outcome`` is the upper bound
    (``runs.phases``).  ``queue_micros``: the sum of these waits.  ``stage_in`` and ``stage_out``:
    the same of transfers.  ``failed_transfers``: by ``Ending.failed_transfer`` (as ``outcome``), as
    soon as a record has one.  ``files_moved`` and the next: by ``Move.server``, ``files`` and what
    follows of a ``Move``.  Their category is always unclassified, for these have none.
    """

    what: Counted
    category: Category | State
    outcome: str
    site: str
    entry: str
    group: str


MICROS: Mapping[Measured, Counted] = {
    "queue": "queue_micros",
    "stage_in": "stage_in_micros",
    "stage_out": "stage_out_micros",
}
"""The name of the count that sums the lengths of a histogram."""

ASSUMED: Mapping[Resource, Literal["assumed", "assumed_gpu"]] = {
    "cpu": "assumed",
    "gpu": "assumed_gpu",
}
"""The name of the count of what rests on a rule, by resource."""


class PilotHour(NamedTuple):
    """What a series had in an hour, net of corrections."""

    hour: Hour
    series: PilotSeries
    micros: Micros


class PilotDifference(NamedTuple):
    """``micros`` by which one place exceeds another, ``where`` in words."""

    where: str
    micros: Micros


class PilotResidual(NamedTuple):
    """What was checked, and how far it is off: ``micros`` is 0 in a sound ledger.

    ``checked`` counts what was compared (hours, pilots, runs, series), ``skipped`` what could
    only be compared in part.  ``micros`` sums absolute values; ``worst`` are the largest.
    """

    what: str
    checked: int
    skipped: int
    micros: Micros
    worst: tuple[PilotDifference, ...]


class Doing(NamedTuple):
    """What a pilot does that has not ended, as ``StoredPilot.state`` has it, at a time."""

    state: DoingNow
    now_us: int
    silent_before_us: int = 0


class PilotFilter(NamedTuple):
    """Which pilots; what is None does not matter.

    Their life overlaps [since, until); ``name`` is a part of the name, upper or lower case;
    ``user``, with a domain or of any, has at least one run on it.  ``ended``: in that period.
    In ``node`` a * stands for anything.  ``failed``: their validation failed, and no job ran.
    ``category``: of part of their settled time.
    """

    since_us: int | None = None
    until_us: int | None = None
    running: bool | None = None
    place: Place = Place()
    user: str | None = None
    name: str | None = None
    id: PilotId | None = None
    ended: Period | None = None
    node: str | None = None
    failed: bool | None = None
    category: Category | None = None
    doing: Doing | None = None


EVERY_PILOT = PilotFilter()


class RunFilter(NamedTuple):
    """Which runs that began in a period, on pilots of a place; what is None does not matter.

    ``job``: a GlobalJobId, or cluster.proc.  ``user``: with its domain, or of any.  In ``node`` a *
    stands for anything.  ``longer_us``: they ended, and were longer.  ``skip``: without so many of
    the latest.
    """

    period: Period
    place: Place = Place()
    user: str | None = None
    job: str | None = None
    category: Category | None = None
    outcome: str | None = None
    node: str | None = None
    longer_us: int | None = None
    skip: int = 0


class EndedOfUser(NamedTuple):
    """Runs that ended alike, with their settled canonical time of CPUs and GPUs.

    Where, and the outcome, are empty if all users are asked for; the category, and the outcome, if
    they are not settled yet.  ``early``: so many failed early, whosever fault
    that was.  ``job``: of one of them.
    """

    user: str
    site: str
    entry: str
    category: str
    outcome: str
    runs: int
    early: int
    cpu: int
    gpu: int
    job: str


class GoingOn(NamedTuple):
    """Runs at an entry that have no end yet, with their cores; the first began at ``since_us``."""

    user: str
    site: str
    entry: str
    runs: int
    cores: float
    since_us: int
