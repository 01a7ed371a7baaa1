"""The page Now, at ``/``: the state of sites and sources, what an operator wants to see first."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from gwmond.model.facts import Status
from gwmond.model.poll.snapshot import IdleReason, SilentPilot, Snapshot
from gwmond.model.states import State
from gwmond.model.times import SECOND_US
from gwmond.model.tour import TourStop
from gwmond.reports.ledger.open_runs import sentence
from gwmond.reports.render.formats import counted, number, percent, words
from gwmond.reports.render.meanings import reason_meaning, state_meaning
from gwmond.reports.render.table import Cell, Column, Table, table
from gwmond.reports.sites.sites import (
    SiteRow,
    entry_state_counts,
    jobs_text,
    no_site,
    site_rows,
    worst_first,
)
from gwmond.web.parts import ROW_COLUMNS, USES, ago, entry_link, link, render, site_link, time_text

_MATCHING = (
    "idle jobs that could run there, before they are assigned to sites: a job counts at each site "
    "that it matches. ? and >= are shown while part of the demand is not known."
)
_SURE = (
    "how probable it is that the pilots that register next meet what the verdict says, by those "
    "that did: a job that had waited ran within site.verdict_check after a bottleneck, none "
    "after insufficient demand. Other states are not checked, and pilots rarely start where demand "
    "is missing."
)
_NAMED, _WORST = 6, 10
_MANY = 10  # rows, above which all sites together stand first
_SILENT = 20
_ROWS, _REASONS = 1000, 20  # of a table


def page(snapshot: Snapshot | None, tour: Sequence[TourStop] = ()) -> str:
    """Return the page of a poll, in which ages are still to be filled in (``shown``).

    ``tour``: what a demo has to show.
    """
    known = {} if snapshot is None else _known(snapshot)
    if snapshot is not None and tour and (at := snapshot.pool_time):
        known["time"] = f"{time.strftime('%A', time.gmtime(at))}, {time_text(at)}"
    return render("now", snapshot=snapshot, tour=tour, **known)


def _known(s: Snapshot) -> dict[str, Any]:
    """Return what the page says of a poll."""
    rows = worst_first(site_rows(s))
    silent = s.pilot_time.silent if s.pilot_time is not None else ()
    checked = any(row.probability is not None for row in rows)
    columns = _names(s), *_SITES, *([_VERDICTS] if checked else [])
    return {
        "down": _down(s),
        "summary": _summary(s),
        "warnings": _warnings(s),
        "uses": USES,
        "matching": _MATCHING,
        "sure": _SURE if checked else "",
        "nothing": "" if rows or not any(source.up for source in s.sources) else no_site(s),
        "totals": table("", _TOTALS, _totals(rows)) if len(rows) > _MANY else None,
        "worst": _worst(rows),
        "sites": table("", columns, rows[:_ROWS]),
        "more_sites": len(rows) - _ROWS if len(rows) > _ROWS else 0,
        "idle": table("", _IDLE, s.idle[:_REASONS]),
        "more_idle": len(s.idle) - _REASONS,
        "silent": table("", _PILOTS, silent[:_SILENT]),
        "more_silent": len(silent) - _SILENT,
        "sources": _sources(s),
        "meanings": _meanings(rows),
    }


class _TotalRow(NamedTuple):
    """All sites together: units of a resource, None where not all of them are known."""

    resource: str
    sites: int
    units: list[float | None]


_SUMMED: dict[str, Callable[[SiteRow], float | None]] = {
    "capacity": lambda row: row.capacity_units,
    "provisioned": lambda row: row.provisioned_units,
    "busy": lambda row: row.busy_units,
    "provisioning bottleneck": lambda row: row.provisioning_bottleneck_units,
    "insufficient demand": lambda row: row.insufficient_demand_units,
    "filling, down or unknown": lambda row: row.other_units,
    "saturated": lambda row: (
        None
        if row.provisioned_units is None
        else max(0, row.capacity_units - row.provisioned_units - row.spare_units)
    ),
}


def _totals(rows: list[SiteRow]) -> list[_TotalRow]:
    found = []
    for resource in dict.fromkeys(row.resource for row in rows):
        of = [row for row in rows if row.resource == resource]
        columns = [[value(row) for row in of] for value in _SUMMED.values()]
        units = [None if None in amounts else sum(filter(None, amounts)) for amounts in columns]
        found.append(_TotalRow(resource, len(of), units))
    return found


def _worst(rows: list[SiteRow]) -> Markup:
    """Return the sites whose bottlenecks are largest, each with its units."""
    each = (
        Markup("{} {}{}").format(
            site_link(row.site),
            number(row.provisioning_bottleneck_units),
            " GPUs" if row.resource == "gpu" else "",
        )
        for row in rows[:_WORST]
        if row.provisioning_bottleneck_units
    )
    return Markup(", ").join(each)


class _Down(NamedTuple):
    """How many queries failed, the first sources with what they were asked, why, since when."""

    number: int
    asked: int
    named: list[tuple[str, str, str, str]]
    more: int


def _down(s: Snapshot) -> _Down | None:
    """Return the text at the top while a source is down."""
    failed: dict[tuple[str, bool], list[Status]] = defaultdict(list)
    for status in s.sources:
        if not status.up:
            failed[status.source, status.last_success is None].append(status)
    if not failed:
        return None
    named = [
        (
            source,
            ", ".join(status.kind for status in statuses),
            ", ".join(dict.fromkeys(str(status.problem) for status in statuses)),
            _last(statuses),
        )
        for (source, _), statuses in list(failed.items())[:_NAMED]
    ]
    queries = sum(map(len, failed.values()))
    return _Down(queries, len(s.sources), named, max(0, len(failed) - _NAMED))


def _last(statuses: list[Status]) -> str:
    """Return since when queries have had no answer: of all that answered once, the first."""
    since = min((x.last_success for x in statuses if x.last_success is not None), default=None)
    if since is None:
        return "no answer since gwmond started"
    return Markup("no answer since {}, {}").format(time_text(since), ago(since))


def _summary(s: Snapshot) -> list[str]:
    counts = ", ".join(f"{n} {words(state)}" for state, n in entry_state_counts(s).items() if n)
    replay = f" Replayed at {s.speed:g} times its speed." if s.speed != 1 else ""
    if s.young_until is not None:
        replay += (
            " A collector has just been started: entries with fewer pilots there than before are "
            f"unknown until {time_text(s.young_until)}, unless their pilots are seen before."
        )
    waiting = s.pilot_time.waits if s.pilot_time is not None else ()
    as_of = Markup("Entries: {}. As of {}, polled {}.{}").format(
        counts or "none", time_text(s.pool_time), ago(s.made_at), replay
    )
    return [as_of, *([sentence(waiting)] if waiting else []), *_held(s)]


def _held(s: Snapshot) -> list[str]:
    """Return how many pilots are held, with a link to the reasons."""
    number = sum(one.pilots for one in s.held)
    where = counted(len({one.entry for one in s.held}), "entry")
    held = link("held", f"{counted(number, 'pilot')} held")
    return [Markup("{} at {}, with the reasons.").format(held, where)] if number else []


def _warnings(s: Snapshot) -> list[str]:
    """Return what is wrong with the ledger, and which names are taken together."""
    folded = s.names.together if s.names is not None else ()
    kinds = " and ".join(f"{names.number} {names.kind}" for names in folded)
    together = "{} are taken together as <em>other</em>: see too_many_names in the log."
    suspects = s.pilot_time.suspects if s.pilot_time is not None else ()
    holes = link("failures", counted(len(suspects), "suspected black hole"))
    return [
        *([] if s.ledger.up else [s.ledger.error]),
        *([Markup("{} in the last two hours.").format(holes)] if suspects else []),
        *([Markup(together).format(kinds)] if kinds else []),
    ]


def _heard(pilot: SilentPilot) -> str:
    at = pilot.last_heard_us / SECOND_US
    return Markup("{}, {}").format(time_text(at), ago(at))


def _where(one: IdleReason) -> str:
    return {"several": "several sites", "none": "no site"}.get(one.site) or site_link(one.site)


def _state(status: Status) -> str:
    if status.up:
        return "up"
    return Markup('<span class="bad">{}: {}</span>').format(status.problem, status.detail)


def _names(s: Snapshot) -> Column[SiteRow]:
    """Return the column of sites, with a mark where jobs end far too soon."""
    suspects = s.pilot_time.suspects if s.pilot_time is not None else ()
    marked = Markup('{} <span class="bad">{}</span>')
    marks = {
        x.site: marked.format(
            site_link(x.site), link("failures", "suspected black hole", site=x.site)
        )
        for x in suspects
    }
    return Column("site", lambda row: marks.get(row.site) or site_link(row.site), name=True)


def _summed(at: int, name: str) -> Column[_TotalRow]:
    return Column(name, lambda total: number(total.units[at]))


_TOTALS: tuple[Column[_TotalRow], ...] = (
    Column("all sites", lambda total: total.resource, text=True),
    Column("sites", lambda total: str(total.sites)),
    *(_summed(at, name) for at, name in enumerate(_SUMMED)),
)
_SITES: tuple[Column[SiteRow], ...] = (
    *ROW_COLUMNS,
    Column("matching jobs before assign\u00adment", jobs_text, hint=_MATCHING),
)
_VERDICTS: Column[SiteRow] = Column(
    "sure", lambda r: "" if r.probability is None else percent(r.probability, 0), hint=_SURE
)
_IDLE: tuple[Column[IdleReason], ...] = (
    Column("reason", lambda one: words(one.reason), text=True),
    Column("cause", lambda one: Cell(words(one.cause), hint=reason_meaning(one.cause)), text=True),
    Column("could run at", _where, text=True),
    Column("whose move", lambda one: one.mover, text=True),
    Column("jobs", lambda one: number(round(one.jobs, 1))),
    Column("units", lambda one: number(round(one.cpu, 1))),
    Column("GPUs", lambda one: number(round(one.gpu, 1)), zero=True),
)
_PILOTS: tuple[Column[SilentPilot], ...] = (
    Column("site", lambda pilot: site_link(pilot.entry.site), text=True),
    Column("entry", lambda pilot: entry_link(pilot.entry), text=True),
    Column("pilot", lambda pilot: pilot.name, text=True),
    Column("heard of last", _heard, text=True),
)
_SOURCES: tuple[Column[Status], ...] = (
    Column("source", lambda status: status.source, name=True),
    Column("query", lambda status: status.kind, text=True),
    Column("state", _state, text=True),
    Column(
        "last answer",
        lambda status: "never" if status.last_success is None else ago(status.last_success),
        text=True,
    ),
    Column("ads", lambda status: str(status.records)),
    Column("seconds", lambda status: f"{status.duration_s:.2f}"),
)


def _sources(s: Snapshot) -> Table:
    """Return all queries, those that have failed first."""
    return table("", _SOURCES, sorted(s.sources, key=lambda status: status.up)[:_ROWS])


def _meanings(rows: list[SiteRow]) -> list[tuple[str, str]]:
    """Return what all states and the page's reasons mean, for those who have no mouse."""
    reasons = sorted({row.reason for row in rows if reason_meaning(row.reason)})
    return [
        *((words(state), state_meaning(state)) for state in State),
        *((words(reason), reason_meaning(reason)) for reason in reasons),
    ]
