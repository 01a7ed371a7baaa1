"""Sources: records of job runs, in three histories.

Attributes as in HTCondor's manual, "Job ClassAd Attributes"; what each holds in which history was
measured with HTCondor 23.9.6 and 25.14.1 (tests/recordings/histories, docs/attributes.md).

- ``epochs``: a schedd's epoch history, an ad for each run, written by its shadow
  (condor_utils/job_ad_instance_recording.cpp).  A job that is held as it ends may leave two.
- ``history``: a schedd's history, an ad for each job that has left the queue, about its last run.
- ``startd_history``: a startd's, an ad for each run that ended while the startd lived.
- ``transfers``: in a schedd's epoch history, an ad for the input and one for the output of a run,
  where plugins transferred files (``transfers``).

Which attributes are of this run, and not of the one before it, ``history_endings`` says.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from gwmond.model.cursor_kinds import TRANSFERS
from gwmond.model.facts import Size
from gwmond.model.pilots.file_facts import PilotName, client_name
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import (
    JobFact,
    JobRecord,
    RunFact,
    Source,
    Transfer,
    Used,
    group_name,
)
from gwmond.model.times import SECOND_US
from gwmond.model.units import MAX_CORES, MAX_MEMORY_MIB
from gwmond.sources.htcondor import ads, pilot_ads
from gwmond.sources.htcondor.access import Query
from gwmond.sources.htcondor.histories import history_endings, transfers
from gwmond.sources.htcondor.histories.history_endings import EPOCHS_S, RecordedRun, epoch

if TYPE_CHECKING:
    import classad2

_NOT_ON_A_SLOT = frozenset({7, 9, 12})  # universes: scheduler, grid, local
_SIZES = (
    ("CpusProvisioned", "MemoryProvisioned", "GPUsProvisioned"),
    ("RequestCpus", "RequestMemory", "RequestGPUs"),
)
_SLOT = re.compile(r"([A-Za-z]+[0-9]+(?:_[0-9]+)*)@(.+)")
_NUMBER = re.compile(r"[0-9]{1,10}")
_CLAIM = re.compile(r">#([0-9]+)#[0-9]+#")
_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_VARIABLE = re.compile(rf"(?:^|[\s;'\"])TRACEPARENT='?({_TRACEPARENT.pattern})(?=$|[\s;'\"])")
_ENVIRONMENT = ("Environment", "Env")
_TRACESTATE = re.compile(r"[!-~][ -~]{0,511}")
_MOST_BYTES = 1 << 62
_SIZE = "SizeBytesLastRun"


class PilotAttributes(NamedTuple):
    """Attributes by which a job's ad in the schedd names the pilot of its last run.

    GlideinWMS's template for schedds has ``JOB_X = "$$(X:Unknown)"`` for site, entry and the job of
    the factory, not for the frontend (install/templates/02_gwms_schedds.config); values are texts.
    Of JOB_X = "$$(Y:Unknown)" the schedd makes MATCH_EXP_JOB_X and MATCH_Y.  The ad which the
    shadow and the startd are given has JOB_X itself expanded, but MATCH_... of the run *before*
    (measured); so in their histories JOB_X is looked up instead.
    """

    site: tuple[str, ...] = (
        *("MATCH_EXP_JOB_GLIDEIN_Site", "MATCH_GLIDEIN_Site", "MATCH_EXP_JOB_Site"),
        *("MATCH_EXP_JOBGLIDEIN_ResourceName", "MATCH_GLIDEIN_ResourceName"),
    )
    entry: tuple[str, ...] = ("MATCH_EXP_JOB_GLIDEIN_Entry_Name", "MATCH_GLIDEIN_Entry_Name")
    frontend: tuple[str, ...] = ("MATCH_EXP_JOB_GLIDECLIENT_Name", "MATCH_GLIDECLIENT_Name")
    group: tuple[str, ...] = ("MATCH_EXP_JOB_GLIDECLIENT_Group", "MATCH_GLIDECLIENT_Group")
    factory: tuple[str, ...] = ("MATCH_EXP_JOB_GLIDEIN_Factory", "MATCH_GLIDEIN_Factory")
    schedd: tuple[str, ...] = ("MATCH_EXP_JOB_GLIDEIN_Schedd", "MATCH_GLIDEIN_Schedd")
    cluster: tuple[str, ...] = ("MATCH_EXP_JOB_GLIDEIN_ClusterId", "MATCH_GLIDEIN_ClusterId")
    proc: tuple[str, ...] = ("MATCH_EXP_JOB_GLIDEIN_ProcId", "MATCH_GLIDEIN_ProcId")


PILOT = PilotAttributes()

_ALL = (
    *("GlobalJobId", "NumShadowStarts", "JobUniverse", "Owner", "User", "Cmd"),
    *("DAGManJobId", "JobBatchName"),
    *("JobCurrentStartDate", "JobStartDate", "JobLastStartDate", "EnteredCurrentStatus"),
    *("CpusProvisioned", "MemoryProvisioned", "GPUsProvisioned"),
    *("RequestCpus", "RequestMemory", "RequestGPUs"),
    *("ExitBySignal", "ExitCode", "ExitSignal"),
    *("OnExitRemove", "NumJobCompletions", "JobMaxRetries", "JobSuccessExitCode"),
    *("VacateReasonCode", "VacateReasonSubCode", "VacateReason"),
    *("HoldReasonCode", "HoldReasonSubCode", "HoldReason"),
    *("QDate", "TotalSubmitProcs", "TraceParent", "TraceState", "ProjectName", "AcctGroup"),
)
_OF_SHADOW = (
    *("JobCurrentStartExecutingDate", "JobDisconnectedDate"),
    *("JobCurrentStartTransferOutputDate", "JobCurrentFinishTransferOutputDate"),
    *("TransferOutStarted", "TransferOutFinished", "TransferOutQueued", "BytesSent"),
    *("JobCurrentStartTransferInputDate", "JobCurrentFinishTransferInputDate"),
    *("TransferInQueued", "TransferInStarted", "TransferInFinished", "BytesRecvd"),
    *("MemoryUsage", "ResidentSetSize", "CpusUsage", "GPUsAverageUsage"),
    *("TransferInputStats", "TransferOutputStats"),
)


class History(NamedTuple):
    """One kind of history.

    - ``names``: the projection.  Never Environment or Arguments; the *public* claim id has no
      secret.
    - ``constraint``: what is left at the daemon.
    - ``time``: when a record was written or, of ``history``, when the job got its last state: a
      job with LeaveJobInQueue is written long after that.
    - ``key``: what identifies a record.
    """

    source: Source
    time: str
    host: str
    claim: str
    key: tuple[str, ...]
    names: tuple[str, ...]
    constraint: str = "true"


KINDS = {
    "epochs": History(
        Source.EPOCH_HISTORY,
        time="EpochWriteDate",
        host="RemoteHost",
        claim="PublicClaimId",
        # The two ads of a run that a policy holds have the same date.
        key=("GlobalJobId", "NumShadowStarts", "EpochWriteDate", "HoldReasonCode"),
        names=(*_ALL, "Requirements", *_OF_SHADOW, "EpochWriteDate", "RemoteHost", "PublicClaimId"),
    ),
    "history": History(
        Source.SCHEDD_HISTORY,
        time="EnteredCurrentStatus",
        host="LastRemoteHost",
        claim="LastPublicClaimId",
        key=("GlobalJobId",),
        names=(
            *(*_ALL, "Requirements", *_OF_SHADOW, "LastRemoteHost", "LastPublicClaimId"),
            *("CompletionDate", "JobStatus", "LastJobStatus", "LastVacateTime"),
            *("RemoteWallClockTime", "LastRemoteWallClockTime"),
            *("LastHoldReasonCode", "LastHoldReasonSubCode", "LastHoldReason"),
        ),
        # Thousands of jobs may be removed at once that never ran.
        constraint="NumShadowStarts > 0",
    ),
    "startd_history": History(
        Source.STARTD_HISTORY,
        time="CompletionDate",
        host="RemoteHost",
        claim="PublicClaimId",
        key=("GlobalJobId", "NumShadowStarts", "CompletionDate"),
        names=(
            *(*_ALL, "RemoteHost", "PublicClaimId", "CompletionDate", "RemoteWallClockTime"),
            *("StarterExitStatus", "BadputCausedByDraining", "BadputCausedByPreemption"),
            *("ToE", "ExecuteDirWasEncrypted"),
        ),
    ),
    TRANSFERS: History(
        Source.TRANSFERS,
        time="EpochWriteDate",
        host="RemoteHost",
        claim="",
        key=("GlobalJobId", "NumShadowStarts", "EpochWriteDate", "EpochAdType"),
        names=(
            *("GlobalJobId", "NumShadowStarts", "RemoteHost", "EpochWriteDate", "EpochAdType"),
            *(name for names in transfers.LISTS.values() for name in names),
        ),
    ),
}
_NAME_SLOTS = (25, 7)  # HTCondor's release notes: RemoteHost in records of transfers
_VERSION = re.compile(r"CondorVersion: ([0-9]{1,3})\.([0-9]{1,3})\.")


def has_transfers(version: str) -> bool:
    """Return whether records of transfers of a schedd of this CondorVersion can be placed.

    >>> has_transfers("$CondorVersion: 25.14.1 2026-09-24 $"), has_transfers("23.9.6")
    (True, False)
    """
    match = _VERSION.search(version)
    return match is not None and (int(match[1]), int(match[2])) >= _NAME_SLOTS


@lru_cache
def names_in(kind: str) -> PilotAttributes:
    """Return the attributes of one kind of history that say which pilot this run was on."""
    if kind == "history":
        return PILOT
    prefix = "MATCH_EXP_"
    return PilotAttributes(
        *(tuple(n.removeprefix(prefix) for n in names if n.startswith(prefix)) for names in PILOT)
    )


def query(kind: str, constraint: str = "", *, environment: bool = False) -> Query:
    """Return the query for one kind of history; ``environment``: see ``_carried``."""
    base = KINDS[kind].constraint
    names = KINDS[kind].names
    if kind != TRANSFERS:
        names += tuple(name for names in names_in(kind) for name in names)
        names += _ENVIRONMENT if environment else ()
    return Query(kind, "", f"{base} && ({constraint})" if constraint else base, names)


def written(kind: str, ad: classad2.ClassAd) -> int:
    """Return a record's time (epoch seconds), 0 if it has none, as the windows have it."""
    return ads.integer(ad, KINDS[kind].time) or 0


