"""Facts about one pilot from GlideinWMS's own files.

Units: times (``_us``) are whole microseconds since the epoch (UTC), durations (``_s``) are whole
seconds as the files have them, memory is MiB.  An absent value is ``None`` (a text: empty) and
never zero.  All types are immutable and cross a process boundary by pickle.

Source of the terms: design page, section 3; facts page on GlideinWMS, sections 1 and 2.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from gwmond.model.digits import is_number
from gwmond.model.facts import Evidence, Problem
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.pilot_facts import ValidationTest
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobRecord

EVENT_LOG = re.compile(r"condor_activity_(?P<day>[0-9]{8})(?:_(?P<client>.*))?\.log", re.S)
"""The names of a factory's event logs: day of the first event, and client (frontend.group)."""

LEAST_CONDOR_S = 5
"""An HTCondor that ran for less never registered: all is validation (FM:1069-1158)."""


class Jobs(NamedTuple):
    """A number of jobs and their time, summed."""

    jobs: int
    time_s: int


class JobStatistics(NamedTuple):
    """Totals of a pilot's jobs, which the pilot counted from the exits in its starter logs.

    ``good_zero``: exit status 0, ``good_nonzero``: another exit status.  Jobs that ended by a
    signal or without an exit line are in neither.

    ``factor``: *all* of them were divided by it (the cores; counts rounded up, and cut so that the
    sum is ``total``); 1 if they were not, None if the file does not have it.
    """

    total: Jobs
    good_zero: Jobs | None = None
    good_nonzero: Jobs | None = None
    factor: int | None = None


class FailureClass(StrEnum):
    """The classes of failed validations (glidein_startup.sh, error_gen.sh); OTHER: none of them."""

    WN_RESOURCE = "WN_Resource"
    NETWORK = "Network"
    CONFIG = "Config"
    VO_CONFIG = "VO_Config"
    CORRUPTION = "Corruption"
    VO_PROXY = "VO_Proxy"
    UNKNOWN = "Unknown"
    OTHER = "other"


class PilotName(NamedTuple):
    """The names of a pilot, by which facts of several files and ads are matched.

    - ``factory``, ``instance``, ``entry``: GLIDEIN_Factory, GLIDEIN_Name, GLIDEIN_Entry_Name.
    - ``cluster``, ``proc``, ``schedd``: the pilot as a job of its factory.
    - ``frontend``, ``group``: GLIDECLIENT_Name and _Group; ``user`` is the factory's user for it,
      of the directory ``user_...``.
    - ``startd``: the startd's name up to its ``@`` (``glidein_PID_RANDOM``, which a central log
      calls GLIDEIN_Name); ``node``: the host's name; ``pid`` of glidein_startup.sh, which is the
      first number of ``startd``.
    """

    factory: str = ""
    instance: str = ""
    entry: str = ""
    cluster: int | None = None
    proc: int | None = None
    schedd: str = ""
    frontend: str = ""
    group: str = ""
    user: str = ""
    site: str = ""
    resource: str = ""
    startd: str = ""
    node: str = ""
    pid: int | None = None

    @property
    def factory_job(self) -> str:
        """The pilot as its factory's job, ``schedd#cluster.proc``; empty if not known."""
        if not self.schedd or self.cluster is None or self.proc is None:
            return ""
        return f"{self.schedd}#{self.cluster}.{self.proc}"

    def filled(self, other: PilotName) -> PilotName:
        """Return it with the fields that only the other has."""
        extra = other._asdict()
        missing = {name: extra[name] for name, mine in self._asdict().items() if mine in {None, ""}}
        return self._replace(**missing)


def short_node(node: str) -> str:
    """Return a host's name without its domain, which logs and ads have or have not.

    >>> short_node("Node7.site.test")
    'node7'
    """
    return node.partition(".")[0].lower()


class XmlResult(NamedTuple):
    """The result that a pilot writes at its end (OSGTestResult).

    - ``ok``: its status.
    - ``test`` (metric TestID) and ``failure`` (metric failure, as written) of a failure.
    - ``start_us``, ``end_us``: tStart and tEnd; the end is before the deliberate sleep, unless
      ``early``: glidein_startup.sh failed before it could run any test, and had slept already.
    - ``offsets``: moments (s since the epoch), and what the host's clock was ahead of UTC by (s).
    """

    ok: bool | None
    start_us: int | None = None
    end_us: int | None = None
    test: str = ""
    failure: str = ""
    early: bool = False
    condor_s: int | None = None
    jobs: JobStatistics | None = None
    name: PilotName = PilotName()
    offsets: tuple[tuple[int, int], ...] = ()


