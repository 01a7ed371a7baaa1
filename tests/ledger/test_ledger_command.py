"""``gwmond ledger``, as it is typed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from gwmond.commands.common import EXIT_BAD_CONFIG, EXIT_FAILED, EXIT_OK
from gwmond.ledger.store import Ledger
from tests.ledger.pilot_batches import NOTHING, batch, poll

Run: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def filled(url: str) -> str:
    with Ledger.open(url) as ledger:
        for number in range(1, 11):
            ledger.commit(poll(number))
    return url


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "ledger")


def test_check(run: Run, filled: str) -> None:
    """A sound ledger is proven; one micro makes it fail and is shown."""
    code, out, err = run("check", "--ledger", filled)
    assert code == EXIT_OK
    assert "All sums up" in out
    assert err == ""
    with Ledger.open(filled) as ledger, ledger.transaction() as connection:
        connection.exec_driver_sql(
            "UPDATE series SET micros = micros - 1 WHERE id = (SELECT MIN(id) FROM series "
            "WHERE kind = 'pilot' AND micros > 0)"
        )
    code, out, _ = run("check", "--ledger", filled)
    assert code == EXIT_FAILED
    assert "does not sum up" in out
    assert "off by -0.000001 s" in out
    code, out, _ = run("check", "--ledger", filled, "--format", "json")
    assert code == EXIT_FAILED
    assert {of["what"]: of["micros"] for of in json.loads(out)} == {
        "hours": 1,
        "pilots": 0,
        "runs": 0,
        "series": 1,
        "site_canonical": 0,
        "factory_jobs": 0,
        "factory": 0,
    }


def test_check_takes_the_canonical_unit_of_the_configuration(
    run: Run, filled: str, tmp_path: Path
) -> None:
    """--config may come before the action and after it, and names the ledger too."""
    config = tmp_path / "gwmond.toml"
    config.write_text(f'[ledger]\nurl = "{filled}"\n[canonical]\nmemory_mib = 2000\n')
    assert run("--config", config, "check")[0] == EXIT_OK
    assert run("check", "--config", config)[0] == EXIT_OK
    config.write_text(f'[ledger]\nurl = "{filled}"\n[canonical]\nmemory_mib = 4000\n')
    assert run("check", "--config", config)[0] == EXIT_FAILED


def test_stats(run: Run, filled: str) -> None:
    code, out, _ = run("stats", "--ledger", filled)
    assert code == EXIT_OK
    for text in ("runs", "series_hours", "bytes for each run", "cursor schedd history"):
        assert text in out
    code, out, _ = run("stats", "--ledger", filled, "--format", "json")
    found = json.loads(out)
    tables = {of["table"]: of for of in found["tables"]}
    assert tables["pilots"]["rows"] == 15
    assert tables["runs"]["bytes"] > 0
    assert found["run_bytes"] > 0
    assert found["pilot_hours"][0] <= found["pilot_hours"][1]
    assert [of["age_s"] is None for of in found["cursors"]] == [True, False]
    assert len(found["gaps"]) == 2


def test_stats_of_a_new_ledger(run: Run, url: str) -> None:
    Ledger.open(url).close()
    code, out, _ = run("stats", "--ledger", url)
    assert code == EXIT_OK
    assert "hours of" not in out


def test_vacuum(run: Run, url: str) -> None:
    """Space goes back; the ledger is whole afterwards, and the same Ledger can go on."""
    with Ledger.open(url) as ledger:
        for number in range(1, 4):
            ledger.commit(batch(number))
        ledger.prune(10**10, NOTHING)
        ledger.vacuum()
        ledger.commit(batch(4))
        ledger.vacuum()
    code, out, err = run("vacuum", "--ledger", url)
    assert (code, err) == (EXIT_OK, "")
    assert "MiB" in out
    assert run("check", "--ledger", url)[0] == EXIT_OK


def test_vacuum_makes_a_file_smaller(run: Run, file: Path) -> None:
    with Ledger.open(str(file)) as ledger:
        ledger.commit(batch(1))
        with ledger.transaction() as connection:
            connection.exec_driver_sql(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
                f"INSERT INTO gaps (source, kind, end_us, detail) SELECT '', '', 0, '{'x' * 3000}' "
                "FROM n"
            )
            connection.exec_driver_sql("DELETE FROM gaps")
    before = file.stat().st_size
    assert before > 10**6
    assert run("vacuum", "--ledger", file)[0] == EXIT_OK
    assert file.stat().st_size < before / 3


def test_vacuum_while_the_daemon_runs(run: Run, filled: str) -> None:
    with Ledger.open(filled):
        code, _, err = run("vacuum", "--ledger", filled)
    assert code == EXIT_FAILED
    assert "in use by another gwmond" in err


@pytest.mark.parametrize("action", ["check", "stats", "vacuum", "export"])
def test_no_ledger(run: Run, tmp_path: Path, action: str) -> None:
    """Where there is no ledger none is made."""
    path = tmp_path / "none.sqlite"
    code, _, err = run(action, "--ledger", path, *([tmp_path] if action == "export" else []))
    assert code == EXIT_FAILED
    assert "does not exist" in err
    assert not path.exists()


def test_export(run: Run, filled: str, tmp_path: Path) -> None:
    code, out, err = run("export", "--ledger", filled, tmp_path / "out", "--from", "2023-11")
    assert (code, err) == (EXIT_OK, "")
    assert "pilots: 15 rows in 2 files" in out  # a file a day
    assert (tmp_path / "out/runs/ledger=gwmond/day=2023-11-14/part-0.parquet").exists()
    code, out, _ = run("export", "--ledger", filled, tmp_path / "none", "--to", "2023-10")
    assert code == EXIT_OK
    assert not list((tmp_path / "none").rglob("*.parquet"))


def test_export_of_a_month_that_is_none(run: Run, filled: str, tmp_path: Path) -> None:
    code, _, err = run("export", "--ledger", filled, tmp_path, "--from", "2026-13")
    assert code == EXIT_BAD_CONFIG
    assert '"2026-13" is not a time' in err
    assert "a month, such as 2026-01" in err


def test_export_to_where_nothing_can_be(run: Run, filled: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    code, _, err = run("export", "--ledger", filled, tmp_path / "out")
    assert code == EXIT_FAILED
    assert "cannot export to" in err
    assert "ledger" not in err.replace("gwmond-ledger", "")[:40]


def test_export_without_pyarrow(
    run: Run, filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without pyarrow only the export does not work, and says what to install."""
    for name in [*sys.modules]:
        if name.partition(".")[0] == "pyarrow" or name.startswith("gwmond.ledger.export.parquet"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "gwmond.ledger.export.datasets", raising=False)
    monkeypatch.delattr("gwmond.ledger.export.datasets", raising=False)
    monkeypatch.delattr("gwmond.ledger.export.parquet", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = run("export", "--ledger", filled, tmp_path / "out")
    assert code == EXIT_FAILED
    assert f"Install it: {sys.executable} -m pip install 'pyarrow>=" in err
    assert run("check", "--ledger", filled)[0] == EXIT_OK
