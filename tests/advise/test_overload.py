"""Pilots whose slots have more cores than there are, beside others: the gain is known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gwmond.advise.judge import trial_lines
from gwmond.advise.tally import EntryTally
from gwmond.model.facts import EntryKey, Size
from gwmond.model.pilot_life import RunKey, SizeStep
from gwmond.model.pilots.pilot_facts import OutputFacts, PilotFacts
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.runs.run_facts import Used
from gwmond.reports.stored.stored_pilot import StoredPilot
from tests.build import traced
from tests.build.traced import us

KEY = EntryKey("Site-A", "entry-a")
CORES, MORE, RUN_S, LIFE_S = 4, 5, 1800, 6 * 3600


def drawn(seed: int, alone: float, *, more: bool, known: bool = True) -> Iterator[StoredPilot]:
    """Pilots of four cores, full of jobs that compute for a share of the time if they are alone.

    With more slots than cores each has its part of the cores.
    """
    draw = np.random.default_rng([seed, more])
    slots = MORE if more else CORES
    output = OutputFacts(us(0), us(0), cores=CORES, offered_cores=MORE if more else None)
    for _ in range(30):
        start = float(draw.uniform(0, 3600))
        runs: list[RunRow] = []
        for _slot in range(slots):
            at = start
            while (end := at + draw.exponential(RUN_S) + 60) < start + LIFE_S:
                cores = min(alone * float(draw.uniform(0.9, 1.1)), CORES / slots)
                used = Used(cores=cores) if known else None
                run = traced.run(len(runs) + 1, at, end, used=used)
                runs.append(run._replace(key=RunKey(f"ap#{len(runs)}.0#1", 1)))
                at = end
        row = traced.pilot(start, start + LIFE_S, facts=PilotFacts(output=output))
        steps = (SizeStep(row.start_us, Size(CORES, 8000)),)
        yield StoredPilot(row._replace(steps=steps), runs)


def tally(alone: float, **more: bool) -> EntryTally:
    found = EntryTally()
    for arm in (True, False):
        for pilot in drawn(1, alone, more=arm, **more):
            found.add(pilot)
    return found


@pytest.mark.parametrize(
    ("alone", "gain"), [(0.5, MORE / CORES - 1), (0.7, MORE / CORES - 1), (1.0, 0.026)]
)
def test_what_more_slots_than_cores_gain(alone: float, gain: float) -> None:
    """A quarter as long as the jobs leave cores idle; next to nothing where they do not."""
    (line,) = trial_lines(KEY, tally(alone), "overload")
    assert min(line.pilots) > 20
    assert line.gain == pytest.approx(gain, abs=0.05)
    assert line.interval is not None
    assert line.interval[0] - 0.01 <= gain <= line.interval[1] + 0.01


def test_where_it_is_not_known_what_jobs_used_nothing_is_told() -> None:
    """Absent is not zero."""
    assert trial_lines(KEY, tally(0.8, known=False), "overload") == []


def test_an_output_without_the_cores_is_of_no_arm() -> None:
    """Nor is a pilot without an output."""
    found = EntryTally()
    for pilot in drawn(1, 0.8, more=True):
        found.add(StoredPilot(pilot.row._replace(facts=PilotFacts()), pilot.runs))
    assert not [arm for arm in found.arms if arm.tried == "overload"]
