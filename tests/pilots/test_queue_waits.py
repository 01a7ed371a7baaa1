"""Waits of jobs for their first run: a histogram that is counted exactly once."""

from __future__ import annotations

import pytest

from gwmond.model.runs.records import JobRecord
from gwmond.model.runs.run_facts import JobFact, Source
from gwmond.model.times import SECOND_US
from tests.build.play import T0, Play, record, shown


def queued(found: JobRecord, at: float) -> JobRecord:
    """A record that has when its job was submitted, in seconds from T0."""
    about = JobFact(queued_us=round((T0 + at) * SECOND_US))
    return found._replace(fact=found.fact._replace(about_job=about))


def counted(play: Play) -> dict[str, int]:
    """How many waited at most how long, and the sum in seconds."""
    return {
        key.outcome or "sum": number if key.what == "queue" else number // SECOND_US
        for key, number in play.stored.counts.items()
        if number and key.what.startswith("queue")
    }


@pytest.mark.parametrize("restart", [False, True])
def test_a_wait_is_counted_once(play: Play, restart: bool) -> None:
    """By whatever records, in whatever order, also after a restart."""
    first, second = record("1.0", 100, 400), record("1.0", 500, 600, run=2)
    play.live(0, 60, [shown()])
    assert counted(play) == {}
    for at, found in enumerate((first, first, second, first._replace(site="elsewhere"))):
        play.live(660 + 60 * at, 660 + 60 * at, [shown()], records=[queued(found, -200)])
        if restart:
            play.restart()
    startds = record("1.0", 100, 400, source=Source.STARTD_HISTORY)
    play.live(900, 1200, [shown()], records=[startds])
    play.rest(1260)
    assert counted(play) == {"300": 1, "sum": 300}


def test_what_is_not_known_is_not_counted(play: Play) -> None:
    """A record without QDate, or of a later run alone."""
    later = queued(record("2.0", 100, 400, run=2), -5000)
    play.live(0, 600, [shown()], records=[record("1.0", 100, 400), later])
    play.rest(1260)
    assert counted(play) == {}


@pytest.mark.parametrize("restart", [False, True])
def test_a_record_that_says_more_later(play: Play, restart: bool) -> None:
    """The wait is counted when it is known, and corrected with the date of the run's begin."""
    play.live(0, 600, [shown()], records=[record("1.0", 100, 400)])
    if restart:
        play.restart()
    again = queued(record("1.0", 100, 400, source=Source.SCHEDD_HISTORY), -4000)
    play.live(660, 1200, [shown()], records=[again])
    play.rest(1260)
    assert counted(play) == {"14400": 1, "sum": 4100}
