"""Two gwmonds, each with a Prometheus that writes to one central store: they stay apart there.

Two replays of the demo's pool that began at different times, Debian's VictoriaMetrics as the store,
and its vmalert, which evaluates the shipped rules over both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.alerts.rules import FILES
from tests.build.demos import replay
from tests.pool.ports import free_port
from tests.pool.prometheus import Instant, Prometheus, VictoriaMetrics, VmAlert
from tests.pool.sandbox import PATIENCE_S, wait_until

HOSTS = ("fe1.example.org:9818", "fe2.example.org:9818")
#: Sums that mean something: gauges of now, and a counter.
METRICS = (
    "gwmond_site_canonical_units",
    "gwmond_pilots",
    "gwmond_site_canonical_seconds_total",
)


class Site(NamedTuple):
    """The store, and what it and the Prometheus of each host have at one instant."""

    store: VictoriaMetrics
    then: Instant
    local: tuple[Instant, ...]


def sums(seen: Instant, metric: str) -> dict[str, float]:
    """The sum of a metric, by instance."""
    rows = seen.query(f'sum by (instance) ({metric}{{job="gwmond"}})')
    return {labels["instance"]: value for labels, value in rows}


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
        every = " and ".join(f"sum({metric}) > 0" for metric in METRICS)
        for prometheus in local:
            prometheus.wait_for(every, timeout=2 * PATIENCE_S)
        yield wait_until("an instant", lambda: _site(store, local, every))


def _site(store: VictoriaMetrics, local: list[Prometheus], every: str) -> Site | None:
    """Everything at one instant, unless a scrape just then failed."""
    at = store.instant('count(up{job="gwmond"}) == 2').at
    seen = tuple(Instant(prometheus, at) for prometheus in local)
    return Site(store, Instant(store, at), seen) if all(of.query(every) for of in seen) else None


@pytest.mark.parametrize("metric", METRICS)
def test_each_gwmond_has_its_own_series(site: Site, metric: str) -> None:
    """By instance there is what its own Prometheus has; the sum of all is the sum of these."""
    wanted: dict[str, float] = {}
    for of in site.local:
        wanted |= sums(of, metric)
    found = sums(site.then, metric)
    assert set(found) == set(HOSTS)
    assert all(found.values())
    assert found == pytest.approx(wanted, rel=1e-12)
    assert site.then.value(f"sum({metric})") == pytest.approx(sum(wanted.values()), rel=1e-12)


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
