"""Pilots' time where records of jobs are missing, late, or lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gwmond.ledger.reading.reader import LedgerReader
from tests.build.command_line import program
from tests.daemon.running import RunningDaemon
from tests.daemon.scene import QUICK, REAL
from tests.daemon.scrape import Metrics
from tests.pool.condor import CondorPool

Start = Callable[..., RunningDaemon]
SECONDS = "gwmond_pilot_canonical_seconds_total"
ESTIMATED = "gwmond_pilot_estimated_canonical_seconds_total"


def _spent(metrics: Metrics, category: str, evidence: str = "") -> float:
    labels = {"category": category, "resource": "cpu", "site": "Real"}
    return metrics.sum(SECONDS, **labels, **({"evidence": evidence} if evidence else {}))


def test_without_epoch_history(fresh_pool: CondorPool, daemon: Start) -> None:
    """The schedd's history and the slots stand in, the log says what that means, and what a slot
    showed of a run that nothing tells of is not lost."""
    pool, schedd = fresh_pool, fresh_pool.schedds[0]
    running = daemon(pool.collector, tables=QUICK)
    pool.start_pilot("bare", cores=2, memory=4096, attrs=REAL)
    good = pool.submit(schedd, seconds=8, request_memory=1000)
    metrics = running.wait_until("goodput", lambda m: _spent(m, "goodput") > 5)
    assert running.log(
        "a schedd keeps no epoch history: of a job that ran several times only the "
        "last run is known; set JOB_EPOCH_HISTORY there",
        source=schedd,
    )
    assert metrics.value("gwmond_source_up", source=schedd, kind="epochs") == 1
    assert metrics.sum("gwmond_job_runs_total", outcome="exit_zero") == 1
    # Vacated again and again: the schedd's history will only have its last run.
    again = pool.submit(schedd, seconds=600, request_memory=1000)
    pool.wait_for("it to run", lambda: pool.jobs(schedd, f"ClusterId == {again} && JobStatus == 2"))
    running.next_polls(2)
    pool.act("Vacate", schedd, f"ClusterId == {again}", user="alice")
    metrics = running.wait_until(
        "the run that was vacated",
        lambda m: m.sum("gwmond_job_runs_total", category="unclassified") >= 1,
    )
    assert good != again
    pool.remove(schedd)
    running.command("ledger", "check")


def test_what_happened_while_it_was_down(epochs: CondorPool, daemon: Start, tmp_path: Path) -> None:
    """A pilot that came and went meanwhile is known by its jobs, and said to be estimated."""
    pool, schedd = epochs, epochs.schedds[0]
    running = daemon(pool.collector, tables=QUICK)
    running.next_polls(2)
    running.stop()
    pilot = pool.start_pilot("unseen", cores=2, memory=4096, attrs=REAL)
    cluster = pool.submit(
        schedd,
        owner="bob",
        seconds=5,
        request_memory=1000,
        attrs={
            "JOB_GLIDEIN_Site": "$$(GLIDEIN_Site:Unknown)",
            "JOB_GLIDEIN_Entry_Name": "$$(GLIDEIN_Entry_Name:Unknown)",
        },
    )
    pool.wait_for("it to end", lambda: not pool.jobs(schedd, f"ClusterId == {cluster}"))
    (job,) = pool.jobs(*(schedd, f"ClusterId == {cluster}", ["RemoteWallClockTime"]), history=True)
    pilot.stop_graceful()
    mine = 'GLIDEIN_Site =?= "Real"'
    pool.wait_for(
        "its ads to go",
        lambda: not any(pool.query(kind, mine, ["Name"]) for kind in ("Slot", "StartDaemon")),
    )
    running.start()
    metrics = running.wait_until("its time", lambda m: _spent(m, "goodput") > 3)
    assert _spent(metrics, "goodput") == pytest.approx(job["RemoteWallClockTime"], abs=3)
    assert _spent(metrics, "pilot_overhead", "measured") == 0
    assert metrics.value("gwmond_ledger_residual_seconds", measure="canonical") == 0
    before = {m: metrics.sum(SECONDS, category=m) for m in ("goodput", "pilot_overhead")}
    running.kill9()
    running.start()
    after = running.next_polls(2)
    assert {m: after.sum(SECONDS, category=m) for m in before} == before
    with LedgerReader.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        (row,) = ledger.pilot_rows()
    assert (row.identity.origin, row.end_source, row.identity.key.site) == (
        "jobs",
        "assumed",
        "Real",
    )
    running.command("ledger", "check")


def test_a_program_that_exists_nowhere_is_not_its_only_sites_fault(
    epochs: CondorPool, daemon: Start
) -> None:
    """HTCondor holds each job with a code of the starter's; every pilot of the site does the same.

    Other jobs of the same user are fine there.
    """
    pool, schedd = epochs, epochs.schedds[0]
    for name in ("first", "second"):
        pool.start_pilot(name, cores=4, memory=8192, attrs=REAL)
    running = daemon(pool.collector, tables=QUICK)
    missing = pool.submit(schedd, 6, executable="/no/such/program", request_memory=1000)
    pool.submit(schedd, 4, seconds=3, request_memory=1000)
    held = f"ClusterId == {missing} && HoldReasonCode == 6"
    pool.wait_for("all to be held", lambda: len(pool.jobs(schedd, held)) == 6)
    runs = "gwmond_job_runs_total"
    metrics = running.wait_until(
        "verdicts", lambda m: m.sum(runs, outcome="program_not_started") >= 6
    )
    assert metrics.sum(runs, outcome="program_not_started", category="unclassified") == 6
    assert metrics.sum(runs, category="misconfiguration_badput") == 0
    pool.remove(schedd)
    running.command("ledger", "check")


def test_a_history_that_was_lost(epochs: CondorPool, daemon: Start) -> None:
    """Its records are gone before they were read: a problem with its interval, and it goes on."""
    pool, schedd = epochs, epochs.schedds[0]
    pilot = pool.start_pilot("lossy", cores=2, memory=4096, attrs=REAL)
    running = daemon(pool.collector, tables=QUICK)
    for _ in range(2):
        pool.submit(schedd, owner="bob", seconds=1, request_memory=1000)
    running.wait_until("two", lambda m: m.sum("gwmond_job_runs_total") >= 2)
    running.stop()
    cluster = pool.submit(schedd, owner="bob", seconds=1, request_memory=1000)
    pool.wait_for("it to end", lambda: not pool.jobs(schedd, f"ClusterId == {cluster}"))
    os.truncate(pool.local / "spool" / "epoch_history", 0)
    cluster = pool.submit(schedd, owner="bob", seconds=1, request_memory=1000)
    pool.wait_for("it to end", lambda: not pool.jobs(schedd, f"ClusterId == {cluster}"))
    running.start()
    running.wait_for(
        "gwmond_problems_total",
        {"source": schedd, "problem": "history_gap"},
        bool,
    )
    running.wait_until("more", lambda m: m.sum("gwmond_job_runs_total") >= 3)
    pilot.stop_graceful()
    running.command("ledger", "check")


def _of_factory(metrics: Metrics) -> float:
    """How many pilots ended that the generated files tell of; the pool has others."""
    rows = metrics.rows("gwmond_pilots_ended_total")
    return sum(n for labels, n in rows.items() if dict(labels)["entry"].startswith("Entry_"))


def test_what_pilots_wrote_into_a_factorys_directories(
    epochs: CondorPool, daemon: Start, tmp_path: Path
) -> None:
    """Failed validations, which nothing else tells of; each output once; lost ones by the queue."""
    factory = tmp_path / "factory"
    tables = {**QUICK, "factory": {"directories": [str(factory)], "every": "1s"}}
    tables["histories"] = {"lookback": "10y"}
    program("tests.build.gwms.generate", factory, "--number", 40)
    for lost in factory.glob("client/**/job.*.0.*"):
        lost.unlink()
    running = daemon(epochs.collector, tables=tables)
    metrics = running.wait_until(
        "failed validations",
        lambda m: m.sum("gwmond_pilots_ended_total", category="validation_fails") >= 1,
    )
    assert metrics.sum(SECONDS, category="validation_fails") > 0
    assert metrics.value("gwmond_source_up", source="factory", kind="factory_files") == 1
    metrics = running.wait_until(
        "those that only their factory tells of",
        lambda m: _of_factory(m) == 40,
    )
    assert 0 < metrics.sum(ESTIMATED, rule="no_output") <= metrics.sum(ESTIMATED)
    assert metrics.sum(ESTIMATED) <= metrics.sum(SECONDS)
    running.kill9()
    running.start()
    assert _of_factory(running.next_polls(4)) == 40
    running.command("ledger", "check")
