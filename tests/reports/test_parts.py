"""The parts of a pilot's life, whose lengths are set here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gwmond.ledger.store import Ledger
from gwmond.model.facts import Size
from gwmond.model.pilot_life import Category, Outcome, RunKey, Validation
from gwmond.model.pilots.pilot_facts import AdFacts, Origin, PilotFacts
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.runs.run_facts import RunFact, Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import Rules
from gwmond.reports.report.groupings import parse_by
from gwmond.reports.stored.parts import LifePart, by_part
from gwmond.reports.stored.stored_pilot import StoredPilot
from tests.build.accounting import Steps
from tests.build.ended import LIFE, ORIGIN, pilot
from tests.build.play import POLL_S, T0, record, shown

MINUTE = 60 * SECOND_US
WHOLE = LIFE // MINUTE
CORES = 4


def run(begin: int, end: int, number: int = 1, cores: float = CORES) -> RunRow:
    """A run that completed, in minutes of the pilot's life."""
    times = ORIGIN + begin * MINUTE, ORIGIN + end * MINUTE
    return RunRow(
        pilot=1,
        key=RunKey(f"ap#{number}.0#1", 1),
        start_us=times[0],
        end_us=times[1],
        size=Size(cores, 2000 * cores),
        user="eve",
        job_group="",
        outcome=Outcome(Category.GOODPUT, "exit_zero"),
        result="",
        open=False,
        settled={},
        facts=(RunFact(Source.EPOCH_HISTORY, f"ap#{number}.0#1", 1, times[1]),),
    )


def lasted(*runs: RunRow, **changes: object) -> Mapping[str, float]:
    """How many minutes each part has of a pilot of four hours; ``jobs`` are left out."""
    own = ("cpu", "canonical", Category.PILOT_OVERHEAD, "")
    held = sum((r.end_us - r.start_us) * int(r.size.cores) for r in runs if r.end_us is not None)
    settled = {own: CORES * LIFE - held, ("cpu", "canonical", Category.GOODPUT, "exit_zero"): held}
    row = pilot(settled=settled, retire_us=None, ran_jobs=bool(runs))
    row = row._replace(validation=Validation.PASSED)._replace(**changes)  # type: ignore[arg-type]
    found = by_part(StoredPilot(row, runs))
    assert sum(sum(part.values()) for part in found.values()) == CORES * LIFE
    return {
        part.value: sum(settled.values()) / CORES / MINUTE
        for part, settled in found.items()
        if part is not LifePart.JOBS
    }


def test_each_minute_is_in_one_part() -> None:
    """Jobs from 30 to 60 and 70 to 100; of the second one core is left; it retires at 150."""
    runs = run(30, 60), run(70, 100, 2, cores=3)
    times = {"validation_end_us": ORIGIN + 5 * MINUTE, "retire_us": ORIGIN + 150 * MINUTE}
    assert lasted(*runs, **times) == {
        "validation": 5,
        "first_job": 25,
        "between_jobs": 10,
        "beside_jobs": 30 / CORES,
        "tail": 50,
        "retirement": WHOLE - 150,
    }


def test_a_pilot_without_a_job_waits_for_its_first_until_it_retires() -> None:
    """Before that it starts, as nobody says how long it validated."""
    ads = AdFacts(ORIGIN, began_us=ORIGIN + 20 * MINUTE)
    facts, retire_us = PilotFacts(ads=ads), ORIGIN + 60 * MINUTE
    assert lasted(retire_us=None) == {"first_job": WHOLE}
    after = {"first_job": 40, "retirement": WHOLE - 60}
    assert lasted(retire_us=retire_us, facts=facts) == {"start": 20} | after


def test_jobs_after_retirement() -> None:
    """What a job leaves after the pilot has retired, and all after its last job, is of that."""
    found = lasted(run(0, 200, cores=2), retire_us=ORIGIN + 100 * MINUTE)
    assert found == {"beside_jobs": 50, "retirement": 50 + WHOLE - 200}


