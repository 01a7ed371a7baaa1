"""Jobs of which a pilot's statistics, or its factory's summary, are all that is known."""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.file_facts import CompletedPilot, FileFact, Jobs, JobStatistics, PilotName
from gwmond.model.runs.run_facts import JobRecord, Source
from gwmond.pilots.factory.job_sums import Sums, of_line, of_statistics, tells_jobs
from tests.build.pilot_files import SIZE, line, lost, output
from tests.build.play import Play, record
from tests.build.playbook import Playbook, playbooks
from tests.build.played import only, runs_counted

STATISTICS = JobStatistics(Jobs(31, 700), good_zero=Jobs(20, 400), good_nonzero=Jobs(5, 100))
RAN = {"goodput": 600.0, "pilot_overhead": 4 * 1200.0 - 600}


def run(**more: Any) -> JobRecord:
    """A run of a job on it, from 100 to 700."""
    return record("1.0", 100, 700, **more)


LOST = "output 0-1200 logs=no condor_start=60 condor_end=1190"
"""The stdout of a pilot whose stderr is lost; HTCondor ran from 60 to 1190."""
PLAYBOOKS = f"""
Its statistics tell of jobs: what ended by itself is goodput; none of it is a run, or measured
  {LOST} statistics=busy activations=31; done 2000
  -> time goodput 2000, pilot_overhead 2000, unclassified 800; assumed jobs 60-1190;
  counted pilots 1;
  evidence goodput estimated, pilot_overhead estimated, pilot_overhead measured,
  unclassified estimated

Its summary says the same
  {LOST} statistics=busy activations=31; summary 1300 1200 jobs=31 jobs_s=700 idle=400; done 2000
  -> time goodput 2000, pilot_overhead 2000, unclassified 800; assumed jobs 60-1190;
  contradictions

Only the number of claims is told: jobs ran for a time that nothing tells
  {LOST} activations=31; done 2000
  -> time pilot_overhead 280, unclassified 4520; assumed jobs 60-1190

Also where the statistics have no job
  {LOST} activations=31 statistics=idle; done 2000
  -> time pilot_overhead 280, unclassified 4520; assumed jobs 60-1190

Jobs of no whole second ran: it is no decision problem, though their numbers are cut to 0 s
  {LOST} statistics=short; done 2000
  -> time pilot_overhead 4796, unclassified 4

The same in a summary
  queue 0-1200; summary 1300 1200 jobs=1; done 2000
  -> time pilot_overhead 4796, unclassified 4

Nothing tells whether jobs ran: without statistics and a log it cannot be said that none did
  {LOST}; done 2000
  -> time unclassified 4800; assumed validation 0-1200; evidence unclassified estimated

What is no log of HTCondor tells nothing either
  {LOST} logs=xml; done 2000
  -> time unclassified 4800; assumed validation 0-1200

A whole output tells that none ran: by its statistics
  {LOST} statistics=idle; done 2000
  -> time decision_problem 4800; evidence decision_problem measured

By the claims
  {LOST} activations=0; done 2000
  -> time decision_problem 4800; evidence decision_problem measured

Or as no log of a starter is among HTCondor's logs
  {LOST} logs=startd; done 2000
  -> time decision_problem 4800; evidence decision_problem measured

One that is cut does not
  output 0- logs=startd condor_start=60 condor_end=1190; done 2000
  -> time unclassified 4760

Only the summary tells of jobs
  any {LOST} | summary 1300 1200 jobs=3 jobs_s=500 terminated_s=400 idle=500
  -> time goodput 1600, pilot_overhead 2520, unclassified 680; assumed jobs 60-1200

A pilot that a collector has shown, of whose jobs no history told, until a record comes
  ad 300-1200 glidein@node started=300 job=factory#7.0; rest 1260 1; {LOST} statistics=busy;
  done 6000; = time goodput 2000, pilot_overhead 2000, unclassified 800;
  none 90000 with record 1.0 100-700 started=300 startd=glidein@node; rest 90060
  -> time goodput 600, pilot_overhead 4200

A summary that differs on whether jobs ran: the output is believed, the contradiction counted once
  any {LOST} statistics=idle | summary 1300 1200 jobs=31 jobs_s=1860 | {LOST} statistics=idle
  -> contradictions summary_jobs 1; time decision_problem 4800

It does not differ
  any {LOST} statistics=idle | summary 1300 1200 jobs=0
  -> contradictions; time decision_problem 4800

Nor where both have jobs
  any {LOST} statistics=busy | summary 1300 1200 jobs=31 jobs_s=1860
  -> contradictions

It does where only the output has
  any {LOST} statistics=busy | summary 1300 1200 jobs=0
  -> contradictions summary_jobs 1

Or a run
  any {LOST} with record 1.0 100-700 startd= source=startd_history | summary 1300 1200 jobs=0
  -> contradictions summary_jobs 1

Not where the output tells nothing of jobs
  any {LOST} | summary 1300 1200 jobs=31 jobs_s=1860
  -> contradictions

Nor of none
  any {LOST} | summary 1300 1200 jobs=0
  -> contradictions
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS))
def test_jobs_that_only_numbers_tell_of(playbook: Playbook) -> None:
    playbook.check()


@pytest.mark.parametrize("summary", [(), (line(1300, 1200, jobs=3, jobs_s=500),)])
@pytest.mark.parametrize("statistics", [STATISTICS, None])
def test_a_run_that_becomes_known_takes_their_place(
    summary: tuple[FileFact, ...], statistics: JobStatistics | None
) -> None:
    """From a history, or from its own output with its logs, sooner or later, told twice or not."""
    name = output().name._replace(startd="glidein")
    short = lost(jobs=statistics, name=name)
    whole = short._replace(records=(run(source=Source.STARTD_HISTORY, startd=""),), logs=("x",))
    for other in (whole, run()):
        for facts in permutations([short, other, short, *summary]):
            play = Play()
            for number, fact in enumerate(facts):
                at = 2000 + number * 60_000
                if isinstance(fact, JobRecord):
                    play.poll(at, records=[fact])
                    play.rest(at + 60)
                else:
                    play.add_facts([fact], SIZE)
                    play.poll(at)
                    play.rest(at + 60, hours=3)
                if number == 1:
                    play.restart()
            assert play.seconds() == RAN
            assert runs_counted(play) == 1
            assert "summarised" not in {series.outcome for series in play.series()}
            assert Assumption.JOBS not in only(play).assumed
            play.stored.prove()


CONDOR = 8000


class Ran(NamedTuple):
    """What a pilot's jobs did: the seconds of those that ended with 0, by themselves, and all."""

    zero: int
    ended: int
    every: int


