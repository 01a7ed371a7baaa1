"""A job of the factory that runs several times is several pilots; and jobs of one number."""

from __future__ import annotations

from itertools import permutations

import pytest

from gwmond.model.factory.jobs import MOST
from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.file_facts import FileFact, QueueEvent
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.model.problem_names import ProblemName
from tests.build.pilot_files import JOB, S, event, line, output, queue, us
from tests.build.play import Play, shown
from tests.build.played import add_files, times

DAY = 86400
EVICTED = [event(S.EVICTED, 1000)]
_HOLDS = (S.HELD, S.RELEASED)
HELD = [event(S.HELD, 1000), event(S.RELEASED, 1050)]


def again(first: int, last: int, gone: list[QueueEvent]) -> list[QueueEvent]:
    """A job that ran from 100 to 1000, and later from first to last."""
    begun = [event(S.SUBMITTED, 0), event(S.STARTED, 100), *gone]
    return [*begun, event(S.STARTED, first), event(S.ENDED, last)]


def rows(play: Play) -> list[PilotRow]:
    """The pilots, by when they began."""
    return sorted(play.stored.pilots.values(), key=lambda pilot: pilot.start_us)


@pytest.mark.parametrize("gone", [EVICTED, HELD])
@pytest.mark.parametrize("first", [1100, 5000, 90_000])
def test_each_execution_is_a_pilot(play: Play, gone: list[QueueEvent], first: int) -> None:
    """The queue alone tells of them: both are estimated, and both are accounted."""
    add_files(play, *again(first, first + 3000, gone), at=2 * DAY)
    assert times(play) == [(100, 1000), (first, first + 3000)]
    assert play.seconds() == {"unclassified": 4 * 3900.0}
    assert {Assumption.NO_OUTPUT in row.assumed for row in rows(play)} == {True}
    assert len({(row.identity.name, row.identity.started) for row in rows(play)}) == 2
    assert all(row.closed for row in rows(play))
    assert not play.stored.place("entry#7.0").open
    assert not play.accounting.left_out.get(ProblemName.AMBIGUOUS)


@pytest.mark.parametrize("first", [1100, 5000])
@pytest.mark.parametrize("order", range(6))
def test_the_output_and_the_summary_are_of_the_last(play: Play, first: int, order: int) -> None:
    """The stdout of the first was overwritten; whatever is told first, the result is the same."""
    last = first + 3000
    facts: list[list[FileFact]] = [
        [*again(first, last, EVICTED)],
        [output(first + 10, last - 10)],
        [line(last + 60, 2980)],
    ]
    for number, some in enumerate(list(permutations(facts))[order]):
        add_files(play, *some, at=2 * DAY * (number + 1))
    assert times(play) == [(100, 1000), (first + 10, last - 10)]
    assert play.seconds() == {"unclassified": 4 * 900.0, "decision_problem": 4 * 2980.0}
    assert [row.end_source for row in rows(play)] == ["queue", "pilot_output"]
    assert not play.accounting.contradictions
    assert not play.accounting.left_out.get(ProblemName.AMBIGUOUS)


@pytest.mark.parametrize("ahead", [-200, 200])
def test_clocks_that_differ(play: Play, ahead: int) -> None:
    """By less than what lies between: by its end it is known which one it was."""
    add_files(play, *again(1100, 4100, EVICTED), output(1100 + ahead, 4100 + ahead), at=DAY)
    assert times(play) == [(100, 1000), (1100 + ahead, 4100 + ahead)]


def test_the_second_begins_while_the_first_is_waited_for(play: Play) -> None:
    """The first streamed its output, which the second replaced."""
    events = again(1100, 4100, EVICTED)
    cut = output(100, None, condor_start_us=us(160), written_us=us(200))
    grown = output(1105, None, condor_start_us=us(1160), written_us=us(1200))
    polls: list[tuple[int, list[FileFact]]] = [
        (300, [*events[:2], cut]),
        (1200, [*events[2:4], grown]),
    ]
    for at, facts in polls:
        play.add_facts(facts)
        play.poll(at)
    play.restart()
    add_files(play, *events[4:], output(1105, 4090), at=4200)
    assert times(play) == [(100, 1000), (1105, 4090)]
    assert [row.end_source for row in rows(play)] == ["queue", "pilot_output"]


