"""Fixtures: a real HTCondor pool and a real Prometheus.

A pool which cannot be had is a failure with its remedy in the text (SetupError), never a skip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import structlog

from gwmond import cli
from tests.examples import load_profile
from tests.pool.condor import CondorPool
from tests.pool.prometheus import Prometheus

load_profile()

#: Files that take minutes: begun first, each by a worker of its own, they end with the others.
LONG = (
    "proof/test_ledger",
    "daemon/test_restart.py",
    "referee/test_htcondor",
    "daemon/test_pilots",
    "daemon/test_reconciled.py",
    "daemon/test_faults.py",
    "proof/",
    "daemon/test_ledger_faults.py",
    "daemon/test_advertised.py",
    "daemon/test_central_logs.py",
    "daemon/test_monitored.py",
    "systemd/",
    "daemon/",
    "recordings/test_live_runs.py",
    "commands/test_demo.py",
    "sources/test_histories_live",
    "pool/",
    "recordings/",
    "sites/test_flow.py",
    "sites/test_properties.py",
    "pilots/test_pilot_properties.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first, in the order of ``LONG``."""

    def rank(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((n for n, part in enumerate(LONG) if f"tests/{part}" in path), len(LONG))

    items.sort(key=rank)


@pytest.fixture(scope="module")
def htcondor(request: pytest.FixtureRequest) -> str:
    """The version of a module's pools: its HTCONDOR, else 23.

    A file of tests that take minutes has a second one beside it, which has the same tests and
    HTCONDOR = "25": so another worker can run it.
    """
    return str(getattr(request.module, "HTCONDOR", "23"))


@pytest.fixture(scope="session")
def pool() -> Iterator[CondorPool]:
    """The one pool of a worker: collector, negotiator, two schedds.

    For tests which do no harm to its daemons; each has its own pilots, jobs and names.
    """
    with CondorPool() as running:
        yield running


@pytest.fixture
def fresh_pool() -> Iterator[CondorPool]:
    """A pool of this test alone, which may stop or kill its daemons."""
    with CondorPool() as running:
        yield running


@pytest.fixture
def denying_pool() -> Iterator[CondorPool]:
    """A collector alone, which lets nobody read who is not its user "reader"."""
    with CondorPool(deny_read=True) as running:
        yield running


@pytest.fixture
def prometheus() -> Iterator[Callable[..., Prometheus]]:
    """Starts a Prometheus with the given targets, as often as called."""
    with ExitStack() as stack:

        def start(*targets: str, **options: Any) -> Prometheus:
            return stack.enter_context(Prometheus(targets, **options))

        yield start


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command of gwmond in this process: exit status, standard output and error."""
    monkeypatch.setattr("gwmond.service.log.configure", lambda _options: None)

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([*map(str, arguments)])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A command that a test runs in this process sets up the log: for that test alone."""
    yield
    structlog.reset_defaults()
