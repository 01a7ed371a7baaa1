"""Pilots that only advertise that their validation failed, alone and with what else tells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from gwmond.model.facts import Pilot, Size
from gwmond.model.pilot_life import Assumption, Validation
from gwmond.model.pilots.file_facts import FileFact, PilotOutput
from gwmond.model.pilots.pilot_facts import (
    FailedAdFacts,
    Origin,
    OutputFacts,
    PilotFacts,
    RunBounds,
)
from gwmond.model.pilots.stored_pilots import PilotIdentity, PilotRow
from gwmond.pilots.memory.ends import follow
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.memory.sizes import Sizes
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot
from gwmond.sources.gwms import pilot_output
from tests.build.facts import A
from tests.build.gwms import generate
from tests.build.gwms.simulated import one
from tests.build.pilot_files import JOB, SIZE, line, output, queue, us
from tests.build.play import T0, Play, shown
from tests.build.playbook import Playbook, playbooks
from tests.build.played import only

DIES = 1199


def ad(sent: int = 0, first: int = 0, number: int = 1, dies: int | None = DIES) -> Pilot:
    """What a collector shows of one: the ads from ``first`` to ``sent``, seconds from T0."""
    return shown(f"glidein_17_{number}@node", first, sent, factory_job=JOB)._replace(
        size=None,
        accepting=False,
        dies=None if dies is None else T0 + dies,
        failed=True,
        failure="validate_node.sh",
    )


def wait(play: Play, first: int = 0, last: int = DIES + 800, **more: Any) -> None:
    """It sends an ad every five minutes until it ends; each has another name, and expires."""
    for at in range(first, last + 1, 60):
        sent = min(at - at % 300, 900)
        oldest = max(0, (at - 900 + 299) // 300 * 300)
        visible = at <= sent + 900
        play.poll(at, [ad(sent, oldest, oldest // 300, **more)] if visible else [])


PLAYBOOKS = """
All of its time is lost, from its first ad to the end that it announces; ads that live on are none
  failing 0-1999; rest 2099
  -> pilots 0-1199 assumed; validation failed; failure validate_node.sh; counted pilots 1;
  time validation_fails 1199; evidence validation_fails estimated;
  assumed end 900-1199, size 0-1199

It counts while it waits: no job can come
  failing 0-600
  -> pilots 0-; time validation_fails 480

Its output meets its ads: they are one pilot, and what it says replaces what was assumed
  failing 0-1999; = time validation_fails 1199; output -60-1210 validation=failed; done 3000
  -> time validation_fails 5080; pilots -60-1210 pilot_output; assumed;
  failure WN_Resource main/validate_node.sh; evidence validation_fails measured

The same where it comes first
  output -60-1210 validation=failed; failing 0-1999; rest 2099
  -> time validation_fails 5080; pilots -60-1210 pilot_output; assumed;
  failure WN_Resource main/validate_node.sh; evidence validation_fails measured

Its output comes while its ads live on, which do not move the end
  failing 0-1260; output -60-1210 validation=failed; failing 1320-1999; rest 2099
  -> pilots -60-1210 pilot_output; time validation_fails 5080

An output without an end and a size: its ads have the one, and its entry the other
  failing 0-1999; output -60- validation=failed cores=none; done 3000
  -> pilots -60-1199 assumed; assumed end 900-1199, size -60-1199

Its factory's queue had told of it: the ad says why, the queue when it was
  queue -100-1204; done 2000; = validation unknown; failing 50000 sent=900; rest 50060;
  = failure validate_node.sh; = time validation_fails 5216; queue -100-1205; done 100000
  -> validation failed; pilots -100-1204 queue

Its factory's queue tells of it later: it is the same pilot
  failing 0-1999; queue -100-1204; done 3000
  -> validation failed; failure validate_node.sh; pilots 0-1204 queue

Ads that are heard after the end, such as the last one, which says that it ends now
  failing 0-1440 sent=now; rest 1499
  -> pilots 0-1199 ad_expired; time validation_fails 1199

An end before its first ad makes no sense: the last ad counts
  failing 0-600 sent=now dies=-10; rest 660
  -> pilots 0-600 ad_expired

So does one that no clock shows
  failing 0-600 sent=now dies=1000000000000000; rest 660
  -> pilots 0-600 ad_expired

One that was killed has been silent for longer than its ads take, and ended with its last
  failing 0-1200 sent=300; none 1260-1440; rest 1500
  -> pilots 0-300 ad_expired; assumed size 0-300

