"""The web server on real sockets."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from gwmond.config.settings import Http
from gwmond.web.app import create
from gwmond.web.server import PortError, Server, bind
from tests.build.certificates import self_signed
from tests.build.web import Daemon
from tests.pool.sandbox import wait_until

Start = Callable[..., Server]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers, and stops them at the end."""
    running: list[Server] = []

    def run(**options: object) -> Server:
        http = Http.model_validate({"listen": "127.0.0.1:0"} | options)
        server = Server(create(Daemon(), ""), bind(http), http)
        server.start()
        running.append(server)
        return server

    yield run
    for server in running:
        server.stop()


def port(server: Server) -> int:
    return int(server.url.rpartition(":")[2])


def test_serves_and_stops(start: Start) -> None:
    """A started server answers at its address, and is gone after it was stopped."""
    server = start()
    assert httpx.get(f"{server.url}/-/healthy").status_code == 200
    server.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/-/healthy")


def test_answers_say_nothing_of_the_server(start: Start) -> None:
    """No header tells which software, in which version, is behind it."""
    headers = httpx.get(f"{start().url}/metrics").headers
    assert "server" not in headers


def test_port_in_use(start: Start) -> None:
    """A port that another process has is an error that names the option."""
    number = port(start())
    with pytest.raises(PortError) as caught:
        bind(Http(listen=f"127.0.0.1:{number}"))
    assert str(caught.value) == (
        f"http.listen: 127.0.0.1:{number} is in use by another process: "
        "stop that one or configure another port"
    )


def test_port_is_ours_once_it_is_bound() -> None:
    """Of two that start at once only one gets the port, before either serves."""
    first = bind(Http(listen="127.0.0.1:0"))
    with pytest.raises(PortError, match="in use"):
        bind(Http(listen=f"127.0.0.1:{first.getsockname()[1]}"))
    first.close()


@pytest.mark.parametrize("listen", ["203.0.113.7:9818", "nowhere.invalid:9818"])
def test_address_that_is_not_here(listen: str) -> None:
    """An address of another machine, or of none, is an error that names the option."""
    with pytest.raises(PortError) as caught:
        bind(Http(listen=listen, allow_insecure=True))
    assert str(caught.value).startswith(f"http.listen: {listen} cannot be listened on: ")
    assert "another process" not in str(caught.value)


def test_ipv6(start: Start) -> None:
    """An IPv6 address is listened on, and its URL can be used as it is."""
    server = start(listen="[::1]:0")
    assert server.url.startswith("http://[::1]:")
    assert httpx.get(f"{server.url}/-/healthy").status_code == 200


def test_tls(start: Start, certificate: tuple[str, str]) -> None:
    """With a certificate all is encrypted, and nothing is answered in the clear."""
    cert, key = certificate
    server = start(tls_cert=cert, tls_key=key)
    assert server.url.startswith("https://127.0.0.1:")
    trusted = ssl.create_default_context(cafile=cert)
    assert httpx.get(f"{server.url}/-/healthy", verify=trusted).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/-/healthy")
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"{server.url.replace('https', 'http')}/-/healthy")


def test_a_renewed_certificate(start: Start, tmp_path: Path) -> None:
    """It is served as soon as both files belong together; until then the old one is."""
    old, new = tmp_path / "old", tmp_path / "new"
    self_signed(old)
    self_signed(new)
    old_trust = ssl.create_default_context(cafile=old / "cert.pem")
    trust = ssl.create_default_context(cafile=new / "cert.pem")
    server = start(tls_cert=str(old / "cert.pem"), tls_key=str(old / "key.pem"))

    def answers(verify: ssl.SSLContext) -> bool:
        with suppress(httpx.ConnectError):
            return httpx.get(f"{server.url}/-/healthy", verify=verify).status_code == 200
        return False

    assert answers(old_trust)
    with capture_logs() as logs:
        (new / "cert.pem").replace(old / "cert.pem")
        wait_until("a look at half of it", lambda: logs)
        assert logs[0]["event"] == "new certificate not used, the old one stays"
        assert answers(old_trust)
        (new / "key.pem").replace(old / "key.pem")
        wait_until("the new certificate", lambda: answers(trust))
    assert not answers(old_trust)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_bad_certificate(start: Start, certificate: tuple[str, str], tmp_path: Path) -> None:
    """A certificate that cannot be used fails the start, and does not serve in the clear."""
    bad = tmp_path / "bad.pem"
    bad.write_text("no certificate")
    with pytest.raises(PortError, match="did not start"):
        start(tls_cert=str(bad), tls_key=certificate[1])


def test_slow_client_does_not_stop_others(start: Start) -> None:
    """A client that never ends its request keeps nobody else from theirs."""
    server = start()
    with socket.create_connection(("127.0.0.1", port(server))) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\n")
        answers = [httpx.get(f"{server.url}/-/healthy", timeout=120).status_code for _ in range(3)]
    assert answers == [200] * 3


def test_no_thread_is_left(start: Start) -> None:
    """A server that was stopped leaves no thread."""
    before = threading.active_count()
    start().stop()
    assert threading.active_count() <= before
