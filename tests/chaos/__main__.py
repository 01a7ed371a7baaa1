"""An hour of faults on a real pool, and whether gwmond then says what is true.

``make chaos CHAOS_ARGS="--minutes 20 --seed 7"``, as root: real daemons, pilots and jobs
(tests/pool) beside one gwmond.  A fault or two at a time are done to them, by a seed; the work, and
what the kernel makes of it, differ each time.  Then all is mended, ended and compared.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from tests.chaos.faults import Fault, Faults
from tests.chaos.host import Host
from tests.chaos.judge import Verdict, Watch, judge
from tests.chaos.work import CONFIG, Work
from tests.daemon.gate import Gate
from tests.daemon.running import RunningDaemon, Tables, gwmond, patient
from tests.daemon.scene import pledged
from tests.ledger.server import Server
from tests.ledger.tmpfs import Tmpfs
from tests.pool.condor import CondorPool
from tests.pool.prometheus import Prometheus
from tests.pool.sandbox import wait_until
from tests.proof.ledger import read

SITES = ("Alpha", "Beta", "Gamma")
TABLES: dict[str, dict[str, object]] = {
    **patient(3, deadline_s=9, configured_s=10),
    "pilots": {
        "settle_delay": "4s",
        "outcome_wait": "60s",
        "silent_wait": "60s",
        "verdict_after": "120s",
        "end_tolerance": "30s",
        "assumed_end": "25s",
        "claims_every": "6s",
    },
    "histories": {"startd_deadline": "10s"},
    **pledged(**dict.fromkeys(SITES, 16)),
}
#: Faults of gwmond itself, beside which there may be one of the pool.
OWN = ("gwmond", "disk", "ledger", "clock", "database")
CAPACITY = 16 * len(SITES)
_SETTLED_S = 900.0


def play(
    minutes: float,
    seed: int,
    directory: Path,
    kinds: list[str],
    htcondor: str,
    *,
    postgresql: bool = False,
) -> Verdict:
    """Play it: the faults of these kinds, or all; the verdict on what the ledger then says."""
    draw = random.Random(seed)
    host = Host(directory, "gwmond")
    if not host.env:
        print("no C compiler on this machine: clocks and disks are left alone")
    with ExitStack() as stack:
        ledger: Tmpfs | Server
        if postgresql:
            ledger = stack.enter_context(Server())
            url = ledger.database()
        else:
            ledger = stack.enter_context(Tmpfs(directory / "disk", 65536))
            url = f"sqlite:///{ledger.path}/ledger.sqlite"
        pool = stack.enter_context(CondorPool(config=CONFIG, htcondor=htcondor))
        gate = stack.enter_context(Gate(pool.collector))
        tables: Tables = {**TABLES, "ledger": {"url": url}}
        daemon = stack.enter_context(RunningDaemon(directory, [gate.address], tables, env=host.env))
        prometheus = stack.enter_context(Prometheus([f"{daemon.url}/metrics"]))
        work = Work(pool, random.Random(seed), itertools.cycle(SITES))
        faults = Faults(draw, work, daemon, gate, ledger, url, host, prometheus)
        watch = stack.enter_context(Watch(daemon))
        for _ in SITES:
            work.step()
        first = daemon.wait_until("counters", lambda m: all(map(m.seconds, SITES)))
        _hurt(faults, work, watch, draw, 60 * minutes, kinds)
        work.finish()
        wait_until("all to be settled", lambda: not read(url).open, _SETTLED_S, 3)
        last = daemon.next_polls(2)
        verdict = judge(read(url), work.truth(), faults.done, watch.polls)
        _about_the_daemon(verdict, daemon, watch)
        if all(fault.kind != "ledger restored" for fault in faults.done):
            passed = last.accounted_at - first.accounted_at
            spent = sum(last.seconds(site) - first.seconds(site) for site in SITES)
            if abs(spent - CAPACITY * passed) > CAPACITY * 2:
                text = f"sites' time is {spent:.0f}, not {CAPACITY * passed:.0f}: "
                verdict.wrong.append(text + "; ".join(_drifts(watch)))
            verdict.wrong += _by_prometheus(prometheus, watch)
        code, _ = daemon.stop()
        if code:
            verdict.wrong.append(f"it ended with {code}")
        verdict.wrong += _checked(daemon)
        if isinstance(ledger, Tmpfs):
            shutil.copytree(ledger.path, directory / "kept")
        verdict.checked.update(
            scrapes=watch.scrapes, faults=len(faults.done), copies=faults.checked, polls=last.polls
        )
    return verdict


def _drifts(watch: Watch) -> Iterator[str]:
    """When what sites' time is ahead of the clock's changed, in seconds."""
    ahead = [(at, spent / CAPACITY - at) for at, spent in watch.accounted if spent]
    for (_, before), (at, now) in pairwise(ahead):
        if abs(now - before) > 0.5:
            yield f"{now - before:+.1f} s at {at:.0f}"


def _by_prometheus(prometheus: Prometheus, watch: Watch) -> list[str]:
    """Resets of the ledger's counters: there should be none, through all restarts."""
    kept = tuple(name.removesuffix("_total") for name in watch.kept)
    names = [
        name
        for name in prometheus.api("label/__name__/values")
        if name.startswith(kept) and name.endswith(("_total", "_bucket", "_count", "_sum"))
    ]
    if not names:
        return ["Prometheus has no counter"]
    resets = [row for name in names for row in prometheus.query(f"resets({name}[6h]) > 0")]
    return [f"Prometheus saw {count:.0f} resets of {labels}" for labels, count in resets]


