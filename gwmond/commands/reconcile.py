"""Compare the time of pilots with that of jobs and with the factory's own numbers, entry by entry.

The factory's pilot hours are those of the lines of completed_jobs that it wrote in the period,
gwmond's the part of pilots' lives within it. What they differ by is divided among causes; what no
cause explains is shown as unexplained. docs/reconcile.md explains each column.
"""

from __future__ import annotations

import argparse
import math

from gwmond.commands.common import (
    EXIT_FAILED,
    EXIT_OK,
    add_ledger_option,
    add_period,
    complain,
    now,
    opened,
    period_of,
    show,
)
from gwmond.config.settings import Config
from gwmond.model.factory.reconciliation import Reconciled
from gwmond.reports.reconcile import reconcile_document
from gwmond.reports.reconcile.reconcile import gather, unexplained_ratio
from gwmond.reports.render import writing
from gwmond.reports.render.periods import FORMS_HELP, rfc3339
from gwmond.service.host import log

_EPILOG = f"""\
examples:
  gwmond reconcile --from 7d                            each entry, and why it differs
  gwmond reconcile --from yesterday --to today --entry 'CMS_T2_*' --format csv
  gwmond reconcile --from 2d --max-unexplained 1        exit code 1 if more than 1 % is unexplained

The period is made wider until it begins and ends with an hour (UTC).
{FORMS_HELP}
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_period(parser)
    parser.add_argument(
        "--entry", default="*", metavar="PATTERN", help="only entries like this (with * and ?)"
    )
    writing.add_format(parser, "table", "json", "csv", "markdown")
    parser.add_argument(
        "--max-unexplained",
        type=_percent,
        metavar="PERCENT",
        help="exit with code 1 if a larger part of pilots' time (the larger of the factory's and "
        "gwmond's) is not explained, or if the factory reports nothing at all",
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
    """Reconcile; 1 when too much is unexplained; raises LedgerError."""
    log.quiet()
    now_us = now(config, arguments)
    period = period_of(arguments, now_us).whole_hours
    with opened(config, arguments, now_us) as (ledger, age):
        until_us = min(period.until_us, age.written_us or period.until_us)
        reconciled = gather(ledger, period, until_us, arguments.entry)
    if period.until_us > (age.written_us or 0):
        complain(age.warning)
    if reconciled.partial:
        complain(
            f"pilots that ended before {rfc3339(reconciled.pruned_us)} are no longer in the "
            "ledger: the period is reconciled in part"
        )
    show(reconcile_document.document(reconciled, age), arguments.format)
    return _verdict(reconciled.rows, arguments.max_unexplained)


def _verdict(rows: list[Reconciled], most: float | None) -> int:
    if most is None:
        return EXIT_OK
    ratio = unexplained_ratio(rows)
    if ratio is None:
        complain("no factory numbers for this period")
        return EXIT_FAILED
    if 100 * ratio > most:
        complain(f"{100 * ratio:.2f} % of pilots' time is unexplained, more than {most:g} %")
        return EXIT_FAILED
    return EXIT_OK
