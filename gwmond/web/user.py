"""The page of users: whose jobs fail, wait and waste; of one user what, where and how often."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from gwmond.model.demand.idle_history import nearest_rank
from gwmond.model.demand.submitters import UserJobs, together
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import EndedOfUser, GoingOn
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.times import Period
from gwmond.reports.failures.users import RunsOfUsers, runs_of_users
from gwmond.reports.ledger.ledger_reading import Unreadable
from gwmond.reports.render.categories import INFO, INFOS
from gwmond.reports.render.document import Paragraph, Part, Sentences
from gwmond.reports.render.formats import counted, hours, number, percent, ratio, words
from gwmond.reports.render.periods import short, span
from gwmond.reports.render.table import Cell, Column, Table, table
from gwmond.reports.sites.time_by_hour import RANGES
from gwmond.web.asking import UserAsked
from gwmond.web.controls import FormField, last_tabs, ledger_page, place_fields
from gwmond.web.parts import View, ago, link, spent, user_link, whole
from gwmond.web.pilots import WHO

_LINES = 100
"""So many lines a table has."""
_USERS = (
    "Early failures first: runs that ended in failure soon after they began, whosever fault that "
    "was; then who lost most. Lost are canonical hours of CPUs of runs that are not goodput."
)
_OUTCOMES = (
    "Of runs that ended. docs/early-failures.md says how it is found whose fault an early failure "
    "was. What is not settled yet has no time here."
)
_WHY = Markup("Why jobs wait: {} has the reasons of all users', and {} is told of one.")
_NOW = (
    "As schedds count them, whatever site is chosen: waiting are idle jobs, wherever they could "
    "run; running are those on slots of the pools that gwmond watches. Jobs that are still to be "
    "materialized are not among them."
)


class _UserRuns(NamedTuple):
    """Runs of a user, at an entry, or with an outcome; ``time``: canonical micros by category."""

    names: tuple[str, ...]
    runs: int
    early: int
    time: Counter[str]
    gpu: int
    job: str = ""

    @property
    def lost(self) -> int:
        """What is settled, and no goodput."""
        return self.time.total() - self.time[Category.GOODPUT]


def page(view: View, asked: UserAsked) -> str:
    """Return the page; who may not ask for jobs is told so."""
    period = RANGES[asked.last].period(view.now_us)
    parts: list[Part] = []
    error = "" if view.shows_jobs else WHO
    if view.shows_jobs:
        parts += _jobs_now(view.snapshot, asked)
        try:
            found = runs_of_users(view.config.ledger.url, period, asked.place, asked.user)
        except Unreadable as unreadable:
            error = str(unreadable)
        else:
            parts += _of_one(period, found) if asked.user else _of_all(asked, found.ended)
    return ledger_page(
        *("user", view, asked, error, parts),
        title=f"User {asked.user}" if asked.user else "Users",
        choices=last_tabs("user", asked, asked.last),
        fields=[
            FormField("last", "", asked.last),
            FormField("user", "User (with a domain, or of any)", asked.user),
            *place_fields(view.snapshot, asked.place),
        ],
        more=[link("user", "All users", **asked.but(user="").query)] if asked.user else (),
    )


def _jobs_now(s: Snapshot | None, asked: UserAsked) -> Iterator[Part]:
    """Yield the jobs of a user, or of all, as schedds count them."""
    now = s.users if s else None
    if s is None or now is None:
        yield Paragraph("How many jobs wait is not known: no collector has told it.", "caution")
        return
    jobs = now.jobs
    every = [one for one in jobs if one.is_of(asked.user)]
    yield Paragraph(_said(s, every))
    if not now.complete:
        yield Paragraph("A collector did not answer: there may be more jobs.", "caution")
    if names := [one.submitter for one in jobs if asked.user and one.may_be_of(asked.user)]:
        maybe = Markup(", ").join(user_link(name, asked) for name in names[:_LINES])
        yield Paragraph(
            Markup("Perhaps of the same user, by an accounting group: {}.").format(maybe)
        )
    by: dict[str, list[UserJobs]] = {}
    for one in every:
        by.setdefault(one.submitter if asked.user else one.user, []).append(one)
    rows = [one for one in map(together, by.values()) if not one.is_none]
    if len(rows) > bool(asked.user):
        rows.sort(key=lambda one: (-(one.waiting or 0), -(one.held or 0), one.user))
        who = _AS if asked.user else _who(asked)
        left = len(rows) - _LINES
        note = _NOW + (f" Only the first {_LINES} lines: {left} more." if left > 0 else "")
        yield table("Jobs now", [who, *_JOBS], rows[:_LINES], note=note)
    yield Paragraph(
        _WHY.format(link("explain", "All idle jobs", all="1"), link("explain", "why a job waits"))
    )


def _said(s: Snapshot, jobs: Sequence[UserJobs]) -> Markup | str:
    if not jobs:
        return "Jobs now: no schedd has told of any."
    all_of = together(jobs)
    waiting, running, held = map(number, all_of[3:6])
    said = (
        f"Jobs now: {waiting} waiting, {running} running, {held} held, by the own count of "
        f"{counted(len(all_of.schedds), 'schedd')}."
    )
    if all_of.told is None:
        return said
    return Markup("{} The oldest part of it was told {}.").format(
        said, ago(all_of.told + s.made_at - s.pool_time)
    )


def _who(asked: UserAsked) -> Column[UserJobs]:
    return Column("user", lambda one: whole(user_link(one.user, asked)), name=True)


_AS: Column[UserJobs] = Column("submitter", lambda one: one.submitter, name=True)
_JOBS: tuple[Column[UserJobs], ...] = (
    Column("waiting", lambda one: number(one.waiting)),
    Column("running", lambda one: number(one.running)),
    Column("held", lambda one: number(one.held)),
    Column("schedds", lambda one: str(len(one.schedds))),
)


def _waited(waits: list[int]) -> Iterator[str]:
    if waits:
        half, most = nearest_rank(waits, 0.5), nearest_rank(waits, 0.9)
        yield (
            f"Of the latest {counted(len(waits), 'job')} to begin half had waited for "
            f"{span(half)} or less since their submission, and nine of ten for {span(most)}."
        )


def _sums(
    ended: Iterable[EndedOfUser], names: Callable[[EndedOfUser], tuple[str, ...]]
) -> list[_UserRuns]:
    found: defaultdict[tuple[str, ...], list[EndedOfUser]] = defaultdict(list)
    for one in ended:
        found[names(one)].append(one)
    return [_sum(key, some) for key, some in found.items()]


def _sum(names: tuple[str, ...], ended: list[EndedOfUser]) -> _UserRuns:
    time = Counter[str]()
    for one in ended:
        if one.category:
            time[one.category] += one.cpu
    number, early, gpu = (sum(getattr(x, name) for x in ended) for name in ("runs", "early", "gpu"))
    return _UserRuns(names, number, early, time, gpu, max(one.job for one in ended))


def _order(row: _UserRuns) -> tuple[int, int, tuple[str, ...]]:
    """Return the order of rows: early failures take little time, and would be last by that."""
    return -row.early, -row.lost, row.names


def _of_all(asked: UserAsked, ended: list[EndedOfUser]) -> Iterator[Part]:
    if not ended:
        yield Paragraph("No run of a job has ended here in this period.")
        return

    def who(row: _UserRuns) -> str:
        name = row.names[0]
        return whole(user_link(name, asked)) if name != "all" else name

    rows = sorted(_sums(ended, lambda x: (x.user,)), key=_order)
    yield _table(
        "By user", [Column("user", who, name=True), *_COUNTS], rows, _sum(("all",), ended), _USERS
    )


def _of_one(period: Period, found: RunsOfUsers) -> Iterator[Part]:
    ended, going, waits = found
    since = f"since {short(period.since_us)[:16]} UTC"
    every = _sum(("all",) * 2, ended) if ended else None
    good = sum(x.runs for x in ended if x.category == Category.GOODPUT and x.outcome == "exit_zero")
    yield Sentences(
        [
            f"{counted(every.runs, 'run')} ended {since}: {good} exited with 0 "
            f"({percent(ratio(good, every.runs))}), {every.early} failed early "
            f"({percent(ratio(every.early, every.runs))})."
            if every
            else f"No run has ended {since}.",
            f"Going on: {counted(sum(x.runs for x in going), 'run')}, on "
            f"{sum(x.cores for x in going):g} cores."
            if going
            else "No run is known to go on.",
            *_waited(waits),
        ]
    )
    if every:
        entries = sorted(_sums(ended, lambda x: (x.site, x.entry)), key=_order)
        yield _by_outcome(ended, every)
        yield _table("By entry", [*_PLACE, *_COUNTS], entries, every, "Early failures first.")
    if going:
        rows = sorted(going, key=lambda one: -one.runs)
        yield table("Runs that go on", _GOING, rows[:_LINES])


def _table(
    title: str,
    columns: list[Column[_UserRuns]],
    rows: list[_UserRuns],
    every: _UserRuns,
    note: str,
) -> Table:
    left = len(rows) - _LINES
    more = f" Only the first {counted(_LINES, 'line')}: {left} more." if left > 0 else ""
    return table(title, columns, rows[:_LINES], every, note + more)


def _by_outcome(ended: list[EndedOfUser], every: _UserRuns) -> Table:
    rows = sorted(
        _sums(ended, lambda x: (x.category, x.outcome)), key=lambda row: (-row.runs, row.names)
    )

    def category(row: _UserRuns) -> str:
        name = row.names[0]
        if name == "all":
            return name
        known = Category(name) if name else None
        meaning = INFO[known].meaning
        return Cell(words(name) if name else "not settled yet", hint=meaning)

    columns: list[Column[_UserRuns]] = [
        Column("category", category, text=True),
        Column("outcome", lambda x: words(x.names[1]) if x is not every else "", text=True),
        Column("runs", lambda row: str(row.runs)),
        Column("%", lambda row: percent(ratio(row.runs, every.runs), 1)),
        Column("failed early", lambda row: str(row.early)),
        Column("canonical hours", lambda row: hours(row.time.total())),
        Column("GPU hours", lambda row: hours(row.gpu), zero=True),
        Column("for instance", lambda x: _trace(x.job) if x is not every else "", text=True),
    ]
    return _table("By outcome", columns, rows, every, _OUTCOMES)


def _trace(job: str) -> Markup | str:
    """Return a link to the trace of a job; empty if only logs know the job."""
    number = job.split("#")[1:2]
    return link("trace", f"job {number[0]}", job=job) if number else ""


def _time(row: _UserRuns) -> Markup | str:
    return spent((info, row.time[info.category or ""]) for info in INFOS)


_PLACE: list[Column[_UserRuns]] = [
    Column("site", lambda x: _failures(x.names[0], x.names[0]), name=True),
    Column(
        *("entry", lambda x: _failures(x.names[1], *x.names) if x.names[0] != "all" else ""),
        name=True,
    ),
]


def _failures(text: str, site: str, entry: str = "") -> Markup | str:
    """Return a link to the failures of a place."""
    return text if site == "all" else link("failures", text, site=site, entry=entry)


_COUNTS: list[Column[_UserRuns]] = [
    Column("runs", lambda row: str(row.runs)),
    Column("failed early", lambda row: str(row.early)),
    Column("%", lambda row: percent(ratio(row.early, row.runs), 1)),
    Column("canonical hours", lambda row: hours(row.time.total())),
    Column("lost", lambda row: hours(row.lost)),
    Column("%", lambda row: percent(ratio(row.lost, row.time.total()), 1)),
    Column("GPU hours", lambda row: hours(row.gpu), zero=True),
    Column("time", _time, text=True),
]
_GOING: tuple[Column[GoingOn], ...] = (
    Column("site", lambda one: one.site, name=True),
    Column("entry", lambda one: one.entry, name=True),
    Column("user", lambda one: one.user, name=True),
    Column("runs", lambda one: str(one.runs)),
    Column("cores", lambda one: f"{one.cores:g}"),
    Column("the first began (UTC)", lambda one: short(one.since_us), text=True),
)
