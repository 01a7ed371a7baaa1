"""The scenario, played on a real pool under the eyes of three daemons and an observer."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.build.meanwhile import Meanwhile
from tests.daemon.running import RunningDaemon
from tests.ledger.server import Server
from tests.pool.condor import CondorPool
from tests.proof import ledger
from tests.proof.observe import Observer
from tests.proof.pilots import PILOTS, POOL_CONFIG
from tests.proof.scenario import Run, Scenario
from tests.proof.truth import Truth

KILLS = 8
INTERVAL_S = 3.0
RESOLUTION_S = INTERVAL_S + 1
AWAY_S = 8.0
PATIENCE_S = 90.0
END_TOLERANCE_S = 30
TABLES: dict[str, dict[str, object]] = {
    "poll": {"interval": f"{INTERVAL_S:g}s", "deadline": "2800ms"},
    "pilots": {
        "settle_delay": "4s",
        "outcome_wait": "30s",
        "silent_wait": "30s",
        "verdict_after": "90s",
        "end_tolerance": f"{END_TOLERANCE_S}s",
        "assumed_end": "25s",
        "claims_every": "9s",
    },
    "histories": {"startd_deadline": "15s"},
}
DAEMONS = ("alone", "killed", "postgresql")


class Played(NamedTuple):
    """The truth, what HTCondor's histories say, and what is each daemon's."""

    truth: Truth
    dump: dict[str, Any]
    #: by how much the machine was behind at most
    late_s: float
    urls: dict[str, str]
    configs: dict[str, Path]
    counters: dict[tuple[str, str, str], float]
    kills: int
    #: by how much seconds of each daemon may be wrong at each beginning and end
    resolution_s: dict[str, float]


def _kill(
    daemon: RunningDaemon,
    done: threading.Event,
    kills: list[float],
    polled: list[float],
    begin: Callable[[], bool],
) -> None:
    """Kill it again and again; ``polled`` are the times of the polls that were seen to end.

    Every other life lasts until it has polled once, however slow the machine is, and the first one
    until it may ``begin``: a pilot that ran no job cannot be known where nobody looked.
    """
    moments = random.Random()

    def live(seconds: float, enough: Callable[[], bool], patience_s: float) -> None:
        began = time.monotonic()
        while not done.wait(0.5):
            passed = time.monotonic() - began
            if passed >= seconds and (enough() or passed >= seconds + patience_s):
                return
            with contextlib.suppress(OSError):
                ended = daemon.value("gwmond_poll_timestamp_seconds")
                if ended is not None and ended not in polled:
                    polled.append(ended)

    def has_polled(before: int) -> bool:
        return len(polled) > before

    live(0, begin, PATIENCE_S)
    while len(kills) < KILLS and not done.is_set():
        patience_s = 0.0 if len(kills) % 2 else PATIENCE_S
        live(moments.uniform(0.3, 5.5), partial(has_polled, len(polled)), patience_s)
        daemon.kill9()
        kills.append(time.time())
        daemon.start(ready=False)
    done.wait()  # a daemon is killed with the thread that has started it


@contextlib.contextmanager
def _killing(
    daemon: RunningDaemon, kills: list[float], polled: list[float], begin: Callable[[], bool]
) -> Iterator[None]:
    """Kill it meanwhile; see ``_kill``."""
    done = threading.Event()
    killer = threading.Thread(target=_kill, args=(daemon, done, kills, polled, begin))
    killer.start()
    try:
        yield
    finally:
        done.set()
        killer.join()


class Looks(Meanwhile):
    """When daemons had asked the collector for its slots, as they say; a context manager."""

    def __init__(self, daemons: Mapping[str, RunningDaemon]) -> None:
        super().__init__(self._run)
        self._daemons = daemons
        self._seen: dict[str, list[float]] = {name: [time.time()] for name in daemons}

    def _run(self) -> None:
        while not self._stop.wait(1):
            for name, daemon in self._daemons.items():
                with contextlib.suppress(OSError):
                    at = daemon.value("gwmond_source_last_success_timestamp_seconds", kind="slots")
                    if at is not None and at > self._seen[name][-1]:
                        self._seen[name].append(at)

    def longest_s(self, name: str) -> float:
        """Return the longest time that a daemon did not look."""
        return max((later - sooner for sooner, later in pairwise(self._seen[name])), default=0.0)


@contextlib.contextmanager
def play(directory: Path, htcondor: str) -> Iterator[Played]:
    """Play the scenario under the eyes of all three, and of an observer of HTCondor's histories.

    The ledgers can be read until the context ends.
    """
    kills, polled = list[float](), [time.time()]
    urls = {name: f"sqlite:///{directory / name}.sqlite" for name in DAEMONS}

    def knows(pilot: str, runs: Collection[Run]) -> bool:
        """Whether all three have seen it; or have been told what only its startd knows of runs,
        which is that it was drained.  The observer has to be told of all runs."""
        if not runs:
            return all(ledger.shown(url, f"{pilot}@pool.test") for url in urls.values())
        told = pilot != "drained" or all(ledger.told(url, runs) for url in urls.values())
        return told and observer.knows(pilot, runs)

    def all_seen() -> bool:
        """Whether the one that is killed has seen all pilots of the beginning."""
        names = (f"{name}@pool.test" for name in PILOTS if name != "shelter")
        return ledger.shown(urls["killed"], *names)

    with (
        Server() as server,
        CondorPool(htcondor=htcondor, config=POOL_CONFIG) as pool,
        Scenario(pool, knows) as scenario,
    ):
        observer = Observer(pool)
        urls["postgresql"] = server.schema()
        tables: dict[str, dict[str, object]] = {**TABLES, "ledger": {"url": urls["postgresql"]}}
        hosts = [pool.collector]
        with (
            RunningDaemon(directory, hosts, TABLES, name="alone", ledger="alone") as alone,
            RunningDaemon(directory, hosts, TABLES, name="killed", ledger="killed") as killed,
            RunningDaemon(directory, hosts, tables, name="postgresql") as other,
        ):
            with (
                Looks({"alone": alone, "postgresql": other}) as looks,
                _killing(killed, kills, polled, all_seen),
            ):
                with observer:
                    scenario.play()
                until = time.monotonic() + 1200
                while time.monotonic() < until and (
                    len(kills) < KILLS or any(ledger.read(url).open for url in urls.values())
                ):
                    time.sleep(2)
            alone.next_polls(2)
            rows = alone.metrics().rows("gwmond_pilot_canonical_seconds_total")
            counters: dict[tuple[str, str, str], float] = {}
            for labels, seconds in rows.items():
                record = dict(labels)
                key = record["category"], record["site"], record["entry"]
                counters[key] = counters.get(key, 0.0) + seconds
            residuals = alone.metrics().rows("gwmond_ledger_residual_seconds")
            assert set(residuals.values()) == {0.0}
            configs = {
                d: daemon.config for d, daemon in zip(DAEMONS, (alone, killed, other), strict=True)
            }
        # The longest that it did not look, from its first to its last kill.
        away_s = max(later - earlier for earlier, later in pairwise([*polled, kills[-1] + AWAY_S]))
        resolution_s = {
            name: max(RESOLUTION_S, looks.longest_s(name) + 1) for name in ("alone", "postgresql")
        }
        resolution_s["killed"] = away_s + AWAY_S
        print(f"may be wrong by: {resolution_s}")
        late_s = scenario.sight.watch.longest_pause_s
        truth, dump = scenario.truth(), observer.dump()
        yield Played(truth, dump, late_s, urls, configs, counters, len(kills), resolution_s)
