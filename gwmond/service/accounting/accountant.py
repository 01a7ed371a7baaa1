"""Pilots' time, one poll after another: sightings, claims and records are added up, and stored.

    collectors ─> sightings, claims ─┐
    schedds, startds, files ─> records ─> pilots ─> ledger (facts, cursors, totals at once)

Time up to which pilots' time can be settled: claims were shown, and the histories of every schedd
that answers were read, less ``pilots.settle_delay``.  A schedd that is silent for long is not
waited for: what slots show stands in, and its records correct that later.  While records are
unread of a time in which no claims were seen, only pilots that had ended are settled (``Unread``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from gwmond.config.settings import Config
from gwmond.ledger.database.errors import LedgerError
from gwmond.model.elapsed import Tick, elapsed
from gwmond.model.entries.evaluation import Evaluation
from gwmond.model.facts import EntryRequest, Pilot, Problem
from gwmond.model.packed import Packed
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.model.totals import microseconds, split_hours
from gwmond.pilots.early.comparison import Unit
from gwmond.pilots.experiments import Verdicts, verdicts
from gwmond.pilots.memory.sizes import expected_sizes
from gwmond.pilots.settlement import Unread
from gwmond.service.accounting.file_readers import CentralLogs, FactoryFiles
from gwmond.service.accounting.history_readers import HistoryReader, StartdHistoryReader
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.service.accounting.reconciler import Reconciler
from gwmond.service.host.log_socket import LogSocket
from gwmond.service.host.problems import LASTS, Lasting
from gwmond.sources.gather import Gatherer
from gwmond.sources.htcondor.access import Access, Daemon
from gwmond.sources.round import CLAIMS, REQUESTS, SLOTS, Round, Targets

_FEW = 5  # places that a problem names
_UNWATCHED_US = 600 * SECOND_US


class Seen(NamedTuple):
    """What collectors showed in one round.

    ``at`` is the time by the pool's clock (epoch seconds) and ``since_mono`` by the monotonic one
    when they were asked; ``complete``: they are trusted to have shown every pilot; ``evaluation``
    is what the poll reports on entries; ``silent_before``: a pilot that was heard of last before
    that is silent (epoch seconds).
    """

    at: float
    since_mono: float
    pilots: tuple[Pilot, ...]
    complete: bool
    schedds: tuple[Daemon, ...]
    evaluation: Evaluation
    silent_before: int | None = None


class Accountant:
    """Accounts the time of pilots; use it from one thread."""

    def __init__(
        self,
        config: Config,
        gatherer: Gatherer,
        targets: Targets,
        keeper: LedgerKeeper,
        *,
        live: bool = True,
        socket: LogSocket | None = None,
    ) -> None:
        self._config = config
        self._hosts = tuple(host or "local" for host in targets.collectors)
        self._gatherer = gatherer
        self._keeper = keeper
        self._histories = HistoryReader(config, gatherer, keeper)
        self._files = FactoryFiles(config, gatherer, keeper)
        self.central = CentralLogs(config, gatherer, keeper, socket)
        self._live = live  # a recording has no startds to ask
        self._startds = StartdHistoryReader(config, targets.collectors)
        self._delay_us = round(config.pilots.settle_delay * SECOND_US)
        self._claims_us: int | None = None
        self._claims_since_us: int | None = None  # watched, without a long time between
        self._schedds: tuple[Daemon, ...] = ()
        self.failure: LedgerError | None = None  # of the last step
        self._left: Mapping[ProblemName, int] = {}
        self._left_lasts = Lasting()
        self._lasting: dict[str, list[Problem]] = {}
        self._watched: Tick | None = None
        self._verdicts: Verdicts | None = None  # of the last poll, if no time was missed since
        self.reconciler = Reconciler(config.ledger.url)
        self._suspected: AbstractSet[Unit] = frozenset()

    @property
    def behind(self) -> bool:
        """Whether there are records that were not fetched yet."""
        behind = self._histories.behind or self._files.behind or self.central.behind
        return behind and self._keeper.ready

    def watch(self, requests: Sequence[EntryRequest], tick: Tick, period_s: float) -> None:
        """Account what entries' ads say now for the time since the last poll of this process.

        An interval of which not all is known (a missed poll, a suspended machine) is not watched.
        """
        passed, self._watched = elapsed(self._watched, tick, period_s), tick
        if not passed.known:
            self._verdicts = None
        if not (passed.known and self._keeper.ready):
            return
        end_us = microseconds(tick.wall)
        for hour, us in split_hours(passed.ms * 1000, end_us - passed.ms * 1000, end_us):
            self._keeper.factory.watch(requests, hour, us / SECOND_US)

    def begin(self, access: Access, schedds: Sequence[Daemon], now: float) -> None:
        """Begin to ask schedds for the records that ``step`` takes in at the same poll."""
        self._histories.begin(access, schedds, now)

    def step(self, access: Access, gathered: Round, seen: Seen, period_s: float) -> list[Problem]:
        """Account what one poll has shown; nothing is taken in without a ledger that stores it.

        What was settled last waits to be stored with the site time.
        """
        self.failure = None
        problems: list[Problem] = []
        before, self._verdicts = self._verdicts, _verdicts(seen)
        try:
            self._keeper.retry()
            if not self._keeper.ready:
                return self._with_lasting([])
            self._expect(gathered)
            self._see(gathered, seen, period_s, before)
            self._schedds = seen.schedds
            self._ask(access, seen.at, problems, only_behind=False)
            # Of a backlog a part says nothing.
            stored = () if self.behind else self._keeper.totals.factory.keys()
            return problems + self.reconciler.step(seen.at, stored)
        except LedgerError as error:
            self.failure = error
            return self._with_lasting([*problems, _problem(error)])

    def drain(self, access: Access, now: float) -> list[Problem]:
        """Go on with what is left of a backlog."""
        problems: list[Problem] = []
        try:
            self._ask(access, now, problems, only_behind=True)
        except LedgerError as error:
            self.failure = error
            return self._with_lasting([*problems, _problem(error)])
        return problems + self.stored()

    def stored(self) -> list[Problem]:
        """Return what shows once the time of the last step is stored; nothing after a failure."""
        if self.failure is not None:
            return []
        if not self._keeper.ready:  # it could not be stored: what lasted is not over by that
            parts = ("left out", "suspects")
            before = [problem for part in parts for problem in self._lasting.get(part, ())]
            return [problem._replace(records=0) for problem in before]
        problems = self._remembered("left out", self._left_out())
        if self.behind:
            return problems
        try:
            return problems + self._remembered("suspects", self._suspects())
        except LedgerError as error:
            self.failure = error
            return self._with_lasting([*problems, _problem(error)])

    def _expect(self, gathered: Round) -> None:
        """Tell the accounting the expected sizes of entries' pilots."""
        answers = [
            answer.value
            for (_, kind), answer in sorted(gathered.answers.items())
            if kind == REQUESTS
        ]
        expected = expected_sizes(request for ads in answers for request in ads.requests)
        self._keeper.add_facts((), None, expected)

    def _see(self, gathered: Round, seen: Seen, period_s: float, before: Verdicts | None) -> None:
        now_us = round(seen.at * SECOND_US)
        period_us = round(period_s * SECOND_US)
        renewed = {
            kind: [
                host
                for host in self._hosts
                if (answer := gathered.answers.get((host, kind))) and answer.at_s >= seen.since_mono
            ]
            for kind in (SLOTS, CLAIMS)
        }
        late = whole = False
        enough = 1 if self._config.pool.replicated else len(self._hosts)
        if len(renewed[SLOTS]) >= enough:
            silent = seen.silent_before
            with self._keeper.steps() as steps:
                steps.accounting.silence.note(None if silent is None else silent * SECOND_US)
                late = steps.run(
                    steps.accounting.add_ads(now_us, period_us, seen.pilots, complete=seen.complete)
                )
                if before is not None and seen.complete:
                    steps.accounting.check(now_us, before, seen.pilots)
        if len(renewed[CLAIMS]) >= enough:
            answers = [gathered.answers[host, CLAIMS].value for host in renewed[CLAIMS]]
            records = Packed.joined(answer.records for answer in answers)
            whole = seen.complete and self._gatherer.claims_since is None
            with self._keeper.steps() as steps:
                steps.run(steps.accounting.add_claims(now_us, records, complete=whole))
            self._watch_claims(now_us, period_us)
            self._claims_us = now_us
        if late and not whole:
            self._gatherer.ask_all_claims()

    def _watch_claims(self, now_us: int, period_us: int) -> None:
        """Take note since when claims have been watched: since all of them were asked for."""
        every = self._gatherer.claims_since is None
        longest_us = max(_UNWATCHED_US, 2 * period_us)
        if self._claims_us is None or now_us - self._claims_us > longest_us:
            self._claims_since_us = None
            if not every:
                self._gatherer.ask_all_claims()
        if self._claims_since_us is None and every:
            self._claims_since_us = now_us

    def _ask(
        self, access: Access, now: float, problems: list[Problem], *, only_behind: bool
    ) -> None:
        """Take in new records, and add to ``problems``.  Raises LedgerError.

        A backlog is settled and stored in parts: what is stored is not read again after a crash.
        """
        now_us, unsettled = round(now * SECOND_US), 0
        for batch in self._histories.read(access, self._schedds, now, only_behind=only_behind):
            problems += batch.problems
            unsettled += batch.records
            if batch.behind and unsettled >= self._config.histories.records:
                self._settle(now_us)
                unsettled = 0
        if self._live and self._config.factory.directories:
            problems += self._remembered("files", self._files.read(now))
        if self._live:
            problems += self._remembered("central", self.central.read(now))
        self._settle(now_us, store=only_behind)
        if self._live and not only_behind:
            self._ask_startds(access, now, problems)

    def _remembered(self, part: str, problems: list[Problem]) -> list[Problem]:
        """Return the problems that a part has now, which last while the ledger fails."""
        self._lasting[part] = problems
        return problems

    def _with_lasting(self, problems: list[Problem]) -> list[Problem]:
        """Return problems, and those of before the ledger failed: they are not over by that."""
        words = {(problem.source, problem.problem) for problem in problems}
        before = [problem for part in self._lasting.values() for problem in part]
        lasting = [
            problem._replace(records=0)
            for problem in before
            if (problem.source, problem.problem) not in words
        ]
        return problems + lasting

    @property
    def below_one_unit(self) -> AbstractSet[str]:
        """The entries with pilots that are a canonical unit only as each pilot is at least one."""
        return self._keeper.accounting.below_one_unit if self._keeper.ready else frozenset()

    def _left_out(self) -> list[Problem]:
        """Say which records could not be accounted since this was asked last."""
        accounting = self._keeper.accounting
        now = {**accounting.left_out, ProblemName.UNDATED: self._keeper.factory.undated}
        new = {reason: n - self._left.get(reason, 0) for reason, n in now.items()}
        self._left = now
        shown = accounting.files.shown
        problems = [Problem("records", name, shown(name, n), n) for name, n in new.items() if n > 0]
        at = time.monotonic()
        over = at - LASTS * self._config.factory.every
        return self._left_lasts.problems(problems + self.central.unused(), at, over)

    def _suspects(self) -> list[Problem]:
        """Return a problem, counted once a place, while jobs succeed far too soon at some."""
        self._keeper.suspect()
        units = {suspect[:2]: suspect for suspect in self._keeper.suspects}
        new = units.keys() - self._suspected
        self._suspected = frozenset(units)
        text = "; ".join(suspect.shown for suspect in self._keeper.suspects[:_FEW])
        return (
            [Problem("places", ProblemName.SUSPECTED_BLACK_HOLE, text, len(new))] if units else []
        )

    def _ask_startds(self, access: Access, now: float, problems: list[Problem]) -> None:
        """Ask startds for what is open after all else has been read."""
        records, wrong = self._startds.ask(access, self._keeper.accounting.pilots, now)
        problems += wrong
        if records:
            self._keeper.add_records(records, None, None)
            self._settle(round(now * SECOND_US), store=False)

    def _settle(self, now_us: int, *, store: bool = True) -> None:
        read_us = self._histories.complete_us(self._schedds)
        claims_us = self._claims_us or 0
        known_us = claims_us if read_us is None else min(claims_us, read_us)
        silent = self._histories.silent(self._schedds)
        # A run of the time since claims are watched is known before its record is read.
        unwatched = read_us is not None and read_us < (self._claims_since_us or now_us)
        unread = Unread(self._histories.unread(self._schedds), unwatched)
        known_us = max(0, known_us - self._delay_us)
        self._keeper.settle(now_us, known_us, silent, unread, store=store)


def _verdicts(seen: Seen) -> Verdicts | None:
    """Return what a poll reports on entries; None where it has not surely seen all pilots."""
    if not seen.complete:
        return None
    return verdicts(seen.evaluation, round(seen.at * SECOND_US), seen.pilots)


def _problem(error: LedgerError) -> Problem:
    return Problem("ledger", error.problem, f"{error} Pilots' time is not accounted until then.")
