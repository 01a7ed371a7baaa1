"""It does not matter when gwmond learned something, nor whether it was restarted meanwhile."""

from __future__ import annotations

import pytest

from gwmond.model.facts import Pilot
from gwmond.model.pilot_life import Validation
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules
from tests.build.pilot_files import queue
from tests.build.play import T0, Play, claim, record, shown

MEMORY_MIB = 2000


def small(heard: int | None = None) -> list[Pilot]:
    """One pilot of one core."""
    pilot = shown(cores=1, memory=MEMORY_MIB)
    return [pilot if heard is None else pilot._replace(last_heard=T0 + heard)]


def test_the_last_job_of_a_pilot_is_posted_once() -> None:
    """A slot shows it before and after the restart, its record comes after the pilot's end, and
    then another that says otherwise when it ended."""
    play = Play()
    play.live(0, 600, small())
    play.poll(660, small(), [record("1.0", 100, 600)])
    for at in range(720, 7320, 60):
        play.poll(at, small(at), claims=[claim("2.0", 700)])
        if at == 3000:
            play.restart()
    play.poll(7380)
    play.poll(7440, records=[record("2.0", 700, 7350)])
    play.poll(7500, records=[record("2.0", 700, 7349, source=Source.STARTD_HISTORY)])
    play.rest(7560)
    assert play.seconds() == {"goodput": 500.0 + 6649, "pilot_overhead": 200.0}
    play.stored.prove()


EXIT = Ending(over=True, exit_code=1, own_accord=True, began=True, early=False)


@pytest.mark.parametrize("restart", [False, True], ids=["", "restart"])
@pytest.mark.parametrize("later_s", [1200, 60_000], ids=["soon", "when the pilot is closed"])
def test_an_exit_completed_nothing_if_the_job_runs_again(later_s: int, restart: bool) -> None:
    """However much later it runs again, on another pilot, and whoever knew of the first run."""
    play = Play()
    play.live(0, 600, small())
    play.poll(660, small(), [record("1.0", 100, 600, ending=EXIT)])
    play.live(720, 1200, small())
    play.rest(1260, hours=max(1, (later_s - 1260) // 3600))
    assert play.seconds()["goodput"] == 500
    if restart:
        play.restart()
    again = record("1.0", later_s - 200, later_s - 100, run=2, startd="glidein@b", started=None)
    play.poll(later_s + 3600, records=[again])
    play.rest(later_s + 3660)
    assert play.seconds()["goodput"] == 100
    assert play.seconds()["unclassified"] == 500
    play.stored.prove()


def test_a_restart_keeps_when_a_claim_was_shown_last() -> None:
    """No slot shows the job from 660 on; nothing tells its end, and the restart is much later."""
    seconds = []
    for restart in (False, True):
        play = Play()
        for at in range(0, 3660, 60):
            play.poll(at, small(at), claims=[claim("1.0", 100)] if 100 <= at <= 600 else [])
            if restart and at == 3000:
                play.restart()
        play.rest(3660)
        play.stored.prove()
        seconds.append(play.seconds())
    assert seconds[0] == seconds[1]


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
    play.poll(960, small(), [record("1.0", 100, 600, ending=EXIT), again])
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


@pytest.mark.parametrize("restart", [False, True], ids=["", "restart"])
def test_what_a_slot_shows_goes_on_though_no_collector_shows_its_pilot(restart: bool) -> None:
    """A job that runs for longer than a pilot may be silent, and of which nothing tells the end."""
    play = Play()
    for at in range(60, 9000, 60):
        play.poll(at, claims=[claim("1.0", 100)] if 100 <= at <= 7260 else [])
        if at < 7260:
            assert not [row for row in play.stored.pilots.values() if row.end_us is not None]
        if restart and at in {3000, 7320}:
            play.restart()
    play.rest(9000)
    assert play.seconds() == {"pilot_overhead": 100.0, "preemption_badput": 7160.0}
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


@pytest.mark.parametrize("restart", [False, True], ids=["", "restart"])
def test_the_site_of_an_entry_is_that_of_its_pilots(restart: bool) -> None:
    """A factory's queue has no site.  What it says is read before and after a collector shows
    another pilot of the entry."""
    play = Play()
    play.add_facts(queue(-3000, -600))
    play.live(60, 600, small())
    if restart:
        play.restart()
    play.rest(660)
    sites = {row.identity.origin: row.identity.key.site for row in play.stored.pilots.values()}
    assert sites == {"collector": "Site", "files": "Site"}


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
