"""Which span of which trace a job, a run and a pilot are, and how a job continues a trace.

A job continues the trace of whoever submitted it: its span is a child of the submitter's where few
jobs were submitted together (at most ``join_at_most``), else the root of a trace of its own with a
link, because one trace of thousands of jobs is more than backends take.  Source of the format: W3C
Trace Context, section 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from gwmond.model.digits import is_number
from gwmond.model.pilots.stored_pilots import PilotIdentity, RunRow
from gwmond.model.runs.run_facts import JobFact
from gwmond.model.times import SECOND_US
from gwmond.traces.spans import SpanContext, SpanName, span_id, trace_id

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_GLOBAL_JOB_ID = re.compile(r"[^#]+#[0-9]+\.[0-9]+#[0-9]+")


class JobContext(NamedTuple):
    """A job's own span, its parent (no bytes: none), and the submitter's span to link to."""

    job: str
    own: SpanContext
    parent_id: bytes = b""
    submitter: SpanContext | None = None
    trace_state: str = ""

    def child(self, kind: SpanName, *identity: str) -> SpanContext:
        """Return a span of the job's trace that belongs to this job."""
        own = self.own
        return SpanContext(own.trace_id, span_id(kind, self.job, *identity), own.sampled)


def parse_traceparent(traceparent: str) -> SpanContext | None:
    """Return the span that a traceparent names; None if it is none.

    >>> parse_traceparent("00-97b75ce2d7799e544aff64d5ed2a46de-5537c067c23f9625-00").sampled
    False
    >>> parse_traceparent("00-00000000000000000000000000000000-5537c067c23f9625-01")
    """
    match = _TRACEPARENT.fullmatch(traceparent)
    if match is None:
        return None
    trace, span, flags = map(bytes.fromhex, match.groups())
    valid = any(trace) and any(span)
    return SpanContext(trace, span, bool(flags[0] & 1)) if valid else None


def job_fact(runs: Iterable[RunRow]) -> JobFact:
    """Return what all records of a job have on it: of each field the first, in a fixed order.

    Without QDate: the time in GlobalJobId (``schedd#cluster.proc#QDate``), which is the same.
    """
    runs = list(runs)
    facts = {fact.about_job for run in runs for fact in run.facts if fact.about_job is not None}
    fact = facts.pop() if len(facts) == 1 else _merged(facts)
    submitted = runs[0].key.job.rpartition("#")[2] if runs else ""
    if fact.queued_us is None and is_number(submitted) and len(submitted) == 10:
        return fact._replace(queued_us=int(submitted) * SECOND_US)
    return fact


def _merged(facts: Iterable[JobFact]) -> JobFact:
    values: dict[str, Any] = {}
    for fact in sorted(facts, key=_order):
        for name, value in zip(JobFact._fields, fact, strict=True):
            if value is not None and value != "":
                values.setdefault(name, value)
    return JobFact(**values)


def _order(fact: JobFact) -> tuple[object, ...]:
    """Sort the record of its leaving first; the order is total."""
    return fact.left_us is None, *(-1 if value is None else value for value in fact)


def job_context(job: str, fact: JobFact, join_at_most: int) -> JobContext:
    """Return the context of a job; deterministic, so that all its spans agree."""
    submitter = parse_traceparent(fact.traceparent)
    own = SpanContext(trace_id(SpanName.JOB, job), span_id(SpanName.JOB, job))
    if submitter is None:
        return JobContext(job, own)
    own = own._replace(sampled=submitter.sampled)
    if (fact.procs or 1) > join_at_most:
        return JobContext(job, own, submitter=submitter)
    own = own._replace(trace_id=submitter.trace_id)
    return JobContext(job, own, submitter.span_id, trace_state=fact.tracestate)


def is_traced(run: RunRow) -> bool:
    """Return whether its job is known by its GlobalJobId; logs have its number only."""
    return _GLOBAL_JOB_ID.fullmatch(run.key.job) is not None


def run_identity(run: RunRow) -> str:
    """Return what tells a run from others of its job, as the job itself reads it in its ad.

    JobCurrentStartDate, in seconds; where no history has the run, when it is known to have begun.
    """
    dates = [fact.start_us for fact in run.facts if fact.shadow_start is not None]
    starts = [date for date in dates if date is not None]
    return str(min(starts, default=run.start_us) // SECOND_US)


def pilot_context(pilot: PilotIdentity) -> SpanContext:
    """Return a pilot's own span: by its factory's job, else by its startd and when that began."""
    identity = (pilot.factory_job,) if pilot.factory_job else (pilot.name, str(pilot.started))
    return SpanContext(trace_id(SpanName.PILOT, *identity), span_id(SpanName.PILOT, *identity))
