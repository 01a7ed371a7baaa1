"""When pilot time is settled, and what a new version of the facts adds or corrects."""

from __future__ import annotations

import pytest

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Category, Outcome
from gwmond.pilots.life.partition import CorrectionCause, advance, partition
from tests.build.pilots import BROKEN, CUT, GOOD, HELD, HOUR, S, hours, job, pilot, us
from tests.build.site_sums import added, by_category, by_hour, fold, residual, sums


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


def test_new_facts_add_what_became_settled() -> None:
    running = pilot(job("a", 0, None, outcome=None), end=None, now=1800, size=Size(2, 4000))
    ended = pilot(job("a", 0, 1200), end=None, now=1800, size=Size(2, 4000))
    assert partition(running).settled == {}
    delta = advance(running, ended)
    assert added(delta.increments) == sums(partition(ended).settled)
    assert delta.corrections == ()
    later = advance(ended, ended._replace(now_us=us(2700)))
    assert hours(by_hour(later.increments)) == {"pilot_overhead": 2 * 900 / HOUR}
    assert later.corrections == ()


def test_a_first_version_adds_all_that_is_settled() -> None:
    life = pilot(job("a"))
    assert added(advance(None, life).increments) == sums(partition(life).settled)


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


def test_an_end_that_turns_out_earlier_takes_time_back() -> None:
    delta = advance(pilot(job("a")), pilot(job("a"), end=1800))
    changed = {
        correction.row.category.value: correction.micros / (HOUR * S)
        for correction in delta.corrections
        if correction.row.measure == "canonical"
    }
    assert changed == {"goodput": -0.5, "pilot_overhead": -3.5}


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
