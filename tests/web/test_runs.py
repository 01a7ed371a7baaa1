"""The page of runs of jobs: which are listed, and where each leads."""

from __future__ import annotations

import re

import pytest

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilots.stored_pilots import RunFilter
from gwmond.model.times import ALWAYS
from gwmond.web import runs
from gwmond.web.asking import RunsPage
from gwmond.web.pages import Pages
from tests.build.rest import JOB, polled
from tests.build.web import cells


@pytest.fixture
def pages(url: str) -> Pages:
    return polled(url).pages


def test_runs_lead_to_their_traces_pilots_and_users(pages: Pages, url: str) -> None:
    """Of those that began in the period; how many is said."""
    page = str(pages.chosen(RunsPage()))
    with LedgerReader.open(url) as ledger:
        known = len(ledger.runs_begun(RunFilter(ALWAYS), None))
    assert len(cells(page)) == known
    assert f"the latest first: {known} runs." in page
    assert '<option value="transfer_output_failed">' in page  # what may be asked for
    for target in (f"trace?job={JOB.replace('#', '%23')}", "pilot?id=1", "user?user="):
        assert f'<a href="{target}' in page


@pytest.mark.parametrize(
    "chosen",
    [
        RunsPage(entry="entry-a", category="goodput"),
        RunsPage(node="wn1*"),
        RunsPage(longer_than=3600),
        RunsPage(outcome="exit_zero"),
        RunsPage(job=JOB),
        RunsPage(user="nobody"),
    ],
)
def test_filters(pages: Pages, url: str, chosen: RunsPage) -> None:
    """Each leaves what it names, as the ledger has it."""
    with LedgerReader.open(url) as ledger:
        wanted = len(ledger.runs_begun(chosen.wanted(ALWAYS, 0), None))
        known = len(ledger.runs_begun(RunFilter(ALWAYS), None))
    assert wanted < known
    assert len(cells(pages.chosen(chosen))) == wanted


def test_the_next_runs(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page by page they are all there, and nothing is there twice."""
    jobs = re.compile(r"trace\?job=[^\"]*")
    whole = jobs.findall(str(pages.chosen(RunsPage())))
    monkeypatch.setattr(runs, "MOST", 1)
    shown = []
    for skip in range(len(whole)):
        page = runs.page(pages.view, RunsPage(skip=skip))
        shown += jobs.findall(page)
        assert (f"skip={skip + 1}" in page) == (skip + 1 < len(whole))
    assert shown == whole


def test_whose_jobs_they_are_is_not_shown_to_everybody(url: str) -> None:
    """Nor may they be asked for by that."""
    strangers = polled(url, shows_jobs=False).pages
    page = str(strangers.chosen(RunsPage()))
    assert cells(page)
    assert JOB.split("#")[1] not in {word for row in cells(page) for word in row}
    assert "trace?job=" not in page
    assert "user?user=" not in page
    for asked in (RunsPage(user="alice"), RunsPage(job="1.0")):
        refused = str(strangers.chosen(asked))
        assert "not shown here" in refused
        assert not cells(refused)
