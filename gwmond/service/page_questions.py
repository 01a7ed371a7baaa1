"""What the daemon's page asks of schedds and collectors, beside the poll."""

from __future__ import annotations

from gwmond.config.settings import Config
from gwmond.explain import document as explanation
from gwmond.model.snapshot import Snapshot
from gwmond.reports.render.document import Document
from gwmond.service.explainer import BadQuestion, Explainer, NoAnswer
from gwmond.service.pool import Pool
from gwmond.sources import child
from gwmond.web.explain import Question, Unanswered

PAGE_DEADLINE_S = 15.0
"""What a page asks has to be answered within this; a connection lasts for a minute."""


class PageQuestions:
    """Answers the questions of the daemon's page as of a poll, from any thread."""

    def __init__(self, config: Config, pool: Pool, snapshot: Snapshot | None) -> None:
        self._config, self._pool, self._snapshot = config, pool, snapshot
        self._found = pool.gatherer.last()  # made in the thread that polls

    @property
    def schedds(self) -> list[str]:
        """Names of the schedds that can be asked."""
        return [schedd.daemon.name for schedd in self._found.chosen]

    def __call__(self, question: Question) -> Document:
        """Return what is said of a job; raises Unanswered."""
        if self._pool.recording is not None or self._snapshot is None:
            raise Unanswered(404, "a recording has no single jobs: gwmond explain --all")
        tick = self._pool.clock.tick()
        explainer = Explainer(
            self._config,
            (self._snapshot, self._found, self._pool.targets),
            self._pool.access(tick),
            tick.wall,
            site=question.site,
            deadline_s=PAGE_DEADLINE_S,
        )
        try:
            return explanation.document(explainer.job(question.job, question.schedd))
        except NoAnswer as error:
            raise Unanswered(400 if isinstance(error, BadQuestion) else 404, str(error)) from None
        except child.Stopped:
            raise Unanswered(503, "gwmond ends") from None
