"""From records of jobs to outcomes, and when these are said."""

from __future__ import annotations

from collections import Counter

import pytest

from gwmond.model.pilot_life import Category
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobRecord
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import Evidence
from gwmond.sources.htcondor.pilots import claims
from tests.build.play import DONE, T0, Play, claim, record, shown
from tests.build.playbook import Playbook, playbooks
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


PLAYBOOKS = """
A claim waits for its record
  ad 0-900 with claim 1.0 102; = runs 1.0/? 102- open; ad 960-1200 with record 1.0 100-930;
  rest 1260
  -> runs 1.0/1 100-930 exit_zero; time goodput 830, pilot_overhead 3970; corrected 0

A claim that is gone without a record is open for a while
  ad 0-900 with claim 1.0 100; ad 960-4440
  -> runs 1.0/? 100- open

Then it is given up: it was there, so the pilot did not idle; it is not known how it ended
  ad 0-900 with claim 1.0 100; ad 960-5100; rest 5160 8
  -> runs 1.0/? 100-900 unknown~; time pilot_overhead 19600, unclassified 800

Whether the pilot ended with a run decides, and is waited for; it lives on
  ad 0-900; ad 960 heard=900 with record 1.0 100-880 ending=cut; = runs 1.0/1 100-880 open;
  ad 1020-3000; rest 3060
  -> runs 1.0/1 100-880 vacated

It is gone
  ad 0-900; ad 960 heard=900 with record 1.0 100-880 ending=cut; rest 3060
  -> runs 1.0/1 100-880 pilot_shutdown

Where only jobs tell of a pilot a longer run shows that it went on
  none 3000 with record 1.0 100-1000 ending=cut_late; none 3000 with record 2.0 50-3000;
  rest 20060 8
  -> runs 2.0/1 50-3000 exit_zero, 1.0/1 100-1000 vacated

The same where the longer run is told later
  none 3000 with record 1.0 100-1000 ending=cut_late; none 20000 with record 2.0 50-3000;
  rest 20060 8
  -> runs 2.0/1 50-3000 exit_zero, 1.0/1 100-1000 vacated

So does one that was in contact until that was lost
  none 3000 with record 1.0 100-1000 ending=cut_late, record 2.0 50-3000 ending=contact;
  rest 20060 8
  -> runs 2.0/1 50-3000 lost_contact, 1.0/1 100-1000 vacated

And not one of which it is not known since when it was lost
  none 3000 with record 1.0 100-1000 ending=cut_late, record 2.0 50-3000 ending=lost_late;
  rest 20060 8
  -> runs 2.0/1 50-3000 lost_contact, 1.0/1 100-1000 pilot_shutdown

Nor the same end of the pilot, which took its time
  none 3000 with record 1.0 100-1000 ending=cut_late, record 2.0 50-3000 ending=cut_late;
  rest 20060 8
  -> runs 2.0/1 50-3000 pilot_shutdown, 1.0/1 100-1000 pilot_shutdown

Nor one that was hardly longer
  none 1100 with record 1.0 100-1000 ending=cut_late, record 2.0 50-1100; rest 20060 8
  -> runs 2.0/1 50-1100 exit_zero, 1.0/1 100-1000 pilot_shutdown

What only the startd has waits for the schedd's record as long as that may come; and no longer
  ad 0-600; ad 720 heard=600 known=600 with record 1.0 100-700 source=startd_history;
  = runs 1.0/1 100-700 open; ad 780 heard=600 known=750
  -> runs 1.0/1 100-700 exit_zero

A run moves to the pilot that a better source names, and its time with it
  ad 0-900 a@node b@node with record 1.0 100-700 startd=a@node;
  ad 960-1200 a@node b@node with record 1.0 100-700 startd=b@node source=startd_history; rest 1260
  -> runs 1.0/1 100-700 exit_zero; on b@node;
  time decision_problem 4800, goodput 600, pilot_overhead 4200

Records that name no startd cannot be accounted
  none 60 with record 1.0 0-30 startd=
  -> left_out no_startd 1

Times that no clock shows are counted, and stop nothing
  ad 60 with record 1.0 -3400000800-30, record 2.0 0-1000000000000, record 3.0 0-30
  -> left_out bad_time 2; runs 3.0/1 0-30 exit_zero

Two runs of a job of which only slots tell: it was vacated and ran again at once
  ad 0-300 with claim 1.0 100; ad 360-600 with claim 1.0 330
  -> runs 1.0/? 100- open, 1.0/? 330- open

The first is over; the schedd's history knows the last by its number
  ad 0-300 with claim 1.0 100; ad 360-5040 with claim 1.0 330;
  ad 5100-6000 with record 1.0 328-5000 run=2 source=schedd_history; rest 6060
  -> runs 1.0/? 100-300 no_record~, 1.0/2 328-5000 exit_zero;
  time goodput 4672, pilot_overhead 19128, unclassified 200

A second run soon after the first is shown at once, as of a failure that is tried again
  ad 0-120; ad 180 heard=150 with record 1.0 128-145 ending=failed, claim 1.0 148;
  = runs 1.0/1 128-145 open, 1.0/? 148- open; ad 240-900 with claim 1.0 148;
  ad 960-1200 with record 1.0 147-940 run=2; rest 1260
  -> runs 1.0/1 128-145 exit_retried, 1.0/2 147-940 exit_zero;
  time goodput 793, pilot_overhead 3990, unclassified 17

What ran under a startd that was killed is lost with it; the pilot is one, and goes on
  ad 0-660 job=schedd#1.0 with claim 1.0 100; ad 720 started=640 job=schedd#1.0; ?restart;
  ad 780-1200 started=640 job=schedd#1.0 with record 1.0 98-610 ending=lost_late;
  ad 1260-3600 started=640 job=schedd#1.0 with record 2.0 800-1700 started=640;
  ad 3660-4200 started=640 job=schedd#1.0 with record 3.0 1900-1960 started=640 ending=lost_soon;
  rest 4260
  -> runs 1.0/1 98-610 lost_contact, 2.0/1 800-1700 exit_zero, 3.0/1 1900-1960 starter_lost;
  pilots 0-4200 shutdown;
  time goodput 900, pilot_overhead 15328, preemption_badput 512, unclassified 60

Also one that ended a minute after its startd by its schedd
  ad 0-660 job=schedd#1.0 with claim 1.0 100; ad 720 started=640 job=schedd#1.0; ?restart;
  ad 780-1200 started=640 job=schedd#1.0 with record 1.0 98-700 ending=lost_late; rest 1260
  -> runs 1.0/1 98-700 lost_contact
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS))
def test_runs(playbook: Playbook) -> None:
    playbook.check()


WITH_SHORT_WAITS = """
A record that is told twice counts once: by several sources, after a restart, and when it is closed
  ad 0-900 with record 1.0 100-700; restart;
  ad 960-1200 with record 1.0 100-700, record 1.0 100-700 source=schedd_history; rest 1260 2;
  none 9000 with record 1.0 100-700, record 1.0 100-700 source=schedd_history; rest 9060
  -> time goodput 600, pilot_overhead 4200; corrected 0

