"""Who is to blame for a program that soon failed."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, fisher_exact

from gwmond.accounting.early_failure import (
    EARLY_US,
    WINDOW_US,
    Blame,
    Evidence,
    Result,
    Stratum,
    Trial,
    Verdict,
    is_early,
    judge,
    least_p,
    p_value,
    result_of,
    weigh,
)
from gwmond.accounting.pilot_facts import Category, Outcome
from tests.accounting.pilots import BROKEN, CUT, FAILED, GOOD, HELD, us
from tests.examples import examples

EARLY_EXIT = Outcome(Category.MISCONFIGURATION_BADPUT, "early_exit")
FAIL, OK, LASTED = Result.FAILED_EARLY, Result.SUCCEEDED, Result.LASTED
LATE = us(0) + WINDOW_US * 2


def trial(
    job: str,
    result: Result = FAIL,
    *,
    node: str = "node",
    pilot: str | None = None,
    group: str = "group",
    start: float = 0,
    run: int = 1,
) -> Trial:
    return Trial(
        job, run, group, pilot or f"pilot on {node}", node, us(start), us(start + 10), result
    )


def crowd(failing: int, of: int, *, node: str, group: str = "group") -> list[Trial]:
    """Different jobs on one node, so many of them failing early."""
    return [
        trial(f"{group} {node} {i}", FAIL if i < failing else OK, node=node, group=group)
        for i in range(of)
    ]


def elsewhere(failing: int, of: int, group: str = "group") -> list[Trial]:
    """The same on as many nodes as there are jobs."""
    return [
        trial(f"{group} far {i}", FAIL if i < failing else OK, node=f"far{i}", group=group)
        for i in range(of)
    ]


def verdict(of: Trial, trials: list[Trial], now_us: int = LATE) -> Verdict:
    return judge(of, FAILED, weigh(trials), now_us)


@pytest.mark.parametrize(
    ("outcome", "early", "result"),
    [
        (GOOD, True, OK),
        (GOOD, False, OK),
        (GOOD, None, OK),
        (FAILED, True, FAIL),
        (FAILED._replace(label="exit_signal"), True, FAIL),
        (FAILED, False, LASTED),
        (FAILED, None, None),
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


# --- The same job succeeded elsewhere -----------------------------------------------------------


@pytest.mark.parametrize(
    ("later", "blame"),
    [
        (trial("job", OK, node="other", start=60, run=2), Blame.SUCCEEDED_ELSEWHERE),
        (trial("job", OK, node="other", start=10, run=2), Blame.SUCCEEDED_ELSEWHERE),
        (trial("job", OK, node="other", start=5, run=2), None),  # not later
        (trial("job", OK, node="node", pilot="second", start=60, run=2), None),  # not elsewhere
        (trial("job", LASTED, node="other", start=60, run=2), None),  # no success
        (trial("job", FAIL, node="other", start=60, run=2), None),
        (trial("changed", OK, node="other", start=60, run=2), None),  # another job
    ],
)
def test_success_elsewhere_is_final(later: Trial, blame: Blame | None) -> None:
    failed = trial("job")
    at_once = verdict(failed, [failed, later], now_us=failed.end_us)
    assert at_once == (Verdict(EARLY_EXIT, blame) if blame else Verdict(None, None))
    in_the_end = verdict(failed, [failed, later])
    assert in_the_end == (Verdict(EARLY_EXIT, blame) if blame else Verdict(FAILED, None))


def test_a_verdict_is_open_until_the_window_is_over() -> None:
    failed = trial("job")
    last = failed.end_us + WINDOW_US
    assert verdict(failed, [failed], now_us=last - 1) == Verdict(None, None)
    assert verdict(failed, [failed], now_us=last) == Verdict(FAILED, None)


def test_the_evidence_of_the_outcome_is_kept() -> None:
    failed, later = trial("job"), trial("job", OK, node="other", start=60)
    guess = FAILED._replace(evidence="estimated")
    found = judge(failed, guess, weigh([failed, later]), LATE)
    assert found.outcome == EARLY_EXIT._replace(evidence="estimated")


@pytest.mark.parametrize("result", [OK, LASTED])
def test_only_early_failures_are_judged(result: Result) -> None:
    run = trial("job", result)
    assert judge(run, GOOD, weigh([run]), run.end_us) == Verdict(GOOD, None)


# --- A pilot or node that fails too often -------------------------------------------------------


def test_a_node_that_fails_everything_is_blamed() -> None:
    """Also while one pilot after the other tries its luck there."""
    bad = [trial(f"job {i}", pilot=f"pilot {i % 3}", node="bad") for i in range(6)]
    trials = bad + elsewhere(5, 100)
    assert {verdict(of, trials) for of in bad} == {Verdict(EARLY_EXIT, Blame.NODE_FAILS_EARLY)}
    others = [of for of in trials if of not in bad and of.result is FAIL]
    assert {verdict(of, trials) for of in others} == {Verdict(FAILED, None)}


def test_a_pilot_is_blamed_where_its_node_is_not() -> None:
    """Of many pilots on a large node one has a broken environment."""
    bad = [trial(f"bad {i}", pilot="bad", node="big") for i in range(5)]
    good = [trial(f"good {i}", OK, pilot=f"good {i % 50}", node="big") for i in range(1000)]
    trials = bad + good + elsewhere(20, 1000)
    assert verdict(bad[0], trials) == Verdict(EARLY_EXIT, Blame.PILOT_FAILS_EARLY)


def test_a_user_whose_jobs_fail_everywhere_is_not_the_nodes_fault() -> None:
    """The node runs all of one user's broken jobs; compared with all jobs it would look bad."""
    here = crowd(20, 20, node="node", group="broken")
    trials = here + elsewhere(50, 50, "broken") + elsewhere(0, 2000, "fine")
    assert verdict(here[0], trials) == Verdict(FAILED, None)
    same = [of._replace(group="all") for of in trials]
    assert verdict(same[0], same) == Verdict(EARLY_EXIT, Blame.NODE_FAILS_EARLY)


