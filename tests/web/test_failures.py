"""The page of failures: the numbers of the report, how far back they go, and what is said else."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from gwmond.ledger.database.errors import LedgerError
from gwmond.ledger.reading.failed import ended_within
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Place
from gwmond.model.times import Period
from gwmond.reports.failures import recent_failures
from gwmond.reports.ledger import ledger_reading
from gwmond.web.asking import FailuresAsked
from gwmond.web.explain import Explanations, Turns
from gwmond.web.pages import Pages
from tests.build import failed_pilots
from tests.build.failed_pilots import BASE, LIFE
from tests.build.snapshots import BORED2, snapshot
from tests.build.web import Waiting, rows, text, with_ledger
from tests.ledger import pilot_batches


@pytest.fixture(scope="module")
def validations(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("validations") / "ledger.sqlite")
    failed_pilots.write(url)
    return url


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Runs of which some are blamed on their place, and some are not judged yet."""
    url = str(tmp_path_factory.mktemp("runs") / "ledger.sqlite")
    with Ledger.open(url) as ledger:
        for number in range(1, 25):
            ledger.commit(pilot_batches.batch(number))
    return url


def pages(url: str, now_s: float, *, shows_jobs: bool = True) -> Pages:
    """Pages, by default for who may ask for jobs, too."""
    shown = replace(snapshot(), pool_time=now_s)
    asked = Waiting(shows_jobs=shows_jobs)
    return Pages(shown, with_ledger(url), Explanations(shown, asked, Turns()))


def test_failed_validations(validations: str) -> None:
    """By entry, by class and test, by node: the numbers of gwmond report --failures."""
    page = pages(validations, BASE + 7200).chosen(FailuresAsked())
    assert (
        "Of 9 pilots that ended since 2023-11-14 02:00 UTC, 7 failed validation (77.8%)."
        in text(page)
    )
    entries = rows(page, "By entry")
    assert [line[:6] for line in entries] == [
        ["Site", "e1", "5", "6", "83%", "6.0"],
        ["Site", "e2", "2", "3", "67%", "0.7"],
        ["all", "", "7", "9", "78%", "6.7"],
    ]
    causes = rows(page, "Validation failures of pilots that ended, by class")
    assert [line[:5] for line in causes[:2]] == [
        ["WN_Resource", "main/validate_node.sh", "1", "2", "4"],
        ["VO_Proxy", "check_proxy.sh", "2", "1", "2"],
    ]
    (first, *_, every) = rows(page, "Validation failures of pilots that ended, by entry")
    assert first[:8] == [
        "Site",
        "e1",
        "n1",
        "WN_Resource",
        "main/validate_node.sh",
        "3",
        "5",
        "60%",
    ]
    assert every[5:8] == ["7", "9", "78%"]
    assert "<b>" not in str(page)
    assert "which=past" not in str(page).replace("&amp;", "&").split("By entry")[0]
    assert 'href="pilots?site=Site&entry=e1&last=24h&which=past&failed=true">5</a>' in str(
        page
    ).replace("&amp;", "&")


def test_failures_of_a_place(validations: str) -> None:
    """Its own alone; without the table of entries, as it is one."""
    page = pages(validations, BASE + 7200).chosen(FailuresAsked(last="7d", site="Site", entry="e2"))
    assert "Of 3 pilots that ended" in text(page)
    assert "By entry" not in text(page)
    assert 'href="failures?site=Site&amp;entry=e2&amp;last=30d"' in str(page)
    other = text(pages(validations, BASE + 7200).chosen(FailuresAsked(group="nobody")))
    assert "No pilot and no run of a job has ended here since" in other


