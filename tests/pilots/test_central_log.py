"""What central logs report of pilots and of the runs on them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.facts import Pilot
from gwmond.model.pilot_life import Assumption, Validation, union
from gwmond.model.pilots.file_facts import (
    CentralEvent,
    PilotName,
    PilotOutput,
    StarterRun,
)
from gwmond.model.pilots.pilot_facts import FailedAdFacts, PilotFacts
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.sources import central_log
from gwmond.pilots.sources.log_lines import line_keys
from tests.build.central_lines import (
    BY_PLACE,
    BY_STARTD,
    CONTAINER,
    END,
    NAME,
    STARTD,
    UNSENT,
    line,
)
from tests.build.facts import A
from tests.build.pilot_files import output, queue, us
from tests.build.play import DONE, Play, claim, record, shown
from tests.build.played import add_files
from tests.examples import examples

FAR = 100_000


def pilot(**more: Any) -> Pilot:
    """The pilot as its collector shows it, with four cores."""
    return shown(STARTD, **more)


def add_lines(play: Play, *lines: CentralEvent) -> None:
    """Report lines."""
    play.add_facts(lines)


def lived(play: Play, last: int = 1200, **more: Any) -> None:
    """Let the pilot be shown from its start until then, its ad renewed every five minutes."""
    play.live(0, last, [pilot()], **more)


def estimated(play: Play) -> float:
    """Core-seconds of the pilots' own time that are estimated."""
    return sum(
        micros / 1e6
        for (_, pilot_series), micros in play.stored.posted.items()
        if (pilot_series.evidence, pilot_series.measure, pilot_series.outcome)
        == ("estimated", "resource", "")
    )


# -- when a pilot ended


def test_the_end_of_a_pilot_that_was_killed(play: Play) -> None:
    """It ended when its log says, not when it was heard of last; nothing of it is estimated."""
    lived(play)
    add_lines(play, line(END, 1375))
    play.rest(3000)
    row = play.pilot(STARTD)
    assert (row.end_source, row.end_us, union(row.assumed.values())) == (
        "central_log",
        us(1375),
        (),
    )
    assert play.seconds() == {"decision_problem": 4 * 1375.0}
    assert estimated(play) == 0


def test_a_site_is_whatever_slots_are_configured_to_call_so(play: Play) -> None:
    """A line that has only the resource's name meets the pilots whose site that is."""
    lived(play)
    add_lines(play, line(END, 1375, PilotName(resource="site", node="node.example.org")))
    play.rest(3000)
    assert play.pilot(STARTD).end_us == us(1375)


def test_a_line_that_comes_late_corrects(play: Play) -> None:
    """The pilot was settled by its last contact, and closed."""
    lived(play)
    play.rest(1260)
    assert play.seconds() == {"decision_problem": 4 * 1200.0}
    add_lines(play, line(END, 1375)._replace(name=BY_STARTD._replace(node="node.example.org")))
    play.rest(60_000, hours=1)
    assert play.seconds() == {"decision_problem": 4 * 1375.0}


def test_a_pilot_that_took_leave(play: Play) -> None:
    """The log knows to the second what the poll knows within a minute."""
    play.live(0, 1200, [pilot()])
    play.poll(1260)
    add_lines(play, line(END, 1221))
    play.rest(1320)
    assert (play.pilot(STARTD).end_source, play.pilot(STARTD).end_us) == ("central_log", us(1221))


def test_the_line_comes_before_the_ad_expires(play: Play) -> None:
    """What a collector still shows of a dead pilot does not call it back to life."""
    lived(play, 1200)
    add_lines(play, line(END, 1230))
    for at in range(1260, 2000, 60):
        play.poll(at, [pilot(heard=1200)])
    play.rest(2060)
    assert play.pilot(STARTD).end_us == us(1230)


def test_an_ad_sent_before_the_end_but_seen_after(play: Play) -> None:
    """The contact is noted; the end stays."""
    lived(play, 1200)
    play.poll(1515, [pilot(heard=1200)])
    add_lines(play, line(END, 1510))
    play.poll(1560, [pilot(heard=1500)])
    play.rest(1620)
    assert (play.pilot(STARTD).end_us, play.pilot(STARTD).posted_last_heard_us) == (
        us(1510),
        us(1500),
    )


