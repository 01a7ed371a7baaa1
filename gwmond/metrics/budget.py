"""Keeps a family within its budget of series: the rest is summed under ``other``.

Counters of entries and groups that were forgotten are not shown (``[names]``).  The ledger keeps
all counts: a counter that comes back continues.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import inf
from operator import itemgetter
from typing import Any

from gwmond.metrics.family import Family, Sample
from gwmond.model.names import OTHER
from gwmond.model.poll.snapshot import KeptNames

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
    counters = any(sample.created is not None for sample in samples)
    rank: Callable[[Sample], Any] = _age if counters else _size  # same age: as they are given
    strong: list[Sample] = []
    weak: list[Sample] = []
    for sample in samples:
        (weak if is_weak(sample) else strong).append(sample)
    ranked = sorted(strong, key=rank) + sorted(weak, key=rank)
    folded: dict[tuple[str, ...], list[Sample]] = defaultdict(list)
    at = [place for place, name in enumerate(labels) if name in KEPT_LABELS]
    for sample in ranked[budget:]:
        values = sample.labels
        folded[tuple([values[place] for place in at])].append(sample)
    kept = {sample.labels: sample for sample in ranked[:budget]}
    for values, group in folded.items():
        by_place = dict(zip(at, values, strict=True))
        key = tuple(by_place.get(place, OTHER) for place in range(len(labels)))
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


def _size(gauge: Sample) -> tuple[float, tuple[str, ...]]:
    return -abs(gauge.value), gauge.labels


def shown(family: Family, samples: Iterable[Sample], names: KeptNames | None) -> list[Sample]:
    """Return the samples without counters of entries and groups that were forgotten."""
    if names is None or not _is_of_entries(family):
        return list(samples)
    entry_of = _entry(family)
    entries, groups = names.entries, names.groups
    if "group" not in family.labels:
        return [s for s in samples if (entry := entry_of(s.labels)) in entries or _is_other(entry)]
    at = family.labels.index("group")

    def has_group(labels: tuple[str, ...]) -> bool:
        entry, group = entry_of(labels), labels[at]
        return (entry in entries and (group == OTHER or (entry, group) in groups)) or _is_other(
            entry
        )

    return [sample for sample in samples if has_group(sample.labels)]


def weak(family: Family, names: KeptNames | None) -> Callable[[Sample], bool]:
    """Return a function: does a sample belong to an entry with a weak claim on its name?"""
    if names is None or not names.weak or not {"site", "entry"} <= {*family.labels}:
        return lambda _: False
    entry_of, weak_names = _entry(family), names.weak
    return lambda sample: entry_of(sample.labels) in weak_names


def _is_of_entries(family: Family) -> bool:
    return family.kind in {"counter", "histogram"} and {"site", "entry"} <= {*family.labels}


def _entry(family: Family) -> Callable[[tuple[str, ...]], tuple[str, str]]:
    """Return a function: the entry that labels name, which equals its EntryKey."""
    return itemgetter(family.labels.index("site"), family.labels.index("entry"))


def _is_other(entry: tuple[str, str]) -> bool:
    return entry[0] == OTHER