A better record, days later, corrects what was settled; as the schedd's history does here
  ad 0-1500 with record 1.0 100-700 ending=killed; rest 1560 3;
  = runs 1.0/1 100-700 ended_by_condor; restart;
  none 40000 with record 1.0 100-700 ending=held source=schedd_history; rest 40060
  -> runs 1.0/1 100-700 held_for_limit; time pilot_overhead 5400, unclassified 600

A run that a slot shows is running, whatever is known of other runs of its job
  ad 0-360 a@node b@node;
  ad 420-480 a@node b@node with record 1.0 100-400 startd=a@node ending=vacated;
  ad 540-1440 a@node b@node with claim 1.0 510 startd=b@node;
  ad 1500-2940 a@node b@node with record 2.0 600-1400 startd=b@node, claim 1.0 510 startd=b@node;
  ?restart; ad 3000-3600 a@node b@node with claim 1.0 510 startd=b@node;
  = runs 1.0/1 100-400 vacated_by_admin, 1.0/? 510- open, 2.0/1 600-1400 exit_zero; = settled 450;
  ad 3660-3900 a@node b@node with record 1.0 508-3650 run=2 startd=b@node; rest 3960
  -> runs 1.0/1 100-400 vacated_by_admin, 1.0/2 508-3650 exit_zero, 2.0/1 600-1400 exit_zero;
  time goodput 3942, pilot_overhead 26958, unclassified 300; corrected 0
"""


@pytest.mark.parametrize(
    "playbook", playbooks(WITH_SHORT_WAITS, linger_us=SECOND_US, outcome_wait_us=600 * SECOND_US)
)
def test_runs_with_short_waits(playbook: Playbook) -> None:
    playbook.check()


def test_it_is_waited_for_longer_while_its_schedd_is_silent(play: Play) -> None:
    """A day, by default."""
    play.live(0, 900, [shown()], claims=[claim("1.0", 100)])
    for at in range(960, 80_000, 600):
        now = (T0 + at) * SECOND_US
        play.add_ads(now, 60 * SECOND_US, [shown(heard=at)], complete=True)
        play.add_claims(now, [], complete=True)
        play.settle(now, now, {"schedd"})
    assert not any(run.outcome for pilot in play.accounting.pilots for run in pilot.runs.values())


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
    play.poll(600, [pilot], claims=[*found.records])
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