def test_of_two_ends_the_later_one_counts() -> None:
    """A master that was started again ends again."""
    for ends in ((1230, 1290), (1290, 1230)):
        play = Play()
        lived(play, 1200)
        for at in ends:
            add_lines(play, line(END, at))
            play.poll(1300, [pilot(heard=1200)])
        play.rest(1360)
        assert play.pilot(STARTD).end_us == us(1290)


@pytest.mark.parametrize("before", [True, False])
def test_a_pilot_that_goes_on(play: Play, before: bool) -> None:
    """Its collector heard of it long after the line: whenever that was told, it did not end."""
    lived(play, 1200)
    if before:
        add_lines(play, line(END, 1000), line(END, 1210))
    play.live(1260, 3600, [pilot()])
    if not before:
        add_lines(play, line(END, 1000), line(END, 1210))
    play.poll(3660, [pilot(heard=3600)])
    assert play.pilot(STARTD).end_us is None
    play.live(3720, 4200, [pilot()])
    add_lines(play, line(END, 4210))
    play.rest(4260)
    assert play.seconds() == {"decision_problem": 4 * 4210.0}


def test_its_own_output_knows_better() -> None:
    """Whichever comes first."""
    for first in (True, False):
        play = Play()
        play.live(0, 1200, [pilot(factory_job="factory#7.0")])
        name = PilotName("factory", "instance", "entry", 7, 0, "factory", "frontend", "main")
        output = PilotOutput("job.7.0.out", name, us(-60), us(1300), validation=Validation.PASSED)
        if first:
            add_lines(play, line(END, 1375))
            play.poll(1260)
        play.add_facts([output])
        add_lines(play, line(END, 1375))
        play.rest(1380)
        assert (play.pilot(STARTD).end_source, play.pilot(STARTD).end_us) == (
            "pilot_output",
            us(1300),
        )


def test_a_pilot_whose_output_has_no_end(play: Play) -> None:
    """Killed hard, and never shown: the log tells its end, also where the output comes again."""
    name = PilotName(
        *("factory", "instance", "entry", 7, 0, "factory", "frontend", "main"),
        site="Site",
        startd=NAME,
        node="node",
    )
    output = PilotOutput("job.7.0.out", name, us(0), None, cores=4, memory_mib=8000)
    output = output._replace(validation=Validation.PASSED, condor_start_us=us(60))
    add_lines(play, line(END, 900))
    play.poll(1000)
    play.add_facts([output])
    play.poll(1060)
    play.add_facts([output])
    play.rest(1120)
    (row,) = play.stored.pilots.values()
    assert (row.end_source, row.end_us) == ("central_log", us(900))
    # Nothing tells whether it ran jobs.
    assert row.assumed == {Assumption.VALIDATION: (us(0), us(900))}
    assert play.seconds() == {"unclassified": 4 * 900.0}


@pytest.mark.parametrize("first", [True, False])
def test_a_pilot_of_which_only_jobs_tell(play: Play, first: bool) -> None:
    """It went on after its last job until its end; all of it stays an estimate."""
    job = record("1.0", 100, 700, startd=STARTD)
    for log in (first, not first):
        if log:
            add_lines(play, line(END, 1000))
        else:
            play.add_records([job])
        play.poll(1100)
    play.rest(1160)
    row = play.pilot(STARTD)
    assert (row.identity.origin, row.end_source, row.end_us) == ("jobs", "central_log", us(1000))
    assert union(row.assumed.values()) == ((us(0), us(1000)),)
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 400.0}


def test_a_collector_shows_it_at_last(play: Play) -> None:
    """Its jobs and its end were told before; what the collector still shows changes neither."""
    play.add_records([record("1.0", 100, 700, startd=STARTD)])
    add_lines(play, line(END, 1000))
    play.poll(1100)
    play.poll(1200, [pilot(heard=900)])
    play.rest(1260)
    row = play.pilot(STARTD)
    assert (row.identity.origin, row.end_source, row.end_us) == (
        "collector",
        "central_log",
        us(1000),
    )
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1000.0 - 600}


