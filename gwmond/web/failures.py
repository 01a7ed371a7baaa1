"""The page of failures: validations of pilots, and jobs that failed by the doing of their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from markupsafe import Markup

from gwmond.config.settings import Config
from gwmond.model.facts import EntryKey
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.runs.phases import FailedTransfer
from gwmond.model.times import SECOND_US, Period
from gwmond.reports.failures.failures import NAMES, FailureLine
from gwmond.reports.failures.outages import Outage, ServerAttempts
from gwmond.reports.failures.recent_failures import (
    JobOf,
    RecentFailures,
    RunCause,
    RunCount,
    recent_failures,
)
from gwmond.reports.failures.ticket import faults_at, tickets
from gwmond.reports.ledger.ledger_reading import Unreadable, ledger_for_page
from gwmond.reports.render.categories import CPU
from gwmond.reports.render.document import Paragraph, Part, Sentences
from gwmond.reports.render.formats import UNKNOWN, counted, hours, percent, ratio, words
from gwmond.reports.render.periods import short, span
from gwmond.reports.render.table import Column, Table, name_columns, table
from gwmond.reports.sites.time_by_hour import RANGES
from gwmond.reports.stored.pilot_sums import PilotSums
from gwmond.web.asking import FailuresAsked
from gwmond.web.controls import FormField, last_tabs, ledger_page, place_fields
from gwmond.web.parts import View, link, user_link

_LINES = 50
"""So many lines a table has."""
_ALL = "gwmond report --failures shows all"
_ENTRIES = (
    "The entries that lost most time are first. Hours are canonical hours of CPUs: of pilots that "
    "failed their whole lives, of runs what is settled. The last line is of all entries."
)
_RUNS = (
    "What counts are failures of the starter, and early failures that a comparison with "
    "runs of the same users elsewhere blames on the place. The comparison is made "
    "{} after the end of a run, and up to a sixth more. A program's own failure is goodput. Hours "
    "are canonical hours of CPUs that are settled."
)
_SERVERS = (
    "Runs whose input or output could not be transferred, whosever fault that was, by protocol and "
    "host of the URL that the failure names. cedar is HTCondor's own protocol; unknown: none is "
    "named. gwmond report --by transfer has their hours."
)
_RECORDED = (
    "Attempts at files by plugins' own records, which HTCondor 25.7 and later has: a line for each "
    "cache or storage where some failed. Repeated: it failed, and the plugin tried again. An "
    "outage is from the first failure to the last, without an arrival between, of three runs or "
    "more; the last one is here, with its runs, their users, and their canonical hours of CPUs. "
    "One user alone may have no right to the files."
)
R = TypeVar("R")


class _Entry(NamedTuple):
    """What failed at an entry."""

    key: EntryKey
    failed: PilotSums
    ended: int
    runs: RunCount


class _FailedRuns(NamedTuple):
    """Runs that failed somewhere, or as something: there at so many entries and nodes.

    ``example``: whose trace shows one of them.
    """

    cause: RunCause
    sums: RunCount
    entries: str = ""
    nodes: str = ""
    example: JobOf = JobOf()


def _link(chosen: FailuresAsked, text: str, site: str, entry: str = "") -> Markup | str:
    """Return a link to the failures of another place; a place without a name has none."""
    return text and link("failures", text, **chosen.but(site=site, entry=entry).query)


def _pilots(
    chosen: FailuresAsked, number: int, cause: RunCause, which: Mapping[str, str]
) -> Markup | str:
    """Return a number of pilots or runs, which leads to the pilots; not of a whole table."""
    if not number or not cause.entry:
        return str(number)
    there = chosen.but(site=cause.site, entry=cause.entry)
    return link("pilots", str(number), node=cause.node, **there.query, **which)


def page(view: View, chosen: FailuresAsked) -> str:
    """Return the page, with a job for each cause where jobs are shown."""
    s, config, period = view.snapshot, view.config, RANGES[chosen.last].period(view.now_us)
    parts: list[Part] = []
    error = ""
    try:
        found = recent_failures(config.ledger.url, period, chosen.place)
    except Unreadable as unreadable:
        error = str(unreadable)
    else:
        if not view.shows_jobs:
            found.jobs = dict.fromkeys(found.jobs, JobOf())
        judged = _RUNS.format(span(round(config.pilots.verdict_after * SECOND_US)))
        parts = [*_parts(found, chosen, judged), *_suspects(s, chosen)]
        parts += _for_tickets(config, chosen, period)
    return ledger_page(
        *("failures", view, chosen, error, parts),
        choices=last_tabs("failures", chosen, chosen.last),
        fields=[FormField("last", "", chosen.last), *place_fields(s, chosen.place)],
    )


def _parts(found: RecentFailures, chosen: FailuresAsked, judged: str) -> Iterator[Part]:
    since = f"since {short(found.since_us)[:16]} UTC"
    if found.partial:
        yield Paragraph(
            f"Only what ended {since} is here: to read all of the period would take longer than a "
            "page may. Choose a place or a shorter period; gwmond report --failures has no limit.",
            "warning",
        )
    pilots, failed = found.validations.ended.total(), found.validations.total
    runs = found.all_runs
    if not pilots and not runs.ended:
        yield Paragraph(f"No pilot and no run of a job has ended here {since}.")
        return
    unknown = f" Of {found.unknown} it is not known." if found.unknown else ""
    pending = f" {runs.open} more failed early and are not judged yet." if runs.open else ""
    yield Sentences(
        [
            f"Of {counted(pilots, 'pilot')} that ended {since}, {failed.pilots} failed "
            f"validation ({percent(ratio(failed.pilots, pilots))}).{unknown}"
            if pilots
            else f"No pilot has ended {since}.",
            f"Of {counted(runs.ended, 'run')} of jobs, {runs.failed} failed at the beginning by "
            f"the doing of the place ({percent(ratio(runs.failed, runs.ended))}).{pending}"
            if runs.ended
            else f"No run of a job has ended {since}.",
        ]
    )
    if not chosen.entry and (entries := [_Entry(*line) for line in found.by_entry]):
        every = _Entry(EntryKey("", ""), failed, pilots, runs)
        yield _table("By entry", _entry_columns(chosen), entries, every, _ENTRIES)
    if failed.pilots:
        yield from found.validations.tables(_LINES, places=_places(chosen), all_by=_ALL)
    if runs.failed or runs.open:
        yield _by_outcome(found, runs, chosen, judged)
        yield _by_node(found, runs, chosen)
    if found.transfers:
        yield _transfers(found, chosen)
    if found.servers:
        yield _recorded(found)


def _table(title: str, columns: list[Column[R]], rows: list[R], whole: R, note: str) -> Table:
    left = len(rows) - _LINES
    more = f" Only the first {counted(_LINES, 'line')}: {left} more." if left > 0 else ""
    return table(title, columns, rows[:_LINES], whole, note + more)


def _entry_columns(chosen: FailuresAsked) -> list[Column[_Entry]]:
    def cause(line: _Entry) -> RunCause:
        return RunCause(*line.key, "", "")

    return [
        Column(
            "site",
            lambda x: _link(chosen, x.key.site, x.key.site) or "all",
            name=True,
        ),
        Column("entry", lambda x: _link(chosen, x.key.entry, *x.key), name=True),
        Column("pilots that failed", lambda x: _pilots(chosen, x.failed.pilots, cause(x), _FAILED)),
        Column("of pilots", lambda x: str(x.ended)),
        Column("%", lambda x: percent(ratio(x.failed.pilots, x.ended), 0)),
        Column("hours of pilots", lambda x: hours(x.failed.time[CPU])),
        Column("runs that failed", lambda x: _pilots(chosen, x.runs.failed, cause(x), _BLAMED)),
        Column("of runs", lambda x: str(x.runs.ended)),
        Column("%", lambda x: percent(ratio(x.runs.failed, x.runs.ended), 0)),
        Column("hours of runs", lambda x: hours(x.runs.micros)),
        Column("not judged yet", lambda x: str(x.runs.open)),
    ]


_FAILED = {"which": "past", "failed": "true"}
_BLAMED = {"which": "all", "category": "misconfiguration_badput"}


def _places(chosen: FailuresAsked) -> list[Column[FailureLine]]:
    """Return the columns of the place and cause of failed validations, with links."""

    def site(line: FailureLine) -> str:
        return _link(chosen, line.names[0], line.names[0]) if line.names[1] else line.names[0]

    def entry(line: FailureLine) -> str:
        return _link(chosen, line.names[1], *line.names[:2]) if line.names[1] else ""

    return [
        Column(NAMES[0], site, name=True, head=True),
        Column(NAMES[1], entry, name=True, head=True),
        *name_columns(NAMES)[2:],
    ]


def _example(chosen: FailuresAsked) -> Column[_FailedRuns]:
    """Return the column of links to the trace of a job and to its user, if they are shown.

    A job that only logs know has no trace.
    """

    def cell(row: _FailedRuns) -> Markup:
        job, user = row.example
        number = job.split("#")[1:2]
        trace = link("trace", f"job {number[0]}", job=job) if number else Markup()
        return trace + (Markup(" of {}").format(user_link(user, chosen)) if user else "")

    return Column("for instance", cell, text=True)


def _by_outcome(found: RecentFailures, runs: RunCount, chosen: FailuresAsked, judged: str) -> Table:
    counts = found.runs_by(lambda cause: RunCause("", "", "", cause.outcome))
    causes = [cause for cause in found.runs if cause.outcome]
    rows = [
        _FailedRuns(
            cause,
            count._replace(ended=runs.ended),
            str(len({x[:2] for x in causes if x.outcome == cause.outcome})),
            str(len({x.node for x in causes if x.outcome == cause.outcome} - {""}) or UNKNOWN),
            next(found.jobs[x] for x in causes if x.outcome == cause.outcome),
        )
        for cause, count in counts.items()
    ]
    columns: list[Column[_FailedRuns]] = [
        Column("outcome", lambda row: words(row.cause.outcome) or "all", name=True),
        Column("entries", lambda row: row.entries),
        Column("nodes", lambda row: row.nodes),
        Column("runs", lambda row: str(row.sums.failed + row.sums.open)),
        Column("%", lambda row: percent(ratio(row.sums.failed + row.sums.open, row.sums.ended), 1)),
        Column(
            "canonical hours",
            lambda row: hours(row.sums.micros if row.sums.failed else None),
        ),
        _example(chosen),
    ]
    rows.sort(key=lambda row: (-row.sums.failed, row.cause))
    title = "Runs of jobs that failed at the beginning, by outcome"
    note = f"{judged} The share is of all {counted(runs.ended, 'run')} that ended."
    return _table(title, columns, rows, _FailedRuns(RunCause("", "", "", ""), runs), note)


class _Server(NamedTuple):
    """Transfers that failed at a site, from or to a server; of the last line all."""

    site: str
    failed: FailedTransfer
    number: int


def _transfers(found: RecentFailures, chosen: FailuresAsked) -> Table:
    rows = [_Server(site, failed, n) for (site, failed), n in found.transfers.most_common()]
    columns: list[Column[_Server]] = [
        Column("direction", lambda row: row.failed.way, name=True),
        Column("server", lambda row: row.failed.server, name=True),
        Column("site", lambda row: _link(chosen, row.site, row.site), name=True),
        Column("runs", lambda row: str(row.number)),
    ]
    whole = _Server("", FailedTransfer("all", "", ""), found.transfers.total())
    return _table("Transfers that failed, by server", columns, rows, whole, _SERVERS)


def _recorded(found: RecentFailures) -> Table:
    def last(line: ServerAttempts, told: Callable[[Outage], str]) -> str:
        return told(line.outages[-1]) if line.outages else ""

    def sites(line: ServerAttempts) -> str:
        return str(line.sites) if line.sites else ""

    columns: list[Column[ServerAttempts]] = [
        Column("direction", lambda line: line.server.way, name=True),
        Column("server", lambda line: line.server.server if line.sites else "", name=True),
        Column("sites", sites),
        Column("arrived", lambda line: str(line.files)),
        Column("failed", lambda line: str(line.failed)),
        Column("repeated", lambda line: str(line.again)),
        Column("outage from", lambda line: last(line, lambda out: short(out.first_us))),
        Column("to", lambda line: last(line, lambda out: short(out.last_us))),
        Column("runs", lambda line: last(line, lambda out: str(out.runs))),
        Column("users", lambda line: last(line, lambda out: str(out.users))),
        Column("canonical hours", lambda line: last(line, lambda out: hours(out.micros))),
    ]
    lines = found.servers
    arrived = sum(line.files for line in lines)
    failed, again = sum(line.failed for line in lines), sum(line.again for line in lines)
    whole = ServerAttempts(FailedTransfer("all", "", ""), 0, arrived, failed, again, ())
    return _table("Caches and storages", columns, lines, whole, _RECORDED)


def _by_node(found: RecentFailures, runs: RunCount, chosen: FailuresAsked) -> Table:
    nodes = found.runs_by(lambda cause: cause._replace(outcome=""))
    rows = [
        _FailedRuns(
            *(cause, count._replace(ended=found.runs_ended[cause.place])),
            example=next(job for x, job in found.jobs.items() if x.place == cause.place),
        )
        for cause, count in nodes.items()
    ]
    rows.sort(key=lambda row: (-row.sums.failed, -row.sums.open, row.cause))
    columns: list[Column[_FailedRuns]] = [
        Column(
            "site",
            lambda row: _link(chosen, row.cause.site, row.cause.site) if row.cause.entry else "all",
            name=True,
        ),
        Column("entry", lambda row: _link(chosen, row.cause.entry, *row.cause[:2]), name=True),
        Column(
            "node",
            lambda row: row.cause.node or ("(not known)" if row.cause.entry else ""),
            name=True,
        ),
        Column("runs", lambda row: _pilots(chosen, row.sums.failed, row.cause, _BLAMED)),
        Column("of", lambda row: str(row.sums.ended)),
        Column("%", lambda row: percent(ratio(row.sums.failed, row.sums.ended), 0)),
        Column("canonical hours", lambda row: hours(row.sums.micros)),
        Column("not judged yet", lambda row: str(row.sums.open)),
        _example(chosen),
    ]
    title = "Runs of jobs that failed at the beginning, by entry and node"
    note = "The nodes where most failed are first; the numbers lead to the pilots of the runs."
    return _table(title, columns, rows, _FailedRuns(RunCause("", "", "", ""), runs), note)


def _for_tickets(config: Config, chosen: FailuresAsked, period: Period) -> Iterator[Part]:
    """Yield the faults of a site."""
    site = chosen.place.site
    if not site:
        return
    title = Paragraph("Faults, as texts for a ticket to the site", "heading")
    try:
        with ledger_for_page(config.ledger.url) as ledger:
            found = faults_at(ledger, period, chosen.place)
    except Unreadable as unreadable:
        yield from (title, Paragraph(str(unreadable), "warning"))
        return
    if found:
        yield from (title, *tickets(site, period, found))


def _suspects(s: Snapshot | None, chosen: FailuresAsked) -> Iterator[Part]:
    """Yield the places where jobs end far too soon, as the daemon last found them."""
    known = s.pilot_time.suspects if s is not None and s.pilot_time is not None else ()
    here = [x.shown for x in known if chosen.place.covers(x.site, x.entry)]
    if here:
        yield Paragraph("Suspected black holes, of the last two hours", "heading")
        yield Sentences(here)
