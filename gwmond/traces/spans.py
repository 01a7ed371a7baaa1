"""Spans, as OpenTelemetry defines them, before they are encoded, and their ids.

Times are whole microseconds since the epoch.  Spans are immutable, and equal facts give equal
spans: their export is the same bytes each time.

Ids are hashes of identities, so that anybody can compute them.  The contract, version 1
(docs/traces.md has test vectors)::

    digest   = SHA-256("gwmond/1" NUL kind NUL identity)
    trace id = bytes 0 to 15 of the digest
    span id  = bytes 16 to 23 of the digest

An id that would be zero is 1, because zero is no id (W3C Trace Context, sections 3.2.2.3 and
3.2.2.4).  An identity has only what a job can read on its node: a job's is its GlobalJobId; a
run's is that, NUL, and its JobCurrentStartDate (seconds, in decimal digits).  NumShadowStarts is
not used: a job that its schedd reconnects to has another than the records of the run (measured,
tests/traces/test_in_the_job.py).
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias

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


CONTRACT = "gwmond/1"
_NUL = "\0"


class SpanName(StrEnum):
    """What a span is about; part of its id, and its name."""

    JOB = "job"
    QUEUE = "queue"
    RUN = "run"
    STAGE_IN = "stage-in"
    EXECUTE = "execute"
    STAGE_OUT = "stage-out"
    PILOT = "pilot"
    REQUESTED = "requested"
    PENDING = "pending"
    VALIDATION = "validation"
    TEST = "test"
    STARTUP = "startup"
    IDLE = "idle"
    RETIREMENT = "retirement"


def trace_id(kind: SpanName, *identity: str) -> bytes:
    """Return the 16 bytes of a trace that begins with this."""
    return _nonzero(_digest(kind, identity)[:16])


def span_id(kind: SpanName, *identity: str) -> bytes:
    """Return the 8 bytes of a span."""
    return _nonzero(_digest(kind, identity)[16:24])


def _digest(kind: SpanName, identity: tuple[str, ...]) -> bytes:
    text = _NUL.join((CONTRACT, kind, *identity))
    return sha256(text.encode("utf-8", "surrogateescape")).digest()


def _nonzero(number: bytes) -> bytes:
    return number if any(number) else number[1:] + b"\1"
