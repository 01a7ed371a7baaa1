"""Outputs without an end: of pilots that still run, or that were killed hard."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from gwmond.model.pilot_life import Assumption, Category, Validation
from gwmond.model.pilots.file_facts import PilotOutput
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import ExpectedInput
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot
from tests.build.pilot_files import JOB, SIZE, S, event, line, output, queue, us
from tests.build.play import T0, Play, record, shown
from tests.build.played import lives, only, vanish

HOUR = 3600


def begun(written: float = 100, **more: Any) -> PilotOutput:
    """An output up to the start of HTCondor, last written then."""
    return output(end=None, condor_start_us=us(60), logs=(), written_us=us(written), **more)


def follow(play: Play, first: int, last: int, *facts: Any) -> None:
    """Files tell something; polls up to ``last``."""
    play.add_facts(facts, SIZE)
    for at in range(first, last + 1, 300):
        play.poll(at)


def ended(play: Play) -> int:
    """How many pilots are counted."""
    return play.counted().get("pilots", 0)


def test_one_that_streams_is_open_as_long_as_its_queue_says(play: Play) -> None:
    """It writes nothing for hours; when all of its output is there it is one pilot, ended once."""
    follow(play, 200, 7 * HOUR, event(S.SUBMITTED, -300), event(S.STARTED, 0), begun())
    row = only(play)
    assert (row.end_us, row.end_source, row.assumed) == (None, "", {})
    assert (play.seconds(), ended(play)) == ({}, 0)
    play.restart()
    follow(play, 7 * HOUR + 300, 9 * HOUR)
    assert (only(play).end_us, ended(play)) == (None, 0)
    follow(play, 9 * HOUR + 300, 12 * HOUR, event(S.ENDED, 9 * HOUR), output(0, 9 * HOUR - 5))
    assert (only(play).end_us, only(play).end_source) == (us(9 * HOUR - 5), "pilot_output")
    assert play.seconds() == {"decision_problem": 4 * (9.0 * HOUR - 5)}
    assert (ended(play), play.stored.corrected) == (1, 0)


def test_without_a_queue_it_ended_when_nothing_was_written_for_long(play: Play) -> None:
    """It ended with the last thing that it tells; the rest of its time is not known."""
    follow(play, 200, 100 + HOUR - 100, begun())
    assert (only(play).end_us, ended(play), play.seconds()) == (None, 0, {})
    follow(play, 100 + HOUR + 60, 3 * HOUR)
    row = only(play)
    assert (row.end_us, row.end_source) == (us(60), "assumed")
    assert row.assumed[Assumption.END] == (us(0), us(60))
    assert (sum(play.seconds().values()), ended(play)) == (4 * 60.0, 1)


def test_what_is_written_keeps_it_open(play: Play) -> None:
    """Each time when it has grown it is waited for anew."""
    for hour in range(4):
        grown = begun(100 + hour * HOUR, validation_end_us=us(50 + hour * HOUR))
        follow(play, 200 + hour * HOUR, 200 + hour * HOUR + 3000, grown)
    assert (only(play).end_us, play.seconds()) == (None, {})
    follow(play, 4 * HOUR, 9 * HOUR)
    assert only(play).end_us == us(50 + 3 * HOUR)


def test_a_clock_that_is_ahead_does_not_keep_it_open(play: Play) -> None:
    """The factory's files are dated from tomorrow on."""
    follow(play, 200, 2 * HOUR, begun(80_000))
    assert only(play).end_us == us(60)


def test_after_a_restart_it_is_waited_for(play: Play) -> None:
    """It may have grown while gwmond was down: it is read before it is given up."""
    follow(play, 200, 600, begun())
    play.restart()
    follow(play, 5 * HOUR, 5 * HOUR)
    assert only(play).end_us is None
    follow(play, 5 * HOUR + 300, 6 * HOUR, output(0, 5 * HOUR - 100))
    assert (only(play).end_source, ended(play), play.stored.corrected) == ("pilot_output", 1, 0)
    play.rest(7 * HOUR)
    assert only(play).closed


@pytest.mark.parametrize("restarts", [(), (3600,), (3300, 3900, 4500)])
def test_a_restart_does_not_begin_the_wait_anew(play: Play, restarts: tuple[int, ...]) -> None:
    """There is no queue: when its output was written last is known as before, though not read."""
    follow(play, 200, 600, begun())
    follow(play, 3000, 3000, begun(2990))
    last = 3300
    for at in (*restarts, 2990 + HOUR):
        follow(play, last, at - 300)
        assert (only(play).end_us, ended(play)) == (None, 0)
        last = at
        if at in restarts:
            play.restart()
    follow(play, 2990 + HOUR, 2990 + HOUR)
    assert (only(play).end_us, only(play).end_source) == (us(60), "assumed")


