"""What commands tell of a pilot is what is posted, after each poll of any history."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.pilot_life import Category, Kind
from gwmond.model.times import SECOND_US
from gwmond.reports.pilots.story import Story, story_of
from tests.build.kept import Kept
from tests.build.play import T0, Play, record, shown
from tests.build.truths import RULES, Truth, play, truths
from tests.examples import examples


def stories(stored: Kept, now_us: int) -> list[Story]:
    """What ``gwmond pilot`` tells of each pilot now."""
    return [story_of(stored, row, now_us, RULES) for row in stored.pilots.values()]


def check(stored: Kept, now_us: int) -> None:
    """Prove that settled and not settled are the pilot's resources times its life so far.

    And that what is shown as settled is what the totals hold.
    """
    for story in stories(stored, now_us):
        assert not any(story.residual.values()), story.pilot.row
        posted: Counter[tuple[str, ...]] = Counter()
        for (resource, measure, category, outcome), micros in story.pilot.row.settled.items():
            posted[resource, measure, category] += 0 if outcome else micros
        own: Counter[tuple[str, ...]] = Counter()
        every: Counter[Kind] = Counter()
        for span in story.own:
            every.update(span.amounts)
            for kind, micros in span.amounts.items():
                own[(*kind, span.category or "")] += micros if span.category else 0
        assert +own == +posted
        for run in story.runs:
            every.update(run.amounts)
        assert {kind: every[kind] for kind in story.pilot.offered} == story.pilot.offered
        assert all(micros >= 0 for micros in story.unsettled.values())
        assert story.pilot.unsettled == story.unsettled


@settings(max_examples=examples(80))
@given(truths(), st.sampled_from([60, 300]), st.sampled_from([0, 900]), st.sampled_from([0, 300]))
def test_what_is_told_of_a_pilot_is_what_is_posted_at_every_moment(
    truth: Truth, every_s: int, ghost_s: int, refresh_s: int
) -> None:
    """After each poll, with restarts at any of them; pilots take leave, or are killed."""
    truth = truth._replace(every_s=every_s, ghost_s=ghost_s)
    play(truth, rules=RULES._replace(refresh_us=refresh_s * SECOND_US), after=check)


def test_a_killed_pilot_has_no_time_after_its_last_contact(play: Play) -> None:
    """Heard of last at 600 s; its ad stays: 240 s later its life is still 600 s, all accounted."""
    play.live(0, 600, [shown()], records=[record("1.0", 100, 500)])
    for at in range(660, 900, 60):
        play.poll(at, [shown(heard=600)])
        (story,) = stories(play.stored, (T0 + at) * SECOND_US)
        assert not any(story.residual.values())
        assert story.pilot.offered["cpu", "resource"] == 4 * 600e6
        assert story.own[-1].end_us == (T0 + 600) * SECOND_US
        check(play.stored, (T0 + at) * SECOND_US)
    overhead = story.pilot.settled["cpu", "resource", Category.PILOT_OVERHEAD]
    assert (overhead, story.unsettled["cpu", "resource"]) == (4 * 600e6 - 400e6, 0)
