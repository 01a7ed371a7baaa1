"""Pilots that are killed, or whose startd is, and a collector without an ad of itself."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable

import pytest

from gwmond.model.pilot_life import Category
from tests.daemon.running import RunningDaemon, patient
from tests.pool.adtext import Value
from tests.pool.condor import CondorPool
from tests.pool.sandbox import wait_until

Start = Callable[..., RunningDaemon]
TABLES: dict[str, dict[str, object]] = {
    **patient(2),
    "site": {"collector_distrust": "1h"},
    "pilots": {
        "settle_delay": "2s",
        "outcome_wait": "20s",
        "silent_wait": "20s",
        "verdict_after": "10s",
        "end_tolerance": "5s",
        "assumed_end": "8s",
        "claims_every": "2s",
    },
}
LIFETIME_S = 30
SHORT: dict[str, Value] = {
    "GLIDEIN_Site": "Short",
    "GLIDEIN_Entry_Name": "short",
    "ClassAdLifetime": LIFETIME_S,
}


def silent(page: str) -> str | None:
    """The page, if it has silent pilots."""
    return page if "Silent pilots" in page else None


def test_a_killed_pilot_is_silent_and_then_ends(epochs: CondorPool, daemon: Start) -> None:
    """It is not idle: after two updates it is called silent, with when it was heard of last; and
    once its ad has expired it has ended then, though the collector is not an hour old."""
    alive = epochs.start_pilot("alive", attrs=SHORT)
    killed = epochs.start_pilot("killed", attrs=SHORT)
    running = daemon(epochs.collector, tables=TABLES)
    running.wait_until("two pilots", lambda m: m.registered(site="Short") == 2)
    killed.kill9()
    page = wait_until("the page to say it", lambda: silent(running.get("/")))
    place = ">Short</a></td><td><a [^>]*>short</a></td>"
    assert re.search(f"{place}<td>{re.escape(killed.name)}</td><td>", page)
    assert alive.name not in page
    found = {of["name"]: of for of in running.document("pilots", "--site", "Short")["pilots"]}
    if (told := found.get(killed.name)) is not None:  # else it has ended meanwhile
        assert told["state"] == "silent"
    assert found[alive.name]["state"] == "idle"
    running.wait_until("one pilot", lambda m: m.registered(site="Short") == 1)
    wait_until("its end", lambda: running.stored(killed.name)[0][0].end_us is not None)
    ((row,), _) = running.stored(killed.name)
    assert row.end_source == "ad_expired"
    assert row.end_us == row.last_heard_us
    wait_until("the page without it", lambda: not silent(running.get("/")))
    alive.stop_graceful()


@pytest.mark.parametrize("known", [True, False])
def test_a_startd_that_is_killed_and_started_again(
    epochs: CondorPool, daemon: Start, known: bool
) -> None:
    """What ran under it is lost with it; with a factory's job it is one pilot, else two."""
    name = f"again-{known}".lower()
    attrs: dict[str, Value] = {"GLIDEIN_Site": name, "GLIDEIN_Entry_Name": name}
    if known:
        attrs |= {"GLIDEIN_Schedd": "schedd", "GLIDEIN_ClusterId": 7, "GLIDEIN_ProcId": 0}
    epochs.remove(epochs.schedds[0])  # what an attempt before has left would run in its place
    pilot = epochs.start_pilot(name, attrs=attrs, config="MASTER.DAEMON_SHUTDOWN_FAST = False")
    running = daemon(epochs.collector, tables=TABLES)
    here = f'TARGET.GLIDEIN_Site =?= "{name}"'  # not on what a killed pilot has left
    cluster = epochs.submit(epochs.schedds[0], job_lease_duration=20, requirements=here)
    job = f"ClusterId == {cluster}"
    epochs.wait_for("it to run", lambda: epochs.jobs(epochs.schedds[0], f"{job} && JobStatus == 2"))
    wait_until("its run", lambda: running.stored(pilot.name)[1])
    before = pilot.pid_of("STARTD")
    pilot.signal("STARTD", signal.SIGKILL)
    wait_until("another startd", lambda: pilot.pid_of("STARTD") not in {None, before})
    wait_until(
        "the record of the run", lambda: running.stored(pilot.name)[1][0].key.shadow_start == 1
    )
    wait_until("its outcome", lambda: running.stored(pilot.name)[1][0].outcome is not None)
    pilots, runs = running.stored(pilot.name)
    outcome = runs[0].outcome
    assert outcome is not None
    assert (outcome.category, outcome.label) == (Category.PREEMPTION_BADPUT, "lost_contact")
    assert len(pilots) == (1 if known else 2)
    epochs.remove(epochs.schedds[0])
    pilot.stop_graceful()


def test_a_collector_without_an_ad_of_itself(daemon: Start) -> None:
    """Its ads expire before it renews its own: its master tells since when it runs, so that it is
    no young collector for ever, and the check says what is missing."""
    short = "CLASSAD_LIFETIME = 12\nCOLLECTOR_UPDATE_INTERVAL = 900\nCLEAN_INTERVAL = 1"
    with CondorPool(config=f"{short}\n") as pool:
        pool.wait_for("its ad to expire", lambda: not pool.query("Collector", None, ["Name"]))
        tables = {**TABLES, "site": {"collector_distrust": "15s"}}
        pilot = pool.start_pilot("leaves")
        running = daemon(pool.collector, tables=tables)
        running.wait_until("it", lambda m: m.registered() == 1)
        (row,) = [of for of in running.document("check") if of["kind"] == "collector"]
        assert (row["ok"], row["problem"]) == (True, "no_own_ad")
        assert "holds no ad of itself" in row["detail"]
        assert "CLASSAD_LIFETIME" in row["remedy"]
        text = running.command("check")
        assert "All is well" not in text
        pilot.stop_graceful()
        wait_until("its end", lambda: running.stored(pilot.name)[0][0].end_us is not None)
