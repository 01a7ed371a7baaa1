"""Incidents of jobs: what gwmond explain says of one (docs/truth.md).

The facts are feigned, and given to the real functions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gwmond.explain.answers import answers
from gwmond.explain.document import document, first_line
from gwmond.explain.past import runs_record
from gwmond.explain.reasons import Mover
from gwmond.explain.situation import EarlierRun, Situation
from gwmond.ledger.store import Ledger
from gwmond.model.demand.waiting_job import Examined, JobPlace
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Category, Outcome
from gwmond.model.runs.phases import Phases
from gwmond.model.states import State
from gwmond.model.times import SECOND_US
from gwmond.reports.render.writing import text
from gwmond.service.pool.explainer import runs_of_job
from tests.build import pilot_ledger
from tests.build.waiting import place, row, waiting_job

NOW = 100_000.0
ICTS, OTHER = EntryKey("ICTS", "icts-ce1"), EntryKey("Other", "other-ce1")
TRANSFER = Outcome(Category.UNCLASSIFIED, "transfer_input_failed", "measured")
EVICTED = Outcome(Category.UNCLASSIFIED, "preempted", "measured")
CUT_OFF = Outcome(Category.PREEMPTION_BADPUT, "pilot_shutdown", "measured")
DONE = Outcome(Category.GOODPUT, "exit_zero", "measured")


def said(*places: JobPlace, **changed: Any) -> Situation:
    return Situation(Examined(waiting_job(**changed), places), {}, NOW)


def runs(number: int, length_s: int, outcome: Outcome | None, *keys: EntryKey) -> list[EarlierRun]:
    """So many runs, one after the other, at these entries in turn; the latest first."""
    found = []
    for run in range(number):
        start_us = round(NOW - (run + 1) * length_s) * SECOND_US
        key = keys[run % len(keys)]
        found.append(EarlierRun(start_us, start_us + length_s * SECOND_US, key, "wn1", outcome))
    return found


def test_4_one_clause_leaves_almost_no_pilots() -> None:
    """What would open most is named, also of a job that runs at some busy sites."""
    texts = "HAS_LIGO_FRAMES =?= True", 'Arch == "X86_64"', "TARGET.Memory >= RequestMemory"
    keys = [EntryKey(f"S{number}", f"e{number}") for number in range(62)]
    there = [place(entry=key) for key in keys[:2]]
    blocked = [place(entry=key, blocked=(0,)) for key in keys[2:60]]
    both = [place(entry=key, blocked=(0, 1)) for key in keys[60:]]
    busy = dict.fromkeys(keys[:2], row(state=State.FULL.value, registered_pilots=3))
    free = dict.fromkeys(keys[2:42], row(state=State.INSUFFICIENT_DEMAND, capacity_units=100))
    others = dict.fromkeys(keys[42:], row(state=State.INSUFFICIENT_DEMAND, capacity_units=0))
    job = waiting_job(clauses=texts, since=0)
    here = Situation(Examined(job, (*there, *blocked, *both)), busy | free | others, NOW)
    first = answers(here)[0]
    assert (first.name, first.mover) == ("pilots_busy", Mover.WAIT)
    said = "Without HAS_LIGO_FRAMES =?= True 58 more kinds of pilots match (4000 canonical units)"
    assert first.change.endswith(said)
    assert "without HAS_LIGO_FRAMES =?= True" in text(document(here), "text")
    few = Situation(Examined(job, (*there, *blocked[:2])), busy | free, NOW)
    assert "Without" not in answers(few)[0].change, "as many match already"


@pytest.mark.parametrize(
    ("job", "begin", "mover"),
    [
        ({"status": 1, "runs": 15}, "NOT RUNNING for 1d03h.", None),
        ({"status": 2, "runs": 16, "since": 99_996}, "RUNNING for 4s.", Mover.SITE),
    ],
)
def test_13_a_transfer_black_hole(job: dict[str, Any], begin: str, mover: Mover | None) -> None:
    """The job's own runs tell of the site, before whatever it does just now."""
    here = said(place(), **job)
    now = [EarlierRun(99_996 * SECOND_US, None, ICTS, "wn1", None)] if job["status"] == 2 else []
    here.earlier = [*now, *runs(15, 480, TRANSFER, ICTS)]
    first = answers(here)[0]
    whole = "Its last 15 runs in the ledger, all at ICTS, failed in stage-in, half of them within "
    assert first_line(here, first).startswith(f"{begin} {whole}8m00s. ")
    if mover is not None:
        assert (first.mover, first.change) == (mover, "What ends its runs (gwmond trace)")
    shown = text(document(here), "text")
    assert "transfer input failed" in shown
    assert "Its runs, as the ledger has them" in shown
    records = runs_record(here)
    assert (len(records), records[-1]["site"]) == (len(here.earlier), "ICTS")


