"""Report where pilots' time went: hours, shares, efficiency, by site, user, day and more.

Both measures (resource and canonical time), CPUs and GPUs; as a table, CSV, JSON, Markdown, or
one HTML file with plots, to be mailed or printed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from gwmond.commands.common import EXIT_FAILED, EXIT_OK
from gwmond.config.settings import Config, ConfigError
from gwmond.ledger.errors import LedgerError
from gwmond.ledger.reader import LedgerReader
from gwmond.model.digits import is_number
from gwmond.model.times import SECOND_US
from gwmond.reports import analyze_report
from gwmond.reports.analyze_report import STYLES, Asked, asked
from gwmond.reports.failures import MOST
from gwmond.reports.ledger_reading import Age, add_ledger_option, age_of
from gwmond.reports.ledger_text import nothing, unknown
from gwmond.reports.open_runs import open_runs
from gwmond.reports.periods import FORMS_HELP, parse_period
from gwmond.reports.report import BYS, Report, Scope, parse_by
from gwmond.reports.report_gather import gather
from gwmond.reports.report_html import html
from gwmond.reports.report_markdown import markdown
from gwmond.reports.report_records import DEFINITIONS, notes, report_json, write_csv
from gwmond.reports.report_sections import period, sections, title
from gwmond.reports.table_text import Grid, room, show, tell
from gwmond.service import log
from gwmond.service.waiting_periods import later_us, rules

_EPILOG = f"""\
examples:
  gwmond report                                      the last 24 hours, by site
  gwmond report --from 7d --by entry                 with the figures of analyze_entries
  gwmond report --from 2026-01-01 --to 2026-02-01 --by user --format csv --output january.csv
  gwmond report --from 30d --by site,day --format html --output month.html
  gwmond report --from 7d --by failure,entry         why validations failed, and where
  gwmond report --from 7d --failures                 first these by class and test, then where
  gwmond report --from 7d --failures --entry X --limit 0      at all nodes of an entry
  gwmond report --from 2d --by hour --site T2_US_Demo
  gwmond report --style analyze-entries --sort waste          in the layout of GlideinWMS's tools
  gwmond report --style analyze-entries --compare --entry X   and what these would print
  gwmond report --style analyze-frontends --by group          frontends, without their entries

what is counted:
  by site, entry, group, category, outcome, hour, day: all time spent in the period. The ledger
    has it by the hour, so the period is made wider until it begins and ends with an hour (UTC).
  by user: the runs of jobs that ENDED in the period, each with its whole length. Time of pilots
    without jobs belongs to no user and is left out.
  by factory, node, failure (of the validation): the pilots that ENDED in the period, each with its
    whole life (with user, category or outcome besides: the runs that ended in it).
  Whatever ended counts in exactly one period, so reports of adjacent periods sum up. Numbers of
  pilots and runs are always of those that ended in the period.

what is shown (shares are of settled time):
  efficiency     {DEFINITIONS["efficiency"]}
  utilization    the share of time in which jobs ran, whatever became of them:
                 (total - overhead - decision problem - validation fails) / total
  estimated      the share that rests on an estimate
  settled        settled / (settled + not settled): what is missing is not known yet
  decision problem   pilots that never ran a job
  runs open      of the runs that ended, how many are not settled yet
  bottleneck, no demand   by site or entry: spare capacity of the sites for which jobs waited, or
                 not, in canonical hours
  columns of analyze_entries are of pilots that ended, in core-hours of their whole lives:
    strt, 0job   pilots in which HTCondor never started, that never ran a job; each in % of the
                 pilots of which that is known
    fval         time of pilots whose validation failed; in % of time, as those that follow
    idle         other time without jobs: overhead, validation that passed, pilots without jobs
    unkn         time about which nothing is known (fval + idle + unkn = wst)
    wst, badp    all time without jobs; all time but that of runs that exited 0
    job h        wall-clock hours of a run, on average
    used / total its efficiency: time in which jobs ran / all time (that above is goodput / time)
    jobs: n/k    pilots with an unknown number of jobs (5+n/k: 5 on the others)
    ~            rests on pilots whose jobs are known from statistics only

--style prints what GlideinWMS's tools of that name print, in their layout, from records: each pilot
that ended in the period with its whole life, in wall-clock time of pilots (analyze-entries), or
means over time of what clients and the factory advertised (analyze-frontends). In analyze-entries
"time validating" and val are the time until validation ended, of all pilots; fval is that of pilots
whose validation failed, as above. docs/analyze.md has each line's definition, and how the original
differs. Where the originals have options:
  -x HOURS: --from HOURSh; -f FRONTEND: --group; -s: --sort; -m: --by group (in slots);
  --compare has below each line what the original prints of the same after its roundings.
  analyze-entries takes the period as it is, not whole hours.

