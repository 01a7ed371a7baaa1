"""The SQL of etc/sql over the exports of two ledgers: what their reports say, added."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

from gwmond import cli
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.pilot_life import Category
from gwmond.model.states import State
from tests.ledger.pilot_batches import poll
from tests.ledger.server import Server
from tests.promql import ROOT

SQL = ROOT / "etc" / "sql"
QUERIES = ("pilot-time", "site-time", "seen-twice")
POLLS = {"one": 30, "two": 7}
BEGAN_LATER_US = {"one": 0, "two": 1}


class Exports(NamedTuple):
    """Ledgers by name, and where they were exported to."""

    ledgers: Mapping[str, str]
    directory: Path

    def query(self, name: str) -> list[dict[str, Any]]:
        """The rows that a file of etc/sql gives in DuckDB for the month."""
        cursor = self.connect().execute(self.edited(name))
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB with all tables."""
        return duckdb.connect().execute(self.edited("duckdb"))

    def edited(self, name: str) -> str:
        """As an operator would edit it."""
        text = (SQL / f"{name}.sql").read_text()
        edits = {"/data/gwmond": str(self.directory), "2026-11": "2023-11", "2026-12": "2023-12"}
        for old, new in edits.items():
            text = text.replace(old, new)
        return text


@pytest.fixture(scope="module")
def exports(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Exports:
    """One ledger in a file, and one in a schema of PostgreSQL; the second saw less."""
    directory = tmp_path_factory.mktemp("exports")
    ledgers = {"one": str(directory / "ledger.sqlite"), "two": server.schema()}
    for name, url in ledgers.items():
        with Ledger.open(url) as ledger:
            for number in range(1, POLLS[name] + 1):
                made = poll(number)
                ledger.commit(made._replace(now_us=made.now_us + BEGAN_LATER_US[name]))
        for _ in range(2):  # the second time all is replaced
            command = ["export", "--ledger", url, str(directory / "out"), "--name", name]
            assert cli.main(["ledger", *command]) == 0
    return Exports(ledgers, directory / "out")


def _reported(exports: Exports, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The groups of ``gwmond report --by site`` of each ledger."""
    capsys.readouterr()
    found = []
    for url in exports.ledgers.values():
        period = ["--from", "2023-11-01", "--to", "2023-12-01"]
        command = ["report", "--ledger", url, *period, "--by", "site", "--format", "json"]
        assert cli.main(command) == 0
        found += json.loads(capsys.readouterr().out)["groups"]
    return found


def test_pilot_time_is_that_of_the_reports(
    exports: Exports, capsys: pytest.CaptureFixture[str]
) -> None:
    """Canonical hours of each category, by site and resource."""
    wanted: Counter[tuple[str, str, str]] = Counter()
    for group in _reported(exports, capsys):
        for resource, amounts in group["categories"].items():
            for category, seconds in amounts["canonical_seconds"].items():
                wanted[group["site"], resource, category] += seconds
    found = exports.query("pilot-time")
    assert {row["resource"] for row in found} == {"cpu", "gpu"}
    got = {
        (row["site"], row["resource"], c.value): row[c] * 3600 for row in found for c in Category
    }
    assert got == pytest.approx({key: wanted[key] for key in got}, rel=1e-12)
    assert sum(wanted.values()) == pytest.approx(sum(got.values()), rel=1e-12)
    for row in found:
        assert row["total"] == pytest.approx(sum(row[c] for c in Category), rel=1e-12)


def test_site_time_is_that_of_the_ledgers(
    exports: Exports, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each state has its column; what reports show of them is the same."""
    wanted: Counter[tuple[str, str, str]] = Counter()
    for url in exports.ledgers.values():
        with LedgerReader.open(url) as ledger:
            for _, key, micros in ledger.hours(0, 10**6):
                wanted[key.site, key.resource, key.state] += micros
    found = exports.query("site-time")
    states = set(found[0]) - {"site", "resource", "capacity"}
    assert states == {*map(str, State)} - {"full", "saturated"} | {"provisioned"}
    got = {(row["site"], row["resource"], s): row[s] * 3.6e9 for row in found for s in states}
    assert got == pytest.approx({key: wanted[key] for key in got}, rel=1e-12)
    assert sum(wanted.values()) == pytest.approx(
        sum(row["capacity"] * 3.6e9 for row in found), rel=1e-12
    )
    reported: Counter[tuple[str, str, str]] = Counter()
    for group in _reported(exports, capsys):
        for resource, amounts in group["site_time"].items():
            for name, seconds in amounts.items():
                state = name.removesuffix("_canonical_seconds")
                reported[group["site"], resource, state] += seconds * 1e6
    assert len({state for *_, state in reported}) == 2
    assert reported == pytest.approx({key: got.get(key, 0) for key in reported}, rel=1e-12)


def test_pilots_in_two_ledgers_are_found(exports: Exports) -> None:
    """Both ledgers saw the pilots of the second."""
    with LedgerReader.open(exports.ledgers["two"]) as ledger:
        both = len(list(ledger.pilot_rows()))
    (row,) = exports.query("seen-twice")
    assert (row["ledger"], row["other_ledger"], row["pilots"]) == ("one", "two", both)


def test_tables_of_trino_have_columns_that_are_exported(exports: Exports) -> None:
    """Those that the queries need among them: these run on other tables of the same names."""
    text = (SQL / "trino.sql").read_text()
    tables = re.findall(r"CREATE TABLE hive\.gwmond\.(\w+) \((.*?)\n\) WITH", text, re.DOTALL)
    connection = exports.connect()
    for name, columns in tables:
        connection.execute(f"CREATE TEMP TABLE new AS FROM {name} LIMIT 0")
        kinds = columns.replace("timestamp(6)", "timestamptz")
        connection.execute(f"CREATE OR REPLACE TEMP TABLE trino ({kinds})")
        found, wanted = (
            {(row[0], row[1]) for row in connection.execute(f"DESCRIBE {table}").fetchall()}
            for table in ("new", "trino")
        )
        assert wanted <= found, name
        connection.execute(f"DROP VIEW {name}; ALTER TABLE trino RENAME TO {name}")
        connection.execute("DROP TABLE new")
    for name in QUERIES:
        assert connection.execute(exports.edited(name)).fetchall() == []
    assert {name for name, _ in tables} == {"pilot_hours", "site_hours", "pilots"}
    assert set(re.findall(r"path '/data/gwmond/(\w+)'", (SQL / "spark.sql").read_text())) == {
        name for name, _ in tables
    }
