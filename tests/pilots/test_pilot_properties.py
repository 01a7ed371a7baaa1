"""What must hold of any pilot: no time is invented or lost, whatever is told and in which order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.pilot_life import MEASURES, Category, PilotLife, SizeStep
from gwmond.model.units import RESOURCES
from gwmond.pilots.life.partition import (
    Amounts,
    CorrectionCause,
    Delta,
    advance,
    own_category,
    partition,
)
from gwmond.pilots.life.segments import cut
from tests.build.any_pilot import TIMES, pilots
from tests.build.pilots import HOUR, S, us
from tests.build.site_sums import Sums, added, residual, sums
from tests.examples import examples

Kind = tuple[str, str, str]


def summed(*partial: Sums) -> Sums:
    total: Sums = Counter()
    for amounts in partial:
        total.update(amounts)
    return Counter({what: micros for what, micros in total.items() if micros})


def corrected(delta: Delta) -> Iterator[Sums]:
    return (sums({correction.row: correction.micros}) for correction in delta.corrections)


def kinds(amounts: Amounts) -> Counter[Kind]:
    counter: Counter[Kind] = Counter()
    for row, micros in amounts.items():
        counter[row.resource, row.measure, row.category.value] += micros
    return counter


@settings(max_examples=examples(150))
@given(pilots())
def test_nothing_is_invented_or_lost(life: PilotLife) -> None:
    """Settled and unsettled sum to the pilot's total in both measures, to the last micro."""
    found = partition(life)
    assert residual(found) == {}
    assert min([*found.settled.values(), *found.unsettled.values(), 1]) > 0
    if own_category(life) is None:
        assert found.settled == {}


@settings(max_examples=examples(100))
@given(pilots(finished=True))
def test_categories_sum_to_resources_times_life(life: PilotLife) -> None:
    """All of a finished pilot is settled: its categories are its cores, units and chips."""
    found = partition(life)
    assert found.unsettled == {}
    for resource in RESOURCES:
        for measure in MEASURES:
            of_all = sum(
                micros
                for row, micros in found.settled.items()
                if (row.resource, row.measure) == (resource, measure)
            )
            assert of_all == found.total.get((resource, measure), 0)
    sizes = {step.size for step in life.steps}
    if len(sizes) == 1 and (cores := sizes.pop().cores) == int(cores):
        whole = int(cores) * (life.effective_end_us - life.start_us)
        assert found.total.get(("cpu", "resource"), 0) == whole


