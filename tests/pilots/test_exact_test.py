"""The exact test of stratified tables, and its correction for many."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, fisher_exact

from gwmond.pilots.early.exact_test import Stratum, compare, least_p, p_value
from tests.examples import examples

STRATA = st.tuples(*(st.integers(0, 8) for _ in range(4))).map(
    lambda t: Stratum(t[0] + t[1], t[0], sum(t) + 1, t[0] + t[2])
)


@settings(max_examples=examples(150))
@given(STRATA)
def test_with_one_group_it_is_fishers_exact_test(stratum: Stratum) -> None:
    good_here, failed_far = stratum.here - stratum.failed_here, stratum.failed - stratum.failed_here
    table = [
        [stratum.failed_here, good_here],
        [failed_far, stratum.jobs - stratum.here - failed_far],
    ]
    p = p_value([stratum])
    assert p == pytest.approx(fisher_exact(np.array(table), alternative="greater").pvalue)
    assert least_p([stratum]) <= p * (1 + 1e-9)
    assert least_p([stratum]) == pytest.approx(
        p_value([stratum._replace(failed_here=min(stratum[0], stratum[3]))])
    )


@settings(max_examples=examples(60))
@given(st.lists(STRATA, min_size=1, max_size=3))
def test_groups_are_independent(strata: list[Stratum]) -> None:
    """The same by going through all ways in which the failures could have fallen."""
    ways: dict[int, float] = {0: 1.0}
    for stratum in strata:
        chances = {}
        for here in range(min(stratum.here, stratum.failed) + 1):
            at_least = [p_value([stratum._replace(failed_here=n)]) for n in (here, here + 1)]
            chances[here] = (
                at_least[0] - at_least[1]
                if here < min(stratum.here, stratum.failed)
                else at_least[0]
            )
        ways = {
            total: sum(ways.get(total - n, 0) * chance for n, chance in chances.items())
            for total in range(max(ways) + len(chances))
        }
    seen = sum(stratum.failed_here for stratum in strata)
    expected = sum(chance for total, chance in ways.items() if total >= seen)
    assert p_value(strata) == pytest.approx(min(1.0, expected), abs=1e-9)


@settings(max_examples=examples(60))
@given(STRATA, st.integers(1, 6))
def test_strata_that_are_alike_are_summed_at_once(stratum: Stratum, number: int) -> None:
    """As if each were added for itself."""
    each = [
        p_value([stratum._replace(failed_here=n)])
        for n in range(min(stratum.here, stratum.failed) + 1)
    ]
    chances = np.ones(1)
    for _ in range(number):
        chances = np.convolve(chances, -np.diff([*each, 0]))
    expected = chances[stratum.failed_here * number :].sum()
    assert p_value([stratum] * number) == pytest.approx(expected, abs=1e-9)


def test_chance_blames_hardly_anybody() -> None:
    """2,000 units of which each had 5 of 10,000 jobs; 5 % of these failed, wherever."""
    random = Random(2022)
    failed = [random.random() < 0.05 for _ in range(10_000)]
    tables = {
        str(unit): [Stratum(5, sum(failed[unit * 5 : unit * 5 + 5]), 10_000, sum(failed))]
        for unit in range(2000)
    }
    found = compare(tables)
    assert any(finding.failures >= 3 for finding in found.values())
    assert not any(finding.significant() for finding in found.values())


def test_all_that_could_be_significant_is_counted_as_a_test() -> None:
    """A unit without failures is a test too: leaving it out would flatter the others."""
    tables = {str(unit): [Stratum(20, 0, 620, 9)] for unit in range(30)}
    tables["bad"] = [Stratum(20, 5, 620, 9)]
    found = compare(tables)
    assert (found["20"].failures, found["20"].p) == (0, 1)
    adjusted = false_discovery_control([finding.p for finding in found.values()], method="by")
    assert [finding.adjusted for finding in found.values()] == pytest.approx(adjusted)
    assert found["bad"].expected == pytest.approx(9 * 20 / 620)


def test_what_could_never_be_significant_is_no_test() -> None:
    """Three jobs here, all failed: not rare enough where a third fails anyway."""
    three = {"three": [Stratum(3, 3, 103, 33)]}
    assert compare(three) == {}
    assert "three" in compare(three, rate=0.1)
    assert compare({"two": [Stratum(2, 2, 10_000, 2)]}) == {}
    assert compare({}) == {}


def test_no_probability_exceeds_one() -> None:
    """Where no fewer can have failed, the chances sum to one, and by rounding to a bit more."""
    assert p_value([Stratum(2, 1, 10, 9)] * 7) == 1


def test_as_many_tests_are_allowed_for_as_could_be_significant() -> None:
    """Of two units one can reach 1 in 30: 1 in 20 is asked of it, and not half of that (Tarone)."""
    tables = {"rare": [Stratum(3, 3, 10, 4)], "often": [Stratum(3, 3, 10, 9)]}
    found = compare(tables, rate=0.05)
    assert set(found) == {"rare"}
    assert found["rare"].adjusted == pytest.approx(4 / 120)


def test_two_failures_are_not_enough() -> None:
    found = compare({"node": [Stratum(3, 2, 50_000, 3)]})
    assert found["node"].adjusted < 1e-6
    assert not found["node"].significant()
