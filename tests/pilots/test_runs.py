"""From records of jobs to outcomes, and when these are said."""

from __future__ import annotations

from collections import Counter

import pytest

from gwmond.model.pilot_life import Category
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.records import JobRecord
from gwmond.model.runs.run_facts import Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import Evidence
from gwmond.sources.htcondor.pilots import claims
from tests.build.play import DONE, T0, Play, claim, record, shown
from tests.sources.make import classad, heard

HOUR_S = 3600


def outcomes(play: Play) -> dict[str, str]:
    """The outcome of each run, by job and run."""
    return {
        f"{row.key.job.split('#')[1]}/{row.key.shadow_start or '?'}": row.outcome.label
        if row.outcome
        else "open"
        for row in sorted(play.stored.runs.values(), key=lambda run: run.start_us)
    }


def categories(play: Play) -> Counter[Category]:
    """How many runs are of each category."""
    return Counter(row.outcome.category for row in play.stored.runs.values() if row.outcome)


def test_a_claim_and_its_record_are_one_run(play: Play) -> None:
    """The slot saw it begin two seconds later, and knew no run."""
    play.live(0, 900, [shown()], claims=[claim("1.0", 102)])
    assert outcomes(play) == {"1.0/?": "open"}
    play.live(960, 1200, [shown()], records=[record("1.0", 100, 930)])
    assert outcomes(play) == {"1.0/1": "exit_zero"}
    play.rest(1260)
    assert play.seconds() == {"goodput": 830.0, "pilot_overhead": 4 * 1200.0 - 830}
    assert play.stored.corrected == 0


def test_a_record_that_is_told_twice_counts_once() -> None:
    """By one source or several, before and after a restart, and after the pilot was closed."""
    play = Play(Rules(refresh_us=0, linger_us=SECOND_US))
    job = record("1.0", 100, 700)
    again = record("1.0", 100, 700, source=Source.SCHEDD_HISTORY)
    play.live(0, 900, [shown()], records=[job])
    play.restart()
    play.live(960, 1200, [shown()], records=[job, again])
    play.rest(1260, hours=2)
    before = play.seconds()
    play.poll(9000, records=[job, again])
    play.rest(9060)
    assert play.seconds() == before == {"goodput": 600.0, "pilot_overhead": 4 * 1200.0 - 600}
    assert play.stored.corrected == 0


def test_a_better_record_corrects_what_was_settled() -> None:
    """The schedd's history may come days later; the counters' totals follow by corrections."""
    play = Play(Rules(refresh_us=0, linger_us=SECOND_US))
    held = Ending(over=True, exit_signal=15, own_accord=False, began=True, early=False)
    play.live(0, 1500, [shown()], records=[record("1.0", 100, 700, ending=held)])
    play.rest(1560, hours=3)
    assert outcomes(play) == {"1.0/1": "ended_by_condor"}
    told = Ending(over=True, hold_code=34, hold_subcode=0, began=True)
    late = record("1.0", 100, 700, ending=told, source=Source.SCHEDD_HISTORY)
    play.restart()
    play.poll(40_000, records=[late])
    play.rest(40_060)
    assert outcomes(play) == {"1.0/1": "held_for_limit"}
    assert play.stored.corrected > 0
    assert play.seconds() == {"unclassified": 600.0, "pilot_overhead": 4 * 1500.0 - 600}


def test_a_claim_that_is_gone_without_a_record_is_given_up_after_a_while(play: Play) -> None:
    """It was there, so the pilot did not idle; it is not known how it ended."""
    play.live(0, 900, [shown()], claims=[claim("1.0", 100)])
    play.live(960, 960 + HOUR_S - 120, [shown()])
    assert outcomes(play) == {"1.0/?": "open"}
    play.live(960 + HOUR_S, 1500 + HOUR_S, [shown()])
    assert outcomes(play) == {"1.0/?": "unknown"}
    play.rest(1560 + HOUR_S, hours=8)
    assert play.seconds()["unclassified"] == 800.0


