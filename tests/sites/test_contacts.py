"""Pilots that do not renew their ads any more, in lives of which all is known."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.facts import Pilot
from gwmond.sites.capacity import provisioned
from gwmond.sites.contacts import Contacts, PilotsShown
from tests.build.facts import BIG, NOW, A, B, pilot

UPDATE_S, POLL_S, LIFETIME_S = 300, 60, 900
UNITS = 8


class Life(NamedTuple):
    """A pilot's start and end, in seconds, and whether it was killed instead of taking leave."""

    name: str
    start: int
    end: int = 1 << 40
    killed: bool = True

    def contact(self, time: int) -> int:
        """The last contact before a time, or before its end."""
        last = min(time, self.end - 1) - self.start
        return self.start + last - last % UPDATE_S

    def ad(self, time: int) -> Pilot | None:
        """What the collector shows of it."""
        if time < self.start or (time >= self.end and not self.killed):
            return None
        heard = self.contact(time)
        if time >= heard + LIFETIME_S:
            return None
        return pilot(A, size=BIG)._replace(
            name=self.name, started=NOW + self.start, last_heard=NOW + heard
        )


class Watch:
    """Polls of one collector."""

    def __init__(self) -> None:
        self.contacts = Contacts()
        self.most = self.now_most = 0
        self.silent: dict[str, int] = {}

    def poll(self, time: int, lives: list[Life]) -> PilotsShown:
        shown = [ad for life in lives if (ad := life.ad(time)) is not None]
        clocks = [max(ad.last_heard for ad in shown)] if shown else []
        found = self.contacts.after(shown, clocks, NOW + time)
        before, after = found.most(provisioned(found.running, "cpu"), "cpu")
        self.contacts = found.contacts
        self.most = max(self.most, before.get(A, 0))
        self.now_most = after.get(A, 0)
        for key in found.silent:
            self.silent.setdefault(key.name, time)
        return found

    def polls(self, first: int, last: int, lives: list[Life]) -> None:
        for time in range(first, last, POLL_S):
            self.poll(time, lives)


def site(first: int, last: int, kill: int, back: int) -> list[Life]:
    """50 pilots, killed one after the other from ``kill`` on; each has its successor later."""
    lives = []
    for n in range(first, last):
        lives.append(Life(f"old{n}", -3600 - 7 * n, kill + n))
        lives.append(Life(f"new{n}", kill + n + back + 17 * n))
    return lives


def test_pilots_that_are_killed_and_replaced_do_not_raise_the_peak() -> None:
    """50 of 8 units within 15 minutes: 400 ran at once, never 800; the dead are silent at 600 s."""
    watch, lives = Watch(), site(0, 50, kill=1200, back=5)
    watch.polls(0, 1200 + 2 * 3600, lives)
    assert watch.most == 50 * UNITS
    assert len(watch.silent) == 50
    for n in range(50):
        heard = lives[2 * n].contact(1 << 40)
        assert 0 < watch.silent[f"old{n}"] - heard - 2 * UPDATE_S <= 2 * POLL_S
    assert watch.now_most == 50 * UNITS


@pytest.mark.parametrize("every_s", [300, 420, 600])
def test_nor_do_they_where_polls_are_far_apart(every_s: int) -> None:
    """An ad may expire between two polls without ever having been seen as stale."""
    watch, lives = Watch(), site(0, 50, kill=1200, back=5)
    for time in range(0, 1200 + 2 * 3600, every_s):
        watch.poll(time, lives)
    assert watch.most == 50 * UNITS


def test_a_daemon_that_has_just_started_knows_the_dead_by_their_ads() -> None:
    """It has watched no update: two thirds of an ad's lifetime are two updates."""
    lives = site(0, 50, kill=0, back=0)
    found = Watch().poll(890, lives)
    assert {key.name for key in found.running} == {f"new{n}" for n in range(50)}
    assert provisioned(found.running, "cpu") == {A: 50 * UNITS}


