"""Verdicts against the negotiator of HTCondor 25: scenarios of fixed seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.referee.agreement import check
from tests.referee.trial import Trial

HTCONDOR = "25"


@pytest.mark.parametrize("seed", [4, 31])
def test_the_pool_does_what_the_verdicts_say(trial: Callable[[int], Trial], seed: int) -> None:
    check(trial(seed))
