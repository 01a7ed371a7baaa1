"""Verdicts against the truth of simulated pools.

Developed on the seeds 1 to 8; what is reported (``python -m tests.bench early``) is of others.
"""

from __future__ import annotations

import pytest

from tests.pilots.early.scenarios import SCENARIOS
from tests.pilots.early.simulator import score
from tests.pilots.early.verdicts import blamed

SEED = 21
USERS_FAULT = [name for name, trial in SCENARIOS.items() if not trial.broken]
BROKEN = [name for name, trial in SCENARIOS.items() if trial.broken]


@pytest.mark.parametrize("name", USERS_FAULT)
def test_users_faults_are_not_blamed_on_places(name: str) -> None:
    runs = SCENARIOS[name].scenario(SEED)
    of_runs, of_seconds = score(runs, blamed(runs))
    assert of_runs.users > 0
    assert of_runs.false_share <= 0.01
    assert of_seconds.false_share <= 0.01


@pytest.mark.parametrize("name", BROKEN)
def test_what_a_place_did_is_blamed_on_it(name: str) -> None:
    runs = SCENARIOS[name].scenario(SEED)
    for of in score(runs, blamed(runs)):
        assert of.right > 0
        assert of.precision >= 0.95
        assert of.recall >= 0.95