def summary(**record: int | None) -> CompletedPilot:
    """A pilot of 8300 s; its HTCondor ran for 8000 s."""
    made = CompletedPilot(
        "", PilotName(), 0, 8300, True, CONDOR, 1, None, None, None, 12, None, 0, 0
    )
    return made._replace(**record)  # type: ignore[arg-type]


def written(ran: Ran, cores: int, *, mixed: bool) -> CompletedPilot:
    """As a factory writes it since v3.10.12 (``mixed``), or before; FM:1069-1158."""
    total = ran.every if mixed else ran.every // cores
    good = min(ran.zero // cores, total)
    ended = min(good + (ran.ended - ran.zero) // cores, total)
    idle = int(1000 * (CONDOR - total) / CONDOR)
    return summary(jobs_s=total, goodput_s=good, terminated_s=ended, idle=idle)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((4000, 500, 500), Sums(500, 500)),  # one job of one core for half the time
        ((32_000, 4000, -3000), Sums(4000, 4000)),  # four
        ((4000, 4000, 500), Sums(4000, 4000)),  # the same four, by an older factory
        ((32_000, 0, -3000), Sums(4000, 0)),  # four that were killed
        ((64_000, 1000, -7000), Sums(8000, 1000)),  # eight, of which most were killed
        ((None, 500, 500), Sums(500, 500)),  # the idle part has the same sum
        ((None, 4000, -3000), Sums(4000, 4000)),
        ((None, 4000, 500), Sums(4000, 4000)),
        ((9600, 9500, -200), Sums(9600, 9500)),  # divided, with more slots than cores
        ((32_000, 32_000, -3000), Sums(4000, 4000)),  # nothing is divided
        ((32_000, 5000, -3000), Sums(5000, 5000)),  # it had fewer cores than is thought
        ((None, 500, None), Sums(None, 500)),
        ((None, None, None), Sums(None, 0)),
    ],
)
def test_a_line_of_a_pilot_with_eight_cores(
    numbers: tuple[int | None, int | None, int | None], expected: Sums
) -> None:
    """It shows by itself which of its numbers are real sums."""
    jobs_s, terminated_s, idle = numbers
    assert of_line(summary(jobs_s=jobs_s, terminated_s=terminated_s, idle=idle), 8) == expected


