"""Lines about a ledger: how far each source was read, and which hours it has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import groupby

from gwmond.ledger import hourly
from gwmond.ledger.hourly import Reach
from gwmond.ledger.pilot_reports import PilotFilter
from gwmond.ledger.reader import LedgerReader
from gwmond.model.cursor_kinds import IMPORTED_LOG, SILENT_BEFORE, UPDATE_GAPS, WAITING_LINES
from gwmond.model.facts import Cursor
from gwmond.model.times import HOUR_US, SECOND_US
from gwmond.reports.periods import rfc3339, span

NOTHING_YET = (
    "the ledger has no hours yet. gwmond run writes it at each poll (is it running? "
    "systemctl status gwmond), gwmond import from a factory's files"
)
"""What is missing in a fresh ledger, and what to do next."""

_NAMES = {IMPORTED_LOG: "files"}
_NOT_READ = {SILENT_BEFORE, UPDATE_GAPS, WAITING_LINES}


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


def nothing(ledger: LedgerReader, places: Sequence[str | None], user: str | None = None) -> str:
    """Return why a period may have nothing of a site, entry, group and user (None: whichever)."""
    hours = reach_times(hourly.reach(ledger))
    if hours is None:
        return NOTHING_YET
    if not ledger.pilot_rows(limit=1):
        return (
            "no pilot is known yet. gwmond sites shows what the collectors have now, gwmond check "
            "which daemons answer"
        )
    times = f"the ledger has the hours from {hours[0]} to {hours[1]}: see --from and --to"
    return unknown(ledger, places, user) or times


def unknown(ledger: LedgerReader, places: Sequence[str | None], user: str | None = None) -> str:
    """Return that no pilot is known of what is asked for; empty if one is, or all are asked for."""
    site, entry, group = places
    pilot_filter = PilotFilter(site=site, entry=entry, group=group, user=user)
    if not any((*places, user)) or ledger.pilot_rows(pilot_filter, limit=1):
        return ""
    options = ("--site", "--entry", "--group", "--user")
    named = zip(options, (*places, user), strict=True)
    asked = " ".join(f"{option} {name}" for option, name in named if name)
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
    what = f"{len(some)} sources"
    if all(map(os.path.isabs, paths)):
        what = f"{len(some)} {_NAMES.get(kind, 'directories')} in {os.path.commonpath(paths)}"
    text = (
        f"read until {rfc3339(min(*read, now_us) // SECOND_US * SECOND_US)}"
        if read
        else _untimed(kind)
    )
    if 0 < len(read) < len(some):
        text += f", of {len(some) - len(read)} nothing yet"
    return f"cursors {kind}: {what}, {text} (each: --cursors)"


def _untimed(kind: str) -> str:
    """Return what to say of cursors that tell no time: logs that were kept end anywhere."""
    return "read" if kind in _NAMES else "nothing yet"
