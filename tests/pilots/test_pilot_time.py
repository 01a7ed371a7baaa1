"""The rules of pilot time on pilots of an hour, where the result can be told by heart."""

from __future__ import annotations

import pytest

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Category, Outcome, PilotLife, Run, SizeStep, Validation
from gwmond.pilots.life.partition import CorrectionCause, advance, own_category, partition
from gwmond.pilots.life.segments import cut
from tests.build.pilots import (
    BROKEN,
    CUT,
    EIGHT,
    GOOD,
    HELD,
    HOUR,
    T0,
    S,
    hours,
    job,
    of_job,
    pilot,
    us,
)
from tests.build.site_sums import added, by_category, fold, residual

GPUS = Size(8, 16000, 2)


# --- The worked examples of the 2022 report ---------------------------------------------------


@pytest.mark.parametrize(
    ("unused", "overhead"),
    [
        (Size(3, 3000), 1),  # "would count as 1 CPU core hour (memory limited)"
        (Size(3, 1000), 0),  # "would count as 0 CPU core hours (memory limited)"
        (Size(2, 6000), 2),  # "would count as 2 CPU core hours (CPU core limited)"
    ],
)
def test_overhead_is_in_multiples_of_canonical_units(unused: Size, overhead: int) -> None:
    """An hour in which these are unused beside a running job."""
    rest = Size(8 - unused.cores, 16000 - unused.memory_mib)
    found = partition(pilot(job("a", size=rest)))
    for measure in ("resource", "canonical"):
        assert hours(found, measure=measure).get("pilot_overhead", 0) == overhead
        assert hours(found, measure=measure)["goodput"] == 8 - overhead


def test_the_remainder_of_the_first_example_goes_to_the_job() -> None:
    """3 cores and 3 GB unused: "we have a remainder of 2 CPU core hours"."""
    found = partition(pilot(job("a", size=Size(5, 13000))))
    assert hours(found) == {"pilot_overhead": 1, "goodput": 5 + 2}


def test_a_remainder_is_shared_by_the_jobs_that_ran() -> None:
    """A remainder of 2 cores, one job that completed, one that was preempted: 1 hour to each."""
    half = Size(1, 4000)
    found = partition(
        pilot(job("a", size=half), job("b", size=half, outcome=CUT), size=Size(4, 8000))
    )
    own_cores = 1
    assert hours(found) == {"goodput": own_cores + 1, "preemption_badput": own_cores + 1}


def test_without_jobs_all_time_is_overhead_multiple_or_not() -> None:
    """After its job the pilot has 3 cores and 3 GB idle: 3 core hours, not 1."""
    found = partition(pilot(job("a", 0, 0.5), size=Size(3, 3000), end=HOUR + 0.5))
    assert hours(found)["pilot_overhead"] == 3
    assert hours(found, measure="canonical")["pilot_overhead"] == 1


@pytest.mark.parametrize("cores", [1, 2])
def test_a_pilot_below_one_unit_is_one(cores: int) -> None:
    """An hour of 1900 MiB: one canonical hour, its job's while that ran, else the pilot's own."""
    size = Size(cores, 1900)
    found = partition(pilot(job("a", 0, HOUR / 4, size=Size(1, 1000)), size=size))
    assert hours(found, measure="canonical") == {"goodput": 0.25, "pilot_overhead": 0.75}
    assert hours(found) == {"goodput": 0.25 * cores, "pilot_overhead": 0.75 * cores}
    assert residual(found) == {}
    alone = partition(pilot(size=size))
    assert hours(alone, measure="canonical") == {"decision_problem": 1}


