"""Why idle jobs are not running, found anew in each poll from what the poll has already.

Only of jobs that match no pilot each clause has to be tried, in a child process: of a few kinds in
one poll, those of most units first, and of each again after a while.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from gwmond.config.settings import Config
from gwmond.explain.idle import NOT_ANALYSED, Causes, IdleCause, Kind, kind_of, nowhere
from gwmond.model.entries.evaluation import Evaluation, IdleJobs
from gwmond.model.facts import EntryKey, Template
from gwmond.reports.sites.sites import Polled, SiteRow, cpu_rows
from gwmond.service.pool.pool import Pool
from gwmond.service.pool.pool_state import PoolState
from gwmond.sources.htcondor import waiting_job
from gwmond.sources.htcondor.places import ExplainTerms

AT_ONCE = 20
"""So many kinds of jobs are analysed in one poll."""
AGAIN_S = 600.0
"""After so long, by the pool's clock, one is analysed again if other pilots are known by then."""


class _Analysed(NamedTuple):
    """A cause, when it was found (epoch seconds), and with which pilots; None: it was not found."""

    cause: IdleCause
    at: float
    templates: frozenset[Hashable] | None


class IdleReasons:
    """Remembers why jobs could run nowhere."""

    def __init__(self, config: Config, pool: Pool) -> None:
        self._config, self._pool = config, pool
        self._analysed: dict[Kind, _Analysed] = {}

    def causes(self, state: PoolState, evaluation: Evaluation, now: float) -> Causes:
        """Return the causes of this poll's idle jobs; what matching has set aside is not tried."""
        aside = self._pool.gatherer.aside
        polled = Polled(state.pilot_groups, evaluation, state.facts.totals or {})
        rows = cpu_rows(polled)
        lost = [i for i in evaluation.idle if i.is_lost and i.group.signature not in aside]
        templates = [t for t in state.facts.templates if t.signature not in aside]
        self._analyse(lost, state, templates, rows, now)
        causes = {kind: analysed.cause for kind, analysed in self._analysed.items()}
        return Causes(rows, causes, state.limits, pilots=state.facts.pilots is not None)

    def _analyse(
        self,
        lost: list[IdleJobs],
        state: PoolState,
        tried: Sequence[Template],
        rows: Mapping[EntryKey, SiteRow],
        now: float,
    ) -> None:
        """Analyse the largest of those kinds that are new, or that were analysed long ago."""
        leaving: tuple[waiting_job.Kind, ...] = ()  # a recording has not all that jobs ask of them
        if self._pool.recording is None:
            leaving = waiting_job.leaving_kinds(state.facts.pilots or (), tried)
        templates = frozenset((*(template.signature for template in tried), *leaving))
        kinds = {kind_of(idle.group): idle for idle in sorted(lost, key=lambda idle: idle.cpu)}
        self._analysed = {kind: last for kind, last in self._analysed.items() if kind in kinds}

        def is_due(kind: Kind) -> bool:
            before = self._analysed.get(kind)
            return before is None or (
                before.templates != templates and not before.at <= now < before.at + AGAIN_S
            )

        due = [idle for kind, idle in kinds.items() if is_due(kind)]
        due.sort(key=lambda idle: (kind_of(idle.group) in self._analysed, -idle.cpu))
        if not due or state.facts.pilots is None:
            return
        groups = [idle.group for idle in due[:AT_ONCE]]
        says, hosts = self._config, self._pool.targets.collectors
        terms = ExplainTerms(
            *(hosts, tuple(tried), says.attributes, says.demand, now), silent=state.silent
        )
        access = self._pool.access(self._pool.clock.tick())
        task = waiting_job.examine_lost, access, leaving, groups, terms
        examined = self._pool.gatherer.run("gwmond", "explain", *task, keep=False)
        if examined is None:  # others come first in the next poll: one of these may be the cause
            for kind in map(kind_of, groups):
                before = self._analysed.get(kind)
                cause = NOT_ANALYSED if before is None else before.cause
                self._analysed[kind] = _Analysed(cause, now, None)
        for group, situation in zip(groups, examined or (), strict=examined is not None):
            cause = nowhere(situation, rows, now)
            self._analysed[kind_of(group)] = _Analysed(cause, now, templates)
