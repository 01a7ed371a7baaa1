"""``gwmond pilots`` and ``gwmond pilot``, as they are typed, on a real ledger."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from gwmond.commands.common import EXIT_BAD_CONFIG, EXIT_FAILED, EXIT_OK
from gwmond.ledger.store import Ledger
from gwmond.model.elapsed import Tick
from gwmond.model.facts import Cursor
from gwmond.model.pilot_life import Category
from gwmond.model.poll.batch import Batch
from gwmond.model.totals import SiteKey
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot
from tests.build.pilot_ledger import BASE, LAST, write
from tests.build.play import Play, claim
from tests.build.play import shown as pilot_shown

Run: TypeAlias = Callable[..., tuple[int, str, str]]
OLD = "--from", "2023-11-14"
BOB = "bob@example.org"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written long ago."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    write(str(path))
    return path


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Written now."""
    path = tmp_path_factory.mktemp("fresh") / "ledger.sqlite"
    base = int(time.time()) - LAST
    write(str(path), base)
    return path, base


def listed(run: Run, ledger: Path, *arguments: object) -> list[dict[str, Any]]:
    code, out, _ = run("pilots", "--ledger", ledger, "--format", "json", *arguments)
    assert code == 0
    found: list[dict[str, Any]] = json.loads(out)["pilots"]
    return found


def cpu(categories: dict[str, Any], measure: str = "resource") -> dict[str, float]:
    """Categories that have any time."""
    assert set(categories) == {"cpu", "gpu"}
    every = categories["cpu"][f"{measure}_seconds"]
    assert len(every) == len(Category)
    return {name: seconds for name, seconds in every.items() if seconds}


def test_what_runs_now(run: Run, fresh: tuple[Path, int]) -> None:
    """Without options: the pilots that run, with how long they have left."""
    path, base = fresh
    (pilot,) = listed(run, path)
    assert (pilot["id"], pilot["site"], pilot["entry"]) == (3, "Site-A", "entry-a2")
    assert (pilot["state"], pilot["running_jobs"]) == ("running", 1)
    assert pilot["users_now"] == ["<b>carol|*"]
    assert pilot["start_epoch_seconds"] == base + 3600
    assert pilot["end"] is pilot["end_epoch_seconds"] is None
    assert 13_500 < pilot["until_retire_seconds"] <= 13_600
    assert 23_500 < pilot["until_die_seconds"] <= 23_600
    assert cpu(pilot["categories"]) == cpu(pilot["categories"], "canonical")
    assert cpu(pilot["categories"]) == {"pilot_overhead": 960.0}
    total = 960.0 + pilot["unsettled"]["cpu"]["resource_seconds"]
    assert total == 4 * (LAST - 3600)


def test_what_runs_now_as_a_table(run: Run, fresh: tuple[Path, int]) -> None:
    """With the job's user, and of when it is."""
    path, _ = fresh
    code, out, err = run("pilots", "--ledger", path)
    assert (code, err) == (0, "")
    assert "running 1 job" in out
    assert "<b>carol|*" in out
    assert "as of 20" in out


def test_what_was(run: Run, ledger: Path) -> None:
    found = {record["id"]: record for record in listed(run, ledger, "--past")}
    assert set(found) == {1, 2}
    assert cpu(found[1]["categories"]) == {
        "goodput": 9000.0,
        "preemption_badput": 4800.0,
        "pilot_overhead": 15_000.0,
    }
    assert found[1]["categories"]["gpu"]["canonical_seconds"]["goodput"] == 1800.0
    assert found[1]["shares"]["cpu"]["canonical"]["goodput"] == 9000 / 28_800
    assert found[2]["shares"]["gpu"]["canonical"]["goodput"] is None  # it has no GPU
    assert found[1]["users"] == ["alice@example.org", "bob@example.org"]
    assert found[1]["end_source"] == "shutdown"
    assert cpu(found[2]["categories"]) == {"decision_problem": 14_400.0}
    assert found[2]["start"] == "2023-11-15T00:00:00Z"
    _, out, _ = run("pilots", "--ledger", ledger, "--past")
    assert "shut down: never ran a job" in out


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ((), {3}),
        (("--running",), {3}),
        (OLD, {1, 2, 3}),
        ((*OLD, "--past"), {1, 2}),
        ((*OLD, "--site", "Site-A"), {1, 3}),
        ((*OLD, "--entry", "entry-a"), {1}),
        ((*OLD, "--group", "frontend.main"), {1, 2, 3}),
        ((*OLD, "--group", "main"), set()),
        ((*OLD, "--user", "bob@example.org"), {1}),
        ((*OLD, "--name", "WN2.exam"), {2}),
        ((*OLD, "--to", "2023-11-15T01:00:00Z"), {1, 2}),
        (("--from", "2023-11-15T01:00:01Z"), {1, 3}),
    ],
)
def test_filters(run: Run, ledger: Path, arguments: tuple[str, ...], ids: set[int]) -> None:
    assert {record["id"] for record in listed(run, ledger, *arguments)} == ids


