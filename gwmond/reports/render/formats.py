"""How figures are written: ``?`` is what is not known, ``-`` a share of nothing.

Units: amounts are micros (10^-6 of one core, chip or canonical unit for one second), lengths are
microseconds; an hour of either is ``HOUR_US``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gwmond.model.times import HOUR_US
from gwmond.model.units import MICRO

UNKNOWN, NO_SHARE = "?", "-"


def ratio(part: float | None, whole: float) -> float | None:
    """Return a share of something; of nothing there is no share."""
    return None if part is None or not whole else part / whole


def seconds(micros: int | None) -> float | None:
    """Return seconds, None where the amount is not known."""
    return None if micros is None else micros / MICRO


def hours(micros: int | None, digits: int = 1) -> str:
    """Return an amount, or a length, in hours."""
    return UNKNOWN if micros is None else f"{micros / HOUR_US:z,.{digits}f}"


def percent(share: float | None, digits: int = 1) -> str:
    return NO_SHARE if share is None else f"{100 * share:z.{digits}f}%"


def number(value: float | None, digits: int = 0) -> str:
    return UNKNOWN if value is None else f"{value:z.{digits}f}"


def quotient(value: float | None) -> str:
    """Return a number for which two digits are enough; of nothing there is none."""
    return NO_SHARE if value is None else f"{value:.2f}"


def exact_seconds(micros: int) -> str:
    """Return seconds with all their digits.

    >>> exact_seconds(0), exact_seconds(-1_500_000)
    ('0', '-1.500000')
    """
    whole, rest = divmod(abs(micros), MICRO)
    return f"{'-' if micros < 0 else ''}{whole}.{rest:06}" if micros else "0"


def right(agreed: int, checked: int) -> str:
    """Return how many of the verdicts that were checked were right.

    >>> right(14, 15)
    '93% of 15'
    """
    return f"{percent(ratio(agreed, checked), 0)} of {checked}" if checked else NO_SHARE


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "pilot"), counted(0, "pilot"), counted(2, "entry")
    ('1 pilot', '0 pilots', '2 entries')
    """
    if count != 1:
        noun = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun}"


def words(name: str) -> str:
    """Return the name of a category, state or cause as words.

    >>> words("provisioning_bottleneck")
    'provisioning bottleneck'
    """
    return name.replace("_", " ")


def plain(text: str, *, keep: str = "") -> str:
    r"""Return a text without what a terminal would obey.

    >>> plain("entry\x1b[2J")
    'entry?[2J'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else "?" for letter in text)


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values as columns: ``categories_cpu_resource_seconds_goodput``."""
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            flat |= flatten(inner, f"{prefix}{name}_")
        else:
            flat[prefix + name] = " ".join(map(str, inner)) if isinstance(inner, list) else inner
    return flat
