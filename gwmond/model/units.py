"""Canonical units: the only place where cores, memory and GPUs become units.

A canonical unit of the resource ``cpu`` is one core together with ``memory_per_unit_mib`` MiB of
memory (``memory_per_unit_mib`` is 2000 unless configured); of the resource ``gpu``, one chip.  The
definition is that of the "Accounting of provisioned resources on OSG pool" report (August 2022),
section "Further clarification of Pilot overhead and canonical units".

Memory is in MiB everywhere in gwmond, time in seconds, sizes of slots may be fractional.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, TypeAlias, TypeVar

N = TypeVar("N", int, float)

Resource: TypeAlias = Literal["cpu", "gpu"]
RESOURCES: tuple[Resource, ...] = ("cpu", "gpu")

DEFAULT_MEMORY_MIB = 2000

MAX_CORES = 1e5
"""No pilot has more cores, or GPUs: an ad with more is garbage."""

MAX_MEMORY_MIB = 1e9
"""Nor more memory."""

MICRO = 1_000_000
"""Micros in one: amounts of time are exact integers of 10^-6 of a unit for a second."""


def canonical(
    cores: float, memory_mib: float, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
) -> int:
    """Return how many whole canonical units ``cores`` and ``memory_mib`` offer.

    >>> canonical(3, 3000), canonical(3, 1000), canonical(2, 6000)
    (1, 0, 2)
    """
    return max(0, min(math.floor(cores), math.floor(memory_mib // memory_per_unit_mib)))


def pilot_units(
    cores: float, memory_mib: float, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
) -> int:
    """Return the canonical units of a whole pilot: with one core, at least one (design, section 2).

    >>> pilot_units(1, 1900), pilot_units(8, 16000), pilot_units(0.5, 4000), canonical(1, 1900)
    (1, 8, 0, 0)
    """
    return max(canonical(cores, memory_mib, memory_per_unit_mib), min(math.floor(cores), 1))


def known_sum(values: Iterable[N | None]) -> N | None:
    """Return the sum; absent is not zero: None if one value is None.

    >>> known_sum([1, 2]), known_sum([1, None]), known_sum([])
    (3, None, 0)
    """
    every = list(values)
    present = [value for value in every if value is not None]
    return sum(present) if len(present) == len(every) else None
