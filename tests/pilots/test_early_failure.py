"""Whose doing it is that a run soon failed."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.entries.suspects import Kind
from gwmond.model.pilot_life import Category, Outcome
from gwmond.model.runs.endings import EARLY_US, is_early
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
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import began_within, evidence_until
from tests.build.pilots import BROKEN, CUT, FAILED, GOOD, HELD, us

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
