"""The page Now, at ``/``: the state of sites and sources, what an operator wants to see first."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from markupsafe import Markup

from gwmond.model.facts import Status
from gwmond.model.poll.snapshot import IdleReason, SilentPilot, Snapshot
from gwmond.model.states import State
from gwmond.model.times import SECOND_US
from gwmond.reports.ledger.open_runs import sentence
from gwmond.reports.render.formats import counted, number, words
from gwmond.reports.render.meanings import reason_meaning, state_meaning
from gwmond.reports.render.table import Cell, Column, Table, table
from gwmond.reports.sites.sites import (
    SiteRow,
    entry_state_counts,
    jobs_text,
    site_rows,
    verdicts_text,
    worst_first,
)
from gwmond.web.parts import ROW_COLUMNS, USES, ago, entry_link, link, render, site_link, time_text

_MATCHING = (
    "idle jobs that could run there, before they are assigned to sites: a job counts at each site "
    "that it matches. ? and >= are shown while part of the demand is not known."
)
_RIGHT = (
    "how often pilots that registered met what had been said of their entry: a job within "
    "site.verdict_check after a bottleneck, none after insufficient demand. Other states are not "
    "checked, pilots rarely start where demand is missing, and those that start together share "
    "jobs."
)
_NAMED = 6
_SILENT = 20
_ROWS, _REASONS = 1000, 20  # of a table


def page(snapshot: Snapshot | None) -> str:
    """Return the page of a poll, in which ages are still to be filled in (``shown``)."""
    known = {} if snapshot is None else _known(snapshot)
    return render("now", snapshot=snapshot, **known)


def _known(s: Snapshot) -> dict[str, Any]:
    """Return what the page says of a poll."""
    rows = worst_first(site_rows(s))
    silent = s.pilot_time.silent if s.pilot_time is not None else ()
    checked = any(row.verdicts_checked for row in rows)
    return {
        "down": _down(s),
        "summary": _summary(s),
        "warnings": _warnings(s),
        "uses": USES,
        "matching": _MATCHING,
        "right": _RIGHT if checked else "",
        "sites": table("", (*_SITES, _VERDICTS) if checked else _SITES, rows[:_ROWS]),
        "more_sites": len(rows) - _ROWS if len(rows) > _ROWS else 0,
        "idle": table("", _IDLE, s.idle[:_REASONS]),
        "more_idle": len(s.idle) - _REASONS,
        "silent": table("", _PILOTS, silent[:_SILENT]),
        "more_silent": len(silent) - _SILENT,
        "sources": _sources(s),
        "meanings": _meanings(rows),
    }


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
    return [as_of, *([sentence(waiting)] if waiting else [])]


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


_SITES: tuple[Column[SiteRow], ...] = (
    Column("site", lambda row: site_link(row.site), name=True),
    *ROW_COLUMNS,
    Column("matching jobs before assign\u00adment", jobs_text, hint=_MATCHING),
)
_VERDICTS: Column[SiteRow] = Column(
    "verdicts right", lambda r: verdicts_text(r) if r.verdicts_checked else "", hint=_RIGHT
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
