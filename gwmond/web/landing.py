"""The page at ``/``: what an operator wants to see first."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from html import escape

from gwmond import __version__
from gwmond.model.facts import Status
from gwmond.model.snapshot import Snapshot
from gwmond.model.states import State
from gwmond.model.times import SECOND_US
from gwmond.reports.open_runs import sentence
from gwmond.reports.periods import span
from gwmond.reports.site_table import Row, entry_state_counts, jobs_text, site_rows, verdicts_text
from gwmond.web.words import reason_meaning, state_meaning, words

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 1rem auto; max-width: 96rem; padding: 0 1rem; }
h1 small { font-weight: normal; font-size: 1rem; opacity: .7; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; }
th, td { padding: .2rem .5rem; text-align: left; border-bottom: 1px solid #8884; }
td { white-space: nowrap; }
td:first-child, .pilots td { white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
th { vertical-align: bottom; }
td[title] { white-space: normal; }
td[title]:not([title=""]) { text-decoration: underline dotted #8888; cursor: help; }
td.bad { white-space: normal; min-width: 20rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
dt { font-weight: 600; } dd { margin: 0 0 .4rem 1.5rem; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.bar { display: flex; height: .8rem; min-width: 7rem; background: #8882; }
.bar i { display: block; height: 100%; }
.busy { background: #4477aa; } .not_busy { background: #88bbee; }
.provisioning_bottleneck { background: #ee6677; }
.insufficient_demand { background: #bbbbbb; } .other { background: #ccbb44; }
.key span { margin-right: 1rem; display: inline-block; }
.rest { background: #8882; outline: 1px solid #8886; }
.key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; }
.bad { color: #c0392b; font-weight: 600; }
.down { border-left: .4rem solid #c0392b; background: #c0392b22; padding: .4rem .8rem; }
@media print { :root { color-scheme: light; font-size: 9px; } body { max-width: none; margin: 0; }
  .wide { overflow: visible; } thead { display: table-header-group; } tr { break-inside: avoid; }
  h2 { break-after: avoid; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
@page { size: A4 landscape; margin: 12mm; }
"""
_LEGEND = (
    ("busy", "busy: provisioned, and filled by jobs"),
    ("not_busy", "provisioned, not busy"),
    ("provisioning_bottleneck", "provisioning bottleneck: jobs waited, too few pilots"),
    ("insufficient_demand", "insufficient demand: no job is left for it"),
    ("other", "filling, down or unknown"),
    ("rest", "saturated: the site has no room for it"),
)
_MATCHING = (
    "idle jobs that could run there, before they are assigned to sites: a job counts at each site "
    "that it matches. ? and >= are said while part of the demand is not known."
)
_RIGHT = (
    "how often pilots that registered met what had been said of their entry: a job within "
    "site.verdict_check after a bottleneck, none after insufficient demand. Other states are not "
    "checked, pilots rarely start where demand is missing, and those that start together share "
    "jobs."
)
_NAMED = 6
_SILENT = 20
_ROWS = 1000  # of a table
_AGE = re.compile(r"<age ([^>]*)>")


def page(snapshot: Snapshot | None, now: float) -> str:
    """Return the page of ``now`` (epoch seconds by this machine's clock); it refreshes itself."""
    return current(made(snapshot), now)


def current(text: str, now: float) -> str:
    """Return a page that was ``made`` before, with ages as of ``now``."""
    return _AGE.sub(lambda found: span(round(max(0.0, now - float(found[1]))) * SECOND_US), text)


def made(snapshot: Snapshot | None) -> str:
    """Return the page of a poll, in which ages are still to be filled in."""
    if snapshot is None:
        body = "<p>The first poll is under way.</p>"
    else:
        rows = site_rows(snapshot)
        body = _down(snapshot) + _summary(snapshot) + _sites(rows)
        body += _silent(snapshot) + _sources(snapshot) + _meanings(rows)
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta http-equiv="refresh" content="5"><meta name=viewport '
        'content="width=device-width, initial-scale=1">'
        f"<title>gwmond</title><style>{_STYLE}</style></head><body>"
        f"<h1>gwmond <small>{escape(__version__)}</small></h1>"
        '<p><a href="/metrics">metrics</a> · <a href="/-/healthy">healthy</a> · '
        f'<a href="/-/ready">ready</a></p>{body}</body></html>'
    )


