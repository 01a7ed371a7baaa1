"""Check the ledger, show its size, compact it, export it.

The ledger is that of the configuration ([ledger] url), unless --ledger names another.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from gwmond.commands import backfilling
from gwmond.commands.common import EXIT_FAILED, EXIT_OK
from gwmond.config.settings import Config, ConfigError
from gwmond.ledger.errors import LedgerError
from gwmond.ledger.extras import install
from gwmond.ledger.reader import LedgerReader
from gwmond.ledger.stats import LedgerStats
from gwmond.ledger.store import Ledger
from gwmond.model.stored_pilots import PilotResidual
from gwmond.model.times import SECOND_US
from gwmond.reports import ledger_reading
from gwmond.reports.ledger_text import cursor_lines
from gwmond.service import log

if TYPE_CHECKING:
    from gwmond.ledger.parquet import Month

_WIDTH = 300  # on a narrow terminal lines wrap, which cuts nothing off
_PROVEN = {
    "hours": "each total is the sum of its hours (hours)",
    "pilots": "what is booked follows from the pilot's life (pilots)",
    "attempts": "what is booked for each attempt follows too (attempts)",
    "series": "totals are the sums over all pilots (series)",
    "site_canonical": "site time: each total is the sum of its hours (series)",
    "factory": "factories' own numbers: each total is the sum of its hours (hours)",
    "factory_jobs": "factories' jobs: what was told of each can be read, and is found (jobs)",
}
_EXPORT = (
    """\
Writes partitioned Parquet, a file a month: pilot_hours, site_hours, factory_hours, pilots and
attempts (the latter two by the month in which they began, UTC), factory_jobs (by the last
record of each). A month that is exported again is replaced, at once; one that retention has begun
to take out of the ledger is kept as it was exported before.
Amounts are exact as *_micros (int64, millionths of a unit-second), and *_seconds for the eye.
Attempts have the names of their users.

"""
    + backfilling.HELP
    + """
Examples:
  gwmond ledger export /data/gwmond --from 2026-10
  gwmond ledger export --format openmetrics --to 2026-11-20T10:00:00Z --output past.om
