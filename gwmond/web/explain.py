"""The page that says why a job is not running, why a pilot or an entry has none, or why all wait.

A question costs the pool a query, so questions are few: ``AT_ONCE`` under way, ``BURST`` at a time
and ``A_MINUTE`` in the long run, whoever asks.  An answer is kept until the next poll.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import quote

from markupsafe import Markup

from gwmond.model.demand.question import (
    NOT_READ,
    OF_JOBS,
    POOL,
    WITHHELD,
    Question,
    Unanswered,
    What,
)
from gwmond.model.demand.what_if import CHANGES, WhatIfKind
from gwmond.model.entries.evaluation import IdleJobs
from gwmond.model.facts import ANYWHERE, Place
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.times import SECOND_US
from gwmond.reports.render import writing
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.periods import both, span
from gwmond.reports.render.table import Column, Table, table
from gwmond.web.answers import MOST_LINES, bounded
from gwmond.web.controls import FormField, Tab, heading, place_fields
from gwmond.web.parts import link, render, shown, site_link, time_text, user_link

AT_ONCE, BURST, A_MINUTE = 2, 20, 20
MOST_KEPT = 100
"""So many answers of a poll are kept."""
_HIDDEN = (
    "Single jobs are not shown here. [http] jobs of gwmond's configuration says who may ask for "
    "them. On a host that may query the schedd: gwmond explain JOB. A pilot, an entry and all idle "
    "jobs together are explained here to everybody."
)
_FIRST = "The first poll is under way: ask again once it has ended."
_TITLES: Mapping[What, tuple[str, str]] = {
    "job": ("A job", "Why is a job not running?"),
    "ad": ("", "What would happen to such a job?"),
    "pilot": ("A pilot", "Why does a pilot have no job?"),
    "entry": ("An entry", "Why do an entry's pilots have no job?"),
    "all": ("All idle jobs", "Why are idle jobs not running?"),
    "whatif": ("What if", "What would a change move?"),
}


_LARGEST = 20


def _could_run(one: IdleJobs) -> str:
    sites = sorted({key.site for key in one.entries})
    more = f" and {len(sites) - 3} more" if len(sites) > 3 else ""
    return Markup(", ").join(map(site_link, sites[:3])) + more if sites else "nowhere"


def _example(one: IdleJobs) -> str:
    job, schedd = one.group.sample, one.group.schedd
    return link("explain", job, job=job, schedd=schedd) if "." in job else job


_GROUPS: tuple[Column[IdleJobs], ...] = (
    Column("jobs", lambda one: str(one.group.jobs)),
    Column("accounting group", lambda one: one.group.accounting_group, name=True),
    Column("could run at", _could_run, text=True),
    Column("cores", lambda one: f"{one.group.size.cores:g}"),
    Column("MiB", lambda one: f"{one.group.size.memory_mib:.0f}"),
    Column("schedd", lambda one: one.group.schedd, name=True),
    Column("why, for one of them", _example, text=True),
)


class Answered(NamedTuple):
    """An answer for people and for programs; ``again_s``: ask again no sooner."""

    question: Question
    parts: Sequence[Part]
    record: Mapping[str, Any]
    status: int = 200
    again_s: int | None = None

    @property
    def error(self) -> str:
        """Why there is none."""
        return str(self.record.get("error", ""))

    @property
    def headers(self) -> dict[str, str]:
        """What HTTP says of it: when to ask again, and how much of it could not be read."""
        again = {} if self.again_s is None else {"Retry-After": str(self.again_s)}
        missing = self.record.get("not_read")
        return again | ({NOT_READ: str(len(missing))} if missing else {})

    @property
    def is_form(self) -> bool:
        """Whether nothing is asked yet, so that the page has a form alone."""
        return self.status == 400 and not self.question.is_asked


class Turns:
    """Lets few questions through, all clients' together; times are seconds of ``clock``."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._under_way, self._left, self._at = 0, float(BURST), clock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold a turn; raises Unanswered where there are too many."""
        with self._lock:
            now = self._clock()
            self._left = min(BURST, self._left + (now - self._at) * A_MINUTE / 60)
            self._at = now
            if self._under_way >= AT_ONCE or self._left < 1:
                seconds = 5 if self._left >= 1 else round(60 / A_MINUTE) + 1
                text = f"Too many questions at once: ask again in {seconds} seconds."
                raise Unanswered(429, text, seconds)
            self._under_way += 1
            self._left -= 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1


