"""The script that switches overlap on, with GlideinWMS's own functions."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.glideinwms import source

SCRIPT = Path(__file__).parents[2] / "etc/condor/overlap.sh"
NAMES = ("OVERLAP_SENDERS", "LOCAL_CONFIG_FILE")
ATTRIBUTES = {"GLIDEIN_Overlap_Percent": "100", "SLOTS_LAYOUT": "partitionable"}


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GlideinWMS's add_config_line.source."""
    into = tmp_path_factory.mktemp("glideinwms")
    source.unpack(source.found(), into)
    return next(into.rglob("creation/web_base/add_config_line.source"))


@pytest.fixture
def pilot(functions: Path, tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Run the script as a pilot does: what it says, and OVERLAP_SENDERS as HTCondor then has it."""
    script = tmp_path / "entry_SiteA" / SCRIPT.name
    script.parent.mkdir()
    shutil.copy(SCRIPT, script)
    conf = script.with_suffix(".conf")

    def run(*, beside: bool = True, **attributes: str) -> tuple[str, str]:
        shutil.copy(functions, tmp_path / "functions")
        conf.unlink(missing_ok=True)
        if beside:
            conf.touch()
        config, variables = tmp_path / "glidein_config", tmp_path / "condor_vars.lst"
        variables.write_text("GLIDEIN_Max_Idle I 1200 + N Y -\n")
        lines = {
            "ADD_CONFIG_LINE_SOURCE": tmp_path / "functions",
            "ERROR_GEN_PATH": "/bin/true",
            "CONDOR_VARS_FILE": variables,
            **ATTRIBUTES,
            **attributes,
        }
        config.write_text("".join(f"{key} {value}\n" for key, value in lines.items() if value))
        done = subprocess.run([script, config], capture_output=True, text=True, check=True)
        named = variables.read_text().splitlines()[1:]
        values = dict(line.split(" ", 1) for line in config.read_text().splitlines())
        assert named == [f"{name} C - + N N -" for name in NAMES if name in values]
        others = attributes.get("LOCAL_CONFIG_FILE")
        read = f"{others},{conf}" if others else str(conf)
        assert values.get("LOCAL_CONFIG_FILE") == (read if named else others)
        return done.stdout, values.get("OVERLAP_SENDERS", "")

    return run


def test_the_script_switches_it_on(pilot: Callable[..., tuple[str, str]]) -> None:
    assert pilot() == ("overlap: on: 1 senders for each core\n", "1")
    assert pilot(GLIDEIN_Overlap_Senders="3")[1] == "3"
    assert pilot(SLOTS_LAYOUT="fixed", GLIDEIN_CPUS="1")[1] == "1"
    assert pilot(LOCAL_CONFIG_FILE="/etc/more.conf")[1] == "1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GLIDEIN_Overlap_Percent", ""),
        ("GLIDEIN_Overlap_Percent", "0"),
        ("GLIDEIN_Overlap_Percent", "half; false"),
        ("GLIDEIN_Overlap_Senders", "0"),
        ("GLIDEIN_Resource_Slots", "GPUs,2,,main"),
        ("GLIDEIN_Monitoring_Enabled", "True"),
        ("SLOTS_LAYOUT", "fixed"),
    ],
)
def test_the_script_leaves_a_pilot_as_it_is(
    pilot: Callable[..., tuple[str, str]], name: str, value: str
) -> None:
    """It says why, and the pilot goes on."""
    said, senders = pilot(**{name: value})
    assert said.startswith("overlap: off: ")
    assert senders == ""


def test_the_script_does_nothing_alone(pilot: Callable[..., tuple[str, str]]) -> None:
    """HTCondor would not start with a file that is not there."""
    assert pilot(beside=False)[0].startswith("overlap: off: no overlap.conf")


def test_chance_draws_the_pilots(pilot: Callable[..., tuple[str, str]]) -> None:
    """Of thirty pilots with 50 % some have it and some do not: else once in 500 million times."""
    assert {pilot(GLIDEIN_Overlap_Percent="50")[1] for _ in range(30)} == {"", "1"}
