"""The unit file: valid, tight, and explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.systemd.unit import UNIT, analyze, settings, values

EXPOSURE = 2.0
_PATH = re.compile(r"(?<![\w.])/[\w./-]+\w")


def test_systemd_finds_nothing_to_complain_about(tmp_path: Path) -> None:
    """Only the programs are replaced, for they are not installed where tests run."""
    copy = tmp_path / UNIT.name
    program = values("ExecStart")[0].split()[0]
    copy.write_text(UNIT.read_text().replace(f"ExecStart={program}", "ExecStart=/bin/true"))

    verified = analyze("verify", "--man=no", str(copy))

    # Of all of a host's units that it loads, what is said of this one counts.
    complaints = [line for line in verified.stderr.splitlines() if "gwmond" in line]
    assert complaints == []
    assert verified.returncode == 0, verified.stderr


def test_exposure_is_low() -> None:
    """The number of systemd-analyze security, 0 (none) to 10, is below 2."""
    review = analyze("security", "--offline=true", str(UNIT))

    overall = re.search(r"Overall exposure level for gwmond\.service: ([\d.]+)", review.stdout)
    assert overall, review.stdout + review.stderr
    assert float(overall[1]) < EXPOSURE, review.stdout


@pytest.mark.parametrize(
    "switch",
    ["ProtectSystem_strict", "PrivateUsers", "NoNewPrivileges", "MemoryDenyWriteExecute"],
)
def test_what_matters_most_is_on(switch: str) -> None:
    """The exposure is a sum: these must not be traded for others."""
    review = analyze("security", "--offline=true", "--json=short", str(UNIT))

    found = {item["json_field"]: item["set"] for item in json.loads(review.stdout)}
    wanted = [found[name] for name in found if name in (switch, switch.partition("_")[0])]
    assert wanted == [True], sorted(found)


def test_every_setting_is_explained() -> None:
    """Each stands in a group below a comment."""
    bare = [s.name for s in settings() if not s.comment and s.section == "Service"]
    assert bare == []


def test_every_path_is_one_that_the_installation_makes() -> None:
    """Of every host are two programs; what else is named, the lines at the top make."""
    everywhere = {"/bin/cp", "/bin/kill", "/run"}
    head = UNIT.read_text().partition("[Unit]")[0]
    for setting in settings():
        for path in _PATH.findall(setting.value):
            made = {"/opt/gwmond", "/etc/gwmond"} & {"/".join(path.split("/")[:3])}
            assert path in everywhere or made, setting
            assert all(directory in head for directory in made)


def test_restarts_are_for_what_a_restart_can_mend() -> None:
    """Exit code 2, a bad configuration, is not among it, and the number of starts is limited."""
    assert values("Restart") == ["on-failure"]
    assert values("RestartPreventExitStatus") == ["2"]
    assert values("StartLimitBurst")
    assert values("StartLimitIntervalSec")


def test_one_failed_query_is_no_failed_service() -> None:
    """A query's process that is killed for lack of memory leaves the daemon alone."""
    assert values("OOMPolicy") == ["continue"]
    assert int(values("OOMScoreAdjust")[0]) > 0
