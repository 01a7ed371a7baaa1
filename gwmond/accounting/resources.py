"""Canonical units of one resource: what a slot or pilot offers, and what a job needs."""

from __future__ import annotations

from gwmond.facts import Size
from gwmond.units import DEFAULT_MEMORY_MIB, Resource, canonical, need


def units_of(size: Size, resource: Resource, q: int = DEFAULT_MEMORY_MIB) -> int:
    """Return the canonical units of ``resource`` that a slot or pilot of this size offers.

    >>> units_of(Size(8, 16000, 2), "cpu"), units_of(Size(8, 16000, 2), "gpu")
    (8, 2)
    """
    return size.gpus if resource == "gpu" else canonical(size.cores, size.memory_mib, q)


def need_of(size: Size, resource: Resource, q: int = DEFAULT_MEMORY_MIB) -> int:
    """Return the canonical units of ``resource`` that one job needs; 0 if it does not use it.

    >>> need_of(Size(1, 4001), "cpu"), need_of(Size(1, 4001), "gpu")
    (3, 0)
    """
    return size.gpus if resource == "gpu" else need(size.cores, size.memory_mib, q)
