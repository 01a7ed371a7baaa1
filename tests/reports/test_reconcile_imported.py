"""`gwmond reconcile` on an imported factory directory: it gives the truth, and explains defects."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.factory.reconciliation import Cause, Reconciled
from gwmond.model.factory.totals import FactoryKey, FactoryKind
from gwmond.model.times import HOUR_US, SECOND_US, Period
from gwmond.reports.reconcile.reconcile import gather
from tests.build.command_line import gwmond
from tests.build.gwms import generate, simulated
from tests.build.gwms.simulated import BASE, SPREAD_S, Pilot

NUMBER, SEED = 400, 11
FIRST_US = BASE * SECOND_US // HOUR_US * HOUR_US
ALL = Period(FIRST_US - 24 * HOUR_US, FIRST_US + SPREAD_S * SECOND_US + 72 * HOUR_US)
DAY = Period(FIRST_US + 48 * HOUR_US, FIRST_US + 72 * HOUR_US)


def truth() -> list[Pilot]:
    """What was."""
    return list(simulated.pilots(SEED, NUMBER))


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A factory's directory, with all its defects."""
    directory = tmp_path_factory.mktemp("factory")
    generate.write(directory, SEED, NUMBER)
    return directory


@pytest.fixture(scope="module")
def imported(factory: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger into which it was imported."""
    url = f"sqlite:///{tmp_path_factory.mktemp('ledger')}/ledger.sqlite"
    done = gwmond("import", "--ledger", url, factory)
    assert done.returncode == 0, done.stderr
    return url


def reconciled(url: str, period: Period) -> list[Reconciled]:
    with LedgerReader.open(url) as ledger:
        return gather(ledger, period, period.until_us).rows


def hours(url: str) -> Mapping[FactoryKey, int]:
    with LedgerReader.open(url) as ledger:
        return ledger.factory_hours(0, 10**7)


def summed(numbers: Mapping[FactoryKey, int]) -> Counter[str]:
    """Sums over all hours, entries and clients."""
    found: Counter[str] = Counter()
    for factory_key, number in numbers.items():
        found[factory_key.kind.value] += number
    return found


def written(pilots: Iterable[Pilot]) -> list[tuple[Pilot, int | None]]:
    """Pilots that have a line, with the duration that it tells."""
    return [
        (pilot, pilot.end - pilot.start if pilot.returned else None)
        for pilot in pilots
        if pilot.kind != "hard_kill"
    ]


def test_the_factorys_numbers_are_those_of_its_files(imported: str) -> None:
    """Events, lines and outputs, summed: defects are counted as such."""
    pilots, found = truth(), summed(hours(imported))
    kinds = Counter(pilot.kind for pilot in pilots)
    lines = written(pilots)
    assert found["queue_submitted"] == found["queue_started"] == NUMBER
    assert found["queue_pending"] == NUMBER
    assert found["queue_ended"] == NUMBER - kinds["no_files"]
    assert found["queue_held"] == found["queue_removed"] == kinds["no_files"]
    assert found["summary_pilots"] == len(lines) == NUMBER - kinds["hard_kill"]
    lost = kinds["empty"] + kinds["no_files"] + kinds["truncated"]
    assert found["summary_no_duration"] == lost
    assert found["summary_seconds"] == sum(seconds or 0 for _, seconds in lines)
    assert found["outputs_pilots"] == NUMBER - kinds["no_files"]
    assert found["outputs_empty"] == kinds["empty"]


def test_copies_of_its_files_change_no_number(factory: Path, imported: str, tmp_path: Path) -> None:
    """Nor does where they lie, or when they were written."""
    before = Path(imported.removeprefix("sqlite:///"))
    for part in before.parent.glob(f"{before.name}*"):
        shutil.copy(part, tmp_path)
    ledger, copy = f"sqlite:///{tmp_path / before.name}", tmp_path / "old" / "copy"
    shutil.copytree(factory, copy, copy_function=shutil.copyfile)  # they are new files
    done = gwmond("import", "--ledger", ledger, copy)
    assert done.returncode == 0, done.stderr
    assert "0 outputs" not in done.stdout
    assert hours(ledger) == hours(imported)


def test_numbers_are_in_the_hours_of_their_events(imported: str) -> None:
    """By entry and client, each at its own time."""
    expected: Counter[tuple[int, str, str, str]] = Counter()
    for pilot in truth():
        entry, client = pilot.entry_name, f"{pilot.user}-frontend.main"
        expected[pilot.start // 3600, entry, client, "queue_started"] += 1
        if pilot.kind != "hard_kill":
            line = (pilot.end + 200) // 3600, entry, f"{pilot.user}_frontend", "summary_pilots"
            expected[line] += 1
    found = {
        (*factory_key[:3], factory_key.kind.value): number
        for factory_key, number in hours(imported).items()
        if factory_key.kind in {FactoryKind.QUEUE_STARTED, FactoryKind.SUMMARY_PILOTS}
    }
    assert found == dict(expected)


def test_all_of_it_is_explained_by_its_defects(imported: str) -> None:
    """Over all time what differs are exactly the pilots whose lines are missing or empty."""
    rows = reconciled(imported, ALL)
    kinds = Counter(pilot.kind for pilot in truth())
    parts: Counter[Cause] = Counter()
    for row in rows:
        assert row.residual_us == sum(part.us for part in row.parts.values())
        assert row.unexplained_us == 0
        parts.update({cause: part.pilots for cause, part in row.parts.items()})
    assert parts == {
        Cause.NO_LINE: kinds["hard_kill"],
        Cause.NO_DURATION: kinds["empty"] + kinds["no_files"] + kinds["truncated"],
    }
    told = sum(seconds or 0 for _, seconds in written(truth()))
    assert sum(row.factory_us or 0 for row in rows) == told * SECOND_US
    for row in rows:
        theirs = [pilot for pilot in truth() if pilot.entry_name == row.entry]
        assert row.ended == len(theirs)
        whole = sum(p.end - p.start for p in theirs if p.returned)
        assert row.pilots_us >= whole * SECOND_US


def test_a_day_within_is_explained_as_well(imported: str) -> None:
    """Lives stick out of it, lines come later: nothing is left over."""
    rows = reconciled(imported, DAY)
    since, until = DAY.since_us // SECOND_US, DAY.until_us // SECOND_US
    causes = {cause for row in rows for cause in row.parts}
    assert causes >= {
        Cause.OUTSIDE,
        Cause.RUNNING,
        Cause.NO_DURATION,
        Cause.NO_LINE,
    }
    for row in rows:
        theirs = [p for p in truth() if p.entry_name == row.entry]
        if row.factory_us is None:
            assert not any(since <= p.start < until for p in theirs)
            continue
        lines = [n or 0 for p, n in written(theirs) if since <= p.end + 200 < until]
        assert row.factory_us == sum(lines) * SECOND_US
        assert row.residual_us == sum(part.us for part in row.parts.values())
        assert row.unexplained_us == 0


def test_the_time_of_jobs_is_that_of_their_records(imported: str) -> None:
    """By records, by category, and by the factory, of which both ways to sum occur."""
    rows = reconciled(imported, ALL)
    known = [p for p in truth() if p.returned and p.kind != "no_history"]
    told = sum(job.end - job.start for p in known for job in p.jobs)
    found = sum(row.jobs.core_us for row in rows)
    assert found >= told * SECOND_US
    assert sum(row.jobs.open_core_us for row in rows) == 0
    fits = sum((row.fits for row in rows), Counter[str]())
    cores = Counter((p.form == 2, p.cores == 1) for p in known if p.jobs and p.kind != "evicted")
    assert fits["real"] >= cores[True, False] * 0.9 > 0
    assert fits["divided"] >= cores[False, False] * 0.9 > 0


# --- the command ----------------------------------------------------------------------------------

PERIOD = "--from", str(DAY.since_us // SECOND_US), "--to", str(DAY.until_us // SECOND_US)


def entries(url: str, *words: str) -> list[dict[str, Any]]:
    done = gwmond("reconcile", "--ledger", url, *PERIOD, "--format", "json", *words)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["entries"]
    return found


def test_formats(imported: str) -> None:
    """JSON and CSV have the same records, the tables explain each cause that occurs."""
    found = entries(imported)
    assert [row["entry"] for row in found] == sorted({row["entry"] for row in found})
    table = gwmond("reconcile", "--ledger", imported, *PERIOD)
    page = gwmond("reconcile", "--ledger", imported, *PERIOD, "--format", "markdown")
    rows = list(
        csv.DictReader(
            io.StringIO(
                gwmond("reconcile", "--ledger", imported, *PERIOD, "--format", "csv").stdout
            )
        )
    )
    assert [row["entry"] for row in rows] == [row["entry"] for row in found]
    assert rows[0].keys() == found[0].keys()
    for each in found:
        assert each["entry"] in table.stdout
        assert each["entry"] in page.stdout
    assert "no line: the queue recorded the pilot's end" in table.stdout
    assert {row["residual_seconds"] for row in rows if row["factory_told"] == "False"} <= {""}


def test_a_pattern(imported: str) -> None:
    """Only entries like it; none is no error, but says so."""
    every = [row["entry"] for row in entries(imported)]
    some = [row["entry"] for row in entries(imported, "--entry", "Entry_T2_00*")]
    assert some == [entry for entry in every if entry.startswith("Entry_T2_00")]
    done = gwmond("reconcile", "--ledger", imported, *PERIOD, "--entry", "nowhere")
    assert (done.returncode, "Nothing is known" in done.stdout) == (0, True)


def test_what_is_too_much(imported: str, tmp_path: Path) -> None:
    """The exit code tells; a day without numbers of the factory is too much, too."""
    most = "--max-unexplained", "0"
    assert gwmond("reconcile", "--ledger", imported, *PERIOD, *most).returncode == 0
    done = gwmond("reconcile", "--ledger", imported, "--from", "1d", *most)
    assert (done.returncode, "no factory numbers" in done.stderr) == (1, True)
    done = gwmond("reconcile", "--ledger", f"{tmp_path}/absent.sqlite", *PERIOD)
    assert done.returncode == 1
    assert gwmond("reconcile", "--ledger", imported, "--from", "nonsense").returncode == 2
    for value in ("nan", "inf", "-1", "much"):
        done = gwmond("reconcile", "--ledger", imported, *PERIOD, f"--max-unexplained={value}")
        assert (done.returncode, "is no number of per cent" in done.stderr) == (2, True)


def test_unexplained_fails(factory: Path, imported: str, tmp_path: Path) -> None:
    """Without event logs it is not known why lines are missing; a wrong line is found as well."""
    copy = tmp_path / "factory"
    subprocess.run(["cp", "-a", str(factory), str(copy)], check=True)
    for path in copy.rglob("condor_activity_*.log"):
        path.unlink()
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    assert gwmond("import", "--ledger", url, copy).returncode == 0
    causes = {cause for row in reconciled(url, ALL) for cause in row.parts}
    assert Cause.NOT_RECORDED in causes
    words = (
        "reconcile",
        "--ledger",
        url,
        "--from",
        ALL.since_us // SECOND_US,
        "--to",
        ALL.until_us // SECOND_US,
    )
    done = gwmond(*words, "--max-unexplained", "0.01")
    assert (done.returncode, "is unexplained, more than 0.01 %" in done.stderr) == (1, True)
    assert gwmond(*words, "--max-unexplained", "90").returncode == 0
