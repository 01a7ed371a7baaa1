"""Fixtures: a ledger's URL, once as an SQLite file and once in a real PostgreSQL server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ledger.server import Server
from tests.ledger.tmpfs import Tmpfs


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The one PostgreSQL server of the session; where it cannot be had, a failure with remedy."""
    with Server() as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a ledger may be made."""
    return tmp_path / "ledger.sqlite"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a ledger, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    server: Server = request.getfixturevalue("server")
    return server.schema()


@pytest.fixture
def small_disk() -> Iterator[Tmpfs]:
    """A file system of 1 MiB, where every user can get to."""
    directory = Path(tempfile.mkdtemp(prefix="gwmond-disk-"))
    try:
        with Tmpfs(directory, kib=1024) as disk:
            yield disk
    finally:
        directory.rmdir()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be the user nobody for file permissions; root is needed to become it."""
    if os.geteuid() != 0:
        raise RuntimeError("this test becomes the user nobody: run the tests as root (CI does)")
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