"""
)


def options(parser: argparse.ArgumentParser) -> None:
    """Add the commands of ``gwmond ledger``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, summary: str, description: str = "") -> argparse.ArgumentParser:
        action = actions.add_parser(
            name,
            help=summary,
            description=description or summary,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        # Given after the action as well; what is given before it stays when it is not.
        nothing = argparse.SUPPRESS
        action.add_argument("--config", type=Path, metavar="FILE", default=nothing)
        ledger_reading.add_ledger_option(action)
        return action

    forms = "table", "json"
    proof = add("check", "check that all time in the ledger sums up exactly; exit code 1 if not")
    proof.add_argument("--format", choices=forms, default="table")
    stats = add("stats", "show rows, bytes, hours, cursors and gaps")
    stats.add_argument("--format", choices=forms, default="table")
    stats.add_argument("--cursors", action="store_true", help="each cursor, not only each kind")
    add("vacuum", "give unused space back to the file system; stop the daemon first")
    _export_options(add("export", "write Parquet for DuckDB, or the past for Prometheus", _EXPORT))


def _export_options(export: argparse.ArgumentParser) -> None:
    export.add_argument(
        "directory", type=Path, nargs="?", metavar="DIR", help="where Parquet is written"
    )
    export.add_argument("--format", choices=("parquet", "openmetrics"), default="parquet")
    export.add_argument(
        "--from",
        dest="first",
        metavar="YYYY-MM|TIME",
        help="the first month; with --format openmetrics also a time, as of gwmond report",
    )
    export.add_argument(
        "--to", dest="last", metavar="YYYY-MM|TIME", help="the last month, or the end"
    )
    export.add_argument(
        "--output",
        metavar="FILE|-",
        help="with --format openmetrics: the file, which is replaced when all is written (-, the "
        "default: standard output)",
    )
    backfilling.add_options(export, "--format openmetrics")


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Run the action; 1 when the ledger cannot be used, or does not sum up."""
    log.quiet()
    url = arguments.ledger or config.ledger.url
    try:
        match arguments.action:
            case "check":
                return _check(url, config.canonical.memory_mib, arguments.format)
            case "stats":
                return _stats(url, arguments.format, arguments.cursors)
            case "vacuum":
                return _vacuum(url)
            case _ if arguments.format == "openmetrics":
                return _openmetrics(url, arguments)
            case _:
                return _export(url, arguments)
    except LedgerError as error:
        print(f"gwmond: {error}", file=sys.stderr)
        return EXIT_FAILED


# --- check ------------------------------------------------------------------------------------


def _check(url: str, memory_mib: int, form: str) -> int:
    with LedgerReader.open(url) as ledger, ledger_reading.progress() as report:
        found = ledger.check(report, memory_mib)
    if form == "json":
        rows = [
            {
                **pilot_difference._asdict(),
                "worst": [each._asdict() for each in pilot_difference.worst],
            }
            for pilot_difference in found
        ]
        json.dump(rows, sys.stdout, indent=2)
        print()
    else:
        _show_residuals(found)
    return EXIT_FAILED if any(pilot_difference.micros for pilot_difference in found) else EXIT_OK


def _show_residuals(found: tuple[PilotResidual, ...]) -> None:
    table = _table("what is proven", "checked", "in part", "residual, seconds")
    for pilot_difference in found:
        colour = "red" if pilot_difference.micros else "green"
        table.add_row(
            _PROVEN.get(pilot_difference.what, pilot_difference.what),
            f"{pilot_difference.checked}",
            f"{pilot_difference.skipped}",
            f"[{colour}]{_exact(pilot_difference.micros)}[/]",
        )
    console = Console(width=_WIDTH)
    console.print(table)
    for pilot_difference in found:
        for each in pilot_difference.worst:
            text = f"{pilot_difference.what}: {each.where}: off by {_exact(each.micros)} s"
            console.print(text, markup=False, highlight=False)
    if any(pilot_difference.micros for pilot_difference in found):
        console.print("\nThe ledger does not sum up. Keep a copy of it, and please report this.")
    else:
        console.print("\nAll sums up, to the last microsecond.")


def _exact(micros: int) -> str:
    """Return seconds with all their digits."""
    whole, rest = divmod(abs(micros), 1_000_000)
    return f"{'-' if micros < 0 else ''}{whole}.{rest:06}" if micros else "0"


# --- stats ------------------------------------------------------------------------------------


def _stats(url: str, form: str, each: bool) -> int:
    with LedgerReader.open(url) as ledger:
        found = ledger.stats()
    if form == "json":
        json.dump(_as_json(found), sys.stdout, indent=2)
        print()
        return EXIT_OK
    console = Console(width=_WIDTH)
    table = _table("table", "rows", "MiB with indexes")
    for table_stats in found.tables:
        size = "?" if table_stats.bytes is None else f"{table_stats.bytes / 2**20:.2f}"
        table.add_row(table_stats.table, f"{table_stats.rows}", size)
    console.print(table)
    spans = ("site time", found.site_hours), ("pilot time", found.pilot_hours)
    for name, (first, last) in (*spans, ("factory numbers", found.factory_hours)):
        if first is not None and last is not None:
            console.print(f"hours of {name}: {_hour(first)} to {_hour(last)}", highlight=False)
    if found.attempt_bytes is not None:
        console.print(f"bytes for each attempt: {found.attempt_bytes:.0f}")
    for line in cursor_lines(found.cursors, round(time.time() * SECOND_US), each):
        console.print(line, markup=False, highlight=False)
    for gap in found.gaps:
        start = "?" if gap.start_us is None else _time(gap.start_us)
        line = f"gap of {gap.source} {gap.kind}: {start} to {_time(gap.end_us)}: {gap.detail}"
        console.print(line, markup=False, highlight=False)
    return EXIT_OK


def _as_json(found: LedgerStats) -> dict[str, object]:
    now = time.time()
    return {
        "tables": [table._asdict() for table in found.tables],
        "site_hours": found.site_hours,
        "pilot_hours": found.pilot_hours,
        "factory_hours": found.factory_hours,
        "attempt_bytes": found.attempt_bytes,
        "cursors": [
            {
                **cursor._asdict(),
                "age_s": None
                if cursor.complete_us is None
                else max(0.0, round(now - cursor.complete_us / 1e6, 3)),
            }
            for cursor in found.cursors
        ],
        "gaps": [gap._asdict() for gap in found.gaps],
    }


def _hour(hour: int) -> str:
    return datetime.fromtimestamp(hour * 3600, UTC).strftime("%Y-%m-%d %H:00 UTC")


def _time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


# --- vacuum and export ------------------------------------------------------------------------


def _vacuum(url: str) -> int:
    LedgerReader.open(url).close()  # which does not make one where there is none
    with Ledger.open(url) as ledger:
        before = sum(table.bytes or 0 for table in ledger.stats().tables)
        ledger.vacuum()
        after = sum(table.bytes or 0 for table in ledger.stats().tables)
    print(f"{ledger.where}: {before / 2**20:.2f} MiB of tables before, {after / 2**20:.2f} now")
    return EXIT_OK


def _openmetrics(url: str, arguments: argparse.Namespace) -> int:
    if arguments.directory is not None:
        raise ConfigError("OpenMetrics is one file: --output FILE instead of DIR")
    backfilling.check(arguments)
    output = arguments.output or "-"
    if output != "-" and (why := backfilling.unwritable(output)):
        print(f"gwmond: cannot write {output}: {why}", file=sys.stderr)
        return EXIT_FAILED
    with LedgerReader.open(url) as ledger:
        return backfilling.write(ledger, arguments, output)


def _export(url: str, arguments: argparse.Namespace) -> int:
    if arguments.directory is None:
        raise ConfigError("Parquet needs a directory: gwmond ledger export DIR")
    if arguments.output is not None or arguments.label:
        raise ConfigError("--output and --label are for --format openmetrics")
    try:
        from gwmond.ledger import datasets, parquet  # noqa: PLC0415  (pyarrow is optional)
    except ImportError as error:
        print(
            f"gwmond: no Parquet can be written here ({error}). Install it: {install('parquet')}",
            file=sys.stderr,
        )
        return EXIT_FAILED
    months = parquet.Months(_month(arguments.first), _month(arguments.last))
    if months.first is not None and months.last is not None and months.first > months.last:
        raise ConfigError("the period is empty: --from is after --to")
    try:
        with LedgerReader.open(url) as ledger, ledger_reading.progress() as report:
            found = datasets.export(ledger, arguments.directory, months, report)
    except OSError as error:
        print(f"gwmond: cannot export to {arguments.directory}: {error}", file=sys.stderr)
        return EXIT_FAILED
    for exported in found:
        where = arguments.directory / exported.dataset
        print(f"{where}: {exported.rows} rows in {len(exported.files)} files")
        for path in exported.kept:
            print(f"{path}: kept, the ledger has no longer all of that month")
    return EXIT_OK


def _month(text: str | None) -> Month | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{4})-(0[1-9]|1[0-2])", text)
    if found is None:
        raise ConfigError(f'"{text}" is not a month such as 2026-01')
    return int(found[1]), int(found[2])


# --- both -------------------------------------------------------------------------------------


def _table(*headers: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for number, header in enumerate(headers):
        table.add_column(header, justify="right" if number else "left", no_wrap=True)
    return table
