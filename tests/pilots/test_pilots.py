"""Which pilot is which, and from when to when it lived."""

from __future__ import annotations

import pytest

from gwmond.model.pilot_life import union
from gwmond.model.runs.endings import Ending
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules
from tests.build.play import T0, Play, claim, record, shown


def until(play: Play, name: str = "glidein@node") -> float:
    """When a pilot ended, in seconds from T0."""
    end_us = play.pilot(name).end_us
    assert end_us is not None
    return end_us / SECOND_US - T0


def test_a_pilot_without_jobs_is_a_decision_problem(play: Play) -> None:
    """All of its time is, in both measures, once it has ended."""
    play.live(60, 1260, [shown()])
    assert play.seconds() == {}
    play.rest(1320)
    assert play.seconds() == {"decision_problem": 4 * 1260.0}
    assert play.seconds("canonical") == {"decision_problem": 4 * 1260.0}
    assert (play.pilot().end_source, play.pilot().closed) == ("shutdown", True)


def test_a_pilot_that_takes_leave_ended_when_it_was_seen_last(play: Play) -> None:
    """Its ad was still fresh when it was gone."""
    play.live(0, 660, [shown()])
    play.poll(720)
    assert (until(play), play.pilot().end_source) == (660, "shutdown")
    assert union(play.pilot().assumed.values()) == ()


def test_a_pilot_that_vanishes_ended_at_its_last_contact(play: Play) -> None:
    """Its ad stays until it expires; what was after the contact does not count."""
    play.live(0, 600, [shown()])
    for at in range(660, 1500, 60):
        play.poll(at, [shown(heard=600)])
    play.poll(1500)
    assert (until(play), play.pilot().end_source) == (600, "ad_expired")
    play.rest(1560)
    assert play.seconds() == {"decision_problem": 4 * 600.0}


@pytest.mark.parametrize("restarted", [False, True])
def test_an_ad_that_expires_sooner_than_it_says_is_not_taken_for_a_leave(
    play: Play, restarted: bool
) -> None:
    """A collector's own lifetime: what is usual tells, also to a daemon that has just started."""
    others = [f"glidein{number}@node" for number in range(3)]
    for at in range(0, 660, 60):
        play.poll(at, [shown(), *(shown(name, heard=at) for name in others)])
    for at in range(660, 1020, 60):
        if restarted and at == 900:
            play.restart()
        play.poll(at, [shown(heard=600), *(shown(name, heard=at) for name in others)])
    play.poll(1020, [shown(name, heard=1020) for name in others])
    assert (until(play), play.pilot().end_source) == (600, "ad_expired")


def test_a_startd_that_updates_at_each_change_of_state_has_a_regular_time_all_the_same(
    play: Play,
) -> None:
    """Nine of ten updates come within a minute; one that is quiet for four has taken leave."""
    others = [f"glidein{number}@node" for number in range(9)]
    for at in range(0, 2401, 60):
        play.poll(at, [shown(heard=at - at % 300), *(shown(name, heard=at) for name in others)])
    play.poll(2460, [shown(heard=2400), *(shown(name, heard=2460) for name in others)])
    for at in range(2520, 2641, 60):
        play.poll(at, [shown(heard=2400), *(shown(name, heard=at) for name in others)])
    play.poll(2700, [shown(name, heard=2700) for name in others])
    assert (until(play), play.pilot().end_source) == (2640, "shutdown")


def test_time_in_which_nobody_looked_is_not_between_two_updates(play: Play) -> None:
    """A daemon that is started again and again looks rarely; then it is left alone."""
    others = [f"glidein{number}@node" for number in range(6)]
    for at in range(0, 961, 240):
        play.restart()
        play.poll(at, [shown(heard=at), *(shown(name, heard=at) for name in others)])
    for at in range(1020, 1260, 60):
        play.poll(at, [shown(heard=960), *(shown(name, heard=at) for name in others)])
    play.poll(1260, [shown(name, heard=1260) for name in others])
    assert (until(play), play.pilot().end_source) == (960, "ad_expired")


