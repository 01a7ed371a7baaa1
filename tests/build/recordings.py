"""Recordings of claims and of histories that grow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gwmond.sources.htcondor.access import Query
from gwmond.sources.recording import recorded_runs
from gwmond.sources.recording.recording import ReplayAccess, Writer
from tests.sources.fake_history import SCHEDD, FakeHistory, Row

BEGIN = 1_700_000_000
EVERY_S = 60
SHIFT_S = 7_000_000
HOST = "c:9618"
CLAIMS = f"collector/{HOST}/claims"
NEVER = Query("epochs", "", "true", ())


class Made(NamedTuple):
    """A recording, and what its history held in each frame."""

    path: Path
    written: list[list[Row]]

    def at(self, frame: int, shift: int = 0) -> ReplayAccess:
        return ReplayAccess(str(self.path), float(BEGIN + EVERY_S * frame + 1), float(shift))


def make(path: Path, kind: str, frames: Sequence[Sequence[Row]], claimed: bool = True) -> Made:
    """Record a history that grows in each frame."""
    fake = FakeHistory(kind)
    taken: recorded_runs.TakenHistory = ()
    written: list[list[Row]] = []
    writer = Writer(path, {"collectors": [HOST]})
    for number, new in enumerate(frames):
        fake.rows += new
        written.append(list(fake.rows))
        (found, taken, more), _ = recorded_runs.take(fake, SCHEDD, kind, taken, 0)
        assert not more
        answers = {recorded_runs.stream(SCHEDD.name, kind): found}
        writer.add(BEGIN + EVERY_S * number, answers | ({CLAIMS: []} if claimed else {}))
    writer.close()
    return Made(path, written)
