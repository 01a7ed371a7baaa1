"""What the factory's queue and its summary tell, alone and beside outputs and collectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.ledger.store import Ledger
from gwmond.model.pilot_life import Assumption, Validation
from gwmond.model.pilots.file_facts import (
    CompletedPilot,
    FileFact,
    PilotOutput,
)
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.run_facts import Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import Rules
from tests.build.accounting import Steps
from tests.build.pilot_files import JOB, SIZE, S, event, line, output, queue, us
from tests.build.play import T0, Play, record, shown
from tests.build.played import add_files, only, runs_counted, vanish


def test_killed_hard_and_the_queue_knows_when(play: Play) -> None:
    """The collector saw it last at 600; the queue says that it was removed at 780."""
    vanish(play)
    play.rest(1620, hours=2)
    before = only(play)
    assert (before.end_us, before.end_source, before.assumed) == (us(600), "ad_expired", {})
    add_files(play, *queue(-60, 780, S.REMOVED), at=9000)
    row = only(play)
    assert (row.end_us, row.end_source) == (us(780), "queue")
    assert row.assumed == {Assumption.END: (us(600), us(780))}
    assert play.seconds() == {"decision_problem": 4 * 780.0}
    assert row.closed


@pytest.mark.parametrize(("how", "end_us"), [(S.ENDED, None), (S.KILLED, us(618))])
def test_killed_by_a_signal_is_over_at_once(play: Play, how: S, end_us: int | None) -> None:
    """Else the batch system may have given it up.  Its ad is still shown; renewed, it goes on."""
    play.live(0, 600, [shown(factory_job=JOB)])
    play.add_facts(queue(-60, 618, how), SIZE)
    for at in (660, 690):
        play.poll(at, [shown(factory_job=JOB, heard=600)])
    assert only(play).end_us == end_us
    play.live(720, 900, [shown(factory_job=JOB)])
    assert only(play).end_us is None


def test_the_queue_is_not_believed_before_the_last_contact(play: Play) -> None:
    """A queue whose clock is behind, or which gave the pilot up, does not shorten its life."""
    vanish(play)
    add_files(play, *queue(-60, 400))
    assert (only(play).end_us, only(play).end_source) == (us(600), "ad_expired")


def test_without_the_queue_a_summary_bounds_the_end() -> None:
    """It cannot have lasted beyond when the line was written, nor beyond what that says."""
    play = Play()
    vanish(play)
    add_files(play, line(5000, 700))
    assert only(play).end_us == us(700)
    play = Play()
    vanish(play)
    add_files(play, line(640, 700))
    assert only(play).end_us == us(640)


def test_a_pilot_whose_output_tells_neither_beginning_nor_end(play: Play) -> None:
    """The queue's times stand in for both; what the output tells lies between."""
    cut = output(None, None, condor_start_us=us(100), condor_end_us=us(900))
    add_files(play, cut, *queue(0, 1200))
    row = only(play)
    assert (row.start_us, row.end_us) == (us(0), us(1200))
    assert row.assumed == {
        Assumption.BEGIN: (us(0), us(100)),
        Assumption.END: (us(900), us(1200)),
        Assumption.VALIDATION: (us(0), us(1200)),  # it may have run jobs
    }
    assert play.seconds() == {"unclassified": 4 * 1200.0}


@pytest.mark.parametrize(
    ("lines", "category", "rules"),
    [
        ([], "unclassified", {"validation"}),
        ([line(1300, 0, condor_started=False)], "unclassified", {"validation"}),
        ([line(1300, None, condor_started=False)], "unclassified", {"validation"}),
        ([line(1300, 1200, condor_started=False, condor_s=0)], "validation_fails", set()),
        ([line(1300, 1200, condor_s=4)], "validation_fails", set()),
        ([line(1300, 1200)], "decision_problem", set()),
    ],
)
def test_a_pilot_that_only_its_factory_tells_of(
    play: Play, lines: list[CompletedPilot], category: str, rules: set[str]
) -> None:
    """Its time is not lost; what it did is as its summary says, if that says anything."""
    add_files(play, *queue(0, 1200), *lines)
    assert play.seconds() == {category: 4 * 1200.0}
    row = only(play)
    assert {of.value for of in row.assumed} == {"no_output", "size"} | rules
    assert (row.identity.origin, row.identity.factory_job) == ("files", "#7.0")
    assert row.closed
    assumed = {
        key.outcome: n for key, n in play.stored.counts.items() if key.what == "assumed" and n
    }
    assert assumed == {"no_output": 4 * 1200 * SECOND_US}  # the first of its rules


def test_a_summary_alone() -> None:
    """It ended at the latest when the line was written, and had lasted as long as that says."""
    play = Play()
    add_files(play, line(1300, 1200))
    assert (only(play).start_us, only(play).end_us) == (us(100), us(1300))
    play = Play()
    add_files(play, line(1300, None), line(1400, 0))
    assert play.stored.pilots == {}
    assert play.accounting.left_out[ProblemName.NO_TIMES] == 1