def test_a_run_shows_that_it_lived_on(play: Play) -> None:
    """A record of a run outlasts a line; that stretch is an estimate, and no more."""
    lived(play, records=[record("1.0", 600, 1390, startd=STARTD)])
    add_lines(play, line(END, 1375))
    play.rest(3000)
    row = play.pilot(STARTD)
    assert (row.end_us, union(row.assumed.values())) == (us(1390), ((us(1375), us(1390)),))


# -- whose line it is


def test_by_site_node_and_time(play: Play) -> None:
    """A line without a startd's name, of the only pilot that was there then."""
    lived(play, 1200)
    add_lines(play, line(END, 1230, BY_PLACE))
    play.rest(1260)
    assert play.pilot(STARTD).end_us == us(1230)


def test_the_pilot_that_was_there_before_is_not_meant(play: Play) -> None:
    """It was gone long before the line."""
    play.live(0, 1200, [shown("glidein_13_1@node.example.org")])
    play.poll(1260)
    play.live(1320, 2400, [pilot(started=1320)])
    add_lines(play, line(END, 2430, BY_PLACE))
    play.poll(2460)
    assert play.pilot(STARTD).end_us == us(2430)


@pytest.mark.parametrize(("after", "unused"), [(60, {}), (61, {"no_pilot": 1})])
@pytest.mark.parametrize("told_by", ["pilot_output", "queue"])
def test_whose_end_is_told_was_there_until_then(
    play: Play, told_by: str, after: int, unused: dict[str, int]
) -> None:
    """By its output or by its factory's queue: no line is of it later than clocks may differ."""
    if told_by == "queue":
        add_files(play, *queue(0, 1200), output(0, None))
    else:
        add_files(play, output(0, 1200))
    (row,) = play.stored.pilots.values()
    assert (row.end_source, row.end_us) == (told_by, us(1200))
    add_lines(play, line(END, 1200 + after, PilotName(site="entry", node="node")))
    play.rest(50_000)
    assert dict(play.accounting.central_log.unused) == unused


def test_which_stored_pilots_without_a_name_lines_may_mean() -> None:
    """Where nothing more is waited for, and no pilot in memory has the startd's name."""
    cache, named = PilotCache({}), line(END, 1230)
    unplaced = line(END, 1240, BY_STARTD._replace(node=""))
    lines = [named, unplaced]
    assert line_keys(cache, lines, Rules()).nameless == set()
    assert line_keys(cache, lines, Rules(), lines).nameless == {("node", us(1230))}
    identity = PilotIdentity(STARTD, 0, "", "", A, "", "node")
    facts = PilotFacts(failed_ads=FailedAdFacts(us(0), us(60)))
    cache.add_pilot(OpenPilot.new(1, identity, facts))
    assert line_keys(cache, lines, Rules(), lines).nameless == set()


def test_of_two_pilots_on_a_node_none_is_meant(play: Play) -> None:
    """It may have been either; it is counted, with what it said."""
    others = [pilot(), shown("glidein_13_1@node.example.org")]
    play.live(0, 1200, others)
    add_lines(play, line(END, 1230, BY_PLACE))
    play.rest(3000)
    assert {key.end_source for key in play.stored.pilots.values()} == {"ad_expired"}
    assert dict(play.accounting.central_log.unused) == {"several_pilots": 1}
    assert (
        "pilot_end of Site node: message"
        in play.accounting.central_log.examples[ProblemName.SEVERAL_PILOTS]
    )


def test_by_the_factorys_job(play: Play) -> None:
    """Where the line names it: before the startd's name, if any pilot is of that job."""
    play.live(0, 1200, [shown("other@node.example.org", factory_job="factory#7.0"), pilot()])
    add_lines(play, line(END, 1230, PilotName(schedd="factory", cluster=7, proc=0, startd=NAME)))
    add_lines(play, line(END, 1240, PilotName(schedd="factory", cluster=8, proc=0, startd=NAME)))
    play.rest(1260)
    assert play.pilot("other@node.example.org").end_us == us(1230)
    assert play.pilot(STARTD).end_us == us(1240)


