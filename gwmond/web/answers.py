"""What REST answers, of the projections that pages and commands show.

Each answer is of one poll, bounded, and made in a worker thread.  Ledgers are read as pages read
them: for some seconds at most.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from gwmond.config.settings import Config
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import RunFilter
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.times import SECOND_US, Period
from gwmond.reports.failures.recent_failures import failures_json, recent_failures
from gwmond.reports.ledger.ledger_reading import (
    DEADLINE_S,
    TOO_LONG,
    Unreadable,
    age_of,
    ledger_for_page,
)
from gwmond.reports.pilots import pilot_document, waterfall
from gwmond.reports.pilots.runs import runs_json
from gwmond.reports.pilots.stored_pages import pilot_list, pilot_story, traced
from gwmond.reports.pilots.traced import SeveralJobs
from gwmond.reports.render.document import Document
from gwmond.reports.render.periods import both
from gwmond.reports.report import report_document
from gwmond.reports.report.gather import gather
from gwmond.reports.report.groupings import parse_by
from gwmond.reports.report.report import Scope
from gwmond.reports.sites import sites
from gwmond.reports.sites.sites import SiteRow
from gwmond.reports.sites.time_by_hour import RANGES, read
from gwmond.web.asking import (
    AdviseAsked,
    EntriesListed,
    FailuresOfPeriod,
    IdleListed,
    Listed,
    PilotsListed,
    ProblemsListed,
    Refused,
    ReportListed,
    RunsListed,
    SitesListed,
    TimeAsked,
    TracesAsked,
)
from gwmond.web.pilots import WHO
from gwmond.web.problems import counted_problems

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
    """Answers of one poll; ``shows_jobs``: also of single jobs, and of their users."""

    def __init__(self, s: Snapshot, config: Config, *, shows_jobs: bool) -> None:
        self._s, self._config, self._shows_jobs = s, config, shows_jobs
        self._now_us = round(s.pool_time * SECOND_US)

    def sites(self, asked: SitesListed) -> Record:
        """Return sites, by name."""
        return self._rows(asked, sites.site_rows(self._s), "sites")

    def entries(self, asked: EntriesListed) -> Record:
        """Return entries, by site and name."""
        rows = [row for row in sites.entry_rows(self._s) if asked.entry in ("", row.entry)]
        return self._rows(asked, rows, "entries")

    def _rows(self, asked: SitesListed, rows: Sequence[SiteRow], name: str) -> Record:
        wanted = [
            row
            for row in rows
            if asked.site in ("", row.site)
            and asked.state in ("", row.state)
            and asked.resource in ("", row.resource)
        ]
        page, following = _paged(wanted, lambda row: (row.site, row.entry, row.resource), asked)
        record = _record(sites.document(self._s, page, entries=name == "entries"))
        rows_json = record.pop("sites")
        return {**record, name: rows_json, "next": following}

    def pilots(self, asked: PilotsListed) -> Record:
        """Return pilots, the latest first."""
        wanted, after = asked.wanted(self._now_us), _position(asked.after, 2)
        found, following = pilot_list(self._config, self._now_us, wanted, asked.limit, after)
        return self._shown({**_record(found.document), "next": _cursor(following)})

    def pilot(self, number: int) -> Record:
        """Return the life of a pilot."""
        found = pilot_story(self._config, self._now_us, number)
        if found is None:
            raise Refused(404, f"there is no pilot {number}")
        record = _record(pilot_document.document(*found, 80, 0))
        return self._shown(bounded(record, "runs", "own_time", "corrections", "rules", "steps"))

    def runs(self, asked: RunsListed) -> Record:
        """Return runs of jobs that began in a period, the latest first."""
        for name in ("user", "job"):
            if getattr(asked, name) and not self._shows_jobs:
                raise Refused(403, WHO, name)
        since, until = asked.period(self._now_us)
        first, skip = _position(asked.after, 2) or (until - 1, 0)
        wanted = RunFilter(
            period=Period(since, min(until, first + 1)),
            place=asked.place,
            user=asked.user or None,
            job=asked.job or None,
            category=Category(asked.category) if asked.category else None,
            skip=skip,
        )
        record, rows = runs_json(self._config, self._now_us, wanted, asked.limit)
        record["period"] = {**both("from", since), **both("to", until)}
        following = None
        if len(rows) > asked.limit:
            starts = [row.start_us for row in rows[: asked.limit]]
            before = skip if starts[0] == starts[-1] == first else 0
            following = starts[-1], starts.count(starts[-1]) + before
        return self._shown({**record, "next": _cursor(following)})

    def report(self, asked: ReportListed) -> Record:
        """Return a report, with a page of its groups."""
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
        with ledger_for_page(self._config.ledger.url) as ledger:
            age = age_of(ledger, self._now_us, self._config.poll.interval)
            report = gather(ledger, scope, self._config, counted=counted)
        record = report_document.report_json(report, age)
        groups, last = record["groups"], first + asked.limit
        following = (last,) if last < len(groups) else None
        return {**record, "groups": groups[first:last], "next": _cursor(following)}

    def totals(self, asked: TimeAsked) -> Record:
        """Return averages over time: capacity by state, pilots by category."""
        chosen, now_s = RANGES[asked.last], self._now_us / SECOND_US
        times = read(self._config.ledger.url, chosen, now_s, asked.resource, asked.place)
        unit = f"canonical units of {asked.resource}, on average over a step"
        return {"unit": unit, "step_seconds": 3600 * chosen.hours, **times.as_json}

    def failures(self, asked: FailuresOfPeriod) -> Record:
        """Return what failed in a period: validations of pilots, runs by the doing of a place."""
        period = asked.period(self._now_us)
        found = recent_failures(self._config.ledger.url, period, asked.place)
        known = self._s.pilot_time.suspects if self._s.pilot_time is not None else ()
        here = [x for x in known if asked.place.covers(x.site, x.entry)]
        return failures_json(found, here, asked.limit)

    def advise(self, asked: AdviseAsked) -> Record:
        """Return what would waste less, by the pilots that ended in a period."""
        from gwmond.advise.document import document  # noqa: PLC0415 (numpy is seldom needed)
        from gwmond.advise.gather import gather  # noqa: PLC0415

        end, memory_mib = time.monotonic() + DEADLINE_S, self._config.canonical.memory_mib

        def until_end(*_: object) -> None:
            if time.monotonic() > end:
                raise Unreadable(TOO_LONG)

        period = asked.period(self._now_us)
        with ledger_for_page(self._config.ledger.url) as ledger:
            age = age_of(ledger, self._now_us, self._config.poll.interval)
            found = gather(
                *(ledger, period, asked.place),
                memory_per_unit_mib=memory_mib,
                progress=until_end,
            )
        return bounded(_record(document(found, age)), most=asked.limit)

    def problems(self, asked: ProblemsListed) -> Record:
        """Return the problems that were counted since the daemon began."""
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
        """Return why idle jobs are not running: jobs and canonical units by reason."""
        page, following = _paged(self._s.idle, lambda one: one[:4], asked)
        names = ("reason", "cause", "site", "whose_move", "jobs", "cpu_units", "gpu_units")
        reasons = [dict(zip(names, one, strict=True)) for one in page]
        return {**both("time", self._now_us), "idle": reasons, "next": following}

    def traces(self, asked: TracesAsked) -> Record:
        """Return the trace of a job, or of a pilot."""
        if bool(asked.job) == bool(asked.pilot):
            raise Refused(422, "give a job or a pilot, and not both", "job, pilot")
        if asked.job and not self._shows_jobs:
            raise Refused(403, WHO, "job")
        try:
            found = traced(self._config, self._now_us, asked.job, asked.pilot)
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
