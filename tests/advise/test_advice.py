"""What is advised of pilots whose losses are known: by hand, and by the command of a ledger."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from gwmond.advise.gather import gather
from gwmond.advise.judge import (
    asked_line,
    losses,
    lost_line,
    overlap_lines,
    request_lines,
)
from gwmond.advise.tally import EntryTally, GroupTally, upload_of, waits
from gwmond.ledger.store import Ledger
from gwmond.model.factory.totals import FactoryKey, FactoryKind
from gwmond.model.facts import EntryKey, Size
from gwmond.model.pilot_life import Assumption, Category, Measure, Outcome, RunKey
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.poll.batch import Batch
from gwmond.model.runs.run_facts import JobFact, Source, Transfer, Used
from gwmond.model.times import HOUR_US, Period
from gwmond.model.totals import SiteKey
from gwmond.model.units import Resource
from gwmond.pilots.life.partition import partition
from gwmond.reports.stored.stored_pilot import StoredPilot
from tests.build import traced
from tests.build.command_line import gwmond
from tests.build.simulated_entry import SPREAD_S, Entry, pilots, tally
from tests.build.traced import BASE, CUT, us

KEY = EntryKey("Site-A", "entry-a")
HOUR = 3600


def test_waits_of_one_pilot() -> None:
    """Up to a job, between blocks of jobs, and at the end until it retires: that one is cut off."""
    runs = [traced.run(1, 100, 500), traced.run(2, 300, 900), traced.run(3, 1000, 1200)]
    row = traced.pilot(0, 4000, retire_us=us(3000))
    assert list(waits(StoredPilot(row, runs))) == [
        *((50, True, True), (100, True, False), (1800, False, False))
    ]
    never = traced.pilot(0, 4000, ran_jobs=False)
    assert list(waits(StoredPilot(never, ()))) == [(3950, False, True)]
    retired = traced.pilot(0, 4000, retire_us=us(40))
    assert list(waits(StoredPilot(retired, ()))) == []


def test_pilots_whose_times_or_jobs_are_not_known_have_no_waits() -> None:
    """They count as pilots, and nothing is guessed of how long they waited."""
    found = EntryTally()
    run = traced.run(1, 100, 500)
    found.add(StoredPilot(traced.pilot(assumed={Assumption.BEGIN: (us(0), us(100))}), [run]))
    found.add(StoredPilot(traced.pilot(runs_pruned=3), [run]))
    assert (found.pilots, found.untimed, found.waits[True].seen) == (2, 2, 0)


def test_what_is_inferred_of_runs_is_estimated() -> None:
    """As reports count it: not only what a rule assumes of the pilot itself."""
    found = EntryTally()
    settled: dict[tuple[Resource, Measure], int] = {("cpu", "canonical"): 400_000_000}
    for number, inferred in enumerate((False, True), 1):
        run = traced.run(number, 100, 500)
        cut = Outcome(
            Category.PREEMPTION_BADPUT, "lost_contact", "estimated" if inferred else "measured"
        )
        found.add(StoredPilot(traced.pilot(), [run._replace(outcome=cut, settled=settled)]))
    assert found.estimated == 400_000_000
    assumed = {(Assumption.BEGIN, "cpu"): 7}
    found.add(StoredPilot(traced.pilot(runs_pruned=3, assumed_micros=assumed), ()))
    assert found.estimated == 400_000_007


def test_how_long_runs_need_is_seen_through_their_cuts() -> None:
    """Exponential runs of 2 h on pilots that live for 4 h: many are cut off, none of it biases."""
    entry = Entry(short=1, short_s=20, run_s=2 * HOUR, life_s=4 * HOUR)
    line = lost_line(KEY, tally(entry, 250, 5))
    assert line is not None
    assert line.lost > 0.1 * line.runs
    half, most = line.run_s
    assert half == pytest.approx(2 * HOUR * np.log(2), rel=0.15)
    assert most is None or most == pytest.approx(2 * HOUR * np.log(10), rel=0.25)
    low, high = line.share
    assert low < line.lost / line.runs < high
    assert line.left_s[1] is not None
    assert line.left_s[1] < 4 * HOUR
    assert line.early == 0


def test_a_pilot_that_its_site_ended_early() -> None:
    """Long before the time that it had announced."""
    found = EntryTally()
    row = traced.pilot(0, 4000, die_us=us(40_000))
    found.add(StoredPilot(row, [traced.run(1, 100, 4000, CUT)]))
    line = lost_line(KEY, found)
    assert line is not None
    assert (line.runs, line.lost, line.early) == (1, 1, 1)
    assert (line.run_s, line.left_s, line.late) == ((None, None), (None, None), None)


def used_run(memory_mib: float | None, cores: float | None, size: Size, seconds: int) -> RunRow:
    run = traced.run(1, 0, seconds, used=Used(memory_mib, cores))
    return run._replace(size=size)


def test_what_requests_cost() -> None:
    """1 core and 4000 MiB are 2 units, but 1 by use; memory that comes with a core is free."""
    found = GroupTally()
    for _ in range(40):
        found.add(used_run(1000, 0.9, Size(1, 4000), HOUR), 2000)
    for _ in range(40):
        found.add(used_run(1000, 2.0, Size(4, 8000), HOUR), 2000)
    found.add(used_run(None, 1.0, Size(1, 2000), HOUR), 2000)
    found.add(used_run(1, 0.1, Size(8, 2000), 200), 2000)  # too short to be measured
    memory, cores = request_lines("group", found)
    assert (memory.runs, memory.known, cores.known) == (81, 80, 81)
    assert memory.micros == 40 * HOUR_US
    assert cores.micros == 0  # the memory of four units kept them
    assert (memory.held, memory.used, memory.used_95) == (6000, 1000, 1000)
    wide = GroupTally()
    for _ in range(40):
        wide.add(used_run(2000, 1.5, Size(8, 4000), HOUR), 2000)
    memory, cores = request_lines("group", wide)
    assert (memory.micros, cores.micros) == (0, 40 * 6 * HOUR_US)
    assert cores.interval == (1.5, 1.5)


def test_what_gpus_cost_that_do_not_compute() -> None:
    """Two GPUs of which half of one computed; who holds none has no line, whatever is measured."""
    found = GroupTally()
    one = traced.run(1, 0, HOUR, used=Used(gpus=0.5))
    for _ in range(40):
        found.add(one._replace(size=Size(1, 2000, 2)), 2000)
        found.add(one._replace(size=Size(1, 2000)), 2000)
    found.add(used_run(None, None, Size(1, 2000, 1), HOUR), 2000)
    *_, gpus = request_lines("group", found)
    assert (gpus.resource, gpus.runs, gpus.known) == ("GPUs", 41, 40)
    assert (gpus.held, gpus.used, gpus.used_95) == (2, 0.5, 0.5)
    assert (gpus.micros, gpus.of_micros) == (40 * 3 * HOUR_US // 2, 40 * 2 * HOUR_US)
    without = GroupTally()
    without.add(one._replace(size=Size(1, 2000)), 2000)
    assert len(list(request_lines("group", without))) == 2


def test_use_that_is_not_known_costs_an_unknown_amount() -> None:
    """And of a run with two records the exact one is taken."""
    found = GroupTally()
    found.add(used_run(None, None, Size(1, 4000), HOUR), 2000)
    memory, _ = request_lines("group", found)
    assert (memory.known, memory.micros, memory.used) == (0, None, None)
    run = used_run(900, 0.5, Size(1, 4000), HOUR)
    rounded = run.facts[0]._replace(source=Source.SCHEDD_HISTORY, used=Used(1100, 0.6))
    once = GroupTally()
    once.add(run._replace(facts=(rounded, *run.facts)), 2000)
    assert once.samples[0].columns.tolist() == [[4000], [900]]


def test_the_overlap_of_output_is_that_of_the_report() -> None:
    """Uploads of 10 min after an hour, new slots idle for 60 s: 12.86 %."""
    found = EntryTally()
    for number in range(25):
        run = traced.run(number + 1, 110, 110 + 4200)
        sent = Transfer(us(110 + 3600), us(110 + 3700), us(110 + 4200), 1)
        run = run._replace(facts=(run.facts[0]._replace(transfer_out=sent),))
        assert upload_of(run) == (600, 3600, 1 if number == 0 else -1)
        found.add(StoredPilot(traced.pilot(0, 9000), [run]))
    (line,) = overlap_lines(KEY, found)
    assert line.overlap is not None
    assert round(100 * line.overlap.gain, 2) == 12.86
    assert (line.group, line.runs, line.waits) == (None, 25, 25)


def test_the_overlap_of_each_accounting_group() -> None:
    """Each by its own runs, with the new slots of the entry; few runs say nothing."""
    found = EntryTally()
    groups = ["quick", "slow", "few", *(f"g{n}" for n in range(12))]
    for number, group in enumerate(groups * 25):
        if group not in groups[:2] and number >= len(groups):
            continue
        upload_s = 600 if group == "slow" else 30
        run = traced.run(number + 1, 110, 110 + 3600 + upload_s)
        sent = Transfer(None, us(110 + 3600), us(110 + 3600 + upload_s), 1)
        about = JobFact(accounting_group=group)
        fact = run.facts[0]._replace(transfer_out=sent, about_job=about)
        run = run._replace(facts=(fact,))
        found.add(StoredPilot(traced.pilot(0, 9000), [run]))
    lines = {line.group: line for line in overlap_lines(KEY, found)}
    assert list(lines) == [None, "few", *(f"g{n}" for n in range(7)), "other", "quick", "slow"]
    gains = {group: line.overlap.gain for group, line in lines.items() if line.overlap}
    percent = {group: round(100 * gain, 2) for group, gain in gains.items()}
    assert percent == {None: -0.83, "quick": -0.83, "slow": 12.86}
    assert [lines[group].runs for group in (None, "quick", "few", "other")] == [63, 25, 1, 5]


def settled(pilot: StoredPilot) -> StoredPilot:
    """With its time in the categories, as the accounting posts it."""
    amounts: Counter[tuple[Resource, Measure, Category, str]] = Counter()
    for row, micros in partition(pilot.life).settled.items():
        amounts[row.resource, row.measure, row.category, row.outcome] += micros
    return StoredPilot(pilot.row._replace(settled=dict(amounts)), pilot.runs, pilot.as_of)


def test_losses_are_disjoint() -> None:
    """With the time that jobs used they are all time; the largest is first."""
    found = EntryTally()
    for pilot in pilots(Entry(), 60, 2):
        found.add(settled(pilot))
    made = losses({KEY: found}, {"group": GroupTally()})
    assert [loss.micros for loss in made] == sorted((loss.micros for loss in made), reverse=True)
    good = found.amounts[Category.GOODPUT]
    assert sum(loss.micros for loss in made) + good == made[0].of_micros
    never = asked_line(KEY, found, None, None)
    problem = next(loss for loss in made if loss.cause == Category.DECISION_PROBLEM)
    assert never.never_micros == problem.micros
    assert never.never + found.ran == never.known == 60
    assert never.cores is not None
    assert 0 < never.cores < 1


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger with two entries: one of 150 pilots, one of 5; and what was asked for."""
    place = str(tmp_path_factory.mktemp("advise") / "ledger.sqlite")
    rows: list[PilotRow] = []
    runs: list[RunRow] = []
    for name, number in (("entry-a", 150), ("entry-b", 5)):
        for pilot in map(settled, pilots(Entry(), number, 4)):
            at = len(rows) + 1
            identity = pilot.identity._replace(key=EntryKey("Site-A", name), name=f"g{at}@wn")
            rows.append(pilot.row._replace(id=at, identity=identity))
            for run in pilot.runs:
                key = RunKey(f"ap#{len(runs)}.0#1", 1)
                fact = run.facts[0]._replace(job=key.job, used=Used(500, 0.5))
                runs.append(run._replace(pilot=at, key=key, facts=(fact,)))
    hour = BASE // HOUR + 2
    watched = FactoryKey(hour, "entry-a", "frontend.main", FactoryKind.ASKED_IDLE_WATCHED_SECONDS)
    asked = watched._replace(kind=FactoryKind.ASKED_IDLE_SECONDS)
    with Ledger.open(place) as ledger:
        ledger.commit(Batch(0, 0, tuple(rows), tuple(runs), factory={watched: 3600, asked: 25_200}))
    return place


