"""Notifier: exactly the datagrams of sd_notify(3), and nothing where nobody listens."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gwmond.service.host.sdnotify import Notifier


@pytest.fixture(params=["path", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """A bound socket, and its name as NOTIFY_SOCKET gives it."""
    abstract = request.param == "abstract"
    name = f"@gwmond-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as bound:
        bound.bind(f"\0{name[1:]}" if abstract else name)
        bound.settimeout(5)
        yield name, bound


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Notifier.ready, "READY=1"),
        (Notifier.stopping, "STOPPING=1"),
        (Notifier.watchdog, "WATCHDOG=1"),
        (lambda n: n.status("12 sites, 3 starve"), "STATUS=12 sites, 3 starve"),
        (lambda n: n.status("two\nlines\tof Orléans "), "STATUS=two lines of Orléans"),
    ],
)
def test_messages(
    listener: tuple[str, socket.socket], call: Callable[[Notifier], None], message: str
) -> None:
    """Each is one datagram; a status cannot smuggle in a second assignment."""
    name, bound = listener
    call(Notifier({"NOTIFY_SOCKET": name}))
    assert bound.recv(4096).decode() == message


def test_reloading_carries_the_monotonic_clock(listener: tuple[str, socket.socket]) -> None:
    """Both in one datagram, the time in microseconds."""
    name, bound = listener
    before = time.monotonic()
    Notifier({"NOTIFY_SOCKET": name}).reloading()
    after = time.monotonic()

    first, second = bound.recv(4096).decode().split("\n")
    assert first == "RELOADING=1"
    key, _, usec = second.partition("=")
    assert key == "MONOTONIC_USEC"
    assert before - 1e-5 <= int(usec) / 1e6 <= after + 1e-5


@pytest.mark.parametrize(
    "address", ["", "@", "relative", "vsock:2:1234", "/nowhere/at/all", "@nobody-listens"]
)
def test_nobody_listens(address: str) -> None:
    """Nothing happens then."""
    notifier = Notifier({"NOTIFY_SOCKET": address} if address else {})
    notifier.ready()
    notifier.reloading()
    notifier.status("x")
    notifier.watchdog()
    notifier.stopping()


def test_a_manager_that_does_not_read_cannot_block_the_daemon(
    listener: tuple[str, socket.socket],
) -> None:
    """When the queue is full a message is given up after a second."""
    name, _ = listener
    notifier = Notifier({"NOTIFY_SOCKET": name})
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as sender:
        sender.setblocking(False)
        address = f"\0{name[1:]}" if name.startswith("@") else name
        with contextlib.suppress(BlockingIOError):
            while True:
                sender.sendto(b"X=1", address)
    began = time.monotonic()
    notifier.watchdog()
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("variables", "interval"),
    [
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "500000"}, 0.25),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_watchdog_interval(variables: dict[str, str], interval: float | None) -> None:
    """Half of what the manager waits; only for the process that it means."""
    assert Notifier({"NOTIFY_SOCKET": "@x", **variables}).watchdog_interval_s == interval


def test_no_watchdog_without_a_socket() -> None:
    """There is nobody to tell."""
    assert Notifier({"WATCHDOG_USEC": "1000000"}).watchdog_interval_s is None


def test_children_do_not_inherit() -> None:
    """The variables are gone, so that no child speaks for the daemon."""
    environ = {"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1", "HOME": "/"}
    Notifier(environ)
    assert environ == {"HOME": "/"}
