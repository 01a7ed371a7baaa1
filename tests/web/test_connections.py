"""Connections of strangers: silent, slow, many, or under another name."""

from __future__ import annotations

import gzip
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import uvicorn

from gwmond.metrics.render import Exposition
from gwmond.model.problem_names import ProblemName
from gwmond.web import connections
from gwmond.web.connections import (
    ANSWER_S,
    MOST,
    REFUSAL_S,
    REQUEST_S,
    BadRequests,
    Connections,
    Listener,
)
from gwmond.web.server import Server
from tests.build.rest import serve
from tests.build.web import Daemon
from tests.metrics.golden import exposition
from tests.pool.sandbox import wait_until

OLD_UVICORN = uvicorn.__version__.startswith("0.30.")
TOKEN = b"se-cret"
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN.decode()}"}


class Running:
    """A server on a port of its own, with its connections."""

    def __init__(self, server: Server, listener: Listener) -> None:
        self.url = server.url
        self.port = listener.getsockname()[1]
        self.connections = listener.connections

    def raw(self, request: bytes) -> bytes:
        """What the server answers to these bytes, until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as client:
            client.sendall(request)
            answer = b""
            while part := client.recv(65536):
                answer += part
        return answer

    def counted(self, kind: str) -> int:
        """How many connections or requests of a kind were refused since this was asked."""
        return sum(p.records or 0 for p in self.connections.problems() if p.problem == kind)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts servers; with ``token`` all but health asks for the token."""
    with ExitStack() as stack:

        def run(*, token: bool = False, shown: Exposition | None = None) -> Running:
            file = tmp_path / "token"
            file.write_bytes(TOKEN)
            daemon = Daemon(None, shown or exposition())
            return Running(
                *stack.enter_context(serve(daemon, auth_token_file=str(file) if token else ""))
            )

        yield run


@pytest.mark.parametrize(
    "host", ["x/-/healthy?", "127.0.0.1/-/healthy?", "127.0.0.1:1/-/healthy#", "[::1]/-/healthy?"]
)
def test_a_host_header_is_no_path(start: Callable[..., Running], host: str) -> None:
    """The token is asked for by the path of the request line, whatever the Host header says."""
    request = f"GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    answer = start(token=True).raw(request)
    assert answer.split()[1] in {b"400", b"401", b"421"}
    assert b"gwmond_build" not in answer


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9818", 200),
        ("localhost", 200),
        ("[::1]:9818", 200),
        ("[evil", 421),
        ("[evil]:80", 421),
        (socket.gethostname().upper(), 200),
        ("evil.example", 421),
        ("evil.example:9818", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
    ],
)
def test_another_name_is_refused(start: Callable[..., Running], host: str, status: int) -> None:
    """A page that a browser was made to take for this server reads nothing."""
    running = start()
    answer = httpx.get(f"{running.url}/metrics", headers={"Host": host})
    assert answer.status_code == status
    assert running.counted("bad_host") == (status == 421)