def decode(
    kind: str, ad: classad2.ClassAd, *, environment: bool = False
) -> JobRecord | ProblemName | None:
    """Turn an ad of a history into a record; a word says what is wrong with it.

    None: the job never ran on a slot.
    """
    history = KINDS[kind]
    if ads.integer(ad, "JobUniverse") in _NOT_ON_A_SLOT:
        return None
    job, number = ads.text(ad, "GlobalJobId"), ads.count(ad, "NumShadowStarts")
    host = ads.text(ad, history.host)
    if kind == "history" and (not number or host is None):
        return None
    if job is None or not number or host is None:
        missing = ProblemName.NO_HOST if host is None else ProblemName.NO_RUN
        return ProblemName.NO_JOB if job is None else missing
    if kind == TRANSFERS:
        return _transferred(ad, job, number, host)
    run = RecordedRun(ad, number, epoch(ad, "JobCurrentStartDate"))
    end, ending = history_endings.DECODERS[kind](run)
    when = epoch(ad, history.time) or end or epoch(ad, "EnteredCurrentStatus")
    if when is None:
        return ProblemName.NO_TIME
    named = PilotName(**_pilot_names(kind, ad))
    return JobRecord(
        fact=_fact(kind, run, job, when, end, ending, _carried(ad) if environment else ""),
        startd=startd_of(host),
        started=started_of(ads.text(ad, history.claim) or ""),
        site=named.site,
        entry=named.entry,
        group=client_name(named.frontend, named.group),
        slot=slot_of(host),
        factory=named.factory,
        factory_job=named.factory_job,
    )


