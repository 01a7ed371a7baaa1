"""The RPM, built with Debian's rpmbuild and installed into a root of its own.

packaging/install.sh makes its files, as it makes those of the Debian package, whose test runs them.
So gwmond's dependencies, which take long to install, are left out here.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging import debian
from tests.packaging.built import REPOSITORY, VERSION, call

CONFIG = "etc/gwmond/gwmond.toml"


def package(dist: Path, place: Path, release: int) -> Path:
    """An RPM without dependencies, whose example of the configuration names its release."""
    (source,) = dist.glob("*.tar.gz")
    inputs, output = place / f"dist-{release}", place / f"rpm-{release}"
    output.mkdir()
    shutil.copytree(dist, inputs)
    with tarfile.open(source) as archive:
        archive.extractall(place, filter="data")
    tree = place / f"gwmond-{VERSION}"
    (tree / "requirements-run.lock").write_text("")
    with (tree / "etc/gwmond.toml").open("a") as example:
        example.write(f"# {release}\n")
    with tarfile.open(inputs / source.name, "w:gz") as archive:
        archive.add(tree, tree.name)
    call([REPOSITORY / "packaging/rpm.sh", inputs, output, "/usr/bin/python3", release])
    (found,) = output.iterdir()
    return found


@pytest.fixture(scope="module")
def packages(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two releases of this version."""
    assert shutil.which("rpmbuild"), "no rpmbuild: make setup-test (which installs Debian's rpm)"
    place = tmp_path_factory.mktemp("rpm")
    return package(dist, place, 1), package(dist, place, 2)


@pytest.fixture
def root() -> Iterator[Path]:
    """A system for rpm; its shell and its useradd are a Debian's."""
    with debian.copy() as place:
        call(["rpm", "--root", place, "--initdb"])
        yield place


def rpm(root: Path, *arguments: object) -> str:
    """What rpm says; the Python that the package requires is the system's, which rpm knows not."""
    return call(["rpm", "--root", root, "--nodeps", *arguments])


def test_an_rpm_has_what_a_system_expects(packages: tuple[Path, Path]) -> None:
    """The configuration is marked as such; nothing lies at other places than it should."""
    files = set(call(["rpm", "-qpl", packages[0]]).split())
    assert call(["rpm", "-qpc", packages[0]]).split() == [f"/{CONFIG}"]
    assert {
        "/usr/bin/gwmond",
        "/usr/lib/systemd/system/gwmond.service",
        "/usr/lib/gwmond/bin/gwmond",
        "/usr/share/man/man1/gwmond-report.1",
        "/usr/share/bash-completion/completions/gwmond",
        "/usr/share/gwmond/gwmond-path-transfer",
        "/usr/share/gwmond/prometheus/gwmond-alerts.yml",
        "/etc/gwmond/tokens.d",
    } <= files
    assert "/usr/bin/python3\n" in call(["rpm", "-qp", "--requires", packages[0]])


def test_an_rpm_is_installed_upgraded_and_removed(packages: tuple[Path, Path], root: Path) -> None:
    """The user is made, an edited configuration is kept, and the ledger stays."""
    rpm(root, "--install", packages[0])
    assert "gwmond:" in (root / "etc/passwd").read_text()
    assert (root / "etc/gwmond/tokens.d").stat().st_mode & 0o777 == 0o700
    ledger = root / "var/lib/gwmond/ledger.sqlite"
    ledger.parent.mkdir()
    ledger.write_text("ledger")
    (root / CONFIG).write_text("# edited\n")

    rpm(root, "--upgrade", packages[1])
    assert call(["rpm", "--root", root, "-q", "gwmond"]).startswith(f"gwmond-{VERSION}-2")
    assert (root / CONFIG).read_text() == "# edited\n"
    assert "# 2\n" in (root / f"{CONFIG}.rpmnew").read_text()

    said = rpm(root, "--erase", "gwmond")
    assert "the ledger stays in /var/lib/gwmond" in said
    assert ledger.read_text() == "ledger"
    assert not (root / "usr/lib/gwmond").exists()
    assert (root / f"{CONFIG}.rpmsave").read_text() == "# edited\n"
