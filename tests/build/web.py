"""What the HTTP application is given to serve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import unescape

from gwmond.config.settings import Config
from gwmond.explain import all_jobs
from gwmond.explain.document import document
from gwmond.explain.place_document import place_document
from gwmond.explain.places import PlaceSituation
from gwmond.explain.situation import Situation
from gwmond.explain.whatif import document as whatif_document
from gwmond.metrics.render import Exposition
from gwmond.model.demand.question import Question, Unanswered
from gwmond.model.demand.waiting_job import Examined, GroupOffer, PlaceOffers
from gwmond.model.demand.what_if import what_if
from gwmond.model.facts import DemandGroup, EntryKey, Pilot, Size
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.states import State
from gwmond.reports.render.document import Document
from gwmond.sites.whatif import AllMoves, JobsMove, PlaceMove, PlaceNow, Prospects
from gwmond.web import now
from gwmond.web.explain import Answering, Explanations, Turns
from gwmond.web.pages import Pages, style_sheet
from gwmond.web.parts import shown
from tests.build.waiting import place, waiting_job


@dataclass
class Daemon:
    """What the application sees of the daemon."""

    snapshot: Snapshot | None = None
    exposition: Exposition = field(default_factory=lambda: Exposition(b"", b"# EOF\n"))

    ledger: str = ""
    asked: Answering | None = None
    turns: Turns = field(default_factory=Turns)

    @property
    def pages(self) -> Pages:
        explanations = Explanations(self.snapshot, self.asked, self.turns)
        return Pages(self.snapshot, with_ledger(self.ledger), explanations)

    def ready(self) -> str:
        return "" if self.snapshot else "the first poll is under way"


@dataclass
class Waiting:
    """Answers each question with jobs that wait; ``asked`` are the questions."""

    schedds: Sequence[str] = ("ap1", "ap2")
    said: str = "A"
    shows_jobs: bool = True
    lacks: str = ""
    pool: str = "cm.example.org:9618"
    missing: tuple[str, ...] = ()
    asked: list[Question] = field(default_factory=list)

    def __call__(self, question: Question) -> Document:
        self.asked.append(question)
        name = question.name
        if name == "0.0":
            raise Unanswered(404, "no job 0.0 is in the queue of ap1")
        if question.what == "whatif":
            return whatif_document(_CHANGE, _MOVED, self.missing)
        here = place(blocked=(0,)), place(), place(refusals=("VO == 1",))
        job = waiting_job(number=name, clauses=(self.said, "B"))
        group = DemandGroup("ap1", "cms", "x", "", 3, Size(1, 2000), None)
        if question.what == "all":
            waiting = Situation(Examined(job, here), {}, 12_000.0)
            return all_jobs.document(all_jobs.causes([(group, waiting)], 2000), self.missing, {})
        if question.what in ("entry", "pilot"):
            offer = GroupOffer(0, True, (self.said, "B"), here, (EntryKey("T", "F"),))
            refused = GroupOffer(1, False, (self.said, "B"), here[:1], ())
            offers = [group, group], PlaceOffers((offer, refused), None)
            key = EntryKey(question.site or "S", name if question.what == "entry" else "E")
            startd = name if question.what == "pilot" else ""
            pilots = [Pilot(name, 1_000, key, "f.g", "", Size(8, 16000), (), (), True, 3600, 9_990)]
            return place_document(PlaceSituation(key, startd, None, pilots, offers, 12_000.0))
        if question.what == "ad":
            job = job._replace(number="", status=0)
        return document(Situation(Examined(job, here), {}, 12_000.0))


_CHANGE = what_if("memory", "cms", "2000")
_HERE = EntryKey("Site-A", "entry-a")
_NOW = PlaceNow(State.INSUFFICIENT_DEMAND, 0.0, 0.0, 0)
_THEN = PlaceNow(State.PROVISIONING_BOTTLENECK, 16.0, 0.0, 2)
_MOVED = AllMoves(
    (PlaceMove(_HERE, _NOW, _THEN, 5, None),),
    (
        JobsMove("cms", 20, Prospects(0.0, 0.0, 20.0), Prospects(2.0, 16.0, 2.0)),
        JobsMove("", 3, Prospects(2.0, 1.0, 0.0), Prospects(0.0, 1.0, 2.0)),
    ),
    20,
)
"""What ``Waiting`` says of each change."""


def with_ledger(url: str) -> Config:
    """Return a configuration in which only the ledger is named."""
    return Config.model_validate({"ledger": {"url": url}} if url else {})


def page(snapshot: Snapshot | None, at: float) -> str:
    """Return the page Now at a time (epoch seconds by this machine's clock)."""
    return shown(now.page(snapshot), at)


def as_file(text: str) -> str:
    """Return a page that needs no server."""
    return text.replace(
        '<link rel="stylesheet" href="static/gwmond.css">', f"<style>{style_sheet()}</style>"
    )


def text(page: str | None) -> str:
    """A page without its tags, each cell on a line of its own."""
    assert page is not None
    body = page[page.index("<main") :]
    body = re.sub(r"<(?:script|datalist).*?</(?:script|datalist)>", "", body, flags=re.S)
    return re.sub(r"\n\s*", "\n", unescape(re.sub(r"<[^>]*>", "\n", body)))


def rows(page: str | None, title: str) -> list[list[str]]:
    """The cells of the table with a title."""
    (table,) = re.findall(rf"<h2>{title}.*?</table>", str(page), re.S)
    return cells(table)


def cells(page: str | None) -> list[list[str]]:
    """The texts of a page's tables, row by row."""
    assert page is not None
    lines = re.findall(r"<tr>(<td.*?)</tr>", page, re.S)
    return [
        [unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<td.*?</td>", line, re.S)]
        for line in lines
    ]
