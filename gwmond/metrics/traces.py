"""Metrics of the export of traces (docs/traces.md); absent where traces are not exported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gwmond.metrics.family import POLLED, Family, Sample, known
from gwmond.model.poll.snapshot import Snapshot, TraceExport


def _by(part: Callable[[TraceExport], Mapping[str, int]]) -> Callable[[Snapshot], Iterator[Sample]]:
    return lambda s: known(
        (((result,), number) for result, number in (part(s.traces) if s.traces else {}).items()),
        created=s.started_at,
    )


def _one(
    part: Callable[[TraceExport], float | None], *, counter: bool = False
) -> Callable[[Snapshot], Iterator[Sample]]:
    return lambda s: known(
        [((), part(s.traces) if s.traces else None)], created=s.started_at if counter else None
    )


TOPIC = "Export of traces"
FAMILIES = (
    Family(
        "gwmond_trace_spans_total",
        "Spans that were sent to the receiver, by what it did since gwmond started: accepted, "
        "refused. Unit: spans." + POLLED,
        ("result",),
        _by(lambda traces: traces.spans),
    ),
    Family(
        "gwmond_trace_requests_total",
        "Requests to the receiver since gwmond started: accepted, refused for good, failed (sent "
        "again). Unit: requests." + POLLED,
        ("result",),
        _by(lambda traces: traces.requests),
    ),
    Family(
        "gwmond_trace_settled_total",
        "Runs that were settled, jobs that left and pilots that were closed, by what became of "
        "their traces since gwmond started: exported, not_chosen ([traces] ratio, sites ...), "
        "skipped (traces.max_age), gone (no longer in the ledger). "
        "Unit: runs, jobs and pilots." + POLLED,
        ("result",),
        _by(lambda traces: traces.settled),
    ),
    Family(
        "gwmond_trace_corrections_total",
        "Pilots whose settled time was corrected since gwmond started, once a poll: their spans, "
        "if they were exported, are not sent again. Unit: pilots." + POLLED,
        (),
        _one(lambda traces: traces.corrected, counter=True),
    ),
    Family(
        "gwmond_trace_sent_bytes_total",
        "Bytes of bodies of requests that the receiver answered, as sent (gzip). "
        "Unit: bytes." + POLLED,
        (),
        _one(lambda traces: traces.sent_bytes, counter=True),
    ),
    Family(
        "gwmond_trace_backlog_seconds",
        "How long the oldest that is to be exported waits; 0 if none waits. "
        "Unit: seconds." + POLLED,
        (),
        _one(lambda traces: traces.backlog_s),
    ),
    Family(
        "gwmond_trace_last_success_timestamp_seconds",
        "When the receiver last took a request; absent before the first. "
        "Unit: seconds since the epoch." + POLLED,
        (),
        _one(lambda traces: traces.last_success),
    ),
)
