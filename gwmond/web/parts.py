"""What the daemon's pages are made of: a poll, addresses, ages, bars, and how one is rendered."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from gwmond import __version__
from gwmond.config.settings import Config
from gwmond.model.facts import EntryKey
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.states import State
from gwmond.model.times import SECOND_US
from gwmond.reports.ledger.ledger_reading import Dated, dated_for_page
from gwmond.reports.render.categories import CategoryInfo
from gwmond.reports.render.formats import number, percent, words
from gwmond.reports.render.html import template, with_joints
from gwmond.reports.render.meanings import STATES, reason_meaning, state_meaning
from gwmond.reports.render.periods import span
from gwmond.reports.render.table import Cell, Column
from gwmond.reports.sites.sites import SiteRow, reason_detail
from gwmond.web.asking import OfPlace

_AGE = re.compile(r"<age ([^>]*)>")


class View(NamedTuple):
    """What is shown of a poll (None: of none yet); ``shows_jobs``: also jobs and their users."""

    snapshot: Snapshot | None
    config: Config
    shows_jobs: bool

    @property
    def now_us(self) -> int:
        """The pool's time of the poll, in microseconds since the epoch."""
        return round((self.snapshot.pool_time if self.snapshot else time.time()) * SECOND_US)

    @property
    def ledger(self) -> Dated:
        """The ledger, for some seconds, and how old it is; to open it raises Unreadable."""
        return dated_for_page(self.config, self.now_us)


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


def user_link(user: str, asked: OfPlace | None = None) -> Markup:
    """Return a user's name, which leads to what became of the user's runs, as is asked for."""
    return link("user", user, **{**(asked.query if asked else {}), "user": user})


def link(path: str, text: str, **query: str) -> Markup:
    """Return a text that leads to a page; what is empty of the query is left out."""
    wanted = {name: value for name, value in query.items() if value}
    return Markup('<a href="{}{}">{}</a>').format(
        path, f"?{urlencode(wanted)}" if wanted else "", with_joints(text)
    )


def whole(name: str) -> Markup:
    """Return a name that is not divided between lines."""
    return Markup('<span class="whole">{}</span>').format(name)


def unbroken(text: str) -> Markup:
    """Return a text of which no word is divided between lines, not even a date."""
    return Markup(" ").join(map(whole, text.split()))


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
    named = [f"{words(name)} {number(value)}" for name, value in units.items() if value]
    label = f"of {row.capacity_units}: {', '.join(named) or 'nothing'}"
    return stacked(
        [(f"u-{use.name}", units[use.name], "") for use in USES], row.capacity_units, label
    )


def stacked(boxes: Iterable[tuple[str, float, str]], total: float, label: str = "") -> Markup:
    """Return a bar of parts of a total, each with its class, amount and title; 0 is not drawn.

    ``label``: for the blind; without one the bar is not for them.
    """
    drawn, x = Markup(), 0.0
    for look, amount, title in boxes:
        width = 100 * amount / max(total, 1)
        if width:
            said = Markup("<title>{}</title>").format(title) if title else ""
            drawn += Markup(
                '<rect class="{}" x="{:.1f}" width="{:.1f}" height="1">{}</rect>'
            ).format(look, x, width, said)
        x += width
    role = (
        Markup('role="img" aria-label="{}"').format(label)
        if label
        else Markup('aria-hidden="true"')
    )
    return Markup(
        '<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" {}>{}</svg>'
    ).format(role, drawn)


def spent(amounts: Iterable[tuple[CategoryInfo, int]]) -> Markup | str:
    """Return what time was spent on, as a bar and in words; empty if there is none."""
    known = [(info, micros) for info, micros in amounts if micros]
    total = sum(micros for _, micros in known)
    parts = [
        (f"c-{info.look}", micros, f"{words(info.header)} {percent(micros / total, 0)}")
        for info, micros in known
    ]
    said = Markup('<span><i class="{}"></i>{}</span>')
    words_of = Markup(" ").join(said.format(look, text) for look, _, text in parts)
    shown = Markup('{}<small class="legend">{}</small>')
    return shown.format(stacked(parts, total), words_of) if parts else ""


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
