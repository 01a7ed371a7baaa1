"""Parquet that is exported is what the ledger has, month by month."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from gwmond.ledger import datasets, parquet
from gwmond.ledger.datasets import export
from gwmond.ledger.parquet import Months
from gwmond.ledger.pilot_prune import Retention
from gwmond.ledger.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.pilots.factory_records import jobs
from tests.ledger.pilot_batches import HOUR, batch, now_us, pilots_at, places, poll

BATCHES = 24
EVERY = Months()


def _nothing(*_: object) -> None:
    pass


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger.open(url) as ledger:
        for number in range(1, 5):
            ledger.commit(poll(number))
        for number in range(5, BATCHES + 1):
            ledger.commit(batch(number))
        yield ledger


def _read(directory: Path, dataset: str) -> list[dict[str, Any]]:
    found = ds.dataset(directory / dataset, partitioning="hive").to_table().to_pylist()
    return list(found)


def _us(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1_000_000)


def test_all_of_it(ledger: Ledger, tmp_path: Path) -> None:
    """Every row is there once, with every column, and amounts are exact."""
    told: list[tuple[str, int, int]] = []
    export(ledger, tmp_path, EVERY, lambda *record: told.append(record))
    hours = _read(tmp_path, "pilot_hours")
    series = ("resource", "measure", "category", "outcome", "site", "entry", "group", "evidence")
    found = {(_us(r["hour"]), *(r[name] for name in series)): r for r in hours}
    wanted = ledger.pilot_hours(0, 10**7)
    assert len(hours) == len(wanted)
    for hour in wanted:
        record = found[hour.hour * HOUR, *map(str, hour.series)]
        assert record["amount_micros"] == hour.micros
        assert record["amount_seconds"] == hour.micros / 1e6

    exported = _read(tmp_path, "site_hours")
    site = {(r["entry"], _us(r["hour"])): r["canonical_micros"] for r in exported}
    assert site == {(r.key.entry, r.hour * HOUR): r.micros for r in ledger.hours(0, 10**7)}

    theirs = {
        (_us(r["hour"]), r["entry"], r["client"], r["kind"]): r["number"]
        for r in _read(tmp_path, "factory_hours")
    }
    numbers = ledger.factory_hours(0, 10**7)
    assert theirs == {
        (factory_key.hour * HOUR, *map(str, factory_key.total)): n
        for factory_key, n in numbers.items()
    }
    assert theirs

    pilots = {r["pilot"]: r for r in _read(tmp_path, "pilots")}
    rows = {row.id: row for row in ledger.pilot_rows()}
    assert pilots.keys() == rows.keys()
    for number, row in rows.items():
        record = pilots[number]
        assert (record["name"], record["factory_job"]) == (
            row.identity.name,
            row.identity.factory_job,
        )
        assert (record["site"], record["entry"]) == row.identity.key
        assert (record["group"], record["node"]) == (row.identity.group, row.identity.node)
        assert (_us(record["start"]), _us(record["end"])) == (row.start_us, row.end_us)
        assert (_us(record["last_contact"]), _us(record["retires"])) == (
            row.posted_last_heard_us,
            row.retire_us,
        )
        assert (record["end_source"], record["validation"]) == (row.end_source, row.validation)
        assert (record["closed"], record["ran_jobs"], record["dies"]) == (
            row.closed,
            row.ran_jobs,
            None,
        )
        assert (record["cores"], record["memory_mib"], record["gpus"]) == row.steps[0].size
        assert [_us(step["since"]) for step in record["steps"]] == [
            step.at_us for step in row.steps
        ]
        names = ("resource", "measure", "category", "outcome")
        settled = {tuple(s[name] for name in names): s["amount_micros"] for s in record["settled"]}
        assert settled == {tuple(map(str, kind)): n for kind, n in row.settled.items()}
        assumed = {a["rule"]: (_us(a["start"]), _us(a["end"])) for a in record["assumed"]}
        assert assumed == dict(row.assumed)

    queued = {record["number"]: record for record in _read(tmp_path, "factory_jobs")}
    every = {place.number: place for n in range(1, BATCHES + 1) for place in places(n)}
    assert queued.keys() == every.keys()
    for name, place in every.items():
        record = queued[name]
        (job,) = jobs(place)
        assert (record["entry"], record["instance"], record["user"]) == (
            place.entry,
            job.instance,
            job.user,
        )
        assert (_us(record["submitted"]), _us(record["started"])) == (
            job.submitted_us,
            job.started_us,
        )
        assert (_us(record["ended"]), record["summary_duration_s"]) == (job.ended_us, 100)

    runs = {(r["job"], r["number"]): r for r in _read(tmp_path, "runs")}
    for run, identity in ledger.run_rows():
        record = runs.pop((run.key.job, run.key.number))
        assert (record["pilot"], record["pilot_name"]) == (run.pilot, identity.name)
        assert (record["site"], record["entry"], record["group"]) == (*identity.key, identity.group)
        assert (_us(record["start"]), _us(record["end"])) == (run.start_us, run.end_us)
        assert (record["cores"], record["memory_mib"], record["gpus"]) == run.size
        assert (record["user"], record["job_group"]) == (run.user, run.job_group)
        outcome = (record["category"], record["outcome"], record["evidence"])
        assert outcome == (run.outcome or (None, None, None))
        assert (record["result"], record["open"]) == (run.result, run.open)
        for (resource, measure), micros in run.settled.items():
            assert record[f"{resource}_{measure}_micros"] == micros
            assert record[f"{resource}_{measure}_seconds"] == micros / 1e6
    assert runs == {}
    assert {name for name, done, total in told if done == total} == {
        *("pilot_hours", "site_hours", "factory_hours", "pilots", "runs", "factory_jobs")
    }


def test_months(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file a month; only the months asked for are written, others stay as they are."""

    # Two hours are a month here, so that there are several.
    def month(time_us: int) -> tuple[int, int]:
        hours = (time_us - now_us(0)) // 7_200_000_000
        return 2000 + hours // 12, hours % 12 + 1

    monkeypatch.setattr(parquet, "month_of", month)
    monkeypatch.setattr(parquet, "start_us", lambda of: now_us(0) + (of[0] * 12 + of[1]) * 7200)
    monkeypatch.setattr(parquet, "ROWS_IN_MEMORY", 7)
    monkeypatch.setattr(parquet, "ROWS_IN_A_GROUP", 3)
    every = EVERY
    export(ledger, tmp_path / "all", every, _nothing)
    parts = sorted(path.parent.name for path in (tmp_path / "all/pilots").rglob("*.parquet"))
    assert len(parts) >= 5
    assert len(_read(tmp_path / "all", "pilots")) == len(pilots_at(BATCHES))
    assert len(_read(tmp_path / "all", "runs")) == len(list(ledger.run_rows()))
    monkeypatch.setattr(Months, "start_us", 0)
    monkeypatch.setattr(Months, "stop_us", None)
    some = Months((2000, 2), (2000, 3))
    pilots = export(ledger, tmp_path / "some", some, _nothing)[2]
    assert [path.parent.name for path in pilots.files] == ["month=02", "month=03"]
    untouched = tmp_path / "all/pilots/year=2000/month=01/part-0.parquet"
    before = untouched.stat().st_mtime_ns
    export(ledger, tmp_path / "all", some, _nothing)
    assert untouched.stat().st_mtime_ns == before
    assert len(_read(tmp_path / "all", "pilots")) == len(pilots_at(BATCHES))
    assert not list(tmp_path.rglob("*.new"))


