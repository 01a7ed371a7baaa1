"""Times as people type them."""

from __future__ import annotations

import doctest

import pytest

from gwmond.model.times import HOUR_US, SECOND_US, Period
from gwmond.reports.render import formats, markdown, periods, terminal
from gwmond.reports.render.periods import both, parse_period, parse_time, rfc3339, short, span
from gwmond.reports.report import report_plots

NOW = 1_700_000_000 * SECOND_US  # 2023-11-14T22:13:20Z


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("now", 1_700_000_000),
        ("today", 1_699_920_000),
        ("Yesterday", 1_699_833_600),
        ("2h", 1_699_992_800),
        ("1h30m", 1_699_994_600),
        ("7d", 1_699_395_200),
        ("2023-11-14", 1_699_920_000),
        ("2023-11-14T01:00", 1_699_923_600),
        ("2023-11-14T01:00:00Z", 1_699_923_600),
        ("2023-11-14T01:00:00+01:00", 1_699_920_000),
        ("2023-11-14 01:00:00.25", 1_699_923_600.25),
        ("1699920000", 1_699_920_000),
        ("1699920000.5", 1_699_920_000.5),
        ("1699920000500", 1_699_920_000.5),
        ("now-2h", 1_699_992_800),
    ],
)
def test_forms(text: str, seconds: float) -> None:
    assert parse_time(text, NOW) == seconds * SECOND_US


@pytest.mark.parametrize(
    "text", ["", "2", "soon", "2023-13-01", "2023-11-14T25:00", "-2h", "100y", "9999-01-01", "2 h"]
)
def test_what_is_no_time_says_what_is(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time: a time is RFC 3339"):
        parse_time(text, NOW)


def test_periods() -> None:
    assert parse_period(None, None, NOW) == (NOW - 24 * HOUR_US, NOW)
    assert parse_period(None, "1h", NOW) == (NOW - 25 * HOUR_US, NOW - HOUR_US)
    assert parse_period("3h", None, NOW) == (NOW - 3 * HOUR_US, NOW)
    for first, last in (("now", "1h"), ("1h", "1h")):
        with pytest.raises(ValueError, match="the period is empty"):
            parse_period(first, last, NOW)


def test_whole_hours() -> None:
    """A period has each hour of which it has a part, and no other."""
    assert Period(0, HOUR_US).hours == (0, 0)
    assert Period(1, HOUR_US + 1).hours == (0, 1)
    assert Period(1, HOUR_US + 1).whole_hours == (0, 2 * HOUR_US)
    assert Period(HOUR_US, 2 * HOUR_US).whole_hours == (HOUR_US, 2 * HOUR_US)


def test_times_as_they_are_written() -> None:
    assert rfc3339(NOW) == "2023-11-14T22:13:20Z"
    assert rfc3339(NOW + 1) == "2023-11-14T22:13:20.000001Z"
    assert parse_time(rfc3339(NOW + 1), 0) == NOW + 1
    assert both("end", NOW) == {"end": rfc3339(NOW), "end_epoch_seconds": 1_700_000_000.0}
    assert both("end", None) == {"end": None, "end_epoch_seconds": None}
    assert (short(NOW), short(None, "?")) == ("2023-11-14 22:13:20", "?")
    assert span(61 * SECOND_US) == "1m01s"


@pytest.mark.parametrize("module", [periods, report_plots, formats, markdown, terminal])
def test_examples(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted
    assert not result.failed
