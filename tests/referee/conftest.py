"""Fixtures: a pool of each version of HTCondor, in which scenarios are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.pool.condor import CondorPool
from tests.referee.arena import POOL_CONFIG, Arena
from tests.referee.draw import draw
from tests.referee.trial import Trial, judge


@pytest.fixture(scope="module")
def arena(htcondor: str) -> Iterator[Arena]:
    with CondorPool(config=POOL_CONFIG, htcondor=htcondor) as pool:
        yield Arena(pool)


@pytest.fixture
def trial(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Trial]:
    """Tries the scenario of a seed."""
    return lambda seed: judge(arena.pool, arena, tmp_path_factory.mktemp("asked"), draw(seed))
