"""Whatever is told in whatever order, with restarts at any moment: what is posted is exact."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.pilots.stored_pilots import PilotIdentity
from tests.build.kept import Kept
from tests.build.truths import Truth, play, truths
from tests.examples import examples


@settings(max_examples=examples(80))
@given(truths())
def test_what_is_posted_is_what_the_facts_say(truth: Truth) -> None:
    """Each pilot's time is divided exactly as its stored facts say, and sums are sums of it."""
    play(truth).prove()


@settings(max_examples=examples(60))
@given(truths(), st.integers(1, 3))
def test_names_that_are_not_kept_apart_change_no_sum(truth: Truth, bound: int) -> None:
    """Their pilots' time is that of ``other``, all of it, whatever is forgotten in a restart; each
    pilot has one name for ever."""
    named: dict[int, PilotIdentity] = {}

    def keep_names(stored: Kept, _now_us: int) -> None:
        for row in stored.pilots.values():
            if row.identity.origin == "collector":
                before = named.setdefault(row.id, row.identity)
                assert (row.identity.key, row.identity.group) == (before.key, before.group)

    stored = play(truth, after=keep_names, bound=bound)
    stored.prove()
    if all(visible for _, _, _, visible in truth.pilots):  # sizes of others rest on their entry's
        assert _without_places(stored) == _without_places(play(truth))


def _without_places(stored: Kept) -> Counter[tuple[str, ...]]:
    sums: Counter[tuple[str, ...]] = Counter()
    for (hour, pilot_series), micros in stored.posted.items():
        sums[
            str(hour),
            pilot_series.resource,
            pilot_series.measure,
            pilot_series.category,
            pilot_series.outcome,
            pilot_series.evidence,
        ] += micros
    return +sums


@settings(max_examples=examples(40))
@given(truths())
def test_everything_is_settled_in_the_end(truth: Truth) -> None:
    """Days later nothing is open, every pilot is closed, and each run counted once."""
    stored = play(truth)
    assert all(row.closed for row in stored.pilots.values())
    assert not any(row.open for row in stored.runs.values())
    counted: Counter[str] = Counter()
    for key, number in stored.counts.items():
        counted[key.what] += number
    assert counted["runs"] == len(stored.runs)
    assert counted["pilots"] == len(stored.pilots)
