"""Show the trace of one job or pilot as a waterfall: what it waited for, ran and transferred, when.

JOB is a GlobalJobId, schedd#cluster.proc, or cluster.proc.  PILOT is its number (see gwmond
pilots), the name of its startd, or a unique part of that name.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

from gwmond.commands.common import (
    EXIT_FAILED,
    EXIT_OK,
    add_ledger_option,
    complain,
    now,
    one_pilot,
    opened,
    show,
)
from gwmond.config.settings import Config
from gwmond.reports.pilots import waterfall
from gwmond.reports.pilots.traced import (
    SeveralJobs,
    Traced,
    find_job,
    names_job,
    trace_of_job,
    trace_of_pilot,
)
from gwmond.service.host import log

if TYPE_CHECKING:
    from gwmond.ledger.reading.reader import LedgerReader

_EPILOG = """\
examples:
  gwmond trace ap1.example.org#1234.0#1763769600
  gwmond trace 1234.0 --schedd ap1.example.org
  gwmond trace 4711                                      a pilot, by its number
  gwmond trace glidein_3344_123@wn42.example.org
  gwmond trace 1234.0 --format json | jq '.spans[] | {name, start, end, error}'
  gwmond trace 1234.0 --format otlp |
    curl -H 'Content-Type: application/json' -d @- http://localhost:4318/v1/traces

Traces are made from the ledger alone.  A span that is "not settled" may still change.
docs/traces.md says what each span and attribute is.
"""


def options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("id", metavar="JOB|PILOT", help="see above")
    parser.add_argument("--schedd", default="", metavar="NAME", help="the schedd of cluster.proc")
    parser.add_argument(
        "--format",
        choices=("table", "json", "otlp"),
        default="table",
        help="otlp: OpenTelemetry's JSON, which a backend takes; settled spans only",
    )
    parser.add_argument(
        "--width",
        type=int,
        metavar="COLUMNS",
        help="of the picture (default: the terminal's width)",
    )
    parser.add_argument(
        "--lines", type=int, default=waterfall.MOST, metavar="N", help="lines drawn at most (200)"
    )
    add_ledger_option(parser)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Show it; 1 when there is nothing of this name, or more than one; raises LedgerError."""
    log.quiet()
    now_us = now(config, arguments)
    with opened(config, arguments, now_us) as (ledger, age):
        traced = _traced(ledger, arguments, config.traces.join_at_most, age.written_us or now_us)
    if traced is None:
        return EXIT_FAILED
    if arguments.format == "otlp":
        from gwmond.traces.otlp import Encoder  # noqa: PLC0415 (protobuf takes long to load)

        loose = ("gwmond.settled", False)
        sys.stdout.write(
            Encoder().json(span for span in traced.spans if loose not in span.attributes) + "\n"
        )
        return EXIT_OK
    width = arguments.width or shutil.get_terminal_size((120, 24)).columns
    show(waterfall.document(traced, age, max(60, width), max(1, arguments.lines)), arguments.format)
    return EXIT_OK


def _traced(
    ledger: LedgerReader, arguments: argparse.Namespace, join_at_most: int, now_us: int
) -> Traced | None:
    """Return the trace that a person means, or say why there is none."""
    text = arguments.id
    if not names_job(text):
        row = one_pilot(ledger, text, "job or pilot")
        traced = None if row is None else trace_of_pilot(ledger, row, join_at_most, now_us)
        if traced is not None and not traced.spans:
            complain(f'of pilot "{text}" it is not known when it began, so it has no trace')
            return None
        return traced
    try:
        job = find_job(ledger, text, arguments.schedd)
    except SeveralJobs as several:
        complain(f"{several}. Give one of them, or --schedd")
        return None
    traced = trace_of_job(ledger, job, join_at_most, now_us) if job else None
    if traced is None:
        complain(
            f'no run of a job "{text}" in ledger {ledger.where}: there is no such job, it has not '
            "run yet, its records were not read yet, or retention took them out"
        )
    return traced
