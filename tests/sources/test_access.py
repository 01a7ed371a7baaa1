"""Why a daemon could not be asked."""

from __future__ import annotations

import socket

import pytest

from gwmond.sources.htcondor import access
from tests.pool.ports import free_port


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("cm.example.org", "cm.example.org", 9618),
        ("cm.example.org:9620", "cm.example.org", 9620),
        ("<10.0.0.1:9618?addrs=10.0.0.1-9618&alias=cm>", "10.0.0.1", 9618),
        ("<[::1]:9620?alias=cm>", "::1", 9620),
        ("[2001:db8::1]:9620", "2001:db8::1", 9620),
        ("[2001:db8::1]", "2001:db8::1", 9618),
        ("2001:db8::1", "2001:db8::1", 9618),
        ("cm:port", "cm:port", 9618),
    ],
)
def test_host_and_port(address: str, host: str, port: int) -> None:
    """Host and port are distinguished in each way of writing them; 9618 is HTCondor's own port."""
    assert access.host_and_port(address) == (host, port)


@pytest.mark.parametrize(
    ("text", "seconds", "problem"),
    [
        ("SECMAN:2010:Received DENIED from server", 0.1, "denied"),
        ("AUTHENTICATE:1003:Failed to authenticate", 0.1, "denied"),
        ("Failed to authenticate with any method", 0.1, "denied"),  # a glidein's startd
        ("Failed communication with collector.", 20, "timeout"),
        ("schedd did not respond", 1, "timeout"),
        ("Failed to fetch ads from schedd, errmsg=", 0.1, "bad_constraint"),
        ("Failed communication with collector.", 0.1, "refused"),
    ],
)
def test_what_the_bindings_say(text: str, seconds: float, problem: str) -> None:
    """Denial, silence and bad constraints are distinguished, by text, by time, or by a socket."""
    closed = f"127.0.0.1:{free_port()}"
    assert access.explain(RuntimeError(text), closed, seconds).problem == problem


@pytest.mark.parametrize(
    ("text", "reason", "problem"),
    [
        ("Failed  communication\nwith it", "", "failed"),
        ("Connection closed during command authorization.", "", "connection_closed"),
        ("errmsg=SECMAN:2007:Failed to end classad message.", "", "connection_closed"),
        ("Failed communication", "09:37 condor_read(): Socket closed", "connection_closed"),
        ("Failed communication", 'x\n09:37 SECMAN: FAILED: Received "DENIED"', "denied"),
    ],
)
def test_a_daemon_that_accepts_a_connection(text: str, reason: str, problem: str) -> None:
    """It has denied only if it said so, by the exception or by the library's log."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"<127.0.0.1:{listener.getsockname()[1]}?alias=x>"
        found = access.explain(RuntimeError(text), address, 0.1, reason)
    assert found.problem == problem
    assert "\n" not in found.detail


def test_host_that_is_unknown() -> None:
    """A name that does not resolve is told as such."""
    found = access.explain(RuntimeError("Failed"), "no.such.host.invalid", 0.1)
    assert (found.problem, found.detail) == (
        "unknown_host",
        "no.such.host.invalid: no such host",
    )
