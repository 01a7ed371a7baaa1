"""A real pool whose pilots run jobs, recorded and replayed: the same accounting comes out."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import NamedTuple

import pytest

from gwmond.config.settings import Config
from gwmond.model.pilot_life import Category
from gwmond.model.times import SECOND_US
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import Evidence
from gwmond.sources import child, tasks
from gwmond.sources.htcondor.access import Access, Daemon, LiveAccess, Terms
from gwmond.sources.htcondor.histories.history_cursor import HistoryLimits
from gwmond.sources.recording import recorded_runs
from gwmond.sources.recording.recorder import Recorder
from gwmond.sources.recording.recording import Recording, ReplayAccess, Writer
from gwmond.sources.round import CLAIMS, SLOTS, Targets
from tests.build.accounting import Steps
from tests.build.kept import kept
from tests.pool.condor import CondorPool
from tests.sources.history_scenario import Job as Case
from tests.sources.history_scenario import daemon, submit

EVERY_S = 2.0
LONGEST_S = 400.0
SHIFT_S = 864_000
RULES = Rules(
    outcome_wait_us=15 * SECOND_US,
    missing_wait_us=15 * SECOND_US,
    verdict_us=12 * SECOND_US,  # its slices are whole seconds, so the shift moves none
    end_tolerance_us=12 * SECOND_US,
    start_guard_us=2 * SECOND_US,
    linger_us=8 * SECOND_US,
    quiet_us=8 * SECOND_US,
    refresh_us=SECOND_US,
)
CASES = (
    Case("zero", "main", "main", "sleep 6"),
    Case("three", "main", "main", "sleep 3; exit 3"),
    Case("signal", "main", "main", "sleep 3; kill -11 $$"),
    Case("removed", "main", "main", "sleep 600"),
    Case("evicted", "main", "nowhere", "sleep 601"),
)


class Outcome(NamedTuple):
    """What is to be the same: runs, pilots, and the seconds of each category."""

    runs: dict[tuple[str, int], tuple[str, str]]
    pilots: set[tuple[str, bool]]
    seconds: Counter[str]


class Observer:
    """Keeps the accounting of one collector and one schedd, by the daemon's own tasks."""

    def __init__(self, host: str, schedd: Daemon) -> None:
        self._host, self._schedd = host, schedd
        self._stored = kept()
        self._steps = Steps(PilotAccounting(self._stored.load(), RULES), self._stored)
        self._states = dict.fromkeys(recorded_runs.KINDS, "")

    def look(self, access: Access, now: float) -> None:
        """Take in what is shown at one moment."""
        now_us, steps = round(now * SECOND_US), self._steps
        terms = Terms(access, self._host, Config().attributes, now)
        slots = child.run(tasks.ask, terms, SLOTS, deadline_s=60)[0][0]
        steps.add_ads(now_us, round(EVERY_S * SECOND_US), slots.pilots, complete=True)
        claims = child.run(tasks.ask, terms, CLAIMS, deadline_s=60)[0][0]
        steps.add_claims(now_us, claims.records, complete=True)
        for kind, state in self._states.items():
            of = access, self._schedd, kind, state, HistoryLimits(), now
            answer = child.run(tasks.records, *of, deadline_s=60)[0][0]
            assert (answer.gap, answer.problems) == (None, ())
            self._states[kind] = answer.state
            steps.add_records(answer.records)
        steps.settle(now_us, now_us - 3 * SECOND_US)
        steps.accounting.settlement.judge(now_us, Evidence(now_us - 3 * SECOND_US), {})
        steps.settle(now_us, now_us - 3 * SECOND_US)
        steps.store(now_us)

    @property
    def is_over(self) -> bool:
        """Whether all five jobs have run, and it is known how."""
        rows = self._stored.runs.values()
        return len(rows) >= len(CASES) and all(row.outcome is not None for row in rows)

    def kept(self) -> Outcome:
        """What came out."""
        stored = self._stored
        runs = {
            (key.job.rpartition("#")[0], key.number): (
                row.outcome.label if row.outcome else "open",
                row.outcome.category.value if row.outcome else "",
            )
            for (_, key), row in stored.runs.items()
        }
        pilots = {(row.identity.name, row.end_us is not None) for row in stored.pilots.values()}
        seconds: Counter[str] = Counter()
        for (_, series), micros in stored.posted.items():
            if (series.resource, series.measure) == ("cpu", "resource"):
                seconds[series.category.value] += micros
        return Outcome(runs, pilots, Counter({name: n // SECOND_US for name, n in seconds.items()}))


def play(pool: CondorPool, path: Path) -> Outcome:
    """Let jobs run and end on a pilot, and the pilot end; record that and watch it live."""
    pool.start_pilot("glidein_1_1", cores=8, memory=4096, attrs={"GLIDEIN_Site": "main"})
    pilot = pool.start_pilot("glidein_2_2", cores=2, memory=4096, attrs={"GLIDEIN_Site": "away"})
    schedd = daemon(pool, "Schedd", pool.schedds[0])
    clusters = {case.case: submit(pool, case) for case in CASES[:4]}
    clusters["evicted"] = submit(pool, CASES[4]._replace(first="away"))
    recorder = Recorder(Config(), Targets((pool.collector,), (), ()))
    writer = Writer(path, recorder.asked())
    observer = Observer(pool.collector, schedd)
    access = LiveAccess()
    lasting = f"ClusterId == {clusters['removed']} || ClusterId == {clusters['evicted']}"
    pool.wait_for(
        "what lasts to run",
        lambda: len(pool.jobs(schedd.name, f"({lasting}) && JobStatus == 2")) == 2,
    )
    over, began = False, time.monotonic()
    while time.monotonic() < began + LONGEST_S and not over:
        over = observer.is_over  # and once more: a frame is a bit older than a look
        now = time.time()
        writer.add(now, recorder.frame(access, now))
        observer.look(access, now)
        if recorder.frames == 3:
            pool.act("Remove", schedd.name, f"ClusterId == {clusters['removed']}")
            pilot.stop_graceful()
        time.sleep(EVERY_S)
    writer.close()
    assert over, observer.kept()
    assert recorder.errors == {}
    return observer.kept()


@pytest.fixture(scope="module")
def epochs_kept() -> str:
    """The configuration of a pool that keeps an epoch history."""
    return "JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history\nSCHEDD2.JOB_EPOCH_HISTORY =\n"


@pytest.fixture
def own_fork_server() -> Iterator[None]:
    """Queries of this test, and those of later ones, are forked from servers of their own.

    A server keeps the environment in which it was started, and the pool that is named there ends.
    """
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    yield
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


def test_a_recorded_pool_gives_the_same_book(
    epochs_kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_fork_server: None
) -> None:
    """Runs, their outcomes, pilots' ends and the sums are those that were seen live."""
    path = tmp_path / "r.zip"
    with CondorPool(config=epochs_kept) as pool:
        for name, value in pool.client_env().items():
            monkeypatch.setitem(os.environ, name, value)
        child.start()
        live = play(pool, path)
        schedd = daemon(pool, "Schedd", pool.schedds[0])
        host = pool.collector
        recording = Recording(str(path))
        observer = Observer(host, schedd)
        for moment in recording.times:
            access = ReplayAccess(str(path), moment, float(SHIFT_S))
            observer.look(access, moment + SHIFT_S)
    replayed = observer.kept()
    labels = Counter(label for label, _ in live.runs.values())
    assert labels["exit_zero"] == labels["exit_signal"] == labels["removed"] == 1, live.runs
    assert Category.PREEMPTION_BADPUT.value in {category for _, category in live.runs.values()}
    assert replayed.runs == live.runs
    assert replayed.pilots == live.pilots
    for category, seconds in live.seconds.items():
        assert replayed.seconds[category] == pytest.approx(seconds, abs=30), category
