"""Traces from a ledger: of a job or of a pilot, which a person names.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.factory.jobs import QueueRecord, place_name
from gwmond.model.pilot_life import Interval
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.pilots.life.partition import settled_times
from gwmond.reports.stored.stored_pilot import StoredPilot
from gwmond.traces.contexts import is_traced
from gwmond.traces.job_trace import JobTrace
from gwmond.traces.pilot_trace import pilot_spans
from gwmond.traces.spans import Span
from gwmond.traces.wait_events import by_wants, wanted

_NUMBER = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}")
SOME = 20


class Traced(NamedTuple):
    """A trace; ``runs``: those of the job, or those on the pilot, in the order of time.

    ``job``: GlobalJobId, or nothing; ``pilot``: the pilot whose trace it is, or None, and
    ``posted``: when its time is, sorted and disjoint; of a closed pilot that is not said.
    """

    title: str
    spans: Sequence[Span]
    runs: Sequence[RunRow] = ()
    job: str = ""
    pilot: PilotRow | None = None
    posted: Sequence[Interval] = ()


def names_job(text: str) -> bool:
    """Return whether a person means a job: a GlobalJobId, or cluster.proc."""
    return "#" in text or _NUMBER.fullmatch(text) is not None


class SeveralJobs(Exception):
    """A person may mean several jobs; the text names some."""


def find_job(ledger: LedgerReader, text: str, schedd: str = "") -> str | None:
    """Return the job that a GlobalJobId, or cluster.proc (of a schedd), means; None: no such job.

    A schedd may be named before cluster.proc, as in a GlobalJobId.  Raises SeveralJobs.
    """
    name, _, number = text.rpartition("#")
    if name and _NUMBER.fullmatch(number) is not None:
        text, schedd = number, name
    if _NUMBER.fullmatch(text) is None:
        return text if ledger.find_runs([text]) else None
    jobs = ledger.jobs_numbered(text, schedd, SOME + 1)
    if len(jobs) > 1:
        raise SeveralJobs(f'{len(jobs)} jobs fit "{text}": {"; ".join(jobs[:SOME])}')
    return jobs[0] if jobs else None


def trace_of_job(ledger: LedgerReader, job: str, join_at_most: int, now_us: int) -> Traced | None:
    """Return a job's trace up to now; None if there are no records of it."""
    rows = ledger.find_runs([job]).get(job, [])
    runs = sorted(filter(is_traced, rows), key=lambda run: (run.start_us, run.key))
    pilots = ledger.pilots_by_id({run.pilot for run in runs})
    waits = by_wants(ledger.waits_by_wants(*wanted(runs)))
    spans = JobTrace(runs, pilots, join_at_most, now_us, waits).spans() if runs else []
    return Traced(f"job {job}", spans, runs, job=job) if spans else None


def trace_of_pilot(ledger: LedgerReader, row: PilotRow, join_at_most: int, now_us: int) -> Traced:
    """Return a pilot's trace up to now."""
    runs = ledger.runs_of([row.id]).get(row.id, [])
    runs.sort(key=lambda run: (run.start_us, run.key))
    posted = () if row.closed or row.runs_pruned else settled_times(StoredPilot(row, runs).life_now)
    spans = pilot_spans(row, runs, join_at_most, queue_of(ledger, row), now_us, posted)
    return Traced(f"pilot {row.id}  {row.identity.name}", spans, runs, pilot=row, posted=posted)


def trace_of(
    ledger: LedgerReader, job: str, pilot: int, join_at_most: int, now_us: int
) -> Traced | None:
    """Return the trace of a job (GlobalJobId, or cluster.proc), or of the pilot of a number.

    None if there is none.  Raises SeveralJobs.
    """
    if job:
        global_id = find_job(ledger, job)
        return trace_of_job(ledger, global_id, join_at_most, now_us) if global_id else None
    row = ledger.pilots_by_id([pilot]).get(pilot)
    traced = row and trace_of_pilot(ledger, row, join_at_most, now_us)
    return traced if traced and traced.spans else None


def queue_of(ledger: LedgerReader, row: PilotRow) -> QueueRecord | None:
    """Return what a factory's queue recorded of a pilot; None if that is not known."""
    number = row.identity.factory_number
    if not number:
        return None
    name = place_name(row.identity.key.entry, number)
    return ledger.fetch(PilotKeys(places={name})).places.get(name)
