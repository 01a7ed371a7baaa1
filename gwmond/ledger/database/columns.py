"""Values that every database's columns can hold; what cannot be stored is a ``ValueError``.

Texts that anybody's pilot may send are made storable (``clean``).  Identities (names, job ids) may
be longer than other names, and one that is too long ends with its own hash, so that no two
become equal.
"""

from __future__ import annotations

import hashlib
import re
from math import isfinite

HOURS = 10**7  # until the year 3110
LATEST_US = HOURS * 3_600_000_000
LARGEST = 2**63 - 1
NAME_CHARACTERS = 128  # five of them fit into an index of PostgreSQL (2704 bytes)
IDENTITY_CHARACTERS = 512  # fits into an index of PostgreSQL (2704 bytes)
DETAIL_CHARACTERS = 4000

# What JSON needs six characters for: a name's length would not fit an index any more.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Undecodable(Exception):
    """A stored row is not what was written: the ledger is damaged."""


def clean(text: str, limit: int = NAME_CHARACTERS) -> str:
    """Return ``text`` as every database can store it.

    Names come from ads that anybody's pilot may send: one NUL, broken UTF-8 or a novel for a site
    name must not stop the accounting of all sites.  Names that become equal share a series.
    """
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    text = _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def identity(text: str) -> str:
    """Return what names a pilot or a job as every database can store it, and still unique."""
    if len(text) < IDENTITY_CHARACTERS and text.isascii() and text.isprintable():
        return text
    stored = clean(text, IDENTITY_CHARACTERS)
    if len(text) > IDENTITY_CHARACTERS or len(stored) == IDENTITY_CHARACTERS > len(text):
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        stored = f"{stored[: IDENTITY_CHARACTERS - 33]}…{digest}"
    return stored


def whole(value: object, most: int = LARGEST, least: int = 0) -> int:
    """Return an exact integer that fits its column, or raise ``ValueError``."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{value!r} is not an exact integer between {least} and {most}")
    return value


def time_us(value: object) -> int:
    """Return a time, or raise ``ValueError`` for one that no clock shows."""
    return whole(value, LATEST_US)


def maybe_time(value: object) -> int | None:
    return None if value is None else whole(value, LATEST_US)


def time_s(value: float) -> float:
    """Return a time in seconds, or raise ``ValueError`` for one that is not finite."""
    if not isfinite(value):
        raise ValueError(f"{value!r} is not a time")
    return value
