"""Check the ledger, show its size, compact it, export it.

The ledger is that of the configuration ([ledger] url), unless --ledger names another.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from gwmond.commands import backfilling
from gwmond.commands.common import (
    EXIT_FAILED,
    EXIT_OK,
    add_ledger_option,
    complain,
    show,
)
from gwmond.config.settings import Config, ConfigError
from gwmond.ledger.database.errors import install_command
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows.stats import LedgerStats, TableStats
from gwmond.ledger.store import Ledger
from gwmond.model.pilots.stored_pilots import PilotResidual
from gwmond.model.times import HOUR_US, SECOND_US
from gwmond.reports.ledger import ledger_reading
from gwmond.reports.ledger.ledger_reading import cursor_lines
from gwmond.reports.render import writing
from gwmond.reports.render.document import Document, Paragraph, Part, TextLines
from gwmond.reports.render.formats import exact_seconds
from gwmond.reports.render.periods import short
from gwmond.reports.render.table import Cell, Column, table
from gwmond.service.host import log

_PROVEN = {
    "hours": "each total is the sum of its hours (hours)",
    "pilots": "what is posted follows from the pilot's life (pilots)",
    "runs": "what is posted for each run follows too (runs)",
    "series": "totals are the sums over all pilots (series)",
    "site_canonical": "site time: each total is the sum of its hours (series)",
    "factory": "factories' own numbers: each total is the sum of its hours (hours)",
    "factory_jobs": "factories' jobs: the facts of each can be read, and found by name (jobs)",
}
_EXPORT = (
    """\
Writes partitioned Parquet, a file a day (UTC): pilot_hours, site_hours, factory_hours, pilots and
runs (the latter two by the day on which they began), factory_jobs (by the last record of each).
A day that is exported again is replaced in one step. A day of which the ledger has begun to delete
rows (retention) stays as it was exported before. Several ledgers can be exported to one directory,
each with a --name of its own: docs/scale.md.
Amounts are exact as *_micros (int64, millionths of a unit-second); *_seconds are for people.
Runs have the names of their users.

"""
    + backfilling.HELP
    + """
Examples:
  gwmond ledger export /data/gwmond --name fe1 --from 7d
  gwmond ledger export --format openmetrics --to 2026-11-20T10:00:00Z --output past.om
"""
)


def options(parser: argparse.ArgumentParser) -> None:
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
        action.add_argument(
            "--config", type=Path, metavar="FILE", default=nothing, help="configuration file"
        )
        add_ledger_option(action)
        return action

    proof = add("check", "check that all time in the ledger sums up exactly; exit code 1 if not")
    writing.add_format(proof, "table", "json")
    stats = add("stats", "show rows, bytes, hours, cursors (how far each source was read) and gaps")
    writing.add_format(stats, "table", "json")
    stats.add_argument("--cursors", action="store_true", help="show each cursor, not each kind")
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
        help="a month's beginning, or a time as gwmond report takes it (default: all)",
    )
    export.add_argument(
        "--to", dest="last", metavar="YYYY-MM|TIME", help="a month's end, or a time"
    )
    export.add_argument(
        "--name",
        default="gwmond",
        help="what this ledger is called in DIR, beside others (%(default)s)",
    )
    export.add_argument(
        "--output",
        metavar="FILE|-",
        help="with --format openmetrics: the file, which is replaced when all is written (-, the "
        "default: standard output)",
    )
    backfilling.add_options(export, "--format openmetrics")


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Run the action; 1 when the ledger does not sum up; raises LedgerError."""
    log.quiet()
    url = arguments.ledger or config.ledger.url
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


# --- check ------------------------------------------------------------------------------------


def _check(url: str, memory_mib: int, form: str) -> int:
    with LedgerReader.open(url) as ledger, ledger_reading.progress() as report:
        residuals = ledger.check(report, memory_mib)

    def record() -> list[dict[str, object]]:
        return [
            {**residual._asdict(), "worst": [worst._asdict() for worst in residual.worst]}
            for residual in residuals
        ]

    show(Document(lambda: _proof(residuals), record), form)
    return EXIT_FAILED if any(residual.micros for residual in residuals) else EXIT_OK


_RESIDUALS: tuple[Column[PilotResidual], ...] = (
    Column("what is proven", lambda r: _PROVEN.get(r.what, r.what), name=True, wrap=40),
    Column("checked", lambda residual: str(residual.checked)),
    Column("in part", lambda residual: str(residual.skipped)),
    Column(
        "residual, seconds", lambda r: Cell(exact_seconds(r.micros), "red" if r.micros else "green")
    ),
)


