"""What a change of the pool would move: matched anew, and judged, in children with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from gwmond.config.settings import Config
from gwmond.explain.phrases import few
from gwmond.explain.whatif import document
from gwmond.model.demand.question import Question
from gwmond.model.demand.what_if import NO_GROUP, OF_JOBS, WhatIf, what_if
from gwmond.model.facts import DemandGroup, Template, Verdict
from gwmond.reports.render.document import Document
from gwmond.service.pool.explainer import BadQuestion, NoAnswer, NotRead
from gwmond.service.pool.matcher import Matcher
from gwmond.service.pool.pool_state import site_settings
from gwmond.sites import whatif
from gwmond.sites.demand import Verdicts
from gwmond.sites.site_time import Facts
from gwmond.sources import child
from gwmond.sources.gather import Gatherer
from gwmond.sources.htcondor.changed import ChangedKinds, changed
from gwmond.sources.htcondor.demand import JobGrouping
from gwmond.sources.round import Targets

T = TypeVar("T")
MOST_PAIRS = 200_000
"""So many pairs of jobs and pilots are matched anew at most: some 2 s."""
_LEAST_S = 1.0


class JudgedPoll(NamedTuple):
    """What a poll left: the facts that it judged, and when (epoch seconds, by the pool's clock).

    ``missing``: what could not be read, in words; ``aside``: signatures of jobs and pilots that
    matching has set aside, which are not tried again.
    """

    facts: Facts
    now: float
    missing: tuple[str, ...] = ()
    aside: frozenset[str] = frozenset()


def answered(config: Config, polled: JudgedPoll, question: Question, deadline_s: float) -> Document:
    """Return what a change moves; raises NoAnswer."""
    try:
        if not question.change:
            raise ValueError("what would change?")
        what = what_if(question.change, question.name, question.value)
    except ValueError as error:
        raise BadQuestion(str(error)) from None
    if polled.facts.pilots is None:
        raise NotRead("Too little data: which pilots run is not known.")
    try:
        return _Asker(config, polled, what, time.monotonic() + deadline_s).document()
    except child.QueryError as error:
        raise NotRead(f"Too little data: {error}.") from None


class _Asker:
    """Finds what one change moves, until ``until`` (monotonic seconds)."""

    def __init__(self, config: Config, polled: JudgedPoll, what: WhatIf, until: float) -> None:
        self._config, self._what, self._until = config, what, until
        self._facts, self._now, self._missing, self._aside = polled

    def document(self) -> Document:
        """Return the answer; raises NoAnswer, QueryError."""
        facts, what = self._facts, self._what
        groups = [group for group in facts.groups if what.has_jobs(group)]
        templates = [t for t in facts.templates if what.has_pilots(t.entry, t.group)]
        self._find(groups, templates)
        number = sum(g.jobs for g in groups) if groups else len(templates)
        mib, settings = self._config.canonical.memory_mib, site_settings(self._config)
        after = whatif.applied(facts, self._changed(groups, templates), what, mib)
        both = whatif.plain(facts), whatif.plain(after)
        found = self._run(whatif.judged, *both, what, number, int(self._now), settings)
        missing = list(self._missing)
        if not facts.demand_complete:
            missing.append("the jobs of a schedd, or of groups beyond [demand] max_groups")
        if left := _unmatched(after):
            missing.append(f"whether {left} pairs of jobs and empty pilots match")
        return document(what, found, missing)

    def _find(self, groups: Sequence[DemandGroup], templates: Sequence[Template]) -> None:
        """Raise NoAnswer where nothing has the name that the change gives."""
        facts, what = self._facts, self._what
        if what.kind in OF_JOBS:
            if not groups:
                known = {group.accounting_group or NO_GROUP for group in facts.groups}
                raise NoAnswer(f"no idle job is of {what.of}. Accounting groups: {_some(known)}")
        elif what.kind == "start":
            if not templates:
                known = {template.group for template in facts.templates}
                raise NoAnswer(
                    f"Too little data: no pilot of {what.of} is known, nor its START. "
                    f"Frontend groups: {_some(known)}"
                )
        elif not any(map(what.has_entry, facts.all_entries)):
            known = {key.entry for key in facts.all_entries}
            raise NoAnswer(
                f"the last poll knows no site and no entry {what.of}. Entries: {_some(known)}"
            )
        elif what.kind == "pilot" and not templates:
            raise NoAnswer(
                f"Too little data: what an empty pilot of {what.of} is like is not known"
            )

    def _changed(self, groups: Sequence[DemandGroup], templates: Sequence[Template]) -> Facts:
        """Return facts with other jobs, or other empty pilots, and where these match."""
        facts, of_jobs = self._facts, bool(groups)
        if not groups and not templates:
            return facts
        with_all = groups if of_jobs else facts.groups
        grouping = JobGrouping(self._config.attributes, self._config.demand)
        new: ChangedKinds | None = self._run(changed, with_all, templates, self._what, grouping)
        if new is None:
            raise BadQuestion(f"{self._what.start} is no ClassAd expression")
        if new.ungrouped:
            raise NoAnswer(
                f"Too little data: jobs are not grouped by {', '.join(new.ungrouped)}, so how many "
                "of them such a START would take is not known. [demand] attributes of the "
                "configuration adds a key; the poll after that knows."
            )
        matched = self._matched(new.groups, facts.templates if of_jobs else new.templates)
        if of_jobs:
            verdicts = {**facts.verdicts, **matched}
            return facts._replace(
                groups=_instead(facts.groups, groups, new.groups), verdicts=verdicts
            )
        return facts._replace(
            templates=_instead(facts.templates, templates, new.templates),
            verdicts=_joined(facts.verdicts, matched),
        )

    def _matched(self, groups: Sequence[DemandGroup], templates: Sequence[Template]) -> Verdicts:
        """Return which of the jobs match which of the pilots; raises NoAnswer, QueryError."""
        few_groups = [group for group in groups if group.signature not in self._aside]
        kinds = len({group.signature for group in few_groups})
        if (pairs := kinds * len(templates)) > MOST_PAIRS:
            raise NoAnswer(
                f"{pairs} pairs of jobs and empty pilots would have to be matched anew, "
                f"{MOST_PAIRS} are at most: ask about fewer"
            )
        gatherer = Gatherer(self._config, Targets((), (), ()))
        gatherer.allow(max(_LEAST_S, self._until - time.monotonic()))
        matcher = Matcher(gatherer)
        matcher.match(few_groups, templates)
        return matcher.verdicts

    def _run(self, task: Callable[..., tuple[T, int]], *arguments: object) -> T:
        """Run a task in a child; raises QueryError."""
        left, most = max(_LEAST_S, self._until - time.monotonic()), self._config.poll
        (value, _), _ = child.run(
            task, *arguments, deadline_s=left, memory_mib=most.memory_limit_mib
        )
        return value


def _some(names: set[str]) -> str:
    return few(names) or "none"


def _instead(every: Sequence[T], old: Sequence[T], new: Sequence[T]) -> list[T]:
    """Return all, with new ones in the places of old ones."""
    changed_to = {id(one): other for one, other in zip(old, new, strict=True)}
    return [changed_to.get(id(one), one) for one in every]


def _joined(before: Verdicts, more: Verdicts) -> Verdicts:
    """Return rows with what they have besides; equal rows stay one object."""
    made: dict[tuple[int, int], dict[str, Verdict]] = {}
    none: dict[str, Verdict] = {}
    rows = {}
    for group, row in before.items():
        other = more.get(group, none)
        key = id(row), id(other)
        if key not in made:
            made[key] = {**row, **other}
        rows[group] = made[key]
    return rows


def _unmatched(facts: Facts) -> int:
    """Return of how many pairs of jobs and empty pilots nobody knows whether they match."""
    templates = {template.signature for template in facts.templates}
    signatures = {group.signature for group in facts.groups}
    rows = {id(row): len(templates - row.keys()) for row in facts.verdicts.values()}
    return sum(
        len(templates) if (row := facts.verdicts.get(name)) is None else rows[id(row)]
        for name in signatures
    )
