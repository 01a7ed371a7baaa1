"""From the events and lines of a number to the jobs that had it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.factory.jobs import MOST, FactoryJob, QueueRecord
from gwmond.model.pilots.file_facts import CompletedPilot, PilotName, QueueEvent, QueueState
from gwmond.pilots.factory.records import add, jobs

S = QueueState
US = 1_000_000
DAY = 86400
T0 = 1_700_000_000


def event(state: QueueState, at: int, user: str = "fe", instance: str = "i") -> QueueEvent:
    """An event, in seconds from T0."""
    name = PilotName(instance=instance, user=user, entry="e", cluster=7, proc=0)
    return QueueEvent("condor_activity_20231114_fe.main.log", name, state, (T0 + at) * US)


def line(written: int, duration: int | None = 100, user: str = "fe") -> CompletedPilot:
    """A line, in seconds from T0."""
    name = PilotName(user=user, frontend="fe", entry="e", cluster=7, proc=0)
    numbers = (True, 90, 0, 0, 0, 0, 100, 1000, 0, 1000)
    return CompletedPilot("p", name, (T0 + written) * US, duration, *numbers)


def found(*facts: QueueEvent | CompletedPilot) -> list[FactoryJob]:
    """The jobs of some facts, told in any order."""
    shuffled = [*facts, *facts[:1]]
    random.Random(1).shuffle(shuffled)
    place = QueueRecord("e", "7.0")
    for fact in shuffled:
        place = add(place, [fact]).place
    assert place == add(QueueRecord("e", "7.0"), facts).place
    return jobs(place)


def times(job: FactoryJob) -> tuple[int | None, ...]:
    """Submitted, started, ended, in seconds from T0."""
    told = job.submitted_us, job.started_us, job.ended_us
    return tuple(None if at is None else at // US - T0 for at in told)


def test_a_whole_life() -> None:
    """Pending is of no use; the client is in the log's name."""
    states = S.SUBMITTED, S.PENDING, S.STARTED, S.ENDED
    (job,) = found(*(event(state, n * 100) for n, state in enumerate(states)))
    assert times(job) == (0, 200, 300)
    assert (job.client, job.over, job.line) == ("fe.main", True, None)


@pytest.mark.parametrize(
    ("told", "expected", "over"),
    [
        ([(S.STARTED, 100), (S.HELD, 200), (S.REMOVED, 300)], (0, 100, 200), True),
        ([(S.STARTED, 100), (S.HELD, 200)], (0, 100, 200), True),
        ([(S.STARTED, 100), (S.HELD, 200), (S.RELEASED, 250)], (0, 100, 200), True),
        ([(S.STARTED, 100), (S.EVICTED, 200), (S.HELD, 250)], (0, 100, 200), True),
        ([(S.HELD, 50)], (0, None, 50), False),
        ([(S.HELD, 50), (S.RELEASED, 90)], (0, None, 50), False),
        (
            [(S.STARTED, 100), (S.HELD, 200), (S.RELEASED, 250), (S.ENDED, 300)],
            (0, 100, 300),
            True,
        ),
        ([(S.STARTED, 100), (S.EVICTED, 200)], (0, 100, 200), True),
        ([(S.STARTED, 100), (S.STARTED, 150), (S.ENDED, 500)], (0, 100, 500), True),
        ([(S.HELD, 50), (S.REMOVED, 90)], (0, None, 50), True),
        ([(S.FAILED, 50)], (0, None, 50), True),
        ([(S.STARTED, 100)], (0, 100, None), False),
    ],
)
def test_the_start_and_the_first_end_after_it(
    told: list[tuple[QueueState, int]], expected: tuple[int | None, ...], over: bool
) -> None:
    """A hold is an end, unless the job goes on without another start."""
    (job,) = found(event(S.SUBMITTED, 0), *(event(*of) for of in told))
    assert (times(job), job.over) == (expected, bool(over))


@pytest.mark.parametrize(
    "gone",
    [
        [(S.EVICTED, 200)],
        [(S.HELD, 200), (S.RELEASED, 300)],
        [(S.EVICTED, 200), (S.HELD, 210), (S.RELEASED, 300)],
        [(S.FAILED, 200)],
    ],
)
@pytest.mark.parametrize("last", [[], [(S.ENDED, 500)], [(S.HELD, 500)]])
def test_each_start_is_an_execution(
    gone: list[tuple[QueueState, int]], last: list[tuple[QueueState, int]]
) -> None:
    """The first has the submission; a line is of the last one, as it is written at the end."""
    told = [(S.SUBMITTED, 0), (S.STARTED, 100), *gone, (S.STARTED, 400), *last]
    one, two = found(*(event(*of) for of in told), line(600))
    assert (times(one), one.over, one.line) == ((0, 100, 200), True, None)
    assert (times(two), two.line and two.line.written_us) == (
        (None, 400, 500 if last else None),
        (T0 + 600) * US,
    )
    assert two.over is bool(last)
    assert one.first_us == two.first_us


def test_copies_that_differ_by_a_second_are_one() -> None:
    """So does one that was removed once it had ended."""
    for last in (S.ENDED, 301), (S.REMOVED, 900):
        (job,) = found(
            event(S.SUBMITTED, 0), event(S.STARTED, 100), event(S.ENDED, 300), event(*last)
        )
        assert times(job) == (0, 100, 300)