def test_it_is_waited_for_longer_while_its_schedd_is_silent(play: Play) -> None:
    """A day, by default."""
    play.live(0, 900, [shown()], claims=[claim("1.0", 100)])
    for at in range(960, 80_000, 600):
        now = (T0 + at) * SECOND_US
        play.add_ads(now, 60 * SECOND_US, [shown(heard=at)], complete=True)
        play.add_claims(now, [], complete=True)
        play.settle(now, now, {"schedd"})
    assert not any(run.outcome for pilot in play.accounting.pilots for run in pilot.runs.values())


@pytest.mark.parametrize(("lives_on", "expected"), [(True, "vacated"), (False, "pilot_shutdown")])
def test_whether_the_pilot_ended_with_it_decides(play: Play, lives_on: bool, expected: str) -> None:
    """The code says nothing; it waits until the pilot was heard of again, or is gone."""
    cut = record("1.0", 100, 880, ending=Ending(over=True, vacate_code=1005, began=True))
    play.live(0, 900, [shown()])
    play.poll(960, [shown(heard=900)], [cut])
    assert outcomes(play) == {"1.0/1": "open"}
    if lives_on:
        play.live(1020, 3000, [shown()])
    play.rest(3060)
    assert outcomes(play) == {"1.0/1": expected}


LOST = Ending(over=True, vacate_code=1008, began=True, early=False, disconnected=True)
CUT = Ending(over=True, vacate_code=1005, began=True, early=False)


