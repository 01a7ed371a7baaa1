"""REST: what is answered, what is refused, and that it is what pages and commands say."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import httpx
import pytest
from structlog.testing import capture_logs

from gwmond.config.settings import Http
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilot_life import RunKey
from gwmond.model.pilots.stored_pilots import RunFilter
from gwmond.model.times import ALWAYS
from gwmond.reports.ledger import ledger_reading
from gwmond.reports.ledger.ledger_reading import Unreadable
from gwmond.web import advise as advise_page
from gwmond.web import answers, asking, pages
from gwmond.web.api import PROBLEM
from gwmond.web.explain import BURST, Turns
from tests.build import failed_pilots
from tests.build.command_line import gwmond
from tests.build.rest import JOB, NOW_S, Polled, polled, serve
from tests.build.web import Daemon
from tests.pool.sandbox import wait_until
from tests.promql import ROOT

DOCS = ROOT / "docs" / "api.md"
PLACES = 10
"""Sites and resources that the poll knows."""


@contextmanager
def serving(state: Any) -> Iterator[httpx.Client]:
    """A client of a real server."""
    with (
        serve(state) as (server, _),
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def state(url: str) -> Polled:
    return polled(url)


@pytest.fixture(scope="module")
def client(state: Polled) -> Iterator[httpx.Client]:
    """Sees jobs and their users."""
    with serving(state) as client:
        yield client


@pytest.fixture(scope="module")
def stranger(url: str) -> Iterator[httpx.Client]:
    """Sees neither."""
    with serving(polled(url, shows_jobs=False)) as client:
        yield client


def answered(client: httpx.Client, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def refused(client: httpx.Client, path: str, status: int, method: str = "GET") -> dict[str, Any]:
    """An error as RFC 9457 has it."""
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), answer.text
    problem: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "detail"} <= problem.keys()
    assert (problem["type"], problem["status"]) == ("about:blank", status)
    assert "etag" not in answer.headers
    return problem


# --- The same as commands ---------------------------------------------------------------------


def command(url: str, *arguments: str) -> Any:
    done = gwmond(*arguments, "--ledger", url, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


_OF_NOW = {"time", "time_epoch_seconds", "stale", "not_settled", "next", "withheld", "left_off"}


def without_now(record: Any) -> Any:
    """A record without what depends on when it was made."""
    ages = _OF_NOW | {"last_contact", "until_retire_seconds", "until_die_seconds", "state"}
    if isinstance(record, dict):
        return {k: without_now(v) for k, v in record.items() if k not in ages}
    return [without_now(item) for item in record] if isinstance(record, list) else record


_SINCE, _UNTIL = "2023-11-15", "2023-11-15T08:00:00Z"
_PERIOD, _ASKED = f"from={_SINCE}&to={_UNTIL}", ("--from", _SINCE, "--to", _UNTIL)


@pytest.mark.parametrize(
    ("path", "rows", "asked"),
    [
        ("pilots?which=past", "pilots", ("pilots", "--past", "--sort", "end")),
        ("pilots/1", "runs", ("pilot", "1")),
        (
            f"report?by=site,category&{_PERIOD}",
            *("groups", ("report", "--by", "site,category", *_ASKED)),
        ),
        (f"runs?{_PERIOD}", "runs", ("runs", *_ASKED)),
        (f"advise?{_PERIOD}", "pilots", ("advise", *_ASKED)),
        (f"traces?job={quote(JOB)}", "spans", ("trace", JOB)),
        ("traces?pilot=1", "spans", ("trace", "1")),
    ],
)
def test_what_is_answered_is_that_of_the_command(
    client: httpx.Client, url: str, path: str, rows: str, asked: tuple[str, ...]
) -> None:
    """Record for record, by the same names; there is something, and nothing is left off."""
    ours = answered(client, path)
    assert len(ours[rows]) > 1
    assert without_now(ours) == without_now(command(url, *asked))
    assert not any(ours.get("left_off", {}).values())


def test_of_few_polls_nothing_is_forecast(client: httpx.Client) -> None:
    """What is left is told, and no time; whether it falls is not known."""
    coming = answered(client, "forecast")["coming"]
    assert {row["what"] for row in coming} == {"full", "no_job"}
    assert {(row["falls"], row["forecast"]) for row in coming} == {(None, None)}
    assert any(row["left"] for row in coming)


def test_of_long_lists_the_first_lines_are_answered(client: httpx.Client) -> None:
    """With how many are left off, of each list."""
    few = answered(client, f"advise?{_PERIOD}&limit=1")
    assert (len(few["pilots"]), few["left_off"]["pilots"]) == (1, 1)
    names = {"runs", "own_time", "corrections", "rules", "steps"}
    assert answered(client, "pilots/1")["left_off"].keys() == names


@pytest.mark.parametrize("path", ["advise", "changes"])
def test_advice_that_takes_too_long(url: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends, and says what to do."""

    def over() -> Callable[..., None]:
        with monkeypatch.context() as now:
            now.setattr(ledger_reading, "DEADLINE_S", -1.0)
            return ledger_reading.within_deadline()

    for made in (answers, advise_page):
        monkeypatch.setattr(made, "within_deadline", over)
    with serving(polled(url)) as client:
        assert "choose a shorter period" in refused(client, path, 503)["detail"]


