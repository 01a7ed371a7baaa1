"""Pilots and their runs in memory: all that may still change.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from gwmond.model.facts import Size
from gwmond.model.pilot_life import (
    Assumption,
    Category,
    End,
    Interval,
    Measure,
    Outcome,
    PilotLife,
    Run,
    RunKey,
    SizeStep,
    Validation,
)
from gwmond.model.pilots.pilot_facts import PilotFacts, Restart, replace
from gwmond.model.pilots.stored_pilots import (
    CountKey,
    PilotCorrection,
    PilotIdentity,
    PilotRow,
    PilotSeries,
    RunRow,
)
from gwmond.model.runs.phases import Measured, counted_lengths, moves_of, sends_us
from gwmond.model.runs.run_facts import Move, RunFact, Source
from gwmond.model.totals import Hour, Micros
from gwmond.model.units import RESOURCES
from gwmond.pilots.life.derive import (
    Known,
    changed_since,
    ends_of,
    life_of,
    lifetime_us,
    missing_since_us,
)
from gwmond.pilots.life.merged_runs import Merged, merge
from gwmond.pilots.life.rules import FAR_US
from gwmond.pilots.life.same_run import claim_of
from gwmond.pilots.life.segments import NOTHING, offered

if TYPE_CHECKING:
    from gwmond.model.units import Resource

SIZES = frozenset({Assumption.SIZE, Assumption.GPUS})
"""The rules that stand for a missing size."""


_NONE: Mapping[Any, int] = MappingProxyType({})
"""One for all runs: of those that go on there are hundreds of thousands."""
Increments: TypeAlias = list[tuple[PilotSeries, Mapping[Hour, Micros]]]


@dataclass(slots=True)
class Unstored:
    """What is new of a pilot by hour, what was posted otherwise before, and what is counted."""

    increments: Increments = field(default_factory=list)
    corrections: list[PilotCorrection] = field(default_factory=list)
    counts: Counter[CountKey] = field(default_factory=Counter)


@dataclass(slots=True, eq=False)
class OpenRun:
    """A run, with all facts that it was made of.

    ``outcome`` is None as long as it is not known or open to revision; ``last_shown_us`` is when a
    slot showed it last (``stored_shown_us``: as that is stored, see ``Looks``), ``gone`` that the
    slot does not any more; ``counted`` is the outcome under
    which it was counted, ``counted_us`` the lengths by which it is counted in histograms, and
    ``counted_failure`` and ``counted_moves`` the transfers that are counted.
    ``was_settled``: it is stored as settled; ``had_left``: and that its job has left the queue.
    """

    pilot: OpenPilot
    merged: Merged
    facts: tuple[RunFact, ...]
    outcome: Outcome | None = None
    result: str = ""
    judged: Outcome | None = None
    last_shown_us: int | None = None
    stored_shown_us: int | None = None
    gone: bool = False
    counted: Outcome | None = None
    counted_us: Mapping[Measured, int] = field(default_factory=lambda: _NONE)
    counted_failure: str | None = None
    counted_moves: tuple[Move, ...] = ()
    settled: Mapping[tuple[Resource, Measure], int] = field(default_factory=lambda: _NONE)
    was_settled: bool = False
    had_left: bool = False
    dirty: bool = True
    _as_run: Run | None = field(init=False, default=None)

    @property
    def key(self) -> RunKey:
        """The job and its run."""
        return self.merged.key

    @property
    def start_us(self) -> int:
        """When it began; the end of a run whose begin is not known."""
        start = self.merged.start_us
        if start is None:
            start = self.merged.end_us
        return start if start is not None else min(fact.written_us for fact in self.facts)

    @property
    def end_us(self) -> int | None:
        """When it ended; where it is over and it is not known when, the first record of that."""
        if self.merged.end_us is not None:
            return max(self.merged.end_us, self.start_us)
        if not self.merged.ending.over:
            return None
        over_us = min(fact.written_us for fact in self.facts if fact.ending.over)
        return max(over_us, self.start_us)

    def is_claim(self, shown: RunFact) -> bool:
        """Return whether a claim that a slot shows now is this run."""
        if self.merged.ending.over:
            return False
        claims = [claim for fact in self.facts if (claim := claim_of(fact)) is not None]
        return not claims or (claim := claim_of(shown)) is None or claim in claims

    @property
    def summarised(self) -> bool:
        """Whether it stands for the jobs of a summary, and is no run of a job."""
        return Source.SUMMARY in self.merged.sources

    @property
    def is_open(self) -> bool:
        """Whether its outcome is not settled yet."""
        return self.outcome is None

    @property
    def is_shown(self) -> bool:
        """Whether a slot shows it now."""
        merged = self.merged
        return Source.LIVE_SLOT in merged.sources and not (merged.ending.over or self.gone)

    @property
    def has_left(self) -> bool:
        """Whether a record says that its job has left the queue."""
        return job_has_left(self.facts)

    def note_stored(self) -> None:
        """Say that it is stored as it is."""
        if not self.is_open:
            self.was_settled, self.had_left = True, self.has_left
        self.dirty = False

    def as_run(self) -> Run:
        """Return it as the accounting takes it; the same object until something changes."""
        if self._as_run is None:
            outcome = self.outcome
            if outcome is not None and (
                self.merged.evidence == "estimated" or self.merged.end_us is None
            ):
                outcome = outcome._replace(evidence="estimated")
            size, sent_us = self.merged.size or NOTHING, sends_us(self.facts)
            self._as_run = Run(self.key, self.start_us, self.end_us, size, outcome, sent_us)
        return self._as_run

    def decide(self, outcome: Outcome | None, result: str) -> None:
        """Take in what is decided of it now."""
        if (outcome, result) == (self.outcome, self.result):
            return
        if outcome != self.outcome:
            self.pilot.mark_changed(self.start_us)
        self.outcome, self.result = outcome, result
        self.dirty, self._as_run = True, None

    def replace(self, merged: Merged, facts: tuple[RunFact, ...]) -> None:
        """Take in what more is known of it."""
        before = self.as_run()
        changed = merged != self.merged
        self.merged, self.facts = merged, facts
        self.dirty, self._as_run = True, None
        if changed or self.as_run() != before:
            self.pilot.mark_changed(min(before.start_us, self.start_us))

    def take_place_of(self, removed: list[OpenRun]) -> None:
        """Go on with what is posted for the run of this key that was removed, if one was."""
        for before in removed:
            if before.key == self.key:
                self.settled, self.counted = before.settled, before.counted
                self.counted_us, self.counted_failure = before.counted_us, before.counted_failure
                self.counted_moves = before.counted_moves
                self.was_settled, self.had_left = before.was_settled, before.had_left
                removed.remove(before)
                return

    def row(self) -> RunRow:
        """Return it as it is stored."""
        merged, posted = self.merged, self.as_run()
        return RunRow(
            pilot=self.pilot.id,
            key=self.key,
            start_us=posted.start_us,
            end_us=posted.end_us,
            size=posted.size,
            user=merged.user or "",
            job_group=merged.job_group or "",
            outcome=posted.outcome,
            result=self.result,
            open=self.is_open,
            settled=dict(self.settled),
            facts=self.facts,
        )

    @classmethod
    def of(cls, row: RunRow, pilot: OpenPilot) -> OpenRun:
        """Return a stored run, merged anew from its facts by today's rules.

        If these make several runs of them, all facts stay with it until more is known.
        """
        counted = row.outcome if pilot.known_us else None  # they are counted once posted
        made = merge(row.facts)
        merged = next((candidate for candidate in made if candidate.key == row.key), made[0])
        times = row.start_us, row.end_us
        return cls(
            pilot,
            merged._replace(key=row.key),
            row.facts,
            outcome=row.outcome,
            result=row.result,
            judged=row.outcome,
            counted=counted,
            counted_us=_NONE if counted is None else counted_lengths(row.facts, *times),
            counted_failure=merged.ending.failed_transfer if pilot.known_us else None,
            counted_moves=moves_of(row.facts) if pilot.known_us else (),
            settled=row.settled,
            was_settled=not row.open,
            had_left=not row.open and job_has_left(row.facts),
            dirty=False,
        )


def job_has_left(facts: Iterable[RunFact]) -> bool:
    """Return whether one of a run's records is of a job that has left the queue."""
    about = (fact.about_job for fact in facts)
    return any(job is not None and job.left_us is not None for job in about)


