"""Units of time, periods, and durations as people write them (``"1h30m"``, as in Prometheus)."""

from __future__ import annotations

import re
from typing import NamedTuple

SECOND_US = 1_000_000

HOUR_S = 3600
HOUR_US = HOUR_S * SECOND_US
DAY_US = 24 * HOUR_US

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|[smhdwy]))+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhdwy])")


def parse_duration(text: object) -> float:
    """Turn ``"60s"``, ``"1h30m"`` or ``"30d"`` into seconds.

    >>> parse_duration("1h30m"), parse_duration("500ms"), parse_duration("1.5s")
    (5400.0, 0.5, 1.5)
    """
    if isinstance(text, str) and _DURATION.fullmatch(text.strip()):
        return sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(text))
    raise ValueError('write a duration as a string with its unit, such as "60s", "1h30m" or "30d"')


class Period(NamedTuple):
    """[since, until) in microseconds."""

    since_us: int
    until_us: int

    @property
    def hours(self) -> tuple[int, int]:
        """The first and the last hour (``epoch // 3600``) of which it has a part."""
        return self.since_us // HOUR_US, -(-self.until_us // HOUR_US) - 1

    @property
    def whole_hours(self) -> Period:
        """The same, made wider until it begins and ends with an hour."""
        first, last = self.hours
        return Period(first * HOUR_US, (last + 1) * HOUR_US)

    @property
    def length_us(self) -> int:
        """How long it is."""
        return self.until_us - self.since_us


ALWAYS = Period(0, 1 << 62)
