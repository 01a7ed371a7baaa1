"""Tables of pages as CSV: what a person reads there, for programs and spreadsheets."""

from __future__ import annotations

import csv
import io

import httpx

from gwmond.reports.render.html import html
from gwmond.reports.render.table import Column, table
from gwmond.web.asking import PilotsPage
from gwmond.web.tables import csv_of
from tests.build.rest import polled, serve
from tests.build.web import rows


def test_each_table_of_a_page_is_there(url: str) -> None:
    """By the link below it, with all that was chosen; others are refused."""
    with serve(polled(url)) as (server, _):
        assert "<h1>Now</h1>" in httpx.get(server.url).text
        for path in ("/failures?last=7d", "/", "/user?user=alice", "/site?site=Site-A", "/time"):
            page = httpx.get(server.url + path).text
            for number in range(1, page.count("<table") + 1):
                joint = "&amp;" if "?" in path else ""
                query = path.partition("?")[2]
                assert f'href="?{query}{joint}csv={number}"' in page
                asked = path + ("&" if query else "?") + f"csv={number}"
                answer = httpx.get(server.url + asked)
                assert answer.headers["content-type"] == "text/csv; charset=utf-8"
                found = list(csv.reader(io.StringIO(answer.text)))
                assert len({len(line) for line in found}) == 1
            for wrong in ("99", "0", "-1", "x", "1e3"):
                asked = path + ("&" if "?" in path else "?") + f"csv={wrong}"
                assert (asked, httpx.get(server.url + asked).status_code) == (asked, 404)


def test_cells_are_those_of_the_page(url: str) -> None:
    """Names and words as they stand there; numbers without commas, and empty if not known."""
    page = polled(url).pages.chosen(PilotsPage(which="past", columns="id,site,users,hours,pilot"))
    (head, *lines) = csv.reader(io.StringIO(csv_of(str(page), 1) or ""))
    assert head == ["id", "site", "users", "hours", "pilot"]
    assert lines[0] == [
        "1",
        "Site-A",
        "alice@example.org, bob@example.org",
        "8.0",
        "glidein_1@wn1.example.org",
    ]
    shown = [("=1+1", "12,345.5"), ("a, <b>", "?")]
    made = table(
        "", [Column("na\u00adme", lambda x: x[0], name=True), Column("n", lambda x: x[1])], shown
    )
    text = html([made])
    assert csv_of(text, 1) == 'name,n\n\'=1+1,12345.5\n"a, <b>",\n'
    assert csv_of(text, 2) is None


def test_columns_are_chosen(url: str) -> None:
    """Each link leads to the list with one column more, or less; what is unknown is left out."""
    pages = polled(url).pages
    usual = str(pages.chosen(PilotsPage(which="past")))
    assert 'href="pilots?which=past&amp;columns=id%2Csite%2C' in usual
    chosen = str(pages.chosen(PilotsPage(which="past", columns="id,hours,nonsense")))
    assert 'href="pilots?which=past&amp;columns=id%2Chours%2Cpilot"' in chosen
    assert 'href="pilots?which=past&amp;columns=hours"' in chosen
    assert rows(f"<h2>{chosen}", "") == [["1", "8.0"], ["2", "4.0"]]
    hidden = str(polled(url, shows_jobs=False).pages.chosen(PilotsPage(columns="id,users")))
    assert "carol" not in hidden
