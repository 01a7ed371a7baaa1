"""What is said of pilots of which something is missing."""

from __future__ import annotations

from typing import Any

import pytest

from gwmond.model.pilot_life import Assumption, Validation
from gwmond.reports.pilots.listing import record
from gwmond.reports.pilots.story import RULES, rules_of
from gwmond.reports.stored.stored_pilot import StoredPilot
from tests.build.pilot_files import output, queue, us
from tests.build.play import Play
from tests.build.played import add_files, only

CUT: dict[str, Any] = {"end": None, "condor_start_us": us(100), "logs": ()}
WHOLE: dict[str, Any] = {"condor_start_us": us(100), "condor_end_us": us(1100), "logs": ()}


@pytest.mark.parametrize(
    ("more", "until"),
    [
        (CUT, 100),
        (WHOLE, 1200),
        ({"validation": Validation.UNKNOWN, "validation_end_us": us(90)}, 1200),
    ],
)
def test_its_output_tells_that_it_passed_its_validation(more: dict[str, Any], until: int) -> None:
    """Only whether jobs ran is missing: that is said, and not that its validation is unknown."""
    play = Play()
    add_files(play, output(**more), at=5000)
    row = only(play)
    assert play.seconds() == {"unclassified": 4.0 * until}
    (rule,) = (
        rule for rule in rules_of(row, row.end_us or 0) if rule.rule is Assumption.VALIDATION
    )
    assert (
        rule.text == "its validation passed, and it is not known whether it ran jobs: unclassified"
    )
    assert record(StoredPilot(row))["validation"] == "passed"
    assert StoredPilot(row).jobs[2:4] == (True, None)


def test_nothing_tells_whether_it_passed() -> None:
    """Only the queue tells of it."""
    play = Play()
    add_files(play, *queue(0, 1200))
    row = only(play)
    (rule,) = (
        rule for rule in rules_of(row, row.end_us or 0) if rule.rule is Assumption.VALIDATION
    )
    assert rule.text == RULES[Assumption.VALIDATION]
    assert record(StoredPilot(row))["validation"] == "unknown"
    assert StoredPilot(row).jobs[2:4] == (None, None)


def test_what_is_learnt_later_takes_its_place() -> None:
    """The whole output tells that no job ran; a shorter one does not make it forget."""
    play = Play()
    add_files(play, output(**CUT), at=5000)
    for at, more in ((50_000, {}), (90_000, CUT)):
        add_files(play, output(**more), at=at)
        assert only(play).validation is Validation.PASSED
        assert play.seconds() == {"decision_problem": 4 * 1200.0}
        assert Assumption.VALIDATION not in only(play).assumed
