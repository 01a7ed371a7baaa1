"""The daemon under the notify protocol, whatever the pool does: ready, alive, reload, stop."""

from __future__ import annotations

import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tests.pool.ports import free_port
from tests.systemd.manager import Manager
from tests.systemd.pools import KINDS, collector, write_config

WATCHDOG_S = 4.0
#: The end comes at once; that is how long it may take on a machine that does much else.
END_S = 30.0


@dataclass(frozen=True)
class Service:
    """A started daemon, its manager and where it serves."""

    manager: Manager
    config: Path
    port: int

    def get(self, path: str) -> int:
        """The status of an HTTP request."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=120) as answer:
            return int(answer.status)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts a daemon that watches a collector of the given kind."""
    with ExitStack() as stack:

        def starter(
            kind: str = "refuses", *, abstract: bool = False, watchdog_s: float = WATCHDOG_S
        ) -> Service:
            port = free_port()
            config = write_config(tmp_path, stack.enter_context(collector(kind)), port)
            manager = stack.enter_context(
                Manager(tmp_path, abstract=abstract, watchdog_s=watchdog_s)
            )
            manager.start(config)
            return Service(manager, config, port)

        yield starter


@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
@pytest.mark.parametrize("kind", KINDS)
def test_ready_when_http_answers(start: Callable[..., Service], kind: str, abstract: bool) -> None:
    """A pool that cannot be reached does not delay the start; READY=1 is not said too early."""
    service = start(kind, abstract=abstract)
    service.manager.expect("READY=1")
    assert service.get("/-/healthy") == 200


@pytest.mark.parametrize("kind", KINDS)
def test_watchdog_is_fed_in_time(start: Callable[..., Service], kind: str) -> None:
    """Twice per interval, also while queries hang; a quarter is left for a busy machine, and what
    sleeping longer than asked for tells of one that is busier."""
    service = start(kind)
    ready = service.manager.expect("READY=1")
    end, stalls = time.monotonic() + 2.5 * WATCHDOG_S, [0.0]
    while (before := time.monotonic()) < end:
        time.sleep(0.05)
        stalls.append(time.monotonic() - before - 0.05)

    times = [m.time for m in service.manager.messages if m.fields.get("WATCHDOG") == "1"]
    gaps = [later - sooner for sooner, later in pairwise([ready.time, *times, time.monotonic()])]
    assert max(gaps) < 0.75 * WATCHDOG_S + 3 * max(stalls), (gaps, max(stalls))


def test_status_is_one_line_that_says_something(start: Callable[..., Service]) -> None:
    """It is what systemctl status shows."""
    service = start()
    status = service.manager.expect(lambda message: "STATUS" in message.fields)
    assert len(status.fields["STATUS"]) > 5
    assert len(status.fields) == 1 or "READY" in status.fields


def test_only_the_main_process_speaks(start: Callable[..., Service]) -> None:
    """Of others systemd takes nothing (NotifyAccess=main), and queries are processes."""
    service = start()
    service.manager.expect(lambda message: message.fields.get("STATUS", "").startswith("entries:"))
    assert {message.pid for message in service.manager.messages} == {service.manager.pid}


@pytest.mark.parametrize("kind", ["refuses", "silent"])
def test_reload(start: Callable[..., Service], kind: str) -> None:
    """SIGHUP: RELOADING=1 with the time, then READY=1, and it serves as before."""
    service = start(kind)
    ready = service.manager.expect("READY=1")
    for _ in range(2):
        before = time.monotonic()
        service.manager.signal(signal.SIGHUP)
        reloading = service.manager.expect("RELOADING=1", after=ready)
        assert before <= int(reloading.fields["MONOTONIC_USEC"]) / 1e6 <= reloading.time
        ready = service.manager.expect("READY=1", after=reloading)
    assert service.get("/-/healthy") == 200


def test_reload_of_a_broken_configuration_keeps_the_old(start: Callable[..., Service]) -> None:
    """READY=1 is said all the same, else systemd waits for ever; the log says what is wrong."""
    service = start()
    ready = service.manager.expect("READY=1")
    service.config.write_text("[pool]\ncolectors = []\n")
    service.manager.signal(signal.SIGHUP)
    reloading = service.manager.expect("RELOADING=1", after=ready)
    service.manager.expect("READY=1", after=reloading)
    assert "did you mean 'collectors'?" in service.manager.log.read_text()
    assert service.get("/-/healthy") == 200


@pytest.mark.parametrize("kind", KINDS)
def test_stop(start: Callable[..., Service], kind: str) -> None:
    """SIGTERM: STOPPING=1, and exit 0 soon, also while queries hang."""
    service = start(kind)
    ready = service.manager.expect("READY=1")
    time.sleep(1)  # the first poll is under way
    service.manager.signal(signal.SIGTERM)
    service.manager.expect("STOPPING=1", timeout=END_S, after=ready)
    assert service.manager.wait(END_S) == 0


def test_stop_during_the_start(start: Callable[..., Service]) -> None:
    """However early the signal comes, the end comes soon, and is not a failure for systemd."""
    service = start("silent")
    time.sleep(0.5)
    service.manager.signal(signal.SIGTERM)
    assert service.manager.wait(END_S) in (0, -signal.SIGTERM)


def test_signals_may_come_at_any_moment(start: Callable[..., Service]) -> None:
    """Thousands, many of them just when the main thread wakes: none blocks it.

    The short watchdog has it wake often.  (A handler that sets a threading.Event for which the
    interrupted thread itself waits is a deadlock, once in a while.)
    """
    service = start(watchdog_s=0.2)
    ready = service.manager.expect("READY=1")
    end = time.monotonic() + 3
    while time.monotonic() < end:
        service.manager.signal(signal.SIGHUP)
        time.sleep(0.0002)
    service.manager.signal(signal.SIGTERM)
    service.manager.expect("STOPPING=1", timeout=END_S, after=ready)
    assert service.manager.wait(END_S) == 0


def test_stop_with_a_scraper_that_keeps_its_connection(start: Callable[..., Service]) -> None:
    """Prometheus holds connections open; they do not delay the end."""
    service = start()
    service.manager.expect("READY=1")
    with urllib.request.urlopen(f"http://127.0.0.1:{service.port}/metrics", timeout=120):
        service.manager.signal(signal.SIGTERM)
        assert service.manager.wait(END_S) == 0


def test_bad_configuration_is_exit_code_2(tmp_path: Path) -> None:
    """With which the unit does not start it again."""
    config = tmp_path / "gwmond.toml"
    config.write_text("[pool]\ncolectors = []\n")
    with Manager(tmp_path) as manager:
        manager.start(config)
        assert manager.wait(240) == 2
    assert "did you mean 'collectors'?" in manager.log.read_text()
