"""Who asks for much, or leaves, keeps nobody from pages and REST."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from gwmond.reports.sites.time_by_hour import Times
from gwmond.web import desks
from gwmond.web import time as timechart
from tests.build.rest import polled, serve

SLOW_S = 0.3


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A ledger of which each reading takes its time; gives what was read."""
    asked: list[str] = []

    def read(
        _url: str, _range: str, _now: float, _resource: str, place: object, _mib: int
    ) -> Times:
        asked.append(str(place))
        time.sleep(SLOW_S)
        return Times()

    monkeypatch.setattr(timechart, "read", read)
    return asked


@contextmanager
def running(url: str) -> Iterator[tuple[str, int]]:
    """A server of a ledger: its address, its port."""
    with serve(polled(url)) as (server, listener):
        yield server.url, listener.getsockname()[1]


def ask(port: int, path: str) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return client


def test_who_leaves_costs_nobody(url: str, slow: list[str]) -> None:
    """Hundreds of pages that nobody waits for any more are not made before those of others."""
    with running(url) as (address, port):
        for number in range(300):
            ask(port, f"/time?site=s{number}").close()
        while httpx.get(f"{address}/time?last=7d", timeout=60).status_code == 503:
            time.sleep(0.1)  # it has not yet seen all of them leave
        assert httpx.get(f"{address}/api/v1/sites", timeout=60).status_code == 200
    assert len(slow) < 300 / 4


def test_what_is_in_memory_waits_for_no_ledger(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and answers of the last poll alone are made while others wait for the ledger."""
    asked: list[object] = []
    begun, over = threading.Event(), threading.Event()

    def read(*of: object) -> Times:
        asked.append(of)
        begun.set()
        over.wait()
        return Times()

    monkeypatch.setattr(timechart, "read", read)
    with running(url) as (address, port), ExitStack() as stack:
        stack.callback(over.set)
        for number in range(desks.MOST_WAITING):
            stack.enter_context(ask(port, f"/time?site=s{number}"))
        begun.wait()
        for path in ("/", "/problems", "/api/v1/sites", "/explain?job=", "/metrics"):
            assert httpx.get(address + path, timeout=60).status_code == 200, path
        assert len(asked) < desks.MOST_WAITING


def test_few_wait(url: str, slow: list[str]) -> None:
    """Who is one too many is told when to ask again, and nobody waits for long."""
    with running(url) as (address, _), ThreadPoolExecutor(60) as threads:
        paths = [f"{address}/time?site=s{number}" for number in range(60)]
        found = list(threads.map(lambda path: httpx.get(path, timeout=60), paths))
        api = [f"{address}/api/v1/totals?site=s{number}" for number in range(60)]
        answered = list(threads.map(lambda path: httpx.get(path, timeout=60), api))
    assert {one.status_code for one in found} == {200, 503}
    refused = [one for one in (*found, *answered) if one.status_code == 503]
    assert {one.headers["retry-after"] for one in refused} == {"5"}
    assert desks.MOST_WAITING <= len(slow) <= 60 - 1


def test_who_waits_too_long_is_told(
    url: str, slow: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is not made in time is refused, and made for who asks again."""
    monkeypatch.setattr(desks, "WAIT_S", SLOW_S / 3, raising=False)
    before = threading.active_count()  # other tests have left some
    with running(url) as (address, _):
        assert httpx.get(f"{address}/time", timeout=60).status_code == 503
        time.sleep(2 * SLOW_S)
        assert httpx.get(f"{address}/time", timeout=60).status_code == 200
    assert len(slow) == 1
    assert threading.active_count() < before + 20
