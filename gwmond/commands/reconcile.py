"""Compare the time of pilots with that of jobs and with the factory's own numbers, entry by entry.

The factory's pilot hours are those of the lines of completed_jobs that it wrote in the period,
gwmond's the part of pilots' lives within it. What they differ by is divided among causes; what no
cause explains is shown as unexplained. docs/reconcile.md explains each column.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import sys
import time

from rich.console import Console

from gwmond.commands.common import EXIT_FAILED, EXIT_OK
from gwmond.config.settings import Config, ConfigError
from gwmond.ledger.errors import LedgerError
from gwmond.ledger.reader import LedgerReader
from gwmond.model.reconciliation import Reconciled, Reconciliation
from gwmond.model.times import SECOND_US, Period
from gwmond.reports import csv_text
from gwmond.reports.ledger_reading import Age, add_ledger_option, age_of
from gwmond.reports.periods import FORMS_HELP, both, parse_period, rfc3339
from gwmond.reports.reconcile import unexplained_ratio
from gwmond.reports.reconcile_gather import gather
from gwmond.reports.reconcile_tables import explanations, record, tables
from gwmond.reports.report_markdown import escape
from gwmond.reports.table_text import Grid, empty, not_shown, room, show, tell
from gwmond.service import log

_EPILOG = f"""\
examples:
  gwmond reconcile --from 7d                            each entry, and why it differs
  gwmond reconcile --from yesterday --to today --entry 'CMS_T2_*' --format csv
  gwmond reconcile --from 2d --max-unexplained 1        exit code 1 if more than 1 % is unexplained

The period is made wider until it begins and ends with an hour (UTC).
{FORMS_HELP}
"""
_LEFT_OUT = {"not settled", "shared", "unexplained h", "unexplained %"}
"""Columns that are not shown where all of them is 0."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gwmond reconcile``."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "--from", dest="since", metavar="TIME", help="beginning (default: 24 h before the end)"
    )
    parser.add_argument("--to", dest="until", metavar="TIME", help="end (default: now)")
    parser.add_argument(
        "--entry", default="*", metavar="PATTERN", help="only entries like this (with * and ?)"
    )
    parser.add_argument("--format", choices=("table", "json", "csv", "markdown"), default="table")
    parser.add_argument(
        "--max-unexplained",
        type=_percent,
        metavar="PERCENT",
        help="exit with code 1 if a larger part of pilots' time (the larger of the factory's and "
        "gwmond's) is not explained, or if the factory tells nothing at all",
    )
    add_ledger_option(parser)


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of per cent, such as 1 or 0.5")
    return value


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Reconcile; 1 when there is no ledger that can be read, or too much is unexplained."""
    log.quiet()
    now_us = round(time.time() * SECOND_US)
    period = _period(arguments, now_us)
    try:
        with LedgerReader.open(arguments.ledger or config.ledger.url) as ledger:
            age = age_of(ledger, now_us, config.poll.interval)
            until_us = min(period.until_us, age.written_us or period.until_us)
            found = gather(ledger, period, until_us, arguments.entry)
    except LedgerError as error:
        print(f"gwmond: {error}", file=sys.stderr)
        return EXIT_FAILED
    if age.warning and period.until_us > (age.written_us or 0):
        print(f"gwmond: {age.warning}", file=sys.stderr)
    if found.partial:
        print(
            f"gwmond: pilots that ended before {rfc3339(found.pruned_us)} are no longer in the "
            "ledger: the period is reconciled in part",
            file=sys.stderr,
        )
    sys.stdout.write(_text(found, age, arguments.format))
    return _verdict(found.rows, arguments.max_unexplained)


def _period(arguments: argparse.Namespace, now_us: int) -> Period:
    try:
        return parse_period(arguments.since, arguments.until, now_us).whole_hours
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _verdict(rows: list[Reconciled], most: float | None) -> int:
    if most is None:
        return EXIT_OK
    ratio = unexplained_ratio(rows)
    if ratio is None:
        print("gwmond: no factory numbers for this period", file=sys.stderr)
        return EXIT_FAILED
    if 100 * ratio > most:
        print(
            f"gwmond: {100 * ratio:.2f} % of pilots' time is unexplained, more than {most:g} %",
            file=sys.stderr,
        )
        return EXIT_FAILED
    return EXIT_OK


def _text(found: Reconciliation, age: Age, form: str) -> str:
    into = io.StringIO()
    records = [record(row) for row in found.rows]
    match form:
        case "json":
            since, until = found.period
            head = {**age.as_json(), "period": {**both("from", since), **both("to", until)}}
            ratio = unexplained_ratio(found.rows)
            json.dump({**head, "unexplained_ratio": ratio, "entries": records}, into, indent=2)
            into.write("\n")
        case "csv":
            names = list(record(Reconciled("")))
            csv_text.write(into, names, ([row[name] for name in names] for row in records))
        case "markdown":
            _markdown(found, age, into)
        case _:
            _show(found, age, into)
    return into.getvalue()


def _title(found: Reconciliation) -> str:
    since, until = found.period
    return f"Pilots, jobs and the factory's numbers: {rfc3339(since)} to {rfc3339(until)}"


def _show(found: Reconciliation, age: Age, into: io.StringIO) -> None:
    console = Console(file=into, width=room(), force_terminal=sys.stdout.isatty())
    tell(console, _title(found), "bold")
    tell(console, age.told)
    if not found.rows:
        tell(console, "\nNothing is known of this period. See gwmond reconcile --help: --from")
    for each in tables(found.rows) if found.rows else ():
        tell(console, f"\n{each.title}", "bold")
        unknown = empty(each.headers, each.rows, each.headers[1:], {"-"})
        zero = empty(each.headers, each.rows, _LEFT_OUT, {"0.00", "0.0"})
        kept = [at for at in range(len(each.headers)) if at not in {*unknown, *zero}]
        rows = [[row[at] for at in kept] for row in each.rows]
        show(console, Grid([each.headers[at] for at in kept], rows))
        for note in (
            not_shown(each.headers, zero),
            not_shown(each.headers, unknown, "nobody told of it"),
            each.note,
        ):
            if note:
                tell(console, note, "bright_black")
    for number, line in enumerate(explanations(found.rows)):
        tell(console, line if number else f"\n{line}")


def _markdown(found: Reconciliation, age: Age, into: io.StringIO) -> None:
    into.write(f"# {escape(_title(found))}\n\n{escape(age.told)}\n")
    for each in tables(found.rows):
        lines = [each.headers, ("---", *["---:"] * (len(each.headers) - 1))]
        into.write(f"\n## {escape(each.title)}\n\n")
        for index, cells in enumerate([*lines, *each.rows]):
            told = cells if index == 1 else tuple(map(escape, cells))
            into.write(f"| {' | '.join(told)} |\n")
        if each.note:
            into.write(f"\n{escape(each.note)}\n")
    into.write("\n")
    into.writelines(f"- {escape(line)}\n" for line in explanations(found.rows))
