"""Runs of jobs by starters' logs (StarterLog, StarterLog.slotN, StarterLog.slotN_M).

Lines are those of HTCondor's dprintf: a time of the host's clock on the wall, mostly without a
zone; ``(pid:N)`` of the starter; a message.  The messages are those of condor_starter.V6.1
(starter_v61_main.cpp, starter.cpp, os_proc.cpp, jic_shadow.cpp, user_proc.cpp); several starters
may write into one file.

Only the lines with a message from ``_MESSAGES`` are looked at, found by plain searching: that is
many times faster than reading every line.  Only where the clock was set while the pilot lived are
other lines looked at: their order distinguishes the two hours that show the same times.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.pilots.file_facts import StarterRun
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.endings import Ending
from gwmond.model.times import SECOND_US
from gwmond.sources.gwms import texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gwmond.sources.gwms.texts import Zone

MAX_EVENTS = 200_000
MAX_RUNS = 20_000
_LINE_BYTES = 2048

_TIME = re.compile(
    rb"\(?(?:(?P<iso>\d{4}-\d\d-\d\d)[T ]|(?P<month>\d\d?)/(?P<day>\d\d?)(?:/(?P<year>\d\d))? )"
    rb"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)\S{0,12}|\(?(?P<epoch>\d{9,11})\)?(?=[ .])"
)
_PID = re.compile(rb"\(pid:(\d{1,9})\)")
_ID = re.compile(rb"job with ID: (-?\d{1,12}\.\d{1,9})|Job (-?\d{1,12}\.\d{1,9}) set to execute")
_SUBMITTER = re.compile(rb'Submitting machine is "([^"]{1,200})"')
_EXIT = re.compile(rb"Process exited, pid=\d{1,10}, (status|signal)=(-?\d{1,10})")
_STATUS = re.compile(rb"EXITING WITH STATUS (\d{1,5})")

_MESSAGES: dict[bytes, str] = {
    b"STARTING UP": "begin",
    b"Submitting machine is ": "submitter",
    b" job with ID: ": "job",
    b" set to execute immediately": "job",
    b"Create_Process succeeded, ": "created",
    b"Process exited, ": "exited",
    b"Got SIGTERM. ": "asked",
    b"Got SIGQUIT. ": "asked",
    b"ShutdownGraceful all jobs.": "asked",
    b"ShutdownFast all jobs.": "asked",
    b"Got vacate ": "asked",
    b"Failed to send job exit status to shadow": "unsent",
    b"EXITING WITH STATUS ": "end",
}


class _Starter:
    """One starter, from its first line to its last."""

    def __init__(self, at: int) -> None:
        self.began = at
        self.job = ""
        self.submitter = ""
        self.created: int | None = None
        self.exited: int | None = None
        self.code: int | None = None
        self.signal: int | None = None
        self.asked = False  # HTCondor began to end the program before it exited
        self.unsent = False
        self.ended: int | None = None
        self.status: int | None = None

    def run(self) -> StarterRun | None:
        """Return the run of this starter; None if it is not known to have had a job."""
        if not self.job and self.created is None:
            return None
        start = self.began if self.created is None else self.created
        end = self.ended if self.exited is None else self.exited
        left = self.exited is not None
        return StarterRun(
            job=self.job,
            submitter=self.submitter,
            start_us=start * SECOND_US,
            end_us=None if end is None else max(start, end) * SECOND_US,
            ending=Ending(
                over=end is not None,
                exit_code=self.code,
                exit_signal=self.signal,
                own_accord=not self.asked if left else None,
                began=self.created is not None,
                starter_status=None if self.status is None else self.status << 8,
            ),
            unsent=self.unsent,
        )


class StarterLog(NamedTuple):
    """The runs of one log, in the order of their begin; ``wrong`` says what could not be read."""

    runs: tuple[StarterRun, ...]
    wrong: ProblemName | None = None


def parse(raw: bytes, zone: Zone, about_s: int) -> StarterLog:
    """Return the runs in one log.

    ``about_s`` is a time within the pilot's life (seconds since the epoch): where lines have no
    year, it decides.  Without a known zone (``no_zone``) a wall time cannot be placed, so nothing
    is returned.
    """
    times = _Times(zone, about_s)
    starters: list[_Starter] = []
    alive: dict[int, _Starter] = {}
    unplaced = False
    for word, line in _events(raw):
        at = times.of(line)
        if at is None:
            unplaced = True
            continue
        pid = _PID.search(line, 0, 80)
        number = int(pid[1]) if pid else 0
        starter = alive.get(number)
        fresh = word == "begin" or (word == "created" and starter is not None and starter.created)
        if starter is None or fresh:
            if word in {"end", "asked", "exited", "unsent"}:
                continue  # of a run whose begin was rotated away
            if len(starters) >= MAX_RUNS:
                break
            starter = _Starter(at)
            starters.append(starter)
            alive[number] = starter
        _apply(starter, word, line, at)
        if word == "end":
            del alive[number]
    runs = [run for starter in starters if (run := starter.run()) is not None]
    return StarterLog(tuple(runs), ProblemName.NO_ZONE if unplaced and not runs else None)


def _events(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the lines with a known message, in their order."""
    hits: list[tuple[int, str]] = []
    for message, word in _MESSAGES.items():
        at = raw.find(message)
        while at >= 0 and len(hits) < MAX_EVENTS:
            hits.append((at, word))
            at = raw.find(message, at + len(message))
    hits.sort()
    for at, word in hits:
        begin = raw.rfind(b"\n", max(0, at - _LINE_BYTES), at) + 1
        if begin == 0 and at > _LINE_BYTES:
            continue  # far into a line that is none of HTCondor's
        end = raw.find(b"\n", at, at + _LINE_BYTES)
        yield (word, raw[begin : end if end >= 0 else at + _LINE_BYTES])