@pytest.mark.parametrize("every", [1, 5])
def test_updates_that_come_faster_tell_sooner(every: int) -> None:
    """Watched for an ad's lifetime, a pilot is silent after two updates: of 5 s, or of 1 s."""

    def ads(time: int) -> list[Pilot]:
        alive = pilot(A)._replace(name="alive", last_heard=NOW + time)
        heard = min(time, 1200)
        return [alive, alive._replace(name="killed", last_heard=NOW + heard)]

    contacts, seen = Contacts(), []
    for time in range(0, 1300, every):
        found = contacts.after(ads(time), [NOW + time], NOW + time)
        contacts = found.contacts
        seen += [time] if found.silent else []
    assert seen[0] == 1200 + 3 * every


def test_a_pilot_of_which_no_contact_is_known_is_not_silent() -> None:
    """Neither does it tell from when on it is known what runs."""
    ads = [pilot(A)._replace(name="untold", last_heard=0), pilot(A)._replace(name="heard")]
    found = Contacts().after(ads, [NOW], NOW)
    assert (len(found.running), found.silent, found.first) == (2, (), NOW)


def test_without_any_collector_nothing_is_shown() -> None:
    """Of pilots nothing is known then, from the time on up to which all was."""
    nothing = Contacts().after([], [], NOW)
    assert (nothing.first, nothing.contacts.decided) == (0, 0)
    watch = Watch()
    watch.poll(0, [Life("one", -60)])
    unseen = watch.contacts.unseen()
    assert unseen == PilotsShown(watch.contacts, (), (), NOW - 60, (), frozenset(), doubtful=False)
    assert unseen.most({}, "cpu") == ({}, {})
    assert Contacts().unseen().first == 0


def test_what_ended_ran_for_longer_than_was_known_before() -> None:
    """A pilot that was not heard of since has no time to be added."""
    watch = Watch()
    watch.poll(0, [Life("one", 0), Life("other", 0)])
    found = watch.contacts.after([], [NOW], NOW + POLL_S)
    assert (found.first, found.ended) == (NOW, ())
    assert found.most({}, "cpu") == ({}, {})


@pytest.mark.parametrize(("silent_s", "ends"), [(599, True), (600, False)])
def test_an_ad_that_expires_ends_its_pilot_where_it_was_heard_of(silent_s: int, ends: bool) -> None:
    """An ad that was not renewed for two updates expired; an earlier one was taken back."""
    gone = pilot(A)._replace(name="gone", last_heard=NOW - silent_s)
    other = pilot(A)._replace(name="other", last_heard=NOW)
    before = Contacts().after([gone, other], [NOW], NOW)
    found = before.contacts.after([other], [NOW], NOW + POLL_S)
    assert [(key.name, until) for key, until in found.ended] == ([("gone", NOW)] if ends else [])


def test_a_pilot_that_starts_with_the_last_contact_is_within_what_is_known() -> None:
    """A start at the very time up to which all is known counts in the time before it."""
    old, new = Life("old", -600), Life("new", 300)
    watch = Watch()
    watch.polls(0, 300, [old])
    found = watch.poll(300, [old, new])
    assert found.contacts.decided == NOW + 300
    assert found.most({A: 2 * UNITS}, "cpu") == ({A: 2 * UNITS}, {A: 2 * UNITS})


def test_an_entry_with_silent_pilots_alone_has_had_them() -> None:
    """It has no units now, which is zero, and those of before only as far as they were seen."""
    dead = pilot(A)._replace(name="dead", last_heard=NOW - 700, started=NOW - 900)
    alive = pilot(B)._replace(name="alive")
    found = Contacts().after([dead, alive], [NOW], NOW)
    assert found.silent == (dead,)
    assert found.most({B: UNITS}, "cpu") == ({A: 0, B: UNITS}, {A: 0, B: UNITS})
    unsized = found._replace(silent=(dead._replace(size=None),))
    assert unsized.most({B: UNITS}, "cpu") == found.most({B: UNITS}, "cpu")


