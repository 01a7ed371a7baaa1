"""Held pilots by reason: whose move it is, and since when they are seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gwmond.model.facts import EntryKey, EntryTotals, Held, Hold
from gwmond.model.poll.snapshot import HeldPilots
from gwmond.service.pool.held_pilots import held_pilots
from gwmond.sites.entry_totals import combine
from gwmond.web.pages import Pages
from tests.build.facts import request
from tests.build.snapshots import BORED, STARVING, snapshot
from tests.build.web import rows, text, with_ledger

NO_ROUTE = "The job 12.0 was refused: no route of the CE takes it"
HOLDS = (Hold("The proxy expired", None, 5), Hold(NO_ROUTE, 26, 2), Hold("Something else", None, 1))


def totals(key: EntryKey, *holds: Hold, held: int | None = 8) -> dict[EntryKey, EntryTotals]:
    known = combine([request(key)])[key]
    return {key: known._replace(held=held, held_lately=Held(holds, most=True) if holds else None)}


def test_each_reason_has_its_mover_and_its_time() -> None:
    """A reason that differs in numbers only is the same as before; one that ended begins anew."""
    first = held_pilots(totals(STARVING, *HOLDS), (), 100.0)
    assert [(one.pilots, one.reason, one.since) for one in first] == [
        (5, "The proxy expired", 100.0),
        (2, NO_ROUTE, 100.0),
        (1, "Something else", 100.0),
    ]
    assert [one.mover for one in first] == [
        "the factory's operator",
        "the site",
        "the factory's operator",
    ]
    assert first[2].change == "What condor_q -hold says at the factory"
    later = (Hold(NO_ROUTE.replace("12", "99"), 26, 3), Hold("New", None, 1))
    then = held_pilots(totals(STARVING, *later), first, 200.0)
    assert [(one.reason, one.since) for one in then] == [(later[0].reason, 100.0), ("New", 200.0)]
    assert held_pilots(totals(STARVING, held=0), then, 300.0) == ()


def test_without_the_queue_the_number_is_known() -> None:
    """By the factory's ads; why is not known, and is not said."""
    (only,) = held_pilots(totals(BORED, held=3), (), 100.0)
    assert only == HeldPilots(
        *(BORED, None, None, 3, "the factory's operator"),
        *("What condor_q -hold says at the factory", 100.0),
    )


@pytest.mark.parametrize("held", [HOLDS, ()])
def test_pages_show_them(held: tuple[Hold, ...]) -> None:
    """All of them, those of a site and of an entry; none elsewhere."""
    made = replace(snapshot(), held=held_pilots(totals(STARVING, *held), (), 1_700_000_000.0))
    pages = Pages(made, with_ledger(""))
    every = rows(f"<h2>{pages.held}", "")
    assert every[0][:4] == (
        ["T2_Starving", "starving-ce1", "5", "The proxy expired"]
        if held
        else ["T2_Starving", "starving-ce1", "8", "?"]
    )
    assert "8 pilots held. As of" in text(pages.held)
    assert "8 pilots held" in text(pages.now)
    for page in (pages.site("T2_Starving"), pages.entry(*STARVING)):
        assert [line[:4] for line in rows(page, "Held pilots")] == [line[:4] for line in every]
    assert "Held pilots" not in str(pages.site("T2_Bored"))
