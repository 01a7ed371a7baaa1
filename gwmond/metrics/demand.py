"""Metrics of demand: jobs by status, and what becomes of idle ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gwmond.metrics.family import POLLED, Family, Sample, known
from gwmond.model.entries.evaluation import SCALE
from gwmond.model.poll.snapshot import Snapshot


def _reasons(s: Snapshot) -> Iterable[Sample]:
    sums: defaultdict[tuple[str, ...], float] = defaultdict(float)  # movers may differ
    for row in s.idle:
        sums["cpu", row.reason, row.cause, row.site] += row.cpu
        sums["gpu", row.reason, row.cause, row.site] += row.gpu
    return (Sample(labels, units) for labels, units in sums.items() if units)


def _frontend_family(name: str, field: str, idle: str) -> Family:
    return Family(
        name,
        f"Jobs that a frontend counts itself as {idle} (glidefrontendmonitor ad). Unit: jobs."
        + POLLED,
        ("frontend",),
        lambda s: known(((x.frontend,), getattr(x, field)) for x in s.reported.frontendmonitor),
    )


TOPIC = "Demand"
FAMILIES = (
    Family(
        "gwmond_demand_jobs",
        "Jobs of a schedd by status: idle and unmaterialized (late materialization) are demand, of "
        "the vanilla, container and parallel universes, grouped in the schedd; running and held "
        "are the submitters' own counts. Unit: jobs." + POLLED,
        ("status", "schedd", "accounting_group"),
        lambda s: (Sample((x.status, x.schedd, x.accounting_group), x.jobs) for x in s.jobs),
    ),
    Family(
        "gwmond_demand_canonical_units",
        "What becomes of idle demand: absorbed by free slots and pending pilots, assigned to spare "
        "capacity, unmatched. Absent while the running pilots are not known. Unit: canonical "
        "units." + POLLED,
        ("resource", "fate", "schedd"),
        lambda s: known(
            (
                ((resource, fate, schedd), getattr(total, fate))
                for (schedd, resource), total in s.evaluation.demand.items()
                for fate in ("absorbed", "assigned", "unmatched")
            ),
            SCALE,
        ),
    ),
    Family(
        "gwmond_demand_idle_canonical_units",
        "Idle demand: the sum of what becomes of it, known also without that. Unit: canonical "
        "units." + POLLED,
        ("resource", "schedd"),
        lambda s: (
            Sample((resource, schedd), total.idle / SCALE)
            for (schedd, resource), total in s.evaluation.demand.items()
        ),
    ),
    Family(
        "gwmond_idle_canonical_units",
        "Why idle jobs are not running: reason is how far they have come, cause what keeps them "
        "there (docs/explain.md), site where they could run: several, or none. Each job counts "
        "once, with the least units that it takes of a pilot. Unit: canonical units." + POLLED,
        ("resource", "reason", "cause", "site"),
        _reasons,
    ),
    _frontend_family("gwmond_frontend_idle_jobs", "idle", "idle"),
    _frontend_family("gwmond_frontend_old_idle_jobs", "idle_600s", "idle for 10 minutes or longer"),
    _frontend_family(
        "gwmond_frontend_hour_old_idle_jobs", "idle_3600s", "idle for an hour or longer"
    ),
)
