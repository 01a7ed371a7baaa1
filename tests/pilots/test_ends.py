"""One order of sources for each fact of a pilot: the best of those that are there decides.

The pilot begins at 0, its startd at 60, and its sources say otherwise of each fact, so that the
winner can be seen.  Whatever is missing, and whenever each comes, it is the best one's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import pytest

from gwmond.model.facts import Size
from gwmond.model.pilot_life import End
from gwmond.model.pilots.file_facts import (
    CentralEvent,
    CentralKind,
    FileFact,
    PilotName,
    QueueState,
)
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.pilots.life.derive import END_RULES, Known, ends_of
from tests.build.pilot_files import JOB, SIZE, event, line, output, queue, us
from tests.build.play import Play, record, shown
from tests.examples import orders

T = TypeVar("T")
STARTD, HEARD = 60, 900
LEAVES, STAYS_AWAY = "leaves", "expires"

NAME = output().name._replace(startd="glidein")
CUT = output(0, None, name=NAME, condor_start_us=us(800), cores=8, memory_mib=16_000)

FILES: dict[str, list[FileFact]] = {
    "whole output": [CUT._replace(end_us=us(1230))],
    "cut output": [CUT],
    "output without its head": [
        CUT._replace(start_us=None, validation_end_us=us(90), cores=None, memory_mib=None)
    ],
    "queue": list(queue(-10, 1240)),
    "summary": [event(QueueState.SUBMITTED, -310), line(1245, 1245)],
    "central log": [
        CentralEvent(
            "log",
            PilotName(schedd="factory", cluster=7, proc=0),
            CentralKind.PILOT_END,
            us(1221),
            "master",
            "",
            "exited",
        )
    ],
}
ENDS = {
    "whole output": ("pilot_output", 1230),
    "queue": ("queue", 1240),
    "summary": ("queue", 1245),
    "central log": ("central_log", 1221),
    LEAVES: ("shutdown", 1200),
    STAYS_AWAY: ("ad_expired", HEARD),
    "cut output": ("assumed", 800),
}
"""What each source says of the end, best first."""

STARTS = {
    "whole output": 0,
    "cut output": 0,
    LEAVES: STARTD,
    "queue": -10,
    "output without its head": 90,
    "jobs": STARTD,
}
"""What each source says of the beginning, best first."""

SIZES = {
    LEAVES: Size(4, 8000),
    "whole output": Size(8, 16_000),
    "cut output": Size(8, 16_000),
    "output without its head": Size(4, 8000),  # it tells none: the entry's usual size
    "queue": Size(4, 8000),
    "jobs": Size(1, 2000),
}
"""What each source says of the size, best first."""


def cases(
    collectors: Sequence[str], files: Collection[str], wanted: Collection[str]
) -> list[tuple[str, tuple[str, ...]]]:
    """All subsets of sources with at least one of those ``wanted``, which tell of a pilot."""
    return [
        (collector, some)
        for collector in collectors
        for number in range(len(files) + 1)
        for some in combinations(files, number)
        if set(wanted) & {collector, *some}
        if collector or set(some) != {"jobs", "queue"}  # these two have no name in common
    ]


def read(play: Play, source: str) -> None:
    """Let a source say what it does."""
    if source == "jobs":
        play.add_records([record("1.0", 100, 500, started=STARTD)])
    else:
        play.add_facts(FILES[source], SIZE)


def played(collector: str, order: Sequence[str], early: int) -> PilotRow:
    """Let a pilot end; some sources are read before its collector's silence is noticed.

    The others are read long after, one by one, with restarts.  A line of a central log that comes
    first waits for its pilot for an hour only.
    """
    play = Play()
    ad = shown(started=STARTD, factory_job=JOB)
    if collector == LEAVES:
        play.live(STARTD, 1200, [ad])
    elif collector == STAYS_AWAY:
        play.live(STARTD, HEARD, [ad])
        for at in range(HEARD + 60, 1800, 60):
            play.poll(at, [ad._replace(last_heard=ad.last_heard + HEARD - STARTD)])
    elif order[0] == "central log":
        early = max(early, 2)
    for source in order[:early]:
        read(play, source)
    play.poll({LEAVES: 1260}.get(collector, 1860))
    at = 2000
    for source in order[early:]:
        play.rest(at, hours=3, every_s=3600)
        play.restart()
        read(play, source)
        at += 4 * 3600
    play.rest(at, hours=12, every_s=3600)
    play.stored.prove()
    (row,) = play.stored.pilots.values()
    assert row.closed
    return row


def tellings(files: Sequence[str]) -> Iterator[tuple[Sequence[str], int]]:
    """Return orders of sources, and how many of them come early, by turns."""
    for number, order in enumerate(orders(files)):
        yield order, number % (len(files) + 1)


def best(says: Mapping[str, T], collector: str, files: Sequence[str]) -> T:
    """Return what the best of these sources says."""
    return next(said for source, said in says.items() if source in {collector, *files})


def said(row: PilotRow) -> dict[End, int]:
    """What each source says of a pilot's end."""
    return ends_of(Known(row.facts, row.identity.origin))


@pytest.mark.parametrize(
    ("collector", "files"),
    cases(
        ["", LEAVES, STAYS_AWAY],
        ["whole output", "cut output", "queue", "summary", "central log"],
        ENDS.keys() - {"central log"},
    ),
)
def test_the_best_source_of_its_end_decides(collector: str, files: tuple[str, ...]) -> None:
    """In whatever order sources are read, all late, or some of them early, it is the same."""
    source, end = best(ENDS, collector, files)
    for order, early in tellings(files):
        row = played(collector, order, early)
        assert (row.end_source, row.end_us) == (source, us(end)), order
        assert row.end_source == next(end for end, *_ in END_RULES if end in said(row))


@pytest.mark.parametrize(
    ("collector", "files"),
    cases(
        ["", LEAVES],
        ["whole output", "cut output", "output without its head", "queue", "jobs"],
        STARTS.keys(),
    ),
)
def test_the_best_source_of_its_start_and_size_decides(
    collector: str, files: tuple[str, ...]
) -> None:
    """The same of its beginning, and of its cores and memory."""
    start, size = best(STARTS, collector, files), best(SIZES, collector, files)
    for order, early in tellings(files):
        row = played(collector, order, early)
        assert (row.start_us, row.steps[0].size) == (us(start), size), order
        assert len(row.steps) == 1


@pytest.mark.parametrize("first", ["central log", "queue"])
def test_what_a_worse_source_said_stands_again(play: Play, first: str) -> None:
    """The queue's job turns out to be one of two that may be meant: the line's end is the next."""
    play.live(STARTD, 1200, [shown(started=STARTD, factory_job=JOB)])
    for source in (first, *({"central log", "queue"} - {first})):
        read(play, source)
        play.poll(1260)
    play.rest(2000, hours=2)
    (row,) = play.stored.pilots.values()
    assert (row.end_source, row.end_us, said(row)["central_log"]) == ("queue", us(1240), us(1221))
    play.restart()
    play.add_facts([output(20, 1100, name=NAME._replace(schedd="other"))], SIZE)
    play.rest(20_000)
    ends = {
        pilot.identity.factory_job: (pilot.end_source, pilot.end_us)
        for pilot in play.stored.pilots.values()
    }
    assert ends[JOB] == ("central_log", us(1221))
    play.stored.prove()
