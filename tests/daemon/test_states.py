"""Sites in known states, through a real Prometheus, while they change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.daemon.running import RunningDaemon, patient
from tests.daemon.scene import PILOT, Scene, pledged
from tests.daemon.scrape import SECONDS
from tests.pool.prometheus import Instant, Prometheus

PLEDGES = {"Starved": 40, "Bored": 16, "Full": 8, "Queued": 16, "Down": 16}


def _states(seen: Instant) -> dict[str, str]:
    samples = seen.query("gwmond_site_state == 1")
    return {labels["site"]: labels["state"] for labels, _ in samples}


def _wait(prometheus: Prometheus, **states: str) -> Instant:
    """When PromQL says that sites are in these states, and no other."""
    return prometheus.instant(
        "gwmond_site_state == 1",
        lambda samples: (
            states.items() <= {labels["site"]: labels["state"] for labels, _ in samples}.items()
        ),
    )


def _units(seen: Instant, site: str) -> dict[str, float]:
    """The capacity, and what it sums up from."""
    of = f'{{site="{site}",resource="cpu"}}'
    query = f"sum by (state) (gwmond_site_canonical_units{of}) > 0"
    units = {labels["state"]: value for labels, value in seen.query(query)}
    capacity = seen.value(f"gwmond_site_capacity_canonical_units{of}")
    assert capacity is not None
    return {"capacity": capacity, **units}


def _shares(seen: Instant, site: str, window: str) -> dict[tuple[str, str], float]:
    """The site's time by state and reason: exact, for all its counters step at the same scrapes."""
    rate = f'rate({SECONDS}{{site="{site}"}}[{window}])'
    samples = seen.query(f"sum by (state, reason) ({rate}) / scalar(sum({rate})) > 0")
    return {
        (labels["state"], labels.get("reason", "").partition("_total")[0]): share
        for labels, share in samples
    }


def _as_of(running: RunningDaemon, seen: Instant) -> dict[str, str]:
    """The states as the ledger has them of the poll that Prometheus saw then."""
    made = seen.value("gwmond_poll_timestamp_seconds")
    told = running.document("sites", "--as-of", f"{made:.6f}")
    assert 0 <= (made or 0) - told["time_epoch_seconds"] < 30  # its answers are older than itself
    return {row["site"]: row["state"] for row in told["sites"] if row["resource"] == "cpu"}


def test_five_sites_as_prometheus_sees_them(
    shared_scene: Scene,
    daemon: Callable[..., RunningDaemon],
    prometheus: Callable[..., Prometheus],
) -> None:
    """State, units, seconds by reason, demand and pilots are as set up, and follow each change."""
    scene = shared_scene
    for site in ("Starved", "Bored", "Full"):
        scene.pilot(site, busy=PILOT)
    limit = {"TotalGlideinsPerEntry": (1, 1)}
    scene.resource("Starved", running=1, requested_idle=0, limits=limit)
    scene.resource("Bored", running=1)
    scene.resource("Full", running=1, requested_idle=2)
    scene.resource("Queued", pending=2, requested_idle=2)
    scene.resource("Down", down=True)
    waiting = scene.jobs(20, "Starved", accounting_group="cms.prod", accounting_group_user="alice")

    tables = pledged(**PLEDGES) | patient(4)
    tables["site"]["pending_grace"] = "40s"  # and all that follows is asked before that
    running = daemon(scene.pool.collector, tables=tables, ready=False)
    watching = prometheus(f"127.0.0.1:{running.port}")
    expected = {
        "Starved": "provisioning_bottleneck",
        "Bored": "insufficient_demand",
        "Full": "full",
        "Queued": "filling",
        "Down": "down",
    }
    # On a busy machine a schedd may miss the first poll's deadline: the verdict is unknown then.
    seen = _wait(watching, **expected)
    assert set(_states(seen)) == set(expected)
    assert _units(seen, "Starved") == {
        "capacity": 40,
        "provisioned": 8,
        "provisioning_bottleneck": 20,
        "insufficient_demand": 12,
    }
    assert _units(seen, "Bored") == {
        "capacity": 16,
        "provisioned": 8,
        "insufficient_demand": 8,
    }
    assert _units(seen, "Full") == {"capacity": 8, "provisioned": 8}
    assert _units(seen, "Queued") == {"capacity": 16, "filling": 16}
    assert _units(seen, "Down") == {"capacity": 16, "down": 16}
    group = seen.query('gwmond_demand_jobs{status="idle"}')
    assert [(s[0]["accounting_group"], s[1]) for s in group] == [("cms.prod", 20)]
    demand = 'sum by (fate) (gwmond_demand_canonical_units{resource="cpu"}) > 0'
    assert {s[0]["fate"]: s[1] for s in seen.query(demand)} == {"assigned": 20}
    assert seen.value('sum(gwmond_demand_idle_canonical_units{resource="cpu"})') == 20
    assert seen.value('gwmond_pilots{site="Queued",state="pending"}') == 2
    assert seen.value('sum(gwmond_pilots{site="Starved",state="busy"})') == 1
    (limited,) = seen.query('gwmond_site_canonical_units{site="Starved",reason!=""}')
    assert limited[0]["reason"].startswith("frontend_limit")
    at_first = seen

    seen = _wait(watching, Queued="saturated")
    assert _units(seen, "Queued") == {"capacity": 16}
    assert _shares(seen, "Starved", "15s") == pytest.approx(
        {
            ("provisioned", ""): 8 / 40,
            ("provisioning_bottleneck", "frontend_limit"): 20 / 40,
            ("insufficient_demand", ""): 12 / 40,
        },
        rel=1e-6,
    )
    # Between two polls counters stand still, and so does the time of the last one; of a short
    # window a rate is only about right.
    passed = "scalar(delta(gwmond_poll_timestamp_seconds[30s]) / 30)"
    whole = seen.value(f'sum(rate({SECONDS}{{site="Starved"}}[30s])) / {passed}')
    assert whole == pytest.approx(40, rel=0.5)

    scene.remove(waiting)
    more = scene.jobs(30, "Bored", "Down", schedd=1)
    scene.resource("Queued", pending=0)
    seen = _wait(
        watching,
        Starved="insufficient_demand",
        Bored="provisioning_bottleneck",
        Queued="insufficient_demand",
    )
    (reason,) = seen.query('gwmond_site_canonical_units{site="Bored",reason!=""}')
    assert reason[0]["reason"] == "no_match_in_frontend"
    scene.resource("Down", down=False, requested_idle=3, staging=3)
    seen = _wait(watching, Down="provisioning_bottleneck", Bored="provisioning_bottleneck")
    (reason,) = seen.query('gwmond_site_canonical_units{site="Down",reason!=""}')
    assert reason[0]["reason"].startswith("not_acknowledged")
    scene.resource("Starved", down=True)
    scene.remove(more, schedd=1)
    seen = _wait(watching, Starved="down", Bored="insufficient_demand", Down="insufficient_demand")
    for moment in (at_first, seen):
        assert _as_of(running, moment) == _states(moment)
    waits = running.document("explain", "--all", "--as-of", f"{at_first.at:.6f}")["idle"]
    assert [(wait["site"], wait["jobs"]) for wait in waits] == [("Starved", 20)]
    assert seen.value("max(max_over_time(gwmond_ledger_residual_seconds[1h]))") == 0
    assert seen.value("max_over_time(gwmond_series_folded{family='gwmond_site_state'}[1h])") == 0
