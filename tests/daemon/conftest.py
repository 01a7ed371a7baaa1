"""Fixtures: a pool, and the sites feigned in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.running import RunningDaemon
from tests.daemon.scene import Scene
from tests.ledger.tmpfs import Tmpfs
from tests.pool.condor import CondorPool


@pytest.fixture(scope="module")
def shared_scene(pool: CondorPool) -> Iterator[Scene]:
    """The session's pool, empty, for this module: each test has its own sites."""
    scene = Scene(pool)
    yield scene
    scene.clear()


@pytest.fixture(scope="module")
def epochs() -> Iterator[CondorPool]:
    """A pool of this module whose first schedd keeps an epoch history."""
    with CondorPool(config="JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history") as pool:
        yield pool


@pytest.fixture
def scene(fresh_pool: CondorPool) -> Scene:
    """A pool of this test alone."""
    return Scene(fresh_pool)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Callable[..., RunningDaemon]]:
    """Starts a daemon in this test's directory, as often as called."""
    with ExitStack() as stack:

        def start(*collectors: str, **options: Any) -> RunningDaemon:
            return stack.enter_context(RunningDaemon(tmp_path, collectors, **options))

        yield start


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Tmpfs]:
    """A file system of 16 MiB: more than the ledger's log grows to."""
    with Tmpfs(tmp_path / "disk", kib=16384) as mounted:
        yield mounted