# --- Lists, and their pages -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "name", "number"),
    [
        ("sites?", "sites", PLACES - 2),
        ("entries?", "entries", PLACES),
        ("entries?resource=cpu&", "entries", PLACES - 1),
        ("problems?", "problems", None),
        ("explain?", "idle", None),
        ("pilots?which=all&", "pilots", 3),
        ("runs?from=1d&", "runs", 4),
        ("report?by=entry,category&from=1d&", "groups", None),
    ],
)
def test_pages_together_are_the_list(
    client: httpx.Client, path: str, name: str, number: int | None
) -> None:
    """With any limit: nothing twice, nothing left out, in the same order."""
    whole = answered(client, f"{path}limit=500")
    assert whole["next"] is None
    assert number in (None, len(whole[name]))
    assert len(whole[name]) >= 2
    for limit in (1, 2):
        found: list[Any] = []
        after = ""
        while after is not None:
            page = answered(client, f"{path}limit={limit}&after={after}")
            assert len(page[name]) <= limit
            found += page[name]
            after = page["next"]
        assert found == whole[name]


def test_runs_that_began_at_once_are_paged(url: str, state: Polled) -> None:
    """The cursor tells runs apart that began in the same microsecond."""
    rows = [(start, number) for start, number in ((9, 1), (5, 1), (5, 2), (5, 3), (2, 1))]
    shown: list[Any] = []
    with pytest.MonkeyPatch.context() as patch, LedgerReader.open(url) as ledger:

        def some(_: object, wanted: Any, most: int) -> Any:
            since, until = wanted.period
            found = [row for row in rows if since <= row[0] < until][wanted.skip :][:most]
            return [
                (run._replace(start_us=start, key=RunKey(f"{start} {number}", 1)), pilot)
                for start, number in found
            ]

        ((run, pilot),) = LedgerReader.runs_begun(ledger, RunFilter(ALWAYS), 1)
        patch.setattr(LedgerReader, "runs_begun", some)
        after = ""
        while after is not None:
            asked = asking.RunsListed.model_validate(
                {"from": "1970-01-01T00:00:00Z", "to": "1970-01-01T00:00:01Z"}
                | {"limit": 2, "after": after}
            )
            snapshot = state.snapshot
            assert snapshot is not None
            of_poll = answers.Answers(snapshot, state.pages.view)
            page = of_poll.runs(asked)
            shown += page["runs"]
            after = page["next"]
    assert [run["job"] for run in shown] == [f"{start} {number}" for start, number in rows]