class Failure(NamedTuple):
    """Why a validation failed; ``test`` is the TestID, such as ``main/validate_node.sh``."""

    kind: FailureClass
    test: str


class Pause(NamedTuple):
    """A pilot's deliberate sleep after a failure, so that retries do not drain the site."""

    start_us: int
    end_us: int
    evidence: Evidence


class StarterRun(NamedTuple):
    """One run of a job in a starter's log.

    The log has no GlobalJobId: ``job`` is ``cluster.proc`` of the schedd on ``submitter``, and
    the number of the shadow start is not known.

    - ``start_us``: when the program was started, else when the starter was; ``end_us``: when the
      program exited, else the starter.
    - ``ending.own_accord`` is False if HTCondor had begun to end the program (a program that
      catches SIGTERM exits with status 0, and GlideinWMS counts it as good).
    - ``unsent``: the exit could not be sent to the shadow: the job will run again.
    """

    job: str
    submitter: str
    start_us: int
    end_us: int | None
    ending: Ending = Ending()
    unsent: bool = False


class PilotOutput(NamedTuple):
    """The output of one pilot (stdout and stderr together).

    - ``start_us``, ``end_us``: of glidein_startup.sh.  Without an end it was killed hard, or still
      runs; without a start it returned nothing, or nothing usable.
    - ``validation_end_us``: when the last script started, or the failing test had ended.
    - ``validation`` is FAILED only if HTCondor never started; ``failure`` and ``pause`` are also
      set where HTCondor started and ended badly.
    - ``condor_start_us``, ``condor_end_us``: of condor_master.
    - ``registered``: False if HTCondor started, no job ran, and it ran for less than
      ``LEAST_CONDOR_S``, or its daemons could not update a collector; None: not known.
    - ``activations``: how often a claim was activated.
    - ``records``: of the embedded StartdHistoryLog; ``runs``: of starter logs, without those that
      the history has.
    - ``written_us``: when the files were last written.
    - ``logs``: the names of the embedded logs.
    - ``tests``, ``more_tests``: as ``OutputFacts`` has them.
    - ``at_us``: the time at which it counts: its pilot's end, else when it was last written.
    """

    path: str
    name: PilotName = PilotName()
    start_us: int | None = None
    end_us: int | None = None
    validation: Validation = Validation.UNKNOWN
    validation_end_us: int | None = None
    failure: Failure | None = None
    pause: Pause | None = None
    condor_start_us: int | None = None
    condor_end_us: int | None = None
    cores: int | None = None
    memory_mib: int | None = None
    gpus: int | None = None
    offered_cores: int | None = None
    offered_memory_mib: int | None = None
    jobs: JobStatistics | None = None
    xml: XmlResult | None = None
    activations: int | None = None
    registered: bool | None = None
    records: tuple[JobRecord, ...] = ()
    runs: tuple[StarterRun, ...] = ()
    written_us: int | None = None
    logs: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    tests: tuple[ValidationTest, ...] = ()
    more_tests: int = 0

    @property
    def at_us(self) -> int | None:
        """The time at which it counts."""
        return self.written_us if self.end_us is None else self.end_us

    @property
    def times(self) -> list[int]:
        """All times in it, without those when its files were written."""
        times = [self.start_us, self.end_us, self.validation_end_us]
        times += [self.condor_start_us, self.condor_end_us]
        times += [self.pause.end_us if self.pause else None]
        times += [record.fact.end_us for record in self.records] + [run.end_us for run in self.runs]
        return [time_us for time_us in times if time_us is not None]


