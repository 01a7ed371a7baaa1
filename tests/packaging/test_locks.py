"""What is installed to test gwmond: fixed by hashes, and at the lowest versions that it allows."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

REPOSITORY = Path(__file__).parent.parent.parent
LOCKS = ("requirements.lock", "requirements-run.lock", "requirements-lowest.lock")


def locked(name: str) -> dict[str, set[Version]]:
    """Versions by package: a release of Python may have its own."""
    found: defaultdict[str, set[Version]] = defaultdict(set)
    text = (REPOSITORY / name).read_text()
    for package, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE):
        found[canonicalize_name(package)].add(Version(version))
    return found


def direct(lock: str) -> list[Requirement]:
    """What pyproject.toml asks for, extras included; of the tests not where gwmond runs.

    Fuzzing is apart: it would raise the lowest versions of others.
    """
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = project["optional-dependencies"]
    left_out = {"requirements-run.lock": {"test", "fuzz"}, "requirements-lowest.lock": {"fuzz"}}
    extras = [wanted[key] for key in wanted if key not in left_out.get(lock, ())]
    return [Requirement(text) for texts in (project["dependencies"], *extras) for text in texts]


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_has_hashes(name: str) -> None:
    """So nothing else than what was locked can be installed."""
    blocks = re.split(r"^(?=\S+==)", (REPOSITORY / name).read_text(), flags=re.MULTILINE)[1:]
    assert len(blocks) == sum(map(len, locked(name).values()))
    assert not [block for block in blocks if "--hash=sha256:" not in block]


@pytest.mark.parametrize("name", LOCKS)
def test_what_is_asked_for_is_locked(name: str) -> None:
    """With a version that pyproject.toml allows: else run "make lock"."""
    versions = locked(name)
    for requirement in direct(name):
        found = versions[canonicalize_name(requirement.name)]
        assert found, requirement
        assert all(version in requirement.specifier for version in found), requirement


def test_the_lowest_versions_are_the_lowest() -> None:
    """Each package has a lower bound, or one version; the first from there on is locked."""
    versions = locked("requirements-lowest.lock")
    for requirement in direct("requirements-lowest.lock"):
        (lowest,) = (
            Version(specifier.version)
            for specifier in requirement.specifier
            if specifier.operator in {">=", "=="}
        )
        (version,) = versions[canonicalize_name(requirement.name)]
        assert version.release[: len(lowest.release)] == lowest.release, requirement


def test_packages_install_what_is_tested() -> None:
    """What gwmond runs with is a part of what tests and CI install, in the same versions."""
    tested = locked("requirements.lock")
    run = locked("requirements-run.lock")
    assert run == {name: tested[name] for name in run}
    assert {"htcondor", "numpy", "pyarrow", "psycopg-binary"} <= set(run)
    assert not {"pytest", "playwright", "scipy"} & set(run)


def test_both_are_installed_and_tested() -> None:
    """By "make test", which is all that CI runs."""
    makefile = (REPOSITORY / "Makefile").read_text()
    assert re.search(r"^test:(?s:.*?)\$\(MAKE\)( --\S+)+ pytest lowest;", makefile, re.MULTILINE)
    for name in ("requirements.lock", "requirements-lowest.lock"):
        assert f"--require-hashes --requirement {name}" in makefile
    assert "make test" in (REPOSITORY / ".ci" / "run").read_text()
