"""What the factory's queue and its summary tell, alone and beside outputs and collectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.ledger.store import Ledger
from gwmond.model.factory import jobs
from gwmond.model.factory.jobs import MOST, FactoryJob, QueueRecord
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import (
    FileFact,
)
from gwmond.model.pilots.pilot_facts import OutputFacts, PilotFacts, QueueFacts
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.run_facts import Source
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.factory import records
from gwmond.pilots.factory.queue_matching import QueueMatching
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.memory.open_pilot import OpenPilot
from tests.build.accounting import Steps
from tests.build.facts import A
from tests.build.pilot_files import JOB, SIZE, S, event, line, output, queue, us
from tests.build.play import Play, record, shown
from tests.build.playbook import Playbook, playbooks
from tests.build.played import add_files, only, runs_counted, times, vanish

PLAYBOOKS = """
Killed hard: the collector saw it last at 600, the queue says that it was removed at 780
  ad 0-600 job=factory#7.0; ad 660-1440 job=factory#7.0 heard=600; none 1560; rest 1620 2;
  queue -60-780 removed; done 9000
  -> pilots 0-780 queue; assumed end 600-780; time decision_problem 3120; closed True

Ended by its queue the batch system may only have given it up: its ad is still shown
  ad 0-600 job=factory#7.0; queue -60-618; ad 660-720 job=factory#7.0 heard=600
  -> pilots 0-

Killed by a signal it is over at once; renewed, its ad says that it goes on
  ad 0-600 job=factory#7.0; queue -60-618 killed; ad 660-690 job=factory#7.0 heard=600;
  = pilots 0-618 queue; ad 720-900 job=factory#7.0
  -> pilots 0-

A queue whose clock is behind does not shorten its life
  ad 0-600 job=factory#7.0; ad 660-1440 job=factory#7.0 heard=600; none 1560; queue -60-400;
  done 2000
  -> pilots 0-600 ad_expired

Without the queue a summary bounds the end: by its duration
  ad 0-600 job=factory#7.0; ad 660-1440 job=factory#7.0 heard=600; none 1560; summary 5000 700;
  done 2000
  -> pilots 0-700 queue

And by when it was written
  ad 0-600 job=factory#7.0; ad 660-1440 job=factory#7.0 heard=600; none 1560; summary 640 700;
  done 2000
  -> pilots 0-640 queue

The queue's times stand in for those that an output has not
  output - condor_start=100 condor_end=900; queue 0-1200; done 2000
  -> pilots 0-1200 queue; assumed begin 0-100, end 900-1200, validation 0-1200;
  time unclassified 4800

Only its factory tells of a pilot: its time is not lost
  queue 0-1200; done 2000
  -> pilots 0-1200 queue; assumed no_output 0-1200, size 0-1200, validation 0-1200;
  time unclassified 4800; origin files; closed True; rules no_output 4800

A summary that says nothing is none
  queue 0-1200; summary 1300 0 condor_started=0; done 2000
  -> assumed no_output 0-1200, size 0-1200, validation 0-1200; time unclassified 4800

Nor one without a duration
  queue 0-1200; summary 1300 none condor_started=0; done 2000
  -> assumed no_output 0-1200, size 0-1200, validation 0-1200; time unclassified 4800

HTCondor did not run by its summary
  queue 0-1200; summary 1300 1200 condor_started=0 condor_s=0; done 2000
  -> assumed no_output 0-1200, size 0-1200; time validation_fails 4800; rules no_output 4800

Or hardly did
  queue 0-1200; summary 1300 1200 condor_s=4; done 2000
  -> assumed no_output 0-1200, size 0-1200; time validation_fails 4800

It ran, and no job did
  queue 0-1200; summary 1300 1200; done 2000
  -> assumed no_output 0-1200, size 0-1200; time decision_problem 4800

A summary alone: it ended when that was written, and had lasted as long as it says
  summary 1300 1200; done 2000
  -> pilots 100-1300 queue

One without a duration makes no pilot
  summary 1300 none; summary 1400 0; done 2000
  -> pilots; left_out no_times 1

Jobs that only a summary tells of: the part that was not idle, goodput as far as it ended by itself
  queue 0-1200; summary 1300 1200 jobs=3 jobs_s=500 terminated_s=400 goodput_s=300 idle=500;
  done 2000
  -> time goodput 1600, pilot_overhead 2520, unclassified 680; counted pilots 1;
  assumed jobs 60-630, no_output 0-1200, size 0-1200; validated 60

