"""The page at ``/``: what an operator wants to see first."""

from __future__ import annotations

import time
from html import escape

from gwmond import __version__
from gwmond.snapshot import Snapshot
from gwmond.tables import Row, entry_state_counts, site_rows

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 96rem; padding: 0 1rem; }
h1 small { font-weight: normal; font-size: 1rem; opacity: .7; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; }
th, td { padding: .2rem .5rem; text-align: left; border-bottom: 1px solid #8884; }
th, td { white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.bar { display: flex; height: .8rem; min-width: 9rem; background: #8882; }
.bar i { display: block; height: 100%; }
.in_use { background: #4477aa; } .provisioning_bottleneck { background: #ee6677; }
.insufficient_demand { background: #bbbbbb; } .other { background: #ccbb44; }
.key i { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 1rem; }
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
        body = _summary(snapshot) + _sites(rows) + _sources(snapshot)
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        '<meta http-equiv="refresh" content="5"><meta name=viewport content="width=device-width">'
        f"<title>gwmond</title><style>{_STYLE}</style></head><body>"
        f"<h1>gwmond <small>{escape(__version__)}</small></h1>"
        '<p><a href="/metrics">metrics</a> · <a href="/-/healthy">healthy</a> · '
        f'<a href="/-/ready">ready</a></p>{body}</body></html>'
    )


def _summary(s: Snapshot) -> str:
    counts = ", ".join(
        f"{n} {escape(state.replace('_', ' '))}" for state, n in entry_state_counts(s).items() if n
    )
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(s.pool_time))
    replay = f" Replayed at {s.speed:g} times its speed." if s.speed != 1 else ""
    ledger = "" if s.ledger.up else f"<p class=bad>{escape(s.ledger.error)}</p>"
    return f"<p>Entries: {counts or 'none'}. As of {when}.{replay}</p>{ledger}"


def _sites(rows: list[Row]) -> str:
    head = (
        "<tr><th>site<th>resource<th>state<th>reason<th>use of capacity<th class=n>capacity"
        "<th class=n>in use<th class=n>bottleneck<th class=n>insufficient<th class=n>pilots"
        "<th class=n>pending<th class=n>matching jobs"
    )
    lines = [
        f"<tr><td>{escape(r.site)}<td>{r.resource}<td>{escape(r.state.replace('_', ' '))}"
        f'<td title="{escape(r.limits)}">{escape(r.reason)}<td>{_bar(r)}'
        f"<td class=n>{r.capacity_units}<td class=n>{_cell(r.in_use_units)}"
        f"<td class=n>{r.provisioning_bottleneck_units:.0f}"
        f"<td class=n>{r.insufficient_demand_units:.0f}<td class=n>{_cell(r.registered_pilots)}"
        f"<td class=n>{_cell(r.pending_pilots)}<td class=n>{r.matching_idle_jobs}"
        for r in sorted(rows, key=lambda r: (-r.provisioning_bottleneck_units, r.site))
    ]
    legend = "".join(f"<i class={name}></i>{escape(text)}" for name, text in _LEGEND)
    return f"<h2>Sites</h2><p class=key>{legend}</p><table>{head}{''.join(lines)}</table>"


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
    return f"<h2>Sources</h2><table>{head}{''.join(lines)}</table>"


def _cell(value: int | None) -> str:
    return "?" if value is None else str(value)
