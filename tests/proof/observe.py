"""What the histories of a pool say, without anything secret, for people to look at.

The records of a pilot are asked for while it lives (``Observer`` does so in a thread), and read
from its own directory afterwards: what is only there, no monitor can have seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.build.meanwhile import Meanwhile
from tests.pool.condor import CondorPool

_CHILD = Path(__file__).resolve().with_name("observe_child.py")

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
)


def ask(pool: CondorPool, kinds: Iterable[str], timeout: float = 180) -> dict[str, list[Any]]:
    """Histories of those kinds (schedd, epoch, startd), asked for through the bindings."""
    request = {
        "collector": pool.collector,
        "kinds": list(kinds),
        "projection": ATTRIBUTES,
        "schedds": pool.schedds,
    }
    finished = subprocess.run(
        [sys.executable, "-P", str(_CHILD)],
        input=json.dumps(request),
        env={**os.environ, **pool.client_env()},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=True,
    )
    found: dict[str, list[Any]] = json.loads(finished.stdout)
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
        #: errors of the bindings, and children that took too long
        self.errors: set[str] = set()

    def _run(self) -> None:
        while not self._stop.wait(self._pause_s):
            try:
                found = ask(self._pool, ["startd"], 60)
            except (subprocess.SubprocessError, ValueError) as error:
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
            **ask(self._pool, ["schedd", "epoch"]),
            "startd": list(self._seen.values()),
            "startd_files": {
                spool.parent.name.removeprefix("pilot-"): read_file(spool / "startd_history")
                for spool in spools
            },
            "observer_errors": sorted(self.errors),
        }
