from __future__ import annotations

import doctest

import pytest

from gwmond.model import digits
from gwmond.model.facts import Size
from gwmond.model.sizes import is_below_one_unit, units_of, units_of_pilot
from gwmond.model.units import Resource
from gwmond.sites.need import Need, need_at, own_need
from gwmond.sources.gwms import pilot_output, texts
from gwmond.sources.htcondor import glideresource
from gwmond.sources.htcondor.access import host_and_port
from gwmond.web.connections import host_is_known
from tests.pool import feign
from tests.sources.make import ATTRIBUTES, NOW, classad, heard


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


OTHERS = ("١٤", "\uff11\uff14", "१४", "1٤", "²", "1_4")


def test_examples() -> None:
    assert doctest.testmod(digits).failed == 0


@pytest.mark.parametrize("number", OTHERS)
def test_digits_of_other_scripts_make_no_number(number: str) -> None:
    """Neither of a job's file, nor of a line of its output, nor of an entry's ad."""
    assert not digits.is_number(number)
    assert pilot_output.job_file("job.14.0.out") is not None
    assert pilot_output.job_file(f"job.{number}.0.out") is None
    assert pilot_output.job_file(f"job.14.{number}.err") is None
    assert texts.number(number) is None
    assert texts.number(number.encode()) is None
    assert texts.number("-14", -20) == -14
    assert texts.wall_of_date(f"Mon Feb {number} 22:42:54 PST 2022") is None
    ad = feign.glideresource() | {"GLIDEIN_CPUS": number, "GLIDEIN_ESTIMATED_CPUS": number}
    (request,) = glideresource.decode([classad(heard(ad))], ATTRIBUTES, "cm", NOW).requests
    assert request.pilot_size is None


@pytest.mark.parametrize("number", OTHERS)
def test_they_make_no_port_and_no_address(number: str) -> None:
    """A name is not taken for an address; a port that is none fails nothing."""
    assert not host_is_known(f"{number}.{number}", ())
    assert host_and_port(f"cm.example:{number}") == (f"cm.example:{number}", 9618)
