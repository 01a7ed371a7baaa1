"""The page of users: the sums of the ledger, and who may see it."""

from __future__ import annotations

import re
from dataclasses import replace

import httpx
import pytest

from gwmond.model.demand.submitters import UsersNow
from gwmond.model.pilots.stored_pilots import EndedOfUser
from gwmond.model.times import HOUR_US
from gwmond.reports.failures.users import RunsOfUsers
from gwmond.web import user
from gwmond.web.asking import PilotsPage, UserAsked
from gwmond.web.pages import Pages
from tests.build.rest import USERS, polled, serve
from tests.build.web import rows, text, with_ledger


def test_all_users(url: str) -> None:
    """Who lost most is first; the hours are those of pilot_ledger, in canonical units."""
    page = polled(url).pages.chosen(UserAsked())
    found = [(line[0], line[1], line[2], line[4], line[5]) for line in rows(page, "By user")]
    assert found == [
        ("alice@example.org", "2", "0", "3.3", "1.3"),
        ("bob@example.org", "1", "0", "0.5", "0.0"),
        ("all", "3", "0", "3.8", "1.3"),
    ]
    assert '<a href="user?last=24h&amp;user=alice%40example.org">' in str(page)
    assert "carol" not in str(page)  # whose only run goes on


def test_who_failed_early_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of seconds lose no time, so they would be last by that."""
    rest = EndedOfUser("", "", "", "unclassified", "", 9, 0, 0, 0, "")
    ended = [
        rest._replace(user="a", cpu=9 * HOUR_US),
        rest._replace(user="b", early=8),
        rest._replace(user="c", early=8, cpu=HOUR_US),
    ]
    monkeypatch.setattr(user, "runs_of_users", lambda *_: RunsOfUsers(ended, [], []))
    page = polled("").pages.chosen(UserAsked())
    assert [line[0] for line in rows(page, "By user")] == ["c", "b", "a", "all"]


def test_one_user(url: str) -> None:
    """Of any domain: what became of the runs, where, and what goes on."""
    page = polled(url).pages.chosen(UserAsked(user="alice"))
    said = "2 runs ended since 2023-11-14 08:20 UTC: 1 exited with 0 (50.0%), 0 failed early"
    assert said in text(page)
    assert [line[:4] for line in rows(page, "By outcome")] == [
        ["goodput", "exit zero", "1", "50.0%"],
        ["preemption badput", "pilot shutdown", "1", "50.0%"],
        ["all", "", "2", "100.0%"],
    ]
    assert [line[:2] for line in rows(page, "By entry")] == [["Site-A", "entry-a"], ["all", ""]]
    assert "No run is known to go on." in text(page)
    running = polled(url).pages.chosen(UserAsked(user="<b>carol|*"))
    assert "Going on: 1 run, on 4 cores." in text(running)
    assert rows(running, "Runs that go on")[0][:2] == ["Site-A", "entry-a2"]
    elsewhere = polled(url).pages.chosen(UserAsked(user="alice", site="Site-B"))
    assert "No run has ended since" in text(elsewhere)


def test_jobs_now_of_all_users(url: str) -> None:
    """The sums over schedds and accounting groups, who waits most first; what is not known is no 0,
    nor is a sum with it; users of whom nothing is there are not listed."""
    page = polled(url).pages.chosen(UserAsked(site="Site-A"))
    assert [line[:5] for line in rows(page, "Jobs now")] == [
        ["alice@example.org", "50", "3", "1", "2"],
        ["dune.dan@example.org", "?", "4", "0", "1"],
    ]
    assert "Jobs now: ? waiting, 7 running, 1 held, by the own count of 2 schedds." in text(page)
    assert re.search(r"The oldest part of it was told [^.]* ago\.", text(page))
    assert "whatever site is chosen" not in text(with_users(url, USERS._replace(counts=())))


def test_jobs_now_of_one_user(url: str) -> None:
    """By submitter where there are several; a name that may be the user's is told as such."""
    page = polled(url).pages.chosen(UserAsked(user="alice"))
    assert "Jobs now: 50 waiting, 3 running, 1 held, by the own count of 2 schedds." in text(page)
    assert [line[:5] for line in rows(page, "Jobs now")] == [
        ["cms.alice@example.org", "38", "1", "1", "2"],
        ["alice@example.org", "12", "2", "0", "1"],
    ]
    none = polled(url).pages.chosen(UserAsked(user="bob@example.org"))
    assert "Jobs now: 0 waiting, 0 running, 0 held, by the own count of 1 schedd." in text(none)
    assert "whatever site is chosen" not in text(none)
    perhaps = polled(url).pages.chosen(UserAsked(user="dan@example.org"))
    assert "Jobs now: no schedd has told of any." in text(perhaps)
    assert "user=dune.dan%40example.org" in str(perhaps)
    assert "Perhaps of" not in text(page)


def test_jobs_now_that_are_not_known(url: str) -> None:
    """Nothing is told, or not all."""
    assert "How many jobs wait is not known" in text(with_users(url, None))
    partly = with_users(url, USERS._replace(complete=False))
    assert "there may be more jobs" in text(partly)
    assert rows(partly, "Jobs now")


def with_users(url: str, users: UsersNow | None) -> str | None:
    found = polled(url).pages
    assert found.snapshot is not None
    shown = replace(found.snapshot, users=users)
    return Pages(shown, with_ledger(url), found.explanations).chosen(UserAsked())


def test_users_are_shown_to_who_may_ask_for_jobs(url: str) -> None:
    """Others are told who may, with no name; the list of pilots leads the former there."""
    hidden = polled(url, shows_jobs=False)
    for asked in (UserAsked(), UserAsked(user="alice")):
        page = hidden.pages.chosen(asked)
        assert "[http] jobs of gwmond" in text(page)
        assert "example.org" not in text(page)
    for daemon, status in ((hidden, 403), (polled(url), 200)):
        with serve(daemon) as (server, _):
            assert httpx.get(f"{server.url}/user?user=alice").status_code == status
    listed = polled(url).pages.chosen(PilotsPage(which="past"))
    assert 'href="user?user=bob%40example.org"' in str(listed)
