"""A stored pilot with its runs: the one record of which all outputs about pilots are made.  Pure.

List, story, report, failures and analyze-entries take what they say of a pilot from here; sums of
such records are in ``pilot_sums``.  Each part is computed when it is asked for.

Units: times are microseconds since the epoch, amounts are micros (10^-6 of one core, chip or
canonical unit for one second), memory is MiB.

**Jobs.**  Where only a summary has them (the factory's, or the pilot's own statistics), stand-ins
are stored in their place (``factory.summaries``): they have the jobs' time, and are no runs.  Such
a pilot ran jobs, but how many, and how long each lasted, is not known.

**Phases.**  A pilot whose validation failed sleeps before it ends, so that its successors do not
drain the site (GlideinWMS, ``glidein_startup.sh``: 20 minutes by default).  That is all between the
end of its failing test and its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from gwmond.ledger.reading.pilot_check import life_of
from gwmond.model.facts import Size
from gwmond.model.pilot_life import (
    KINDS,
    Assumption,
    Category,
    Interval,
    Kind,
    Measure,
    PilotLife,
    SizeStep,
    Validation,
    union,
)
from gwmond.model.pilots.stored_pilots import PilotIdentity, PilotRow, RunRow
from gwmond.model.runs.outcomes import SUMMARISED
from gwmond.model.runs.run_facts import Source
from gwmond.model.shares import MILLI
from gwmond.model.units import DEFAULT_MEMORY_MIB, Resource
from gwmond.pilots.life.partition import own_category, partition, total
from gwmond.pilots.life.segments import NOTHING, total_rate
from gwmond.pilots.memory.ad_times import is_silent
from gwmond.reports.render.categories import INFO, Sums, of_kind
from gwmond.reports.render.formats import counted

State: TypeAlias = Literal["running", "idle", "open", "retiring", "silent", "failed", "ended"]
"""``open``: known from its output only, without an end, and not whether it runs jobs.
``silent``: its ads were not renewed for two updates."""

_ENDED = {
    "shutdown": "shut down",
    "ad_expired": "ad expired",
    "assumed": "no more jobs",
    "central_log": "ended (central log)",
    "queue": "ended (factory's queue)",
}
_WITHOUT_JOBS = {"idle": "idle", "open": "runs, jobs not known"}
_OF_TIMES = frozenset({Assumption.BEGIN, Assumption.END, Assumption.NO_OUTPUT, Assumption.LIFE})
"""Rules on which a pilot's begin or end may rest."""


class AsOf(NamedTuple):
    """When a pilot is looked at; if it was heard of last before ``silent_before_us`` it is silent.

    ``memory_per_unit_mib`` is the memory of a canonical unit of a pilot that was not posted yet.
    """

    now_us: int = 0
    memory_per_unit_mib: int = DEFAULT_MEMORY_MIB
    silent_before_us: int = 0


UNDATED = AsOf()
"""For pilots that have ended: their properties do not depend on when they are looked at."""


class KnownJobs(NamedTuple):
    """What is known of a pilot's jobs.

    - ``runs``: those that are kept; ``number``: of all, None if not known how many.
    - ``started``: whether HTCondor did, ``ran``: whether any job ran; None if not known.
    - ``by_statistics``: they are known from statistics only.
    """

    runs: tuple[RunRow, ...]
    number: int | None
    started: bool | None
    ran: bool | None
    by_statistics: bool = False


class ValidationPhases(NamedTuple):
    """When a pilot validated, and slept after that; ``estimated_us``: how much of it is a guess.

    ``asleep`` is None if its validation did not fail; it ends with what is known so far.
    """

    validating: Interval
    asleep: Interval | None
    estimated_us: int

    @property
    def validating_us(self) -> int:
        return self.validating[1] - self.validating[0]

    @property
    def asleep_us(self) -> int | None:
        return None if self.asleep is None else self.asleep[1] - self.asleep[0]


