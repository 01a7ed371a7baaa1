"""The pages of pilots: a list, one pilot's life with its evidence, traces of pilots and jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import DoingNow
from gwmond.model.poll.snapshot import Snapshot
from gwmond.reports.ledger.ledger_reading import Age, Unreadable, as_of, ledger_for_page
from gwmond.reports.ledger.open_runs import rules
from gwmond.reports.pilots import pilot_document, timeline
from gwmond.reports.pilots.listing import FIELDS, Position, page_of, some_users
from gwmond.reports.pilots.story import Story, story_of
from gwmond.reports.pilots.traced import SeveralJobs, Traced, trace_of
from gwmond.reports.pilots.waterfall import SpanBar, page_parts
from gwmond.reports.render import fields
from gwmond.reports.render.categories import CPU, INFOS, of_kind
from gwmond.reports.render.document import Paragraph, Part
from gwmond.reports.render.formats import counted, words
from gwmond.reports.render.table import Column, Table, table
from gwmond.reports.sites.time_by_hour import RANGES
from gwmond.reports.stored.stored_pilot import StoredPilot
from gwmond.web.asking import PilotsPage
from gwmond.web.controls import (
    FormField,
    Heading,
    Tab,
    address,
    keys,
    ledger_page,
    place_fields,
)
from gwmond.web.parts import (
    View,
    entry_link,
    link,
    render,
    site_link,
    spent,
    unbroken,
    user_link,
    whole,
)

MOST = 100
"""Pilots of a list."""
WHO = (
    "jobs and their users are not shown here: [http] jobs of gwmond's configuration says who may "
    "ask for them"
)
"""What is said to who may not."""
HIDDEN = f"{WHO[0].upper()}{WHO[1:]}."
_WHICH = {"running": "not ended", "past": "ended", "all": "all"}
_SAID = {
    "running": "Not ended, the latest first",
    "past": "Ended, the latest first",
    "all": "By their begin, the latest first",
}
_DOING: tuple[DoingNow, ...] = ("running", "idle", "retiring", "silent")


def list_page(view: View, chosen: PilotsPage) -> str:
    """Return the list of pilots, with the users of jobs where these are shown."""
    parts: list[Part] = []
    error = ""
    more: list[Markup | str] = []
    try:
        with ledger_for_page(view.config.ledger.url) as ledger:
            wanted, at = chosen.wanted(view.now_us), as_of(ledger, view.config, view.now_us)
            found, following = page_of(ledger, wanted, at, MOST, chosen.position)
    except Unreadable as unreadable:
        error = str(unreadable)
    else:
        more = _more(chosen, found, following)
        columns = _columns(view, chosen)
        parts = [table("", columns, found)] if found else []
    return ledger_page(
        *("pilots", view, chosen, error, parts),
        choices=[
            Tab(text, which == chosen.which, address("pilots", _first(chosen, which)))
            for which, text in _WHICH.items()
        ],
        fields=_fields(view.snapshot, chosen),
        columns=_choices(view, chosen),
        more=more,
    )


def life(view: View, number: int) -> tuple[Story, Age] | None:
    """Return a pilot's story, and the ledger's age; None if there is none.  Raises Unreadable."""
    with view.ledger as (ledger, age):
        row = ledger.pilots_by_id([number]).get(number)
        return row and (story_of(ledger, row, view.now_us, rules(view.config)), age)


def life_page(view: View, number: int) -> str | None:
    """Return the page of a pilot; None if there is none of this number."""
    try:
        found = life(view, number)
    except Unreadable as unreadable:
        return _page(f"Pilot {number}", [], str(unreadable))
    if found is None:
        return None
    story, age = found
    if not view.shows_jobs:
        story = story._replace(runs=tuple(r._replace(row=r.row.unnamed) for r in story.runs))
    parts = pilot_document.document(story, age, 80, timeline.MOST).parts()
    row = story.pilot.row
    more = [link("trace", "Its trace, as a waterfall", pilot=str(number))]
    if row.end_us is None:
        more.append(link("explain", "Why it has no more jobs", pilot=row.identity.name))
    elif not row.ran_jobs:
        more.append(link("explain", "Why it never had a job", pilot=str(number)))
    return _page(f"Pilot {number}", [*map(_linked, timeline.with_drawing(story, parts))], more=more)


def traced(view: View, job: str, pilot: int) -> tuple[Traced, Age] | None:
    """Return what ``trace_of`` does, and the ledger's age; raises Unreadable, and SeveralJobs."""
    with view.ledger as (ledger, age):
        until_us, joined = age.written_us or view.now_us, view.config.traces.join_at_most
        found = trace_of(ledger, job, pilot, joined, until_us)
    return found and (found, age)


