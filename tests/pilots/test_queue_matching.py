"""Which pilot is which job of its factory, and which was made of a job that is none any more."""

from __future__ import annotations

import pytest

from gwmond.model.factory.jobs import FactoryJob, QueueRecord
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.pilot_facts import OutputFacts, PilotFacts, QueueFacts
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.pilots.factory.queue_matching import QueueMatching
from gwmond.pilots.memory.open_pilot import OpenPilot
from tests.build.facts import A
from tests.build.pilot_files import S, event, line, us

PLACE = QueueRecord("entry", "7.0")


def job(start: int, end: int | None, first: int = 0) -> FactoryJob:
    """An execution of the job whose first record is ``first``, in seconds from T0."""
    end_us = None if end is None else us(end)
    return FactoryJob(
        *("instance", "fe", "fe.main", us(first), us(start), end_us),
        over=end is not None,
        first_us=us(first),
    )


def pilot(number: int, facts: PilotFacts) -> OpenPilot:
    """A pilot that only files tell of."""
    name = "7.0@fe:instance.entry"
    identity = PilotIdentity(name, 0, "factory#7.0", "factory", A, "", "", "files")
    return OpenPilot.new(number, identity, facts)


def told(start: int, end: int) -> OpenPilot:
    """A pilot whose output has when it began and ended."""
    output = OutputFacts(us(start), us(end), us(start), us(end), Validation.PASSED)
    return pilot(1, PilotFacts(output=output))


def made(number: int, start: int, end: int) -> OpenPilot:
    """A pilot that was made of what its factory's queue tells."""
    return pilot(number, PilotFacts(queue=QueueFacts(us(start), us(end))))


@pytest.mark.parametrize(
    ("start", "jobs", "index"),
    [
        (50, [job(0, 1000), job(60, 5000)], 0),  # 50 s and 0 s, against 10 s and 4000 s
        (10, [job(0, 1000), job(100, 1000)], 0),
        (90, [job(0, 1000), job(100, 1000)], 1),
        (50, [job(0, 1000), job(100, 1000)], 1),  # both alike: the later one
        (50, [job(0, None), job(60, None)], 1),  # nothing tells their ends
    ],
)
def test_the_execution_that_differs_least(start: int, jobs: list[FactoryJob], index: int) -> None:
    """By when the pilot began and ended; the other is none of this pilot."""
    known = told(start, 1000)
    assert QueueMatching(PLACE, jobs, [known], []).told == {index: known}


def test_the_nearest_are_the_same() -> None:
    """Each pilot is made of one job only, in whatever order they come."""
    first, second = made(1, 0, 900), made(2, 100, 950)
    jobs = [job(95, 1000, first=1), job(5, 990, first=2)]
    for pilots in ([first, second], [second, first]):
        found = QueueMatching(PLACE, jobs, [], pilots)
        assert (found.alone, found.made, found.stale) == ({0, 1}, {0: second, 1: first}, [])


def test_an_execution_through_which_a_pilot_lived_is_covered() -> None:
    """Of the same job, whose other execution it is; a pilot of another end is none of them."""
    jobs = [job(0, 20_000), job(10_000, 19_000)]
    known, other = told(0, 20_000), made(2, -50_000, -40_000)
    found = QueueMatching(PLACE, jobs, [known], [other])
    assert (found.told, found.covered, found.alone) == ({0: known}, {1}, set())
    assert (found.made, found.stale) == ({}, [])


@pytest.mark.parametrize(
    ("place", "is_stale"),
    [
        (PLACE, False),
        (PLACE._replace(events=(event(S.ENDED, 1000),)), True),
        (PLACE._replace(lines=(line(1000, 900),)), True),
        (PLACE._replace(events=(event(S.ENDED, 1001),), lines=(line(999, 900),)), False),
        (PLACE._replace(events=(event(S.ENDED, 1000, user="other"),)), False),
    ],
)
def test_a_pilot_of_a_job_that_is_none_is_stale(place: QueueRecord, is_stale: bool) -> None:
    """If its end is one that is reported there, of its user; else it is of another place."""
    before = made(1, 0, 1000)
    assert QueueMatching(place, [], [], [before]).stale == ([before] if is_stale else [])