def test_of_a_startd_that_was_started_again_the_last_is_meant(play: Play) -> None:
    """Its name is the same; it began at 660 s once more."""
    lived(play, 600)
    play.live(660, 1200, [pilot(started=660)])
    add_lines(play, line(END, 1230))
    play.rest(1260)
    ends = {row.identity.started: row.end_source for row in play.stored.pilots.values()}
    assert [ends[started] == "central_log" for started in sorted(ends)] == [False, True]


def test_a_startds_name_of_another_is_not_this_pilot(play: Play) -> None:
    """Site and node do not matter then."""
    lived(play)
    add_lines(play, line(END, 1230, BY_STARTD._replace(startd="glidein_1_1")))
    play.rest(1260)
    assert play.pilot(STARTD).end_source == "shutdown"
    assert dict(play.accounting.central_log.unused) == {"no_pilot": 1}


def test_a_line_waits_for_its_pilot_across_restarts(play: Play) -> None:
    """The collector shows the pilot for the first time half an hour later."""
    add_lines(play, line(END, 1230))
    play.poll(1260)
    play.restart()
    play.poll(1800)
    play.restart()
    play.poll(2400, [pilot(heard=1200)])
    play.rest(2460)
    assert play.pilot(STARTD).end_us == us(1230)
    assert play.stored.cursors()["central_log", "waiting"].state == ""


def test_it_does_not_wait_for_ever(play: Play) -> None:
    """After an hour it is counted, and forgotten."""
    add_lines(play, line(END, 1230))
    play.rest(1260, hours=1)
    assert not play.accounting.central_log.unused
    play.rest(4860, hours=1)
    assert dict(play.accounting.central_log.unused) == {"no_pilot": 1}
    assert play.stored.cursors()["central_log", "waiting"].state == ""


