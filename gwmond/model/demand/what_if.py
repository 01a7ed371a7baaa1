"""One change of the pool, of which is asked what it would move."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.facts import DemandGroup, EntryKey, Size
from gwmond.model.units import MAX_CORES, MAX_MEMORY_MIB

WhatIfKind: TypeAlias = Literal["memory", "cores", "pilot", "limit", "max-idle", "start", "down"]
CHANGES: Mapping[WhatIfKind, str] = {
    "memory": "memory (MiB) that jobs of an accounting group request",
    "cores": "cores that jobs of an accounting group request",
    "pilot": "cores, or CORES,MIB, of an entry's new pilots",
    "limit": "pilots of ours that may run at an entry",
    "max-idle": "pilots that may wait at an entry at once",
    "start": "START of a frontend group's pilots",
    "down": "an entry, or a site, is down (to: nothing)",
}
OF_JOBS: frozenset[WhatIfKind] = frozenset(("memory", "cores"))
MOST_START = 4096
"""So many characters has the START that is asked about at most."""
NO_GROUP = "none"
"""Stands for the accounting group of jobs that have none."""
_MOST_PILOTS = 1e6
_NUMBER = re.compile(r"[0-9]{1,9}")


class WhatIf(NamedTuple):
    """A change, and of what: jobs, entries, or pilots of a frontend group.

    ``number``: MiB or cores that each job requests, cores of a pilot, or a number of pilots.
    ``memory_mib``: of a pilot; None: in proportion to its cores.
    """

    kind: WhatIfKind
    of: str
    number: int = 0
    memory_mib: int | None = None
    start: str = ""

    def has_jobs(self, group: DemandGroup) -> bool:
        """Return whether it is of the jobs of a group.

        They are named by their accounting group, or as the group's sample is.
        """
        named = group.accounting_group or NO_GROUP, group.sample, f"{group.schedd}#{group.sample}"
        return self.kind in OF_JOBS and self.of in named

    def has_entry(self, key: EntryKey) -> bool:
        """Return whether it is of an entry: named alone, by its site, or as SITE/ENTRY."""
        is_of_entries = self.kind not in OF_JOBS and self.kind != "start"
        return is_of_entries and self.of in (*key, "/".join(key))

    def has_pilots(self, key: EntryKey, group: str) -> bool:
        """Return whether it changes what the empty pilots of an entry and a frontend group are."""
        return (self.kind == "start" and group == self.of) or (
            self.kind == "pilot" and self.has_entry(key)
        )

    def size_of(self, pilot: Size) -> Size:
        """Return the size of a pilot with the change; it keeps its GPUs."""
        memory = self.memory_mib
        if memory is None:
            memory = int(pilot.memory_mib * self.number / pilot.cores) if pilot.cores else 0
        return pilot._replace(cores=self.number, memory_mib=memory)


def what_if(kind: WhatIfKind, of: str, value: str) -> WhatIf:
    """Return the change that is asked about; raises ValueError, with what is wrong in words.

    >>> what_if("pilot", "ce1", "16,32000").memory_mib, what_if("down", "Site", "").kind
    (32000, 'down')
    """
    of, value = of.strip(), value.strip()
    if not of:
        raise ValueError(f"{kind} of what? Give {_OF[kind]}")
    if kind == "down":
        if value:
            raise ValueError("down has no value")
        return WhatIf(kind, of)
    if kind == "start":
        if not value or len(value) > MOST_START:
            raise ValueError(f"start: give an expression of {MOST_START} characters at most")
        return WhatIf(kind, of, start=value)
    cores, comma, memory = value.partition(",")
    if comma and kind != "pilot":
        raise ValueError(f"{kind}: {value} is not one whole number")
    return WhatIf(
        kind,
        of,
        _whole(kind, cores, _MOST[kind], least=int(kind not in ("limit", "max-idle"))),
        _whole(kind, memory, MAX_MEMORY_MIB, least=1) if comma else None,
    )


def _whole(kind: WhatIfKind, text: str, most: float, least: int) -> int:
    text = text.strip()
    if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
        raise ValueError(f"{kind}: {text or 'nothing'} is no whole number from {least} to {most:g}")
    return int(text)


_MOST: dict[WhatIfKind, float] = {
    "memory": MAX_MEMORY_MIB,
    "cores": MAX_CORES,
    "pilot": MAX_CORES,
    "limit": _MOST_PILOTS,
    "max-idle": _MOST_PILOTS,
}
_ENTRY = "an entry, SITE/ENTRY, or a site"
_JOBS = "an accounting group, or a job as the page Explain lists it"
_OF: dict[WhatIfKind, str] = {
    "memory": _JOBS,
    "cores": _JOBS,
    "pilot": _ENTRY,
    "limit": _ENTRY,
    "max-idle": _ENTRY,
    "start": "a frontend group, such as frontend.main",
    "down": _ENTRY,
}
