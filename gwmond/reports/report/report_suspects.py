"""Places where jobs succeeded far too soon in a period: a table of ``gwmond report --failures``.

Units: times are microseconds since the epoch.

The search is that of the daemon (``early.comparison.suspects``), over each two hours of the last
day of the period: it costs seconds, and an operator looks for what goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.entries.suspects import Finding, Suspect
from gwmond.model.facts import Place
from gwmond.model.times import DAY_US, Period
from gwmond.pilots.early.comparison import suspects
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import AROUND, slice_us
from gwmond.reports.render.table import Column, Table, table

DEFINITION = (
    "places where jobs of the same groups succeeded within a minute significantly more often than "
    "elsewhere at that time, in the last day of the period: a suspicion, and no category; periods: "
    "of two hours each in which it was so; runs, too_soon and expected: those compared in them"
)
_NOTE = (
    "Suspected black holes: in the last day of the period, by periods of two hours. That changes "
    "no category; look at what the jobs did there."
)


class Suspected(NamedTuple):
    """One place, and what was found there in all periods together."""

    site: str
    entry: str
    kind: str
    place: str
    periods: int
    runs: int
    too_soon: int
    expected: float


_COLUMNS: tuple[Column[Suspected], ...] = (
    Column("site", lambda suspect: suspect.site, name=True),
    Column("entry", lambda suspect: suspect.entry, name=True),
    Column("kind", lambda suspect: suspect.kind, name=True),
    Column("place", lambda suspect: suspect.place, name=True),
    Column("periods", lambda suspect: str(suspect.periods or "")),
    Column("runs", lambda suspect: str(suspect.runs)),
    Column("too soon", lambda suspect: str(suspect.too_soon)),
    Column("expected", lambda suspect: f"{suspect.expected:.1f}"),
)


def table_of(suspects: Sequence[Suspected]) -> Table:
    """Return the table; places are not periods, so those are not added up."""
    runs, too_soon, expected = (
        sum(numbers) for numbers in zip(*(suspect[5:] for suspect in suspects), strict=True)
    )
    return table(
        "Suspected black holes: places where jobs exit with 0 far sooner than elsewhere",
        _COLUMNS,
        suspects,
        Suspected("total", "", "", "", 0, round(runs), round(too_soon), expected),
        _NOTE,
    )


def suspected(ledger: LedgerReader, period: Period, place: Place) -> tuple[Suspected, ...]:
    """Return what was found, most periods first."""
    step_us = AROUND * slice_us(Rules())
    until_us = period.until_us
    first_us = max(period.since_us, until_us - DAY_US)
    listed: list[Suspect] = []
    while until_us > first_us:
        since_us = max(first_us, until_us - step_us)
        listed += suspects(ledger.trials(since_us, until_us - 1, until_us))
        until_us = since_us
    by_place: dict[tuple[str, str, str, str], list[Finding]] = {}
    for suspect in listed:
        if place.covers(suspect.site, suspect.entry):
            key = suspect.site, suspect.entry, suspect.kind, suspect.place
            by_place.setdefault(key, []).append(suspect.finding)
    lines = [
        Suspected(
            *(*key, len(findings)),
            runs=sum(finding.jobs for finding in findings),
            too_soon=sum(finding.failures for finding in findings),
            expected=sum(finding.expected for finding in findings),
        )
        for key, findings in by_place.items()
    ]
    return tuple(sorted(lines, key=lambda line: (-line.periods, -line.too_soon, line)))
