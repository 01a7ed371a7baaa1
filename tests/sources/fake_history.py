"""A history in memory which answers as HTCondor's helper does (condor_tools/history.cpp).

Newest first; ``since`` is looked at first, and ends it; ``match`` counts what satisfies the
constraint; no more than ``scanned`` records are looked at.  Expressions are evaluated by the real
bindings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import classad2

from gwmond.sources.htcondor.access import Daemon, Query
from gwmond.sources.htcondor.histories.histories import KINDS
from tests.pool.adtext import Ad
from tests.sources.feigned_access import Unasked
from tests.sources.make import classad

SCHEDD = Daemon("schedd@fake", "<127.0.0.1:1>")


class Row(NamedTuple):
    """A record: which job, which run, and when it was written (0: it does not say)."""

    job: int
    run: int
    time: int


def ad(kind: str, row: Row) -> classad2.ClassAd:
    history = KINDS[kind]
    made: Ad = {
        "GlobalJobId": f"schedd@fake#{row.job}.0#1",
        "ClusterId": row.job,
        "ProcId": 0,
        "NumShadowStarts": row.run,
        "JobCurrentStartDate": max(row.time, 10**9 + 10) - 10,
        history.host: "slot1_1@glidein@node",
    }
    if row.time:
        made[history.time] = row.time
    return classad(made)


class FakeHistory(Unasked):
    """``rows`` are the records of the file, oldest first; change it as you like."""

    def __init__(self, kind: str, rows: Sequence[Row] = ()) -> None:
        self.kind = kind
        self.rows = list(rows)
        self.asked: list[tuple[str, int, str]] = []
        self.largest = 0
        self.most = self.scanned = 10**9
        self._ads: dict[Row, classad2.ClassAd] = {}

    def history(
        self, daemon: Daemon, kind: str, query: Query, match: int, since: str
    ) -> list[classad2.ClassAd]:
        assert (daemon, kind) == (SCHEDD, self.kind)
        self.asked.append((query.constraint, match, since))
        wanted = classad2.ExprTree(query.constraint)
        stop = classad2.ExprTree(since) if since else None
        found: list[classad2.ClassAd] = []
        for row in self.rows[: -self.scanned - 1 : -1]:
            one = self._ads.setdefault(row, ad(kind, row))
            if len(found) in (match, self.most) or (stop is not None and stop.eval(one) is True):
                break
            if wanted.eval(one) is True:
                found.append(one)
        if len(query.projection) > 1:  # else it is a plan, of times alone
            self.largest = max(self.largest, len(found))
        return found
