"""Since when claims are watched: a run of that time is known before its record is read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from gwmond.model.times import SECOND_US
from gwmond.service.accounting.accountant import Accountant

Poll = tuple[int, bool]
"""When claims were shown (s), and whether all of them were asked for."""


def watched(polls: list[Poll], period_s: int = 60) -> tuple[int | None, int]:
    """Return since when claims are watched after some polls, and how often all were asked for."""
    asked: list[int] = []
    gatherer = SimpleNamespace(claims_since=None, ask_all_claims=lambda: asked.append(1))
    accountant = SimpleNamespace(_gatherer=gatherer, _claims_us=None, _claims_since_us=None)
    for at, every in polls:
        gatherer.claims_since = None if every else at - 600.0
        now_us = at * SECOND_US
        Accountant._watch_claims(cast(Accountant, accountant), now_us, period_s * SECOND_US)
        accountant._claims_us = now_us
    since_us = accountant._claims_since_us
    return None if since_us is None else since_us // SECOND_US, len(asked)


@pytest.mark.parametrize(
    ("polls", "since", "asked"),
    [
        ([(0, True), (60, False), (120, False)], 0, 0),
        ([(0, True), (180, False), (360, False), (900, False)], 0, 0),  # long polls
        ([(0, True), (60, False), (900, False)], None, 1),  # a machine that slept
        ([(0, True), (60, False), (900, False), (960, False)], None, 1),
        ([(0, True), (60, False), (900, False), (960, True), (1020, False)], 960, 1),
        ([(0, True), (900, True)], 900, 0),
    ],
)
def test_since_all_claims_were_asked_for_without_a_long_gap(
    polls: list[Poll], since: int | None, asked: int
) -> None:
    """After a gap all are asked for once more; polls that take long are no gap."""
    assert watched(polls) == (since, asked)


def test_polls_as_far_apart_as_they_are_meant_to_be_are_no_gap() -> None:
    """Where the period is more than ten minutes."""
    assert watched([(0, True), (900, False), (2400, False)], period_s=900) == (0, 0)
