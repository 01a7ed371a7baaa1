"""Two gwmonds, each with a Prometheus that writes to one central store: they stay apart there.

Two replays of the demo's pool that began at different times, Debian's VictoriaMetrics as the store,
and its vmalert, which evaluates the shipped rules over both.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.alerts.rules import FILES
from tests.build.demos import replay
from tests.pool.ports import free_port
from tests.pool.prometheus import Prometheus, Store, VictoriaMetrics, VmAlert
from tests.pool.sandbox import PATIENCE_S

HOSTS = ("fe1.example.org:9818", "fe2.example.org:9818")
#: Sums that mean something: gauges of now, and a counter.
METRICS = (
    "gwmond_site_canonical_units",
    "gwmond_pilots",
    "gwmond_site_canonical_seconds_total",
)


class Site(NamedTuple):
    """The store, the Prometheus of each host, and an instant of which all samples have arrived."""

    store: VictoriaMetrics
    local: tuple[Prometheus, ...]
    at: float

    def sums(self, where: Store, metric: str) -> dict[str, float]:
        """The sum of a metric at the instant, by instance."""
        query = f'sum by (instance) ({metric}{{job="gwmond"}})'
        rows = where.api("query", query=query, time=str(self.at))["result"]
        return {row["metric"]["instance"]: float(row["value"][1]) for row in rows}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with ExitStack() as stack, VictoriaMetrics() as store:
        local = []
        for host in HOSTS:
            directory = tmp_path_factory.mktemp("host")
            listen, _ = stack.enter_context(replay(directory))
            # As of a host's own Prometheus, for which 127.0.0.1 would be the instance.
            target = {"targets": [listen], "labels": {"instance": host}}
            options = {"job_name": "gwmond", "static_configs": [target]}
            prometheus = Prometheus(
                (listen,), interval="5s", options=options, remote_write=store.remote_write
            )
            local.append(stack.enter_context(prometheus))
        for prometheus in local:
            for metric in METRICS:
                prometheus.wait_for(f"sum({metric}) > 0", timeout=2 * PATIENCE_S)
        at = time.time()
        store.wait_for(f'timestamp(up{{job="gwmond"}}) > {at}', lambda rows: len(rows) == 2)
        yield Site(store, tuple(local), at)


@pytest.mark.parametrize("metric", METRICS)
def test_each_gwmond_has_its_own_series(site: Site, metric: str) -> None:
    """By instance there is what its own Prometheus has; the sum of all is the sum of these."""
    wanted: dict[str, float] = {}
    for prometheus in site.local:
        wanted |= site.sums(prometheus, metric)
    found = site.sums(site.store, metric)
    assert set(found) == set(HOSTS)
    assert all(found.values())
    assert found == pytest.approx(wanted, rel=1e-12)
    (whole,) = site.store.api("query", query=f"sum({metric})", time=str(site.at))["result"]
    assert float(whole["value"][1]) == pytest.approx(sum(wanted.values()), rel=1e-12)


def test_the_rules_are_evaluated_over_all(site: Site, tmp_path: Path) -> None:
    """By the central store's own evaluator: no rule fails, and each gwmond has its results.

    Debian 12's vmalert does not know ``keep_firing_for`` yet.
    """
    nobody = f"127.0.0.1:{free_port()}"
    for file in FILES:
        text = re.sub(r"^ +keep_firing_for: .*\n", "", file.read_text(), flags=re.MULTILINE)
        (tmp_path / file.name).write_text(text)
    with VmAlert(site.store, sorted(tmp_path.glob("*.yml")), nobody) as evaluator:
        share = "site_state:gwmond_site_canonical_seconds:ratio_rate30m"
        for name in ("instance:gwmond_poll_age_seconds:fresh", f"count by (instance) ({share})"):
            rows = site.store.wait_for(name, lambda rows: len(rows) == len(HOSTS))
            assert {labels["instance"] for labels, _ in rows} == set(HOSTS)
        site.store.wait_for(  # samples of one scrape may be stored before and after an evaluation
            f"sum by (instance, site, resource) ({share})",
            lambda rows: rows != [] and all(total == pytest.approx(1) for _, total in rows),
        )
        groups = evaluator.api("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert len(rules) > 50
        assert [rule for rule in rules if rule["lastError"]] == []
