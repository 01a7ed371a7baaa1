"""Commands other than ``run``, on a real pool."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)

from tests.daemon.gate import Gate
from tests.daemon.running import RunningDaemon, configuration, gwmond, polls
from tests.daemon.scene import PILOT, Scene, pledged
from tests.daemon.scrape import SECONDS, Metrics
from tests.pool.condor import CondorPool
from tests.pool.ports import free_port

STATES = {
    "Bored": "insufficient_demand",
    "Closed": "down",
    "Starved": "provisioning_bottleneck",
    "Queued": "filling",
}


@pytest.fixture(scope="module")
def sites(shared_scene: Scene) -> Scene:
    """Four sites, each in its state."""
    shared_scene.pilot("Starved", busy=PILOT)
    shared_scene.resource("Starved", running=1, requested_idle=0)
    shared_scene.resource("Bored")
    shared_scene.resource("Closed", down=True)
    shared_scene.resource("Queued", pending=2)
    shared_scene.jobs(10, "Starved", accounting_group="cms", accounting_group_user="alice")
    return shared_scene


@pytest.fixture
def config(sites: Scene, tmp_path: Path) -> str:
    """A configuration file for that pool."""
    return _config(tmp_path, sites.pool.collector)


def _config(directory: Path, *collectors: str, **tables: dict[str, object]) -> str:
    file = directory / "gwmond.toml"
    pledges = pledged(Starved=24, Bored=16, Closed=16, Queued=16)
    file.write_text(
        configuration(directory / "ledger.sqlite", collectors, pledges | polls(20) | tables)
    )
    return str(file)


def _promtool(text: str) -> str:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_once_prints_what_is(config: str) -> None:
    """``once`` ends with 0 and prints clean metrics, each of which says its unit."""
    done = gwmond("once", "--config", config)
    assert (done.returncode, done.stderr) == (0, "")
    metrics = Metrics.parse(done.stdout)
    assert {site: metrics.state(site) for site in STATES} == STATES
    assert _promtool(done.stdout) == ""
    helps = re.findall(r"^# HELP (\S+) (.+)$", done.stdout, re.MULTILINE)
    assert len(helps) > 20
    for name, text in helps:
        assert re.search(r"Unit: [a-z].*\.|No unit", text), name
    assert not Path(config).with_name("ledger.sqlite").exists()


def test_openmetrics(sites: Scene, daemon: Callable[..., RunningDaemon]) -> None:
    """OpenMetrics parses, has no series twice, and says since when each counter counts."""
    running = daemon(sites.pool.collector, tables=pledged(Starved=24) | polls(4))
    running.wait_until("counters", lambda m: m.seconds("Starved") > 0)
    text = running.get("/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    created = 0
    for family in parse_openmetrics(text):  # type: ignore[no-untyped-call]
        series = [(s.name, tuple(sorted(s.labels.items()))) for s in family.samples]
        assert len(series) == len(set(series))
        if family.type == "counter":
            begun = {
                (s.name.replace("_total", "_created"), tuple(sorted(s.labels.items())))
                for s in family.samples
                if s.name.endswith("_total") and s.value
            }
            assert begun <= set(series)
        for sample in family.samples:
            if sample.name.endswith("_created"):
                created += 1
                assert running.began <= sample.value <= time.time()
    assert created > 10
    assert f"{SECONDS.removesuffix('_total')}_created" in text
    assert _promtool(running.get("/metrics")) == ""


def test_once_with_a_source_that_is_down(sites: Scene, tmp_path: Path) -> None:
    """``once`` ends with 3 when a collector refuses, and prints what it knows all the same."""
    refused = f"127.0.0.1:{free_port()}"
    done = gwmond("once", "--config", _config(tmp_path, sites.pool.collector, refused))
    assert done.returncode == 3
    metrics = Metrics.parse(done.stdout)
    assert metrics.value("gwmond_source_up", source=refused, kind="slots") == 0
    assert metrics.value("gwmond_problems_total", source=refused, problem="refused") is not None
    assert metrics.state("Starved") == "unknown"
    (event,) = (json.loads(line) for line in done.stderr.splitlines())
    assert (event["source"], event["problem"]) == (refused, "refused")


STARVED = {
    "capacity_units": 24,
    "provisioned_units": 8,
    "spare_units": 16,
    "provisioning_bottleneck_units": 10,
    "insufficient_demand_units": 6,
    "registered_pilots": 1,
    "matching_idle_jobs": 10,
}


def _sites(*words: str, env: Mapping[str, str] | None = None) -> str:
    done = gwmond("sites", *words, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sites_as_json_and_csv(sites: Scene, config: str) -> None:
    """Both have the same states, units, pilots and demand."""
    found = json.loads(_sites("--config", config, "--format", "json"))
    assert found["sources_down"] == []
    assert found["time_epoch_seconds"] == pytest.approx(time.time(), abs=60)
    rows = {row["site"]: row for row in found["sites"]}
    assert {site: row["state"] for site, row in rows.items()} == STATES
    assert rows["Starved"]["reason"]
    assert {key: rows["Starved"][key] for key in STARVED} == STARVED
    table = csv.DictReader(io.StringIO(_sites("--config", config, "--format", "csv")))
    lines = {row["site"]: row for row in table}
    assert {site: row["state"] for site, row in lines.items()} == STATES
    assert set(lines["Starved"]) == set(rows["Starved"])
    assert {key: float(lines["Starved"][key]) for key in STARVED} == STARVED


def test_sites_of_the_pool_that_this_host_is_of(sites: Scene) -> None:
    """Without options the host's own HTCondor configuration names the pool."""
    shown = _sites("--entries", env=sites.pool.client_env())
    line = r"^(Starved\n)? *(Starved +)?e-Starved +cpu +bottleneck "
    assert re.search(line, shown, re.MULTILINE)


