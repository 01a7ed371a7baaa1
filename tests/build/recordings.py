"""Recordings of claims and of histories that grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gwmond.sources.htcondor.access import Query
from gwmond.sources.recording import recorded_runs
from gwmond.sources.recording.deltas import Ad
from gwmond.sources.recording.recording import ReplayAccess, Writer
from tests.sources.fake_history import SCHEDD, FakeHistory, Row

Answers = dict[str, list[Ad]]
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


def write(
    path: Path,
    frames: Mapping[float, Answers],
    asked: Mapping[str, Sequence[str]] | None = None,
) -> Path:
    """Record frames by their times; of ``asked`` the collector is known, if nothing else is."""
    writer = Writer(path, {"collectors": [HOST]} if asked is None else asked)
    for time, answers in frames.items():
        writer.add(time, answers)
    writer.close()
    return path


def make(path: Path, kind: str, frames: Sequence[Sequence[Row]]) -> Made:
    """Record a history that grows in each frame."""
    fake = FakeHistory(kind)
    taken: recorded_runs.TakenHistory = ()
    written: list[list[Row]] = []
    told: dict[float, Answers] = {}
    for number, new in enumerate(frames):
        fake.rows += new
        written.append(list(fake.rows))
        (found, taken, more), _ = recorded_runs.take(fake, SCHEDD, kind, taken, 0)
        assert not more
        answers = {recorded_runs.stream(SCHEDD.name, kind): found, CLAIMS: []}
        told[BEGIN + EVERY_S * number] = answers
    return Made(write(path, told), written)
