"""Counters of entries and groups that are kept apart; those of others are not shown (``[names]``).

The ledger keeps all counts: a counter that comes back continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter

from gwmond.metrics.family import Family, Sample
from gwmond.model.names import OTHER
from gwmond.model.poll.snapshot import KeptNames


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
