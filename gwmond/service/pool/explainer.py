"""The pool as one poll saw it, and what is asked besides to explain jobs.

Each question is asked in a child process, within one deadline for all that one explanation needs.
"""

from __future__ import annotations

import difflib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gwmond.config.settings import Config
from gwmond.explain.places import PlaceSituation
from gwmond.explain.situation import EarlierRun, Situation, is_at
from gwmond.ledger.database import location
from gwmond.ledger.database.errors import LedgerError
from gwmond.model.demand.idle_history import PastWaits, WaitInterval
from gwmond.model.demand.order import Limits, Order
from gwmond.model.demand.waiting_job import UNKNOWN_JOB, Examined, JobPlace, WaitingJob
from gwmond.model.entries.evaluation import IdleJobs, MatchedKind
from gwmond.model.facts import DemandGroup, EntryKey, Pilot, Rejection, Size, Template
from gwmond.model.poll.snapshot import Snapshot
from gwmond.model.times import SECOND_US
from gwmond.reports.failures.common_failures import CommonFailure, common
from gwmond.reports.render.formats import counted
from gwmond.reports.sites import sites
from gwmond.reports.stored.phases import phases
from gwmond.service.pool.pool_state import limits_of
from gwmond.sources import child
from gwmond.sources.htcondor import demand, order, place_offers, waiting_job
from gwmond.sources.htcondor.access import Access, Daemon
from gwmond.sources.htcondor.places import ExplainTerms, matched, slot_of
from gwmond.sources.recording.recording import ReplayAccess
from gwmond.sources.round import DEMAND, SLOTS, Round, Targets

if TYPE_CHECKING:
    from gwmond.ledger.reading.pilot_reader import PilotLookup
    from gwmond.ledger.reading.reader import LedgerReader

T = TypeVar("T")
_TOO_SMALL = ("what is free of it",)
_LEAST_S = 1.0
_LATELY_S = 3600
"""Of pilots that began within this it is said that all of them fail."""


class _Fitting(NamedTuple):
    """The empty pilots on which groups of jobs could run, and the entries of these.

    ``sure``: a pilot of such a kind was seen, and matches.
    """

    places: tuple[JobPlace, ...]
    entries: tuple[EntryKey, ...]
    sure: bool


def _kind_of(group: DemandGroup) -> tuple[object, ...]:
    """Return what identifies the group among those of a poll."""
    return group.schedd, group.accounting_group, group.signature, group.size, group.walltime_s


class NoAnswer(Exception):
    """A question has no answer; says why, and what to do."""


class NotRead(NoAnswer):
    """What a question rests on could not be read."""


class BadQuestion(NoAnswer):
    """A question can have no answer, whatever jobs are queued."""


class Matched(NamedTuple):
    """A job with all places, and the order in which it is served; None: that is not known."""

    examined: Examined
    order: Order | None


def name_of(job: str) -> tuple[str, str]:
    """Return the schedd (empty: not said) and the ``cluster.proc`` of a job; raises BadQuestion.

    >>> name_of("4711.0"), name_of("ap1.example.org#4711.0#1763856000")
    (('', '4711.0'), ('ap1.example.org', '4711.0'))
    """
    schedd, _, rest = job.partition("#") if "#" in job else ("", "", job)
    number = rest.partition("#")[0]
    if waiting_job.NUMBER.fullmatch(number) is None:
        raise BadQuestion(f"{job}: a job is cluster.proc (4711.0), or a GlobalJobId")
    return schedd, number


def runs_of_job(ledger: PilotLookup, job: str) -> list[EarlierRun]:
    """Return the runs of a job (GlobalJobId) that a ledger has, the latest first."""
    rows = ledger.find_runs([job]).get(job, [])
    pilots = ledger.pilots_by_id({run.pilot for run in rows})
    return [
        EarlierRun(
            *(run.start_us, run.end_us, place.key, place.node, run.outcome), phases(run, rows)
        )
        for run in sorted(rows, key=lambda run: (-run.start_us, run.key))
        if run.pilot in pilots
        for place in (pilots[run.pilot].identity,)
    ]


