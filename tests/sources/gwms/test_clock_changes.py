"""A host's clock is set to summer time, or back, while a pilot lives."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gwmond.sources.gwms import pilot_output
from gwmond.sources.gwms.texts import Zone
from tests.build.gwms import generate, simulated
from tests.build.gwms.simulated import Job, Pilot

US, HOUR = 10**6, 3600
EST, EDT = -5 * HOUR, -4 * HOUR
CHANGES = [
    ("America/New_York", datetime(2025, 11, 2, 6, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2025, 10, 26, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Australia/Sydney", datetime(2026, 4, 4, 16, tzinfo=UTC)),
    ("Australia/Sydney", datetime(2025, 10, 4, 16, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2025, 10, 4, 15, 30, tzinfo=UTC)),
]
"""To winter and to summer, on both halves of the Earth, by an hour and by half of one."""
AUTUMN = int(CHANGES[0][1].timestamp())
ANY = next(pilot for pilot in simulated.pilots(3, 300) if pilot.kind == "no_history")


def pilot(zone: str, start: int, hours: float, *runs: tuple[float, float]) -> Pilot:
    """One whose starter logs alone tell of its runs, given in hours from its start."""
    moments = [(start + round(first * HOUR), start + round(last * HOUR)) for first, last in runs]
    end = start + round(hours * HOUR)
    return ANY._replace(
        zone=zone,
        start=start,
        last_script=start + 60,
        condor=(start + 62, end - 20),
        end=end,
        cores=1,
        tells_cores=True,
        tells_memory=True,
        jobs=tuple(Job(700 + n, 1, *of, 0, None) for n, of in enumerate(moments)),
    )


def told(truth: Pilot, err: bytes | None) -> list[tuple[int, int]]:
    """When runs began and ended, as the outputs tell."""
    fact = pilot_output.parse("p", generate.out(truth), err)
    return sorted((run.start_us // US, (run.end_us or 0) // US) for run in fact.runs)


@pytest.mark.parametrize(("zone", "moment"), CHANGES)
def test_runs_of_a_pilot(zone: str, moment: datetime) -> None:
    """Those before the clock was set, and those nearer to the pilot's end than to its begin.

    What is known are the offsets at both.
    """
    start = int(moment.timestamp()) - 2 * HOUR
    truth = pilot(zone, start, 48, (0.25, 0.5), (25.5, 26), (27, 47))
    runs = sorted((job.start, job.end) for job in truth.jobs)
    assert told(truth, generate.err(truth)) == runs
    assert told(truth, None) == runs


def test_lines_are_in_order() -> None:
    """Of two times that a line may have, one that is not before the line before it."""
    zone = Zone(((AUTUMN - HOUR, EDT), (AUTUMN + HOUR, EST)))
    wall = AUTUMN + EDT - 3000  # fifty minutes before the clock was set back, and ten after that
    assert zone.epoch(wall) == AUTUMN - 3000
    assert zone.epoch(wall, AUTUMN) == AUTUMN + 600
