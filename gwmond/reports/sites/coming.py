"""What comes: when a site is full, and when no waiting job is left for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from gwmond.ledger.reading.sites_reader import SitesReader
from gwmond.model.demand.forecast import (
    FEWEST,
    HORIZON_S,
    LOOKED_BACK_S,
    Forecast,
    Level,
    Levels,
    forecast,
)
from gwmond.model.times import SECOND_US
from gwmond.model.units import known_sum
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.forecasts import between, forecast_record, length
from gwmond.reports.render.formats import number
from gwmond.reports.render.table import Column, table
from gwmond.reports.sites.polls import PastPoll, past_polls

What: TypeAlias = Literal["full", "no_job"]
EVERY_SITE = ""
_WORDS: Mapping[What, str] = {"full": "is full", "no_job": "no waiting job is left for it"}
_STEP_S = 900


class Coming(NamedTuple):
    """Of a site (empty: all of them, of which only waiting jobs are told) what comes, and when.

    ``left``: free units of CPU, or waiting jobs that match; None: not known.  ``falls``: whether
    that becomes less; None: it is not known how it was an hour ago.  ``forecast`` is None where
    nothing is said: nothing is left, it does not fall, or too little is known.
    """

    site: str
    what: What
    left: float | None
    falls: bool | None
    forecast: Forecast | None


def coming(ledger: SitesReader, now_us: int, site: str) -> list[Coming]:
    """Return what comes at a site (empty: at all), by the polls of the last days."""
    series: defaultdict[tuple[str, What], list[Level]] = defaultdict(list)
    since_us = now_us - round((LOOKED_BACK_S + HORIZON_S) * SECOND_US)
    for poll in past_polls(ledger, since_us, now_us, _STEP_S):
        for key, left in left_at(poll):
            series[key].append(Level(poll.time_us / SECOND_US, left))
    levels = {key: Levels(of) for key, of in series.items()}
    now_s, found = now_us / SECOND_US, []
    for what in _WORDS:
        tried = [x for (_, kind), of in levels.items() if kind == what for x in of.tried(now_s)]
        for (name, kind), of in sorted(levels.items()):
            if kind == what and site in ("", name):
                rate, left = of.falls_by(now_s), series[name, kind][-1].left
                says = forecast(of.said_s(now_s), tried, HORIZON_S)
                found.append(Coming(name, what, left, None if rate is None else rate > 0, says))
    return found


def left_at(poll: PastPoll) -> Iterator[tuple[tuple[str, What], float | None]]:
    """Yield what was left at each site: units that were not provisioned, and jobs that match."""
    by_site = defaultdict(list)
    for row in poll.entries:
        if row.resource == "cpu":
            by_site[row.site].append(row)
    for site, rows in by_site.items():
        held = known_sum(row.provisioned_units for row in rows)
        free = None if held is None else max(0, sum(row.capacity_units for row in rows) - held)
        jobs = [row.matching_idle_jobs if row.jobs_whole else None for row in rows]
        known = [number for number in jobs if number is not None]
        yield (site, "full"), free
        yield (site, "no_job"), max(known) if len(known) == len(jobs) else None
    if not poll.down:
        yield (EVERY_SITE, "no_job"), sum(reason.jobs for reason in poll.idle)


def document(found: Sequence[Coming], age: Age) -> Document:
    """Return it in all forms."""

    def parts() -> Iterator[Part]:
        yield Paragraph(age.text)
        shown = [one for one in found if one.left]
        if shown:
            yield table("", _COLUMNS, shown, note=_NOTE)
        else:
            yield Paragraph("No poll of the last days is kept, or nothing is left that could fall.")

    return Document(
        parts,
        lambda: {**age.as_json(), "coming": list(map(_record, found))},
        lambda: map(_record, found),
        lambda: _record(Coming("", "full", None, falls=False, forecast=None)),
    )


def _record(one: Coming) -> dict[str, Any]:
    says = None if one.forecast is None else forecast_record(one.forecast)
    return {**one._asdict(), "forecast": says, "evidence": "estimated"}


def _said(one: Coming) -> str:
    if one.forecast is not None:
        return length(one.forecast.middle_s)
    return "it does not fall" if one.falls is False else "too little data"


def _interval(name: str) -> Column[Coming]:
    def cell(one: Coming) -> str:
        return "" if one.forecast is None else between(getattr(one.forecast, name))

    return Column({"half": "half", "nine_tenths": "nine of ten"}[name], cell, text=True)


_COLUMNS: Iterable[Column[Coming]] = (
    Column("site", lambda one: one.site or "(all)", name=True),
    Column("what", lambda one: _WORDS[one.what], text=True),
    Column("left", lambda one: number(one.left)),
    Column("within, as likely as not", _said, text=True),
    _interval("half"),
    _interval("nine_tenths"),
)
_NOTE = (
    "All are estimates. Left: free units of CPU, or waiting jobs that match. The rate is the "
    "faster one of the last hour and the last six; so many of such cases took as long, by how far "
    f"the same rule was off at all sites in the last days ({FEWEST} tries are needed)."
)
