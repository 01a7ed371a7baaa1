"""The HTTP application."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import markupsafe
import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families as parse_text

from gwmond.metrics.render import Exposition
from gwmond.model import elapsed
from gwmond.model.poll.snapshot import LedgerStatus
from gwmond.model.problem_names import ProblemName
from gwmond.model.states import State
from gwmond.reports.render.meanings import STATES as STATE_WORDS
from gwmond.reports.render.meanings import reason_meaning
from gwmond.service.pool import pool_state
from gwmond.sites.reasons import INSUFFICIENT, REASONS, UNKNOWN
from gwmond.web.app import create
from tests.build.facts import NOW
from tests.build.rest import polled
from tests.build.snapshots import STATES, snapshot, status
from tests.build.web import Daemon, page
from tests.metrics.golden import exposition

SITES = Path(__file__).parents[2] / "docs" / "sites.md"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# What Prometheus 2.x sends.
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


class Client:
    """Asks an application, without a network between."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def get(self, path: str, headers: dict[str, bytes] | None = None) -> httpx.Response:
        sent = {name.encode(): value for name, value in (headers or {}).items()}

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                return await client.get(path, headers=sent)

        return asyncio.run(ask())


@pytest.fixture
def daemon() -> Daemon:
    return Daemon(snapshot(), exposition())


@pytest.fixture
def client(daemon: Daemon) -> Client:
    return Client(create(daemon, ""))


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "*/*",
        "text/plain",
        "text/plain;version=0.0.4",
        "application/openmetrics-text;q=0, */*",
    ],
)
def test_text_format(client: Client, accept: str | None) -> None:
    """Without a wish, or with that one, metrics come in the text format."""
    answer = client.get("/metrics", headers={"Accept": accept.encode()} if accept else {})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert any(family.name == "gwmond_site_state" for family in parse_text(answer.text))


@pytest.mark.parametrize("accept", [OPENMETRICS, PROMETHEUS])
def test_openmetrics(client: Client, accept: str) -> None:
    """A scraper that prefers OpenMetrics gets it."""
    answer = client.get("/metrics", headers={"Accept": accept.encode()})
    assert answer.headers["content-type"] == OPENMETRICS
    assert answer.text.endswith("# EOF\n")


def test_before_the_first_poll() -> None:
    """Before the first poll there are no metrics, health is good, and readiness says why not."""
    client = Client(create(Daemon(), ""))
    assert (client.get("/metrics").status_code, client.get("/metrics").text) == (200, "")
    assert client.get("/metrics", headers={"Accept": OPENMETRICS.encode()}).text == "# EOF\n"
    assert client.get("/-/healthy").status_code == 200
    ready = client.get("/-/ready")
    assert (ready.status_code, ready.text) == (503, "not ready: the first poll is under way\n")
    assert "The first poll is under way." in client.get("/").text


def test_after_the_first_poll(client: Client) -> None:
    """After the first poll the daemon is ready."""
    assert client.get("/-/ready").status_code == 200
    assert client.get("/-/healthy").text == "gwmond is healthy\n"


def test_what_is_shown_is_swapped(client: Client, daemon: Daemon) -> None:
    """The next request shows what the next poll has made."""
    daemon.exposition = Exposition(b"next 1\n", b"# EOF\n")
    assert client.get("/metrics").text == "next 1\n"


