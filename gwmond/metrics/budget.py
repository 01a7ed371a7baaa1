"""Keeps a family within its budget of series: the rest is summed under ``other``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import inf

from gwmond.metrics.family import Sample
from gwmond.model.names import OTHER

# These say what a number is; summing over them would mix unlike things.
KEPT_LABELS = frozenset(
    {
        *("resource", "state", "kind", "use", "status", "category", "outcome", "evidence"),
        *("measure", "event", "cause", "rule", "fate", "agreed"),
    }
)


def _never(_sample: Sample) -> bool:
    return False


def within(
    samples: Sequence[Sample],
    labels: Sequence[str],
    budget: int,
    is_weak: Callable[[Sample], bool] = _never,
) -> tuple[list[Sample], int]:
    """Return at most about ``budget`` samples and how many were folded into ``other``.

    Gauges with the largest values stay, and the oldest counters: one that moved into ``other``
    and out again would make it go down, which reads as a restart.  Counters at 0
    have no ``created`` and go first; before them, and before all other gauges, series of entries
    with a weak claim on their names (``is_weak``).  Of the rest, every label
    but KEPT_LABELS becomes ``other`` and values add up, so that sums over a family stay what they
    are.  Folded zeros are not in the number.
    """
    if len(samples) <= budget:
        return list(samples), 0
    if any(sample.created is not None for sample in samples):
        ranked = sorted(samples, key=lambda s: (is_weak(s), _age(s)))  # stable: as they are given
    else:
        ranked = sorted(samples, key=lambda s: (is_weak(s), -abs(s.value), s.labels))
    folded: dict[tuple[str, ...], list[Sample]] = defaultdict(list)
    for sample in ranked[budget:]:
        key = tuple(
            value if name in KEPT_LABELS else OTHER
            for name, value in zip(labels, sample.labels, strict=True)
        )
        folded[key].append(sample)
    kept = {sample.labels: sample for sample in ranked[:budget]}
    for key, group in folded.items():
        if key in kept:
            group.append(kept[key])
        created = [s.created for s in group if s.created is not None]
        buckets = zip(*(s.buckets for s in group if s.buckets), strict=True)
        kept[key] = Sample(
            key,
            sum(s.value for s in group),
            min(created, default=None),
            tuple(sum(counts) for counts in buckets),
            (None,) * max(len(s.buckets) for s in group),
        )
    return list(kept.values()), sum(1 for sample in ranked[budget:] if sample.value)


def _age(counter: Sample) -> float:
    return inf if counter.created is None else counter.created
