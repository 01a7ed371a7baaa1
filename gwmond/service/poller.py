"""One poll after another: ask, evaluate, account, store, show."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gwmond.config.settings import Config
from gwmond.ledger.database import location
from gwmond.ledger.database.errors import LedgerError
from gwmond.model.elapsed import Tick, elapsed
from gwmond.model.entries.changes import values
from gwmond.model.entries.confidence import MOST, NO_CHECKS, Confidence, confidence
from gwmond.model.entries.evaluation import Evaluation, residual
from gwmond.model.facts import Berth, EntryKey, Problem, Status
from gwmond.model.names import NameLimits, Names, Together
from gwmond.model.poll.snapshot import (
    Checked,
    HeldPilots,
    IdleReason,
    KeptNames,
    LedgerStatus,
    Snapshot,
    Stage,
    checked_verdicts,
)
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.reports.render.periods import short
from gwmond.reports.sites.polls import packed
from gwmond.reports.sites.sites import Polled, entry_rows
from gwmond.service.host import log
from gwmond.service.host.problems import Kind, begin, occurrences
from gwmond.service.pool.contradictions import Contradiction, LastingContradictions
from gwmond.service.pool.held_pilots import held_pilots
from gwmond.service.pool.known_entries import EMPTY, Memory, evaluated, recall, window_hours
from gwmond.service.pool.matcher import Matcher, dumped, loaded
from gwmond.service.pool.pool import Pool
from gwmond.service.pool.pool_state import YOUNG, PoolState, build_state, site_settings
from gwmond.sites.integrate import integrate
from gwmond.sites.site_time import Facts, evaluate
from gwmond.sources import child
from gwmond.sources.round import Round

if TYPE_CHECKING:  # commands that poll once do without
    from gwmond.service.accounting.accountant import Accountant, Seen
    from gwmond.service.accounting.ledger_keeper import LedgerKeeper
    from gwmond.service.host.log_socket import LogSocket
    from gwmond.service.pool.idle_reasons import IdleReasons
    from gwmond.sources.htcondor.access import Access, Daemon

_EXAMPLES = 6
_VERDICTS_EVERY_S = 600.0
_SHOWN = 60  # characters of a name that is shown as an example


class Stages:
    """Stopwatch: wall seconds of each stage, one after the other; none begins when all ends."""

    def __init__(self) -> None:
        self.seconds: dict[Stage, float] = {}
        self._since = time.monotonic()

    def end(self, stage: Stage) -> None:
        """Say that a stage ends now.  Raises child.Stopped."""
        child.check_stopped()
        now = time.monotonic()
        self.seconds[stage] = now - self._since
        self._since = now


class Poller:
    """Polls a pool; call it from one thread.

    Without a keeper nothing is stored; without ``reasons`` nobody looks why jobs wait.
    """

    def __init__(
        self,
        config: Config,
        pool: Pool,
        keeper: LedgerKeeper | None,
        memory: Memory = EMPTY,
        socket: LogSocket | None = None,
        names: Names | None = None,
        *,
        reasons: bool = True,
    ) -> None:
        self._config, self._pool, self._keeper, self._memory = config, pool, keeper, memory
        self._matcher = Matcher(pool.gatherer)
        self._new_verdicts, self._verdicts_due = False, 0.0
        self._problems: Counter[Kind] = Counter()
        self._records: Counter[tuple[str, str]] = Counter()
        self._succeeded: dict[tuple[str, str], float | None] = {}
        self._reported: set[Kind] = set()
        self._busy: frozenset[str] = frozenset()
        self._begun: list[Problem] = []  # since the last poll
        self._entries: defaultdict[ProblemName, frozenset[str]] = defaultdict(frozenset)
        self._contradicted = LastingContradictions()
        self._names = names or Names(_limits(config))
        self._held: tuple[HeldPilots, ...] = ()
        self._idle = _idle_reasons(config, pool) if reasons else None
        self.facts: Facts | None = None  # that the last poll judged
        self.accountant: Accountant | None = None
        if keeper is not None:
            keeper.configure(config, self._names)
            self.accountant = _accountant(config, pool, keeper, socket)
        self._started_at = time.time()
        self._polls = 0

    @property
    def memory(self) -> Memory:
        """What is remembered of entries."""
        return self._memory

    def successor(
        self,
        config: Config,
        pool: Pool,
        keeper: LedgerKeeper | None,
        memory: Memory,
        socket: LogSocket | None = None,
    ) -> Poller:
        """Return a poller for a new configuration that goes on with our counters.

        What lasts is not logged again, and what the new one does not find any more is over.
        """
        names = self._names.successor(_limits(config))
        after = Poller(config, pool, keeper, memory, socket, names)
        after._problems, after._records = self._problems, self._records
        after._polls, after._started_at = self._polls, self._started_at
        after._reported, after._begun = self._reported, self._begun
        after._entries, after._contradicted = self._entries, self._contradicted
        after._matcher.verdicts = self._matcher.verdicts
        return after

    def failed(self, problem: ProblemName) -> None:
        """Count a failure outside a poll, or of a whole one."""
        self._problems["gwmond", problem] += 1

    def poll(
        self,
        noticed: Iterable[Problem] = (),
        beside: Callable[[Round], object] | None = None,
    ) -> Snapshot:
        """Ask every source once, account the time since the poll before, return the outcome.

        ``noticed`` are problems that showed elsewhere since the poll before; ``beside``: see
        ``Gatherer.round``.
        """
        config, pool = self._config, self._pool
        problems = list(noticed)
        if self._keeper is not None:
            self._memory, failed = self._keeper.open(self._memory, window_hours(config))
            problems += failed
        stages = Stages()
        stored = self._keeper.accounted if self._keeper is not None else None
        asked_at, asked_mono = pool.clock.next_tick(stored), time.monotonic()
        access = pool.access(asked_at)
        self._recall(asked_at.wall)
        gathered = pool.gatherer.round(access, asked_at.wall, self._names, beside)
        self._note_busy()
        stages.end("query")
        tick = pool.clock.tick()
        entries = frozenset(self._memory.first_seen)
        if self._keeper is not None and self._keeper.ready:
            self._memory = self._memory._replace(ended=self._keeper.accounting.ended)
        # A replay waits for its polls, however long they take: no answer to one gets old by that.
        mono = time.monotonic() if pool.recording is None else asked_mono
        state = build_state(gathered, self._memory, config, tick.wall, mono)
        stages.end("state")
        problems += self._match(state.facts)
        gathered = pool.gatherer.last()
        stages.end("matching")
        self._ask_schedds(access, gathered, asked_at.wall)
        self.facts = facts = state.facts._replace(verdicts=self._matcher.verdicts)
        evaluation, wrong = self._evaluate(facts, tick.wall)
        problems += _wrong(wrong)
        stages.end("evaluation")
        causes = self._idle.causes(state, evaluation, tick.wall) if self._idle else None
        idle = causes.sums(evaluation.idle) if causes else ()
        gathered = pool.gatherer.last()
        stages.end("reasons")
        if self.accountant is not None:
            self.accountant.watch(state.requests, tick, pool.period_s)
            seen = _seen(asked_at.wall, asked_mono, gathered, state, evaluation)
            problems += self.accountant.step(access, gathered, seen, pool.period_s)
            gathered = pool.gatherer.last()
            stages.end("pilots")
        self._memory = evaluated(state.memory, evaluation)
        problems += [
            *gathered.problems,
            *_doubts(state.facts.doubtful, state.young_until),
            *_too_many_names(self._names.together),
            *self._of_entries(state, evaluation),
            *self._of_counts(state.contradictions, tick.wall),
        ]
        if self._keeper is not None:
            if causes:
                self._keeper.note_waits(tick.wall, causes.waits(evaluation.idle), pool.period_s)
            problems += self._store(
                *(self._keeper, tick, state, evaluation, entries, problems),
                _found(state, evaluation, idle, gathered.statuses, self._keeper.confidence),
            )
            stages.end("ledger")
        self._count(problems)
        self._count_records(gathered.statuses)
        self._polls += 1
        snapshot = self._snapshot(gathered, state, evaluation, wrong, tick.wall, stages)
        return replace(snapshot, idle=idle)

    def _store(
        self,
        keeper: LedgerKeeper,
        tick: Tick,
        state: PoolState,
        evaluation: Evaluation,
        entries: frozenset[EntryKey],
        problems: Sequence[Problem],
        found: bytes,
    ) -> list[Problem]:
        """Store time of sites and of pilots at once; return further problems."""
        totals = state.facts.totals or {}
        keeper.note_values(tick.wall, values(totals, state.requests, state.facts.templates))
        passed = elapsed(keeper.accounted, tick, self._pool.period_s)
        increments = integrate(evaluation, passed, entries)
        begun = self._begun + begin(problems, self._reported)
        accountant = self.accountant
        failed = keeper.add(tick, passed, increments, self._memory, begun, found)
        words = {(problem.source, problem.problem) for problem in problems}
        late = accountant.stored() if accountant else []
        self._begun = begin(late, self._reported)
        return [p for p in failed if (p.source, p.problem) not in words] + late

    def _note_busy(self) -> None:
        """Log each schedd that is busy, once until it has calmed down."""
        busy = frozenset(self._pool.gatherer.busy)
        every_s = self._config.poll.interval * self._config.poll.busy_factor
        for schedd in sorted(busy - self._busy):
            text = "schedd is busy, asked less often"
            log.event("info", text, source=schedd, every_s=every_s)
        self._busy = busy

    def _match(self, facts: Facts) -> list[Problem]:
        """Match jobs and pilots; the ledger gets new matches seldom, as they may be millions."""
        problems = self._matcher.match(facts.groups, facts.templates)
        self._new_verdicts |= self._matcher.evaluated
        now = time.monotonic()
        if self._keeper is not None and self._new_verdicts and now >= self._verdicts_due:
            self._keeper.note_verdicts(dumped(self._matcher.verdicts))
            self._new_verdicts, self._verdicts_due = False, now + _VERDICTS_EVERY_S
        return problems

    def _recall(self, now: float) -> None:
        """Take in the names and the matches that the ledger knows, once it was opened."""
        if (recalled := self._memory.recalled) is not None:
            self._names.recall(recalled.entries, recalled.groups, recalled.now, now)
            self._names.load(recalled.words, recalled.now, now)
            self._matcher.verdicts = loaded(recalled.verdicts) | self._matcher.verdicts
            self._memory = self._memory._replace(recalled=None)

    @property
    def behind(self) -> bool:
        """Whether records of jobs are left that ``drain`` would fetch."""
        return self.accountant is not None and self.accountant.behind

    def drain(self, snapshot: Snapshot, seconds: float) -> Snapshot:
        """Fetch more records of jobs; return the snapshot with what became of them."""
        accountant, keeper = self.accountant, self._keeper
        if accountant is None or keeper is None:
            return snapshot
        tick = self._pool.clock.tick()
        self._pool.gatherer.allow(seconds)
        problems = accountant.drain(self._pool.access(tick), tick.wall)
        gathered = self._pool.gatherer.last()
        problems += gathered.problems
        self._begun += begin(problems, self._reported)
        self._reported |= self._report(problems)
        self._count_records(gathered.statuses)
        return replace(
            snapshot,
            sources=gathered.statuses,
            records=dict(self._records),
            problems=dict(self._problems),
            pilot_time=keeper.shown(),
            cursors=keeper.cursors,
        )

    def _ask_schedds(self, access: Access, gathered: Round, now: float) -> None:
        """Have schedds answer for records of jobs beside the evaluation."""
        if self.accountant is not None:
            self.accountant.begin(access, _daemons(gathered), now)

    def _evaluate(self, facts: Facts, now: float) -> tuple[Evaluation, int]:
        evaluation = evaluate(facts, int(now), site_settings(self._config))
        return evaluation, residual(evaluation)

    def _of_entries(self, state: PoolState, evaluation: Evaluation) -> list[Problem]:
        """Return problems that last, each counted once for each entry that has it anew."""
        posted = self.accountant.below_one_unit if self.accountant else frozenset()
        small = self._entries[ProblemName.BELOW_ONE_UNIT] | state.below_one_unit | posted
        untaken = frozenset(key.entry for (key, _), row in evaluation.rows.items() if row.untaken)
        lasting = {
            ProblemName.BELOW_ONE_UNIT: (small, "each pilot counts as one unit"),
            ProblemName.IDLE_SLOTS_UNTAKEN: (untaken, "jobs match free slots that nobody takes"),
        }
        problems = [
            Problem("entries", word, f"{text}: {_few(sorted(now))}", len(now - self._entries[word]))
            for word, (now, text) in lasting.items()
            if now
        ]
        self._entries.update({word: now for word, (now, _) in lasting.items()})
        return problems

    def _of_counts(self, contradictions: Sequence[Contradiction], now: float) -> list[Problem]:
        """Return what contradicts what, each counted once when it begins."""
        return [
            Problem("entries", ProblemName.COUNTS_DIFFER, contradiction.text, int(begins))
            for contradiction, begins in self._contradicted.told(contradictions, now)
        ]

    def _count(self, problems: Iterable[Problem]) -> None:
        """Count problems; log each kind at each source once when it begins, and when it is over."""
        reported = self._report(problems)
        for source, name in sorted(self._reported - reported):
            log.event("info", "problem over", source=source, problem=name.value)
        self._reported = reported

    def _report(self, problems: Iterable[Problem]) -> set[Kind]:
        """Count problems, and log each kind at each source when it begins; return which."""
        reported: dict[Kind, list[Problem]] = {}
        for problem in problems:
            reported.setdefault((problem.source, problem.problem), []).append(problem)
        for (source, name), details in reported.items():
            number = sum(map(occurrences, details))
            if number:
                self._problems[source, name] += number
            if (source, name) not in self._reported:
                text = "; ".join(
                    list(dict.fromkeys(problem.detail for problem in details))[:_EXAMPLES]
                )
                log.event(
                    "warning",
                    "problem",
                    source=source,
                    problem=name.value,
                    n=number,
                    detail=text,
                    meaning=name.meaning,
                    remedy=name.remedy,
                )
        return set(reported)

    def _count_records(self, statuses: Iterable[Status]) -> None:
        for status in statuses:
            query = status.source, status.kind
            if status.up and status.last_success != self._succeeded.get(query):  # it was run
                self._records[query] += status.records
                self._succeeded[query] = status.last_success

    def _snapshot(
        self,
        gathered: Round,
        state: PoolState,
        evaluation: Evaluation,
        wrong: int,
        pool_time: float,
        stages: Stages,
    ) -> Snapshot:
        keeper = self._keeper
        self._held = held_pilots(state.facts.totals or {}, self._held, pool_time)
        pilot_time = keeper.shown() if keeper else None
        versions = [
            answer.value.version
            for (_, kind), answer in sorted(gathered.answers.items())
            if kind == "collector" and answer.value.version
        ]
        return Snapshot(
            pool_time=pool_time,
            made_at=time.time(),
            started_at=self._started_at,
            poll_interval=self._config.poll.interval,
            poll_seconds=sum(stages.seconds.values()),
            stages=stages.seconds,
            polls=self._polls,
            young_until=state.young_until,
            speed=self._pool.clock.speed,
            sources=gathered.statuses,
            records=dict(self._records),
            problems=dict(self._problems),
            evaluation=evaluation,
            residual=wrong,
            entries=state.facts.totals or {},
            requests=state.requests,
            entry_monitors=state.entry_monitors,
            pilots=state.pilot_groups,
            silent=state.silent,
            jobs=state.jobs,
            users=state.users,
            reported=state.reported,
            ledger=keeper.status if keeper else LedgerStatus(True, "", None, 0),
            totals=keeper.totals.site if keeper else {},
            htcondor_version=_short(versions[0]) if versions else "",
            pilot_time=pilot_time,
            cursors=keeper.cursors if keeper else (),
            reconciliation=self.accountant.reconciler.shown if self.accountant else None,
            verdicts=checked_verdicts(pilot_time.counted) if pilot_time else None,
            confidence=keeper.confidence if keeper else NO_CHECKS,
            names=self._kept(state, evaluation),
            held=self._held,
        )

    def _kept(self, state: PoolState, evaluation: Evaluation) -> KeptNames:
        """Return the names that are kept apart: by the rule, and those shown now."""
        names = self._names
        asked = (Berth(request.entry, request.group) for request in state.requests)
        groups = frozenset({*names.groups, *state.pilot_groups, *asked})
        entries = {
            *names.entries,
            *(key for key, _ in evaluation.rows),
            *(key for key, _ in groups),
        }
        return KeptNames(frozenset(entries), groups, names.weak, names.together)


def _found(
    state: PoolState,
    evaluation: Evaluation,
    idle: Sequence[IdleReason],
    statuses: Iterable[Status],
    confidence: Confidence,
) -> bytes:
    """Return what the ledger keeps of a poll for who asks later."""
    totals = state.facts.totals or {}
    polled = Polled(state.pilot_groups, evaluation, totals, confidence=confidence)
    return packed(entry_rows(polled), idle, statuses)


def _limits(config: Config) -> NameLimits:
    names = config.names
    return NameLimits(
        names.entries,
        names.groups,
        names.accounting_groups,
        names.forget_after,
        names.schedds,
        names.frontends,
        names.servers,
    )


def _too_many_names(together: Iterable[Together]) -> list[Problem]:
    """Return one problem as long as names are taken together."""
    kinds = []
    for names in together:
        few = (name if len(name) <= _SHOWN else name[:_SHOWN] + "..." for name in names.few)
        named = ", ".join(map(ascii, few))
        kinds.append(f"{names.number} {names.kind} besides {names.most}, such as {named}")
    return [Problem("names", ProblemName.TOO_MANY_NAMES, "; ".join(kinds))] if kinds else []


def _idle_reasons(config: Config, pool: Pool) -> IdleReasons:
    """Return who says why jobs wait.

    Imported here: commands that do not show that do without.
    """
    from gwmond.service.pool.idle_reasons import IdleReasons  # noqa: PLC0415

    return IdleReasons(config, pool)


def _accountant(
    config: Config, pool: Pool, keeper: LedgerKeeper, socket: LogSocket | None
) -> Accountant:
    """Return who accounts the time of pilots.

    Imported here: commands that poll once do without.
    """
    from gwmond.service.accounting.accountant import Accountant  # noqa: PLC0415

    live = pool.recording is None
    return Accountant(config, pool.gatherer, pool.targets, keeper, live=live, socket=socket)


def _seen(
    at: float, since_mono: float, gathered: Round, state: PoolState, evaluation: Evaluation
) -> Seen:
    """Return what the accountant takes of a round."""
    from gwmond.service.accounting.accountant import Seen  # noqa: PLC0415 (loaded with the accountant)

    schedds = _daemons(gathered)
    whole, silent = state.pilots_complete, state.silent_before
    return Seen(at, since_mono, state.pilots, whole, schedds, evaluation, silent)


def _wrong(milliunits: int) -> list[Problem]:
    detail = f"{milliunits} milliunits"
    return [Problem("accounting", ProblemName.RESIDUAL, detail)] if milliunits else []


def _daemons(gathered: Round) -> tuple[Daemon, ...]:
    return tuple(schedd.daemon for schedd in gathered.chosen)


def _doubts(doubtful: Mapping[EntryKey, str], until: float | None) -> list[Problem]:
    """Return a problem where a young collector hides pilots; a silent one is its own problem."""
    hidden = sorted(key.entry for key, reason in doubtful.items() if reason == YOUNG)
    if not hidden or until is None:
        return []
    until_text = (
        f"unknown until {short(round(until * SECOND_US))} UTC, unless their pilots are seen before"
    )
    return [
        Problem(
            "entries",
            ProblemName.YOUNG_COLLECTOR,
            f"fewer pilots than before: {_few(hidden)}: {until_text}",
        )
    ]


def _few(names: list[str]) -> str:
    left = len(names) - _EXAMPLES
    return ", ".join(names[:_EXAMPLES]) + (f" and {left} more" if left > 0 else "")


def _short(version: str) -> str:
    """Return ``25.14.1`` of ``$CondorVersion: 25.14.1 2026-09-24 ... $``."""
    words = version.split()
    return words[1] if len(words) > 1 else version


def poll_once(
    config: Config, kinds: frozenset[str] | None = None, *, reasons: bool = True
) -> Snapshot:
    """Poll a pool a single time, storing nothing.

    Capacities seen before, and the verdicts that were checked, come from the ledger.  ``kinds``:
    what collectors are asked for, if not for all; without ``reasons`` nobody looks why jobs wait.
    """
    before = Remembered() if config.replay.file else remembered(config, MOST)
    pool = Pool.open(config, once=True, kinds=kinds)
    snapshot = Poller(config, pool, None, before.memory, reasons=reasons).poll()
    return replace(snapshot, verdicts=before.verdicts, confidence=before.confidence)


class Remembered(NamedTuple):
    """What a ledger remembers, which verdicts pilots have checked, and how sure others are.

    ``verdicts``: None where there is no ledger yet.
    """

    memory: Memory = EMPTY
    verdicts: Mapping[EntryKey, Checked] | None = None
    confidence: Confidence = NO_CHECKS


def remembered(config: Config, most_checks: int = 0) -> Remembered:
    """Return what a ledger remembers, of so many checks of verdicts; writes nothing."""
    try:
        if not location.may_be_there(config.ledger.url):
            return Remembered()
        from gwmond.ledger.reading.sites_reader import SitesReader  # noqa: PLC0415 (slow to load)

        with SitesReader.open(config.ledger.url) as ledger:
            state = ledger.load_sites()
            checks = ledger.latest_checks(most_checks)[::-1] if most_checks else ()
    except (LedgerError, OSError):  # nobody else's directory is looked into
        return Remembered()
    memory = recall(EMPTY, state, window_hours(config))
    return Remembered(memory, checked_verdicts(state.totals.counts), confidence(checks))
