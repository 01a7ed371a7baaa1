"""The page of the past: what a poll found, which the ledger keeps for some days."""

from __future__ import annotations

from collections.abc import Iterator

from gwmond.model.facts import EntryKey, Place
from gwmond.model.times import DAY_US, HOUR_US, SECOND_US
from gwmond.reports.ledger.ledger_reading import Unreadable
from gwmond.reports.render.document import Paragraph, Part
from gwmond.reports.render.periods import parse_time, rfc3339
from gwmond.reports.render.table import Column, table
from gwmond.reports.sites.polls import NoPoll, PastPoll, idle_document, past_poll
from gwmond.reports.sites.sites import SiteRow, by_site, worst_first
from gwmond.web.asking import PastPage
from gwmond.web.controls import FormField, Tab, address, ledger_page, place_fields
from gwmond.web.parts import ROW_COLUMNS, USES, View, entry_link, site_link

_STEPS = {
    "a day earlier": -DAY_US,
    "an hour earlier": -HOUR_US,
    "an hour later": HOUR_US,
    "a day later": DAY_US,
}


def page(view: View, chosen: PastPage) -> str:
    """Return what the last poll until a time found, of all sites or of one's entries."""
    parts: list[Part] = []
    tabs: list[Tab] = []
    error = note = ""
    try:
        at_us = parse_time(chosen.at, view.now_us)
        tabs = list(_tabs(chosen, at_us, view.now_us))
        with view.ledger as (ledger, _):
            poll = past_poll(ledger, at_us)
        note = f"This is {poll.note(at_us, view.config.poll.interval)}."
        parts = _found(poll, chosen.site)
    except (ValueError, NoPoll, Unreadable) as wrong:
        error = str(wrong)
    return ledger_page(
        *("past", view, chosen, error, parts),
        uses=USES,
        as_of=note,
        choices=tabs,
        fields=[
            FormField("at", "At", chosen.at, example="2h, yesterday, 2026-01-31T14:00Z"),
            *place_fields(view.snapshot, Place(chosen.site))[:1],
        ],
    )


def _tabs(chosen: PastPage, at_us: int, now_us: int) -> Iterator[Tab]:
    for text, step_us in _STEPS.items():
        if 0 <= (to_us := at_us + step_us) <= now_us:
            at = rfc3339(to_us // SECOND_US * SECOND_US)
            yield Tab(text, False, address("past", chosen.but(at=at)))


def _found(poll: PastPoll, site: str) -> list[Part]:
    every = [row for row in poll.entries if site in ("", row.site)]
    rows = worst_first(every if site else by_site(every))
    down = [Paragraph(f"Sources that were down: {', '.join(poll.down)}.")] if poll.down else []
    found = table("", _ENTRIES if site else _SITES, rows)
    shown: Part = found if rows else Paragraph("No entry was known.")
    return [*down, shown, *idle_document(poll, site).parts()]


_THEN = ROW_COLUMNS[:-1]
"""Without why no more jobs run there now."""
_SITES: tuple[Column[SiteRow], ...] = (
    Column("site", lambda row: site_link(row.site), name=True),
    *_THEN,
)
_ENTRIES: tuple[Column[SiteRow], ...] = (
    Column("entry", lambda row: entry_link(EntryKey(row.site, row.entry)), name=True),
    *_THEN,
)
