"""What GlideinWMS's files report of the pilot 7.0, in seconds from T0."""

from __future__ import annotations

from typing import Any

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import (
    CompletedPilot,
    Failure,
    FailureClass,
    PilotName,
    PilotOutput,
    QueueEvent,
    QueueState,
)
from gwmond.model.times import SECOND_US
from tests.build.play import T0

JOB = "factory#7.0"
FAILED = Failure(FailureClass.WN_RESOURCE, "main/validate_node.sh")


def us(seconds: float) -> int:
    """Microseconds since the epoch of a time since T0."""
    return round((T0 + seconds) * SECOND_US)


def output(start: float | None = 0, end: float | None = 1200, **more: Any) -> PilotOutput:
    """The output of a pilot of the entry, with its usual four cores; no run is in its logs."""
    name = PilotName(
        *("factory", "instance", "entry", 7, 0, "factory", "frontend", "main"), node="node"
    )
    made = PilotOutput(
        "job.7.0.out",
        name,
        None if start is None else us(start),
        None if end is None else us(end),
        validation=Validation.PASSED,
        cores=4,
        memory_mib=8000,
        logs=("MasterLog", "StartdLog"),
    )
    return made._replace(**more)


SIZE = {"entry": Size(4, 8000)}
S = QueueState


def event(state: QueueState, at: float, **of: Any) -> QueueEvent:
    """An event of the pilot 7.0, in seconds from T0."""
    name = PilotName(instance="instance", entry="entry", user="fe", cluster=7, proc=0)
    path = "/x/condor_activity_20231114_fe.main.log"
    return QueueEvent(path, name._replace(**of), state, us(at))


def queue(start: float, end: float, how: QueueState = S.ENDED, **of: Any) -> list[QueueEvent]:
    """A pilot's whole life in the queue."""
    return [
        event(S.SUBMITTED, start - 300, **of),
        event(S.STARTED, start, **of),
        event(how, end, **of),
    ]


def line(written: float, duration: int | None, **more: Any) -> CompletedPilot:
    """A summary of the pilot 7.0: HTCondor ran all but its first 60 seconds, and no job did."""
    name = PilotName(entry="entry", user="fe", frontend="fe_main", cluster=7, proc=0)
    made = CompletedPilot(
        path="/y/completed_jobs_20231114.log",
        name=name,
        written_us=us(written),
        duration_s=duration,
        condor_started=True,
        condor_s=max(0, (duration or 0) - 60),
        jobs=0,
        jobs_s=0,
        goodput_s=0,
        terminated_s=0,
        validation=60_000 // duration if duration else 1000,
        idle=1000,
        nosuccess=0,
        badput=1000,
    )
    return made._replace(**more)


def lost(**more: Any) -> PilotOutput:
    """The stdout of a pilot whose stderr is lost; HTCondor ran from 60 to 1190."""
    made = output(logs=(), condor_start_us=us(60), condor_end_us=us(1190))
    return made._replace(**more)
