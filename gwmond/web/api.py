"""REST at ``/api/v1/``: reading only, one poll at a time, errors as RFC 9457 has them.

Answers are made at desks (``desks``), and kept until the next poll.  ``ETag`` stands for the poll,
so that who asks again with ``If-None-Match`` costs nothing until there is another one.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias, get_type_hints

import structlog
from fastapi import FastAPI, Query, Request, Response
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from gwmond import __version__
from gwmond.model.demand.question import Question
from gwmond.reports.ledger.ledger_reading import Unreadable
from gwmond.reports.render.formats import flatten
from gwmond.reports.render.writing import write_csv
from gwmond.web import answers, asking
from gwmond.web.answers import Answers, Record
from gwmond.web.asking import Asked, Listed, Refused
from gwmond.web.desks import AGAIN_S, Desk, Desks, NoTurn
from gwmond.web.pages import Pages

log = structlog.get_logger()
ROOT = "/api/v1"
OPENAPI = Path(__file__).parents[1] / "data" / "openapi.json"
"""The description that is served: written by ``python -m tests.web.openapi``."""
NUMBER = r"^([^\x00-\x20#/]+#)?[0-9]{1,10}\.[0-9]{1,10}(#[0-9]{1,12})?$"
"""A job: cluster.proc, or a GlobalJobId."""
_PART = r"^[^\x00-\x20\x7f/]+$"
NamePart: TypeAlias = Annotated[str, InPath(max_length=256, pattern=_PART)]
"""A name of a pilot or an entry, as a part of a path."""
PROBLEM = "application/problem+json"
_FIRST = "the first poll is under way"
_NO_PARAMETER = f"no such parameter: {ROOT}/openapi.json has those of this path"
_WHOLE = "must be a whole number"
_WORDS = {
    "extra_forbidden": _NO_PARAMETER,
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "greater_than_equal": f"{_WHOLE}, {{ge}} or more",
    "less_than_equal": f"{_WHOLE}, {{le}} or less",
    "less_than": f"{_WHOLE}, less than {{lt}}",
    "int_parsing": _WHOLE,
    "int_parsing_size": f"{_WHOLE}, of fewer digits",
    "string_too_short": "is needed",
    "missing": "is needed",
    "string_too_long": "must be of {max_length} characters at most",
}
_PATTERNS = {
    asking.NAME: "must be without control characters",
    asking.CURSOR: answers.NO_CURSOR,
    _PART: "must be a name, without blanks, slashes and control characters",
    NUMBER: "must be CLUSTER.PROC, or a GlobalJobId",
}
"""What pydantic's errors mean, by their type; by the pattern that a text does not have."""
_HEADERS = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}


class WithPages(Protocol):
    """What is served: swapped whole with each poll."""

    @property
    def pages(self) -> Pages: ...


class Made(NamedTuple):
    """An answer as it is sent; ``following``: the cursor of the next page of CSV."""

    body: bytes
    status: int = 200
    kind: str = "application/json"
    following: str = ""

    def __len__(self) -> int:
        return len(self.body)


def problem_body(status: int, detail: str, errors: Sequence[Mapping[str, str]] = ()) -> bytes:
    """Return an error as RFC 9457 has it; ``about:blank``: it is what its status says."""
    record: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    return json.dumps({**record, "errors": list(errors)} if errors else record).encode()


