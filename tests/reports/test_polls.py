"""Polls of the past, as the ledger keeps them: what was served then is served again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from gwmond.model.times import SECOND_US
from gwmond.reports.render.formats import words
from gwmond.reports.sites.polls import NoPoll, past_poll, past_polls
from gwmond.reports.sites.sites import by_site, entry_rows, site_rows
from gwmond.web.asking import PastPage
from gwmond.web.explain import Explanations, Turns
from gwmond.web.pages import Pages
from tests.build.polls import Polls, job
from tests.build.rest import Polled, serve
from tests.build.web import with_ledger


@pytest.fixture
def polls(tmp_path: Path) -> Polls:
    return Polls(tmp_path)


def test_each_poll_is_as_it_was_shown(polls: Polls) -> None:
    """At its time, and until the next one: entries, sites, and why jobs wait."""
    shown = [polls.poll()]
    polls.pool.answers["<ap1>", "demand"] = [job(3)]
    shown.append(polls.poll())
    polls.pool.answers["<ap1>", "demand"] = []
    shown.append(polls.poll())
    assert len({len(snapshot.idle) for snapshot in shown}) > 1
    for snapshot in shown:
        for later_s in (0, 59):
            past = past_poll(polls.ledger, round((snapshot.pool_time + later_s) * SECOND_US))
            unchecked: dict[str, Any] = {"verdicts_checked": None, "verdicts_agreed": None}
            assert list(past.entries) == [row._replace(**unchecked) for row in entry_rows(snapshot)]
            assert list(past.idle) == list(snapshot.idle)
            assert [row.state for row in by_site(past.entries)] == [
                row.state for row in site_rows(snapshot)
            ]


def test_rest_answers_again_what_it_answered(polls: Polls) -> None:
    """Of a poll of the past, what was answered before the next poll; of none before the first."""
    seen: dict[float, dict[str, Any]] = {}
    for jobs in (12, 3, 0):
        polls.pool.answers["<ap1>", "demand"] = [job(jobs)] if jobs else []
        shown = polls.poll()
        explanations = Explanations(shown, None, Turns())
        pages = Pages(shown, with_ledger(polls.config.ledger.url), explanations)
        with serve(Polled(pages)) as (server, _):

            def get(path: str, as_of: float | str, url: str = server.url) -> Any:
                asked = {"as_of": as_of} if as_of else {}
                return httpx.get(f"{url}/api/v1/{path}", params=asked, timeout=60).json()

            for at, before in seen.items():
                assert {path: _unchecked(get(path, at)) for path in before} == before
            early = get("sites", "2001-01-01")
            assert (early["status"], "none" in early["detail"]) == (404, False)
            assert get("entries", "soon")["status"] == 422
            paths = ("sites", "entries", "explain")
            seen[shown.pool_time] = {path: _unchecked(get(path, "")) for path in paths}
    assert len({str(of["sites"]["sites"]) for of in seen.values()}) == 3


def test_a_page_shows_what_was_found_then(polls: Polls) -> None:
    """The state of sites, and of a site's entries; of none it says so."""
    shown = [polls.poll()]
    polls.pool.answers["<ap1>", "demand"] = []
    shown.append(polls.poll())
    pages = Pages(shown[-1], with_ledger(polls.config.ledger.url))
    then, last = (site_rows(snapshot)[0] for snapshot in shown)
    assert then.state != last.state
    for place, name in ({}, "Site"), ({"site": "Site"}, "entry"):
        page = pages.chosen(PastPage(at=f"{shown[0].pool_time:.6f}", **place)) or ""
        row = page.partition("<tbody>")[2].partition("</tr>")[0]
        assert f">{name}</a>" in row
        assert words(then.state) in row
    assert "no poll is kept" in (pages.chosen(PastPage(at="2001-01-01")) or "")
    assert "is not a time" in (pages.chosen(PastPage(at="soon")) or "")


def _unchecked(record: Any) -> Any:
    """The same without what later polls are to tell: how many verdicts were right."""
    for row in record.get("sites", record.get("entries", ())):
        row.update(verdicts_checked=None, verdicts_agreed=None)
    return record


def test_of_each_step_the_last_poll_is_read(polls: Polls) -> None:
    """Not all of them: each takes time to unpack."""
    shown = [round(polls.poll().pool_time * SECOND_US) for _ in range(30)]  # one a minute
    last_of_step = {time_us // (900 * SECOND_US): time_us for time_us in shown}
    found = [one.time_us for one in past_polls(polls.ledger, 0, shown[-1], 900)]
    assert found == sorted(last_of_step.values())
    assert len(found) < len(shown)


def test_before_the_first_poll_nothing_is_known(polls: Polls) -> None:
    first = polls.poll()
    with pytest.raises(NoPoll, match="polls_retention"):
        past_poll(polls.ledger, round((first.pool_time - 1) * SECOND_US))


def test_after_a_gap_it_says_so(polls: Polls) -> None:
    """Stale is not fresh: what nobody polled is not told as if it had been."""
    first = polls.poll()
    at_us = round((first.pool_time + 3600) * SECOND_US)
    note = past_poll(polls.ledger, at_us).note(at_us, 60)
    assert "3600 s before the time asked for, and none is kept between" in note


def test_they_are_forgotten_after_their_retention(polls: Polls) -> None:
    first = polls.poll()
    polls.poll(8 * 86_400)
    with pytest.raises(NoPoll):
        past_poll(polls.ledger, round(first.pool_time * SECOND_US))
