"""Cursors of histories: nothing is lost silently, whatever is written or rotated meanwhile."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.facts import Gap
from gwmond.sources.htcondor.histories import history_cursor, history_fetch
from gwmond.sources.htcondor.histories.history_cursor import (
    HistoryAnswer,
    HistoryLimits,
    HistoryState,
)
from tests.examples import examples
from tests.sources.fake_history import SCHEDD, FakeHistory, Row

NOW = 1_700_000_000
DISORDER_S = 2
LIMITS = HistoryLimits(records=10, queries=24, lookback_s=10**8, disorder_s=DISORDER_S)
KINDS = ("epochs", "history", "startd_history")


def rows(number: int, *, first: int = 1, begin: int = NOW - 10_000, every: int = 7) -> list[Row]:
    return [Row(first + n, 1, begin + n * every) for n in range(number)]


def jobs(answers: Iterable[HistoryAnswer]) -> list[int]:
    return [
        int(record.fact.job.split("#")[1].split(".")[0])
        for answer in answers
        for record in answer.records
    ]


def fetch(fake: FakeHistory, state: str = "", limits: HistoryLimits = LIMITS) -> HistoryAnswer:
    return history_fetch.fetch(fake, SCHEDD, fake.kind, state, limits, NOW)


def drain(
    fake: FakeHistory, state: str = "", limits: HistoryLimits = LIMITS
) -> list[HistoryAnswer]:
    """Call until all is known; each call must get on."""
    answers: list[HistoryAnswer] = []
    for _ in range(3000):
        answer = fetch(fake, state, limits)
        answers.append(answer)
        if not answer.behind:
            return answers
        assert answer.state != state
        state = answer.state
    raise AssertionError("it does not end")


@pytest.mark.parametrize("kind", KINDS)
def test_few_records_come_at_once_and_then_only_new_ones(kind: str) -> None:
    """The first call returns all; the next only what is new, by a query that ends at the cursor."""
    fake = FakeHistory(kind, rows(5))
    first = fetch(fake)
    assert sorted(jobs([first])) == [1, 2, 3, 4, 5]
    assert (first.complete_us, first.behind, first.gap) == (NOW * 10**6, False, None)
    assert fetch(fake, first.state).records == ()
    fake.rows += rows(2, first=6, begin=NOW)
    second = fetch(fake, first.state)
    assert sorted(jobs([second])) == [6, 7]
    assert (second.gap, second.problems) == (None, ())
    assert "#4.0#" in fake.asked[-1][2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_backlog_comes_oldest_first_in_bounded_answers(kind: str) -> None:
    """Ten times the limit takes several calls, none with much more than the limit."""
    fake = FakeHistory(kind, rows(100))
    answers = drain(fake)
    assert set(jobs(answers)) == set(range(1, 101))
    assert len(jobs(answers)) <= 110
    assert all(len(answer.records) <= 15 for answer in answers)
    assert fake.largest <= 12
    done = [answer.progress.done_us for answer in answers if answer.progress]
    assert done == sorted(done)
    assert [answer.complete_us is None for answer in answers] == [True] * (len(answers) - 1) + [
        False
    ]
    assert fetch(fake, answers[-1].state).records == ()


def test_lookback_limits_how_far_the_first_call_goes() -> None:
    """Without a state only records within the lookback come, also when all are older."""
    limits = LIMITS._replace(lookback_s=100)
    fake = FakeHistory("epochs", [*rows(50), Row(60, 1, NOW - 50)])
    answer = fetch(fake, limits=limits)
    assert jobs([answer]) == [60]
    old = FakeHistory("epochs", rows(50))
    first = fetch(old, limits=limits)
    old.rows.append(Row(70, 1, NOW))
    assert (jobs([first]), jobs([fetch(old, first.state, limits)])) == ([], [70])
    assert "#49.0#" in old.asked[-1][2]


@pytest.mark.parametrize("kind", KINDS)
def test_rotation_is_a_gap(kind: str) -> None:
    """Where the newest record taken is gone, the gap says between which times records may lack."""
    fake = FakeHistory(kind, rows(5, begin=NOW - 1000))
    state = fetch(fake).state
    fake.rows = rows(3, first=20, begin=NOW - 100)
    answer = fetch(fake, state)
    assert sorted(jobs([answer])) == [20, 21, 22]
    assert answer.gap is not None
    start, end = answer.gap.start_us, answer.gap.end_us
    assert (start, end) == ((NOW - 1000 + 28) * 10**6, (NOW - 100) * 10**6)
    assert fetch(fake, answer.state).gap is None


def test_rotation_with_a_backlog_is_one_gap() -> None:
    """The same, when more has been written since than one call takes."""
    fake = FakeHistory("epochs", rows(5, begin=NOW - 9000))
    state = fetch(fake).state
    fake.rows = rows(60, first=20, begin=NOW - 1000)
    answers = drain(fake, state)
    assert set(jobs(answers)) == set(range(20, 80))
    (gap,) = [answer.gap for answer in answers if answer.gap]
    assert (gap.start_us, gap.end_us) == ((NOW - 9000 + 28) * 10**6, (NOW - 1000) * 10**6)


def test_rotation_while_draining_is_a_gap() -> None:
    """Records that are rotated away before their window is read are told as lost."""
    fake = FakeHistory("epochs", rows(100))
    first = fetch(fake, limits=LIMITS._replace(lookback_s=10_000))
    assert first.behind
    assert first.records
    fake.rows = fake.rows[60:]
    answers = [first, *drain(fake, first.state)]
    assert set(jobs(answers)) >= set(range(61, 101))
    lost = {row.time for row in rows(100) if row.job not in jobs(answers)}
    (gap,) = [answer.gap for answer in answers if answer.gap]
    assert gap.start_us is not None
    assert all(gap.start_us <= time * 10**6 <= gap.end_us for time in lost)


def test_where_windows_are_larger_a_backlog_is_only_planned_at_first() -> None:
    """As many histories may be asked for what is new at once, and few for a window."""
    fake, limits = FakeHistory("epochs", rows(100)), LIMITS._replace(lookback_s=10_000, new=5)
    plan = fetch(fake, limits=limits)
    assert (plan.behind, plan.records) == (True, ())
    assert history_cursor.is_backlog(plan.state)
    answers = drain(fake, plan.state)
    assert set(jobs(answers)) == set(range(1, 101))
    assert max(len(answer.records) for answer in answers) > limits.new
    assert not history_cursor.is_backlog(answers[-1].state)
    assert not history_cursor.is_backlog("garbage")


def test_an_emptied_history_is_a_gap() -> None:
    """A file that is empty now: the gap lasts until now, and later records come."""
    fake = FakeHistory("history", rows(5, begin=NOW - 1000))
    state = fetch(fake).state
    fake.rows = []
    answer = fetch(fake, state)
    assert answer.gap is not None
    assert answer.gap.end_us == NOW * 10**6
    fake.rows = [Row(9, 1, NOW - 5)]
    assert jobs([fetch(fake, answer.state)]) == [9]


def test_records_that_look_alike_are_no_gap() -> None:
    """Two records with the same identity (held as it ended) do not hide what is between them."""
    one, two, three = Row(1, 1, NOW - 9), Row(2, 1, NOW - 9), Row(3, 1, NOW - 9)
    fake = FakeHistory("epochs", [one, two])
    state = fetch(fake).state
    fake.rows = [one, two, three, one]
    answers = drain(fake, state)
    assert 3 in jobs(answers)
    assert all(answer.gap is None for answer in answers)


def test_a_second_with_more_records_than_the_limit() -> None:
    """Hundreds of records of one second come all the same."""
    crowd = [Row(100 + n, 1, NOW - 500) for n in range(300)]
    fake = FakeHistory("history", [*rows(20), *crowd, *rows(20, first=50, begin=NOW - 400)])
    answers = drain(fake)
    assert set(jobs(answers)) == {*range(1, 21), *range(100, 400), *range(50, 70)}
    assert all(len(answer.records) <= 15 for answer in answers)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_that_the_daemon_cuts_off(kind: str) -> None:
    """Should a daemon return fewer records than asked for, a known backlog still comes whole."""
    fake = FakeHistory(kind, rows(3, begin=NOW - 9000))
    state = fetch(fake).state
    fake.most = 6
    fake.rows += rows(100, first=10, begin=NOW - 8000)
    answers = drain(fake, state)
    assert set(jobs(answers)) >= set(range(10, 110))
    assert [answer.gap for answer in answers if answer.gap] == []


def test_records_too_deep_to_be_looked_at_are_a_gap() -> None:
    """A daemon looks at so many of the newest records only; those before are told as lost."""
    fake = FakeHistory("epochs", rows(3, begin=NOW - 9000))
    state = fetch(fake).state
    fake.scanned = 60
    fake.rows += rows(100, first=10, begin=NOW - 8000)
    answers = drain(fake, state)
    assert set(jobs(answers)) == set(range(50, 110))
    (gap,) = [answer.gap for answer in answers if answer.gap]
    assert (gap.start_us, gap.end_us) == ((NOW - 9000 + 14) * 10**6, (NOW - 8000 + 280) * 10**6)


def test_records_without_a_time_and_from_the_future() -> None:
    """A time of 0, or one beyond now, is in some window too."""
    odd = [
        Row(900, 1, 0),
        Row(901, 1, NOW + 5000),
        *(Row(910 + n, 1, NOW + 9000) for n in range(30)),
    ]
    fake = FakeHistory("history", [*rows(30), *odd])
    state = fetch(FakeHistory("history", rows(1))).state
    answers = drain(fake, state)
    undated = [answer.problems for answer in answers if answer.problems]
    assert undated
    assert set(jobs(answers)) >= {*range(2, 31), 901, *range(910, 940)}


def test_a_state_that_is_not_understood() -> None:
    """It counts as a problem, and reading begins anew."""
    fake = FakeHistory("epochs", rows(3))
    row = '[[null,null],1,[true,null,1,1,1,[null,null],"x",1,0,null],null]'
    for text in ("{", row, "[1,2]", '[[["a",1],null],1,null,null]'):
        answer = fetch(fake, text)
        assert [problem.problem for problem in answer.problems] == ["bad_state"], text
        assert len(answer.records) == 3


def test_a_draining_of_an_earlier_version_begins_anew() -> None:
    """It had other fields; from where the cursor is nothing is lost."""
    fake = FakeHistory("epochs", rows(3))
    state = json.loads(fetch(fake).state)
    fake.rows += rows(60, first=10, begin=NOW - 5000)
    state[2] = [False, None, 1, NOW, NOW, 1, 1, [None, None], 1, 0, False, None, []]
    assert set(jobs(drain(fake, json.dumps(state)))) == set(range(10, 70))


@settings(max_examples=examples(150))
@given(
    kind=st.sampled_from(KINDS),
    records=st.integers(2, 9),
    queries=st.integers(3, 24),
    steps=st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(1, 4)), min_size=1, max_size=8
    ),
    seed=st.integers(0, 10**6),
)
def test_nothing_is_lost_without_a_gap(
    kind: str, records: int, queries: int, steps: list[tuple[int, int, int]], seed: int
) -> None:
    """Whatever is written (in some disorder) and rotated away between calls, and though some
    answers are lost before they are stored, each record that was written since the first one was
    taken comes, or lies within a gap; and all that are still kept come."""
    chance = random.Random(seed)
    limits = LIMITS._replace(records=records, queries=queries)
    fake = FakeHistory(kind)
    state, clock, job = "", NOW - 5000, 0
    got: set[int] = set()
    gaps: list[Gap] = []
    due: dict[int, Row] | None = None
    for number, rotated, calls in steps:
        for _ in range(number):
            clock += chance.choice((0, 0, 1, 1, 30))
            job += 1
            row = Row(job, 1, clock - chance.choice((0, 0, 0, DISORDER_S)))
            fake.rows.append(row)
            if due is not None:
                due[job] = row
        if rotated > 14 and fake.rows:
            del fake.rows[: chance.randrange(len(fake.rows) + 1)]
        for _ in range(calls):
            answer = fetch(fake, state, limits)
            assert len(answer.records) <= 1.5 * records + 1
            if chance.random() < 0.2:
                continue  # it never got into the ledger
            got |= set(jobs([answer]))
            gaps += [answer.gap] if answer.gap else []
            state = answer.state
            if due is None and is_anchored(history_cursor.load(state, 0)):
                due = {row.job: row for row in fake.rows}
    answers = drain(fake, state, limits)
    got |= set(jobs(answers))
    gaps += [answer.gap for answer in answers if answer.gap]
    for row in (due or {}).values():
        assert row.job in got or any(lies_in(row, gap) for gap in gaps), row
    assert {row.job for row in fake.rows} <= got


def is_anchored(state: HistoryState) -> bool:
    """Whether a loss of anything that is not taken would show."""
    drain = state.drain
    old = drain and drain.anchor and drain.anchor.time < drain.done - DISORDER_S
    return state.taken.newest is not None or bool(old)


def lies_in(row: Row, gap: Gap) -> bool:
    start, end = (gap.start_us or 0) // 10**6, gap.end_us // 10**6
    return start - DISORDER_S <= row.time <= end + DISORDER_S


@settings(max_examples=examples(100))
@given(text=st.text(max_size=40))
def test_any_text_as_a_state(text: str) -> None:
    """Whatever a text says, it is a state or ValueError."""
    with contextlib.suppress(ValueError):
        history_cursor.load(text, 0)
