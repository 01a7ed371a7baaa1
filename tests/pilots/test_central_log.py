"""What central logs report of pilots and of the runs on them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.facts import Pilot
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import (
    CentralEvent,
    PilotName,
    PilotOutput,
    StarterRun,
)
from gwmond.model.pilots.pilot_facts import FailedAdFacts, PilotFacts
from gwmond.model.pilots.stored_pilots import PilotIdentity
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
from tests.build.pilot_files import us
from tests.build.play import DONE, Play, claim, record, shown
from tests.build.playbook import Playbook, playbooks
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


PLAYBOOKS = """
A pilot that was killed ended when its log says; nothing of it is estimated
  ad 0-1200; line end 1375; rest 3000
  -> pilots 0-1375 central_log; assumed; time decision_problem 5500;
  evidence decision_problem measured

A site is whatever slots are configured to call so: the line has only the resource
  ad 0-1200; line end 1375 resource; rest 3000
  -> pilots 0-1375 central_log

A line that comes late, of a pilot that was closed by its last contact, corrects
  ad 0-1200; rest 1260; line end 1375 host; rest 60000 1
  -> time decision_problem 5500

The log knows to the second when a pilot took leave, which the poll knows within a minute
  ad 0-1200; none 1260; line end 1221; rest 1320
  -> pilots 0-1221 central_log

What a collector still shows of a dead pilot does not call it back to life
  ad 0-1200; line end 1230; ad 1260-1980 heard=1200; rest 2060
  -> pilots 0-1230 central_log

An ad sent before the end but seen after it is a contact, and the end stays
  ad 0-1200; ad 1515 heard=1200; line end 1510; ad 1560 heard=1500; rest 1620
  -> pilots 0-1510 central_log; contact 1500

A master that was started again ends again: the later end counts
  ad 0-1200; line end 1230; ad 1300 heard=1200; line end 1290; ad 1300 heard=1200; rest 1360
  -> pilots 0-1290 central_log

The same the other way round
  ad 0-1200; line end 1290; ad 1300 heard=1200; line end 1230; ad 1300 heard=1200; rest 1360
  -> pilots 0-1290 central_log

A pilot of which its collector heard long after the line goes on
  ad 0-1200; line end 1000; line end 1210; ad 1260-3600; ad 3660 heard=3600
  -> pilots 0-

The same where the line comes later
  ad 0-1200; ad 1260-3600; line end 1000; line end 1210; ad 3660 heard=3600
  -> pilots 0-

It ends at its last line, whatever earlier ones said
  ad 0-1200; line end 1210; ad 1260-4200; line end 4210; rest 4260
  -> time decision_problem 16840

Its own output knows better, whichever comes first
  ad 0-1200 job=factory#7.0; line end 1375; none 1260; output -60-1300; line end 1375; rest 1380
  -> pilots -60-1300 pilot_output

The same where the output comes first
  ad 0-1200 job=factory#7.0; output -60-1300; line end 1375; rest 1380
  -> pilots -60-1300 pilot_output

Killed hard and never shown: the log has the end that the output has not, told once or twice
  line end 900; none 1000; output 0- site=Site startd=glidein_12_345 condor_start=60 logs=no;
  none 1060; output 0- site=Site startd=glidein_12_345 condor_start=60 logs=no; rest 1120
  -> pilots 0-900 central_log; assumed validation 0-900; time unclassified 3600

A pilot of which only jobs tell went on after its last job; all of it stays an estimate
  line end 1000; none 1100; record 1.0 100-700; none 1100; rest 1160
  -> pilots 0-1000 central_log; origin jobs; assumed life 0-1000;
  time goodput 600, pilot_overhead 400

The same where its jobs are told first
  record 1.0 100-700; none 1100; line end 1000; none 1100; rest 1160
  -> pilots 0-1000 central_log; origin jobs; assumed life 0-1000;
  time goodput 600, pilot_overhead 400

