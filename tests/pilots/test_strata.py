"""Which runs are compared with which."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gwmond.model.runs.records import group_name
from gwmond.pilots.early.exact_test import Stratum
from gwmond.pilots.early.strata import (
    MIN_GROUP,
    STRATUM_JOBS,
    STRATUM_US,
    RunStart,
    Strata,
    groups_of,
)


def start(number: int, *, failed: bool = False, at: float | None = None, job: str = "") -> RunStart:
    at_us = round((number if at is None else at) * 1e6)
    return RunStart(job or f"ap#{number}.0#1", "eve run.sh", at_us, failed)


def play(results: str, places: str | None = None) -> Strata:
    """Runs of one group, one after the other: ``F`` failed, at these places."""
    starts = [start(n, failed=name == "F") for n, name in enumerate(results)]
    return Strata(starts, [0] * len(starts), list(places or "a" * len(starts)))


def jobs(number: int, group: str, cluster: int | None = None) -> list[RunStart]:
    """So many jobs of one group, in one cluster or in one each."""
    ids = [f"ap.example.org#{cluster or n + 1000}.{n}#1" for n in range(number)]
    return [RunStart(name, group, 0, failed=False) for name in ids]


def kinds(starts: Sequence[RunStart]) -> set[str]:
    return {group[0] for group in groups_of(starts)}  # type: ignore[index]


def test_jobs_of_one_cluster_are_a_group_if_they_are_many() -> None:
    """A submission that was mended is another cluster than the one before."""
    many, more = jobs(MIN_GROUP, "eve run.sh", 1), jobs(MIN_GROUP, "eve run.sh", 2)
    assert kinds(many) == {"cluster"}
    assert len(set(groups_of(many + more))) == 2
    assert kinds(jobs(MIN_GROUP - 1, "eve run.sh", 1)) == {"user"}


def test_else_they_are_compared_with_the_same_program() -> None:
    assert kinds(jobs(MIN_GROUP, "eve run.sh")) == {"program"}
    small = jobs(5, "eve run.sh", 1)
    assert kinds(small + jobs(MIN_GROUP, "eve run.sh")) == {"program"}


def test_programs_that_are_all_different_are_compared_by_dag_else_by_user() -> None:
    dags = [
        of._replace(group=group_name("eve", f"n{n}", f"DAG {n % 2}"))
        for n, of in enumerate(jobs(2 * MIN_GROUP, ""))
    ]
    assert kinds(dags) == {"batch"}
    assert len(set(groups_of(dags))) == 2
    alone = [of._replace(group=f"eve n{n}") for n, of in enumerate(jobs(MIN_GROUP, ""))]
    assert kinds(alone) == {"user"}
    assert len(set(groups_of([*alone, *jobs(1, "joe x")]))) == 2


def test_a_job_whose_records_do_not_name_its_program_is_still_of_its_cluster() -> None:
    """A slot shows the user alone."""
    told = jobs(MIN_GROUP, "eve run.sh", 7)
    assert len(set(groups_of([*told, told[0]._replace(group="eve")]))) == 1


@pytest.mark.parametrize(
    ("results", "places", "counted"),
    [
        ("SSSF", "aaaa", 4),
        ("SSSS", "aaaa", 0),  # nothing failed: the group says nothing
        ("SFFFFFS", "aaaaaaa", 3),  # a stretch of failures at one place counts once
        ("SFFFFFS", "aababaa", 4),  # once at each of both places
        ("FSFSF", "aaaaa", 5),
        ("FSFSF", "abaaa", 5),  # what went well in between was elsewhere
    ],
)
def test_a_stretch_of_failures_counts_once_a_place(results: str, places: str, counted: int) -> None:
    assert sum(play(results, places).counted) == counted


def test_a_job_counts_once_a_place() -> None:
    """And if it did better there it did not fail there."""
    tries = [start(n, failed=n < 3, job="ap#1.0#1") for n in range(4)]
    assert Strata(tries, [0] * 4, list("aaaa")).counted == [False, False, False, True]
    assert Strata(tries, [0] * 4, list("abab")).counted == [True, False, False, True]
    again = [start(n, job="ap#1.0#1") for n in range(3)]
    failed = start(3, failed=True)
    twice = [again[0], again[1], failed]
    assert Strata(twice, [0] * 3, list("aaa")).counted == [True, False, True]
    assert Strata([*again, failed], [0] * 4, list("aaaa")).counted == [True, False, False, True]


def test_a_stratum_ends_after_so_many_runs_or_minutes() -> None:
    starts = [start(n, failed=not n) for n in range(STRATUM_JOBS + 1)]
    number = Strata(starts, [0] * len(starts), ["a"] * len(starts)).number
    assert len(set(number[:STRATUM_JOBS])) == 1
    assert number[-1] == number[0] + 1
    times = (0, STRATUM_US / 1e6, STRATUM_US / 1e6 + 1)
    late = [start(n, at=at, failed=True) for n, at in enumerate(times)]
    assert Strata(late, [0] * 3, ["a"] * 3).number == [1, 1, 2]
    assert len(set(Strata(late, [1, 2, 3], ["a"] * 3).number)) == 3  # groups have their own


def test_tables_by_unit() -> None:
    strata = play("FSSFSS", "abcabc")
    assert strata.tables(list("xyyxyz")) == {
        "x": [Stratum(2, 2, 6, 2)],
        "y": [Stratum(3, 0, 6, 2)],
        "z": [Stratum(1, 0, 6, 2)],
    }
    one = {"x": [Stratum(2, 1, 3, 1)], "y": [Stratum(1, 0, 3, 1)]}
    assert play("FSS", "aab").tables(list("xxy")) == one
    assert play("FSS" + "S" * STRATUM_JOBS).tables([*"xxy", *"xy" * (STRATUM_JOBS // 2)]) == {
        "x": [Stratum(2 + 19, 1, STRATUM_JOBS, 1)],
        "y": [Stratum(1 + 18, 0, STRATUM_JOBS, 1)],
    }  # and nothing of the next stratum, in which nothing failed
    assert play("SSSS").tables(list("xyxy")) == {}  # nothing failed: it says nothing
    assert play("FSFS").tables(list("xxxx")) == {}  # nowhere else


def test_excess_of_failures() -> None:
    found = play("FSSFSS", "abcabc").excess(list("abcabc"), range(5))
    assert found == pytest.approx({"a": 2 * (1 - 1 / 3), "b": -2 / 3, "c": -1 / 3})
    assert play("F").excess("a", [0]) == {"a": 0}  # a run alone is what is expected of it
    assert play("S").excess("a", [0]) == {"a": 0}
