"""The connections of the web server: limited in number and in time.

A client costs a file descriptor from the moment when the kernel accepts its connection, before it
has sent a byte, and so before any authentication.  Therefore:

- a connection without a whole request is closed after ``REQUEST_S``, one whose client does not
  take the answer after ``ANSWER_S``, or after ``REFUSAL_S`` if the request was refused;
- there are at most ``MOST`` connections.  For one more, an old one is closed: first those that were
  refused, then those without a whole request, at last those with the token; the oldest first.

So a client that sends its request at once is answered, however many clients send nothing, and polls
have file descriptors.  Closed connections and refused requests are counted by kind.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from gwmond.model.digits import is_number
from gwmond.model.facts import Problem
from gwmond.model.problem_names import ProblemName

MOST = 200
REQUEST_S = 10.0
ANSWER_S = 60.0
REFUSAL_S = 2.0
AT_ONCE = 16
"""So many connections are accepted before requests are read.  It is far below ``MOST``, so that a
client which sends its request at once is read before others take its place."""

QUEUED = 1024
"""So many connections may wait in the kernel to be accepted."""

SOURCE = "http"
Client = tuple[str, int]


@dataclass(slots=True)
class _Connection:
    """One connection; ``since`` is when it was opened, or its last request began or ended."""

    socket: socket.socket
    since: float
    answering: bool = False
    trusted: bool = False
    refused: bool = False


class Connections:
    """All open connections of one server; times are those of ``clock``, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[Client, _Connection] = {}
        self._counts: Counter[ProblemName] = Counter()
        self._lock = threading.Lock()  # polls take the counts

    @property
    def clients(self) -> frozenset[Client]:
        """Whose connections are open."""
        return frozenset(self._open)

    def opened(self, connection: socket.socket, client: Client) -> None:
        """Know a new connection; close another one if there are too many."""
        if len(self._open) >= MOST:
            self._forget_closed()
        if len(self._open) >= MOST:
            worst = min(self._open, key=lambda client: self._worth(self._open[client]))
            self._close(worst, ProblemName.TOO_MANY_CONNECTIONS)
        self._open[client] = _Connection(connection, self._clock())

    @staticmethod
    def _worth(one: _Connection) -> tuple[bool, bool, bool, float]:
        return one.trusted, not one.refused, one.answering, one.since

    def begin(self, client: Client, *, trusted: bool) -> None:
        """A whole request has come."""
        if (known := self._open.get(client)) is not None:
            known.answering, known.trusted, known.since = True, trusted, self._clock()

    def refuse(self, client: Client, kind: ProblemName) -> None:
        """Count a request that is refused; the answer has little time."""
        self.count(kind)
        if (known := self._open.get(client)) is not None:
            known.refused, known.since = True, self._clock()

    def end(self, client: Client) -> None:
        """The request is answered; the client may send another one."""
        if (known := self._open.get(client)) is not None:
            known.answering = False
            known.since = known.since if known.refused else self._clock()

    def sweep(self) -> None:
        """Close connections that have lasted too long."""
        self._forget_closed()
        now = self._clock()
        for client, known in list(self._open.items()):
            late = known.answering or known.refused
            limit_s = REFUSAL_S if known.refused else ANSWER_S if late else REQUEST_S
            if now - known.since > limit_s:
                self._close(client, ProblemName.SLOW_CLIENT if late else ProblemName.NO_REQUEST)

    def count(self, kind: ProblemName) -> None:
        """Count a connection or a request that was refused."""
        with self._lock:
            self._counts[kind] += 1

    def problems(self) -> list[Problem]:
        """Return the refusals since the last call, one problem for each kind."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return [Problem(SOURCE, kind, f"{n} times", n) for kind, n in sorted(counts.items())]

    def _close(self, client: Client, kind: ProblemName) -> None:
        known = self._open.pop(client)
        self.count(kind)
        with contextlib.suppress(OSError):  # it has just been closed
            known.socket.shutdown(socket.SHUT_RDWR)  # its reader sees the end, and closes it

    def _forget_closed(self) -> None:
        closed = [client for client, known in self._open.items() if known.socket.fileno() < 0]
        for client in closed:
            del self._open[client]


class Listener(socket.socket):
    """A listening socket that knows the connections which it accepted."""

    def __init__(self, family: socket.AddressFamily) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self.connections = Connections()

    def listen(self, _backlog: int = QUEUED) -> None:
        """Listen; how many connections wait does not depend on how many are accepted at once."""
        super().listen(QUEUED)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, see ``socket.socket.accept``."""
        connection, address = super().accept()
        self.connections.opened(connection, address[:2])
        return connection, address


_TOLD = ("Exception in ASGI application", "ASGI callable", "Exception in 'lifespan' protocol")
"""How those of uvicorn's messages begin that no client can cause as it likes."""


class BadRequests(logging.Filter):
    """Counts what uvicorn would log for each request, except ``_TOLD``."""

    def __init__(self, connections: Connections) -> None:
        super().__init__()
        self._connections = connections

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be logged."""
        if not record.getMessage().startswith(_TOLD):
            if record.levelno >= logging.WARNING:
                self._connections.count(ProblemName.BAD_HTTP)
            return False
        return record.levelno >= logging.getLogger().level


def accepts(header: str, wanted: str) -> bool:
    """Return whether an Accept or Accept-Encoding header names ``wanted``, and not with ``q=0``.

    >>> accepts("text/plain;q=0.5, gzip", "gzip"), accepts("gzip;q=0", "gzip"), accepts("", "gzip")
    (True, False, False)
    """
    for part in header.split(","):
        name, *parameters = (word.strip().lower() for word in part.split(";"))
        if name == wanted:
            return not any(_is_zero(parameter) for parameter in parameters)
    return False


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name == "q" and not value.strip("0.")


def _is_address(text: str) -> bool:
    try:
        ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def host_is_known(host: str, names: Iterable[str]) -> bool:
    """Return whether a Host header names this server: an address, localhost, or one of ``names``.

    A page of another site that a browser was made to take for this server (DNS rebinding) carries
    that site's name.

    >>> host_is_known("127.0.0.1:9818", ()), host_is_known("evil.example", ("cm.example",))
    (True, False)
    >>> host_is_known("[::1]:9818", ()), host_is_known("[evil", ()), host_is_known("[evil]", ())
    (True, False, False)
    """
    name = host.rpartition(":")[0] if is_number(host.rpartition(":")[2]) else host
    if _is_address(name.removeprefix("[").removesuffix("]") if name.startswith("[") else name):
        return True
    return name.lower().rstrip(".") in {"localhost", *(known.lower() for known in names)}