A collector shows it at last: what it still shows changes neither jobs nor end
  record 1.0 100-700; line end 1000; none 1100; ad 1200 heard=900; rest 1260
  -> pilots 0-1000 central_log; origin collector; time goodput 600, pilot_overhead 3400

A record of a run outlasts a line; that stretch is an estimate, and no more
  ad 0-1200 with record 1.0 600-1390; line end 1375; rest 3000
  -> pilots 0-1390 central_log; assumed end 1375-1390

By site, node and time: a line without a startd's name, of the only pilot that was there then
  ad 0-1200; line end 1230 place; rest 1260
  -> pilots 0-1230 central_log

The pilot that was there before is not meant
  ad 0-1200 glidein_13_1@node.example.org; none 1260; ad 1320-2400 started=1320;
  line end 2430 place; none 2460
  -> pilots 0-1200 shutdown, 1320-2430 central_log

Whose end is told was there until then, by its output
  output 0-1200; done 2000; line end 1260 place site=entry; rest 50000
  -> pilots 0-1200 pilot_output; unused

No line is of it later than clocks may differ
  output 0-1200; done 2000; line end 1261 place site=entry; rest 50000
  -> pilots 0-1200 pilot_output; unused no_pilot 1

The same by its factory's queue
  queue 0-1200; output 0-; done 2000; line end 1260 place site=entry; rest 50000
  -> pilots 0-1200 queue; unused

And later than that
  queue 0-1200; output 0-; done 2000; line end 1261 place site=entry; rest 50000
  -> pilots 0-1200 queue; unused no_pilot 1

Of two pilots on a node none is meant
  ad 0-1200 glidein_12_345@node.example.org glidein_13_1@node.example.org; line end 1230 place;
  rest 3000
  -> pilots 0-1200 ad_expired, 0-1200 ad_expired; unused several_pilots 1

Of a startd that was started again the last is meant
  ad 0-600; ad 660-1200 started=660; line end 1230; rest 1260
  -> pilots 0-600 ad_expired, 660-1230 central_log

A startd's name of another is not this pilot, whatever site and node
  ad 0-1200; line end 1230 other; rest 1260
  -> pilots 0-1200 shutdown; unused no_pilot 1

A line waits for its pilot across restarts
  line end 1230; none 1260; restart; none 1800; restart; ad 2400 heard=1200; rest 2460
  -> pilots 0-1230 central_log; waiting

It does not wait for ever; after an hour it is counted, and forgotten
  line end 1230; rest 1260 1; = unused; rest 4860 1
  -> unused no_pilot 1; waiting

An exit that was not sent: the run ended then, and nobody knows how
  ad 0-300; ad 360-900 with claim 1.0 300; line unsent 870; ad 960-4800; rest 4860
  -> runs 1.0/? 300-870 lost_contact~; time pilot_overhead 18630, unclassified 570

Without the line the run ends when its slot does not show it any more
  ad 0-300; ad 360-900 with claim 1.0 300; ad 960-4800; rest 4860
  -> runs 1.0/? 300-900 unknown~

A history knows the exit after all: the starter reconnected
  ad 0-300; ad 360-900 with claim 1.0 300; line unsent 870; ad 960-1500; record 1.0 300-870;
  ad 1560-2400; rest 2460
  -> time goodput 570, pilot_overhead 9030; unused

The same by its startd's history
  ad 0-300; ad 360-900 with claim 1.0 300; line unsent 870; ad 960-1500;
  record 1.0 300-870 source=startd_history; ad 1560-2400; rest 2460
  -> time goodput 570, pilot_overhead 9030; unused

The same by its schedd's
  ad 0-300; ad 360-900 with claim 1.0 300; line unsent 870; ad 960-1500;
  record 1.0 300-870 source=schedd_history ending=told; ad 1560-2400; rest 2460
  -> time goodput 570, pilot_overhead 9030; unused

