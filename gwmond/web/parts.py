"""What the daemon's pages are made of: addresses, ages, bars, and how a page is rendered."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from gwmond import __version__
from gwmond.model.facts import EntryKey
from gwmond.model.states import State
from gwmond.model.times import SECOND_US
from gwmond.reports.render.formats import number, words
from gwmond.reports.render.html import template
from gwmond.reports.render.meanings import STATES, reason_meaning, state_meaning
from gwmond.reports.render.periods import span
from gwmond.reports.render.table import Cell, Column
from gwmond.reports.sites.sites import SiteRow, reason_detail

_AGE = re.compile(r"<age ([^>]*)>")


STATE_COLOURS: Mapping[str, tuple[str, str]] = {
    "provisioned": ("#4477aa", "#5a8fc4"),
    **{state: (info.light, info.dark) for state, info in STATES.items()},
}
"""Colours of states on light and on dark pages, where each is drawn by itself."""


class Use(NamedTuple):
    """A use of an entry's capacity, as pages draw it; colours on light and on dark pages."""

    name: str
    light: str
    dark: str
    meaning: str


USES = (
    Use("busy", "#4477aa", "#5a8fc4", "busy: provisioned, and filled by jobs"),
    Use("not_busy", "#88bbee", "#9cc6f0", "provisioned, not busy"),
    Use(
        *("provisioning_bottleneck", *STATE_COLOURS[State.PROVISIONING_BOTTLENECK]),
        "provisioning bottleneck: jobs waited, too few pilots",
    ),
    Use(
        *("insufficient_demand", *STATE_COLOURS[State.INSUFFICIENT_DEMAND]),
        "insufficient demand: no job is left for it",
    ),
    Use("other", "#ccbb44", "#ccbb44", "filling, down or unknown"),
)


def render(page: str, /, **known: object) -> str:
    """Return a page, by the name of its template; ages in it are still to be filled in."""
    return template(f"{page}.html.j2").render(version=__version__, current=page, **known)


def shown(text: str, now: float) -> str:
    """Return a page with ages as of ``now`` (epoch seconds by this machine's clock)."""
    return _AGE.sub(lambda found: span(round(max(0.0, now - float(found[1]))) * SECOND_US), text)


def ago(at: float) -> Markup:
    """Return the age of a time (epoch seconds), to be filled in when the page is asked for."""
    return Markup(f"<age {at!r}> ago")  # every other text in the page is escaped: none has this


def time_text(at: float) -> str:
    """Return a time (epoch seconds) in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def site_link(site: str) -> Markup:
    """Return a site's name, which leads to its page."""
    return link("site", site, site=site)


def entry_link(key: EntryKey) -> Markup:
    """Return an entry's name, which leads to its page."""
    return link("entry", key.entry, site=key.site, entry=key.entry)


def link(path: str, text: str, **query: str) -> Markup:
    """Return a text that leads to a page; what is empty of the query is left out."""
    wanted = {name: value for name, value in query.items() if value}
    return Markup('<a href="{}{}">{}</a>').format(
        path, f"?{urlencode(wanted)}" if wanted else "", text
    )


def bar(row: SiteRow) -> Markup:
    """Return the uses of a capacity as a bar."""
    busy = row.busy_units or 0
    units = {
        "busy": busy,
        "not_busy": (row.provisioned_units or 0) - busy,
        "provisioning_bottleneck": row.provisioning_bottleneck_units,
        "insufficient_demand": row.insufficient_demand_units,
        "other": row.other_units,
    }
    total = max(row.capacity_units, 1)
    boxes, x = [], 0.0
    for use in USES:
        width = 100 * units[use.name] / total
        if width:
            boxes.append(
                f'<rect class="u-{use.name}" x="{x:.1f}" width="{width:.1f}" height="1"></rect>'
            )
        x += width
    named = [f"{words(name)} {number(value)}" for name, value in units.items() if value]
    label = f"of {row.capacity_units}: {', '.join(named) or 'nothing'}"
    return Markup(
        '<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg>'
    ).format(label, Markup("".join(boxes)))


def why(row: SiteRow) -> str:
    """Return the meaning of a row's reason, the limits that were hit, and the evidence."""
    texts = reason_meaning(row.reason), row.limits, reason_detail(row)
    return "; ".join(text for text in texts if text)


def explain_link(text: str, site: str, entry: str) -> Markup:
    """Return a link to why an entry has no jobs, or none of the idle jobs run at a site."""
    if entry:
        return link("explain", text, entry=entry, site=site)
    return link("explain", text, all="1", site=site)


ROW_COLUMNS: tuple[Column[SiteRow], ...] = (
    Column("resource", lambda row: row.resource, text=True),
    Column("state", lambda r: Cell(words(r.state), hint=state_meaning(r.state)), text=True),
    Column("reason", lambda row: Cell(words(row.reason), hint=why(row)), text=True),
    Column("use of capacity", bar, text=True),
    Column("capacity", lambda row: number(row.capacity_units)),
    Column("provi\u00adsioned", lambda row: number(row.provisioned_units)),
    Column("busy", lambda row: number(row.busy_units)),
    Column("bottle\u00adneck", lambda row: number(row.provisioning_bottleneck_units)),
    Column("insuffi\u00adcient", lambda row: number(row.insufficient_demand_units)),
    Column("pilots", lambda row: number(row.registered_pilots)),
    Column("pending", lambda row: number(row.pending_pilots)),
    Column("no more jobs", lambda row: explain_link("why", row.site, row.entry), text=True),
)
"""What tables of sites and of entries show of each."""
