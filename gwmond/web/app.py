"""The HTTP application.  A request never waits for a poll; only /explain asks HTCondor."""

from __future__ import annotations

import hmac
import json
import re
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeAlias

from fastapi import FastAPI, Query, Request, Response
from fastapi.exception_handlers import request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gwmond import __version__
from gwmond.metrics.render import OPENMETRICS_TYPE, TEXT_TYPE, Exposition
from gwmond.model.demand.question import MOST_AD, What
from gwmond.model.demand.what_if import MOST_START, WhatIfKind
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.problem_names import ProblemName
from gwmond.reports.render.terminal import PIPED
from gwmond.web import api
from gwmond.web.asking import (
    AdvisePage,
    FailuresAsked,
    ForecastPage,
    OfPlace,
    PastPage,
    PilotsPage,
    ReportPage,
    RunsPage,
    TimeAsked,
    UserAsked,
)
from gwmond.web.connections import Client, Connections, accepts, host_is_known
from gwmond.web.desks import AGAIN_S, Desk, Desks, NoTurn
from gwmond.web.explain import Answered
from gwmond.web.pages import Pages, style_sheet
from gwmond.web.parts import render
from gwmond.web.pilots import WHO, trace_form
from gwmond.web.tables import csv_of, with_csv_links

HEALTH, _API = "/-/healthy", "/api/"
_METHODS = ["GET", "HEAD"]
_STATIC = Path(__file__).parent / "static"
_FILES = ("gwmond.js", "charts.js", "uplot/uPlot.iife.min.js", "uplot/uPlot.min.css")
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_FILE_HEADERS = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}


_NO_TOKEN = (
    "a bearer token is needed: send the header Authorization: Bearer TOKEN, with the token of "
    "[http] auth_token_file"
)
_Word = Annotated[str, Field(max_length=512)]


class Explained(BaseModel):
    """What may be asked of /explain: one of job, ad, pilot, entry, all, whatif (``Question``)."""

    job: _Word | None = None
    ad: Annotated[str, Field(max_length=MOST_AD)] | None = None
    pilot: _Word | None = None
    entry: _Word | None = None
    all: _Word | None = None
    whatif: WhatIfKind | Literal[""] | None = None
    of: _Word = ""
    value: Annotated[str, Field(max_length=MOST_START)] = ""
    schedd: _Word = ""
    site: _Word = ""
    format: Literal["", "json", "text"] = ""
    width: Annotated[int, Field(ge=80, le=1000)] = PIPED


class Served(Protocol):
    """What the daemon shows; each is made once a poll, and swapped whole."""

    @property
    def snapshot(self) -> Snapshot | None: ...

    @property
    def exposition(self) -> Exposition: ...

    @property
    def pages(self) -> Pages: ...

    def ready(self) -> str:
        """Return why the daemon is not ready, empty when it is."""


def _token(path: str) -> bytes:
    """Return the token, read anew for it may be changed; empty lets nobody in."""
    try:
        return Path(path).read_bytes().strip()
    except OSError:
        return b""


def _refusal(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers)


_LAST = {"Connection": "close"}


class Guard:
    """Accepts requests that name this server and have the token (/-/healthy needs none).

    It decides by the path of the request line (``scope["path"]``).  Starlette makes ``request.url``
    from the Host header, which the client chooses.
    """

    def __init__(
        self, app: ASGIApp, token_file: str, hosts: Collection[str], connections: Connections
    ) -> None:
        self._app = app
        self._token_file = token_file
        self._hosts = {socket.gethostname(), socket.getfqdn(), *hosts}
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        trusted = self._has_token(headers)
        client: Client = tuple(scope.get("client") or ("", 0))
        self._connections.begin(client, trusted=trusted and bool(self._token_file))
        try:
            answer: ASGIApp = self._app
            refuse = api.problem if scope["path"].startswith(_API) else _refusal
            if not host_is_known(headers.get("host", "localhost"), self._hosts):
                self._connections.refuse(client, ProblemName.BAD_HOST)
                said = "this name is not gwmond's: add it to [http] hosts"
                answer = refuse(421, said, headers=_LAST)
            elif "transfer-encoding" in headers and "content-length" in headers:
                self._connections.refuse(client, ProblemName.BAD_HTTP)
                answer = refuse(400, "two lengths: one request could pass for two", headers=_LAST)
            elif not trusted and scope["path"] != HEALTH:
                self._connections.refuse(client, ProblemName.NO_TOKEN)
                needed = {"WWW-Authenticate": "Bearer", **_LAST}
                answer = refuse(401, _NO_TOKEN, headers=needed)
            await answer(scope, receive, send)
        finally:
            self._connections.end(client)

    def _has_token(self, headers: Headers) -> bool:
        if not self._token_file:
            return True
        token = _token(self._token_file)
        given = headers.get("authorization", "").encode()
        return bool(token) and hmac.compare_digest(given, b"Bearer " + token)