def _proof(residuals: tuple[PilotResidual, ...]) -> Iterator[Part]:
    yield table("", _RESIDUALS, residuals)
    yield from (
        Paragraph(f"{residual.what}: {worst.where}: off by {exact_seconds(worst.micros)} s")
        for residual in residuals
        for worst in residual.worst
    )
    if any(residual.micros for residual in residuals):
        yield Paragraph(
            "The ledger does not sum up. Keep a copy of it, and please report this.", "heading"
        )
    else:
        yield Paragraph("All sums up, to the last microsecond.", "heading")


# --- stats ------------------------------------------------------------------------------------


def _stats(url: str, form: str, each: bool) -> int:
    with LedgerReader.open(url) as ledger:
        stats = ledger.stats()
    show(Document(lambda: _statistics(stats, each), lambda: _as_json(stats)), form)
    return EXIT_OK


_TABLES: tuple[Column[TableStats], ...] = (
    Column("table", lambda stats: stats.table, name=True),
    Column("rows", lambda stats: str(stats.rows)),
    Column("MiB with indexes", lambda s: "?" if s.bytes is None else f"{s.bytes / 2**20:.2f}"),
)


def _statistics(stats: LedgerStats, each: bool) -> Iterator[Part]:
    yield table("", _TABLES, stats.tables)
    spans = ("site time", stats.site_hours), ("pilot time", stats.pilot_hours)
    lines = [
        f"hours of {name}: {short(first * HOUR_US)[:16]} UTC to {short(last * HOUR_US)[:16]} UTC"
        for name, (first, last) in (*spans, ("factory numbers", stats.factory_hours))
        if first is not None and last is not None
    ]
    if stats.run_bytes is not None:
        lines.append(f"bytes for each run: {stats.run_bytes:.0f}")
    lines += cursor_lines(stats.cursors, round(time.time() * SECOND_US), each)
    for gap in stats.gaps:
        start = "?" if gap.start_us is None else f"{short(gap.start_us)} UTC"
        lines.append(
            f"gap of {gap.source} {gap.kind}: {start} to {short(gap.end_us)} UTC: {gap.detail}"
        )
    yield TextLines("", lines)


def _as_json(stats: LedgerStats) -> dict[str, object]:
    now = time.time()
    return {
        "tables": [table._asdict() for table in stats.tables],
        "site_hours": stats.site_hours,
        "pilot_hours": stats.pilot_hours,
        "factory_hours": stats.factory_hours,
        "run_bytes": stats.run_bytes,
        "cursors": [
            {
                **cursor._asdict(),
                "age_s": None
                if cursor.complete_us is None
                else max(0.0, round(now - cursor.complete_us / 1e6, 3)),
            }
            for cursor in stats.cursors
        ],
        "gaps": [gap._asdict() for gap in stats.gaps],
    }


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
        complain(f"cannot write {output}: {why}")
        return EXIT_FAILED
    with LedgerReader.open(url) as ledger:
        return backfilling.write(ledger, arguments, output)


def _export(url: str, arguments: argparse.Namespace) -> int:
    if arguments.directory is None:
        raise ConfigError("Parquet needs a directory: gwmond ledger export DIR")
    if arguments.output is not None or arguments.label:
        raise ConfigError("--output and --label are for --format openmetrics")
    try:
        from gwmond.ledger.export import datasets, parquet  # noqa: PLC0415  (pyarrow is optional)
    except ImportError as error:
        complain(
            f"no Parquet can be written here ({error}). Install it: {install_command('parquet')}"
        )
        return EXIT_FAILED
    target = parquet.Target(arguments.directory, arguments.name)
    days = parquet.whole_days(backfilling.period(arguments))
    try:
        with LedgerReader.open(url) as ledger, ledger_reading.progress() as report:
            exports = datasets.export(ledger, target, days, report)
    except OSError as error:
        complain(f"cannot export to {arguments.directory}: {error}")
        return EXIT_FAILED
    except ValueError as error:
        raise ConfigError(str(error)) from None
    for exported in exports:
        where = arguments.directory / exported.dataset
        print(f"{where}: {exported.rows} rows in {len(exported.files)} files")
        for path in exported.kept:
            print(f"{path}: kept, the ledger has no longer all of that day")
    return EXIT_OK