def test_e11_a_job_that_is_evicted_all_the_time() -> None:
    """Not only "RUNNING. Nothing.": its runs at several sites end, and the move is the user's."""
    here = said(status=2, runs=41, since=99_998)
    here.earlier = runs(40, 8, EVICTED, ICTS, OTHER)
    first = answers(here)[0]
    assert first_line(here, first) == (
        "RUNNING for 2s. Its last 40 runs in the ledger, at 2 sites, ended as preempted, half of "
        "them within 8s. It is running."
    )
    assert first.mover is Mover.YOU


@pytest.mark.parametrize(
    "earlier",
    [
        [],
        runs(1, 8, EVICTED, ICTS),
        [*runs(1, 8, TRANSFER, ICTS), *runs(3, 8, EVICTED, ICTS)],
        runs(5, 8, DONE, ICTS),
        runs(2, 8, None, ICTS),
    ],
    ids=["none", "one", "others before", "completed", "not over"],
)
def test_nothing_is_said_of_runs_that_do_not_end_alike(earlier: list[EarlierRun]) -> None:
    here = said(status=2, runs=5, since=99_998)
    here.earlier = earlier
    first = answers(here)[0]
    assert first_line(here, first) == "RUNNING for 2s: It is running."
    assert first.mover is Mover.WAIT


def test_the_ledger_has_the_runs_of_a_job(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    pilot_ledger.write(url)
    with Ledger.open(url) as ledger:
        (job,) = ledger.jobs_numbered("3.0", "", 9)
        (run,) = runs_of_job(ledger, job)
        assert not runs_of_job(ledger, "ap#9.9#9")
    assert (run.entry.site, run.entry.entry, run.outcome) == ("Site-A", "entry-a", run.outcome)
    assert run.outcome is not None
    assert run.outcome.label == "pilot_shutdown"
    assert isinstance(run.phases, Phases)


def test_19_it_runs_for_longer_than_it_says() -> None:
    """Its pilots end first, as START goes by what it says: the move is the user's."""
    long = {"walltime_s": 8 * 3600, "walltime_by": "MaxWallTimeMins"}
    here = said(status=2, runs=4, since=99_000, **long)
    here.earlier = runs(3, 9 * 3600, CUT_OFF, ICTS, OTHER)
    first = answers(here)[0]
    assert first_line(here, first).startswith(
        "RUNNING for 16m40s. Its last 3 runs in the ledger, at 2 sites, ended as pilot shutdown, "
        "half of them after 9h00m; it says that it runs for 8h00m. "
    )
    assert first.mover is Mover.YOU
    assert first.change.startswith("A longer MaxWallTimeMins")
    here.earlier = runs(3, 7 * 3600, CUT_OFF, ICTS, OTHER)
    assert "it says" not in first_line(here, answers(here)[0])
    here.earlier = runs(3, 9 * 3600, EVICTED, ICTS, OTHER)
    assert "it says" not in first_line(here, answers(here)[0])


def test_30_twenty_minutes_of_nothing_after_a_transfer() -> None:
    """The phases of each run are listed: which began, and how long it lasted."""
    here = said(status=1, runs=2)
    (one,) = runs(1, 1230, Outcome(Category.UNCLASSIFIED, "starter_lost", "measured"), ICTS)
    here.earlier = [one._replace(phases=Phases(stage_in_us=1230 * SECOND_US))]
    shown = text(document(here), "text")
    assert "stage in 20m30s" in shown
    assert runs_record(here)[0]["phases"] == {"stage_in": 1230.0}


def test_23_suspended_for_ever() -> None:
    """A run that ended as the job was suspended left its status: the job is offered no more."""
    gone = said(status=7, has_host=False, vacated=92_800)
    first = answers(gone)[0]
    assert (first.name, first.mover) == ("not_offered", Mover.YOU)
    assert first.text == (
        "It says that it is suspended, but no slot has it: its run ended 2h00m ago"
    )
    assert "condor_release" in first.change
    assert answers(said(status=7, has_host=True, vacated=92_800))[0].name == "running"
    assert answers(said(status=7, has_host=False))[0].name == "running"
