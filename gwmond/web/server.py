"""Serves the application with uvicorn in a thread of its own."""

from __future__ import annotations

import errno
import socket
import threading
import time

import uvicorn
from fastapi import FastAPI

from gwmond.config import Http

START_TIMEOUT_S = 10


class PortError(Exception):
    """The configured address cannot be listened on; says which key to change."""


def bind(options: Http) -> socket.socket:
    """Return a listening socket for ``http.listen``; raises PortError."""
    host, port = options.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # only now nobody else can have the port
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            why = "is in use by another process: stop that one or configure another port"
        else:
            why = f"cannot be listened on: {error.strerror}: configure another address"
        raise PortError(f"http.listen: {options.listen} {why}") from None
    return listener


class Server:
    """A running web server; ``stop`` it when done."""

    def __init__(self, app: FastAPI, listener: socket.socket, options: Http) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            limit_concurrency=200,
            ssl_certfile=options.tls_cert or None,
            ssl_keyfile=options.tls_key or None,
        )
        scheme = "https" if options.tls_cert else "http"
        host, port = listener.getsockname()[:2]
        self.url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
        self._server = uvicorn.Server(config)
        self._listener = listener
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    def start(self) -> None:
        """Start, and return once requests are answered."""
        self._thread.start()
        until = time.monotonic() + START_TIMEOUT_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise PortError(f"the web server on {self.url} did not start: see the log")
            time.sleep(0.01)

    def stop(self) -> None:
        """Finish requests under way and close."""
        self._server.should_exit = True
        self._thread.join(5)
        self._listener.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._listener])
