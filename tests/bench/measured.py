"""One measured operation of the benchmark, in a process of its own; prints JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

# What per-job monitors ask for: identity, state, requests, times, and what matching needs.
PER_JOB = (
    *("ClusterId", "ProcId", "Owner", "JobStatus", "JobUniverse", "QDate", "RequestCpus"),
    *("RequestMemory", "RequestDisk", "Requirements", "EnteredCurrentStatus", "JobPrio"),
    *("AcctGroup", "DESIRED_Sites", "NumShadowStarts"),
)


def main() -> None:
    """Run the operation that the command line names."""
    what, collector, schedd, config = sys.argv[1:]
    operations: dict[str, Callable[[], dict[str, float]]] = {
        "groupby": lambda: _query(collector, schedd, config, group=True),
        "per_job": lambda: _query(collector, schedd, config, group=False),
        "poll": lambda: _poll(config),
    }
    print(json.dumps(operations[what]()))


def _usage() -> tuple[float, float]:
    """CPU seconds and peak resident MiB: of this process and its children together."""
    mine = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime
    return cpu, mine.ru_maxrss / 1024


def _query(collector: str, schedd: str, config: str, *, group: bool) -> dict[str, float]:
    import htcondor2  # noqa: PLC0415

    from gwmond.config.settings import load  # noqa: PLC0415
    from gwmond.sources.htcondor import demand  # noqa: PLC0415

    settings = load(Path(config))
    wanted = demand.query(demand.JobGrouping(settings.attributes, settings.demand))
    ad = next(
        ad
        for ad in htcondor2.Collector(collector).query(htcondor2.AdType.Schedd)
        if ad["Name"] == schedd
    )
    cpu, _ = _usage()
    began = time.perf_counter()
    options = htcondor2.QueryOpts.GroupBy if group else htcondor2.QueryOpts.Default
    rows = htcondor2.Schedd(ad).query(
        wanted.constraint, list(wanted.projection if group else PER_JOB), opts=options
    )
    wall = time.perf_counter() - began
    after, peak = _usage()
    return {"wall": wall, "cpu": after - cpu, "peak": peak, "rows": len(rows)}


def _poll(config: str) -> dict[str, float]:
    """Measure the third poll of a poller.

    The first learns templates and matches; the second asks for all claims, as pilots were new.
    """
    from gwmond.config.settings import load  # noqa: PLC0415
    from gwmond.metrics import catalog  # noqa: PLC0415
    from gwmond.metrics.render import render  # noqa: PLC0415
    from gwmond.service.accounting.ledger_keeper import LedgerKeeper  # noqa: PLC0415
    from gwmond.service.poller import Poller  # noqa: PLC0415
    from gwmond.service.pool.pool import Pool  # noqa: PLC0415

    settings = load(Path(config))
    keeper = LedgerKeeper(settings)
    poller = Poller(settings, Pool.open(settings), keeper)
    for _ in range(2):
        poller.poll()
    cpu, _ = _usage()
    began = time.perf_counter()
    snapshot = poller.poll()
    polled = time.perf_counter()
    render(catalog.FAMILIES, snapshot, settings.metrics.series_budget)
    wall = time.perf_counter() - began
    after, peak = _usage()
    keeper.close()
    children = max(s.peak_mib for s in snapshot.sources)
    parts = {f"t_query {s.kind} {s.source}": s.duration_s for s in snapshot.sources}
    own = sum(s.cpu_s for s in snapshot.sources)
    stages = {f"t_stage {name}": seconds for name, seconds in snapshot.stages.items()}
    return {
        "wall": wall,
        "cpu": after - cpu + own,
        "peak": peak + children,
        "t_render": time.perf_counter() - polled - (time.perf_counter() - began - wall),
        **parts,
        **stages,
    }


if __name__ == "__main__":
    main()
