"""The unit file: valid, tight, and explained."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.systemd.unit import REPOSITORY, UNIT, analyze, settings, values

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


def test_exposure_is_low(tmp_path: Path) -> None:
    """The number of systemd-analyze security, 0 to 10; a list of networks makes it lower."""
    known = tmp_path / UNIT.name
    drop_in = "\n[Service]\nIPAddressDeny=any\nIPAddressAllow=localhost 192.0.2.0/24\n"
    known.write_text(UNIT.read_text() + drop_in)
    for unit, exposure in ((UNIT, "1.2"), (known, "1.1")):
        review = analyze("security", "--offline=true", str(unit))
        overall = re.search(r"Overall exposure level for gwmond\.service: ([\d.]+)", review.stdout)
        assert overall, review.stdout + review.stderr
        assert float(overall[1]) <= float(exposure), review.stdout


def test_what_is_left_open_has_its_reason() -> None:
    """docs/security.md has a row for each setting that could still be tighter, and no other."""
    review = analyze("security", "--offline=true", "--json=short", str(UNIT))
    left = {item["json_field"] for item in json.loads(review.stdout) if item["exposure"]}
    assert left <= {
        *("PrivateNetwork", "IPAddressDeny", "DeviceAllow", "RootDirectoryOrRootImage"),
        "SystemCallFilter_resources",
        *(f"RestrictAddressFamilies_AF_{name}" for name in ("INET_INET6", "NETLINK", "UNIX")),
    }


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


def test_neither_memory_nor_log_can_spill() -> None:
    """No core dump holds secrets, and the log of the host is not filled."""
    assert values("LimitCORE") == ["0"]
    assert int(values("LogRateLimitBurst")[0]) <= 1000
    assert values("LogRateLimitIntervalSec")


def test_one_failed_query_is_no_failed_service() -> None:
    """A query's process that is killed for lack of memory leaves the daemon alone."""
    assert values("OOMPolicy") == ["continue"]
    assert int(values("OOMScoreAdjust")[0]) > 0


def _typed(lines: list[str], indent: str) -> list[str]:
    """The commands from the first line that begins so to the next that does not, uncommented."""
    start = next(at for at, line in enumerate(lines) if line.startswith(f"{indent}python3 -m venv"))
    found: list[str] = []
    for line in lines[start:]:
        if not line.startswith(indent):
            return found
        found.append(re.sub(r"\s+#.*", "", line.removeprefix(indent)))
    raise AssertionError("the commands have no end")


def test_readme_and_unit_say_the_same() -> None:
    """There is one way to install it."""
    head = UNIT.read_text().partition("[Unit]")[0].splitlines()
    readme = (REPOSITORY / "README.md").read_text().splitlines()
    assert _typed(head, "#   ") == _typed(readme, "    ")


_FEIGNED = """#!/bin/sh
echo "$(basename "$0") $*" >>"$ROOT/called"
case "$*" in
"-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/pip"; cp "$0" "$3/bin/gwmond" ;;
check*) ls "$_CONDOR_SEC_TOKEN_DIRECTORY" >>"$ROOT/called" ;;
esac
"""


def test_what_is_to_be_typed_works(tmp_path: Path) -> None:
    """Below another root, with programs that only note that they were called, nothing fails."""
    tools, copy, called = tmp_path / "tools", tmp_path / "copy", tmp_path / "called"
    tools.mkdir()
    for name in ("python3", "systemctl"):
        (tools / name).write_text(_FEIGNED)
        (tools / name).chmod(0o755)
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    for name in ("etc/gwmond.toml", "systemd/gwmond.service"):
        (copy / name).parent.mkdir(parents=True)
        (copy / name).write_bytes((REPOSITORY / name).read_bytes())
    (copy / "gwmond.token").write_text("a token\n")
    readme = (REPOSITORY / "README.md").read_text().splitlines()
    script = re.sub(r"(?<![\w.])/(?=opt/|etc/)", f"{tmp_path}/", "\n".join(_typed(readme, "    ")))
    subprocess.run(
        ["sh", "-euc", f"umask 022\n{script}"],
        cwd=copy,
        env={"PATH": f"{tools}:{os.environ['PATH']}", "ROOT": str(tmp_path)},
        check=True,
    )
    etc = tmp_path / "etc"
    modes = {
        str(path.relative_to(etc)): oct(path.stat().st_mode & 0o777)
        for path in etc.rglob("*")
        if "gwmond" in str(path.relative_to(etc))
    }
    assert modes == {
        "gwmond": "0o755",
        "gwmond/gwmond.toml": "0o644",
        "gwmond/tokens.d": "0o700",
        "gwmond/tokens.d/gwmond": "0o600",
        "systemd/system/gwmond.service": "0o644",
    }
    assert called.read_text().splitlines() == [
        f"python3 -m venv {tmp_path}/opt/gwmond",
        "pip install .",
        f"gwmond check --config {etc}/gwmond/gwmond.toml",
        "gwmond",
        "systemctl daemon-reload",
        "systemctl enable --now gwmond",
    ]
