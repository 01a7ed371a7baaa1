"""Lines of central logs, of a pilot that its startd or its node names."""

from __future__ import annotations

from typing import Any

from gwmond.model.pilots.file_facts import (
    CentralEvent,
    CentralKind,
    PilotName,
)
from tests.build.pilot_files import us

NAME = "glidein_12_345"
STARTD = f"{NAME}@node.example.org"


END, UNSENT, CONTAINER = (
    CentralKind.PILOT_END,
    CentralKind.EXIT_UNSENT,
    CentralKind.CONTAINER_FAILURE,
)


BY_STARTD = PilotName(site="Site", startd=NAME, node="node")
BY_PLACE = PilotName(site="Site", node="node")


def line(kind: CentralKind, at: float, name: PilotName = BY_STARTD, **more: Any) -> CentralEvent:
    """A line of a central log; ``at`` in seconds since T0."""
    made = CentralEvent("central.log", name, kind, us(at), "condor_starter", "slot1_1", "message")
    return made._replace(**more)
