"""Whose doing it is that a run soon failed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, fisher_exact

from gwmond.model.entries.suspects import Kind
from gwmond.model.pilot_life import Category, Outcome
from gwmond.model.runs.endings import EARLY_US, is_early
from gwmond.model.runs.run_facts import group_name
from gwmond.pilots.early.comparison import (
    SHORT_US,
    WINDOW_US,
    Result,
    Trial,
    judge,
    result_of,
    suspects,
    weigh,
    while_at_fault,
)
from gwmond.pilots.early.exact_test import Stratum, compare, least_p, p_value
from gwmond.pilots.early.strata import (
    MIN_GROUP,
    STRATUM_JOBS,
    STRATUM_US,
    RunStart,
    Strata,
    groups_of,
)
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import began_within, evidence_until
from tests.build.pilots import BROKEN, CUT, FAILED, GOOD, HELD, us
from tests.examples import examples

EARLY_EXIT = Outcome(Category.MISCONFIGURATION_BADPUT, "early_exit")
NO_PROGRAM = Outcome(Category.UNCLASSIFIED, "program_not_started")
FAIL, OK, LASTED = Result.FAILED_EARLY, Result.SUCCEEDED, Result.LASTED


@pytest.mark.parametrize(
    ("outcome", "early", "result"),
    [
        (GOOD, True, OK),
        (GOOD, False, OK),
        (GOOD, None, OK),
        (FAILED, True, FAIL),
        (FAILED._replace(label="exit_signal"), True, FAIL),
        (FAILED, False, Result.FAILED_LATE),
        (FAILED, None, None),
        (NO_PROGRAM, None, FAIL),  # a code that a user's mistake causes as often as a site does
        (Outcome(Category.UNCLASSIFIED, "starter_lost"), None, FAIL),
        (FAILED._replace(label="exit_unknown"), False, LASTED),
        (Outcome(Category.UNCLASSIFIED, "exit_retried"), False, Result.FAILED_LATE),
        (CUT, False, LASTED),
        (CUT, True, None),  # cut off: it might have failed early or not
        (HELD, True, None),
        (BROKEN, True, None),  # never began: decided already
    ],
)
def test_what_a_run_says(outcome: Outcome, early: bool | None, result: Result | None) -> None:
    assert result_of(outcome, early) is result


def test_what_is_early() -> None:
    assert is_early(None) is None
    assert is_early(EARLY_US) is True
    assert is_early(EARLY_US + 1) is False


# --- A pool in which each minute a job begins on each node ---------------------------------------


def run(
    minute: int, node: int, result: Result = OK, *, group: str = "eve run.sh", seconds: float = 1800
) -> Trial:
    """Nodes 0 to 9 are at site 0, in two entries; and so on."""
    start_us = us(minute * 60 + node)
    user, _, program = group.partition(" ")
    return Trial(
        job=f"{user}.{program}#1.{minute * 1000 + node}#1",
        number=1,
        group=group,
        pilot=f"pilot{node}",
        node=f"node{node}",
        entry=f"entry{node // 5}",
        site=f"site{node // 10}",
        start_us=start_us,
        end_us=start_us + round((10 if result is FAIL else seconds) * 1e6),
        result=result,
    )


def pool(bad: Collection[int], minutes: int = 20, nodes: int = 40) -> list[Trial]:
    """All that begins on these nodes fails."""
    return [
        run(minute, node, FAIL if node in bad else OK)
        for minute in range(minutes)
        for node in range(nodes)
    ]


def blamed(trials: list[Trial]) -> tuple[set[int], set[Kind]]:
    """Return the nodes of the runs that are blamed on a place, and on which kinds of place."""
    blamed = weigh(trials)
    nodes = {int(trial.node[4:]) for trial in trials if trial.key in blamed}
    return nodes, set(blamed.values())


@pytest.mark.parametrize(
    ("bad", "kinds"),
    [
        ([3], {"node"}),
        ([3, 17, 31], {"node"}),
        (range(10, 15), {"entry"}),
        (range(10, 20), {"site"}),
        ([10, 11, 12, 13, 14, 15, 16, 17], {"site"}),  # most of it is broken
        ([10, 12, 15, 17], {"node"}),  # less than half of each entry
    ],
)
def test_the_place_that_is_at_fault_is_blamed(bad: Collection[int], kinds: set[Kind]) -> None:
    """A larger one only if more than half of its nodes fail."""
    assert blamed(pool(bad)) == (set(bad), kinds)


def test_a_pilot_is_blamed_where_its_node_is_not() -> None:
    """Of many pilots on a large node one has a broken environment."""
    trials = [
        trial._replace(node=f"node{int(trial.node[4:]) // 20}", entry="e", site="s")
        for trial in pool([7], minutes=40, nodes=200)
    ]
    blamed = weigh(trials)
    assert {trial.pilot for trial in trials if trial.key in blamed} == {"pilot7"}


def test_a_user_whose_jobs_fail_everywhere_is_not_the_nodes_fault() -> None:
    """Most of them ran on one node, where others' jobs are fine."""
    here = [run(minute, 3, FAIL, group="joe x") for minute in range(20)]
    there = [run(minute, 20 + minute, FAIL, group="joe x") for minute in range(20)]
    assert blamed([*pool([]), *here, *there]) == (set(), set())