def _transferred(
    ad: classad2.ClassAd, job: str, number: int, host: str
) -> JobRecord | ProblemName | None:
    """Return a record of transfers as one of the run; None: it has no file."""
    when = epoch(ad, KINDS[TRANSFERS].time)
    if when is None:
        return ProblemName.NO_TIME
    moves = transfers.moves_of(ad, when * SECOND_US)
    ending = Ending(failed_transfer=transfers.failed_of(moves))
    fact = RunFact(Source.TRANSFERS, job, number, when * SECOND_US, ending=ending, moves=moves)
    return JobRecord(fact, startd_of(host), slot=slot_of(host)) if moves else None


def _fact(
    kind: str, run: RecordedRun, job: str, when: int, end: int | None, ending: Ending, carried: str
) -> RunFact:
    user = ads.label(run.ad, ("User", "Owner"))
    program = ads.text(run.ad, "Cmd")
    executing = history_endings.executing(kind, run, ending.began)
    return RunFact(
        source=KINDS[kind].source,
        job=job,
        shadow_start=run.number,
        written_us=when * SECOND_US,
        start_us=None if run.start is None else run.start * SECOND_US,
        # A clock that is behind: it did not end before it began.
        end_us=None if end is None else max(end, run.start or 0) * SECOND_US,
        size=size_of(run.ad),
        user=user,
        job_group=None if program is None else group_name(user or "", _name(program), _batch(run)),
        ending=ending,
        executing_us=None if executing is None else executing * SECOND_US,
        transfer_in=_transfer(kind, run, "In", "Input", "BytesRecvd"),
        transfer_out=_transfer(kind, run, "Out", "Output", "BytesSent"),
        about_job=_about(kind, run.ad, carried),
        used=None if executing is None or kind == "startd_history" else _used(run.ad),
    )


