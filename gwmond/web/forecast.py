"""The page of what comes: when sites are full, and when no waiting job is left for them."""

from __future__ import annotations

from gwmond.reports.ledger.ledger_reading import Unreadable
from gwmond.reports.render.document import Part
from gwmond.reports.sites.coming import coming, document
from gwmond.web.asking import ForecastPage
from gwmond.web.controls import ledger_page, place_fields
from gwmond.web.parts import View


def page(view: View, chosen: ForecastPage) -> str:
    """Return the page; that of an entry is that of its site."""
    parts: list[Part] = []
    error = ""
    try:
        with view.ledger as (ledger, age):
            found = coming(ledger, view.now_us, chosen.site)
            parts = list(document(found, age).parts())[1:]
    except Unreadable as unreadable:
        error = str(unreadable)
    fields = place_fields(view.snapshot, chosen.place)[:1]
    return ledger_page("forecast", view, chosen, error, parts, fields=fields)