def test_filters(client: httpx.Client) -> None:
    """Each leaves what it names."""
    assert {row["site"] for row in answered(client, "entries?site=T2_Bored")["entries"]} == {
        "T2_Bored"
    }
    assert [row["entry"] for row in answered(client, "entries?entry=bored-ce2")["entries"]] == [
        "bored-ce2"
    ]
    down = answered(client, "sites?state=down&resource=cpu")["sites"]
    assert [row["site"] for row in down] == ["T2_Down"]
    assert answered(client, "sites?state=down&resource=gpu")["sites"] == []
    (running,) = answered(client, "pilots?doing=running")["pilots"]
    assert running["entry"] == "entry-a2"
    assert len(answered(client, "pilots?which=past&failed=false")["pilots"]) == 2
    assert answered(client, "pilots?which=past&failed=true")["pilots"] == []
    runs = answered(client, "runs?user=alice@example.org&from=1d")["runs"]
    assert [run["category"] for run in runs] == ["preemption_badput", "goodput"]
    assert len(answered(client, f"runs?job={quote(JOB)}&from=1d")["runs"]) == 1
    (cut_off,) = answered(client, "runs?category=preemption_badput&from=1d")["runs"]
    assert cut_off["pilot"] == 1
    assert answered(client, "runs?entry=entry-a2&from=1d&category=goodput")["runs"] == []
    every = answered(client, "runs?from=1d")["runs"]
    outcome, node = cut_off["outcome"], cut_off["node"]
    for query, wanted in (
        (f"outcome={outcome}", [run for run in every if run["outcome"] == outcome]),
        (f"node={node[:-1]}*", [run for run in every if run["node"] == node]),
        ("longer_than=3599", [r for r in every if (r["duration_seconds"] or 0) >= 3600]),
    ):
        assert 0 < len(wanted) < len(every)
        assert answered(client, f"runs?from=1d&{query}")["runs"] == wanted
    assert answered(client, "runs?from=2h&to=1h")["runs"] == []


def test_failed_pilots(tmp_path: Path) -> None:
    """Those that failed validation, those that did not, and all."""
    url = str(tmp_path / "ledger.sqlite")
    failed_pilots.write(url)
    with serving(polled(url)) as client:
        lists = [
            answered(client, f"pilots?which=past{failed}")["pilots"]
            for failed in ("&failed=true", "&failed=false", "")
        ]
    assert [len(pilots) for pilots in lists] == [7, 2, 9]


def test_totals_over_time(client: httpx.Client) -> None:
    """As many values as steps; null where nothing was accounted."""
    found = answered(client, "totals?last=24h")
    assert (found["step_seconds"], len(found["steps"])) == (3600, 24)
    series = [*found["capacity"].values(), *found["pilots"].values()]
    assert {len(values) for values in series} == {24}
    goodput = [value for value in found["pilots"]["goodput"] if value]
    assert sum(goodput) == pytest.approx(2.5)  # 2 cores for an hour, 1 for half of one
    assert answered(client, "totals?last=30d&resource=gpu&site=Site-B")["pilots"] == {}


def test_failures(client: httpx.Client) -> None:
    """With what is suspected, and since when the answer is complete."""
    found = answered(client, "failures?from=1d")
    assert found["partial"] is False
    assert found["validation_failures"]["total"]["of_pilots"] == 2
    assert found["run_failures"]["total"]["of_runs"] == 3
    assert [suspect["too_soon"] for suspect in found["suspected_black_holes"]] == [12]
    assert found["failed_transfers"] == {"groups": [], "left_off": 0, "total": {"runs": 0}}
    assert answered(client, "failures?site=Site-B")["suspected_black_holes"] == []


def test_problems(client: httpx.Client) -> None:
    """With what they mean and what to do."""
    found = answered(client, "problems")["problems"]
    assert all(one["meaning"] and one["what_to_do"] and one["times"] > 0 for one in found)


def test_a_job_is_explained(client: httpx.Client) -> None:
    """As the page explains it; what the page refuses, is refused."""
    found = answered(client, "explain/4711.0?schedd=ap1&site=S")
    assert found["reasons"][0]["whose_move"]
    page = client.get(str(client.base_url).replace("api/v1/", "explain"), params={
        "job": "4711.0", "schedd": "ap1", "site": "S", "format": "json"
    })  # fmt: skip
    assert found == page.json()
    assert "no job 0.0" in refused(client, "explain/0.0", 404)["detail"]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("jobs?schedd=ap1&site=S", "all=1&schedd=ap1&site=S"),
        ("pilots/p%40wn1", "pilot=p%40wn1"),
        ("entries/E?site=S", "entry=E&site=S"),
        ("whatif?change=memory&of=cms&value=2000", "whatif=memory&of=cms&value=2000"),
    ],
)
def test_places_and_all_jobs_are_explained(client: httpx.Client, path: str, query: str) -> None:
    """As the page explains them; of long lists the first lines, and how many are left out."""
    found = answered(client, f"explain/{path}")
    page = client.get(str(client.base_url).replace("api/v1/", f"explain?{query}&format=json"))
    assert found == page.json()
    few = answered(client, f"explain/{path}{'&' if '?' in path else '?'}limit=1")
    for name, left in few["left_off"].items():
        assert few[name] == found[name][:1]
        assert left == max(0, len(found[name]) - 1)
    assert refused(client, "explain/pilots/0.0", 404)


