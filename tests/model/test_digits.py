"""Numbers of strangers are those of the digits 0 to 9, in file names, logs, ads and requests."""

from __future__ import annotations

import doctest

import pytest

from gwmond.model import digits
from gwmond.sources.gwms import pilot_output, texts
from gwmond.sources.htcondor import glideresource
from gwmond.sources.htcondor.access import host_and_port
from gwmond.web.connections import host_is_known
from tests.pool import feign
from tests.sources.make import ATTRIBUTES, NOW, classad, heard

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
