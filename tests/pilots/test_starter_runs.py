"""Runs that a pilot's own logs tell of, beside what else tells of them, and told again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations

import pytest

from gwmond.model.pilots.file_facts import CentralEvent, CentralKind, PilotName, StarterRun
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.runs.starter_runs import Better, fact_of
from tests.build.pilot_files import JOB, output, us
from tests.build.play import DONE, Play, claim, record, shown
from tests.build.played import add_outputs, booked

LATER = 100_000
HISTORY = Source.STARTD_HISTORY


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


def test_a_run_of_a_job_that_had_one_on_another_pilot() -> None:
    """Which of a job's runs one is does not depend on whether the others are in memory."""
    runs = []
    here = output(runs=(run("2.0", 100, 300),))
    there = output(0, 1300, runs=(run("2.0", 700, 900),))
    there = there._replace(name=there.name._replace(proc=1))
    for first, second in ((here, there), (there, here)):
        play = Play()
        add_outputs(play, first)
        add_outputs(play, second, at=LATER)
        prove(play)
        runs.append(sorted((row.key, row.start_us) for row in play.stored.runs.values()))
    assert runs[0] == runs[1]
    assert len({key for key, _ in runs[0]}) == 2


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


Step = Callable[[Play, int], None]


def of_logs(play: Play, at: int) -> None:
    """The pilot's output, with no history in it."""
    runs = (run("1.0", 110, 700), run("1.0", 800, 900), run("2.0", 400, 1100))
    add_outputs(play, output(runs=runs), at=at)


def of_history(play: Play, at: int) -> None:
    """The same output with the history of its startd, which lacks one run."""
    records = (
        record("1.0", 100, 700, source=HISTORY, startd="", cores=2),
        record("2.0", 100, 1100, source=HISTORY, startd="", ending=Ending(over=True)),
    )
    add_outputs(play, output(records=records), at=at)


def of_schedd(play: Play, at: int) -> None:
    """What the schedd's epoch history tells, which does not know the second either."""
    name = "7.0@instance.entry"
    play.add_records([record("1.0", 100, 700, startd=name, started=None, cores=2)])
    play.rest(at)


def of_stdout(play: Play, at: int) -> None:
    """What its stdout reports of its runs, which is less than its logs do."""
    add_outputs(play, output(runs=(run("1.0", 105, 700, ""), run("2.0", 395, 1100, ""))), at=at)


def restart(play: Play, at: int) -> None:
    """Only what is stored is known."""
    play.restart()
    play.rest(at)


@pytest.mark.parametrize("better", [of_history, of_schedd, of_stdout])
def test_a_run_of_a_log_that_something_better_tells_of(better: Step) -> None:
    """It counts once, whatever was told first, also long ago."""
    results = []
    for order in permutations([of_logs, better, restart]):
        play = Play()
        for number, step in enumerate(order):
            step(play, 2000 + number * LATER)
            prove(play)
        results.append(result(play))
        assert len(play.stored.runs) == 3
        assert sum(play.seconds().values()) == 4 * 1200
    assert all(of == results[0] for of in results)


def test_all_of_them() -> None:
    """A log, a history, a schedd and stdout, in any order."""
    results = []
    for order in permutations([of_logs, of_history, of_schedd, of_stdout]):
        play = Play()
        for number, step in enumerate(order):
            step(play, 2000 + number * LATER)
        prove(play)
        results.append(result(play))
    assert all(of == results[0] for of in results)


def test_a_slot_that_showed_the_run_first(play: Play) -> None:
    """The log of a pilot that was watched has it, too; and a job that no poll has shown."""
    live = shown(started=300, factory_job=JOB)
    play.live(300, 1200, [live], claims=[claim("1.0", 400, started=300)])
    play.rest(1260, hours=1)
    add_outputs(
        play, output(0, 1230, runs=(run("1.0", 405, 1100), run("2.0", 500, 510))), at=60_000
    )
    assert sorted(run.key.job for run in play.stored.runs.values()) == [
        "schedd#1.0#1",
        "submitter#2.0#",
    ]
    prove(play)


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
