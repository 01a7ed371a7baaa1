"""What is built once for all tests of a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.built import build, copy_of_repository


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the source distribution and the wheel."""
    place = tmp_path_factory.mktemp("dist")
    build(copy_of_repository(place / "source"), place / "dist")
    return place / "dist"
