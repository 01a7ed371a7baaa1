"""Categories as records: each is there once, can be told from the others, and counts once."""

from __future__ import annotations

from collections import Counter

from gwmond.model.pilot_life import Category
from gwmond.reports.render.categories import INFOS, within


def test_each_category_has_one_record() -> None:
    """And time that is not settled yet has one."""
    assert Counter(info.category for info in INFOS) == Counter([*Category, None])
    for what in ("letter", "header", "colour", "light", "dark"):
        assert len({getattr(info, what) for info in INFOS}) == len(INFOS), what
    assert all(info.meaning for info in INFOS if info.category)


def test_each_category_counts_in_one_column_of_the_list_of_pilots() -> None:
    """So that hours = good + badput + own + uncl. + open."""
    columns = [within(column) for column in ("good", "badput", "own", "uncl.")]
    assert Counter(category for column in columns for category in column) == Counter(Category)
    assert within("open") == ()
