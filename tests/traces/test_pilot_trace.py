"""A pilot's trace: its parts, its runs as links, and that it is always sane."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.factory.jobs import QueueRecord
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import PilotName, QueueEvent, QueueState
from gwmond.model.pilots.pilot_facts import OutputFacts, ValidationTest, replace
from gwmond.traces import pilot_trace
from gwmond.traces.contexts import pilot_context
from gwmond.traces.pilot_trace import LINKS, pilot_spans
from gwmond.traces.spans import SpanName
from tests.build.traced import BASE, CUT, JOIN_AT_MOST, job_spans, pilot, run, us

Q = QueueState


def queue(*events: tuple[QueueState, float]) -> QueueRecord:
    return QueueRecord(
        "entry-a", "77.0", tuple(QueueEvent("", PilotName(), state, us(at)) for state, at in events)
    )


def times(spans: Any) -> list[tuple[str, float, float]]:
    return [
        (span.name.value, span.start_us / 1e6 - BASE, span.end_us / 1e6 - BASE) for span in spans
    ]


def test_a_pilots_life() -> None:
    row = pilot(retire_us=us(3000))
    runs = [run(1, 100, 500, CUT), run(2, 400, 1000), run(3, 1500, 3500)]
    records = queue((Q.SUBMITTED, -900), (Q.SUBMITTED, -300), (Q.PENDING, -200), (Q.STARTED, 0))
    spans = pilot_spans(row, runs, JOIN_AT_MOST, records)
    assert times(spans) == [
        ("pilot", -300, 4000),
        ("requested", -300, -200),
        ("pending", -200, 0),
        ("validation", 0, 50),
        ("startup", 50, 60),
        ("idle", 60, 100),
        ("idle", 1000, 1500),
        ("retirement", 3000, 4000),
    ]
    root = spans[0]
    assert root.context == pilot_context(row.identity)
    assert {span.parent_id for span in spans[1:]} == {root.context.span_id}
    assert len({span.context.span_id for span in spans}) == len(spans)
    assert dict(root.attributes)["gwmond.runs"] == 3
    linked = [dict(link.attributes) for link in root.links]
    assert [of["gwmond.run.seconds"] for of in linked] == [400, 600, 2000]
    assert linked[0]["gwmond.category"] == "preemption_badput"
    of_runs = {
        span.context for span in job_spans(runs, {}, JOIN_AT_MOST) if span.name is SpanName.RUN
    }
    assert {link.context for link in root.links} == of_runs


def test_a_failed_validation() -> None:
    row = pilot(validation=Validation.FAILED, failure="WN_Resource main/validate_node.sh")._replace(
        ran_jobs=False
    )
    root, validation = pilot_spans(row, [], JOIN_AT_MOST)
    assert root.error == validation.error == "WN_Resource"
    assert dict(validation.attributes)["gwms.validation.test"] == "main/validate_node.sh"


def test_tests_of_a_validation_are_its_parts() -> None:
    """Those that are stored; the one that failed has the error, the others are counted."""
    tests = (
        ValidationTest("main/setup.sh", us(2), us(9)),
        ValidationTest("entry/check.sh", us(9), us(40), "WN_Resource"),
        ValidationTest("main/late.sh", us(49), us(500)),
    )
    row = pilot(validation=Validation.FAILED, failure="WN_Resource entry/check.sh")._replace(
        ran_jobs=False
    )
    facts = replace(row.facts, output=OutputFacts(us(0), us(90), tests=tests, more_tests=7))
    row = row._replace(facts=facts)
    spans = pilot_spans(row, [], JOIN_AT_MOST)
    assert spans == pilot_spans(row, [], JOIN_AT_MOST)
    _, validation, setup, check, late = spans
    assert times([setup, check, late]) == [("test", 2, 9), ("test", 9, 40), ("test", 49, 50)]
    assert {span.parent_id for span in (setup, check, late)} == {validation.context.span_id}
    assert [span.error for span in spans] == ["WN_Resource", "WN_Resource", "", "WN_Resource", ""]
    assert dict(validation.attributes)["gwmond.left_out"] == 7
    assert dict(late.attributes)["gwmond.clock_skew"] is True
    assert dict(check.attributes)["gwms.validation.test"] == "entry/check.sh"
    assert dict(check.attributes)["cicd.pipeline.task.run.result"] == "error"
    assert dict(setup.attributes)["cicd.pipeline.task.run.result"] == "success"


def test_a_pilot_that_is_there_is_shown_only_if_asked() -> None:
    row = pilot(end=None)
    assert pilot_spans(row, [], JOIN_AT_MOST) == []
    spans = pilot_spans(row, [], JOIN_AT_MOST, now_us=us(500))
    assert times(spans)[0] == ("pilot", 0, 500)
    assert all(("gwmond.settled", False) in span.attributes for span in spans)


def test_what_is_posted_of_a_pilot_that_is_there_is_settled() -> None:
    row, runs = pilot(end=None), [run(1, 100, 200), run(2, 300, 400)]
    posted = [(us(0), us(250)), (us(300), us(450))]
    spans = pilot_spans(row, runs, JOIN_AT_MOST, now_us=us(500), posted=posted)
    loose = [span for span in spans if ("gwmond.settled", False) in span.attributes]
    assert times(loose) == [("pilot", 0, 500), ("idle", 200, 300), ("idle", 400, 500)]


def test_links_and_idle_times_are_bounded() -> None:
    runs = [run(n + 1, 100 + 20 * n, 110 + 20 * n) for n in range(LINKS + 5)]
    spans = pilot_spans(pilot(end=10**5), runs, JOIN_AT_MOST)
    assert (len(spans[0].links), spans[0].dropped_links) == (LINKS, 5)
    said = dict(spans[0].attributes)
    assert said["gwmond.runs"] == LINKS + 5
    idle = [span for span in spans if span.name is SpanName.IDLE]
    assert len(idle) == pilot_trace.IDLE
    assert said["gwmond.left_out"] == LINKS + 6 - pilot_trace.IDLE
    assert max(span.end_us - span.start_us for span in idle) > 10**9  # the longest are kept


SECONDS = st.sampled_from([-BASE - 1, -BASE, -500, 0, 10, 3000, 10**8, 10**12]) | st.integers(
    -100, 5000
)
MAYBE = st.none() | SECONDS


@given(SECONDS, MAYBE, MAYBE, MAYBE, st.lists(st.tuples(SECONDS, MAYBE), max_size=3), SECONDS)
def test_spans_are_sane_whatever_the_dates(
    start: float,
    end: float | None,
    validated: float | None,
    retired: float | None,
    ran: list[tuple[float, float | None]],
    submitted: float,
) -> None:
    row = pilot()._replace(
        start_us=us(start),
        end_us=us(end),
        validation_end_us=us(validated),
        retire_us=us(retired),
    )
    runs = [run(number, *of) for number, of in enumerate(ran, 1)]
    spans = pilot_spans(row, runs, JOIN_AT_MOST, queue((Q.SUBMITTED, submitted)))
    for span in spans:
        assert 0 < spans[0].start_us <= span.start_us <= span.end_us <= spans[0].end_us
        assert span.end_us * 1000 < 1 << 63
