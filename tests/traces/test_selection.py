"""What is exported: by the trace's id, the submitter's decision, the outcome, and places."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed

from gwmond.metrics import pilot_time
from gwmond.metrics.render import render
from gwmond.model.pilot_life import Category, Outcome
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.poll.snapshot import QUEUE_SECONDS, RUNS_TOTAL, Exemplar, ExemplarKey, TraceExport
from gwmond.model.runs.phases import buckets
from gwmond.model.runs.run_facts import JobFact
from gwmond.traces.job_trace import JobTrace
from gwmond.traces.selection import TraceSelection, name_pattern, noting
from gwmond.traces.spans import SpanContext
from tests.build import traced
from tests.build.snapshots import STARVING, snapshot
from tests.build.trace_backlog import GOOD, PILOT, settled_run
from tests.build.traced import JOIN_AT_MOST
from tests.ledger.pilot_batches import HOUR, ORIGIN, pilot_at

FAILED = Outcome(Category.GOODPUT, "exit_nonzero")
EVICTED = Outcome(Category.PREEMPTION_BADPUT, "pilot_lost")
REMOVED = Outcome(Category.UNCLASSIFIED, "removed")
NONE = TraceSelection(ratio=0)


def pilot() -> PilotRow:
    found = pilot_at(PILOT, ORIGIN + 24 * HOUR)
    assert found is not None
    return found.row


def chosen(selection: TraceSelection, run: RunRow) -> bool:
    trace = JobTrace([run], {}, JOIN_AT_MOST)
    spans = trace.of_run(run.key)
    assert spans
    return selection.has_job(trace.context, [run], spans)


def submitted(flag: str) -> RunRow:
    parent = f"00-{'97b75ce2d7799e544aff64d5ed2a46de'}-5537c067c23f9625-{flag}"
    return settled_run(1, FAILED, JobFact(queued_us=ORIGIN, traceparent=parent))


def test_ratio_is_of_the_trace_id() -> None:
    """As TraceIdRatioBased of the SDKs: what a share has, a larger one has too."""
    runs = [settled_run(number) for number in range(400)]
    small = {run.key for run in runs if chosen(TraceSelection(ratio=0.1), run)}
    large = {run.key for run in runs if chosen(TraceSelection(ratio=0.5), run)}
    assert 15 < len(small) < 70
    assert 150 < len(large) < 250
    assert small < large
    assert all(chosen(TraceSelection(), run) for run in runs)
    assert not any(chosen(NONE, run) for run in runs)


def test_ratio_counts_the_lower_eight_bytes() -> None:
    half = TraceSelection(ratio=0.5)
    trace = JobTrace([settled_run(1)], {}, JOIN_AT_MOST)
    for low, known in ((1 << 63) - 1, True), (1 << 63, False):
        own = SpanContext(b"\xff" * 8 + low.to_bytes(8, "big"), b"\1" * 8)
        assert half.has_job(trace.context._replace(own=own), [], []) is known


def test_the_submitter_decides() -> None:
    """Its flag counts, whatever the ratio and the outcome; unless it is not asked."""
    always = frozenset({"failed"})
    assert chosen(NONE, submitted("01"))
    assert not chosen(TraceSelection(always=always), submitted("00"))
    assert not chosen(NONE._replace(parent_based=False), submitted("01"))
    assert chosen(NONE._replace(parent_based=False, always=always), submitted("00"))


def test_outcomes() -> None:
    for name, exported in (
        ("failed", {FAILED, EVICTED}),
        ("evicted", {EVICTED}),
        ("slow", set()),
    ):
        selection = NONE._replace(always=frozenset({name}))
        for outcome in (GOOD, FAILED, EVICTED, REMOVED):
            assert chosen(selection, settled_run(1, outcome)) == (outcome in exported)
    slow = NONE._replace(always=frozenset({"slow"}))
    assert chosen(slow._replace(slow_us=119_000_000), settled_run(1))
    assert not chosen(slow._replace(slow_us=120_000_000), settled_run(1))


def test_places_and_users() -> None:
    row, run = pilot(), settled_run(1, user="ada@example.org")
    site, group = row.identity.key.site, row.identity.group
    for selection, known in (
        (TraceSelection(), True),
        (TraceSelection(jobs=False), False),
        (TraceSelection(sites=name_pattern([site])), True),
        (TraceSelection(sites=name_pattern(["Site-?", "x"])), True),
        (TraceSelection(sites=name_pattern(["site*"])), False),
        (TraceSelection(sites=name_pattern([])), False),
        (TraceSelection(groups=name_pattern([group])), True),
        (TraceSelection(groups=name_pattern(["x", "y"])), False),
        (TraceSelection(users=name_pattern(["*@example.org"])), True),
        (TraceSelection(users=name_pattern(["bob"])), False),
    ):
        assert selection.has_run(run, row) is known, selection
    assert TraceSelection().has_run(run, None)
    assert not TraceSelection(sites=name_pattern([site])).has_run(run, None)


def noted(*runs: RunRow) -> dict[ExemplarKey, Exemplar]:
    found: dict[ExemplarKey, Exemplar] = {}
    spans = traced.job_spans(runs, {1: traced.pilot()})
    assert list(noting(spans, found)) == spans
    return found


def test_badput_and_the_first_wait_have_exemplars() -> None:
    runs = (traced.run(1, 100, 400, traced.CUT), traced.run(2, 500, 600))
    found = noted(*runs)
    spans = {span.context.span_id.hex(): span for span in traced.job_spans(runs, {})}
    assert {key[0] for key in found} == {RUNS_TOTAL, QUEUE_SECONDS}
    ((wait_key, wait),) = [item for item in found.items() if item[0][0] == QUEUE_SECONDS]
    assert (wait_key[-1], wait.value, spans[wait.span_id].name) == ("300", 100.0, "queue")
    ((run_key, cut),) = [item for item in found.items() if item[0][0] == RUNS_TOTAL]
    assert (run_key[1], cut.value, spans[cut.span_id].name) == ("preemption_badput", 1, "run")


def test_what_is_not_sampled_has_none() -> None:
    about = JobFact(traced.us(0), 1, traced.SUBMITTER[:-1] + "0")
    assert noted(traced.run(1, 100, 400, traced.CUT, about_job=about)) == {}


def test_openmetrics_has_them_and_the_text_format_has_not() -> None:
    wait = Exemplar("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", 100.0, 1_700_000_000.5)
    traces = TraceExport({}, {}, {}, 0, 0, 0.0, None, {(QUEUE_SECONDS, *STARVING, "300"): wait})
    shown = render(pilot_time.FAMILIES, replace(snapshot(), traces=traces), 1000)
    found = [
        (sample.labels["le"], sample.exemplar)
        for family in parsed(shown.openmetrics.decode())  # type: ignore[no-untyped-call]
        for sample in family.samples
        if sample.exemplar is not None
    ]
    ((bound, exemplar),) = found
    assert (bound, exemplar.value, float(exemplar.timestamp)) == ("300.0", 100.0, 1_700_000_000.5)
    assert exemplar.labels == {"trace_id": wait.trace_id, "span_id": wait.span_id}
    assert sum(len(name + value) for name, value in exemplar.labels.items()) <= 128
    assert b"trace_id" not in shown.text
    assert buckets("queue")[1] == "300"
