"""Metrics of gwmond itself: sources, problems, polls, ledger, build."""

from __future__ import annotations

from collections.abc import Iterator

from gwmond import __version__
from gwmond.metrics.family import POLLED, Family, Sample, known
from gwmond.model.pilot_life import MEASURES
from gwmond.model.poll.snapshot import STAGES, Snapshot


def _up(s: Snapshot) -> Iterator[Sample]:
    yield from (Sample((x.source, x.kind), float(x.up)) for x in s.sources)
    if s.ledger.last_commit is not None or s.ledger.error:
        yield Sample(("ledger", "commit"), float(s.ledger.up))


def _residuals(s: Snapshot) -> Iterator[Sample]:
    yield Sample(("site_canonical",), s.residual / 1000)
    if s.pilot_time is not None:
        for measure in MEASURES:
            micros = s.pilot_time.residual.get(measure, 0)
            yield Sample((measure,), micros / 1_000_000)


TOPIC = "gwmond itself"
FAMILIES = (
    Family(
        "gwmond_source_up",
        "Whether the last query of this kind to this source succeeded: 1 or 0. No unit." + POLLED,
        ("source", "kind"),
        _up,
    ),
    Family(
        "gwmond_source_duration_seconds",
        "Wall time of the last query of this kind to this source, its process included. "
        "Unit: seconds." + POLLED,
        ("source", "kind"),
        lambda s: (Sample((x.source, x.kind), x.duration_s) for x in s.sources),
    ),
    Family(
        "gwmond_source_cpu_seconds",
        "CPU time of the process of the last query that succeeded. Unit: seconds." + POLLED,
        ("source", "kind"),
        lambda s: (Sample((x.source, x.kind), x.cpu_s) for x in s.sources if x.up),
    ),
    Family(
        "gwmond_source_peak_memory_bytes",
        "Largest resident size of the process of the last query that succeeded. Unit: bytes."
        + POLLED,
        ("source", "kind"),
        lambda s: (Sample((x.source, x.kind), x.peak_mib * 1048576) for x in s.sources if x.up),
    ),
    Family(
        "gwmond_source_last_success_timestamp_seconds",
        "When the last query that succeeded ended. Unit: seconds since the epoch." + POLLED,
        ("source", "kind"),
        lambda s: known(
            (
                *(((x.source, x.kind), x.last_success) for x in s.sources),
                (("ledger", "commit"), s.ledger.last_commit),
            )
        ),
    ),
    Family(
        "gwmond_source_records_total",
        "Ads or rows that the source has returned since gwmond started. Unit: records." + POLLED,
        ("source", "kind"),
        lambda s: (
            Sample((source, kind), n, s.started_at) for (source, kind), n in s.records.items()
        ),
    ),
    Family(
        "gwmond_source_skipped_polls",
        "Polls in a row that left out a busy schedd (poll.busy_duty_cycle). Unit: polls." + POLLED,
        ("source", "kind"),
        lambda s: (Sample((x.source, x.kind), x.skipped) for x in s.sources if x.kind == "demand"),
    ),
    Family(
        "gwmond_problems_total",
        "Bad input and failures since gwmond started, by name (docs/problems.md): each record or "
        "line, a file once a scan, a query that fails once. "
        "Unit: occurrences." + POLLED,
        ("source", "problem"),
        lambda s: (
            Sample((source, problem), n, s.started_at)
            for (source, problem), n in s.problems.items()
        ),
    ),
    Family(
        "gwmond_credential_expiry_timestamp_seconds",
        "Until when a certificate or token of gwmond's own is valid: that which is served with "
        "(http.tls_cert), that for the receiver of traces, each file of tokens; absent if it does "
        "not expire. Unit: seconds since the epoch." + POLLED,
        ("source",),
        lambda s: (Sample((x.source,), x.expires) for x in s.credentials),
    ),
    Family(
        "gwmond_names_together",
        "Names of a kind (entries, groups, accounting groups) that are seen now and accounted as "
        '"other", because more than [names] allows are seen; absent if none are. Unit: names.'
        + POLLED,
        ("kind",),
        lambda s: (
            Sample((together.kind,), together.number)
            for together in (s.names.together if s.names else ())
        ),
    ),
    Family(
        "gwmond_poll_interval_seconds",
        "Time between the starts of two polls ([poll] interval). Unit: seconds." + POLLED,
        (),
        lambda s: [Sample((), s.poll_interval)],
    ),
    Family(
        "gwmond_poll_duration_seconds",
        "Wall time of the last whole poll, from the first query to the stored totals. "
        "Unit: seconds." + POLLED,
        (),
        lambda s: [Sample((), s.poll_seconds)],
    ),
    Family(
        "gwmond_poll_stage_seconds",
        f"Wall time of the last poll by stage: {', '.join(STAGES)}. Unit: seconds." + POLLED,
        ("stage",),
        lambda s: (Sample((stage,), seconds) for stage, seconds in s.stages.items()),
    ),
    Family(
        "gwmond_polls_total",
        "Polls that ended since gwmond started. Unit: polls." + POLLED,
        (),
        lambda s: [Sample((), s.polls, s.started_at)],
    ),
    Family(
        "gwmond_poll_timestamp_seconds",
        "When the last poll ended: all other gauges are of this time. Unit: seconds since the "
        "epoch." + POLLED,
        (),
        lambda s: [Sample((), s.made_at)],
    ),
    Family(
        "gwmond_ledger_residual_seconds",
        "How far the parts of time are from their total; always 0. site_canonical: of site time, "
        "in the last poll; resource, canonical: of pilots that were closed since gwmond started. "
        "Unit: "
        "canonical seconds a second; core-seconds; canonical seconds." + POLLED,
        ("measure",),
        _residuals,
    ),
    Family(
        "gwmond_ledger_standby",
        "Whether another gwmond keeps the ledger, and this one takes over when that ends: 1 or 0. "
        "0 if the other has not written it for 5 polls. No unit." + POLLED,
        (),
        lambda s: [Sample((), float(s.ledger.standby))],
    ),
    Family(
        "gwmond_ledger_waiting_increments",
        "Increments that wait in memory because the ledger cannot be written. Unit: increments."
        + POLLED,
        (),
        lambda s: [Sample((), s.ledger.waiting_increments)],
    ),
    Family(
        "gwmond_replay_speed_ratio",
        "Recorded seconds per second, while a recording is replayed; absent on a live pool. "
        "Unit: ratio." + POLLED,
        (),
        lambda s: [Sample((), s.speed)] if s.speed != 1 else [],
    ),
    Family(
        "gwmond_build_info",
        "Versions of gwmond and of the pool's collector. No unit; value 1." + POLLED,
        ("version", "htcondor_version"),
        lambda s: [Sample((__version__, s.htcondor_version), 1)],
        info=True,
    ),
)
