"""Ledgers with runs of jobs that are settled, and wait to be exported as traces."""

from __future__ import annotations

import time

from gwmond.ledger.store import Ledger
from gwmond.model.facts import Size
from gwmond.model.pilot_life import Category, Outcome, RunKey
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.poll.batch import Batch, Settled
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobFact, RunFact, Source
from tests.ledger.pilot_batches import HOUR, MINUTE, ORIGIN, identity, pilot_at

GOOD = Outcome(Category.GOODPUT, "exit_zero")
PILOT = 2


def job_name(number: int) -> str:
    return f"ap1.example.org#{number}.0#1700000000"


def settled_run(
    number: int, outcome: Outcome | None = GOOD, about: JobFact | None = None, user: str = "ada"
) -> RunRow:
    """The only run of a job that has left, two minutes long; None: it is not decided."""
    job, start_us = job_name(number), ORIGIN + HOUR + number * 1000
    end_us = start_us + 2 * MINUTE
    left = about or JobFact(queued_us=start_us - MINUTE, left_us=end_us, status=4)
    size = Size(1, 2000, 0)
    told = ("name", start_us, end_us, size, user, "group")
    ending = Ending(over=True, completed=True, exit_code=0, began=True)
    fact = RunFact(
        *(Source.SCHEDD_HISTORY, job, 1, end_us, *told, ending),
        executing_us=start_us + 10_000_000,
        about_job=left,
    )
    return RunRow(
        pilot=PILOT,
        key=RunKey(job, 1),
        start_us=start_us,
        end_us=end_us,
        size=size,
        user=user,
        job_group="group",
        outcome=outcome,
        result="succeeded",
        open=outcome is None,
        settled={},
        facts=(fact,),
    )


def commit_runs(ledger: Ledger, rows: list[RunRow], stored_us: int | None = None) -> None:
    """Store a batch that settles these runs, on one pilot, now or when it is said."""
    pilot = pilot_at(PILOT, ORIGIN + 24 * HOUR)
    assert pilot is not None
    ledger.commit(
        Batch(
            before=ledger.load_sites().batches,
            now_us=ORIGIN + 24 * HOUR,
            pilots=(pilot.row._replace(identity=identity(PILOT)),),
            runs=tuple(rows),
            settled=tuple(Settled(row.pilot, *row.key) for row in rows if not row.open),
            stored_us=time.time_ns() // 1000 if stored_us is None else stored_us,
        )
    )


def commit_jobs(
    ledger: Ledger, first: int, last: int, stored_us: int | None = None
) -> list[RunRow]:
    """Store a batch that settles a run of each of the jobs first ... last."""
    rows = [settled_run(number) for number in range(first, last + 1)]
    commit_runs(ledger, rows, stored_us)
    return rows
