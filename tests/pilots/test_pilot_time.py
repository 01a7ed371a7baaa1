"""The rules of pilot time on pilots of an hour, where the result can be told by heart."""

from __future__ import annotations

import pytest

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Category, PilotLife, Run, SizeStep, Validation
from gwmond.pilots.life.partition import own_category, partition
from gwmond.pilots.life.segments import cut
from tests.build.pilots import CUT, EIGHT, HOUR, T0, S, hours, job, of_job, pilot
from tests.build.site_sums import by_category, residual

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


@pytest.mark.parametrize(
    ("sizes", "idle"),
    [
        ([], 8),
        ([Size(3, 2000), Size(3, 2000)], 2),  # limited by cores
        ([Size(1, 5000), Size(1, 6000)], 2),  # limited by memory
        ([Size(3.5, 0), Size(3.4, 0)], 1),
        ([Size(5, 0), Size(5, 0)], 0),
        ([Size(0, 10_000), Size(0, 10_000)], 0),
    ],
)
def test_what_is_idle_beside_jobs(sizes: list[Size], idle: int) -> None:
    found = partition(
        pilot(*(job(str(i), size=resources) for i, resources in enumerate(sizes)), ran_jobs=True)
    )
    for measure in ("resource", "canonical"):
        assert hours(found, measure=measure).get("pilot_overhead", 0) == idle


def test_runs_without_any_resources_share_equally() -> None:
    """Only what is no whole canonical unit is left for them: one core of nine."""
    nothing = Size(0, 0)
    found = partition(pilot(job("a", size=nothing), job("b", size=nothing), size=Size(9, 16000)))
    assert hours(found) == {"pilot_overhead": 8, "goodput": 1}
    assert (of_job(found, "a"), of_job(found, "b")) == (0.5, 0.5)
    assert hours(found, measure="canonical") == {"pilot_overhead": 8}


@pytest.mark.parametrize(
    ("held", "shares", "overhead"),
    [
        ([0, 0], [0, 0], 2),
        ([1, 0], [1, 0], 1),
        ([0.5, 0.5], [0.5, 0.5], 1),
        ([1, 1], [1, 1], 0),
        ([3, 1], [1.5, 0.5], 0),  # oversubscribed: never more than there are
    ],
)
def test_gpus_go_to_those_who_hold_them(
    held: list[float], shares: list[float], overhead: float
) -> None:
    jobs = [job(str(i), size=Size(1, 2000, number)) for i, number in enumerate(held)]
    found = partition(pilot(*jobs, size=GPUS))
    for measure in ("resource", "canonical"):
        assert [of_job(found, str(i), "gpu", measure) for i in range(2)] == shares
        assert hours(found, "gpu", measure).get("pilot_overhead", 0) == overhead


def test_a_pilot_without_gpus_has_no_gpu_time() -> None:
    found = partition(pilot(job("a", size=Size(1, 2000, 4))))
    assert hours(found, "gpu") == {}
    assert ("gpu", "resource") not in found.total


def test_the_canonical_unit_can_be_configured() -> None:
    found = partition(pilot(job("a", size=Size(4, 8000))), memory_per_unit_mib=4000)
    assert hours(found, measure="canonical") == {"goodput": 2, "pilot_overhead": 2}
    assert hours(found) == {"goodput": 6, "pilot_overhead": 2}


def test_fractions_of_cores_add_up_exactly() -> None:
    """0.1 + 0.2 of 0.3 cores is all of them, whatever floats say."""
    small = pilot(
        job("a", size=Size(0.1, 1000)),
        job("b", size=Size(0.2, 1000)),
        size=Size(1.3, 4000),
    )
    assert hours(partition(small)) == {"pilot_overhead": 1, "goodput": 0.3}


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
