"""Parquet that is exported is what the ledger has, day by day."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from gwmond.ledger.export import datasets, parquet
from gwmond.ledger.export.datasets import export
from gwmond.ledger.export.parquet import Target
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.ledger.store import Ledger
from gwmond.model.times import DAY_US, Period
from gwmond.pilots.factory.records import jobs
from gwmond.reports.render.periods import LATEST_US
from tests.ledger.pilot_batches import HOUR, batch, now_us, pilots_at, places, poll

BATCHES = 24
EVERY = Period(0, LATEST_US)


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


def _target(directory: Path, name: str = "one") -> Target:
    return Target(directory, name)


def _read(directory: Path, dataset: str) -> list[dict[str, Any]]:
    found = ds.dataset(directory / dataset, partitioning="hive").to_table().to_pylist()
    return list(found)


def _us(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1_000_000)


def _values(record: dict[str, Any], names: str) -> tuple[Any, ...]:
    """Return some columns; times in micros."""
    found = (record[name] for name in names.split())
    return tuple(_us(value) if isinstance(value, datetime) else value for value in found)


def test_all_of_it(ledger: Ledger, tmp_path: Path) -> None:
    """Every row is there once, with every column, and amounts are exact."""
    told: list[tuple[str, int, int]] = []
    export(ledger, _target(tmp_path), EVERY, lambda *record: told.append(record))
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
    names = "name factory_job group node start end last_contact retires dies end_source validation"
    for number, row in rows.items():
        record, of = pilots[number], row.identity
        assert _values(record, names) == (
            *(of.name, of.factory_job, of.group, of.node, row.start_us, row.end_us),
            *(row.posted_last_heard_us, row.retire_us, None, row.end_source, row.validation),
        )
        assert _values(record, "site entry closed ran_jobs") == (*of.key, row.closed, row.ran_jobs)
        assert _values(record, "cores memory_mib gpus") == row.steps[0].size
        assert [_us(step["since"]) for step in record["steps"]] == [
            step.at_us for step in row.steps
        ]
        kind = "resource measure category outcome"
        settled = {_values(one, kind): one["amount_micros"] for one in record["settled"]}
        assert settled == {tuple(map(str, kind)): n for kind, n in row.settled.items()}
        assumed = {one["rule"]: _values(one, "start end") for one in record["assumed"]}
        assert assumed == dict(row.assumed)

    queued = {record["number"]: record for record in _read(tmp_path, "factory_jobs")}
    every = {place.number: place for n in range(1, BATCHES + 1) for place in places(n)}
    assert queued.keys() == every.keys()
    names = "entry instance user submitted started ended summary_duration_s"
    for name, place in every.items():
        (job,) = jobs(place)
        who = place.entry, job.instance, job.user
        assert _values(queued[name], names) == (
            *(*who, job.submitted_us, job.started_us, job.ended_us, 100),
        )

    runs = {(r["job"], r["number"]): r for r in _read(tmp_path, "runs")}
    for run, identity in ledger.run_rows():
        record = runs.pop((run.key.job, run.key.number))
        assert _values(record, "pilot pilot_name group start end user job_group result open") == (
            *(run.pilot, identity.name, identity.group, run.start_us, run.end_us),
            *(run.user, run.job_group, run.result, run.open),
        )
        assert _values(record, "site entry") == identity.key
        assert _values(record, "cores memory_mib gpus") == run.size
        outcome = _values(record, "category outcome evidence")
        assert outcome == (run.outcome or (None, None, None))
        for (resource, measure), micros in run.settled.items():
            assert record[f"{resource}_{measure}_micros"] == micros
            assert record[f"{resource}_{measure}_seconds"] == micros / 1e6
    assert runs == {}
    assert {name for name, done, total in told if done == total} == {
        *("pilot_hours", "site_hours", "factory_hours", "pilots", "runs", "factory_jobs")
    }


def test_days(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file a day; only the days asked for are written, others stay as they are."""
    monkeypatch.setattr(parquet, "DAY_US", 2 * HOUR)  # a day has two hours, so there are several
    monkeypatch.setattr(parquet, "_path", lambda root, day: root / f"day={day}" / "part-0.parquet")
    monkeypatch.setattr(parquet, "ROWS_IN_A_GROUP", 3)
    every = _target(tmp_path)
    found = export(ledger, every, EVERY, _nothing)
    assert all(len(set(exported.files)) == len(exported.files) for exported in found)
    parts = found[2].files
    assert len(parts) >= 5
    assert len(_read(tmp_path, "pilots")) == len(pilots_at(BATCHES))
    assert len(_read(tmp_path, "runs")) == len(list(ledger.run_rows()))
    first = int(parts[1].parent.name.removeprefix("day="))
    some = Period(first * 2 * HOUR, (first + 2) * 2 * HOUR)
    pilots = export(ledger, every, some, _nothing)[2]
    assert pilots.files == parts[1:3]
    assert len(_read(tmp_path, "pilots")) == len(pilots_at(BATCHES))
    assert not list(tmp_path.rglob("*.new"))


