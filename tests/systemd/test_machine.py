"""The unit, unchanged, under a real systemd (machine.py), with the real daemon in it."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.pool.condor import CondorPool
from tests.pool.ports import free_port
from tests.pool.tokens import TOKEN_POOL, make_key
from tests.systemd.machine import Machine, NoMachineError, check
from tests.systemd.pools import collector, config_text

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(autouse=True)
def _possible() -> None:
    """A container without privileges cannot have a machine; a missing package is a failure."""
    try:
        check()
    except NoMachineError as error:
        pytest.skip(str(error))


PORT = free_port()
_DROP_IN = "RestartSec=1\nExecStartPost=sh -c 'nice -n 5 nice >${STATE_DIRECTORY}/niceness'\n"
"""What runs after the start is in the same sandbox."""


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A machine in which the service watches a collector that refuses."""
    check()
    with (
        collector("refuses") as address,
        Machine(config_text(address, PORT), drop_in=_DROP_IN) as running,
    ):
        running.wait_state("active", "running")
        yield running


def _healthy() -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/-/healthy", timeout=120) as answer:
        return bool(answer.status == 200)


def _scraped(sample: str) -> bool:
    """Whether a scrape has a sample of the number of records."""
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=120) as answer:
        return f"gwmond_source_records_total{{{sample}" in answer.read().decode()


def _in_service(machine: Machine, file: str) -> str:
    """A file as the service's main process sees it."""
    return machine.run("cat", f"/proc/{machine.pid}/{file}").stdout


def test_starts_without_a_pool_and_without_tokens(machine: Machine) -> None:
    """Active means that READY=1 was accepted; the status is what the daemon says of itself."""
    machine.systemctl("restart", "gwmond")
    assert machine.show("ActiveState") == "active"
    assert _healthy()
    assert machine.show("StatusText")


def test_polls_in_the_sandbox(machine: Machine) -> None:
    """Its fork server, HTCondor's bindings and the ledger work; the pool is said to refuse."""
    machine.wait_for("a poll", lambda: "refused" in machine.log)
    assert "crashed" not in machine.log, machine.log
    assert "Traceback" not in machine.log, machine.log
    ledger = machine.run("find", "/var/lib/private/gwmond", "-name", "ledger.sqlite", "-size", "+0")
    assert ledger.stdout.strip(), ledger.stderr


def test_has_no_power(machine: Machine) -> None:
    """No user of the host, no capability, no way to gain one; system calls are filtered."""
    status = dict(
        line.split(":\t", 1)
        for line in _in_service(machine, "status").splitlines()
        if ":\t" in line
    )
    assert int(status["Uid"].split()[0]) > 60000  # within systemd's range of dynamic users
    assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"


def test_the_sandbox_lets_a_priority_be_lowered(machine: Machine) -> None:
    """Queries come behind the daemon by that."""
    found = machine.run("cat", "/var/lib/private/gwmond/niceness")
    assert found.stdout.strip() == "15", found.stderr  # the unit's Nice=10, and 5


def test_writes_only_its_state(machine: Machine) -> None:
    """All mounts that it sees are read-only, but for its own directories and /dev and /proc."""
    writable = set()
    for line in _in_service(machine, "mountinfo").splitlines():
        fields = line.split()
        if "rw" in fields[5].split(","):
            writable.add(fields[4])
    own = {"/var/lib/private/gwmond", "/run/gwmond"}
    assert own <= writable
    # Newer systemds let a service set the threshold at which it is told of memory pressure.
    pressure = {path for path in writable if path.endswith("/gwmond.service/memory.pressure")}
    private = ("/tmp", "/var/tmp", "/dev", "/proc")
    assert {path for path in writable - own - pressure if not path.startswith(private)} == set()


def test_reload(machine: Machine) -> None:
    """The same process goes on; systemctl reload succeeds."""
    before = machine.pid
    machine.systemctl("reload", "gwmond")
    machine.wait_state("active", "running")
    assert machine.pid == before
    assert _healthy()


def test_a_socket_for_central_logs(machine: Machine) -> None:
    """Its place is writable in the sandbox; root's syslog reaches it; it goes with the service."""
    path = "/run/gwmond/log.socket"
    config = "/etc/gwmond/gwmond.toml"
    option = f'[factory]\\nlog_socket = "{path}"\\n'
    assert machine.run("sed", "-i.before", f"$a {option}", config).returncode == 0
    try:
        machine.systemctl("restart", "gwmond")
        assert machine.run("test", "-S", path).returncode == 0, machine.log
        sent = machine.run("logger", "--socket", path, "--rfc5424", "not of a pilot")
        assert sent.returncode == 0, sent.stderr
        machine.wait_for("a line", lambda: _scraped('kind="socket",source="central_log"} 1'))
    finally:
        machine.run("mv", f"{config}.before", config)
    machine.systemctl("restart", "gwmond")
    assert machine.run("test", "-e", path).returncode != 0
    assert _healthy()