def test_one_core() -> None:
    """Both units are the same; the idle part says how much, where it makes sense."""
    assert of_line(summary(jobs_s=4000, terminated_s=3000, idle=500), 1) == (4000, 3000)
    assert of_line(summary(jobs_s=7900, terminated_s=3000, idle=0), 1) == (CONDOR, 3000)
    assert of_line(summary(jobs_s=7900, terminated_s=3000, idle=-1), 1) == (7900, 3000)
    assert of_line(summary(jobs_s=50, terminated_s=0, idle=1000), 1) == (0, 0)


@given(st.integers(2, 64), st.data())
def test_both_ways_to_write_the_same_pilot(cores: int, data: st.DataObject) -> None:
    """They give the same time, within what is cut, if most of it is of jobs that ended."""
    every = data.draw(st.integers(0, cores * CONDOR))
    ended = data.draw(st.integers(every * 2 // 3, every))
    zero = data.draw(st.integers(0, ended))
    new, old = (
        of_line(written(Ran(zero, ended, every), cores, mixed=literal), cores)
        for literal in (True, False)
    )
    assert new.busy_s == pytest.approx(every / cores, abs=2)
    assert new.good_s == pytest.approx(ended / cores, abs=2)
    if ended > 3 * cores:  # not so short that it is lost in what is cut
        assert old.busy_s == pytest.approx(every / cores, abs=2 + CONDOR / 1000)
    assert old.good_s == new.good_s


@given(st.integers(2, 64), st.data())
def test_no_more_than_was(cores: int, data: st.DataObject) -> None:
    """However few jobs ended by themselves, in no line time of nobody becomes that of jobs."""
    every = data.draw(st.integers(0, cores * CONDOR))
    ended = data.draw(st.integers(0, every))
    zero = data.draw(st.integers(0, ended))
    for mixed in (False, True):
        found = of_line(written(Ran(zero, ended, every), cores, mixed=mixed), cores)
        assert found.busy_s is not None
        assert found.good_s <= found.busy_s <= every / cores + 1 + CONDOR / 1000


@pytest.mark.parametrize(
    ("factor", "total", "cores", "expected"),
    [
        (None, 32_000, 8, (4000, 3000)),
        (1, 32_000, 8, (4000, 3000)),
        (8, 32_000, 8, (32_000, 24_000)),  # it says that it is divided: it is cut to HTCondor's
        (None, 12_000, 8, (12_000, 9000)),
        (None, 12_001, 8, (1500, 1125)),
        (None, 32_000, 1, (32_000, 24_000)),
    ],
)
def test_statistics(factor: int | None, total: int, cores: float, expected: Sums) -> None:
    """More than HTCondor's time cannot be a divided number, unless that is said."""
    jobs = JobStatistics(Jobs(4, total), Jobs(2, total // 2), Jobs(1, total // 4), factor=factor)
    assert of_statistics(jobs, CONDOR, cores) == expected


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"jobs": None}, None),
        ({"jobs": None, "idle": 1000}, None),
        ({"jobs": None, "idle": 166}, True),
        ({"jobs": None, "terminated_s": 4000}, True),
        ({"jobs": None, "goodput_s": 0, "terminated_s": 0}, None),
        ({"jobs": None, "jobs_s": 0}, False),
        ({"jobs": 0}, False),
        ({"jobs": 0, "jobs_s": 50}, True),
        ({"jobs": 2}, True),
    ],
)
def test_whether_jobs_ran(numbers: dict[str, int | None], expected: bool | None) -> None:
    """A number that cannot be read is no zero."""
    assert tells_jobs(summary(**numbers)) is expected
