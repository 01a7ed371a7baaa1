"""Verdicts against the negotiator of HTCondor 23: scenarios of fixed seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.referee.agreement import check
from tests.referee.trial import Trial

HTCONDOR = "23"


@pytest.mark.parametrize("seed", [1, 2])
def test_the_pool_does_what_the_verdicts_say(trial: Callable[[int], Trial], seed: int) -> None:
    check(trial(seed))