def test_both_were_shown_by_a_collector(play: Play) -> None:
    """Each is the execution in which it began, and ended when that did."""
    one = shown("glidein@one", started=150, factory_job=JOB)
    two = shown("glidein@two", started=1200, factory_job=JOB)
    play.live(180, 600, [one])
    for at in range(660, 1500, 60):
        play.poll(at, [one._replace(last_heard=one.started + 450)])
    play.live(1500, 3000, [two])
    for at in range(3060, 4200, 60):
        play.poll(at, [two._replace(last_heard=two.started + 1800)])
    add_files(play, *again(1100, 3500, EVICTED), at=4260)
    assert times(play) == [(150, 1000), (1200, 3500)]
    assert {row.end_source for row in rows(play)} == {"queue"}
    assert not play.accounting.left_out.get(ProblemName.AMBIGUOUS)


def test_what_ran_on_is_not_ended_by_another_execution(play: Play) -> None:
    """The output of the second is known first, and the events come one by one."""
    for number, fact in enumerate(again(1100, 4100, HELD)):
        add_files(play, fact, *([output(1105, 4090)] if number == 2 else []), at=DAY * (number + 1))
    assert times(play) == [(100, 1000), (1105, 4090)]


@pytest.mark.parametrize("until", [20_000, 80_000])
@pytest.mark.parametrize("gone", [[S.EVICTED], [S.HELD, S.RELEASED]])
@pytest.mark.parametrize("first", ["events", "output"])
def test_a_pilot_that_lived_on_is_one(play: Play, gone: list[S], until: int, first: str) -> None:
    """Its own output tells that it lived through both executions."""
    events = [
        event(S.SUBMITTED, -300),
        event(S.STARTED, 0),
        *(event(queue_state, until) for queue_state in gone),
    ]
    events += [event(S.STARTED, until + 1000), event(S.ENDED, DAY)]
    facts: list[list[FileFact]] = [[*events], [output(5, DAY - 10)]]
    for number, some in enumerate(facts if first == "events" else facts[::-1]):
        add_files(play, *some, at=(2 + number) * DAY)
    assert times(play) == [(5, DAY - 10)]
    assert play.seconds() == {"decision_problem": 4 * (DAY - 15.0)}
    assert not play.stored.place("entry#7.0").open
    assert not play.stored.place("entry#7.0").checked


def test_a_pilot_that_a_collector_saw_live_on_is_one(play: Play) -> None:
    """So it is where the execution before is the shorter one."""
    play.live(120, 8000, [shown("glidein@one", started=60, factory_job=JOB)])
    for at in range(8060, 12_000, 60):
        play.poll(at)
    events = [event(S.SUBMITTED, -300), event(S.STARTED, 0), event(S.HELD, 3000)]
    add_files(play, *events, event(S.STARTED, 3510), event(S.ENDED, 8000), at=2 * DAY)
    assert len(times(play)) == 1
    assert not play.stored.place("entry#7.0").checked


def test_a_lost_end_takes_nothing_from_other_jobs() -> None:
    """Whether the log of the first job is read first or last; what is not known is counted."""
    lost = [event(S.SUBMITTED, 0), event(S.STARTED, 100)]
    whole = [
        event(how, n * DAY + at)
        for n in (10, 20)
        for how, at in ((S.SUBMITTED, 0), (S.STARTED, 100), (S.ENDED, 5000))
    ]
    expected = [(10.0 * DAY + 100, 10.0 * DAY + 5000), (20.0 * DAY + 100, 20.0 * DAY + 5000)]
    for order in permutations([lost, whole[:3], whole[3:]]):
        play = Play()
        for number, some in enumerate(order):
            add_files(play, *some, at=(30 + number) * DAY)
        assert times(play) == expected
        assert play.seconds() == {"unclassified": 4 * 9800.0}
        place = play.stored.place("entry#7.0")
        assert (place.open, "ambiguous" in place.checked) == (False, False)
        assert place.checked == ("no_times",)
        assert play.stored.corrected == 0


