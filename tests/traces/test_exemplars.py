"""Which spans stand for what a counter or a histogram has counted, and how they are shown."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed

from gwmond.metrics import pilot_time
from gwmond.metrics.render import render
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.poll.snapshot import QUEUE_SECONDS, RUNS_TOTAL, Exemplar, ExemplarKey, TraceExport
from gwmond.model.runs.phases import buckets
from gwmond.model.runs.run_facts import JobFact
from gwmond.traces.exemplars import noting
from tests.build import traced
from tests.build.snapshots import STARVING, snapshot


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