def test_why_there_are_none(run: Run, ledger: Path) -> None:
    """A name that the ledger does not know is said to be none; once, in place of the table."""
    _, out, err = run("pilots", "--ledger", ledger, "--user", "bo")
    assert "No such pilots: the ledger knows no pilot at all of --user bo: are the" in out
    assert "pilots: " not in err
    past = "--past", "--from", "2h", "--user", BOB, "--format", "csv"
    _, _, err = run("pilots", "--ledger", ledger, *past)
    assert "no such pilots: the ledger has the hours from 2023-11-15T" in err


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (("--sort", "start"), [3, 2, 1]),
        (("--sort", "start", "--reverse"), [1, 2, 3]),
        (("--sort", "hours"), [3, 1, 2]),
        (("--sort", "hours", "--reverse"), [2, 1, 3]),
        (("--sort", "site"), [1, 3, 2]),
        (("--sort", "left", "--limit", "1"), [3]),
        (("--sort", "name", "--limit", "2"), [1, 2]),
        (("--sort", "end"), [3, 1, 2]),
        (("--limit", "0"), [3, 2, 1]),
    ],
)
def test_order(run: Run, ledger: Path, arguments: tuple[str, ...], ids: list[int]) -> None:
    assert [record["id"] for record in listed(run, ledger, *OLD, *arguments)] == ids


def test_what_is_left_out_is_said(run: Run, ledger: Path) -> None:
    code, out, err = run("pilots", "--ledger", ledger, *OLD, "--limit", 2, "--format", "json")
    assert code == 0
    assert json.loads(out)["truncated"] is True
    assert "only 2 pilots are shown" in err


def test_a_pilot_that_is_silent(run: Run, tmp_path: Path) -> None:
    """Its ads were not renewed for two updates: it is not idle, and its life does not grow."""
    path = tmp_path / "silent.sqlite"
    base = int(time.time()) - LAST - 3000
    write(str(path), base)
    before = listed(run, path)[0]
    with Ledger.open(str(path)) as writer:
        state = writer.load()
        heard = base + LAST
        told = Cursor("collector", "silent_before", str(heard + 1), None)
        writer.commit(Batch(state.batches, heard * 10**6, cursors=(told,)))
    (pilot,) = listed(run, path)
    assert (pilot["state"], pilot["last_contact_epoch_seconds"]) == ("silent", heard)
    assert pilot["unsettled"] == before["unsettled"]
    lived = pilot["last_contact_epoch_seconds"] - pilot["start_epoch_seconds"]
    settled = sum(cpu(pilot["categories"]).values())
    assert settled + pilot["unsettled"]["cpu"]["resource_seconds"] == 4 * lived
    _, out, _ = run("pilots", "--ledger", path)
    assert "silent, 1 job" in out
    assert "heard of" in out
    _, out, _ = run("pilot", "--ledger", path, 3)
    assert "(silent)" in out


