"""The ads that tell of the model's runs: claims, as startds have them, and records of histories.

Which attributes a record has, and what they say, is as real schedds write it
(tests/recordings/histories).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tests.pool.adtext import literal
from tests.pool.feign import Ad, Expr
from tests.recordings.kinds import Kind
from tests.recordings.runs import Ended, How, Left, Run, node
from tests.recordings.simulation import Pilot
from tests.recordings.world import DOMAIN

Record = dict[str, str]

BEGINS_S = 12  # from a run's start until its program runs


class Failure(NamedTuple):
    """How HTCondor tells of a failure: code, subcode and the reason's text."""

    code: int
    subcode: int
    reason: str = ""


_VACATED: Mapping[How, Failure] = MappingProxyType(
    {
        How.STAGE_IN: Failure(13, 256, "Transfer input files failure at execution point"),
        How.CONTAINER: Failure(45, 0),
        How.NO_OUTPUT: Failure(12, 2, "Transfer output files failure at execution point"),
        How.HELD_FOR_MEMORY: Failure(34, 0),
        How.REMOVED: Failure(0, 0),
        How.HELD_BY_USER: Failure(0, 0),
        How.EVICTED: Failure(1005, 0),
        How.LOST: Failure(1008, 0),
    }
)
_NEVER_BEGAN = (How.STAGE_IN, How.CONTAINER)
_KILLED = (How.REMOVED, How.HELD_BY_USER, How.HELD_FOR_MEMORY, How.EVICTED)


def startd(pilot: Pilot) -> str:
    """The name of a pilot's startd."""
    return f"glidein_{pilot.serial}@{node(pilot)}"


def claim(run: Run, pilot: Pilot, kinds: tuple[Kind, ...], address: str) -> Ad:
    """The dynamic slot in which a run is, as far as anybody asks for it."""
    kind = kinds[run.kind]
    ad: Ad = {
        "MyType": "Machine",
        "Name": f"slot1_{run.slot}@{startd(pilot)}",
        "Machine": node(pilot),
        "MyAddress": address,
        "StartdIpAddr": address,
        "HasStartDaemonAd": True,
        "DaemonStartTime": pilot.started,
        "SlotType": "Dynamic",
        "DynamicSlot": True,
        "SlotID": 1,
        "DSlotId": run.slot,
        "State": "Claimed",
        "Activity": "Busy",
        "Cpus": kind.cores,
        "Memory": kind.memory_mib,
        "GlobalJobId": run.job.id,
        "JobId": f"{run.job.cluster}.{run.job.proc}",
        "JobStart": run.start + 1,
        "RemoteOwner": f"{kind.owner}@{DOMAIN}",
        "RemoteUser": f"{kind.owner}@{DOMAIN}",
        "Requirements": Expr("START"),
    }
    return ad | ({"GPUs": kind.gpus} if kind.gpus else {})


def epoch(done: Ended, kinds: tuple[Kind, ...]) -> Record:
    """What its shadow writes of a run into the epoch history."""
    run, pilot = done.run, done.pilot
    ad = _common(done, kinds[run.kind], "JOB_") | {
        "EpochWriteDate": done.written,
        "EnteredCurrentStatus": run.start,
        "RemoteHost": f"slot1_{run.slot}@{startd(pilot)}",
        "PublicClaimId": _claim(run, pilot),
    }
    return _texts(ad)


def history(left: Left, kinds: tuple[Kind, ...]) -> Record:
    """What the schedd writes of a job that leaves its queue."""
    done = left.last
    run, pilot = done.run, done.pilot
    ad = _common(done, kinds[run.kind], "MATCH_EXP_JOB_") | {
        "EnteredCurrentStatus": left.at,
        "JobStatus": 3 if left.removed else 4,
        "LastJobStatus": 5 if left.held else 2,
        "LastRemoteHost": f"slot1_{run.slot}@{startd(pilot)}",
        "LastPublicClaimId": _claim(run, pilot),
        "LastRemoteWallClockTime": float(done.written - run.start),
    }
    if not left.removed:
        ad["CompletionDate"] = left.at
    if left.removed:
        ad["LastVacateTime"] = done.written
    if left.held:
        failure = _VACATED[done.how]
        user = done.how is How.HELD_BY_USER
        ad["LastHoldReasonCode"] = 1 if user else failure.code
        ad["LastHoldReasonSubCode"] = failure.subcode
        ad["LastHoldReason"] = failure.reason
    return _texts(ad)


def _claim(run: Run, pilot: Pilot) -> str:
    return f"<192.0.2.1:9618?sock=startd>#{pilot.started}#{run.claim}#..."


def _common(done: Ended, kind: Kind, prefix: str) -> Ad:
    run, pilot, how = done.run, done.pilot, done.how
    ad: Ad = {
        "GlobalJobId": run.job.id,
        "NumShadowStarts": run.number,
        "JobUniverse": 5,
        "Owner": kind.owner,
        "User": f"{kind.owner}@{DOMAIN}",
        "Cmd": f"/home/{kind.owner}/{kind.name}.sh",
        "JobStartDate": run.first,
        "JobCurrentStartDate": run.start,
        "RequestCpus": kind.cores,
        "RequestMemory": kind.memory_mib,
        "CpusProvisioned": kind.cores,
        "MemoryProvisioned": kind.memory_mib,
        "ExitBySignal": how is How.SIGNAL or how in _KILLED,
        f"{prefix}GLIDEIN_Site": pilot.entry.site,
        f"{prefix}GLIDEIN_Entry_Name": pilot.entry.name,
        f"{prefix}GLIDECLIENT_Name": pilot.group,
        f"{prefix}GLIDECLIENT_Group": pilot.group.rpartition(".")[2],
    }
    if run.number > 1:
        ad["JobLastStartDate"] = run.last
    if kind.gpus:
        ad |= {"RequestGPUs": kind.gpus, "GPUsProvisioned": kind.gpus}
    if how not in _NEVER_BEGAN:
        ad["JobCurrentStartExecutingDate"] = run.start + BEGINS_S
    if how in (How.EXIT, How.SIGNAL, How.RETRIED, How.NO_OUTPUT):
        ad |= _exited(done)
    elif how in _KILLED:
        ad["ExitSignal"] = 15
    if how is How.LOST:
        ad["JobDisconnectedDate"] = done.end + 5
    failure = _VACATED.get(how)
    if failure is not None:
        ad["VacateReasonCode"] = failure.code
        ad["VacateReasonSubCode"] = failure.subcode
        ad["VacateReason"] = failure.reason
    return ad


def _exited(done: Ended) -> Ad:
    """A program that ended itself, and what was done with its output."""
    by_signal, end = done.how is How.SIGNAL, done.end
    what, number = ("ExitSignal", 11) if by_signal else ("ExitCode", done.run.plan.code)
    told = (
        f'[ How = "OF_ITS_OWN_ACCORD"; Who = "itself"; When = {end}; HowCode = 0; '
        f"{what} = {number}; ExitBySignal = {str(by_signal).lower()} ]"
    )
    ad: Ad = {what: number, "ToE": Expr(told), "JobCurrentStartTransferOutputDate": end}
    if done.how is How.NO_OUTPUT:
        return ad | {"TransferOutStarted": end}
    return ad | {"JobCurrentFinishTransferOutputDate": end, "TransferOutFinished": end}


def _texts(ad: Ad) -> Record:
    return {name: literal(value) for name, value in ad.items()}
