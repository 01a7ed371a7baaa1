"""Metrics of sites and entries: state, canonical units, site time, idle jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gwmond.accounting.evaluation import State, entry_states
from gwmond.accounting.flow import SCALE
from gwmond.accounting.integrate import IN_USE
from gwmond.metrics.family import POLLED, Family, Sample
from gwmond.metrics.zeros import entries, with_zeros
from gwmond.snapshot import Snapshot
from gwmond.units import MICRO

PARTS = (
    State.PROVISIONING_BOTTLENECK,
    State.INSUFFICIENT_DEMAND,
    State.FILLING,
    State.DOWN,
    State.UNKNOWN,
)
_WITHOUT_REASON = (State.INSUFFICIENT_DEMAND, State.FILLING, State.DOWN)


def _seconds(s: Snapshot) -> Iterator[Sample]:
    counted = (
        Sample(
            (key.resource, key.state, key.reason, key.site, key.entry),
            total.micros / MICRO,
            total.created,
        )
        for key, total in sorted(s.totals.items())
    )
    known = ((resource, *of, *key) for resource, key in entries(s) for of in _reasons_met(s))
    return with_zeros(counted, known)


def _reasons_met(s: Snapshot) -> set[tuple[str, str]]:
    """Return states without a reason, and states with the reasons that any entry has met so far.

    With each of the forty reasons that there are, entries would have ten times as many series.  Of
    a reason that is new in the whole pool ``increase()`` misses the first interval between polls.
    """
    counted = {(key.state, key.reason) for key in s.totals}
    now = {
        (part.state.value, part.reason) for row in s.evaluation.rows.values() for part in row.parts
    }
    return {(IN_USE, ""), *((state.value, "") for state in _WITHOUT_REASON), *counted, *now}


def _units(s: Snapshot) -> Iterator[Sample]:
    for (key, resource), row in s.evaluation.rows.items():
        at = key.site, key.entry
        yield Sample((resource, "capacity", *at), row.capacity.units)
        if row.in_use is not None:
            yield Sample((resource, "in_use", *at), row.in_use)
        yield Sample((resource, "spare", *at), row.spare)
        for state in PARTS:
            amount = sum(part.amount for part in row.parts if part.state is state)
            yield Sample((resource, state.value, *at), amount / SCALE)


def _reasons(s: Snapshot) -> Iterator[Sample]:
    for (key, resource), row in s.evaluation.rows.items():
        for part in row.parts:
            if part.reason:
                labels = (resource, part.state.value, part.reason, key.site, key.entry)
                yield Sample(labels, part.amount / SCALE)


def _untaken(s: Snapshot) -> Iterator[Sample]:
    for (key, resource), row in s.evaluation.rows.items():
        if row.untaken is not None:
            yield Sample((resource, key.site, key.entry), row.untaken / SCALE)


def _states(s: Snapshot) -> Iterator[Sample]:
    for key, now in entry_states(s.evaluation).items():
        for state in State:
            yield Sample((state.value, key.site, key.entry), float(state is now))


def _evidence(s: Snapshot) -> Iterator[Sample]:
    for (key, resource), row in s.evaluation.rows.items():
        labels = (resource, row.evidence, row.capacity.evidence, key.site, key.entry)
        yield Sample(labels, 1)


def _idle_jobs(s: Snapshot) -> Iterator[Sample]:
    for key, jobs in s.evaluation.jobs.items():
        at = key.site, key.entry
        if not jobs.whole and not jobs.ours.matching:
            continue  # it is not known that there are none
        yield Sample(("matching", *at), jobs.ours.matching)
        yield Sample(("proportional", *at), jobs.ours.proportional)
        yield Sample(("unique", *at), jobs.ours.unique)
        if jobs.assigned is not None:
            yield Sample(("assigned", *at), float(jobs.assigned))


def _frontend_jobs(s: Snapshot) -> Iterator[Sample]:
    sums: dict[tuple[str, str, str, str], int] = defaultdict(int)
    for request in s.requests:
        for kind, jobs in (
            ("matching", request.jobs_matching),
            ("proportional", request.jobs_proportional),
            ("unique", request.jobs_unique),
            ("effective", request.jobs_effective),
        ):
            if jobs is not None:
                sums[kind, *request.entry, request.group] += jobs
    yield from (Sample(labels, jobs) for labels, jobs in sums.items())


def _discrepancy(s: Snapshot) -> Iterator[Sample]:
    for key, jobs in s.evaluation.jobs.items():
        for kind, excess in (
            ("matching", jobs.matching_excess),
            ("proportional", jobs.proportional_excess),
            ("unique", jobs.unique_excess),
        ):
            if excess is not None:
                yield Sample((kind, key.site, key.entry), excess)


FAMILIES = (
    Family(
        "gwmond_site_canonical_seconds_total",
        "counter",
        "seconds",
        "Time of the entry's capacity by what became of it: in_use, provisioning_bottleneck (jobs "
        "waited that could have run there), insufficient_demand (none could), filling, down, "
        "unknown. reason is empty where none applies. Unit: canonical seconds (1 core + 2 GB, or 1 "
        "GPU, for a second). Integrated over real time between polls; kept in the ledger.",
        ("resource", "state", "reason", "site", "entry"),
        _seconds,
    ),
    Family(
        "gwmond_site_canonical_units",
        "gauge",
        "",
        "The entry's capacity, what runs there, what is spare, and what the spare is put down to: "
        "its states sum to spare. Unit: canonical units." + POLLED,
        ("resource", "kind", "site", "entry"),
        _units,
    ),
    Family(
        "gwmond_site_idle_slots_untaken_canonical_units",
        "gauge",
        "",
        "Of in_use: free slots that jobs have matched for longer than site.untaken_grace, and that "
        "nobody takes (priorities, quotas, the negotiator). Unit: canonical units." + POLLED,
        ("resource", "site", "entry"),
        _untaken,
    ),
    Family(
        "gwmond_site_reason_canonical_units",
        "gauge",
        "",
        "Spare units by state and the reason for it, where there is one. Unit: canonical units."
        + POLLED,
        ("resource", "state", "reason", "site", "entry"),
        _reasons,
    ),
    Family(
        "gwmond_site_state",
        "gauge",
        "",
        "1 for the state that the entry is in, 0 for the others. No unit." + POLLED,
        ("state", "site", "entry"),
        _states,
    ),
    Family(
        "gwmond_site_evidence_info",
        "gauge",
        "",
        "What the entry's numbers rest on: evidence of the state (measured, estimated) and of the "
        "capacity (pledge, peak, limit, none). No unit; value 1." + POLLED,
        ("resource", "evidence", "capacity_evidence", "site", "entry"),
        _evidence,
    ),
    Family(
        "gwmond_entry_limit_hit",
        "gauge",
        "",
        "1 for each limit or curb which the frontend or the factory says that the entry has hit, "
        "by the attribute of the glideresource ad that says so; absent when not hit. No unit."
        + POLLED,
        ("limit", "site", "entry"),
        lambda s: (
            Sample((name, key.site, key.entry), 1)
            for key, totals in s.entries.items()
            for name in sorted({limit.name for limit in totals.limits})
        ),
    ),
    Family(
        "gwmond_entry_idle_jobs",
        "gauge",
        "",
        "Idle jobs that could run at the entry: matching (each at every entry it matches), "
        "proportional (divided among them), unique (nowhere else), assigned (to spare "
        "capacity, each job once). While part of the demand is unknown: at least so many, and "
        "absent where none are known. Unit: jobs." + POLLED,
        ("kind", "site", "entry"),
        _idle_jobs,
    ),
    Family(
        "gwmond_entry_frontend_idle_jobs",
        "gauge",
        "",
        "Idle jobs that the frontend group counts for the entry (glideresource ad): matching, "
        "proportional, unique, effective (proportional less idle slots). Unit: jobs." + POLLED,
        ("kind", "site", "entry", "group"),
        _frontend_jobs,
    ),
    Family(
        "gwmond_entry_idle_jobs_discrepancy",
        "gauge",
        "",
        "Our count of idle jobs less the frontends' own (glideresource ads), which know cores "
        "only; absent while part of the demand is unknown. Unit: jobs." + POLLED,
        ("kind", "site", "entry"),
        _discrepancy,
    ),
)
