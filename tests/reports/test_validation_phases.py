"""How long a pilot validated, and slept after that had failed."""

from __future__ import annotations

from collections import Counter

import pytest

from gwmond.model.pilot_life import Assumption, Category, Interval, Kind, Validation
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.reports.failures.failures import Failures
from gwmond.reports.pilots.pilot_document import phases_json, phases_text
from gwmond.reports.stored.pilot_sums import PilotSums
from gwmond.reports.stored.stored_pilot import StoredPilot
from tests.build.ended import LIFE, ORIGIN, pilot
from tests.ledger.pilot_batches import HOUR

MINUTE = HOUR // 60
UNITS = 4
WHOLE = ORIGIN, ORIGIN + LIFE


def row(until: int | None = 5 * MINUTE, **changes: object) -> PilotRow:
    """A pilot of four cores and four hours whose validation failed after five minutes."""
    posted = {("cpu", "canonical", Category.VALIDATION_FAILS, ""): UNITS * LIFE}
    end_us = None if until is None else ORIGIN + until
    made = pilot(
        validation=Validation.FAILED, validation_end_us=end_us, settled=posted, closed=True
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def failed(until: int | None = 5 * MINUTE, **changes: object) -> StoredPilot:
    return StoredPilot(row(until, **changes))


def test_it_validates_and_then_sleeps() -> None:
    """Both sum to its life."""
    found = failed().phases(ORIGIN + LIFE)
    assert found is not None
    assert (found.validating_us, found.asleep_us) == (5 * MINUTE, LIFE - 5 * MINUTE)
    assert found.estimated_us == 0
    assert phases_json(found)["asleep_seconds"] == 4 * 3600 - 300


def test_one_that_still_sleeps() -> None:
    """Up to what is known now."""
    found = failed(end_us=None).phases(ORIGIN + HOUR)
    assert found is not None
    assert found.asleep == (ORIGIN + 5 * MINUTE, ORIGIN + HOUR)


def test_not_known_is_not_zero() -> None:
    """Of one of which it is not known when its validation ended."""
    assert failed(None).phases(ORIGIN + LIFE) is None
    assert set(phases_json(None).values()) == {None}
    told = "how long it validated, and then slept, is not known"
    assert phases_text(failed(None), ORIGIN + LIFE) == told
    assert phases_text(StoredPilot(pilot(validation=Validation.PASSED)), ORIGIN + LIFE) == ""


def test_one_that_passed_does_not_sleep() -> None:
    passed = failed(validation=Validation.PASSED)
    assert phases_text(passed, ORIGIN + LIFE) == "validated for 5m00s"
    assert phases_json(passed.phases(ORIGIN + LIFE))["asleep_seconds"] is None


@pytest.mark.parametrize(
    ("assumed", "estimated"),
    [
        ({Assumption.BEGIN: WHOLE}, LIFE),
        ({Assumption.END: (ORIGIN + 3 * HOUR, ORIGIN + LIFE)}, HOUR),
        ({Assumption.END: (ORIGIN + 3 * HOUR, ORIGIN + 9 * HOUR)}, HOUR),
        ({Assumption.SIZE: WHOLE, Assumption.GPUS: WHOLE}, 0),
        ({Assumption.END: WHOLE, Assumption.NO_OUTPUT: WHOLE}, LIFE),
    ],
)
def test_what_rests_on_a_rule(assumed: dict[Assumption, Interval], estimated: int) -> None:
    """Only rules that bear on when it began or ended, each second once."""
    guessed = failed(assumed=assumed)
    found = guessed.phases(ORIGIN + LIFE)
    assert found is not None
    assert found.estimated_us == estimated
    assert ("begin or end is estimated" in phases_text(guessed, ORIGIN + LIFE)) is bool(estimated)


@pytest.mark.parametrize("rule", Assumption)
def test_whether_its_life_rests_on_a_rule(rule: Assumption) -> None:
    """Not if only its size, its validation, or its jobs do: its begin and its end are measured."""
    measured = {Assumption.SIZE, Assumption.GPUS, Assumption.VALIDATION, Assumption.JOBS}
    assert failed(assumed={rule: WHOLE}).times_estimated is (rule not in measured)


def counted(*rows: PilotRow) -> PilotSums:
    found = Failures()
    found.take(rows)
    return found.total


@pytest.mark.parametrize(("rule", "told"), [(Assumption.END, True), (Assumption.SIZE, False)])
def test_what_is_estimated_is_named(rule: Assumption, told: bool) -> None:
    """Begins and ends; an estimated size is in other tables, which the note says."""
    found = Failures()
    found.take([row(assumed={rule: WHOLE})])
    causes, places = found.tables(0)
    assert ("times estimated" in places.headers) is told
    assert "estimated" not in places.headers
    assert ("what rests on an estimated size is not in it" in causes.note) is told
    assert "times_estimated" in found.total_record()


def test_they_sum_to_what_is_settled() -> None:
    """Of a pilot whose last hour is not settled yet, and of one of which it is not known."""
    kind: Kind = ("cpu", "canonical")
    most = {("cpu", "canonical", Category.VALIDATION_FAILS, ""): UNITS * 3 * HOUR}
    part = row(closed=False, settled_until_us=ORIGIN + 3 * HOUR, settled=most)
    assumed = {Assumption.END: (ORIGIN + 2 * HOUR, ORIGIN + LIFE)}
    found = counted(row(), part, row(None), row(assumed=assumed))
    assert (found.pilots, found.timed) == (4, 3)
    assert found.validating[kind] == 3 * UNITS * 5 * MINUTE
    assert found.asleep[kind] == UNITS * ((4 + 3 + 4) * HOUR - 3 * 5 * MINUTE)
    assert found.not_known(kind) == UNITS * LIFE
    assert found.phases_estimated[kind] == UNITS * 2 * HOUR
    assert found.time[kind] == UNITS * (4 + 3 + 4 + 4) * HOUR
    assert counted(row(None)).phase(Counter()) is None
    assert counted().phase(Counter()) == Counter()