An idle part that makes no sense: HTCondor was busy as long as the jobs, never longer than it ran
  queue 0-1200; summary 1300 1200 jobs=9 jobs_s=50000 terminated_s=900 idle=-4000; done 2000
  -> time goodput 3600, pilot_overhead 240, unclassified 960

The same of more than all
  queue 0-1200; summary 1300 1200 jobs=9 jobs_s=50000 terminated_s=900 idle=1001; done 2000
  -> time goodput 3600, pilot_overhead 240, unclassified 960

And of none
  queue 0-1200; summary 1300 1200 jobs=9 jobs_s=50000 terminated_s=900 idle=none; done 2000
  -> time goodput 3600, pilot_overhead 240, unclassified 960

No collector has shown it although one was watched: HTCondor cannot have started
  ad 0-3000 glidein@other; queue 600-1200; ad 3060-9000 glidein@other
  -> pilots 0-, 600-1200 queue; validation failed, passed; time validation_fails 2400

A collector shows it after all
  queue 30-1210; done 2000 2; ad 10000 started=100 heard=1200 job=factory#7.0; rest 10060 3
  -> origin collector; pilots 100-1210 queue; time decision_problem 4440

It never started: a pilot that was removed while it waited used no time
  event submitted 0; event held 100; event removed 500; done 2000
  -> pilots; places

A number that is used again after a hundred days: two pilots
  queue 0-1200; summary 1300 1200; done 2000; queue 8640000-8640600; summary 8640700 600;
  done 8642000
  -> pilots 0-1200 queue, 8640000-8640600 queue; time decision_problem 7200

A summary is compared with what is known better, and each contradiction counts once
  output 0-1200; summary 1300 1200 condor_started=0; done 2000;
  summary 1300 1200 condor_started=0; summary 1400 3000; done 60000
  -> time decision_problem 4800; contradictions summary_condor_started 1, summary_duration 1

What waits is kept: the daemon is killed between the events and the end of the wait
  event submitted -300; event started 0; none 600; ?restart; event ended 1200; none 1800;
  ?restart; rest 1860
  -> pilots 0-1200 queue

Held, it ended then, and is accounted after an hour, whether it is released, and waits, or not
  event submitted 0; event started 100; event held 1000; done 2000 0; = pilots; rest 5000 3
  -> pilots 100-1000 queue; time unclassified 3600; places; left_out

The same where it is released
  event submitted 0; event started 100; event held 1000; event released 1200; done 2000 0;
  rest 5000 3
  -> pilots 100-1000 queue; places

And where it is held again
  event submitted 0; event started 100; event held 1000; event held 1300; done 2000 0; rest 5000 3
  -> pilots 100-1000 queue; places

Evicted, and held while it waited: the eviction was the end
  event submitted 0; event started 100; event evicted 900; event held 1000; done 2000
  -> pilots 100-900 queue

Held and released, it ended without another start: that is its end
  event submitted 0; event started 100; event held 1000; done 86400; event released 1200;
  event ended 1900; done 172800
  -> pilots 100-1900 queue

Started again, it is another
  event submitted 0; event started 100; event held 1000; done 86400; event released 1200;
  event started 172800; done 259200; event ended 173300; done 345600
  -> pilots 100-1000 queue, 172800-173300 queue

It was held, and lived on: its output knows better
  event submitted 0; event started 100; event held 1000; done 86400; output 105-1500; done 172800
  -> pilots 105-1500 pilot_output; time decision_problem 5580

Held before it started it used no time, and may still start, however much later
  event submitted 0; event held 500; done 86400; event released 172800; event started 259200;
  done 259260 2; = pilots; event ended 260100; done 345600
  -> pilots 259200-260100 queue

A start without an end is not known to be one as long as it may run, and said once then
  event submitted 0; event started 100; done 5097600; = pilots; = left_out; = places entry#7.0;
  ?restart; rest 5184200 2; = left_out no_times 1; = places; restart; event held 200; done 5270400
  -> pilots 100-200 queue; left_out

A summary is an end, where the queue has none
  event submitted 0; event started 100; summary 1300 1000; done 86400
  -> pilots 100-1300 queue

