"""Pilots in memory: all that may still change.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.facts import AD_LIFETIME_S
from gwmond.model.pilot_facts import (
    Assumption,
    AttemptKey,
    Category,
    Interval,
    Measure,
    PilotLife,
    Resources,
    Step,
    Validation,
    estimates,
)
from gwmond.model.shares import accrued
from gwmond.model.stored_pilots import AttemptRow, End, PilotIdentity, PilotRow, Told
from gwmond.model.times import SECOND_US
from gwmond.pilots.pilot_segments import total_rate
from gwmond.pilots.rules import FAR_US

if TYPE_CHECKING:
    from gwmond.model.units import Resource
    from gwmond.pilots.open_attempt import OpenAttempt

SIZES = frozenset({Assumption.SIZE, Assumption.GPUS})
"""The rules that stand for a missing size."""


class Restart(NamedTuple):
    """A pilot's master has started its startd again; that before was heard of last at ``lost_us``.

    What ran under the startd before was lost with it.
    """

    lost_us: int
    at_us: int


@dataclass(slots=True, eq=False)
class OpenPilot:
    """A pilot; ``booked`` is the version of its facts by which its time was booked.

    - ``known_us``: up to when attempts were known when it was booked; 0 if it never was.
    - ``mark_us``: all before is settled; ``kept_us``: attempts that end later are all in memory.
    - ``from_us``: the earliest time about which something has changed since it was booked.
    - ``pruned``: some of its attempts are past their retention, so it cannot be booked anew.
    - ``seen_us``: when a collector showed it last, ``gone_us`` when it first did not.
    - ``ended``, ``ends``: whose word its end is, and what each source says of it (see ``ends``).
    - ``restarts`` of its startd, as collectors have shown them.
    - ``told``: as in ``PilotRow``: what was told of it itself.
    - ``assumed``: which rule stands for a missing fact, from when to when; ``counted_micros`` what
      is counted under each.
    """

    id: int
    identity: PilotIdentity
    start_us: int
    contact_us: int
    steps: tuple[Step, ...] = ()
    end_us: int | None = None
    ended: End = ""
    ends: dict[End, int] = field(default_factory=dict)
    validation: Validation = Validation.PASSED
    validation_end_us: int | None = None
    assumed: dict[Assumption, Interval] = field(default_factory=dict)
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
    counted_micros: dict[tuple[Assumption, Resource], int] = field(default_factory=dict)
    from_us: int = FAR_US
    booked_at_us: int = 0
    seen_us: int = 0
    gone_us: int | None = None
    lifetime_us: int = AD_LIFETIME_S * SECOND_US
    heard_us: int = 0  # the last contact that is stored
    told: Told | None = None
    restarts: tuple[Restart, ...] = ()
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
    def waits(self) -> bool:
        """Whether only files tell of it, and nothing tells its end (see ``unended``)."""
        return self.end_us is None and self.identity.origin == "files"

    @property
    def no_output(self) -> bool:
        """Whether only its factory's queue or summary tells of it."""
        return Assumption.NO_OUTPUT in self.assumed

    @property
    def has_output(self) -> bool:
        """Whether its output tells of it, and no collector has shown it."""
        return self.identity.origin == "files" and not self.no_output

    @property
    def until_us(self) -> int:
        """The end of its life as far as it is known."""
        return max(self.start_us, self.contact_us if self.end_us is None else self.end_us)

    @property
    def logged_us(self) -> int | None:
        """When a central log says that it ended, if that is what its end rests on."""
        if self.end_us is None or self.ended != "logged":
            return None
        return self.assumed.get(Assumption.END, (self.end_us, 0))[0]

    def assume(self, rule: Assumption, start_us: int, end_us: int) -> None:
        """Say that a rule stands for a missing fact; it replaces what that rule said before.

        An empty interval withdraws it: a better fact has come.
        """
        before = self.assumed.get(rule)
        now = (start_us, end_us) if start_us < end_us else None
        if now == before:
            return
        self.assumed.pop(rule, None)
        if now is not None:
            self.assumed[rule] = now
        self.touch(min(interval[0] for interval in (before, now) if interval is not None))

    def know(self, *rules: Assumption) -> None:
        """Withdraw rules: better facts have come."""
        for rule in rules:
            self.assume(rule, 0, 0)

    def touch(self, time_us: int) -> None:
        """Say that something is known about this time, or from it on, that was not booked."""
        self.from_us = min(self.from_us, time_us)
        if self.closed:
            self.closed, self.dirty = False, True

    def resize(self, size: Resources) -> bool:
        """Give it this size from its beginning on; return whether that is new."""
        if self.steps and self.steps[0].size == size:
            return False
        self.steps = (Step(self.start_us, size),)
        self.touch(self.start_us)
        return True

    def life(self, known_us: int) -> PilotLife:
        """Return what is known of it, given up to when attempts are known."""
        return PilotLife(
            start_us=self.start_us,
            end_us=self.end_us,
            now_us=self.contact_us,
            steps=self.steps,
            attempts=tuple(attempt.attempt() for _, attempt in sorted(self.attempts.items())),
            validation=self.validation,
            known_until_us=known_us,
            estimated=estimates(self.assumed),
            ran_jobs=self.ran_jobs,
        )

    def canonical_total(self, resource: Resource, q: int, within: Interval | None = None) -> int:
        """Return the canonical micros that it has had to offer up to now, or in an interval."""
        start, end = within or (self.start_us, self.until_us)
        total, until = 0, min(end, self.until_us)
        first = min(max(start, self.start_us), until)
        for index, step in enumerate(self.steps):
            last = self.steps[index + 1].at_us if index + 1 < len(self.steps) else until
            last = min(max(last, first), until)
            rate = total_rate(step.size, resource, "canonical", q, step.least)
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
            assumed=dict(self.assumed),
            ended=self.ended,
            ends=dict(self.ends),
            retire_us=self.retire_us,
            die_us=self.die_us,
            known_until_us=self.known_us,
            mark_us=self.mark_us,
            ran_jobs=self.ran_jobs or bool(self.attempts),
            closed=self.closed,
            settled={account: micros for account, micros in self.settled.items() if micros},
            failure=self.failure,
            validation_end_us=self.validation_end_us,
            assumed_micros=dict(self.counted_micros),
            heard_us=self.contact_us,
            told=self.told,
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
            ends=dict(row.ends) or _only_end(row),
            validation=row.validation,
            validation_end_us=row.validation_end_us,
            assumed=dict(row.assumed),
            counted_micros=dict(row.assumed_micros),
            retire_us=row.retire_us,
            die_us=row.die_us,
            known_us=row.known_until_us or 0,
            mark_us=row.mark_us,
            kept_us=kept_us,
            ran_jobs=row.ran_jobs and (kept_us > 0 or row.attempts_pruned > 0),
            closed=row.closed,
            pruned=row.attempts_pruned > 0,
            failure=row.failure,
            settled=Counter(dict(row.settled)),
            heard_us=row.heard_us,
            told=row.told,
            dirty=False,
        )
        for (resource, measure, _, _), micros in row.settled.items():
            if measure == "canonical":
                pilot.canonical[resource] += micros
        return pilot

    def note_booked(self, rows: Iterable[AttemptRow] = ()) -> None:
        """Take what is stored as the version that is booked (right after it was loaded).

        ``rows``: its attempts in memory, as they are stored.  They may differ from the attempts
        that today's rules make of the same facts.
        """
        stored = tuple(row.attempt for row in sorted(rows, key=lambda row: row.key))
        self.booked = self.life(self.known_us)._replace(attempts=stored)


def _only_end(row: PilotRow) -> dict[End, int]:
    """Return the end of a pilot that an earlier release stored, which kept only the best."""
    return {row.ended: row.end_us} if row.ended and row.end_us is not None else {}


def resources(size: tuple[float, float, int]) -> Resources:
    """Return a slot's size as a pilot's."""
    cores, memory_mib, gpus = size
    return Resources(cores, memory_mib, gpus)
