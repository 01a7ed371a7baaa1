"""The page that explains a job: who may ask, how often, and what is kept."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from urllib.parse import quote

import httpx
import pytest

from gwmond.config.settings import Http
from gwmond.model.demand.question import Question, Unanswered
from gwmond.model.entries.evaluation import IdleJobs
from gwmond.model.facts import DemandGroup, Size
from gwmond.reports.render.document import Document
from gwmond.web.app import create
from gwmond.web.explain import A_MINUTE, AT_ONCE, BURST, Explanations, Turns
from tests.build.snapshots import STARVING, snapshot
from tests.build.web import Daemon, Waiting


def get(daemon: Daemon, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(create(daemon, ""))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(ask())


def test_page_and_json_say_the_same() -> None:
    daemon = Daemon(snapshot(), asked=Waiting())
    page = get(daemon, "/explain?job=4711.0")
    record = get(daemon, "/explain?job=4711.0&format=json")
    assert (page.status_code, record.status_code) == (200, 200)
    assert record.headers["content-type"] == "application/json"
    assert record.json()["first_line"] in page.text
    assert record.json()["reasons"][0]["text"] in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_a_job_leads_to_its_user() -> None:
    """Pilots, entries and all jobs have none."""
    daemon = Daemon(snapshot(), asked=Waiting())
    user = get(daemon, "/explain?job=4711.0&format=json").json()["user"]
    assert f'<a href="user?user={quote(user)}">' in get(daemon, "/explain?job=4711.0").text
    for query in ("all", "pilot=p1", "entry=E&site=S"):
        assert "user?user=" not in get(daemon, f"/explain?{query}").text


@pytest.mark.parametrize(
    ("query", "title", "first"),
    [
        ("pilot=p1", "Why does a pilot have no job?", "Pilot p1 HAS NO JOB: "),
        ("entry=E&site=S", "Why do an entry's pilots have no job?", "Entry E of S HAS NO JOB: "),
        ("all", "Why are idle jobs not running?", "3 idle jobs of "),
        ("whatif=memory&of=cms&value=2000", "What would a change move?", "16 JOBS MORE COULD RUN"),
    ],
)
def test_pilots_entries_and_all_jobs(query: str, title: str, first: str) -> None:
    """Each has a form of its own, and its answer as a page and as JSON."""
    daemon = Daemon(snapshot(), asked=Waiting())
    page = get(daemon, f"/explain?{query}")
    assert page.status_code == 200
    assert f"<h1>{first}" in page.text
    record = get(daemon, f"/explain?{query}&format=json").json()
    assert record.get("first_line", first).startswith(first)
    assert record["polled_epoch_seconds"] == snapshot().pool_time
    assert "<age" not in page.text
    form = get(daemon, f"/explain?{query.partition('=')[0]}=")
    assert form.status_code == 200
    assert (title in unescape(form.text)) is (query != "all")  # which needs no name
    assert re.search(r'<a href="explain\?\w+=" aria-current="true">', form.text)


def test_start_is_tried_for_few() -> None:
    """By START anybody could ask which jobs a user has; other changes name none."""
    asked = Waiting(shows_jobs=False)
    daemon = Daemon(snapshot(), asked=asked)
    assert get(daemon, "/explain?whatif=start&of=f.g&value=Owner==1").status_code == 403
    assert asked.asked == []
    assert get(daemon, "/explain?whatif=limit&of=E&value=5").status_code == 200
    assert (asked.asked[0].change, asked.asked[0].value) == ("limit", "5")
    for shows_jobs in (False, True):
        form = get(Daemon(snapshot(), asked=Waiting(shows_jobs=shows_jobs)), "/explain?whatif=")
        assert re.findall('<label>.*?name="(\\w+)"', form.text) == ["whatif", "of", "value"]
        assert ('value="start"' in form.text) is shows_jobs
    answer = get(daemon, "/explain?whatif=limit&format=json")
    assert (answer.status_code, answer.json()["error"][:13]) == (400, "what if what?")


def test_text_is_what_a_terminal_shows() -> None:
    """Asked for by the address or by the client; as wide as asked for; errors are a sentence."""
    daemon = Daemon(snapshot(), asked=Waiting())
    answer = get(daemon, "/explain?job=4711.0&format=text")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    assert lines[0].startswith("NOT RUNNING for 3h03m: ")
    assert lines[-1].startswith(
        "Pilots, entries and groups of jobs are as of the daemon's poll at "
    )
    assert 80 < max(map(len, lines)) <= 120
    narrow = get(daemon, "/explain?job=4711.0&format=text&width=80").text.splitlines()
    assert max(map(len, narrow)) <= 80
    accepted = get(daemon, "/explain?job=4711.0", {"Accept": "text/plain"})
    assert accepted.text.splitlines()[:-1] == lines[:-1]
    browser = {"Accept": "text/html,text/plain;q=0.8"}
    assert "<h1>" in get(daemon, "/explain?job=4711.0", browser).text
    missing = get(daemon, "/explain?job=0.0&format=text")
    assert (missing.status_code, missing.text) == (404, "no job 0.0 is in the queue of ap1\n")


def test_one_at_a_time() -> None:
    """Two names are no question; without any, programs are told what is missing."""
    answer = get(Daemon(snapshot(), asked=Waiting()), "/explain?job=1.0&pilot=p")
    assert (answer.status_code, "give one of job, ad, pilot" in answer.text) == (400, True)
    answer = get(Daemon(snapshot(), asked=Waiting()), "/explain?pilot=&format=json")
    assert (answer.status_code, answer.json()) == (400, {"error": "which pilot? ?pilot=NAME"})


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 200),
        ("?job=&pilot=", 200),
        ("?pilot=x", 422),
        ("?pilot=-1", 422),
        ("?job=a%231.0%231", 403),
    ],
)
def test_traces_of_jobs_are_shown_to_few(query: str, status: int) -> None:
    """Without the right a form for pilots; a job is refused, whether there is such a one or not."""
    answer = get(Daemon(snapshot(), asked=Waiting(shows_jobs=False)), f"/trace{query}")
    assert answer.status_code == status
    assert ('name="job"' in answer.text) is False
    if status == 200:
        assert 'name="pilot"' in answer.text
    if status != 422:
        assert answer.text.count("[http] jobs") == 1


def test_what_names_no_job_is_shown_to_all() -> None:
    """Without the right single jobs are refused, and not asked for; places and sums are shown."""
    asked = Waiting(shows_jobs=False)
    daemon = Daemon(snapshot(), asked=asked)
    assert get(daemon, "/explain?job=4711.0").status_code == 403
    assert asked.asked == []
    for query in ("pilot=p1", "entry=E", "all"):
        assert get(daemon, f"/explain?{query}").status_code == 200


@pytest.mark.parametrize("query", ["", "?job=", "?pilot="])
def test_the_navigation_leads_strangers_to_a_form_of_what_is_explained_to_them(query: str) -> None:
    """There is no form for single jobs, and no tab that leads to one; who may see them is said."""
    asked = Waiting(shows_jobs=False)
    answer = get(Daemon(snapshot(), asked=asked), f"/explain{query}")
    assert answer.status_code == 200
    assert asked.asked == []
    assert re.findall('<label>.*?name="(\\w+)"', answer.text) == ["pilot"]
    assert re.findall('"explain\\?(\\w+)="', answer.text) == ["pilot", "entry", "all", "whatif"]
    assert answer.text.count("[http] jobs") == 1


def test_a_recording_without_jobs_has_forms_of_what_it_explains() -> None:
    """Neither of jobs nor of pilots: their names would have no answer."""
    daemon = Daemon(snapshot(), asked=Waiting(lacks="No jobs are recorded."))
    for query in ("", "?job=", "?pilot="):
        page = get(daemon, f"/explain{query}").text
        assert re.findall('"explain\\?(\\w+)="', page) == ["entry", "all", "whatif"]
        assert re.findall('<label>.*?name="(\\w+)"', page) == ["entry", "site"]
        assert "No jobs are recorded." in page


def test_long_lists_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many lines are left out is said."""
    monkeypatch.setattr("gwmond.web.explain.MOST_LINES", 1)
    daemon = Daemon(snapshot(), asked=Waiting())
    page = get(daemon, "/explain?entry=E").text
    assert re.search("What keeps idle jobs from it:.*And 1 more.", page, re.DOTALL)


