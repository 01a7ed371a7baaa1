"""The page of time: averages of a period, of all and of one place, and what it is drawn of."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

import gwmond.web
from gwmond.ledger.store import Ledger
from gwmond.model.entries.changes import Changed, Value, ValueKey
from gwmond.model.facts import Place
from gwmond.model.poll.batch import Batch
from gwmond.model.times import HOUR_US
from gwmond.reports.ledger.ledger_reading import Unreadable
from gwmond.reports.sites import time_by_hour
from gwmond.reports.sites.time_by_hour import RANGES, read
from gwmond.web.asking import TimeAsked
from gwmond.web.pages import Pages
from tests.build import hours_ledger, pilot_ledger
from tests.build.facts import NOW
from tests.build.snapshots import BORED, ODD, STARVING, snapshot
from tests.build.web import with_ledger

UPLOT = Path(gwmond.web.__file__).parent / "static" / "uplot"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return hours_ledger.write(tmp_path_factory.mktemp("hours"))


def test_hours_of_all_places(url: str) -> None:
    """Reasons, entries and outcomes are added up; an hour without anything is not 0."""
    times = read(url, RANGES["24h"], NOW, "cpu")
    assert times.starts[-1] == 3600 * hours_ledger.LAST
    assert {name: values[-3:] for name, values in times.capacity.items()} == {
        "provisioned": [None, 130.0, 130.0],
        "provisioning_bottleneck": [None, 10.0, 10.0],
    }
    assert {name: values[-3:] for name, values in times.pilots.items()} == {
        "goodput": [None, 60.0, 60.0],
        "pilot_overhead": [None, 20.0, 20.0],
    }


def test_hours_of_one_place_and_resource(url: str) -> None:
    """A site's entries together, one entry alone, GPUs by themselves."""
    assert read(url, RANGES["24h"], NOW, "cpu", Place(BORED.site)).capacity["provisioned"][-1] == 40
    entry = read(url, RANGES["24h"], NOW, "cpu", Place(*BORED))
    assert (entry.capacity["provisioned"][-1], entry.pilots) == (20, {})
    gpus = read(url, RANGES["24h"], NOW, "gpu", Place(*STARVING))
    assert gpus.capacity == {}
    assert gpus.pilots["goodput"][-2:] == [None, 4.0]


def test_longer_steps_are_averages(url: str) -> None:
    """Over steps of six hours; before the ledger's first hour nothing is known."""
    times = read(url, RANGES["7d"], NOW, "cpu", Place(*STARVING))
    values = times.capacity["provisioned"]
    assert len(values) == 28
    assert values[-2:] == [90.0, 75.0]
    assert values[0] is None