One that says no end ended with its last ad
  failing 0-1999 dies=none; rest 2099
  -> pilots 0-900 ad_expired

gwmond was down meanwhile: it is taken to have ended when it had announced
  failing 0; restart; rest 20000
  -> pilots 0-1199 assumed; time validation_fails 1199

The same a while later
  failing 0-300; restart; rest 20000
  -> pilots 0-1199 assumed; time validation_fails 1199

One that is seen late began at the latest when it sent the first ad that is still there
  failing 600-1999
  -> pilots 0-1199 assumed

It had registered before: its HTCondor ran and ended badly, so it has passed, and goes on
  ad -600-0 glidein@node started=-600 job=factory#7.0 with record 1.0 -500--100;
  failing 120-600 sent=now; = pilots -600-; none 660-840; rest 1000
  -> validation passed; failure; pilots -600-600 shutdown
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS))
def test_failing(playbook: Playbook) -> None:
    playbook.check()


@pytest.mark.parametrize(
    ("others", "expected", "size"),
    [
        (2, {"entry": Size(16, 32000)}, Size(8, 16000)),
        (0, {"entry": Size(16, 32000, 1)}, Size(16, 32000, 1)),
        (0, {"other": Size(16, 32000)}, Size(1, 2000)),
    ],
    ids=["its entry's pilots", "what is expected", "one unit"],
)
def test_how_large_it_is(play: Play, others: int, expected: dict[str, Size], size: Size) -> None:
    """As its entry's other pilots, else as they are expected to be, else one canonical unit."""
    play.add_facts((), expected)
    play.poll(-60, [shown(f"p{n}@node", -600, -60, cores=8, memory=16000) for n in range(others)])
    wait(play)
    (row,) = (pilot for pilot in play.stored.pilots.values() if pilot.identity.factory_job == JOB)
    assert [step.size for step in row.steps] == [size]


def test_a_single_unit_gives_way_to_what_is_learnt(play: Play) -> None:
    """What is assumed for want of anything better is corrected as long as it waits."""
    wait(play, last=300)
    assert only(play).steps[0].size == Size(1, 2000)
    play.add_facts((), {"entry": Size(4, 8000)})
    wait(play, first=360)
    play.rest(DIES + 900)
    assert only(play).steps[0].size == Size(4, 8000)
    assert play.seconds() == {"validation_fails": 4.0 * DIES}


def test_what_the_list_of_pilots_says(play: Play) -> None:
    """While it waits, and after."""
    wait(play, last=600)
    for state in ("failed", "ended"):
        line = StoredPilot(only(play), (), AsOf(only(play).posted_last_heard_us))
        assert (line.state, line.doing) == (state, "failed validation: validate_node.sh")
        wait(play, first=660)
        play.rest(DIES + 900)


@pytest.mark.parametrize("job", ["", JOB])
def test_two_of_one_name(play: Play, job: str) -> None:
    """Where names and jobs are given again, time tells them apart."""
    for start in (0, 10_000):
        again = ad(start, start, dies=start + DIES)._replace(factory_job=job)
        play.poll(start, [again])
        play.poll(start + 60, [again])
        play.rest(start + 1300, hours=2)
    assert len(play.stored.pilots) == 2
    assert play.seconds() == {"validation_fails": 2.0 * DIES}


def test_nothing_is_settled_twice_by_a_restart() -> None:
    """The accounting made anew from what is stored goes on as it was."""
    play, other = Play(), Play()
    for at in range(0, DIES + 800, 60):
        wait(play, at, at)
        wait(other, at, at)
        play.restart()
    play.rest(DIES + 900)
    other.rest(DIES + 900)
    assert play.seconds() == other.seconds() == {"validation_fails": float(DIES)}
    assert only(play).assumed == only(other).assumed


def heard(origin: Origin, **facts: Any) -> OpenPilot:
    """A pilot whose ads were heard until 300 s, which had ended then."""
    failed = FailedAdFacts(first_us=us(0), last_heard_us=us(300), end_us=us(300))
    identity = PilotIdentity("glidein_17_1@node", T0, JOB, "factory", A, "", "node", origin)
    return OpenPilot.new(1, identity, PilotFacts(failed_ads=failed, **facts))


@pytest.mark.parametrize(("origin", "pruned"), [("jobs", False), ("collector", True)])
def test_ads_of_a_pilot_that_cannot_be_posted_by_them(origin: Origin, pruned: bool) -> None:
    """Only records of jobs have it, or some of its runs are past their retention."""
    pilot = heard(origin, runs=RunBounds(first_us=us(0), last_us=us(300)))
    pilot.pruned = pruned
    before = pilot.facts
    follow(pilot, ad(600), us(600), Sizes(2000))
    assert (pilot.last_polled_us, pilot.facts) == (us(600), before)