def test_a_slow_collector_makes_nobody_silent() -> None:
    """It takes in no ads for half an hour: that is doubtful, and over with the first ad."""
    watch = Watch()
    lives = [Life(f"p{n}", -600 - 11 * n) for n in range(50)]
    watch.polls(0, 1200, lives)

    def frozen(time: int) -> PilotsShown:
        shown = [ad for life in lives if (ad := life.ad(1199)) is not None]
        found = watch.contacts.after(shown, [max(ad.last_heard for ad in shown)], NOW + time)
        watch.contacts = found.contacts
        return found

    doubt = [time for time in range(1200, 3000, POLL_S) if frozen(time).doubtful]
    assert doubt[0] - 1200 <= 2 * UPDATE_S + POLL_S
    assert watch.silent == {}
    back = watch.poll(3000, lives)
    assert (len(back.running), back.silent, back.doubtful) == (50, (), False)


def test_a_pilot_that_was_the_only_one_is_in_doubt_until_its_ad_expires() -> None:
    """Nothing else tells that the collector works."""
    watch, lives = Watch(), [Life("alone", 0, 1200)]
    watch.polls(0, 1200, lives)
    states = {time: watch.poll(time, lives).doubtful for time in range(1200, 2100, POLL_S)}
    assert [time for time, doubt in states.items() if doubt] == list(range(1560, 1800, POLL_S))
    assert watch.silent == {}


@pytest.mark.parametrize("killed", [False, True])
def test_short_lives_count_as_far_as_they_are_seen(killed: bool) -> None:
    """Five pilots of three minutes beside another; the killed ones only tell of their starts."""
    watch = Watch()
    lives = [Life(f"p{n}", 600 + 10 * n, 780 + 10 * n, killed) for n in range(5)]
    watch.polls(0, 3600, [Life("other", -5), *lives])
    assert watch.most == (2 if killed else 6) * UNITS
    assert watch.now_most == UNITS


lives = st.lists(
    st.builds(
        lambda start, length, killed: (start, start + length, killed),
        st.integers(-2000, 6000),
        st.integers(400, 5000),
        st.booleans(),
    ),
    max_size=12,
)


