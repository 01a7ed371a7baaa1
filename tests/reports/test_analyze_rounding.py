"""The arithmetic of analyze_entries, on examples computed by hand."""

from __future__ import annotations

import doctest
from collections import Counter

import pytest

from gwmond.reports import analyze_rounding
from gwmond.reports.analyze_entries import COLUMNS, original
from gwmond.reports.analyze_rounding import (
    MILLS_OF,
    Archive,
    Finished,
    data_sets,
    divided,
    mill_range,
    mills,
)

PILOT = Finished(
    duration_s=10_000, started=True, validation_s=310, jobs=3, jobs_s=6000, good_zero_s=5000
)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *((0, "None"), (1.999, "None"), (2, "5m"), (14.99, "5m"), (15, "25m"), (59.99, "25m")),
        *((60, "100m"), (179.9, "100m"), (180, "250m"), (399.9, "250m"), (400, "500m")),
        *((699.9, "500m"), (700, "Most"), (998, "Most"), (998.01, "All"), (1000, "All")),
        (-250.0, "None"),  # idle is negative where the time of jobs was not divided
    ],
)
def test_ranges(value: float, name: str) -> None:
    """Each border, on both sides."""
    assert mill_range(value) == name
    assert name in MILLS_OF


def test_a_pilot_by_hand() -> None:
    """310 of 10,000 s are 31 mills; of the 9690 s of HTCondor 3690 are idle, 380.8 mills."""
    assert mills(PILOT) == {"validation": 31.0, "idle": 1000 * 3690 / 9690}
    assert data_sets(PILOT) == {
        "Glideins": 1,
        "Lasted": 10_000,
        "FailedNr": 0,
        "JobsNr": 3,
        "JobsNr_None": 0,
        "JobsLasted": 6000,
        "JobsGoodput": 5000,
        "validation_25m": 10_000,
        "idle_250m": 10_000,
    }
    # So 3.1 % of validation and 36.9 % idle are printed as 2 % and 25 %.
    printed = original(Counter(data_sets(PILOT)))
    assert (printed.validation, printed.idle) == (250, 2500)
    assert (printed.waste, printed.badput) == (4000, 5000)


def test_goodput_is_never_more_than_the_time_of_jobs() -> None:
    """As in the original, whose two sums come from different lines."""
    assert data_sets(PILOT._replace(good_zero_s=7000))["JobsGoodput"] == 6000


def test_a_range_counts_as_one_value() -> None:
    """A pilot of 1000 s in each range: as many seconds as its value has mills."""
    for idle, counted in (
        *((1, 0), (10, 5), (30, 25), (100, 100), (300, 250), (600, 500), (900, 750)),
        (1000, 1000),
    ):
        counts = Counter(data_sets(Finished(1000, True, 0, 1, 1000 - idle, 0)))
        assert original(counts).idle == pytest.approx(counted), idle


@pytest.mark.parametrize(
    "pilot",
    [
        PILOT._replace(started=False, validation_s=10_000),
        PILOT._replace(started=False, validation_s=None),
        PILOT._replace(validation_s=9996),  # HTCondor ran for 4 s
    ],
)
def test_without_condor_all_is_validation(pilot: Finished) -> None:
    """Its jobs do not count either."""
    assert mills(pilot) == {"validation": 1000.0, "idle": 0.0}
    found = data_sets(pilot)
    assert (found["validation_All"], found["idle_None"]) == (10_000, 10_000)
    assert (found["JobsNr"], found["JobsLasted"], found["JobsNr_None"]) == (0, 0, 1)


def test_what_is_not_known_is_in_no_range() -> None:
    """When validation ended is not known: neither validation nor idle; all else counts."""
    found = data_sets(PILOT._replace(validation_s=None))
    assert not [name for name in found if name.startswith(("validation", "idle"))]
    assert found["JobsLasted"] == 6000


@pytest.mark.parametrize(
    ("seconds", "cores", "expected"), [(100.9, 1, 100), (8000, 8, 1000), (0, 8, 0), (30, 0, 30)]
)
def test_division_by_cores(seconds: float, cores: float, expected: int) -> None:
    """Seconds are cut."""
    assert divided(seconds, cores) == expected


def test_a_pilot_of_two_cores_of_a_real_factory() -> None:
    """GlideinWMS 3.10.17+ wrote these mills in its completed_jobs: idle is below nothing."""
    real = Finished(584, True, 584 - 564, 5, 660, divided(660, 2))
    assert mills(real)["idle"] == pytest.approx(-170, abs=0.5)
    sets = data_sets(real)
    assert (sets["JobsNr"], sets["JobsLasted"], sets["JobsGoodput"]) == (5, 660, 330)
    assert sets["idle_None"] == 584
    found = original(Counter(sets))
    assert COLUMNS["wst"](found) == pytest.approx(-76 / 584)
    assert COLUMNS["badp"](found) == pytest.approx((584 - 330) / 584)


def test_means_are_cut() -> None:
    """10 in a row of a day are 10; of 11 the mean rate times the day is a little less: 10."""
    for number, told in ((1, 1), (10, 10), (11, 10)):
        archive = Archive(86_400)
        archive.add(100, {"Glideins": number})
        assert archive.counts() == {"Glideins": told}


def test_rows() -> None:
    """Only whole rows back from the end count; a long period has longer rows."""
    archive = Archive(7300)  # 24 rows of 300 s; 100 s are left over at the beginning
    archive.add(7199.9, {"Glideins": 1})
    archive.add(7200, {"Glideins": 5})
    archive.add(-1, {"Glideins": 7})
    assert archive.counts() == {"Glideins": 1}
    month = Archive(30 * 86_400)  # 720 rows of an hour
    month.add(30 * 86_400 - 1, {"Glideins": 720})
    assert month.counts() == {"Glideins": 720}
    year = Archive(365 * 86_400)  # 730 rows of twelve hours
    year.add(365 * 86_400 - 1, {"Lasted": 43_200})
    assert year.counts() == {"Lasted": 43_200}


def test_told_again_after_more() -> None:
    """What was told before does not stay."""
    archive = Archive(86_400)
    archive.add(0, {"Glideins": 1})
    assert archive.counts() == {"Glideins": 1}
    archive.add(0, {"Glideins": 1})
    assert archive.counts() == {"Glideins": 2}


@pytest.mark.parametrize("module", [analyze_rounding])
def test_examples(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted
    assert not result.failed
