"""What runs wait for that are over, and until when at most: held against when they are decided."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gwmond.model.facts import Place
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobFact, JobRecord, Source
from gwmond.model.runs.waits import Wait, Why
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.waits import waits as what_waits
from gwmond.reports.ledger.open_runs import open_runs, sentence
from tests.build.play import POLL_S, T0, Play, claim, record, shown

LATER_S = 300
HOUR = 3600
FAILED = Ending(over=True, exit_code=1, own_accord=True, began=True, early=True)
CUT = Ending(over=True, vacate_code=1005, began=True)


def waits(play: Play) -> tuple[Wait, ...]:
    accounting = play.accounting
    silent_us = accounting.silence.before_us
    return what_waits(accounting.pilots, accounting.rules, silent_us, (), LATER_S * SECOND_US)


def decided(play: Play, first: int, step: Callable[[int], None], most: int = 12 * HOUR) -> int:
    """Poll on until nothing waits any more; return when that was, in seconds from T0."""
    for at in range(first, first + most, POLL_S):
        step(at)
        play.judge_at(at)
        if not waits(play):
            return at
    raise AssertionError(f"still waits: {waits(play)}")


def lived(play: Play, last: int = 600) -> None:
    play.live(0, last, [shown()])


def test_an_early_failure_is_judged_by_the_time_that_is_told(play: Play) -> None:
    """Six hours after the slice in which it ended, and a few polls: not later, nor much sooner."""
    lived(play)
    play.poll(660, [shown(heard=600)], [record("1", 120, 130, ending=FAILED)])
    play.live(720, 1260, [shown()])
    (wait,) = waits(play)
    assert (wait.why, wait.runs) == (Why.EARLY, 1)
    assert wait.until_us is not None
    until = wait.until_us / SECOND_US - T0
    at = decided(play, 1320, lambda at: play.live(at, at, [shown()]))
    assert until - LATER_S <= at <= until


@pytest.mark.parametrize("wait_s", [HOUR, 300])
def test_the_run_of_a_killed_pilot_is_given_up_by_the_time_that_is_told(wait_s: int) -> None:
    """Silent first, then ended as its ad expires: the time that was told holds all along."""
    play = Play(Rules(refresh_us=0, outcome_wait_us=wait_s * SECOND_US))
    for at in range(0, 601, POLL_S):
        play.poll(at, [shown(heard=at - at % 300)], claims=[claim("1", 60)])
    told: set[int | None] = set()

    def step(at: int) -> None:
        expired = at >= 600 + 900
        play.accounting.silence.note((T0 + at - 600) * SECOND_US)
        ads = [] if expired else [shown(heard=600)]
        play.poll(at, ads, claims=[] if expired else [claim("1", 60)])
        told.update(wait.until_us for wait in waits(play) if wait.why is Why.RECORD)

    for at in range(660, 1321, POLL_S):
        step(at)
    assert told == {(T0 + 600 + max(900, wait_s) + LATER_S) * SECOND_US}
    at = decided(play, 1380, step)
    assert at <= 600 + max(900, wait_s) + LATER_S
    assert at >= 600 + wait_s


def test_a_run_that_left_its_slot_is_given_up_by_the_time_that_is_told(play: Play) -> None:
    """Its pilot lives on, and no record comes."""
    for at in range(0, 601, POLL_S):
        play.poll(at, [shown(heard=at - at % 300)], claims=[claim("1", 60)])
    play.live(660, 720, [shown()])
    (wait,) = waits(play)
    assert (wait.why, wait.until_us) == (Why.RECORD, (T0 + 600 + HOUR + LATER_S) * SECOND_US)
    at = decided(play, 780, lambda at: play.live(at, at, [shown()]))
    assert 600 + HOUR <= at <= 600 + HOUR + LATER_S


def test_whether_a_run_ended_with_its_pilot_is_decided_by_the_time_that_is_told(play: Play) -> None:
    """A pilot is heard of again, or its ad expires."""
    lived(play)
    play.poll(660, [shown(heard=600)], [record("1", 60, 630, ending=CUT)])
    (wait,) = waits(play)
    assert wait.why is Why.PILOT
    assert wait.until_us is not None
    at = decided(play, 720, lambda at: play.poll(at, [shown(heard=600)] if at < 1500 else []))
    assert at <= wait.until_us / SECOND_US - T0


def test_runs_that_go_on_wait_for_nothing(play: Play) -> None:
    """What a slot shows runs; what a schedd has reported of in full is settled."""
    play.poll(0, [shown()])
    play.poll(300, [shown(heard=300)], [record("1", 60, 200)], [claim("2", 60)])
    play.poll(600, [shown(heard=600)], claims=[claim("2", 60)])
    assert waits(play) == ()
    assert sentence(()) == ""


def test_a_reader_of_the_ledger_says_the_same(play: Play) -> None:
    """Of stored pilots and runs the same is said as by the daemon that has them in memory."""
    for at in range(0, 601, POLL_S):
        ads = [shown(heard=at - at % 300), shown("dead@node", heard=at - at % 300)]
        claims = [claim("1", 60, startd="dead@node"), claim("3", 60)]
        play.poll(at, ads, claims=claims)
    play.poll(660, [shown(heard=600)], [record("2", 120, 130, ending=FAILED)], [claim("3", 60)])
    play.accounting.silence.note((T0 + 601) * SECOND_US)
    play.live(900, 1800, [shown()], claims=[claim("3", 60)])
    found = waits(play)
    assert [(wait.why, wait.runs) for wait in found] == [(Why.EARLY, 1), (Why.RECORD, 1)]
    assert open_runs(play.stored, play.rules, LATER_S * SECOND_US, Place()) == found
    assert open_runs(play.stored, play.rules, LATER_S * SECOND_US, Place("Elsewhere")) == ()
    assert sentence(found) == (
        "2 runs not settled yet: 1 failed early, judged by 2023-11-15 05:05:00 UTC at the "
        "latest; 1 without a record of the end, given up by 2023-11-14 23:35:00 UTC at the "
        "latest."
    )


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