{FORMS_HELP}
"""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gwmond report``."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "--from", dest="since", metavar="TIME", help="beginning (default: 24 h before the end)"
    )
    parser.add_argument("--to", dest="until", metavar="TIME", help="end (default: now)")
    parser.add_argument(
        "--by",
        metavar="WHAT",
        help=f"one or two, with a comma: {', '.join(BYS)} (default: site; of a style: entry or "
        "group, default entry)",
    )
    parser.add_argument("--style", choices=STYLES, help="another layout than gwmond's own")
    parser.add_argument(
        "--sort", metavar="COLUMN", help="of a style: the largest of this column first"
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="of a style: below each line what the original would print",
    )
    parser.add_argument("--site", help="only this site")
    parser.add_argument("--entry", help="only this entry")
    parser.add_argument("--group", help="only pilots of this group")
    parser.add_argument(
        "--hours-only",
        action="store_true",
        help="fast also for long periods: no numbers of pilots and runs, and no figures of "
        "analyze_entries (not with user, factory, node, failure)",
    )
    parser.add_argument(
        "--failures",
        action="store_true",
        help="first failed validations: by class and test, then also for each entry and node, "
        "where most pilots failed first (csv: all lines of the latter, and only these)",
    )
    parser.add_argument(
        "--limit",
        type=_limit,
        metavar="N",
        help=f"of --failures: lines by entry and node (default {MOST}; 0: all; csv, json: all)",
    )
    parser.add_argument(
        "--format", choices=("table", "csv", "json", "markdown", "html"), default="table"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="instead of standard output")
    add_ledger_option(parser)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Report; 1 when there is no ledger that can be read, or the file cannot be written."""
    log.quiet()
    if arguments.limit is not None and not arguments.failures:
        raise ConfigError("--limit is for --failures")
    now_us = round(time.time() * SECOND_US)
    scope = _scope(arguments, now_us) if arguments.style is None else _asked(arguments, now_us)
    terminal = arguments.output is None and sys.stdout.isatty()
    why = ""
    try:
        with LedgerReader.open(arguments.ledger or config.ledger.url) as ledger:
            age = age_of(ledger, now_us, config.poll.interval)
            if isinstance(scope, Asked):
                told = analyze_report.tell(ledger, scope)
                text = told.written(age, arguments.format, room(terminal=terminal))
                empty = told.empty
            else:
                q = config.canonical.memory_mib
                counted, failures = not arguments.hours_only, arguments.failures
                report = gather(ledger, scope, q, counted=counted, failures=failures)
                places = arguments.site, arguments.entry, arguments.group
                later = later_us(config)
                found = open_runs(ledger, rules(config), later, places, scope.period)
                report = report._replace(waits=found)
                if arguments.limit is not None:
                    report = report._replace(most=arguments.limit)
                text = _text(report, age, arguments.format, terminal=terminal)
                empty = not report.groups
            if empty:
                places = arguments.site, arguments.entry, arguments.group
                ads = (
                    isinstance(scope, Asked) and scope.style == "analyze-frontends"
                )  # not of pilots
                cause = unknown(ledger, places) if ads else nothing(ledger, places)
                why = cause and f"nothing in this period: {cause}"
    except LedgerError as error:
        print(f"gwmond: {error}", file=sys.stderr)
        return EXIT_FAILED
    if age.warning and scope.period.until_us > (age.written_us or 0):
        print(f"gwmond: {age.warning}", file=sys.stderr)
    if why:
        print(f"gwmond: {why}", file=sys.stderr)
    if arguments.output is None:
        sys.stdout.write(text)
        return EXIT_OK
    try:
        _write(arguments.output, text)
    except OSError as error:
        print(f"gwmond: cannot write {arguments.output}: {error.strerror}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _asked(arguments: argparse.Namespace, now_us: int) -> Asked:
    """Return what a style is asked for."""
    if arguments.failures:
        raise ConfigError("--failures: not with --style")
    if arguments.format == "html" or arguments.hours_only:
        option = "--hours-only" if arguments.hours_only else "--format html"
        told = ", ".join(analyze_report.FORMS)
        raise ConfigError(f"{option}: not with --style, whose formats are {told}")
    try:
        period = parse_period(arguments.since, arguments.until, now_us)
        places = arguments.site, arguments.entry, arguments.group
        question = Asked(arguments.style, period, *places, True, arguments.sort, arguments.compare)
        return asked(question, arguments.by)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _limit(text: str) -> int:
    """Return a number of lines; 0: all."""
    if not is_number(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines, 0 or more")
    return int(text)


def _scope(arguments: argparse.Namespace, now_us: int) -> Scope:
    if arguments.sort is not None or arguments.compare:
        option = "--compare" if arguments.compare else "--sort"
        raise ConfigError(f"{option} is for --style {' or '.join(STYLES)}")
    try:
        by = parse_by(arguments.by or "site")
        asked = parse_period(arguments.since, arguments.until, now_us)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    places = arguments.site, arguments.entry, arguments.group
    scope = Scope(asked.whole_hours, by, *places)
    if arguments.hours_only and scope.basis != "time_spent":
        raise ConfigError(f"--hours-only: hours are not known by {', '.join(by)}")
    return scope


def _text(report: Report, age: Age, form: str, *, terminal: bool) -> str:
    into = io.StringIO()
    match form:
        case "csv":
            write_csv(report, into)
        case "json":
            json.dump(report_json(report, age), into, indent=2)
            into.write("\n")
        case "markdown":
            into.write(markdown(report, age))
        case "html":
            into.write(html(report, age))
        case _:
            _show(report, age, into, terminal=terminal)
    return into.getvalue()


def _show(report: Report, age: Age, into: io.StringIO, *, terminal: bool) -> None:
    console = Console(file=into, width=room(terminal=terminal), force_terminal=terminal)
    tell(console, title(report), "bold")
    tell(console, period(report))
    tell(console, age.told)
    for note in notes(report):
        tell(console, note, "bright_black")
    if not report.groups:
        tell(console, "\nNothing was settled in this period. See gwmond report --help: --from")
        return
    for section in sections(report):
        tell(console, f"\n{section.title}", "bold")
        if section.note:
            tell(console, section.note, "bright_black")
        grid = section.headers, section.rows, section.names, section.total
        show(console, Grid(*grid, heads=section.heads))
    figures = report.total.figures
    if figures is not None and report.counted:
        tell(console, "\nAll pilots that ended in the period", "bold")
        for line in figures.block(report.scope.period.length_us):
            tell(console, line)


def _write(path: Path, text: str) -> None:
    """Write a file at once, so that whoever serves it never sees a half."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