def test_a_restart_just_before_it_is_given_up(play: Play) -> None:
    """Its files are read first, as they may have grown; if they have not, it is given up soon."""
    follow(play, 200, 600, begun())
    play.restart()
    follow(play, 100 + HOUR, 100 + HOUR + 1200)
    assert only(play).end_us is None
    follow(play, 100 + HOUR + 1500, 100 + HOUR + 1800)
    assert (only(play).end_us, only(play).end_source) == (us(60), "assumed")


@pytest.mark.parametrize("whole_us", [None, us(8000)])
def test_the_queue_tells_the_end_and_the_whole_output_follows(
    play: Play, whole_us: int | None
) -> None:
    """What the queue says is waited with, as the output may be on its way."""
    follow(play, 200, 8000, *queue(0, 7990), begun())
    assert (only(play).end_us, ended(play)) == (None, 0)
    follow(play, 8300, 8000 + 2 * HOUR, *([output(0, 7980)] if whole_us else []))
    end = (us(7980), "pilot_output") if whole_us else (us(7990), "queue")
    assert (only(play).end_us, only(play).end_source) == end
    assert (ended(play), play.stored.corrected) == (1, 0)


def test_a_summary_ends_it_too(play: Play) -> None:
    """There is no queue; the line's duration tells when."""
    follow(play, 200, 3 * HOUR, begun(), line(1300, 1200))
    assert (only(play).end_us, only(play).end_source) == (us(1200), "queue")


def imported(
    play: Play, at: int, *facts: Any, comes: ExpectedInput = ExpectedInput.NOTHING
) -> None:
    """An import at some time: nothing is waited for, unless a daemon keeps the ledger."""
    play.restart()
    now = us(at)
    play.add_facts(facts, SIZE)
    play.accounting.settlement.expected = comes
    for _ in range(2):
        play.settle(now, now)
        play.store(now)


def test_an_import() -> None:
    """Old logs are accounted at once, whenever they were copied; what may still run is not."""
    play = Play()
    imported(play, 60 + HOUR - 10, begun())
    assert (only(play).end_us, play.seconds()) == (None, {})
    imported(play, 60 + HOUR + 10)
    assert (only(play).end_us, ended(play)) == (us(60), 1)
    for facts in ([begun(400_000)], [begun(400_000), event(S.STARTED, 0)]):
        play = Play()
        imported(play, 400_060, *facts)
        assert (only(play).end_us, only(play).end_source) == (us(60), "assumed")
    play = Play()
    imported(play, 400, begun(), *queue(0, 300))
    assert (only(play).end_us, only(play).end_source) == (us(300), "queue")


def test_given_up_and_then_it_goes_on(play: Play) -> None:
    """It was silent for longer than it is waited for: what is posted is corrected."""
    follow(play, 200, 3 * HOUR, begun())
    assert ended(play) == 1
    follow(play, 4 * HOUR, 4 * HOUR, begun(4 * HOUR, condor_end_us=us(4 * HOUR)))
    assert (only(play).end_us, ended(play)) == (None, 0)
    assert sum(play.seconds().values()) == 0
    play.restart()
    follow(play, 5 * HOUR - 600, 9 * HOUR, output(0, 5 * HOUR))
    assert play.seconds() == {"decision_problem": 4 * 5.0 * HOUR}
    assert (ended(play), len(play.stored.pilots)) == (1, 1)


def test_a_shorter_copy_takes_no_end_back(play: Play) -> None:
    """Its own output has told the end."""
    follow(play, 3000, 8000, output(0, 1200))
    follow(play, 9000, 20_000, begun())
    assert (only(play).end_us, only(play).end_source) == (us(1200), "pilot_output")


def _shown(play: Play) -> None:
    live = shown(started=70, factory_job=JOB)
    play.live(120, 1200, [live], records=[record("1.0", 400, 1000, started=70)])


@pytest.mark.parametrize("order", sorted(permutations(["begun", "shown", "whole"])))
def test_a_collector_shows_what_streams(order: tuple[str, ...]) -> None:
    """It is one pilot; the output tells when it began and ended, the collector the rest."""
    play, at = Play(), 1300
    for what in order:
        if what == "shown":
            _shown(play)
        else:
            its = begun() if what == "begun" else output(0, 1230)
            play.add_facts([its], SIZE)
        play.poll(at)
        at += 60
    play.rest(at, hours=12)
    row = only(play)
    assert (row.start_us, row.end_us, row.end_source) == (us(0), us(1230), "pilot_output")
    assert (row.identity.origin, row.identity.name) == ("collector", "glidein@node")
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1230.0 - 600}


def test_a_collector_says_when_it_was_gone(play: Play) -> None:
    """Its output told that it began; it is not waited for as if only that were known."""
    follow(play, 30, 30, output(end=None, condor_start_us=us(20), written_us=us(20)))
    vanish(play)
    play.rest(1620, hours=3)
    row = only(play)
    assert (row.start_us, row.end_us, row.end_source) == (us(0), us(600), "ad_expired")
    assert row.validation is Validation.PASSED


