from __future__ import annotations

import pytest

from gwmond.model.facts import Size
from gwmond.model.sizes import is_below_one_unit, units_of, units_of_pilot
from gwmond.model.units import Resource
from gwmond.sites.need import Need, need_at, own_need


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


def test_the_unit_of_memory_is_configured() -> None:
    """Another size of the canonical unit changes offers and needs alike."""
    assert units_of(Size(8, 16000), "cpu", 4000) == 4
    assert need_at(Size(1, 8000), Size(8, 16000), 4000) == Need(2)
    assert own_need(Size(1, 8000), 4000) == Need(2)


@pytest.mark.parametrize(
    ("size", "units", "below"),
    [
        (Size(1, 1900), 1, True),  # never nothing
        (Size(2, 1900), 1, True),
        (Size(1, 0), 1, True),
        (Size(1, 2000), 1, False),
        (Size(8, 15900), 7, False),
        (Size(0.9, 1900), 0, False),  # less than a core
        (Size(0, 16000, 1), 0, False),
    ],
)
def test_a_pilot_with_a_core_is_at_least_one_unit(size: Size, units: int, below: bool) -> None:
    """A pilot is, as a whole; a remainder of the same size may be none."""
    assert units_of_pilot(size, "cpu") == units
    assert is_below_one_unit(size) is below
    assert (units_of(size, "cpu") == units) is not below
    assert units_of_pilot(size, "gpu") == size.gpus
