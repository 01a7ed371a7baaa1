"""Verdicts against the negotiators of HTCondor 23 and 25: scenarios of fixed seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.referee.agreement import check
from tests.referee.trial import Trial

SEEDS = {"23": (1, 2), "25": (4, 31)}


@pytest.mark.parametrize("number", [0, 1])
def test_the_pool_does_what_the_verdicts_say(
    trial: Callable[[int], Trial], htcondor: str, number: int
) -> None:
    check(trial(SEEDS[htcondor][number]))
