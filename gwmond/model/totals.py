"""Counters as the ledger holds them, and the series of site time.

Units: an amount is an exact ``int`` of micro canonical seconds (10^-6 of one canonical unit for
one second) and never a float; an hour is ``epoch // 3600`` in UTC.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from gwmond.model.units import Resource

Micros: TypeAlias = int
Hour: TypeAlias = int


class SiteKey(NamedTuple):
    """One series of site time: the labels of ``gwmond_site_canonical_seconds_total``."""

    resource: Resource
    state: str
    reason: str
    site: str
    entry: str


class Total(NamedTuple):
    """A counter: ``micros`` (or a number) as shown, which never falls, and since when (epoch s).

    It is the highest that the sum has been; ``below``: how far corrections have taken the sum
    below that.
    """

    micros: Micros
    created: float
    below: Micros = 0

    @property
    def net(self) -> Micros:
        """The sum, net of corrections."""
        return self.micros - self.below


class HourTotal(NamedTuple):
    """The share of one series in one hour."""

    hour: Hour
    key: SiteKey
    micros: Micros