PERIOD = "--from", str(BASE), "--to", str(BASE + 2 * SPREAD_S)


def test_the_command_advises(url: str) -> None:
    """In JSON every line, with what it rests on; null where there is too little data."""
    done = gwmond("advise", "--ledger", url, *PERIOD, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["pilots_ended"], found["interval"]) == (155, 0.9)
    lines = {(line["entry"], line["setting"]): line for line in found["idle_timeouts"]}
    many, few = lines["entry-a", "GLIDEIN_Max_Idle"], lines["entry-b", "GLIDEIN_Max_Idle"]
    assert many["best_seconds_low"] <= Entry().best(1200, first=True) <= many["best_seconds_high"]
    assert many["gave_up_after_seconds"] == 1200
    assert many["saves_seconds_low"] <= many["saves_seconds"] <= many["saves_seconds_high"]
    assert (few["waits"], few["best_seconds"], few["saves_seconds"]) == (5, None, None)
    asked = {line["entry"]: line for line in found["pilots"]}
    assert (asked["entry-a"]["asked_idle"], asked["entry-b"]["asked_idle"]) == (7, None)
    assert asked["entry-a"]["waiting"] is None
    total = found["settled_canonical_seconds"]
    assert sum(loss["canonical_seconds"] for loss in found["losses"]) < total
    memory = next(line for line in found["requests"] if line["of"] == "memory (MiB)")
    assert (memory["group"], memory["used_95_percent"]) == ("frontend.main", 500)


