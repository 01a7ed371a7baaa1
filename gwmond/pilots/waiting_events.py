"""Lines of central logs that wait for their pilot or for their run, as they are stored.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from gwmond.model.pilot_evidence import CentralEvent, CentralKind, PilotName
from gwmond.model.problem_names import ProblemName

MAX_CHARACTERS = 900_000
"""A cursor's state has at most a million; what is beyond waits in memory only."""


class EventRow(NamedTuple):
    """A line that waits, as it is stored; ``name`` has what the line tells."""

    kind: str
    at_us: int
    since_us: int | None
    why: str
    program: str
    slot: str
    message: str
    exit_code: int | None
    name: dict[str, str | int]


class Waits(NamedTuple):
    """Since when a line waits (None: not settled since), and for what, as far as that is known."""

    since_us: int | None
    why: ProblemName


def dump(waiting: Mapping[CentralEvent, Waits]) -> str:
    """Return lines as text, empty if there is none; of more than ``MAX_CHARACTERS`` the first."""
    rows: list[str] = []
    left = MAX_CHARACTERS
    for pilot_name, waits in waiting.items():
        values = {
            name: value
            for name, value in pilot_name.name._asdict().items()
            if value not in {"", None}
        }
        row = EventRow(
            pilot_name.kind,
            pilot_name.at_us,
            *waits,
            pilot_name.program,
            pilot_name.slot,
            pilot_name.message,
            pilot_name.exit_code,
            values,
        )
        rows.append(json.dumps(row, separators=(",", ":")))
        left -= len(rows[-1]) + 1
        if left < 0:
            rows.pop()
            break
    return f"[{','.join(rows)}]" if rows else ""


def load(stored: str) -> dict[CentralEvent, Waits]:
    """Return the same lines."""
    rows = [EventRow(*row) for row in json.loads(stored)] if stored else []
    return {
        CentralEvent(
            path="",
            name=PilotName(**row.name),  # type: ignore[arg-type]
            kind=CentralKind(row.kind),
            at_us=row.at_us,
            program=row.program,
            slot=row.slot,
            message=row.message,
            exit_code=row.exit_code,
        ): Waits(row.since_us, ProblemName(row.why))
        for row in rows
    }