def test_the_range_of_months_is_asked_of_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    now = datetime.fromtimestamp(now_us(0) / 1e6, UTC)
    this = now.year, now.month
    for months, files in (
        (Months(this, this), 1),
        (Months(None, this), 1),
        (Months(parquet.following(this), None), 0),
        (Months(None, (this[0] - 1, 12)), 0),
    ):
        found = export(ledger, tmp_path / str(files), months, _nothing)
        assert [len(exported.files) for exported in found] == [files] * len(found)
        assert all(bool(exported.rows) == bool(files) for exported in found)


def test_exported_again(ledger: Ledger, tmp_path: Path) -> None:
    """A month that is exported again is replaced; readers of the old file are not disturbed."""
    export(ledger, tmp_path, EVERY, _nothing)
    first = len(_read(tmp_path, "runs"))
    (path,) = (tmp_path / "runs").rglob("*.parquet")
    with path.open("rb") as old:
        ledger.commit(batch(BATCHES + 1))
        export(ledger, tmp_path, EVERY, _nothing)
        assert old.read(4) == b"PAR1"
    assert len(_read(tmp_path, "runs")) > first
    assert len(_read(tmp_path, "pilots")) == len(pilots_at(BATCHES + 1))


def test_what_retention_took_stays_exported(ledger: Ledger, tmp_path: Path) -> None:
    """A month of which the ledger lost rows is kept as it was exported, and said so."""
    export(ledger, tmp_path, EVERY, _nothing)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    now = now_us(BATCHES) / 1e6
    assert all(ledger.prune(now, Retention(3600, 6 * 3600, 6 * 3600, 0))[:5])
    found = export(ledger, tmp_path, EVERY, _nothing)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    assert {path for exported in found for path in exported.kept} >= set(before) - set(
        (tmp_path / "site_hours").rglob("*.parquet")
    )
    elsewhere = export(ledger, tmp_path / "new", EVERY, _nothing)
    assert [len(exported.kept) for exported in elsewhere] == [0] * len(found)


def test_an_export_that_fails(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure leaves the files as they were and nothing beside; it is not the ledger's."""
    out = tmp_path / "out"
    export(ledger, out, EVERY, _nothing)
    before = {path: path.read_bytes() for path in out.rglob("*.parquet")}

    def full(self: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(parquet._File, "flush", full)
    with pytest.raises(OSError, match="No space left"):
        export(ledger, out, EVERY, _nothing)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert ledger.load().batches == BATCHES


def test_an_empty_ledger(url: str, tmp_path: Path) -> None:
    Ledger.open(url).close()
    with LedgerReader.open(url) as reader:
        found = export(reader, tmp_path / "out", EVERY, _nothing)
    assert [exported.rows for exported in found] == [0] * len(found)


def test_columns_have_units() -> None:
    """An amount, a time and a memory tell their unit, by name or by type."""
    for schema in (datasets.PILOT_HOURS, datasets.SITE_HOURS, datasets.RUNS):
        for field in schema:
            text = str(field.type)
            if "int" in text or "double" in text:
                unit = field.name.rpartition("_")[2]
                whole = {"pilot", "number", "cores", "gpus"}
                assert unit in {"micros", "seconds", "mib"} or field.name in whole
