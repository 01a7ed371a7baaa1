"""Jobs of the factory that were held while they ran, or of which no end is recorded."""

from __future__ import annotations

import pytest

from gwmond.model.pilots.file_facts import QueueEvent
from gwmond.model.problem_names import ProblemName
from tests.build.pilot_files import S, event, line, output
from tests.build.play import Play
from tests.build.played import add_files, times

DAY = 86400
BEGUN = [event(S.SUBMITTED, 0), event(S.STARTED, 100)]


@pytest.mark.parametrize("then", [[], [event(S.RELEASED, 1200)], [event(S.HELD, 1300)]])
def test_a_pilot_that_was_held_ended_then(play: Play, then: list[QueueEvent]) -> None:
    """It is accounted after an hour, whether the job is released, and waits, or not."""
    add_files(play, *BEGUN, event(S.HELD, 1000), *then, at=2000, hours=0)
    assert times(play) == []
    play.rest(5000, hours=3)
    assert times(play) == [(100, 1000)]
    assert play.seconds() == {"unclassified": 4 * 900.0}
    assert not play.stored.place("entry#7.0").open
    assert not play.accounting.left_out.get(ProblemName.NO_TIMES)


def test_evicted_and_held_while_it_waited(play: Play) -> None:
    """The eviction was the end."""
    add_files(play, *BEGUN, event(S.EVICTED, 900), event(S.HELD, 1000), at=2000)
    assert times(play) == [(100, 900)]


def test_what_becomes_of_it_later_is_used() -> None:
    """Released, it ended without another start: that is its end.  Started again, it is another."""
    play = Play()
    add_files(play, *BEGUN, event(S.HELD, 1000), at=DAY)
    add_files(play, event(S.RELEASED, 1200), event(S.ENDED, 1900), at=2 * DAY)
    assert times(play) == [(100, 1900)]
    play = Play()
    add_files(play, *BEGUN, event(S.HELD, 1000), at=DAY)
    add_files(play, event(S.RELEASED, 1200), event(S.STARTED, 2 * DAY), at=3 * DAY)
    add_files(play, event(S.ENDED, 2 * DAY + 500), at=4 * DAY)
    assert times(play) == [(100, 1000), (2 * DAY, 2 * DAY + 500)]


def test_its_output_knows_better(play: Play) -> None:
    """It was held, and lived on."""
    add_files(play, *BEGUN, event(S.HELD, 1000), at=DAY)
    add_files(play, output(105, 1500), at=2 * DAY)
    assert times(play) == [(105, 1500)]
    assert play.seconds() == {"decision_problem": 4 * 1395.0}


def test_held_before_it_started(play: Play) -> None:
    """It used no time, and may still start, however much later."""
    add_files(play, event(S.SUBMITTED, 0), event(S.HELD, 500), at=DAY)
    add_files(play, event(S.RELEASED, 2 * DAY), event(S.STARTED, 3 * DAY), at=3 * DAY + 60, hours=2)
    assert times(play) == []
    add_files(play, event(S.ENDED, 3 * DAY + 900), at=4 * DAY)
    assert times(play) == [(3 * DAY, 3 * DAY + 900)]


@pytest.mark.parametrize("restart", [False, True])
def test_a_start_without_an_end_is_told_in_the_end(play: Play, restart: bool) -> None:
    """Not as long as it may run; then once, by its name.  Its end, if it comes, is still used."""
    add_files(play, *BEGUN, at=59 * DAY)
    assert (times(play), play.accounting.left_out.get(ProblemName.NO_TIMES)) == ([], None)
    assert play.stored.place("entry#7.0").open
    if restart:
        play.restart()
    play.rest(60 * DAY + 200, hours=2)
    assert play.accounting.left_out[ProblemName.NO_TIMES] == 1
    assert "the latest of the pilot entry#7.0" in play.accounting.files.shown(
        ProblemName.NO_TIMES, 1
    )
    assert not play.stored.place("entry#7.0").open
    play.restart()
    add_files(play, event(S.HELD, 200), at=61 * DAY)
    assert times(play) == [(100, 200)]
    assert not play.accounting.left_out.get(ProblemName.NO_TIMES)


def test_a_summary_is_an_end(play: Play) -> None:
    """The queue tells none."""
    add_files(play, *BEGUN, line(1300, 1000), at=DAY)
    assert times(play) == [(100, 1300)]