def create(
    state: Served,
    token_file: str,
    hosts: Collection[str] = (),
    connections: Connections | None = None,
) -> FastAPI:
    """Make the application; with ``token_file`` everything but ``/-/healthy`` needs the token.

    ``hosts`` are names of this server besides its addresses, localhost and the host's own.
    """
    app = FastAPI(
        title="gwmond", version=__version__, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.add_middleware(
        Guard, token_file=token_file, hosts=hosts, connections=connections or Connections()
    )

    _add_machines(app, state)
    desks = Desks()
    _add_pages(app, state, desks)
    _add_files(app)
    app.mount(api.ROOT, api.mounted(state, desks))

    _add_refusals(app)
    return app


def _add_refusals(app: FastAPI) -> None:
    """Add what is said where there is no answer."""

    @app.exception_handler(NoTurn)
    async def busy(_request: Request, _error: NoTurn) -> Response:
        again = {"Retry-After": str(AGAIN_S)}
        return PlainTextResponse("other pages are made now: ask again\n", 503, again)

    @app.exception_handler(404)
    async def missing(request: Request, _error: Exception) -> Response:
        known = [
            "/",
            "/time",
            "/pilots",
            "/runs",
            "/advise",
            "/forecast",
            "/past",
            "/report",
            "/failures",
            "/user",
            "/pilot",
            "/trace",
            "/explain",
            "/held",
            "/problems",
            "/runbooks",
            "/site",
            "/entry",
            "/metrics",
            f"{api.ROOT}/openapi.json",
            HEALTH,
            "/-/ready",
        ]
        path = request.scope["path"]
        if path.startswith(_API):
            return api.problem(404, f"no {path}: {api.ROOT}/openapi.json has what there is")
        if _wants_page(request):
            return _no_page(f"There is no page {path}. Those that there are have links above.")
        return JSONResponse({"error": f"no {path}", "known": known}, status_code=404)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        if not _wants_page(request):
            return await request_validation_exception_handler(request, error)
        what = "; ".join(f"{problem['loc'][-1]}: {problem['msg']}" for problem in error.errors())
        return _no_page(f"The address asks for what cannot be shown. {what}.", 422)


def _wants_page(request: Request) -> bool:
    """Return whether a browser asks; the links of a page lead on from a path of one name only."""
    is_flat = request.scope["path"].count("/") == 1
    return is_flat and accepts(request.headers.get("accept", ""), "text/html")


def _no_page(text: str, status: int = 404) -> Response:
    title = "Nothing is here" if status == 404 else "This cannot be shown"
    return HTMLResponse(render("refused", title=title, text=text), status, _PAGE_HEADERS)


def _add_machines(app: FastAPI, state: Served) -> None:
    """Add what programs ask for: metrics, and how the daemon is."""

    @app.api_route("/metrics", methods=_METHODS)
    async def metrics(request: Request) -> Response:
        """Metrics in the Prometheus text format, or OpenMetrics where a scraper prefers it."""
        exposition = state.exposition
        body, packed, kind = exposition.text, exposition.text_gzip, TEXT_TYPE
        if accepts(request.headers.get("accept", ""), "application/openmetrics-text"):
            body, packed = exposition.openmetrics, exposition.openmetrics_gzip
            kind = OPENMETRICS_TYPE
        headers = {"Vary": "Accept, Accept-Encoding"}
        if packed and accepts(request.headers.get("accept-encoding", ""), "gzip"):
            body, headers["Content-Encoding"] = packed, "gzip"
        return Response(body, media_type=kind, headers=headers)

    @app.api_route(HEALTH, methods=_METHODS)
    async def healthy() -> PlainTextResponse:
        """Answer as long as the process serves."""
        return PlainTextResponse("gwmond is healthy\n")

    @app.api_route("/-/ready", methods=_METHODS)
    async def ready() -> PlainTextResponse:
        """Answer 200 once the first poll has ended, 503 before."""
        reason = state.ready()
        if reason:
            return PlainTextResponse(f"not ready: {reason}\n", status_code=503)
        return PlainTextResponse("gwmond is ready\n")


async def _made(
    state: Served, desk: Desk, request: Request, call: Callable[[Pages], str | None]
) -> Response:
    pages = state.pages
    return _page(request, await desk.kept(request, lambda: call(pages)))


def _add_pages(app: FastAPI, state: Served, desks: Desks) -> None:
    """Add the pages for people.  What is made for a request is made at a desk."""
    page = partial(_made, state, desks.memory)

    @app.api_route("/", methods=_METHODS)
    async def root(request: Request) -> Response:
        """Serve the state of sites and sources."""
        return _page(request, state.pages.now)

    @app.api_route("/problems", methods=_METHODS)
    async def problems(request: Request) -> Response:
        """Serve the problems that were counted."""
        return await page(request, lambda pages: pages.problems)

    @app.api_route("/held", methods=_METHODS)
    async def held(request: Request) -> Response:
        """Serve the pilots that are held, with the reasons."""
        return await page(request, lambda pages: pages.held)

    @app.api_route("/runbooks", methods=_METHODS)
    async def runbooks(request: Request) -> Response:
        """Serve what each alert means, and what to do: alerts link to it."""
        return _page(request, render("runbooks"))

    @app.api_route("/site", methods=_METHODS)
    async def site(request: Request, site: str) -> Response:
        """Serve one site."""
        return await page(request, lambda pages: pages.site(site))

    @app.api_route("/entry", methods=_METHODS)
    async def entry(request: Request, site: str, entry: str) -> Response:
        """Serve one entry of a site."""
        return await page(request, lambda pages: pages.entry(site, entry))

    _add_ledger_pages(app, state, desks.ledger)
    _add_explanations(app, state, desks.pool)


_OF_LEDGER: Mapping[str, type[OfPlace]] = {
    "/time": TimeAsked,
    "/pilots": PilotsPage,
    "/runs": RunsPage,
    "/report": ReportPage,
    "/forecast": ForecastPage,
    "/past": PastPage,
    "/failures": FailuresAsked,
    "/advise": AdvisePage,
}
"""Pages of the ledger, by what may be asked of them."""
Made: TypeAlias = Callable[[Request, Callable[[Pages], str | None]], Awaitable[Response]]


def _chosen(page: Made, asked: type[OfPlace]) -> Callable[..., Awaitable[Response]]:
    async def found(request: Request, chosen: OfPlace) -> Response:
        return await page(request, lambda pages: pages.chosen(chosen))

    found.__annotations__ |= {"request": Request, "chosen": Annotated[asked, Query()]}
    return found


def _add_ledger_pages(app: FastAPI, state: Served, desk: Desk) -> None:
    """Add the pages that are made from the ledger."""
    page = partial(_made, state, desk)

    for path, asked in _OF_LEDGER.items():
        app.api_route(path, methods=_METHODS, name=path)(_chosen(page, asked))

    @app.api_route("/user", methods=_METHODS)
    async def user(request: Request, chosen: Annotated[UserAsked, Query()]) -> Response:
        """Serve what became of users' runs, to who may ask for jobs."""
        answer = await page(request, lambda pages: pages.chosen(chosen))
        if not state.pages.view.shows_jobs:
            answer.status_code = 403
        return answer

    @app.api_route("/pilot", methods=_METHODS)
    async def pilot(request: Request, id: Annotated[int, Query(ge=1, lt=1 << 62)]) -> Response:
        """Serve one pilot's life."""
        return await page(request, lambda pages: pages.pilot(id))

    _add_traces(app, state, desk)


def _add_traces(app: FastAPI, state: Served, desk: Desk) -> None:
    @app.api_route("/trace", methods=_METHODS)
    async def trace(
        request: Request,
        job: Annotated[str, Query(max_length=512)] = "",
        pilot: Annotated[str, Query(pattern="^[0-9]{0,18}$")] = "",
    ) -> Response:
        """Serve a job's trace, or a pilot's, or a form that asks for one."""
        pages, job, number = state.pages, job.strip(), int(pilot or 0)
        if not job and not number:
            return _page(request, trace_form(pages.view, job, number))
        if found := await desk.kept(request, lambda: pages.trace(job, number)):
            return _page(request, found)
        hidden = job and not pages.view.shows_jobs
        why = WHO if hidden else "There is no trace of it."
        form = trace_form(pages.view, job, number, why)
        return _page(request, form, 403 if hidden else 404)


def _add_explanations(app: FastAPI, state: Served, desk: Desk) -> None:
    @app.api_route("/explain", methods=_METHODS)
    async def explain(request: Request, asked: Annotated[Explained, Query()]) -> Response:
        """Serve why a job is not running, in one of three forms; asks the pool, in a child."""
        explanations = state.pages.explanations
        names: dict[What, str | None] = {
            "job": asked.job,
            "ad": asked.ad,
            "pilot": asked.pilot,
            "entry": asked.entry,
            "all": asked.all,
            "whatif": None if asked.whatif is None else asked.of,
        }
        accept = request.headers.get("accept", "")
        plain = asked.format == "text" or (
            accepts(accept, "text/plain") and not accepts(accept, "text/html")
        )

        def explained() -> tuple[Answered, str]:
            found = explanations.chosen(
                names, asked.schedd, asked.site, asked.whatif or "", asked.value
            )
            if asked.format == "json":
                return found, json.dumps(found.record, indent=2) + "\n"
            text = explanations.text(found, asked.width) if plain else explanations.page(found)
            return found, text

        found, text = await desk.made(request, explained)
        said = explanations.headers | found.headers
        headers = _PAGE_HEADERS | said
        if asked.format == "json":
            return Response(text, found.status, headers, media_type="application/json")
        if plain:
            return PlainTextResponse(text, found.status, headers)
        answer = _page(request, text, 200 if found.is_form else found.status)
        answer.headers.update(said)
        return answer


def _add_files(app: FastAPI) -> None:
    """Add what pages load."""
    files = {name: (_STATIC / name).read_text() for name in _FILES}
    files["gwmond.css"] = style_sheet()

    @app.api_route("/static/{name:path}", methods=_METHODS)
    async def static(name: str) -> Response:
        """Serve what pages load."""
        if name not in files:
            return PlainTextResponse("no such file\n", status_code=404)
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return Response(files[name], media_type=kind, headers=_FILE_HEADERS)


def _page(request: Request, text: str | None, status: int = 200) -> Response:
    """Return a page, or a table of it (``csv=NUMBER``)."""
    query = dict(request.query_params)
    number = query.pop("csv", "")
    if text is None:
        gone = "nothing of this name is known now: / lists the sites\n"
        if _wants_page(request):
            return _no_page("Nothing of this name is known now.")
        return PlainTextResponse(gone, status_code=404, headers=_PAGE_HEADERS)
    if not number:
        return HTMLResponse(with_csv_links(text, query), status, _PAGE_HEADERS)
    table = csv_of(text, int(number)) if re.fullmatch("[0-9]{1,4}", number) else None
    if table is None:
        return PlainTextResponse("this page has no such table\n", 404, _PAGE_HEADERS)
    name = f"gwmond{request.scope['path'].replace('/', '-').rstrip('-')}-{number}.csv"
    said = {**_PAGE_HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(table, status, said, media_type="text/csv")
