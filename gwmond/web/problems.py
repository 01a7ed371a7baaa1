"""The page of problems: what is wrong or was since the daemon began, and what to do about it."""

from __future__ import annotations

from typing import Any, NamedTuple

from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.problem_names import ProblemName
from gwmond.reports.render.table import Column, table
from gwmond.web.parts import ago, render, time_text

_ROWS = 1000


class CountedProblem(NamedTuple):
    """How often a source has had a problem; ``now``: a query to the source fails with it."""

    source: str
    problem: ProblemName
    number: int
    now: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "problem": self.problem.value,
            "times": self.number,
            "fails_now": self.now,
            "meaning": self.problem.meaning,
            "what_to_do": self.problem.remedy,
        }


def counted_problems(s: Snapshot) -> list[CountedProblem]:
    """Return the problems since the daemon began: those of now first, then the most frequent."""
    failing = {(status.source, status.problem) for status in s.sources if not status.up}
    return sorted(
        (CountedProblem(*kind, number, kind in failing) for kind, number in s.problems.items()),
        key=lambda row: (not row.now, -row.number, row.source, row.problem),
    )


def page(s: Snapshot | None) -> str:
    """Return the page; ages in it are still to be filled in."""
    if s is None:
        return render("problems", snapshot=None)
    rows = counted_problems(s)
    return render(
        "problems",
        snapshot=s,
        since=time_text(s.started_at),
        polled=ago(s.made_at),
        ledger="" if s.ledger.up else s.ledger.error,
        problems=table("", _COLUMNS, rows[:_ROWS]),
        more=max(0, len(rows) - _ROWS),
    )


_COLUMNS: tuple[Column[CountedProblem], ...] = (
    Column("source", lambda row: row.source, name=True),
    Column("problem", lambda row: row.problem.value, name=True),
    Column("times", lambda row: str(row.number)),
    Column("now", lambda row: "fails now" if row.now else "", text=True),
    Column("meaning", lambda row: row.problem.meaning, name=True),
    Column("what to do", lambda row: row.problem.remedy, name=True),
)