def held_at_once(runs: Iterable[OpenRun], guard_us: int = 0) -> Size:
    """Return the most that runs held of each resource at once, longer than ``guard_us``.

    A run without an end, or without a size, is left out.
    """
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    edges = []
    for run in runs:
        end_us, size = run.as_run().held_until_us, run.merged.size
        if size is not None and end_us is not None and end_us > run.start_us:
            last_us = max(end_us - guard_us, run.start_us + 1)
            edges += [(run.start_us, 1, size), (last_us, 0, size)]
    for _, begins, size in sorted(edges, key=lambda edge: edge[:2]):
        sign = 1 if begins else -1
        for name, amount in size._asdict().items():
            running[name] += sign * amount
            most[name] = max(most[name], running[name])
    return Size(most["cores"], most["memory_mib"], most["gpus"])


@dataclass(slots=True, eq=False)
class OpenPilot:
    """A pilot: what its sources say (``facts``), what follows from that (``derived``).

    ``posted`` is the version of its life by which its time was posted.

    - ``known_us``: up to when runs were known when it was posted; 0 if it never was.
    - ``settled_until_us``: all before is settled; ``loaded_from_us``: runs that end later are all
      in memory.
    - ``changed_since_us``: the earliest time about which something has changed since it was posted.
    - ``pruned``: some of its runs are past their retention, so it cannot be posted anew.
    - ``last_polled_us``: when a poll found an ad of it last.
    - ``stored_last_heard_us``: when it was last heard of, as that is stored;
      ``stored_polled_us``: when a poll found it, as that is stored (see ``Looks``).
    - ``unit_mib``: MiB of a canonical unit, by which all of it is posted; 0: not posted yet.
    - ``posted_as``: under which names its time is posted and its runs are counted; None: nowhere.
    - ``removed``: runs that turned out to be others, since it was posted.
    - ``posted_without``: runs that the ledger has, but that it had lost when it was posted last.
    - ``counted_micros``: what is counted under each rule that stands for a missing fact.
    - ``offered``: canonical micros that it has had to offer; of which life, in which units.
    - ``unstored``: what is posted and counted and waits to be stored; None: nothing.
    - ``label``: how facts name it.
    """

    id: int
    identity: PilotIdentity
    facts: PilotFacts
    derived: PilotLife
    retire_us: int | None = None
    die_us: int | None = None
    known_us: int = 0
    settled_until_us: int = 0
    loaded_from_us: int = 0
    ran_jobs: bool = False
    closed: bool = False
    was_closed: bool = False
    pruned: bool = False
    runs: dict[RunKey, OpenRun] = field(default_factory=dict)
    removed: list[OpenRun] = field(default_factory=list)
    posted_without: frozenset[RunKey] = frozenset()
    posted: PilotLife | None = None
    posted_as: PilotIdentity | None = None
    settled: Counter[tuple[Resource, Measure, Category, str]] = field(default_factory=Counter)
    canonical: Counter[Resource] = field(default_factory=Counter)  # settled so far
    counted: Category | None = None
    counted_micros: dict[tuple[Assumption, Resource], int] = field(default_factory=dict)
    changed_since_us: int = FAR_US
    last_polled_us: int = 0
    stored_last_heard_us: int = 0
    stored_polled_us: int | None = None
    unit_mib: int = 0
    dirty: bool = True
    offered: tuple[PilotLife, int, Mapping[Resource, int]] | None = None
    unstored: Unstored | None = None
    label: str = field(init=False)

    def __post_init__(self) -> None:
        self.label = f"p{self.id}"

    @classmethod
    def new(cls, number: int, identity: PilotIdentity, facts: PilotFacts) -> OpenPilot:
        """Return a pilot that was not known before."""
        return cls(number, identity, facts, life_of(Known(facts, identity.origin)))

    def to_store(self) -> Unstored:
        """Return what waits to be stored, so that more can be added."""
        if self.unstored is None:
            self.unstored = Unstored()
        return self.unstored

    @property
    def is_renamed(self) -> bool:
        """Whether its time is posted under another name than it has now."""
        return self.posted_as not in {None, self.identity}

    @property
    def known_from_jobs_only(self) -> bool:
        """Whether only records of jobs have it."""
        return self.identity.origin == "jobs"

    @property
    def end_unknown(self) -> bool:
        """Whether only files have it, and its end is not known (``memory.ends``)."""
        return self.identity.origin == "files" and self.end_us is None

    @property
    def no_output(self) -> bool:
        """Whether only its factory's queue or summary has it."""
        return self.known.queue_only

    @property
    def has_output(self) -> bool:
        """Whether its output has it, and no collector has shown it."""
        return self.identity.origin == "files" and not self.no_output

    @property
    def known(self) -> Known:
        """What its life is derived from, without its runs."""
        return Known(self.facts, self.identity.origin, bool(self.runs) or self.ran_jobs)

    @property
    def start_us(self) -> int:
        """When it began."""
        return self.derived.start_us

    @property
    def last_heard_us(self) -> int:
        """When it was last heard of."""
        return self.derived.now_us

    @property
    def end_us(self) -> int | None:
        """When it ended; None while it runs."""
        return self.derived.end_us

    @property
    def end_source(self) -> End:
        """Whose word its end is."""
        return self.derived.end_source

    @property
    def effective_end_us(self) -> int:
        """The end of its life as far as it is known."""
        return self.derived.effective_end_us

    @property
    def steps(self) -> tuple[SizeStep, ...]:
        """Its size, and from when on."""
        return self.derived.steps

    @property
    def validation(self) -> Validation:
        """How its validation ended."""
        return self.derived.validation

    @property
    def assumed(self) -> Mapping[Assumption, Interval]:
        """Which rule stands for a missing fact, from when to when."""
        return self.derived.assumed

    @property
    def lifetime_us(self) -> int:
        """How long its ad lives without being renewed."""
        return lifetime_us(self.facts)

    @property
    def missing_since_us(self) -> int | None:
        """When a poll first did not find it."""
        return missing_since_us(self.facts)

    @property
    def restarts(self) -> tuple[Restart, ...]:
        """The restarts of its startd, as collectors have shown them."""
        return () if self.facts.ads is None else self.facts.ads.restarts

    def learn(self, facts: PilotFacts) -> None:
        """Take in what sources say now, and derive its life anew."""
        if facts != self.facts:
            before, self.facts = self.senders, facts
            self.dirty = True
            if self.senders != before:
                for run in self.runs.values():
                    run.replace(run.merged, tuple(map(self.told, run.facts)))
            self.derive()

    @property
    def senders(self) -> float:
        """On how many of its slot's cores jobs may only send their output (``AdFacts``)."""
        return 0.0 if self.facts.ads is None else self.facts.ads.senders

    def told(self, fact: RunFact) -> RunFact:
        """Return a fact of a run on it, with whether a job that sends yields to the next one.

        A job with GPUs does not (etc/condor/overlap.conf).
        """
        gpus = fact.size is not None and fact.size.gpus > 0
        if fact.transfer_out is None or gpus or not self.senders:
            return fact
        return fact._replace(yields=True)

    def hear(self, last_heard_us: int) -> bool:
        """Take in that its ad was renewed, if that is all that changes; return whether it is."""
        ads = self.facts.ads
        if ads is None or ads.end_us is not None or self.end_us is not None:
            return False
        if last_heard_us > ads.last_heard_us:
            self.facts = replace(self.facts, ads=replace(ads, last_heard_us=last_heard_us))
        if last_heard_us > self.last_heard_us:
            self.derived = self.derived._replace(now_us=last_heard_us)
        return True

    def derive(self) -> None:
        """Derive its life from its facts and its runs."""
        known = self._known_with_runs()
        after, before = life_of(known), self.derived
        self._keep_prolonged(known, after)
        if after == before:
            return
        self.derived = after
        if after._replace(now_us=before.now_us) != before:
            self.dirty = True
        if (since_us := changed_since(before, after)) is not None:
            self.mark_changed(since_us)

    def _known_with_runs(self) -> Known:
        """Return what its life is derived from, with the ends of its runs once it has ended."""
        known = self.known
        runs = self.facts.runs
        if (
            runs.until_us is not None and runs.until_us > self.loaded_from_us
        ):  # it is in memory, if it is
            known = known._replace(facts=replace(self.facts, runs=replace(runs, until_us=None)))
        if not self.runs or not ends_of(known):
            return known
        ends = tuple(
            run.merged.end_us
            for run in self.runs.values()
            if run.merged.end_us is not None and run.merged.evidence == "measured"
        )
        return known._replace(run_ends=ends)

    def _keep_prolonged(self, known: Known, after: PilotLife) -> None:
        """Keep the end of a run that prolongs its life, as the run may not stay in memory."""
        ends = (*known.run_ends, known.facts.runs.until_us or 0)
        until_us = after.end_us if after.end_us in ends else None
        if until_us != self.facts.runs.until_us:
            self.facts = replace(self.facts, runs=replace(self.facts.runs, until_us=until_us))
            self.dirty = True

    def mark_changed(self, time_us: int) -> None:
        """Say that something is known about this time, or from it on, that was not posted."""
        self.changed_since_us = min(self.changed_since_us, time_us)
        if self.closed:
            self.closed, self.dirty = False, True

    def life(self, known_us: int) -> PilotLife:
        """Return what is known of it, given up to when runs are known."""
        return self.derived._replace(
            runs=tuple(run.as_run() for _, run in sorted(self.runs.items())),
            known_until_us=known_us,
            ran_jobs=self.ran_jobs,
        )

    def canonical_totals(self, memory_per_unit_mib: int) -> Mapping[Resource, int]:
        """Return the canonical micros that it has had to offer up to now, where there are any.

        They are in its own units, if it was posted, else of ``memory_per_unit_mib``.
        """
        memory_per_unit_mib = self.unit_mib or memory_per_unit_mib
        if (
            self.offered is None
            or self.offered[0] is not self.derived
            or self.offered[1] != memory_per_unit_mib
        ):
            life = self.start_us, self.effective_end_us
            totals = {
                resource: micros
                for resource in RESOURCES
                if (
                    micros := offered(
                        self.steps, (resource, "canonical"), life, memory_per_unit_mib
                    )
                )
            }
            self.offered = self.derived, memory_per_unit_mib, totals
        return self.offered[2]

    def canonical_total(
        self, resource: Resource, memory_per_unit_mib: int, within: Interval
    ) -> int:
        """Return the canonical micros that it has had to offer in an interval."""
        memory_per_unit_mib = self.unit_mib or memory_per_unit_mib
        start, end = within
        interval = max(start, self.start_us), min(end, self.effective_end_us)
        return offered(self.steps, (resource, "canonical"), interval, memory_per_unit_mib)

    def row(self) -> PilotRow:
        """Return it as it is stored: the version that is posted."""
        posted, derived = self.posted or self.life(0), self.derived
        return PilotRow(
            id=self.id,
            identity=self.identity,
            start_us=posted.start_us,
            end_us=posted.end_us,
            posted_last_heard_us=posted.now_us,
            steps=posted.steps,
            validation=posted.validation,
            assumed=dict(derived.assumed),
            end_source=derived.end_source,
            retire_us=self.retire_us,
            die_us=self.die_us,
            known_until_us=self.known_us,
            settled_until_us=self.settled_until_us,
            ran_jobs=self.ran_jobs or bool(self.runs),
            closed=self.closed,
            settled={account: micros for account, micros in self.settled.items() if micros},
            failure=derived.failure,
            validation_end_us=derived.validation_end_us,
            assumed_micros=dict(self.counted_micros),
            last_heard_us=derived.now_us,
            facts=self.facts,
            unit_mib=self.unit_mib,
        )

    @classmethod
    def of(cls, row: PilotRow, loaded_from_us: int) -> OpenPilot:
        """Return a stored pilot, without its runs."""
        pilot = cls(
            id=row.id,
            identity=row.identity,
            facts=row.facts,
            derived=row.life,
            posted_as=row.identity,
            counted_micros=dict(row.assumed_micros),
            retire_us=row.retire_us,
            die_us=row.die_us,
            known_us=row.known_until_us or 0,
            settled_until_us=row.settled_until_us,
            loaded_from_us=loaded_from_us,
            ran_jobs=row.ran_jobs and (loaded_from_us > 0 or row.runs_pruned > 0),
            closed=row.closed,
            was_closed=row.closed,
            pruned=row.runs_pruned > 0,
            settled=Counter(dict(row.settled)),
            stored_last_heard_us=row.last_heard_us,
            unit_mib=row.unit_mib if row.known_until_us else 0,
            dirty=False,
        )
        for (resource, measure, _, _), micros in row.settled.items():
            if measure == "canonical":
                pilot.canonical[resource] += micros
        return pilot

    def note_posted(self, rows: Iterable[RunRow] = ()) -> None:
        """Take what is stored as the version that is posted (right after it was loaded).

        ``rows``: its runs in memory, as they are stored.  They may differ from the runs
        that today's rules make of the same facts.
        """
        posted = self.life(self.known_us)
        stored = tuple(row.as_run for row in sorted(rows, key=lambda row: row.key))
        self.posted = posted if posted.runs == stored else posted._replace(runs=stored)
        ads, last_heard_us = self.facts.ads, self.stored_last_heard_us
        if last_heard_us > self.last_heard_us and self.end_us is None:
            self.derived = self.derived._replace(now_us=last_heard_us)
        if ads is not None and ads.end_us is None and last_heard_us > ads.last_heard_us:
            self.facts = replace(self.facts, ads=replace(ads, last_heard_us=last_heard_us))
