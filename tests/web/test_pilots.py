"""The pages of pilots: which are listed, and what is said of one."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from gwmond.web.asking import PilotsPage
from gwmond.web.pages import Pages
from gwmond.web.pilots import trace_form
from tests.build.pilot_ledger import BASE
from tests.build.rest import polled
from tests.build.snapshots import snapshot
from tests.build.web import cells, with_ledger


@pytest.fixture
def pages(url: str) -> Pages:
    """Pages that name jobs and their users."""
    return polled(url).pages


@pytest.fixture
def strangers(url: str) -> Pages:
    """Pages for who may not ask for jobs."""
    return polled(url, shows_jobs=False).pages


def test_running_pilots(pages: Pages) -> None:
    """With a link to each; how many is said."""
    page = pages.chosen(PilotsPage())
    (line,) = cells(page)
    assert "<b>carol|*" in line
    assert "entry-a2" in line
    assert '<a href="pilot?id=' in str(page)
    assert "Not ended, the latest first: 1 pilot." in str(page)


def test_pilots_that_have_ended(pages: Pages) -> None:
    """The latest first; of a place only its own, without the columns of the place."""
    assert [line[-1] != "" for line in cells(pages.chosen(PilotsPage(which="past")))] == [
        True,
        True,
    ]
    page = pages.chosen(PilotsPage(which="past", site="Site-A", entry="entry-a"))
    (line,) = cells(page)
    assert "Site-A" not in line
    assert "entry?site=Site-A&amp;entry=entry-a" in str(page)
    none = str(pages.chosen(PilotsPage(which="past", site="Site-A", entry="nowhere")))
    assert "There is no such pilot." in none
    assert "The last poll knows no such place" in none


@pytest.mark.parametrize(
    ("chosen", "nodes"),
    [
        (PilotsPage(which="all"), "321"),
        (PilotsPage(which="past", last="24h"), "12"),
        (PilotsPage(which="past", node="wn1*"), "1"),
        (PilotsPage(which="all", group="frontend.main", category="decision_problem"), "2"),
        (PilotsPage(which="past", category="preemption_badput"), "1"),
        (PilotsPage(doing="running"), "3"),
        (PilotsPage(doing="idle"), ""),
        # which is said of those that have not ended
        (PilotsPage(which="past", doing="idle"), "12"),
        (PilotsPage(which="all", failed="true"), ""),
    ],
)
def test_filters(pages: Pages, chosen: PilotsPage, nodes: str) -> None:
    """Each leaves what it names; a form has what is chosen."""
    page = str(pages.chosen(chosen))
    assert re.findall(r"glidein_(\d)@", page) == list(nodes)
    wanted = chosen if chosen.which == "running" else chosen.but(doing="")
    for value in filter(None, wanted.but(which="").query.values()):
        assert f'value="{value}"' in page


def test_the_next_pilots(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has so many; links lead to the others and back, with the same filter."""
    monkeypatch.setattr("gwmond.web.pilots.MOST", 1)
    first = str(pages.chosen(PilotsPage(which="past", group="frontend.main")))
    assert "wn1.example.org" in first
    link = re.search(r'href="pilots\?group=frontend.main&amp;which=past&amp;after=([^"]*)"', first)
    assert link
    last = str(pages.chosen(PilotsPage(which="past", group="frontend.main", after=link[1])))
    assert "glidein_2@wn2" in last
    assert "glidein_1@wn1" not in last
    assert 'href="pilots?group=frontend.main&amp;which=past">From the latest' in last
    assert "after=" not in last


def test_the_life_of_a_pilot(pages: Pages) -> None:
    """Its runs with their rules, its sums, and a bar for itself and for each run."""
    listed = str(pages.chosen(PilotsPage(which="past", site="Site-A", entry="entry-a")))
    link = re.search(r'href="pilot\?id=(\d+)"', listed)
    assert link
    page = pages.pilot(int(link[1]))
    assert page is not None
    assert "glidein_1@wn1" in page
    bars = re.findall(r'<rect class="c-(\w+)"[^>]*><title>(run \d|pilot): ([^<]*)', page)
    assert [(kind, lane) for kind, lane, _ in bars if lane != "pilot"] == [
        ("goodput", "run 1"),
        ("goodput", "run 2"),
        ("preemption_badput", "run 3"),
    ]
    spans = {lane: text for _, lane, text in bars if lane != "pilot"}
    assert spans["run 1"] == "goodput, +10m00s to +1h10m"
    assert {kind for kind, lane, _ in bars if lane == "pilot"} == {"pilot_overhead"}
    assert pages.pilot(10**9) is None


