"""What the histories of a pool say, without anything secret, for people to look at.

The records of a pilot are asked for while it lives (``Observer`` does so in a thread), and read
from its own directory afterwards: what is only there, no monitor can have seen.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tests.build.meanwhile import Meanwhile
from tests.pool.client import ClientError, call
from tests.pool.condor import CondorPool

#: Attributes that hold no secret (no environment, no claim id but the public one).
ATTRIBUTES = (
    *("GlobalJobId", "ClusterId", "ProcId", "Owner", "NumShadowStarts", "NumJobStarts"),
    *("NumJobCompletions", "NumHolds", "QDate", "JobStatus", "LastJobStatus", "RemoteHost"),
    *("LastRemoteHost", "PublicClaimId", "LastPublicClaimId", "JobStartDate", "ShadowBday"),
    *("JobCurrentStartDate", "JobCurrentStartExecutingDate", "JobCurrentStartTransferInputDate"),
    *("JobCurrentFinishTransferInputDate", "JobCurrentStartTransferOutputDate"),
    *("JobCurrentFinishTransferOutputDate", "TransferInStarted", "TransferInFinished"),
    *("TransferOutStarted", "TransferOutFinished", "EpochWriteDate", "CompletionDate"),
    *(
        "EnteredCurrentStatus",
        "RemoteWallClockTime",
        "ActivationDuration",
        "BadputCausedByDraining",
    ),
    *("ActivationExecutionDuration", "BadputCausedByPreemption", "CpusProvisioned"),
    *("MemoryProvisioned", "GPUsProvisioned", "ExitCode", "ExitBySignal", "ExitSignal"),
    *("ExitStatus", "StarterExitStatus", "ToE", "HoldReason", "HoldReasonCode"),
    *("HoldReasonSubCode", "LastHoldReason", "LastHoldReasonCode", "LastHoldReasonSubCode"),
    *("VacateReason", "VacateReasonCode", "VacateReasonSubCode", "RemoveReason", "ReleaseReason"),
    *("JobDisconnectedDate", "ReconnectAttempts", "MachineAttrGLIDEIN_Site0", "Machine", "Name"),
    *("RunInstanceId", "EpochAdType", "JobLeaseDuration", "LastJobLeaseRenewal"),
    *("JobLastStartDate", "LastVacateTime", "RecentJobStarts", "SlotName", "StartdName"),
    *("User", "ProjectName", "AcctGroup"),
)


def ask(
    pool: CondorPool, kinds: Collection[str], timeout: float = 180, schedds: Collection[str] = ()
) -> dict[str, list[Any]]:
    """Histories of those kinds: of all startds, and of these schedds (schedd, epoch)."""
    found: dict[str, list[Any]] = call(
        "histories",
        pool.client_env(),
        timeout,
        collector=pool.collector,
        schedds=list(schedds),
        kinds=list(kinds),
        projection=ATTRIBUTES,
    )
    return found


def read_file(path: Path) -> list[dict[str, str]]:
    """The records of a history file, each attribute as the text that it is written in."""
    records: list[dict[str, str]] = [{}]
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        key, equals, value = line.partition(" = ")
        if line.startswith("***"):
            records.append({})
        elif equals and key in ATTRIBUTES:
            records[-1][key] = value
    return [record for record in records if record]


class Observer(Meanwhile):
    """Collects what the startds tell while they live; a context manager."""

    def __init__(self, pool: CondorPool, pause_s: float = 4.0) -> None:
        super().__init__(self._run)
        self._pool, self._pause_s = pool, pause_s
        self._seen: dict[str, Mapping[str, Any]] = {}
        #: errors of the bindings, and calls that took too long
        self.errors: set[str] = set()

    def _run(self) -> None:
        while not self._stop.wait(self._pause_s):
            try:
                found = ask(self._pool, ["startd"], 60)
            except (ClientError, OSError) as error:
                self.errors.add(f"{type(error).__name__}: {error}")
                continue
            self.errors.update(found["errors"])
            for record in found["startd"]:
                self._seen[json.dumps(record, sort_keys=True)] = record

    def knows(self, _pilot: str, runs: Collection[tuple[str, int]]) -> bool:
        """Return whether startds have told of all these runs."""
        seen = list(self._seen.values())
        return set(runs) <= {(record["GlobalJobId"], record["NumShadowStarts"]) for record in seen}

    def dump(self) -> dict[str, Any]:
        """All that the histories say now, and what the startds said before."""
        spools = sorted(self._pool.local.parent.glob("pilot-*/spool"))
        return {
            **ask(self._pool, ["schedd", "epoch"], schedds=self._pool.schedds),
            "startd": list(self._seen.values()),
            "startd_files": {
                spool.parent.name.removeprefix("pilot-"): read_file(spool / "startd_history")
                for spool in spools
            },
            "observer_errors": sorted(self.errors),
        }