def test_a_users_broken_jobs_stay_his_on_a_broken_node() -> None:
    broken = [run(m, n, FAIL, group="joe x") for m in range(20) for n in (3, 5, 6, 7)]
    blamed = weigh([*pool([3]), *broken])
    assert len(blamed) == 20
    assert {job.partition(".")[0] for job, _, _ in blamed} == {"eve"}


def test_a_block_of_bad_jobs_on_one_slot_is_not_the_nodes_fault() -> None:
    """Each failure frees the slot, which takes the next; before and after, all went well there."""
    block = [
        run(10, 3, FAIL)._replace(job=f"eve.run.sh#1.9{n}#1", start_us=us(603 + n / 100))
        for n in range(90)
    ]
    assert blamed([*pool([]), *block]) == (set(), set())


def test_retries_of_one_job_count_once() -> None:
    retries = [run(minute, 3, FAIL)._replace(job="ap#1.0#1", number=minute) for minute in range(20)]
    trials = [trial for trial in pool([]) if trial.node != "node3"]
    assert blamed(trials + retries) == (set(), set())


def test_a_job_that_fails_at_random_and_then_succeeds_elsewhere_blames_nobody() -> None:
    """How often its group fails by itself is what decides."""
    trials = []
    for n, trial in enumerate(pool([], minutes=40)):
        if n % 7:
            trials.append(trial)
        else:
            second = trial._replace(number=2, node="node39", pilot="pilot39")
            trials += [
                trial._replace(result=FAIL),
                second._replace(start_us=trial.start_us + 10**7),
            ]
    assert blamed(trials) == (set(), set())


def test_one_failure_whose_job_succeeds_elsewhere_is_not_enough() -> None:
    failed, later = run(0, 3, FAIL), run(1, 4)._replace(job=run(0, 3).job, number=2)
    assert judge(failed, FAILED, weigh([failed, later])) == FAILED


def test_a_run_that_goes_on_speaks_for_its_place() -> None:
    """Where jobs last longer than a verdict may wait."""
    trials = [trial._replace(result=LASTED) if trial.result is OK else trial for trial in pool([3])]
    assert blamed(trials) == ({3}, {"node"})


def test_the_outcome_of_what_is_blamed() -> None:
    """An early exit gets a label of its own; a code keeps its label."""
    trials = pool([3])
    blamed = weigh(trials)
    bad = next(trial for trial in trials if trial.result is FAIL)
    assert judge(bad, FAILED, blamed) == EARLY_EXIT
    misconfigured = Outcome(Category.MISCONFIGURATION_BADPUT, "program_not_started")
    assert judge(bad, NO_PROGRAM, blamed) == misconfigured
    guess = FAILED._replace(evidence="estimated")
    assert judge(bad, guess, blamed) == EARLY_EXIT._replace(evidence="estimated")
    good = next(trial for trial in trials if trial.result is OK)
    assert judge(good, GOOD, blamed) == GOOD


@pytest.mark.parametrize(
    ("failed", "at_fault"),
    [
        ("....................FFFF-FFFF....................", range(20, 29)),
        ("..........F..F..F.F..F.F..F.F....................", range(10, 29)),  # a third of its runs
        ("FFFFF....................", range(5)),
        ("....................F....", ()),
        ("--", ()),
    ],
)
def test_when_a_place_was_at_fault(failed: str, at_fault: Collection[int]) -> None:
    """From the first of its failures to the last; a run that says nothing ends nothing."""
    told = [{"F": True, ".": False, "-": None}[one] for one in failed]
    found = while_at_fault([0.02] * len(told), told)
    assert [index for index, bad in enumerate(found) if bad] == [*at_fault]