def test_few_jobs_are_explained_at_once(url: str) -> None:
    """Who asks for too many is told when to ask again."""
    turns = Turns(lambda: 0.0)
    with serving(polled(url, turns=turns)) as client:
        for number in range(BURST):
            answered(client, f"explain/{number + 1}.0")
        assert refused(client, "explain/99.0", 429)
        assert int(client.get("explain/99.0").headers["retry-after"]) > 0
        answered(client, "explain/1.0")  # which is kept


def test_jobs_of_users(client: httpx.Client) -> None:
    """By submitter, with the user that each is; null is not known."""
    found = answered(client, "users")
    names = "user", "submitter", "waiting_jobs", "running_jobs", "held_jobs", "schedds"
    assert [tuple(one[name] for name in names) for one in found["users"]] == [
        ("alice@example.org", "alice@example.org", 12, 2, 0, 1),
        ("bob@example.org", "bob@example.org", 0, 0, 0, 1),
        ("alice@example.org", "cms.alice@example.org", 38, 1, 1, 2),
        ("dune.dan@example.org", "dune.dan@example.org", None, 4, 0, 1),
    ]
    assert found["users"][0]["told_epoch_seconds"] == NOW_S - 180
    assert found["complete"]
    every = answered(client, "users?user=alice&limit=1")
    more = answered(client, f"users?user=alice&limit=1&after={every['next']}")
    assert [one["submitter"] for one in (*every["users"], *more["users"])] == [
        *("alice@example.org", "cms.alice@example.org")
    ]
    assert more["next"] is None
    assert "?" not in client.get("users?format=csv").text


# --- Jobs and users ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        *("runs?user=alice@example.org", f"runs?job={quote(JOB)}", "report?by=user"),
        *(
            "users",
            "users?user=alice",
            "report?by=user,day",
            f"traces?job={quote(JOB)}",
            "explain/4711.0",
            "explain/whatif?change=start&of=f.g&value=Owner+%3D%3D+%22alice%22",
        ),
    ],
)
def test_jobs_are_not_shown_to_everybody(stranger: httpx.Client, path: str) -> None:
    """Whoever asks for one learns why, and not whether there is such a job."""
    assert "[http] jobs" in refused(stranger, path, 403)["detail"]
    assert refused(stranger, path.replace("alice", "nobody"), 403)


@pytest.mark.parametrize(
    "path", ["runs?from=1d", "pilots?which=all", "pilots/1", "pilots/3", "traces?pilot=1"]
)
def test_users_are_left_out(client: httpx.Client, stranger: httpx.Client, path: str) -> None:
    """No name of a user or of a job is in an answer; what is missing is said; the rest is there."""
    names = re.compile(r"alice|bob|carol|schedd\.example\.org#")
    assert names.search(client.get(path).text)
    text = stranger.get(path).text
    assert not names.search(text)
    assert "user" in json.loads(text)["withheld"]
    assert answered(client, path)["withheld"] == []
    assert json.loads(text).keys() == answered(client, path).keys()


@pytest.mark.parametrize(
    ("jobs", "token", "shown"),
    [
        *(("token", False, False), ("token", True, True), ("all", False, True)),
        *(("nobody", False, False), ("nobody", True, False)),
    ],
)
def test_who_may_see_jobs(
    jobs: Literal["token", "all", "nobody"], token: bool, shown: bool, tmp_path: Path
) -> None:
    """Without a setting only whoever has a token."""
    file = tmp_path / "token"
    file.write_text("se-cret")
    assert Http(auth_token_file=str(file) if token else "", jobs=jobs).shows_jobs is shown