def test_a_silent_connection_is_closed(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a whole request in time a connection ends, whether bytes drip or none comes."""
    monkeypatch.setattr(connections, "REQUEST_S", 0.5)
    running = start()
    assert running.raw(b"") == b""
    assert running.raw(b"GET /metrics HTTP/1.1\r\nHost: loc") == b""
    assert running.counted("no_request") == 2


def test_silent_connections_keep_nobody_out(start: Callable[..., Running]) -> None:
    """However many there are, who asks is answered, and few file descriptors are held."""
    running = start(token=True)
    with ExitStack() as stack:
        for _ in range(3 * MOST):
            stack.enter_context(socket.create_connection(("127.0.0.1", running.port)))
        assert httpx.get(f"{running.url}/-/healthy", timeout=120).status_code == 200
        answer = httpx.get(f"{running.url}/metrics", headers=WITH_TOKEN, timeout=120)
        assert answer.status_code == 200
        assert httpx.get(f"{running.url}/metrics", timeout=120).status_code == 401
        assert len(running.connections.clients) <= MOST
    assert running.counted("too_many_connections") >= MOST


@pytest.mark.parametrize("level", [logging.WARNING, logging.ERROR])
def test_noise_is_counted_and_not_logged(
    start: Callable[..., Running], caplog: pytest.LogCaptureFixture, level: int
) -> None:
    """What is no HTTP is one number of a problem, however often it comes."""
    caplog.set_level(level)
    running = start()
    for _ in range(20):
        assert b"400" in running.raw(b"\x16\x03\x01 no http\r\n\r\n")
    counted = 0

    def counted_all() -> bool:
        nonlocal counted
        counted += running.counted("bad_http")
        return counted == 20

    wait_until("the count", counted_all)
    assert running.counted("bad_http") == 0
    assert not caplog.records


@pytest.mark.parametrize("kind", ["websocket", "h2c", "any"])
def test_an_upgrade_is_counted_and_not_logged(
    start: Callable[..., Running], caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """The server's library warns twice of each such request, before anybody asks for a token.

    uvicorn 0.30 warns of websockets only: what it says nothing of is not counted here.
    """
    running = start(token=True)
    head = f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: {kind}"
    for _ in range(3):
        assert b" 401 " in running.raw(f"{head}\r\n\r\n".encode())
    assert running.counted("bad_http") >= 3 or (kind != "websocket" and OLD_UVICORN)
    assert not caplog.records


def test_an_error_of_ours_is_logged() -> None:
    """What no client can cause is not filtered."""
    known = BadRequests(Connections())
    told = logging.LogRecord("x", logging.ERROR, "", 0, "Exception in ASGI application\n", (), None)
    other = logging.LogRecord("x", logging.ERROR, "", 0, "something new", (), None)
    assert (known.filter(told), known.filter(other)) == (True, False)


def test_two_lengths_are_refused(start: Callable[..., Running]) -> None:
    """A proxy before us may see two requests where there is one (RFC 9112, 6.3)."""
    head = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n"
    lengths = "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
    running = start()
    assert running.raw((head + lengths).encode()).split()[1] == b"400"
    assert running.counted("bad_http") == 1


def test_a_refusal_ends_its_connection(start: Callable[..., Running]) -> None:
    """Of requests that are sent without waiting, one is refused, and no other is read."""
    running = start(token=True)
    answer = running.raw(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
    assert answer.count(b" 401 ") == 1
    assert running.counted("no_token") == 1


def test_head(start: Callable[..., Running]) -> None:
    """HEAD is answered as GET is, without a body."""
    url = start().url
    for path in ("/metrics", "/-/healthy"):
        answer = httpx.head(url + path)
        assert (answer.status_code, answer.content) == (200, b"")
        assert int(answer.headers["content-length"]) > 10


def test_packed(start: Callable[..., Running]) -> None:
    """Who takes gzip gets it, with the same text in it; ``q=0`` says no."""
    shown = exposition()
    url = start(shown=shown).url
    plain = httpx.get(f"{url}/metrics", headers={"Accept-Encoding": "gzip;q=0"})
    packed = httpx.get(f"{url}/metrics", headers={"Accept-Encoding": "deflate, gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.content == packed.content == shown.text
    assert gzip.decompress(shown.openmetrics_gzip) == shown.openmetrics


def test_openmetrics_is_not_forced_upon_who_refuses() -> None:
    """``q=0`` means not that one."""
    assert not connections.accepts(
        "application/openmetrics-text; q=0.0", "application/openmetrics-text"
    )


class Clock:
    """A clock that stands still."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def sockets() -> Iterator[Callable[[], socket.socket]]:
    """Makes sockets, each with a peer that sees when it is shut."""
    with ExitStack() as stack:

        def make() -> socket.socket:
            ours, theirs = socket.socketpair()
            stack.enter_context(theirs)
            return stack.enter_context(ours)

        yield make


def test_who_goes_first(sockets: Callable[[], socket.socket]) -> None:
    """With no room left the silent go first, then those without the token, the oldest of each."""
    clock = Clock()
    known = Connections(clock)
    for port in range(MOST):
        clock.now += 0.001
        known.opened(sockets(), ("a", port))
    for port in range(MOST):
        if port not in {7, 8}:
            known.begin(("a", port), trusted=port not in {3, 4})
    gone = []
    for port in range(MOST, MOST + 4):
        clock.now += 0.001
        before = known.clients
        known.opened(sockets(), ("a", port))
        known.begin(("a", port), trusted=True)
        gone += [client[1] for client in before - known.clients]
    assert gone == [7, 8, 3, 4]


def test_what_lasts_too_long_is_closed(sockets: Callable[[], socket.socket]) -> None:
    """A request has ten seconds to come, an answer a minute to be taken."""
    clock = Clock()
    known = Connections(clock)
    silent, slow, closed = sockets(), sockets(), sockets()
    for port, one in enumerate((silent, slow, closed)):
        known.opened(one, ("a", port))
    known.begin(("a", 1), trusted=False)
    closed.close()
    clock.now += REQUEST_S + 1
    known.sweep()
    assert known.clients == {("a", 1)}
    clock.now += ANSWER_S
    known.sweep()
    assert not known.clients
    assert [(p.problem, p.records) for p in known.problems()] == [
        ("no_request", 1),
        ("slow_client", 1),
    ]
    known.begin(("a", 9), trusted=False)
    known.end(("a", 9))


def test_what_was_refused_has_little_time_and_goes_first(
    sockets: Callable[[], socket.socket],
) -> None:
    """Before those that have sent nothing yet; who has the token is last, answered or not."""
    clock = Clock()
    known = Connections(clock)
    for port in range(MOST):
        clock.now += 0.001
        known.opened(sockets(), ("a", port))
        if port:
            known.begin(("a", port), trusted=port == 1)
        if port > 1:
            known.refuse(("a", port), ProblemName.NO_TOKEN)
    known.end(("a", 1))
    known.opened(sockets(), ("a", MOST))
    assert known.clients == {("a", port) for port in range(MOST + 1) if port != 2}
    known.end(("a", 3))
    clock.now += REFUSAL_S + 1
    known.sweep()
    assert known.clients == {("a", 0), ("a", 1), ("a", MOST)}