def test_nothing_is_known_of_nothing() -> None:
    assert weigh([]) == {}


# --- When a verdict falls ------------------------------------------------------------------------


def test_a_verdict_falls_a_window_after_the_slice_in_which_a_run_ended() -> None:
    """A window has six slices; what ends with a slice has ended in it."""
    slice_us = WINDOW_US // 6
    assert evidence_until(100 * slice_us, Rules()) == 106 * slice_us
    assert evidence_until(100 * slice_us + 1, Rules()) == 107 * slice_us


def test_evidence_began_within_two_slices_of_the_one_that_is_judged() -> None:
    """And before the verdict, however short the window is."""
    slice_us = WINDOW_US // 6
    assert began_within(106 * slice_us, Rules()) == (97 * slice_us, 102 * slice_us)
    assert began_within(100, Rules(verdict_us=1)) == (96, 100)


# --- Very short successes ------------------------------------------------------------------------


def test_a_node_whose_jobs_succeed_at_once_is_suspected_and_not_blamed() -> None:
    trials = [
        trial._replace(end_us=trial.start_us + SHORT_US) if trial.node == "node3" else trial
        for trial in pool([])
    ]
    (suspect,) = suspects(trials)
    assert suspect[:4] == ("node", "node3", "entry0", "site0")
    assert suspect.sign == "ends_too_soon"
    assert weigh(trials) == {}


def test_jobs_that_are_short_everywhere_are_not_suspicious() -> None:
    assert suspects([trial._replace(end_us=trial.start_us + SHORT_US) for trial in pool([])]) == ()
    assert suspects(pool([3])) == ()  # failures are no successes


def test_a_success_on_a_suspected_node_convicts_no_other() -> None:
    """One user's jobs fail on every node, but on the black hole that ends all jobs with 0."""
    trials = [
        trial._replace(end_us=trial.start_us + 10**6, result=OK if trial.node == "node3" else FAIL)
        for trial in pool([])
    ]
    good = [
        run(m, n, group="joe x", seconds=1 if n == 3 else 1800)
        for m in range(20)
        for n in range(40)
    ]
    assert [suspect[:2] for suspect in suspects([*trials, *good])] == [("node", "node3")]
    assert weigh([*trials, *good]) == {}


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_the_order_of_trials_changes_nothing(random: Random) -> None:
    trials = [*pool([3], 8, 20), *(run(m, 4, FAIL, group="joe x") for m in range(8))]
    assert weigh(random.sample(trials, len(trials)) + trials[:3]) == weigh(trials)


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


