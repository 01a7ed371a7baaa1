"""What is exported: by the trace's id, the submitter's decision, the outcome, and places.

Decisions are made when the outcome is known, so that what failed can be exported whatever the
share; all gwmonds decide alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import NamedTuple

from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.traces.attributes import result_of
from gwmond.traces.contexts import JobContext
from gwmond.traces.spans import Span

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
        known = self.of_trace(context)
        return any(self._is(name, runs, spans) for name in self.always) if known is None else known

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
            return any(one.category is Category.PREEMPTION_BADPUT for one in outcomes)
        return any(result_of(one) in _FAILED for one in outcomes)
