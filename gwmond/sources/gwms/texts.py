"""Words, numbers and times as GlideinWMS's shell scripts and HTCondor's logs write them.

Units: ``_s`` are seconds, ``_us`` microseconds since the epoch; a *wall* time is what a clock on
the wall showed, as seconds since 1970-01-01 00:00 of that same clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import NamedTuple

from gwmond.model.digits import is_number
from gwmond.model.times import SECOND_US
from gwmond.sources.htcondor.ads import printable
from gwmond.sources.htcondor.histories.history_endings import EPOCHS_S

MAX_NUMBER = 10**12
MAX_OFFSET_S = 15 * 3600
_QUARTER_S = 900
_EPOCH = datetime(1970, 1, 1)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(r"\b(" + "|".join(_MONTHS) + r")[a-z]*\b", re.I)
_CLOCK = re.compile(r"\b([0-9][0-9]?):([0-9][0-9]):([0-9][0-9])\b(?:[ .,0-9]*\b([AP])M\b)?", re.I)
_DAY = re.compile(r"(?<![\w:.])([0-9]{1,2})(?![\w:])")
_YEAR = re.compile(r"(?<![0-9])([0-9]{4})(?![0-9])")


def text(raw: bytes) -> str:
    """Return bytes as text; what is not UTF-8 is read as Latin-1, which always succeeds."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def label(raw: str | bytes) -> str:
    r"""Return a name that a metric can have, as ``ads.label`` does.

    >>> label(b" T2_DE_x\n"), label("a\nb"), len(label("x" * 1000))
    ('T2_DE_x', 'a?b', 100)
    """
    return printable((text(raw) if isinstance(raw, bytes) else raw).strip())


def known(raw: str | bytes) -> str:
    """Return a name, empty where the shell had none."""
    value = label(raw)
    return "" if value.lower() in {"", "unknown", "undefined", "none", "-"} else value


def number(raw: str | bytes, least: int = 0) -> int | None:
    """Return a whole number, None for what is none or is absurd.

    >>> number(" 12 "), number("-1"), number("1e3"), number("9" * 400), number("-1", -1000)
    (12, None, None, None, -1)
    """
    value = raw.strip()
    if not 0 < len(value) <= 14:
        return None
    if not is_number(value[1:] if value[:1] in ("-", b"-") else value):
        return None
    whole = int(value)
    return whole if least <= whole <= MAX_NUMBER else None


def epoch_us(seconds: int | None) -> int | None:
    """Return seconds since the epoch as microseconds; None for what is no time."""
    return seconds * SECOND_US if seconds is not None and seconds in EPOCHS_S else None


def iso(value: str) -> tuple[int, int | None] | None:
    """Return a time (us) in ISO 8601 and its offset to UTC (s); None if it is none.

    Without an offset it is a wall time, and None stands for the offset.

    >>> iso("2022-02-28T22:42:54-08:00"), iso("2022-02-28 22:42:54"), iso("yesterday")
    ((1646116974000000, -28800), (1646088174000000, None), None)
    """
    try:
        moment = datetime.fromisoformat(value.strip())
        wall = _seconds(moment.replace(tzinfo=None))
        offset = moment.utcoffset()
    except (ValueError, OverflowError):
        return None
    seconds = None if offset is None else round(offset.total_seconds())
    if wall - (seconds or 0) not in EPOCHS_S:
        return None
    return (wall - (seconds or 0)) * SECOND_US + moment.microsecond, seconds


def wall_of_date(value: str) -> int | None:
    """Return the wall time (s) that date(1) printed, in English; None if that cannot be read.

    >>> wall_of_date("Mon Feb 28 22:42:54 PST 2022")
    1646088174
    >>> wall_of_date("Mon 28 Feb 2022 10:42:54 PM PST") == wall_of_date("Feb 28 22:42:54 2022")
    True
    """
    if len(value) > 60:
        return None
    month, clock, year = _MONTH.search(value), _CLOCK.search(value), _YEAR.search(value)
    if month is None or clock is None or year is None:
        return None
    rest = value[: clock.start()] + " " + value[clock.end() :]
    day = _DAY.search(rest.replace(year[1], " ", 1))
    if day is None:
        return None
    hour = int(clock[1])
    if clock[4]:
        hour = hour % 12 + (12 if clock[4] in "Pp" else 0)
    return wall(
        int(year[1]),
        _MONTHS.index(month[1].lower()) + 1,
        int(day[1]),
        hour,
        int(clock[2]),
        int(clock[3]),
    )


def wall(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    """Return a wall time (s), None if no clock shows that; no number is below 0."""
    midnight = _midnight(year, month, day)
    if midnight is None or hour > 23 or minute > 59:
        return None
    return midnight + hour * 3600 + minute * 60 + min(second, 59)


@lru_cache(4096)
def _midnight(year: int, month: int, day: int) -> int | None:
    try:
        return _seconds(datetime(year, month, day))
    except (ValueError, OverflowError):
        return None


def of_wall(at_wall: int, zone: tzinfo | None, micro: int = 0) -> int | None:
    """Return the time (us) of a wall time in a zone; of an hour that comes twice, the first.

    Without a zone it is this host's.  None for what is no time.
    """
    if at_wall not in EPOCHS_S:
        return None
    naive = datetime.fromtimestamp(at_wall, UTC).replace(tzinfo=zone)
    try:
        seconds = int(naive.timestamp())
    except (OverflowError, OSError, ValueError):
        return None
    return seconds * SECOND_US + micro if seconds in EPOCHS_S else None


def _seconds(at_wall: datetime) -> int:
    since = at_wall - _EPOCH
    return since.days * 86400 + since.seconds


_LATE_S = 60
"""By how much a line may be earlier than the one before: several processes write into a log."""


class Zone(NamedTuple):
    """What a host's clock on the wall was ahead of UTC by (s), at some times (s since the epoch).

    Several, because a pilot may live through a change to summer time: then the offset that was
    known nearest to a time held at that time.
    """

    offsets: tuple[tuple[int, int], ...] = ()

    def seen(self, date: str, epoch: int | None) -> Zone:
        """Return it with a date that was printed at a known time.

        The two are taken one after the other, so the offset is rounded to a quarter of an hour.
        """
        at_wall = wall_of_date(date)
        if at_wall is None or epoch is None:
            return self
        offset = round((at_wall - epoch) / _QUARTER_S) * _QUARTER_S
        return self.at(epoch, offset)

    def at(self, epoch: int, offset_s: int) -> Zone:
        """Return it with an offset that held at a time."""
        if abs(offset_s) > MAX_OFFSET_S or len(self.offsets) >= 16:
            return self
        return Zone((*self.offsets, (epoch, offset_s)))

    @property
    def changes(self) -> bool:
        """Whether more than one offset is known."""
        return len({offset for _, offset in self.offsets}) > 1

    def epoch(self, at_wall: int, after: int | None = None) -> int | None:
        """Return the time (s since the epoch) of a wall time; of two, the first.

        It is not before ``after`` (s since the epoch), nor before the first time that is known.
        """
        if not self.offsets:
            return None
        if not self.changes:
            return at_wall - self.offsets[0][1]
        first = min(self.offsets)[0]
        earliest = (first if after is None else max(after, first)) - _LATE_S
        return min(
            (at_wall - offset < earliest, abs(at_wall - offset - epoch), at_wall - offset)
            for epoch, offset in self.offsets
        )[2]
