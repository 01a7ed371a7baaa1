"""What would waste less of the pilots' time, of a place and a period: the page, and for REST."""

from __future__ import annotations

from gwmond.model.facts import Place
from gwmond.model.times import Period
from gwmond.reports.ledger.ledger_reading import Unreadable, within_deadline
from gwmond.reports.render.document import Document, Part
from gwmond.reports.sites.time_by_hour import RANGES
from gwmond.web.asking import AdvisePage
from gwmond.web.controls import FormField, last_tabs, ledger_page, place_fields
from gwmond.web.parts import View

_BEFORE = 2
"""Paragraphs at the begin of the document that the page says itself."""


def advice(view: View, period: Period, place: Place) -> Document:
    """Return the advice; raises Unreadable."""
    from gwmond.advise.document import document  # noqa: PLC0415 (numpy is seldom needed)
    from gwmond.advise.gather import gather  # noqa: PLC0415

    go_on, memory_mib = within_deadline(), view.config.canonical.memory_mib
    with view.ledger as (ledger, age):
        found = gather(ledger, period, place, memory_per_unit_mib=memory_mib, progress=go_on)
    return document(found, age)


def page(view: View, chosen: AdvisePage) -> str:
    """Return the page."""
    parts: list[Part] = []
    error = ""
    try:
        found = advice(view, RANGES[chosen.last].period(view.now_us), chosen.place)
    except Unreadable as unreadable:
        error = str(unreadable)
    else:
        parts = list(found.parts())[_BEFORE:]
    return ledger_page(
        *("advise", view, chosen, error, parts),
        choices=last_tabs("advise", chosen, chosen.last),
        fields=[FormField("last", "", chosen.last), *place_fields(view.snapshot, chosen.place)],
    )