def _apply(starter: _Starter, word: str, line: bytes, at: int) -> None:
    match word:
        case "job":
            if match := _ID.search(line):
                starter.job = starter.job or texts.label(match[1] or match[2])
        case "submitter":
            if match := _SUBMITTER.search(line):
                starter.submitter = texts.label(match[1])
        case "created":
            starter.created = at
        case "asked":
            starter.asked |= starter.exited is None
        case "unsent":
            starter.unsent = True
        case "exited":
            _exit(starter, line, at)
        case "end":
            match = _STATUS.search(line)
            starter.ended, starter.status = at, int(match[1]) if match else None


def _exit(starter: _Starter, line: bytes, at: int) -> None:
    starter.exited = at
    if match := _EXIT.search(line):
        value = texts.number(match[2], -(2**31))
        starter.code, starter.signal = (value, None) if match[1] == b"status" else (None, value)


class _Times:
    """The times of the lines of one log, which are asked for in their order."""

    def __init__(self, zone: Zone, about_s: int) -> None:
        self._zone, self._about_s = zone, about_s
        self._after: int | None = None

    def of(self, line: bytes) -> int | None:
        """Return the time of a line (seconds since the epoch)."""
        match = _TIME.match(line)
        if match is None:
            return None
        at, placed = _moment(match, self._about_s)
        if at is None or placed:
            return at
        self._after = self._zone.epoch(at, self._after)
        return self._after


def _moment(match: re.Match[bytes], about_s: int) -> tuple[int | None, bool]:
    """Return a line's time, and whether that is seconds since the epoch; else it is a wall time."""
    if match["epoch"]:
        return (int(match["epoch"]) if texts.epoch_us(int(match["epoch"])) else None), True
    if match["iso"]:
        stamp = texts.iso(texts.text(match[0]).strip("()"))
        return (None, True) if stamp is None else (stamp[0] // SECOND_US, stamp[1] is not None)
    clock = [int(match[name]) for name in ("month", "day", "hour", "minute", "second")]
    if match["year"]:
        years = [2000 + int(match["year"])]
    else:
        middle = 1970 + about_s // 31_556_952
        years = [middle - 1, middle, middle + 1]
    times = [texts.wall(year, *clock) for year in years]
    possible = [time_us for time_us in times if time_us is not None and texts.epoch_us(time_us)]
    return min(possible, key=lambda time_us: abs(time_us - about_s), default=None), False
