"""Some minutes of faults, always the same ones, to see that none of them makes the ledger wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.__main__ import play

SEED, MINUTES = 20261126, 3.0


@pytest.mark.timeout(2400)
def test_the_ledger_is_true_after_chaos(tmp_path: Path) -> None:
    """What differs from HTCondor's own files has a fault that explains that no source had it."""
    verdict = play(MINUTES, SEED, tmp_path, [], "23")
    print(*verdict.named, sep="\n")
    assert verdict.wrong == []
    assert verdict.checked["pilots"] >= 3
    assert verdict.checked["faults"] >= 3
