"""A new operator's first hour, with the trial's settings: what docs/first-look.md says happens.

A real pool has a user's bad program, a black hole, a pilot that dies, and jobs that just run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

from tests.daemon.running import RunningDaemon, gwmond, patient
from tests.pool.adtext import Value
from tests.pool.condor import CondorPool
from tests.pool.sandbox import wait_until

TRIAL = Path(__file__).parents[2] / "etc" / "trial.toml"
FAST: dict[str, dict[str, object]] = {
    **patient(2),
    "pilots": {
        "settle_delay": "4s",
        "outcome_wait": "20s",
        "verdict_after": "45s",
        "claims_every": "4s",
    },
}
"""What minutes of the trial are here, for the test's sake."""

Tables = dict[str, dict[str, object]]
Start = Callable[..., RunningDaemon]
GOOD = 'TARGET.GLIDEIN_Site =?= "Good"'
DEAD = 'TARGET.GLIDEIN_Site =?= "Dead"'
LIFETIME_S = 30


def trial() -> Tables:
    """The settings of the trial, with shorter times; tests have a ledger of their own."""
    tables: Tables = tomllib.loads(TRIAL.read_text())
    del tables["ledger"]
    for name, faster in FAST.items():
        tables[name] = {**tables[name], **faster}
    return tables


def hours(running: RunningDaemon, by: str) -> dict[tuple[str, ...], dict[str, float]]:
    """Seconds of CPUs by category, of each group of a report."""
    names = by.split(",")
    return {
        tuple(of[name] for name in names): of["categories"]["cpu"]["canonical_seconds"]
        for of in running.document("report", "--from", "1h", "--by", by)["groups"]
    }


def of_site(site: str) -> dict[str, Value]:
    return {"GLIDEIN_Site": site, "GLIDEIN_Entry_Name": site.lower()}


def test_an_empty_pool_says_what_is_missing(epochs: CondorPool) -> None:
    """No bare header: what is not there, and what to do next; that is no failure."""
    for form in ("table", "csv"):
        done = gwmond("sites", "--collector", epochs.collector, "--format", form)
        assert done.returncode == 0
        assert "no site is known: the collectors show no pilot" in done.stderr
        assert "gwmond check" in done.stderr
    assert "capacity" not in gwmond("sites", "--collector", epochs.collector).stdout


def test_the_first_hour(epochs: CondorPool, daemon: Start) -> None:
    """Whose fault it was is said of each, by when at the latest, and then so."""
    schedd = epochs.schedds[0]
    for name in ("good1", "good2"):
        epochs.start_pilot(name, cores=2, memory=4096, attrs=of_site("Good"))
    hole = epochs.start_pilot("hole", attrs=of_site("Hole"), config="USER_JOB_WRAPPER = /bin/false")
    dead = epochs.start_pilot("dead", attrs={**of_site("Dead"), "ClassAdLifetime": LIFETIME_S})
    running = daemon(epochs.collector, tables=trial())
    checked = running.document("check")
    assert all(of["ok"] for of in checked)
    epochs.submit(schedd, 1, job_lease_duration=20, requirements=DEAD)
    wait_until("its run", lambda: _doing(running, dead.name) == "running")
    bad = epochs.submit(schedd, 6, owner="bob", executable="/bin/false", requirements=GOOD)
    jobs = epochs.submit(schedd, 40, seconds=2, requirements=f'{GOOD} || GLIDEIN_Site =?= "Hole"')
    dead.kill9()

    def left() -> bool:
        return bool(epochs.jobs(schedd, f"ClusterId == {bad} || ClusterId == {jobs}"))

    wait_until("early failures", lambda: _open(running).get("early_failure"))
    wait_until("the page to say so", lambda: "not settled yet: " in running.get("/"))
    assert "judged by 20" in running.command("report")
    wait_until("it to be silent", lambda: _doing(running, dead.name) in {"silent", None})
    wait_until("all jobs to end", lambda: not left())
    wait_until("all to be settled", lambda: not _open(running))
    # The user's program is the user's, at both pilots.
    outcomes = hours(running, "site,outcome")
    assert outcomes["Good", "exit_nonzero"]["goodput"] > 0
    assert outcomes["Good", "exit_zero"]["goodput"] > 0
    sites = hours(running, "site")
    assert sites["Good",]["misconfiguration_badput"] == 0
    # The black hole is named, with what it ate; no job did well there.
    assert sites["Hole",]["misconfiguration_badput"] > 0
    assert sites["Hole",]["goodput"] == 0
    story = running.command("pilot", hole.name)
    assert "misconfiguration" in story
    # The pilot that died took its job with it.
    assert sites["Dead",]["preemption_badput"] > 0
    assert outcomes["Dead", "lost_contact"]["preemption_badput"] > 0
    (gone,) = running.document("pilots", "--past", "--name", dead.name)["pilots"]
    assert gone["end_source"] == "ad_expired"
    assert gone["end_epoch_seconds"] - gone["last_contact_epoch_seconds"] < LIFETIME_S
    metrics = running.metrics()
    assert metrics.sum("gwmond_ledger_residual_seconds") == 0
    assert {of["site"] for of in running.document("sites")["sites"]} >= {"Good", "Hole"}


def _doing(running: RunningDaemon, name: str) -> str | None:
    """What a pilot that has not ended does."""
    found = {of["name"]: of["state"] for of in running.document("pilots")["pilots"]}
    return found.get(name)


def _open(running: RunningDaemon) -> dict[str, float]:
    """What runs wait for, and until when at the latest (epoch seconds)."""
    return {
        of["why"]: of["until_epoch_seconds"] for of in running.document("pilots")["not_settled"]
    }
