"""Whoever may advertise a slot, or submit a job, chooses names; gwmond keeps so many apart."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

from tests.daemon.running import RunningDaemon, Tables, patient
from tests.daemon.scene import PILOT, Scene, pledged
from tests.daemon.scrape import SECONDS, Metrics
from tests.pool import feign
from tests.pool.adtext import Ad
from tests.pool.sandbox import wait_until

STRANGERS, USERS, SUBMIT_HOSTS = 2000, 300, 50
ENTRIES, ACCOUNTING, SCHEDDS = 20, 5, 2
KNOWN = ("Good", "Quiet", "Third")
HOSTILE = "\u202e<script>\u2028 problem over"


def configured(forget_after: str) -> Tables:
    bounds = {"entries": ENTRIES, "groups": 30, "accounting_groups": ACCOUNTING, "schedds": SCHEDDS}
    return pledged(Good=20) | patient(6) | {"names": {**bounds, "forget_after": forget_after}}


def flood(scene: Scene) -> None:
    """As many pilots as strangers, each with a site, an entry and a group of its own; and schedds
    that do not answer."""
    ads = [
        feign.partitionable_slot(
            f"s{n}@stranger",
            glidein=feign.glidein(f"x{n:04}", f"X{n:04}{HOSTILE}", client=f"f{n}.g"),
        )
        for n in range(STRANGERS)
    ]
    scene.pool.advertise(ads, "UPDATE_STARTD_AD")
    schedds: list[Ad] = [
        {"MyType": "Scheduler", "Name": f"aa{n}@stranger", "MyAddress": f"<127.0.0.1:9?sock=s{n}>"}
        for n in range(SUBMIT_HOSTS)
    ]
    scene.pool.advertise(schedds, "UPDATE_SCHEDD_AD")


def sites(metrics: Metrics, name: str = "gwmond_site_state") -> set[str]:
    return {dict(labels)["site"] for labels in metrics.rows(name)}


def test_a_flood_of_names(
    scene: Scene, daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    """Sites that were known keep series and verdicts; strangers are one, and all of their time is
    there; one problem says so; what is seen no more gives its place back."""
    scene.pilot("Good", busy=PILOT)
    scene.resource("Good", running=1)
    scene.jobs(5, "Good", attrs={"AcctGroup": "known"})
    scene.pilot("Quiet")
    scene.pilot("Third")
    running = daemon(scene.pool.collector, tables=configured("1h"))
    before = running.wait_until(
        "the known sites",
        lambda m: m.units("Good", "provisioning_bottleneck") == 5 and {*KNOWN} <= sites(m, SECONDS),
    )
    lines = len(running.log())

    flood(scene)
    theirs = scene.jobs(USERS, "Nowhere", attrs={"AcctGroup": "u$(Process)"})
    total = STRANGERS + len(KNOWN)
    metrics = running.wait_until("the strangers", lambda m: m.registered() == total)
    running.next_polls(2)
    metrics = _is_bounded(before, running)
    assert metrics.units("other", "provisioned") == PILOT * (total - ENTRIES)
    assert metrics.state("other") == "unknown"
    (event,) = running.log("problem", problem="too_many_names")
    assert re.search(rf"\d+ entries besides {ENTRIES}, such as 'X\d+\?<script>  ", event["detail"])
    others = USERS + 2 - ACCOUNTING  # besides the known one there are jobs of none
    together = {"entries": total - ENTRIES, "accounting groups": others, "schedds": SUBMIT_HOSTS}
    for kind, number in together.items():
        assert metrics.value("gwmond_names_together", kind=kind) == number
    assert len(json.dumps(event)) < 3000
    assert len(running.log()) <= lines + 5
    assert len(running.get("/")) < 50_000

    scene.pilot("Trusted")
    scene.resource("Trusted", running=1)
    running.wait_until("a site that a frontend names", lambda m: bool(m.state("Trusted")))
    _is_bounded(before, running)
    named = _names(tmp_path)
    running.kill9()
    running.start()
    running.wait_until("the strangers again", lambda m: m.registered() == total + 1)
    running.next_polls(2)
    _is_bounded(before, running)
    after = _names(tmp_path)
    assert {name: after[name] for name in named} == named
    running.command("ledger", "check")

    scene.pool.invalidate("Machine", "INVALIDATE_STARTD_ADS", 'regexp("@stranger$", Name)')
    scene.pool.invalidate("Scheduler", "INVALIDATE_SCHEDD_ADS", 'regexp("@stranger$", Name)')
    scene.remove(theirs)
    running.configure(configured("10s"))
    running.hup()
    known = {*KNOWN, "Trusted"}
    metrics = running.wait_until(
        "places that were given back",
        lambda m: sites(m) == known and sites(m, SECONDS) - {"other"} == known,
    )
    assert metrics.seconds("Good", "provisioning_bottleneck") > before.seconds("Good")
    wait_until(
        "the end of the problem", lambda: running.log("problem over", problem="too_many_names")
    )
    scene.pilot("Newcomer")
    running.wait_until("a newcomer", lambda m: bool(m.state("Newcomer")))


def _is_bounded(before: Metrics, running: RunningDaemon) -> Metrics:
    """As many sites as are kept apart, among them those that were known, as they were."""
    metrics = running.wait_until(
        "verdicts as they were",  # a schedd may miss a poll's deadline
        lambda m: (
            m.units("Good", "provisioning_bottleneck") == 5
            and all(m.state(site) == before.state(site) for site in KNOWN)
        ),
    )
    for name in ("gwmond_site_state", SECONDS, "gwmond_pilot_canonical_seconds_total"):
        assert len(sites(metrics, name) - {"other"}) <= ENTRIES + 1  # one may have left
        assert {*KNOWN} <= sites(metrics, name)
    assert metrics.seconds("Good") > before.seconds("Good")
    queried = {dict(row)["source"] for row in metrics.rows("gwmond_source_up", kind="demand")}
    assert len(queried) == SCHEDDS
    groups = metrics.rows("gwmond_demand_jobs", status="idle")
    assert len({dict(group)["accounting_group"] for group in groups}) <= ACCOUNTING + 1
    assert metrics.sum("gwmond_demand_jobs", status="idle") in {5, 5 + USERS}
    assert metrics.sum("gwmond_demand_jobs", status="idle", accounting_group="known") == 5
    assert len(running.get("/metrics")) < 2_000_000
    return metrics


def _names(directory: Path) -> dict[str, tuple[str, str, str]]:
    """Under which names each pilot is accounted, by the ledger."""
    with sqlite3.connect(f"file:{directory}/ledger.sqlite?mode=ro", uri=True) as ledger:
        rows = ledger.execute("SELECT name, site, entry, group_name FROM pilots").fetchall()
    assert len({(site, entry) for _, site, entry, _ in rows}) <= ENTRIES + 2
    return {name: (site, entry, group) for name, site, entry, group in rows}