def test_jobs_that_only_a_summary_tells_of(play: Play) -> None:
    """Half of HTCondor's time was idle; the rest is goodput as far as it ended by itself."""
    summary = line(1300, 1200, jobs=3, jobs_s=500, terminated_s=400, goodput_s=300, idle=500)
    add_files(play, *queue(0, 1200), summary)
    assert play.seconds() == {
        "goodput": 4 * 400.0,
        "unclassified": 4 * 170.0,
        "pilot_overhead": 4 * (1200.0 - 570),
    }
    assert {series.outcome for series in play.series()} == {"", "summarised"}
    assert runs_counted(play) == 0
    assert only(play).assumed[Assumption.JOBS] == (us(60), us(60 + 570))
    assert only(play).validation_end_us == us(60)


@pytest.mark.parametrize("idle", [-4000, 1001, None])
def test_an_idle_part_that_makes_no_sense(play: Play, idle: int | None) -> None:
    """Then HTCondor was busy as long as the jobs ran, never longer than it ran itself."""
    summary = line(1300, 1200, jobs=9, jobs_s=50_000, terminated_s=900, idle=idle)
    add_files(play, *queue(0, 1200), summary)
    assert play.seconds()["goodput"] == 4 * 900.0
    assert sum(play.seconds().values()) == 4 * 1200.0
    assert play.seconds()["unclassified"] == 4 * 240.0


def test_no_collector_has_shown_it_although_one_was_watched(play: Play) -> None:
    """Then HTCondor cannot have started."""
    play.live(0, 3000, [shown("glidein@other")])
    play.add_facts(queue(600, 1200), SIZE)
    play.live(3060, 9000, [shown("glidein@other", heard=3060)])
    (row,) = (pilot for pilot in play.stored.pilots.values() if pilot.identity.origin == "files")
    assert row.validation is Validation.FAILED
    assert Assumption.VALIDATION in row.assumed
    assert play.seconds()["validation_fails"] == 4 * 600.0


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


def test_a_collector_shows_it_after_all(play: Play) -> None:
    """A pilot of which only the queue told was there."""
    add_files(play, *queue(30, 1210), hours=2)
    late = shown(started=100, heard=1200, factory_job=JOB)
    play.poll(10_000, [late])
    play.rest(10_060, hours=3)
    row = only(play)
    assert row.identity.origin == "collector"
    assert play.seconds()["decision_problem"] >= 4 * 1100.0
    assert Assumption.NO_OUTPUT not in row.assumed


def test_it_never_started(play: Play) -> None:
    """A pilot that was removed while it waited used no time."""
    add_files(play, event(S.SUBMITTED, 0), event(S.HELD, 100), event(S.REMOVED, 500))
    assert play.stored.pilots == {}
    assert not play.stored.place("entry#7.0").open


def test_two_that_may_be_meant(play: Play) -> None:
    """Cluster 7 of two schedds at the same time: neither event is used, and it is said."""
    first = shown("glidein@one", factory_job="one#7.0")
    second = shown("glidein@two", factory_job="two#7.0")
    play.live(0, 600, [first, second])
    add_files(play, *queue(-60, 780), at=660)
    assert {pilot.end_us for pilot in play.stored.pilots.values()} == {us(600)}
    assert len(play.stored.pilots) == 2
    assert play.accounting.left_out[ProblemName.AMBIGUOUS] == 1


def test_a_number_that_is_used_again(play: Play) -> None:
    """After a hundred days: two pilots, each by its own queue events and line."""
    later = 100 * 86400.0
    add_files(play, *queue(0, 1200), line(1300, 1200))
    add_files(play, *queue(later, later + 600), line(later + 700, 600), at=round(later) + 2000)
    lives = sorted((pilot.start_us, pilot.end_us) for pilot in play.stored.pilots.values())
    assert lives == [(us(0), us(1200)), (us(later), us(later + 600))]
    assert play.seconds() == {"decision_problem": 4 * 1800.0}


def test_a_summary_is_compared_with_what_is_known_better(play: Play) -> None:
    """It does not change anything; what it contradicts is counted once."""
    add_files(play, output(), line(1300, 1200, condor_started=False))
    add_files(play, line(1300, 1200, condor_started=False), line(1400, 3000), at=60_000)
    assert play.seconds() == {"decision_problem": 4 * 1200.0}
    assert play.accounting.contradictions == {"summary_condor_started": 1, "summary_duration": 1}


def test_what_waits_is_kept(play: Play) -> None:
    """The daemon is killed between the events and the end of the wait."""
    play.add_facts(queue(0, 1200)[:2], SIZE)
    play.poll(600)
    play.restart()
    play.add_facts([event(S.ENDED, 1200)], SIZE)
    play.poll(1800)
    play.restart()
    play.add_facts([], SIZE)
    play.rest(1860)
    assert (only(play).start_us, only(play).end_us) == (us(0), us(1200))


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


def test_an_empty_output_beside_its_queue(play: Play) -> None:
    """Nothing came back: the queue stands in."""
    add_files(play, PilotOutput("job.7.0.out", output().name._replace(schedd="")), *queue(0, 1200))
    assert play.seconds() == {"unclassified": 4 * 1200.0}
    assert T0 > 0