def test_an_end_that_turns_out_to_be_of_the_next_job(play: Play) -> None:
    """What was made of it is withdrawn, as the end of the first is not known any more."""
    add_files(play, event(S.SUBMITTED, 0), event(S.STARTED, 100), event(S.REMOVED, 900), at=DAY)
    assert times(play) == [(100, 900)]
    add_files(play, event(S.SUBMITTED, 500), at=2 * DAY)
    assert times(play) == []
    assert play.series() == []


def test_an_output_is_of_the_job_after_a_lost_end(play: Play) -> None:
    """It was killed hard: its end is that in the queue."""
    events = [event(S.SUBMITTED, 0), event(S.STARTED, 100)]
    events += [event(S.SUBMITTED, DAY), event(S.STARTED, DAY + 5), event(S.ENDED, DAY + 5000)]
    add_files(play, *events, output(DAY + 10, None), at=3 * DAY)
    assert times(play) == [(DAY + 10, DAY + 5000)]
    assert [row.end_source for row in rows(play)] == ["queue"]


@pytest.mark.parametrize("ahead", [4000, 1200])
def test_a_job_with_very_many_executions(play: Play, ahead: int) -> None:
    """The oldest events are not kept; what was accounted of them stays."""
    number = MOST // 2 + 6
    add_files(play, event(S.SUBMITTED, -300), at=0)
    for n in range(number):
        at = n * ahead
        play.add_facts([event(S.STARTED, at)])
        play.poll(at + 60)
        add_files(play, event(S.EVICTED, at + 900), at=at + 1000, hours=2)
    add_files(play, at=number * ahead + DAY)
    assert len(play.stored.place("entry#7.0").events) == MOST
    assert times(play) == [(n * ahead, n * ahead + 900) for n in range(number)]
    assert play.seconds() == {"unclassified": 4 * 900.0 * number}
    assert play.stored.corrected == 0


def test_more_events_than_are_kept_are_told(play: Play) -> None:
    """Once for a job, whenever they come, also if all that is left out is older; not of as many."""
    held = [event(how, n + i) for n in range(0, 3 * MOST, 2) for i, how in enumerate(_HOLDS)]
    add_files(play, *held[-MOST:], at=DAY)
    assert not play.accounting.left_out.get(ProblemName.TOO_MANY_EVENTS)
    add_files(play, *held[:10], at=2 * DAY)
    assert play.accounting.left_out[ProblemName.TOO_MANY_EVENTS] == 1
    add_files(play, *held, at=3 * DAY)
    assert play.accounting.left_out[ProblemName.TOO_MANY_EVENTS] == 1
    play.restart()
    add_files(play, *held, at=4 * DAY)
    assert not play.accounting.left_out.get(ProblemName.TOO_MANY_EVENTS)
    assert len(play.stored.place("entry#7.0").events) == MOST


def two_factories(b_start: int = 600) -> tuple[list[QueueEvent], list[QueueEvent]]:
    """The same number at the same time, in directories of the same name."""
    a = [event(S.SUBMITTED, 0), event(S.STARTED, 100), event(S.ENDED, 3700)]
    b = [event(s, b_start + at) for s, at in ((S.SUBMITTED, 0), (S.STARTED, 100), (S.ENDED, 1900))]
    return a, b


def test_two_factories_one_after_the_other(play: Play) -> None:
    """They can be told apart."""
    a, b = two_factories(3800)
    add_files(play, *a, *b, at=DAY)
    assert times(play) == [(100, 3700), (3900, 5700)]


def test_an_output_of_one_of_two_factories(play: Play) -> None:
    """It tells of itself; the other is not made up, and what is left out is counted."""
    a, b = two_factories()
    add_files(play, *a, *b, output(110, 3690), at=DAY)
    assert times(play) == [(110, 3690)]
    assert play.accounting.left_out[ProblemName.AMBIGUOUS] == 1


def test_a_plain_queue_is_one_pilot(play: Play) -> None:
    """As before."""
    add_files(play, *queue(0, 1200))
    assert times(play) == [(0, 1200)]