A summary that was written late, before its queue, was taken for a pilot that ended then
  summary 1800 1200; done 345600; queue 0-1200; done 432000
  -> pilots 0-1200 queue; time decision_problem 4800

The same three days late
  summary 260400 1200; done 345600; queue 0-1200; done 432000
  -> pilots 0-1200 queue; time decision_problem 4800

Of two lines of one job, days apart, the later counts
  summary 1300 1200; done 345600; summary 260500 1200; done 432000; = pilots 259300-260500 queue;
  queue 0-1200; done 518400
  -> pilots 0-1200 queue

An output without an end that comes after the queue is waited for once
  queue 0-1200; done 2000; = places; output 0- condor_start=100 condor_end=900; none 86400;
  = places entry#7.0; rest 86460 3
  -> pilots 0-1200 queue; places

A pilot that was made of a late line is withdrawn: its output and its queue come later
  summary 260500 1200 jobs=2 jobs_s=500 terminated_s=500; done 345600; output 0-1200; done 432000;
  = pilots 0-1200 pilot_output, 259300-260500 queue; restart; queue 0-1200; done 518400
  -> pilots 0-1200 pilot_output; time decision_problem 4800; runs; counted pilots 1; places;
  left_out

Each execution of a job is a pilot: it was evicted, and ran again
  event submitted 0; event started 100; event evicted 1000; event started 1100; event ended 4100;
  done 172800
  -> pilots 100-1000 queue, 1100-4100 queue; time unclassified 15600; closed True; places;
  left_out

Or was held and released, and ran again a day later
  event submitted 0; event started 100; event held 1000; event released 1050; event started 90000;
  event ended 93000; done 172800
  -> pilots 100-1000 queue, 90000-93000 queue; time unclassified 15600; closed True; places

Clocks that differ by less than what lies between: by its end it is known which execution it was
  event submitted 0; event started 100; event evicted 1000; event started 1100; event ended 4100;
  output 900-3900; done 86400
  -> pilots 100-1000 queue, 900-3900 pilot_output

And in the other direction
  event submitted 0; event started 100; event evicted 1000; event started 1100; event ended 4100;
  output 1300-4300; done 86400
  -> pilots 100-1000 queue, 1300-4300 pilot_output

The second begins while the first, whose output it replaced, is waited for
  event submitted 0; event started 100; output 100- condor_start=160 written=200; none 300;
  event evicted 1000; event started 1100; output 1105- condor_start=1160 written=1200; none 1200;
  restart; event ended 4100; output 1105-4090; done 4200
  -> pilots 100-1000 queue, 1105-4090 pilot_output

Both were shown by a collector: each is the execution in which it began
  ad 180-600 glidein@one started=150 job=factory#7.0;
  ad 660-1440 glidein@one started=150 job=factory#7.0 heard=600;
  ad 1500-3000 glidein@two started=1200 job=factory#7.0;
  ad 3060-4140 glidein@two started=1200 job=factory#7.0 heard=3000; event submitted 0;
  event started 100; event evicted 1000; event started 1100; event ended 3500; done 4260
  -> pilots 150-1000 queue, 1200-3500 queue; left_out

A pilot that a collector saw live on is one, so where the execution before is the shorter one
  ad 120-8000 glidein@one started=60 job=factory#7.0; none 8060-11940; event submitted -300;
  event started 0; event held 3000; event started 3510; event ended 8000; done 172800
  -> pilots 60-8000 queue

An end that turns out to be of the next job is withdrawn
  event submitted 0; event started 100; event removed 900; done 86400; = pilots 100-900 queue;
  event submitted 500; done 172800
  -> pilots; time

An output is of the job after a lost end; it was killed hard: its end is that in the queue
  event submitted 0; event started 100; event submitted 86400; event started 86405;
  event ended 91400; output 86410-; done 259200
  -> pilots 86410-91400 queue

Two factories one after the other, with directories of one name: they can be told apart
  event submitted 0; event started 100; event ended 3700; event submitted 3800;
  event started 3900; event ended 5700; done 86400
  -> pilots 100-3700 queue, 3900-5700 queue