@given(lives)
def test_the_peak_is_what_surely_ran(found: list[tuple[int, int, bool]]) -> None:
    """Never more than ran, and no less than ran between starts and last contacts that were seen."""
    watch = Watch()
    every = [Life(f"p{n}", *of) for n, of in enumerate(found)]
    watch.polls(0, 9000 + LIFETIME_S, [*every, Life("steady", -60)])
    spans = [
        (life.start, life.end, life.contact((life.end - 1) // POLL_S * POLL_S)) for life in every
    ]

    def most(ends: list[tuple[int, int]]) -> int:
        return 1 + max((sum(a <= t < b for a, b in ends) for t, _ in ends), default=0)

    true = most([(start, end) for start, end, _ in spans])
    sure = most([(max(start, 0), last) for start, _, last in spans if max(start, 0) < last])
    assert sure * UNITS <= watch.most <= true * UNITS


def test_jobs_that_are_equally_long_make_no_pilot_silent() -> None:
    """Startds update every five minutes, and at each start of a job: one has jobs of a minute.

    The others, which started with it and have long jobs, run on; they are not silent by then.
    """
    contacts = Contacts()
    for time in range(0, 491, 5):
        regular = UPDATE_S if time >= UPDATE_S else min(time, 10)
        heard = {"short": time - time % 60, **{f"long{n}": regular for n in range(4)}}
        shown = [
            pilot(A, size=BIG)._replace(name=name, started=NOW, last_heard=NOW + at)
            for name, at in heard.items()
        ]
        found = contacts.after(shown, [NOW + max(heard.values())], NOW + time)
        contacts = found.contacts
        assert not found.silent, time
    assert contacts.gaps.regular == 60


def watch_updates(every: dict[str, int], until: int, killed: int) -> dict[str, list[int]]:
    """When "killed" was late and silent, beside others, with such a time between their updates."""
    contacts, found = Contacts(), dict[str, list[int]](late=[], silent=[])
    for time in range(0, until, 10):
        last = {name: min(time, killed) if name == "killed" else time for name in every}
        shown = [
            pilot(B if name == "killed" else A)._replace(
                name=name, last_heard=NOW + at - at % every[name]
            )
            for name, at in last.items()
        ]
        seen = contacts.after(shown, [max(one.last_heard for one in shown)], NOW + time)
        contacts = seen.contacts
        found["late"] += [time] if seen.late == {B} else []
        found["silent"] += [time] if [one.name for one in seen.silent] == ["killed"] else []
        assert not seen.late - {B}, time
    return found


def test_a_pilot_is_late_and_silent_by_its_own_updates() -> None:
    """It updates every 50 s, others every 300 s: it is late after one, and silent after two."""
    every = {"killed": 50, **{f"other{n}": 300 - 10 * n for n in range(6)}}
    found = watch_updates(every, 4000, killed=3000)
    assert found["late"][0] == 3000 + 70
    assert found["silent"][0] == 3000 + 120  # when another is heard of


@pytest.mark.parametrize("senders", [0, 1])
def test_updates_of_pilots_that_overlap_make_no_other_silent(senders: int) -> None:
    """They update each minute (etc/condor/overlap.conf), the others every five."""
    contacts = Contacts()
    for time in range(0, 1500, 60):
        often = pilot(A)._replace(name="often", last_heard=NOW + time, senders=senders)
        seldom = often._replace(name="seldom", started=NOW + 1200, last_heard=NOW + 1200, senders=0)
        shown = [often, seldom] if time >= 1200 else [often]
        found = contacts.after(shown, [NOW + time], NOW + time)
        contacts = found.contacts
    assert [key.name for key in found.silent] == ([] if senders else ["seldom"])


def test_a_pilot_is_late_soon_after_it_is_first_seen() -> None:
    """After five of its updates; before, after one of those of others, which is not known yet."""
    every = {"killed": 50, "other": 60}
    assert watch_updates(every, 800, killed=300)["late"][0] == 300 + 70
    assert watch_updates(every, 800, killed=100)["late"][0] == 100 + 380


def test_short_jobs_that_come_to_their_end_make_no_pilot_silent() -> None:
    """But for one they have jobs of about a minute for two hours, and then none."""
    draw = random.Random(1)
    contacts, beats = Contacts(), {"calm": list(range(0, 8000, UPDATE_S))}
    for name in ("one", "two", "three"):
        beats[name] = [0]
        while beats[name][-1] < 7200:
            beats[name].append(beats[name][-1] + 54 + draw.randrange(12))
        beats[name] += [beats[name][-1] + UPDATE_S * n for n in (1, 2, 3)]
    for time in range(0, 8000, 30):
        heard = {name: max(at for at in of if at <= time) for name, of in beats.items()}
        shown = [pilot(A)._replace(name=name, last_heard=NOW + at) for name, at in heard.items()]
        found = contacts.after(shown, [NOW + time], NOW + time)
        contacts = found.contacts
        assert not found.silent, time


def test_a_pilot_whose_end_was_told_does_not_run() -> None:
    """Until it is heard of after that: then another has its name, or it went on."""
    shown = [pilot(A)._replace(name="killed", last_heard=NOW - 20)]
    found = Contacts().after(shown, [NOW], NOW, {"killed": NOW - 10})
    assert (found.running, found.silent) == ((), tuple(shown))
    assert found.most({}, "cpu") == ({A: 0}, {A: 0})
    again = found.contacts.after(shown, [NOW], NOW, {"killed": NOW - 21})
    assert again.running == tuple(shown)
