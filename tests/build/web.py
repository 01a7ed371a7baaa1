"""What the HTTP application is given to serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gwmond.config.settings import Config
from gwmond.explain import all_jobs
from gwmond.explain.document import document
from gwmond.explain.place_document import place_document
from gwmond.explain.places import PlaceSituation
from gwmond.explain.situation import Situation
from gwmond.metrics.render import Exposition
from gwmond.model.demand.place_offers import GroupOffer, PlaceOffers
from gwmond.model.demand.question import Question, Unanswered
from gwmond.model.demand.waiting_job import Examined
from gwmond.model.facts import DemandGroup, EntryKey, Pilot, Size
from gwmond.model.poll.snapshot import Snapshot
from gwmond.reports.render.document import Document
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
    pool: str = "cm.example.org:9618"
    missing: tuple[str, ...] = ()
    asked: list[Question] = field(default_factory=list)

    def __call__(self, question: Question) -> Document:
        self.asked.append(question)
        name = question.name
        if name == "0.0":
            raise Unanswered(404, "no job 0.0 is in the queue of ap1")
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
