"""Which logs there are, how a record of each ends, and what reads its records."""

from __future__ import annotations

import os
import re
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.pilot_evidence import EVENT_LOG
from gwmond.sources.gwms import central_log, completed_jobs, condor_events, layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import tzinfo

    from gwmond.model.pilot_evidence import FileFact, PilotName, QueueEvent

_LIFE_S = 180 * 86400


class ParsedLog(NamedTuple):
    """Facts of whole records, how many were wrong; ``local``: events with times of no zone."""

    facts: Sequence[FileFact]
    wrong: Counter[str]
    local: tuple[QueueEvent, ...] = ()


class LogKind(NamedTuple):
    """Logs with names like this: how a record ends, and what reads whole records.

    What reads them gets path, records, place, when the log was last written (epoch seconds) and
    the zone of times without one (None: this host's).
    """

    names: re.Pattern[str]
    end: bytes
    parse: Callable[[str, bytes, PilotName, float, tzinfo | None], ParsedLog]


def _completed(path: str, raw: bytes, place: PilotName, _: float, zone: tzinfo | None) -> ParsedLog:
    lines = completed_jobs.parse(path, raw, place, zone)
    return ParsedLog(lines.pilots, lines.wrong)


def _events(
    path: str, raw: bytes, place: PilotName, written: float, zone: tzinfo | None
) -> ParsedLog:
    found = condor_events.parse(path, raw, place, _about(path, written), zone)
    return ParsedLog(found.events, found.wrong, found.local)


def _about(path: str, written: float) -> float:
    """Return a time (s since the epoch) that no event is after, and none is long before.

    A log is named for the day of its first pilot, which a copy of it keeps, unlike its time.
    """
    named = EVENT_LOG.fullmatch(os.path.basename(path))
    try:
        begun = datetime.strptime(named["day"], "%Y%m%d") if named else None
    except ValueError:
        begun = None
    if begun is None:
        return written
    return min(written, begun.replace(tzinfo=UTC).timestamp() + _LIFE_S)


def _central(
    path: str, raw: bytes, _: PilotName, _written: float, _zone: tzinfo | None
) -> ParsedLog:
    lines = central_log.parse(path, raw)
    return ParsedLog(lines.events, lines.wrong)


def of(name: str, kinds: Iterable[LogKind]) -> LogKind | None:
    """Return which kind of log has such a name."""
    return next((kind for kind in kinds if kind.names.fullmatch(name)), None)


FACTORY = (
    LogKind(layout.COMPLETED, b"\n", _completed),
    LogKind(EVENT_LOG, condor_events.END, _events),
)
COMPRESSED = frozenset({".gz", ".xz", ".bz2", ".zst"})
CENTRAL = (LogKind(re.compile(r"(?!.*\.(?:gz|xz|bz2|zst)$).*", re.S), b"\n", _central),)
"""Every file of a directory of central logs, but those that are compressed."""
