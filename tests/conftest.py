"""Fixtures: a real HTCondor pool and a real Prometheus.

A pool which cannot be had is a failure with its remedy in the text (SetupError), never a skip.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import structlog
from xdist.scheduler import LoadFileScheduling

from gwmond import cli
from tests.examples import load_profile
from tests.pool.condor import CondorPool
from tests.pool.prometheus import Prometheus

load_profile()

#: Files that take minutes: begun first, each by a worker of its own, they end with the others.
LONG = (
    "proof/test_ledger.py",
    "referee/test_negotiator.py",
    "daemon/test_restart.py",
    "daemon/test_first_hour.py",
    "recordings/test_live_runs.py",
    "alerts/test_incidents.py",
    "packaging/test_debian.py",
    "alerts/test_quickstart.py",
    "proof/",
    "daemon/test_pilots",
    "daemon/test_reconciled.py",
    "daemon/test_faults.py",
    "daemon/test_commands.py",
    "sources/test_histories_live.py",
    "daemon/",
    "systemd/",
    "service/test_import",
    "commands/test_demo.py",
    "dashboards/test_answers.py",
    "alerts/test_central_store.py",
    "pool/",
    "traces/test_backends.py",
    "traces/test_in_the_job.py",
    "recordings/",
    "sites/test_flow.py",
    "sites/test_properties.py",
    "pilots/test_ends.py",
    "pilots/test_told.py",
    "pilots/test_executions.py",
    "pilots/test_properties.py",
    "pilots/test_pilot_properties.py",
)

#: Files of which no test needs what another one has set up: their tests run side by side.
DIVIDED = (
    "referee/test_negotiator",
    *(f"daemon/test_{name}" for name in ("advertised", "central_logs", "counting", "faults")),
    *(f"daemon/test_{name}" for name in ("lasting_problems", "ledger_faults", "pilots")),
    *(f"daemon/test_{name}" for name in ("reconciled", "restart")),
    *(f"pilots/test_{name}" for name in ("ends", "executions", "properties")),
)


class Units(LoadFileScheduling):  # type: ignore[misc]
    """Gives workers files to run: in those of ``DIVIDED`` tests, in others each version alone."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file in {f"tests/{name}.py" for name in DIVIDED}:
            return nodeid
        return f"{file} {''.join(re.findall('htcondor[0-9]+', nodeid))}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Units | None:
    """Divide the tests among the workers (``pytest -n 6 --dist loadfile``)."""
    return Units(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first, in the order of ``LONG``."""

    def rank(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((n for n, part in enumerate(LONG) if f"tests/{part}" in path), len(LONG))

    items.sort(key=rank)


@pytest.fixture(scope="module", params=["23", "25"], ids=lambda version: f"htcondor{version}")
def htcondor(request: pytest.FixtureRequest) -> str:
    """The version of a module's pools: its tests run with each, the two side by side."""
    return str(request.param)


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


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate of this host that was signed by itself, and its key."""
    directory = tmp_path_factory.mktemp("tls")
    cert, key = directory / "cert.pem", directory / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return str(cert), str(key)
