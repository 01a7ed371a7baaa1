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
from gwmond.service.pool.whatif import JudgedPoll, answered
from gwmond.sites.site_time import Facts
from gwmond.sources import child
from gwmond.sources.pool_name import pool_name

PAGE_DEADLINE_S = 15.0
"""What a page asks has to be answered within this; a connection lasts for a minute."""
_SOON_S = 5
RECORDED = (
    "A recording has neither single jobs nor all of a pilot: ask for all idle jobs, also of a site "
    "or an entry"
)


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
        situations = explainer.all_jobs(question.schedd)
        sums = all_jobs.causes(situations, explainer.memory_per_unit_mib)
        if not shows_jobs:
            sums = [cause._replace(example="") for cause in sums]
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

    If no collector shows it any more: why it had no job.
    """
    from gwmond.explain.sent_for import sent_for_document  # noqa: PLC0415 (SQLAlchemy loads slowly)
    from gwmond.reports.ledger.ledger_reading import Unreadable, ledger_for_page  # noqa: PLC0415
    from gwmond.reports.pilots.sent_for import sent_for  # noqa: PLC0415
    from gwmond.reports.pilots.story import find  # noqa: PLC0415

    missing = f"the collectors know no pilot {name}"
    try:
        with ledger_for_page(config.ledger.url) as ledger:
            rows = find(ledger, name)
            if len(rows) == 1:
                if rows[0].end_us is None and (shown := explainer.pilot(rows[0].identity.name)):
                    return shown
                now_us = round(time.time() * SECOND_US)
                return sent_for_document(sent_for(ledger, rows[0], now_us))
    except Unreadable as error:
        raise NoAnswer(f"{missing}. {error}") from None
    if rows:
        numbers = ", ".join(str(row.id) for row in rows[:20])
        raise NoAnswer(f"{missing}; several of the ledger fit, give a number: {numbers}")
    raise NoAnswer(f"{missing}, nor does the ledger. gwmond pilots --past lists those that ended")


class PageQuestions:
    """Answers the questions of the daemon's page as of a poll, from any thread."""

    def __init__(
        self,
        config: Config,
        pool: Pool,
        snapshot: Snapshot | None,
        facts: Facts | None,
        *,
        shows_jobs: bool,
    ) -> None:
        self.shows_jobs, self._facts = shows_jobs, facts
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

    @property
    def lacks(self) -> str:
        """Why neither jobs nor pilots are explained; empty: they are."""
        recording = self._pool.recording
        return "" if recording is None or recording.has_jobs else RECORDED

    def __call__(self, question: Question) -> Document:
        """Return the answer; raises Unanswered.

        A recording may lack what is asked of an entry: the answer is why no job runs there.
        """
        if self.lacks and question.what == "entry":
            question = Question(schedd=question.schedd, site=question.name, what="all")
        of_poll = question.what in ("all", "whatif")
        if self._snapshot is None or self._facts is None or (self.lacks and not of_poll):
            raise Unanswered(404, self.lacks)
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
            if question.what == "whatif":
                missing, aside = explainer.missing, self._found.aside
                polled = JudgedPoll(self._facts, self._snapshot.pool_time, missing, aside)
                return answered(self._config, polled, question, PAGE_DEADLINE_S)
            return explained(self._config, explainer, question, shows_jobs=self.shows_jobs)
        except NotRead as error:
            raise Unanswered(503, str(error), _SOON_S) from None
        except NoAnswer as error:
            raise Unanswered(400 if isinstance(error, BadQuestion) else 404, str(error)) from None
        except child.Stopped:
            raise Unanswered(503, "gwmond ends") from None
