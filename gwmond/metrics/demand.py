"""Metrics of demand: jobs by status, and what becomes of idle ones."""

from __future__ import annotations

from collections.abc import Iterator

from gwmond.accounting.flow import SCALE
from gwmond.metrics.family import POLLED, Family, Sample
from gwmond.snapshot import Snapshot


def _units(s: Snapshot) -> Iterator[Sample]:
    for (schedd, resource), total in s.evaluation.demand.items():
        for kind, amount in total._asdict().items():
            if amount is not None:
                yield Sample((resource, kind, schedd), amount / SCALE)


def _frontends(s: Snapshot) -> Iterator[Sample]:
    for of in s.frontends:
        for age, jobs in (("0", of.idle), ("600", of.idle_600s), ("3600", of.idle_3600s)):
            if jobs is not None:
                yield Sample((of.frontend, age), jobs)


FAMILIES = (
    Family(
        "gwmond_demand_jobs",
        "gauge",
        "",
        "Jobs of a schedd by status: idle and unmaterialized (late materialization) are demand, of "
        "the vanilla, container and parallel universes, grouped in the schedd; running and held "
        "are the submitters' own counts. Unit: jobs." + POLLED,
        ("status", "schedd", "accounting_group"),
        lambda s: (Sample((x.status, x.schedd, x.accounting_group), x.jobs) for x in s.jobs),
    ),
    Family(
        "gwmond_demand_canonical_units",
        "gauge",
        "",
        "Idle demand and what becomes of it: absorbed by free slots and pending pilots, assigned "
        "to spare capacity, unmatched; idle is their sum. Unit: canonical units." + POLLED,
        ("resource", "kind", "schedd"),
        _units,
    ),
    Family(
        "gwmond_frontend_idle_jobs",
        "gauge",
        "",
        "Idle jobs that a frontend counts itself (glidefrontendmonitor ad), those idle for at "
        "least min_age seconds. Unit: jobs." + POLLED,
        ("frontend", "min_age"),
        _frontends,
    ),
)