@pytest.mark.parametrize(
    ("ending", "end", "expected"),
    [
        (DONE, 3000, "vacated"),  # it went on beside, for longer
        (LOST, 3000, "vacated"),  # so it did until contact was lost
        (LOST._replace(disconnected=None), 3000, "pilot_shutdown"),  # it is not known since when
        (CUT, 3000, "pilot_shutdown"),  # the same end of the pilot, which took its time
        (DONE, 1100, "pilot_shutdown"),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_where_only_jobs_tell_of_a_pilot_a_longer_run_shows_that_it_went_on(
    play: Play, ending: Ending, end: int, expected: str, late: bool
) -> None:
    """Also if that run's record comes after the shorter one was decided on."""
    short, long = record("1.0", 100, 1000, ending=CUT), record("2.0", 50, end, ending=ending)
    play.poll(end, records=[short])
    play.poll(20_000 if late else end, records=[long])
    play.rest(20_060, hours=8)
    assert outcomes(play)["1.0/1"] == expected


def test_what_only_the_startd_tells_waits_for_the_schedd(play: Play) -> None:
    """As long as that may still come."""
    job = record("1.0", 100, 700, source=Source.STARTD_HISTORY)
    play.live(0, 600, [shown()])
    play.poll(720, [shown(heard=600)], [job], known=600)
    assert outcomes(play) == {"1.0/1": "open"}
    play.poll(780, [shown(heard=600)], known=750)
    assert outcomes(play) == {"1.0/1": "exit_zero"}


def test_a_run_moves_to_the_pilot_that_a_better_source_names(play: Play) -> None:
    """And its time with it."""
    here, there = shown("a@node"), shown("b@node")
    play.live(0, 900, [here, there], records=[record("1.0", 100, 700, startd="a@node")])
    better = record("1.0", 100, 700, startd="b@node", source=Source.STARTD_HISTORY)
    play.live(960, 1200, [here, there], records=[better])
    play.rest(1260)
    assert {row.pilot for row in play.stored.runs.values()} == {play.pilot("b@node").id}
    assert play.seconds() == {
        "decision_problem": 4800.0,
        "goodput": 600.0,
        "pilot_overhead": 4200.0,
    }


FAILED_EARLY = Ending(over=True, exit_code=1, own_accord=True, began=True, early=True)
NO_PROGRAM = Ending(over=True, began=False, hold_code=6, hold_subcode=2)


def black_hole(ending: Ending, late: int = 0) -> tuple[Play, list[JobRecord]]:
    """Eight nodes run jobs of a minute, for half an hour; on one of them each ends so.

    ``late``: those elsewhere begin so much later, in seconds.
    """
    play = Play()
    pilots = [shown(f"p{n}@n{n}")._replace(node=f"n{n}") for n in range(8)]
    records = []
    for number in range(8 * 30):
        node, minute = number % 8, number // 8
        at = 100 + 60 * minute + node + (late if node else 0)
        end = at + (2 if node == 0 else 50)
        how = DONE if node else ending
        records.append(record(f"{number}.0", at, end, startd=f"p{node}@n{node}", ending=how))
    last = 2400 + late
    for at in range(0, last, 300):
        play.poll(at, [pilot._replace(last_heard=T0 + at) for pilot in pilots])
    play.poll(last, [pilot._replace(last_heard=T0 + last) for pilot in pilots], records)
    return play, records


def judge(play: Play, hours: int) -> None:
    """Let verdicts fall at a time, and settle what they decide."""
    play.judge_at(hours * HOUR_S)
    play.poll(hours * HOUR_S)


@pytest.mark.parametrize(
    ("ending", "label"),
    [(FAILED_EARLY, "early_exit"), (NO_PROGRAM, "program_not_started")],
)
def test_an_early_failure_is_judged_by_what_others_did(ending: Ending, label: str) -> None:
    """On this node the same user's jobs fail, elsewhere they do not; a code is judged likewise."""
    play, _ = black_hole(ending)
    assert Counter(outcomes(play).values()) == {"open": 30, "exit_zero": 210}
    judge(play, 5)
    assert Counter(outcomes(play).values())["open"] == 30
    judge(play, 9)
    assert Counter(outcomes(play).values()) == {label: 30, "exit_zero": 210}
    assert categories(play) == {Category.MISCONFIGURATION_BADPUT: 30, Category.GOODPUT: 210}


@pytest.mark.parametrize(
    ("ending", "label", "category"),
    [
        (FAILED_EARLY, "exit_nonzero", Category.GOODPUT),
        (NO_PROGRAM, "program_not_started", Category.UNCLASSIFIED),
    ],
)
def test_an_early_failure_without_others_at_that_time_is_the_users(
    ending: Ending, label: str, category: Category
) -> None:
    """The same jobs elsewhere, four hours later: they may have been mended meanwhile."""
    play, _ = black_hole(ending, late=4 * HOUR_S)
    judge(play, 30)
    assert Counter(outcomes(play).values()) == {label: 30, "exit_zero": 210}
    assert categories(play) == Counter({category: 30}) + Counter({Category.GOODPUT: 210})


@pytest.mark.parametrize("hours", [9, 20, 400])
def test_a_verdict_is_the_same_whenever_it_is_asked_for(hours: int) -> None:
    """An import of old logs judges as a daemon did: by what was known when the verdict fell.

    Four hours later all jobs fail everywhere, which does not count.
    """
    play, records = black_hole(FAILED_EARLY)
    later = [
        record(
            f"1{resources.fact.job}",
            16000 + n,
            16002 + n,
            startd=resources.startd,
            ending=FAILED_EARLY,
        )
        for n, resources in enumerate(records)
    ]
    play.poll(16500, records=later)
    judge(play, hours)
    assert Counter(outcomes(play).values())["early_exit"] == 30


def test_without_evidence_an_early_failure_is_the_users(play: Play) -> None:
    """After the time in which evidence might have come."""
    failed = Ending(over=True, exit_code=1, own_accord=True, began=True, early=True)
    play.live(0, 600, [shown()], records=[record("1.0", 100, 110, ending=failed)])
    for hours, expected in ((5, "open"), (7, "exit_nonzero")):
        at = hours * HOUR_S
        now = (T0 + at) * SECOND_US
        play.judge(now, Evidence(now))
        play.poll(at, [shown(heard=at)])
        assert outcomes(play) == {"1.0/1": expected}


def test_records_that_name_no_startd_are_counted(play: Play) -> None:
    """They cannot be accounted."""
    play.poll(60, records=[record("1.0", 0, 30, startd="")])
    assert {reason for reason, n in play.accounting.left_out.items() if n} == {"no_startd"}


def test_records_with_times_that_no_clock_shows_are_counted(play: Play) -> None:
    """One of them must not stop the accounting of all."""
    bad = [record("1.0", -2 * T0, 30), record("2.0", 0, 10**12), record("3.0", 0, 30)]
    play.poll(60, [shown()], bad)
    assert play.accounting.left_out[ProblemName.BAD_TIME] == 2
    assert len(play.stored.runs) == 1


def test_two_runs_of_a_job_of_which_only_slots_tell(play: Play) -> None:
    """It was vacated and ran again at once, on the same pilot: the first run is over."""
    play.live(0, 300, [shown()], claims=[claim("1.0", 100)])
    play.live(360, 600, [shown()], claims=[claim("1.0", 330)])
    assert [run.start_us // SECOND_US - T0 for run in play.stored.runs.values()] == [
        100,
        330,
    ]
    play.live(660, 660 + HOUR_S, [shown()], claims=[claim("1.0", 330)])
    found = [run.outcome and run.outcome.label for run in play.stored.runs.values()]
    assert found == ["no_record", None]
    # The schedd's history knows the last run, by its number.
    last = record("1.0", 328, 5000, source=Source.SCHEDD_HISTORY, run=2)
    play.live(720 + HOUR_S, 5040, [shown()], claims=[claim("1.0", 330)])
    play.live(5100, 6000, [shown()], records=[last])
    assert outcomes(play) == {"1.0/?": "no_record", "1.0/2": "exit_zero"}
    play.rest(6060)
    assert play.seconds()["goodput"] == 5000 - 328
    assert play.seconds()["unclassified"] == 200  # until it was seen last


def test_a_run_that_a_slot_shows_is_running_whatever_is_known_of_other_runs() -> None:
    """Vacated on one pilot, the job runs on another for longer than outcomes are waited for."""
    play = Play(Rules(refresh_us=0, outcome_wait_us=600 * SECOND_US))
    pilots = [shown("a@node"), shown("b@node")]
    code = Ending(over=True, vacate_code=1010, began=True)
    vacated = record("1.0", 100, 400, startd="a@node", ending=code)
    other = record("2.0", 600, 1400, startd="b@node")
    now = [claim("1.0", 510, startd="b@node")]
    play.live(0, 360, pilots)
    play.live(420, 480, pilots, records=[vacated])
    play.live(540, 1440, pilots, claims=now)
    play.live(1500, 2940, pilots, records=[other], claims=now)
    over = {"1.0/1": "vacated_by_admin", "2.0/1": "exit_zero"}
    assert outcomes(play) == {**over, "1.0/?": "open"}
    play.restart()
    play.live(3000, 3600, pilots, claims=now)
    assert outcomes(play) == {**over, "1.0/?": "open"}
    # So of its time nothing is settled but what was before it began, less what clocks differ by.
    assert play.pilot("b@node").settled_until_us == (T0 + 510 - 60) * SECOND_US
    last = record("1.0", 508, 3650, run=2, startd="b@node")
    play.live(3660, 3900, pilots, records=[last])
    play.rest(3960)
    assert outcomes(play) == {**over, "1.0/2": "exit_zero"}
    assert play.seconds() == {
        "goodput": 3142.0 + 800,
        "unclassified": 300.0,
        "pilot_overhead": 2 * 4 * 3900.0 - 3142 - 800 - 300,
    }
    assert play.stored.corrected == 0


def test_a_second_run_soon_after_the_first_is_shown_at_once(play: Play) -> None:
    """Every early failure that is tried again does this: 20 s after the first run began."""
    failed = Ending(over=True, exit_code=1, own_accord=True, began=True, early=True)
    first = record("1.0", 128, 145, ending=failed)
    again = [claim("1.0", 148)]
    play.live(0, 120, [shown()])
    play.poll(180, [shown(heard=150)], [first], again)
    assert outcomes(play) == {"1.0/1": "open", "1.0/?": "open"}
    (runs,) = ([run for run in play.stored.runs.values() if run.key.shadow_start is None],)
    assert [(run.start_us, run.end_us) for run in runs] == [((T0 + 148) * SECOND_US, None)]
    play.live(240, 900, [shown()], claims=again)
    play.live(960, 1200, [shown()], records=[record("1.0", 147, 940, run=2)])
    play.rest(1260)
    assert outcomes(play)["1.0/2"] == "exit_zero"
    assert len(play.stored.runs) == 2
    seconds = play.seconds()
    assert (seconds["goodput"], seconds["unclassified"]) == (940 - 147, 145 - 128)


@pytest.mark.parametrize("ahead", [-90, 90, 3000])
def test_a_clock_that_is_off_makes_no_run(play: Play, ahead: int) -> None:
    """A slot's ad says by its own clock when it was sent, and when its claim was activated."""
    ad = heard(
        {
            "Name": "slot1_1@glidein@node",
            "GlobalJobId": "schedd#1.0#1",
            "JobStart": T0 + 102 + ahead,
            "MyCurrentTime": T0 + 540 + ahead,
            "DaemonStartTime": T0 + ahead,
            "Cpus": 1,
            "Memory": 2000,
        },
        T0 + 540,
    )
    found = claims.decode([classad(ad)], "collector", T0 + 545)
    pilot = shown(started=ahead, heard=540)._replace(clock_s=-ahead)
    play.live(0, 540, [pilot])
    play.poll(600, [pilot], claims=found.records)
    assert outcomes(play) == {"1.0/?": "open"}
    play.live(660, 1200, [pilot], records=[record("1.0", 100, 640, started=ahead)])
    play.rest(1260)
    assert outcomes(play) == {"1.0/1": "exit_zero"}
    assert play.seconds() == {"goodput": 540.0, "pilot_overhead": 4 * 1200.0 - 540}


def test_a_run_that_is_shown_again_was_not_over() -> None:
    """Its slot was out of sight for longer than outcomes are waited for."""
    play = Play(Rules(refresh_us=0, outcome_wait_us=600 * SECOND_US))
    play.live(0, 300, [shown()], claims=[claim("1.0", 100)])
    play.live(360, 1200, [shown()])
    assert outcomes(play) == {"1.0/?": "unknown"}
    play.live(1260, 1500, [shown()], claims=[again := claim("1.0", 100)])
    assert outcomes(play) == {"1.0/?": "unknown"}  # an old ad
    fact = again.fact._replace(written_us=(T0 + 1500) * SECOND_US)
    play.live(1560, 1800, [shown()], claims=[again._replace(fact=fact)])
    assert outcomes(play) == {"1.0/?": "open"}
    play.live(1860, 2100, [shown()], records=[record("1.0", 100, 1850)])
    play.rest(2160)
    assert play.seconds() == {"goodput": 1750.0, "pilot_overhead": 4 * 2100.0 - 1750}


@pytest.mark.parametrize("end", [610, 700])
@pytest.mark.parametrize("restarted", [False, True])
def test_what_ran_under_a_startd_that_was_killed_is_lost_with_it(
    play: Play, end: int, restarted: bool
) -> None:
    """The pilot's master starts another startd; the pilot is one, and goes on."""
    first = shown(factory_job="schedd#1.0")
    second = shown(started=640, factory_job="schedd#1.0")
    lost = Ending(over=True, vacate_code=1008, began=True, early=False)
    play.live(0, 660, [first], claims=[claim("1.0", 100)])
    play.live(720, 720, [second])
    if restarted:
        play.restart()
    play.live(780, 1200, [second], records=[record("1.0", 98, end, ending=lost)])
    (run,) = play.stored.runs.values()
    assert run.outcome is not None
    assert (run.outcome.category, run.outcome.label) == ("preemption_badput", "lost_contact")
    after = record("2.0", 800, 1700, started=640)
    failed = Ending(over=True, vacate_code=1008, began=True, early=True)
    again = record("3.0", 1900, 1960, started=640, ending=failed)
    play.live(1260, 3600, [second], records=[after])
    play.live(3660, 4200, [second], records=[again])
    play.rest(4260)
    assert [*outcomes(play).values()] == ["lost_contact", "exit_zero", "starter_lost"]
    assert play.seconds() == {
        "preemption_badput": end - 98.0,
        "goodput": 900.0,
        "unclassified": 60.0,
        "pilot_overhead": 4 * 4200.0 - (end - 98) - 960,
    }
    assert play.pilot().start_us == T0 * SECOND_US
