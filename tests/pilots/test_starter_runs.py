"""Runs that a pilot's own logs tell of, beside what else tells of them, and told again."""

from __future__ import annotations

from collections import Counter

import pytest

from gwmond.model.pilots.file_facts import CentralEvent, CentralKind, PilotName, StarterRun
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.runs.starter_runs import Better, fact_of
from tests.build.pilot_files import output, us
from tests.build.play import DONE, Play, claim, record, shown
from tests.build.playbook import Playbook, playbooks
from tests.build.played import add_outputs, booked

LATER = 100_000


def run(job: str, start: float, end: float | None, submitter: str = "submitter") -> StarterRun:
    """A run as a starter's log has it."""
    ending = DONE if end is not None else Ending(began=True)
    return StarterRun(job, submitter, us(start), None if end is None else us(end), ending)


def prove(play: Play) -> None:
    """What runs have sums up to what their pilots have."""
    for row in play.stored.pilots.values():
        of_runs: Counter[object] = Counter()
        for (pilot, _), run in play.stored.runs.items():
            if pilot == row.id:
                of_runs.update(run.settled)
        of_pilot: Counter[object] = Counter()
        for (resource, measure, _, outcome), micros in row.settled.items():
            of_pilot[resource, measure] += micros if outcome else 0
        assert +of_runs == +of_pilot


def result(play: Play) -> object:
    """All that is posted and counted, and the runs that are stored."""
    runs = [(row.key.job.split("#")[1], row.start_us) for row in play.stored.runs.values()]
    return sorted(runs), booked(play)


def test_until_when_a_run_of_a_log_is_one_that_a_history_has(play: Play) -> None:
    """If it began while that one ran, its end included; it was written when it ended."""
    play.live(0, 600, [shown()], records=[record("1.0", 100, 500)])
    (pilot,) = play.accounting.pilots
    better = Better(pilot.runs.values(), 60 * SECOND_US)
    times = (us(40) - 1, us(40), us(500), us(500) + 1)
    assert [better.knows("submitter#1.0#", at) for at in times] == [False, True, True, False]
    assert not better.knows("submitter#2.0#", us(100))
    facts = [fact_of(run("1.0", 100, end), pilot, 2000) for end in (500, None)]
    assert [fact.written_us for fact in facts] == [us(500), us(100)]


def test_an_output_that_is_read_again(play: Play) -> None:
    """All of its runs are stored by then, and nothing changes."""
    # The second job came back, also to another pilot, so only its last exit counts; of a third
    # no number is told.
    runs = (run("1.0", 100, 700), run("2.0", 100, 300), run("2.0", 400, 600), run("", 800, 900))
    other = output(0, 1300, runs=(run("2.0", 700, 900), run("", 900, 1000)))
    other = other._replace(name=other.name._replace(proc=1))
    add_outputs(play, output(runs=runs), other)
    before, corrections = result(play), play.stored.corrected
    seconds = play.seconds()
    assert (seconds["goodput"], seconds["unclassified"]) == (600 + 200 + 100 + 100, 200 + 200)
    for at in (LATER, 2 * LATER):
        add_outputs(play, output(runs=runs), at=at)
        add_outputs(play, other, at=at + 50_000)
        assert result(play) == before
        prove(play)
    assert play.stored.corrected == corrections


def test_a_run_is_told_again_while_a_later_one_of_its_job_goes_on(play: Play) -> None:
    """The first is not in memory any more, the other is."""
    pilot = shown()
    first, second = record("1.0", 0, 600), claim("1.0", 8000)
    play.live(0, 600, [pilot], records=[first])
    play.live(660, 9000, [pilot], claims=[])
    play.live(9060, 12_000, [pilot], claims=[second])
    assert play.stored.runs
    again = record("1.0", 0, 600, source=Source.SCHEDD_HISTORY)
    play.live(12_060, 12_060, [pilot], claims=[second], records=[again])
    play.live(12_120, 13_000, [pilot], claims=[second])
    prove(play)
    play.rest(20_000)
    prove(play)


LOGS = "output 0-1200 with log 1.0 110-700, log 1.0 800-900, log 2.0 400-1100"
HISTORY = (
    "output 0-1200 with record 1.0 100-700 source=startd_history startd= cores=2, "
    "record 2.0 100-1100 source=startd_history startd= ending=over"
)
SCHEDD = "record 1.0 100-700 startd=7.0@instance.entry started=none cores=2"
STDOUT = "output 0-1200 with told 1.0 105-700, told 2.0 395-1100"
PLAYBOOKS = f"""
A run of a log that its startd's history has counts once, whatever is told first; that lacks one run
  any {LOGS} | {HISTORY} | restart
  -> runs 1.0/1 100-700 exit_zero, 2.0/1 100-1100 lost_contact~, 1.0/? 800-900 exit_zero~;
  time goodput 1300, pilot_overhead 2500, preemption_badput 1000

That the schedd has, which does not know the second run either
  any {LOGS} | {SCHEDD} | restart
  -> runs 1.0/1 100-700 exit_zero, 2.0/? 400-1100 exit_zero~, 1.0/? 800-900 exit_zero~;
  time goodput 2000, pilot_overhead 2800

That its stdout tells of, which has less than its logs do
  any {LOGS} | {STDOUT} | restart
  -> runs 1.0/? 110-700 exit_retried~, 2.0/? 400-1100 exit_zero~, 1.0/? 800-900 exit_zero~;
  time goodput 800, pilot_overhead 3410, unclassified 590

All of them, in any order
  any {LOGS} | {HISTORY} | {SCHEDD} | {STDOUT}
  -> runs 1.0/1 100-700 exit_zero, 2.0/1 100-1100 lost_contact~, 1.0/? 800-900 exit_zero~;
  time goodput 1300, pilot_overhead 2500, preemption_badput 1000

A slot that showed the run first: the log of a pilot that was watched has it, too
  ad 300-1200 started=300 job=factory#7.0 with claim 1.0 400 started=300;
  rest 1260 1; output 0-1230 with log 1.0 405-1100, log 2.0 500-510; done 60000
  -> runs 1.0/? 400-1200 lost_contact~, 2.0/? 500-510 exit_zero~

A run of a job that had one on another pilot: which run it is does not depend on what is in memory
  any output 0-1200 with log 2.0 100-300 | output 0-1300 proc=1 with log 2.0 700-900
  -> runs 2.0/? 100-300 exit_retried~, 2.0/? 700-900 exit_zero~
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS))
def test_runs_of_logs(playbook: Playbook) -> None:
    playbook.check()


def test_what_a_central_log_said_of_a_run_of_a_log(play: Play) -> None:
    """It is of the run that something better tells of then."""
    event = CentralEvent(
        "log",
        PilotName(schedd="factory", cluster=7, proc=0),
        CentralKind.EXIT_UNSENT,
        *(us(690), "starter", "slot1_1", "exit lost"),
    )
    cut = run("1.0", 110, 700)._replace(ending=Ending(over=True, began=True))
    add_outputs(play, output(runs=(cut,)))
    play.add_facts([event])
    play.rest(LATER)
    unended = record("1.0", 100, None, startd="7.0@instance.entry", ending=Ending())
    play.add_records([unended])
    play.rest(2 * LATER)
    (known,) = play.stored.runs.values()
    assert {fact.source for fact in known.facts} >= {Source.EPOCH_HISTORY, Source.CENTRAL_LOG}
    assert known.key.job == "schedd#1.0#1"
    prove(play)
