"""From the events and lines of a number to the jobs that had it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.factory.jobs import MOST, FactoryJob, QueueRecord
from gwmond.model.pilots.file_facts import CompletedPilot, PilotName, QueueEvent
from gwmond.model.times import SECOND_US
from gwmond.pilots.factory.records import add, jobs
from tests.build.pilot_files import S, event, line, us

DAY = 86400


def found(*facts: QueueEvent | CompletedPilot) -> list[FactoryJob]:
    """The jobs of some facts, told in any order."""
    shuffled = [*facts, *facts[:1]]
    random.Random(1).shuffle(shuffled)
    place = QueueRecord("e", "7.0")
    for fact in shuffled:
        place = add(place, [fact]).place
    assert place == add(QueueRecord("e", "7.0"), facts).place
    return jobs(place)


def told(text: str) -> list[QueueEvent | CompletedPilot]:
    """``submitted 0; started 9; line 700 600``: events, and lines with their duration."""
    facts: list[QueueEvent | CompletedPilot] = []
    for what, at, *more in (step.split() for step in text.split(";") if step):
        of = dict(word.split("=") for word in more if "=" in word)
        made = line(int(at), int(more[0])) if what == "line" else event(S(what), int(at), **of)
        facts.append(made)
    return facts


def _seconds(at_us: int | None) -> str:
    return "?" if at_us is None else str((at_us - us(0)) // SECOND_US)


def seen(text: str) -> str:
    """Of each job when it was submitted, began and ended, how it is, and when its line came."""
    shown = []
    for job in found(*told(text)):
        job_times = "-".join(map(_seconds, (job.submitted_us, job.started_us, job.ended_us)))
        how = " over" if job.over else " runs" if job.runs else ""
        of_line = f" line {_seconds(job.line.written_us)}" if job.line else ""
        shown.append(f"{job_times}{how}{of_line}")
    return ", ".join(shown)


LOST = (
    "submitted 0; started 10",
    "submitted 0; started 10; evicted 20; started 30",
    "started 10",
)
NEXT = "submitted 9000; started 9010; ended 9100"
THIRD = "submitted 20000; started 20010; ended 20100"
ONE = "submitted 0; started 10; ended 20"
DAYS = [n * DAY for n in range(3)]
GONE = ("evicted 200", "held 200; released 300", "evicted 200; held 210; released 300")


@pytest.mark.parametrize(
    ("text", "lives"),
    [
        # Pending is of no use.
        ("submitted 0; pending 100; started 200; ended 300", "0-200-300 over"),
        # A hold is an end, unless the job goes on without another start.
        ("submitted 0; started 100; held 200; removed 300", "0-100-200 over"),
        ("submitted 0; started 100; held 200", "0-100-200 over"),
        ("submitted 0; started 100; held 200; released 250", "0-100-200 over"),
        ("submitted 0; started 100; evicted 200; held 250", "0-100-200 over"),
        ("submitted 0; held 50", "0-?-50"),
        ("submitted 0; held 50; released 90", "0-?-50"),
        ("submitted 0; started 100; held 200; released 250; ended 300", "0-100-300 over"),
        ("submitted 0; started 100; evicted 200", "0-100-200 over"),
        ("submitted 0; started 100; started 150; ended 500", "0-100-500 over"),
        ("submitted 0; held 50; removed 90", "0-?-50 over"),
        ("submitted 0; failed 50", "0-?-50 over"),
        ("submitted 0; started 100", "0-100-? runs"),
        # Each start is an execution: the first has the submission, the last a line.
        *(
            (
                f"submitted 0; started 100; {gone}; started 400{last}; line 600 100",
                f"0-100-200 over, ?-400-{then} line 600",
            )
            for gone in (*GONE, "failed 200")
            for last, then in (
                ("", "?"),
                ("; ended 500", "500 over"),
                ("; held 500", "500 over"),
            )
        ),
        # Copies that differ by a second are one; so does one that was removed once it had ended.
        ("submitted 0; started 100; ended 300; ended 301", "0-100-300 over"),
        ("submitted 0; started 100; ended 300; removed 900", "0-100-300 over"),
        # A lost end is that of one job: it had left the queue when the number came again.
        *(
            (
                f"{lost}; {NEXT}; {last}; {THIRD}",
                f"{of}, 9000-9010-9100 over, 20000-20010-20100 over",
            )
            for lost, of in zip(LOST, ("0-10-?", "0-10-20 over, ?-30-?", "?-10-?"), strict=True)
            for last in ("ended 9100", "ended 9130", "removed 9900")
        ),
        # Each end is lost: the last may still run; one that was submitted twice is one.
        (
            "; ".join(f"submitted {n}; submitted {n + 1}; started {n + 10}" for n in DAYS),
            ", ".join(f"{n}-{n + 10}-?{' runs' * (n == DAYS[2])}" for n in DAYS),
        ),
        # Another submission, another directory, or two months later: another job.
        (f"{ONE}; submitted 500; started 600", "0-10-20 over, 500-600-? runs"),
        (f"{ONE}; started 15 instance=other", "0-10-20 over, ?-15-? runs"),
        (f"{ONE}; started {100 * DAY}", f"0-10-20 over, ?-{100 * DAY}-? runs"),
        # Lines find their job by user and time; of two lines of one job the later counts.
        ("submitted 0; started 10; ended 110; line 150 100; line 160 99", "0-10-110 over line 160"),
        (
            "submitted 0; started 10; ended 110; line 150 100; submitted 500; line 900 100",
            "0-10-110 over line 150, 500-?-? line 900",
        ),
    ],
)
def test_the_jobs_of_a_number(text: str, lives: str) -> None:
    """In whatever order they are told."""
    assert seen(text) == lives


def test_what_else_is_known_of_them() -> None:
    """The client is in the log's name; a lost job is settled with the next, and says no more."""
    (job,) = found(*told(ONE))
    assert job.client == "fe.main"
    one, two = found(*told("submitted 0; started 100; evicted 200; started 400"))
    assert one.first_us == two.first_us
    for lost in LOST:
        *_, first, _, _ = found(*told(f"{lost}; {NEXT}; {THIRD}"))
        assert (first.ended_us, first.life, first.settled_us) == (None, None, us(9000))
    (job,) = found(*told("submitted 0; started 10; ended 110; line 160 99"))
    assert job.life == (us(10), us(110))
    first, second = found(*told("started 10; ended 110; line 150 100; submitted 500; line 900 100"))
    assert (first.settled_us, second.settled_us) == (us(110), us(900))


