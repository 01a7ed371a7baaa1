"""Canonical units of one resource: of a pilot, and of a slot or remainder."""

from __future__ import annotations

from functools import lru_cache

from gwmond.model.facts import Size
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource, canonical, pilot_units


@lru_cache(10_000)  # there are few sizes, and each poll asks for those of all pilots
def units_of(size: Size, resource: Resource, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB) -> int:
    """Return the canonical units of ``resource`` that a slot, or a remainder, of this size offers.

    >>> units_of(Size(8, 16000, 2), "cpu"), units_of(Size(1, 1900, 2), "cpu")
    (8, 0)
    """
    return (
        int(size.gpus)
        if resource == "gpu"
        else canonical(size.cores, size.memory_mib, memory_per_unit_mib)
    )


@lru_cache(10_000)
def units_of_pilot(
    size: Size, resource: Resource, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
) -> int:
    """Return the canonical units of ``resource`` that a whole pilot of this size is.

    >>> units_of_pilot(Size(1, 1900, 2), "cpu"), units_of_pilot(Size(1, 1900, 2), "gpu")
    (1, 2)
    """
    return (
        int(size.gpus)
        if resource == "gpu"
        else pilot_units(size.cores, size.memory_mib, memory_per_unit_mib)
    )


def is_below_one_unit(size: Size, memory_per_unit_mib: int = DEFAULT_MEMORY_MIB) -> bool:
    """Return whether a pilot of this size is a unit only because a pilot is at least one."""
    return units_of_pilot(size, "cpu", memory_per_unit_mib) > units_of(
        size, "cpu", memory_per_unit_mib
    )
