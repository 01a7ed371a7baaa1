"""The queries of docs/metrics-guide.md, through a real Prometheus, of a known pool."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tests.daemon.running import RunningDaemon
from tests.daemon.scene import PUNCTUAL, REAL, Scene, pledged
from tests.daemon.scrape import SECONDS as SITE_SECONDS
from tests.daemon.scrape import Metrics
from tests.pool.adtext import Value
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.pool.ports import free_port
from tests.pool.prometheus import Instant, Prometheus, Sample
from tests.promql import GUIDE, PAGES, queries

SECONDS = "gwmond_pilot_canonical_seconds_total"
CHECKED = "gwmond_verdicts_checked_total"
CORES, PLEDGED, WANTED = 2, 4, 3
# In a group of its own: what the newest pilots of a group start is what all will.
IDLE: dict[str, Value] = {
    **REAL,
    "START": False,
    "GLIDECLIENT_Name": "frontend.idle",
    "GLIDECLIENT_Group": "idle",
}
Answer = dict[tuple[str, ...], float]


class Truth(NamedTuple):
    """What HTCondor, the test's clock and counters that began with 0 say; seconds.

    ``lives`` are the least and the most that those of the two pilots together can be: daemons take
    a while to begin and to end, on a busy machine a long one.  Poor was accounted for longer than
    ``watched``, and not for longer than ``ran``.
    """

    metrics: Metrics
    goodput: float
    lives: tuple[float, float]
    watched: float
    ran: float
    dead: str


@pytest.fixture
def tables() -> dict[str, dict[str, object]]:
    """Two sites that have promised cores, and a WMS collector that is not there."""
    tables: dict[str, dict[str, object]] = {**PUNCTUAL, **pledged(Real=8, Poor=PLEDGED)}
    tables["site"]["verdict_check"] = "6s"
    tables["pool.wms"] = {"collectors": [f"127.0.0.1:{free_port()}"]}
    return tables


def _checked(running: RunningDaemon) -> None:
    """Both pilots have stayed idle for as long as verdicts are checked: there was no demand."""
    running.wait_until("two verdicts", lambda m: m.sum(CHECKED, agreed="true") == 2)


def _runs(pool: CondorPool, worker: Pilot) -> float:
    """One run completes, the starter of one is killed, and one runs on; how long the first ran."""
    schedd = pool.schedds[0]
    good = pool.submit(schedd, seconds=8, request_memory=1000)
    pool.wait_for("it to end", lambda: not pool.jobs(schedd, f"ClusterId == {good}"))
    (job,) = pool.jobs(schedd, f"ClusterId == {good}", ["RemoteWallClockTime"], history=True)
    cut = f"ClusterId == {pool.submit(schedd, seconds=600, request_memory=1000)}"
    running = f"{cut} && JobStatus == 2"
    pool.wait_for("it to run", lambda: pool.jobs(schedd, running))
    lasted = f"{running} && time() - JobCurrentStartDate > 4"  # in whole seconds, and not 0
    pool.wait_for("its starter", lambda: worker.pid_of("STARTER") and pool.jobs(schedd, lasted))
    worker.signal("STARTER", signal.SIGKILL)
    again = f"{running} && NumShadowStarts == 2"
    pool.wait_for("it to run again", lambda: pool.jobs(schedd, again))
    return float(job["RemoteWallClockTime"])


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A pool whose schedds keep a record of each run, not only of a job's last one."""
    with CondorPool(config="JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history") as pool:
        yield Scene(pool)


@pytest.fixture
def told(
    scene: Scene,
    daemon: Callable[..., RunningDaemon],
    prometheus: Callable[..., Prometheus],
    tables: dict[str, dict[str, object]],
) -> tuple[Instant, Truth]:
    """What Prometheus has after all has been settled and scraped."""
    pool = scene.pool
    for site in ("Poor", "Real"):
        scene.resource(site, cpus=2, memory=4096, requested_idle=0)
    scene.jobs(WANTED, "Poor", schedd=1, request_memory=1000)
    running = daemon(pool.collector, tables=tables)
    seen = prometheus(f"127.0.0.1:{running.port}")
    seen.wait_for("gwmond_polls_total > 0")
    first = running.wait_state(Poor="provisioning_bottleneck")
    moments = [time.time()]
    worker = pool.start_pilot("worker", cores=CORES, memory=4096, attrs=REAL)
    moments.append(time.time())
    idler = pool.start_pilot("idler", cores=CORES, memory=4096, attrs=IDLE)
    moments.append(time.time())
    seen.wait_for(f'{SECONDS}{{site="Real"}} == 0')
    _checked(running)
    goodput = _runs(pool, worker)
    running.next_polls(2)
    for pilot in (worker, idler):
        moments.append(time.time())
        pilot.stop_graceful()
    moments.append(time.time())
    pool.remove(pool.schedds[0])
    asked, came, both, leaving, left, gone = moments
    lives = leaving - came + left - both, left - asked + gone - came

    def whole() -> bool:
        """Whether all of it is settled and Prometheus has it."""
        unsettled = seen.value("sum(gwmond_pilot_unsettled_canonical_seconds)") or 0
        return unsettled == 0 and seen.value("sum(gwmond_pilots_ended_total)") == 2

    pool.wait_for("all to be settled and scraped", whole)
    last = running.metrics()
    seen.wait_for(f"gwmond_polls_total > {last.polls}")
    dead = str(tables["pool.wms"]["collectors"][0])  # type: ignore[index]
    watched, ran = (last.accounted_at - since for since in (first.accounted_at, running.began))
    truth = Truth(last, goodput, lives, watched, ran, dead)
    # On a busy machine a source may miss the deadline of a poll.
    down, _ = _sources_and_residual()
    return seen.instant(down, lambda rows: _sources(rows) == {f"wms:{dead}"}), truth


