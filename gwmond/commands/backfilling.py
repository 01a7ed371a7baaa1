"""What ``ledger export`` and ``import`` have in common: writing the past for Prometheus."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from gwmond.commands.common import EXIT_FAILED, EXIT_OK, complain, replacing
from gwmond.config.settings import ConfigError
from gwmond.ledger.reading import hourly
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.metrics import backfill
from gwmond.metrics.backfill import Hours, Written
from gwmond.model.times import HOUR_US, SECOND_US, Period
from gwmond.reports.ledger import ledger_reading
from gwmond.reports.ledger.ledger_reading import NOTHING_YET
from gwmond.reports.render.periods import LATEST_US, parse_time, rfc3339, to_us

HELP = """\
OpenMetrics has the counters of pilot time, runs, pilots and site time as they would have stood at
each full hour, with timestamps, for "promtool tsdb create-blocks-from openmetrics FILE DIR". It
ends at the daemon's first poll: what Prometheus has scraped must not be there a second time.
--to names another end, such as when Prometheus first scraped. Give the labels that Prometheus adds
to what it scrapes with --label, and both are one series. docs/backfill.md has all steps.
"""


def add_options(group: argparse._ActionsContainer, option: str) -> None:
    """Add what OpenMetrics needs; ``option`` asks for it."""
    group.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"with {option}: a further label of all series, such as job=gwmond and "
        "instance=127.0.0.1:9818; may be given several times",
    )


def check(arguments: argparse.Namespace) -> None:
    """Raise ConfigError for options that make no sense, before any work is done."""
    backfill.parse_labels(arguments.label)
    period(arguments)


def period(arguments: argparse.Namespace) -> Period:
    """Return from when to when; raise ConfigError where that is empty, or yet to come."""
    since_us, until_us = _time(arguments.first, end=False), _time(arguments.last, end=True)
    if since_us is not None and until_us is not None and since_us >= until_us:
        raise ConfigError("the period is empty: --from is not before --to")
    if since_us is not None and since_us >= time.time() * SECOND_US:
        raise ConfigError(f"the period is empty: --from {arguments.first} is yet to come")
    return Period(since_us or 0, LATEST_US if until_us is None else until_us)


def unwritable(output: str) -> str:
    """Return why a file cannot be written, before any work is done; empty if it seems to be."""
    path = Path(output)
    if not path.parent.is_dir():
        return f"{path.parent} is no directory"
    if path.is_dir():
        return "it is a directory"
    return "" if os.access(path.parent, os.W_OK | os.X_OK) else f"no right to, in {path.parent}"


def write(reader: LedgerReader, arguments: argparse.Namespace, output: str) -> int:
    """Write to a file, or to standard output ("-"), and say what; returns an exit code.

    Raises LedgerError, and ConfigError for the options.
    """
    labels = backfill.parse_labels(arguments.label)
    now_us = round(time.time() * SECOND_US)
    since_us, until_us = _time(arguments.first, end=False), _time(arguments.last, end=True)
    reach = hourly.reach(reader)
    hours = backfill.hours_of(reach, since_us, until_us, now_us)
    with ledger_reading.progress() as report:
        try:
            if output == "-":
                if isinstance(sys.stdout, io.TextIOWrapper):
                    sys.stdout.reconfigure(encoding="utf-8")  # whatever the terminal's is
                written = backfill.write(reader, sys.stdout, hours, labels, report)
            else:
                with replacing(Path(output)) as file:
                    written = backfill.write(reader, file, hours, labels, report)
        except BrokenPipeError:  # which is no failure
            raise
        except OSError as error:
            complain(f"cannot write {output}: {error}")
            return EXIT_FAILED
    for line in _told(output, written, hours, reach, until_us):
        print(line, file=sys.stderr if output == "-" else sys.stdout)
    return EXIT_OK


def _told(
    output: str, written: Written, hours: Hours, reach: hourly.Reach, until_us: int | None
) -> list[str]:
    poll_us = None if reach.first_poll_s is None else round(reach.first_poll_s * SECOND_US)
    polled = None if poll_us is None else rfc3339(poll_us // SECOND_US * SECOND_US)
    if not written.samples:
        why = NOTHING_YET if reach.start >= reach.stop else "there is nothing to write"
        if polled is not None and until_us is None:
            why += f" before the daemon's first poll at {polled}; --to names another end"
        return [f"{output}: no series: {why}"]
    span = f"{rfc3339(hours.first * HOUR_US)} to {rfc3339(hours.last * HOUR_US)}"
    lines = [f"{output}: {written.series} series, {written.samples} samples, {span}"]
    if polled is not None and poll_us is not None and hours.last * HOUR_US > poll_us:
        lines.append(
            f"the daemon first polled at {polled}: what Prometheus has scraped since then must not "
            "be there a second time (--to)"
        )
    return lines


def _time(text: str | None, *, end: bool) -> int | None:
    """Return a time; a month is its beginning, or its end."""
    if text is None:
        return None
    if month := re.fullmatch(r"([0-9]{4})-(0[1-9]|1[0-2])", text):
        number = int(month[1]) * 12 + int(month[2]) - 1 + end
        return to_us(datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC))
    try:
        return parse_time(text, round(time.time() * SECOND_US))
    except ValueError as error:
        raise ConfigError(f"{error}; or a month, such as 2026-01") from None