def test_what_users_write_is_escaped() -> None:
    daemon = Daemon(snapshot(), asked=Waiting(said="<script>alert(1)</script>"))
    page = get(daemon, "/explain?job=%3Cb%3E&schedd=ap1&site=%3Ci%3E").text
    for text in ("script&gt;alert", 'value="&lt;b&gt;"', 'value="&lt;i&gt;"'):
        assert text in page
    for text in ("<script>alert", "<b>", "<i>"):
        assert text not in page


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, False),
        ({"auth_token_file": __file__}, True),
        ({"jobs": "all"}, True),
        ({"jobs": "nobody", "auth_token_file": __file__}, False),
    ],
)
def test_who_may_ask(options: dict[str, str], shown: bool) -> None:
    """By default those with the token; nobody where there is none."""
    assert Http.model_validate(options).shows_jobs is shown


def test_jobs_that_are_not_shown() -> None:
    """Whoever asks is told which option says so, and what to do; nothing is asked."""
    answer = get(Daemon(snapshot()), "/explain?job=4711.0")
    assert answer.status_code == 403
    assert "[http] jobs" in answer.text
    assert "<form" not in answer.text
    assert get(Daemon(snapshot()), "/explain?job=4711.0&format=json").status_code == 403


def test_a_job_that_is_not_there() -> None:
    daemon = Daemon(snapshot(), asked=Waiting())
    answer = get(daemon, "/explain?job=0.0&format=json")
    assert (answer.status_code, answer.json()) == (
        404,
        {"error": "no job 0.0 is in the queue of ap1"},
    )
    assert get(daemon, "/explain").status_code == 200
    assert get(daemon, "/explain?job=" + "1" * 513).status_code == 422
    early = get(Daemon(None, asked=Waiting()), "/explain?job=4711.0")
    assert (early.status_code, early.headers["retry-after"]) == (503, "5")