def _ask(seen: Instant, comment: str, *by: str) -> Answer:
    """What the guide's queries under a comment give, but for what is 0."""
    found: Answer = {}
    texts = [query.text for query in queries(GUIDE) if query.comment.startswith(comment)]
    assert texts, f"the guide has no query with the comment {comment}..."
    for labels, value in (sample for text in texts for sample in seen.query(text)):
        if value > 0:
            found[tuple(labels.get(label, "") for label in by)] = value
    return found


def _grown(seen: Instant, series: str, *by: str) -> Answer:
    """By how much counters have grown from the first time that they were scraped to the last."""
    sums = f"sum by ({', '.join(by)})"
    grown = f"{sums} (max_over_time({series}[1h]) - min_over_time({series}[1h])) > 0"
    return {
        tuple(labels.get(label, "") for label in by): value for labels, value in seen.query(grown)
    }


def _sources_and_residual() -> tuple[str, str]:
    """The guide's queries for sources that are down, and for time that is missing."""
    down, residual = (q.text for q in queries(GUIDE) if q.comment.startswith("sources that are"))
    return down, residual


def _sources(rows: list[Sample]) -> set[str]:
    return {labels["source"] for labels, _ in rows}


def _check_sources_and_residual(seen: Instant, truth: Truth) -> None:
    """The query for sources names the one that is not there, and time is missing nowhere."""
    down, residual = _sources_and_residual()
    assert _sources(seen.query(down)) == {f"wms:{truth.dead}"}
    residuals = {labels["measure"]: value for labels, value in seen.query(residual)}
    assert residuals == {"site_canonical": 0, "resource": 0, "canonical": 0}


def test_the_guides_queries_give_what_was_so(told: tuple[Instant, Truth]) -> None:
    """Time by category is what jobs and pilots have spent although each category's is counted for
    the first time; bottlenecks, shares, verdicts and sources are those of the pool."""
    seen, truth = told
    spent = {
        category: hours * 3600
        for (category,), hours in _ask(seen, "where the pilots' time", "category").items()
    }
    run = {"goodput", "misconfiguration_badput", "preemption_badput"}
    assert set(spent) == {*run, "pilot_overhead", "decision_problem"}
    counted = {name: truth.metrics.sum(SECONDS, category=name, resource="cpu") for name in spent}
    # It extrapolates by half of what is between two scrapes.
    assert spent == pytest.approx(counted, rel=0.05)
    assert spent["goodput"] == pytest.approx(truth.goodput, abs=3)
    least, most = truth.lives
    assert 0.85 * CORES * least < sum(spent.values()) < 1.15 * CORES * most

    failed = _ask(seen, "sites where jobs fail", "resource", "site")
    share = counted["misconfiguration_badput"] / sum(counted[name] for name in run)
    assert failed == pytest.approx({("cpu", "Real"): share}, rel=0.05)

    by = "resource", "site", "reason"
    rates = _ask(seen, "canonical units that jobs", *by)
    bottleneck = _grown(seen, f'{SITE_SECONDS}{{state="provisioning_bottleneck"}}', *by)
    assert {at: units * 3600 for at, units in rates.items()} == pytest.approx(bottleneck, rel=0.05)
    # While a job that may run anywhere waits, there may be no pilot for it at either site.
    lacking = {"state": "provisioning_bottleneck", "resource": "cpu"}
    lacked = truth.metrics.sum(SITE_SECONDS, site="Poor", **lacking)
    assert truth.metrics.sum(SITE_SECONDS, site="Real", **lacking) <= truth.ran
    # Polls before it was watched count, too; and on a busy machine what a late poll missed is
    # unknown.
    all_of_it = truth.metrics.sum(SITE_SECONDS, entry="e-Poor")
    unknown = truth.metrics.sum(SITE_SECONDS, state="unknown", entry="e-Poor")
    assert PLEDGED * truth.watched <= all_of_it + 0.001 <= PLEDGED * truth.ran
    known = truth.watched - unknown / PLEDGED
    assert WANTED * known <= lacked + 0.001 <= (WANTED + 1) * truth.ran
    idle = _ask(seen, "the share of an entry's capacity", "resource", "entry")
    assert set(idle) == {("cpu", "e-Real"), ("cpu", "e-Poor")}
    empty = _grown(seen, f'{SITE_SECONDS}{{state="insufficient_demand"}}', "resource", "entry")
    every = _grown(seen, SITE_SECONDS, "resource", "entry")
    assert idle == pytest.approx({at: empty[at] / every[at] for at in every}, rel=0.05)

    right = _ask(seen, "how often verdicts were right", "state")
    assert right == pytest.approx({("insufficient_demand",): 1})
    assert _ask(seen, "the idle demand", "resource") == {("cpu",): WANTED}
    assert _ask(seen, "the share of the units", "resource", "site") == {}  # no pilot is left
    _check_sources_and_residual(seen, truth)
    for page in PAGES:
        for query in queries(page):
            seen.query(query.text)  # Prometheus takes it
