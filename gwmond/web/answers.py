"""What REST answers, of the projections that pages and commands show.

Each answer is of one poll, bounded, and made in a worker thread.  Ledgers are read as pages read
them: for some seconds at most.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.times import SECOND_US, Period
from gwmond.reports.changes import document as changes
from gwmond.reports.changes.gather import found_in
from gwmond.reports.failures import ticket
from gwmond.reports.failures.recent_failures import failures_json, recent_failures
from gwmond.reports.failures.ticket import faults_at
from gwmond.reports.ledger.ledger_reading import as_of, within_deadline
from gwmond.reports.ledger.open_runs import later_us, open_runs, rules
from gwmond.reports.pilots import pilot_document, waterfall
from gwmond.reports.pilots.listing import PilotList, page_of
from gwmond.reports.pilots.runs import run_list
from gwmond.reports.pilots.traced import SeveralJobs
from gwmond.reports.render.document import Document
from gwmond.reports.render.periods import both, parse_time
from gwmond.reports.report import report_document
from gwmond.reports.report.gather import gather
from gwmond.reports.report.groupings import parse_by
from gwmond.reports.report.report import Scope
from gwmond.reports.sites import sites
from gwmond.reports.sites.coming import coming
from gwmond.reports.sites.coming import document as coming_document
from gwmond.reports.sites.polls import NAMES, NoPoll, PastPoll, past_poll
from gwmond.reports.sites.sites import SiteRow
from gwmond.reports.sites.time_by_hour import RANGES
from gwmond.web.advise import advice
from gwmond.web.asking import (
    AdviseAsked,
    ChangesAsked,
    EntriesListed,
    FailuresOfPeriod,
    ForecastAsked,
    IdleListed,
    Listed,
    PilotsListed,
    PollListed,
    ProblemsListed,
    Refused,
    ReportListed,
    RunsListed,
    SitesListed,
    TicketAsked,
    TotalsOfTime,
    TracesAsked,
    UsersListed,
)
from gwmond.web.parts import View
from gwmond.web.pilots import WHO, life, traced
from gwmond.web.problems import counted_problems
from gwmond.web.time import times_of

R = TypeVar("R")
Record: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str | int, ...]

MOST_LINES = 1000
"""Lines of each part of one pilot or trace."""
NO_CURSOR = "this is no cursor of this list: leave it out to begin"
_OF_JOBS = frozenset(
    {"job", "user", "users", "users_now", "job_group", "htcondor.job.id", "htcondor.job.user"}
)
"""What tells a job or its user, by its name in any record."""


class Answers:
    """Answers of one poll."""

    def __init__(self, s: Snapshot, view: View) -> None:
        self._s, self._view, self._shows_jobs = s, view, view.shows_jobs
        self._config, self._now_us = view.config, view.now_us

    def sites(self, asked: SitesListed) -> Record:
        """Sites now: state, reason, capacity, pilots, demand; as `gwmond sites`."""
        if (then := self._then(asked)) is not None:
            return self._rows(asked, sites.by_site(then.entries), "sites", then)
        return self._rows(asked, sites.site_rows(self._s), "sites")

    def entries(self, asked: EntriesListed) -> Record:
        """Entries now; as `gwmond sites --entries`."""
        then = self._then(asked)
        every = sites.entry_rows(self._s) if then is None else then.entries
        rows = [row for row in every if asked.entry in ("", row.entry)]
        return self._rows(asked, rows, "entries", then)

    def _then(self, asked: PollListed) -> PastPoll | None:
        """Return the poll of the past that is asked for; None: the last one."""
        if not asked.as_of:
            return None
        try:
            with self._view.ledger as (ledger, _):
                return past_poll(ledger, parse_time(asked.as_of, self._now_us))
        except ValueError as error:
            raise Refused(422, str(error), "as_of") from None
        except NoPoll as error:
            raise Refused(404, str(error), "as_of") from None

    def _rows(
        self,
        asked: SitesListed,
        rows: Sequence[SiteRow],
        name: str,
        then: PastPoll | None = None,
    ) -> Record:
        wanted = [
            row
            for row in rows
            if asked.site in ("", row.site)
            and asked.state in ("", row.state)
            and asked.resource in ("", row.resource)
        ]
        page, following = _paged(wanted, lambda row: (row.site, row.entry, row.resource), asked)
        time_s = self._s.pool_time if then is None else then.time_us / SECOND_US
        down = sites.down(self._s.sources) if then is None else then.down
        record = _record(sites.document(time_s, down, page, entries=name == "entries"))
        rows_json = record.pop("sites")
        return {**record, name: rows_json, "next": following}

    def pilots(self, asked: PilotsListed) -> Record:
        """Pilots, the latest first; as `gwmond pilots`."""
        wanted, after = asked.wanted(self._now_us), _position(asked.after, 2)
        with self._view.ledger as (ledger, age):
            at = as_of(ledger, self._config, self._now_us)
            pilots, following = page_of(ledger, wanted, at, asked.limit, after)
            waits = open_runs(ledger, rules(self._config), later_us(self._config), wanted.place)
        found = PilotList(age, pilots, following is not None, waits, "")
        return self._shown({**_record(found.document), "next": _cursor(following)})

    def pilot(self, number: int) -> Record:
        """Return the life of a pilot."""
        found = life(self._view, number)
        if found is None:
            raise Refused(404, f"there is no pilot {number}")
        record = _record(pilot_document.document(*found, 80, 0))
        return self._shown(bounded(record, "runs", "own_time", "corrections", "rules", "steps"))

    def runs(self, asked: RunsListed) -> Record:
        """Runs of jobs that began in a period, the latest first."""
        for name in ("user", "job"):
            if getattr(asked, name) and not self._shows_jobs:
                raise Refused(403, WHO, name)
        since, until = asked.period(self._now_us)
        first, skip = _position(asked.after, 2) or (until - 1, 0)
        wanted = asked.wanted(Period(since, min(until, first + 1)), skip)
        with self._view.ledger as (ledger, age):
            found = run_list(ledger, age, wanted, asked.limit)
        record = _record(found._replace(period=Period(since, until)).document)
        following = None
        if found.truncated:
            starts = [run.row.start_us for run in found.runs]
            before = skip if starts[0] == starts[-1] == first else 0
            following = starts[-1], starts.count(starts[-1]) + before
        return self._shown({**record, "next": _cursor(following)})

    def report(self, asked: ReportListed) -> Record:
        """Where pilots' time went in a period; as `gwmond report`."""
        try:
            by = parse_by(asked.by)
        except ValueError as error:
            raise Refused(422, str(error).removeprefix("--by").lstrip(": "), "by") from None
        if "user" in by and not self._shows_jobs:
            raise Refused(403, WHO, "by")
        scope = Scope(asked.period(self._now_us).whole_hours, by, asked.place)
        counted = asked.hours_only == "false"
        if not counted and scope.basis != "time_spent":
            raise Refused(422, f"hours are not known by {', '.join(by)}", "hours_only")
        (first,) = _position(asked.after, 1) or (0,)
        with self._view.ledger as (ledger, age):
            report = gather(ledger, scope, self._config, counted=counted)
        record = report_document.report_json(report, age)
        groups, last = record["groups"], first + asked.limit
        following = (last,) if last < len(groups) else None
        return {**record, "groups": groups[first:last], "next": _cursor(following)}

    def totals(self, asked: TotalsOfTime) -> Record:
        """Capacity by state and pilots by category over time; as the page of time."""
        step_s = 3600 * RANGES[asked.last].hours
        unit = f"canonical units of {asked.resource}, on average over a step"
        return {"unit": unit, "step_seconds": step_s, **times_of(self._view, asked).as_json}

    def failures(self, asked: FailuresOfPeriod) -> Record:
        """What failed in a period, the worst first; as the page of failures."""
        period = asked.period(self._now_us)
        found = recent_failures(self._config.ledger.url, period, asked.place)
        known = self._s.pilot_time.suspects if self._s.pilot_time is not None else ()
        here = [x for x in known if asked.place.covers(x.site, x.entry)]
        return failures_json(found, here, asked.limit)

    def ticket(self, asked: TicketAsked) -> Record:
        """What fails at a site, since when, at which nodes; as `gwmond ticket`."""
        period = asked.period(self._now_us)
        with self._view.ledger as (ledger, age):
            found = faults_at(ledger, period, asked.place)
        return _record(ticket.document(asked.site, period, found, age))

    def forecast(self, asked: ForecastAsked) -> Record:
        """When sites are full, and when no waiting job is left for them; as `gwmond forecast`."""
        with self._view.ledger as (ledger, age):
            found = coming(ledger, self._now_us, asked.site)
        return _record(coming_document(found, age))

    def changes(self, asked: ChangesAsked) -> Record:
        """Since when more is lost, and what was changed; as `gwmond changes`."""
        go_on, period = within_deadline(), asked.period(self._now_us)
        with self._view.ledger as (ledger, age):
            found = found_in(ledger, period, asked.place, go_on)
        return _record(changes.document(asked.place, found, age))

    def advise(self, asked: AdviseAsked) -> Record:
        """What would waste less of the pilots' time; as `gwmond advise`."""
        found = advice(self._view, asked.period(self._now_us), asked.place)
        return bounded(_record(found), most=asked.limit)

    def users(self, asked: UsersListed) -> Record:
        """Users' jobs now, as schedds count them: those that wait, run and are held."""
        now = self._s.users
        if not self._shows_jobs:
            raise Refused(403, WHO)
        if now is None:
            raise Refused(503, "not known: no collector has told it")
        found = [one for one in now.jobs if one.is_of(asked.user)]
        page, following = _paged(found, lambda one: (one.submitter,), asked)
        return {
            **both("time", self._now_us),
            "complete": now.complete,
            "users": [
                {
                    "user": one.user,
                    "submitter": one.submitter,
                    "waiting_jobs": one.waiting,
                    "running_jobs": one.running,
                    "held_jobs": one.held,
                    "schedds": len(one.schedds),
                    **both("told", None if one.told is None else one.told * SECOND_US),
                }
                for one in page
            ],
            "next": following,
        }

    def problems(self, asked: ProblemsListed) -> Record:
        """Problems since the daemon began: counts, meanings, remedies."""
        rows = counted_problems(self._s)
        page, following = _paged(rows, lambda row: (row.source, row.problem.value), asked)
        return {
            **both("time", self._now_us),
            **both("since", round(self._s.started_at * SECOND_US)),
            "ledger": self._s.ledger.error or None,
            "problems": [row.as_json() for row in page],
            "next": following,
        }

    def idle(self, asked: IdleListed) -> Record:
        """Why idle jobs are not running: jobs and units by reason."""
        then = self._then(asked)
        idle, time_us = (self._s.idle, self._now_us) if then is None else (then.idle, then.time_us)
        page, following = _paged(idle, lambda one: one[:4], asked)
        reasons = [dict(zip(NAMES, one, strict=True)) for one in page]
        return {**both("time", time_us), "idle": reasons, "next": following}

    def traces(self, asked: TracesAsked) -> Record:
        """The spans of a job's trace, or of a pilot's; as `gwmond trace`."""
        if bool(asked.job) == bool(asked.pilot):
            raise Refused(422, "give a job or a pilot, and not both", "job, pilot")
        if asked.job and not self._shows_jobs:
            raise Refused(403, WHO, "job")
        try:
            found = traced(self._view, asked.job, asked.pilot)
        except SeveralJobs as several:
            raise Refused(422, f"{several}. Give one of them", "job") from None
        if found is None:
            what = f"job {asked.job}" if asked.job else f"pilot {asked.pilot}"
            raise Refused(404, f"there is no trace of {what}")
        return self._shown(bounded(_record(waterfall.document(*found, 80)), "spans"))

    def _shown(self, record: Record) -> Record:
        """Return a record as it may be shown; what is withheld is null, and named."""
        if self._shows_jobs:
            return {**record, "withheld": []}
        return {**_without(record), "withheld": sorted(_OF_JOBS)}


