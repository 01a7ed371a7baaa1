"""Which changes can be asked about."""

from __future__ import annotations

import pytest

from gwmond.model.demand.what_if import CHANGES, MOST_START, WhatIfKind, what_if
from gwmond.model.facts import EntryKey, Size
from tests.build.facts import group

KEY = EntryKey("Site", "ce")


def test_each_is_of_what_it_names() -> None:
    jobs = what_if("memory", "users", "2000")
    assert jobs.has_jobs(group())
    assert not jobs.has_jobs(group(accounting_group="x"))
    assert what_if("cores", "none", "2").has_jobs(group(accounting_group=""))
    for of in ("Site", "ce", "Site/ce"):
        assert what_if("limit", of, "0").has_entry(KEY)
        assert what_if("pilot", of, "4").has_pilots(KEY, "f.g")
    assert not what_if("limit", "ce", "1").has_pilots(KEY, "f.g")
    assert not what_if("down", "other", "").has_entry(KEY)
    start = what_if("start", "f.g", "true")
    assert start.has_pilots(KEY, "f.g")
    assert not start.has_pilots(KEY, "f.h")
    assert not start.has_entry(KEY)


def test_memory_follows_cores_if_it_is_not_given() -> None:
    pilot = Size(8, 16384, 1)
    assert what_if("pilot", "ce", "4").size_of(pilot) == Size(4, 8192, 1)
    assert what_if("pilot", "ce", " 4, 4000 ").size_of(pilot) == Size(4, 4000, 1)


@pytest.mark.parametrize(
    ("kind", "of", "value", "words"),
    [
        ("memory", " ", "2000", "of what"),
        ("memory", "g", "0", "no whole number from 1"),
        ("memory", "g", "2 GB", "no whole number"),
        ("memory", "g", "2000,1", "one whole number"),
        ("cores", "g", "1000000", "to 100000"),
        ("limit", "ce", "-1", "no whole number from 0"),
        ("pilot", "ce", "8,", "nothing is no whole number"),
        ("max-idle", "ce", "", "nothing is no whole number"),
        ("start", "g", "", "give an expression"),
        ("start", "g", "x" * (MOST_START + 1), "give an expression"),
        ("down", "ce", "1", "no value"),
    ],
)
def test_what_is_no_change_is_said(kind: WhatIfKind, of: str, value: str, words: str) -> None:
    assert kind in CHANGES
    with pytest.raises(ValueError, match=words):
        what_if(kind, of, value)
