"""One pilot's figures from its rows, on examples computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Assumption, Category, Outcome, RunKey, SizeStep, Validation
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.runs.outcomes import SUMMARISED
from gwmond.reports.factory_tools.figures import COLUMNS
from gwmond.reports.stored.pilot_sums import PilotSums, core_time
from gwmond.reports.stored.stored_pilot import StoredPilot
from gwmond.reports.stored.wall_clock import WallClock, wall_clock
from tests.build.ended import LATE, LIFE, ORIGIN, pilot
from tests.ledger.pilot_batches import FAILED, GOOD, HOUR, pilot_at


def run(
    start: float, end: float | None, cores: float = 1, code: int | None = 0, number: int = 1
) -> RunRow:
    """A run from an hour of the pilot's life to another; without a code nobody has told its end."""
    some = pilot_at(1, LATE)
    assert some is not None
    row = some.runs[1]
    facts = tuple(
        fact._replace(ending=fact.ending._replace(exit_code=code if fact.ending.over else None))
        for fact in row.facts
    )
    return row._replace(
        key=RunKey(f"job{number}", 1),
        start_us=ORIGIN + round(start * HOUR),
        end_us=None if end is None else ORIGIN + round(end * HOUR),
        size=Size(cores, 2000 * cores),
        outcome=None if code is None else GOOD if code == 0 else FAILED,
        facts=facts,
    )


def clock(row: PilotRow, runs: Sequence[RunRow]) -> WallClock:
    return wall_clock(StoredPilot(row, runs))


