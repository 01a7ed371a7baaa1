"""Times and periods as people type them, and times as gwmond writes them.

Units: microseconds since the epoch (UTC).
"""

from __future__ import annotations

import re
import textwrap
from datetime import UTC, datetime, timedelta
from typing import Any

from gwmond.model.times import HOUR_US, SECOND_US, Period, parse_duration

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST_US = 32_503_680_000 * SECOND_US  # the year 3000
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

FORMS = (
    "a time is RFC 3339 (2026-01-31T08:00:00Z; without an offset it is UTC), a date (its beginning "
    "in UTC), how long ago (2h, 7d, 1h30m, now-2h), epoch seconds or milliseconds, today, "
    "yesterday, or now"
)
FORMS_HELP = textwrap.fill(f"times: {FORMS}.", 99)


def parse_time(text: str, now_us: int) -> int:
    """Return the time that a text names; ``ValueError`` says what can be written.

    >>> parse_time("1970-01-02", 0), parse_time("1970-01-01T01:00:00+01:00", 0)
    (86400000000, 0)
    >>> parse_time("2h", 10_000_000_000)
    2800000000
    """
    word = text.strip()
    day = datetime.fromtimestamp(now_us // SECOND_US, UTC).replace(hour=0, minute=0, second=0)
    match word.lower():
        case "now":
            return now_us
        case "today":
            return to_us(day)
        case "yesterday":
            return to_us(day - timedelta(days=1))
    try:
        if re.fullmatch(r"[0-9]{12,14}", word):  # as Grafana has it in links
            at_us = int(word) * 1000
        elif re.fullmatch(r"[0-9]{5,}(\.[0-9]{1,6})?", word):
            at_us = round(float(word) * SECOND_US)
        elif _DATE.match(word):
            time = datetime.fromisoformat(word)
            at_us = to_us(time if time.tzinfo else time.replace(tzinfo=UTC))
        else:
            at_us = now_us - round(parse_duration(word.removeprefix("now-")) * SECOND_US)
    except (ValueError, OverflowError):
        at_us = -1
    if not 0 <= at_us <= LATEST_US:
        raise ValueError(f'"{text}" is not a time: {FORMS}')
    return at_us


def parse_period(first: str | None, last: str | None, now_us: int) -> Period:
    """Return [first, last): until now, and a day long, where they are not given."""
    until_us = now_us if last is None else parse_time(last, now_us)
    since_us = until_us - 24 * HOUR_US if first is None else parse_time(first, now_us)
    if since_us >= until_us:
        raise ValueError(
            f"the period is empty: from {rfc3339(since_us)} to {rfc3339(until_us)}; {FORMS}"
        )
    return Period(max(0, since_us), until_us)


def to_us(time: datetime) -> int:
    """Return an aware time as microseconds since the epoch, exactly."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def rfc3339(time_us: int) -> str:
    """Return a time as RFC 3339 in UTC, with a fraction only where there is one.

    >>> rfc3339(0), rfc3339(1_500_000)
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z')
    """
    time = _EPOCH + timedelta(microseconds=time_us)
    return time.isoformat().replace("+00:00", "Z")


def both(name: str, time_us: int | None) -> dict[str, Any]:
    """Return a time for JSON, as RFC 3339 and as epoch seconds; null where it is not known."""
    if time_us is None:
        return {name: None, f"{name}_epoch_seconds": None}
    return {name: rfc3339(time_us), f"{name}_epoch_seconds": time_us / SECOND_US}


def short(time_us: int | None, unknown: str = "") -> str:
    """Return a time for a table: to the second, UTC."""
    if time_us is None:
        return unknown
    return (_EPOCH + timedelta(microseconds=time_us)).strftime("%Y-%m-%d %H:%M:%S")


def span(length_us: int) -> str:
    """Return how long something is, for people: the two largest units.

    >>> span(93_784_000_000), span(59_400_000), span(-3_600_000_000), span(0)
    ('1d02h', '59s', '-1h00m', '0s')
    """
    sign, seconds = ("-" if length_us < 0 else ""), abs(length_us) // SECOND_US
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{sign}{days}d{hours:02}h"
    if seconds >= 3600:
        return f"{sign}{hours}h{minutes:02}m"
    return f"{sign}{minutes}m{seconds % 60:02}s" if minutes else f"{sign}{seconds}s"
