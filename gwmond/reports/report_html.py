"""A report as one HTML file: no scripts, nothing fetched, for light and dark screens and paper.

Whatever comes from a pool is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gwmond import __version__
from gwmond.reports.category_time import Kind, hours, words
from gwmond.reports.ledger_reading import Age
from gwmond.reports.periods import short
from gwmond.reports.report import STEPS, Group, Report
from gwmond.reports.report_records import DEFINITIONS, notes
from gwmond.reports.report_sections import Section, label, period, sections, title
from gwmond.reports.report_svg import STACK, Bar, bars, series

_MOST = 25
_ROOMY = 20
"""A table of more columns is set in small type, with shares below what they are shares of."""
_STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --text: #1b1f24; --soft: #59636e;
  --line: #d5dae0; --stripe: #f5f7f9; --goodput: #009e73; --pilot_overhead: #56b4e9;
  --decision_problem: #0072b2; --validation_fails: #cc79a7; --misconfiguration_badput: #d55e00;
  --preemption_badput: #e69f00; --unclassified: #999999; }
@media screen and (prefers-color-scheme: dark) { :root { --page: #14171a; --text: #e6e9ec;
  --soft: #9aa4ae; --line: #363c43; --stripe: #1c2024; --goodput: #1fb58a;
  --decision_problem: #2c72b8; --misconfiguration_badput: #e8702a; --unclassified: #85898d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1.5rem 1rem; background: var(--page);
  color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .3rem 0; } .soft, dd { color: var(--soft); } .warn { font-weight: 600; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--text); font-size: 12px; } svg .tick, svg .value { fill: var(--soft); }
svg .grid { stroke: var(--line); } svg rect { stroke: var(--page); stroke-width: .6; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; padding: 0; }
.legend i { display: inline-block; width: .9em; height: .9em; margin-right: .4em;
  vertical-align: -.1em; border-radius: 2px; }
.wide { overflow-x: auto; } .wide:focus { outline: 2px solid var(--decision_problem); }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .4rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th, td.name { white-space: normal; overflow-wrap: anywhere; } th { vertical-align: bottom; }
td.name { min-width: 6em; } .dense { font-size: 11px; }
.dense th, .dense td { padding: .2rem .14rem; }
th.name, td.name { text-align: left; } tbody tr:nth-child(even) { background: var(--stripe); }
tfoot td { font-weight: 600; } dt { font-weight: 600; } dd { margin: 0 0 .5rem; }
pre { font-size: 13px; overflow-x: auto; }
@media print { :root { color-scheme: light; } body { max-width: none; padding: 0; font-size: 11px; }
  .wide { overflow: visible; } table, .dense { font-size: 7px; } th, td { padding: 1px 3px; }
  thead { display: table-header-group; } tr, svg, pre { break-inside: avoid; }
  h2 { break-after: avoid; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
@page { size: A4 landscape; margin: 12mm; }
"""


def html(report: Report, age: Age) -> str:
    """Return the file."""
    head = escape(title(report))
    told = [period(report), age.told]
    parts = [
        f"<h1>{head}</h1>",
        *(f'<p class="soft">{escape(text)}</p>' for text in told),
        f'<p class="warn">{escape(age.warning)}</p>' if age.warning else "",
        *(f"<p>{escape(text)}</p>" for text in notes(report)),
        _legend(),
        *_plots(report),
        *(table(section) for section in sections(report)),
        *_block(report),
        "<h2>Definitions</h2><dl>",
        *(
            f"<dt>{escape(words(name))}</dt><dd>{escape(text)}</dd>"
            for name, text in DEFINITIONS.items()
        ),
        f'</dl><p class="soft">gwmond {escape(__version__)}</p>',
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{head}, {escape(period(report))}</title><style>{_STYLE}{_colours()}</style></head>"
        "<body>\n" + "\n".join(part for part in parts if part) + "\n</body></html>\n"
    )


def _colours() -> str:
    rules = (
        f".c-{category} {{ fill: var(--{category}); background: var(--{category}); }}"
        for category in STACK
    )
    return "\n".join(rules)


