"""Verdicts against the negotiators of HTCondor 23 and 25: scenarios of fixed seeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.referee import whatif
from tests.referee.agreement import check
from tests.referee.arena import Arena
from tests.referee.draw import described, draw
from tests.referee.trial import Trial

SEEDS = {"23": (1, 2), "25": (4, 31)}
CHANGED = {"23": 371127, "25": 2001}


@pytest.mark.parametrize("number", [0, 1])
def test_the_pool_does_what_the_verdicts_say(
    trial: Callable[[int], Trial], htcondor: str, number: int
) -> None:
    check(trial(SEEDS[htcondor][number]))


def test_the_pool_does_what_a_change_was_said_to_move(
    arena: Arena, htcondor: str, tmp_path: Path
) -> None:
    """Made in the pool, it has the effect that was predicted (``whatif``)."""
    tried = list(whatif.judge(arena, tmp_path, draw(CHANGED[htcondor])))
    assert any(one.predicted.before != one.predicted.after for one in tried)
    for one in tried:
        assert one.is_right, f"{one}\n{described(one.change.after)}"
