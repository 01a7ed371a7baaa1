"""Logs of the factory with records that run into each other, and times that cannot be."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from gwmond.accounting.pilot_evidence import QueueState
from gwmond.sources.gwms import completed_jobs, condor_events
from tests.gwms import generate, simulated

US = 10**6


def test_an_event_whose_end_is_missing() -> None:
    """It and the next one count, as do those after a damaged one."""
    heads = [f"00{number} (7.001.000) 2022-02-28 10:0{number}:00Z x" for number in (0, 1, 5)]
    raw = f"{heads[0]}\n\tdetail\n{heads[1]}\n...\nnonse\n{heads[2]}\n...\n".encode()
    events = condor_events.parse("p", raw)
    assert [of.state for of in events.events] == [
        QueueState.SUBMITTED,
        QueueState.STARTED,
        QueueState.ENDED,
    ]
    assert events.wrong == {"garbage": 1}


def test_the_hour_that_comes_twice() -> None:
    """The order of lines tells which is meant; what is only a little out of order is not."""
    walls = ["01:50:00", "01:48:00", "01:10:00", "01:20:30", "02:20:30"]
    dates = [f"2025-11-02 {wall}" for wall in walls]
    for form in (dates, [of.removeprefix("2025-").replace("-", "/") for of in dates]):
        raw = "".join(f"001 (7.{n}.000) {of} x\n...\n" for n, of in enumerate(form)).encode()
        parsed = condor_events.parse("p", raw, about_s=1_762_200_000, zone=ZoneInfo("US/Eastern"))
        times = [datetime.fromtimestamp(of.at_us / US, UTC) for of in parsed.events]
        shown = [f"{of:%H:%M:%S}" for of in times]
        assert shown == ["05:50:00", "05:48:00", "06:10:00", "06:20:30", "07:20:30"]


def test_two_jobs_on_a_line() -> None:
    """Both count, also where the first was cut off."""
    good = generate.completed(next(simulated.pilots(3, 1))).strip()
    lines = completed_jobs.parse("p", f"{good}{good}\n{good[:-20]}{good}\n".encode())
    assert (len(lines.pilots), lines.wrong) == (3, {"truncated": 1})


@pytest.mark.parametrize(("seconds", "told"), [(5_184_000, 5_184_000), (5_184_001, None)])
def test_a_life_that_no_pilot_has(seconds: int, told: int | None) -> None:
    """The difference to a time that was not set is no duration."""
    text = '<job id="1.0" duration="{0}" condor_duration="{0}"></job>\n'
    lines = completed_jobs.parse("p", text.format(seconds).encode())
    assert [(of.duration_s, of.condor_s) for of in lines.pilots] == [(told, told)]
    assert lines.wrong == ({} if told else {"no_duration": 1})
