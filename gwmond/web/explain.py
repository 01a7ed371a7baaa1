"""The page that says why a job is not running, for which a schedd and the collectors are asked.

A question costs the pool a query, so questions are few: ``AT_ONCE`` under way, ``BURST`` at a time
and ``A_MINUTE`` in the long run, whoever asks.  An answer is kept until the next poll.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from gwmond.model.snapshot import Snapshot
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.web.controls import FormField, heading, place_fields
from gwmond.web.parts import link, render

AT_ONCE, BURST, A_MINUTE = 2, 20, 20
MOST_KEPT = 100
_HIDDEN = (
    "Single jobs are not shown here. [http] jobs of gwmond's configuration says who may ask for "
    "them. On a host that may query the schedd: gwmond explain JOB."
)
_FIRST = "The first poll is under way: ask again once it has ended."


class Question(NamedTuple):
    """Which job (``cluster.proc``, or a GlobalJobId), of which schedd, and where; empty: any."""

    job: str = ""
    schedd: str = ""
    site: str = ""


class Unanswered(Exception):
    """Why there is no answer: the status of HTTP, in words, and when to ask again (seconds)."""

    def __init__(self, status: int, text: str, again_s: int | None = None) -> None:
        super().__init__(text)
        self.status, self.text, self.again_s = status, text, again_s


class Answer(NamedTuple):
    """An answer as people and programs read it; ``again_s``: ask again no sooner."""

    page: str
    json: str
    status: int = 200
    again_s: int | None = None


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


class Asked(Protocol):
    """What answers questions about jobs as of a poll; raises Unanswered."""

    @property
    def schedds(self) -> Sequence[str]: ...

    def __call__(self, question: Question) -> Document: ...


class Explanations:
    """The answers of one poll; ``asked``: None where single jobs are not shown."""

    def __init__(self, snapshot: Snapshot | None, asked: Asked | None, turns: Turns) -> None:
        self._snapshot, self._asked, self._turns = snapshot, asked, turns
        self._kept: dict[Question, Answer] = {}
        self._lock = threading.Lock()

    def answer(self, question: Question) -> Answer:
        """Return the answer to a question, or the page that asks for one."""
        with self._lock:
            kept = self._kept.get(question)
        if kept is not None:
            return kept
        try:
            document = self._document(question)
        except Unanswered as error:
            text = json.dumps({"error": error.text}) + "\n"
            page = self._page(question, (), error.text)
            return Answer(page, text, error.status, error.again_s)
        parts = list(document.parts()) if document else []
        record = document.record() if document else {"error": "which job? ?job=CLUSTER.PROC"}
        found = Answer(self._page(question, parts), json.dumps(record, indent=2) + "\n")
        with self._lock:
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[question] = found
        return found

    def _document(self, question: Question) -> Document | None:
        if self._asked is None:
            raise Unanswered(403, _HIDDEN)
        if not question.job:
            return None
        if self._snapshot is None:
            raise Unanswered(503, _FIRST, 5)
        with self._turns.one():
            return self._asked(question)

    def _page(self, question: Question, parts: Sequence[Part], error: str = "") -> str:
        schedds = self._asked.schedds if self._asked else ()
        site, *_ = place_fields(self._snapshot, question.site, "", "")
        choices = [("", "all"), *((name, name) for name in schedds)]
        fields = [
            FormField("job", "Job (cluster.proc)", question.job),
            FormField("schedd", "Schedd", question.schedd, choices=choices),
            site._replace(label="Why not at this site, or entry"),
        ]
        title = "Why is a job not running?"
        if parts and isinstance(parts[0], Paragraph):
            title, parts = parts[0].text, parts[1:]  # the answer itself
        again = link("explain", "The same as JSON", **question._asdict(), format="json")
        return render(
            "explain",
            title=title,
            heading=heading(self._snapshot, "", "", ""),
            links="",
            choices=(),
            fields=fields if self._asked else (),
            error=error,
            parts=parts,
            more=[again] if parts else (),
        )
