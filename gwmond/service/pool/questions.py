"""What ``gwmond explain`` and the daemon's page answer, of a poll and of what is asked besides."""

from __future__ import annotations

import time
from functools import cached_property

from gwmond.config.settings import Config
from gwmond.explain import all_jobs
from gwmond.explain import document as job_document
from gwmond.explain.place_document import place_document
from gwmond.model.demand.question import Question, Unanswered
from gwmond.model.facts import Pilot
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.times import SECOND_US
from gwmond.reports.render.document import Document
from gwmond.service.pool.explainer import BadQuestion, Explainer, NoAnswer, NotRead
from gwmond.service.pool.pool import Pool
from gwmond.sources import child
from gwmond.sources.pool_name import pool_name

PAGE_DEADLINE_S = 15.0
"""What a page asks has to be answered within this; a connection lasts for a minute."""
_SOON_S = 5


def explained(
    config: Config, explainer: Explainer, question: Question, *, shows_jobs: bool = True
) -> Document:
    """Return the answer; raises NoAnswer.

    Without ``shows_jobs`` no expression of jobs and of START is in it, as these may name users.
    """
    if question.what == "job":
        return job_document.document(explainer.job(question.name, question.schedd))
    if question.what == "ad":
        return job_document.document(explainer.ad(question.name))
    if question.what == "all":
        found = explainer.all_jobs(question.schedd)
        sums = all_jobs.causes(found, explainer.memory_per_unit_mib)
        if not shows_jobs:
            sums = [one._replace(example="") for one in sums]
        there = explainer.entries_there if question.site else {}
        left_out = explainer.left_out(question.schedd)
        return all_jobs.document(sums, explainer.missing, there, left_out)
    if question.what == "entry":
        alone = "/" in question.name or not question.site
        name = question.name if alone else f"{question.site}/{question.name}"
        here = explainer.place(explainer.entry(name))
    else:
        name = question.name
        pilot = explainer.pilot(name) or _by_ledger(config, explainer, name)
        if isinstance(pilot, Document):
            return pilot
        here = explainer.place(pilot.entry, pilot)
    return place_document(here if shows_jobs else here.without_expressions)


def _by_ledger(config: Config, explainer: Explainer, name: str) -> Document | Pilot:
    """Return the pilot whose number, or part of a name, the ledger has; raises NoAnswer.

    Of one that no collector shows any more, why it had no job.
    """
    from gwmond.explain.sent_for import sent_for_document  # noqa: PLC0415 (SQLAlchemy loads slowly)
    from gwmond.reports.ledger.ledger_reading import Unreadable, ledger_for_page  # noqa: PLC0415
    from gwmond.reports.pilots.sent_for import sent_for  # noqa: PLC0415
    from gwmond.reports.pilots.story import find  # noqa: PLC0415

    missing = f"the collectors know no pilot {name}"
    try:
        with ledger_for_page(config.ledger.url) as ledger:
            found = find(ledger, name)
            if len(found) == 1:
                if found[0].end_us is None and (shown := explainer.pilot(found[0].identity.name)):
                    return shown
                now_us = round(time.time() * SECOND_US)
                return sent_for_document(sent_for(ledger, found[0], now_us))
    except Unreadable as error:
        raise NoAnswer(f"{missing}. {error}") from None
    if found:
        numbers = ", ".join(str(row.id) for row in found[:20])
        raise NoAnswer(f"{missing}; several of the ledger fit, give a number: {numbers}")
    raise NoAnswer(f"{missing}, nor does the ledger. gwmond pilots --past lists those that ended")


class PageQuestions:
    """Answers the questions of the daemon's page as of a poll, from any thread."""

    def __init__(
        self, config: Config, pool: Pool, snapshot: Snapshot | None, *, shows_jobs: bool
    ) -> None:
        self.shows_jobs = shows_jobs
        self._config, self._pool, self._snapshot = config, pool, snapshot
        self._found = pool.gatherer.last()  # made in the thread that polls

    @cached_property
    def pool(self) -> str:
        """Whose answers these are; empty: not known."""
        try:
            return pool_name(self._config)
        except (child.QueryError, child.Stopped):
            return ""

    @property
    def schedds(self) -> list[str]:
        """Names of the schedds that can be asked."""
        return [schedd.daemon.name for schedd in self._found.chosen]

    def __call__(self, question: Question) -> Document:
        """Return the answer; raises Unanswered."""
        if self._snapshot is None or (self._pool.recording is not None and question.what != "all"):
            raise Unanswered(404, "a recording has no single jobs: ask for all")
        tick = self._pool.clock.tick()
        explainer = Explainer(
            self._config,
            (self._snapshot, self._found, self._pool.targets),
            self._pool.access(tick),
            tick.wall,
            site=question.only_at,
            deadline_s=PAGE_DEADLINE_S,
        )
        try:
            return explained(self._config, explainer, question, shows_jobs=self.shows_jobs)
        except NotRead as error:
            raise Unanswered(503, str(error), _SOON_S) from None
        except NoAnswer as error:
            raise Unanswered(400 if isinstance(error, BadQuestion) else 404, str(error)) from None
        except child.Stopped:
            raise Unanswered(503, "gwmond ends") from None