Cluster 7 of two schedds at the same time: neither event is used, and it is said
  ad 0-600 glidein@one job=one#7.0 + glidein@two job=two#7.0; queue -60-780; done 660
  -> pilots 0-600 shutdown, 0-600 shutdown; left_out ambiguous 1;
  said 1 records, the latest of the pilot entry#7.0

An output of one of two at the same time: the other is not made up, and what is left out counted
  event submitted 0; event started 100; event ended 3700; event submitted 600; event started 700;
  event ended 2500; output 110-3690; done 86400
  -> pilots 110-3690 pilot_output; left_out ambiguous 1

The output and the summary are of the last execution: the stdout of the first was overwritten
  any event submitted 0 & event started 100 & event evicted 1000 & event started 1100 & event
  ended 4100 | output 1110-4090 | summary 4160 2980
  -> pilots 100-1000 queue, 1110-4090 pilot_output;
  time decision_problem 11920, unclassified 3600; contradictions; left_out

The same of one that ran again long after
  any event submitted 0 & event started 100 & event evicted 1000 & event started 5000 & event
  ended 8000 | output 5010-7990 | summary 8060 2980
  -> pilots 100-1000 queue, 5010-7990 pilot_output; time decision_problem 11920, unclassified 3600

A pilot whose output tells that it lived through both executions is one
  any event submitted -300 & event started 0 & event evicted 20000 & event started 21000 & event
  ended 86400 | output 5-86390
  -> pilots 5-86390 pilot_output; time decision_problem 345540; places

Also where it lived through most of the other
  any event submitted -300 & event started 0 & event held 80000 & event released 80000 & event
  started 81000 & event ended 86400 | output 5-86390
  -> pilots 5-86390 pilot_output; time decision_problem 345540; places

What ran on is not ended by another execution: events come one by one, the output in between
  event submitted 0; done 86400; event started 100; done 172800; event held 1000;
  output 1105-4090; done 259200; event released 1050; done 345600; event started 1100;
  done 432000; event ended 4100; done 518400
  -> pilots 100-1000 queue, 1105-4090 pilot_output

A lost end takes nothing from other jobs, whichever log is read first; it is said
  any event submitted 0 & event started 100 | event submitted 864000 & event started 864100 &
  event ended 869000 | event submitted 1728000 & event started 1728100 & event ended 1733000;
  done 2600000
  -> pilots 864100-869000 queue, 1728100-1733000 queue; time unclassified 39200; corrected 0;
  left_out no_times 1; places
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS))
def test_queue_and_summary(playbook: Playbook) -> None:
    playbook.check()


def test_an_output_that_comes_after_all(play: Play) -> None:
    """One pilot, by its output alone; what the summary told is taken back."""
    summary = line(1300, 1200, jobs=3, jobs_s=500, terminated_s=400, idle=500)
    add_files(play, *queue(30, 1210), summary)
    assert only(play).identity.name == "7.0@fe:instance.entry"
    known = record("1.0", 100, 700, source=Source.STARTD_HISTORY, startd="")
    add_files(play, output(records=(known,)), at=60_000)
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1200.0 - 600}
    row = only(play)
    assert (row.identity.factory_job, row.assumed, row.end_source) == (JOB, {}, "pilot_output")
    assert [key.job for _, key in play.stored.runs] == ["schedd#1.0#1"]
    assert runs_counted(play) == 1
    assert "assumed" not in play.counted()
    assert play.stored.corrected > 0


@pytest.mark.parametrize("facts", [[event(S.STARTED, 1e12)], [line(-1e10, 5)]])
def test_times_that_no_clock_shows(play: Play, facts: list[FileFact]) -> None:
    """They are counted and left out."""
    add_files(play, *facts)
    assert play.accounting.left_out[ProblemName.BAD_TIME] == 1
    assert not play.stored.fetch(PilotKeys(places={"entry#7.0"})).places


@pytest.mark.parametrize("queued", [False, True])
def test_a_summary_of_an_absurd_duration_can_be_stored(tmp_path: Path, queued: bool) -> None:
    """One number of one pilot does not stop the accounting of all."""
    summary = line(1300, 999_999_999_999)._replace(validation=1000, condor_s=999)
    facts: list[FileFact] = [*queue(0, 1200), summary] if queued else [summary]
    with Ledger.open(f"{tmp_path}/ledger.sqlite") as ledger:
        steps = Steps(PilotAccounting(ledger.load(), Rules()), ledger)
        steps.add_facts(facts, SIZE)
        for at in (2000, 20_000, 50_000):
            steps.settle(us(at), us(at))
            steps.store(us(at))
        rows = ledger.fetch(PilotKeys(factory_numbers={"7.0"})).pilots
        assert [row.validation_end_us for row in rows] == ([us(1200)] if queued else [])
        assert steps.accounting.left_out.get(ProblemName.NO_TIMES, 0) == (0 if queued else 1)


