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
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from gwmond.config.settings import Config
from gwmond.model.demand.question import MOST_AD
from gwmond.model.facts import Place
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import DoingNow, RunFilter
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.states import State
from gwmond.model.times import DAY_US, SECOND_US, Period
from gwmond.model.units import Resource
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
from gwmond.reports.render.periods import FORMS, both, parse_period
from gwmond.reports.report import report_document
from gwmond.reports.report.gather import gather
from gwmond.reports.report.groupings import GROUPINGS, parse_by
from gwmond.reports.report.report import Scope
from gwmond.reports.sites import sites
from gwmond.reports.sites.sites import SiteRow
from gwmond.reports.sites.time_by_hour import RANGES, read
from gwmond.web.pilots import WHO, Selection
from gwmond.web.problems import counted_problems

R = TypeVar("R")
Record: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str | int, ...]

MOST, MOST_LINES = 500, 1000
"""Items of a page; lines of each part of one pilot or trace."""
NO_CURSOR = "this is no cursor of this list: leave it out to begin"
_LONGEST_US = 400 * DAY_US
_OF_JOBS = frozenset(
    {"job", "user", "users", "users_now", "job_group", "htcondor.job.id", "htcondor.job.user"}
)
"""What tells a job or its user, by its name in any record."""
NAME, CURSOR = r"^[^\x00-\x1f\x7f]*$", r"^[A-Za-z0-9_-]*$"
"""Characters that are allowed in names and cursors."""
Name = Annotated[str, Field(max_length=256, pattern=NAME)]
Limit = Annotated[int, Field(ge=1, le=MOST, description="items at most")]
After = Annotated[
    str,
    Field(max_length=1024, pattern=CURSOR, description="`next` of the page before"),
]
When = Annotated[str, Field(max_length=40, description=FORMS)]
YesOrNo = Literal["true", "false"]