def _down(s: Snapshot) -> str:
    """Return what is said at the top while a source is down; empty if none is."""
    failed: dict[tuple[str, bool], list[Status]] = defaultdict(list)
    for x in s.sources:
        if not x.up:
            failed[x.source, x.last_success is None].append(x)
    if not failed:
        return ""
    number = sum(map(len, failed.values()))
    named = [
        f"<strong>{escape(source)}</strong> {escape(', '.join(x.kind for x in some))} "
        f"({escape(', '.join(dict.fromkeys(x.problem for x in some)))}, {_last(some)})"
        for (source, _), some in list(failed.items())[:_NAMED]
    ]
    more = f"; and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
    return (
        f'<p class=down role=alert><a class=bad href="#sources">{number} of {len(s.sources)} '
        f"queries to sources {'fails' if number == 1 else 'fail'}</a>: {'; '.join(named)}{more}."
    )


def _last(some: list[Status]) -> str:
    """Return since when queries have had no answer: of all that answered once, the first."""
    since = min((x.last_success for x in some if x.last_success is not None), default=None)
    if since is None:
        return "no answer since gwmond started"
    return f"no answer since {_time(since)}, {_ago(since)}"


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def _ago(at: float) -> str:
    return f"<age {at!r}> ago"  # every text in the page is escaped: none has this


def _summary(s: Snapshot) -> str:
    counts = ", ".join(
        f"{n} {escape(words(state))}" for state, n in entry_state_counts(s).items() if n
    )
    when = f"{_time(s.pool_time)}, polled {_ago(s.made_at)}"
    replay = f" Replayed at {s.speed:g} times its speed." if s.speed != 1 else ""
    if s.young_until is not None:
        replay += (
            " A collector has just been started: entries with fewer pilots there than before are "
            f"unknown until {_time(s.young_until)}, unless their pilots are seen before."
        )
    ledger = "" if s.ledger.up else f"<p class=bad>{escape(s.ledger.error)}</p>"
    waiting = s.pilot_time.waits if s.pilot_time is not None else ()
    open_now = f"<p>{escape(sentence(waiting))}</p>" if waiting else ""
    told = f"<p>Entries: {counts or 'none'}. As of {when}.{replay}</p>{open_now}{ledger}"
    return told + _together(s)


def _together(s: Snapshot) -> str:
    """Return which names are taken together; empty if none are."""
    found = s.names.together if s.names is not None else ()
    kinds = " and ".join(f"{folded.number} {escape(folded.kind)}" for folded in found)
    what = "are taken together as <em>other</em>: see too_many_names in the log."
    return f"<p class=bad>{kinds} {what}</p>" if found else ""


def _sites(rows: list[Row]) -> str:
    head = (
        "<tr><th>site<th>resource<th>state<th>reason<th>use of capacity<th class=n>capacity"
        "<th class=n>provi&shy;sioned<th class=n>busy"
        "<th class=n>bottle&shy;neck<th class=n>insuffi&shy;cient"
        "<th class=n>pilots<th class=n>pending"
        f'<th class=n title="{escape(_MATCHING)}">matching jobs before assign&shy;ment'
        f'<th class=n title="{escape(_RIGHT)}">verdicts right'
    )
    lines = [
        f"<tr><td>{escape(r.site)}<td>{r.resource}"
        f'<td title="{escape(state_meaning(r.state))}">{escape(words(r.state))}'
        f'<td title="{escape(_why(r))}">{escape(words(r.reason))}<td>{_bar(r)}'
        f"<td class=n>{r.capacity_units}<td class=n>{_cell(r.provisioned_units)}"
        f"<td class=n>{_cell(r.busy_units)}"
        f"<td class=n>{r.provisioning_bottleneck_units:.0f}"
        f"<td class=n>{r.insufficient_demand_units:.0f}<td class=n>{_cell(r.registered_pilots)}"
        f"<td class=n>{_cell(r.pending_pilots)}<td class=n>{escape(jobs_text(r))}"
        f"<td class=n>{escape(_right(r))}"
        for r in sorted(rows, key=lambda r: (-r.provisioning_bottleneck_units, r.site))[:_ROWS]
    ]
    legend = "".join(f"<span><i class={name}></i>{escape(text)}</span> " for name, text in _LEGEND)
    return (
        f"<h2>Sites</h2><p class=key>{legend}<br>Canonical units: 1 core with its memory, or 1 "
        f"GPU. Matching jobs: {escape(_MATCHING)} Verdicts right: {escape(_RIGHT)} "
        '<a href="#meanings">What each state and reason means</a>'
        f"</p><div class=wide><table>{head}{''.join(lines)}</table></div>{_more(len(rows))}"
    )


