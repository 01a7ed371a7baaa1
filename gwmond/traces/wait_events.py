"""For which reasons a job waited: events of its ``queue`` spans, by the polls of its group.

A record of a run names its group only by what the job wants (``JobFact.wants``).  Where groups of
that want waited for different reasons at the same time, the reason is ``several``.  Times are
microseconds since the epoch.  What polls stored of the time before a run does not change any more
when the run is settled, so these events are the same each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from gwmond.model.demand.idle_history import SEVERAL, WaitInterval
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.runs.run_facts import JobFact
from gwmond.traces.attributes import SpanTimes, attributes
from gwmond.traces.spans import Event

EVENTS = 32
"""So many changes of reasons a span has; the rest is counted."""

WaitsByWants: TypeAlias = Mapping[tuple[str, str], Sequence[WaitInterval]]
"""By schedd and what jobs want, in any order."""
_UNKNOWN = ("", "", "")


def by_wants(rows: Iterable[WaitInterval]) -> WaitsByWants:
    """Return intervals by schedd and what jobs want."""
    intervals: dict[tuple[str, str], list[WaitInterval]] = {}
    for row in rows:
        intervals.setdefault((row.schedd, row.wants), []).append(row)
    return intervals


def wants_of(run: RunRow, of_job: JobFact) -> str:
    """Return the wants of a run's job when it ran, else when it left."""
    wants = (fact.about_job.wants for fact in run.facts if fact.about_job is not None)
    return next(filter(None, wants), of_job.wants)


def wanted(runs: Sequence[RunRow]) -> tuple[set[str], int]:
    """Return all that these runs' jobs wanted, and since when they can have waited."""
    jobs = [fact.about_job for run in runs for fact in run.facts if fact.about_job is not None]
    times = [run.start_us for run in runs]
    times += [job.queued_us for job in jobs if job.queued_us is not None]
    return {job.wants for job in jobs if job.wants}, max(0, min(times, default=0))


def waiting_events(rows: Iterable[WaitInterval], times: SpanTimes) -> tuple[list[Event], int]:
    """Return the changes of the reason within a wait, and how many there are besides."""
    start_us, end_us = times.start_us, times.end_us
    lasting = [
        (max(row.since_us, start_us), end_us if row.until_us is None else row.until_us, row)
        for row in rows
    ]
    lasting = [(since, until, row) for since, until, row in lasting if since < min(until, end_us)]
    changes = sorted({since for since, _, _ in lasting} | {until for _, until, _ in lasting})
    events: list[Event] = []
    before = _UNKNOWN
    for at_us in (at for at in changes if at < end_us):
        reasons = {
            (row.reason, row.cause, row.site)
            for since, until, row in lasting
            if since <= at_us < until
        }
        now = next(iter(reasons), _UNKNOWN) if len(reasons) <= 1 else (SEVERAL,) * 3
        if now != before:
            reason, cause, site = now
            values = {
                "gwmond.wait.cause": cause or None,
                "gwmond.wait.reason": reason or "unknown",
                "gwmond.wait.site": site or None,
            }
            events.append(Event("waiting", at_us, attributes(values)))
        before = now
    return events[:EVENTS], max(0, len(events) - EVENTS)
