"""Early failures in old logs are judged as by a daemon that ran at the time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from gwmond.config.settings import Config
from gwmond.ledger.store import Ledger
from gwmond.model.pilots.file_facts import FileFact, PilotOutput
from gwmond.service.accounting.file_readers import LIMITS
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.importer import Importer
from gwmond.sources import child, gwms_tasks
from gwmond.sources.gwms_tasks import Directory
from tests.build.gwms import generate, simulated
from tests.build.gwms.simulated import Job, Pilot

BASE = 1_600_000_000  # years ago
HOUR_S, DAY_S = 3600, 86400
SICK = (7, 50)
LONE = (12, 31)
PILOTS = 60


def jobs(number: int, begin: int) -> Iterator[Job]:
    """Four runs one after the other: on a sick pilot all fail early, on others at most one."""
    at = begin + 60
    for n in range(4):
        fails = number in SICK or (number in LONE and n == 2)
        end = at + (280 if fails else 1500)
        yield Job(1000 + number * 10 + n, 1, at, end, 1 if fails else 0, None)
        at = end + 10


def pilot(number: int) -> Pilot:
    """One of many pilots of two hours; after half of them there are none for two days."""
    job = next(job for job in simulated.pilots(number, 50) if job.kind == "good" and job.cores == 4)
    start = BASE + number * 600 + (2 * DAY_S if number >= PILOTS // 2 else 0)
    condor = start + 100, start + 2 * HOUR_S
    job = job._replace(number=number, cluster=5000 + number, proc=0, entry=number % 3, pid=number)
    return job._replace(
        user="feosg",
        mode="std",
        start=start,
        last_script=condor[0] - 2,
        condor=condor,
        end=condor[1] + 10,
        jobs=tuple(jobs(number, condor[0])),
    )


def made(root: Path) -> list[Path]:
    """Directories of an old factory, with what all its pilots left."""
    for number in range(PILOTS):
        job = pilot(number)
        directory = root / job.directory
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in generate.files(job).items():
            (directory / name).write_bytes(content)
    return sorted(root.glob("user_*/glidein_*/entry_*"))


def facts(directories: list[Path]) -> list[PilotOutput]:
    """What the directories tell, by the pilots' ends."""
    wanted = [Directory(str(path), "") for path in directories]
    answers, _ = gwms_tasks.read(wanted, LIMITS, time.time() + HOUR_S)
    found: list[FileFact] = [fact for answer in answers for fact in answer.facts]
    outputs = [pilot_name for pilot_name in found if isinstance(pilot_name, PilotOutput)]
    return sorted(outputs, key=lambda output: output.end_us or 0)


def outcomes(ledger: Ledger) -> dict[str, str]:
    """How each run ended, by job."""
    return {
        row.key.job: row.outcome.label if row.outcome is not None else "open"
        for row, _ in ledger.run_rows()
    }


def lived(ledger: Ledger, outputs: list[PilotOutput]) -> None:
    """Let a daemon account them while they come, and go on for a day."""
    keeper = LedgerKeeper(Config())
    keeper.use(ledger)
    waiting = list(outputs)
    for now in range(BASE, BASE + 4 * DAY_S, 600):
        told = [
            pilot_name for pilot_name in waiting if (pilot_name.end_us or 0) <= (now - 60) * 10**6
        ]
        waiting = waiting[len(told) :]
        keeper.add_facts(told, None)
        keeper.settle(now * 10**6, (now - 120) * 10**6, ())
    assert not waiting


def test_an_import_judges_as_a_daemon_did(tmp_path: Path) -> None:
    """All runs of two pilots failed early: by their doing; those that did elsewhere were bad."""
    child.start()
    directories = made(tmp_path / "factory")
    with Ledger.open(f"{tmp_path}/then.sqlite") as ledger:
        lived(ledger, facts(directories))
        then = outcomes(ledger)
    with Ledger.open(f"{tmp_path}/now.sqlite") as ledger:
        Importer(Config(), ledger).run([str(tmp_path / "factory")])
        now = outcomes(ledger)
        assert [check_pilot for check_pilot in ledger.check() if check_pilot.micros] == []
        assert all(pilot_row.closed for pilot_row in ledger.pilot_rows())
    assert now == then
    failed = {job.split("#")[1]: label for job, label in now.items() if label != "exit_zero"}
    sick = {f"{1000 + of * 10 + n}.0": "early_exit" for of in SICK for n in range(4)}
    assert failed == sick | {f"{1000 + of * 10 + 2}.0": "exit_nonzero" for of in LONE}