And where the history is read first
  ad 0-300; record 1.0 300-870; ad 360-1500; line unsent 870; ad 1560-2400; rest 2460
  -> time goodput 570, pilot_overhead 9030; unused

Of several runs the one that ended then is meant: records of the others say when they ended
  ad 0-300; ad 360-840 with claim 1.0 300, claim 2.0 300, claim 3.0 300; line unsent 880;
  ad 900-4800 with record 1.0 300-851, record 2.0 300-852; rest 4860
  -> runs 1.0/1 300-851 exit_zero, 2.0/1 300-852 exit_zero, 3.0/? 300-880 lost_contact~

A run that is shown later is not meant
  ad 0-300; ad 360-840 with claim 1.0 300, claim 2.0 300; line unsent 860;
  ad 900-4800 with claim 1.0 300
  -> runs 1.0/? 300- open, 2.0/? 300-860 lost_contact~

A run of which nothing says that it ended goes on when its slot shows it again
  ad 0-300; ad 360-840 with claim 1.0 300; line unsent 860; ad 900-3000 complete=0;
  ad 3060-6000 with claim 1.0 300
  -> runs 1.0/? 300- open; unused no_run 1

Of two runs none is meant
  ad 0-300; ad 360-840 with claim 1.0 300, claim 2.0 300; line unsent 860; ad 900-4800; rest 4860
  -> runs 1.0/? 300-840 unknown~, 2.0/? 300-840 unknown~; unused several_runs 1

A container that could not be made is the cause where no record says how the run ended
  ad 0-300; ad 360 with claim 1.0 300; line container 310; ad 420-4800; rest 4860
  -> runs 1.0/? 300-360 image_failed~; time pilot_overhead 19140, unclassified 60

A container that failed in a run whose end is lost: it ended at the line, not with its pilot
  ad 0-1200; none 1260 with record 1.0 300- source=starter_log ending=begun; line container 320;
  rest 1320
  -> runs 1.0/1 300-320 image_failed~; time pilot_overhead 4780, unclassified 20

Whoever tells the cause is believed: the program exited
  ad 0-1200 with record 1.0 300-420 source=schedd_history ending=nonzero; line container 310;
  rest 1260
  -> time goodput 120, pilot_overhead 4680

Or it was evicted
  ad 0-1200 with record 1.0 300-420 source=schedd_history ending=evicted; line container 310;
  rest 1260
  -> time pilot_overhead 4680, preemption_badput 120

A container failure of no run, such as during validation
  ad 0-2400 with record 1.0 300-2000; line container 1500; rest 2460
  -> time goodput 1700, pilot_overhead 7900; unused no_run 1

A container that failed in a run that a history has: the history knows better
  ad 0-1200 with record 0.0 100-400; line container 110; rest 1260
  -> time goodput 300, pilot_overhead 4500; unused

The same of each run that may be meant
  ad 0-1200 with record 0.0 100-400, record 1.0 101-400; line container 110; rest 1260
  -> time goodput 599, pilot_overhead 4201; unused

A line about a run that is no longer in memory: the ledger has it
  ad 0-300; ad 360-900 with claim 1.0 300; ad 960-4800; rest 4860; line unsent 870 host;
  rest 100000 4
  -> time pilot_overhead 18630, unclassified 570
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS, STARTD))
def test_lines(playbook: Playbook) -> None:
    playbook.check()


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


def test_by_the_factorys_job(play: Play) -> None:
    """Where the line names it: before the startd's name, if any pilot is of that job."""
    play.live(0, 1200, [shown("other@node.example.org", factory_job="factory#7.0"), pilot()])
    add_lines(play, line(END, 1230, PilotName(schedd="factory", cluster=7, proc=0, startd=NAME)))
    add_lines(play, line(END, 1240, PilotName(schedd="factory", cluster=8, proc=0, startd=NAME)))
    play.rest(1260)
    assert play.pilot("other@node.example.org").end_us == us(1230)
    assert play.pilot(STARTD).end_us == us(1240)


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
