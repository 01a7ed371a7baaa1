"""The pages of pilots: a list, one pilot's life with its evidence, traces of pilots and jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from gwmond.config.settings import Config
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import DoingNow
from gwmond.model.poll.snapshot import Snapshot
from gwmond.reports.ledger.ledger_reading import Unreadable
from gwmond.reports.pilots.listing import FIELDS
from gwmond.reports.pilots.stored_pages import MOST, life, pilots_shown, trace
from gwmond.reports.pilots.traced import SeveralJobs
from gwmond.reports.pilots.waterfall import SpanBar
from gwmond.reports.render import fields
from gwmond.reports.render.document import Paragraph, Part
from gwmond.reports.render.formats import counted, words
from gwmond.reports.render.table import Column, table
from gwmond.reports.sites.time_by_hour import RANGES
from gwmond.reports.stored.stored_pilot import StoredPilot
from gwmond.web.asking import PilotsPage
from gwmond.web.controls import FormField, Heading, Tab, address, heading, place_fields, place_links
from gwmond.web.parts import link, render

WHO = (
    "jobs and their users are not shown here: [http] jobs of gwmond's configuration says who may "
    "ask for them"
)
"""What is said to who may not."""
_WHICH = {"running": "not ended", "past": "ended", "all": "all"}
_SAID = {
    "running": "Not ended, the latest first",
    "past": "Ended, the latest first",
    "all": "By their begin, the latest first",
}
_DOING: tuple[DoingNow, ...] = ("running", "idle", "retiring", "silent")


def list_page(
    config: Config, s: Snapshot | None, now_us: int, chosen: PilotsPage, *, shows_jobs: bool
) -> str:
    """Return the list of pilots; ``shows_jobs``: with the users of jobs."""
    parts: list[Part] = []
    error = ""
    more: list[Markup | str] = []
    try:
        found, following = pilots_shown(config, now_us, chosen.wanted(now_us), chosen.position)
    except Unreadable as unreadable:
        error = str(unreadable)
    else:
        more = _more(chosen, found, following)
        parts = [table("", _columns(chosen, shows_jobs=shows_jobs), found)] if found else []
    return render(
        "pilots",
        title="Pilots",
        heading=heading(s, chosen.place),
        links=place_links(chosen.place, but="pilots"),
        choices=[
            Tab(text, which == chosen.which, address("pilots", _first(chosen, which)))
            for which, text in _WHICH.items()
        ],
        fields=_fields(s, chosen),
        error=error,
        parts=parts,
        more=more,
    )


def life_page(config: Config, now_us: int, number: int, *, shows_jobs: bool) -> str | None:
    """Return the page of a pilot; None if there is none of this number."""
    try:
        found = life(config, now_us, number, shows_jobs=shows_jobs)
    except Unreadable as unreadable:
        return _page(f"Pilot {number}", [], str(unreadable))
    if found is None:
        return None
    row, parts = found
    more = [link("trace", "Its trace, as a waterfall", pilot=str(number))]
    if row.end_us is None:
        more.append(link("explain", "Why it has no more jobs", pilot=row.identity.name))
    elif not row.ran_jobs:
        more.append(link("explain", "Why it never had a job", pilot=str(number)))
    return _page(f"Pilot {number}", parts, more=more)


def trace_page(
    config: Config, now_us: int, job: str, pilot: int, *, shows_jobs: bool
) -> str | None:
    """Return the page of a job's trace, or of a pilot's; None if there is none."""

    def see(bar: SpanBar) -> str:
        if bar.job:
            return link("trace", "trace of the job", job=bar.job)
        if bar.pilot:
            return link("pilot", f"pilot {bar.pilot}", id=str(bar.pilot))
        return ""

    form = _trace_form(job, pilot, shows_jobs=shows_jobs)
    try:
        found = trace(config, now_us, job, pilot, see, shows_jobs=shows_jobs)
    except (Unreadable, SeveralJobs) as error:
        return _page("Trace", [], str(error), form=form)
    if found is None:
        return None
    title, parts = found
    more = [] if job else [link("pilot", "The pilot's life, with the evidence", id=str(pilot))]
    return _page(f"Trace of {title}", parts, more=more, form=form)


def trace_form(job: str, pilot: int, error: str, *, shows_jobs: bool) -> str:
    """Return the page that asks for a trace; ``error``: why there is none of what was asked for."""
    form = _trace_form(job, pilot, shows_jobs=shows_jobs)
    if shows_jobs:
        return _page("Trace of a job, or of a pilot", [], error, form=form)
    hidden: list[Part] = [Paragraph(f"{WHO[0].upper()}{WHO[1:]}.")] if error != WHO else []
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


def _more(
    chosen: PilotsPage, found: list[StoredPilot], following: tuple[int, int] | None
) -> list[Markup | str]:
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


def _columns(chosen: PilotsPage, *, shows_jobs: bool) -> list[Column[StoredPilot]]:
    """Return the columns of the list; the place is left out where it is one."""

    def number(pilot: StoredPilot) -> Markup:
        return link("pilot", str(pilot.row.id), id=str(pilot.row.id))

    out = {name for name in ("site", "entry", "group") if getattr(chosen, name)}
    out |= set() if shows_jobs else {"users"}
    return [
        replace(column, cell=number, name=False, text=True) if column.header == "id" else column
        for column in fields.columns(FIELDS)
        if column.header not in out
    ]