@dataclass(frozen=True)
class StoredPilot:
    """One pilot; ``runs`` are all that are kept, stand-ins too.

    ``settled`` is posted, ``unsettled`` what else it had to offer up to now.
    """

    row: PilotRow
    runs: Sequence[RunRow] = ()
    as_of: AsOf = UNDATED

    @property
    def identity(self) -> PilotIdentity:
        """Which pilot it is, and where."""
        return self.row.identity

    # --- Its life -----------------------------------------------------------------------------

    @cached_property
    def life(self) -> PilotLife:
        """Its life as far as it is posted; while it runs it lasts to its last contact."""
        life = life_of(self.row, self.runs)
        return life._replace(ran_jobs=self.row.ran_jobs or self.row.runs_pruned > 0)

    @cached_property
    def life_now(self) -> PilotLife:
        """Its life up to when it was heard of last; what is not posted of that is not settled."""
        life = self.life
        if life.end_us is not None:
            return life
        return life._replace(now_us=self.last_heard_us, known_until_us=life.known_us)

    @property
    def times_estimated(self) -> bool:
        """Whether its begin or its end rests on an estimate."""
        return not _OF_TIMES.isdisjoint(self.row.assumed)

    @property
    def last_heard_us(self) -> int:
        """When it was heard of last."""
        return max(self.row.posted_last_heard_us, self.row.last_heard_us)

    def left_us(self, until_us: int | None) -> int | None:
        """How long it is until a time; negative if past, None if not known, or if it has ended."""
        ended = self.row.end_us is not None
        return None if ended or until_us is None else until_us - self.as_of.now_us

    @cached_property
    def state(self) -> State:
        row = self.row
        if row.end_us is not None:
            return "ended"
        if row.validation is Validation.FAILED and not self.runs:
            return "failed"
        if is_silent(row.identity, None, self.last_heard_us, self.as_of.silent_before_us):
            return "silent"
        if row.retire_us is not None and row.retire_us <= self.as_of.now_us:
            return "retiring"
        if self.running:
            return "running"
        return "open" if row.identity.origin == "files" else "idle"

    @property
    def doing(self) -> str:
        """What it does, or how it ended, for people."""
        failed = self.row.validation is Validation.FAILED and self.jobs.number == 0
        if failed and (self.state == "failed" or self.row.end_source == "assumed"):
            cause = self.row.failure or "cause not known"
            return f"{INFO[Category.VALIDATION_FAILS].ended}: {cause}"
        if self.state == "ended":
            how = _ENDED.get(self.row.end_source, "ended")
            never = INFO[own_category(self.life)].ended
            return f"{how}: {never}" if never else how
        jobs = counted(len(self.running), "job")
        if self.state in {"retiring", "silent"}:
            return f"{self.state}, {jobs}"
        return _WITHOUT_JOBS.get(self.state, f"running {jobs}")

    # --- Its size -----------------------------------------------------------------------------

    @property
    def first_size(self) -> Size:
        return self.row.steps[0].size if self.row.steps else NOTHING

    @property
    def size(self) -> Size:
        return self._step.size

    @property
    def offered_size(self) -> Size:
        """What its slots offer to jobs: more than there is, where it is overloaded."""
        output = self.row.facts.output
        if output is None:
            return self.size
        cores, memory_mib = output.offered_cores, output.offered_memory_mib
        return Size(cores or self.size.cores, memory_mib or self.size.memory_mib, self.size.gpus)

    @property
    def virtual_slots(self) -> tuple[str, ...]:
        """Its slots whose cores are not there."""
        return () if self.row.facts.ads is None else self.row.facts.ads.virtual_slots

    @property
    def senders(self) -> float:
        """Cores of its slot that are not there, for jobs that only send their output."""
        return 0.0 if self.row.facts.ads is None else self.row.facts.ads.senders

    @property
    def canonical_units(self) -> int:
        """Its latest size in canonical units."""
        step = self._step
        return total_rate(step.size, "cpu", "canonical", self.unit_mib, step.least) // MILLI

    @property
    def unit_mib(self) -> int:
        """MiB of the canonical units in which it is posted."""
        return self.row.unit_mib or self.as_of.memory_per_unit_mib

    @property
    def _step(self) -> SizeStep:
        return max(self.row.steps, default=SizeStep(0, NOTHING))

    # --- Its jobs -----------------------------------------------------------------------------

    @cached_property
    def jobs(self) -> KnownJobs:
        """What is known of its jobs."""
        row, runs = self.row, tuple(run for run in self.runs if not stands_in(run))
        if len(runs) < len(self.runs) or Assumption.JOBS in row.assumed:
            return KnownJobs(runs, None, True, True, True)
        jobs = len(runs) + row.runs_pruned
        if jobs or row.ran_jobs:
            return KnownJobs(runs, jobs or None, True, True)
        if row.validation in {Validation.UNKNOWN, Validation.STARTED}:
            # Where its validation ended, a hard kill cut its output off; else nothing tells.
            started = row.validation is Validation.STARTED or row.validation_end_us is not None
            return KnownJobs(runs, None, started or None, None)
        return KnownJobs(runs, 0, row.validation is Validation.PASSED, False)

    @cached_property
    def running(self) -> Sequence[RunRow]:
        """The runs without an end that it has room for: those that began last.

        The others have ended, and their records are not there (yet): where no schedd is asked for
        its history they are waited for long.
        """
        running: list[RunRow] = []
        cores = gpus = 0.0
        live = self.runs if self.row.end_us is None else ()
        for run in sorted(live, key=lambda run: run.start_us, reverse=True):
            if run.end_us is not None:
                continue
            cores, gpus = cores + run.size.cores, gpus + run.size.gpus
            there = self.size.cores + self.senders
            if running and (cores > there or gpus > self.size.gpus):
                break
            running.append(run)
        return running

    @property
    def users(self) -> tuple[str, ...]:
        """The users of all runs that are kept."""
        return _users(self.runs)

    @property
    def users_now(self) -> tuple[str, ...]:
        return _users(self.running)

    # --- Its time -----------------------------------------------------------------------------

    @cached_property
    def settled(self) -> Sums:
        """What is posted, by category."""
        sums: Counter[tuple[Resource, Measure, Category]] = Counter()
        for (resource, measure, category, _), micros in self.row.settled.items():
            sums[resource, measure, category] += micros
        return sums

    @cached_property
    def offered(self) -> Mapping[Kind, int]:
        """All that it had to offer up to now."""
        return dict.fromkeys(KINDS, 0) | total(self.life_now, memory_per_unit_mib=self.unit_mib)

    @cached_property
    def unsettled(self) -> Mapping[Kind, int]:
        """What of that is not posted."""
        return {kind: self.offered[kind] - of_kind(self.settled, kind) for kind in KINDS}

    @cached_property
    def estimated(self) -> Mapping[Kind, int] | None:
        """What of ``settled`` rests on an estimate; None where retention took runs out."""
        sums: Counter[Kind] = Counter()
        if self.row.runs_pruned:
            return None
        if self.row.assumed:
            for row, micros in partition(
                self.life, memory_per_unit_mib=self.unit_mib
            ).settled.items():
                if row.evidence == "estimated":
                    sums[row.resource, row.measure] += micros
            return sums
        for run in self.runs:
            if run.outcome is not None and run.outcome.evidence == "estimated":
                sums.update(run.settled)
        return sums

    # --- Its validation -----------------------------------------------------------------------

    def phases(self, until_us: int) -> ValidationPhases | None:
        """Return its phases up to a time; None if it is not known when its validation ended."""
        row = self.row
        if row.validation_end_us is None:
            return None
        last = max(row.start_us, until_us if row.end_us is None else min(until_us, row.end_us))
        ended = min(max(row.start_us, row.validation_end_us), last)
        guesses = union(within for rule, within in row.assumed.items() if rule in _OF_TIMES)
        stop = last if self.failed else ended
        estimated = sum(max(0, min(end, stop) - max(start, row.start_us)) for start, end in guesses)
        asleep = (ended, last) if self.failed else None
        return ValidationPhases((row.start_us, ended), asleep, estimated)

    @property
    def failed(self) -> bool:
        """Whether its validation failed, and no job ran."""
        return self.row.validation is Validation.FAILED and not self.row.ran_jobs


def stands_in(run: RunRow) -> bool:
    """Return whether it stands for the jobs of a summary, and is no run of a job."""
    if run.outcome is not None:
        return run.outcome.label == SUMMARISED
    return any(fact.source is Source.SUMMARY for fact in run.facts)


def _users(runs: Iterable[RunRow]) -> tuple[str, ...]:
    return tuple(sorted({run.user for run in runs if run.user}))
