"""A receiver of OTLP over HTTP, whose answers a test chooses."""

from __future__ import annotations

import gzip
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.pool.sandbox import wait_until


class Reply(NamedTuple):
    """An answer; ``hang``: none is given, until the sink ends."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/x-protobuf"),)
    body: bytes = b""
    hang: bool = False


OK = Reply()


class Received(NamedTuple):
    """A request as it came, and when (monotonic clock, before it was answered)."""

    path: str
    headers: dict[str, str]
    raw: bytes
    accepted: bool
    time: float

    @property
    def spans(self) -> list[Span]:
        packed = self.headers.get("content-encoding") == "gzip"
        body = gzip.decompress(self.raw) if packed else self.raw
        whole = ExportTraceServiceRequest.FromString(body).resource_spans
        return [span for one in whole for scope in one.scope_spans for span in scope.spans]


class Sink(ThreadingHTTPServer):
    """``replies`` are given one after the other, then ``reply`` for ever."""

    daemon_threads = True

    def __init__(self, *replies: Reply, reply: Reply = OK, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.replies, self.reply = list(replies), reply
        self.received: list[Received] = []
        self.over = threading.Event()
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    @property
    def accepted(self) -> list[Span]:
        """The spans that were taken, in the order in which they came."""
        return [span for one in list(self.received) if one.accepted for span in one.spans]

    def await_requests(self, number: int) -> None:
        wait_until(f"{number} requests", lambda: len(self.received) >= number)

    def await_spans(self, number: int) -> None:
        wait_until(f"{number} spans", lambda: len(self.accepted) >= number)

    def handle_error(self, request: object, client_address: object) -> None:
        """The client may have gone."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Sink

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        reply = self.server.replies.pop(0) if self.server.replies else self.server.reply
        headers = {name.lower(): value for name, value in self.headers.items()}
        accepted = reply.status == 200 and not reply.hang
        now = time.monotonic()
        self.server.received.append(Received(self.path, headers, raw, accepted, now))
        if reply.hang:
            self.server.over.wait()
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in (*reply.headers, ("Content-Length", str(len(reply.body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def sink(
    *replies: Reply, reply: Reply = OK, port: int = 0, context: ssl.SSLContext | None = None
) -> Iterator[Sink]:
    """Yield a receiver that listens; ``context``: with TLS."""
    server = Sink(*replies, reply=reply, port=port)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.scheme = "https"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
