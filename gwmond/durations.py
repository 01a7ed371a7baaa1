"""Durations as people write them: numbers with units, as in Prometheus."""

from __future__ import annotations

import re

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
