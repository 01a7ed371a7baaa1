"""The proof of site time: every total is what was pruned plus the sum of its hours."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from gwmond.ledger.schema import site_hours, site_seconds
from gwmond.model.hours import from_columns
from gwmond.model.totals import Difference, Residual, SiteKey

WORST = 10
_KEY = tuple(site_seconds.c[name] for name in SiteKey._fields)


def site_residual(connection: Connection) -> Residual:
    """Return how far the hours of site time are from its totals."""
    series = site_seconds.c
    summed = (
        select(
            site_hours.c.series,
            func.sum(site_hours.c.whole).label("whole"),
            func.sum(site_hours.c.micros).label("micros"),
        )
        .group_by(site_hours.c.series)
        .subquery()
    )
    query = select(
        *_KEY,
        series.whole - series.pruned_whole - func.coalesce(summed.c.whole, 0),
        series.micros - series.pruned_micros - func.coalesce(summed.c.micros, 0),
    ).join_from(site_seconds, summed, series.id == summed.c.series, isouter=True)
    found = [
        Difference(SiteKey(*key), from_columns(whole, micros))
        for *key, whole, micros in connection.execute(query)
    ]
    wrong = sorted((d for d in found if d.micros), key=lambda d: -abs(d.micros))
    residual = sum(abs(d.micros) for d in wrong)
    return Residual("site_canonical", residual, tuple(wrong[:WORST]), len(found))
