"""One exchange with a receiver of traces that means harm."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from gwmond.config.settings import Config
from gwmond.config.tracing import Export, export_of
from gwmond.service.host.otlp_client import OtlpClient
from gwmond.traces.otlp import Request


@pytest.fixture
def receiver() -> Iterator[Callable[[bytes, bool], str]]:
    """Starts a receiver that answers with bytes, once or for ever; returns its URL."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(answer: bytes, for_ever: bool) -> None:
            with server.accept()[0] as client:
                client.recv(65536)
                try:
                    client.sendall(answer)
                    while for_ever and not over.wait(0.05):
                        client.sendall(answer)
                except OSError:
                    return

        def start(answer: bytes, for_ever: bool) -> str:
            threading.Thread(target=serve, args=(answer, for_ever), daemon=True).start()
            return f"http://127.0.0.1:{server.getsockname()[1]}"

        yield start
        over.set()


def client(url: str) -> OtlpClient:
    options = Config.model_validate({"traces": {"endpoint": url, "timeout": "1s"}}).traces
    export = export_of(options, {})
    assert isinstance(export, Export)
    return OtlpClient(export)


def test_an_exchange_has_an_end(receiver: Callable[[bytes, bool], str]) -> None:
    """However often the receiver says that it is at work."""
    answer = b"HTTP/1.1 102 Processing\r\n\r\n"
    since = time.monotonic()
    said = client(receiver(answer, True)).post(Request(b"x", 1))
    assert time.monotonic() - since < 10
    assert (said.accepted, said.again) == (False, True)
    assert said.detail


def test_a_reason_is_printable(receiver: Callable[[bytes, bool], str]) -> None:
    """It goes to the log, and to a terminal from there."""
    answer = b"HTTP/1.1 400 \x1b[31mred\x07" + b"x" * 4000 + b"\r\nContent-Length: 0\r\n\r\n"
    detail = client(receiver(answer, False)).post(Request(b"x", 1)).detail
    assert detail.isprintable()
    assert len(detail) < 500
