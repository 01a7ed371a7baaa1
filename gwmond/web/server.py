"""Serves the application with uvicorn in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from gwmond.config.settings import Http
from gwmond.web.connections import AT_ONCE, REQUEST_S, BadRequests, Listener
from gwmond.web.local import LocalListener

if TYPE_CHECKING:
    from fastapi import FastAPI

log = structlog.get_logger()
START_TIMEOUT_S = 10
_SWEEP_S = 1.0


class PortError(Exception):
    """The configured address cannot be listened on; says which key to change."""


def bind(options: Http) -> Listener:
    """Return a listening socket for ``http.listen``; raises PortError."""
    host, port = options.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = Listener(family)
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


def pem(path: str) -> str:
    """Return the text of a file of certificates; empty without one that can be read."""
    try:
        return Path(path).read_text(errors="replace") if path else ""
    except OSError:
        return ""


class _Certificate:
    """The certificate and key of ``options``, which may be renewed while they are in use."""

    def __init__(self, options: Http) -> None:
        self._files = options.tls_cert, options.tls_key
        self._in_use = self._stamps()
        self.text = pem(options.tls_cert)

    def renew(self, context: ssl.SSLContext | None) -> None:
        """Serve new connections with new files, once both are there and belong together."""
        if context is None or (stamps := self._stamps()) == self._in_use:
            return
        self._in_use = stamps
        try:
            # A context that refused a pair has lost its own.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files)
            context.load_cert_chain(*self._files)
        except OSError as error:  # an SSLError, too
            log.warning("new certificate not used, the old one stays", error=str(error))
        else:
            self.text = pem(self._files[0])
            log.info("new certificate used", certificate=self._files[0])

    def _stamps(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(map(_stamp, self._files))


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


class Server:
    """A running web server; ``stop`` it when done."""

    def __init__(self, app: FastAPI, listener: Listener, options: Http) -> None:
        import uvicorn  # noqa: PLC0415 (gwmond check only tries the address)

        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=int(REQUEST_S),
            backlog=AT_ONCE,
            ssl_certfile=options.tls_cert or None,
            ssl_keyfile=options.tls_key or None,
        )
        scheme = "https" if options.tls_cert else "http"
        host, port = listener.getsockname()[:2]
        self.url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
        self._server = uvicorn.Server(config)
        self._local: tuple[uvicorn.Server, LocalListener] | None = None
        self._listener, self._certificate = listener, _Certificate(options)
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    @property
    def certificate(self) -> str:
        """The certificate in use with its chain, as PEM; empty without TLS."""
        return self._certificate.text

    def serve_locally(self, app: FastAPI, listener: LocalListener) -> None:
        """Serve another application on a Unix socket, once this is started."""
        import uvicorn  # noqa: PLC0415

        config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
        self._local = uvicorn.Server(config), listener

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
        if self._local is not None:
            self._local[0].should_exit = True
        self._thread.join(5)
        self._listener.close()
        if self._local is not None:
            self._local[1].close()

    def _serve(self) -> None:
        errors = logging.getLogger("uvicorn.error")
        refused = BadRequests(self._listener.connections)
        errors.setLevel(logging.WARNING)  # counted, also where the log has errors alone
        errors.addFilter(refused)
        try:
            with asyncio.Runner(loop_factory=_Loop) as runner:
                runner.run(self._run())
        finally:
            errors.removeFilter(refused)

    async def _run(self) -> None:
        sweeping = asyncio.create_task(self._sweep())
        try:
            served = [self._server.serve(sockets=[self._listener])]
            if self._local is not None:
                served.append(self._local[0].serve(sockets=[self._local[1]]))
            await asyncio.gather(*served)
        finally:
            sweeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sweeping

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            self._listener.connections.sweep()
            self._certificate.renew(self._server.config.ssl)


class _Loop(asyncio.SelectorEventLoop):
    """An event loop in which TLS, too, has to be agreed upon in the time of a request."""

    async def create_server(self, *args: Any, **options: Any) -> asyncio.Server:
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = REQUEST_S
        server: asyncio.Server = await super().create_server(*args, **options)
        return server
