"""Fixtures: a real HTCondor pool and a real Prometheus.

A pool which cannot be had is a failure with its remedy in the text (SetupError), never a skip.
"""

from __future__ import annotations

import locale
import logging
import os
import re
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import structlog
from xdist.scheduler import LoadFileScheduling

from gwmond import cli
from tests.build.certificates import self_signed
from tests.examples import load_profile
from tests.pool.condor import CondorPool
from tests.pool.prometheus import Prometheus

load_profile()

#: What a test alone and all tests of a worker see of this host: no HTCondor, no service manager.
for name in [name for name in os.environ if name.startswith(("_CONDOR_", "OTEL_"))]:
    del os.environ[name]
for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "NOTIFY_SOCKET", "STATE_DIRECTORY", "TZ"):
    os.environ.pop(name, None)
os.environ["CONDOR_CONFIG"] = "ONLY_ENV"  # else the first poll of a worker sets it for the others

# A shell's "&" has what it starts ignore these, and so all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

#: Files that take minutes: begun first, each by a worker of its own, they end with the others.
LONG = (
    "glideinwms/",
    "proof/",
    "chaos/",
    "alerts/test_incidents.py",
    "alerts/test_simulated.py",
    "daemon/test_first_hour.py",
    "referee/test_negotiator.py",
    "explain/test_advice.py",
    "packaging/test_debian.py",
    "alerts/test_quickstart.py",
    "daemon/test_restart.py",
    "daemon/test_traces.py",
    "traces/test_backends.py",
    "recordings/test_live_runs.py",
    "packaging/test_wheel.py",
    "commands/test_demo.py",
    "daemon/test_increase.py",
    "daemon/test_pilots",
    "path_transfer/test_in_a_pool.py",
    "daemon/test_reconciled.py",
    "daemon/test_faults.py",
    "daemon/test_commands.py",
    "sources/test_histories_live.py",
    "daemon/",
    "systemd/",
    "service/test_import",
    "dashboards/test_answers.py",
    "alerts/test_central_store.py",
    "pool/",
    "traces/test_in_the_job.py",
    "recordings/",
    "web/test_in_browser.py",
    "simulator/test_truth.py",
    "pilots/early/",
    "service/test_restarts.py",
    "sites/test_flow.py",
    "sites/test_properties.py",
    "pilots/test_ends.py",
    "pilots/test_factory_jobs.py",
    "pilots/test_properties.py",
    "pilots/test_pilot_properties.py",
)

#: of HTCondor
VERSIONS = ("23", "25")

#: Files of which no test needs what another one has set up: their tests run side by side.
DIVIDED = (
    "referee/test_negotiator",
    *(f"daemon/test_{name}" for name in ("advertised", "central_logs", "counting", "faults")),
    *(f"daemon/test_{name}" for name in ("lasting_problems", "ledger_faults", "pilots")),
    *(f"daemon/test_{name}" for name in ("reconciled", "restart")),
    *(f"pilots/test_{name}" for name in ("ends", "factory_jobs", "properties")),
)


class Units(LoadFileScheduling):  # type: ignore[misc]
    """Gives workers files to run: in those of ``DIVIDED`` tests, in others each version alone.

    All of ``proof`` is one file, for one scenario serves all.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file in {f"tests/{name}.py" for name in DIVIDED}:
            return nodeid
        if file.startswith("tests/proof/"):
            file = "tests/proof"
        return f"{file} {''.join(re.findall('htcondor[0-9]+', nodeid))}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Units | None:
    """Divide the tests among the workers (``pytest -n 7 --dist loadfile``)."""
    return Units(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first, in the order of ``LONG``.

    A test of the daemon in a real pool is run once more where it fails, and told as a rerun: others
    use the same two cores, and what HTCondor does then is not always what the test waits for.
    """
    for item in items:
        if "tests/daemon/" in item.path.as_posix():
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=["."]))

    def rank(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((n for n, part in enumerate(LONG) if f"tests/{part}" in path), len(LONG))

    items.sort(key=rank)


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda version: f"htcondor{version}")
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
    monkeypatch.setattr("gwmond.service.host.log.configure", lambda _options: None)

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([*map(str, arguments)])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


@pytest.fixture
def printed(run: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """Runs a command that succeeds: its standard output."""

    def printed(*arguments: object) -> str:
        code, out, errors = run(*arguments)
        assert code == 0, errors
        return out

    return printed


def _process() -> dict[str, dict[Any, Any]]:
    """What a test can change of its process for the tests that follow, by kind."""
    umask = re.search(r"Umask:\s*(\d+)", Path("/proc/self/status").read_text())
    kept: set[Any] = {"PYTEST_CURRENT_TEST", signal.SIGALRM}  # pytest's own, and pytest-timeout's
    return {
        "environment": {name: v for name, v in os.environ.items() if name not in kept},
        "handler": {n: signal.getsignal(n) for n in signal.valid_signals() if n not in kept},
        "limit": {n: resource.getrlimit(n) for n in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE)},
        "other": {
            "directory": os.getcwd(),
            "locale": locale.setlocale(locale.LC_ALL),
            "umask": umask and int(umask[1], 8),
        },
    }


@pytest.fixture(autouse=True)
def leaves_its_process_as_it_was() -> Iterator[None]:
    """A test that leaves a change of its process fails, rather than those that come after it."""
    os.environ.pop("PYTHONSAFEPATH", None)  # of child.start: programs of tests are found in "."
    before = _process()
    yield
    os.environ.pop("PYTHONSAFEPATH", None)
    after = _process()
    left = [
        f"{kind} {name}: {before[kind].get(name)!r} is {after[kind].get(name)!r}"
        for kind in before
        for name in {**before[kind], **after[kind]}
        if before[kind].get(name) != after[kind].get(name)
    ]
    if left:
        _restore(before)
        pytest.fail("the test leaves to those after it: " + "; ".join(left))


def _restore(before: dict[str, dict[Any, Any]]) -> None:
    for name in set(os.environ) - set(before["environment"]):
        del os.environ[name]
    os.environ.update(before["environment"])
    for number, handler in before["handler"].items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)
    for kind, limits in before["limit"].items():
        resource.setrlimit(kind, limits)
    os.chdir(before["other"]["directory"])
    os.umask(before["other"]["umask"])
    locale.setlocale(locale.LC_ALL, before["other"]["locale"])


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A command that a test, or a fixture of many, runs in this process sets up the log."""
    logging.getLogger("gwmond").setLevel(logging.DEBUG)
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate of this host that was signed by itself, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))
