"""docs/attributes.md has the attributes that the queries ask for: all of them, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gwmond.config.settings import Attributes, DemandOptions
from gwmond.sources.htcondor import (
    advertised,
    claims,
    demand,
    histories,
    quotas,
    schedds,
    slots,
    startds,
    waiting_job,
)
from gwmond.sources.htcondor.access import Query

PAGE = Path(__file__).parents[2] / "docs" / "attributes.md"
ATTRIBUTES, DEMAND = Attributes(), DemandOptions()

#: Section of the page: the queries that it is about.
QUERIES: dict[str, tuple[Query, ...]] = {
    "Slots": (slots.query(ATTRIBUTES),),
    "Claims": (claims.query(),),
    "StartD ads": (startds.query(ATTRIBUTES),),
    "Failed pilots": (advertised.masters_query(ATTRIBUTES),),
    "Schedd ads": (schedds.QUERY,),
    "Accounting groups": (quotas.QUERY,),
    "Submitter ads": (schedds.SUBMITTERS,),
    "Idle jobs": (
        demand.query(demand.JobGrouping(ATTRIBUTES, DEMAND)),
        demand.factories_query(demand.JobGrouping(ATTRIBUTES, DEMAND)),
    ),
    "One job": (waiting_job.query("1.0", (), ATTRIBUTES, DEMAND),),
    "Epoch history": (histories.query("epochs"),),
    "Schedd history": (histories.query("history"),),
    "Startd history": (histories.query("startd_history"),),
}


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