def test_which_events_are_kept() -> None:
    """The last of very many, and it is known since when all are, and that some are not."""
    several = [event(S.STARTED, at) for at in range(MOST)]
    place, new, cut = add(QueueRecord("e", "7.0"), several[1:])
    assert (place.cut_us, new, cut) == (0, several[1:], False)
    last = event(S.ENDED, 9000)
    place, new, cut = add(place, [*several, last])
    assert (len(place.events), place.cut_us) == (MOST, us(1))
    assert (new, cut) == ([last], True)
    assert add(place, several[1:]) == (place, [], False)
    assert add(place, several) == (place, [], True)
    place, _, cut = add(QueueRecord("e", "7.0"), [line(at, 100) for at in range(MOST + 1)])
    assert (place.cut_us, cut) == (us(1), True)


def test_lines_that_are_too_far_apart_are_of_jobs_of_one_user() -> None:
    """Of none the directory of an instance is known."""
    told = found(line(0, 100), line(61 * DAY, 100))
    assert [(job.instance, job.user) for job in told] == [("", "fe")] * 2


def test_a_line_of_another_user_is_of_another_job() -> None:
    name = PilotName(user="cms")
    other, mine = found(*told("submitted 0; started 10; ended 110"), line(150, 100, name=name))
    assert {other.line is None, mine.line is None} == {True, False}


@pytest.mark.parametrize(
    ("duration", "life"), [(100, (us(900), us(1000))), (0, None), (None, None)]
)
def test_a_line_alone(duration: int | None, life: tuple[int, int] | None) -> None:
    """Durations of 0 and -1 tell nothing."""
    (job,) = found(line(1000, duration))
    assert job.life == life
    assert job.settled_us == us(1000)


def test_which_pilot_it_may_be() -> None:
    """One that began while the job was there, within an hour."""
    (job,) = found(event(S.SUBMITTED, 0), event(S.STARTED, 5000), event(S.ENDED, 9000))
    starts = (-3601, -3599, 8000, 12_599, 12_601)
    assert [job.fits(us(at)) for at in starts] == [False, True, True, True, False]


facts_of = st.one_of(
    st.builds(event, st.sampled_from(S), st.integers(0, 300 * DAY), user=st.sampled_from("ab")),
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
