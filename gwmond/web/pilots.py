"""The pages of pilots: a list, one pilot's life with its evidence, traces of pilots and jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from gwmond.config.settings import Config
from gwmond.model.facts import EntryKey
from gwmond.reports.ledger_reading import Unreadable
from gwmond.reports.pilots import FIELDS
from gwmond.reports.render import fields
from gwmond.reports.render.document import Part
from gwmond.reports.render.formats import counted
from gwmond.reports.render.table import Column, table
from gwmond.reports.stored_pages import MOST, life, pilots_at, trace
from gwmond.reports.stored_pilot import StoredPilot
from gwmond.reports.waterfall import Bar
from gwmond.web.parts import entry_link, link, render, site_link


class Selection(NamedTuple):
    """Which pilots are shown: of a site or an entry, empty names standing for all."""

    which: str = "running"
    site: str = ""
    entry: str = ""


def list_page(config: Config, now_us: int, selection: Selection) -> str:
    """Return the list of pilots."""
    running = selection.which == "running"
    parts: list[Part] = []
    error = more = ""
    try:
        found = pilots_at(config, now_us, selection.site, selection.entry, running=running)
    except Unreadable as unreadable:
        error = str(unreadable)
    else:
        number = min(len(found), MOST)
        what = "Running" if running else "Ended, the latest first"
        more = f"{what}: {counted(number, 'pilot')}."
        if len(found) > MOST:
            more += f" There are more: gwmond pilots{'' if running else ' --past'} --limit 0."
        parts = [table("", _columns(selection), found[:MOST])] if found else []
    choices = [
        (
            text,
            which == selection.which,
            f"pilots?{urlencode(selection._replace(which=which)._asdict())}",
        )
        for which, text in (("running", "running"), ("past", "ended"))
    ]
    return _page("Pilots", selection, parts, error, more, choices)


def life_page(config: Config, now_us: int, number: int) -> str | None:
    """Return the page of a pilot; None if there is none of this number."""
    try:
        parts = life(config, now_us, number)
    except Unreadable as unreadable:
        return _page(f"Pilot {number}", Selection(), [], str(unreadable))
    if parts is None:
        return None
    more = link("trace", "Its trace, as a waterfall", pilot=str(number))
    return _page(f"Pilot {number}", Selection(), parts, more=more)


def trace_page(config: Config, now_us: int, job: str, pilot: int) -> str | None:
    """Return the page of a job's trace, or of a pilot's; None if there is none."""

    def see(bar: Bar) -> str:
        if bar.job:
            return link("trace", "trace of the job", job=bar.job)
        if bar.pilot:
            return link("pilot", f"pilot {bar.pilot}", id=str(bar.pilot))
        return ""

    try:
        found = trace(config, now_us, job, pilot, see)
    except Unreadable as unreadable:
        return _page("Trace", Selection(), [], str(unreadable))
    if found is None:
        return None
    title, parts = found
    more = link("pilot", "The pilot's life, with the evidence", id=str(pilot)) if not job else ""
    return _page(f"Trace of {title}", Selection(), parts, more=more)


def _columns(selection: Selection) -> list[Column[StoredPilot]]:
    """Return the columns of the list; the place is left out where it is one."""

    def number(pilot: StoredPilot) -> Markup:
        return link("pilot", str(pilot.row.id), id=str(pilot.row.id))

    one = {name for name in ("site", "entry") if getattr(selection, name)}
    return [
        replace(column, cell=number) if column.header == "id" else column
        for column in fields.columns(FIELDS)
        if column.header not in one
    ]


def _page(
    title: str,
    selection: Selection,
    parts: list[Part],
    error: str = "",
    more: str = "",
    choices: list[tuple[str, bool, str]] | None = None,
) -> str:
    place = site_link(selection.site) if selection.site else ""
    if selection.entry:
        place = entry_link(EntryKey(selection.site, selection.entry))
    return render(
        "pilots",
        title=title,
        place=place,
        parts=parts,
        error=error,
        more=more,
        choices=choices or (),
    )
