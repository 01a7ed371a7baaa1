"""Daemons behind a shared port, dead or restarting, are not said to deny anything; those that deny
are."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest

from gwmond.sources import child
from gwmond.sources.htcondor.access import Access, Daemon, LiveAccess, Query
from tests.pool.condor import CondorPool
from tests.pool.config import deny_read_config
from tests.pool.sandbox import VERSIONS
from tests.sources.history_scenario import daemon

SHARED = """
USE_SHARED_PORT = True
DAEMON_SOCKET_DIR = $(LOCAL_DIR)/sock
DAEMON_LIST = $(DAEMON_LIST) SHARED_PORT
SHARED_PORT_PORT = 0
"""


def task(access: Access, asked: Daemon | str, kind: str) -> int:
    """Task of a child: how many ads or records."""
    if isinstance(asked, str):
        return len(access.collector_ads(asked, Query("slots", "Startd", "", ("Name", "MyAddress"))))
    query = Query(kind, "", "true", ("GlobalJobId",))
    if kind == "jobs":
        query = Query(kind, "", "JobStatus == 1", ("JobStatus",))
        return len(access.job_ads(asked, query))
    return len(access.history(asked, kind, query, 10, ""))


def problem(asked: Daemon | str, kind: str = "") -> str:
    """The problem of a query; "" where it is answered."""
    try:
        child.run(task, LiveAccess(), asked, kind, deadline_s=60)
    except child.QueryError as error:
        return error.problem
    return ""


@pytest.fixture(scope="module", params=VERSIONS)
def shared(request: pytest.FixtureRequest) -> Iterator[CondorPool]:
    with CondorPool(htcondor=request.param, config=SHARED) as pool:
        yield pool


def test_daemons_that_are_dead_behind_a_shared_port(shared: CondorPool) -> None:
    """A startd, a schedd and a collector; each answered before."""
    pilot = shared.start_pilot(
        "dead",
        config=SHARED + "MASTER_BACKOFF_CONSTANT = 9999\nMASTER_BACKOFF_CEILING = 9999\n"
        "MASTER.DAEMON_SHUTDOWN_FAST = False\n",
    )
    startd = daemon(shared, "StartDaemon", pilot.name)
    schedd = daemon(shared, "Schedd", shared.schedds[0])
    assert "sock=" in startd.address
    host, port = re.findall(r"<([^?]*):(\d+)\?", schedd.address)[0]
    collector = f"<{host}:{port}?sock=collector>"
    asked: list[tuple[Daemon | str, str]]
    asked = [(startd, "startd_history"), (schedd, "jobs"), (schedd, "history"), (collector, "")]
    assert [problem(*one) for one in asked] == ["", "", "", ""]
    pilot.signal("STARTD", signal.SIGKILL)
    shared.signal("MASTER", signal.SIGSTOP)
    try:
        for name in ("SCHEDD", "COLLECTOR"):
            shared.signal(name, signal.SIGKILL)
        shared.wait_for("the end of both", lambda: not _lives(shared, "SCHEDD", "COLLECTOR"))
        assert [problem(*one) for one in asked] == ["connection_closed"] * 4
    finally:
        shared.signal("MASTER", signal.SIGCONT)


def _lives(pool: CondorPool, *daemons: str) -> bool:
    return any(pool.find(name) for name in daemons)


def test_a_collector_that_restarts_never_denies(shared: CondorPool) -> None:
    """From its death until it answers again: refused, closed or silent, but not denied.

    ``failed``: it accepted connections again when the cause was looked for.
    """
    found = set()
    shared.wait_for("the collector", lambda: shared.answers("COLLECTOR"))
    os.kill(shared.pid_of("COLLECTOR"), signal.SIGKILL)
    while True:
        found.add(problem(shared.collector))
        if "" in found and shared.answers("COLLECTOR"):
            break
    assert found <= {"", "refused", "connection_closed", "timeout", "unreachable", "failed"}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_denied_is_still_said_to_be(version: str) -> None:
    """By a collector, whose error says only that communication failed, and by a startd."""
    with CondorPool(htcondor=version, deny_read=True) as pool:
        assert problem(pool.collector) == "denied"
    with CondorPool(htcondor=version) as pool:
        pilot = pool.start_pilot("strict", config=deny_read_config("STARTD"))
        startd = daemon(pool, "StartDaemon", pilot.name)
        assert problem(startd, "startd_history") == "denied"