def test_time_that_is_not_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hour by hour pilots have what they are: 4 units each, settled or not (``pilot_ledger``).

    Of very many pilots that are not closed it is left out: a page would take too long.
    """
    url = str(tmp_path / "ledger.sqlite")
    pilot_ledger.write(url)
    pilots = read(url, RANGES["24h"], pilot_ledger.BASE + pilot_ledger.LAST, "cpu").pilots
    hours = zip(*(values[-8:] for values in pilots.values()), strict=True)
    assert [sum(filter(None, parts)) for parts in hours] == [8, 8, 4, 4, 4, 4, 4, 4]
    none, some, *all_of_it = pilots["not_settled"][-8:]
    assert (none, all_of_it) == (0, [4] * 6)
    assert some is not None
    assert 3 < some < 4
    monkeypatch.setattr(time_by_hour, "MOST_OPEN", 0)
    many = read(url, RANGES["24h"], pilot_ledger.BASE + pilot_ledger.LAST, "cpu").pilots
    assert many.keys() == pilots.keys() - {"not_settled"}
    ended = read(url, RANGES["24h"], pilot_ledger.BASE + 9000, "cpu", Place("Site-B")).pilots
    assert list(ended) == ["decision_problem"]


def test_a_ledger_that_cannot_be_read(tmp_path: Path) -> None:
    """The page says why, and has no chart."""
    with pytest.raises(Unreadable, match="none"):
        read(str(tmp_path / "none.sqlite"), RANGES["24h"], NOW, "cpu")
    page = Pages(snapshot(), with_ledger(str(tmp_path / "none.sqlite"))).chosen(TimeAsked())
    assert page is not None
    assert 'role="alert"' in page
    assert "data-chart" not in page


def test_page_says_what_is_drawn(url: str) -> None:
    """The table, and the JSON for the charts, have the same numbers."""
    page = Pages(snapshot(), with_ledger(url)).chosen(
        TimeAsked(site=STARVING.site, entry=STARVING.entry)
    )
    assert page is not None
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.S)
    assert found
    capacity, pilots = json.loads(found[1])["charts"]
    assert [part["name"] for part in capacity] == ["provisioned", "provisioning bottleneck"]
    assert [part["values"][-1] for part in (*capacity, *pilots)] == [90, 10, 60, 20]
    rows = re.findall(r"<tr>(<td.*?)</tr>", page, re.S)
    cells = [re.findall(r">([^<]*)</td>", row) for row in rows]
    assert cells[23] == ["2023-11-14 21:00", "90.0", "10.0"]
    assert cells[21] == ["2023-11-14 19:00", "?", "?"]
    assert cells[47] == ["2023-11-14 21:00", "60.0", "20.0"]


def test_what_was_changed_is_marked(url: str, tmp_path: Path) -> None:
    """At its place, also in a day, which is too short for losses."""
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(Path(url).read_bytes())
    key, at = ValueKey(*STARVING, "", Changed.MAX_PILOTS), hours_ledger.LAST - 5
    values = Value(key, (at - 99) * HOUR_US, "10"), Value(key, at * HOUR_US, "20")
    with Ledger.open(str(copy)) as ledger:
        ledger.commit(Batch(before=ledger.load().batches, now_us=0, values=values))
    pages = Pages(snapshot(), with_ledger(str(copy)))
    for asked, marks in (
        (TimeAsked(), [at * 3600]),
        (TimeAsked(last="7d"), [at * 3600]),
        (TimeAsked(site=BORED.site), []),
        (TimeAsked(resource="gpu"), []),
    ):
        page = str(pages.chosen(asked))
        found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.S)
        assert found
        assert json.loads(found[1])["marks"] == marks
        assert ("max pilots" in page) is bool(marks)


def test_page_of_a_place(url: str) -> None:
    """Its name leads to the place, choices keep it; what is not known has no page."""
    pages = Pages(snapshot(), with_ledger(url))
    page = pages.chosen(TimeAsked(last="7d", resource="cpu", site=ODD.site, entry=ODD.entry))
    assert page is not None
    assert "<b>" not in page
    assert "Nothing is accounted in the whole hours of this period." in page
    assert "time?site=%3Cb%3E%26%22Odd%22%5C&amp;entry=odd&amp;last=30d&amp;resource=cpu" in page
    assert 'aria-current="true">7 days' in page
    gone = "The last poll knows no such place"
    assert gone in str(pages.chosen(TimeAsked(site="nowhere")))
    assert gone in str(pages.chosen(TimeAsked(site=BORED.site, entry=STARVING.entry)))
    assert gone not in page


def test_time_of_a_group(url: str) -> None:
    """Its pilots alone; that capacity is not divided by groups is said."""
    group = read(url, RANGES["24h"], NOW, "cpu", Place(group="frontend.main"))
    assert (group.capacity, group.pilots["goodput"][-1]) == ({}, 60)
    assert read(url, RANGES["24h"], NOW, "cpu", Place(group="another")).pilots == {}
    page = str(Pages(snapshot(), with_ledger(url)).chosen(TimeAsked(group="frontend.main")))
    assert 'Time <span class="soft">of frontend group frontend.main' in page
    assert "not divided by frontend groups" in page
    assert "time?group=frontend.main&amp;last=7d&amp;resource=cpu" in page


def test_a_page_reads_the_ledger_once_a_poll(url: str, tmp_path: Path) -> None:
    """Asked for again, it is the same, also where the ledger has gone."""
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(Path(url).read_bytes())
    pages = Pages(snapshot(), with_ledger(str(copy)))
    before = pages.chosen(TimeAsked())
    copy.unlink()
    assert pages.chosen(TimeAsked()) == before
    assert 'role="alert"' in (pages.chosen(TimeAsked(last="7d")) or "")


def test_uplot_is_as_it_was_published() -> None:
    """The files have the checksums that are named beside them, of the version that is named."""
    sums = dict(line.split()[::-1] for line in (UPLOT / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        name: hashlib.sha256((UPLOT / name).read_bytes()).hexdigest()
        for name in ("LICENSE", "uPlot.iife.min.js", "uPlot.min.css")
    }
    assert "v1.6.32" in (UPLOT / "uPlot.iife.min.js").read_text()[:200]
