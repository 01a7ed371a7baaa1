"""Logs of the factory with records that run into each other, and times that cannot be."""

from __future__ import annotations

import pytest

from gwmond.model.pilots.file_facts import QueueState
from gwmond.sources.gwms import completed_jobs, condor_events
from tests.build.gwms import generate, simulated


def test_an_event_whose_end_is_missing() -> None:
    """It and the next one count, as do those after a damaged one."""
    heads = [f"00{number} (7.001.000) 2022-02-28 10:0{number}:00Z x" for number in (0, 1, 5)]
    raw = f"{heads[0]}\n\tdetail\n{heads[1]}\n...\nnonse\n{heads[2]}\n...\n".encode()
    events = condor_events.parse("p", raw)
    assert [event.state for event in events.facts] == [
        QueueState.SUBMITTED,
        QueueState.STARTED,
        QueueState.ENDED,
    ]
    assert events.wrong == {"garbage": 1}


def test_two_jobs_on_a_line() -> None:
    """Both count, also where the first was cut off."""
    good = generate.completed(next(simulated.pilots(3, 1))).strip()
    lines = completed_jobs.parse("p", f"{good}{good}\n{good[:-20]}{good}\n".encode())
    assert (len(lines.facts), lines.wrong) == (3, {"truncated": 1})


@pytest.mark.parametrize(("seconds", "told"), [(5_184_000, 5_184_000), (5_184_001, None)])
def test_a_life_that_no_pilot_has(seconds: int, told: int | None) -> None:
    """The difference to a time that was not set is no duration."""
    text = '<job id="1.0" duration="{0}" condor_duration="{0}"></job>\n'
    lines = completed_jobs.parse("p", text.format(seconds).encode())
    assert [(pilot.duration_s, pilot.condor_s) for pilot in lines.facts] == [(told, told)]
    assert lines.wrong == ({} if told else {"no_duration": 1})