def trace_page(view: View, job: str, pilot: int) -> str | None:
    """Return the page of a job's trace, or of a pilot's; None if there is none."""

    def see(bar: SpanBar) -> str:
        if bar.job:
            return link("trace", "trace of the job", job=bar.job)
        if bar.pilot:
            return link("pilot", f"pilot {bar.pilot}", id=str(bar.pilot))
        return ""

    form = _trace_form(job, pilot, shows_jobs=view.shows_jobs)
    try:
        found = traced(view, job, pilot)
    except (Unreadable, SeveralJobs) as error:
        return _page("Trace", [], str(error), form=form)
    if found is None:
        return None
    shown, age = found
    if not view.shows_jobs:
        shown = shown._replace(runs=[run.unnamed for run in shown.runs])
    more = [] if job else [link("pilot", "The pilot's life, with the evidence", id=str(pilot))]
    parts = list(page_parts(shown, age, see))
    return _page(f"Trace of {shown.title}", parts, more=more, form=form)


def trace_form(view: View, job: str, pilot: int, error: str = "") -> str:
    """Return the page that asks for a trace; ``error``: why there is none of what was asked for."""
    form = _trace_form(job, pilot, shows_jobs=view.shows_jobs)
    if view.shows_jobs:
        return _page("Trace of a job, or of a pilot", [], error, form=form)
    hidden: list[Part] = [Paragraph(HIDDEN)] if error != WHO else []
    return _page("Trace of a pilot", hidden, error, form=form)


def _trace_form(job: str, pilot: int, *, shows_jobs: bool) -> list[FormField]:
    name = FormField(
        "job",
        "Job (GlobalJobId, or cluster.proc)",
        job,
        example="ap1.example.org#4711.0#1763856000",
    )
    number = FormField("pilot", "Pilot (its number)", str(pilot or ""), example="17")
    return [name, number] if shows_jobs else [number]


def _page(
    title: str,
    parts: list[Part],
    error: str = "",
    more: Sequence[str] = (),
    form: Sequence[FormField] = (),
) -> str:
    """Return a page of one pilot or job; with a form it is one of a trace."""
    return render(
        "trace" if form else "pilots",
        title=title,
        heading=Heading("", "", ()),
        links="",
        choices=(),
        fields=form,
        error=error,
        parts=parts,
        more=more,
    )


def _first(chosen: PilotsPage, which: str) -> PilotsPage:
    """Return the first page of the same filter."""
    return chosen.but(which=which, doing="", after="")


def _more(chosen: PilotsPage, found: list[StoredPilot], following: Position) -> list[Markup | str]:
    """Return what is said below the list: how many, and links to the pages before and after."""
    more: list[Markup | str] = []
    if found:
        more.append(f"{_SAID[chosen.which]}: {counted(len(found), 'pilot')}.")
    else:
        more.append("There is no such pilot.")
    if chosen.after:
        more.append(_link("From the latest", chosen.but(after="")))
    if following:
        time, number = following
        more.append(_link(f"The next {MOST}", chosen.but(after=f"{time}.{number}")))
    return more


def _link(text: str, chosen: PilotsPage) -> Markup:
    return link("pilots", text, **chosen.query)


def _fields(s: Snapshot | None, chosen: PilotsPage) -> list[FormField]:
    """Return the fields of the filter."""
    ended = "Ended in the last" if chosen.which == "past" else "Lived in the last"
    doing = [("", "anything"), *((name, name) for name in _DOING)]
    return [
        FormField("which", "", chosen.which),
        FormField("columns", "", chosen.columns),
        *place_fields(s, chosen.place),
        FormField("node", "Node (* stands for anything)", chosen.node),
        FormField(
            *("last", ended, chosen.last),
            choices=[("", "any time"), *((last, kind.name) for last, kind in RANGES.items())],
        ),
        *([FormField("doing", "Now", chosen.doing, choices=doing)] * (chosen.which == "running")),
        FormField(
            *("category", "With settled time of", chosen.category),
            choices=[("", "any category"), *((name, words(name)) for name in Category)],
        ),
        FormField(
            *("failed", "Validation", chosen.failed),
            choices=[("", "any"), ("true", "failed, no job ran")],
        ),
    ]