def test_few_wait(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of strangers' lines does not fill the memory."""
    monkeypatch.setattr(central_log, "MAX_WAITING", 10)
    play.poll(1000)
    add_lines(play, *(line(END, at) for at in range(25)))
    assert dict(play.accounting.central_log.unused) == {"too_many_waiting": 15}
    play.poll(1060, [pilot(started=20, heard=20)])  # the last ones wait
    assert play.pilot(STARTD).end_us == us(24)


def test_what_waits_can_be_stored(play: Play) -> None:
    """However long names are: a cursor has a limit, and what is beyond it waits in memory."""
    long = PilotName(*("ü" * 100,) * 3, 1, 1, *("ü" * 100,) * 5)
    play.poll(1000)
    add_lines(play, *(line(END, at, long, message="\u2028" * 100) for at in range(2000)))
    play.poll(1060)
    state = play.stored.cursors()["central_log", "waiting"].state
    assert 800_000 < len(state) < 1_000_000
    play.restart()
    play.poll(1120)
    assert 100 < len(json.loads(state)) < 2000


def test_times_that_no_clock_shows(play: Play) -> None:
    """Nobody ends in the future; what is a bit early waits for its time."""
    lived(play, 1200)
    add_lines(play, *(line(END, 0)._replace(at_us=at_us) for at_us in (1, 10**17)))
    add_lines(play, line(END, 10**7), line(END, 1600))
    play.poll(1260, [pilot(heard=1200)])
    assert play.pilot(STARTD).end_us is None
    assert dict(play.accounting.central_log.unused) == {"bad_time": 3}
    play.rest(1320)
    assert play.pilot(STARTD).end_us == us(1600)


# -- what happened to a run


def alone(play: Play, *lines: CentralEvent) -> dict[str, float]:
    """Seconds by category of a pilot whose one run only its slot showed, from 300 to 900."""
    lived(play, 300)
    play.live(360, 900, [pilot()], claims=[claim("1.0", 300, startd=STARTD)])
    add_lines(play, *lines)
    play.live(960, 4800, [pilot()])
    play.rest(4860)
    return play.seconds()


def test_an_exit_that_was_not_sent(play: Play) -> None:
    """The run ended then, and nobody knows how: it is no goodput, though nothing else is known."""
    seconds = alone(play, line(UNSENT, 870))
    (row,) = play.stored.runs.values()
    assert row.outcome is not None
    assert (row.end_us, row.outcome.label, row.outcome.evidence) == (
        us(870),
        "lost_contact",
        "estimated",
    )
    assert seconds["unclassified"] == 570
    assert {fact.source for fact in row.facts} >= {Source.CENTRAL_LOG, Source.LIVE_SLOT}


def test_without_it_the_run_ends_when_its_slot_does_not_show_it_any_more(play: Play) -> None:
    """What the line adds: its end, which else is when the claim was seen last."""
    alone(play)
    (row,) = play.stored.runs.values()
    assert row.end_us == us(900)


@pytest.mark.parametrize(
    ("source", "ending"),
    [
        (Source.EPOCH_HISTORY, DONE),
        (Source.STARTD_HISTORY, DONE),
        (Source.SCHEDD_HISTORY, Ending(over=True, completed=True)),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_history_knows_the_exit_after_all(
    play: Play, source: Source, ending: Ending, first: bool
) -> None:
    """The starter reconnected; whichever is told first."""
    lived(play, 300)
    done = record("1.0", 300, 870, source=source, startd=STARTD, ending=ending)
    if first:
        play.live(360, 900, [pilot()], claims=[claim("1.0", 300, startd=STARTD)])
        add_lines(play, line(UNSENT, 870))
        play.live(960, 1500, [pilot()])
        play.add_records([done])
    else:
        play.add_records([done])
        play.live(360, 1500, [pilot()])
        add_lines(play, line(UNSENT, 870))
    play.live(1560, 2400, [pilot()])
    play.rest(2460)
    assert play.seconds()["goodput"] == 570
    assert not play.accounting.central_log.unused
    (row,) = play.stored.runs.values()
    assert (Source.CENTRAL_LOG in {fact.source for fact in row.facts}) is first


def test_a_starters_log_that_says_it_itself(play: Play) -> None:
    """The same line within the pilot's own output: exit 0, but the job runs again."""
    run = StarterRun("1.0", "<submitter>", us(100), us(700), DONE, unsent=True)
    name = PilotName("factory", "instance", "entry", 7, 0, "factory", "frontend", "main")
    output = PilotOutput(
        "job.7.0.out", name, us(0), us(4000), cores=4, memory_mib=8000, runs=(run,)
    )
    play.add_facts([output._replace(validation=Validation.PASSED)])
    play.rest(4100)
    assert play.seconds()["unclassified"] == 600
    assert "goodput" not in play.seconds()


def test_the_run_that_ended_then_is_meant(play: Play) -> None:
    """Of several on the pilot: the records of the others tell when they ended."""
    lived(play, 300)
    claims = [claim(f"{n}.0", 300, startd=STARTD) for n in (1, 2, 3)]
    play.live(360, 840, [pilot()], claims=claims)
    done = [record(f"{n}.0", 300, 850 + n, startd=STARTD) for n in (1, 2)]
    add_lines(play, line(UNSENT, 880))
    play.live(900, 4800, [pilot()], records=done)
    play.rest(4860)
    by_job = {key.job: row for (_, key), row in play.stored.runs.items()}
    assert by_job["schedd#3.0#1"].end_us == us(880)
    assert play.seconds()["goodput"] == 551 + 552


def test_a_run_that_is_shown_later_is_not_meant(play: Play) -> None:
    """Another one on the pilot was gone by then."""
    lived(play, 300)
    goes_on, gone = (claim(f"{n}.0", 300, startd=STARTD) for n in (1, 2))
    play.live(360, 840, [pilot()], claims=[goes_on, gone])
    add_lines(play, line(UNSENT, 860))
    play.live(900, 4800, [pilot()], claims=[goes_on])
    ends = {key.job: row.end_us for (_, key), row in play.stored.runs.items()}
    assert ends == {"schedd#1.0#1": None, "schedd#2.0#1": us(860)}


def test_a_run_of_which_nothing_says_that_it_ended(play: Play) -> None:
    """The line waits for that; then the run's slot shows it again."""
    lived(play, 300)
    running = claim("1.0", 300, startd=STARTD)
    play.live(360, 840, [pilot()], claims=[running])
    add_lines(play, line(UNSENT, 860))
    play.live(900, 3000, [pilot()], complete=False)
    play.live(3060, 6000, [pilot()], claims=[running])
    (row,) = play.stored.runs.values()
    assert (row.end_us, row.outcome) == (None, None)
    assert dict(play.accounting.central_log.unused) == {"no_run": 1}


def test_of_two_runs_none_is_meant(play: Play) -> None:
    """Nothing tells which of them lost its exit."""
    lived(play, 300)
    claims = [claim(f"{n}.0", 300, startd=STARTD) for n in (1, 2)]
    play.live(360, 840, [pilot()], claims=claims)
    add_lines(play, line(UNSENT, 860))
    play.live(900, 4800, [pilot()])
    play.rest(4860)
    assert {row.end_us for row in play.stored.runs.values()} == {us(840)}
    assert dict(play.accounting.central_log.unused) == {"several_runs": 1}


def test_a_container_that_could_not_be_made(play: Play) -> None:
    """No record tells how the run ended: the pilot's container is the cause."""
    lived(play, 300)
    play.live(360, 360, [pilot()], claims=[claim("1.0", 300, startd=STARTD)])
    add_lines(play, line(CONTAINER, 310))
    play.live(420, 4800, [pilot()])
    play.rest(4860)
    (row,) = play.stored.runs.values()
    assert row.outcome is not None
    assert (row.outcome.label, row.outcome.evidence) == ("image_failed", "estimated")
    assert play.seconds()["unclassified"] == 60  # no other place to compare with


def test_a_container_that_failed_in_a_run_whose_end_is_lost(play: Play) -> None:
    """Its program had begun by its starter's log; it ended at the line, not with its pilot."""
    begun = Ending(began=True)
    run = record("1.0", 300, None, startd=STARTD, ending=begun, source=Source.STARTER_LOG)
    lived(play, 1200)
    play.poll(1260, records=[run])
    add_lines(play, line(CONTAINER, 320))
    play.rest(1320)
    (row,) = play.stored.runs.values()
    assert row.outcome is not None
    assert (row.outcome.label, row.outcome.evidence) == ("image_failed", "estimated")
    assert (row.start_us, row.end_us) == (us(300), us(320))
    assert play.seconds()["unclassified"] == 20
    assert "preemption_badput" not in play.seconds()


@pytest.mark.parametrize(
    ("ending", "category"),
    [
        (Ending(over=True, completed=True, exit_code=1), "goodput"),
        (Ending(over=True, vacate_code=1013), "preemption_badput"),
    ],
)
def test_whoever_tells_the_cause_is_believed(play: Play, ending: Ending, category: str) -> None:
    """A line is no more than what was printed at that time."""
    job = record("1.0", 300, 420, startd=STARTD, ending=ending, source=Source.SCHEDD_HISTORY)
    lived(play, records=[job])
    add_lines(play, line(CONTAINER, 310))
    play.rest(1260)
    assert play.seconds()[category] == 120


def test_a_container_failure_of_no_run(play: Play) -> None:
    """Such as during validation, or far from any run's beginning: an example in the log."""
    lived(play, 2400, records=[record("1.0", 300, 2000, startd=STARTD)])
    add_lines(play, line(CONTAINER, 1500))
    play.rest(2460)
    assert play.seconds()["goodput"] == 1700
    assert dict(play.accounting.central_log.unused) == {"no_run": 1}


def test_a_run_that_is_no_longer_in_memory(play: Play) -> None:
    """The line comes hours later; the ledger has the run."""
    seconds = alone(play)
    assert seconds["unclassified"] == 600
    name = BY_STARTD._replace(node="node.example.org")
    add_lines(play, line(UNSENT, 870, name))
    play.rest(FAR, hours=4)
    assert play.seconds()["unclassified"] == 570
    assert play.stored.corrected


# -- whatever comes in whatever order


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[list[CentralEvent]], list[list[CentralEvent]]]:
    """Lines in two orders, cut differently, one with repetitions; some are of nobody."""
    names = st.sampled_from([BY_STARTD, BY_PLACE, BY_STARTD._replace(startd="glidein_1_1")])
    times = st.sampled_from([0, 310, 330, 690, 870, 890, 1000, 1150, 1185, 1230, 1300, 1375, 1400])
    lines = st.builds(line, st.sampled_from([END, UNSENT, CONTAINER]), times, names)
    told = draw(st.lists(lines, max_size=6))
    orders = []
    for more in (0, 3):
        again = draw(st.lists(st.sampled_from(told), max_size=more)) if told else []
        order = draw(st.permutations([*told, *again]))
        cut = draw(st.integers(0, len(order)))
        orders.append([order[:cut], order[cut:]])
    return orders[0], orders[1]


def _played(parts: list[list[CentralEvent]], restart: bool) -> Play:
    play = Play(Rules(refresh_us=0, quiet_us=3600 * SECOND_US))
    lived(play, 300)
    play.live(360, 900, [pilot()], claims=[claim("1.0", 300, startd=STARTD)])
    jobs = [record("2.0", 320, 700, startd=STARTD), record("3.0", 1000, 1190, startd=STARTD)]
    play.live(960, 1200, [pilot()], records=jobs)
    for number, part in enumerate(parts):
        add_lines(play, *part)
        play.poll(1500 + 60 * number, known=1000)
        if restart:
            play.restart()
    play.rest(1620)
    return play


@pytest.mark.parametrize("adopted", [False, True])
@pytest.mark.parametrize("restart", [False, True])
def test_a_logged_end_before_a_pilot_of_jobs_is_posted(
    play: Play, restart: bool, adopted: bool
) -> None:
    """It is counted once, when it is posted, also if it was stored before that."""
    play.poll(0, records=[record("1.0", -600, -60, startd=STARTD)], known=-FAR)
    add_lines(play, line(END, -50))
    play.poll(60, known=-FAR)
    assert play.pilot(STARTD).end_source == "central_log"
    assert not +play.stored.counts
    if restart:
        play.restart()
    if adopted:
        play.poll(120, [pilot(started=-700, heard=120)], known=-FAR)
        assert min(play.stored.counts.values(), default=0) >= 0
    play.rest(180)
    counted = play.counted()
    assert counted.pop("assumed", 0) >= 0
    assert counted == {"pilots": 1, "runs": 1}


@settings(max_examples=examples(60))
@given(logs(), st.booleans())
def test_neither_order_nor_repetition_matters(
    told: tuple[list[list[CentralEvent]], list[list[CentralEvent]]], restart: bool
) -> None:
    """The same end, the same time by category, and it sums up exactly."""
    one, other = (_played(parts, restart) for parts in told)
    ends = [play.pilot(STARTD)[3] for play in (one, other)]
    assert ends[0] == ends[1]
    for measure in ("resource", "canonical"):
        assert one.seconds(measure) == other.seconds(measure)
    for play in (one, other):
        row = play.pilot(STARTD)
        assert row.end_us is not None
        assert sum(play.seconds().values()) == 4 * (row.end_us - row.start_us) / 1e6


# -- pilots that are in the ledger alone


@pytest.mark.parametrize(
    "name",
    [
        BY_STARTD,
        BY_STARTD._replace(node="NODE.other.domain"),
        BY_PLACE,
        BY_PLACE._replace(node="node.example.org"),
        PilotName(schedd="factory", cluster=7, proc=0),
    ],
)
def test_a_pilot_that_is_forgotten_is_looked_for(play: Play, name: PilotName) -> None:
    """It is closed and not in memory any more; its host may be called otherwise."""
    lone = pilot(factory_job="factory#7.0")
    play.live(0, 1200, [lone])
    play.rest(60_000, hours=8)
    assert play.pilot(STARTD).closed
    assert not play.accounting.pilots
    add_lines(play, line(END, 1375, name))
    play.rest(60_060, hours=1)
    assert (play.pilot(STARTD).end_source, play.pilot(STARTD).end_us) == ("central_log", us(1375))
    assert play.seconds() == {"decision_problem": 4 * 1375.0}
    assert not play.accounting.central_log.unused


def test_who_is_not_patient_lets_nothing_wait(play: Play) -> None:
    """A line that is older than that is left at once; a younger one waits."""
    play.poll(10_000)
    play.accounting.central_log.patience_us = 600 * SECOND_US
    add_lines(play, line(END, 9300), line(END, 9500))
    assert dict(play.accounting.central_log.unused) == {"no_pilot": 1}
    (waiting,) = central_log.load(play.accounting.central_log.cursors()[0].state)
    assert waiting.at_us == us(9500)
