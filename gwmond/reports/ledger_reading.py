"""A ledger as commands read it: which, how old it is, its pilots that ended, and progress."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from gwmond.ledger import hourly
from gwmond.ledger.pilot_reader import chunks
from gwmond.ledger.pilot_reports import PilotFilter
from gwmond.ledger.reader import LedgerReader
from gwmond.model.cursor_kinds import FACTORY_FILES
from gwmond.model.stored_pilots import AttemptRow, PilotRow
from gwmond.model.times import HOUR_US, SECOND_US, Period
from gwmond.reports.periods import both, rfc3339, span

Report: TypeAlias = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is, and how much there is."""

_AT_ONCE_US = 6 * HOUR_US
_PILOTS = 200
POLLS = 3
"""A ledger that was not written for so many polls seems not to be written at all."""


class Age(NamedTuple):
    """When a ledger was last written (microseconds; None: never), and as of when that is told."""

    where: str
    written_us: int | None
    now_us: int
    stale: bool

    @property
    def text(self) -> str:
        """A line for people."""
        if self.written_us is None:
            return f"ledger {self.where}: nothing was accounted yet"
        ago = span(max(0, self.now_us - self.written_us))
        written = rfc3339(self.written_us // SECOND_US * SECOND_US)
        return f"ledger {self.where}: as of {written} ({ago} ago)"

    @property
    def warning(self) -> str:
        """What to say if the ledger seems not to be written now, else empty."""
        if not self.stale:
            return ""
        if self.written_us is None:
            return (
                "nothing was written to the ledger yet. gwmond run does so at each poll: is it "
                "running (systemctl status gwmond), with this ledger?"
            )
        return (
            f"the ledger was not written for more than {POLLS} polls: the daemon seems not to run, "
            "or cannot write it (see its log)"
        )

    def as_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "ledger": self.where,
            **both("time", self.now_us),
            **both("written", self.written_us),
            "stale": self.stale,
        }


def age_of(ledger: LedgerReader, now_us: int, poll_s: float) -> Age:
    """Return how old a ledger is; a daemon stores a tick with each poll."""
    tick = ledger.load().tick
    written_us = None if tick is None else round(tick.wall * SECOND_US)
    if written_us is None:  # only pilots were ever stored
        latest = ledger.pilot_rows(order="contact", descending=True, limit=1)
        written_us = max((row.contact_us for row in latest), default=None)
    stale = written_us is None or now_us - written_us > POLLS * poll_s * SECOND_US
    if tick is None and any(kind == FACTORY_FILES for _, kind in ledger.cursors()):
        stale = stale and hourly.reach(ledger).first_poll_s is not None  # else only imported
    return Age(ledger.where, written_us, now_us, stale)


def add_ledger_option(parser: argparse._ActionsContainer) -> None:
    """Add ``--ledger``."""
    parser.add_argument(
        "--ledger",
        type=place,
        metavar="URL",
        help="another ledger than [ledger] url: a path or URL",
    )


def place(text: str) -> str:
    """Return what names a ledger; a mere name is that of a file in this directory."""
    return f"./{text}" if re.fullmatch(r"[\w.-]+", text) else text


@contextmanager
def progress() -> Iterator[Report]:
    """Show progress on standard error, where that is a terminal."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as shown:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, number: int) -> None:
            if what not in tasks:
                tasks[what] = shown.add_task(what, total=number)
            shown.update(tasks[what], completed=done, total=number)

        yield report


def windows(period: Period) -> Iterator[Period]:
    """Yield the parts of a period of which pilots are read at once."""
    for first in range(*period, _AT_ONCE_US):
        yield Period(first, min(first + _AT_ONCE_US, period.until_us))


def rows_ended(
    ledger: LedgerReader, period: Period, site: str | None, entry: str | None, group: str | None
) -> Iterator[list[PilotRow]]:
    """Yield the pilots that ended in a period, without their runs; None of a place: all."""
    for window in windows(period):
        yield [
            row
            for row in ledger.pilot_rows(PilotFilter(*window, False, site, entry, group))
            if row.end_us is not None and window.since_us <= row.end_us < window.until_us
        ]


def pilots_ended(
    ledger: LedgerReader, period: Period, site: str | None, entry: str | None, group: str | None
) -> Iterator[tuple[PilotRow, Sequence[AttemptRow]]]:
    """Yield the pilots that ended in a period, with their runs; None of a place: all."""
    for rows in rows_ended(ledger, period, site, entry, group):
        for some in chunks(rows, _PILOTS):
            theirs = ledger.attempts_of([row.id for row in some])
            yield from ((row, theirs.get(row.id, ())) for row in some)
