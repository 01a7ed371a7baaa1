"""What is exported: by the trace's id, the submitter's decision, the outcome, and places; and
exemplars: the last span of each series of runs that were badput, and of first waits.

Decisions are made when the outcome is known, so that what failed can be exported whatever the
share; all gwmonds decide alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, MutableMapping
from fnmatch import translate
from typing import NamedTuple

from gwmond.model.pilot_life import BADPUT, Category
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.poll.snapshot import QUEUE_SECONDS, RUNS_TOTAL, Exemplar, ExemplarKey
from gwmond.model.runs.phases import bucket_of
from gwmond.model.times import SECOND_US
from gwmond.traces.attributes import result_of
from gwmond.traces.contexts import JobContext
from gwmond.traces.spans import Span, SpanName

_FAILED = {"failure", "error"}
_WHOLE = 1 << 64


def name_pattern(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return what matches names that fit one of these: * is any text, ? any character."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


_ANY = name_pattern(["*"])


class TraceSelection(NamedTuple):
    """``ratio``: the share of traces; ``always``: of failed, evicted, slow; else as in [traces]."""

    jobs: bool = True
    pilots: bool = True
    ratio: float = 1.0
    parent_based: bool = True
    always: frozenset[str] = frozenset()
    slow_us: int = 86_400_000_000
    sites: re.Pattern[str] = _ANY
    groups: re.Pattern[str] = _ANY
    users: re.Pattern[str] = _ANY

    def has_run(self, run: RunRow, pilot: PilotRow | None) -> bool:
        """Return whether a run is of a user and at a place that is chosen."""
        return bool(self.jobs and self.users.match(run.user) and self._has_place(pilot))

    def has_job(self, context: JobContext, runs: Iterable[RunRow], spans: Iterable[Span]) -> bool:
        """Return whether spans of a job are exported, by the trace, and how its ``runs`` ended."""
        sent = self.of_trace(context)
        return any(self._is(name, runs, spans) for name in self.always) if sent is None else sent

    def of_trace(self, context: JobContext) -> bool | None:
        """Return whether a job's trace is exported; None: it depends on how its runs ended."""
        submitted = context.submitter is not None or bool(context.parent_id)
        if submitted and self.parent_based:
            return context.own.sampled
        return self._in_share(context.own.trace_id) or (None if self.always else False)

    def has_pilot(self, pilot: PilotRow, spans: Iterable[Span]) -> bool:
        """Return whether a pilot's spans are exported."""
        if not (self.pilots and self._has_place(pilot)):
            return False
        failed = "failed" in self.always and any(span.error for span in spans)
        return failed or any(self._in_share(span.context.trace_id) for span in spans)

    def _has_place(self, pilot: PilotRow | None) -> bool:
        site, group = ("", "") if pilot is None else (pilot.identity.key.site, pilot.identity.group)
        return bool(self.sites.match(site) and self.groups.match(group))

    def _in_share(self, trace_id: bytes) -> bool:
        """Decide as OpenTelemetry's TraceIdRatioBased: by the lower 8 bytes of the trace's id."""
        return int.from_bytes(trace_id[8:], "big") < round(self.ratio * _WHOLE)

    def _is(self, name: str, runs: Iterable[RunRow], spans: Iterable[Span]) -> bool:
        if name == "slow":
            return any(span.end_us - span.start_us > self.slow_us for span in spans)
        outcomes = [run.outcome for run in runs if run.outcome is not None]
        if name == "evicted":
            return any(outcome.category is Category.PREEMPTION_BADPUT for outcome in outcomes)
        return any(result_of(outcome) in _FAILED for outcome in outcomes)


_PLACE = ("gwms.site", "gwms.entry", "gwms.frontend.group")


def noting(spans: Iterable[Span], notes: MutableMapping[ExemplarKey, Exemplar]) -> Iterator[Span]:
    """Yield the spans, and note what they are exemplars of; the time is set when they are sent."""
    wait: Span | None = None
    for span in spans:
        if not span.context.sampled:
            wait = None
        elif span.name is SpanName.QUEUE:
            wait = span
        elif span.name is SpanName.RUN:
            _note(span, wait, notes)
            wait = None
        yield span


def _note(run: Span, wait: Span | None, notes: MutableMapping[ExemplarKey, Exemplar]) -> None:
    values = dict(run.attributes)
    site, entry, group = (str(values.get(name, "")) for name in _PLACE)
    category = values.get("gwmond.category")
    key: ExemplarKey
    if category in BADPUT:
        key = (RUNS_TOTAL, str(category), str(values.get("gwmond.outcome")), site, entry, group)
        notes[key] = _exemplar(run, 1)
    if wait is not None and dict(wait.attributes).get("htcondor.run.number") == 0:
        waited_us = wait.end_us - wait.start_us
        key = (QUEUE_SECONDS, site, entry, bucket_of("queue", waited_us))
        notes[key] = _exemplar(wait, waited_us / SECOND_US)


def _exemplar(span: Span, value: float) -> Exemplar:
    return Exemplar(span.context.trace_id.hex(), span.context.span_id.hex(), value)