def test_a_job_that_goes_on_has_the_program_of_its_cluster_if_that_is_small() -> None:
    """So what fails at a place is compared with what goes on elsewhere, and no record names yet."""
    ended = [job for n in (1, 2, 3) for job in jobs(MIN_GROUP // 2, "eve run.sh", n)]

    def more(user: str, cluster: int) -> list[RunStart]:
        return jobs(MIN_GROUP - 1, user, cluster)[MIN_GROUP // 2 :]

    for user, cluster, kind in (("eve", 2, "program"), ("eve", 4, "user"), ("joe", 2, "user")):
        assert groups_of([*ended, *more(user, cluster)])[-1][0] == kind  # type: ignore[index]
    mixed = [*ended, *jobs(1, "eve other.sh", 2)]  # a cluster may have several programs
    assert groups_of([*mixed, *more("eve", 2)[1:]])[-1] == ("user", "eve")


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


STRATA = st.tuples(*(st.integers(0, 8) for _ in range(4))).map(
    lambda t: Stratum(t[0] + t[1], t[0], sum(t) + 1, t[0] + t[2])
)


@settings(max_examples=examples(150))
@given(STRATA)
def test_with_one_group_it_is_fishers_exact_test(stratum: Stratum) -> None:
    good_here, failed_far = stratum.here - stratum.failed_here, stratum.failed - stratum.failed_here
    table = [
        [stratum.failed_here, good_here],
        [failed_far, stratum.jobs - stratum.here - failed_far],
    ]
    p = p_value([stratum])
    assert p == pytest.approx(fisher_exact(np.array(table), alternative="greater").pvalue)
    assert least_p([stratum]) <= p * (1 + 1e-9)
    assert least_p([stratum]) == pytest.approx(
        p_value([stratum._replace(failed_here=min(stratum[0], stratum[3]))])
    )


@settings(max_examples=examples(60))
@given(st.lists(STRATA, min_size=1, max_size=3))
def test_groups_are_independent(strata: list[Stratum]) -> None:
    """The same by going through all ways in which the failures could have fallen."""
    ways: dict[int, float] = {0: 1.0}
    for stratum in strata:
        chances = {}
        for here in range(min(stratum.here, stratum.failed) + 1):
            at_least = [p_value([stratum._replace(failed_here=n)]) for n in (here, here + 1)]
            chances[here] = (
                at_least[0] - at_least[1]
                if here < min(stratum.here, stratum.failed)
                else at_least[0]
            )
        ways = {
            total: sum(ways.get(total - n, 0) * chance for n, chance in chances.items())
            for total in range(max(ways) + len(chances))
        }
    seen = sum(stratum.failed_here for stratum in strata)
    expected = sum(chance for total, chance in ways.items() if total >= seen)
    assert p_value(strata) == pytest.approx(min(1.0, expected), abs=1e-9)


@settings(max_examples=examples(60))
@given(STRATA, st.integers(1, 6))
def test_strata_that_are_alike_are_summed_at_once(stratum: Stratum, number: int) -> None:
    """As if each were added for itself."""
    each = [
        p_value([stratum._replace(failed_here=n)])
        for n in range(min(stratum.here, stratum.failed) + 1)
    ]
    chances = np.ones(1)
    for _ in range(number):
        chances = np.convolve(chances, -np.diff([*each, 0]))
    expected = chances[stratum.failed_here * number :].sum()
    assert p_value([stratum] * number) == pytest.approx(expected, abs=1e-9)


def test_chance_blames_hardly_anybody() -> None:
    """2,000 units of which each had 5 of 10,000 jobs; 5 % of these failed, wherever."""
    random = Random(2022)
    failed = [random.random() < 0.05 for _ in range(10_000)]
    tables = {
        str(unit): [Stratum(5, sum(failed[unit * 5 : unit * 5 + 5]), 10_000, sum(failed))]
        for unit in range(2000)
    }
    found = compare(tables)
    assert any(finding.failures >= 3 for finding in found.values())
    assert not any(finding.significant() for finding in found.values())


def test_all_that_could_be_significant_is_counted_as_a_test() -> None:
    """A unit without failures is a test too: leaving it out would flatter the others."""
    tables = {str(unit): [Stratum(20, 0, 620, 9)] for unit in range(30)}
    tables["bad"] = [Stratum(20, 5, 620, 9)]
    found = compare(tables)
    assert (found["20"].failures, found["20"].p) == (0, 1)
    adjusted = false_discovery_control([finding.p for finding in found.values()], method="by")
    assert [finding.adjusted for finding in found.values()] == pytest.approx(adjusted)
    assert found["bad"].expected == pytest.approx(9 * 20 / 620)


def test_what_could_never_be_significant_is_no_test() -> None:
    """Three jobs here, all failed: not rare enough where a third fails anyway."""
    three = {"three": [Stratum(3, 3, 103, 33)]}
    assert compare(three) == {}
    assert "three" in compare(three, rate=0.1)
    assert compare({"two": [Stratum(2, 2, 10_000, 2)]}) == {}
    assert compare({}) == {}


def test_no_probability_exceeds_one() -> None:
    """Where no fewer can have failed, the chances sum to one, and by rounding to a bit more."""
    assert p_value([Stratum(2, 1, 10, 9)] * 7) == 1


def test_as_many_tests_are_allowed_for_as_could_be_significant() -> None:
    """Of two units one can reach 1 in 30: 1 in 20 is asked of it, and not half of that (Tarone)."""
    tables = {"rare": [Stratum(3, 3, 10, 4)], "often": [Stratum(3, 3, 10, 9)]}
    found = compare(tables, rate=0.05)
    assert set(found) == {"rare"}
    assert found["rare"].adjusted == pytest.approx(4 / 120)


def test_two_failures_are_not_enough() -> None:
    found = compare({"node": [Stratum(3, 2, 50_000, 3)]})
    assert found["node"].adjusted < 1e-6
    assert not found["node"].significant()