@settings(max_examples=examples(100))
@given(pilots(finished=True))
def test_each_category_gets_what_the_rules_say(life: PilotLife) -> None:
    """The rules once more, in fractions and with no care for speed, agree to a few micros."""
    exact: defaultdict[Kind, Fraction] = defaultdict(Fraction)
    memory_per_unit_mib = 2000
    own = (own_category(life) or Category.UNCLASSIFIED).value

    def thousandths(number: float) -> Fraction:
        return Fraction(round(number * 1000), 1000)

    segments = cut(life)
    for segment in segments:
        seconds = segment.end_us - segment.start_us
        running = segment.running
        cores, memory, chips = (thousandths(number) for number in segment.size)
        units = max(
            min(cores // 1, memory // memory_per_unit_mib), min(cores // 1, 1)
        )  # with a core, one unit
        used = [tuple(thousandths(number) for number in run.size) for run in running]
        free_cores = cores - sum(of[0] for of in used)
        free_memory = memory - sum(of[1] for of in used)
        idle = max(0, min(free_cores // 1, free_memory // memory_per_unit_mib)) if running else None
        weights = [of[0] for of in used]
        if not any(weights):
            weights = [of[1] for of in used]
        if not any(weights):
            weights = [Fraction(1)] * len(used)
        for measure, total in (("resource", cores), ("canonical", Fraction(units))):
            exact["cpu", measure, own] += seconds * (total if idle is None else idle)
            for run, weight in zip(running, weights, strict=True):
                assert run.outcome is not None
                assert idle is not None
                share = (total - idle) * weight / sum(weights)
                exact["cpu", measure, run.outcome.category.value] += seconds * share
            held = sum(of[2] for of in used)
            busy = min(held, chips)
            exact["gpu", measure, own] += seconds * (chips - busy)
            for run, of in zip(running, used, strict=True):
                assert run.outcome is not None
                if held:
                    share = busy * of[2] / held
                    exact["gpu", measure, run.outcome.category.value] += seconds * share
    found = kinds(partition(life).settled)
    for kind in {*exact, *found}:
        assert abs(found[kind] - exact[kind]) <= len(segments) * (len(life.runs) + 1)


@settings(max_examples=examples(75))
@given(pilots(), st.lists(st.tuples(TIMES, st.booleans()), min_size=1, max_size=4))
def test_splitting_an_interval_changes_nothing(
    life: PilotLife, cuts: list[tuple[float, bool]]
) -> None:
    """Windows, steps to the same size and the ends of empty runs cut time, and that is all."""
    times = sorted(us(at) for at, _ in cuts)
    first = min(life.start_us, times[0]) - 1
    edges = [first, *times, max(life.effective_end_us, times[-1]) + 1]
    pieces = [partition(life, window) for window in pairwise(edges)]
    whole = partition(life)
    assert summed(*(sums(piece.settled) for piece in pieces)) == sums(whole.settled)

    steps = list(life.steps)
    for time, _ in cuts:
        before = [step for step in sorted(steps) if step.at_us <= us(time)]
        steps.append(SizeStep(us(time), (before[-1] if before else min(steps)).size))
    assert partition(life._replace(steps=tuple(steps))) == whole


@settings(max_examples=examples(75))
@given(pilots(finished=True), st.integers(0, 7), TIMES)
def test_a_run_in_two_runs_is_worth_the_same(life: PilotLife, index: int, at: float) -> None:
    if not life.runs:
        return
    chosen = life.runs[index % len(life.runs)]
    end = life.effective_end_us if chosen.end_us is None else chosen.end_us
    if not chosen.start_us < us(at) < end:
        return
    halves = (
        chosen._replace(end_us=us(at)),
        chosen._replace(key=chosen.key._replace(number=2), start_us=us(at)),
    )
    others = tuple(run for run in life.runs if run is not chosen)
    split = life._replace(runs=(*others, *halves))
    assert kinds(partition(split).settled) == kinds(partition(life).settled)


@settings(max_examples=examples(50))
@given(pilots(), st.randoms(use_true_random=False))
def test_the_order_of_facts_changes_nothing(life: PilotLife, random: Random) -> None:
    other = life._replace(
        runs=tuple(random.sample(life.runs, len(life.runs))),
        steps=tuple(random.sample(life.steps, len(life.steps))),
    )
    assert partition(other) == partition(life)


@settings(max_examples=examples(100))
@given(pilots() | st.none(), pilots())
def test_any_two_versions_differ_by_what_is_added_and_corrected(
    before: PilotLife | None, after: PilotLife
) -> None:
    """Posted once, corrected with a sign; increments are never negative."""
    delta = advance(before, after)
    old = sums(partition(before).settled if before is not None else {})
    new = added(delta.increments)
    assert summed(old, new, *corrected(delta)) == sums(partition(after).settled)
    assert min(new.values(), default=1) > 0
    assert not (delta.corrections and before is None)
    revised: Counter[tuple[str, str, int]] = Counter()
    for correction in delta.corrections:
        if correction.cause is CorrectionCause.WITHDRAWN:
            assert correction.micros < 0
        elif before is not None and set(before.steps) == set(after.steps):
            revised[correction.row.resource, correction.row.measure, correction.row.hour] += (
                correction.micros
            )
    assert not any(revised.values())


@st.composite
def histories(draw: st.DrawFn) -> list[PilotLife]:
    """Growing facts of one pilot: runs turn up, end, get outcomes, and never change again.

    Nobody tells late of what began before ``known_until_us``, nor of what began after the end.
    """
    final = draw(pilots(finished=True))
    until = final.effective_end_us
    final = final._replace(runs=tuple(run for run in final.runs if run.start_us <= until))
    moments = sorted(draw(st.lists(st.integers(0, 3 * HOUR), min_size=1, max_size=5)))
    versions = []
    for moment in (us(moment) for moment in moments):
        now = min(moment, until)
        seen = tuple(
            run
            if run.end_us is not None and run.end_us <= now
            else run._replace(end_us=None, outcome=None)
            for run in final.runs
            if run.start_us <= now
        )
        ended = moment >= until
        versions.append(
            final._replace(
                end_us=until if ended else None,
                now_us=now,
                runs=seen,
                known_until_us=now,
                steps=tuple(
                    step for step in final.steps if step.at_us <= now or step == min(final.steps)
                ),
            )
        )
    return [*versions, final]


@settings(max_examples=examples(100))
@given(histories())
def test_growing_facts_settle_as_if_told_at_once(versions: list[PilotLife]) -> None:
    """The increments of all versions sum to what the last would settle alone; no corrections."""
    increments: list[Sums] = []
    before: PilotLife | None = None
    for version in versions:
        delta = advance(before, version)
        assert delta.corrections == ()
        increments.append(added(delta.increments))
        before = version
    assert summed(*increments) == sums(partition(versions[-1]).settled)


@settings(max_examples=examples(50))
@given(pilots(), st.lists(pilots(), max_size=4))
def test_changing_facts_settle_with_corrections(first: PilotLife, rest: list[PilotLife]) -> None:
    """Whatever the versions say, increments and corrections sum to the last one's partition."""
    posted: Sums = Counter()
    before: PilotLife | None = None
    for version in (first, *rest):
        delta = advance(before, version)
        posted = summed(posted, added(delta.increments), *corrected(delta))
        before = version
    assert posted == sums(partition(before or first).settled)
    assert min(posted.values(), default=1) > 0


@settings(max_examples=examples(30))
@given(pilots(finished=True))
def test_hours_are_right(life: PilotLife) -> None:
    """What is posted in an hour is what the pilot had in that hour."""
    found = partition(life)
    for hour in {row.hour for row in found.settled}:
        window = hour * HOUR * S, (hour + 1) * HOUR * S
        assert partition(life, window).settled == {
            row: micros for row, micros in found.settled.items() if row.hour == hour
        }
