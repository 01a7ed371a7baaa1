"""The factory's event logs (``condor_activity_YYYYMMDD_CLIENT.log``): pilots as HTCondor jobs.

Format: HTCondor's user log in text (manual, "Job Event Log Codes"; condor_utils/condor_event.cpp)::

    005 (10481.000.000) 02/28 22:42:54 Job terminated.
            (1) Normal termination (return value 0)
    ...

The date is ``MM/DD`` without a year in old versions, ISO 8601 in newer ones, with or without a zone
(EVENT_LOG_FORMAT_OPTIONS).  HTCondor's own reader is not used: it stops at the first event that is
damaged, knows no offset to begin at, and takes a year from the clock.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo

from gwmond.model.pilots.file_facts import EVENT_LOG, PilotName, QueueEvent, QueueState
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.sources.gwms import texts
from gwmond.sources.gwms.directory_cursor import ParsedLog

END = b"\n...\n"
_NEXT = re.compile(rb"\n(?=\d{3} \(-?\d)")
_HEAD = re.compile(
    rb"(\d{3}) \((-?\d{1,12})\.(-?\d{1,9})\.-?\d{1,9}\) "
    rb"(?:(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[^ ]{0,12})|(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d))( |$)"
)
_KILLED = re.compile(rb"\n\s*\(0\) Abnormal termination \(signal \d+\)")
_ZONE = re.compile(rb":\d\d(?:[.,]\d+)?(?:[Zz]|[+-]\d\d:?\d{0,2})$")
_DAY_S = 86400
_LIFE_S = 180 * _DAY_S

STATES: dict[int, QueueState] = {
    0: QueueState.SUBMITTED,
    1: QueueState.STARTED,
    2: QueueState.FAILED,  # the executable could not be run
    4: QueueState.EVICTED,
    5: QueueState.ENDED,
    9: QueueState.REMOVED,
    12: QueueState.HELD,
    13: QueueState.RELEASED,
    17: QueueState.PENDING,  # Globus submit
    18: QueueState.FAILED,  # Globus submit failed
    27: QueueState.PENDING,  # grid submit
}
"""Numbers of events by what they mean for a pilot; others say nothing of it."""


def parse(
    path: str,
    raw: bytes,
    place: PilotName = PilotName(),  # noqa: B008 (immutable)
    written_s: float = 0,
    zone: tzinfo | None = None,
) -> ParsedLog[QueueEvent]:
    """Return whole events as facts.

    ``written_s``: when the log was last written (seconds since the epoch), which decides the year
    where a line has none.  ``zone``: of the factory's clock; None: of this host's.
    """
    about_s = _about(path, written_s)
    events: list[QueueEvent] = []
    local: list[QueueEvent] = []
    wrong: Counter[ProblemName] = Counter()
    for event in _divided(raw):
        head = _HEAD.match(event)
        fact = ProblemName.GARBAGE if head is None else _event(path, head, place, about_s, zone)
        if isinstance(fact, QueueEvent):
            if fact.state is QueueState.ENDED and _KILLED.search(event):
                fact = fact._replace(state=QueueState.KILLED)
            events.append(fact)
            if head is not None and not (head[4] and _ZONE.search(head[4])):
                local.append(fact)
        elif fact is not None:
            wrong[fact] += 1
    return ParsedLog(tuple(events), wrong, tuple(local))


def _about(path: str, written_s: float) -> float:
    """Return a time (s since the epoch) that no event is after, and none is long before.

    A log is named for the day of its first pilot, which a copy of it keeps, unlike its time.
    """
    named = EVENT_LOG.fullmatch(os.path.basename(path))
    try:
        begun = datetime.strptime(named["day"], "%Y%m%d") if named else None
    except ValueError:
        begun = None
    if begun is None:
        return written_s
    return min(written_s, begun.replace(tzinfo=UTC).timestamp() + _LIFE_S)


def _divided(raw: bytes) -> Iterator[bytes]:
    """Yield events one by one, also where the end of one is missing."""
    for block in raw.replace(b"\r\n", b"\n").split(END):
        for event in _NEXT.split(block):
            stripped = event.strip(b"\n")
            if stripped and stripped != b"...":
                yield stripped


def _event(
    path: str,
    head: re.Match[bytes],
    place: PilotName,
    about_s: float,
    zone: tzinfo | None,
) -> QueueEvent | ProblemName | None:
    state = STATES.get(int(head[1]))
    if state is None:
        return None
    at = _time(head, about_s, zone)
    if at is None:
        return ProblemName.NO_TIME
    cluster, proc = int(head[2]), int(head[3])
    if cluster < 0 or proc < 0:
        return ProblemName.NO_PILOT
    return QueueEvent(path, place._replace(cluster=cluster, proc=proc), state, at)


def _time(head: re.Match[bytes], about_s: float, zone: tzinfo | None) -> int | None:
    if head[4]:
        stamp = texts.iso(texts.text(head[4]))
        if stamp is None or stamp[1] is not None:
            return None if stamp is None else stamp[0]
        return texts.of_wall(stamp[0] // SECOND_US, zone, stamp[0] % SECOND_US)
    month, day, hour, minute, second = (int(head[n]) for n in range(5, 10))
    year = 1970 + int(max(0, about_s)) // 31_556_952
    walls = (
        texts.wall(candidate, month, day, hour, minute, second)
        for candidate in (year + 1, year, year - 1)
    )
    times = [texts.of_wall(candidate, zone) for candidate in walls if candidate is not None]
    latest = int(about_s + _DAY_S) * SECOND_US
    return next(
        (candidate for candidate in times if candidate is not None and candidate <= latest), None
    )
