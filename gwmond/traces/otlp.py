"""Spans as OpenTelemetry's protocol has them (OTLP 1): requests in protobuf, and JSON.

The protobuf is built directly, because the SDK is ten times as slow and drops spans when its queue
is full.  The same spans give the same bytes.  OpenTelemetry's packages take a while to import, so
this module is imported only where spans are encoded.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2 as otlp

from gwmond import __version__
from gwmond.traces.attributes import SCHEMA_URL
from gwmond.traces.spans import Attributes, Span, Value

SCOPE = "gwmond"
MOST_SPANS, MOST_BYTES = 5_000, 2_000_000
"""Of a request before it is packed; receivers refuse more than 4 MB to 20 MB."""

_KINDS = {"internal": otlp.Span.SPAN_KIND_INTERNAL, "server": otlp.Span.SPAN_KIND_SERVER}
_IDS = {"traceId", "spanId", "parentSpanId"}
_SAMPLED = 1
# Tags of the fields that hold messages.
_SPANS, _SCOPES, _RESOURCES, _SPAN_ATTRIBUTE = b"\x12", b"\x12", b"\x0a", b"\x4a"
_INT64 = 1 << 63


class Request(NamedTuple):
    """The body of one POST to ``/v1/traces``, and how many spans are in it."""

    body: bytes
    spans: int


class Encoder:
    """Encodes spans of one resource: a service, and what else is said of it."""

    def __init__(self, service: str = SCOPE, attributes: Mapping[str, str] | None = None) -> None:
        values = {"service.version": __version__, **(attributes or {}), "service.name": service}
        resource = Resource(attributes=_attributes(tuple(sorted(values.items()))))
        scope = InstrumentationScope(name=SCOPE, version=__version__)
        head = otlp.ScopeSpans(scope=scope, schema_url=SCHEMA_URL)
        whole = otlp.ResourceSpans(resource=resource, schema_url=SCHEMA_URL)
        self._head, self._whole = head.SerializeToString(), whole.SerializeToString()

    def empty(self) -> Request:
        """Return a request without spans: with a resource only, since some refuse empty bodies."""
        return Request(_framed(_RESOURCES, self._whole), 0)

    def requests(
        self, spans: Iterable[Span], most_spans: int = MOST_SPANS, most_bytes: int = MOST_BYTES
    ) -> Iterator[Request]:
        """Yield requests with these spans in their order, none larger than allowed.

        (A span that is too large on its own has a request of its own.)
        """
        parts: list[bytes] = []
        size = 0
        for span in spans:
            part = _framed(_SPANS, _serialized(span))
            if parts and (len(parts) >= most_spans or size + len(part) > most_bytes):
                yield self._request(parts)
                parts, size = [], 0
            parts.append(part)
            size += len(part)
        if parts:
            yield self._request(parts)

    def _request(self, parts: list[bytes]) -> Request:
        """Put serialized spans together: messages in sequence are one message (protobuf)."""
        scope = _framed(_SCOPES, b"".join((self._head, *parts)))
        return Request(_framed(_RESOURCES, self._whole + scope), len(parts))

    def json(self, spans: Iterable[Span]) -> str:
        """Return spans as OTLP's JSON: ids are hexadecimal, enums are numbers."""
        request = self._request([_framed(_SPANS, _serialized(span)) for span in spans])
        message = ExportTraceServiceRequest.FromString(request.body)
        document = MessageToDict(message, use_integers_for_enums=True)
        for span in document["resourceSpans"][0]["scopeSpans"][0].get("spans", []):
            for item in (span, *span.get("links", ())):  # protobuf's JSON has ids in base 64
                item.update({name: b64decode(item[name]).hex() for name in _IDS & item.keys()})
        return json.dumps(document, indent=1, ensure_ascii=False)


def _framed(tag: bytes, message: bytes) -> bytes:
    """Return a message as a field of another: tag, length as varint, bytes."""
    length, number = bytearray(tag), len(message)
    while number > 127:
        length.append(number & 127 | 128)
        number >>= 7
    length.append(number)
    return bytes(length) + message


def _serialized(span: Span) -> bytes:
    """Return a span's bytes: those of its attributes are mostly known from other spans."""
    own = [_serialized_attribute(name, value) for name, value in span.attributes]
    return b"".join((_span(span).SerializeToString(), *own))


@lru_cache(4096, typed=True)
def _serialized_attribute(name: str, value: Value) -> bytes:
    return _framed(_SPAN_ATTRIBUTE, _attribute(name, value).SerializeToString())


def _span(span: Span) -> otlp.Span:
    """Return a span without its attributes."""
    context = span.context
    made = otlp.Span(
        trace_id=context.trace_id,
        span_id=context.span_id,
        parent_span_id=span.parent_id,
        name=span.name,
        kind=_KINDS[span.kind],
        start_time_unix_nano=span.start_us * 1000,
        end_time_unix_nano=span.end_us * 1000,
        flags=_SAMPLED if context.sampled else 0,
        trace_state=span.trace_state,
        dropped_events_count=span.dropped_events,
        dropped_links_count=span.dropped_links,
    )
    if span.error:
        made.status.code = otlp.Status.STATUS_CODE_ERROR
    for event in span.events:
        made.events.add(
            name=event.name,
            time_unix_nano=event.time_us * 1000,
            attributes=_attributes(event.attributes),
        )
    for link in span.links:
        made.links.add(
            trace_id=link.context.trace_id,
            span_id=link.context.span_id,
            flags=_SAMPLED if link.context.sampled else 0,
            attributes=_attributes(link.attributes),
        )
    return made


def _attributes(attributes: Attributes) -> list[KeyValue]:
    return [_attribute(name, value) for name, value in attributes]


@lru_cache(4096, typed=True)
def _attribute(name: str, value: Value) -> KeyValue:
    """Return an attribute; most are said of many spans: sites, outcomes."""
    field: dict[str, Any]
    match value:
        case bool():
            field = {"bool_value": value}
        case int() if -_INT64 <= value < _INT64:
            field = {"int_value": value}
        case float():
            field = {"double_value": value}
        case _:
            field = {"string_value": _text(str(value))}
    return KeyValue(key=name, value=AnyValue(**field))


def _text(text: str) -> str:
    """Return a text that UTF-8 can have: names of users need not be."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