def test_early_failures(runs: str) -> None:
    """Runs that are blamed on their place, of all; what is not judged is no failure yet."""
    now_s = pilot_batches.now_us(24) / 1e6
    page = pages(runs, now_s).chosen(FailuresAsked())
    period = Period(0, pilot_batches.now_us(24) + 1)
    found = recent_failures.recent_failures(runs, period, Place())
    total = found.all_runs
    assert total.failed > 3
    assert total.open > 0
    said = text(page)
    assert f"Of {total.ended} runs of jobs, {total.failed} failed at the beginning" in said
    assert f"{total.open} more failed early and are not judged yet." in said
    outcomes = {
        line[0]: line
        for line in rows(page, "Runs of jobs that failed at the beginning, by outcome")
    }
    assert outcomes["early failure"][3] == str(total.failed)
    assert outcomes["not judged yet"][3] == str(total.open)
    assert outcomes["not judged yet"][-2] == "?"
    jobs = [unquote(unescape(job)) for job in re.findall(r'href="trace\?job=([^"]*)"', str(page))]
    named = {job.job: job.user for job in found.jobs.values()}
    with LedgerReader.open(runs) as ledger:
        stored = ledger.runs_of(range(1, 1000)).values()
    users = {run.key.job: run.user for of in stored for run in of}
    assert all(users[job] == named[job] != "" for job in jobs)
    led = re.findall(r'of <a href="user\?last=24h&amp;user=([^"]*)"', str(page))
    assert [unquote(user) for user in led] == [named[job] for job in jobs]
    assert len(jobs) == len(outcomes) - 1 + len({cause.place for cause in found.runs})
    assert set(jobs) <= named.keys()
    assert all(pages(runs, now_s).trace(job, 0) for job in jobs)
    withheld = str(pages(runs, now_s, shows_jobs=False).chosen(FailuresAsked()))
    assert rows(withheld, "Runs of jobs that failed at the beginning, by entry and node")
    assert not any(job in withheld or quote(job, safe="") in withheld for job in jobs)
    assert "trace?job" not in withheld
    assert 'href="user?' not in withheld
    assert not any(name in withheld for name in named.values())
    nodes = rows(page, "Runs of jobs that failed at the beginning, by entry and node")
    assert sum(int(line[3]) for line in nodes[:-1]) == total.failed == int(nodes[-1][3])
    assert {line[0] for line in nodes[:-1] if int(line[3])} == {"Site-0"}
    assert "6h00m after the end of a run" in said


def test_no_more_is_read_than_may_be(
    runs: str, validations: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said how far back the numbers go; what they are of then is whole."""
    monkeypatch.setattr("gwmond.reports.failures.recent_failures.MOST_PILOTS", 2)
    now_s = BASE + 86_400.0
    said = text(pages(validations, now_s).chosen(FailuresAsked(last="7d")))
    assert "Only what ended since 2023-11-15 " in said
    assert "No pilot and no run of a job has ended here" in said
    one = pages(validations, BASE + LIFE + 60).chosen(FailuresAsked())
    assert "took" not in text(one)
    monkeypatch.setattr(ledger_reading, "DEADLINE_S", 0.0)
    monkeypatch.setattr("gwmond.ledger.database.sqlite._STEPS", 1)
    late = pages(runs, now_s).chosen(FailuresAsked())
    assert 'role="alert"' in str(late)
    assert "could be read within" in text(late)


def test_an_hour_that_takes_too_long_is_left_out(
    runs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before is shown, and that it is not all."""
    period = Period(0, pilot_batches.now_us(24) + 1)
    whole = recent_failures.recent_failures(runs, period, Place())
    asked: list[object] = []

    def slow(*arguments):  # type: ignore[no-untyped-def]
        asked.append(arguments)
        if len(asked) == 6:
            raise LedgerError("ledger", "interrupted", "")
        return ended_within(*arguments)

    monkeypatch.setattr(recent_failures, "DEADLINE_S", -1.0)
    monkeypatch.setattr(recent_failures, "ended_within", slow)
    part = recent_failures.recent_failures(runs, period, Place())
    assert (whole.partial, part.partial) == (False, True)
    assert part.since_us == period.until_us - 31 * 300_000_000
    assert 0 < part.validations.ended.total() < whole.validations.ended.total()


def test_what_is_wrong_is_said(validations: str, tmp_path: Path) -> None:
    """A ledger that cannot be read or written; a daemon that has just begun; a black hole."""
    gone = pages(str(tmp_path / "none.sqlite"), BASE).chosen(FailuresAsked())
    assert 'role="alert"' in str(gone)
    shown = snapshot()
    full = replace(shown, ledger=shown.ledger._replace(up=False, error="no space is left"))
    assert "no space is left" in text(Pages(full, with_ledger(validations)).chosen(FailuresAsked()))
    begun = text(Pages(None, with_ledger(validations)).chosen(FailuresAsked()))
    assert "The first poll is under way" in begun
    suspects = text(Pages(shown, with_ledger(validations)).chosen(FailuresAsked()))
    assert "Suspected black holes, of the last two hours" in suspects
    other = FailuresAsked(site=BORED2.site, entry=BORED2.entry)
    assert "Suspected" not in text(Pages(shown, with_ledger(validations)).chosen(other))
