"""The page at ``/``: what an operator wants to see first."""

from __future__ import annotations

import time
from html import escape

from gwmond import __version__
from gwmond.accounting.evaluation import State
from gwmond.snapshot import Snapshot
from gwmond.tables import Row, entry_state_counts, site_rows
from gwmond.web.words import reason_meaning, state_meaning, words

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 1rem auto; max-width: 96rem; padding: 0 1rem; }
h1 small { font-weight: normal; font-size: 1rem; opacity: .7; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; }
th, td { padding: .2rem .5rem; text-align: left; border-bottom: 1px solid #8884; }
td { white-space: nowrap; }
th { vertical-align: bottom; }
td[title] { white-space: normal; }
td[title]:not([title=""]) { text-decoration: underline dotted #8888; cursor: help; }
td.bad { white-space: normal; min-width: 20rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
dt { font-weight: 600; } dd { margin: 0 0 .4rem 1.5rem; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.bar { display: flex; height: .8rem; min-width: 7rem; background: #8882; }
.bar i { display: block; height: 100%; }
.in_use { background: #4477aa; } .provisioning_bottleneck { background: #ee6677; }
.insufficient_demand { background: #bbbbbb; } .other { background: #ccbb44; }
.key span { margin-right: 1rem; display: inline-block; }
.key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; }
.bad { color: #c0392b; font-weight: 600; }
"""
_LEGEND = (
    ("in_use", "in use"),
    ("provisioning_bottleneck", "provisioning bottleneck: jobs waited, too few pilots"),
    ("insufficient_demand", "insufficient demand: no job could run"),
    ("other", "filling, down or unknown"),
)


def page(snapshot: Snapshot | None) -> str:
    """Return the page; it refreshes itself."""
    if snapshot is None:
        body = "<p>The first poll is under way.</p>"
    else:
        rows = site_rows(snapshot)
        body = _summary(snapshot) + _sites(rows) + _sources(snapshot) + _meanings(rows)
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta http-equiv="refresh" content="5"><meta name=viewport '
        'content="width=device-width, initial-scale=1">'
        f"<title>gwmond</title><style>{_STYLE}</style></head><body>"
        f"<h1>gwmond <small>{escape(__version__)}</small></h1>"
        '<p><a href="/metrics">metrics</a> · <a href="/-/healthy">healthy</a> · '
        f'<a href="/-/ready">ready</a></p>{body}</body></html>'
    )


def _summary(s: Snapshot) -> str:
    counts = ", ".join(
        f"{n} {escape(words(state))}" for state, n in entry_state_counts(s).items() if n
    )
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(s.pool_time))
    replay = f" Replayed at {s.speed:g} times its speed." if s.speed != 1 else ""
    ledger = "" if s.ledger.up else f"<p class=bad>{escape(s.ledger.error)}</p>"
    return f"<p>Entries: {counts or 'none'}. As of {when}.{replay}</p>{ledger}"


def _sites(rows: list[Row]) -> str:
    head = (
        "<tr><th>site<th>resource<th>state<th>reason<th>use of capacity<th class=n>capacity"
        "<th class=n>in use<th class=n>bottle&shy;neck<th class=n>insuffi&shy;cient"
        "<th class=n>pilots<th class=n>pending<th class=n>matching jobs"
    )
    lines = [
        f"<tr><td>{escape(r.site)}<td>{r.resource}"
        f'<td title="{escape(state_meaning(r.state))}">{escape(words(r.state))}'
        f'<td title="{escape(_why(r))}">{escape(words(r.reason))}<td>{_bar(r)}'
        f"<td class=n>{r.capacity_units}<td class=n>{_cell(r.in_use_units)}"
        f"<td class=n>{r.provisioning_bottleneck_units:.0f}"
        f"<td class=n>{r.insufficient_demand_units:.0f}<td class=n>{_cell(r.registered_pilots)}"
        f"<td class=n>{_cell(r.pending_pilots)}<td class=n>{r.matching_idle_jobs}"
        for r in sorted(rows, key=lambda r: (-r.provisioning_bottleneck_units, r.site))
    ]
    legend = "".join(f"<span><i class={name}></i>{escape(text)}</span> " for name, text in _LEGEND)
    return (
        f"<h2>Sites</h2><p class=key>{legend}<br>Canonical units: 1 core with its memory, or 1 GPU."
        f"</p><div class=wide><table>{head}{''.join(lines)}</table></div>"
    )


def _why(row: Row) -> str:
    """Return what a row's reason means, with the limits that were hit."""
    return "; ".join(text for text in (reason_meaning(row.reason), row.limits) if text)


def _meanings(rows: list[Row]) -> str:
    """Return what the states and reasons on the page mean, for those who have no mouse."""
    states = [state for state in State if any(row.state == state for row in rows)]
    reasons = sorted({row.reason for row in rows if reason_meaning(row.reason)})
    told = [(words(state), state_meaning(state)) for state in states]
    told += [(words(reason), reason_meaning(reason)) for reason in reasons]
    lines = "".join(f"<dt>{escape(name)}<dd>{escape(text)}" for name, text in told)
    return f"<h2>What states and reasons mean</h2><dl>{lines}</dl>" if told else ""


def _bar(row: Row) -> str:
    parts = (
        ("in_use", row.in_use_units or 0),
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
        + f"<td class=n>{x.records}<td class=n>{x.duration_s:.2f}"
        for x in s.sources
    ]
    head = "<tr><th>source<th>query<th>state<th class=n>ads<th class=n>seconds"
    return f"<h2>Sources</h2><div class=wide><table>{head}{''.join(lines)}</table></div>"


def _cell(value: int | None) -> str:
    return "?" if value is None else str(value)