def test_sites_of_a_schedd_that_is_not_there(sites: Scene, tmp_path: Path) -> None:
    """What it may hold makes no 0 of jobs that match, and of others at least so many."""
    wanted: dict[str, object] = {"schedds": [*sites.pool.schedds, "gone@pool.test"]}
    text = gwmond("sites", "--config", _config(tmp_path, sites.pool.collector, pool=wanted)).stdout
    told = {line.split()[0]: line.split()[-1] for line in text.splitlines() if " cpu " in line}
    assert told == dict.fromkeys(STATES, "?") | {"Starved": ">=10"}


def _checked(config: str, code: int, **env: str) -> dict[str, dict[str, Any]]:
    done = gwmond("check", "--config", config, "--format", "json", env=env)
    assert done.returncode == code, done.stdout + done.stderr
    return {f"{row['source']} {row['kind']}": row for row in json.loads(done.stdout)}


def test_check_when_all_is_well(sites: Scene, config: str) -> None:
    """``check`` ends with 0, asks every daemon, and says that all is well."""
    rows = _checked(config, 0)
    for kind in ("slots", "glideresource", "schedds", "submitters", "collector"):
        assert rows[f"{sites.pool.collector} {kind}"]["ok"]
    for schedd in sites.pool.schedds:
        assert rows[f"{schedd} demand"]["ok"]
    assert rows["ledger open"]["ok"]
    assert rows["http listen"]["ok"]
    done = gwmond("check", "--collector", sites.pool.collector, "--config", config)
    assert done.returncode == 0
    assert "All is well." in done.stdout


@pytest.mark.parametrize("verdict", ["refused", "timeout", "unknown_host"])
def test_check_tells_what_is_wrong(sites: Scene, tmp_path: Path, verdict: str) -> None:
    """A collector that refuses, is silent or has no address gets its own verdict and remedy."""
    remedies = {
        "refused": "is the daemon running, and its port right",
        "timeout": "raise [poll] deadline",
        "unknown_host": "check the name in [pool]",
    }
    with Gate(sites.pool.collector) as gate:
        gate.silence()
        collectors = {
            "refused": f"127.0.0.1:{free_port()}",
            "timeout": gate.address,
            "unknown_host": "collector.invalid",
        }
        collector = collectors[verdict]
        config = _config(tmp_path, collector, **polls(4 if verdict == "timeout" else 60))
        row = _checked(config, 3)[f"{collector} slots"]
        assert (row["ok"], row["problem"]) == (False, verdict)
        assert remedies[verdict] in row["remedy"]


def test_check_where_no_pool_is_named(tmp_path: Path) -> None:
    """It is said once, with how to name one; nothing is asked, so nothing is waited for."""
    config = _config(tmp_path)
    rows = _checked(config, 3)
    assert [name for name, row in rows.items() if not row["ok"]] == ["local pool"]
    assert rows["local pool"]["problem"] == "no_pool"
    done = gwmond("check", "--config", config)
    assert done.stdout.count("no pool is named") == 1
    assert "what to do: give --collector" in done.stdout
    once = gwmond("once", "--config", config)
    assert (once.returncode, once.stderr.count("no pool is named")) == (3, 1)
    named = gwmond("check", "--config", config, env={"_CONDOR_COLLECTOR_HOST": "127.0.0.1:1"})
    assert "no pool is named" not in named.stdout


def test_check_of_a_pool_that_denies(denying_pool: CondorPool, tmp_path: Path) -> None:
    """Who may not read is told so, and how to get a token; who may read sees the collector."""
    config, slots = _config(tmp_path, denying_pool.collector), f"{denying_pool.collector} slots"
    row = _checked(config, 3, **denying_pool.client_env("alice"))[slots]
    assert row["problem"] == "denied"
    assert "condor_token_create" in row["remedy"]
    assert _checked(config, 3, **denying_pool.client_env("reader"))[slots]["ok"]


def test_a_recording_of_the_pool_shows_the_same(sites: Scene, config: str, tmp_path: Path) -> None:
    """What ``record`` writes is replayed to the same states, and holds no user's name."""
    file = tmp_path / "pool.zip"
    file.write_text("an older recording")
    refused = gwmond("record", str(file), "--config", config)
    assert (refused.returncode, file.read_text()) == (2, "an older recording")
    done = gwmond(
        *("record", str(file), "--config", config),
        *("--frames", "2", "--every", "1s", "--overwrite"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{file}: " in done.stdout
    assert "2 frames" in done.stdout
    before = Metrics.parse(gwmond("once", "--config", config).stdout)
    replay: dict[str, object] = {"file": str(file), "speed": 1}
    replayed = gwmond("once", "--config", _config(tmp_path, replay=replay))
    assert replayed.returncode == 0, replayed.stderr
    after = Metrics.parse(replayed.stdout)
    assert {site: after.state(site) for site in STATES} == STATES
    for name in ("gwmond_site_canonical_units", "gwmond_demand_canonical_units", "gwmond_pilots"):
        assert after.rows(name) == before.rows(name)
    with zipfile.ZipFile(file) as recording:
        assert all(b"alice" not in recording.read(name) for name in recording.namelist())
