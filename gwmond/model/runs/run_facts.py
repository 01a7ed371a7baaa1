"""What sources report of one run.

Units: times are microseconds since the epoch, memory is MiB.

How facts of several sources become one run is in ``gwmond.pilots.life.merged_runs``.
"""

from __future__ import annotations

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


class Used(NamedTuple):
    """What a job used: the most memory (MiB) that it held so far, cores on average in this run.

    The memory is that of the earlier runs where these held more.
    """

    memory_mib: float | None = None
    cores: float | None = None


class JobFact(NamedTuple):
    """What a record of a run has on its job as a whole, for the job's trace.

    - ``queued_us``: QDate.  ``procs``: TotalSubmitProcs, how many were submitted with it.
    - ``traceparent``, ``tracestate``: W3C Trace Context of whoever submitted it, or empty.
    - ``left_us``, ``status``: when the job left the queue, with which JobStatus; only a schedd's
      history has that.
    - ``wants``: what identifies its Requirements and requests (see ``DemandGroup``), or empty.
    """

    queued_us: int | None = None
    procs: int | None = None
    traceparent: str = ""
    tracestate: str = ""
    left_us: int | None = None
    status: int | None = None
    wants: str = ""


class RunFact(NamedTuple):
    """What one record of one source reports on one run; None where it does not.

    ``written_us`` is when the record was made: of two of one source (a job that is held as it ends
    leaves two epoch ads) the later decides.  ``pilot`` identifies the pilot across sources.
    ``start_us`` is JobCurrentStartDate, which is the schedd's and the same in all histories; only
    in a slot ad it is when the claim was activated (JobStart), by the collector's clock.
    ``activated_us`` is the same by the startd's clock, where that differs.
    ``executing_us`` is when the program began, after its input was transferred.
    ``shadow_start`` is NumShadowStarts: which run of the job it is.
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