def _transfer(kind: str, run: RecordedRun, way: str, files: str, counter: str) -> Transfer | None:
    """Return what a shadow wrote on a transfer of this run; None if it made none.

    Transfer...Started is when the files began to move, JobCurrentStartTransfer...Date, which is
    written only after the run, when the starter began with them (remoteresource.cpp): before that
    if it had to wait.  Both may be of the run before.
    """
    if kind == "startd_history":
        return None

    def date(*names: str) -> int | None:
        at = next((at for name in names if (at := run.date(name)) is not None), None)
        return None if at is None else at * SECOND_US

    begun = date(f"JobCurrentStartTransfer{files}Date")
    start = date(f"Transfer{way}Started") or begun
    if start is None:
        return None
    asked = date(f"Transfer{way}Queued")
    if begun is not None and begun < start:
        asked = begun if asked is None else min(begun, asked)
    end = date(f"Transfer{way}Finished", f"JobCurrentFinishTransfer{files}Date")
    total, moved = _bytes(run, counter, f"Transfer{files}Stats")
    return Transfer(
        queued_us=asked,
        start_us=start,
        end_us=None if end is None or end < start else end,
        total=total,
        moved=moved,
    )


def _used(ad: classad2.ClassAd) -> Used | None:
    """Return what a shadow wrote on the use of memory, cores and GPUs; None if nothing.

    MemoryUsage is an expression of ResidentSetSize (KiB), unless a cgroup measured it.  The schedd
    rounds ResidentSetSize up, by less than a quarter; 0 is what was never measured.  A second run
    begins with the memory of the first (measured, HTCondor 23.9.6 and 25.14.1).
    GPUsAverageUsage is there where the pilot's startd watches GPUs (``use feature:GPUsMonitor``).
    """
    memory_mib, kib = ads.number(ad, "MemoryUsage"), ads.number(ad, "ResidentSetSize")
    memory_mib = memory_mib or (None if kib is None else kib / 1024)
    cores, gpus = ads.number(ad, "CpusUsage"), ads.number(ad, "GPUsAverageUsage")
    used = Used(
        memory_mib if memory_mib and 0 < memory_mib < MAX_MEMORY_MIB else None,
        cores if cores is not None and 0 <= cores < MAX_CORES else None,
        gpus if gpus is not None and 0 <= gpus < MAX_CORES else None,
    )
    return None if used == Used() else used


def _bytes(run: RecordedRun, counter: str, stats: str) -> tuple[int | None, int | None]:
    """Return the bytes of this and all earlier runs of a job, and those of this run.

    ...Stats has files and bytes by protocol; until HTCondor 24 bytes of plugins' protocols only,
    which the shadow's own counter lacks there (measured).  So that is whole of a first run only.
    """
    counted = ads.number(run.ad, counter)
    total = None if counted is None or not 0 <= counted < _MOST_BYTES else int(counted)
    counts: Any = ads.evaluate(run.ad, stats)
    if type(counts).__name__ != "ClassAd":
        return total, None
    sizes = [ads.count(counts, name) for name in counts if name.endswith(_SIZE)]
    moved = sum(size or 0 for size in sizes)
    if f"Cedar{_SIZE}" in counts or "CedarFilesCountLastRun" not in counts:
        return total, moved
    if not moved:
        return total, None
    return None, moved + total if run.number == 1 and total is not None else None


