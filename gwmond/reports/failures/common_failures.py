"""Failed validations that are no site's: the same test at all entries, or at all of one group.

Pilots are counted.  (A poll asks this, and loads no ledger for it.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from gwmond.model.pilots.file_facts import FailureClass

WIDE, MOSTLY = 3, 0.9
"""A test that fails so many pilots at each of so many entries is said to fail at all of them."""
_CLASSES = {failure_class.value for failure_class in FailureClass}


OfGroup: TypeAlias = tuple[str, str, str]
"""A frontend group, an entry, and what the validation of pilots there failed (empty: nothing)."""


class CommonFailure(NamedTuple):
    """A test that fails at all entries of a group; ``group`` empty: of all groups."""

    test: str
    group: str
    entries: frozenset[str]

    @property
    def text(self) -> str:
        """It in words."""
        name, number = self.test.rpartition("/")[2], len(self.entries)
        if not self.group:
            return (
                f"{name} fails at all {number} entries: the factory's or the frontend's script or "
                "credentials, not a site's"
            )
        return (
            f"{name} fails for {self.group} at all {number} entries, and for no other group there: "
            "the frontend's script or credentials, not a site's"
        )

    def covers(self, group: str, entry: str) -> bool:
        """Return whether a group's pilots at an entry fail so; a group that is empty: of any."""
        return entry in self.entries and (not group or self.group in ("", group))


def common(pilots: Mapping[OfGroup, int]) -> Iterator[CommonFailure]:
    """Yield the failures that are no site's."""
    every, failed = Counter[tuple[str, str]](), Counter[tuple[str, str, str]]()
    for (group, entry, failure), number in pilots.items():
        every[group, entry] += number
        if failure:
            failed[split(failure)[1], group, entry] += number

    def entries(test: str, group: str) -> frozenset[str]:
        """Return a group's entries if nearly all of its pilots fail a test at each, else none."""
        at = {entry: number for (g, entry), number in every.items() if g == group}
        all_fail = all(failed[test, group, e] >= MOSTLY * number for e, number in at.items())
        return frozenset(at) if all_fail else frozenset()

    groups = sorted({group for group, _ in every})
    for test in sorted({test for test, _, _ in failed if test}):
        fails = {group: entries(test, group) for group in groups}
        there = frozenset[str]().union(*fails.values())
        if all(fails.values()) and len(there) >= WIDE:
            yield CommonFailure(test, "", there)
            continue
        for group in groups:
            others = [
                g for g in groups if g != group and any(every[g, entry] for entry in fails[group])
            ]
            elsewhere = any(t == test and g in others for t, g, _ in failed)
            if len(fails[group]) >= WIDE and others and not elsewhere:
                yield CommonFailure(test, group, fails[group])


def split(failure: str) -> tuple[str, str]:
    """Return class and test of a failure as pilots' facts have it.

    >>> split("WN_Resource main/validate_node.sh"), split("a.sh"), split("Unknown")
    (('WN_Resource', 'main/validate_node.sh'), ('', 'a.sh'), ('Unknown', ''))
    """
    kind, _, test = failure.partition(" ")
    return (kind, test) if kind in _CLASSES else ("", failure)