def problem(
    status: int,
    detail: str,
    errors: Sequence[Mapping[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error as an answer."""
    body = problem_body(status, detail, errors)
    return Response(body, status, {**_HEADERS, **(headers or {})}, media_type=PROBLEM)


class _Reading:
    """Answers HEAD as GET; the server leaves out the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


def mounted(state: WithPages, desks: Desks) -> ASGIApp:
    """Return what answers below ``ROOT``."""
    return _Reading(create_api(state, desks))


def create_api(state: WithPages, desks: Desks) -> FastAPI:
    """Make the application."""
    api = FastAPI(
        title="gwmond",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    of_ledger = partial(_answered, state, desks.ledger)
    _add_answers(api, partial(_of_poll, state, desks), _OF_POLL)
    _add_answers(api, of_ledger, _OF_LEDGER)
    _add_pilot(api, of_ledger)
    _add_explain(api, state, desks.pool)
    _add_description(api)
    _add_errors(api)
    return api


Ask = Callable[[Request, Asked | None, Callable[[Answers], Record]], Awaitable[Response]]
_OF_POLL = (Answers.sites, Answers.entries, Answers.users, Answers.problems, Answers.idle)
_OF_LEDGER = (
    *(Answers.pilots, Answers.runs, Answers.report, Answers.totals, Answers.failures),
    *(Answers.ticket, Answers.changes, Answers.forecast, Answers.advise, Answers.traces),
)
"""What is answered of the last poll, and from the ledger, at a path of its name."""


def _add_answers(api: FastAPI, ask: Ask, answers: Sequence[Callable[..., Record]]) -> None:
    """Add paths; what may be asked there, and what is answered, each answer says itself."""
    for answer in answers:
        name = answer.__name__
        path = "/explain" if name == "idle" else f"/{name}"
        api.get(path, name=name, description=answer.__doc__)(_asking(ask, answer))


def _asking(ask: Ask, answer: Callable[..., Record]) -> Callable[..., Awaitable[Response]]:
    async def found(request: Request, asked: Asked) -> Response:
        return await ask(request, asked, lambda made: answer(made, asked))

    asked = get_type_hints(answer)["asked"]
    found.__annotations__ |= {"request": Request, "asked": Annotated[asked, Query()]}
    return found


def _add_pilot(api: FastAPI, ask: Ask) -> None:
    @api.get("/pilots/{number}")
    async def pilot(request: Request, number: Annotated[int, InPath(ge=1, lt=1 << 62)]) -> Response:
        """One pilot's life, its runs and the evidence; as `gwmond pilot`."""
        return await ask(request, None, lambda made: made.pilot(number))


def _add_explain(api: FastAPI, state: WithPages, desk: Desk) -> None:
    """Add what asks HTCondor: few questions at a time, as the page asks them."""

    async def ask(request: Request, asked: asking.ExplainAsked, question: Question) -> Response:
        _given_once(request, asked)
        explanations = state.pages.explanations
        found = await desk.made(request, lambda: explanations.answer(question))
        if found.status != 200:
            status = 422 if found.status == 400 else found.status
            raise Refused(status, found.error, again_s=found.again_s)
        body = json.dumps(answers.bounded(found.record, most=asked.limit))
        headers = {**_HEADERS, "Cache-Control": "no-store"}
        return Response(body, 200, headers, media_type="application/json")

    @api.get("/explain/jobs")
    async def jobs(
        request: Request, asked: Annotated[asking.ExplainJobsAsked, Query()]
    ) -> Response:
        """Why idle jobs are not running, with the words of each reason's largest group of jobs."""
        return await ask(request, asked, Question("", asked.schedd, asked.site, "all"))

    @api.get("/explain/ad")
    async def ad(request: Request, asked: Annotated[asking.ExplainAdAsked, Query()]) -> Response:
        """What would happen to a job that is not submitted yet, by its ad."""
        return await ask(request, asked, Question(asked.ad, site=asked.site, what="ad"))

    @api.get("/explain/pilots/{name}")
    async def pilot(
        request: Request, name: NamePart, asked: Annotated[asking.ExplainAsked, Query()]
    ) -> Response:
        """Why a pilot has no job, or never had one: by its startd's name, or its number."""
        return await ask(request, asked, Question(name, what="pilot"))

    @api.get("/explain/entries/{entry}")
    async def entry(
        request: Request, entry: NamePart, asked: Annotated[asking.ExplainEntryAsked, Query()]
    ) -> Response:
        """Why an entry's pilots have no job."""
        return await ask(request, asked, Question(entry, site=asked.site, what="entry"))

    @api.get("/explain/whatif")
    async def whatif(request: Request, asked: Annotated[asking.WhatIfAsked, Query()]) -> Response:
        """What a change of the pool would move: entries, and idle jobs by accounting group."""
        question = Question(asked.of, what="whatif", change=asked.change, value=asked.value)
        return await ask(request, asked, question)

    @api.get("/explain/{job}")
    async def job(
        request: Request,
        job: Annotated[str, InPath(max_length=256, pattern=NUMBER)],
        asked: Annotated[asking.ExplainJobsAsked, Query()],
    ) -> Response:
        """Why one job is not running, what would change that, whose move it is."""
        return await ask(request, asked, Question(job, asked.schedd, asked.site))


def _add_description(api: FastAPI) -> None:
    body = OPENAPI.read_bytes()
    known = json.loads(body)["paths"].items()
    paths = {path: methods["get"]["description"] for path, methods in known}
    index = json.dumps({"openapi": f"{ROOT}/openapi.json", "paths": paths})
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'

    @api.get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response:
        """What can be asked, and what is answered."""
        return _unchanged(request, tag) or Response(
            body, 200, {**_HEADERS, "ETag": tag}, media_type="application/json"
        )

    @api.get("/", include_in_schema=False)
    async def every() -> Response:
        """Return the paths that there are."""
        return Response(index, 200, _HEADERS, media_type="application/json")


def _add_errors(api: FastAPI) -> None:
    @api.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> Response:
        found: dict[str, str] = {}
        for one in error.errors():  # the last of a choice is that it may be empty
            found.setdefault(str(one["loc"][1]), _allowed(one))
        errors = [{"parameter": name, "detail": text} for name, text in found.items()]
        what = "; ".join(f"{one['parameter']}: {one['detail']}" for one in errors)
        return problem(422, what, errors)

    @api.exception_handler(Refused)
    async def refused(_request: Request, error: Refused) -> Response:
        errors = [{"parameter": error.parameter, "detail": error.detail}]
        headers = {} if error.again_s is None else {"Retry-After": str(error.again_s)}
        return problem(error.status, error.detail, errors if error.parameter else (), headers)

    @api.exception_handler(NoTurn)
    async def busy(_request: Request, _error: NoTurn) -> Response:
        again = {"Retry-After": str(AGAIN_S)}
        return problem(503, "other answers are made now", headers=again)

    @api.exception_handler(HTTPException)
    async def failed(request: Request, error: HTTPException) -> Response:
        detail = str(error.detail)
        if error.status_code == 404:
            detail = f"no {request.scope['path']}: {ROOT}/openapi.json has what there is"
        if error.status_code == 405:
            detail = "only GET and HEAD are answered"
            return problem(405, detail, (), {"Allow": "GET, HEAD"})
        return problem(error.status_code, detail, (), error.headers)


def _allowed(error: Mapping[str, Any]) -> str:
    """Return the values that are allowed in place of a wrong one, by pydantic's error."""
    known = error.get("ctx", {})
    words = _WORDS.get(error["type"]) or _PATTERNS.get(known.get("pattern", ""))
    return words.format(**known) if words else "has no value that it can have"


async def _of_poll(
    state: WithPages,
    desks: Desks,
    request: Request,
    asked: Asked | None,
    make: Callable[[Answers], Record],
) -> Response:
    """Answer of the last poll at a desk that is never waited for; of another from the ledger."""
    past = isinstance(asked, asking.PollListed) and asked.as_of
    return await _answered(state, desks.ledger if past else desks.memory, request, asked, make)


async def _answered(
    state: WithPages,
    desk: Desk,
    request: Request,
    asked: Asked | None,
    make: Callable[[Answers], Record],
) -> Response:
    """Answer from what is kept of the poll, or make the answer; raises Refused."""
    _given_once(request, asked)
    pages = state.pages
    if pages.snapshot is None:
        raise Refused(503, _FIRST, again_s=AGAIN_S)
    key = request.scope["path"], asked.model_dump_json() if asked else ""
    tag = f'W/"{pages.sequence}-{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}"'
    unchanged = _unchanged(request, tag)
    if unchanged is not None:
        return unchanged
    of_poll = Answers(pages.snapshot, pages.view)
    made = await desk.kept(
        request, lambda: pages.kept.made(key, lambda: _made(of_poll, asked, make))
    )
    assert made is not None
    headers = {**_HEADERS, "ETag": tag} if made.status == 200 else {**_HEADERS}
    if made.following:
        url = request.url.include_query_params(after=made.following)
        headers["Link"] = f'<{url.path}?{url.query}>; rel="next"'
    return Response(made.body, made.status, headers, media_type=made.kind)


def _given_once(request: Request, asked: Asked | None) -> None:
    """Raise Refused for a parameter that there is not, or that is given twice."""
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        known = asked is not None and name in asked.names()
        if not known or given.count(name) > 1:
            what = "it is given more than once" if known else "there is no such parameter"
            raise Refused(422, f"{name}: {what}", name)


def _csv(record: Record, rows: str) -> Made:
    """Return a list of a record as CSV; the header has the columns of all lines."""
    lines = [flatten(row) for row in record[rows]]
    columns = list(dict.fromkeys(name for line in lines for name in line))
    into = io.StringIO()
    write_csv(into, columns, ([line.get(name) for name in columns] for line in lines))
    return Made(into.getvalue().encode(), 200, "text/csv", record["next"] or "")


def _made(of_poll: Answers, asked: Asked | None, make: Callable[[Answers], Record]) -> Made:
    try:
        if isinstance(asked, Listed) and asked.format == "csv":
            return _csv(make(of_poll), asked.rows)
        return Made(json.dumps(make(of_poll), allow_nan=False).encode())
    except Refused as error:
        errors = [{"parameter": error.parameter, "detail": error.detail}] * bool(error.parameter)
        return Made(problem_body(error.status, error.detail, errors), error.status, PROBLEM)
    except Unreadable as error:
        return Made(problem_body(503, str(error)), 503, PROBLEM)
    except Exception:
        log.exception("no answer of REST")
        return Made(problem_body(500, "gwmond made a mistake, which its log has"), 500, PROBLEM)


def _unchanged(request: Request, tag: str) -> Response | None:
    """Return 304 if the client has the answer (RFC 9110, 13.1.2: tags are compared weakly).

    A tag is of a poll and of what is asked, so whoever has one was answered.
    """
    lines = request.headers.getlist("if-none-match")
    given = {one.strip().removeprefix("W/") for line in lines for one in line.split(",")}
    if tag.removeprefix("W/") not in given:
        return None
    return Response(status_code=304, headers={**_HEADERS, "ETag": tag})