class CompletedPilot(NamedTuple):
    """A line of completed_jobs: a summary that the factory made, with all its rounding.

    - ``written_us``: when the factory wrote the line, which is after the pilot's end.
    - ``duration_s`` is None where the factory wrote -1; 0 where the output was missing.
    - ``validation``, ``idle``, ``nosuccess``, ``badput``: per-mille, cut; of the pilot's, of
      HTCondor's, of the jobs', and of the pilot's duration.  ``idle`` may be negative.
    - ``jobs``: their number; the other three are seconds.  Since v3.10.12 number and duration are
      real sums while goodput and terminated are divided by the cores.
    """

    path: str
    name: PilotName
    written_us: int | None
    duration_s: int | None
    condor_started: bool | None
    condor_s: int | None
    jobs: int | None
    jobs_s: int | None
    goodput_s: int | None
    terminated_s: int | None
    validation: int | None
    idle: int | None
    nosuccess: int | None
    badput: int | None

    @property
    def ran(self) -> bool:
        """Whether HTCondor really ran, long enough to register."""
        return bool(self.condor_started) and (self.condor_s or 0) >= LEAST_CONDOR_S

    @property
    def validation_s(self) -> int | None:
        """About how long the validation took, within a thousandth of the duration."""
        if self.validation is None or self.duration_s is None:
            return None
        return min(self.duration_s, max(0, self.validation) * self.duration_s // 1000)


class QueueState(StrEnum):
    """What happened to a pilot as a job of its factory."""

    SUBMITTED = "submitted"
    PENDING = "pending"  # it was handed to the site
    STARTED = "started"
    EVICTED = "evicted"
    HELD = "held"
    RELEASED = "released"
    ENDED = "ended"
    KILLED = "killed"  # it ended by a signal: its batch system saw its process die
    REMOVED = "removed"
    FAILED = "failed"  # it could not be started or handed over


class QueueEvent(NamedTuple):
    """One event of one pilot in the factory's queue."""

    path: str
    name: PilotName
    state: QueueState
    at_us: int

    @property
    def client(self) -> str:
        """For whom the pilot runs (frontend.group), by the log's name; empty if not known.

        >>> path = "/x/entry_A/condor_activity_20261118_fe.main.log"
        >>> QueueEvent(path, PilotName(), QueueState.ENDED, 0).client
        'fe.main'
        """
        named = EVENT_LOG.fullmatch(self.path.rpartition("/")[2])
        return (named["client"] or "") if named else ""


class CentralKind(StrEnum):
    """The kind of a line of a central log."""

    PILOT_END = "pilot_end"
    EXIT_UNSENT = "exit_unsent"  # Failed to send job exit status to shadow
    CONTAINER_FAILURE = "container_failure"
    OTHER = "other"


class CentralEvent(NamedTuple):
    """A line of a central log; ``exit_code`` is condor_master's at a pilot's end."""

    path: str
    name: PilotName
    kind: CentralKind
    at_us: int
    program: str
    slot: str
    message: str
    exit_code: int | None = None


FileFact: TypeAlias = PilotOutput | CompletedPilot | QueueEvent | CentralEvent


def synthetic_name(number: str, user: str, instance: str, entry: str) -> str:
    """Return a pilot's own name; ``number`` is ``cluster.proc``.

    >>> synthetic_name("7.0", "fe", "i", "E"), synthetic_name("7.0", "", "i", "E")
    ('7.0@fe:i.E', '7.0@i.E')
    """
    return f"{number}@{user}:{instance}.{entry}" if user else f"{number}@{instance}.{entry}"


def is_synthetic(name: str) -> bool:
    """Return whether a pilot has such a name, and not a startd's.

    >>> is_synthetic("7.0@fe:i.E"), is_synthetic("glidein_1@n"), is_synthetic("")
    (True, False, False)
    """
    return is_number(name[:1])


def same_user(name: str, user: str) -> bool:
    """Return whether a pilot of that name may be a user's; where no user is known, any may.

    >>> same_user("7.0@fe:i.E", "fe2"), same_user("7.0@i.E", "fe2"), same_user("glidein_1@n", "f")
    (False, True, True)
    """
    owner, colon, _ = name.partition("@")[2].partition(":")
    return not (user and colon and is_synthetic(name)) or owner == user


def client_name(frontend: str, group: str) -> str:
    """Return for whom a pilot runs, ``frontend.group``; empty if neither is known.

    Frontends differ in whether GLIDECLIENT_Name has the group in it already.

    >>> client_name("fe.main", "main"), client_name("UCSD-v5.3", "main"), client_name("fe", "")
    ('fe.main', 'UCSD-v5.3.main', 'fe')
    """
    if group and frontend.endswith(f".{group}"):
        return frontend
    return ".".join(part for part in (frontend, group) if part)