class Refused(Exception):
    """Why there is no answer: a status of HTTP, in words; ``again_s``: when to ask again."""

    def __init__(
        self, status: int, detail: str, parameter: str = "", again_s: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.parameter, self.again_s = status, detail, parameter, again_s


class Asked(BaseModel):
    """Parameters of a query; others are refused.  What is empty does not matter.

    Old FastAPI passes parameters by the names of fields, not by their aliases.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    @classmethod
    def names(cls) -> set[str]:
        """Return the names of parameters."""
        return {field.alias or name for name, field in cls.model_fields.items()}


class Listed(Asked):
    """Parameters of a list; ``rows`` is the name of the list in its record."""

    rows: ClassVar[str]
    format: Annotated[
        Literal["json", "csv"], Field(description="csv: the lines of the list alone")
    ] = "json"
    limit: Limit = 100
    after: After = ""


class OfPlace(Asked):
    site: Name = ""
    entry: Name = ""
    group: Annotated[Name, Field(description="FRONTEND.GROUP")] = ""

    @property
    def place(self) -> Place:
        return Place(self.site, self.entry, self.group)


class OfPeriod(OfPlace):
    since: Annotated[When, Field(alias="from")] = ""
    until: Annotated[When, Field(alias="to")] = ""

    def period(self, now_us: int) -> Period:
        """Return the period that is asked for: the last day, if nothing is."""
        try:
            period = parse_period(self.since or None, self.until or None, now_us)
        except ValueError as error:
            raise Refused(422, str(error), "from, to") from None
        if period.length_us > _LONGEST_US:
            days = _LONGEST_US // DAY_US
            raise Refused(422, f"the period is longer than {days} days", "from, to")
        return period


class SitesAsked(Listed):
    rows = "sites"
    site: Name = ""
    state: State | Literal[""] = ""
    resource: Resource | Literal[""] = ""


class EntriesAsked(SitesAsked):
    rows = "entries"
    entry: Name = ""


class PilotsAsked(OfPlace, Listed):
    rows = "pilots"
    which: Literal["running", "past", "all"] = "running"
    node: Annotated[Name, Field(description="`*` stands for anything")] = ""
    last: Annotated[
        Literal["", "24h", "7d", "30d"], Field(description="ended, or lived, in this time")
    ] = ""
    doing: DoingNow | Literal[""] = ""
    category: Annotated[Category | Literal[""], Field(description="has settled time of it")] = ""
    failed: Annotated[
        YesOrNo | Literal[""], Field(description="true: validation failed, no job ran")
    ] = ""


class RunsAsked(OfPeriod, Listed):
    """Runs that began in the period."""

    rows = "runs"
    user: Annotated[Name, Field(description="user@domain, or user of any domain")] = ""
    job: Annotated[Name, Field(description="a GlobalJobId, or cluster.proc")] = ""
    category: Category | Literal[""] = ""


class ReportAsked(OfPeriod, Listed):
    rows = "groups"
    by: Annotated[
        Name, Field(description=f"one, or two with a comma between: {', '.join(GROUPINGS)}")
    ] = "site"
    hours_only: Annotated[YesOrNo, Field(description="true: fast, no numbers of pilots")] = "false"


class TotalsAsked(OfPlace):
    last: Literal["24h", "7d", "30d"] = "24h"
    resource: Resource = "cpu"


class FailuresAsked(OfPeriod):
    limit: Limit = 100


class AdviseAsked(OfPeriod):
    since: Annotated[When, Field(alias="from")] = "7d"
    limit: Annotated[Limit, Field(description="lines of each list at most")] = 100


class TracesAsked(Asked):
    job: Annotated[Name, Field(description="a GlobalJobId, or cluster.proc")] = ""
    pilot: Annotated[int, Field(ge=0, lt=1 << 62, description="its number")] = 0


class ProblemsAsked(Listed):
    rows = "problems"


class IdleAsked(Listed):
    rows = "idle"


class ExplainAsked(Asked):
    limit: Annotated[Limit, Field(description="lines of each list at most")] = 100


class ExplainEntryAsked(ExplainAsked):
    site: Annotated[Name, Field(description="of the entry, where several are called so")] = ""


class ExplainAdAsked(ExplainAsked):
    ad: Annotated[str, Field(max_length=MOST_AD, description="a ClassAd, in either syntax")]
    site: Annotated[Name, Field(description="only at this site, or entry")] = ""


class ExplainJobsAsked(ExplainAsked):
    schedd: Name = ""
    site: Annotated[Name, Field(description="only why not at this site, or entry")] = ""


class Answers:
    """Answers of one poll; ``shows_jobs``: also of single jobs, and of their users."""

    def __init__(self, s: Snapshot, config: Config, *, shows_jobs: bool) -> None:
        self._s, self._config, self._shows_jobs = s, config, shows_jobs
        self._now_us = round(s.pool_time * SECOND_US)

    def sites(self, asked: SitesAsked) -> Record:
        """Return sites, by name."""
        return self._rows(asked, sites.site_rows(self._s), "sites")

    def entries(self, asked: EntriesAsked) -> Record:
        """Return entries, by site and name."""
        rows = [row for row in sites.entry_rows(self._s) if asked.entry in ("", row.entry)]
        return self._rows(asked, rows, "entries")

    def _rows(self, asked: SitesAsked, rows: Sequence[SiteRow], name: str) -> Record:
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

    def pilots(self, asked: PilotsAsked) -> Record:
        """Return pilots, the latest first."""
        after = _position(asked.after, 2)
        selection = Selection(**asked.model_dump(exclude={"limit", "after", "failed", "format"}))
        failed = asked.failed == "true" if asked.failed else None
        wanted = selection.wanted(self._now_us)._replace(after=after, failed=failed)
        found, following = pilot_list(self._config, self._now_us, wanted, asked.limit)
        return self._shown({**_record(found.document), "next": _cursor(following)})

    def pilot(self, number: int) -> Record:
        """Return the life of a pilot."""
        found = pilot_story(self._config, self._now_us, number)
        if found is None:
            raise Refused(404, f"there is no pilot {number}")
        record = _record(pilot_document.document(*found, 80, 0))
        return self._shown(bounded(record, "runs", "own_time", "corrections", "rules", "steps"))

    def runs(self, asked: RunsAsked) -> Record:
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

    def report(self, asked: ReportAsked) -> Record:
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

    def totals(self, asked: TotalsAsked) -> Record:
        """Return averages over time: capacity by state, pilots by category."""
        chosen, now_s = RANGES[asked.last], self._now_us / SECOND_US
        times = read(self._config.ledger.url, chosen, now_s, asked.resource, asked.place)
        unit = f"canonical units of {asked.resource}, on average over a step"
        return {"unit": unit, "step_seconds": 3600 * chosen.hours, **times.as_json}

    def failures(self, asked: FailuresAsked) -> Record:
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

    def problems(self, asked: ProblemsAsked) -> Record:
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

    def idle(self, asked: IdleAsked) -> Record:
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
