"""What was changed at entries and groups: one row when a value changes, and what makes the rows.

Units: times are microseconds since the epoch; values are texts as operators know them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from gwmond.model.facts import EntryKey, EntryRequest, EntryTotals, Template
from gwmond.model.times import DAY_US

A_DAY = 24
"""So many changes of one value are noted in a day (UTC); a value that flaps is no change."""
_VALUE = 1000
_LIMIT = re.compile(r"\b(?:limit|curb)=([0-9]+)")


class Changed(StrEnum):
    """What is followed; a limit or curb that was hit has the name of its attribute."""

    DOWNTIME = "downtime"
    MAX_PILOTS = "max_pilots"
    PILOT_SIZE = "pilot_size"
    START = "start"
    HTCONDOR = "htcondor"
    FRONTEND = "frontend_configuration"
    FACTORY = "factory_configuration"


class ValueKey(NamedTuple):
    """A value of an entry, or of the pilots of a group there."""

    site: str
    entry: str
    group: str
    name: str


Values: TypeAlias = Mapping[ValueKey, str]


class Value(NamedTuple):
    """What a value is from a time on, as far as that was seen."""

    key: ValueKey
    time_us: int
    value: str


def values(
    totals: Mapping[EntryKey, EntryTotals],
    requests: Iterable[EntryRequest],
    templates: Iterable[Template],
) -> dict[ValueKey, str]:
    """Return what is known now; a value that is not known is not there, and so has not changed."""
    found: dict[ValueKey, str] = {}
    for entry, total in totals.items():
        found[ValueKey(*entry, "", Changed.DOWNTIME)] = "yes" if total.down else "no"
        if total.max_pilots is not None:
            found[ValueKey(*entry, "", Changed.MAX_PILOTS)] = str(total.max_pilots)
    for request in requests:
        for limit in request.limits:
            if number := _LIMIT.search(limit.text):
                found[ValueKey(*request.entry, request.group, limit.name)] = number[1]
    for template in templates:
        if template.evidence == "measured":
            for name, text in _of_pilots(template):
                found[ValueKey(*template.entry, template.group, name)] = _storable(text)
    return found


def _of_pilots(template: Template) -> Iterator[tuple[str, str]]:
    cores, memory_mib, gpus = template.size
    yield Changed.PILOT_SIZE, f"{cores:g} cores, {memory_mib:g} MiB, {gpus:g} GPUs"
    if template.start:
        yield Changed.START, template.start
    yield from template.versions


def _storable(text: str) -> str:
    """Return a text that comes back from the ledger as it is; a long one ends with its hash."""
    text = text if text.isascii() and text.isprintable() else ascii(text)[1:-1]
    if len(text) <= _VALUE:
        return text
    return f"{text[:_VALUE]}... {hashlib.sha256(text.encode()).hexdigest()[:16]}"


class ValueLog:
    """The latest values, by those of the ledger."""

    def __init__(self, latest: Iterable[Value] = ()) -> None:
        self._latest = {row.key: row.value for row in latest}
        self._noted: dict[ValueKey, int] = {}  # today
        self._day = 0

    def step(self, now_us: int, now: Values) -> list[Value]:
        """Return the values that are new, or others than before."""
        if now_us // DAY_US != self._day:
            self._day, self._noted = now_us // DAY_US, {}
        changed = []
        for key, value in now.items():
            if self._latest.get(key) != value and self._noted.get(key, 0) < A_DAY:
                self._latest[key] = value
                self._noted[key] = self._noted.get(key, 0) + 1
                changed.append(Value(key, now_us, value))
        return changed
