"""docs/attributes.md has the attributes that the queries ask for: all of them, and no other."""

from __future__ import annotations

import re

import pytest

from tests.sources.asked import PAGE, QUERIES


def sections() -> dict[str, set[str]]:
    """The attributes in the first column of each section's table."""
    found: dict[str, set[str]] = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        firsts = (line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
        found[title] = {name for first in firsts for name in re.findall(r"`(\w+)`", first)}
    return found


@pytest.mark.parametrize("title", QUERIES)
def test_the_page_has_what_is_asked_for(title: str) -> None:
    asked = {name for query in QUERIES[title] for name in query.projection}
    assert sections()[title] == asked
