from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.elapsed import Elapsed, Tick, elapsed
from gwmond.model.entries.evaluation import SCALE, Capacity, Evaluation
from gwmond.model.entries.waiting import Waiting
from gwmond.sites.integrate import SiteTime, integrate
from gwmond.sites.site_time import evaluate
from tests.build.facts import NOW, A, B, C, Capacities, facts, group, peak, pilot, request, totals

PER_SECOND = SCALE * 1000
"""Increments for one canonical unit in one second."""
MINUTE = Elapsed(60_000, True, "")


def evaluation() -> Evaluation:
    """A: 8 in use, 92 spare, 38 of it bottleneck.  B: saturated, 8 in use of 50."""
    return evaluate(
        facts(
            capacities=peak({A: 100, B: 50}),
            totals=totals(request(A), request(B)),
            waiting={B: Waiting(1, 0, "measured")},
            pilots=[pilot(A), pilot(B)],
            groups=[group(38)],
        ),
        NOW,
    )


def test_states_become_canonical_seconds() -> None:
    """Use and the parts of the spare are multiplied by the time that elapsed, exactly."""
    found = integrate(evaluation(), MINUTE, {A, B})
    assert found == [
        SiteTime("cpu", "provisioned", "", A, 8 * 60 * PER_SECOND),
        SiteTime("cpu", "provisioning_bottleneck", "nothing_requested", A, 38 * 60 * PER_SECOND),
        SiteTime("cpu", "insufficient_demand", "", A, 54 * 60 * PER_SECOND),
        SiteTime("cpu", "provisioned", "", B, 8 * 60 * PER_SECOND),
    ]


def test_an_unknown_interval_is_all_unknown() -> None:
    """When the interval is unknown so is the whole capacity, with the interval's reason."""
    found = integrate(evaluation(), Elapsed(500_000, False, "missed_poll"), {A, B})
    assert found == [
        SiteTime("cpu", "unknown", "missed_poll", A, 100 * 500 * PER_SECOND),
        SiteTime("cpu", "unknown", "missed_poll", B, 50 * 500 * PER_SECOND),
    ]


def test_unknown_pilots_are_no_use_of_zero() -> None:
    """Where pilots are unknown the whole capacity goes to unknown, none of it to provisioned."""
    unknown = evaluate(facts(capacities=peak({A: 100}), pilots=None), NOW)
    assert integrate(unknown, MINUTE, {A}) == [
        SiteTime("cpu", "unknown", "pilots", A, 100 * 60 * PER_SECOND)
    ]


@pytest.mark.parametrize("interval", [MINUTE, Elapsed(60_000, False, "reboot")])
def test_entries_seen_for_the_first_time_accrue_nothing(interval: Elapsed) -> None:
    """Nothing is known of the time before an entry was first seen."""
    assert {key.entry for key in integrate(evaluation(), interval, {B, C})} == {B}
    assert integrate(evaluation(), interval, set()) == []


def test_a_new_entry_of_a_known_site_has_its_share_of_what_is_pledged() -> None:
    """Else a site's time is less than its pledge whenever it gets an entry."""
    new = A._replace(entry="new")
    pledged: Capacities = {(key, "cpu"): Capacity(50, "pledge") for key in (A, new)}
    found = evaluate(facts(capacities=pledged, pilots=[pilot(A)]), NOW)
    for interval in (MINUTE, Elapsed(60_000, False, "reboot")):
        seconds = sum(time.amount for time in integrate(found, interval, {A}))
        assert seconds == 100 * 60 * PER_SECOND
    assert integrate(found, MINUTE, {B}) == []


def test_the_least_amount_of_the_least_time_counts() -> None:
    """1/SCALE unit for a millisecond is an increment: nothing is lost by rounding."""
    found = evaluation()
    row = found.rows[A, "cpu"]
    least = row._replace(parts=(row.parts[0]._replace(amount=1),), provisioned=0)
    rows = integrate(found._replace(rows={(A, "cpu"): least}), Elapsed(1, True, ""), {A})
    assert [(row.state, row.amount) for row in rows] == [("provisioning_bottleneck", 1)]


def test_no_time_gives_no_increments() -> None:
    """An interval of zero adds nothing, known or not."""
    assert integrate(evaluation(), Elapsed(0, True, ""), {A, B}) == []
    assert integrate(evaluation(), Elapsed(0, False, "first_poll"), {A, B}) == []


@given(st.lists(st.floats(0, 100), min_size=2, max_size=12))
def test_cutting_an_interval_changes_no_counter(times: list[float]) -> None:
    """The same state over parts of an interval adds up to that over the whole, exactly."""
    found = evaluation()
    ticks = [Tick(1.7e9 + t, t, t, "boot") for t in sorted(times)]

    def counters(*pairs: tuple[Tick, Tick]) -> Counter[tuple[str, str]]:
        sums: Counter[tuple[str, str]] = Counter()
        for before, now in pairs:
            for key in integrate(found, elapsed(before, now, 60), {A, B}):
                sums[key.entry.entry, key.state] += key.amount
        return sums

    parts = counters(*pairwise(ticks))
    assert parts == counters((ticks[0], ticks[-1]))
