"""Which pilot is which, and from when to when it lived."""

from __future__ import annotations

import gc

import pytest

from gwmond.model.times import SECOND_US
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun
from tests.build.play import T0, Play, claim, record, shown
from tests.build.playbook import Playbook, playbooks

PLAYBOOKS = """
A pilot without jobs is not decided before it has ended
  ad 60-1260; = time; rest 1320
  -> pilots 0-1260 shutdown; closed True; time decision_problem 5040;
  canonical decision_problem 5040

A pilot that takes leave ended when it was seen last: its ad was still fresh when it was gone
  ad 0-660; none 720
  -> pilots 0-660 shutdown; assumed

A pilot that vanishes ended at its last contact; what was after that does not count
  ad 0-600; ad 660-1440 heard=600; none 1500; rest 1560
  -> pilots 0-600 ad_expired; time decision_problem 2400

A pilot that goes while gwmond is away ended as polls saw it last, and not as it was posted last
  ad 60-1260; restart; none 1860; rest 1920
  -> pilots 0-1260 ad_expired; time decision_problem 5040; corrected 0

A job that lost contact later shows how long it lived; what is after the contact is estimated
  ad 0-600 with claim 1.0 100; ad 660-1440 heard=600 with claim 1.0 100;
  none 1500 with record 1.0 98-750 ending=lost; rest 1560
  -> pilots 0-750 ad_expired; assumed end 600-750; time pilot_overhead 2348, preemption_badput 652

An untrusted collector ends nothing: those that were there go on
  ad 0-600; none 660-2940 complete=0; ad 3000-3600; none 3660; rest 3720
  -> pilots 0-3600 shutdown; time decision_problem 14400

A startd that was started again is the same pilot: the factory's job tells
  ad 0-600 job=factory#7.0; ad 660-1260 started=630 job=factory#7.0;
  none 1320 with record 1.0 700-1000 started=630; rest 1380
  -> pilots 0-1260 shutdown; time goodput 300, pilot_overhead 4740

Another pilot of the same name is another
  ad 0-600; ad 660-1260 started=640;
  none 1320 with record 1.0 100-200, record 2.0 700-900 started=640; rest 1380
  -> pilots 0-600 ad_expired, 640-1260 shutdown; time goodput 300, pilot_overhead 4580

A pilot that only jobs tell of is as large as they are at once, and lasted as long
  none 1800 with record 1.0 100-700 site=Far, record 2.0 400-1000 site=Far,
  record 3.0 1100-1200 cores=2 site=Far;
  rest 1860
  -> pilots 0-1200 assumed; site Far; origin jobs; time goodput 1400, pilot_overhead 1000;
  evidence goodput measured, pilot_overhead estimated

It is not settled while a job may run there yet
  none 1800 with record 1.0 100-700 site=Far; = time; rest 1860 3; ad 12660-13260; rest 13320
  -> site Site; sites Site; time goodput 600, pilot_overhead 52440

A pilot whose size changes has that size from then on
  ad 0-600; ad 900-1500 cores=8 memory=16000; rest 1560
  -> time decision_problem 8400

GPUs are a resource of their own, in both measures alike
  ad 0-600 gpus=2; rest 660
  -> gpus decision_problem 1200; gpu_canonical decision_problem 1200

A claim's startd that was ready 3 s after its process began is the same
  ad 0-60; ad 120-300 with claim 1.0 90 started=3;
  ad 360 heard=300 with record 1.0 90-330 started=3
  -> pilots 0-; runs 1.0/1 90-330 exit_zero

So it is 30 s later
  ad 0-60; ad 120-300 with claim 1.0 90 started=30;
  ad 360 heard=300 with record 1.0 90-330 started=30
  -> pilots 0-

And not 31 s later
  ad 0-60; ad 120-300 with claim 1.0 90 started=31;
  ad 360 heard=300 with record 1.0 90-330 started=31
  -> pilots 0-, 31-

A run did not end with a pilot that comes back, though it seemed so; that is corrected
  ad 60-600; none 660 with record 1.0 100-500 ending=cut; none 720-840; ?restart; ad 900-1500;
  rest 1560
  -> pilots 0-1500 shutdown; time pilot_overhead 5600, unclassified 400; counted pilots 1, runs 1

The same at the very edge
  ad 60-600; none 660 with record 1.0 100-301 ending=cut; none 720-840; ?restart; ad 900-1500;
  rest 1560
  -> pilots 0-1500 shutdown; time pilot_overhead 5799, unclassified 201; counted pilots 1, runs 1

As long as the collector leaves it out it was the pilot's end
  ad 60-600; none 660 with record 1.0 100-301 ending=cut; none 720-840
  -> time pilot_overhead 2199, preemption_badput 201

A pilot of jobs that is gone when one of its name is shown is another, which has no known start
  none 0 with record 1.0 -600--60 started=-700; rest 600; ad 50000 started=-1700000400 heard=50000
  -> origin collector, jobs

A pilot known by its jobs does not linger
  none 100 with record 1.0 0-60; rest 3900 1
  -> closed True

An ad that expires sooner than it says is not taken for a leave: a collector's own lifetime
  ad 0-600 + o0@node o1@node o2@node heard=now;
  ad 660-840 heard=600 + o0@node o1@node o2@node heard=now; ?restart;
  ad 900-960 heard=600 + o0@node o1@node o2@node heard=now;
  ad 1020 o0@node o1@node o2@node heard=now
  -> ended glidein@node 600 ad_expired

A startd that updates at each change of state has a regular time all the same, and took leave
  ad 0-2400 + o0@node o1@node o2@node o3@node o4@node o5@node o6@node o7@node o8@node heard=now;
  ad 2460-2640 heard=2400 + o0@node o1@node o2@node o3@node o4@node o5@node o6@node o7@node
  o8@node heard=now;
  ad 2700 o0@node o1@node o2@node o3@node o4@node o5@node o6@node o7@node o8@node heard=now
  -> ended glidein@node 2640 shutdown

Time in which nobody looked is not between two updates: a daemon that is started again and again
  ad 0 heard=now + o0@node o1@node o2@node heard=now; restart;
  ad 240 heard=now + o0@node o1@node o2@node heard=now; restart;
  ad 480 heard=now + o0@node o1@node o2@node heard=now; restart;
  ad 720 heard=now + o0@node o1@node o2@node heard=now; restart;
  ad 960 heard=now + o0@node o1@node o2@node heard=now;
  ad 1020-1200 heard=960 + o0@node o1@node o2@node heard=now;
  ad 1260 o0@node o1@node o2@node heard=now
  -> ended glidein@node 960 ad_expired

A startd that was started again is seen first: its first is told by records of jobs, read later
  ad 660-1260 started=630 job=factory#7.0;
  ad 1320-1380 started=630 job=factory#7.0 with record 1.0 100-400 factory_job=factory#7.0,
  record 2.0 700-1000 started=630 factory_job=factory#7.0;
  rest 1440
  -> pilots 0-1380 shutdown; time goodput 600, pilot_overhead 4920

Attributes that are only shown are the latest ad's
  ad 0 system=linux; = system linux; ad 60 system=linux; ad 120 system=windows; rest 300
  -> system windows

An ad that changes without being heard of later is taken in, as of a slot within the same second
  ad 60 heard=60; ad 120 heard=60 dies=4000 system=linux; ad 180 heard=60 cores=8 dies=5000;
  ad 240-300 heard=240 cores=8 system=windows; ad 300-360 heard=240 cores=8 system=mac
  -> system mac

A pilot of jobs is shown with an absurd start: it goes on from when its jobs say that it began
  none 0 with record 1.0 -600--60 started=-700; ad 60-1140 started=-1700000400 heard=now;
  rest 1200
  -> pilots -700-1140 shutdown; origin collector; time goodput 540, pilot_overhead 6820
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS))
def test_pilots(playbook: Playbook) -> None:
    playbook.check()


COMES_BACK = """
A pilot that comes back goes on; what was settled of it is corrected
  ad 0-600; none 660-1740; = time decision_problem 2400; ?restart;
  ad 1800-2400 with claim 1.0 1810; = pilots 0-; ad 2460-3000 with record 1.0 1810-2410; rest 3060
  -> pilots 0-3000 shutdown; time goodput 600, pilot_overhead 11400; counted pilots 1, runs 1

