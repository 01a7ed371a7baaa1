"""It does not matter when gwmond learned something, nor whether it was restarted meanwhile."""

from __future__ import annotations

import pytest

from gwmond.model.facts import Pilot
from gwmond.model.pilot_life import Validation
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules
from tests.build.pilot_files import queue
from tests.build.play import T0, Play, record, shown
from tests.build.playbook import ENDINGS, Playbook, playbooks

MEMORY_MIB = 2000


def small(heard: int | None = None) -> list[Pilot]:
    """One pilot of one core."""
    pilot = shown(cores=1, memory=MEMORY_MIB)
    return [pilot if heard is None else pilot._replace(last_heard=T0 + heard)]


PLAYBOOKS = """
The last job of a pilot is posted once: a slot shows it, its record comes late, then another one
  ad 0-600 cores=1 memory=2000; ad 660 cores=1 memory=2000 with record 1.0 100-600;
  ad 720-3000 cores=1 memory=2000 with claim 2.0 700; ?restart;
  ad 3060-7260 cores=1 memory=2000 with claim 2.0 700; none 7380;
  none 7440 with record 2.0 700-7350; none 7500 with record 2.0 700-7349 source=startd_history;
  rest 7560
  -> time goodput 7149, pilot_overhead 200

An exit completed nothing if the job runs again, also on another pilot
  ad 0-600 cores=1 memory=2000; ad 660 cores=1 memory=2000 with record 1.0 100-600 ending=exit;
  ad 720-1200 cores=1 memory=2000; rest 1260 1; = goodput 500; ?restart;
  none 4800 with record 1.0 1000-1100 run=2 startd=glidein@b started=none; rest 4860
  -> goodput 100; unclassified 500

However much later, when the pilot is closed
  ad 0-600 cores=1 memory=2000; ad 660 cores=1 memory=2000 with record 1.0 100-600 ending=exit;
  ad 720-1200 cores=1 memory=2000; rest 1260 16; = goodput 500; ?restart;
  none 63600 with record 1.0 59800-59900 run=2 startd=glidein@b started=none; rest 63660
  -> goodput 100; unclassified 500

When a claim was shown last is known after a restart: nothing tells the end of its job
  ad 0-60 cores=1 memory=2000; ad 120-600 cores=1 memory=2000 with claim 1.0 100;
  ad 660-3000 cores=1 memory=2000; ?restart; ad 3060-3600 cores=1 memory=2000; rest 3660
  -> time pilot_overhead 3100, unclassified 500

What a slot shows goes on though no collector shows its pilot, for longer than it may be silent
  none 60; none 120-3000 with claim 1.0 100; ?restart; none 3060-7260 with claim 1.0 100;
  = pilots 0-; none 7320; ?restart; none 7380-8940; rest 9000
  -> time pilot_overhead 100, preemption_badput 7160

A factory's queue has no site: that of an entry is that of its pilots
  queue -3000--600; ad 60-600 cores=1 memory=2000; ?restart; rest 660
  -> site Site; origin collector, files
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS))
def test_restarts(playbook: Playbook) -> None:
    playbook.check()


def test_a_pilot_keeps_its_unit_of_memory() -> None:
    """What is configured between two starts is the unit of pilots that are posted from then on."""
    play = Play()
    play.live(0, 1800, small())
    play.rules = play.rules._replace(memory_per_unit_mib=1000)
    play.restart()
    play.live(1860, 3600, small())
    play.rest(3660)
    (row,) = play.stored.pilots.values()
    assert row.unit_mib == MEMORY_MIB
    assert not any(residual.micros for residual in play.stored.check(memory_mib=1000))
    assert not any(play.accounting.settlement.residual.values())


def test_a_pilot_that_was_not_posted_takes_the_new_unit_of_memory() -> None:
    """Only a record of a job has it, so that it is posted when no job has run there for long."""
    play = Play()
    play.poll(120, records=[record("1.0", 0, 60)])
    assert (play.pilot().unit_mib, play.pilot().known_until_us) == (MEMORY_MIB, 0)
    play.rules = play.rules._replace(memory_per_unit_mib=1000)
    play.restart()
    play.rest(180)
    assert play.pilot().unit_mib == 1000
    assert not any(residual.micros for residual in play.stored.check(memory_mib=MEMORY_MIB))


@pytest.mark.parametrize("restart", [False, True], ids=["", "restart"])
def test_what_is_decided_anew_rests_on_all_runs_of_the_job(restart: bool) -> None:
    """The pilot on which the job ran again is closed; then another job turns out to have run here
    before."""
    play = Play(Rules(refresh_us=0, quiet_us=300 * SECOND_US))
    play.live(0, 600, small())
    again = record("1.0", 700, 800, run=2, startd="glidein@b", started=None)
    play.poll(960, small(), [record("1.0", 100, 600, ending=ENDINGS["exit"]), again])
    play.live(1020, 1500, small())
    assert play.pilot("glidein@b").closed
    assert play.seconds()["unclassified"] == 500
    if restart:
        play.restart()
    play.poll(1560, small(), [record("2.0", 20, 80)])
    play.live(1620, 1800, small())
    assert play.seconds()["unclassified"] == 500
    play.rest(1860)
    assert play.seconds()["goodput"] == 100 + 60
    play.stored.prove()


def test_a_restart_keeps_when_a_pilot_is_looked_at_again() -> None:
    """Else what is decided then rests on more, or on less, than without the restart."""
    posted = []
    for restart in (None, 1200, 1260, 1320, 1380):
        play, at_each_poll = Play(Rules()), []
        for at in range(0, 3600, 60):
            play.poll(at, small(at), [record("1.0", 100, 200)] if at == 300 else [])
            at_each_poll.append(play.seconds().get("pilot_overhead"))
            if at == restart:
                play.restart()
        posted.append(at_each_poll)
    assert 10 < len(set(posted[0])) < 15
    assert all(other == posted[0] for other in posted)


@pytest.mark.parametrize("away_s", [None, 0, 1200], ids=["", "restart", "a while"])
def test_collectors_are_watched_through_a_restart(away_s: int | None) -> None:
    """A pilot that they never showed has failed, unless it may have been there meanwhile."""
    play = Play(Rules(refresh_us=0, quiet_us=600 * SECOND_US))
    for at in range(60, 6000, 60):
        if away_s is None or not 600 <= at < 600 + away_s:
            play.poll(at)
        if away_s is not None and at == 600:
            play.restart()
        if at == 3000:
            play.add_facts(queue(300, 2000))
    play.rest(6000)
    (row,) = play.stored.pilots.values()
    assert row.validation is (Validation.UNKNOWN if away_s else Validation.FAILED)