def test_pictures_have_times_and_legends(pages: Pages) -> None:
    """Each colour is in the legend, also of time that is not settled; times of day are below."""
    colours = set()
    for page in (str(pages.pilot(1)), str(pages.pilot(3)), str(pages.trace("", 1))):
        drawn = set(re.findall(r'<rect class="(c-[\w-]+)"', page))
        assert drawn <= set(re.findall(r'<li><i class="(c-[\w-]+)"', page))
        colours |= drawn
    assert {"c-open", "c-whole", "c-goodput"} <= colours
    ticks = re.findall(r'<text class="tick" x="([\d.]+)"[^>]*>([^<]*)<', str(pages.pilot(1)))
    assert [text for _, text in ticks] == [
        *("11-15", "00:15", "00:30", "00:45", "01:00", "01:15", "01:30", "01:45", "02:00 UTC")
    ]
    hour = float(ticks[4][0])
    run = re.search(
        r'<rect class="c-goodput" x="([\d.]+)"[^>]* width="([\d.]+)"', str(pages.pilot(1))
    )
    assert run  # from 00:10 to 01:10
    assert hour == pytest.approx(float(run[1]) + float(run[2]) * 50 / 60, abs=3)


def test_traces(pages: Pages) -> None:
    """A pilot's page leads to its trace, that to its jobs' traces, these to pilots."""
    assert 'href="trace?pilot=1"' in str(pages.pilot(1))
    page = pages.trace("", 1)
    bars = re.findall(r'<rect class="c-([\w-]+)"[^>]*><title>(\w+[^:]*): ([^<]*)', str(page))
    assert [bar[:2] for bar in bars] == [
        *(("whole", "pilot"), ("pilot_overhead", "idle"), ("pilot_overhead", "idle")),
        *(("goodput", "run 1"), ("goodput", "run 2"), ("preemption_badput", "run 3")),
    ]
    assert [line[0] for line in cells(page)][3:] == ["· run 1", "· run 2", "· run 3"]
    jobs = [unescape(of) for of in re.findall(r'href="trace\?job=([^"]*)"', str(page))]
    job = pages.trace(unquote(jobs[2]), 0)
    assert [line[0] for line in cells(job)] == ["job", "· queue", "· run 0", "· queue"]
    assert 'href="pilot?id=1"' in str(job)
    assert pages.trace("nobody#1.0#1", 0) is None
    assert pages.trace("", 10**9) is None


def test_jobs_and_users_are_named_to_few(pages: Pages, strangers: Pages) -> None:
    """To who may ask for jobs; the others see the same pilots, runs, times and counts."""
    names = re.compile(r"alice|bob|carol|schedd\.example\.org#|trace\?job=|run\.sh")
    shown: list[tuple[str | None, ...]] = []
    for made in (pages, strangers):
        lists = tuple(made.chosen(PilotsPage(which=which)) for which in ("running", "past"))
        lives = tuple(made.pilot(number) for number in (1, 2, 3))
        shown.append((*lists, *lives, *(made.trace("", number) for number in (1, 2, 3))))
    for ours, theirs in zip(*shown, strict=True):
        assert not names.search(str(theirs))
        kept = [[cell for cell in line if not names.search(cell)] for line in cells(ours)]
        assert len(kept) == len(cells(theirs))
        assert re.findall("<rect class[^>]*>", str(ours)) == re.findall(
            "<rect class[^>]*>", str(theirs)
        )
    assert sum(bool(names.search(str(page))) for page in shown[0]) == 6
    assert "1h00m" in str(shown[1][2])
    assert "goodput" in str(shown[1][2])


def test_a_trace_is_asked_for(pages: Pages, strangers: Pages) -> None:
    """By a job or a pilot; by a pilot alone where jobs are not named."""
    for made, fields in ((pages, ["job", "pilot"]), (strangers, ["pilot"])):
        for page in (trace_form(made.view, "", 0), made.trace("", 1)):
            assert re.findall('<label>.*?name="(\\w+)"', str(page)) == fields
            assert '<form class="fields" action="trace">' in str(page)
    assert pages.trace(f"schedd.example.org#1.0#{BASE}", 0)
    assert strangers.trace(f"schedd.example.org#1.0#{BASE}", 0) is None


def test_a_name_is_not_taken_for_html(pages: Pages) -> None:
    """Neither in the list, nor in the life."""
    listed = str(pages.chosen(PilotsPage()))
    link = re.search(r'href="pilot\?id=(\d+)"', listed)
    assert link
    number = int(link[1])
    for page in (listed, str(pages.pilot(number)), str(pages.trace("", number))):
        assert "&lt;b&gt;carol" in page
        assert "<b>" not in page


def test_a_ledger_that_cannot_be_read(tmp_path: Path) -> None:
    """The pages say why."""
    pages = Pages(snapshot(), with_ledger(str(tmp_path / "none.sqlite")))
    for page in (pages.chosen(PilotsPage()), pages.pilot(1), pages.trace("", 1)):
        assert 'role="alert"' in str(page)