def test_unknown_path(client: Client) -> None:
    """A path that is not there is answered with those that are."""
    answer = client.get("/metric")
    assert answer.status_code == 404
    assert answer.json() == {
        "error": "no /metric",
        "known": [
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
            "/api/v1/openapi.json",
            "/-/healthy",
            "/-/ready",
        ],
    }


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/no<such>", 404, "There is no page /no&lt;such&gt;."),
        ("/site?site=none", 404, "Nothing of this name is known now."),
        ("/pilot?id=x", 422, "id: Input should be a valid integer"),
    ],
)
def test_a_browser_gets_a_page(client: Client, path: str, status: int, words: str) -> None:
    """With the links of all pages, so that it leads on; of the API, and others, no page."""
    answer = client.get(path, headers={"accept": b"text/html,*/*;q=0.8"})
    assert (answer.status_code, words in answer.text) == (status, True)
    assert '<a href="pilots">Pilots</a>' in answer.text
    assert "Content-Security-Policy" in answer.headers
    for other in (f"/api/v1{path}", f"/deeper{path}"):
        asked = client.get(other, headers={"accept": b"text/html"})
        assert (asked.status_code // 100, "<html" in asked.text) == (4, False)
    assert "<html" not in client.get(path).text


def test_each_page_opens(url: str) -> None:
    """Each that is known, also of one place, and also before the first poll."""
    given = {"/pilot": "?id=1", "/site": "?site=Site-A", "/entry": "?site=Site-A&entry=entry-a"}
    for served in (polled(url), Daemon(ledger=url), Daemon()):
        client = Client(create(served, ""))
        known = client.get("/none").json()["known"]
        paths = [path for path in known if not re.match("/(metrics|api|-)", path)]
        assert len(paths) > 10
        for path in paths:
            for query in (given.get(path, ""), given.get(path, "?site=Site-A")):
                answer = client.get(path + query, headers={"accept": b"text/html"})
                assert "<h1" in answer.text, (path, query)
                assert answer.status_code in (200, 403, 404), (path, query)


def test_no_page_describes_the_application(client: Client) -> None:
    """FastAPI's own pages, which load scripts from elsewhere, are not served."""
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(path).status_code == 404


def test_landing_page_escapes(client: Client) -> None:
    """Names, and what a source says, cannot put anything into the page."""
    answer = client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "&lt;b&gt;&amp;&#34;Odd&#34;\\" in answer.text
    assert "what happened &lt;to&gt; ap2" in answer.text
    for tag in ("<b>", "<to>", 'Odd"\\'):
        assert tag not in answer.text


def test_landing_page_shows_every_state(client: Client) -> None:
    """Each state of a site is named, beside its site, and counted."""
    text = client.get("/").text
    for key, state in STATES.items():
        if key.site not in ("T2_Bored",) and "Odd" not in key.site:
            row = re.search(
                rf">{key.site}</a>(?: <span.*?</span>)?</td><td>cpu</td><td[^>]*>([a-z ]+)<",
                text,
            )
            assert row
            assert row[1] == state.replace("_", " ")
    for state in State:
        assert f"1 {state.replace('_', ' ')}" in text


def test_landing_page_says_what_states_and_reasons_mean(client: Client) -> None:
    """In the words of docs/sites.md, where the mouse rests, and below for those without one."""
    text = client.get("/").text
    page = SITES.read_text()
    for state, info in STATE_WORDS.items():
        assert f"| `{state}` | {info.meaning} |" in page
        plain = markupsafe.escape(info.meaning.replace("`", ""))
        name = state.replace("_", " ")
        assert f'<td title="{plain}">{name}' in text
        assert f"<dt>{name}</dt><dd>{plain}" in text
    for reason in REASONS:
        assert f"| `{reason.name}` | {reason.description} |" in page
    starving = text[text.index(">T2_Starving") :].partition("<tr>")[0]
    assert (
        'title="The frontend has hit a limit of its configuration (GlideClientLimit...);'
        in starving
    )
    assert ">frontend limit<" in starving
    assert "<dt>frontend limit</dt><dd>The frontend has hit a limit" in text


def test_every_reason_that_is_told_has_a_meaning() -> None:
    """Whatever reason an entry may be told with, the page can say what it means."""
    source = Path(pool_state.__file__).read_text()
    told = {
        *(reason.name for reason in REASONS),
        *INSUFFICIENT,
        *UNKNOWN,
        *elapsed.REASONS,
        pool_state.YOUNG,
    }
    assert '"collector"' in source
    assert [name for name in (*told, "collector") if not reason_meaning(name)] == []


def test_landing_page_of_a_site_of_several_entries(client: Client) -> None:
    """A site's entries are one row, with the state that can be acted on."""
    text = client.get("/").text
    assert re.findall(r">T2_Bored</a></td><td>cpu</td><td[^>]*>([a-z ]+)<", text) == [
        "insufficient demand"
    ]


def test_landing_page_tells_what_is_unknown_or_wrong() -> None:
    """Unknown numbers are question marks, a source or ledger that is down says why."""
    text = page(
        snapshot(
            speed=60.0,
            sources=(status("cm", "slots", ProblemName.DENIED),),
            ledger=LedgerStatus(False, "ledger <L>: full", None, 3),
        ),
        NOW,
    )
    dark = text[text.index(">T2_Dark") :]
    assert dark[: dark.index("<tr>")].count('<td class="n">?') >= 2
    assert "denied: what happened &lt;to&gt; cm" in text
    assert '<p class="bad">ledger &lt;L&gt;: full</p>' in text
    assert "Replayed at 60 times its speed." in text


def test_landing_page_without_entries() -> None:
    """A pool of which nothing is known yet has a page too."""
    empty = snapshot()
    nothing = empty.evaluation._replace(rows={}, demand={}, jobs={})
    assert "Entries: none." in page(snapshot(evaluation=nothing, entries={}, pilots={}), NOW)


def test_landing_page_needs_nothing_from_elsewhere(client: Client) -> None:
    """The page loads nothing but gwmond's own style and script; nothing is written inline."""
    text = client.get("/").text
    assert re.findall(r"<script.*?</script>", text) == [
        '<script src="static/gwmond.js" defer></script>'
    ]
    assert not re.search(r"<style|style=|\son[a-z]+=", text)
    assert not re.search(r"(?:src|href)=\"?(?:https?:)?//", text)


@pytest.fixture
def guarded(daemon: Daemon, tmp_path: Path) -> Callable[..., int]:
    """Asks an application that wants a token; returns the status."""
    token = tmp_path / "token"
    token.write_text("se-cret\n")
    client = Client(create(daemon, str(token)))

    def ask(path: str, authorization: bytes | None = None, said: str | None = None) -> int:
        if said is not None:
            token.write_text(said)
        headers = {} if authorization is None else {"Authorization": authorization}
        return client.get(path, headers).status_code

    return ask


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/ready", "/nowhere"])
@pytest.mark.parametrize(
    "given",
    [None, b"", b"Bearer", b"Bearer ", b"Bearer wrong", b"se-cret", b"Basic se-cret", b"\xff"],
)
def test_token_is_needed(guarded: Callable[..., int], path: str, given: bytes | None) -> None:
    """Without the token nothing is shown, not even which paths there are."""
    assert guarded(path, given) == 401


def test_token_is_enough(guarded: Callable[..., int]) -> None:
    """With the token everything is shown; health needs none."""
    assert guarded("/metrics", b"Bearer se-cret") == 200
    assert guarded("/nowhere", b"Bearer se-cret") == 404
    assert guarded("/-/healthy") == 200


def test_token_may_be_changed(guarded: Callable[..., int]) -> None:
    """A new token in the file holds at once, an old one no longer."""
    assert guarded("/metrics", b"Bearer new", said="new") == 200
    assert guarded("/metrics", b"Bearer se-cret") == 401


def test_token_that_was_emptied_lets_nobody_in(guarded: Callable[..., int]) -> None:
    """A token file that was emptied is no open door."""
    assert guarded("/metrics", b"Bearer ", said="\n") == 401
    assert guarded("/metrics", b"Bearer") == 401


def test_token_file_that_is_gone_lets_nobody_in(daemon: Daemon, tmp_path: Path) -> None:
    """Without its token file the daemon refuses, and goes on to answer for its health."""
    client = Client(create(daemon, str(tmp_path / "gone")))
    assert client.get("/metrics", {"Authorization": b"Bearer "}).status_code == 401
    assert client.get("/-/healthy").status_code == 200
