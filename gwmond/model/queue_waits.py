"""How long jobs waited for their first run: counted once each.

Units: times and amounts are microseconds.  The bounds are those of the histograms' buckets; the
ledger has what is counted by bucket, so other bounds would begin new series.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from gwmond.model.run_facts import RunFact
from gwmond.model.times import SECOND_US
from gwmond.model.totals import Micros

BOUNDS_S = (60, 300, 900, 3600, 14_400, 43_200, 86_400, 259_200)
BUCKETS = (*(str(bound) for bound in BOUNDS_S), "+Inf")


def bucket_of(waited: Micros) -> str:
    """Return the least upper bound of a wait.

    >>> bucket_of(60_000_000), bucket_of(60_000_001), bucket_of(10**12)
    ('60', '300', '+Inf')
    """
    return BUCKETS[bisect_left(BOUNDS_S, waited / SECOND_US)]


def of_job(facts: Iterable[RunFact]) -> Micros | None:
    """Return how long a job waited for this run, if it is its first and records have both dates.

    From QDate to JobCurrentStartDate: on hold or not.
    """
    first = [fact for fact in facts if fact.shadow_start == 1]
    starts = [fact.start_us for fact in first if fact.start_us is not None]
    queued = [
        fact.about_job.queued_us
        for fact in first
        if fact.about_job is not None and fact.about_job.queued_us
    ]
    return max(0, min(starts) - min(queued)) if starts and queued else None