# --- What is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "parameter", "words"),
    [
        ("sites?sit=A", "sit", ""),
        ("runs?since=1d", "since", ""),
        ("pilots/1?limit=1", "limit", ""),
        ("sites?limit=0", "limit", "limit: must be a whole number, 1 or more"),
        ("sites?limit=501", "limit", "limit: must be a whole number, 500 or less"),
        ("sites?limit=many", "limit", "limit: must be a whole number"),
        ("sites?limit=1&limit=2", "limit", ""),
        ("sites?state=odd", "state", ""),
        ("sites?after=!", "after", "after: this is no cursor of this list: leave it out to begin"),
        ("sites?after=abcd", "after", ""),
        ("sites?after=WzFd", "after", ""),  # [1]
        ("runs?after=WyJhIl0", "after", ""),  # ["a"]
        ("runs?after=Wy0xLCAwXQ", "after", ""),  # [-1, 0]
        ("pilots?after=WzFd", "after", ""),
        ("report?after=W3RydWVd", "after", ""),  # [true]
        ("sites?after=" + "W1tb" * 250, "after", ""),
        ("sites?site=a%00b", "site", "site: must be without control characters"),
        ("sites?site=" + "a" * 257, "site", "site: must be of 256 characters at most"),
        ("pilots?which=some", "which", ""),
        ("explain/x.y", "job", "job: must be CLUSTER.PROC, or a GlobalJobId"),
        ("explain/4711.0?sit=A", "sit", ""),
        ("explain/4711.0?limit=501", "limit", ""),
        ("explain/pilots/a%20b", "name", "name: must be a name, without blanks, slashes"),
        ("explain/pilots/p?site=A", "site", ""),
        ("explain/entries/e%00", "entry", ""),
        ("explain/jobs?after=a", "after", ""),
        ("explain/whatif?change=x&of=y", "change", "change: must be one of"),
        ("explain/whatif?change=memory", "of", "of: is needed"),
        (
            f"explain/whatif?change=memory&of=y&value={'1' * 4097}",
            "value",
            "value: must be of 4096",
        ),
        ("explain/4711.0?site=A&site=B", "site", ""),
        ("pilots/0", "number", ""),
        ("pilots/x", "number", ""),
        (f"pilots/{1 << 62}", "number", ""),
        ("runs?from=soon", "from, to", ""),
        ("runs?from=1h&to=2h", "from, to", ""),
        ("runs?from=500d", "from, to", ""),
        ("report?by=colour", "by", 'there is no "colour", only site, entry'),
        ("report?by=hour,day", "by", '"hour,day": give one or two'),
        ("report?by=node&hours_only=true", "hours_only", ""),
        ("totals?last=1y", "last", "last: must be one of '24h', '7d' or '30d'"),
        ("traces", "job, pilot", ""),
        ("traces?job=a&pilot=1", "job, pilot", ""),
        ("traces?pilot=-1", "pilot", ""),
        ("sites?state=gone", "state", "'filling'"),
        ("sites?state=gone", "state", "state: must be one of 'provisioning_bottleneck', "),
        ("runs?category=nix", "category", "'goodput'"),
        ("pilots?doing=nix", "doing", "'silent'"),
        ("sites?stat=down", "stat", "stat: no such parameter: /api/v1/openapi.json has those"),
    ],
)
def test_wrong_parameters(client: httpx.Client, path: str, parameter: str, words: str) -> None:
    """The error names the parameter, and says in plain words what is allowed."""
    problem = refused(client, path, 422)
    jargon = r"Input should|[Ss]tring should|pattern|parse|value that it can have"
    assert not re.search(jargon, json.dumps(problem))
    errors = {one["parameter"]: one["detail"] for one in problem["errors"]}
    assert words in problem["detail"]
    assert re.sub(r"^\w+: ", "", words) in errors[parameter]
    assert errors[parameter][0] not in " :"