def test_an_answer_says_what_could_not_be_read() -> None:
    """Also as text, for the command: its exit code says so."""
    for form in ("&format=text", "&format=json", ""):
        for missing, header in ((("cm slots", "ap demand"), "2"), ((), None)):
            daemon = Daemon(snapshot(), asked=Waiting(missing=missing))
            found = get(daemon, f"/explain?all=1{form}")
            assert (found.status_code, found.headers.get("gwmond-not-read")) == (200, header)


def test_an_answer_is_kept_for_a_poll() -> None:
    asked = Waiting()
    explanations = Explanations(snapshot(), asked, Turns())
    for _ in range(3):
        explanations.answer(Question("4711.0"))
        explanations.answer(Question("4711.0", "ap1"))
    assert asked.asked == [Question("4711.0"), Question("4711.0", "ap1")]


def test_questions_are_few() -> None:
    """A burst, then so many a minute; who asks too often is told when to come again."""
    now = 0.0
    turns = Turns(lambda: now)
    explanations = Explanations(snapshot(), Waiting(), turns)
    found = [explanations.answer(Question(f"{n}.0")) for n in range(1, BURST + 2)]
    assert [one.status for one in found] == [200] * BURST + [429]
    assert found[-1].again_s is not None
    now += found[-1].again_s
    assert explanations.answer(Question("1000.0")).status == 200
    now += 60
    found = [explanations.answer(Question(f"{n}.1")) for n in range(A_MINUTE + 2)]
    assert [one.status for one in found].count(429) >= 1


def test_slow_schedds_take_few_threads() -> None:
    """Who asks while others wait for slow daemons is refused at once."""
    begun, over = threading.Semaphore(0), threading.Event()

    class Slow(Waiting):
        def __call__(self, question: Question) -> Document:
            begun.release()
            over.wait(60)
            return super().__call__(question)

    explanations = Explanations(snapshot(), Slow(), Turns())
    threads = [
        threading.Thread(target=explanations.answer, args=[Question(f"{n}.0")])
        for n in range(AT_ONCE)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert begun.acquire(timeout=60)
    refused = explanations.answer(Question("9.0"))
    assert (refused.status, "ask again" in refused.error) == (429, True)
    over.set()
    for thread in threads:
        thread.join(60)
    assert explanations.answer(Question("9.0")).status == 200


def test_a_failure_gives_its_turn_back() -> None:
    turns = Turns(lambda: 0.0)
    for _ in range(AT_ONCE + 1):
        with pytest.raises(Unanswered), turns.one():
            raise Unanswered(404, "gone")


def test_the_form_begins_with_what_waits() -> None:
    """The largest groups first, each with a job to ask for; to who may not ask nothing of that."""
    groups = [
        IdleJobs(
            DemandGroup("ap1", f"<{n}>", "", "", n, Size(2, 3000), None, sample=sample),
            *(1.0, 0.0, (STARVING,) if sample else ()),
        )
        for n, sample in ((3, "17.0"), (5, ""))
    ]
    s = snapshot()
    s = replace(s, evaluation=s.evaluation._replace(idle=tuple(groups)))
    page = get(Daemon(s, asked=Waiting()), "/explain").text
    assert page.index("&lt;5&gt;") < page.index("&lt;3&gt;")
    assert "<td>nowhere</td>" in page
    assert '<a href="explain?job=17.0&amp;schedd=ap1">17.0</a>' in page
    assert f'<a href="site?site={STARVING.site}">' in page
    assert "17.0" not in get(Daemon(s, asked=Waiting(shows_jobs=False)), "/explain").text
