"""Counters of entries and groups that are kept apart; those of others are not shown (``[names]``).

The ledger keeps all counts: a counter that comes back continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gwmond.metrics.family import Family, Sample
from gwmond.model.facts import EntryKey
from gwmond.model.names import OTHER
from gwmond.model.snapshot import KeptNames


def shown(family: Family, samples: Iterable[Sample], names: KeptNames | None) -> list[Sample]:
    """Return the samples without counters of entries and groups that were forgotten."""
    if names is None or not _is_of_entries(family):
        return list(samples)
    key = _key(family)
    if "group" not in family.labels:
        return [s for s in samples if _has(names, key(s))]
    at = family.labels.index("group")

    def has_group(sample: Sample) -> bool:
        entry, group = key(sample), sample.labels[at]
        return _has(names, entry) and (
            OTHER in (entry.site, group) or (entry, group) in names.groups
        )

    return [sample for sample in samples if has_group(sample)]


def weak(family: Family, names: KeptNames | None) -> Callable[[Sample], bool]:
    """Return a function: does a sample belong to an entry with a weak claim on its name?"""
    if names is None or not names.weak or not {"site", "entry"} <= {*family.labels}:
        return lambda _: False
    key = _key(family)
    return lambda sample: key(sample) in names.weak


def _is_of_entries(family: Family) -> bool:
    return family.kind in {"counter", "histogram"} and {"site", "entry"} <= {*family.labels}


def _key(family: Family) -> Callable[[Sample], EntryKey]:
    site, entry = family.labels.index("site"), family.labels.index("entry")
    return lambda sample: EntryKey(sample.labels[site], sample.labels[entry])


def _has(names: KeptNames, key: EntryKey) -> bool:
    return key.site == OTHER or key in names.entries
