"""Which names are kept apart, by hand and for any flood of names."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model import names as module
from gwmond.model.facts import Berth, EntryKey
from gwmond.model.names import (
    ACCOUNTING_GROUPS,
    DAY_S,
    OTHER,
    OTHER_ENTRY,
    SCHEDDS,
    Claim,
    NameLimits,
    Names,
    Register,
    Standing,
)

T0 = 1_700_000_000.0
MONTH_S = 30 * DAY_S


def register(most: int = 3) -> Register[str]:
    return Register(most, MONTH_S)


def key(name: str) -> EntryKey:
    return EntryKey(name.upper(), name)


def berths(*names: str, group: str = "g") -> dict[Berth, int]:
    """One pilot at each of these entries."""
    return {Berth(key(name), group): 1 for name in names}


def names(entries: int = 2, groups: int = 10, accounting: int = 2) -> Names:
    return Names(NameLimits(entries, groups, accounting, MONTH_S))


def test_names_that_were_there_keep_their_places_in_a_flood() -> None:
    """Of three places two are taken: of the newcomers one gets the last."""
    found = register()
    assert found.note({"a": 1, "b": 1}, (), T0) == frozenset()
    flood = {f"x{n}": 1 for n in range(1000)}
    without = found.note({"a": 1, "b": 1, **flood}, (), T0 + 60)
    assert set(found.known) == {"a", "b", "x0"}
    assert len(without) == 999


def test_newcomers_with_most_pilots_come_first() -> None:
    """Then those that the alphabet names first; what a factory names comes before both."""
    found = register()
    without = found.note({"d": 5, "c": 9, "b": 5, "a": 1, "z": 1}, {"z"}, T0)
    assert set(found.known) == {"z", "c", "b"}
    assert without == {"a", "d"}


def test_a_name_that_a_factory_vouches_for_displaces_a_strangers() -> None:
    """The one that was seen longest ago; a vouched one is displaced by nobody."""
    found = register()
    found.note({"a": 1, "b": 1, "c": 1}, (), T0)
    found.note({"a": 1, "c": 1}, (), T0 + 60)
    assert found.note({"a": 1, "c": 1, "v": 1, "x": 1}, {"v"}, T0 + 120) == {"x"}
    assert set(found.known) == {"a", "c", "v"}
    assert found.note({"w": 1, "y": 1, "z": 1}, {"w", "y", "z"}, T0 + 180) == {"z"}
    assert set(found.known) == {"v", "w", "y"}


def test_a_name_that_was_seen_for_a_day_is_displaced_by_nobody() -> None:
    """Not even by what factories name; but once it is unseen for longer than it was seen."""
    found = register(1)
    found.note({"a": 1}, (), T0)
    assert found.claim("a", T0) is Claim.SEEN
    found.note({"a": 1}, (), T0 + 2 * DAY_S)
    assert found.claim("a", T0 + 4 * DAY_S) is Claim.ESTABLISHED
    assert found.note({"v": 1}, {"v"}, T0 + 4 * DAY_S) == {"v"}
    assert found.claim("a", T0 + 4 * DAY_S + 1) is Claim.LAPSED
    assert found.note({"x": 1}, (), T0 + 4 * DAY_S + 1) == frozenset()
    assert set(found.known) == {"x"}


def test_a_name_that_was_seen_shortly_loses_its_place_after_a_day() -> None:
    """Only when another asks for it: without need it stays until it is forgotten."""
    found = register(1)
    found.note({"a": 1}, (), T0)
    assert found.note({"x": 1}, (), T0 + DAY_S) == {"x"}
    assert set(found.known) == {"a"}
    assert found.note({"x": 1}, (), T0 + DAY_S + 1) == frozenset()
    assert set(found.known) == {"x"}


def test_a_name_is_forgotten() -> None:
    """What was not seen for the time that is configured gives its place back, whatever it was."""
    found = register(1)
    found.note({"a": 1}, {"a"}, T0)
    found.note({"a": 1}, {"a"}, T0 + 25 * DAY_S)
    found.note({}, (), T0 + 25 * DAY_S + MONTH_S)
    assert set(found.known) == {"a"}
    found.note({}, (), T0 + 25 * DAY_S + MONTH_S + 1)
    assert not found.known


def test_what_was_known_before_a_restart_has_its_places() -> None:
    """The strongest that fit; the time that gwmond was down counts against nobody."""
    found = names(entries=2)
    entries = {
        key("old"): Standing(T0 - 10 * DAY_S, T0),
        key("new"): Standing(T0 - 60, T0),
        key("gone"): Standing(T0 - 10 * DAY_S, T0 - 9.5 * DAY_S),
        OTHER_ENTRY: Standing(T0 - 10 * DAY_S, T0),
    }
    known = {Berth(entry, "g"): standing for entry, standing in entries.items()}
    found.recall(entries, known, T0, T0 + 20 * DAY_S)
    assert set(found.entries) == {key("old"), key("new")}
    assert found.groups == {(key("old"), "g"), (key("new"), "g")}
    found.note(berths("x", "y"), frozenset(), T0 + 20 * DAY_S)
    assert set(found.entries) == {key("old"), key("new")}


def test_words_have_their_places_after_a_restart() -> None:
    """Schedds, frontends and accounting groups; those of a stranger find none, as before."""
    limits = NameLimits(2, 10, 2, MONTH_S, schedds=1)
    before = Names(limits)
    for passed in (0, 2 * DAY_S):
        before.note_words(SCHEDDS, {"ap1": 1}, T0 + passed)
        before.note_words(ACCOUNTING_GROUPS, {"a": 1, "b": 1}, T0 + passed)
    after, now = Names(limits), T0 + 50 * DAY_S
    after.load(before.dump(), T0 + 2 * DAY_S, now)
    after.note_words(SCHEDDS, {"aa": 9, "ap1": 1}, now, ["aa"])
    after.note_words(ACCOUNTING_GROUPS, {"x": 9, "y": 9}, now)
    assert after.room(SCHEDDS) == (frozenset({"ap1"}), 0)
    assert after.room(ACCOUNTING_GROUPS) == (frozenset({"a", "b"}), 0)
    assert [(told.kind, told.number) for told in after.together] == [
        ("schedds", 1),
        ("accounting groups", 2),
    ]
    after.load("", now, now)
    assert after.room(SCHEDDS) == (frozenset({"ap1"}), 0)


def test_what_the_ledger_keeps_of_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest names, which have the strongest claims; text of hours, so it seldom changes."""
    found = Names(NameLimits(2, 10, 1000, MONTH_S))
    found.note_words(ACCOUNTING_GROUPS, {"old": 1}, T0)
    found.note_words(ACCOUNTING_GROUPS, {f"new{n}": 1 for n in range(900)}, T0 + DAY_S)
    whole = found.dump()
    monkeypatch.setattr(module, "MAX_CHARACTERS", 1000)
    text = found.dump()
    assert len(text) <= 1000 < len(whole)
    assert whole.startswith(text[:-1])
    again = Names(NameLimits(2, 10, 1000, MONTH_S))
    again.load(text, T0, T0)
    assert "old" in again.room(ACCOUNTING_GROUPS)[0]


