"""Spans as OTLP: what a receiver reads is what was sent, and the same bytes each time."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from unittest import mock

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from gwmond import __version__
from gwmond.traces import spans as ids
from gwmond.traces.attributes import SCHEMA_URL
from gwmond.traces.otlp import Encoder
from gwmond.traces.spans import Event, Link, Span, SpanContext, SpanName, span_id, trace_id

T_US = 1_790_000_000_123_456
JOB = "ap1.example.org#1234.0#1700000000"


def span(number: int = 0, **changed: Any) -> Span:
    context = SpanContext(trace_id(SpanName.JOB, JOB), span_id(SpanName.RUN, JOB, str(number)))
    made = Span(context, span_id(SpanName.JOB, JOB), SpanName.RUN, T_US, T_US + 5)
    return made._replace(**changed)


PILOT = SpanContext(b"\1" * 16, b"\2" * 8, sampled=False)
FULL = span(
    attributes=(
        *(("bool", True), ("double", 1.0), ("int", 1), ("large", 1 << 63)),
        *(("not UTF-8", "a\udcff"), ("text", "Zürich")),
    ),
    name=SpanName.JOB,
    error="evicted",
    events=(Event("reason", T_US + 1, (("reason", "no match found"),)),),
    links=(Link(PILOT, (("category", "goodput"),)),),
    dropped_events=3,
    dropped_links=4,
    trace_state="a=b",
)


def read(body: bytes) -> ResourceSpans:
    [found] = ExportTraceServiceRequest.FromString(body).resource_spans
    return found


def test_a_receiver_reads_what_was_sent() -> None:
    [request] = Encoder("pool", {"deployment.environment.name": "test"}).requests([FULL, span(1)])
    found = read(request.body)
    assert {a.key: a.value.string_value for a in found.resource.attributes} == {
        "service.name": "pool",
        "service.version": __version__,
        "deployment.environment.name": "test",
    }
    [scope] = found.scope_spans
    assert (scope.scope.name, scope.schema_url, found.schema_url) == (
        "gwmond",
        SCHEMA_URL,
        SCHEMA_URL,
    )
    one, other = scope.spans
    assert (one.trace_id, one.span_id, one.parent_span_id) == (*FULL.context[:2], FULL.parent_id)
    assert (one.start_time_unix_nano, one.end_time_unix_nano) == (T_US * 1000, (T_US + 5) * 1000)
    assert (one.name, one.kind, one.flags) == ("job", OtlpSpan.SPAN_KIND_SERVER, 1)
    assert one.status.code == Status.STATUS_CODE_ERROR
    assert (one.trace_state, one.dropped_events_count, one.dropped_links_count) == ("a=b", 3, 4)
    values = {a.key: a.value for a in one.attributes}
    assert values["bool"].bool_value is True
    assert (values["double"].double_value, values["int"].int_value) == (1.0, 1)
    assert (values["large"].string_value, values["text"].string_value) == (str(1 << 63), "Zürich")
    assert values["not UTF-8"].string_value == "a?"
    [event], [link] = one.events, one.links
    assert (event.name, event.time_unix_nano) == ("reason", (T_US + 1) * 1000)
    assert (link.trace_id, link.span_id, link.flags) == (b"\1" * 16, b"\2" * 8, 0)
    assert link.attributes[0].value.string_value == "goodput"
    assert (other.kind, other.status.code) == (OtlpSpan.SPAN_KIND_INTERNAL, 0)


def test_the_same_spans_give_the_same_bytes() -> None:
    spans = [FULL, span(1), span(2)]
    assert list(Encoder().requests(spans)) == list(Encoder().requests(iter(spans)))
    assert Encoder().json(spans) == Encoder().json(spans)


def test_requests_are_bounded_in_spans_and_bytes() -> None:
    spans = [span(number) for number in range(100)]
    by_spans = list(Encoder().requests(spans, most_spans=30))
    assert [request.spans for request in by_spans] == [30, 30, 30, 10]
    by_bytes = list(Encoder().requests(spans, most_bytes=2000))
    assert max(len(request.body) for request in by_bytes) < 2200
    for requests in (by_spans, by_bytes):
        ids = [s.span_id for r in requests for s in read(r.body).scope_spans[0].spans]
        assert ids == [one.context.span_id for one in spans]
    large = [span(1), span(2, trace_state="m" * 3000), span(3)]
    assert [request.spans for request in Encoder().requests(large, most_bytes=2000)] == [1, 1, 1]
    assert list(Encoder().requests([])) == []


def test_json_has_ids_in_hexadecimal_and_enums_as_numbers() -> None:
    """As the specification of OTLP's JSON says; protobuf's own has base 64 and names."""
    said = json.loads(Encoder().json([FULL, span(1, parent_id=b"")]))
    one, root = said["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert (one["traceId"], one["spanId"]) == tuple(part.hex() for part in FULL.context[:2])
    assert one["parentSpanId"] == FULL.parent_id.hex()
    assert (one["kind"], one["status"]["code"]) == (2, 2)
    assert one["startTimeUnixNano"] == str(T_US * 1000)
    assert one["links"][0]["traceId"] == "01" * 16
    assert "parentSpanId" not in root
    assert {"key": "int", "value": {"intValue": "1"}} in one["attributes"]


NAMED = "ap1.example.org#1234.0#1700000000"


def test_ids_are_parts_of_one_digest() -> None:
    digest = hashlib.sha256(b"gwmond/1\0run\0" + NAMED.encode() + b"\0003").digest()
    assert trace_id(SpanName.RUN, NAMED, "3") == digest[:16]
    assert span_id(SpanName.RUN, NAMED, "3") == digest[16:24]


def test_vectors() -> None:
    """docs/traces.md gives these; a change is a new version of the contract."""
    assert trace_id(SpanName.JOB, NAMED).hex() == "97b75ce2d7799e544aff64d5ed2a46de"
    assert span_id(SpanName.JOB, NAMED).hex() == "5537c067c23f9625"
    assert span_id(SpanName.RUN, NAMED, "1700000100").hex() == "ecd70de93ebb1276"


def test_no_id_is_zero() -> None:
    with mock.patch.object(ids, "sha256") as zeros:
        zeros.return_value.digest.return_value = bytes(32)
        assert trace_id(SpanName.JOB, NAMED) == bytes(15) + b"\1"
        assert span_id(SpanName.JOB, NAMED) == bytes(7) + b"\1"
