"""Attempts in memory: all that may still change.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gwmond.model.attempts import AttemptFact, Source
from gwmond.model.pilot_facts import Attempt, AttemptKey, Measure, Outcome, Resources
from gwmond.model.stored_pilots import AttemptRow
from gwmond.pilots.attempt_facts import Merged, merge_each
from gwmond.pilots.attempt_runs import claim_of
from gwmond.pilots.pilot_segments import NOTHING

if TYPE_CHECKING:
    from gwmond.model.units import Resource
    from gwmond.pilots.open_pilot import OpenPilot


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
        over_us = min(fact.written_us for fact in self.facts if fact.ending.over)
        return max(over_us, self.start_us)

    def is_claim(self, shown: AttemptFact) -> bool:
        """Return whether a claim that a slot shows now is this attempt."""
        if self.merged.ending.over:
            return False
        claims = {claim for fact in self.facts if (claim := claim_of(fact)) is not None}
        return not claims or claim_of(shown) in {None, *claims}

    @property
    def summarised(self) -> bool:
        """Whether it stands for the jobs of a summary, and is no run of a job."""
        return Source.SUMMARY in self.merged.sources

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

    def replace(self, merged: Merged, facts: tuple[AttemptFact, ...]) -> None:
        """Take in what more is known of it."""
        before = self.attempt()
        changed = merged != self.merged
        self.merged, self.facts, self.dirty = merged, facts, True
        if changed or self.attempt() != before:
            self.pilot.touch(min(before.start_us, self.start_us))

    def take_place_of(self, removed: list[OpenAttempt]) -> None:
        """Go on with what is posted for the attempt of this key that was removed, if one was."""
        for before in removed:
            if before.key == self.key:
                self.settled, self.counted = before.settled, before.counted
                removed.remove(before)
                return

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
        """Return a stored attempt, merged anew from its facts by today's rules.

        If these make several attempts of them, all facts stay with it until more is known.
        """
        made = [merged for merged, _ in merge_each(row.facts)]
        merged = next((candidate for candidate in made if candidate.key == row.key), made[0])
        return cls(
            pilot,
            merged._replace(key=row.key),
            row.facts,
            outcome=row.outcome,
            result=row.result,
            judged=row.outcome,
            counted=row.outcome if pilot.known_us else None,  # they are counted once booked
            settled=Counter(dict(row.settled)),
            dirty=False,
        )


def held_at_once(attempts: Iterable[OpenAttempt], guard_us: int = 0) -> Resources:
    """Return the most that attempts held of each resource at once, longer than ``guard_us``.

    An attempt without an end, or without a size, is left out.
    """
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    edges = []
    for attempt in attempts:
        end_us, size = attempt.end_us, attempt.merged.size
        if size is not None and end_us is not None and end_us > attempt.start_us:
            last_us = max(end_us - guard_us, attempt.start_us + 1)
            edges += [(attempt.start_us, 1, size), (last_us, 0, size)]
    for _, begins, size in sorted(edges, key=lambda edge: edge[:2]):
        sign = 1 if begins else -1
        for name, amount in size._asdict().items():
            running[name] += sign * amount
            most[name] = max(most[name], running[name])
    return Resources(most["cores"], most["memory_mib"], most["gpus"])
