"""Waiting jobs, and places where they could run."""

from __future__ import annotations

from typing import Any

from gwmond.model.demand.order import AccountingQuota, Negotiator, Order, ScheddLoad, Submitter
from gwmond.model.demand.waiting_job import JobPlace, WaitingJob
from gwmond.model.facts import EntryKey, Size
from gwmond.model.states import State
from gwmond.reports.sites.sites import SiteRow

_PLACE = JobPlace(
    "pilot",
    EntryKey("S", "E"),
    "f.g",
    Size(8, 16000),
    Size(8, 16000),
    True,
    (),
    (),
    "measured",
    None,
    1,
)
_JOB = WaitingJob(
    number="1.0",
    schedd="ap",
    global_id="ap#1.0#1",
    user="alice@pool",
    accounting_group="",
    status=1,
    universe=5,
    submitted=1000,
    since=1000,
    runs=0,
    size=Size(1, 2000),
    walltime_s=None,
    hold_reason="",
    hold_code=None,
    rejection="",
    rejected=None,
    deferred_until=None,
    clauses=("A", "B"),
    words=(),
    submitter="alice@pool",
)


def place(**changed: Any) -> JobPlace:
    """Return an empty pilot that takes the job, with some fields changed."""
    return _PLACE._replace(**changed)


def waiting_job(**changed: Any) -> WaitingJob:
    """Return an idle job, with some fields changed."""
    return _JOB._replace(**changed)


def row(**changed: Any) -> SiteRow:
    """Return the row of an entry without pilots, with some fields changed."""
    known: dict[str, Any] = dict.fromkeys(SiteRow._fields) | SiteRow._field_defaults
    known |= {"site": "S", "entry": "E", "resource": "cpu", "reason": "", "limits": ""}
    known |= {"state": State.UNKNOWN.value, "registered_pilots": 0, "evidence": "measured"}
    return SiteRow(**known | changed)


_SUBMITTERS = {
    "alice@pool": Submitter("<none>", 600.0, 3.0, 10.0, 50),
    "bob@pool": Submitter("<none>", 500.0, 1.0, 10.0, 7),
    "carol@pool": Submitter("<none>", 900.0, 30.0, 10.0, 9),
    "dave@pool": Submitter("<none>", 500.0, 1.0, 10.0, 0),  # has no idle jobs
    "cms.erin@pool": Submitter("cms", 9000.0, 1.0, 10.0, 2),
    "new@pool": Submitter("", None, None, None, 4),
}
QUOTAS = {
    "cms": AccountingQuota(0.5, 10.0, 4.0, surplus=False),
    "<none>": AccountingQuota(3e38, 100.0, 9.0, surplus=True),
}


def negotiator(began: int | None) -> Negotiator:
    """Return a negotiator that began a cycle then."""
    return Negotiator("cm", began, None)


def order(**changed: Any) -> Order:
    """Return the order of six users, with some fields changed."""
    known = Order(_SUBMITTERS, QUOTAS, (negotiator(9_000),), 12, ScheddLoad(5, 100))
    return known._replace(**changed)
