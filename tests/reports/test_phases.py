"""The time of runs by phase, and by transfers that failed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gwmond.ledger.store import Ledger
from gwmond.model.pilots.stored_pilots import RunFilter
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.phases import FailedTransfer
from gwmond.model.runs.run_facts import JobRecord, Transfer
from gwmond.model.times import SECOND_US, Period
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import Rules
from gwmond.reports.ledger.ledger_reading import dated_for_page
from gwmond.reports.pilots.runs import run_list
from gwmond.reports.render import writing
from gwmond.reports.render.formats import flatten
from gwmond.reports.stored import phases
from tests.build.accounting import Steps
from tests.build.play import DONE, POLL_S, T0, record, shown
from tests.build.web import with_ledger


def at(seconds: int) -> int:
    """A time (us), in seconds from T0."""
    return (T0 + seconds) * SECOND_US


def staged(job: str, ending: Ending = DONE, *, known: bool = True) -> JobRecord:
    """A run from 100 s to 700 s: 150 s of input, 390 s of program, 50 s of output, 10 s of rest."""
    made = record(job, 100, 700, ending=ending)
    if not known:
        return made
    fact = made.fact._replace(
        transfer_in=Transfer(at(100), at(220), at(250), total=5000),
        executing_us=at(250),
        transfer_out=Transfer(None, at(640), at(690), total=700),
    )
    return made._replace(fact=fact)


def written(path: Path) -> None:
    """Three runs on a pilot: one whole, one of which no phase is known, one that failed."""
    failed = Ending(over=True, hold_code=12, failed_transfer="output root se.org", began=True)
    runs = [staged("1.0"), staged("2.0", known=False), staged("3.0", failed)]
    with Ledger.open(str(path)) as ledger:
        steps = Steps(PilotAccounting(ledger.load(), Rules(refresh_us=0)), ledger)
        for second in range(0, 3 * 3600, POLL_S):
            now = at(second)
            alive = [shown(heard=second)] if second < 1200 else []
            steps.add_ads(now, POLL_S * SECOND_US, alive, complete=True)
            steps.add_records(runs if second == 900 else [])
            steps.settle(now, at(second - 120))
            steps.store(now)


def test_a_report_by_phase_and_by_transfer(tmp_path: Path, printed: Callable[..., str]) -> None:
    """Seconds of each phase; what no record has is in the group of the rest; the sums are whole."""
    path = tmp_path / "ledger.sqlite"
    written(path)

    def report(by: str) -> tuple[dict[str, tuple[float, int]], dict[str, object]]:
        period = "--from", "2023-11-14", "--to", "2023-11-16"
        found = json.loads(
            printed("report", "--ledger", path, "--by", by, "--format", "json", *period)
        )
        groups = {
            group[by]: (group["total"]["cpu"]["resource_seconds"], group["runs_ended"])
            for group in found["groups"]
        }
        return groups, found["total"]

    groups, total = report("phase")
    assert groups == {
        "execute": (780.0, 2),
        "stage_in": (300.0, 2),
        "stage_out": (100.0, 2),
        "": (620.0, 3),
    }
    assert (total["runs_ended"], sum(seconds for seconds, _ in groups.values())) == (3, 1800.0)
    groups, _ = report("transfer")
    assert groups == {"": (1200.0, 2), "output root://se.org": (600.0, 1)}


def test_parts_of_a_run_sum_up(tmp_path: Path) -> None:
    """In micros, exactly."""
    path = tmp_path / "ledger.sqlite"
    written(path)
    with Ledger.open(str(path)) as ledger:
        for row in [row for rows in ledger.runs_of([1]).values() for row in rows]:
            parts = phases.divided(row)
            for kind, micros in row.settled.items():
                assert sum(part[kind] for part in parts.values()) == micros


def test_listed_runs_have_the_phases_of_their_pilot(
    tmp_path: Path, run: Callable[..., tuple[int, str, str]]
) -> None:
    """By the same names as in a pilot's life; null where no record has them."""
    path = tmp_path / "ledger.sqlite"
    written(path)
    now_us, wanted = at(3 * 3600), Period(at(0), at(3600))
    with dated_for_page(with_ledger(str(path)), now_us) as (ledger, age):
        document = run_list(ledger, age, RunFilter(wanted), 10).document
        empty = run_list(ledger, age, RunFilter(Period(0, 1)), 10).document
    found: Any = document.record()
    header, *rows = csv.reader(io.StringIO(writing.text(document, "csv")))
    assert [dict(zip(header, row, strict=True))["job"] for row in rows] == [
        run["job"] for run in found["runs"]
    ]
    assert {name for run in found["runs"] for name in flatten(run)} - {*header} == {
        "failed_transfer"  # in CSV by its parts
    }
    assert writing.text(empty, "csv") == ",".join(header) + "\n"
    code, text, _ = run("pilot", "1", "--ledger", path, "--format", "json")
    assert code == 0
    names = [f"{name}_seconds" for name in ("stage_in", "execute", "stage_out")]
    names += ["transfer_queued_in_seconds", "transfer_queued_out_seconds"]
    names += ["bytes_in", "bytes_out", "failed_transfer"]
    ours, theirs = (
        {one["job"]: [one[name] for name in names] for one in runs}
        for runs in (json.loads(json.dumps(found))["runs"], json.loads(text)["runs"])
    )
    assert ours == theirs
    failed = FailedTransfer("output", "root", "se.org")._asdict()
    assert sorted(ours.values(), key=repr) == [
        [150.0, 390.0, 50.0, 120.0, 0.0, 5000, 700, None],
        [150.0, 390.0, 50.0, 120.0, 0.0, 5000, 700, failed],
        [None] * 8,
    ]