@pytest.mark.parametrize(("later", "pilots"), [(0, 1), (3, 1), (30, 1), (31, 2)])
def test_a_startd_that_was_ready_a_while_after_its_process_began(
    play: Play, later: int, pilots: int
) -> None:
    """Its claims have the later time in their numbers, its ad the earlier one."""
    play.live(0, 60, [shown()])
    play.live(120, 300, [shown()], claims=[claim("1.0", 90, started=later)])
    play.poll(360, [shown(heard=300)], records=[record("1.0", 90, 330, started=later)])
    assert len(play.stored.pilots) == pilots
    assert len({row.pilot for row in play.stored.runs.values()}) == 1


def test_a_pilot_that_goes_while_gwmond_is_away_ended_as_if_it_was_there(play: Play) -> None:
    """As polls saw it last, and not at the contact at which something of it was posted last."""
    play.live(60, 1260, [shown()])
    play.restart()
    play.poll(1860)
    assert (until(play), play.pilot().end_source) == (1260, "ad_expired")
    play.rest(1920)
    assert play.seconds() == {"decision_problem": 4 * 1260.0}
    assert play.stored.corrected == 0


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


def test_a_job_that_lost_contact_later_shows_how_long_it_lived(play: Play) -> None:
    """Then the stretch after the last contact is estimated."""
    play.live(0, 600, [shown()], claims=[claim("1.0", 100)])
    lost = Ending(over=True, vacate_code=1008, began=True)
    for at in range(660, 1500, 60):
        play.poll(at, [shown(heard=600)], claims=[claim("1.0", 100)])
    play.poll(1500, records=[record("1.0", 98, 750, ending=lost)])
    assert until(play) == 750
    assert union(play.pilot().assumed.values()) == (
        ((T0 + 600) * SECOND_US, (T0 + 750) * SECOND_US),
    )
    play.rest(1560)
    assert play.seconds() == {"pilot_overhead": 3 * 750.0 + 98, "preemption_badput": 652.0}


def test_an_untrusted_collector_ends_nothing(play: Play) -> None:
    """After its restart pilots are missing until they report; those that were there go on."""
    play.live(0, 600, [shown()])
    for at in range(660, 3000, 60):
        play.poll(at, complete=False)
    assert play.pilot().end_us is None
    play.live(3000, 3600, [shown()])
    play.poll(3660)
    assert until(play) == 3600
    play.rest(3720)
    assert play.seconds() == {"decision_problem": 4 * 3600.0}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("away", [1200, 20_000])
def test_a_pilot_that_comes_back_goes_on(away: int, restart: bool) -> None:
    """Also after it was closed and forgotten; what was settled of it is corrected."""
    play = Play(Rules(refresh_us=0, linger_us=SECOND_US))
    play.live(0, 600, [shown()])
    for at in range(660, 600 + away, 60):
        play.poll(at)
    assert play.seconds() == {"decision_problem": 4 * 600.0}
    if restart:
        play.restart()
    back = 600 + away
    play.live(back, back + 600, [shown()], claims=[claim("1.0", back + 10)])
    assert play.pilot().end_us is None
    job = record("1.0", back + 10, back + 610)
    play.live(back + 660, back + 1200, [shown()], records=[job])
    play.rest(back + 1260)
    total = 4 * (until(play))
    assert until(play) >= back + 1140
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": total - 600}
    assert play.counted() == {"pilots": 1, "runs": 1}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("before_s", [0, 100, 299])
def test_a_run_did_not_end_with_a_pilot_that_comes_back(before_s: int, restart: bool) -> None:
    """It seemed so as long as a collector left the pilot out; that is corrected."""
    play = Play()
    cut = Ending(over=True, vacate_code=1005, began=True)
    play.live(60, 600, [shown()])
    play.poll(660, records=[record("1.0", 100, 600 - before_s, ending=cut)])
    play.live(720, 840, [])
    assert play.seconds()["preemption_badput"] == 500 - before_s
    if restart:
        play.restart()
    play.live(900, 1500, [shown()])
    play.rest(1560)
    assert until(play) == 1500
    lost = {"unclassified": 500.0 - before_s, "pilot_overhead": 4 * 1500 - 500.0 + before_s}
    assert play.seconds() == lost
    assert play.counted() == {"pilots": 1, "runs": 1}