def _more(rows: int) -> str:
    """Return how many rows are not shown, if any are not."""
    return (
        f"<p>And {rows - _ROWS} more: <code>gwmond sites</code> shows all." if rows > _ROWS else ""
    )


def _right(row: Row) -> str:
    return verdicts_text(row) if row.verdicts_checked else ""


def _silent(s: Snapshot) -> str:
    """Return the pilots that are silent, those that were heard of latest first; empty if none."""
    silent = s.pilot_time.silent if s.pilot_time is not None else ()
    if not silent:
        return ""
    lines = [
        f"<tr><td>{escape(pilot.entry.site)}<td>{escape(pilot.entry.entry)}<td>{escape(pilot.name)}"
        f"<td>{_time(pilot.heard_us / SECOND_US)}, {_ago(pilot.heard_us / SECOND_US)}"
        for pilot in silent[:_SILENT]
    ]
    more = f"<p>And {len(silent) - _SILENT} more." if len(silent) > _SILENT else ""
    return (
        "<h2>Silent pilots</h2><p>Their ads were not renewed for two updates: they may have been "
        "killed, and are not counted above. They end as their ads expire."
        "<div class='wide pilots'><table><tr><th>site<th>entry<th>pilot<th>heard of last"
        f"{''.join(lines)}</table></div>{more}"
    )


def _why(row: Row) -> str:
    """Return what a row's reason means, with the limits that were hit."""
    return "; ".join(text for text in (reason_meaning(row.reason), row.limits) if text)


def _meanings(rows: list[Row]) -> str:
    """Return what all states and the page's reasons mean, for those who have no mouse."""
    reasons = sorted({row.reason for row in rows if reason_meaning(row.reason)})
    told = [(words(state), state_meaning(state)) for state in State]
    told += [(words(reason), reason_meaning(reason)) for reason in reasons]
    lines = "".join(f"<dt>{escape(name)}<dd>{escape(text)}" for name, text in told)
    return f"<h2 id=meanings>What states and reasons mean</h2><dl>{lines}</dl>"


def _bar(row: Row) -> str:
    busy = row.busy_units or 0
    parts = (
        ("busy", busy),
        ("not_busy", (row.provisioned_units or 0) - busy),
        ("provisioning_bottleneck", row.provisioning_bottleneck_units),
        ("insufficient_demand", row.insufficient_demand_units),
        ("other", row.other_units),
    )
    total = max(row.capacity_units, 1)
    return (
        "<div class=bar>"
        + "".join(f'<i class={n} style="width:{100 * v / total:.1f}%"></i>' for n, v in parts if v)
        + "</div>"
    )


def _sources(s: Snapshot) -> str:
    lines = [
        f"<tr><td>{escape(x.source)}<td>{escape(x.kind)}"
        + ("<td>up" if x.up else f"<td class=bad>{escape(x.problem)}: {escape(x.detail)}")
        + f"<td>{'never' if x.last_success is None else _ago(x.last_success)}"
        + f"<td class=n>{x.records}<td class=n>{x.duration_s:.2f}"
        for x in sorted(s.sources, key=lambda x: x.up)[:_ROWS]
    ]
    head = "<tr><th>source<th>query<th>state<th>last answer<th class=n>ads<th class=n>seconds"
    return f"<h2 id=sources>Sources</h2><div class=wide><table>{head}{''.join(lines)}</table></div>"


def _cell(value: int | None) -> str:
    return "?" if value is None else str(value)