def test_root_is_answered_on_the_socket_of_the_service(machine: Machine) -> None:
    """Though the service is of a user of its own, in a user namespace; others come not so far."""
    path = "/run/gwmond/http.socket"
    curl = "curl", "-s", "--unix-socket", path, "http://localhost/-/healthy"
    assert machine.run(*curl).stdout == "gwmond is healthy\n"
    assert machine.run("stat", "--format=%a", path).stdout == "600\n"
    assert machine.run("setpriv", "--reuid=65534", "--clear-groups", *curl).stdout == ""


def test_stop_and_start(machine: Machine) -> None:
    """It stops at once, with success, and what it owns is there when it starts again."""
    began = time.monotonic()
    machine.systemctl("stop", "gwmond")
    assert time.monotonic() - began < 30
    assert machine.show("Result") == "success"
    assert machine.show("ExecMainStatus") == "0"
    machine.systemctl("start", "gwmond")
    assert _healthy()


def test_a_kill_is_answered_by_a_restart(machine: Machine) -> None:
    """After RestartSec."""
    restarts = int(machine.show("NRestarts"))
    machine.systemctl("kill", "--signal=KILL", "gwmond")
    machine.wait_for("a restart", lambda: int(machine.show("NRestarts")) > restarts)
    machine.wait_state("active", "running")
    assert _healthy()


def test_bad_configuration_stays_down(machine: Machine) -> None:
    """It is not started over and over; the log has the remedy."""
    machine.run("sed", "-i", "s/^collectors/colectors/", "/etc/gwmond/gwmond.toml")
    try:
        assert machine.run("systemctl", "restart", "gwmond").returncode != 0
        machine.wait_state("failed")
        assert machine.show("ExecMainStatus") == "2"
        assert "did you mean 'collectors'?" in machine.log
    finally:
        machine.run("sed", "-i", "s/^colectors/collectors/", "/etc/gwmond/gwmond.toml")
        machine.systemctl("reset-failed", "gwmond")
        machine.systemctl("start", "gwmond")
    assert _healthy()


def test_a_daemon_that_hangs_is_killed_and_started_again() -> None:
    """The watchdog, shortened: a stopped process does not feed it; a working one does."""
    port = free_port()
    drop_in = "WatchdogSec=20\nRestartSec=1\n"  # on a busy machine a second is soon gone
    with (
        collector("silent") as address,
        Machine(config_text(address, port), drop_in=drop_in) as machine,
    ):
        machine.wait_state("active", "running")
        time.sleep(26)
        assert machine.show("NRestarts") == "0", machine.console
        machine.systemctl("kill", "--kill-whom=main", "--signal=STOP", "gwmond")
        machine.wait_for("the watchdog", lambda: machine.show("NRestarts") != "0")
        machine.wait_for("what it says", lambda: "Watchdog timeout" in machine.console)
        machine.wait_state("active", "running")


@pytest.fixture(scope="module")
def token_pool() -> Iterator[tuple[CondorPool, str]]:
    """A collector that answers only who has a token, and a token."""
    with CondorPool(deny_read=True, config=TOKEN_POOL) as pool:
        make_key(pool)
        made = pool.tool("condor_token_create", "-identity", "reader@pool.test", "-authz", "READ")
        assert made.returncode == 0, made.stderr
        yield pool, made.stdout


@pytest.mark.parametrize("with_token", [False, True], ids=["without", "with"])
def test_the_token_is_for_the_service_alone(
    token_pool: tuple[CondorPool, str], with_token: bool
) -> None:
    """A file that only root can read gets the daemon past a collector that denies others.

    So does the bearer token that its own clients need: a second credential, for auth_token_file.
    """
    pool, token = token_pool
    port = free_port()
    config = config_text(pool.collector, port, http='auth_token_file = "/run/gwmond/http.token"')
    files = {"http.token": "scrape\n", **({"tokens.d/pool": token} if with_token else {})}
    drop_in = "LoadCredential=http.token:/etc/gwmond/http.token\n"
    address = f"http://127.0.0.1:{port}/metrics"

    with Machine(config, drop_in=drop_in, secrets=files) as machine:
        machine.wait_state("active", "running")

        def collector_up() -> str | None:
            request = urllib.request.Request(address, headers={"Authorization": "Bearer scrape"})
            with urllib.request.urlopen(request, timeout=120) as answer:
                lines = answer.read().decode().splitlines()
            return next((s for s in lines if s.startswith('gwmond_source_up{kind="slots"')), None)

        sample = machine.wait_for("a poll", collector_up)
        assert float(sample.rpartition(" ")[2]) == with_token
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(address, timeout=120)


def test_the_whole_daemon_works_on_a_replayed_pool() -> None:
    """Recorded ads, matching, flow and ledger: nothing of it needs what the sandbox forbids."""
    port = free_port()
    replay = '[replay]\nfile = "/opt/repository/gwmond/data/demo.zip"\n'
    config = config_text("127.0.0.1:1", port) + replay
    with Machine(config) as machine:
        machine.wait_state("active", "running")

        def states() -> list[str]:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
                lines = answer.read().decode().splitlines()
            return [s for s in lines if s.startswith("gwmond_site_state{") and s.endswith(" 1.0")]

        assert len(machine.wait_for("the first poll", states)) > 10
        assert "Traceback" not in machine.log