def _record(document: Document) -> Record:
    """Return what ``--format json`` has."""
    record = document.record()
    assert isinstance(record, dict)
    return record


def _without(value: Any) -> Any:
    """Return a record without what tells jobs and users."""
    if isinstance(value, Mapping):
        return {k: None if k in _OF_JOBS else _without(inner) for k, inner in value.items()}
    return list(map(_without, value)) if isinstance(value, list) else value


def bounded(record: Mapping[str, Any], *names: str, most: int = MOST_LINES) -> Record:
    """Return a record with the first lines of these lists, or of all; it says how many it lacks."""
    names = names or tuple(name for name, value in record.items() if isinstance(value, list))
    before = record.get("left_off", {})
    left = {name: before.get(name, 0) + max(0, len(record[name]) - most) for name in names}
    return {**record, **{name: record[name][:most] for name in names}, "left_off": left}


def _paged(
    rows: Iterable[R], key: Callable[[R], tuple[str, ...]], asked: Listed
) -> tuple[list[R], str | None]:
    """Return a page of rows by their keys, and the cursor of the next one."""
    after = _decoded(asked.after)
    ordered = sorted(rows, key=key)
    if after is not None:
        if not all(isinstance(part, str) for part in after):
            raise _bad_cursor()
        ordered = [row for row in ordered if key(row) > after]
    page = ordered[: asked.limit]
    return page, _cursor(key(page[-1])) if len(ordered) > asked.limit else None


def _cursor(key: Key | None) -> str | None:
    if key is None:
        return None
    return base64.urlsafe_b64encode(json.dumps(key).encode()).rstrip(b"=").decode()


def _decoded(text: str) -> Key | None:
    """Return the key that a cursor stands for; None: there is no cursor."""
    if not text:
        return None
    try:
        key = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise _bad_cursor() from None
    if not isinstance(key, list) or any(type(part) not in (str, int) for part in key):
        raise _bad_cursor()
    return tuple(key)


def _position(text: str, length: int) -> Any:
    """Return the whole numbers of a cursor, so many; None: there is no cursor."""
    key = _decoded(text)
    if key is not None:
        numbers = all(isinstance(part, int) and 0 <= part < 1 << 62 for part in key)
        if len(key) != length or not numbers:
            raise _bad_cursor()
    return key


def _bad_cursor() -> Refused:
    return Refused(422, NO_CURSOR, "after")
