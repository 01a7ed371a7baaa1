"""One measured operation of the benchmark of polls, in a process of its own; prints JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.bench.harness import Numbers, children, cpu_s, profiled

# What per-job monitors ask for: identity, state, requests, times, and what matching needs.
PER_JOB = (
    *("ClusterId", "ProcId", "Owner", "JobStatus", "JobUniverse", "QDate", "RequestCpus"),
    *("RequestMemory", "RequestDisk", "Requirements", "EnteredCurrentStatus", "JobPrio"),
    *("AcctGroup", "DESIRED_Sites", "NumShadowStarts"),
)


def main() -> None:
    """Run the operation that the command line names."""
    what, config, *more = sys.argv[1:]
    if what == "poll":
        _polls(config, *more)
    else:
        print(json.dumps(_queries(config, more, group=what == "groupby")))


def _queries(config: str, schedds: Sequence[str], *, group: bool) -> Numbers:
    """Ask schedds for their jobs, as many at once as a poll does."""
    import htcondor2  # noqa: PLC0415

    from gwmond.config.settings import load  # noqa: PLC0415
    from gwmond.sources.htcondor import demand  # noqa: PLC0415

    settings = load(Path(config))
    wanted = demand.query(demand.JobGrouping(settings.attributes, settings.demand))
    every = htcondor2.Collector(settings.pool.collectors[0]).query(htcondor2.AdType.Schedd)
    ads = [str(ad) for ad in every if ad["Name"] in schedds]
    options = htcondor2.QueryOpts.GroupBy if group else htcondor2.QueryOpts.Default
    asked = wanted.constraint, wanted.projection if group else PER_JOB, int(options)
    began = time.perf_counter()
    with ProcessPoolExecutor(settings.poll.parallel, get_context("fork")) as pool:
        rows = list(pool.map(_rows, ads, *([value] * len(ads) for value in asked)))
    wall = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "rows": sum(rows)}


def _rows(schedd: str, constraint: str, projection: Sequence[str], options: int) -> int:
    import classad2  # noqa: PLC0415
    import htcondor2  # noqa: PLC0415

    asked = htcondor2.Schedd(classad2.ClassAd(schedd))
    return len(asked.query(constraint, list(projection), opts=options))


def _polls(config: str, profile: str = "") -> None:
    """Poll for each line of the input: ``claims`` with all claims, ``profile`` with cProfile."""
    usages = children()  # before what runs them is imported
    from gwmond.config.settings import load  # noqa: PLC0415
    from gwmond.metrics import catalog  # noqa: PLC0415
    from gwmond.metrics.render import render  # noqa: PLC0415
    from gwmond.service.accounting.ledger_keeper import LedgerKeeper  # noqa: PLC0415
    from gwmond.service.poller import Poller  # noqa: PLC0415
    from gwmond.service.pool.pool import Pool  # noqa: PLC0415
    from gwmond.sources.garbage import RUNNING, few_collections  # noqa: PLC0415

    answers, sys.stdout = sys.stdout, sys.stderr  # where the log goes, too
    settings = load(Path(config))
    keeper, pool = LedgerKeeper(settings), Pool.open(settings)
    poller = Poller(settings, pool, keeper)
    with few_collections(RUNNING):  # as the daemon does
        for line in map(str.strip, sys.stdin):
            if line == "claims":
                pool.gatherer.ask_all_claims()
            usages.clear()
            at, cpu, began = time.time(), cpu_s(), time.perf_counter()
            with profiled(profile if line == "profile" else ""):
                snapshot = poller.poll()
                polled = time.perf_counter()
                render(catalog.FAMILIES, snapshot, settings.metrics.series_budget)
            wall, own = time.perf_counter() - began, cpu_s() - cpu
            numbers: defaultdict[str, float] = defaultdict(float)
            numbers |= {"wall": wall, "own": own, "cpu": own + sum(use.cpu_s for use in usages)}
            numbers |= {"rows": float(len(snapshot.evaluation.idle))}
            numbers |= {"behind": float(poller.behind)}
            numbers |= {f"stage {name}, wall": s for name, s in snapshot.stages.items()}
            numbers["stage render, wall"] = wall - (polled - began)
            for status in snapshot.sources:
                if not status.up or (status.last_success or 0.0) >= at:
                    name = f"query {status.kind}"
                    longest = max(numbers[f"{name}, wall"], status.duration_s)
                    numbers[f"{name}, wall"] = longest
                    numbers[f"{name}, cpu"] += status.cpu_s
                    numbers["failed"] += not status.up
            print(json.dumps(numbers), file=answers, flush=True)
    keeper.close()


if __name__ == "__main__":
    main()