def _about(kind: str, ad: classad2.ClassAd, carried: str) -> JobFact | None:
    """Return what a record has on the job as a whole; None if it has nothing."""
    queued = epoch(ad, "QDate")
    left = epoch(ad, "EnteredCurrentStatus") if kind == "history" else None
    fact = JobFact(
        queued_us=None if queued is None else queued * SECOND_US,
        procs=ads.count(ad, "TotalSubmitProcs"),
        traceparent=_matching(_TRACEPARENT, ads.text(ad, "TraceParent")) or carried,
        tracestate=_matching(_TRACESTATE, ads.text(ad, "TraceState")),
        left_us=None if left is None else left * SECOND_US,
        status=ads.count(ad, "JobStatus") if left is not None else None,
        wants=ads.wants_of(ad) if kind != "startd_history" else "",
        project=ads.label(ad, ("ProjectName",)) or "",
        accounting_group=ads.label(ad, ("AcctGroup",)) or "",
    )
    return None if fact == JobFact() else fact


def _carried(ad: classad2.ClassAd) -> str:
    """Return the traceparent in a job's environment; else nothing.

    The only reader of an environment, by the setting ``[traces] read_environment``: it runs in the
    child, and returns 55 characters of a fixed form or none.  A variable is NAME=VALUE, perhaps
    quoted, between blanks (or ``;``, in jobs of old submitters).
    """
    for name in _ENVIRONMENT:
        match = _VARIABLE.search(ads.raw(ad, name) or "")
        if match is not None:
            return match[1]
    return ""


def _matching(form: re.Pattern[str], text: str | None) -> str:
    """Return a text of this form, else nothing."""
    return text if text is not None and form.fullmatch(text) else ""


def _batch(run: RecordedRun) -> str:
    """Return the DAG that a job is of, else its batch name, else nothing."""
    dag = ads.count(run.ad, "DAGManJobId")
    return f"DAG {dag}" if dag else ads.label(run.ad, ("JobBatchName",)) or ""


@lru_cache(maxsize=4096)
def _name(program: str) -> str:
    return ads.printable(PurePosixPath(program).name)


def size_of(ad: classad2.ClassAd) -> Size | None:
    """Return the size that the run was given, else its request; None if neither is a size."""
    sizes = (pilot_ads.size_of(ad, names) for names in _SIZES)
    return next((size for size in sizes if size is not None), None)


def startd_of(host: str) -> str:
    """Return the startd's name of a slot's.

    >>> startd_of("slot1_2@glidein_1_2@node"), startd_of("glidein_1_2@node"), startd_of("node")
    ('glidein_1_2@node', 'glidein_1_2@node', 'node')
    """
    match = _SLOT.fullmatch(host)
    return match[2] if match else host


def slot_of(host: str) -> str:
    """Return the name of a slot at its startd, empty where there is none.

    >>> slot_of("slot1_2@glidein_1_2@node"), slot_of("node")
    ('slot1_2', '')
    """
    match = _SLOT.fullmatch(host)
    return sys.intern(match[1]) if match else ""


def started_of(claim: str) -> int | None:
    """Return when the startd started (epoch seconds), which the id of a claim has.

    >>> started_of("<127.0.0.1:9618?alias=node>#1795235492#2#...")
    1795235492
    """
    match = _CLAIM.search(claim)
    return int(match[1]) if match and int(match[1]) in EPOCHS_S else None


def _pilot_names(kind: str, ad: classad2.ClassAd) -> dict[str, Any]:
    """Return what a job's ad calls the pilot of its run, by the fields of ``PilotName``."""
    names = names_in(kind)._asdict()
    values: dict[str, Any] = {field: _known(ad, attributes) for field, attributes in names.items()}
    for field in ("cluster", "proc"):
        text = values[field]
        values[field] = int(text) if _NUMBER.fullmatch(text) else None
    return values


def _known(ad: classad2.ClassAd, names: tuple[str, ...]) -> str:
    for name in names:
        value = ads.label(ad, (name,))
        if value and value != "Unknown" and "$$(" not in value:
            return value
    return ""
