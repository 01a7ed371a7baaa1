"""The page of reports has the numbers of the command, for who may see them."""

from __future__ import annotations

import json

import pytest

from gwmond.web import report
from gwmond.web.asking import ReportPage
from tests.build.command_line import gwmond
from tests.build.rest import polled
from tests.build.web import cells

_PERIOD = ("--from", "2023-11-14T08:00:00Z", "--to", "2023-11-15T09:00:00Z")


@pytest.mark.parametrize("by", ["site", "user", "project", "site,category"])
def test_each_group_is_there_with_its_hours(url: str, by: str) -> None:
    """By one grouping, or two."""
    asked = ("report", "--by", by, *_PERIOD, "--ledger", url, "--format", "json")
    told = json.loads(gwmond(*asked).stdout)
    first, _, second = by.partition(",")
    page = polled(url).pages.chosen(ReportPage(by=first, then_by=second))
    texts = {cell for row in cells(page) for cell in row}
    assert told["groups"]
    for group in told["groups"]:
        hours = group["total"]["cpu"]["canonical_seconds"] / 3600
        assert f"{hours:,.1f}" in texts, (group, texts)


def test_users_are_not_shown_to_everybody(url: str) -> None:
    """Nor is that offered."""
    page = str(polled(url, shows_jobs=False).pages.chosen(ReportPage(by="site", then_by="user")))
    assert "not shown here" in page
    assert not cells(page)
    assert '<option value="user"' not in page
    assert '<option value="project"' in page


def test_of_many_groups_the_first_are_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The total is of all of them."""
    pages = polled(url).pages
    whole = report.page(pages.view, ReportPage(by="entry"))
    monkeypatch.setattr(report, "MOST", 1)
    part = report.page(pages.view, ReportPage(by="entry"))
    assert "The first 1 groups: 2 more" in part
    assert cells(part)[0] == cells(whole)[0]
    assert cells(part)[1] == cells(whole)[3]
