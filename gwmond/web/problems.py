"""The page of problems: what is wrong or was since the daemon began, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

from gwmond.model.problem_names import ProblemName
from gwmond.model.snapshot import Snapshot
from gwmond.reports.render.table import Column, table
from gwmond.web.parts import ago, render, time_text

_ROWS = 1000


class _Counted(NamedTuple):
    """How often a source has had a problem; ``now``: a query to the source fails with it."""

    source: str
    problem: ProblemName
    number: int
    now: bool


def page(s: Snapshot | None) -> str:
    """Return the page; ages in it are still to be filled in."""
    if s is None:
        return render("problems", snapshot=None)
    failing = {(status.source, status.problem) for status in s.sources if not status.up}
    rows = sorted(
        (_Counted(*kind, number, kind in failing) for kind, number in s.problems.items()),
        key=lambda row: (not row.now, -row.number, row.source, row.problem),
    )
    return render(
        "problems",
        snapshot=s,
        since=time_text(s.started_at),
        polled=ago(s.made_at),
        ledger="" if s.ledger.up else s.ledger.error,
        problems=table("", _COLUMNS, rows[:_ROWS]),
        more=max(0, len(rows) - _ROWS),
    )


_COLUMNS: tuple[Column[_Counted], ...] = (
    Column("source", lambda row: row.source, name=True),
    Column("problem", lambda row: row.problem.value, name=True),
    Column("times", lambda row: str(row.number)),
    Column("now", lambda row: "fails now" if row.now else "", text=True),
    Column("meaning", lambda row: row.problem.meaning, name=True),
    Column("what to do", lambda row: row.problem.remedy, name=True),
)
