"""The HTTP application.  A request never touches HTCondor and never waits for a poll."""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

from gwmond import __version__
from gwmond.metrics.render import OPENMETRICS_TYPE, TEXT_TYPE, Exposition
from gwmond.snapshot import Snapshot
from gwmond.web import landing

_Next = Callable[[Request], Awaitable[Response]]


class State(Protocol):
    """What the daemon shows; both are swapped whole after a poll."""

    @property
    def snapshot(self) -> Snapshot | None: ...

    @property
    def exposition(self) -> Exposition: ...

    def ready(self) -> str:
        """Return why the daemon is not ready, empty when it is."""


def _token(path: str) -> bytes:
    """Return the token, read anew for it may be changed; empty lets nobody in."""
    try:
        return Path(path).read_bytes().strip()
    except OSError:
        return b""


def create(state: State, token_file: str) -> FastAPI:
    """Make the application; with ``token_file`` all but ``/-/healthy`` asks for the token."""
    app = FastAPI(
        title="gwmond", version=__version__, docs_url=None, redoc_url=None, openapi_url=None
    )

    @app.middleware("http")
    async def authorize(request: Request, call_next: _Next) -> Response:
        if token_file and request.url.path != "/-/healthy":
            token = _token(token_file)
            given = request.headers.get("authorization", "").encode()
            if not token or not hmac.compare_digest(given, b"Bearer " + token):
                return PlainTextResponse(
                    "a bearer token is needed\n",
                    status_code=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )
        return await call_next(request)

    @app.get("/metrics")
    async def metrics(request: Request) -> Response:
        """Metrics in the Prometheus text format, or OpenMetrics where a scraper prefers it."""
        exposition = state.exposition
        if "application/openmetrics-text" in request.headers.get("accept", ""):
            return Response(exposition.openmetrics, media_type=OPENMETRICS_TYPE)
        return Response(exposition.text, media_type=TEXT_TYPE)

    @app.get("/-/healthy")
    async def healthy() -> PlainTextResponse:
        """Answer as long as the process serves."""
        return PlainTextResponse("gwmond is healthy\n")

    @app.get("/-/ready")
    async def ready() -> PlainTextResponse:
        """Answer 200 once the first poll has ended, 503 before."""
        reason = state.ready()
        if reason:
            return PlainTextResponse(f"not ready: {reason}\n", status_code=503)
        return PlainTextResponse("gwmond is ready\n")

    @app.get("/")
    async def root() -> HTMLResponse:
        """Serve a page for people: the state of sites and sources."""
        return HTMLResponse(landing.page(state.snapshot, time.time()))

    @app.exception_handler(404)
    async def missing(request: Request, _error: Exception) -> JSONResponse:
        known = ["/", "/metrics", "/-/healthy", "/-/ready"]
        return JSONResponse({"error": f"no {request.url.path}", "known": known}, status_code=404)

    return app