def test_an_ad_after_the_end_of_one_that_passed() -> None:
    """Its output says that it passed, and not when it ended: it has not."""
    passed = OutputFacts(us(0), us(60), validation=Validation.PASSED, ran_jobs=False)
    pilot = heard("collector", output=passed)
    assert (pilot.end_us, pilot.validation) == (us(300), Validation.PASSED)
    follow(pilot, ad(600), us(600), Sizes(2000))
    assert (pilot.end_us, pilot.last_heard_us) == (None, us(600))
    assert pilot.facts.failed_ads is not None
    assert pilot.facts.failed_ads.end_us is None


DENIED = (
    '11/18/26 10:00:00 ERROR: SECMAN:2010:Received "DENIED" from server for user '
    "pilot@example.org using method GSI.\n"
    "11/18/26 10:00:00 Failed to start non-blocking update to <192.0.2.1:9618>.\n"
)
CLAIMED = "11/18/26 10:00:00 slot1_1: Changing state: Unclaimed -> Claimed\n"


def parsed(seconds: int, startd_log: str) -> PilotOutput:
    """The output of a pilot whose HTCondor ran so long, and no job, with this log of its startd."""
    pilot = one("good", cores=4)
    start, _ = pilot.condor or (0, 0)
    pilot = pilot._replace(condor=(start, start + seconds), end=start + seconds + 10, jobs=())
    raw = generate.err(pilot) + generate.log("StartdLog", startd_log.encode())
    return pilot_output.parse("p", generate.out(pilot), raw)


@pytest.mark.parametrize(
    ("seconds", "log", "registered"),
    [
        (3, "", False),  # as GlideinWMS has it: below 5 s all is validation
        (5, "", None),
        (3, DENIED, False),
        (1190, DENIED * 4, False),  # each of its updates
        (1190, DENIED * 3, False),  # three of four: a collector that hears of it does not refuse
        (1190, DENIED * 2, None),
        (1190, DENIED, None),  # one of four
        (1190, DENIED * 4 + CLAIMED, None),
        (1190, "", None),
    ],
)
def test_what_its_output_tells(seconds: int, log: str, registered: bool | None) -> None:
    assert parsed(seconds, log).registered is registered


def test_one_that_ran_a_job_had_registered() -> None:
    pilot = one("good", cores=4)
    raw = generate.err(pilot) + generate.log("StartdLog", (DENIED * 9999).encode())
    assert pilot_output.parse("p", generate.out(pilot), raw).registered is None


def never(**more: object) -> PilotOutput:
    """An output from 0 to 1260 by which HTCondor ran three seconds."""
    return output(0, 1260, registered=False, activations=0, **more)


SUMMARY = line(1300, 1260, condor_s=3, validation=1000)


def played(facts: Sequence[FileFact]) -> PilotRow:
    """The pilot by these, each read long after the one before."""
    play = Play()
    for number, fact in enumerate(facts):
        play.add_facts([*queue(-5, 1265), fact], SIZE)
        play.rest(2000 + 20_000 * number, hours=5)
        play.restart()
    play.rest(100_000)
    play.stored.prove()
    assert not play.accounting.contradictions
    (row,) = play.stored.pilots.values()
    assert set(play.seconds()) == {"validation_fails"}
    return row


@pytest.mark.parametrize("facts", list(permutations([never(), SUMMARY])))
def test_output_and_summary_agree(facts: Sequence[FileFact]) -> None:
    """Whichever comes first; what the output's numbers say is an estimate for the whole pilot."""
    row = played(facts)
    assert row.assumed[Assumption.VALIDATION] == (row.start_us, row.end_us)


def test_by_its_summary_alone() -> None:
    assert played([SUMMARY]).assumed.keys() >= {Assumption.NO_OUTPUT}


@pytest.mark.parametrize("first", [False, True])
def test_one_that_a_collector_showed_had_registered(play: Play, first: bool) -> None:
    """It never ran a job, which is a decision problem, whenever its output is read."""
    if first:
        play.add_facts([never()._replace(end_us=None)], SIZE)
    play.live(0, 1200, [shown(factory_job=JOB)])
    play.rest(1260, hours=1)
    play.add_facts([never()], SIZE)
    play.rest(10_000)
    assert set(play.seconds()) == {"decision_problem"}
    play.stored.prove()
