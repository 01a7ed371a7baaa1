"""What is exported: by the trace's id, the submitter's decision, the outcome, and places."""

from __future__ import annotations

from gwmond.model.pilot_life import Category, Outcome
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.runs.run_facts import JobFact
from gwmond.traces.job_trace import JobTrace
from gwmond.traces.selection import TraceSelection, name_pattern
from gwmond.traces.spans import SpanContext
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
