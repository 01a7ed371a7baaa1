"""A job's trace: its structure and times, how it continues another, and that it is always sane."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.demand.idle_history import WaitInterval
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobFact, Transfer
from gwmond.traces.contexts import is_traced, parse_traceparent, pilot_context
from gwmond.traces.job_trace import RUNS, JobTrace
from gwmond.traces.spans import Span, SpanName, span_id, trace_id
from tests.build.traced import (
    BASE,
    CUT,
    HELD,
    JOB,
    JOIN_AT_MOST,
    SUBMITTER,
    ZERO,
    job_spans,
    left,
    pilot,
    run,
    us,
)

PILOTS = {1: pilot()}


def spans_of(
    *runs: RunRow, join_at_most: int = JOIN_AT_MOST, now: float | None = None
) -> list[Span]:
    return job_spans(runs, PILOTS, join_at_most, us(now))


def about(of: RunRow, **changes: Any) -> RunRow:
    return of._replace(
        facts=tuple(
            fact._replace(about_job=(fact.about_job or JobFact())._replace(**changes))
            for fact in of.facts
        )
    )


def times(spans: list[Span]) -> list[tuple[str, float, float]]:
    return [
        (span.name.value, span.start_us / 1e6 - BASE, span.end_us / 1e6 - BASE) for span in spans
    ]


def test_a_job_that_was_cut_off_and_ran_again() -> None:
    spans = spans_of(run(1, 100, 200, CUT, transfer_out=None), left(run(2, 250, 300), 301))
    assert times(spans) == [
        ("job", 0, 301),
        *[("queue", 0, 100), ("run", 100, 200), ("stage-in", 100, 103), ("execute", 103, 200)],
        *[("queue", 200, 250), ("run", 250, 300), ("stage-in", 250, 253)],
        *[("execute", 253, 297), ("stage-out", 297, 300)],
    ]
    job = spans[0]
    assert job.context == (trace_id(SpanName.JOB, JOB), span_id(SpanName.JOB, JOB), True)
    assert (job.parent_id, job.kind, job.error) == (b"", "server", "")
    first, again = (span for span in spans if span.name is SpanName.RUN)
    assert first.context.span_id == span_id(SpanName.RUN, JOB, str(BASE + 100))
    assert (first.error, again.error) == ("pilot_shutdown", "")
    assert {link.context for link in first.links} == {pilot_context(PILOTS[1].identity)}
    assert [span.error for span in spans[3:5]] == ["", first.error]  # it was cut off executing
    said = dict(first.attributes)
    assert said["cicd.pipeline.task.run.result"] == "error"
    assert said["gwms.site"] == "Site-A"
    assert said["htcondor.run.number"] == 0
    assert dict(again.attributes)["cicd.pipeline.task.run.result"] == "success"
    waited = spans[5]
    assert [event.name for event in waited.events] == ["run ended"]
    assert waited.events[0].time_us == us(200)
    moved = [
        dict(span.attributes).get("htcondor.transfer.bytes")
        for span in spans
        if span.name in {SpanName.STAGE_IN, SpanName.STAGE_OUT}
    ]
    assert moved == [1000, 1000, None]  # totals are of all runs; output of the first is not known
    assert dict(spans[3].attributes)["htcondor.transfer.queue_seconds"] == 1


def test_a_held_job_that_was_removed() -> None:
    """It waits after its last run, and its removal is its end."""
    spans = spans_of(left(run(1, 10, 50, HELD), 90, status=3))
    assert times(spans)[:2] == [("job", 0, 90), ("queue", 50, 90)]
    assert spans[0].error == "removed"
    assert dict(spans[0].attributes)["cicd.pipeline.task.run.result"] == "cancellation"
    assert dict(spans[1].events[0].attributes)["htcondor.hold.code"] == 26


def test_only_what_is_settled_unless_asked() -> None:
    first, second = run(1, 100, 200, CUT), run(2, 250, None)
    assert {span.name for span in spans_of(first)} == {*SpanName} & {
        *(SpanName.QUEUE, SpanName.RUN, SpanName.STAGE_IN, SpanName.EXECUTE, SpanName.STAGE_OUT)
    }
    assert spans_of(second) == []
    shown = spans_of(first, second, now=400)
    assert times(shown)[0] == ("job", 0, 400)
    loose = [span for span in shown if ("gwmond.settled", False) in span.attributes]
    assert [span.name.value for span in loose] == ["job", "queue", "run", "stage-in", "execute"]
    settled = spans_of(first, second)
    assert settled == [span for span in shown if span not in loose]


@pytest.mark.parametrize(("procs", "joined"), [(None, True), (500, True), (501, False)])
def test_the_submitters_trace_goes_on(procs: int | None, joined: bool) -> None:
    """A job of few is a child, one of many has a trace of its own with a link."""
    of = about(left(run(1, 5, 9), 9), procs=procs, traceparent=SUBMITTER, tracestate="a=1")
    spans, submitter = spans_of(of), parse_traceparent(SUBMITTER)
    assert submitter is not None
    assert len({span.context.trace_id for span in spans}) == 1
    job = spans[0]
    if joined:
        assert job.context.trace_id == submitter.trace_id
        assert (job.parent_id, job.links, job.trace_state) == (submitter.span_id, (), "a=1")
    else:
        assert job.context.trace_id == trace_id(SpanName.JOB, JOB)
        assert job.parent_id == b""
        assert [link.context for link in job.links] == [submitter]


def test_a_trace_that_is_not_sampled() -> None:
    of = about(left(run(1, 5, 9), 9), traceparent=f"{SUBMITTER[:-2]}00")
    assert {span.context.sampled for span in spans_of(of)} == {False}


@pytest.mark.parametrize(
    "wrong", ["", "x", SUBMITTER.upper(), f"{SUBMITTER} ", f"01{SUBMITTER[2:]}"]
)
def test_what_is_no_traceparent(wrong: str) -> None:
    assert parse_traceparent(wrong) is None
    spans = spans_of(about(left(run(1, 5, 9), 9), traceparent=wrong))
    assert spans[0].context.trace_id == trace_id(SpanName.JOB, JOB)


def test_without_qdate_the_global_job_id_has_it() -> None:
    of = run(1, 40, 50)
    assert times(spans_of(about(of, queued_us=None)))[0] == ("queue", 0, 40)


def test_what_is_not_known_is_no_wait() -> None:
    """Retention took runs out, or their records never came: then the job ran meanwhile."""
    assert next(span.name for span in spans_of(run(2, 40, 50))) is SpanName.RUN
    spans = spans_of(run(1, 10, 20, CUT), run(3, 40, 50))
    assert [span.name for span in spans].count(SpanName.QUEUE) == 1
    reconnected = run(1, 10, 20, CUT)
    twice = (*reconnected.facts, reconnected.facts[0]._replace(shadow_start=2))
    spans = spans_of(reconnected._replace(facts=twice), run(3, 40, 50))
    assert [span.name for span in spans].count(SpanName.QUEUE) == 2


def test_the_part_that_failed_has_the_error() -> None:
    failed = ZERO._replace(exit_code=3)
    errors = {span.name: span.error for span in spans_of(run(1, 10, 30, failed))}
    assert errors == {
        SpanName.QUEUE: "",
        SpanName.RUN: "exit_nonzero",
        SpanName.STAGE_IN: "",
        SpanName.EXECUTE: "exit_nonzero",
        SpanName.STAGE_OUT: "",
    }


def test_a_job_of_a_log_has_no_trace() -> None:
    """A log has no GlobalJobId."""
    of = run(1, 40, 50)
    assert is_traced(of)
    assert not is_traced(of._replace(key=of.key._replace(job="ap1#1.0#")))


SECONDS = st.sampled_from([-BASE - 1, -BASE, -500, 0, 10, 11, 3000, 10**8, 10**12]) | st.integers(
    -100, 5000
)
MAYBE = st.none() | SECONDS


@st.composite
def any_runs(draw: st.DrawFn) -> list[RunRow]:
    """Runs with reversed, missing, zero, negative and absurd dates."""
    found = []
    for number in range(1, draw(st.integers(1, 4)) + 1):
        start = draw(SECONDS)
        transfers = [
            Transfer(us(draw(MAYBE)), us(draw(MAYBE)), us(draw(MAYBE)), draw(st.integers(-1, 9)))
            for _ in "ab"
        ]
        of = run(
            *(number, start, draw(MAYBE), draw(st.sampled_from([CUT, HELD, Ending(over=True)]))),
            transfer_in=transfers[0],
            transfer_out=transfers[1],
            executing_us=us(draw(MAYBE)),
            about_job=JobFact(us(draw(MAYBE)), left_us=us(draw(MAYBE)), status=4),
        )
        found.append(of._replace(open=draw(st.booleans())))
    return found


@given(any_runs(), st.none() | st.integers(0, 9000))
def test_spans_are_sane_whatever_the_dates(runs: list[RunRow], now: int | None) -> None:
    """None ends before it begins, children are within parents, ids are unique, times fit 64 bits.

    The same facts, in whatever order, give the same spans.
    """
    spans = spans_of(*runs, now=now)
    assert spans == spans_of(*runs[::-1], now=now)
    by_id = {span.context.span_id: span for span in spans}
    starts = [r.start_us // 10**6 for r in runs]
    if len(set(starts)) == len(starts):
        assert len(by_id) == len(spans)
    for span in spans:
        assert 0 < span.start_us <= span.end_us
        assert span.end_us * 1000 < 1 << 63
        names = [name for name, _ in span.attributes]
        assert all(one < other for one, other in pairwise(names))
        parent = by_id.get(span.parent_id)
        if parent is not None:
            assert parent.start_us <= span.start_us
            assert span.end_us <= parent.end_us


def test_what_a_run_settles_and_what_the_end_does_is_all() -> None:
    runs = [run(1, 100, 200, CUT), left(run(2, 250, 300), 301)]
    trace = JobTrace(runs, PILOTS, JOIN_AT_MOST)
    parts = [*trace.last(), *(span for one in runs for span in trace.of_run(one.key))]
    assert parts == trace.spans()


def test_of_a_job_that_runs_for_ever_the_latest_runs_are_shown() -> None:
    """All are counted; a page of each run would take seconds and a gigabyte."""
    runs = [run(number, 10 * number, 10 * number + 5, CUT) for number in range(1, RUNS + 51)]
    spans = spans_of(*runs[:-1], left(runs[-1], 10 * RUNS + 900))
    shown = [span for span in spans if span.name == "run"]
    assert (len(shown), shown[0].start_us) == (RUNS, runs[50].start_us)
    assert dict(spans[0].attributes)["gwmond.runs"] == RUNS + 50


def test_a_wait_is_settled_with_the_later_of_its_runs() -> None:
    """Records of the second run may come first."""
    first, second = run(1, 100, 200, CUT), run(2, 250, 300)
    early = JobTrace([first._replace(open=True, outcome=None), second], PILOTS, JOIN_AT_MOST)
    late = JobTrace([first, second], PILOTS, JOIN_AT_MOST)
    kinds = [span.name for span in late.of_run(second.key)]
    assert kinds[0] is SpanName.QUEUE
    assert [span.name for span in early.of_run(second.key)] == kinds[1:]
    assert (early.wait_after(first.key), early.wait_after(second.key)) == (second.key, None)


def interval(identity: str, since: float, until: float | None, cause: str) -> WaitInterval:
    end = None if until is None else us(until)
    return WaitInterval("ap", identity, us(since), end, "w", "no_pilot", cause, "S")


def test_reasons_of_a_wait_are_events() -> None:
    """Changes within it; where groups differ it is several, and what no poll saw is unknown."""
    job = run(1, 100, 200, about_job=JobFact(us(0), 1, wants="w"))
    schedd = job.key.job.partition("#")[0]
    rows = [
        interval("a", -50, 20, "down"),
        interval("a", 20, 60, "frontend_limit"),
        interval("b", 40, 70, "down"),
        interval("a", 80, 150, "held_pilots"),
        interval("a", 150, None, "ramp_up"),
    ]

    def found(rows: list[WaitInterval]) -> list[tuple[float, object]]:
        queue = job_spans([job], PILOTS, JOIN_AT_MOST, waits={(schedd, "w"): rows})[0]
        assert (queue.name, queue.dropped_events) == (SpanName.QUEUE, 0)
        return [
            (event.time_us / 1e6 - BASE, dict(event.attributes).get("gwmond.wait.cause"))
            for event in queue.events
        ]

    expected = [
        *[(0, "down"), (20, "frontend_limit"), (40, "several"), (60, "down")],
        *[(70, None), (80, "held_pilots")],
    ]
    assert found(rows) == expected
    assert found([*rows[::-1], interval("c", 100, None, "other")]) == expected  # the same again
    many = [interval("a", n, n + 1, "ab"[n % 2]) for n in range(90)]
    queue = job_spans([job], PILOTS, JOIN_AT_MOST, waits={(schedd, "w"): many})[0]
    assert (len(queue.events), queue.dropped_events) == (32, 59)