def test_entries_of_one_name_at_two_sites(url: str) -> None:
    """The factory's numbers do not say which of them was asked for: neither is known."""
    with Ledger.open(url) as ledger:
        alone = gather(ledger, Period(us(0), us(2 * SPREAD_S))).asked
        there = SiteKey("cpu", "provisioned", "", "Site-B", KEY.entry)
        spent = {(BASE // HOUR + 2, there): 1}
        ledger.commit(Batch(1, 0, site_time=spent))
        both = gather(ledger, Period(us(0), us(2 * SPREAD_S))).asked
    assert {line.key: line.asked for line in alone}[KEY] == 7
    assert {line.key: line.asked for line in both}[KEY] is None


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_the_command_for_people(url: str, form: str) -> None:
    """The largest losses in words; what too few pilots say is counted, not shown."""
    done = gwmond("advise", "--ledger", url, *PERIOD, "--format", form)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert text.count("canonical hours (") == 3
    assert "155 pilots that ended" in text
    assert "That is too little data" not in text
    assert "GLIDEIN_Max_Tail" in text
    assert "with too little data" in text


def test_the_command_of_one_entry_and_of_none(url: str) -> None:
    """Places choose; a period in which nothing ended says so, and why."""
    done = gwmond("advise", "--ledger", url, *PERIOD, "--entry", "entry-b")
    assert "5 pilots" in done.stdout
    assert "That is too little data: 5 pilots of the period, 10 are needed" in done.stdout
    lines = done.stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("Idle timeouts"))
    assert lines[at + 1].endswith("too little data: JSON has them.")
    assert lines[at + 2] == ""
    assert "Runs that the end" in done.stdout
    none = gwmond("advise", "--ledger", url, "--from", "1600000000", "--to", "1600003600")
    assert none.returncode == 0
    assert "No pilot ended" in none.stdout
    assert "no pilot ended in this period" in none.stderr
    unknown = gwmond("advise", "--ledger", url, *PERIOD, "--site", "Nowhere")
    assert "knows no pilot at all of --site Nowhere" in unknown.stderr
