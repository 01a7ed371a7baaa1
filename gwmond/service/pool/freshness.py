"""Which answers are young enough to be used."""

from __future__ import annotations

from typing import Any

from gwmond.config.settings import Config
from gwmond.sources.registry import SOURCES
from gwmond.sources.round import SCHEDDS, WMS, Answer, Round


class Fresh:
    """Answers of a round that are young enough, by kind."""

    def __init__(self, gathered: Round, config: Config, now_mono: float) -> None:
        self._round = gathered
        self._now = now_mono
        self._limit = 2 * config.poll.interval
        self._busy = config.poll.busy_factor
        self._replicated = config.pool.replicated
        self._skipped = {(s.source, s.kind) for s in gathered.statuses if s.skipped}

    def usable(self, source: str, kind: str) -> Answer | None:
        """Return an answer unless it is older than two polls (of that source)."""
        answer = self._round.answers.get((source, kind))
        factor = self._busy if (source, kind) in self._skipped else 1
        if answer is None or self._now - answer.at_s > self._limit * factor:
            return None
        return answer

    def all(self, kind: str) -> tuple[list[Any], bool]:
        """Return the values of all usable answers, and whether they are all that there is.

        They are when no source of the kind is stale, or when one replica of a collector answered.
        Schedds that a WMS collector knows are the factory's, and none of ours.
        """
        sources = sorted({s.source for s in self._round.statuses if s.kind == kind})
        sources = [s for s in sources if kind != SCHEDDS or not s.startswith(WMS)]
        answers = [self.usable(source, kind) for source in sources]
        values = [answer.value for answer in answers if answer is not None]
        replicated = self._replicated and kind in SOURCES and SOURCES[kind].pool
        enough = 1 if replicated else len(sources)
        return values, bool(sources) and len(values) >= enough
