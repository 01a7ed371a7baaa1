"""How sure verdicts are: by those that pilots checked, each poll's verdict once."""

from __future__ import annotations

import random

import pytest

from gwmond.model.entries.confidence import FEWEST, NO_CHECKS, confidence
from gwmond.model.entries.experiments import PilotResult, SiteVerdict
from gwmond.model.facts import EntryKey
from gwmond.model.states import State
from tests.build.experiments import A, experiment

B = EntryKey("Site-B", "entry-b")
BOTTLENECK, INSUFFICIENT = State.PROVISIONING_BOTTLENECK, State.INSUFFICIENT_DEMAND


def _of(state: State, reason: str = "") -> SiteVerdict:
    return SiteVerdict(state, reason, "measured")


def test_of_few_checks_nothing_is_said() -> None:
    """Nor of states that no pilot can check."""
    assert NO_CHECKS.probability(A, _of(BOTTLENECK)) is None
    few = confidence(experiment(n, BOTTLENECK, ran=True) for n in range(FEWEST - 1))
    assert few.probability(A, _of(BOTTLENECK)) is None
    enough = confidence(experiment(n, BOTTLENECK, ran=True) for n in range(FEWEST))
    assert enough.probability(A, _of(BOTTLENECK)) is not None
    assert enough.probability(A, _of(INSUFFICIENT)) is None
    assert enough.probability(A, _of(State.FULL)) is None


def test_pilots_that_start_together_check_once() -> None:
    """Ten share the jobs of one: the bottleneck was there."""
    together = [experiment(0, BOTTLENECK, ran=n == 0) for n in range(10)]
    apart = [experiment(n, BOTTLENECK, ran=False) for n in range(1, FEWEST)]
    assert confidence(together).number == 1
    found = confidence([*together, *apart])
    assert found.number == FEWEST
    assert found.tallies[BOTTLENECK] == (1, FEWEST)


def test_void_and_open_experiments_check_nothing() -> None:
    made = experiment(0, BOTTLENECK, ran=True)
    for result in (PilotResult.VOID, PilotResult.OPEN):
        assert confidence([made._replace(result=result)]).number == 0


def test_an_entry_of_its_own_is_told_apart_by_many_checks_not_by_few() -> None:
    """What few say is drawn towards the others."""
    others = [experiment(n, BOTTLENECK, ran=True, entry=B) for n in range(100)]
    for number, least, most in ((1, 0.85, 1.0), (40, 0.1, 0.4)):
        own = [experiment(1000 + n, BOTTLENECK, ran=False) for n in range(number)]
        found = confidence([*others, *own]).probability(A, _of(BOTTLENECK))
        assert found is not None
        assert least < found < most


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_are_those_of_the_draw(seed: int) -> None:
    """Verdicts that are right with a chance of their reason's own: it is found, bin by bin."""
    draw = random.Random(seed)
    chances = {"frontend_limit": 0.95, "few_requested": 0.6, "held_pilots": 0.3}
    made = []
    for number in range(3000):
        reason = draw.choice(list(chances))
        ran = draw.random() < chances[reason]
        made.append(experiment(number, BOTTLENECK, ran=ran, reason=reason))
    found = confidence(made)
    for reason, chance in chances.items():
        # of one entry: what is known of it alone draws towards the mean of all
        assert found.probability(B, _of(BOTTLENECK, reason)) == pytest.approx(chance, abs=0.06)
    least = sum(chance * (1 - chance) for chance in chances.values()) / len(chances)
    assert found.brier is not None
    assert least - 0.02 < found.brier < 0.25
    assert sum(one.number for one in found.bins) > 2900
