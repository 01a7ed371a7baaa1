"""Pilots whose output is cut at its head, where it tells for whom they run."""

from __future__ import annotations

from typing import Any

import pytest

from gwmond.model.pilots.file_facts import FileFact, PilotOutput
from gwmond.model.pilots.stored_pilots import PilotRow
from tests.build.pilot_files import JOB, event, line, output, queue, us
from tests.build.play import Play, record, shown
from tests.build.played import add_files

S_NAMES = {"factory": "", "frontend": "", "group": ""}


def cut(start: float | None = None, end: float = 1200, **of: Any) -> PilotOutput:
    """An output without its head: it is not known when it began, nor for whom."""
    made = output(start, end, condor_start_us=us(100))
    return made._replace(name=made.name._replace(**(S_NAMES | of)))


def one(play: Play) -> PilotRow:
    """The pilot 7.0."""
    (row,) = (pilot for pilot in play.stored.pilots.values() if pilot.identity.factory_job == JOB)
    return row


def groups(play: Play) -> dict[str, float]:
    """Core-seconds of all pilots by group."""
    sums: dict[str, float] = {}
    for (_, pilot_series), micros in play.stored.posted.items():
        if (pilot_series.measure, pilot_series.resource) == ("resource", "cpu"):
            sums[pilot_series.group] = sums.get(pilot_series.group, 0) + micros / 1e6
    return {group: seconds for group, seconds in sums.items() if seconds}


@pytest.mark.parametrize("first", ["output", "queue", "both"])
def test_the_queue_tells_for_whom_it_ran(play: Play, first: str) -> None:
    """Whichever is told first: all of its time is the group's."""
    parts: dict[str, list[list[FileFact]]] = {
        "output": [[cut()], [*queue(0, 1210)]],
        "queue": [[*queue(0, 1210)], [cut()]],
        "both": [[cut(), *queue(0, 1210)]],
    }
    for number, facts in enumerate(parts[first]):
        add_files(play, *facts, at=2000 + 50_000 * number)
        add_files(play, *facts, at=20_000 + 50_000 * number)  # again
    assert (one(play).identity.group, one(play).start_us) == ("fe.main", us(0))
    assert groups(play) == {"fe.main": 4 * 1200.0}
    play.stored.prove()


def test_without_the_queue_its_summary_tells(play: Play) -> None:
    add_files(play, cut(), line(1300, 1200))
    assert groups(play).keys() == {"fe_main"}


def test_a_queue_without_a_client_tells_the_user(play: Play) -> None:
    """Whose pilots they are is not in the name of the log then."""
    path = "/x/condor_activity_20231114.log"
    add_files(play, cut(), *(of._replace(path=path) for of in queue(0, 1210)))
    assert groups(play).keys() == {"fe"}


def test_without_either_nothing_does(play: Play) -> None:
    add_files(play, cut())
    assert groups(play).keys() == {""}


@pytest.mark.parametrize("first", [True, False])
def test_its_own_output_knows_better(play: Play, first: bool) -> None:
    """An output of it that tells its group, before or after the one that does not."""
    whole = cut(factory="factory", frontend="frontend", group="main")
    for number, pilot_name in enumerate((cut(), whole) if first else (whole, cut())):
        add_files(play, pilot_name, *queue(0, 1210), at=2000 + 50_000 * number)
    assert (one(play).identity.group, one(play).identity.factory) == ("frontend.main", "factory")
    assert groups(play).keys() == {"frontend.main"}


def test_a_collector_knows_better(play: Play) -> None:
    """Also where the output and the queue come later again."""
    add_files(play, cut(), *queue(0, 1210), at=1300, hours=1)
    play.poll(6000, [shown(factory_job=JOB, heard=1100)])
    assert one(play).identity.origin == "collector"
    add_files(play, cut(), *queue(0, 1210), event(queue(0, 1)[1].state, 3), at=60_000)
    assert groups(play).keys() == {"frontend.main"}


@pytest.mark.parametrize("late", [True, False])
def test_where_the_queue_may_mean_another_it_tells_nothing(late: bool) -> None:
    """Of another schedd's pilot with its number; whether that is told before or after."""
    play, other = Play(), output(10, 1200)
    facts: list[FileFact] = [cut(), *queue(0, 1210)]
    another = other._replace(name=other.name._replace(schedd="other"))
    add_files(play, *facts, *([] if late else [another]))
    add_files(play, another, at=60_000)
    assert groups(play).keys() == {"", "frontend.main"}


def test_a_pilot_of_jobs_gets_its_group(play: Play) -> None:
    """Records of jobs told of it first, and not for whom it ran."""
    name = "glidein_1_2@node"
    told_of = record("1.0", 100, 700, startd=name)
    play.poll(1000, records=[told_of])
    pilot_name = cut()
    made = pilot_name._replace(name=pilot_name.name._replace(startd="glidein_1_2"))
    add_files(play, made, *queue(0, 1210), at=2000)
    assert groups(play).keys() == {"fe.main"}