def test_its_name_and_site_are_told_later(play: Play) -> None:
    """The first lines tell neither; what is learnt then is its own."""
    follow(play, 200, 600, begun())
    assert only(play).identity.name.startswith("7.0@")
    name = output().name._replace(startd="glidein_1_2", site="Here")
    follow(play, 900, 5000, output(0, 1200, name=name))
    key: PilotRow = only(play)
    assert (key.identity.name, key.identity.key) == ("glidein_1_2@node", ("Here", "entry"))
    assert key.start_us == T0 * SECOND_US


def test_it_makes_no_difference_what_is_told_first() -> None:
    """Neither for a pilot that was killed, with and without its queue."""
    grown = begun(900, condor_end_us=us(800))
    for facts in ([begun(), grown], [begun(), grown, *queue(0, 1000)]):
        found = []
        for order in ([*facts], [*facts[1:], facts[0]], [*facts[::-1]]):
            play = Play()
            for at, fact in enumerate(order):
                follow(play, 1000 + at * 300, 1000 + at * 300, fact)
            play.rest(9000, hours=8)
            found.append(lives(play))
        assert found[0] == found[1] == found[2]


def test_the_list_of_pilots_does_not_call_it_idle(play: Play) -> None:
    """Nothing tells what it does."""
    follow(play, 200, 600, event(S.STARTED, 0), begun())
    listed = StoredPilot(only(play), (), AsOf(us(600)))
    assert (listed.state, listed.doing) == ("open", "runs, jobs not known")


@pytest.mark.parametrize("end", [700, 3000])
def test_a_run_on_it_tells_that_it_was_there(end: int) -> None:
    """Whether the record or the output comes first; what it rests on is said."""
    name = output().name._replace(startd="glidein", node="node")
    its = begun(validation_end_us=us(50), name=name)
    found = []
    for order in ("record first", "output first"):
        play = Play()
        if order == "output first":
            follow(play, 200, 4000, its)
        play.poll(4060, records=[record("1.0", 400, end, started=62)])
        play.rest(4120, hours=6)
        if order == "record first":
            follow(play, 30_000, 30_000, its)
        play.rest(31_000, hours=6)
        row = only(play)
        assert (row.end_us, row.end_source) == (us(end), "assumed")
        assert row.assumed[Assumption.END] == (us(0), us(end))
        found.append(lives(play))
    assert found[0] == found[1]


def test_what_a_summary_told_is_taken_back_after_a_restart(play: Play) -> None:
    """Another that it may be of comes while the first is waited for: neither ran a job by it."""
    others = begun()._replace(name=output().name._replace(schedd="factory2"))
    follow(play, 120, 120, begun(), line(1300, 1200, jobs=1, jobs_s=100, idle=0))
    play.restart()
    follow(play, 300, 20_000, others)
    counted = {key.category for key, n in play.stored.counts.items() if n and key.what == "pilots"}
    assert counted == {Category.UNCLASSIFIED}
    assert play.seconds() == {"unclassified": 2 * 4 * 60.0}


def test_an_import_into_a_ledger_that_a_daemon_keeps(play: Play) -> None:
    """It gives up nothing that the daemon follows."""
    follow(play, 200, 600, event(S.STARTED, 0), begun())
    imported(play, 5 * HOUR, comes=ExpectedInput.NO_FILES)
    assert (only(play).end_us, play.seconds()) == (None, {})


def test_a_restart_does_not_begin_the_queues_time_anew(play: Play) -> None:
    """One whose end the queue never tells ends after 60 days, also with a restart each month."""
    follow(play, 200, 600, event(S.SUBMITTED, -300), event(S.STARTED, 0), begun())
    day = 86400
    for month in range(1, 4):
        play.restart()
        for at in range(month * 30 * day, (month + 1) * 30 * day, day):
            play.poll(at)
            assert (only(play).end_us is None) is (at < 60 * day + 100), at / day
    assert (only(play).end_us, only(play).end_source) == (us(60), "assumed")


def test_each_pilot_of_a_number_has_its_own_files_time(play: Play) -> None:
    """The first execution was silent since long, while the second still writes."""
    follow(play, 200, 600, begun())
    for hour in range(1, 6):
        second = output(
            1000,
            None,
            condor_start_us=us(1060),
            logs=(),
            written_us=us(hour * HOUR),
            validation_end_us=us(hour * HOUR - 50),
        )
        follow(play, hour * HOUR + 60, hour * HOUR + 3000, second)
    ends = sorted((pilot.start_us, pilot.end_us) for pilot in play.stored.pilots.values())
    assert ends == [(us(0), us(60)), (us(1000), None)]