def test_pilots_are_accounted_under_names_that_are_kept_apart() -> None:
    """Of an entry without a place nothing is left but ``other``; of a group its entry is."""
    found = names(entries=2, groups=2)
    found.note({**berths("a", "b"), **berths("a", group="h")}, frozenset(), T0)
    assert found.berth(key("a"), "g") == (key("a"), "g")
    assert found.berth(key("b"), "g") == (key("b"), OTHER)
    assert found.berth(key("x"), "g") == (OTHER_ENTRY, OTHER)
    (told,) = found.together
    assert (told.kind, told.number, told.most) == ("groups", 1, 2)
    assert told.few == ("B/b/g",)


def test_one_says_what_is_taken_together_as_long_as_it_is() -> None:
    """Kinds, numbers and a few names; nothing when the flood is over."""
    found = names()
    found.note(berths("a", "b", "c", "d"), frozenset(), T0)
    found.note_words(ACCOUNTING_GROUPS, {"u": 1, "v": 2, "w": 3}, T0)
    assert [(together.kind, together.number, together.few) for together in found.together] == [
        ("entries", 2, ("C/c", "D/d")),
        ("accounting groups", 1, ("u",)),
    ]
    assert [found.word(ACCOUNTING_GROUPS, name) for name in "uvw"] == [OTHER, "v", "w"]
    found.note(berths("a"), frozenset(), T0 + 60)
    found.note_words(ACCOUNTING_GROUPS, {"w": 1}, T0 + 60)
    assert found.together == ()


