"""``gwmond ledger export --format openmetrics`` and ``gwmond import --openmetrics``, as typed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)

from gwmond import cli
from gwmond.commands.common import EXIT_BAD_CONFIG, EXIT_FAILED, EXIT_OK
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.metrics import backfill
from tests.build.gwms import generate
from tests.build.pilot_ledger import BASE, write
from tests.ledger.pilot_batches import batch

Run: TypeAlias = Callable[..., tuple[int, str, str]]
RUNS = "gwmond_job_runs_total"
TIME = set(list(backfill.SOURCES)[:5])
FACTORY = {
    "gwmond_factory_queue_events_total",
    "gwmond_factory_completed_pilot_seconds_total",
}
EXPORT = ("ledger", "export", "--format", "openmetrics", "--ledger")


@pytest.fixture
def polled(tmp_path: Path) -> Path:
    """A ledger of a daemon that first polled at BASE."""
    path = tmp_path / "ledger.sqlite"
    write(f"sqlite:///{path}")
    return path


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """A ledger for which nothing was ever polled."""
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(str(path)) as ledger:
        for number in range(1, 11):
            ledger.commit(batch(number))
    return path


def samples(text: str) -> dict[str, set[float]]:
    """Return the hours of each counter, as prometheus_client reads them."""
    found: dict[str, set[float]] = {}
    for metric in parse_openmetrics(text):  # type: ignore[no-untyped-call]
        for sample in metric.samples:
            found.setdefault(sample.name, set()).add(float(sample.timestamp))
    return found


def test_to_standard_output(run: Run, imported: Path) -> None:
    """The text alone is on standard output; what is said of it is not."""
    code, out, err = run(*EXPORT, imported)
    assert code == EXIT_OK
    assert set(samples(out)) == set(list(backfill.SOURCES)[:3]) | FACTORY
    assert out.endswith("# EOF\n")
    assert err.startswith("-: ")
    assert "samples, 2023-11-14T20:00:00Z to 2023-11-15T0" in err
    assert run(*EXPORT, imported, "--output", "-")[1] == out


def test_to_a_file(run: Run, imported: Path, tmp_path: Path) -> None:
    """The file is replaced when all is written; what fails leaves the old one."""
    file = tmp_path / "past.om"
    file.write_text("old")
    code, out, err = run(*EXPORT, imported, "--output", file, "--label", "job=a b")
    assert (code, err) == (EXIT_OK, "")
    assert str(file) in out
    text = file.read_text()
    assert samples(text)
    assert 'job="a b"} ' in text
    assert list(tmp_path.glob(".*")) == []
    with Ledger.open(str(imported)) as ledger, ledger.transaction() as connection:
        connection.exec_driver_sql("UPDATE series SET whole = 0 WHERE kind = 'pilot'")
    code, _, err = run(*EXPORT, imported, "--output", file)
    assert code == EXIT_FAILED
    assert "gwmond ledger check" in err
    assert file.read_text() == text
    assert list(tmp_path.glob(".*")) == []


def test_where_no_file_can_be(run: Run, imported: Path, tmp_path: Path) -> None:
    code, _, err = run(*EXPORT, imported, "--output", tmp_path / "none" / "past.om")
    assert code == EXIT_FAILED
    assert f"cannot write {tmp_path}/none/past.om: {tmp_path}/none is no directory" in err
    assert ".new" not in err
    assert "ledger" not in err.partition("cannot write")[0]


@pytest.mark.parametrize(
    ("period", "told"),
    [
        (("--from", "2025-11-10", "--to", "2025-11-01"), "--from is not before --to"),
        (("--from", "2025-11-10", "--to", "2025-11-10"), "--from is not before --to"),
        (("--from", "2025-12", "--to", "2025-11"), "--from is not before --to"),
        (("--from", "2999-01-01"), "--from 2999-01-01 is yet to come"),
    ],
)
def test_an_empty_period(
    run: Run, imported: Path, tmp_path: Path, period: tuple[str, ...], told: str
) -> None:
    """It is refused, and the file that is there stays."""
    file = tmp_path / "past.om"
    file.write_text("old")
    code, out, err = run(*EXPORT, imported, "--output", file, *period)
    assert (code, out) == (EXIT_BAD_CONFIG, "")
    assert f"the period is empty: {told}" in err
    assert file.read_text() == "old"


def test_an_empty_period_of_parquet(run: Run, imported: Path, tmp_path: Path) -> None:
    months = "--from", "2025-12", "--to", "2025-11"
    code, _, err = run("ledger", "export", tmp_path / "out", "--ledger", imported, *months)
    assert (code, "the period is empty" in err) == (EXIT_BAD_CONFIG, True)
    assert not (tmp_path / "out").exists()


def test_a_disk_that_is_full(imported: Path) -> None:
    """A failure of the file lets go of the ledger, and is said."""
    command = [sys.executable, "-m", "gwmond", *EXPORT, str(imported)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=120
        )
    assert done.returncode == EXIT_FAILED
    assert b"cannot write -: " in done.stderr


def test_it_ends_at_the_first_poll(run: Run, polled: Path) -> None:
    """What was scraped is not written unless another end is given, and then it is said."""
    code, out, err = run(*EXPORT, polled)
    assert (code, out) == (EXIT_OK, "# EOF\n")
    assert "before the daemon's first poll at 2023-11-15T00:00:00Z; --to names another end" in err
    _, out, err = run(*EXPORT, polled, "--to", BASE + 3600)
    assert set().union(*samples(out).values()) == {BASE, BASE + 3600}
    assert set(samples(out)) == TIME
    assert "must not be there a second time" in err


@pytest.mark.parametrize(
    ("first", "last", "hours"),
    [
        ("2023-11-15T01:00:00Z", "2023-11", {1, 2}),
        ("2023-11", "2023-11-15T01:59:59Z", {0, 1}),
        ("2023-12", "2023-12", set()),
        ("2023-10", "2023-10", set()),
    ],
)
def test_from_and_to(run: Run, polled: Path, first: str, last: str, hours: set[int]) -> None:
    """Times as of reports, and months, of which --to is the last."""
    code, out, _ = run(*EXPORT, polled, "--from", first, "--to", last)
    assert code == EXIT_OK
    found: set[float] = set().union(*samples(out).values())
    assert {int(at - BASE) // 3600 for at in found} == hours


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("DIR",), "--output FILE instead of DIR"),
        (("--label", "job"), '"job" is not a label'),
        (("--label", "__name__=x"), '"__name__=x" is not a label'),
        (("--label", "a=\udcff"), "is not a label"),
        (("--label", "site=x"), '"site" is there already'),
        (("--label", "a=1", "--label", "a=2"), '"a" is there already'),
        (("--to", "soon"), '"soon" is not a time'),
        (("--to", "2023-13"), '"2023-13" is not a time'),
    ],
)
def test_bad_options(run: Run, imported: Path, options: tuple[str, ...], told: str) -> None:
    code, out, err = run(*EXPORT, imported, *options)
    assert (code, out) == (EXIT_BAD_CONFIG, "")
    assert told in err


def test_parquet_needs_a_directory_and_no_labels(run: Run, imported: Path, tmp_path: Path) -> None:
    code, _, err = run("ledger", "export", "--ledger", imported)
    assert (code, "needs a directory" in err) == (EXIT_BAD_CONFIG, True)
    for option in (("--output", "x"), ("--label", "a=b")):
        code, _, err = run("ledger", "export", tmp_path / "out", "--ledger", imported, *option)
        assert (code, "for --format openmetrics" in err) == (EXIT_BAD_CONFIG, True)


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["ledger", "export", "--help"], ["import", "--help"]):
        with pytest.raises(SystemExit):
            cli.main(arguments)
        told = capsys.readouterr().out
        assert "docs/backfill.md" in told
        assert "--label" in told
        assert "first poll" in told


def test_import(run: Run, tmp_path: Path) -> None:
    """After an import the file has the hours of what was imported; a second one adds nothing."""
    factory, file = tmp_path / "factory", tmp_path / "past.om"
    generate.write(factory, 3, 30)
    ledger = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    arguments = ("import", "--ledger", ledger, factory, "--openmetrics", file, "--label", "job=g")
    code, out, _ = run(*arguments)
    assert code == EXIT_OK
    assert f"{file}: " in out
    text = file.read_text()
    found = samples(text)
    with LedgerReader.open(ledger) as reader:
        last = max(reader.pilot_hours(0, 10**7)).hour + 1
        counts = reader.load().totals.counts
        numbers = {key: total.net for key, total in counts.items() if total.net}
    assert max(found["gwmond_pilot_resource_seconds_total"]) >= last * 3600
    # Each pilot and each run that was counted has its hour: all begin with 0, and none is left.
    for what, name in (("pilots", "gwmond_pilots_ended_total"), ("runs", RUNS)):
        lines = [line for line in text.splitlines() if line.startswith(name)]
        ends = {line.rsplit(" ", 2)[0]: int(line.rsplit(" ", 2)[1]) for line in lines}
        begins = {line.rsplit(" ", 2)[0]: int(line.rsplit(" ", 2)[1]) for line in lines[::-1]}
        wanted = [number for key, number in numbers.items() if key.what == what]
        assert sorted(ends.values()) == sorted(wanted)
        assert set(begins.values()) == {0}
    ended = {key.category.value for key in numbers if key.what == "pilots"}
    assert ended >= {"pilot_overhead", "decision_problem", "validation_fails"}
    assert run(*arguments)[0] == EXIT_OK
    assert file.read_text() == text


def test_import_needs_a_file(run: Run, tmp_path: Path) -> None:
    for options in (("--label", "a=b"), ("--to", "now"), ("--openmetrics", "-")):
        code, _, err = run("import", "--ledger", tmp_path / "x.sqlite", tmp_path, *options)
        assert code == EXIT_BAD_CONFIG
        assert "--openmetrics" in err
    assert not (tmp_path / "x.sqlite").exists()
