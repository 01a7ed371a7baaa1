"""A pilot's life follows from its facts; where two versions of it differ is found exactly."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Assumption, PilotLife, SizeStep, Validation
from gwmond.model.pilots.pilot_facts import (
    AdFacts,
    Decisions,
    DefaultSize,
    FailedAdFacts,
    Origin,
    OutputFacts,
    PilotFacts,
    QueueFacts,
    RunBounds,
    SummaryFacts,
    replace,
)
from gwmond.pilots.life.derive import (
    END_RULES,
    START_RULES,
    Known,
    Start,
    changed_since,
    ends_of,
    life_of,
)
from gwmond.pilots.life.partition import Delta, advance, own_category
from gwmond.pilots.life.rules import FAR_US
from tests.build.site_sums import Sums, added, sums
from tests.examples import examples

S = 10**6
T0 = 1_700_000_000 * S
times = st.integers(0, 20).map(lambda n: T0 + n * 300 * S)
maybe = st.none() | times
sizes = st.builds(Size, st.integers(1, 4), st.just(2000), st.integers(0, 1))
steps = st.lists(st.builds(SizeStep, times, sizes), max_size=2, unique_by=lambda step: step.at_us)
SOURCES = {
    "ads": st.builds(
        AdFacts,
        last_heard_us=times,
        began_us=maybe,
        sizes=steps.map(sorted).map(tuple),
        end_source=st.sampled_from(["", "shutdown", "ad_expired"]),
        end_us=maybe,
        missing_since_us=maybe,
    ),
    "failed_ads": st.builds(FailedAdFacts, times, times, end_us=maybe),
    "output": st.builds(
        OutputFacts,
        times,
        times,
        start_us=maybe,
        end_us=maybe,
        validation=st.sampled_from(Validation),
        ran_jobs=st.none() | st.booleans(),
        registered=st.none() | st.just(value=False),
        cores=st.none() | st.just(2),
    ),
    "queue": st.builds(QueueFacts, maybe, maybe),
    "summary": st.builds(SummaryFacts, st.sampled_from(Validation)),
    "central_log_us": times,
    "runs": st.builds(RunBounds, times, times, sizes),
    "decisions": st.builds(
        Decisions,
        size=st.builds(DefaultSize, sizes, st.sampled_from([(), (Assumption.SIZE,)])),
        given_up_us=maybe,
        quiet=st.booleans(),
    ),
}
facts = st.builds(
    lambda first_us, known: PilotFacts(**{"runs": RunBounds(first_us=first_us), **known}),
    times,
    st.fixed_dictionaries({}, optional=SOURCES),
)


def known_of(known: PilotFacts, origin: Origin) -> Known:
    """What a life is derived from, with a beginning."""
    runs = known.runs if known.runs.first_us is not None else RunBounds(first_us=T0)
    return Known(replace(known, runs=runs), origin)


def known_whole(life: PilotLife) -> PilotLife:
    """A life without runs, all of which is known."""
    return life._replace(known_until_us=FAR_US)


def net(delta: Delta) -> Sums:
    """What is posted in the end."""
    net_sums = added(delta.increments)
    for correction in delta.corrections:
        net_sums.update(sums({correction.row: correction.micros}))
    return Counter({what: micros for what, micros in net_sums.items() if micros})


@settings(max_examples=examples(300))
@given(facts, facts, st.sampled_from(get_args(Origin)))
def test_nothing_differs_before_it_is_said_to(
    one: PilotFacts, other: PilotFacts, origin: Origin
) -> None:
    """What is posted within that window is the whole difference of two versions."""
    before, after = life_of(known_of(one, origin)), life_of(known_of(other, origin))
    was, now = known_whole(before), known_whole(after)
    since_us = changed_since(before, after)
    window_us = min(FAR_US if since_us is None else since_us, advance(None, was).settled_to_us)
    if own_category(was) != own_category(now):
        window_us = min(window_us, was.start_us, now.start_us)
    assert net(advance(was, now, (window_us, FAR_US))) == net(advance(was, now))


@settings(max_examples=examples(300))
@given(facts, st.sampled_from(get_args(Origin)))
def test_the_first_rule_that_applies_decides(one: PilotFacts, origin: Origin) -> None:
    """Of the beginning and the end, in the order of the tables."""
    known = known_of(one, origin)
    derived = life_of(known)
    starts = [start for _, rule in START_RULES if (start := rule(known)) is not None]
    assert isinstance(starts[0], Start)
    assert derived.start_us == starts[0].at_us
    ends = ends_of(known)
    assert derived.end_source == next((source for source, *_ in END_RULES if source in ends), "")
    if derived.end_us is not None:
        assert derived.end_us >= max(ends[derived.end_source], derived.start_us)
    assert all(start < end for start, end in derived.assumed.values())