@pytest.mark.parametrize(
    ("ended", "parts_"),
    [(5, {"validation": 5, "asleep": WHOLE - 5}), (None, {"?": WHOLE})],
)
def test_a_validation_that_failed(ended: int | None, parts_: Mapping[str, float]) -> None:
    """The pilot sleeps until it ends; where nobody says when it failed that is not known."""
    end_us = None if ended is None else ORIGIN + ended * MINUTE
    assert lasted(validation=Validation.FAILED, validation_end_us=end_us) == parts_


def test_time_that_is_not_settled_is_in_no_part() -> None:
    """A run awaits its outcome: of the 150 minutes without it each stays in its part."""
    waits = run(100, 160, 2, cores=2)._replace(outcome=None)
    own = ("cpu", "canonical", Category.PILOT_OVERHEAD, "")
    done = ("cpu", "canonical", Category.GOODPUT, "exit_zero")
    settled = {own: CORES * 150 * MINUTE, done: CORES * 30 * MINUTE}
    row = pilot(settled=settled, retire_us=None, ran_jobs=True, validation=Validation.PASSED)
    found = by_part(StoredPilot(row, (run(30, 60), waits)))
    assert {
        part.value: sum(amounts.values()) / CORES / MINUTE for part, amounts in found.items()
    } == {
        "first_job": 30,
        "between_jobs": 40,
        "tail": 80,
        "jobs": 30,
    }


@pytest.mark.parametrize(("origin", "part"), [("files", "?"), ("jobs", "first_job")])
def test_where_nobody_says_when_a_pilot_began_to_wait(origin: Origin, part: str) -> None:
    """Known from files alone it had to validate; known from jobs it begins with its startd."""
    identity = pilot().identity._replace(origin=origin)
    found = lasted(run(30, 60), identity=identity, facts=PilotFacts())
    assert found == {part: 30, "tail": WHOLE - 60}


@pytest.mark.parametrize("by", ["part,user", "category,part", "phase,part", "part,transfer"])
def test_runs_have_no_parts(by: str) -> None:
    with pytest.raises(ValueError, match="a run has one part only"):
        parse_by(by)


def test_where_jobs_are_not_known_neither_are_the_parts() -> None:
    """Retention took runs out: all after the validation."""
    times = {"validation_end_us": ORIGIN + 5 * MINUTE}
    assert lasted(run(30, 60), runs_pruned=1, **times) == {"validation": 5, "?": WHOLE - 5 - 30}


def test_a_report_by_part(tmp_path: Path, printed: Callable[..., str]) -> None:
    """The lines sum up to all time; the jobs are a line, and the runs are in it."""
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(str(path)) as ledger:
        steps = Steps(PilotAccounting(ledger.load(), Rules(refresh_us=0)), ledger)
        for second in range(0, 3 * 3600, POLL_S):
            now = (T0 + second) * SECOND_US
            alive = [shown(heard=second)] if second < 1200 else []
            steps.add_ads(now, POLL_S * SECOND_US, alive, complete=True)
            steps.add_records([record("1.0", 100, 700)] if second == 900 else [])
            steps.settle(now, now - 120 * SECOND_US)
            steps.store(now)
    period = "--from", "2023-11-14", "--to", "2023-11-16", "--format", "json"
    found = json.loads(printed("report", "--ledger", path, "--by", "part", *period))
    groups = {group["part"]: group for group in found["groups"]}
    assert groups.keys() >= {"jobs", "first_job", "tail"}
    assert groups["first_job"]["total"]["cpu"]["resource_seconds"] == 100 * CORES
    amounts = [group["total"]["cpu"]["canonical_seconds"] for group in groups.values()]
    assert sum(amounts) == found["total"]["total"]["cpu"]["canonical_seconds"]
    assert [group["runs_ended"] for group in groups.values()].count(0) == len(groups) - 1
    assert groups["jobs"]["runs_ended"] == found["total"]["runs_ended"] == 1
    assert found["total"]["pilots_ended"] == 1
