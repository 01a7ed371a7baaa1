"""`gwmond import` of a factory's directories whose pilots are known."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from gwmond.ledger.pilot_model import PilotRow
from gwmond.ledger.reader import LedgerReader
from tests.gwms import simulated

NUMBER, SEED = 300, 7
Totals = dict[tuple[str, ...], int]


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A factory's directory, with all its defects."""
    directory = tmp_path_factory.mktemp("factory")
    subprocess.run(
        [
            *(sys.executable, "-m", "tests.gwms.generate", str(directory)),
            *("--number", str(NUMBER), "--seed", str(SEED)),
        ],
        check=True,
        capture_output=True,
    )
    return directory


def command(ledger: Path, *paths: Path) -> list[str]:
    url = f"sqlite:///{ledger}"
    return [sys.executable, "-m", "gwmond", "import", "--ledger", url, *map(str, paths)]


def run(ledger: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Import, to the end."""
    return subprocess.run(
        command(ledger, *paths), capture_output=True, text=True, check=False, timeout=180
    )


def totals(ledger: Path) -> Totals:
    """All totals, in micros."""
    with LedgerReader.open(f"sqlite:///{ledger}") as reader:
        net = reader.load_pilots().net
    return {tuple(map(str, series)): micros for series, micros in net.items() if micros}


def pilots(ledger: Path) -> dict[str, PilotRow]:
    """Pilots by the factory's job."""
    with LedgerReader.open(f"sqlite:///{ledger}") as reader:
        return {row.identity.factory_job.partition("#")[2]: row for row in reader.pilot_rows()}


def spent(row: PilotRow) -> dict[str, float]:
    """Core-seconds by category."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for (resource, measure, category, _), micros in row.settled.items():
        if (resource, measure) == ("cpu", "resource"):
            seconds[category.value] += micros / 1e6
    return dict(seconds)


@pytest.fixture(scope="module")
def imported(factory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger into which it was imported."""
    ledger = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    done = run(ledger, factory)
    assert done.returncode == 0, done.stderr
    return ledger


def test_the_ledger_proves_itself(imported: Path) -> None:
    """Everything sums up, and nothing is left open."""
    check = [sys.executable, "-m", "gwmond", "ledger", "check", "--ledger"]
    done = subprocess.run([*check, f"sqlite:///{imported}"], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    assert all(row.closed for row in pilots(imported).values())


def test_each_pilot_that_returned_its_output_is_right(imported: Path) -> None:
    """Its life and its size; a failed validation takes all of it, and says what failed."""
    known = pilots(imported)
    seen: set[str] = set()
    for truth in simulated.pilots(SEED, NUMBER):
        if not truth.returned:
            continue
        row = known[f"{truth.cluster}.{truth.proc}"]
        assert (row.start_us, row.end_us) == (truth.start * 10**6, truth.end * 10**6), truth
        assert row.identity.key.entry == truth.entry_name
        # One that failed early has not told its size: it is the entry's usual one.
        if truth.tells_cores and truth.tells_memory and truth.condor is not None:
            assert sum(spent(row).values()) == truth.cores * (truth.end - truth.start)
        if truth.condor is None:
            assert set(spent(row)) == {"validation_fails"}
            seen.add(row.failure.partition(" ")[0])
        elif truth.jobs:
            assert "pilot_overhead" in spent(row) or sum(spent(row).values()) > 0
            assert "decision_problem" not in spent(row)
        else:
            assert set(spent(row)) == {"decision_problem"}
    assert len(seen) > 3


def test_again_is_nothing(imported: Path, factory: Path) -> None:
    """What was imported is not imported twice."""
    before = totals(imported)
    done = run(imported, factory)
    assert done.returncode == 0
    assert done.stdout.startswith("0 outputs")
    assert totals(imported) == before


def test_killed_and_repeated(factory: Path, imported: Path, tmp_path: Path) -> None:
    """Killed at several moments, and then run to its end: the same totals."""
    ledger = tmp_path / "ledger.sqlite"
    for after in (1.0, 1.6, 2.2, 3.0):
        with subprocess.Popen(command(ledger, factory), stderr=subprocess.DEVNULL) as process:
            time.sleep(after)
            process.kill()
    assert run(ledger, factory).returncode == 0
    assert totals(ledger) == totals(imported)
    assert pilots(ledger).keys() == pilots(imported).keys()


def test_nothing_to_import(tmp_path: Path) -> None:
    """An empty directory, and one that is not there: an error that says so."""
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run(tmp_path / "ledger.sqlite", empty)
    assert (done.returncode, "no job.*.out" in done.stderr) == (1, True)
    done = run(tmp_path / "ledger.sqlite", tmp_path / "absent")
    assert (done.returncode, "no such directory" in done.stderr) == (1, True)
