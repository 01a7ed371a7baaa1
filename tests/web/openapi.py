"""Writes the description of REST anew: ``python -m tests.web.openapi``.

Parameters are those of the code.  Examples are answers to real requests, with lists and long
explanations cut; the schemas of answers follow from the whole answers.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from gwmond.web.api import OPENAPI, PROBLEM, ROOT, create_api
from gwmond.web.desks import Desks
from tests.build import pilot_ledger
from tests.build.rest import JOB, polled

EXAMPLES = {
    "/sites": ["?limit=3"],
    "/entries": ["?site=Site-A"],
    "/problems": ["?limit=3"],
    "/pilots": ["?which=all&site=Site-A", "?which=past"],
    "/pilots/{number}": ["1", "2", "3"],
    "/runs": ["?from=1d", "?from=1d&site=Site-A&limit=2", "?from=1d&longer_than=60"],
    "/users": ["", "?user=alice"],
    "/report": ["?by=site&from=1d", "?by=user,day&from=1d", "?by=outcome&from=1d"],
    "/totals": ["?last=7d"],
    "/failures": ["?from=1d"],
    "/forecast": ["", "?site=Site-A"],
    "/ticket": ["?site=Site-A&from=1d"],
    "/changes": ["?site=Site-A&from=3d"],
    "/explain": ["?limit=3"],
    "/explain/ad": ["?ad=%5BRequestMemory%20=%202000%5D"],
    "/explain/jobs": ["?limit=3"],
    "/explain/pilots/{name}": ["glidein_3344_123%40wn42.example.org"],
    "/explain/entries/{entry}": ["entry-a?site=Site-A"],
    "/explain/whatif": ["?change=memory&of=cms&value=2000"],
    "/explain/{job}": ["4711.0", "ap1%234711.0%231763856000"],
    "/advise": ["?from=1d"],
    "/traces": ["?pilot=1", f"?job={JOB.replace('#', '%23')}"],
}
"""Requests of each path; the first answer is the example."""
_OPEN = {"definitions", "capacity", "attributes", "codes"}
"""Objects whose names depend on what there is."""


def schema(values: Sequence[Any], name: str = "") -> dict[str, Any]:
    """Return the schema of all these values; what may be missing somewhere may be null."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {dict}:
        found = [value for value in values if value is not None]
        names = dict.fromkeys(key for value in found for key in value)
        inner = {key: [value[key] for value in found if key in value] for key in names}
        if name in _OPEN or (name == "pilots" and not any("id" in value for value in found)):
            every = [one for some in inner.values() for one in some]
            return {"type": "object", "additionalProperties": schema(every)}
        return {
            "type": ["object", "null"] if None in values else "object",
            "properties": {key: schema(some, key) for key, some in inner.items()},
            "required": [key for key in names if len(inner[key]) == len(found)],
        }
    if kinds == {list}:
        items = [item for value in values for item in value or ()]
        made = {"type": ["array", "null"] if None in values else "array"}
        return {**made, "items": schema(items)} if items else made
    types = {str: "string", bool: "boolean", int: "number", float: "number"}
    return {"type": [*sorted({types[kind] for kind in kinds}), "null"]} if kinds else {}


def cut(value: Any, name: str = "") -> Any:
    """Return an example with the last item of lists, and two explanations."""
    if isinstance(value, dict):
        items = list(value.items())[: 2 if name == "definitions" else None]
        return {key: cut(inner, key) for key, inner in items}
    return [cut(item) for item in value[-1:]] if isinstance(value, list) else value


def described(url: str) -> dict[str, Any]:
    """Return the description, with examples from a ledger."""
    api = create_api(polled(url), Desks())
    found = api.openapi()
    del found["components"]["schemas"]["HTTPValidationError"]
    found["components"]["schemas"].pop("ValidationError")
    found["components"]["schemas"]["Problem"] = _PROBLEM
    found["info"]["version"] = "1"
    found["servers"] = [{"url": ROOT}]

    async def ask() -> None:
        transport = httpx.ASGITransport(api)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            for path, methods in found["paths"].items():
                answers = []
                for query in EXAMPLES[path]:
                    to = re.sub("{.*}", query, path) if "{" in path else f"{path}{query}"
                    answer = await client.get(to)
                    assert answer.status_code == 200, (to, answer.text)
                    answers.append(answer.json())
                methods["get"]["responses"] = _responses(schema(answers), cut(answers[0]))
                if any(one["name"] == "format" for one in methods["get"].get("parameters", ())):
                    content = methods["get"]["responses"]["200"]["content"]
                    content["text/csv"] = {"schema": _TEXT}

    asyncio.run(ask())
    return found


def _responses(answer: dict[str, Any], example: Any) -> dict[str, Any]:
    errors = {
        "401": "a token is needed, and was not given",
        "403": "single jobs and their users are not shown",
        "404": "there is no such thing",
        "405": "another method than GET or HEAD",
        "421": "the name in Host is not gwmond's",
        "422": "a parameter is unknown or wrong",
        "429": "too many questions that ask HTCondor at once: Retry-After says when to ask again",
        "503": "the first poll is under way, others wait, or the ledger was not read in time",
    }
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        "200": {
            "description": "as of the last poll",
            "headers": {"ETag": {"schema": {"type": "string"}}},
            "content": {"application/json": {"schema": answer, "example": example}},
        },
        "304": {"description": "as before: If-None-Match has the ETag"},
        **{
            status: {"description": text, "content": {PROBLEM: problem}}
            for status, text in errors.items()
        },
    }


_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457",
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"parameter": _TEXT, "detail": _TEXT},
                "required": ["parameter", "detail"],
            },
        },
    },
    "required": ["type", "title", "status", "detail"],
}


def text() -> str:
    """Return the file."""
    with tempfile.TemporaryDirectory() as directory:
        url = str(Path(directory) / "ledger.sqlite")
        pilot_ledger.write(url)
        made = json.dumps(described(url)).replace('"/', '\n"/')
    return made.replace(directory, "/var/lib/gwmond") + "\n"


if __name__ == "__main__":
    OPENAPI.write_text(text())
