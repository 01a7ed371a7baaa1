"""What is imported already and is read again, or told by something else, counts once."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.build.command_line import gwmond
from tests.build.gwms import generate, simulated
from tests.build.imports import run, totals

SEED, NUMBER = 11, 40
_LINE = "09/10/01 {:02}:{:02}:{:02} (pid:{})"


def known() -> list[simulated.Pilot]:
    """Pilots with jobs and a whole output, each with a history in it."""
    found = simulated.pilots(SEED, NUMBER)
    return [job for job in found if job.kind == "good" and job.jobs and job.tells_cores]


def write(root: Path, *, history: bool) -> Path:
    """Write the outputs of some pilots, with their histories or only with their starter logs."""
    for pilot in known():
        folder = root / "client" / pilot.directory
        folder.mkdir(parents=True, exist_ok=True)
        job = pilot if history else pilot._replace(kind="no_history")
        (folder / f"{pilot.stem}.out").write_bytes(generate.out(pilot))
        (folder / f"{pilot.stem}.err").write_bytes(generate.err(job))
    return root


def check(ledger: Path) -> None:
    """Let the ledger prove that all sums up."""
    done = gwmond("ledger", "check", "--ledger", ledger)
    assert done.returncode == 0, done.stdout


def runs(ledger: Path) -> list[tuple[object, ...]]:
    """All runs of jobs."""
    with sqlite3.connect(ledger) as connection:
        found = connection.execute(
            "SELECT factory_job, job, number, runs.start_us, runs.end_us, category "
            "FROM runs JOIN pilots ON pilots.id = runs.pilot"
        )
        return sorted(found, key=repr)


def imported(ledger: Path, *roots: Path) -> Path:
    """Import each, one after the other."""
    for root in roots:
        done = run(ledger, root)
        assert done.returncode == 0, done.stderr
    check(ledger)
    return ledger


@pytest.mark.parametrize("history", [True, False])
def test_the_same_again(tmp_path: Path, *, history: bool) -> None:
    """Files whose mode was changed are read again, and so is a copy of all of them."""
    root = write(tmp_path / "factory", history=history)
    ledger = imported(tmp_path / "ledger.sqlite", root)
    before = totals(ledger), runs(ledger)
    assert before[1]
    for file in root.rglob("job.*"):
        file.chmod(0o600)
    assert (totals(imported(ledger, root)), runs(ledger)) == before
    copy = Path(shutil.copytree(root, tmp_path / "copy"))
    assert (totals(imported(ledger, copy)), runs(ledger)) == before


def test_histories_that_were_missing(tmp_path: Path) -> None:
    """Runs of which starter logs told are those of the histories, whatever was read first."""
    whole = write(tmp_path / "whole", history=True)
    less = write(tmp_path / "less", history=False)
    alone = imported(tmp_path / "alone.sqlite", whole)
    assert len(runs(alone)) == sum(len(job.jobs) for job in known())
    for name, order in {"before": (less, whole), "after": (whole, less)}.items():
        ledger = imported(tmp_path / f"{name}.sqlite", *order)
        assert runs(ledger) == runs(alone)
        assert totals(ledger) == totals(alone)


def hostile(number: int) -> bytes:
    """A starter log of runs that all go on when the last one begins, one of each second."""
    lines = []
    for second in range(number):
        clock = second // 3600, second // 60 % 60, second % 60
        line = _LINE.format(*clock, second + 10)
        lines.append(f"{line} Job {second}.0 set to execute immediately\n")
        lines.append(f"{line} Create_Process succeeded, pid=1\n")
    return generate.log("StarterLog.slot1_1", "".join(lines).encode())


def test_a_pilot_with_too_many_runs(tmp_path: Path) -> None:
    """What is left out of it is told, with its name; the pilot beside it is accounted."""
    good = known()[0]
    folder = tmp_path / "factory" / "client" / good.directory
    folder.mkdir(parents=True)
    start = 1_000_080_000  # at midnight, as the log's lines are
    bad = good._replace(cluster=good.cluster + 1, offset=0, jobs=())
    bad = bad._replace(start=start, end=start + 9000, last_script=start, condor=(start, start))
    out = generate.out(bad)  # without the number of its jobs
    for pilot, texts in (
        (good, (generate.out(good), generate.err(good))),
        (bad, (out[: out.index(b"=== Condor ended")], hostile(4000))),
    ):
        for kind, text in zip(("out", "err"), texts, strict=True):
            (folder / f"{pilot.stem}.{kind}").write_bytes(text)
    ledger = tmp_path / "ledger.sqlite"
    done = run(ledger, tmp_path / "factory")
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if "[too_many_runs]" in line)
    assert f"{bad.stem}.out" in line
    check(ledger)
    rows = runs(ledger)
    assert len(good.jobs) < len(rows) < 4000
    jobs = {str(job).split("#")[1] for _, job, *_ in rows}
    assert {f"{job.cluster}.0" for job in good.jobs} <= jobs
