"""What a play of the accounting is told of GlideinWMS's files, and what is known in the end."""

from __future__ import annotations

from typing import Any

from gwmond.model.pilot_life import Assumption, Interval
from gwmond.model.pilots.file_facts import (
    FileFact,
    PilotOutput,
)
from gwmond.model.pilots.stored_pilots import PilotRow
from tests.build.pilot_files import JOB, SIZE, output, us
from tests.build.play import Play, shown


def add_outputs(play: Play, *outputs: PilotOutput, at: int = 2000, **more: Any) -> None:
    """A poll in which outputs are read."""
    play.add_facts(outputs, **more)
    play.poll(at)
    play.rest(at + 60)


def add_files(play: Play, *facts: FileFact, at: int = 2000, hours: int = 12) -> None:
    """Files are read at some time; then nothing more comes."""
    play.add_facts(facts, SIZE)
    play.poll(at)
    play.rest(at + 60, hours)


def only(play: Play) -> PilotRow:
    """The one pilot that there is."""
    (row,) = play.stored.pilots.values()
    return row


def runs_counted(play: Play) -> int:
    """How many runs of jobs are counted."""
    return play.counted().get("runs", 0)


def booked(play: Play) -> tuple[dict[object, int], dict[object, int]]:
    """All that is posted, by hour and series, and all that is counted."""
    posted, counts = play.stored.posted, play.stored.counts
    return {k: n for k, n in posted.items() if n}, {k: n for k, n in counts.items() if n}


def vanish(play: Play) -> None:
    """A pilot is heard of last at 600, and its ad expires at 1500."""
    play.live(0, 600, [shown(factory_job=JOB)])
    for at in range(660, 1500, 60):
        play.poll(at, [shown(factory_job=JOB, heard=600)])
    play.poll(1560)


def lives(of: Play) -> list[tuple[int, int | None, object, dict[Assumption, Interval], object]]:
    """All that is known of pilots, without their numbers."""
    found = [
        (
            row.start_us,
            row.end_us,
            (row.identity.name, row.identity.group),
            dict(sorted(row.assumed.items())),
            sorted(row.settled.items()),
        )
        for row in of.stored.pilots.values()
    ]
    return sorted(found, key=repr)


def times(play: Play) -> list[tuple[float, float | None]]:
    """When each pilot began and ended, in seconds from T0."""
    rows = play.stored.pilots.values()
    return sorted(((row.start_us - us(0)) / 1e6, ((row.end_us or 0) - us(0)) / 1e6) for row in rows)


def revise(play: Play, at: int) -> None:
    """Go over all entries, as at the end of an import."""
    list(play.revise())
    play.poll(at)
    play.rest(at + 60, hours=2)


def one(number: int, **of: Any) -> PilotOutput:
    """A pilot's output, of a size and site that are not told unless here."""
    what = {"cores": None, "memory_mib": None, "gpus": None, **of}
    where: dict[str, Any] = {
        name: what.pop(name) for name in ("site", "entry", "factory") if name in what
    }
    made = output(100 * number, 100 * number + 1200, **what)
    return made._replace(name=made.name._replace(proc=number, **where))
