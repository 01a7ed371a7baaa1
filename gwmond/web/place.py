"""The pages of one site and of one entry: state, reason, figures, groups, time; of held pilots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from gwmond.model.facts import EntryKey, EntryRequest, EntryTotals
from gwmond.model.pilot_life import Category
from gwmond.model.poll.snapshot import HeldPilots, PilotGroup, SilentPilot, Snapshot
from gwmond.model.times import HOUR_S, SECOND_US
from gwmond.reports.render.categories import INFO
from gwmond.reports.render.formats import UNKNOWN, hours, number, percent, ratio, words
from gwmond.reports.render.meanings import capacity_meanings, reason_meaning, state_meaning
from gwmond.reports.render.periods import short, span
from gwmond.reports.render.table import Cell, Column, Table, table
from gwmond.reports.sites.sites import SiteRow, entry_rows, jobs_text, site_rows, verdicts_text
from gwmond.web.parts import (
    ROW_COLUMNS,
    USES,
    ago,
    bar,
    entry_link,
    explain_link,
    link,
    render,
    site_link,
    time_text,
    why,
)

_ROWS, _HELD_ROWS = 500, 1000  # of a table
HELD = (
    "Held in the factories' queues, or held until they were removed within the grace. Reasons that "
    "differ in numbers only are one. ?: the queue is not read ([pool.wms] factory_schedds), and "
    "the number is that of the factory's ads. Whose move it is follows from the reason's text or "
    "code: an estimate. Seen since: by this gwmond, since it began."
)


class Figure(NamedTuple):
    """A number with its unit, and what it is."""

    name: str
    value: str
    hint: str = ""


class ResourceFigures(NamedTuple):
    """What is said of one resource of a place."""

    row: SiteRow
    meaning: str
    reason: str
    capacity: str
    bar: str
    figures: list[Figure]


def site_page(s: Snapshot, site: str) -> str | None:
    """Return the page of a site; None if no entry of such a site is known."""
    rows = [row for row in site_rows(s) if row.site == site]
    entries = [row for row in entry_rows(s) if row.site == site]
    if not rows:
        return None
    keys = {EntryKey(row.site, row.entry) for row in entries}
    return _page(s, site, None, rows, keys, table("", _ENTRIES, entries[:_ROWS]))


def entry_page(s: Snapshot, key: EntryKey) -> str | None:
    """Return the page of an entry; None if it is not known."""
    rows = [row for row in entry_rows(s) if (row.site, row.entry) == key]
    return _page(s, key.entry, key, rows, {key}, None) if rows else None


def _page(
    s: Snapshot,
    name: str,
    entry: EntryKey | None,
    rows: Sequence[SiteRow],
    keys: set[EntryKey],
    entries: Table | None,
) -> str:
    groups = _groups(s, keys)
    where = {"site": rows[0].site, "entry": entry.entry if entry else ""}
    silent = [p for p in (s.pilot_time.silent if s.pilot_time else ()) if p.entry in keys]
    suspects = s.pilot_time.suspects if s.pilot_time else ()
    return render(
        "place",
        name=name,
        time=link("time", "The page of time", **where),
        trend=f"time?{urlencode({'last': '7d', 'resource': rows[0].resource, **where})}",
        list=link("pilots", "the list of pilots", **where),
        failures=link("failures", "the page of failures", **where),
        explain=explain_link("Why no more jobs run here", **where),
        site=site_link(entry.site) if entry else None,
        as_of=time_text(s.pool_time),
        polled=ago(s.made_at),
        uses=USES,
        resources=[_resource(s, row, entry) for row in rows],
        entries=entries,
        groups=table("", _GROUPS, groups[:_ROWS]),
        more_groups=max(0, len(groups) - _ROWS),
        spare=_site_time(s, keys),
        pilots=_pilot_time(s, keys),
        held=held_table([one for one in s.held if one.entry in keys][:_ROWS]),
        held_note=HELD,
        silent=table("", _SILENT, silent[:_ROWS]),
        suspects=[x.shown for x in suspects if EntryKey(x.site, x.entry) in keys or x.site == name],
    )


def held_page(s: Snapshot | None) -> str:
    """Return the page of all held pilots; ages in it are still to be filled in."""
    if s is None:
        return render("held", snapshot=None)
    return render(
        "held",
        snapshot=s,
        as_of=time_text(s.pool_time),
        polled=ago(s.made_at),
        pilots=sum(one.pilots for one in s.held),
        held=held_table(s.held[:_HELD_ROWS]),
        more=max(0, len(s.held) - _HELD_ROWS),
        note=HELD,
    )


def held_table(held: Iterable[HeldPilots]) -> Table:
    """Return why pilots are held: where, whose move it is, since when."""
    return table("", _HOLDS, held)


def _resource(s: Snapshot, row: SiteRow, entry: EntryKey | None) -> ResourceFigures:
    figures = [
        Figure("capacity", number(row.capacity_units)),
        Figure("provisioned", number(row.provisioned_units), "what our running pilots hold"),
        Figure("busy", number(row.busy_units), "what jobs fill of it"),
        Figure("provisioning bottleneck", number(row.provisioning_bottleneck_units, 1)),
        Figure("insufficient demand", number(row.insufficient_demand_units, 1)),
        Figure("other", number(row.other_units, 1), "filling, saturated, down or unknown"),
        Figure(
            *("idle although jobs match", number(row.untaken_units, 1)),
            "provisioned, and nobody takes it for longer than site.untaken_grace",
        ),
    ]
    if row.resource == "cpu":
        figures += [
            Figure("pilots registered", number(row.registered_pilots)),
            Figure("pilots pending", number(row.pending_pilots), "in the site's queue"),
            Figure("pilots held", number(row.held_pilots)),
            Figure("pilots requested", number(row.requested_pilots), "idle ones, by frontends"),
            Figure("idle jobs that match", jobs_text(row), "before they are assigned to sites"),
            Figure("idle jobs assigned", number(row.assigned_idle_jobs, 1)),
        ]
        if row.probability is not None:
            sure = percent(row.probability, 0)
            figures.append(
                Figure(
                    "sure",
                    sure,
                    "how probable it is that the next pilots meet what the verdict says",
                )
            )
        if row.verdicts_checked:
            figures.append(
                Figure("verdicts right", verdicts_text(row), "of those that a pilot has checked")
            )
        totals = s.entries.get(entry) if entry is not None else None
        figures += _factory_figures(totals) if totals is not None else []
    return ResourceFigures(
        *(row, state_meaning(row.state), why(row), capacity_meanings(row.capacity_evidence)),
        bar(row),
        figures,
    )


def _factory_figures(totals: EntryTotals) -> list[Figure]:
    age = totals.info_age_s
    return [
        Figure("pilots at most", number(totals.max_pilots), "by the factory's configuration"),
        Figure("pilots of other frontends", number(totals.others_running)),
        Figure("age of information", "?" if age is None else span(age * SECOND_US)),
    ]


class _Group(NamedTuple):
    """A frontend group at an entry: its request, and its pilots in the collector."""

    entry: EntryKey
    group: str
    request: EntryRequest | None
    pilots: PilotGroup | None


def _groups(s: Snapshot, keys: set[EntryKey]) -> list[_Group]:
    requests = {(r.entry, r.group): r for r in s.requests if r.entry in keys}
    pilots = {(b.entry, b.group): found for b, found in s.pilots.items() if b.entry in keys}
    return [
        _Group(*berth, requests.get(berth), pilots.get(berth))
        for berth in sorted(requests.keys() | pilots.keys())
    ]


def _asked(header: str, name: str) -> Column[_Group]:
    return Column(header, lambda g: number(getattr(g.request.monitor, name)) if g.request else "")


def _group_link(group: _Group) -> str:
    """Return a group, which leads to what its time at the entry was used for."""
    entry = group.entry
    return (
        link("time", group.group, **entry._asdict(), group=group.group) if group.group else "(none)"
    )


def _counted(name: str) -> Column[_Group]:
    return Column(name, lambda g: number(getattr(g.pilots, name) if g.pilots else 0))


def _stalled(group: _Group) -> str:
    """Return how many jobs use no CPU, and the core hours that they hold; empty: not known."""
    stalled = group.pilots.stalled if group.pilots else None
    if not stalled:
        return ""
    held = f", {number(stalled.core_s / HOUR_S)} h" if stalled.jobs else ""
    return f"{number(stalled.jobs)}{held}"


def _limits(group: _Group) -> str:
    limits = group.request.limits if group.request else ()
    return "; ".join(f"{limit.name} ({limit.text})" for limit in limits)


def _units(group: _Group) -> str:
    return ", ".join(
        f"{units.busy} of {units.total} {resource}"
        for resource, units in (group.pilots.units if group.pilots else {}).items()
        if units.total
    )


_GROUPS: tuple[Column[_Group], ...] = (
    Column("entry", lambda g: entry_link(g.entry), name=True),
    Column("frontend group", _group_link, name=True),
    Column("factory", lambda g: g.request.factory if g.request else "", text=True),
    _asked("requested idle", "asked_idle"),
    _asked("requested at most", "asked_max"),
    _asked("pending", "pending"),
    _asked("running", "status_running"),
    _asked("held", "status_held"),
    *map(_counted, ("registered", "idle", "retiring")),
    Column("stalled", _stalled),
    Column("units busy", _units, text=True),
    Column("limits that were hit", _limits, text=True),
)
_ENTRIES: tuple[Column[SiteRow], ...] = (
    Column("entry", lambda row: entry_link(EntryKey(row.site, row.entry)), name=True),
    *ROW_COLUMNS,
)
_SILENT: tuple[Column[SilentPilot], ...] = (
    Column("entry", lambda pilot: entry_link(pilot.entry), name=True),
    Column("pilot", lambda pilot: pilot.name, name=True),
    Column("heard of last", lambda pilot: ago(pilot.last_heard_us / SECOND_US), text=True),
)


class _Amount(NamedTuple):
    """Canonical time of one kind: its resource, its name and what that means, and micros."""

    resource: str
    name: str
    meaning: str
    why: str
    micros: int
    share: float | None


def _amounts(sums: Counter[tuple[str, str, str]], meaning: dict[str, str]) -> Table:
    """Return the table of what is not 0, the largest first, by resource."""
    whole: Counter[str] = Counter()
    for (resource, _, _), micros in sums.items():
        whole[resource] += micros
    rows = [
        _Amount(
            *(resource, name, meaning.get(name, ""), why, micros),
            ratio(micros, whole[resource]),
        )
        for (resource, name, why), micros in sums.items()
        if micros
    ]
    return table("", _AMOUNTS, sorted(rows, key=lambda row: (row.resource, -row.micros)))


_AMOUNTS: tuple[Column[_Amount], ...] = (
    Column("resource", lambda row: row.resource, text=True),
    Column("time", lambda row: Cell(words(row.name), hint=row.meaning), name=True),
    Column("reason", lambda r: Cell(words(r.why), hint=reason_meaning(r.why)), text=True),
    Column("canonical hours", lambda row: hours(row.micros)),
    Column("share", lambda row: percent(row.share)),
)


def _site_time(s: Snapshot, keys: set[EntryKey]) -> Table:
    """Return the site time of a place since the ledger began, by state and reason."""
    sums: Counter[tuple[str, str, str]] = Counter()
    for key, total in s.totals.items():
        if EntryKey(key.site, key.entry) in keys:
            sums[key.resource, key.state, key.reason] += total.net
    meanings = {state: state_meaning(state) for _, state, _ in sums if state != "provisioned"}
    return _amounts(sums, meanings | {"provisioned": "what our running pilots held"})


def _pilot_time(s: Snapshot, keys: set[EntryKey]) -> Table:
    """Return the time of a place's pilots since the ledger began, by category and outcome."""
    sums: Counter[tuple[str, str, str]] = Counter()
    for series, total in (s.pilot_time.shown if s.pilot_time else {}).items():
        if series.measure == "canonical" and EntryKey(series.site, series.entry) in keys:
            sums[series.resource, series.category, series.outcome] += total.net
    return _amounts(sums, {name: INFO[Category(name)].meaning for _, name, _ in sums})


def _hold_reason(one: HeldPilots) -> str:
    return UNKNOWN if one.reason is None else one.reason or "no reason is given"


_HOLDS: tuple[Column[HeldPilots], ...] = (
    Column("site", lambda one: site_link(one.entry.site), name=True),
    Column("entry", lambda one: entry_link(one.entry), name=True),
    Column("pilots", lambda one: str(one.pilots)),
    Column("held for", _hold_reason, text=True, wrap=30),
    Column("code", lambda one: "" if one.code is None else str(one.code)),
    Column("whose move", lambda one: one.mover, text=True, wrap=12),
    Column("what would change it", lambda one: one.change, text=True, wrap=30),
    Column("seen since (UTC)", lambda one: short(round(one.since * SECOND_US)), text=True),
)