class Explainer:
    """Answers one question about jobs; use each from one thread.

    ``site``: only places of that site, or of that entry, are looked at (empty: all).
    ``deadline_s`` is for all that is asked; ``now`` (epoch s) is by the pool's clock.  Before a
    poll has ended (there is no Snapshot yet) jobs can be matched.
    """

    def __init__(
        self,
        config: Config,
        poll: tuple[Snapshot | None, Round, Targets],
        access: Access,
        now: float,
        *,
        site: str = "",
        deadline_s: float | None = None,
    ) -> None:
        self._snapshot, self._gathered, targets = poll
        self._access, self._now, self._site = access, now, site
        self._parallel = config.poll.parallel
        self._memory_mib, self._ledger_url = config.poll.memory_limit_mib, config.ledger.url
        self._until = time.monotonic() + (deadline_s or config.poll.deadline)
        self._failed: list[str] = []
        self._matched: dict[tuple[str, str | None], Matched] = {}
        self._fitted: dict[int, _Fitting] = {}
        self._placed: dict[tuple[int, Size], tuple[JobPlace, ...]] = {}
        self.memory_per_unit_mib = config.canonical.memory_mib
        here = [t for key, t in self._gathered.templates.items() if is_at(key[0], site)]
        aside = self._gathered.aside
        self._costly = [t for t in here if t.signature in aside]
        self._terms = ExplainTerms(
            targets.collectors,
            tuple(t for t in here if t.signature not in aside),
            config.attributes,
            config.demand,
            now,
            self._ungrouped(),
            site,
            frozenset((t.entry, t.group) for t in self._costly),
            frozenset() if self._snapshot is None else self._snapshot.silent,
        )

    def _ungrouped(self) -> tuple[str, ...]:
        """Return the attributes of START by which jobs are not grouped."""
        answers = [a.value for (_, kind), a in self._gathered.answers.items() if kind == DEMAND]
        return tuple(sorted({name for demand in answers for name in demand.ungrouped}))

    @property
    def missing(self) -> tuple[str, ...]:
        """What could not be read, in words."""
        down = (
            f"{status.source} {status.kind}" for status in self._gathered.statuses if not status.up
        )
        starts = (
            f"START of {template.group or 'pilots'} at {template.entry.entry}"
            for template in self._costly
        )
        jobs = (
            f"Requirements of {counted(g.jobs, 'job')} of {g.accounting_group or 'nobody'} "
            f"at {g.schedd}"
            for g in self._hard
        )
        costly = (f"{text} (too much CPU time)" for text in (*starts, *jobs))
        return (*down, *costly, *self._failed)

    @cached_property
    def _entries(self) -> dict[EntryKey, sites.SiteRow]:
        return {} if self._snapshot is None else sites.cpu_rows(self._snapshot)

    @property
    def entries_there(self) -> dict[EntryKey, sites.SiteRow]:
        """The entries of the site that is asked for."""
        return {key: row for key, row in self._entries.items() if is_at(key, self._site)}

    def schedds(self, name: str | None) -> list[Daemon]:
        """Return the schedds, or the one of this name; raises BadQuestion if there is none."""
        daemons = [schedd.daemon for schedd in self._gathered.chosen]
        asked = [daemon for daemon in daemons if name in (None, "", daemon.name)]
        if not asked and name:
            names = ", ".join(sorted(daemon.name for daemon in daemons)) or "none"
            raise BadQuestion(f"the collectors know no schedd {name}. Known: {names}")
        return asked

    def job(self, job: str, schedd: str | None = None) -> Situation:
        """Return all that the explanation of a job rests on; raises NoAnswer.

        ``job`` is ``cluster.proc``, or a GlobalJobId.
        """
        matched = self._matched.get((job, schedd)) or self.match(job, schedd)
        here = self.situation(*matched)
        here.past = self._past(here)
        if here.job.runs:
            here.earlier = self._read(lambda ledger: runs_of_job(ledger, here.job.global_id)) or ()
        return here

    def ad(self, text: str) -> Situation:
        """Return all that is known of a job that is not submitted yet; raises NoAnswer."""
        planned = self._run("gwmond", waiting_job.planned, self._access, text)
        if planned is None:
            raise (NotRead if self._failed else BadQuestion)(
                "; ".join(self._failed) or "that is no ClassAd of a job"
            )
        examined = self._run("gwmond", waiting_job.examine, self._access, *planned)
        if examined is None:
            raise NotRead(f"the job could not be matched: {'; '.join(self.missing)}")
        here = self.situation(examined, self._limits.order(""))
        here.past = self._past(here)
        return here

    def take(self, early: Explainer) -> None:
        """Take over which jobs were matched before the poll ended, if it would be the same now."""
        same = early._terms._replace(now=self._now) == self._terms
        if same and early._gathered.chosen == self._gathered.chosen and not early._failed:
            self._matched = early._matched

    def match(self, job: str, schedd: str | None = None) -> Matched:
        """Ask for a job and match it with all places; raises NoAnswer."""
        named, number = name_of(job)
        asked = self.schedds(schedd or named)
        access = self._access
        with ThreadPoolExecutor(self._parallel) as pool:
            tried = pool.map(
                lambda d: self._run(d.name, waiting_job.find, access, d, number), asked
            )
            answers = [answer for answer in tried if answer is not None]
            if not answers and not self._failed:
                self._say_unmade(pool, number, asked)
            if len(answers) == 1:
                if job.count("#") > 1 and (global_id := answers[0][0].global_id) not in ("", job):
                    raise NoAnswer(f"job {number} of {answers[0][0].schedd} is {global_id} now")
                ordered = pool.submit(self._order, answers[0][0])
                examined = self._run("gwmond", waiting_job.examine, access, *answers[0])
                if examined is None:
                    raise NotRead(f"the job could not be matched: {'; '.join(self.missing)}")
                self._matched[job, schedd] = matched = Matched(examined, ordered.result())
                return matched
        if answers:
            names = ", ".join(job.schedd for job, _ in answers)
            raise NoAnswer(
                f"several schedds have a job {number}: {names}. Say which: --schedd NAME"
            )
        failed = f" Not read: {'; '.join(self.missing)}." if self.missing else ""
        if not asked:
            raise (NotRead if failed else NoAnswer)(
                f"no schedd is known that could be asked for job {number}.{failed}"
            )
        where = ", ".join(daemon.name for daemon in asked)
        raise (NotRead if self._failed else NoAnswer)(
            f"no job {number} is in the queue of {where}.{failed} A job that has ended: "
            "gwmond trace, or condor_history"
        )

    def _say_unmade(self, pool: ThreadPoolExecutor, number: str, asked: Sequence[Daemon]) -> None:
        """Raise NoAnswer if a schedd has still to make a job that is in no queue."""

        def find(daemon: Daemon) -> waiting_job.Unmade | None:
            task = waiting_job.find_unmade
            return self._run(daemon.name, task, self._access, daemon, number)

        for daemon, unmade in zip(asked, pool.map(find, asked), strict=True):
            if unmade is None:
                continue
            made = f"{unmade.made} of {counted(unmade.total, 'job')} of its cluster"
            change = "max_idle, or max_materialize, of the submission"
            if unmade.paused:
                made, change = f"{made}, and is paused", "condor_release, or what paused it"
            raise NoAnswer(
                f"job {number} is not made yet: {daemon.name} has made {made}. What would change "
                f"that: {change}. Whose move: the job's owner"
            )

    def all_jobs(self, schedd: str | None = None) -> list[tuple[DemandGroup, Situation]]:
        """Return the groups of idle jobs, the largest first, each with all that it rests on.

        Raises NoAnswer where they could not be matched.
        """
        groups = self.groups(schedd)
        most = min(waiting_job.FEW_GROUPS, waiting_job.MOST_PLACES // max(1, len(self._templates)))
        few = demand.by_share(group for group in groups if not self._fitting(group).sure)[:most]
        tried = self._examined(few) if few else ()
        if tried is None:
            raise NotRead(f"the jobs could not be matched: {'; '.join(self.missing)}")
        examined = dict(zip(map(_kind_of, few), tried, strict=True))
        return [
            self._said(group, examined.get(_kind_of(group)), rejection)
            for group in groups
            for rejection in group.by_rejection()
        ]

    def _examined(self, groups: Sequence[DemandGroup]) -> tuple[Examined, ...] | None:
        """Return groups that could run nowhere; a recording has not all of pilots that retire."""
        kinds: tuple[waiting_job.Kind, ...] = ()
        if not isinstance(self._access, ReplayAccess):
            every = waiting_job.leaving_kinds(self.pilots, self._terms.templates)
            kinds = tuple(kind for kind in every if is_at(kind[0], self._site))
        return self._run("gwmond", waiting_job.examine_lost, self._access, kinds, groups)

    def _said(
        self, group: DemandGroup, examined: Examined | None, rejection: Rejection
    ) -> tuple[DemandGroup, Situation]:
        """Return those jobs of a group of which the negotiator said that."""
        places = self._places(group)
        untried = 0 if places or examined else len(self._terms.templates)
        if examined is None:
            job = UNKNOWN_JOB._replace(schedd=group.schedd, size=group.size)
            job = job._replace(accounting_group=group.accounting_group)
            examined = Examined(job._replace(walltime_s=group.walltime_s), places)
        job = examined.job._replace(rejection=rejection.text, rejected=rejection.at)
        order, state = self._limits.order(group.schedd), (self._entries, self._now, self.missing)
        here = Situation(
            examined._replace(job=job), *state, site=self._site, order=order, untried=untried
        )
        return group._replace(jobs=rejection.jobs), here

    def _fitting(self, group: DemandGroup) -> _Fitting:
        """Return where a group of jobs could run, as the poll matched it."""
        kinds = self._kinds.get(_kind_of(group), ())
        if (where := self._fitted.get(id(kinds))) is None:  # groups that match alike have one tuple
            templates = self._templates
            places = tuple(
                matched(templates[entry, name], sure=sure)
                for entry, name, sure in kinds
                if (entry, name) in templates
            )
            entries = tuple(dict.fromkeys(place.entry for place in places))
            sure = any(place.evidence == "measured" for place in places)
            where = self._fitted[id(kinds)] = _Fitting(places, entries, sure)
        return where

    def _places(self, group: DemandGroup) -> tuple[JobPlace, ...]:
        """Return where a group could run, and the slots there, as the poll saw them.

        Groups that are alike have one tuple.
        """
        key = id(self._kinds.get(_kind_of(group), ())), group.size
        if key not in self._placed:
            empty = self._fitting(group).places
            slots = (
                slot._replace(number=number)
                if group.size.is_within(slot.size)
                else slot._replace(number=number, refusals=_TOO_SMALL, only_full=True)
                for kind in empty
                for slot, number in self._slots.get((kind.entry, kind.group), {}).items()
            )
            self._placed[key] = (*empty, *slots)
        return self._placed[key]

    @cached_property
    def _slots(self) -> Mapping[tuple[EntryKey, str], Counter[JobPlace]]:
        """The slots of pilots, by entry and frontend group; of a full pilot a slot without room."""
        by_kind: dict[tuple[EntryKey, str], Counter[JobPlace]] = {}
        for pilot in self.pilots:
            if not pilot.failed:
                slots = by_kind.setdefault((pilot.entry, pilot.group), Counter())
                slots.update(slot_of(pilot, size) for size in pilot.free or (Size(0, 0),))
        return by_kind

    @cached_property
    def _templates(self) -> dict[tuple[EntryKey, str], Template]:
        return {(template.entry, template.group): template for template in self._terms.templates}

    @cached_property
    def _kinds(self) -> Mapping[tuple[object, ...], tuple[MatchedKind, ...]]:
        """On which empty pilots each group of jobs could run, as the poll matched them."""
        idle = () if self._snapshot is None else self._snapshot.evaluation.idle
        return {_kind_of(jobs.group): jobs.kinds for jobs in idle}

    def left_out(self, schedd: str | None = None) -> int:
        """Return how many idle jobs are in none of the groups, as there are too many."""
        answers = [self._gathered.answers.get((d.name, DEMAND)) for d in self.schedds(schedd)]
        jobs = sum(count.jobs for answer in answers if answer for count in answer.value.counts)
        groups = [*self.groups(schedd), *(g for g in self._hard if schedd in (None, "", g.schedd))]
        return int(jobs) - sum(group.jobs for group in groups)

    @cached_property
    def _limits(self) -> Limits:
        """What limits the jobs of accounting groups and schedds."""
        maps = [a.value for (_, kind), a in self._gathered.answers.items() if kind == order.QUOTAS]
        return limits_of(maps, self._gathered.chosen)

    def place(self, entry: EntryKey, pilot: Pilot | None = None) -> PlaceSituation:
        """Return all that the explanation of an entry, or of a pilot of it, rests on.

        Raises NoAnswer where jobs and pilots could not be matched.
        """
        startd = pilot.name if pilot else ""
        groups = [
            group._replace(jobs=rejection.jobs, rejections=(rejection,))
            for group in self.groups()
            for rejection in group.by_rejection()
        ]
        entries = [self._fitting(group).entries for group in groups]
        few = waiting_job.FEW_GROUPS
        sent = [*groups[:few], *(group._replace(ad="") for group in groups[few:])]
        asked = self._access, entry, startd, sent, entries, self.schedds(None)
        offers = self._run("gwmond", place_offers.offers, *asked)
        if offers is None:
            raise NotRead(f"jobs and pilots could not be matched: {'; '.join(self.missing)}")
        pilots = [pilot] if pilot else [p for p in self.pilots if p.entry == entry]
        state = self._entries.get(entry), pilots, (groups, offers), self._now, self.missing
        here = PlaceSituation(entry, startd, *state, limits=self._limits)
        here.common = self._read(self._common) or ()
        return here

    def _common(self, ledger: LedgerReader) -> Sequence[CommonFailure]:
        """Return the failures of validation that are no site's, of pilots that began lately."""
        from gwmond.ledger.reading.failed import validated  # noqa: PLC0415 (slow to load)

        since_us = round(self._now - _LATELY_S) * SECOND_US
        return tuple(common(validated(ledger, since_us)))

    @cached_property
    def pilots(self) -> list[Pilot]:
        """The pilots that the collectors know, by name, but for silent ones."""
        answers = [answer for (_, kind), answer in self._gathered.answers.items() if kind == SLOTS]
        by_name = {pilot.name: pilot for answer in answers for pilot in answer.value.pilots}
        return [by_name[name] for name in sorted(by_name.keys() - self._terms.silent)]

    def pilot(self, name: str) -> Pilot | None:
        """Return a pilot by the name of its startd, or of a slot; None if there is none."""
        return next((p for p in self.pilots if p.name in (name, name.partition("@")[2])), None)

    def entry(self, name: str) -> EntryKey:
        """Return the entry of a name (or ``SITE/ENTRY``); raises BadQuestion."""
        entries = {*self._entries, *(pilot.entry for pilot in self.pilots)}
        keys = sorted(key for key in entries if name in (key.entry, "/".join(key)))
        if len(keys) == 1:
            return keys[0]
        if keys:
            names = ", ".join("/".join(key) for key in keys)
            raise BadQuestion(f"several entries are called {name}. Say which: {names}")
        close = difflib.get_close_matches(name, sorted({key.entry for key in entries}), 3)
        close_text = f"; spelt alike: {', '.join(close)}" if close else ""
        raise BadQuestion(f"no entry is called {name}{close_text}. gwmond sites --entries has all")

    def groups(self, schedd: str | None = None) -> list[DemandGroup]:
        """Return the groups of idle jobs, the largest first, but for those that are set aside."""
        answers = [self._gathered.answers.get((d.name, DEMAND)) for d in self.schedds(schedd)]
        groups = [group for answer in answers if answer for group in answer.value.groups]
        groups = [group for group in groups if group.signature not in self._gathered.aside]
        return sorted(groups, key=lambda group: -group.jobs)

    @cached_property
    def _hard(self) -> list[DemandGroup]:
        """The groups that matching has set aside."""
        answers = [self._gathered.answers.get((d.name, DEMAND)) for d in self.schedds(None)]
        groups = (group for answer in answers if answer for group in answer.value.groups)
        return [group for group in groups if group.signature in self._gathered.aside]

    def situation(self, examined: Examined, order: Order | None = None) -> Situation:
        """Return all that the explanation of a job rests on."""
        state, history = (self._entries, self._now, self.missing), self._history(examined.job)
        here = Situation(examined, *state, site=self._site, order=order, history=history)
        here.idle = self._idle(order)
        return here

    def _idle(self, order: Order | None) -> Sequence[IdleJobs] | None:
        """Return all idle jobs that an order has; None where the poll has not all of them.

        Jobs of other pools' schedds may flock here, and of some schedds too many groups are idle.
        """
        asked = {schedd.name for schedd in self.schedds(None)}
        if self._snapshot is None or order is None or not order.schedds <= asked:
            return None
        return None if self.missing or self.left_out() else self._snapshot.evaluation.idle

    def _order(self, job: WaitingJob) -> Order | None:
        """Return in which order a job is served, if it waits; None where that cannot be read."""
        if job.status != 1:
            return None
        (schedd,) = self.schedds(job.schedd)
        try:
            return self._ask(order.fetch, self._access, schedd, job)
        except child.QueryError:
            return None

    def _history(self, job: WaitingJob) -> Sequence[WaitInterval]:
        """Return why jobs like it waited since its submission, as far as the ledger knows.

        Nothing is known of single sites, nor of jobs that are not idle.
        """
        if job.status != 1 or job.submitted is None or self._site:
            return ()
        since_us = job.submitted * SECOND_US
        rows = (
            self._read(lambda ledger: ledger.waits_of_group(job.schedd, job.identity, since_us))
            or ()
        )
        return [row._replace(since_us=max(row.since_us, since_us)) for row in rows]

    def _past(self, here: Situation) -> PastWaits | None:
        """Return recent waits of jobs like one that waits; None where no ledger can be read."""
        job, entries = here.job, {key.entry for key in here.fitting_entries}
        if job.status not in (0, 1):
            return None

        def waits(ledger: LedgerReader) -> PastWaits:
            from gwmond.ledger.reading.recent_waits import past_waits  # noqa: PLC0415 (slow to load)

            return past_waits(ledger, job, entries)

        return self._read(waits)

    def _read(self, ask: Callable[[LedgerReader], T]) -> T | None:
        """Return what the ledger says; None where there is none, or none can be read."""
        try:
            if not location.may_be_there(self._ledger_url):
                return None
        except (LedgerError, OSError):
            return None
        from gwmond.reports.ledger.ledger_reading import (  # noqa: PLC0415 (SQLAlchemy is slow to load)
            Unreadable,
            ledger_for_page,
        )

        try:
            with ledger_for_page(self._ledger_url) as ledger:
                return ask(ledger)
        except (LedgerError, OSError, Unreadable):
            return None

    def _run(self, source: str, task: Callable[..., tuple[T, int]], *arguments: object) -> T | None:
        """Run a query in a child; note where it failed."""
        try:
            return self._ask(task, *arguments)
        except child.QueryError as error:
            self._failed.append(f"{source} explain ({error})")
            return None

    def _ask(self, task: Callable[..., tuple[T, int]], *arguments: object) -> T:
        """Run a query in a child; raises QueryError."""
        left = max(_LEAST_S, self._until - time.monotonic())
        every = *arguments, self._terms
        (value, _), _ = child.run(task, *every, deadline_s=left, memory_mib=self._memory_mib)
        return value
