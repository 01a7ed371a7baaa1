"""The generator itself: the same seed gives the same scenario, and all shapes come up."""

from __future__ import annotations

from tests.referee.draw import GROUPS, SHAPES, draw


def test_a_seed_always_gives_the_same_scenario() -> None:
    assert draw(7) == draw(7) != draw(8)


def test_all_that_may_happen_comes_up() -> None:
    entries = [entry for seed in range(60) for entry in draw(seed).entries]
    jobs = [some for seed in range(60) for some in draw(seed).jobs]
    presences = [presence for entry in entries for presence in entry.presences]
    assert {entry.shape for entry in entries} == set(SHAPES)
    assert {presence.group for presence in presences} == set(GROUPS)
    assert {3, 8} <= {len(draw(seed).entries) for seed in range(60)} <= set(range(3, 9))
    assert {"pledge", "limit"} == {entry.capacity for entry in entries}
    for what in ("down", "saturated", "judged"):
        assert {getattr(entry, what) for entry in entries} == {True, False}
    assert {0, 1} <= {entry.room for entry in entries}
    assert any(presence.open for presence in presences)
    hidden = [of.hides(entry) for of in map(draw, range(60)) for entry in of.entries]
    assert {True, False} == set(hidden)
    assert {some.hopeless for some in jobs} == {True, False}
    assert any(some.gpus for some in jobs)
    assert any(some.sites is None for some in jobs)
    assert any(some.cores == 64 for some in jobs)
