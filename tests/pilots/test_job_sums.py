"""The unit of the times of jobs in a line of completed_jobs, and in a pilot's own statistics."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.pilots.file_facts import CompletedPilot, Jobs, JobStatistics, PilotName
from gwmond.pilots.factory.job_sums import Sums, of_line, of_statistics, tells_jobs

CONDOR = 8000


class Ran(NamedTuple):
    """What a pilot's jobs did: the seconds of those that ended with 0, by themselves, and all."""

    zero: int
    ended: int
    every: int


def line(**record: int | None) -> CompletedPilot:
    """A pilot of 8300 s; its HTCondor ran for 8000 s."""
    made = CompletedPilot(
        "", PilotName(), 0, 8300, True, CONDOR, 1, None, None, None, 12, None, 0, 0
    )
    return made._replace(**record)  # type: ignore[arg-type]


def written(ran: Ran, cores: int, *, mixed: bool) -> CompletedPilot:
    """As a factory writes it since v3.10.12 (``mixed``), or before; FM:1069-1158."""
    total = ran.every if mixed else ran.every // cores
    good = min(ran.zero // cores, total)
    ended = min(good + (ran.ended - ran.zero) // cores, total)
    idle = int(1000 * (CONDOR - total) / CONDOR)
    return line(jobs_s=total, goodput_s=good, terminated_s=ended, idle=idle)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((4000, 500, 500), Sums(500, 500)),  # one job of one core for half the time
        ((32_000, 4000, -3000), Sums(4000, 4000)),  # four
        ((4000, 4000, 500), Sums(4000, 4000)),  # the same four, by an older factory
        ((32_000, 0, -3000), Sums(4000, 0)),  # four that were killed
        ((64_000, 1000, -7000), Sums(8000, 1000)),  # eight, of which most were killed
        ((None, 500, 500), Sums(500, 500)),  # the idle part has the same sum
        ((None, 4000, -3000), Sums(4000, 4000)),
        ((None, 4000, 500), Sums(4000, 4000)),
        ((9600, 9500, -200), Sums(9600, 9500)),  # divided, with more slots than cores
        ((32_000, 32_000, -3000), Sums(4000, 4000)),  # nothing is divided
        ((32_000, 5000, -3000), Sums(5000, 5000)),  # it had fewer cores than is thought
        ((None, 500, None), Sums(None, 500)),
        ((None, None, None), Sums(None, 0)),
    ],
)
def test_a_line_of_a_pilot_with_eight_cores(
    numbers: tuple[int | None, int | None, int | None], expected: Sums
) -> None:
    """It shows by itself which of its numbers are real sums."""
    jobs_s, terminated_s, idle = numbers
    assert of_line(line(jobs_s=jobs_s, terminated_s=terminated_s, idle=idle), 8) == expected


def test_one_core() -> None:
    """Both units are the same; the idle part says how much, where it makes sense."""
    assert of_line(line(jobs_s=4000, terminated_s=3000, idle=500), 1) == (4000, 3000)
    assert of_line(line(jobs_s=7900, terminated_s=3000, idle=0), 1) == (CONDOR, 3000)
    assert of_line(line(jobs_s=7900, terminated_s=3000, idle=-1), 1) == (7900, 3000)
    assert of_line(line(jobs_s=50, terminated_s=0, idle=1000), 1) == (0, 0)


@given(st.integers(2, 64), st.data())
def test_both_ways_to_write_the_same_pilot(cores: int, data: st.DataObject) -> None:
    """They give the same time, within what is cut, if most of it is of jobs that ended."""
    every = data.draw(st.integers(0, cores * CONDOR))
    ended = data.draw(st.integers(every * 2 // 3, every))
    zero = data.draw(st.integers(0, ended))
    new, old = (
        of_line(written(Ran(zero, ended, every), cores, mixed=literal), cores)
        for literal in (True, False)
    )
    assert new.busy_s == pytest.approx(every / cores, abs=2)
    assert new.good_s == pytest.approx(ended / cores, abs=2)
    if ended > 3 * cores:  # not so short that it is lost in what is cut
        assert old.busy_s == pytest.approx(every / cores, abs=2 + CONDOR / 1000)
    assert old.good_s == new.good_s


@given(st.integers(2, 64), st.data())
def test_no_more_than_was(cores: int, data: st.DataObject) -> None:
    """However few jobs ended by themselves, in no line time of nobody becomes that of jobs."""
    every = data.draw(st.integers(0, cores * CONDOR))
    ended = data.draw(st.integers(0, every))
    zero = data.draw(st.integers(0, ended))
    for mixed in (False, True):
        found = of_line(written(Ran(zero, ended, every), cores, mixed=mixed), cores)
        assert found.busy_s is not None
        assert found.good_s <= found.busy_s <= every / cores + 1 + CONDOR / 1000


@pytest.mark.parametrize(
    ("factor", "total", "cores", "expected"),
    [
        (None, 32_000, 8, (4000, 3000)),
        (1, 32_000, 8, (4000, 3000)),
        (8, 32_000, 8, (32_000, 24_000)),  # it says that it is divided: it is cut to HTCondor's
        (None, 12_000, 8, (12_000, 9000)),
        (None, 12_001, 8, (1500, 1125)),
        (None, 32_000, 1, (32_000, 24_000)),
    ],
)
def test_statistics(factor: int | None, total: int, cores: float, expected: Sums) -> None:
    """More than HTCondor's time cannot be a divided number, unless that is said."""
    jobs = JobStatistics(Jobs(4, total), Jobs(2, total // 2), Jobs(1, total // 4), factor=factor)
    assert of_statistics(jobs, CONDOR, cores) == expected


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"jobs": None}, None),
        ({"jobs": None, "idle": 1000}, None),
        ({"jobs": None, "idle": 166}, True),
        ({"jobs": None, "terminated_s": 4000}, True),
        ({"jobs": None, "goodput_s": 0, "terminated_s": 0}, None),
        ({"jobs": None, "jobs_s": 0}, False),
        ({"jobs": 0}, False),
        ({"jobs": 0, "jobs_s": 50}, True),
        ({"jobs": 2}, True),
    ],
)
def test_whether_jobs_ran(numbers: dict[str, int | None], expected: bool | None) -> None:
    """A number that cannot be read is no zero."""
    assert tells_jobs(line(**numbers)) is expected
