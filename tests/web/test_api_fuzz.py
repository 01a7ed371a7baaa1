"""REST under random questions, right and wrong, and the description that these are made from."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode

from gwmond.web.api import OPENAPI
from gwmond.web.explain import Turns
from tests.build.rest import polled, serve
from tests.examples import examples
from tests.web import openapi

DESCRIPTION = json.loads(OPENAPI.read_text())
load_all_checks()
CHECKED: Any = CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
    ]
)
"""Not that each right parameter is accepted: times, cursors and names have forms of their own."""


@pytest.fixture(scope="module")
def session(url: str) -> Iterator[tuple[requests.Session, str]]:
    """A client of a real server, which shows jobs; the server is not busy with others."""
    unhurried = Turns(itertools.count(step=60).__next__)  # so that questions of jobs are answered
    with (
        serve(polled(url, turns=unhurried)) as (server, _),
        requests.Session() as session,
    ):
        yield session, f"{server.url}/api/v1"


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("path", sorted(DESCRIPTION["paths"]))
def test_random_questions(
    session: tuple[requests.Session, str], path: str, mode: GenerationMode
) -> None:
    """Each answer is as described; what is wrong is refused, and nothing breaks the server."""
    client, url = session
    schema = schemathesis.openapi.from_dict(DESCRIPTION)
    cases = schema[path]["GET"].as_strategy(mode)

    @settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
    @given(cases)
    def ask(case: Case[Any]) -> None:
        case.call_and_validate(base_url=url, session=client, checks=CHECKED, timeout=120)

    ask()


def test_the_description_is_of_this_code() -> None:
    """python -m tests.web.openapi writes it."""
    made = json.loads(openapi.text())
    assert made["paths"].keys() == DESCRIPTION["paths"].keys()
    for path, methods in made["paths"].items():
        assert methods == DESCRIPTION["paths"][path], path
    assert made == DESCRIPTION