def test_what_an_earlier_release_has_stored_stays_as_it_was_posted() -> None:
    """It took such a pilot for nothing; a new size is posted by the rule of today."""
    old = SizeStep(T0, Size(1, 1900), least=0)
    life = pilot(size=Size(1, 1900))._replace(steps=(old,))
    assert hours(partition(life), measure="canonical") == {}
    grown = life._replace(steps=(old, SizeStep(T0 + HOUR * S // 2, Size(1, 1950))))
    assert hours(partition(grown), measure="canonical") == {"decision_problem": 0.5}
    assert residual(partition(grown)) == {}


def test_gpus_have_no_remainder() -> None:
    """One of two chips is used: one hour to the job, one is overhead, whatever cores are left."""
    one = Size(1, 15000, 1)
    found = partition(pilot(job("a", size=one), size=GPUS))
    for measure in ("resource", "canonical"):
        assert hours(found, "gpu", measure) == {"goodput": 1, "pilot_overhead": 1}
    assert hours(found) == {"goodput": 8}


# --- Dividing a segment ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "shares"),
    [
        ([Size(1, 4000), Size(3, 12000)], [2, 6]),  # by cores, memory is all used
        ([Size(0.5, 8000), Size(1.5, 8000)], [2, 6]),  # fractional cores
        ([Size(0, 8000), Size(2, 8000)], [0, 8]),  # no cores, no share
        ([Size(0, 4000), Size(0, 12000)], [2, 6]),  # nobody has cores: by memory
        ([Size(8, 8000), Size(24, 8000)], [2, 6]),  # oversubscribed cores
        ([Size(2, 90000), Size(6, 0)], [2, 6]),  # oversubscribed memory
    ],
)
def test_the_remainder_is_shared_by_cores(sizes: list[Size], shares: list[float]) -> None:
    found = partition(pilot(*(job(str(i), size=size) for i, size in enumerate(sizes))))
    assert [of_job(found, str(i)) for i in range(len(sizes))] == shares
    assert [of_job(found, str(i), measure="canonical") for i in range(len(sizes))] == shares


def test_runs_without_any_resources_share_equally() -> None:
    """Only what is no whole canonical unit is left for them: one core of nine."""
    nothing = Size(0, 0)
    found = partition(pilot(job("a", size=nothing), job("b", size=nothing), size=Size(9, 16000)))
    assert hours(found) == {"pilot_overhead": 8, "goodput": 1}
    assert (of_job(found, "a"), of_job(found, "b")) == (0.5, 0.5)
    assert hours(found, measure="canonical") == {"pilot_overhead": 8}


def test_a_pilot_without_gpus_has_no_gpu_time() -> None:
    found = partition(pilot(job("a", size=Size(1, 2000, 4))))
    assert hours(found, "gpu") == {}
    assert ("gpu", "resource") not in found.total


def test_the_canonical_unit_can_be_configured() -> None:
    found = partition(pilot(job("a", size=Size(4, 8000))), memory_per_unit_mib=4000)
    assert hours(found, measure="canonical") == {"goodput": 2, "pilot_overhead": 2}
    assert hours(found) == {"goodput": 6, "pilot_overhead": 2}


# --- Cutting a life ----------------------------------------------------------------------------


def test_a_pilot_of_changing_size() -> None:
    """Eight cores for a quarter of an hour, then four, then none; the job holds four."""
    life = pilot(
        job("a", size=Size(4, 8000)),
        steps=[(0, EIGHT), (900, Size(4, 8000)), (1800, Size(0, 0))],
    )
    assert hours(partition(life)) == {"pilot_overhead": 1, "goodput": 1 + 1}
    assert partition(life).total["cpu", "resource"] == 3 * HOUR * S


def test_the_first_size_also_holds_before_it() -> None:
    found = partition(pilot(job("a"), steps=[(1800, EIGHT)]))
    assert hours(found) == {"goodput": 1, "pilot_overhead": 7}
    assert residual(found) == {}


def test_a_pilot_of_unknown_size_has_nothing() -> None:
    life = pilot(job("a"))._replace(steps=())
    assert not any(partition(life))


@pytest.mark.parametrize(
    ("run", "goodput"),
    [
        (job("a", -600, 1800), 0.5),  # began before the pilot, says its clock
        (job("a", 1800, 9999), 0.5),  # ended after it
        (job("a", -600, 9999), 1),
        (job("a", -600, -300), 0),  # all outside: it still is a job that ran
        (job("a", 5000, 6000), 0),
        (job("a", 1800, 1800), 0),  # no length
        (job("a", 1800, 900), 0),  # ends before it begins
        (job("a", 0, None), 1),  # no end is told: it lasts as long as the pilot
    ],
)
def test_runs_are_clipped_to_the_pilots_life(run: Run, goodput: float) -> None:
    life = pilot(run, size=Size(1, 2000))
    found = partition(life)
    assert hours(found).get("goodput", 0) == goodput
    assert hours(found).get("pilot_overhead", 0) == 1 - goodput
    assert residual(found) == {}


def test_running_runs_are_in_the_order_of_their_keys() -> None:
    """Not of their starts: so what a neighbour does never shifts a share."""
    life = pilot(job("c", 0), job("a", 1200), job("b", 600, 1800), job("b", 1800, run=2))
    running = ["".join(run.key.job for run in resources.running) for resources in cut(life)]
    assert running == ["c", "bc", "abc", "abc"]


@pytest.mark.parametrize("end", [0, -100])
def test_a_pilot_without_a_life(end: float) -> None:
    assert not any(partition(pilot(job("a"), end=end)))


def test_time_is_posted_in_the_hours_in_which_it_was_spent() -> None:
    """From 00:30 to 02:15, the job from 00:45 to 01:15."""
    life = pilot(job("a", 2700, 4500), size=Size(1, 2000), start=1800, end=2 * HOUR + 900)
    by_hour: dict[tuple[int, str], float] = {}
    for row, micros in partition(life).settled.items():
        if (row.resource, row.measure) == ("cpu", "resource"):
            by_hour[row.hour - T0 // (HOUR * S), row.category.value] = micros / (HOUR * S)
    assert by_hour == {
        (0, "pilot_overhead"): 0.25,
        (0, "goodput"): 0.25,
        (1, "goodput"): 0.25,
        (1, "pilot_overhead"): 0.75,
        (2, "pilot_overhead"): 0.25,
    }


# --- Whose the pilot's own time is --------------------------------------------------------------


@pytest.mark.parametrize(
    ("life", "category"),
    [
        (pilot(job("a", outcome=None), end=None), Category.PILOT_OVERHEAD),
        (pilot(ran_jobs=True, end=None), Category.PILOT_OVERHEAD),
        (pilot(job("a"), validation=Validation.FAILED), Category.PILOT_OVERHEAD),
        (pilot(validation=Validation.FAILED), Category.VALIDATION_FAILS),
        (pilot(validation=Validation.FAILED, end=None), Category.VALIDATION_FAILS),
        (pilot(), Category.DECISION_PROBLEM),
        (pilot(known_until=HOUR), Category.DECISION_PROBLEM),
        (pilot(known_until=HOUR - 1), None),
        (pilot(end=None), None),
        (pilot(validation=Validation.UNKNOWN), Category.UNCLASSIFIED),
        (pilot(validation=Validation.UNKNOWN, end=None), None),
    ],
)
def test_the_pilots_own_category(life: PilotLife, category: Category | None) -> None:
    assert own_category(life) is category
    found = partition(life)
    if category is None:
        assert found.settled == {}
        assert found.unsettled == found.total
    else:
        assert set(hours(found)) <= {category.value, "goodput"}


def test_a_failed_validation_is_all_of_the_pilot_its_sleep_included() -> None:
    found = partition(pilot(validation=Validation.FAILED, end=1199, size=GPUS))
    assert by_category(found.settled) == {
        ("cpu", "resource", Category.VALIDATION_FAILS): 8 * 1199 * S,
        ("cpu", "canonical", Category.VALIDATION_FAILS): 8 * 1199 * S,
        ("gpu", "resource", Category.VALIDATION_FAILS): 2 * 1199 * S,
        ("gpu", "canonical", Category.VALIDATION_FAILS): 2 * 1199 * S,
    }


def test_a_segment_is_settled_when_all_that_ran_in_it_has_an_outcome() -> None:
    """From 0:20 to 0:40 a job runs that has none; the other one's time waits with it."""
    life = pilot(job("a", 0, 2400), job("b", 1200, 3600, outcome=None), size=Size(2, 4000))
    found = partition(life)
    assert hours(found) == {"goodput": pytest.approx(1 / 3), "pilot_overhead": pytest.approx(1 / 3)}
    assert found.unsettled["cpu", "resource"] == 2 * 2400 * S
    assert residual(found) == {}


def test_time_of_which_not_all_runs_are_known_is_not_settled() -> None:
    found = partition(pilot(job("a", 0, 2400), known_until=1800, size=Size(1, 2000)))
    assert hours(found) == {"goodput": 0.5}
    assert found.unsettled["cpu", "canonical"] == 1800 * S


def test_estimates_are_told() -> None:
    """The pilot's own time after its last contact is estimated; a run says so itself."""
    guess = CUT._replace(evidence="estimated")
    life = pilot(job("a", 0, 1800), job("b", 2400, outcome=guess), estimated=[(2100, HOUR)])
    amounts = {
        (row.category.value, row.evidence): micros / S
        for row, micros in fold(partition(life).settled).items()
        if (row.resource, row.measure) == ("cpu", "resource")
    }
    assert amounts == {
        ("goodput", "measured"): 1800,
        ("pilot_overhead", "measured"): 7 * 1800 + 8 * 300,
        ("pilot_overhead", "estimated"): 8 * 300 + 7 * 1200,
        ("preemption_badput", "estimated"): 1200,
    }


def test_rows_tell_the_run_and_can_be_folded() -> None:
    found = partition(pilot(job("a"), job("b", outcome=HELD)))
    assert {row.run_key.job for row in found.settled if row.run_key} == {"a", "b"}
    assert {row.outcome for row in found.settled} == {"", "exit_zero", "held_by_user"}
    assert by_category(fold(found.settled)) == by_category(found.settled)
    assert all(row.run_key is None for row in fold(found.settled))


# --- From version to version --------------------------------------------------------------------


def test_a_better_fact_corrects_what_was_settled() -> None:
    """The category changes: taken from one row, given to another, nothing is added."""
    before = pilot(job("a", 0, 1800), job("b"))
    after = pilot(job("a", 0, 1800, outcome=BROKEN), job("b"))
    delta = advance(before, after)
    assert not added(delta.increments)
    changed = {
        (correction.row.category, correction.row.measure): (correction.micros, correction.cause)
        for correction in delta.corrections
    }
    assert changed == {
        (category, measure): (sign * 1800 * S, CorrectionCause.REVISED)
        for category, sign in ((Category.GOODPUT, -1), (Category.MISCONFIGURATION_BADPUT, 1))
        for measure in ("resource", "canonical")
    }


def test_a_run_that_turns_up_late_is_a_correction() -> None:
    """It ran in time that was settled as overhead, and that had been a decision problem."""
    delta = advance(pilot(), pilot(job("a", 0, 1800)))
    assert not added(delta.increments)
    changed = {
        correction.row.category: correction.micros / (HOUR * S)
        for correction in delta.corrections
        if correction.row.measure == "resource"
    }
    assert changed == {
        Category.DECISION_PROBLEM: -8,
        Category.PILOT_OVERHEAD: 7.5,
        Category.GOODPUT: 0.5,
    }


def test_a_pilot_that_comes_back_goes_on() -> None:
    """Its end was estimated; what was a decision problem is open again."""
    gone, back = pilot(end=1800), pilot(end=None, now=HOUR)
    delta = advance(gone, back)
    assert not added(delta.increments)
    assert {correction.cause for correction in delta.corrections} == {CorrectionCause.WITHDRAWN}
    assert {correction.row: -correction.micros for correction in delta.corrections} == partition(
        gone
    ).settled


def test_a_window_needs_only_the_runs_within_it() -> None:
    """The ledger need not load a pilot's whole life to add one run."""
    first, second = job("a", 0, 1200), job("b", 1800, 3000)
    before = pilot(first, second._replace(outcome=None))
    after = pilot(first, second)
    window = us(1800), us(3000)
    whole = advance(before, after)
    assert advance(before, after, window)[:2] == whole[:2]
    part = pilot(second._replace(outcome=None), ran_jobs=True), pilot(second, ran_jobs=True)
    assert advance(*part, window)[:2] == whole[:2]


def test_all_before_a_mark_is_settled() -> None:
    """Up to the first time that is open, or the end of what was looked at."""
    first, second = job("a", 0, 1200), job("b", 1800, 3000)
    waiting = pilot(first, second._replace(outcome=None))
    assert advance(None, waiting).settled_to_us == us(1800)
    assert advance(None, pilot(first, second)).settled_to_us == us(3600)
    assert advance(waiting, pilot(first, second), (us(600), us(3000))).settled_to_us == us(3000)


def test_a_correction_touches_only_what_it_is_about() -> None:
    """Shares do not shift by a micro when a neighbour's category changes."""
    third = Size(1, 5000)
    names = ["a", "b", "c"]
    before = pilot(*(job(name, 0, 1000.000001, third) for name in names))
    for changed in names:
        outcomes = {name: CUT if name == changed else GOOD for name in names}
        after = pilot(*(job(n, 0, 1000.000001, third, outcomes[n]) for n in names))
        runs = {correction.row.run_key for correction in advance(before, after).corrections}
        assert {key.job for key in runs if key} == {changed}
        assert None not in runs


def test_the_evidence_of_an_outcome_can_improve() -> None:
    guess = Outcome(Category.PREEMPTION_BADPUT, "lost_contact", "estimated")
    delta = advance(pilot(job("a", outcome=guess)), pilot(job("a", outcome=CUT)))
    assert {correction.row.evidence for correction in delta.corrections} == {
        "estimated",
        "measured",
    }
    assert sum(correction.micros for correction in delta.corrections) == 0
