"""What sources report of one run.

Units: times are microseconds since the epoch, memory is MiB.

How facts of several sources become one run is in ``gwmond.pilots.life.merged_runs``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import NamedTuple

from gwmond.model.facts import Size
from gwmond.model.runs.endings import Ending


class Source(StrEnum):
    """Where a fact is from; best first unless a rule says otherwise."""

    STARTD_HISTORY = "startd_history"
    EPOCH_HISTORY = "epoch_history"
    SCHEDD_HISTORY = "schedd_history"
    STARTER_LOG = "starter_log"
    CENTRAL_LOG = "central_log"
    LIVE_SLOT = "live_slot"
    INFERRED = "inferred"  # no record: that it was over was waited for, and then assumed
    TRANSFERS = "transfers"  # a record of files that plugins transferred; it tells of no end
    SUMMARY = "summary"  # a line of the factory's completed_jobs, for all jobs of a pilot


class Transfer(NamedTuple):
    """Files that one run was sent (input), or sent back (output).

    ``queued_us``: since when it waited, for a place in the schedd's queue of transfers or else;
    ``start_us``, ``end_us``: of the transfer itself; ``total``: bytes of this and all earlier runs
    of the job, as the shadow counts them; ``moved``: bytes of this run alone.
    """

    queued_us: int | None = None
    start_us: int | None = None
    end_us: int | None = None
    total: int | None = None
    moved: int | None = None


class Move(NamedTuple):
    """Files of one run that a plugin transferred from or to one server, or tried to.

    ``way``: ``input`` or ``output``; ``protocol``, ``host``: of the URL, or of the cache or storage
    that the plugin names (empty: it names none); ``plugin``: the file name of its program.
    ``files`` arrived, ``failed`` did not in the end; ``again``: attempts that failed before another
    one was made.  ``moved``: bytes; ``took_us``: how long that lasted; ``start_us``: when the first
    began; None where the record does not say.  ``end_us``: when the last ended, or was recorded.
    """

    way: str
    protocol: str
    host: str
    plugin: str
    end_us: int
    files: int = 0
    failed: int = 0
    again: int = 0
    moved: int | None = None
    took_us: int | None = None
    start_us: int | None = None

    @property
    def server(self) -> str:
        """The way, the protocol and the host, as ``Ending.failed_transfer`` has them."""
        return " ".join(filter(None, self[:3]))


class Used(NamedTuple):
    """What a job used: the most memory (MiB) that it held so far, cores on average in this run.

    The memory is that of the earlier runs where these held more.  ``gpus``: how many of them
    computed, on average.
    """

    memory_mib: float | None = None
    cores: float | None = None
    gpus: float | None = None


class JobFact(NamedTuple):
    """What a record of a run has on its job as a whole.

    - ``queued_us``: QDate.  ``procs``: TotalSubmitProcs, how many were submitted with it.
    - ``traceparent``, ``tracestate``: W3C Trace Context of whoever submitted it, or empty.
    - ``left_us``, ``status``: when the job left the queue, with which JobStatus; only a schedd's
      history has that.
    - ``wants``: what identifies its Requirements and requests (see ``DemandGroup``), or empty.
    - ``project``, ``accounting_group``: for whom it is: ProjectName, AcctGroup; empty if it has
      none.
    """

    queued_us: int | None = None
    procs: int | None = None
    traceparent: str = ""
    tracestate: str = ""
    left_us: int | None = None
    status: int | None = None
    wants: str = ""
    project: str = ""
    accounting_group: str = ""


class RunFact(NamedTuple):
    """What one record of one source reports on one run; None where it does not.

    ``written_us`` is when the record was made: of two of one source (a job that is held as it ends
    leaves two epoch ads) the later decides.  ``pilot`` identifies the pilot across sources.
    ``start_us`` is JobCurrentStartDate, which is the schedd's and the same in all histories; only
    in a slot ad it is when the claim was activated (JobStart), by the collector's clock.
    ``activated_us`` is the same by the startd's clock, where that differs.
    ``executing_us`` is when the program began, after its input was transferred.
    ``shadow_start`` is NumShadowStarts: which run of the job it is.
    ``moves``: what plugins transferred; only a record of transfers has them.
    ``yields``: its pilot gives its cores and memory to the next job while it sends its output.
    """

    source: Source
    job: str
    shadow_start: int | None
    written_us: int
    pilot: str | None = None
    start_us: int | None = None
    end_us: int | None = None
    size: Size | None = None
    user: str | None = None
    job_group: str | None = None
    ending: Ending = Ending()
    activated_us: int | None = None
    executing_us: int | None = None
    transfer_in: Transfer | None = None
    transfer_out: Transfer | None = None
    about_job: JobFact | None = None
    used: Used | None = None
    yields: bool = False
    moves: tuple[Move, ...] = ()


class JobRecord(NamedTuple):
    """One record of one run of one job; ``fact.pilot`` is None until the pilot is found.

    - ``startd``: the startd's name, what follows the first ``@`` of RemoteHost or of a slot's Name.
    - ``slot``: what precedes it, such as ``slot1_2``; empty where it is not known.
    - ``started``: its DaemonStartTime (epoch seconds, the middle of PublicClaimId), if known.
    - ``factory_job``: its pilot as a job of its factory (``schedd#cluster.proc``), as the job has
      it.
    - ``site``, ``entry``, ``group``, ``factory``: its pilot's, as the job has them, else empty;
      they only count for a pilot that no collector has shown.
    """

    fact: RunFact
    startd: str
    started: int | None = None
    site: str = ""
    entry: str = ""
    group: str = ""
    slot: str = ""
    factory: str = ""
    factory_job: str = ""

    def is_on(self, slots: Collection[str]) -> bool:
        """Return whether it ran on one of these slots, or on a dynamic slot of one."""
        return bool(slots) and self.slot.partition("_")[0] in slots


def used_of(facts: Sequence[RunFact]) -> Used:
    """Return the use of resources by the records of a run; an epoch history's is exact."""
    exact = sorted(facts, key=lambda fact: fact.source is not Source.EPOCH_HISTORY)
    uses = [fact.used for fact in exact if fact.used is not None]
    return Used(
        next((used.memory_mib for used in uses if used.memory_mib is not None), None),
        next((used.cores for used in uses if used.cores is not None), None),
        next((used.gpus for used in uses if used.gpus is not None), None),
    )


def group_name(user: str, program: str, batch: str) -> str:
    """Return the name of a job's group, as the ledger has it; the batch may be empty.

    >>> group_name("eve", "run.sh", ""), group_name("eve", "n1", "DAG 7")
    ('eve run.sh', 'eve n1 [DAG 7]')
    """
    return f"{user} {program} [{batch}]" if batch else f"{user} {program}"
