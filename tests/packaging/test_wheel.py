"""The wheel and the source distribution hold all that gwmond is, and run where nothing else is."""

from __future__ import annotations

import re
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import pytest

from tests.build.demos import demo
from tests.packaging.built import (
    REPOSITORY,
    VERSION,
    call,
    copy_of_repository,
    tracked,
)


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but the wheel and what requirements-run.lock names."""
    place = tmp_path_factory.mktemp("installed") / "gwmond"
    call([sys.executable, "-m", "venv", "--without-pip", place])
    pip = [sys.executable, "-m", "pip", "--python", place / "bin/python"]
    install = [*pip, "install", "--quiet", "--no-compile"]
    call([*install, "--require-hashes", "-r", REPOSITORY / "requirements-run.lock"])
    call([*install, "--no-deps", *dist.glob("*.whl")])
    assert call([*pip, "check"]) == "No broken requirements found.\n"
    return place


def test_the_wheel_has_every_file_of_the_package(dist: Path) -> None:
    """Templates, static files, the demo, migrations; and what operators copy, below share."""
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in tracked() if name.startswith("gwmond/")} <= set(names)
    shared = {Path(name).name for name in names if ".data/data/share/" in name}
    rooms = ("docs/", "etc/", "share/", "systemd/")
    assert {Path(name).name for name in tracked() if name.startswith(rooms)} <= shared
    assert not [name for name in names if name.startswith(("tests", "tools"))]


def test_the_source_distribution_builds_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    """``make dist`` builds its wheel from it; a wheel of the repository itself is no other."""
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    rooms = ("docs/", "etc/", "gwmond/", "packaging/", "share/", "systemd/", "requirements-run")
    assert {name for name in tracked() if name.startswith(rooms)} <= held
    assert not [name for name in held if name.startswith(("tests/", "tools/"))]
    direct = copy_of_repository(tmp_path / "source")
    call([sys.executable, "-m", "build", "--no-isolation", "--wheel", "-o", tmp_path, direct])

    def record(wheel: Path) -> list[str]:
        """Every file with its hash."""
        archive = zipfile.ZipFile(wheel)
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        return sorted(archive.read(name).decode().splitlines())

    (first,), (second,) = dist.glob("*.whl"), tmp_path.glob("*.whl")
    assert first.name == second.name
    assert record(first) == record(second)


def test_commands_of_an_installed_wheel(installed: Path, tmp_path: Path) -> None:
    """They run from anywhere; examples of the configuration lie where the documentation says."""
    gwmond = installed / "bin/gwmond"
    environment = {"PATH": "/usr/bin:/bin", "CONDOR_CONFIG": "ONLY_ENV"}
    assert call([gwmond, "--version"], cwd=tmp_path, env=environment) == f"gwmond {VERSION}\n"
    assert "COMMAND" in call([gwmond, "--help"], cwd=tmp_path, env=environment)
    shared = installed / "share/gwmond"
    assert (shared / "gwmond.toml").read_text() == (REPOSITORY / "etc/gwmond.toml").read_text()
    assert (shared / "grafana/dashboards/gwmond-overview.json").exists()
    plugin = shared / "gwmond-path-transfer"
    assert '"tree"' in call([plugin, "-classad"], cwd=tmp_path, env=environment)


def test_the_demo_of_an_installed_wheel(installed: Path, tmp_path: Path) -> None:
    """Its metrics are of this version; its pages find their templates, styles and scripts."""
    with demo([str(installed / "bin/gwmond")], tmp_path / "gwmond.toml") as url:

        def get(path: str) -> str:
            with urllib.request.urlopen(f"{url}/{path}", timeout=120) as answer:
                return str(answer.read().decode())

        metrics = get("metrics")
        assert re.search(rf'^gwmond_build_info{{.*\bversion="{VERSION}"', metrics, re.MULTILINE)
        assert re.search("^gwmond_site_state{.* 1.0$", metrics, re.MULTILINE)
        files = {
            file
            for page in ("", "time", "pilots", "problems")
            for file in re.findall('"(static/[^"]+)"', get(page))
        }
        assert len(files) > 3
        assert all(map(get, files))
