"""The page of runs of jobs: a list, from which each leads to its trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from markupsafe import Markup

from gwmond.model.pilot_life import Category
from gwmond.model.runs.outcomes import OUTCOMES
from gwmond.reports.ledger.ledger_reading import Unreadable
from gwmond.reports.pilots.runs import FIELDS, ListedRun, RunList, run_list
from gwmond.reports.render import fields
from gwmond.reports.render.document import Part
from gwmond.reports.render.formats import counted, words
from gwmond.reports.render.table import Column, table
from gwmond.reports.sites.time_by_hour import RANGES
from gwmond.web.asking import RunsPage
from gwmond.web.controls import FormField, address, last_tabs, ledger_page, place_fields
from gwmond.web.parts import View, link, unbroken, user_link
from gwmond.web.pilots import HIDDEN

MOST = 100
"""Runs of a page."""


def page(view: View, chosen: RunsPage) -> str:
    """Return the list, with the jobs and their users where these are shown."""
    parts: list[Part] = []
    error, more = "", list[Markup | str]()
    hidden = not view.shows_jobs
    if hidden and (chosen.user or chosen.job):
        error = HIDDEN
    else:
        try:
            wanted = chosen.wanted(RANGES[chosen.last].period(view.now_us), chosen.skip)
            with view.ledger as (ledger, age):
                found = run_list(ledger, age, wanted, MOST)
        except Unreadable as unreadable:
            error = str(unreadable)
        else:
            shown = [x._replace(row=x.row.unnamed) if hidden else x for x in found.runs]
            parts = [table("", _columns(), shown)] if shown else []
            more = _more(chosen, found)
    return ledger_page(
        *("runs", view, chosen, error, parts),
        choices=last_tabs("runs", chosen.but(skip=0), chosen.last),
        fields=_fields(view, chosen),
        more=more,
    )


def _fields(view: View, chosen: RunsPage) -> list[FormField]:
    of_jobs = [
        FormField("user", "User", chosen.user, example="alice"),
        FormField("job", "Job", chosen.job, example="4711.0"),
    ]
    return [
        FormField("last", "", chosen.last),
        *place_fields(view.snapshot, chosen.place),
        FormField("node", "Node", chosen.node, example="wn42.*"),
        *(of_jobs if view.shows_jobs else ()),
        FormField(
            *("category", "Category", chosen.category),
            choices=[("", "any category"), *((name, words(name)) for name in Category)],
        ),
        FormField("outcome", "Ended so", chosen.outcome, OUTCOMES, example="exit_zero"),
        FormField(
            *("longer_than", "Longer than (seconds)", str(chosen.longer_than or "")),
            example="21600",
        ),
    ]


def _more(chosen: RunsPage, found: RunList) -> list[Markup | str]:
    """Return how many runs are shown, and links to those before and after."""
    more: list[Markup | str] = [
        f"By their begin, the latest first: {counted(len(found.runs), 'run')}."
        if found.runs
        else "There is no such run."
    ]
    if chosen.skip:
        more.append(_to("From the latest", chosen.but(skip=0)))
    if found.truncated:
        more.append(_to(f"The next {MOST}", chosen.but(skip=chosen.skip + MOST)))
    return more


def _to(text: str, chosen: RunsPage) -> Markup:
    return Markup('<a href="{}">{}</a>').format(address("runs", chosen), text)


def _columns() -> list[Column[ListedRun]]:
    """Return the columns of the command's table; what has a page leads there."""
    cells: dict[str, Callable[[ListedRun], str]] = {
        "pilot": lambda run: link("pilot", str(run.row.pilot), id=str(run.row.pilot)),
        "site": lambda run: link("failures", run.pilot.identity.key.site, **_place(run)),
        "user": lambda run: run.row.user and user_link(run.row.user),
        "job": _job,
    }
    return [
        replace(column, cell=cells.get(column.header) or _unbroken(column.cell))
        for column in fields.columns(FIELDS)
    ]


def _place(run: ListedRun) -> dict[str, str]:
    return {"site": run.pilot.identity.key.site, "entry": run.pilot.identity.key.entry}


def _unbroken(cell: Callable[[ListedRun], str]) -> Callable[[ListedRun], str]:
    return lambda run: unbroken(cell(run))


def _job(run: ListedRun) -> Markup | str:
    """Return a job's number, which leads to its trace; empty where it is not shown."""
    name, start = run.row.key.job, run.row.key.shadow_start
    number = name.split("#")[1:2]
    if not number:
        return name
    return Markup("{} {}").format(link("trace", number[0], job=name), f"run {start or '?'}")
