"""Spans, as OpenTelemetry defines them, before they are encoded.

Times are whole microseconds since the epoch.  Spans are immutable, and equal facts give equal
spans: their export is the same bytes each time.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from gwmond.traces.ids import SpanName

Value: TypeAlias = str | int | float | bool
Attributes: TypeAlias = tuple[tuple[str, Value], ...]
"""Names and values, sorted by name."""


class SpanContext(NamedTuple):
    """Which span of which trace; ``sampled`` is the flag of W3C Trace Context."""

    trace_id: bytes
    span_id: bytes
    sampled: bool = True


class Link(NamedTuple):
    """Another span that this one has to do with."""

    context: SpanContext
    attributes: Attributes = ()


class Event(NamedTuple):
    """Something that happened at one time within a span."""

    name: str
    time_us: int
    attributes: Attributes = ()


class Span(NamedTuple):
    """A stretch of time, finished; ``end_us`` is never before ``start_us``.

    ``error``: the ``error.type``; empty: the status is unset.  ``dropped_events`` and
    ``dropped_links``: how many there are besides.
    """

    context: SpanContext
    parent_id: bytes
    name: SpanName
    start_us: int
    end_us: int
    attributes: Attributes = ()
    error: str = ""
    events: tuple[Event, ...] = ()
    links: tuple[Link, ...] = ()
    dropped_events: int = 0
    dropped_links: int = 0
    trace_state: str = ""

    @property
    def kind(self) -> Literal["server", "internal"]:
        """Its SpanKind (OpenTelemetry): a job is a server's, all else internal."""
        return "server" if self.name is SpanName.JOB else "internal"