DAY = 86400


def test_another_that_may_be_meant_comes_later() -> None:
    """The end that the queue told of the first is taken back, as if both had been there."""
    name = output().name._replace(schedd="factory2")
    other, ends = output(700, 1000, name=name), queue(-60, 900, S.REMOVED)
    for first, then in ((ends, [other]), ([other], ends)):
        play = Play()
        vanish(play)
        add_files(play, *first, at=3000)
        add_files(play, *then, at=DAY)
        lives = sorted((pilot.end_source, pilot.end_us) for pilot in play.stored.pilots.values())
        assert lives == [("ad_expired", us(600)), ("pilot_output", us(1000))]
        assert play.accounting.left_out[ProblemName.AMBIGUOUS] == 1
        assert not play.stored.place("entry#7.0").open


def test_another_that_may_be_meant_is_shown_later(play: Play) -> None:
    """The same, where a collector shows it."""
    vanish(play)
    add_files(play, *queue(-60, 900, S.REMOVED), at=3000)
    assert only(play).end_source == "queue"
    play.poll(DAY, [shown("glidein@two", started=700, heard=1000, factory_job="factory2#7.0")])
    play.rest(DAY + 60)
    assert {(pilot.end_source, pilot.end_us) for pilot in play.stored.pilots.values()} == {
        ("ad_expired", us(600)),
        ("ad_expired", us(1000)),
    }
    assert play.accounting.left_out[ProblemName.AMBIGUOUS] == 1


def test_a_pilot_that_cannot_be_posted_anew(play: Play) -> None:
    """Runs of it are past their retention; what is known of it now makes no other pilot."""
    add_files(play, output(), *queue(0, 1200))
    number, row = play.stored.pilots.popitem()
    play.stored.pilots[number] = row._replace(runs_pruned=1)
    add_files(play, line(1300, 1200), at=DAY)
    assert only(play).identity.name == row.identity.name
    assert not play.stored.place("entry#7.0").open


def test_a_pilot_of_facts_that_are_past_their_retention_stays(play: Play) -> None:
    """A number that is used again tells nothing of the pilot that had it years ago."""
    add_files(play, *queue(0, 1200), at=DAY)
    play.stored.forget_places(us(200 * DAY))
    play.restart()
    add_files(play, *queue(400 * DAY, 400 * DAY + 1200), at=401 * DAY)
    starts = sorted(row.start_us for row in play.stored.pilots.values())
    assert starts == [us(0), us(400 * DAY)]


PLACE = QueueRecord("entry", "7.0")


def job(start: int, end: int | None, first: int = 0) -> FactoryJob:
    """An execution of the job whose first record is ``first``, in seconds from T0."""
    end_us = None if end is None else us(end)
    return FactoryJob(
        *("instance", "fe", "fe.main", us(first), us(start), end_us),
        over=end is not None,
        first_us=us(first),
    )


def pilot(number: int, facts: PilotFacts) -> OpenPilot:
    """A pilot that only files tell of."""
    name = "7.0@fe:instance.entry"
    identity = PilotIdentity(name, 0, "factory#7.0", "factory", A, "", "", "files")
    return OpenPilot.new(number, identity, facts)


def told(start: int, end: int) -> OpenPilot:
    """A pilot whose output has when it began and ended."""
    output = OutputFacts(us(start), us(end), us(start), us(end), Validation.PASSED)
    return pilot(1, PilotFacts(output=output))


def made(number: int, start: int, end: int) -> OpenPilot:
    """A pilot that was made of what its factory's queue tells."""
    return pilot(number, PilotFacts(queue=QueueFacts(us(start), us(end))))


