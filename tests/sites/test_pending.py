from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.entries.waiting import RESOLUTION, PendingHistory, Waiting
from gwmond.sites.pending import Filling, filling, measured

GRACE = 3600


def history(*samples: tuple[int, int], grace: int = GRACE) -> PendingHistory:
    found = PendingHistory()
    for time, pending in samples:
        found = found.add(time, pending, grace)
    return found


@pytest.mark.parametrize(
    ("pending", "beyond", "expected"),
    [
        (0, 0, Waiting(0, 0, "measured")),
        (5, 0, Waiting(0, 5, "measured")),
        (5, 2, Waiting(2, 3, "measured")),
        (5, 9, Waiting(5, 0, "measured")),
    ],
)
def test_a_queue_that_can_be_read_is_measured(pending: int, beyond: int, expected: Waiting) -> None:
    """Ages from the factory's queue are taken as they are, never more than wait."""
    assert measured(pending, beyond) == expected
    assert expected.pending == pending


@pytest.mark.parametrize(
    ("samples", "pending", "started", "beyond"),
    [
        ([(0, 5)], 5, [], 0),  # nothing is known of a grace ago
        ([(0, 5), (3599, 5)], 5, [], 0),
        ([(0, 5), (3600, 5)], 5, [], 5),
        ([(0, 5), (3600, 5)], 5, [100, 200], 3),
        ([(0, 5), (3600, 5)], 5, [-100, 0], 5),  # started before: not of these five
        ([(0, 5), (3600, 9)], 9, [], 5),  # four came later
        ([(0, 5), (3600, 2)], 2, [], 2),  # three left the queue unseen
        ([(0, 5), (1800, 0), (3600, 5)], 5, [], 0),  # it was empty in between
        ([(0, 5), (1800, 1), (3600, 5)], 5, [], 1),
        ([(0, 5), (3600, 5)], 5, [1, 2, 3, 4, 5, 6], 0),
        ([(0, 9), (2000, 5), (5600, 5)], 5, [], 5),
        ([(0, 5), (3600, 1)], 1, [], 1),
        ([(0, 5), (3600, 5)], 5, [3600, 3601], 4),
        ([(0, 5), (3600, 9)], 9, [100], 4),
        ([(0, 5), (1800, 5), (1801, 5), (3700, 5)], 5, [], 5),
        ([(0, 5), (3600, 5), (3600, 5)], 5, [], 5),
    ],
)
def test_counts_alone_are_read_as_a_queue(
    samples: list[tuple[int, int]], pending: int, started: list[int], beyond: int
) -> None:
    """First in first out: who waited a grace ago still does, but for those that started."""
    now = samples[-1][0]
    found = history(*samples).estimate(now, pending, started, GRACE)
    assert found == Waiting(beyond, pending - beyond, "estimated")


def test_that_nobody_waits_is_no_estimate() -> None:
    """An empty queue is known to be empty."""
    found = history((0, 5), (3600, 0)).estimate(3600, 0, [], GRACE)
    assert found == Waiting(0, 0, "measured")


def test_a_dip_between_two_kept_samples_is_not_forgotten() -> None:
    """Samples closer than the resolution are merged, but their least is kept."""
    found = history((0, 5), (1, 0), (2, 5), (3700, 5))
    assert found.estimate(3700, 5, [], GRACE).beyond == 0


def test_a_clock_that_goes_back_voids_the_history() -> None:
    """After the clock went backwards nothing is known of a grace ago."""
    found = history((10_000, 5), (500, 5))
    assert found.estimate(3000, 5, [], GRACE).beyond == 0
    assert len(found.samples) == 1


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 50)), min_size=1, max_size=300),
    st.integers(60, 7200),
    st.lists(st.integers(0, 30_000), max_size=20),
)
def test_history_stays_small_and_estimates_stay_within_what_waits(
    steps: list[tuple[int, int]], grace: int, started: list[int]
) -> None:
    """However often it is polled the history is bounded, and so is the estimate."""
    found, now = PendingHistory(), 0
    for step, pending in steps:
        now += step
        found = found.add(now, pending, grace)
        assert len(found.samples) <= RESOLUTION + 2
        assert sum(sample.time <= now - grace for sample in found.samples) <= 1
        waiting = found.estimate(now, pending, started, grace)
        assert waiting.beyond >= 0
        assert waiting.within >= 0
        assert waiting.pending == pending


@given(st.lists(st.integers(0, 20), min_size=80, max_size=120))
def test_merging_samples_never_finds_more_beyond_the_grace(counts: list[int]) -> None:
    """The bounded history says at most what a full one says for the exact grace."""
    found = PendingHistory()
    for i, pending in enumerate(counts):
        found = found.add(i * 60, pending, GRACE)
    now = (len(counts) - 1) * 60
    exact = min(counts[i] for i in range(len(counts)) if i * 60 >= now - GRACE)
    assert found.estimate(now, counts[-1], [], GRACE).beyond <= exact


def test_an_entry_fills_from_the_first_pilot_that_waits() -> None:
    """It goes on between two pilots at a time; it ends when none has waited for a grace."""
    of, seen = None, []
    for minute, pending in enumerate([0, 1, 0, 1, 0, 1, *[0] * 40]):
        of = filling(of, Waiting(0, pending, "measured"), 60 * minute, 1800)
        seen.append(of)
    assert seen[0] is None
    assert seen[1] == seen[2] == Filling(60, 60)
    assert seen[5] == seen[35] == Filling(60, 300)
    assert seen[36] is None
    assert filling(Filling(60, 300), None, 400, 1800) == Filling(60, 300)  # not known for a moment
    assert filling(Filling(60, 300), Waiting(1, 5, "measured"), 400, 1800) is None  # saturated
    assert filling(Filling(60, 300), Waiting(0, 5, "measured"), 200, 1800) == Filling(200, 200)
    assert filling(Filling(60, 300), Waiting(0, 5, "measured"), 300, 1800) == Filling(60, 300)


def test_an_entry_fills_for_long_after_a_grace_in_which_pilots_started() -> None:
    """Pilots that wait and never start may have been withdrawn, and say nothing of room."""
    of = Filling(1000, 2800)
    assert not of.is_long([2799], 2800, 1800)
    assert of.is_long([2799], 2801, 1800)
    assert not of.is_long([], 2801, 1800)
    assert not of.is_long([1001], 2801, 1800)