def _legend() -> str:
    items = (
        f'<li><i class="c-{category}"></i>{escape(words(category))}</li>' for category in STACK
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _plots(report: Report) -> list[str]:
    made = []
    for resource, unit in (("cpu", "canonical hours of CPUs"), ("gpu", "chip-hours of GPUs")):
        kind = next((kind for kind in report.kinds if kind == (resource, "canonical")), None)
        if kind is None:
            continue
        steps = _steps(report)
        if steps:
            step = report.scope.step_us
            name = "hour" if step == STEPS["hour"] else "day" if step == STEPS["day"] else "week"
            at = "" if report.scope.basis == "time_spent" else " in which they ended"
            told = f"{name}{at}: {unit}"
            made.append(_figure(f"By {told}", series(steps, kind, told)))
        if report.groups and not set(report.scope.by) <= set(STEPS):
            largest, others = _largest(report, kind)
            by = " and ".join(report.scope.by)
            more = f" (the {len(largest)} largest)" if others else ""
            drawn = bars(largest, kind, f"{unit} by {by}") + _together(others, kind)
            made.append(_figure(f"By {by}: {unit}{more}", drawn))
    return made


def _steps(report: Report) -> list[Bar]:
    """Return all steps of the period, those without time too."""
    step, (since, until) = report.scope.step_us, report.scope.period
    hourly = step == STEPS["hour"]
    starts = range(since // step * step, until, step)
    from_text = [_when(start, hourly=hourly) for start in starts]
    groups = (report.series.get(start, Group()) for start in starts)
    return [Bar(*values) for values in zip(from_text, groups, strict=True)] if report.series else []


def _when(time_us: int, *, hourly: bool) -> str:
    return short(time_us)[5:16] if hourly else short(time_us)[:10]


def _largest(report: Report, kind: Kind) -> tuple[list[Bar], list[Bar]]:
    """Return the largest groups, and the others where there are many.

    The largest is first, unless the report is in an order of its own: of time, of categories.
    """
    every = [Bar(" / ".join(label(report, key)), group) for key, group in report.ordered]
    every = [bar for bar in every if bar.group.total(kind)]
    by_size = sorted(every, key=lambda bar: -bar.group.total(kind))
    kept = {id(bar) for bar in by_size[:_MOST]}
    in_order = every if report.scope.by[0] in {*STEPS, "category"} else by_size
    return [bar for bar in in_order if id(bar) in kept], by_size[_MOST:]


def _together(others: Sequence[Bar], kind: Kind) -> str:
    """Return what is said of groups that have no bar: one of all would dwarf the largest."""
    if not others:
        return ""
    total = hours(sum(bar.group.total(kind) for bar in others))
    return f'<p class="soft">{len(others)} others: {total} h together</p>'


def _figure(heading: str, drawn: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>{drawn}</section>"


def table(section: Section) -> str:
    dense = len(section.headers) > _ROOMY

    def row(cells: Sequence[str], tag: str) -> str:
        made: list[tuple[int, str]] = []
        for number, (header, cell) in enumerate(zip(section.headers, cells, strict=True)):
            if dense and header == "%":
                place, hours_of = made.pop()
                made.append((place, f"{hours_of}<br>{escape(cell)}"))
            else:
                made.append((number, escape(cell)))
        name = ' class="name"'
        inner = (f"<{tag}{name if n < section.names else ''}>{c}</{tag}>" for n, c in made)
        return f"<tr>{''.join(inner)}</tr>"

    note = f"<p>{escape(section.note)}</p>" if section.note else ""
    kind = ' class="dense"' if dense else ""
    body = "".join(row(cells, "td") for cells in section.rows)
    return (
        f"<section><h2>{escape(section.title)}</h2>{note}"
        f'<div class="wide" tabindex="0"><table{kind}>'
        f"<thead>{row(section.headers, 'th')}</thead><tbody>{body}</tbody>"
        f"<tfoot>{row(section.total, 'td')}</tfoot></table></div></section>"
    )


def _block(report: Report) -> list[str]:
    figures = report.total.figures
    if figures is None or not report.counted:
        return []
    lines = "\n".join(escape(line) for line in figures.block(report.scope.period.length_us))
    return [f"<section><h2>All pilots that ended in the period</h2><pre>{lines}</pre></section>"]
