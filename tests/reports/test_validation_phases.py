"""How long a pilot validated, and slept after that had failed."""

from __future__ import annotations

from collections import Counter

import pytest

from gwmond.model.pilot_facts import Assumption, Category, Interval, Validation
from gwmond.model.stored_pilots import PilotRow
from gwmond.reports.categories import Kind
from gwmond.reports.failures import Failed, Failures
from gwmond.reports.validation_phases import phases_json, phases_of, phases_text
from tests.build.ended import LIFE, ORIGIN, pilot
from tests.ledger.pilot_batches import HOUR

MINUTE = HOUR // 60
UNITS = 4
WHOLE = ORIGIN, ORIGIN + LIFE


def failed(until: int | None = 5 * MINUTE, **changes: object) -> PilotRow:
    """A pilot of four cores and four hours whose validation failed after five minutes."""
    booked = {("cpu", "canonical", Category.VALIDATION_FAILS, ""): UNITS * LIFE}
    end_us = None if until is None else ORIGIN + until
    row = pilot(validation=Validation.FAILED, validation_end_us=end_us, settled=booked, closed=True)
    return row._replace(**changes)  # type: ignore[arg-type]


def test_it_validates_and_then_sleeps() -> None:
    """Both sum to its life."""
    found = phases_of(failed(), ORIGIN + LIFE)
    assert found is not None
    assert (found.validating_us, found.asleep_us) == (5 * MINUTE, LIFE - 5 * MINUTE)
    assert found.estimated_us == 0
    assert phases_json(found)["asleep_seconds"] == 4 * 3600 - 300


def test_one_that_still_sleeps() -> None:
    """Up to what is known now."""
    found = phases_of(failed(end_us=None), ORIGIN + HOUR)
    assert found is not None
    assert found.asleep == (ORIGIN + 5 * MINUTE, ORIGIN + HOUR)


def test_not_known_is_not_zero() -> None:
    """Of one of which nothing tells when its validation ended."""
    assert phases_of(failed(None), ORIGIN + LIFE) is None
    assert set(phases_json(None).values()) == {None}
    told = "how long it validated, and then slept, is not known"
    assert phases_text(failed(None), ORIGIN + LIFE) == told
    assert phases_text(pilot(validation=Validation.PASSED), ORIGIN + LIFE) == ""


def test_one_that_passed_does_not_sleep() -> None:
    row = failed(validation=Validation.PASSED)
    assert phases_text(row, ORIGIN + LIFE) == "validated for 5m00s"
    assert phases_json(phases_of(row, ORIGIN + LIFE))["asleep_seconds"] is None


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
    row = failed(assumed=assumed)
    found = phases_of(row, ORIGIN + LIFE)
    assert found is not None
    assert found.estimated_us == estimated
    assert ("begin or end is estimated" in phases_text(row, ORIGIN + LIFE)) is bool(estimated)


def counted(*rows: PilotRow) -> Failed:
    found = Failures()
    found.take(rows)
    return found.total


@pytest.mark.parametrize(("rule", "told"), [(Assumption.END, True), (Assumption.SIZE, False)])
def test_what_is_estimated_is_named(rule: Assumption, told: bool) -> None:
    """Begins and ends; an estimated size is in other tables, which the note says."""
    found = Failures()
    found.take([failed(assumed={rule: WHOLE})])
    causes, places = found.tables(0)
    assert ("times estimated" in places.headers) is told
    assert "estimated" not in places.headers
    assert ("what rests on an estimated size is not in it" in causes.note) is told
    assert "times_estimated" in found.total_record()


def test_they_sum_to_what_is_settled() -> None:
    """Of a pilot whose last hour is not settled yet, and of one of which it is not known."""
    kind: Kind = ("cpu", "canonical")
    most = {("cpu", "canonical", Category.VALIDATION_FAILS, ""): UNITS * 3 * HOUR}
    part = failed(closed=False, mark_us=ORIGIN + 3 * HOUR, settled=most)
    assumed = {Assumption.END: (ORIGIN + 2 * HOUR, ORIGIN + LIFE)}
    found = counted(failed(), part, failed(None), failed(assumed=assumed))
    assert (found.pilots, found.timed) == (4, 3)
    assert found.validating[kind] == 3 * UNITS * 5 * MINUTE
    assert found.asleep[kind] == UNITS * ((4 + 3 + 4) * HOUR - 3 * 5 * MINUTE)
    assert found.not_known(kind) == UNITS * LIFE
    assert found.estimated[kind] == UNITS * 2 * HOUR
    assert found.sums[kind] == UNITS * (4 + 3 + 4 + 4) * HOUR
    assert counted(failed(None)).known(Counter()) is None
    assert counted().known(Counter()) == Counter()