def test_csv_is_the_same(run: Run, ledger: Path) -> None:
    """All that JSON has, under the same names, and a header also when there is nothing."""
    _, out, _ = run("pilots", "--ledger", ledger, *OLD, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    found = listed(run, ledger, *OLD)
    for row, record in zip(rows, found, strict=True):
        for category, seconds in record["categories"]["cpu"]["canonical_seconds"].items():
            assert float(row[f"categories_cpu_canonical_seconds_{category}"]) == seconds
        assert row["users"] == " ".join(record["users"])
        assert row["end"] == (record["end"] or "")
    _, empty, _ = run("pilots", "--ledger", ledger, "--site", "none", "--format", "csv")
    assert empty == out.splitlines()[0] + "\n"


def test_columns_that_are_0_everywhere_are_named_below(
    run: Run, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pilot that has only overhead needs no columns for what jobs would have spent."""
    monkeypatch.setattr("gwmond.reports.render.terminal.PIPED", 200)
    _, out, _ = run("pilots", "--ledger", ledger, *OLD, "--name", "glidein_2")
    (header,) = [line for line in out.splitlines() if line.startswith("id ")]
    for name in ("good", "badput", "uncl."):
        assert name not in header.split()
    assert " own " in header
    assert "Not shown, as all of it rounds to 0: good, badput, uncl." in out


def test_a_ledger_that_nobody_writes_is_said(run: Run, ledger: Path) -> None:
    _, out, err = run("pilots", "--ledger", ledger)
    assert "as of 2023-11-15T08:20:00Z" in out
    assert "the daemon seems not to run" in err
    _, out, _ = run("pilots", "--ledger", ledger, "--format", "json")
    assert json.loads(out)["stale"] is True
    assert json.loads(out)["written_epoch_seconds"] == BASE + LAST


@pytest.mark.parametrize("command", [("pilots",), ("pilot", "1"), ("report",)])
def test_no_ledger_yet(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    path = tmp_path / "none.sqlite"
    code, out, err = run(*command, "--ledger", path)
    assert (code, out) == (EXIT_FAILED, "")
    assert f"ledger {path}: does not exist. Start the daemon" in err
    assert not path.exists()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("pilots",), "nothing was accounted yet"),
        (("report",), "nothing was accounted yet"),
        (("pilots", "--format", "json"), '"pilots": []'),
        (("report", "--format", "csv"), "site,"),
        (("ledger", "export", "--format", "openmetrics"), "# EOF\n"),
    ],
)
def test_a_fresh_ledger(run: Run, tmp_path: Path, command: tuple[str, ...], shown: str) -> None:
    """What is missing, and what to do next, is said beside what machines read."""
    path = tmp_path / "new.sqlite"
    Ledger.open(str(path)).close()
    code, out, err = run(*command, "--ledger", path)
    assert code == EXIT_OK
    assert shown in out
    assert "systemctl status gwmond" in " ".join(err.split())


@pytest.mark.parametrize("command", ["forecast", "runs", "report", "advise", "changes"])
def test_a_site_that_nobody_knows(run: Run, ledger: Path, command: str) -> None:
    """A name that is not right is not answered as if nothing happened there."""
    code, _, err = run(command, "--ledger", ledger, "--site", "none")
    assert code == EXIT_OK
    assert "the ledger knows no pilot at all of --site none: are the names right?" in err


def test_a_ledger_that_has_seen_no_pilot(run: Run, tmp_path: Path) -> None:
    """Site time alone: no pilot is known, which other hours would not change."""
    path = tmp_path / "sites.sqlite"
    with Ledger.open(str(path)) as ledger:
        tick = Tick(float(BASE + 60), 60.0, 60.0, "boot")
        key = SiteKey("cpu", "unknown", "demand", "Site", "entry")
        spent = {(BASE // 3600, key): 60_000_000}
        ledger.commit(Batch(0, (BASE + 60) * 10**6, tick=tick, site_time=spent, site_since=BASE))
    code, out, _ = run("pilots", "--ledger", path)
    assert code == EXIT_OK
    assert "No such pilots: no pilot is known yet. gwmond sites shows what" in " ".join(out.split())


def test_a_pilot_runs_no_more_jobs_than_fit() -> None:
    """Where nothing tells that runs have ended, the last ones count that a pilot has room for."""
    play = Play()
    for number in range(4):
        at = 60 * number
        play.poll(at, [pilot_shown(cores=1, heard=at)], claims=[claim(f"{number}", at)])
    rows = list(play.stored.runs.values())
    assert len([row for row in rows if row.end_us is None]) == 4
    line = StoredPilot(play.pilot(), rows, AsOf(play.pilot().posted_last_heard_us))
    assert (len(line.running), line.doing) == (1, "running 1 job")


def test_while_the_daemon_writes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "busy.sqlite"
    write(str(path))
    with Ledger.open(str(path)) as writer:
        state = writer.load()
        writer.commit(Batch(before=state.batches, now_us=(BASE + LAST) * 1_000_000))
        assert run("pilots", "--ledger", path)[0] == EXIT_OK
        assert run("pilot", "1", "--ledger", path)[0] == EXIT_OK
        assert run("report", "--ledger", path, "--from", "2023-11-14")[0] == EXIT_OK


@pytest.mark.parametrize(
    "arguments",
    [
        ("pilots", "--from", "soon"),
        ("pilots", "--from", "1h", "--to", "2h"),
        ("report", "--from", "soon"),
        ("report", "--by", "nothing"),
        ("report", "--by", "site,entry,user"),
        ("report", "--by", "hour,day"),
        ("report", "--by", "user", "--hours-only"),
    ],
)
def test_bad_usage(run: Run, ledger: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments, "--ledger", ledger)
    assert (code, out) == (EXIT_BAD_CONFIG, "")
    assert err.startswith("gwmond: ")


# --- one pilot --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["1", "glidein_1@wn1.example.org", "WN1", "n1."])
def test_a_pilot_is_found(run: Run, ledger: Path, name: str) -> None:
    code, out, _ = run("pilot", name, "--ledger", ledger, "--format", "json")
    assert code == 0
    assert json.loads(out)["pilot"]["id"] == 1


def test_a_pilot_that_is_not_the_only_one(run: Run, ledger: Path) -> None:
    code, out, err = run("pilot", "glidein", "--ledger", ledger)
    assert (code, out) == (1, "")
    assert '3 pilots fit "glidein"' in err
    assert "  2  glidein_2@wn2.example.org  Site-B" in err
    code, _, err = run("pilot", "4711", "--ledger", ledger)
    assert code == 1
    assert 'no pilot "4711"' in err


@pytest.fixture
def life(run: Run, ledger: Path) -> dict[str, Any]:
    """All that is told of one pilot."""
    _, out, _ = run("pilot", "1", "--ledger", ledger, "--format", "json")
    found: dict[str, Any] = json.loads(out)
    return found


def test_runs_have_their_rules(life: dict[str, Any]) -> None:
    """What decides on an outcome, and what that was read from."""
    first, second, third = life["runs"]
    assert (first["rule"], second["rule"], third["rule"]) == (
        "completed_zero",
        "completed_nonzero",
        "ended_with_pilot",
    )
    assert third["outcome"] == "pilot_shutdown"
    assert third["codes"] == {"vacate_code": 1005}
    assert first["rule_source"] == "JobStatus 4, ExitCode 0"


def test_sources_of_a_run_that_contradict_each_other_are_named(life: dict[str, Any]) -> None:
    """Which is believed, too; and how long the run then was."""
    first = life["runs"][0]
    assert set(first["sources"]) == {
        *("startd_history", "epoch_history", "schedd_history", "live_slot")
    }
    assert first["contradictions"] == [
        {"field": "end_us", "kept": "startd_history", "other": "schedd_history"}
    ]
    assert first["duration_seconds"] == 3600.0
    assert first["amounts"]["cpu"]["canonical_seconds"] == 7200.0


def test_parts_of_a_life_sum_to_all_of_it(life: dict[str, Any]) -> None:
    """Without a residual, and to what was posted."""
    for resource in ("cpu", "gpu"):
        for measure in ("resource_seconds", "canonical_seconds"):
            parts = [*life["runs"], *life["own_time"]]
            summed = sum(part["amounts"][resource][measure] for part in parts)
            assert summed == life["total"][resource][measure]
            posted = life["pilot"]["categories"][resource][measure]
            assert sum(posted.values()) == summed
            assert life["residual"][resource][measure] == 0.0
    assert life["own_time"][0]["duration_seconds"] == 600.0
    assert life["corrections_complete"] is True


def test_a_life_that_goes_on(run: Run, ledger: Path) -> None:
    _, out, _ = run("pilot", "3", "--ledger", ledger, "--format", "json")
    life = json.loads(out)
    (job,) = life["runs"]
    assert (job["settled"], job["end"], job["rule"], job["shadow_start"]) == (
        False,
        None,
        None,
        None,
    )
    assert life["unsettled"]["cpu"]["canonical_seconds"] == 4 * (LAST - 3600 - 240)
    assert life["residual"]["cpu"]["canonical_seconds"] == 0.0


@pytest.mark.parametrize("width", [20, 60, 200])
def test_the_picture(run: Run, ledger: Path, width: int) -> None:
    """It is as wide as the terminal, and can be read without colours."""
    _, out, _ = run("pilot", "1", "--ledger", ledger, "--width", width)
    lanes = [
        line for line in out.splitlines() if line.startswith(("pilot  ", "run 1  ", "run 3  "))
    ]
    pilot, first, third = (line[8:] for line in lanes[:3])
    columns = max(40, width) - 9
    assert len(pilot) == columns
    assert set(pilot) <= set("Oo")
    assert (pilot[0], pilot[columns // 3]) == ("O", "o")
    assert len(third) == columns
    assert third.strip() == "P" * len(third.strip())
    assert abs(first.count("G") - columns / 2) <= 2
    assert abs(third.count("P") - columns / 6) <= 2
    assert "G goodput" in out
    assert "differ on end_us; startd_history is believed" in out
    residual = next(line for line in out.splitlines() if line.startswith("residual"))
    assert residual.split()[1:] == ["0"] * out.count("share")


def test_measures_that_agree_are_shown_once(run: Run, ledger: Path) -> None:
    """Core-hours and canonical hours of a pilot with 2 GB a core, and of GPUs always."""
    _, out, _ = run("pilot", "1", "--ledger", ledger, "--width", 200)
    (header,) = [line for line in out.splitlines() if line.startswith("posted, hours")]
    assert re.split("  +", header)[1:] == [
        *("cpu core-hours = canonical", "share", "gpu chip-hours = canonical", "share")
    ]


def test_few_lanes(run: Run, ledger: Path) -> None:
    _, out, _ = run("pilot", "1", "--ledger", ledger, "--lanes", 1)
    assert re.search(r"\(2 more runs are not drawn: gwmond pilot \d+ --lanes 3 draws all\)", out)