@pytest.mark.parametrize(
    ("start", "jobs", "index"),
    [
        (50, [job(0, 1000), job(60, 5000)], 0),  # 50 s and 0 s, against 10 s and 4000 s
        (10, [job(0, 1000), job(100, 1000)], 0),
        (90, [job(0, 1000), job(100, 1000)], 1),
        (50, [job(0, 1000), job(100, 1000)], 1),  # both alike: the later one
        (50, [job(0, None), job(60, None)], 1),  # nothing tells their ends
    ],
)
def test_the_execution_that_differs_least(start: int, jobs: list[FactoryJob], index: int) -> None:
    """By when the pilot began and ended; the other is none of this pilot."""
    known = told(start, 1000)
    assert QueueMatching(PLACE, jobs, [known], []).told == {index: known}


def test_the_nearest_are_the_same() -> None:
    """Each pilot is made of one job only, in whatever order they come."""
    first, second = made(1, 0, 900), made(2, 100, 950)
    jobs = [job(95, 1000, first=1), job(5, 990, first=2)]
    for pilots in ([first, second], [second, first]):
        found = QueueMatching(PLACE, jobs, [], pilots)
        assert (found.alone, found.made, found.stale) == ({0, 1}, {0: second, 1: first}, [])


def test_an_execution_through_which_a_pilot_lived_is_covered() -> None:
    """Of the same job, whose other execution it is; a pilot of another end is none of them."""
    jobs = [job(0, 20_000), job(10_000, 19_000)]
    known, other = told(0, 20_000), made(2, -50_000, -40_000)
    found = QueueMatching(PLACE, jobs, [known], [other])
    assert (found.told, found.covered, found.alone) == ({0: known}, {1}, set())
    assert (found.made, found.stale) == ({}, [])


@pytest.mark.parametrize(
    ("place", "is_stale"),
    [
        (PLACE, False),
        (PLACE._replace(events=(event(S.ENDED, 1000),)), True),
        (PLACE._replace(lines=(line(1000, 900),)), True),
        (PLACE._replace(events=(event(S.ENDED, 1001),), lines=(line(999, 900),)), False),
        (PLACE._replace(events=(event(S.ENDED, 1000, user="other"),)), False),
    ],
)
def test_a_pilot_of_a_job_that_is_none_is_stale(place: QueueRecord, is_stale: bool) -> None:
    """If its end is one that is reported there, of its user; else it is of another place."""
    before = made(1, 0, 1000)
    assert QueueMatching(place, [], [], [before]).stale == ([before] if is_stale else [])


_HOLDS = (S.HELD, S.RELEASED)


@pytest.mark.parametrize("ahead", [4000, 1200])
def test_a_job_with_very_many_executions(
    play: Play, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest events are not kept; what was accounted of them stays."""
    most, number = 20, 16
    for module in (jobs, records):
        monkeypatch.setattr(module, "MOST", most)
    add_files(play, event(S.SUBMITTED, -300), at=0)
    for n in range(number):
        at = n * ahead
        play.add_facts([event(S.STARTED, at)])
        play.poll(at + 60)
        add_files(play, event(S.EVICTED, at + 900), at=at + 1000, hours=2)
    add_files(play, at=number * ahead + 86_400)
    assert len(play.stored.place("entry#7.0").events) == most
    assert times(play) == [(n * ahead, n * ahead + 900) for n in range(number)]
    assert play.seconds() == {"unclassified": 4 * 900.0 * number}
    assert play.stored.corrected == 0


def test_more_events_than_are_kept_are_told(play: Play) -> None:
    """Once for a job, whenever they come, also if all that is left out is older; not of as many."""
    held = [event(how, n + i) for n in range(0, 3 * MOST, 2) for i, how in enumerate(_HOLDS)]
    add_files(play, *held[-MOST:], at=86_400)
    assert not play.accounting.left_out.get(ProblemName.TOO_MANY_EVENTS)
    add_files(play, *held[:10], at=2 * 86_400)
    assert play.accounting.left_out[ProblemName.TOO_MANY_EVENTS] == 1
    add_files(play, *held, at=3 * 86_400)
    assert play.accounting.left_out[ProblemName.TOO_MANY_EVENTS] == 1
    play.restart()
    add_files(play, *held, at=4 * 86_400)
    assert not play.accounting.left_out.get(ProblemName.TOO_MANY_EVENTS)
    assert len(play.stored.place("entry#7.0").events) == MOST