def test_groups_add_up() -> None:
    """One failure of each of six groups, none of which would be significant alone."""
    here = [trial(f"job {i}", node="bad", group=f"g{i}") for i in range(6)]
    trials = here + [of for i in range(6) for of in elsewhere(2, 40, f"g{i}")]
    assert verdict(here[0], trials).blame is Blame.NODE_FAILS_EARLY
    alone = [of for of in trials if of.group == "g0"]
    assert verdict(here[0], alone) == Verdict(FAILED, None)


def test_retries_of_one_job_count_once() -> None:
    retries = [trial("job", node="node", start=20 * i, run=i) for i in range(30)]
    trials = retries + crowd(0, 9, node="node") + elsewhere(5, 500)
    assert verdict(retries[0], trials) == Verdict(FAILED, None)
    assert weigh(trials).findings["node", "node"].failures == 1


def test_a_job_that_did_better_on_the_same_node_did_not_fail_there() -> None:
    trials = [
        *(trial(f"job {i}", node="node") for i in range(6)),
        *(trial(f"job {i}", OK, node="node", start=60, run=2) for i in range(6)),
        *elsewhere(6, 200),
    ]
    assert weigh(trials).findings["node", "node"].failures == 0
    assert verdict(trials[0], trials) == Verdict(FAILED, None)


def test_two_jobs_are_not_enough() -> None:
    here = crowd(2, 3, node="node")
    trials = here + elsewhere(1, 50_000)
    assert weigh(trials).findings["node", "node"].adjusted < 1e-6
    assert verdict(here[0], trials) == Verdict(FAILED, None)


def test_a_verdict_can_be_revised_while_it_is_open() -> None:
    """At first the node looks bad; then the same jobs turn out to fail everywhere."""
    here = crowd(6, 6, node="node")
    early = here + elsewhere(2, 60)
    assert verdict(here[0], early, now_us=here[0].end_us) == Verdict(None, Blame.NODE_FAILS_EARLY)
    more = early + [trial(f"more {i}", node=f"more{i}") for i in range(500)]
    assert verdict(here[0], more) == Verdict(FAILED, None)


