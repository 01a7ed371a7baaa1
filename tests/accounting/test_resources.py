from __future__ import annotations

import pytest

from gwmond.accounting.resources import need_of, units_of
from gwmond.facts import Size
from gwmond.units import Resource


@pytest.mark.parametrize(
    ("size", "resource", "units"),
    [
        (Size(3, 3000), "cpu", 1),
        (Size(3, 1000), "cpu", 0),
        (Size(2, 6000), "cpu", 2),
        (Size(8, 16000, 2), "cpu", 8),
        (Size(8, 16000, 2), "gpu", 2),
        (Size(8, 16000), "gpu", 0),
        (Size(0.5, 16000), "cpu", 0),
    ],
)
def test_units_are_those_of_the_2022_report(size: Size, resource: Resource, units: int) -> None:
    """The report's three examples hold, and a GPU unit is one chip."""
    assert units_of(size, resource) == units


@pytest.mark.parametrize(
    ("size", "resource", "units"),
    [
        (Size(1, 1000), "cpu", 1),
        (Size(1, 4001), "cpu", 3),
        (Size(8, 16000), "cpu", 8),
        (Size(0, 0), "cpu", 1),
        (Size(1, 2000, 2), "gpu", 2),
        (Size(64, 2000), "gpu", 0),
    ],
)
def test_need_is_the_larger_of_cores_and_memory(size: Size, resource: Resource, units: int) -> None:
    """A job needs the larger of its cores and memory; without GPUs it needs no gpu."""
    assert need_of(size, resource) == units


def test_the_unit_of_memory_is_configured() -> None:
    """Another size of the canonical unit changes offers and needs alike."""
    assert units_of(Size(8, 16000), "cpu", 4000) == 4
    assert need_of(Size(1, 8000), "cpu", 4000) == 2
