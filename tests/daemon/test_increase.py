"""What PromQL's increase() makes of counters of pilots' time, through a real Prometheus."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.daemon.running import RunningDaemon
from tests.daemon.scene import Scene, pledged
from tests.daemon.scrape import SECONDS as SITE_SECONDS
from tests.daemon.test_pilots import ENTRY, TABLES
from tests.pool.prometheus import Prometheus

SECONDS = "gwmond_pilot_canonical_seconds_total"
ALL = "10m"  # the whole test: increase() does not look beyond the first value of a series


def _increase(prometheus: Prometheus, by: str, family: str, **labels: str) -> dict[str, float]:
    """The README's query, by one label, without what is 0."""
    of = ",".join(f'{name}="{value}"' for name, value in labels.items())
    samples = prometheus.query(f"sum by ({by}) (increase({family}{{{of}}}[{ALL}])) > 0")
    return {have[by]: value for have, value in samples}


def test_increase_by_category_is_what_was_spent(
    scene: Scene, daemon: Callable[..., RunningDaemon], prometheus: Callable[..., Prometheus]
) -> None:
    """Pilots of a new entry: of each category what Prometheus says has increased is what jobs and
    pilots have spent, although each category's time is counted for the first time."""
    pool, schedd = scene.pool, scene.pool.schedds[0]
    running = daemon(pool.collector, tables={**TABLES, **pledged(Real=8)})
    seen = prometheus(f"127.0.0.1:{running.port}")
    seen.wait_for("gwmond_polls_total > 0")
    worker = pool.start_pilot("worker", cores=2, memory=4096, attrs=ENTRY)
    idler = pool.start_pilot("idler", cores=2, memory=4096, attrs={**ENTRY, "START": False})
    seen.wait_for(f'{SECONDS}{{site="Real"}} == 0')
    good = pool.submit(schedd, seconds=8, request_memory=1000)
    pool.wait_for("it to end", lambda: not pool.jobs(schedd, f"ClusterId == {good}"))
    (job,) = pool.jobs(schedd, f"ClusterId == {good}", ["RemoteWallClockTime"], history=True)
    cut = pool.submit(schedd, seconds=600, request_memory=1000)
    pool.wait_for("it to run", lambda: pool.jobs(schedd, f"ClusterId == {cut} && JobStatus == 2"))
    running.next_polls(2)
    worker.stop_graceful()
    idler.stop_graceful()
    pool.remove(schedd)
    expected = {"goodput", "preemption_badput", "pilot_overhead", "decision_problem"}

    def whole() -> bool:
        """Whether all of it is settled and Prometheus has it."""
        unsettled = seen.value("sum(gwmond_pilot_unsettled_canonical_seconds)") or 0
        return unsettled == 0 and seen.value("sum(gwmond_pilots_ended_total)") == 2

    pool.wait_for("all to be settled and scraped", whole)
    truth = {c: running.metrics().sum(SECONDS, category=c, resource="cpu") for c in expected}
    assert truth["goodput"] == pytest.approx(job["RemoteWallClockTime"], abs=3)
    assert all(truth.values())
    # It extrapolates by half of what is between two scrapes.
    found = _increase(seen, "category", SECONDS, resource="cpu")
    assert found == pytest.approx(truth, rel=0.05)
    runs = _increase(seen, "outcome", "gwmond_pilot_attempts_total")
    assert runs == pytest.approx({"exit_zero": 1, "pilot_shutdown": 1}, rel=0.05)
    ended = _increase(seen, "category", "gwmond_pilots_ended_total")
    assert ended == pytest.approx({"pilot_overhead": 1, "decision_problem": 1}, rel=0.05)
    of_site = f'{SITE_SECONDS}{{entry="e-Real"}}'  # Prometheus came later than the pledge's own
    at_once = f"sum by (state) (increase({of_site}[{ALL}])) / sum by (state) ({of_site})"
    shares = {of["state"]: share for of, share in seen.query(f"{at_once} > 0")}
    assert set(shares) >= {"in_use", "insufficient_demand"}
    assert shares == pytest.approx(dict.fromkeys(shares, 1), rel=0.05)