def _offered(view: View) -> list[str]:
    """Return the headers of all columns that may be shown, in their order."""
    hidden = {"%"} | (set() if view.shows_jobs else {"users"})
    every = [column.header for column in fields.columns(FIELDS)]
    at = every.index("hours") + 1
    return [name for name in (*every[:at], "time", *every[at:]) if name not in hidden]


def _choices(view: View, chosen: PilotsPage) -> list[Tab]:
    """Return a link for each column: to the same list with it, or without it."""
    shown = {*_shown(chosen)}
    offered = _offered(view)

    def target(name: str) -> str:
        wanted = [one for one in offered if one in shown ^ {name}]
        return address("pilots", chosen.but(columns=",".join(wanted), after=""))

    return [Tab(name, name in shown, target(name)) for name in offered]


def _shown(chosen: PilotsPage) -> Sequence[str]:
    """Return the headers of the columns that are chosen; the place is left out where it is one."""
    if chosen.columns:
        return chosen.columns.split(",")
    out = {name for name in ("site", "entry", "group") if getattr(chosen, name)}
    return [name for name in _LISTED if name not in out]


def _columns(view: View, chosen: PilotsPage) -> list[Column[StoredPilot]]:
    """Return the columns of the list."""
    known = keys(view.snapshot)
    sites = {key.site for key in known}
    found = {column.header: column for column in fields.columns(FIELDS)}

    def site(pilot: StoredPilot) -> Markup:
        name = pilot.identity.key.site
        return whole(site_link(name) if name in sites else name)

    def entry(pilot: StoredPilot) -> Markup:
        key = pilot.identity.key
        return whole(entry_link(key) if key in known else key.entry)

    def column(name: str) -> Column[StoredPilot]:
        cell, small = found[name].cell, Markup("<small>{}</small>")
        frame = small if name in {"group", "pilot"} else Markup("{}")
        return replace(found[name], cell=lambda pilot: frame.format(unbroken(cell(pilot))))

    cells = {"id": _number, "site": site, "entry": entry, "users": _users, "time": _time}
    shown = {*_shown(chosen)}
    return [
        Column(name, cells[name], text=True) if name in cells else column(name)
        for name in _offered(view)
        if name in shown
    ]


_LISTED = (
    *("id", "site", "entry", "doing", "users", "since (UTC)", "until (UTC)", "hours", "time"),
    *("GPU hours", "group", "pilot"),
)
"""The columns of the list that are shown if no others are chosen."""


def _number(pilot: StoredPilot) -> Markup:
    return link("pilot", str(pilot.row.id), id=str(pilot.row.id))


def _users(pilot: StoredPilot) -> Markup:
    users, more = some_users(pilot)
    return Markup(", ").join(whole(user_link(user)) for user in users) + more


def _linked(part: Part) -> Part:
    """Return a table of runs in which user and job, by its short number, lead to their pages."""
    headers = part.headers if isinstance(part, Table) else ()
    if not isinstance(part, Table) or not {"user", "job"} <= {*headers}:
        return part
    user, job = headers.index("user"), headers.index("job")

    def cells(row: tuple[str, ...]) -> tuple[str, ...]:
        shown = list(row)
        shown[user] = row[user] and user_link(row[user])
        name, _, run = row[job].partition(" ")
        if number := name.split("#")[1:2]:
            shown[job] = Markup("{} {}").format(link("trace", number[0], job=name), run)
        return tuple(shown)

    return replace(part, rows=tuple(map(cells, part.rows)))


def _time(pilot: StoredPilot) -> Markup | str:
    """Return what its time was spent on, as a bar and in words; not all of it is settled."""
    amounts = [
        (info, of_kind(pilot.settled, CPU, [info.category]))
        if info.category
        else (info, max(pilot.unsettled[CPU], 0))
        for info in INFOS
    ]
    return spent(amounts)