class Answering(Protocol):
    """What answers questions as of a poll; raises Unanswered.

    ``pool`` is whose answers these are (``service.pool.pool``).  ``shows_jobs``: also of one job.
    ``lacks``: why neither jobs nor pilots are explained; empty: they are.
    """

    @property
    def pool(self) -> str: ...

    @property
    def schedds(self) -> Sequence[str]: ...

    @property
    def shows_jobs(self) -> bool: ...

    @property
    def lacks(self) -> str: ...

    def __call__(self, question: Question) -> Document: ...


class Explanations:
    """The answers of one poll; ``asked``: None where nothing is shown."""

    def __init__(self, snapshot: Snapshot | None, asked: Answering | None, turns: Turns) -> None:
        self._snapshot, self._asked, self._turns = snapshot, asked, turns
        self._kept: dict[Question, Answered] = {}
        self._lock = threading.Lock()

    @property
    def shows_jobs(self) -> bool:
        """Whether jobs and their users are named."""
        return self._asked is not None and self._asked.shows_jobs

    @property
    def _kinds(self) -> list[What]:
        """What is explained here, in the order of the tabs."""
        hidden = set() if self.shows_jobs else set(OF_JOBS)
        if self._asked is not None and self._asked.lacks:
            hidden = {"pilot", *OF_JOBS}
        return [what for what in _TITLES if what not in hidden]

    @property
    def headers(self) -> dict[str, str]:
        """Of which pool the answers are, and what they lack."""
        if self._asked is None:
            return {}
        lacking = {} if self._asked.shows_jobs else {WITHHELD: "expressions"}
        return {POOL: quote(self._asked.pool), **lacking}

    def chosen(
        self,
        names: Mapping[What, str | None],
        schedd: str,
        site: str,
        change: WhatIfKind | Literal[""] = "",
        value: str = "",
    ) -> Answered:
        """Return the answer to a query's parameters; None: one is not given."""
        there = {what: name.strip() for what, name in names.items() if name is not None}
        full = [what for what, name in there.items() if name or what == "all"]
        what: What = next(iter(full or there), "job")
        if not full and what not in self._kinds:
            what = self._kinds[0]  # a form of what is explained here
        name = "" if what == "all" else there.get(what, "")
        question = Question(name, schedd, site.strip(), what)
        if what == "whatif":
            question = Question(name, what=what, change=change, value=value)
        if len(full) > 1:
            text = f"give one of {', '.join(names)}, and not {' and '.join(full)}"
            return Answered(question, (), {"error": text}, 400)
        return self.answer(question)

    def answer(self, question: Question) -> Answered:
        """Return the answer to a question."""
        with self._lock:
            kept = self._kept.get(question)
        if kept is not None:
            return kept
        try:
            found = self._answer(question)
        except Unanswered as error:
            return Answered(question, (), {"error": error.text}, error.status, error.again_s)
        with self._lock:
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[question] = found
        return found

    def _answer(self, question: Question) -> Answered:
        asked = self._asked
        if asked is None or (question.is_of_jobs and not asked.shows_jobs):
            raise Unanswered(403, _HIDDEN)
        if not question.is_asked:
            if question.what == "whatif":
                raise Unanswered(400, "what if what? ?whatif=CHANGE&of=NAME&value=VALUE")
            raise Unanswered(400, f"which {question.what}? ?{question.what}=NAME")
        if self._snapshot is None:
            raise Unanswered(503, _FIRST, 5)
        with self._turns.one():
            made = asked(question)
            parts = [_cut(part) for part in made.parts()]
            record = made.record()
        assert isinstance(record, dict)
        polled = both("polled", round(self._snapshot.pool_time * SECOND_US))
        return Answered(question, parts, bounded({**record, **polled}))

    def page(self, answer: Answered) -> str:
        """Return the page of an answer, with the form that asks for others."""
        question, parts = answer.question, answer.parts
        title = _TITLES[question.what][1]
        if parts and isinstance(parts[0], Paragraph):
            title, parts = parts[0].text, parts[1:]  # the answer itself
        elif answer.is_form:
            parts = self._waiting(question.what)
        again = [
            link("explain", f"The same as {name}", **question.query, format=form)
            for form, name in (("text", "text"), ("json", "JSON"))
        ]
        if user := answer.record.get("user"):
            again.append(Markup("Jobs of {}").format(user_link(str(user))))
        page = render(
            "explain",
            title=title,
            heading=heading(self._snapshot, ANYWHERE),
            links="",
            choices=[
                Tab(text, what == question.what, f"explain?{what}=")
                for what, (text, _) in _TITLES.items()
                if text and what in self._kinds
            ],
            fields=self._fields(question),
            error="" if answer.is_form else answer.error,
            parts=parts,
            more=again if answer.parts else (),
        )
        return shown(page, time.time())

    def text(self, answer: Answered, width: int) -> str:
        """Return an answer as a terminal shows it, and of which poll it is."""
        if self._snapshot is None or not answer.parts:
            return f"{answer.error}\n"
        ago = span(round((time.time() - self._snapshot.made_at) * SECOND_US))
        poll = f"the daemon's poll at {time_text(self._snapshot.pool_time)} ({ago} ago)"
        as_of = Paragraph(f"Pilots, entries and groups of jobs are as of {poll}.", "soft")
        shown = Document(lambda: (*answer.parts, as_of), dict)
        return writing.text(shown, "table", terminal=False, width=width)

    def _waiting(self, what: What) -> list[Part]:
        """Return the largest groups of idle jobs, each with one to ask for; to others, why not."""
        if not self.shows_jobs:
            return [Paragraph(_HIDDEN)]
        if self._asked is not None and self._asked.lacks and what != "whatif":
            return [Paragraph(self._asked.lacks)]
        idle = self._snapshot.evaluation.idle if self._snapshot and what == "job" else ()
        largest = sorted(idle, key=lambda one: -one.group.jobs)[:_LARGEST]
        return [table("The largest groups of idle jobs", _GROUPS, largest)] if largest else []

    def _fields(self, question: Question) -> list[FormField]:
        """Return what a form of this kind asks for."""
        what, name, asked = question.what, question.name, self._asked
        if asked is None or what == "ad" or what not in self._kinds:
            return []
        site, entry, _ = place_fields(self._snapshot, Place(question.site, name))
        choices = [("", "all"), *((name, name) for name in asked.schedds)]
        schedd = FormField("schedd", "Schedd", question.schedd, choices=choices)
        there = site._replace(label="Why not at this site, or entry")
        return {
            "job": [FormField("job", "Job (cluster.proc)", name, example="4711.0"), schedd, there],
            "pilot": [FormField("pilot", "Pilot", name, example="glidein_3344_123@wn42")],
            "entry": [entry._replace(example="its name"), site],
            "all": [FormField("all", "", "1"), schedd, there],
            "whatif": [
                FormField("whatif", "What changes", question.change, choices=self._changes),
                FormField("of", "Of", name, example="a group, an entry or a site"),
                FormField("value", "To", question.value, example="2000"),
            ],
        }[what]

    @property
    def _changes(self) -> list[tuple[str, str]]:
        """Return the changes that may be asked about here."""
        return [
            (kind, text) for kind, text in CHANGES.items() if self.shows_jobs or kind != "start"
        ]


def _cut(part: Part) -> Part:
    """Return a part as pages have it: of a long table the first lines."""
    if not isinstance(part, Table) or len(part.rows) <= MOST_LINES:
        return part
    note = f"{part.note} And {len(part.rows) - MOST_LINES} more.".strip()
    return replace(part, rows=part.rows[:MOST_LINES], note=note)
