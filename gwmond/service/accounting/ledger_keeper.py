"""Keeps what is accounted in the ledger, through whatever happens to it: what is shown is stored.

While the ledger cannot be written (disk full, locked by another daemon, damaged, database away)
everything waits here, and counters stand still: so a counter never goes back after a restart.
Every poll tries again.

- Site time waits summed by hour.
- Of pilots nothing new is taken in then (``ready``), so that memory stays bounded, and no record
  is lost: the histories and files keep them.
- What waits is dropped when the ledger turns out to have been written by somebody else meanwhile,
  for that time is theirs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import NamedTuple

import structlog

from gwmond.config.settings import Config
from gwmond.ledger.database.errors import LedgerConflict, LedgerError, LedgerLocked, LedgerRefused
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.ledger.store import Ledger
from gwmond.model.cursor_kinds import BEGIN_KINDS, KEPT_NAMES, KEPT_VERDICTS
from gwmond.model.demand.idle_history import GroupKey, Waits
from gwmond.model.elapsed import Elapsed, Tick
from gwmond.model.entries import confidence
from gwmond.model.entries.changes import Values
from gwmond.model.entries.experiments import Experiment
from gwmond.model.entries.suspects import Suspect
from gwmond.model.facts import Cursor, Gap, Problem, Size
from gwmond.model.names import Names
from gwmond.model.pilots.file_facts import FileFact
from gwmond.model.poll.batch import Batch, LedgerState, TimedProblem, Totals
from gwmond.model.poll.snapshot import LedgerStatus, PilotTime, SilentPilot
from gwmond.model.runs.run_facts import JobRecord
from gwmond.model.times import SECOND_US
from gwmond.model.totals import microseconds
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.factory.numbers import FactoryNumbers
from gwmond.pilots.memory.ad_times import silent_pilots
from gwmond.pilots.memory.posting import unsettled
from gwmond.pilots.runs.verdicts import (
    evidence,
)
from gwmond.pilots.runs.waits import waits
from gwmond.pilots.settlement import NOTHING_UNREAD, Unread
from gwmond.reports.ledger.open_runs import later_us, rules
from gwmond.service.accounting.pilot_steps import PilotSteps
from gwmond.service.accounting.read_positions import ReadPositions
from gwmond.service.accounting.suspicions import Suspicions
from gwmond.service.accounting.unstored_sites import UnstoredSites
from gwmond.service.pool.known_entries import Memory, recall
from gwmond.sites.integrate import SiteTime
from gwmond.sources.folding import fold_records

log = structlog.get_logger()
_PRUNE_EVERY_S = 3600.0
_PROBLEMS_A_COMMIT = 100
_JUDGE_EVERY_US = 60 * SECOND_US
_STILL_POLLS = 5
"""Who has the ledger and has not written it for so many of our polls does not keep it."""


class _Sent(NamedTuple):
    """The batch that was sent last, and whether what was settled of pilots is in it."""

    batch: Batch
    pilots: bool


class LedgerKeeper:
    """The daemon's hold on its ledger; ``accounted`` is the time up to which sites are accounted.

    Problems with the ledger are returned by ``open`` and ``add``; all else raises LedgerError.
    """

    def __init__(self, config: Config) -> None:
        self._ledger: Ledger | None = None
        self._sent: _Sent | None = None
        self._error = ""
        self._others: Tick | None = None  # what another gwmond stored last, while it has the ledger
        self._still = _STILL_POLLS  # polls since that changed
        self._last_commit: float | None = None
        self._pruned_at = 0.0
        self._totals = Totals()
        self._sites = UnstoredSites()
        self._suspicions: Counter[str] = Counter()  # that the verdicts have confirmed or not
        self.traced = False  # whether what is settled is to be exported as traces
        self.corrected = 0  # pilots, since then
        self.configure(config, None)

    def configure(self, config: Config, names: Names | None) -> None:
        """Go by a configuration from now on: pilots are read from the ledger again."""
        self._options, self._lookback_s = config.ledger, config.histories.lookback
        self._rules, self._later_us = rules(config), later_us(config)
        self._names = names
        self._accounting: PilotAccounting | None = None
        self._positions = ReadPositions()
        self._gaps: list[Gap] = []
        self.factory = FactoryNumbers()
        self._silent: frozenset[str] = frozenset()
        self._checks: list[Experiment] = []
        self.confidence = confidence.NO_CHECKS
        self._judged_us = 0
        self._known_us: int | None = None
        self._settled_us: int | None = None  # what was settled then is not stored yet
        self._unstored = False  # the last attempt to store it failed
        self._suspected = Suspicions(self._rules, self._suspicions)

    # --- The ledger ----------------------------------------------------------------------------

    @property
    def status(self) -> LedgerStatus:
        """Return how the ledger does."""
        standby = bool(self._error) and self._still < _STILL_POLLS
        waiting = len(self._sites)
        return LedgerStatus(not self._error, self._error, self._last_commit, waiting, standby)

    @property
    def accounted(self) -> Tick | None:
        """The time up to which sites are accounted."""
        return self._sites.accounted

    @property
    def totals(self) -> Totals:
        """What is stored of all counters."""
        return self._totals

    @property
    def ledger(self) -> Ledger | None:
        """The ledger as long as it is open."""
        return self._ledger

    @property
    def ready(self) -> bool:
        """Whether facts may be added: the ledger is there to look up what is not in memory.

        Not while a batch waits that could not be stored.
        """
        return self._ledger is not None and self._accounting is not None and not self._unstored

    def open(self, memory: Memory, hours: tuple[int, int]) -> tuple[Memory, list[Problem]]:
        """Open the ledger unless it is open; return the memory with what the ledger remembers."""
        if self._ledger is not None and self._accounting is not None:
            return memory, []
        ledger, new = self._ledger, self._ledger is None
        try:
            if ledger is None:
                ledger = Ledger.open(self._options.url)
            state = self.use(ledger)
        except LedgerError as error:
            if ledger is not None:
                ledger.close()
            self._stand_by(isinstance(error, LedgerLocked))
            return memory, self._problem(error)
        self._error, self._still = "", _STILL_POLLS
        return recall(memory, state, hours) if new else memory, []

    def _stand_by(self, locked: bool) -> None:
        """Look whether another gwmond, which has the ledger, goes on to write it."""
        others = None
        if locked:
            with suppress(LedgerError), LedgerReader.open(self._options.url) as reader:
                others = reader.tick()
        if others is None:
            self._still = _STILL_POLLS
        elif others == self._others:
            self._still += 1
        else:
            self._others, self._still = others, 0

    def use(self, ledger: Ledger) -> LedgerState:
        """Go on with a ledger; return what it holds.

        The pilots in memory stay if the ledger holds what was stored of them, else they are read
        anew.
        """
        self._ledger = None
        ledger.note_unit(self._rules.memory_per_unit_mib)
        state = ledger.load()
        sent = self._sent
        if sent is not None and (state.batches, state.tick) == (
            sent.batch.before + 1,
            sent.batch.tick or self._sites.tick,
        ):
            self._stored(sent)  # the answer to the last commit was lost, but not the commit
        if self._accounting is None or state.batches != self._accounting.batches:
            self._accounting = PilotAccounting(state, self._rules, self._names)
            self._positions.resume(state.cursors)
            self._clear()
            self._check(ledger.latest_checks(confidence.MOST)[::-1])
        self._sites.resume(state)
        self._sent, self._totals, self._ledger = None, state.totals, ledger
        return state

    def close(self) -> None:
        """Close the ledger, so that another may write it; ``open`` opens it again."""
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    def _lost(self, error: LedgerError) -> None:
        """Take note that the ledger has to be opened again."""
        self.close()
        self._error = str(error)

    def add(
        self,
        tick: Tick,
        elapsed: Elapsed,
        increments: Iterable[SiteTime],
        memory: Memory,
        problems: Iterable[Problem],
        found: bytes = b"",
    ) -> list[Problem]:
        """Account sites for the interval that ends with ``tick``, and store all that waits.

        What was settled of pilots is stored in the same transaction, and what the poll ``found``.
        """
        self._sites.add(tick, elapsed, increments)
        if self._ledger is None or self._accounting is None:
            return []
        now, first = tick.wall, list(problems)[:_PROBLEMS_A_COMMIT]
        site = self._sites.batch(self._accounting.batches, tick, memory)
        timed = tuple(TimedProblem(now, problem) for problem in first)
        site = site._replace(problems=timed, found=found)
        try:
            self._commit(site)
        except LedgerError as error:
            return self._problem(error)
        self._sites.stored_peaks(memory)
        self._last_commit, self._error = now, ""
        return self._prune(now)

    def note_waits(self, now: float, waits: Mapping[GroupKey, Waits], period_s: float) -> None:
        """Take note of why groups of jobs wait now; it is stored with the time of sites."""
        if self._ledger is not None:
            self._sites.note_waits(now, waits, period_s)

    def note_values(self, now: float, values: Values) -> None:
        """Take note of what is set at entries now; a change is stored with the time of sites."""
        if self._ledger is not None:
            self._sites.note_values(now, values)

    def note_verdicts(self, dumped: str) -> None:
        """Take note of which jobs match what; it is stored with what is settled of pilots."""
        self._positions.move_on(Cursor(KEPT_VERDICTS, KEPT_VERDICTS, dumped, None))

    def commit(self) -> None:
        """Store what was settled of pilots alone, as a part of a backlog."""
        self._commit(None)

    def retry(self) -> None:
        """Store what could not be stored before, if anything waits."""
        if self._ledger is not None and self._unstored:
            self.commit()

    def _commit(self, site: Batch | None) -> None:
        """Store settled time of pilots, and time of sites; refused pilots are set aside."""
        settled = self._settled()
        any_pilots = settled is not None
        try:
            try:
                self._send(settled, site)
            except LedgerRefused:
                if settled is None:
                    raise
                settled = self._without_refused(settled)
                if settled is None and site is None:
                    raise
                self._send(settled, site)
        except LedgerError as error:
            self._unstored |= any_pilots
            if site is not None and isinstance(error, LedgerRefused):
                self._sites.drop()  # such as the time since 1970, from a clock that was wrong
            if isinstance(error, LedgerConflict) and not error.replay:
                self._sent = None  # what is stored is somebody else's
            if error.reopen or isinstance(error, LedgerConflict):
                self._lost(error)
            raise
        self._unstored |= any_pilots and settled is None

    def _send(self, settled: Batch | None, site: Batch | None) -> None:
        batch = settled.with_sites(site) if settled and site else settled or site
        if batch is None or self._ledger is None:
            return
        self._sent = _Sent(batch, settled is not None)
        changed = self._ledger.commit(batch)
        self._stored(self._sent)
        self._totals = self._totals.updated(changed)

    def _stored(self, sent: _Sent) -> None:
        """Take note that a batch is in the ledger."""
        batch, self._sent = sent.batch, None
        self._sites.stored(batch)
        if self._accounting is None:
            return
        if sent.pilots:
            if self.traced:
                self.corrected += len({correction.pilot for correction in batch.corrections})
            self._accounting.stored()
            self._check(batch.experiments)
            self._clear()
        else:
            self._accounting.batches += 1

    def _check(self, checks: Iterable[Experiment]) -> None:
        """Take in experiments that have checked verdicts, in their order."""
        more = [check for check in checks if check.agreed is not None]
        if more:
            self._checks = [*self._checks, *more][-confidence.MOST :]
            self.confidence = confidence.confidence(self._checks)

    def _clear(self) -> None:
        """Nothing waits of pilots any more, besides what is in their accounting."""
        self._positions.stored()
        self._gaps.clear()
        self.factory.clear()
        self._settled_us = None
        self._unstored = False

    def _settled(self) -> Batch | None:
        """Return what was settled of pilots and is not stored; None where there is nothing."""
        if self._accounting is None or self._settled_us is None:
            return None
        if self._names is not None:
            self._positions.move_on(Cursor(KEPT_NAMES, KEPT_NAMES, self._names.dump(), None))
        batch = self._accounting.batch(self._settled_us, self._positions.unstored, self._gaps)
        batch = batch._replace(factory=self.factory.changes(), stored_us=microseconds(time.time()))
        return batch if self.traced else batch._replace(settled=())

    def _without_refused(self, batch: Batch) -> Batch | None:
        """Return a batch that was refused without what cannot be stored, None if all could be.

        Each pilot is logged once: it is set aside then, until gwmond is started anew.
        """
        with self.steps() as steps:
            refused = steps.ledger.refused_parts(steps.accounting.divide(batch))
        if not refused:
            return None
        rows = {row.id: row.identity for row in batch.pilots}
        for part, why in refused.items():
            identity = rows.get(part) if isinstance(part, int) else None
            log.error(
                "the ledger cannot store a pilot: it is left out; please report this",
                pilot=identity.name if identity is not None else part,
                entry=identity.key.entry if identity is not None else None,
                site=identity.key.site if identity is not None else None,
                cause=why,
            )
        self.accounting.leave_out(refused)
        return self._settled()

    def _prune(self, now: float) -> list[Problem]:
        if self._ledger is None or now - self._pruned_at < _PRUNE_EVERY_S:
            return []
        options = self._options
        retention = Retention(
            hours_s=options.hours_retention,
            pilots_s=options.pilots_retention,
            runs_s=options.runs_retention,
            corrections_s=options.corrections_retention,
            problems_s=options.problems_retention,
            polls_s=options.polls_retention,
            # Without a cursor a history is read from the lookback on.
            cursors_s=max(options.pilots_retention, self._lookback_s),
        )
        try:
            if self._ledger.prune(now, retention).cursors:
                self._positions.pruned(self._ledger.cursors())
        except LedgerError as error:
            return self._problem(error)
        self._pruned_at = now
        return []

    def _problem(self, error: LedgerError) -> list[Problem]:
        """Return the problem; the remedy comes last, as that may be a command to be copied."""
        self._error = str(error)
        text = f"ledger {error.where}: {error.what}. Counters stand still until this is mended."
        return [Problem("ledger", error.problem, f"{text} {error.remedy}")]

    # --- The time of pilots --------------------------------------------------------------------

    @property
    def accounting(self) -> PilotAccounting:
        """The accounting of pilots; raises ValueError before a ledger was opened."""
        if self._accounting is None:
            raise ValueError("no ledger was opened")
        return self._accounting

    @contextmanager
    def steps(self) -> Iterator[PilotSteps]:
        """The steps of the accounting: a ledger that is lost in one is to be opened again."""
        if self._ledger is None:
            raise ValueError("no ledger is open")
        try:
            yield PilotSteps(self.accounting, self._ledger)
        except LedgerError as error:
            if error.reopen:
                self._lost(error)
            raise

    def add_records(
        self, records: Sequence[JobRecord], cursor: Cursor | None, gap: Gap | None
    ) -> None:
        """Take in records, and how far their source has been read."""
        folded = records if self._names is None else fold_records(self._names, records)
        with self.steps() as steps:
            steps.run(steps.accounting.add_records(folded))
        if gap is not None:
            self._gaps.append(gap)
        self._positions.move_on(cursor)

    def add_facts(
        self,
        facts: Sequence[FileFact],
        cursor: Cursor | None,
        expected: Mapping[str, Size] = MappingProxyType({}),
    ) -> None:
        """Take in what GlideinWMS's files tell, and how large pilots are expected to be."""
        with self.steps() as steps:
            self.factory.take(steps.run(steps.accounting.add_facts(facts, expected)))
        self._positions.move_on(cursor)

    def add_files(self, read: Sequence[tuple[Sequence[FileFact], Cursor]]) -> None:
        """Take in what GlideinWMS's files tell, and how far each directory was read.

        What is stored of all of it is asked for at once: most directories have few new files.
        """
        with self.steps() as steps:
            steps.run(steps.accounting.load_files([fact for facts, _ in read for fact in facts]))
            for facts, cursor in read:
                self.factory.take(steps.run(steps.accounting.take_facts(facts)))
                self._positions.move_on(cursor)

    def settle(
        self,
        now_us: int,
        known_us: int,
        silent: Collection[str],
        unread: Unread = NOTHING_UNREAD,
        *,
        verdicts: bool = True,
        store: bool = True,
    ) -> None:
        """Settle what can be, and ``store`` it; see ``Settlement.settle``.

        What is not stored now is to be stored with the site time of the same poll.
        ``verdicts`` on early failures are not to fall as long as evidence of any time may still
        come.
        """
        self._silent = frozenset(silent)
        with self.steps() as steps:
            steps.run(steps.accounting.settle(now_us, known_us, self._silent, unread))
        self._known_us = known_us or self._known_us
        self._settled_us = now_us
        # Not for as long as the clock was ahead, if it was stepped back since.
        if verdicts and abs(now_us - self._judged_us) >= _JUDGE_EVERY_US:
            self._judged_us = now_us
            self._judge(now_us, known_us)
        if store:
            self.commit()

    def _judge(self, now_us: int, known_us: int) -> None:
        """Give the verdicts that are due; the evidence for them is stored before."""
        with self.steps() as steps:
            basis = evidence(now_us, known_us, self._positions.all, self._rules)
            if steps.accounting.settlement.trials(now_us, basis):
                self.commit()
                steps.judge(now_us, basis.without(steps.ledger.gaps()))
                steps.run(steps.accounting.settle_changed())
                self._settled_us = now_us

    def note_begin(self, source: str, kind: str, since_us: int) -> None:
        """Take note from when on a history is read, before its first records."""
        self._positions.move_on(Cursor(source, BEGIN_KINDS[kind], "", since_us))

    def suspect(self) -> None:
        """Look for suspects, in what is known of histories."""
        if self._known_us:
            with self.steps() as steps:
                self._suspected.look(steps.ledger, self._known_us)

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Places that are suspected now."""
        return self._suspected.suspects

    @property
    def cursors(self) -> tuple[Cursor, ...]:
        """How far each source's records have been taken."""
        return self._positions.of_records

    def cursor(self, source: str, kind: str) -> Cursor | None:
        """Return how far a source's records have been taken."""
        return self._positions.of(source, kind)

    def shown(self) -> PilotTime | None:
        """Return what is to be shown of pilots; None before a ledger was read."""
        accounting = self._accounting
        if accounting is None:
            return None
        pilots, silent_us = accounting.pilots, accounting.silence.before_us
        return PilotTime(
            shown=self._totals.pilots,
            counted=self._totals.counts,
            unsettled=unsettled(pilots, self._rules.memory_per_unit_mib),
            waits=waits(pilots, self._rules, silent_us, self._silent, self._later_us),
            residual=dict(accounting.settlement.residual),
            contradictions=dict(accounting.contradictions),
            known_us=self._known_us,
            factory=self._totals.factory,
            suspects=self.suspects,
            suspicions=dict(self._suspicions),
            silent=tuple(
                SilentPilot(
                    pilot.identity.name,
                    pilot.identity.key,
                    pilot.identity.group,
                    pilot.last_heard_us,
                )
                for pilot in silent_pilots(pilots, silent_us)
            ),
        )
