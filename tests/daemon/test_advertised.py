"""Pilots that advertise that their validation failed, in a real collector."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.facts import Size
from tests.build.gwms import generate, simulated
from tests.daemon.running import RunningDaemon, patient
from tests.pool import feign
from tests.pool.adtext import Ad
from tests.pool.condor import CondorPool

Start = Callable[..., RunningDaemon]
SECONDS = "gwmond_pilot_canonical_seconds_total"
#: So long pilots whose validation failed are there to be seen.
LIFE_S = 30
TABLES: dict[str, dict[str, object]] = {
    **patient(3),
    "pilots": {
        "settle_delay": "1s",
        "outcome_wait": "5s",
        "silent_wait": "5s",
        "end_tolerance": "2s",
        "claims_every": "2s",
    },
}


def _failed(entry: str, number: int, sent: int, dies: int, **more: Any) -> Ad:
    ad = feign.failed_validation(17, number, dies=dies, now=sent, **more)
    return ad | feign.glidein(entry, "Real")


def test_category_and_size(fresh_pool: CondorPool, daemon: Start) -> None:
    """Each is one pilot, as large as its entry's others, else as they are expected to be, else
    one unit; none of them counts as registered, or as provisioned."""
    pool, machine = fresh_pool, feign.COMMANDS["Machine"]
    running = daemon(pool.collector, tables=TABLES)
    other = feign.partitionable_slot("p1@node1", glidein=feign.glidein("e-seen", "Real"))
    startd = feign.startd_ad("p1@node1", glidein=feign.glidein("e-seen", "Real"))
    pool.advertise([other], machine)
    pool.advertise([startd], machine)
    asked = feign.glideresource("e-asked", "Real", cpus=4, memory=9000)
    pool.advertise([asked], feign.COMMANDS["glideresource"])
    running.wait_until("a pilot", lambda m: bool(m.registered(entry="e-seen")))
    sent = int(time.time())
    dies = sent + LIFE_S
    ads = [
        _failed("e-seen", 1, sent, dies, cluster=1),
        _failed("e-seen", 2, sent + 1, dies, cluster=1),  # the same pilot under another name
        _failed("e-asked", 3, sent, dies, cluster=2, test="main/check_proxy.sh"),
        _failed("e-new", 4, sent, dies, cluster=3),
    ]
    pool.advertise(ads, machine)
    metrics = running.wait_until(
        "they are shown", lambda m: m.sum("gwmond_pilots", state="failed") == 3
    )
    assert metrics.registered() == 1
    assert metrics.sum("gwmond_pilots", state="retiring") == 0
    assert metrics.sum("gwmond_pilot_canonical_units", resource="cpu") == 8
    assert metrics.sum("gwmond_site_canonical_units", state="provisioned", resource="cpu") == 8
    ended = "gwmond_pilots_ended_total"
    running.wait_until("their end", lambda m: m.sum(ended, category="validation_fails") == 3)
    metrics = running.next_polls(3)
    assert metrics.sum(ended) == 3
    assert metrics.sum("gwmond_pilots", state="failed") == 0  # though their ads live on
    life_s = dies - sent
    for entry, units in (("e-seen", 8), ("e-asked", 4), ("e-new", 1)):
        labels = {"entry": entry, "category": "validation_fails", "resource": "cpu"}
        assert metrics.sum(SECONDS, **labels) == pytest.approx(units * life_s)
        assert metrics.sum(SECONDS, evidence="estimated", **labels) == metrics.sum(
            SECONDS, **labels
        )
    assert metrics.value("gwmond_ledger_residual_seconds", measure="canonical") == 0
    assert not metrics.rows("gwmond_problems_total", problem="bad_size")
    listed = running.document("pilots", "--from", "1h")["pilots"]
    sizes = {
        of["entry"]: (of["cores"], of["memory_mib"]) for of in listed if of["state"] == "ended"
    }
    assert sizes == {"e-seen": (8, 16384), "e-asked": (4, 9000), "e-new": (1, 2000)}
    assert "failed validation: main/check_proxy.sh" in running.command("pilots", "--from", "1h")
    groups = running.document("report", "--from", "1h", "--by", "failure,entry")["groups"]
    assert {(group["failure"], group["entry"]) for group in groups} == {
        ("validate_node.sh", "e-seen"),
        ("main/check_proxy.sh", "e-asked"),
        ("validate_node.sh", "e-new"),
    }
    running.command("ledger", "check")


def test_what_the_factorys_collector_is_told(fresh_pool: CondorPool, daemon: Start) -> None:
    """One that the pool's collector is not told of too, and one that it is; each is one pilot.

    Neither masters of pilots that run are any, nor those of other frontends' pilots.
    """
    pool = fresh_pool
    tables = {**TABLES, "pool.wms": {"collectors": [pool.collector]}}
    running = daemon(pool.collector, tables=tables)
    asked = feign.glideresource("e", "Real", cpus=4, memory=9000)
    pool.advertise([asked], feign.COMMANDS["glideresource"])
    running.wait_for("gwmond_entry_advertisement_age_seconds", {"entry": "e"}, lambda _: True)
    sent = int(time.time())
    dies = sent + LIFE_S

    def told(number: int, cluster: int, client: str = "frontend.main") -> Ad:
        ad = feign.failed_master(17, number, dies=dies, now=sent, cluster=cluster)
        return ad | feign.glidein("e", "Real", client=client)

    runs = told(9, 9)
    del runs["GLIDEIN_Failed"]
    masters = [told(1, 1), told(2, 2), told(3, 3, "others.main"), runs]
    pool.advertise(masters, feign.COMMANDS["DaemonMaster"])
    pool.advertise([_failed("e", 4, sent, dies, cluster=2)], feign.COMMANDS["Machine"])
    running.wait_until("they are shown", lambda m: m.sum("gwmond_pilots", state="failed") == 2)
    ended = "gwmond_pilots_ended_total"
    running.wait_until("their end", lambda m: m.sum(ended, category="validation_fails") == 2)
    metrics = running.next_polls(3)
    assert metrics.sum(ended) == 2
    seconds = metrics.sum(SECONDS, entry="e", category="validation_fails", resource="cpu")
    assert seconds == pytest.approx(2 * 4 * LIFE_S)
    source = {"source": f"wms:{pool.collector}", "kind": "advertised"}
    assert metrics.value("gwmond_source_up", **source) == 1
    assert metrics.value("gwmond_source_records_total", **source)


def test_its_output_comes_later(fresh_pool: CondorPool, daemon: Start, tmp_path: Path) -> None:
    """It is the same pilot: beginning, end, size and why are corrected to what the output says."""
    factory = tmp_path / "factory"
    running = daemon(
        fresh_pool.collector,
        tables={**TABLES, "factory": {"directories": [str(factory)], "every": "1s"}},
    )
    sent = int(time.time())
    kinds = simulated.pilots(1, 500)
    of = next(p for p in kinds if p.kind == "failed" and p.failure and p.mode == "nodebug")
    of = of._replace(
        start=sent - 100,
        last_script=sent - 10,
        failed_at=sent,
        end=sent + 9,
        cores=4,
        memory=8000,
        gpus=0,
        tells_cores=True,
        tells_memory=True,
        offset=0,
    )
    job = {"job": simulated.SCHEDD, "cluster": of.cluster, "proc": of.proc}
    ad = _failed(of.entry_name, 1, sent, sent + 8, **job)
    fresh_pool.advertise([ad], feign.COMMANDS["Machine"])
    ended = "gwmond_pilots_ended_total"
    running.wait_until("its end", lambda m: m.sum(ended, category="validation_fails") == 1)
    directory = factory / of.directory
    directory.mkdir(parents=True)
    for name, content in generate.files(of).items():
        (directory / name).write_bytes(content)

    def corrected() -> bool:
        with LedgerReader.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
            return [row.end_source for row in ledger.pilot_rows()] == ["pilot_output"]

    running.wait_until("its output", lambda _: corrected())
    metrics = running.next_polls(3)
    with LedgerReader.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        (row,) = ledger.pilot_rows()
    assert (row.start_us, row.end_us) == (of.start * 10**6, of.end * 10**6)
    assert row.steps[0].size == Size(4, 8000)
    assert row.assumed == {}
    assert of.failure is not None
    assert row.failure == " ".join(of.failure)
    assert row.identity.factory_job == f"{simulated.SCHEDD}#{of.cluster}.{of.proc}"
    assert metrics.sum(ended, category="validation_fails") == 1
    spent = metrics.sum(SECONDS, resource="cpu", evidence="measured")
    assert spent == pytest.approx(4 * (of.end - of.start))
    running.command("ledger", "check")
