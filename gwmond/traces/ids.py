"""Ids of traces and spans: hashes of identities, so that anybody can compute them.

The contract, version 1 (docs/traces.md has test vectors)::

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