def test_chance_blames_hardly_anybody() -> None:
    """2,000 pilots with 5 jobs of which 5 % fail early: none stands out."""
    random = Random(2022)
    trials = [
        trial(f"{p}.{j}", FAIL if random.random() < 0.05 else OK, node=f"n{p // 4}", pilot=f"p{p}")
        for p in range(2000)
        for j in range(5)
    ]
    found = weigh(trials)
    assert any(of.failures >= 3 for of in found.findings.values())
    assert not any(of.significant(found.rate) for of in found.findings.values())


def test_all_that_could_be_significant_is_counted_as_a_test() -> None:
    """A unit without failures is a test too: leaving it out would flatter the others."""
    trials = crowd(5, 20, node="bad") + [
        of for i in range(30) for of in crowd(i < 4, 20, node=f"n{i}")
    ]
    found = weigh(trials).findings
    assert found["node", "n20"].failures == 0
    assert found["node", "n20"].p == 1
    adjusted = false_discovery_control([of.p for of in found.values()], method="by")
    assert [of.adjusted for of in found.values()] == list(adjusted)
    assert found["node", "bad"].expected == pytest.approx(9 * 20 / 620)


def test_what_could_never_be_significant_is_no_test() -> None:
    """One job of many: even its failure would not be rare enough."""
    trials = crowd(3, 3, node="three") + elsewhere(30, 100)
    assert weigh(trials).findings == {}
    assert ("node", "three") in weigh(trials, rate=0.1).findings
    assert weigh(crowd(2, 2, node="two") + elsewhere(0, 10_000)).findings == {}


def test_nothing_is_known_of_nothing() -> None:
    assert weigh([]) == Evidence({}, {})


# --- The statistics -----------------------------------------------------------------------------

STRATA = st.tuples(*(st.integers(0, 8) for _ in range(4))).map(
    lambda t: Stratum(t[0] + t[1], t[0], sum(t) + 1, t[0] + t[2])
)


@settings(max_examples=examples(150))
@given(STRATA)
def test_with_one_group_it_is_fishers_exact_test(of: Stratum) -> None:
    good_here, failed_far = of.here - of.failed_here, of.failed - of.failed_here
    table = [
        [of.failed_here, good_here],
        [failed_far, of.jobs - of.here - failed_far],
    ]
    p = p_value([of])
    assert p == pytest.approx(fisher_exact(np.array(table), alternative="greater").pvalue)
    assert least_p([of]) <= p * (1 + 1e-9)
    assert least_p([of]) == pytest.approx(p_value([of._replace(failed_here=min(of[0], of[3]))]))


@settings(max_examples=examples(60))
@given(st.lists(STRATA, min_size=1, max_size=3))
def test_groups_are_independent(strata: list[Stratum]) -> None:
    """The same by going through all ways in which the failures could have fallen."""
    ways: dict[int, float] = {0: 1.0}
    for of in strata:
        chances = {}
        for here in range(min(of.here, of.failed) + 1):
            at_least = [p_value([of._replace(failed_here=n)]) for n in (here, here + 1)]
            chances[here] = (
                at_least[0] - at_least[1] if here < min(of.here, of.failed) else at_least[0]
            )
        ways = {
            total: sum(ways.get(total - n, 0) * chance for n, chance in chances.items())
            for total in range(max(ways) + len(chances))
        }
    seen = sum(of.failed_here for of in strata)
    expected = sum(chance for total, chance in ways.items() if total >= seen)
    assert p_value(strata) == pytest.approx(min(1.0, expected), abs=1e-9)


@settings(max_examples=examples(40))
@given(st.randoms(use_true_random=False))
def test_the_order_of_trials_changes_nothing(random: Random) -> None:
    trials = crowd(4, 6, node="bad") + crowd(1, 5, node="good", group="g2") + elsewhere(3, 30)
    trials += [trial("job", OK, node=f"n{i}", run=i) for i in range(5)]
    assert weigh(random.sample(trials, len(trials)) + trials[:3]) == weigh(trials)
