"""Decides what can be decided of pilots, and posts what is settled.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from gwmond.model.pilot_life import Assumption, Measure
from gwmond.model.pilots.pilot_facts import replace
from gwmond.model.runs.run_facts import RunFact
from gwmond.pilots.early.comparison import Trial
from gwmond.pilots.experiments import Experiments
from gwmond.pilots.factory.files import FactoryFacts
from gwmond.pilots.factory.summaries import only_runs
from gwmond.pilots.life.rules import FAR_US, ExpectedInput, Rules
from gwmond.pilots.memory import posting
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun
from gwmond.pilots.runs.later_runs import LaterRuns, is_decided, resting
from gwmond.pilots.runs.matcher import RunMatcher
from gwmond.pilots.runs.outcome import given_up, plain_outcome, weighed
from gwmond.pilots.runs.verdicts import Evidence, TrialKeys, decide, trial_keys
from gwmond.pilots.sources.central_log import CentralLogEvents

MOST_RUNS = 1_000_000
"""So many that have ended may wait for what is unread, about 3.5 GB: with more, none waits."""


class DecisionTime(NamedTuple):
    """When it is decided: ``now_us`` for what waits, ``clock_us`` by the clock, which is said.

    ``known_us``: runs that began before are known (but see ``Unread``).
    """

    now_us: int
    clock_us: int
    known_us: int


class Unread(NamedTuple):
    """Schedds with records that were not read, and up to when each was read.

    A run has its record once it has ended.  So of a time of which records are unread only those
    runs are known that have ended, or that slots showed then.  ``unwatched``: no slot was seen.
    """

    schedds: Mapping[str, int] = MappingProxyType({})
    unwatched: bool = False


NOTHING_UNREAD = Unread()


class Settlement:
    """Settles pilots; what is to be stored of that waits on each of them.

    ``expected``: the evidence that may still come.  ``residual``: how far what was posted of
    pilots that are closed is from their whole time; 0 always.
    """

    def __init__(
        self,
        cache: PilotCache,
        matcher: RunMatcher,
        files: FactoryFacts,
        central_log: CentralLogEvents,
        experiments: Experiments,
        rules: Rules,
    ) -> None:
        self._cache, self._matcher, self._files = cache, matcher, files
        self._central_log, self._experiments, self._rules = central_log, experiments, rules
        self._at = DecisionTime(0, 0, 0)  # when it was settled last
        self._unread = NOTHING_UNREAD
        self._waits = False  # whether pilots wait for what is unread
        self._turns = posting.RefreshTurns()
        self._silent: Collection[str] = ()
        self._left_out: list[OpenPilot] = []  # by the last settling, as runs on them are missing
        self.expected = ExpectedInput.EVERYTHING  # an import says at its end that no more does
        self.residual: Counter[Measure] = Counter()

    def settle(
        self,
        now_us: int,
        known_us: int,
        silent: Collection[str] = (),
        unread: Unread = NOTHING_UNREAD,
    ) -> None:
        """Decide what can be decided, and post what is settled.

        ``known_us``: runs that began before are known.  ``silent``: schedds whose records
        are missing for now.  What needs something that is ``missing`` is left out: ``go_on``.
        """
        self._at = DecisionTime(now_us + self.expected.ahead_us, now_us, known_us)
        self._unread = unread
        unwatched = unread.unwatched and bool(unread.schedds)
        self._waits = unwatched and not self._has_many_runs()
        before_us, self._cache.looks.settled_us = self._cache.looks.settled_us, now_us
        self._turns = posting.RefreshTurns.of(
            before_us, now_us, len(self._cache.pilots), self._rules
        )
        self._silent = silent
        self._left_out = []
        self._use()
        self._post(list(self._cache.pilots.values()))

    def go_on(self) -> None:
        """Go on with what was left out, once what was missing is loaded."""
        left_out, self._left_out = {pilot.id for pilot in self._left_out}, []
        self._use()
        self._post(
            [
                pilot
                for pilot in self._cache.pilots.values()
                if pilot.id in left_out or pilot.changed_since_us < FAR_US or pilot.posted is None
            ]
        )

    def _use(self) -> None:
        """Use what has been told, as far as can be by now."""
        self._matcher.absorb()
        self._central_log.settle(self._at.now_us, self._at.known_us)
        self._files.settle(self._at.clock_us, self.expected)
        for pilot in self._cache.withdrawing():
            posting.uncount(pilot, self._rules.memory_per_unit_mib)
            posting.withdraw(pilot, self._at.clock_us)

    def _post(self, pilots: list[OpenPilot]) -> None:
        """Post these pilots, and those that change by that."""
        later = LaterRuns(self._cache)
        while pilots:  # what is decided on one pilot may say something about another
            for pilot in pilots:
                if not (pilot.closed or self._settle(pilot, later)):
                    self._left_out.append(pilot)
            left_out = {pilot.id for pilot in self._left_out}
            pilots = [
                pilot
                for pilot in self._cache.pilots.values()
                if pilot.changed_since_us < FAR_US and pilot.known_us and pilot.id not in left_out
            ]
        if not self._cache.missing:
            self._experiments.settle(self._cache.pilots, self._known_us)

    def _has_many_runs(self) -> bool:
        """Return whether more than ``MOST_RUNS`` that have ended are in memory."""
        runs = (run for pilot in self._cache.pilots.values() for run in pilot.runs.values())
        return sum(run.merged.ending.over for run in runs) > MOST_RUNS

    def _known_us(self, pilot: OpenPilot) -> int:
        """Return up to when all runs on a pilot are known; 0: nothing new may be settled.

        Records of a pilot that goes on, that was found to be gone only now, or that only jobs
        have, may be unread.
        """
        known_us, end_us = self._at.known_us, pilot.end_us
        if not self._waits:
            return known_us
        if end_us is None or pilot.known_from_jobs_only:
            return 0
        there_us = max(end_us, pilot.missing_since_us or 0)
        return known_us if there_us + self._rules.outcome_wait_us <= known_us else 0

    def _waited_us(self, run: OpenRun) -> int:
        """Return up to when the record of a run was waited for."""
        read_us = self._unread.schedds.get(run.key.job.partition("#")[0])
        if read_us is None:
            return self._at.now_us
        return 0 if self._unread.unwatched else min(self._at.now_us, read_us)

    def _settle(self, pilot: OpenPilot, later: LaterRuns) -> bool:
        """Post a pilot as far as it is decided; return False if runs on it are missing."""
        now_us, clock_us, read_us = self._at
        known_us = self._known_us(pilot)
        if not posting.needs_posting(pilot, self._turns, known_us, self._rules):
            if pilot.derived.end_us is not None:
                self._close(pilot, now_us)
            return True
        grows = Assumption.SIZE in pilot.assumed and bool(pilot.runs)
        # The life of a pilot that only jobs have depends on all of them.
        if (pilot.known_from_jobs_only or grows or pilot.is_renamed) and not self._cache.has_whole(
            pilot
        ):
            return False
        if pilot.is_renamed or pilot.posted_as is None:
            only_runs(pilot, self._matcher)
        self._decide_anew(pilot)
        if not self._decide_runs(pilot, later):
            return False
        if pilot.known_from_jobs_only:
            posting.imply(pilot, self._rules.memory_per_unit_mib)
            quiet = not self._waits and read_us >= pilot.last_heard_us + self._rules.quiet_us
            if not quiet and not pilot.known_us:
                return True
            if quiet and pilot.end_us is None:
                quiet_decision = replace(pilot.facts.decisions, quiet=True)
                pilot.learn(replace(pilot.facts, decisions=quiet_decision))
        elif grows:
            posting.grow(pilot, self._rules.start_guard_us)
        pilot.derive()
        if not posting.post(pilot, known_us, clock_us, self._rules):
            return self._cache.has_whole(pilot)
        self._cache.note_posted(pilot)
        posting.count(pilot, self._rules.memory_per_unit_mib)
        self._close(pilot, now_us)
        return True

    def _decide_anew(self, pilot: OpenPilot) -> None:
        """Let runs that seem to have ended with a pilot be decided anew if its end has moved.

        Its end moves when it comes back, or a better source has its end.
        """
        posted = pilot.posted
        if posted is not None and posted.end_us is not None and posted.end_us != pilot.end_us:
            end_us = min(posted.end_us, posted.now_us, pilot.effective_end_us)
            pilot.mark_changed(end_us - self._rules.end_tolerance_us)

    def trials(self, now_us: int, evidence: Evidence) -> list[TrialKeys]:
        """Return which runs are evidence for the verdicts on early failures that fall now."""
        ahead_us = self.expected.ahead_us
        return trial_keys(self._cache, now_us + ahead_us, evidence.ahead(ahead_us), self._rules)

    def judge(
        self, now_us: int, evidence: Evidence, trials: Mapping[TrialKeys, Sequence[Trial]]
    ) -> None:
        """Decide on early failures; see ``verdicts``."""
        ahead_us = self.expected.ahead_us
        at_us, ahead = now_us + ahead_us, evidence.ahead(ahead_us)
        decide(self._cache, at_us, ahead, trials, self._rules)

    def _close(self, pilot: OpenPilot, now_us: int) -> None:
        """Close a pilot of which nothing more is expected, and prove that it is posted whole."""
        end_us = pilot.end_us
        if end_us is None or pilot.settled_until_us < end_us or pilot.counted is None:
            return
        if any(run.is_open for run in pilot.runs.values()):
            return
        if not pilot.known_from_jobs_only and now_us < end_us + self._rules.linger_us:
            return
        self.residual.update(posting.residual(pilot))
        pilot.closed, pilot.dirty = True, True

    def _decide_runs(self, pilot: OpenPilot, later: LaterRuns) -> bool:
        """Decide on what is open, and anew on what has changed; False: runs are missing."""
        at, to_decide = self._at, resting(pilot)
        if to_decide and later.missing(to_decide):
            return False
        over: defaultdict[str, list[RunFact]] = defaultdict(list)
        for run in to_decide:
            waited_us = self._waited_us(run)
            fact = given_up(
                run, later.after(run), waited_us, at.clock_us, self._rules, self._silent
            )
            if fact is not None:
                over[fact.job].append(fact)
        if over:
            if not later.whole(over):
                return False
            for job, facts in over.items():
                self._matcher.add(job, facts)
            later.forget(over)
            if later.missing(resting(pilot)):  # what has changed by that is decided anew, too
                return False
        for run in list(pilot.runs.values()):
            if is_decided(run):
                continue
            later_us = later.after(run) if run.merged.ending.over else None
            plain = plain_outcome(run, later_us, at.now_us, at.known_us, self._rules)
            run.decide(*weighed(run, plain))
        return True
