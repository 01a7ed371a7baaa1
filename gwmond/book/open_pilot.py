"""Pilots and attempts in memory: all that may still change.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from gwmond.accounting.attempts import AttemptFact, Merged, Source, merge_each
from gwmond.accounting.pilot_facts import (
    Attempt,
    AttemptKey,
    Category,
    Interval,
    Measure,
    Outcome,
    PilotLife,
    Resources,
    Step,
    Validation,
)
from gwmond.accounting.pilot_segments import NOTHING, total_rate
from gwmond.accounting.shares import accrued
from gwmond.book.rules import FAR_US, SECOND_US
from gwmond.ledger.pilot_model import AttemptRow, End, PilotIdentity, PilotRow

if TYPE_CHECKING:
    from gwmond.units import Resource


@dataclass(slots=True, eq=False)
class OpenAttempt:
    """An attempt, with all facts that it was made of.

    ``outcome`` is None as long as it is not known or open to revision; ``seen_us`` is when a slot
    showed it last, ``gone`` that the slot does not any more; ``counted`` is the outcome under
    which it was counted.
    """

    pilot: OpenPilot
    merged: Merged
    facts: tuple[AttemptFact, ...]
    outcome: Outcome | None = None
    result: str = ""
    judged: Outcome | None = None
    seen_us: int | None = None
    gone: bool = False
    counted: Outcome | None = None
    settled: Counter[tuple[Resource, Measure]] = field(default_factory=Counter)
    dirty: bool = True

    @property
    def key(self) -> AttemptKey:
        """The job and its run."""
        return self.merged.key

    @property
    def start_us(self) -> int:
        """When it began; the end of an attempt of which nothing tells when."""
        start = self.merged.start_us
        if start is None:
            start = self.merged.end_us
        return start if start is not None else min(fact.written_us for fact in self.facts)

    @property
    def end_us(self) -> int | None:
        """When it ended; where it is over and nothing tells when, the first record of that."""
        if self.merged.end_us is not None:
            return max(self.merged.end_us, self.start_us)
        if not self.merged.ending.over:
            return None
        told = min(fact.written_us for fact in self.facts if fact.ending.over)
        return max(told, self.start_us)

    def is_claim(self, shown: AttemptFact) -> bool:
        """Return whether a claim that a slot shows now is this attempt."""
        if self.merged.ending.over:
            return False
        starts = [of.start_us for of in self.facts if of.source is Source.LIVE_SLOT]
        return not starts or shown.start_us in {None, *starts}

    @property
    def is_open(self) -> bool:
        """Whether its outcome is not settled yet."""
        return self.outcome is None

    def attempt(self) -> Attempt:
        """Return it as the accounting takes it."""
        outcome = self.outcome
        if outcome is not None and (
            self.merged.evidence == "estimated" or self.merged.end_us is None
        ):
            outcome = outcome._replace(evidence="estimated")
        size = self.merged.size or NOTHING
        return Attempt(self.key, self.start_us, self.end_us, size, outcome)

    def row(self) -> AttemptRow:
        """Return it as it is stored."""
        merged, booked = self.merged, self.attempt()
        return AttemptRow(
            pilot=self.pilot.id,
            key=self.key,
            start_us=booked.start_us,
            end_us=booked.end_us,
            size=booked.size,
            user=merged.user or "",
            job_group=merged.job_group or "",
            outcome=booked.outcome,
            result=self.result,
            open=self.is_open,
            settled=dict(self.settled),
            facts=self.facts,
        )

    @classmethod
    def of(cls, row: AttemptRow, pilot: OpenPilot) -> OpenAttempt:
        """Return a stored attempt, merged anew from its facts."""
        made = [(merged, facts) for merged, facts in merge_each(row.facts) if facts]
        merged, facts = next((of for of in made if of[0].key == row.key), made[0])
        return cls(
            pilot,
            merged._replace(key=row.key),
            facts,
            outcome=row.outcome,
            result=row.result,
            judged=row.outcome,
            counted=row.outcome if pilot.known_us else None,  # they are counted once booked
            settled=Counter(dict(row.settled)),
            dirty=False,
        )


@dataclass(slots=True, eq=False)
class OpenPilot:
    """A pilot; ``booked`` is the version of its facts by which its time was booked.

    - ``known_us``: up to when attempts were known when it was booked; 0 if it never was.
    - ``mark_us``: all before is settled; ``kept_us``: attempts that end later are all in memory.
    - ``from_us``: the earliest time about which something has changed since it was booked.
    - ``pruned``: some of its attempts are past their retention, so it cannot be booked anew.
    - ``seen_us``: when a collector showed it last, ``gone_us`` when it first did not.
    """

    id: int
    identity: PilotIdentity
    start_us: int
    contact_us: int
    steps: tuple[Step, ...] = ()
    end_us: int | None = None
    ended: End = ""
    validation: Validation = Validation.PASSED
    estimated: tuple[Interval, ...] = ()
    retire_us: int | None = None
    die_us: int | None = None
    known_us: int = 0
    mark_us: int = 0
    kept_us: int = 0
    ran_jobs: bool = False
    closed: bool = False
    pruned: bool = False
    failure: str = ""
    attempts: dict[AttemptKey, OpenAttempt] = field(default_factory=dict)
    booked: PilotLife | None = None
    settled: Counter[tuple[Resource, Measure, Category, str]] = field(default_factory=Counter)
    canonical: Counter[Resource] = field(default_factory=Counter)  # settled so far
    counted: Category | None = None
    from_us: int = FAR_US
    booked_at_us: int = 0
    seen_us: int = 0
    gone_us: int | None = None
    lifetime_us: int = 900 * SECOND_US
    dirty: bool = True

    @property
    def label(self) -> str:
        """How facts name it."""
        return f"p{self.id}"

    @property
    def implied(self) -> bool:
        """Whether only records of jobs tell of it."""
        return self.identity.origin == "jobs"

    @property
    def until_us(self) -> int:
        """The end of its life as far as it is known."""
        return max(self.start_us, self.contact_us if self.end_us is None else self.end_us)

    def touch(self, time_us: int) -> None:
        """Say that something is known about this time, or from it on, that was not booked."""
        self.from_us = min(self.from_us, time_us)
        if self.closed:
            self.closed, self.dirty = False, True

    def life(self, known_us: int) -> PilotLife:
        """Return what is known of it, given up to when attempts are known."""
        return PilotLife(
            start_us=self.start_us,
            end_us=self.end_us,
            now_us=self.contact_us,
            steps=self.steps,
            attempts=tuple(of.attempt() for _, of in sorted(self.attempts.items())),
            validation=self.validation,
            known_until_us=known_us,
            estimated=self.estimated,
            ran_jobs=self.ran_jobs,
        )

    def canonical_total(self, resource: Resource, q: int) -> int:
        """Return the canonical micros that it has had to offer up to now."""
        total, until = 0, self.until_us
        first = self.start_us
        for index, step in enumerate(self.steps):
            last = self.steps[index + 1].at_us if index + 1 < len(self.steps) else until
            last = min(max(last, first), until)
            rate = _canonical_rate(step.size, resource, q)
            total += accrued(rate, last) - accrued(rate, first)
            first = last
        return total

    def row(self) -> PilotRow:
        """Return it as it is stored: the version that is booked."""
        booked = self.booked or self.life(0)
        return PilotRow(
            id=self.id,
            identity=self.identity,
            start_us=booked.start_us,
            end_us=booked.end_us,
            contact_us=booked.now_us,
            steps=booked.steps,
            validation=booked.validation,
            estimated=booked.estimated,
            ended=self.ended,
            retire_us=self.retire_us,
            die_us=self.die_us,
            known_until_us=self.known_us,
            mark_us=self.mark_us,
            ran_jobs=self.ran_jobs or bool(self.attempts),
            closed=self.closed,
            settled={of: micros for of, micros in self.settled.items() if micros},
            failure=self.failure,
        )

    @classmethod
    def of(cls, row: PilotRow, kept_us: int) -> OpenPilot:
        """Return a stored pilot, without attempts; those that end after ``kept_us`` will follow."""
        pilot = cls(
            id=row.id,
            identity=row.identity,
            start_us=row.start_us,
            contact_us=row.contact_us,
            steps=row.steps,
            end_us=row.end_us,
            ended=row.ended,
            validation=row.validation,
            estimated=row.estimated,
            retire_us=row.retire_us,
            die_us=row.die_us,
            known_us=row.known_until_us or 0,
            mark_us=row.mark_us,
            kept_us=kept_us,
            ran_jobs=row.ran_jobs,
            closed=row.closed,
            pruned=row.attempts_pruned > 0,
            failure=row.failure,
            settled=Counter(dict(row.settled)),
            dirty=False,
        )
        for (resource, measure, _, _), micros in row.settled.items():
            if measure == "canonical":
                pilot.canonical[resource] += micros
        return pilot

    def note_booked(self) -> None:
        """Take what is known now as the version that is booked (after it was loaded)."""
        self.booked = self.life(self.known_us)


@lru_cache(maxsize=4096)
def _canonical_rate(size: Resources, resource: Resource, q: int) -> int:
    """Return what a size brings; there are few sizes, and each is asked for at every poll."""
    return total_rate(size, resource, "canonical", q)


def resources(size: tuple[float, float, int]) -> Resources:
    """Return a slot's size as a pilot's."""
    cores, memory_mib, gpus = size
    return Resources(cores, memory_mib, gpus)
