"""The exact conditional test of stratified 2 x 2 tables, one-sided, and its correction for many.

Of each stratum there are n jobs here and m elsewhere, f of all failed; if it made no difference
where they ran, the failures here would be hypergeometric in each stratum, and independent between
strata.  The p-value is the probability that they sum to at least those seen.  With one stratum
this is Fisher's exact test; with many the exact form of Cochran's and Mantel and Haenszel's
(Birch 1964).  Counts are small (a pilot runs a few jobs), so nothing asymptotic will do.

Many units are tested, so p-values are adjusted to a false discovery rate, by Benjamini and
Yekutieli (2001), because the tests are not independent: all compare with the others.  A unit that
could not be significant whatever had happened there is not tested (Tarone 1990, Gilbert 2005).
That depends on the margins alone, so it is no choice by results; it leaves out most units.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from gwmond.model.entries.suspects import FALSE_DISCOVERIES, MIN_FAILURES, Finding

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]

# NumPy takes a while to load, so it is imported where it is used: only who tests pays.

_Key = TypeVar("_Key", bound=Hashable)


class Stratum(NamedTuple):
    """Jobs of one stratum: here, and on all units together."""

    here: int
    failed_here: int
    jobs: int
    failed: int

    @property
    def margins(self) -> tuple[int, int, int]:
        """All that does not depend on where the failures fell."""
        return self.here, self.jobs, self.failed


def compare(
    tables: Mapping[_Key, Sequence[Stratum]], rate: float = FALSE_DISCOVERIES
) -> dict[_Key, Finding]:
    """Test each unit that could be found to fail too often, whether it does or not.

    Leaving out those where nothing failed would be to choose the tests by their results.
    """
    possible = {
        unit: strata
        for unit, strata in tables.items()
        if sum(min(stratum.here, stratum.failed) for stratum in strata) >= MIN_FAILURES
    }
    least = {unit: least_p(strata) for unit, strata in possible.items()}
    level = _level(sorted(least.values()), rate)
    findings = {unit: finding_of(possible[unit]) for unit in possible if least[unit] <= level}
    return _adjusted(findings)


def _adjusted(findings: Mapping[_Key, Finding]) -> dict[_Key, Finding]:
    """Return findings with p-values adjusted by Benjamini and Yekutieli."""
    factor = len(findings) * sum(1 / rank for rank in range(1, len(findings) + 1))
    adjusted, least = dict(findings), 1.0
    ordered = sorted(findings, key=lambda unit: findings[unit].p)
    for rank, unit in reversed(list(enumerate(ordered, 1))):
        least = min(least, findings[unit].p * factor / rank)
        adjusted[unit] = findings[unit]._replace(adjusted=least)
    return adjusted


def finding_of(strata: Sequence[Stratum]) -> Finding:
    """Return how a unit compares with the others, as if nothing else were tested."""
    p = p_value(strata)
    return Finding(
        sum(stratum.here for stratum in strata),
        sum(stratum.failed_here for stratum in strata),
        sum(stratum.here * stratum.failed / stratum.jobs for stratum in strata),
        p,
        p,
    )


def p_value(strata: Iterable[Stratum]) -> float:
    """Return the probability of at least as many failures here, if it made no difference.

    >>> round(p_value([Stratum(here=3, failed_here=3, jobs=6, failed=3)]), 9)
    0.05
    """
    import numpy as np  # noqa: PLC0415

    groups = list(strata)
    observed = sum(group.failed_here for group in groups)
    if observed == 0:
        return 1.0
    distribution: Floats = np.ones(1)
    for margins, number in sorted(Counter(group.margins for group in groups).items()):
        distribution = np.convolve(distribution, _power(_chances(*margins), number))
    return min(1.0, float(distribution[observed:].sum()))


def _power(chances: Floats, number: int) -> Floats:
    """Return the distribution of the sum of so many that are alike, by squaring."""
    import numpy as np  # noqa: PLC0415

    distribution: Floats = np.ones(1)
    while number:
        if number & 1:
            distribution = np.convolve(distribution, chances)
        number >>= 1
        if number:
            chances = np.convolve(chances, chances)
    return distribution


def least_p(strata: Iterable[Stratum]) -> float:
    """Return the p-value that there would be with as many failures here as possible."""
    return math.prod(float(_chances(*stratum.margins)[-1]) for stratum in strata)


def _level(least: Sequence[float], rate: float) -> float:
    """Return how small a p-value must be able to become for a unit to be tested (Tarone's K).

    ``least`` is sorted.  K is the smallest number with at most K units that could reach rate / K.
    """
    k = next((k for k in range(1, len(least)) if bisect_right(least, rate / k) <= k), len(least))
    return rate / max(k, 1)


@lru_cache(maxsize=65536)
def _chances(here: int, jobs: int, failed: int) -> Floats:
    """Return the probability of 0, 1, ... failures here, up to the most that there can be."""
    import numpy as np  # noqa: PLC0415

    ways = math.comb(jobs, here)
    return np.array(
        [
            math.comb(failed, number) * math.comb(jobs - failed, here - number) / ways
            for number in range(min(here, failed) + 1)
        ]
    )
