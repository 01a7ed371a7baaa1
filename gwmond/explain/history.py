"""For which reasons jobs like this one waited since its submission, as the polls found them.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gwmond.explain.situation import Situation
from gwmond.model.demand.idle_history import WaitInterval
from gwmond.model.times import SECOND_US
from gwmond.reports.render.document import Paragraph, Part
from gwmond.reports.render.formats import words
from gwmond.reports.render.periods import rfc3339, short, span
from gwmond.reports.render.table import Column, table

_SHOWN = 20
_WHERE = {"none": "", "several": "several sites"}


def parts(here: Situation) -> Iterator[Part]:
    """Yield the last intervals, the latest first; nothing where none is known."""
    found = list(reversed(here.history))
    if not found:
        return
    now_us = round(here.now * SECOND_US)
    latest, *before = found
    if latest.until_us is None:
        yield Paragraph(
            f"Jobs like it have waited for this reason since {short(latest.since_us)} UTC "
            f"({span(max(0, now_us - latest.since_us))}): {_said(latest)}."
            + (f" Before: {_said(before[0])}." if before else "")
        )
    columns: tuple[Column[WaitInterval], ...] = (
        Column("from", lambda row: short(row.since_us), name=True),
        Column("to", lambda row: short(row.until_us, "now"), text=True),
        Column("for", lambda row: span(max(0, (row.until_us or now_us) - row.since_us))),
        Column("reason", lambda row: words(row.reason), text=True),
        Column("cause", lambda row: words(row.cause), text=True),
        Column("could run at", lambda row: _WHERE.get(row.site, row.site), text=True),
    )
    more = len(found) - _SHOWN
    note = f"And {more} more, before." if more > 0 else ""
    title = "Reasons since its submission, as gwmond's polls found them for jobs like it (UTC):"
    yield table(title, columns, found[:_SHOWN], note=note)


def record(here: Situation) -> list[dict[str, Any]]:
    """Return all intervals for programs, the first of them first."""
    return [
        {
            "since": rfc3339(row.since_us),
            "until": None if row.until_us is None else rfc3339(row.until_us),
            "reason": row.reason,
            "cause": row.cause,
            "site": row.site,
        }
        for row in here.history
    ]


def _said(row: WaitInterval) -> str:
    where = _WHERE.get(row.site, row.site)
    return words(row.cause) + (f" ({where})" if where else "")
