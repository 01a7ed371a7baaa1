"""A ledger as commands read it: which, how old it is, its pilots that ended, and progress.

Lines about a ledger: how far each source was read, and which hours it has.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gwmond.config.settings import Config
from gwmond.ledger.database.backend import chunks
from gwmond.ledger.database.errors import LedgerError
from gwmond.ledger.reading import hourly
from gwmond.ledger.reading.hourly import Reach
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.cursor_kinds import (
    BEGIN_KINDS,
    FACTORY_FILES,
    IMPORTED_LOG,
    KEPT_NAMES,
    KEPT_VERDICTS,
    SILENT_BEFORE,
    UPDATE_GAPS,
    WAITING_LINES,
)
from gwmond.model.facts import Cursor, Place
from gwmond.model.pilots.stored_pilots import PilotFilter, PilotRow
from gwmond.model.times import HOUR_US, SECOND_US, Period
from gwmond.pilots.memory.ad_times import silent_before_us
from gwmond.reports.render.periods import both, rfc3339, span
from gwmond.reports.stored.stored_pilot import UNDATED, AsOf, StoredPilot

if TYPE_CHECKING:
    from rich.progress import TaskID

Report: TypeAlias = Callable[[str, int, int | None], None]
"""Is called with what is being done, how much of it is, and how much there is, None: unknown."""

_STEADY_S = 600.0
"""Over how long the speed is averaged: an import stores chunks some seconds, or minutes, apart."""

_AT_ONCE_US = 6 * HOUR_US
_PILOTS = 200
DEADLINE_S = 8.0
"""A page may read for so long."""
TOO_LONG = (
    f"Not all of this could be read within {DEADLINE_S:g} seconds, the most that a page may take: "
    "choose a shorter period. gwmond pilots and gwmond report have no such limit."
)
POLLS = 3
"""A ledger that was not written for so many polls seems not to be written at all."""


class Unreadable(Exception):
    """What a page would show cannot be read; says why, and what to do."""


@contextmanager
def ledger_for_page(url: str) -> Iterator[LedgerReader]:
    """Open a ledger for a page: what fails, or lasts longer than ``DEADLINE_S``, is Unreadable."""
    end = time.monotonic() + DEADLINE_S
    try:
        with LedgerReader.open(url) as ledger:
            ledger.end_within(DEADLINE_S)
            yield ledger
    except LedgerError as error:
        raise Unreadable(TOO_LONG if time.monotonic() >= end else str(error)) from None


def within_deadline() -> Callable[..., None]:
    """Return what raises Unreadable when it is called later than ``DEADLINE_S`` from now."""
    end = time.monotonic() + DEADLINE_S

    def go_on(*_: object) -> None:
        if time.monotonic() > end:
            raise Unreadable(TOO_LONG)

    return go_on


class Age(NamedTuple):
    """When a ledger was last written (microseconds; None: never), and as of when that holds."""

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
        return {
            "ledger": self.where,
            **both("time", self.now_us),
            **both("written", self.written_us),
            "stale": self.stale,
        }


def age_of(ledger: LedgerReader, now_us: int, poll_s: float) -> Age:
    """Return how old a ledger is; a daemon stores a tick with each poll."""
    tick = ledger.tick()
    written_us = None if tick is None else round(tick.wall * SECOND_US)
    if written_us is None:  # only pilots were ever stored
        latest = ledger.pilot_rows(order="contact", descending=True, limit=1)
        written_us = max((row.posted_last_heard_us for row in latest), default=None)
    stale = written_us is None or now_us - written_us > POLLS * poll_s * SECOND_US
    if tick is None and any(kind == FACTORY_FILES for _, kind in ledger.cursors()):
        stale = stale and hourly.reach(ledger).first_poll_s is not None  # else only imported
    return Age(ledger.where, written_us, now_us, stale)


Dated: TypeAlias = AbstractContextManager[tuple[LedgerReader, Age]]
"""An open ledger, and how old it is."""


@contextmanager
def dated_for_page(config: Config, now_us: int) -> Iterator[tuple[LedgerReader, Age]]:
    """Open the ledger of a configuration for a page, as ``ledger_for_page``."""
    with ledger_for_page(config.ledger.url) as ledger:
        yield ledger, age_of(ledger, now_us, config.poll.interval)


def as_of(ledger: LedgerReader, config: Config, now_us: int) -> AsOf:
    """Return when its pilots are looked at, and which of them are silent by then."""
    return AsOf(now_us, config.canonical.memory_mib, silent_before_us(ledger.cursors()))


@contextmanager
def progress(*, kept: bool = False) -> Iterator[Report]:
    """Show progress on standard error, where that is a terminal; ``kept``: its end, anywhere."""
    from rich.console import Console  # noqa: PLC0415 (few commands show it)
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=not kept,
        disable=not (kept or console.is_terminal),
        speed_estimate_period=_STEADY_S,
    ) as shown:
        tasks: dict[str, TaskID] = {}

        def report(label: str, done: int, number: int | None) -> None:
            if label not in tasks:
                tasks[label] = shown.add_task(label, total=number)
            shown.update(tasks[label], completed=done, total=number)

        yield report


def windows(period: Period) -> Iterator[Period]:
    """Yield the parts of a period of which pilots are read at once."""
    for first in range(*period, _AT_ONCE_US):
        yield Period(first, min(first + _AT_ONCE_US, period.until_us))


def rows_ended(ledger: LedgerReader, period: Period, place: Place) -> Iterator[list[PilotRow]]:
    """Yield the pilots of a place that ended in a period, without their runs."""
    for window in windows(period):
        yield ledger.pilot_rows(PilotFilter(place=place, ended=window))


def pilots_ended(
    ledger: LedgerReader, period: Period, place: Place, as_of: AsOf = UNDATED
) -> Iterator[StoredPilot]:
    """Yield the pilots of a place that ended in a period, with their runs."""
    for rows in rows_ended(ledger, period, place):
        for chunk in chunks(rows, _PILOTS):
            runs = ledger.runs_of([row.id for row in chunk])
            yield from (StoredPilot(row, runs.get(row.id, ()), as_of) for row in chunk)


NOTHING_YET = (
    "the ledger has no hours yet. gwmond run writes it at each poll (is it running? "
    "systemctl status gwmond), gwmond import from a factory's files"
)
"""What is missing in a fresh ledger, and what to do next."""

_NAMES = {IMPORTED_LOG: "files"}
_KEPT = {KEPT_NAMES, KEPT_VERDICTS, SILENT_BEFORE, UPDATE_GAPS, WAITING_LINES}
_NOT_READ = {*_KEPT, *BEGIN_KINDS.values()}


def cursor_lines(cursors: Iterable[Cursor], now_us: int, each: bool) -> list[str]:
    """Return a line for each kind of cursors, or for each of them."""
    read = (cursor for cursor in cursors if cursor.kind not in _NOT_READ)
    ordered = sorted(read, key=lambda cursor: (cursor.kind, cursor.source))
    if each:
        return [_one(cursor, now_us) for cursor in ordered]
    kinds = ((kind, list(some)) for kind, some in groupby(ordered, key=lambda cursor: cursor.kind))
    return [
        _one(some[0], now_us) if len(some) == 1 else _many(kind, some, now_us)
        for kind, some in kinds
    ]


def reach_times(reach: Reach) -> tuple[str, str] | None:
    """Return the first and the last time of a ledger's hours; None: it has none."""
    if reach.start >= reach.stop:
        return None
    return rfc3339(reach.start * HOUR_US), rfc3339(reach.stop * HOUR_US)


