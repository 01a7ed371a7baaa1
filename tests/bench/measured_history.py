"""One measured operation of the backlog's benchmark; see ``harness``."""

from __future__ import annotations

import glob
import itertools
import os
import sys
import time
from pathlib import Path

from tests.bench import feigned_runs
from tests.bench.feigned_runs import Feigned
from tests.bench.harness import Numbers, answer, children, cpu_s, peak_mib, profiled


def main() -> None:
    """Run the operation that the standard input describes."""
    answer(bare=_bare, gwmond=_gwmond)


def resident() -> float:
    """Return the resident size of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _bare(schedds: list[list[str]], edges: list[int]) -> Numbers:
    """Ask schedds for all epochs with gwmond's projection, by windows between times."""
    import classad2  # noqa: PLC0415
    import htcondor2  # noqa: PLC0415

    from gwmond.sources.htcondor.histories import histories  # noqa: PLC0415

    names = list(histories.query("epochs").projection)
    records, began = 0, time.perf_counter()
    for name, address, version in schedds:
        where = classad2.ClassAd()
        where["Name"], where["MyAddress"], where["CondorVersion"] = name, address, version
        schedd = htcondor2.Schedd(where)
        for first, last in itertools.pairwise(edges):
            wanted = f"EpochWriteDate >= {first} && EpochWriteDate < {last}"
            records += len(list(schedd.jobEpochHistory(wanted, names, -1)))
    wall = time.perf_counter() - began
    return {"records": records, "wall": wall, "cpu": cpu_s(), "peak": peak_mib()}


def _gwmond(config: str, schedds: list[list[str]], feigned: list[int], profile: str) -> Numbers:
    """Drain a backlog into an empty ledger, as the daemon does after its first poll.

    Collectors show the pilots that run now.
    """
    usages = children()  # before what runs them is imported
    from gwmond.config.settings import load  # noqa: PLC0415
    from gwmond.ledger.store import Ledger  # noqa: PLC0415
    from gwmond.model.entries.evaluation import Evaluation  # noqa: PLC0415
    from gwmond.model.packed import Packed  # noqa: PLC0415
    from gwmond.service.accounting.accountant import Accountant, Seen  # noqa: PLC0415
    from gwmond.service.accounting.ledger_keeper import LedgerKeeper  # noqa: PLC0415
    from gwmond.service.pool.pool import Pool  # noqa: PLC0415
    from gwmond.sources.htcondor.access import Daemon  # noqa: PLC0415
    from gwmond.sources.htcondor.pilots.claims import Claims  # noqa: PLC0415
    from gwmond.sources.round import CLAIMS, SLOTS, Answer, Round  # noqa: PLC0415

    settings = load(Path(config))
    pool = Pool.open(settings)
    keeper = LedgerKeeper(settings)
    accountant = Accountant(settings, pool.gatherer, pool.targets, keeper)
    ledger = Ledger.open(settings.ledger.url)
    keeper.use(ledger)
    host, now = pool.targets.collectors[0], time.time()
    places = Feigned(*feigned)
    pilots = tuple(feigned_runs.pilot(places, at, int(now)) for at in range(places.pilots))
    shown = Answer(Claims(Packed(), ()), time.monotonic() + 1e9)
    found = Round({(host, SLOTS): shown, (host, CLAIMS): shown}, (), (), {}, ())
    daemons = tuple(Daemon(*schedd) for schedd in schedds)
    seen = Seen(now, time.monotonic(), pilots, True, daemons, Evaluation({}, {}, {}))
    began, cpu = time.perf_counter(), cpu_s()
    with profiled(profile):
        pool.gatherer.allow(settings.poll.deadline)
        access = pool.access(pool.clock.tick())
        problems = accountant.step(access, found, seen, pool.period_s)
        keeper.commit()
        steps, held = 1, [resident()]
        while accountant.behind:
            pool.gatherer.allow(settings.poll.deadline)
            problems += accountant.drain(access, now)
            steps += 1
            held.append(resident())
    wall, used = time.perf_counter() - began, cpu_s() - cpu
    child_cpu = sum(usage.cpu_s for usage in usages)
    child_peak = max(usage.peak_mib for usage in usages)
    for problem in problems[:3]:
        print(problem, file=sys.stderr)
    ledger.close()
    path = settings.ledger.url.removeprefix("sqlite:///")
    size = sum(
        os.path.getsize(name) for name in glob.glob(path + "*") if not name.endswith(".lock")
    )
    return {
        **_stored(path),
        "wall": wall,
        "cpu": used + child_cpu,
        "child_cpu": child_cpu,
        "peak": peak_mib(),
        "half": max(held[: len(held) // 2 + 1]),
        "child_peak": child_peak,
        "steps": steps,
        "problems": len(problems),
        "bytes": size,
    }


def _stored(path: str) -> Numbers:
    import sqlite3  # noqa: PLC0415

    connection = sqlite3.connect(path)
    wanted = {
        "records": "SELECT count(*) FROM runs",
        "pilots": "SELECT count(*) FROM pilots",
        "open": "SELECT count(*) FROM runs WHERE open = 1",
        "corrections": "SELECT count(*) FROM corrections",
    }
    counted = {name: connection.execute(query).fetchone()[0] for name, query in wanted.items()}
    connection.close()
    return counted