Also after it was closed and forgotten
  ad 0-600; look 660-20400; = time decision_problem 2400; ?restart;
  ad 20600-21200 with claim 1.0 20610; = pilots 0-; ad 21260-21800 with record 1.0 20610-21210;
  rest 21860
  -> time goodput 600, pilot_overhead 86600; counted pilots 1, runs 1
"""


@pytest.mark.parametrize("playbook", playbooks(COMES_BACK, linger_us=SECOND_US))
def test_a_pilot_that_comes_back(playbook: Playbook) -> None:
    playbook.check()


def until(play: Play, name: str = "glidein@node") -> float:
    """When a pilot ended, in seconds from T0."""
    end_us = play.pilot(name).end_us
    assert end_us is not None
    return end_us / SECOND_US - T0


@pytest.mark.parametrize(
    ("heard", "end"), [(1400, (1400, "ad_expired")), (1600, (1800, "shutdown"))]
)
def test_an_ad_that_expires_between_two_polls_is_not_taken_for_a_leave(
    play: Play, monkeypatch: pytest.MonkeyPatch, heard: int, end: tuple[int, str]
) -> None:
    """Polls are ten minutes apart, and what was seen last need not have been stale."""
    monkeypatch.setattr("tests.build.play.POLL_S", 600)
    for at in (0, 600, 1200):
        play.poll(at, [shown(heard=at)])
    play.poll(1800, [shown(heard=heard)])
    play.poll(2400)
    assert (until(play), play.pilot().end_source) == end


@pytest.mark.parametrize("senders", [0, 1])
def test_updates_of_pilots_that_overlap_say_nothing_of_others(play: Play, senders: int) -> None:
    """One of each minute, as etc/condor/overlap.conf has it: others still have five minutes."""
    for at in range(0, 1500, 60):
        often = shown("often@node", heard=at)._replace(senders=senders)
        seldom = shown("seldom@node", started=900, heard=at - at % 300)
        play.poll(at, [often, seldom] if at >= 900 else [often])
    play.poll(1500, [often])
    end = (1440, "shutdown") if senders else (1200, "ad_expired")
    assert (until(play, "seldom@node"), play.pilot("seldom@node").end_source) == end


def test_of_many_pilots_the_last_contacts_are_stored_in_turns(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll stores a bounded number, those first that are stored as the oldest."""
    monkeypatch.setattr("gwmond.pilots.memory.cache.HEARD_AT_ONCE", 2)
    many = [f"glidein{number}@node" for number in range(4)]
    for at in (60, 120, 180):
        play.poll(at, [shown(name, heard=at) for name in many])
    heard = sorted(pilot.last_heard_us // SECOND_US - T0 for pilot in play.stored.pilots.values())
    assert heard == [120, 120, 180, 180]


def test_a_pilot_that_began_long_before_it_was_shown(play: Play) -> None:
    """Its jobs may have begun long ago, too: all claims are to be asked for."""
    now = (T0 + 3000) * SECOND_US
    assert play.add_ads(now, SECOND_US, [shown(heard=2990)], complete=True)
    assert not play.add_ads(now, SECOND_US, [shown(heard=2990)], complete=True)
    young = shown("young@node", started=2900, heard=2990)
    assert not play.add_ads(now, SECOND_US, [shown(heard=2990), young], complete=True)


@pytest.mark.parametrize("bad", [-1, 0, 1, 10**9 - 1, 10**15])
def test_a_pilot_with_absurd_times(play: Play, bad: int) -> None:
    """It began when it was first heard of; what makes no sense counts as missing."""
    strange = shown(heard=60)._replace(started=bad, retires=bad, dies=-abs(bad))
    play.live(60, 600, [strange])
    play.rest(660)
    row = play.pilot()
    assert (row.start_us, row.retire_us, row.die_us) == ((T0 + 60) * SECOND_US, None, None)
    assert play.seconds() == {"decision_problem": 4 * 540.0}


@pytest.mark.parametrize("complete", [True, False], ids=["all claims", "new claims"])
def test_a_pilot_that_is_over_is_forgotten(complete: bool) -> None:
    """And all runs on it, however slots have shown them: memory is for what may change."""

    def in_memory() -> int:
        gc.collect()
        return sum(type(thing) in {OpenPilot, OpenRun} for thing in gc.get_objects())

    before, play = in_memory(), Play()
    play.live(0, 60, [shown()])
    play.live(120, 600, [shown()], claims=[claim("1.0", 100)], complete=complete)
    assert in_memory() == before + 2
    play.live(660, 660, [shown()], records=[record("1.0", 100, 650)])
    play.rest(1260)
    assert play.pilot().closed
    assert in_memory() == before