def test_a_startd_that_was_started_again_is_the_same_pilot(play: Play) -> None:
    """The factory's job tells; records of jobs name the new startd."""
    play.live(0, 600, [shown(factory_job="factory#7.0")])
    play.live(660, 1260, [shown(started=630, factory_job="factory#7.0")])
    play.poll(1320, records=[record("1.0", 700, 1000, started=630)])
    play.rest(1380)
    assert play.pilot().start_us == T0 * SECOND_US
    assert play.seconds() == {"goodput": 300.0, "pilot_overhead": 4 * 1260.0 - 300}


def test_a_startd_that_was_started_again_is_seen_first(play: Play) -> None:
    """Its first startd is told by records of jobs alone, which are read later."""
    job = "factory#7.0"
    play.live(660, 1260, [shown(started=630, factory_job=job)])
    first = [record("1.0", 100, 400)._replace(factory_job=job)]
    second = record("2.0", 700, 1000, started=630)._replace(factory_job=job)
    play.live(1320, 1380, [shown(started=630, factory_job=job)], records=[*first, second])
    play.rest(1440)
    assert play.pilot().start_us == T0 * SECOND_US
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1380.0 - 600}


def test_another_pilot_of_the_same_name_is_another(play: Play) -> None:
    """A node's next pilot may be called like the one before."""
    play.live(0, 600, [shown()])
    play.live(660, 1260, [shown(started=640)])
    play.poll(1320, records=[record("1.0", 100, 200), record("2.0", 700, 900, started=640)])
    play.rest(1380)
    first, second = sorted(play.stored.pilots.values(), key=lambda pilot: pilot.start_us)
    assert (first.end_source, second.end_source) == ("ad_expired", "shutdown")
    assert first.end_us == (T0 + 600) * SECOND_US
    assert play.seconds() == {"goodput": 300.0, "pilot_overhead": 4 * (600.0 + 620) - 300}


def test_a_pilot_that_only_jobs_tell_of(play: Play) -> None:
    """It is as large as they are at once, lasted as long, and all of it is estimated."""
    jobs = [
        record("1.0", 100, 700, site="Far"),
        record("2.0", 400, 1000, site="Far"),
        record("3.0", 1100, 1200, cores=2, site="Far"),
    ]
    play.poll(1800, records=jobs)
    assert play.seconds() == {}
    play.rest(1860)
    assert play.pilot().end_source == "assumed"
    assert (play.pilot().identity.key.site, play.pilot().identity.origin) == ("Far", "jobs")
    assert play.seconds() == {"goodput": 1400.0, "pilot_overhead": 2 * 1200 - 1400.0}
    own = [series for series in play.series() if series.category == "pilot_overhead"]
    assert {series.evidence for series in own} == {"estimated"}


def test_a_pilot_that_only_jobs_told_of_is_shown_later(play: Play) -> None:
    """What was posted for it under its jobs' site is moved to its own."""
    play.poll(1800, records=[record("1.0", 100, 700, site="Far")])
    play.rest(1860, hours=3)
    assert {series.site for series in play.series()} == {"Far"}
    play.live(12_660, 13_260, [shown()])
    play.rest(13_320)
    assert {series.site for series in play.series()} == {"Site"}
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 13_260.0 - 600}
    assert {key.site for key, n in play.stored.counts.items() if n} == {"Site"}


def test_a_pilot_whose_size_changes(play: Play) -> None:
    """From then on it has that size."""
    play.live(0, 600, [shown(cores=4, memory=8000)])
    play.live(900, 1500, [shown(cores=8, memory=16000)])
    play.rest(1560)
    assert play.seconds() == {"decision_problem": 4 * 900.0 + 8 * 600}