def nothing(ledger: LedgerReader, place: Place, user: str | None = None) -> str:
    """Return why a period may have nothing of a place and a user (None: whichever)."""
    hours = reach_times(hourly.reach(ledger))
    if hours is None:
        return NOTHING_YET
    if not ledger.pilot_rows(limit=1):
        return (
            "no pilot is known yet. gwmond sites shows what the collectors have now, gwmond check "
            "which daemons answer"
        )
    times = f"the ledger has the hours from {hours[0]} to {hours[1]}: see --from and --to"
    return unknown(ledger, place, user) or times


def unknown(ledger: LedgerReader, place: Place, user: str | None = None) -> str:
    """Return that no pilot is known of what is asked for; empty if one is, or all are asked for."""
    named = place.named | ({"user": user} if user else {})
    if not named or ledger.pilot_rows(PilotFilter(place=place, user=user), limit=1):
        return ""
    asked = " ".join(f"--{option} {name}" for option, name in named.items())
    return f"the ledger knows no pilot at all of {asked}: are the names right?"


def _one(cursor: Cursor, now_us: int) -> str:
    if cursor.complete_us is None:
        return f"cursor {cursor.source} {cursor.kind}: {_untimed(cursor.kind)}"
    known_us = min(cursor.complete_us, now_us)  # never ahead of now: a copy is read as of later
    text = f"{rfc3339(known_us // SECOND_US * SECOND_US)} ({span(now_us - known_us)} ago)"
    return f"cursor {cursor.source} {cursor.kind}: complete until {text}"


def _many(kind: str, some: list[Cursor], now_us: int) -> str:
    read = [cursor.complete_us for cursor in some if cursor.complete_us is not None]
    paths = [cursor.source for cursor in some]
    sources = f"{len(some)} sources"
    if all(map(os.path.isabs, paths)):
        sources = f"{len(some)} {_NAMES.get(kind, 'directories')} in {os.path.commonpath(paths)}"
    text = (
        f"read until {rfc3339(min(*read, now_us) // SECOND_US * SECOND_US)}"
        if read
        else _untimed(kind)
    )
    if 0 < len(read) < len(some):
        text += f", of {len(some) - len(read)} nothing yet"
    return f"cursors {kind}: {sources}, {text} (each: --cursors)"


def _untimed(kind: str) -> str:
    """Return what to say of cursors without a time: logs that were kept end anywhere."""
    return "read" if kind in _NAMES else "nothing yet"