@pytest.mark.parametrize(
    "lost",
    [
        [(S.SUBMITTED, 0), (S.STARTED, 10)],
        [(S.SUBMITTED, 0), (S.STARTED, 10), (S.EVICTED, 20), (S.STARTED, 30)],
        [(S.STARTED, 10)],
    ],
)
@pytest.mark.parametrize("last", [(S.ENDED, 9100), (S.ENDED, 9130), (S.REMOVED, 9900)])
def test_a_lost_end_is_that_of_one_job(
    lost: list[tuple[QueueState, int]], last: tuple[QueueState, int]
) -> None:
    """It had left the queue when the number came again; the jobs after it are whole."""
    second = [(S.SUBMITTED, 9000), (S.STARTED, 9010), (S.ENDED, 9100), last]
    third = [(S.SUBMITTED, 20_000), (S.STARTED, 20_010), (S.ENDED, 20_100)]
    *_, first, then, later = found(*(event(*of) for of in [*lost, *second, *third]))
    assert (first.ended_us, first.life, first.over, first.runs) == (None, None, False, False)
    assert first.settled_us == (T0 + 9000) * US
    assert [times(pilot_name) for pilot_name in (then, later)] == [
        (9000, 9010, 9100),
        (20_000, 20_010, 20_100),
    ]


def test_jobs_of_which_each_end_is_lost() -> None:
    """The last may still run; one that was submitted twice is one."""
    told = [(S.SUBMITTED, n * DAY + at) for n in range(3) for at in (0, 1)]
    told += [(S.STARTED, n * DAY + 10) for n in range(3)]
    every = found(*(event(*of) for of in told))
    assert [job.runs for job in every] == [False, False, True]
    assert [times(pilot_name) for pilot_name in every] == [
        (n * DAY, n * DAY + 10, None) for n in range(3)
    ]


def test_which_events_are_kept() -> None:
    """The last of very many, and it is known since when all are, and that some are not."""
    several = [event(S.STARTED, at) for at in range(MOST)]
    place, new, cut = add(QueueRecord("e", "7.0"), several[1:])
    assert (place.cut_us, new, cut) == (0, several[1:], False)
    last = event(S.ENDED, 9000)
    place, new, cut = add(place, [*several, last])
    assert (len(place.events), place.cut_us) == (MOST, (T0 + 1) * US)
    assert (new, cut) == ([last], True)
    assert add(place, several[1:]) == (place, [], False)
    assert add(place, several) == (place, [], True)
    place, _, cut = add(QueueRecord("e", "7.0"), [line(at) for at in range(MOST + 1)])
    assert (place.cut_us, cut) == ((T0 + 1) * US, True)


def test_a_number_that_comes_again() -> None:
    """Another submission, another directory, or two months later: another job."""
    one = [event(S.SUBMITTED, 0), event(S.STARTED, 10), event(S.ENDED, 20)]
    assert len(found(*one, event(S.SUBMITTED, 500), event(S.STARTED, 600))) == 2
    assert len(found(*one, event(S.STARTED, 15, instance="other"))) == 2
    assert len(found(*one, event(S.STARTED, 100 * DAY))) == 2


def test_lines_that_are_too_far_apart_are_of_jobs_of_one_user() -> None:
    """Of none the directory of an instance is known."""
    told = found(line(0), line(61 * DAY))
    assert [(job.instance, job.user) for job in told] == [("", "fe")] * 2


def test_lines_find_their_job() -> None:
    """By user and time; of two lines of one job the later counts."""
    one = [event(S.SUBMITTED, 0), event(S.STARTED, 10), event(S.ENDED, 110)]
    (job,) = found(*one, line(150), line(160, 99))
    assert job.line is not None
    assert job.line.duration_s == 99
    assert job.life == ((T0 + 10) * US, (T0 + 110) * US)
    other, mine = found(*one, line(150, user="cms"))
    assert {other.line is None, mine.line is None} == {True, False}
    first, second = found(*one, line(150), event(S.SUBMITTED, 500), line(900))
    assert [
        (pilot_name.settled_us or 0, pilot_name.line and pilot_name.line.written_us)
        for pilot_name in (first, second)
    ] == [
        ((T0 + 110) * US, (T0 + 150) * US),
        ((T0 + 900) * US, (T0 + 900) * US),
    ]


@pytest.mark.parametrize(
    ("duration", "life"), [(100, ((T0 + 900) * US, (T0 + 1000) * US)), (0, None), (None, None)]
)
def test_a_line_alone(duration: int | None, life: tuple[int, int] | None) -> None:
    """Durations of 0 and -1 tell nothing."""
    (job,) = found(line(1000, duration))
    assert job.life == life
    assert job.settled_us == (T0 + 1000) * US


def test_which_pilot_it_may_be() -> None:
    """One that began while the job was there, within an hour."""
    (job,) = found(event(S.SUBMITTED, 0), event(S.STARTED, 5000), event(S.ENDED, 9000))
    starts = (-3601, -3599, 8000, 12_599, 12_601)
    assert [job.fits((T0 + at) * US) for at in starts] == [False, True, True, True, False]


facts_of = st.one_of(
    st.builds(event, st.sampled_from(S), st.integers(0, 300 * DAY), st.sampled_from("ab")),
    st.builds(line, st.integers(0, 300 * DAY), st.none() | st.integers(0, 99999)),
)


@given(st.lists(facts_of, max_size=30), st.randoms())
def test_order_and_repetition_do_not_matter(
    facts: list[QueueEvent | CompletedPilot], rng: random.Random
) -> None:
    """A place is its facts; jobs begin before they end, and each line is of one at most."""
    place = add(QueueRecord("e", "7.0"), facts).place
    again = [*facts, *facts]
    rng.shuffle(again)
    assert add(add(QueueRecord("e", "7.0"), again[:7]).place, again[7:]).place == place
    every = jobs(place)
    lines = [pilot_name.line for pilot_name in every if pilot_name.line is not None]
    assert len(set(lines)) == len(lines)
    for job in every:
        if job.life is not None:
            assert job.life[0] < job.life[1]
