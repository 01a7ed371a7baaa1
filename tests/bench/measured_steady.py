"""The steady state's measurement; see ``harness``."""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
import time
from pathlib import Path

from gwmond.model.entries.evaluation import Evaluation
from gwmond.model.facts import Size
from gwmond.model.packed import Packed
from gwmond.model.runs.run_facts import JobRecord, RunFact, Source
from gwmond.sources.garbage import RUNNING, few_collections
from tests.bench import feigned_runs
from tests.bench.feigned_runs import Feigned, Run
from tests.bench.harness import ChildCost, children
from tests.bench.measured_history import resident

_MINUTE = 60
_OVERLAP_S = 600


def main() -> None:
    """Play some minutes; see ``steady``."""
    asked = json.load(sys.stdin)
    with few_collections(RUNNING):  # as the daemon does
        print(json.dumps(_play(**asked)))


def _play(
    config: str,
    schedds: list[list[str]],
    epochs: list[str],
    template: str,
    feigned: list[int],
    warm: int,
    minutes: int,
    profile: str,
) -> dict[str, float]:
    asked = children()  # before what runs them is imported
    from gwmond.config.settings import load  # noqa: PLC0415
    from gwmond.ledger.store import Ledger  # noqa: PLC0415
    from gwmond.service.accounting.accountant import Accountant, Seen  # noqa: PLC0415
    from gwmond.service.accounting.ledger_keeper import LedgerKeeper  # noqa: PLC0415
    from gwmond.service.pool.pool import Pool  # noqa: PLC0415
    from gwmond.sources import tasks  # noqa: PLC0415
    from gwmond.sources.htcondor.access import Daemon, Terms  # noqa: PLC0415
    from gwmond.sources.htcondor.pilots.claims import Claims  # noqa: PLC0415
    from gwmond.sources.round import CLAIMS, SLOTS, Answer, Round  # noqa: PLC0415

    settings, of = load(Path(config)), Feigned(*feigned)
    pool = Pool.open(settings)
    keeper = LedgerKeeper(settings)
    accountant = Accountant(settings, pool.gatherer, pool.targets, keeper)
    ledger = Ledger.open(settings.ledger.url)
    keeper.use(ledger)
    host, daemons = pool.targets.collectors[0], tuple(Daemon(*schedd) for schedd in schedds)
    profiler = cProfile.Profile()
    sums: dict[str, float] = {}
    first = of.until - (warm + minutes) * _MINUTE
    for minute in range(warm + minutes):
        now = first + (minute + 1) * _MINUTE
        last = of.ended(now)
        mode = "a" if minute else "w"
        for at, path in enumerate(epochs):
            part = range(max(0, of.ended(now - _MINUTE)) + at, last, len(epochs))
            feigned_runs.write_epochs(Path(path), of, template, part, mode)
        pilots = tuple(feigned_runs.pilot(of, place, now) for place in range(of.pilots))
        whole = minute % 10 == 0
        claims = tuple(_claim(r, now) for r in of.running(now) if whole or r.start >= now - 600)
        packed = Packed(claims)  # as a child does
        if minute == warm:
            sums.clear()
        spent = _Spent(sums)
        if profile and minute >= warm:
            profiler.enable()
        began = time.monotonic()
        pool.gatherer.allow(settings.poll.deadline)
        access = pool.access(pool.clock.tick())
        real = time.time()
        since = None if whole else real - _OVERLAP_S
        pool.gatherer.claims_since = since
        terms = Terms(access, host, settings.attributes, real, since)
        pool.gatherer.run(host, CLAIMS, tasks.ask, terms, CLAIMS, keep=False)
        spent.note("claims asked, parent")
        _add(sums, "claims", asked)
        shown = Answer((), time.monotonic())
        answers = {
            (host, SLOTS): shown,
            (host, CLAIMS): shown._replace(value=Claims(packed, ())),
        }
        found = Round(answers, (), (), {}, ())
        seen = Seen(now, began, pilots, True, daemons, Evaluation({}, {}, {}))
        problems = accountant.step(access, found, seen, _MINUTE)
        keeper.commit()
        while accountant.behind:
            problems += accountant.drain(access, now)
        spent.note("accounting, parent")
        _add(sums, "histories", asked)
        _ = keeper.shown()
        spent.note("what is shown, parent")
        profiler.disable()
        for problem in problems[:3]:
            print(problem, file=sys.stderr)
        print(f"... minute {minute}: {time.monotonic() - began:.1f} s", file=sys.stderr)
    ledger.close()
    if profile:
        pstats.Stats(profiler).dump_stats(profile)
    return {**sums, "resident": resident()}


def _add(sums: dict[str, float], name: str, asked: list[ChildCost]) -> None:
    """Add up what children took since the last call, and their records."""
    for what, value in (
        ("child", sum(one.cpu_s for one in asked)),
        ("records", sum(one.records for one in asked)),
    ):
        sums[f"{name}, {what}"] = sums.get(f"{name}, {what}", 0.0) + value
    asked.clear()


class _Spent:
    """Adds this process's CPU seconds up, by what they were spent on."""

    def __init__(self, sums: dict[str, float]) -> None:
        self._sums = sums
        self._since = time.process_time()

    def note(self, name: str) -> None:
        now = time.process_time()
        self._sums[name] = self._sums.get(name, 0.0) + now - self._since
        self._since = time.process_time()


def _claim(run: Run, now: int) -> JobRecord:
    fact = RunFact(
        source=Source.LIVE_SLOT,
        job=run.job,
        shadow_start=None,
        written_us=(now - (now - run.start) % feigned_runs.RENEWED_S) * 10**6,
        start_us=run.start * 10**6,
        size=Size(1 + run.first % 2, 2048 * (1 + run.first % 2)),
        user=f"user{run.first % 50}@pool.test",
    )
    return JobRecord(fact, run.startd, run.began)