def test_cores_that_jobs_hold() -> None:
    """Two of four cores for two hours, a third for one: an hour and a quarter of the pilot's."""
    found = clock(pilot(), [run(1, 3, cores=2), run(2, 3, code=1, number=2)])
    assert (found.life_us, found.used_us, found.good_us) == (LIFE, HOUR * 5 // 4, HOUR)
    assert (found.jobs.number, found.lengths_us) == (2, (2 * HOUR, HOUR))


def test_memory_does_not_use_cores() -> None:
    """A job on one core that takes all memory uses a quarter of the pilot's time."""
    big = run(0, 4)._replace(size=Size(1, 8000))
    assert clock(pilot(), [big]).used_us == LIFE // 4


def test_never_more_than_the_pilot_has() -> None:
    """Where jobs hold more cores than there are they share them; times outside do not count."""
    jobs = [run(-1, 2, cores=4), run(1, 5, cores=4, code=1, number=2)]
    found = clock(pilot(), jobs)
    assert (found.used_us, found.good_us) == (LIFE, HOUR + HOUR // 2)
    assert found.lengths_us == (3 * HOUR, 4 * HOUR)


def test_a_size_that_changes() -> None:
    """Of two hours on one core one is a quarter of the pilot's, one half of it."""
    steps = (SizeStep(ORIGIN, Size(4, 8000)), SizeStep(ORIGIN + HOUR, Size(2, 4000)))
    found = clock(pilot(steps=steps), [run(0, 2)])
    assert found.used_us == HOUR // 4 + HOUR // 2


def test_a_run_whose_end_nobody_told() -> None:
    """It lasts as long as the pilot, and has not exited 0."""
    found = clock(pilot(closed=False), [run(2, None, cores=4, code=None)])
    assert (found.used_us, found.good_us, found.lengths_us) == (2 * HOUR, 0, (2 * HOUR,))
    assert not found.settled


@pytest.mark.parametrize(
    ("validation", "until_h", "started", "validation_h"),
    [
        (Validation.PASSED, 0.5, True, 0.5),
        (Validation.PASSED, 9, True, 4),  # a clock that goes wrong
        (Validation.PASSED, -1, True, 0),
        (Validation.PASSED, None, True, None),
        (Validation.FAILED, 0.1, False, 4),  # with the deliberate sleep after it
        (Validation.FAILED, None, False, 4),
        (Validation.STARTED, 0.5, True, 0.5),  # nothing would show jobs that ran
        (Validation.UNKNOWN, None, None, None),
        (Validation.UNKNOWN, 0.5, True, 0.5),  # killed hard: its output is cut off
    ],
)
def test_validation(
    validation: Validation, until_h: float | None, started: bool | None, validation_h: float | None
) -> None:
    """Up to its end; all, if HTCondor never started; None, if nothing tells."""
    end = None if until_h is None else ORIGIN + round(until_h * HOUR)
    found = clock(pilot(validation=validation, validation_end_us=end), [])
    assert found.jobs.started is started
    expected = None if validation_h is None else round(validation_h * HOUR)
    assert found.validation_us == expected
    told = validation in {Validation.PASSED, Validation.FAILED}
    assert (found.jobs.number, found.jobs.ran) == ((0, False) if told else (None, None))


def test_a_job_proves_that_condor_started() -> None:
    """Whatever the pilot's output says, or does not say."""
    for validation in Validation:
        assert clock(pilot(validation=validation), [run(1, 2)]).jobs.started is True


def test_runs_that_are_not_kept() -> None:
    """Of the pilot's totals, in proportion to its life; the number of runs is known."""
    hours = {("goodput", "exit_zero"): 8, ("goodput", "exit_nonzero"): 2, ("pilot_overhead", ""): 6}
    settled = {
        ("cpu", "resource", Category(category), outcome): amount * HOUR
        for (category, outcome), amount in hours.items()
    }
    found = clock(pilot(settled=settled, runs_pruned=5), [])
    assert (found.used_us, found.good_us) == (LIFE * 10 // 16, LIFE * 8 // 16)
    assert (found.jobs.number, found.jobs.started) == (5, True)
    assert (found.lengths_us, found.pruned) == ((), True)
    nothing = clock(pilot(runs_pruned=1), [])
    assert (nothing.used_us, nothing.jobs.number) == (0, 1)


def test_a_size_that_is_assumed() -> None:
    """It is said."""
    rule = {Assumption.SIZE: (ORIGIN, ORIGIN + LIFE)}
    assert clock(pilot(assumed=rule), []).size_assumed
    assert not clock(pilot(), []).size_assumed


def test_without_cores_a_job_uses_all() -> None:
    """No division by nothing."""
    found = clock(pilot(steps=()), [run(1, 3)])
    assert found.used_us == 2 * HOUR


def test_one_that_runs_has_no_figures() -> None:
    with pytest.raises(ValueError, match="has not ended"):
        clock(pilot(end_us=None), [])


def stand_in(start: float, end: float, category: Category) -> RunRow:
    """What stands for jobs of which only statistics tell: the whole pilot of four cores."""
    outcome = Outcome(category, SUMMARISED, "estimated")
    made = run(start, end, cores=4)
    key = RunKey(f"statistics#p1#{category.value}", 1)
    return made._replace(key=key, outcome=outcome)


def test_what_stands_for_jobs_is_no_job() -> None:
    """Three hours of four were busy, of these two good; the number of jobs is not known."""
    whole = {Assumption.JOBS: (ORIGIN, ORIGIN + LIFE)}
    stands = [stand_in(0.5, 2.5, Category.GOODPUT), stand_in(2.5, 3.5, Category.UNCLASSIFIED)]
    found = clock(pilot(assumed=whole), stands)
    assert (found.used_us, found.good_us) == (3 * HOUR, 2 * HOUR)
    assert (found.jobs.number, found.lengths_us) == (None, ())
    assert (found.jobs.ran, found.jobs.started, found.jobs.by_statistics) == (True, True, True)


def test_what_stands_for_jobs_may_be_pruned() -> None:
    """Retention takes it out as it does runs: they are no runs either, and not all badput."""
    posted = {
        ("cpu", "resource", Category.GOODPUT, SUMMARISED): 8 * HOUR,
        ("cpu", "resource", Category.UNCLASSIFIED, SUMMARISED): 4 * HOUR,
        ("cpu", "resource", Category.PILOT_OVERHEAD, ""): 4 * HOUR,
    }
    whole = {Assumption.JOBS: (ORIGIN, ORIGIN + LIFE)}
    row = pilot(assumed=whole, settled=posted, runs_pruned=2, ran_jobs=True)
    found = clock(row, [])
    assert (found.used_us, found.good_us) == (3 * HOUR, 2 * HOUR)
    assert (found.jobs.number, found.jobs.by_statistics) == (None, True)
    sums = PilotSums()
    sums.add(StoredPilot(row))
    assert (sums.jobs, sums.numbered, sums.by_statistics) == (0, 0, 1)
    assert sums.core[:3] == (16 * HOUR, 12 * HOUR, 8 * HOUR)
    assert core_time(sums.settled_by_statistics)[1:3] == (12 * HOUR, 8 * HOUR)
    assert [column.cell(sums) for column in COLUMNS[1:3]] == ["n/k", "n/k"]


def test_one_that_ran_jobs_of_which_none_is_kept() -> None:
    """That it ran some is known, how many is not."""
    found = clock(pilot(ran_jobs=True), [])
    assert (found.jobs.number, found.jobs.ran, found.jobs.by_statistics) == (None, True, False)
