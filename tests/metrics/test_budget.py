"""The budget of series of a family."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.metrics.budget import KEPT_LABELS, within
from gwmond.metrics.family import Sample
from gwmond.model.names import OTHER
from tests.examples import examples

LABELS = ("state", "site", "resource", "entry")
KEPT = [i for i, name in enumerate(LABELS) if name in KEPT_LABELS]
names = st.sampled_from(["a", "b", "c", "d", OTHER])
keys = st.tuples(st.sampled_from(["up", "down"]), names, st.sampled_from(["cpu", "gpu"]), names)
values = st.integers(-1000, 1000)
gauges = st.dictionaries(keys, values, max_size=40).map(
    lambda found: [Sample(key, value) for key, value in found.items()]
)
counters = st.dictionaries(
    keys, st.tuples(st.integers(0, 1000), st.integers(0, 5)), max_size=40
).map(lambda found: [Sample(key, value, float(at)) for key, (value, at) in found.items()])


def sums(samples: list[Sample]) -> dict[tuple[str, ...], float]:
    """Sums by the labels that are kept, without those that are zero."""
    found: dict[tuple[str, ...], float] = defaultdict(float)
    for sample in samples:
        found[tuple(sample.labels[i] for i in KEPT)] += sample.value
    return {key: value for key, value in found.items() if value}


@given(gauges | counters, st.integers(1, 50))
def test_invariants(samples: list[Sample], budget: int) -> None:
    """Sums stay, no labels occur twice, and few more than the budget are left."""
    kept, folded = within(samples, LABELS, budget)
    assert sums(kept) == sums(samples)
    assert len({sample.labels for sample in kept}) == len(kept)
    combinations = {tuple(sample.labels[i] for i in KEPT) for sample in samples}
    assert len(kept) <= budget + len(combinations)
    zeros = sum(1 for sample in samples if not sample.value)
    assert len(samples) - budget - zeros <= folded <= max(0, len(samples) - budget)
    if len(samples) <= budget:
        assert kept == samples


@given(counters, st.integers(1, 20), st.data())
@settings(max_examples=examples(200))
def test_counters_never_go_down(before: list[Sample], budget: int, data: st.DataObject) -> None:
    """When counters grow and new ones come, no series that is shown gets less than it was."""
    grown = [s._replace(value=s.value + data.draw(st.integers(0, 500))) for s in before]
    known = {sample.labels for sample in before}
    new = [s._replace(created=10.0) for s in data.draw(counters) if s.labels not in known]
    shown = {s.labels: s.value for s in within(before, LABELS, budget)[0]}
    after = {s.labels: s.value for s in within([*grown, *new], LABELS, budget)[0]}
    assert all(after[labels] >= value for labels, value in shown.items())


@given(counters, st.integers(1, 20), st.data())
def test_a_counter_that_begins_takes_no_place_from_another(
    before: list[Sample], budget: int, data: st.DataObject
) -> None:
    """Zeros take the places that are left, and one that becomes a number none of older ones."""
    real = {sample.labels for sample in before}
    zeros = [Sample(labels, 0) for labels in data.draw(st.lists(keys, unique=True))]
    zeros = [zero for zero in zeros if zero.labels not in real]
    shown = {s.labels: s.value for s in within([*zeros, *before], LABELS, budget)[0]}
    plain = {s.labels: s.value for s in within(before, LABELS, budget)[0]}
    assert plain.items() <= shown.items()
    begun = [zero._replace(value=5, created=10.0) for zero in zeros[:3]]
    after = {s.labels: s.value for s in within([*begun, *zeros[3:], *before], LABELS, budget)[0]}
    assert all(after[labels] >= value for labels, value in shown.items() if value)


def test_largest_gauges_stay() -> None:
    """Of gauges the largest stay as they are, by what they are away from zero."""
    samples = [Sample(("up", site, "cpu", "e"), value) for site, value in zip("abc", (1, -9, 5))]  # noqa: B905
    kept, folded = within(samples, LABELS, 2)
    assert folded == 1
    assert kept == [samples[1], samples[2], Sample(("up", OTHER, "cpu", OTHER), 1)]


def test_oldest_counters_stay() -> None:
    """Of counters the oldest stay, and what is folded began with the oldest of its parts."""
    samples = [
        Sample(("up", "new", "cpu", "e"), 100, 30.0),
        Sample(("up", "old", "cpu", "e"), 1, 10.0),
        Sample(("up", "mid", "cpu", "e"), 7, 20.0),
    ]
    kept, _ = within(samples, LABELS, 1)
    assert kept == [samples[1], Sample(("up", OTHER, "cpu", OTHER), 107, 20.0)]


def test_series_that_is_called_other() -> None:
    """A site that is really called other is added to what was folded."""
    samples = [Sample(("up", site, "cpu", site), value) for site, value in ((OTHER, 9), ("a", 1))]
    assert within(samples, LABELS, 1) == ([Sample(("up", OTHER, "cpu", OTHER), 10)], 1)