@pytest.mark.parametrize(
    "path",
    [
        "site",
        "sites/",
        "sites%0A",
        "../v2/sites",
        "sites/x",
        "pilots/99",
        "traces?pilot=99",
        "traces?job=a%23b",
        "docs",
    ],
)
def test_what_there_is_not(client: httpx.Client, path: str) -> None:
    """Paths, pilots and traces."""
    assert refused(client, f"/{path}", 404)["detail"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_only_reading(client: httpx.Client, method: str) -> None:
    """Nothing can be changed."""
    refused(client, "sites", 405, method)
    assert client.request(method, "sites").headers["allow"] == "GET, HEAD"


def test_head(client: httpx.Client) -> None:
    """The same head, and nothing below."""
    get, head = client.get("sites"), client.head("sites")
    assert (head.status_code, head.content) == (200, b"")
    for name in ("etag", "content-length", "content-type", "cache-control"):
        assert head.headers[name] == get.headers[name]
    assert client.head("nothing").status_code == 404


# --- Polls ------------------------------------------------------------------------------------


def test_unchanged_until_the_next_poll(url: str) -> None:
    """A tag is of one question at one poll; a client that has it gets no answer again."""
    state = polled(url)
    with serving(state) as client:
        for path in ("sites", "pilots?which=all", "pilots/1", "openapi.json"):
            first = client.get(path)
            tag = first.headers["etag"]
            for given in (tag, f'"x", {tag}', tag.removeprefix("W/")):
                again = client.get(path, headers={"If-None-Match": given})
                assert (again.status_code, again.content) == (304, b"")
                assert again.headers["etag"] == tag
            other = client.get("entries", headers={"If-None-Match": tag})
            assert other.status_code == 200
            assert client.get(path, headers={"If-None-Match": '"x"'}).content == first.content
        tag = client.get("sites").headers["etag"]
        state.pages = polled(url).pages
        assert client.get("sites", headers={"If-None-Match": tag}).status_code == 200


def test_before_the_first_poll() -> None:
    """It is said when to ask again."""
    with serving(Daemon()) as client:
        assert refused(client, "sites", 503)["detail"] == "the first poll is under way"
        assert client.get("pilots").headers["retry-after"] == "5"
        assert client.get("openapi.json").status_code == 200


def test_without_a_ledger(tmp_path: Path) -> None:
    """What needs none is answered."""
    with serving(polled(str(tmp_path / "none.sqlite"))) as client:
        for path in ("pilots", "pilots/1", "runs", "report", "totals", "failures", "advise"):
            assert "none.sqlite" in refused(client, path, 503)["detail"]
        assert client.get("sites").status_code == 200


def test_each_is_read_once_a_poll(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered is kept, and what could not be read too."""
    asked = []

    def unreadable(*_: object) -> Any:
        asked.append(1)
        raise Unreadable("too long")

    monkeypatch.setattr(answers, "page_of", unreadable)
    with serving(polled(url)) as client:
        assert [refused(client, "pilots", 503)["detail"] for _ in range(3)] == ["too long"] * 3
    assert asked == [1]


def test_a_mistake_is_a_problem(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw is no secret, and no page of HTML; the next answer comes."""

    def broken(*_: object) -> Any:
        raise RuntimeError("a secret")

    with serving(polled(url)) as client, capture_logs() as logged:
        monkeypatch.setattr(answers, "page_of", broken)
        assert "secret" not in refused(client, "pilots", 500)["detail"]
        assert client.get("sites").status_code == 200
    assert [(one["event"], one["exc_info"]) for one in logged] == [("no answer of REST", True)]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In number and in bytes; the oldest goes first."""
    monkeypatch.setattr(pages, "MOST_KEPT", 3)
    monkeypatch.setattr(pages, "MOST_BYTES", 10)
    kept, made = pages.MadeOnce(), []

    def get(name: str, size: int = 1) -> None:
        def make() -> bytes:
            made.append(name)
            return b"x" * size

        assert kept.made((name,), make) == b"x" * size

    for name in "abca":
        get(name)
    assert made == ["a", "b", "c"]
    get("d")
    get("a")
    assert made == ["a", "b", "c", "d", "a"]
    get("large", 20)
    get("large", 20)
    assert made[-1] == "large"
    assert made.count("large") == 1


# --- Strangers --------------------------------------------------------------------------------


def test_the_guard_is_before_it(url: str, tmp_path: Path) -> None:
    """Token and name of the host are asked for, errors are problems, and counted."""
    token = tmp_path / "token"
    token.write_text("se-cret\n")
    with (
        serve(polled(url), auth_token_file=str(token)) as (server, listener),
        httpx.Client(base_url=f"{server.url}/api/v1") as client,
    ):
        refused(client, "sites", 401)
        refused(client, "openapi.json", 401)
        assert client.get("nothing").headers["www-authenticate"] == "Bearer"
        assert client.get("sites", headers={"Host": "evil.example"}).status_code == 421
        client.headers["Authorization"] = "Bearer se-cret"
        assert answered(client, "runs?from=1d")["withheld"] == []
        # Those that were refused are closed, and forgotten soon.
        wait_until("one client", lambda: len(listener.connections.clients) == 1)
    counted = {one.problem.value: one.records for one in listener.connections.problems()}
    assert counted == {"no_token": 3, "bad_host": 1}


# --- The documentation ------------------------------------------------------------------------


def blocks() -> list[str]:
    """The examples of docs/api.md, which are indented; those of one block belong together."""
    found = re.findall(r"^(?:    .*\n)+", DOCS.read_text(), re.M)
    assert len(found) >= 5
    return [textwrap.dedent(block) for block in found]


@pytest.mark.parametrize("block", blocks(), ids=range(len(blocks())))
def test_examples_of_the_documentation(client: httpx.Client, block: str, tmp_path: Path) -> None:
    """Each command does as written: curl and jq succeed, and something is there."""
    base = str(client.base_url).removesuffix("/api/v1/")
    for number, command in enumerate(re.findall(r"(?:.*\\\n)*.*\n", block)):
        assert command.startswith("curl -s")
        asked = command.replace("http://127.0.0.1:9818", base)
        assert asked != command
        shell = ["bash", "-euo", "pipefail", "-c", asked]
        done = subprocess.run(
            shell, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        written = [file.read_text() for file in tmp_path.iterdir()]
        shown = done.stdout.strip() or "".join(written)
        assert shown not in ("", "null", "[]"), (number, command)
    if "etag-compare" in block:
        assert done.stdout == "304\n"


def test_every_path_is_documented() -> None:
    """With all its parameters."""
    text = DOCS.read_text()
    found = json.loads((ROOT / "gwmond" / "data" / "openapi.json").read_text())
    for path, methods in found["paths"].items():
        (line,) = re.findall(rf"^\| `{re.escape(path)}` .*$", text, re.M)
        for parameter in methods["get"].get("parameters", ()):
            assert f"`{parameter['name']}`" in line, (path, parameter["name"])


def test_commands_do_not_load_it() -> None:
    """Nor does what starts often."""
    code = "import sys, gwmond.cli, gwmond.commands.pilots; print('gwmond.web.api' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- For tables and for Grafana ----------------------------------------------------------------


def test_a_list_as_csv(client: httpx.Client) -> None:
    """The lines of the list, page by page; names that a spreadsheet would evaluate are quoted."""
    for path, rows in (("sites", "sites"), ("runs?from=2023-11-15&to=2023-11-16", "runs")):
        mark = "&" if "?" in path else "?"
        answer = client.get(f"{path}{mark}format=csv")
        assert answer.headers["content-type"].startswith("text/csv"), answer.text
        lines = list(csv.DictReader(answer.text.splitlines()))
        known = answered(client, path)[rows]
        assert [line["site"] for line in lines] == [row["site"] for row in known] != []
    first = client.get("sites?format=csv&limit=1")
    following = first.links["next"]["url"].removeprefix("/api/v1/")
    assert client.get(following).text.splitlines()[1] != first.text.splitlines()[1]
    assert "format" in refused(client, "totals?format=csv", 422)["detail"]


def test_times_as_grafana_writes_them(client: httpx.Client) -> None:
    """Epoch milliseconds, and so long before now."""
    known = answered(client, "runs?from=2023-11-15&to=2023-11-16")["runs"]
    ours = answered(client, "runs?from=1700006400000&to=1700092800000")["runs"]
    assert without_now(ours) == without_now(known) != []
    assert answered(client, "runs?from=now-6h&to=now")["period"]


def test_a_job_and_a_user_by_their_short_names(client: httpx.Client) -> None:
    """cluster.proc and a name without its domain mean what they mean for the commands."""
    number = JOB.split("#")[1]
    job = answered(client, f"traces?job={quote(JOB)}")
    assert without_now(answered(client, f"traces?job={number}")) == without_now(job)
    period = "from=2023-11-15&to=2023-11-16"
    runs = answered(client, f"runs?{period}")["runs"]
    users = {run["user"] for run in runs if run["user"] and "@" in run["user"]}
    for user in users:
        whole = answered(client, f"runs?{period}&user={quote(user)}")["runs"]
        assert answered(client, f"runs?{period}&user={user.partition('@')[0]}")["runs"] == whole
    assert users
    assert [run["job"] for run in answered(client, f"runs?{period}&job={number}")["runs"]] == [
        run["job"] for run in runs if run["job"] == JOB
    ]


def test_the_index_names_all_paths(client: httpx.Client) -> None:
    """Below it is what openapi.json describes."""
    assert answered(client, "")["paths"].keys() == answered(client, "openapi.json")["paths"].keys()
