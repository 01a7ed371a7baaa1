"""What a factory tells late, or of what comes later: as if all had been there at once."""

from __future__ import annotations

import pytest

from gwmond.model.problem_names import ProblemName
from tests.build.pilot_files import SIZE, S, line, output, queue, us
from tests.build.play import Play, shown
from tests.build.played import add_files, only, vanish

DAY = 86400


@pytest.mark.parametrize("late", [600, 7200, 3 * DAY])
def test_a_summary_that_was_written_late_before_its_queue(play: Play, late: int) -> None:
    """It was taken for a pilot that ended then; the queue tells when it was."""
    add_files(play, line(1200 + late, 1200), at=4 * DAY)
    add_files(play, *queue(0, 1200), at=5 * DAY)
    assert (only(play).start_us, only(play).end_us) == (us(0), us(1200))
    assert play.seconds() == {"decision_problem": 4 * 1200.0}


def test_two_lines_of_one_job_days_apart(play: Play) -> None:
    """The later counts; there is one pilot."""
    add_files(play, line(1300, 1200), at=4 * DAY)
    add_files(play, line(1300 + 3 * DAY, 1200), at=5 * DAY)
    assert only(play).end_us == us(1300 + 3 * DAY)
    add_files(play, *queue(0, 1200), at=6 * DAY)
    assert only(play).end_us == us(1200)


def test_an_output_that_comes_late_is_waited_for_once(play: Play) -> None:
    """It tells no end, and the queue told it before: nothing more is expected."""
    add_files(play, *queue(0, 1200))
    assert not play.stored.place("entry#7.0").open
    cut = output(0, None, condor_start_us=us(100), condor_end_us=us(900))
    play.add_facts([cut], SIZE)
    play.poll(DAY)
    assert play.stored.place("entry#7.0").open
    play.rest(DAY + 60, hours=3)
    assert not play.stored.place("entry#7.0").open
    assert (only(play).end_source, only(play).end_us) == ("queue", us(1200))


def test_another_that_may_be_meant_comes_later() -> None:
    """The end that the queue told of the first is taken back, as if both had been there."""
    name = output().name._replace(schedd="factory2")
    other, ends = output(700, 1000, name=name), queue(-60, 900, S.REMOVED)
    for first, then in ((ends, [other]), ([other], ends)):
        play = Play()
        vanish(play)
        add_files(play, *first, at=3000)
        add_files(play, *then, at=DAY)
        lives = sorted((pilot.end_source, pilot.end_us) for pilot in play.stored.pilots.values())
        assert lives == [("ad_expired", us(600)), ("pilot_output", us(1000))]
        assert play.accounting.left_out[ProblemName.AMBIGUOUS] == 1
        assert not play.stored.place("entry#7.0").open


def test_another_that_may_be_meant_is_shown_later(play: Play) -> None:
    """The same, where a collector shows it."""
    vanish(play)
    add_files(play, *queue(-60, 900, S.REMOVED), at=3000)
    assert only(play).end_source == "queue"
    play.poll(DAY, [shown("glidein@two", started=700, heard=1000, factory_job="factory2#7.0")])
    play.rest(DAY + 60)
    assert {(pilot.end_source, pilot.end_us) for pilot in play.stored.pilots.values()} == {
        ("ad_expired", us(600)),
        ("ad_expired", us(1000)),
    }
    assert play.accounting.left_out[ProblemName.AMBIGUOUS] == 1


def test_a_pilot_that_cannot_be_posted_anew(play: Play) -> None:
    """Runs of it are past their retention; what is known of it now makes no other pilot."""
    add_files(play, output(), *queue(0, 1200))
    number, row = play.stored.pilots.popitem()
    play.stored.pilots[number] = row._replace(runs_pruned=1)
    add_files(play, line(1300, 1200), at=DAY)
    assert only(play).identity.name == row.identity.name
    assert not play.stored.place("entry#7.0").open


def test_a_pilot_that_was_made_of_a_late_line_is_withdrawn(play: Play) -> None:
    """Its output, which began days before, and its queue come later: there is one pilot."""
    add_files(play, line(1300 + 3 * DAY, 1200, jobs=2, jobs_s=500, terminated_s=500), at=4 * DAY)
    add_files(play, output(0, 1200), at=5 * DAY)
    assert len(play.stored.pilots) == 2  # nothing tells yet that they are one
    play.restart()
    add_files(play, *queue(0, 1200), at=6 * DAY)
    assert (only(play).start_us, only(play).end_us) == (us(0), us(1200))
    assert play.seconds() == {"decision_problem": 4 * 1200.0}
    assert not play.stored.runs
    assert not play.accounting.left_out.get(ProblemName.AMBIGUOUS)
    assert play.counted() == {"pilots": 1}
    assert not play.stored.place("entry#7.0").open


def test_a_pilot_of_facts_that_are_past_their_retention_stays(play: Play) -> None:
    """A number that is used again tells nothing of the pilot that had it years ago."""
    add_files(play, *queue(0, 1200), at=DAY)
    play.stored.forget_places(us(200 * DAY))
    play.restart()
    add_files(play, *queue(400 * DAY, 400 * DAY + 1200), at=401 * DAY)
    starts = sorted(row.start_us for row in play.stored.pilots.values())
    assert starts == [us(0), us(400 * DAY)]