def test_gpus_are_accounted_as_a_resource_of_their_own(play: Play) -> None:
    """Chip-seconds, in both measures alike."""
    play.live(0, 600, [shown(gpus=2)])
    play.rest(660)
    assert play.seconds(resource="gpu") == {"decision_problem": 1200.0}
    assert play.seconds("canonical", "gpu") == {"decision_problem": 1200.0}


def test_a_pilot_that_began_long_before_it_was_shown(play: Play) -> None:
    """Its jobs may have begun long ago, too: all claims are to be asked for."""
    now = (T0 + 3000) * SECOND_US
    assert play.add_ads(now, SECOND_US, [shown(heard=2990)], complete=True)
    assert not play.add_ads(now, SECOND_US, [shown(heard=2990)], complete=True)
    young = shown("young@node", started=2900, heard=2990)
    assert not play.add_ads(now, SECOND_US, [shown(heard=2990), young], complete=True)


def test_attributes_that_are_only_shown_are_stored(play: Play) -> None:
    """The latest ad's, and no time is posted anew for them."""
    for at, text in ((0, "linux"), (60, "linux"), (120, "windows")):
        play.live(at, at, [shown()._replace(shown=(("system", text),))])
        assert play.pilot().facts.attribute("system") == text
    assert play.pilot().facts.attribute("version") is None
    play.rest(300)
    assert play.pilot().facts.attribute("system") == "windows"


def test_an_ad_that_changes_without_being_heard_of_later_is_taken_in(play: Play) -> None:
    """One of its slots was renewed within the same second."""
    play.poll(60, [shown(heard=60)])
    play.poll(120, [shown(heard=60)._replace(dies=T0 + 4000, shown=(("system", "linux"),))])
    play.poll(180, [shown(heard=60, cores=8)._replace(dies=T0 + 5000)])
    play.live(240, 300, [shown(heard=240, cores=8)._replace(shown=(("system", "windows"),))])
    play.live(300, 360, [shown(heard=240, cores=8)._replace(shown=(("system", "mac"),))])
    assert play.pilot().facts.attribute("system") == "mac"


@pytest.mark.parametrize("bad", [-1, 0, 1, 10**9 - 1, 10**15])
def test_a_pilot_with_absurd_times(play: Play, bad: int) -> None:
    """It began when it was first heard of; what makes no sense counts as missing."""
    strange = shown(heard=60)._replace(started=bad, retires=bad, dies=-abs(bad))
    play.live(60, 600, [strange])
    play.rest(660)
    row = play.pilot()
    assert (row.start_us, row.retire_us, row.die_us) == ((T0 + 60) * SECOND_US, None, None)
    assert play.seconds() == {"decision_problem": 4 * 540.0}


@pytest.mark.parametrize("bad", [0, 1])
def test_a_pilot_of_jobs_is_shown_with_an_absurd_start(play: Play, bad: int) -> None:
    """It goes on from when its jobs tell that it began, as one pilot."""
    play.poll(0, records=[record("1.0", -600, -60, started=-700)])
    for at in range(60, 1200, 60):
        play.poll(at, [shown(heard=at)._replace(started=bad)])
    play.rest(1200)
    row = play.pilot()
    assert (row.start_us, row.identity.started) == ((T0 - 700) * SECOND_US, T0 - 700)
    assert (row.identity.origin, until(play)) == ("collector", 1140)
    assert play.seconds() == {"goodput": 540.0, "pilot_overhead": 4 * 1840.0 - 540}


def test_a_pilot_of_jobs_that_is_gone_when_one_of_its_name_is_shown(play: Play) -> None:
    """Nothing tells when that one began; it is not the one that has ended."""
    play.poll(0, records=[record("1.0", -600, -60, started=-700)])
    play.rest(600)
    play.poll(50_000, [shown(heard=50_000)._replace(started=0)])
    assert len(play.stored.pilots) == 2