def test_names_of_job_records_take_free_places_and_no_others() -> None:
    """They displace nobody, and are said to be taken together until the next poll."""
    found = names(entries=2)
    found.note(berths("a"), frozenset(), T0)
    assert found.admit(key("r"), "g") == (key("r"), "g")
    assert found.admit(key("s"), "g") == (OTHER_ENTRY, OTHER)
    assert [together.few for together in found.together] == [("S/s",)]
    assert found.admit(OTHER_ENTRY, "g") == (OTHER_ENTRY, OTHER)
    assert found.admit(key("a"), OTHER) == (key("a"), OTHER)
    assert found.groups == {(key("a"), "g"), (key("r"), "g")}
    found.note(berths("a"), frozenset(), T0 + 60)
    assert found.together == ()


def test_entries_that_lose_their_places_lose_those_of_their_groups() -> None:
    """So that groups of entries that are gone keep no places."""
    found = names(entries=1)
    found.note(berths("a"), frozenset(), T0)
    vouched = berths("v")
    found.note(vouched, frozenset(vouched), T0 + 60)
    assert found.groups == {(key("v"), "g")}


def test_a_pledge_vouches_for_its_site() -> None:
    """And a factory's ad for its entry, of which it tells the name alone."""
    found = names(entries=1)
    found.note(berths("a"), frozenset(), T0)
    found.note(berths("a", "p"), frozenset(), T0 + 1, by_name=frozenset({"P"}))
    assert set(found.entries) == {key("p")}
    other = names(entries=1)
    other.note(berths("a"), frozenset(), T0)
    other.note(berths("a", "p"), frozenset(), T0 + 1, by_name=frozenset({"p"}))
    assert set(other.entries) == {key("p")}


def test_lower_limits_keep_the_strongest() -> None:
    """As after the configuration was read again."""
    found = names(entries=3)
    found.note(berths("a", "b"), frozenset(berths("b")), T0)
    found.note(berths("a", "b", "c"), frozenset(berths("b")), T0 + 60)
    assert found.weak == {key("a"), key("c")}
    after = found.successor(NameLimits(1, 10, 2, MONTH_S))
    assert set(after.entries) == {key("b")}
    assert after.groups == {(key("b"), "g")}


words = st.sets(st.sampled_from("abcdefghijklmnop"), max_size=16)
steps = st.lists(st.tuples(words, words, st.floats(0, 3 * DAY_S)), max_size=12)


@given(st.integers(1, 6), steps)
def test_there_are_never_more_than_the_bound(
    most: int, played: Iterable[tuple[set[str], set[str], float]]
) -> None:
    """Each name that is seen has a place or is said to have none, and whoever was seen by the
    last two polls, and for a day, stays."""
    found, now = register(most), T0
    for seen, vouched, passed in played:
        now += passed
        strong = {n for n in found.known if found.claim(n, now) is Claim.ESTABLISHED}
        without = found.note(dict.fromkeys(seen, 1), vouched & seen, now)
        assert len(found.known) <= most
        assert without | (seen & found.known.keys()) == seen
        assert not without & found.known.keys()
        forgotten = {n for n in strong if n not in found.known}
        assert not forgotten