def _checked(daemon: RunningDaemon) -> list[str]:
    """What ``gwmond ledger check`` objects to."""
    done = gwmond("ledger", "check", "--config", str(daemon.config))
    return [done.stdout + done.stderr] if done.returncode else []


def _hurt(
    faults: Faults, work: Work, watch: Watch, draw: random.Random, seconds: float, kinds: list[str]
) -> None:
    """Do one or two faults at a time until the time is over."""
    until = time.monotonic() + seconds
    chosen = kinds or list(faults.kinds)
    while time.monotonic() < until:
        _work_on(work, draw.uniform(2, 8))
        some = draw.sample(chosen, min(len(chosen), draw.choice((1, 1, 2))))
        if len({kind.startswith(OWN) for kind in some}) < len(some):
            some = some[:1]  # not two of what would undo each other
        begun: list[Fault] = []
        with ExitStack() as stack:
            for kind in some:
                begun.append(stack.enter_context(faults.one(kind)))
                print(f"{time.strftime('%H:%M:%S')} {kind} {begun[-1].detail}", flush=True)
            _work_on(work, draw.choice((3, 8, 15, 30)))
            if "ledger restored" in some:
                watch.forget()


def _work_on(work: Work, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        work.step()
        time.sleep(1)


def _about_the_daemon(verdict: Verdict, daemon: RunningDaemon, watch: Watch) -> None:
    verdict.wrong += [f"fell: {of}" for of in watch.fell]
    residual = daemon.metrics().rows("gwmond_ledger_residual_seconds")
    verdict.wrong += [f"residual {dict(of)}: {value}" for of, value in residual.items() if value]
    text = daemon.config.with_suffix(".log").read_text(errors="replace")
    if "Traceback" in text:
        verdict.wrong.append("a traceback: " + text[text.index("Traceback") :][:3000])


def main() -> None:
    """Play once; exit 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", help="kinds of faults, separated by commas")
    parser.add_argument("--htcondor", default="23", choices=("23", "25"))
    parser.add_argument("--keep", default="", help="a directory for configuration, log and ledger")
    parser.add_argument("--postgresql", action="store_true", help="the ledger is there")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    kinds = [kind.strip() for kind in options.only.split(",") if kind.strip()]
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(options.keep or temporary)
        directory.mkdir(exist_ok=True)
        verdict = play(
            options.minutes,
            options.seed,
            directory,
            kinds,
            options.htcondor,
            postgresql=options.postgresql,
        )
    print(", ".join(f"{count} {what}" for what, count in verdict.checked.items()))
    for title, lines in (("named", verdict.named), ("wrong", verdict.wrong)):
        print(f"{title}: {len(lines)}", *lines, sep="\n  ")
    sys.exit(bool(verdict.wrong))


if __name__ == "__main__":
    main()
