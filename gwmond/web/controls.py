"""What pages of the ledger are chosen by: a place, a period, and what else a form asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from gwmond.model.facts import EntryKey, Place
from gwmond.model.poll.snapshot import Snapshot
from gwmond.reports.render.document import Part
from gwmond.reports.sites.time_by_hour import RANGES
from gwmond.web.asking import OfPlace
from gwmond.web.parts import View, ago, entry_link, link, render, site_link, time_text

_NAMES = 1000
"""So many names a field suggests."""


class FormField(NamedTuple):
    """A field of a form: a text with names that are suggested, or a choice of values and labels.

    Without a label it is not shown; ``example``: of a text.
    """

    name: str
    label: str
    value: str = ""
    known: Sequence[str] = ()
    choices: Sequence[tuple[str, str]] = ()
    example: str = "all"


class Tab(NamedTuple):
    """A link to the same page of something else; ``here``: it is this one."""

    text: str
    here: bool
    target: str


class Heading(NamedTuple):
    """What a page of the ledger begins with: of where, as of when, and what is wrong with that."""

    place: Markup | str
    as_of: Markup | str
    warnings: Sequence[str]


def address(path: str, asked: OfPlace) -> str:
    """Return the address of a page; what is empty is left out."""
    wanted = {name: text for name, text in asked.query.items() if text}
    return f"{path}?{urlencode(wanted)}"


def keys(s: Snapshot | None) -> set[EntryKey]:
    """Return the places that the last poll knows."""
    return {key for key, _ in s.evaluation.rows} if s else set()


def place_fields(s: Snapshot | None, place: Place) -> list[FormField]:
    """Return the fields of a place; entries that are suggested are those of its site."""
    known, (site, entry, group) = keys(s), place
    groups = {berth.group for berth in s.pilots} | {r.group for r in s.requests} if s else set()
    return [
        FormField("site", "Site", site, _some(key.site for key in known)),
        FormField("entry", "Entry", entry, _some(k.entry for k in known if site in ("", k.site))),
        FormField("group", "Frontend group", group, _some(groups)),
    ]


def heading(s: Snapshot | None, place: Place) -> Heading:
    """Return what is said first; a place leads to its page, where the last poll knows it."""
    known, (site, entry, group) = keys(s), place
    key = EntryKey(site, entry)
    parts: list[Markup | str] = []
    if site and not entry:
        parts = [site_link(site) if any(k.site == site for k in known) else site]
    elif entry:
        parts = [entry_link(key) if key in known else f"{site} / {entry}" if site else entry]
    if group:
        parts.append(f"frontend group {group}")
    if s is None:
        as_of: Markup | str = "The first poll is under way: this is how the ledger was left."
    else:
        as_of = Markup("As of {}, polled {}.").format(time_text(s.pool_time), ago(s.made_at))
    missing = bool(site or entry) and s is not None and not any(place.covers(*key) for key in known)
    gone = "The last poll knows no such place; the ledger may have its past."
    warnings = [gone] * missing + ([s.ledger.error] if s and not s.ledger.up else [])
    return Heading(Markup(", ").join(parts), as_of, warnings)


def ledger_page(
    name: str,
    view: View,
    chosen: OfPlace,
    error: str,
    parts: Sequence[Part] = (),
    as_of: str | None = None,
    **known: object,
) -> str:
    """Return a page of the ledger, by its name, with links to the others of the same place.

    ``error``: why nothing could be read; ``as_of``: instead of the last poll's time; ``known``:
    what else its template shows.
    """
    texts = {"time": "what its time was used for", "report": "a report", "pilots": "its pilots"}
    texts |= {"runs": "runs of jobs", "failures": "failures"}
    texts |= {"advise": "advice", "forecast": "what comes"}
    if view.shows_jobs:
        texts["user"] = "users"
    others = [
        link(path, text, **chosen.place.named) for path, text in texts.items() if path != name
    ]
    head = heading(view.snapshot, chosen.place)
    if as_of is not None:
        head = head._replace(as_of=as_of)
    return render(
        name,
        heading=head,
        links=Markup(", ").join(others),
        error=error,
        parts=parts,
        **{"title": name.capitalize(), "choices": (), "more": (), **known},
    )


def last_tabs(name: str, chosen: OfPlace, last: str) -> list[Tab]:
    """Return links to the same page of other periods."""
    return [
        Tab(kind.name, which == last, address(name, chosen.but(last=which)))
        for which, kind in RANGES.items()
    ]


def _some(names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name})[:_NAMES]