def test_the_days_that_a_period_touches_are_written(ledger: Ledger, tmp_path: Path) -> None:
    now = now_us(0)
    day = now // DAY_US * DAY_US
    for touched, files in (
        (Period(now, now + 1), 1),
        (Period(0, now), 1),
        (Period(day + 2 * DAY_US, day + 9 * DAY_US), 0),
        (Period(0, day - DAY_US), 0),
    ):
        days = parquet.whole_days(touched)
        found = export(ledger, _target(tmp_path / str(files)), days, _nothing)
        assert [len(exported.files) for exported in found] == [files] * len(found)
        assert all(bool(exported.rows) == bool(files) for exported in found)


def test_a_day_without_rows_loses_its_file(ledger: Ledger, tmp_path: Path) -> None:
    """What corrections moved to another day is not in both; days beyond the ledger's stay."""
    first, second = export(ledger, _target(tmp_path), EVERY, _nothing)[3].files
    day = parquet.whole_days(Period(now_us(BATCHES), now_us(BATCHES))).since_us
    with ledger.transaction() as connection:
        connection.exec_driver_sql(
            f"UPDATE runs SET start_us = start_us + {2 * DAY_US} WHERE start_us >= {day}"
        )
    earlier = first.parent.with_name("day=2023-11-13") / first.name
    earlier.parent.mkdir()
    earlier.write_bytes(first.read_bytes())
    export(ledger, _target(tmp_path), EVERY, _nothing)
    assert earlier.exists()
    assert first.exists()
    assert not second.exists()


def test_ledgers_beside_each_other(ledger: Ledger, tmp_path: Path) -> None:
    """Each has its own part, and none takes the name of another."""
    export(ledger, _target(tmp_path), EVERY, _nothing)
    with Ledger.open(f"{tmp_path}/other.sqlite") as second:
        second.commit(batch(1)._replace(now_us=now_us(1) + 1))
        with pytest.raises(ValueError, match=r"exports of another ledger as one .*--name"):
            export(second, _target(tmp_path), EVERY, _nothing)
        export(second, _target(tmp_path, "two"), EVERY, _nothing)
        with pytest.raises(ValueError, match="use letters"):
            export(second, _target(tmp_path, "../two"), EVERY, _nothing)
        theirs = len(list(second.pilot_rows()))
    found = Counter(row["ledger"] for row in _read(tmp_path, "pilots"))
    assert found == {"one": len(pilots_at(BATCHES)), "two": theirs}


def test_exported_again(ledger: Ledger, tmp_path: Path) -> None:
    """A day that is exported again is replaced; readers of the old file are not disturbed."""
    export(ledger, _target(tmp_path), EVERY, _nothing)
    first = len(_read(tmp_path, "runs"))
    path = max((tmp_path / "runs").rglob("*.parquet"))
    with path.open("rb") as old:
        ledger.commit(batch(BATCHES + 1))
        export(ledger, _target(tmp_path), EVERY, _nothing)
        assert old.read(4) == b"PAR1"
    assert len(_read(tmp_path, "runs")) > first
    assert len(_read(tmp_path, "pilots")) == len(pilots_at(BATCHES + 1))


def test_what_retention_took_stays_exported(ledger: Ledger, tmp_path: Path) -> None:
    """A day of which the ledger lost rows is kept as it was exported, and said so."""
    export(ledger, _target(tmp_path), EVERY, _nothing)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    now = now_us(BATCHES) / 1e6
    assert all(ledger.prune(now, Retention(3600, 6 * 3600, 6 * 3600, 0))[:5])
    found = export(ledger, _target(tmp_path), EVERY, _nothing)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    kept = {(each.dataset, path.parent.name) for each in found for path in each.kept}
    assert ("runs", "day=2023-11-15") in kept
    elsewhere = export(ledger, _target(tmp_path / "new"), EVERY, _nothing)
    assert [len(exported.kept) for exported in elsewhere] == [0] * len(found)


def test_an_export_that_fails(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure leaves the files as they were and nothing beside; it is not the ledger's."""
    out = tmp_path / "out"
    export(ledger, _target(out), EVERY, _nothing)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises(OSError, match="No space left"):
        export(ledger, _target(out), EVERY, _nothing)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert ledger.load().batches == BATCHES


def test_an_empty_ledger(url: str, tmp_path: Path) -> None:
    Ledger.open(url).close()
    with LedgerReader.open(url) as reader:
        found = export(reader, _target(tmp_path / "out"), EVERY, _nothing)
    assert [exported.rows for exported in found] == [0] * len(found)


def test_columns_have_units() -> None:
    """An amount, a time and a memory tell their unit, by name or by type."""
    for schema in (datasets.PILOT_HOURS, datasets.SITE_HOURS, datasets.RUNS):
        for field in schema:
            text = str(field.type)
            if "int" in text or "double" in text:
                unit = field.name.rpartition("_")[2]
                whole = {"pilot", "number", "cores", "gpus"}
                assert unit in {"micros", "seconds", "mib", "bytes"} or field.name in whole
