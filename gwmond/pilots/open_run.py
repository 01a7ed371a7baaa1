"""Runs in memory: all that may still change.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gwmond.model.facts import Size
from gwmond.model.pilot_facts import Measure, Outcome, Run, RunKey
from gwmond.model.run_facts import RunFact, Source
from gwmond.model.run_phases import Measured, counted_lengths
from gwmond.model.stored_pilots import RunRow
from gwmond.pilots.merged_runs import Merged, merge
from gwmond.pilots.pilot_segments import NOTHING
from gwmond.pilots.same_run import claim_of

if TYPE_CHECKING:
    from gwmond.model.units import Resource
    from gwmond.pilots.open_pilot import OpenPilot


@dataclass(slots=True, eq=False)
class OpenRun:
    """A run, with all facts that it was made of.

    ``outcome`` is None as long as it is not known or open to revision; ``last_shown_us`` is when a
    slot showed it last (``stored_shown_us``: as that is stored, see ``sights``), ``gone`` that the
    slot does not any more; ``counted`` is the outcome under
    which it was counted, ``counted_us`` the lengths by which it is counted in histograms, and
    ``counted_failure`` the failed transfer that is counted.
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
    counted_us: Mapping[Measured, int] = field(default_factory=dict)
    counted_failure: str | None = None
    settled: Counter[tuple[Resource, Measure]] = field(default_factory=Counter)
    was_settled: bool = False
    had_left: bool = False
    dirty: bool = True

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
        """Return it as the accounting takes it."""
        outcome = self.outcome
        if outcome is not None and (
            self.merged.evidence == "estimated" or self.merged.end_us is None
        ):
            outcome = outcome._replace(evidence="estimated")
        size = self.merged.size or NOTHING
        return Run(self.key, self.start_us, self.end_us, size, outcome)

    def replace(self, merged: Merged, facts: tuple[RunFact, ...]) -> None:
        """Take in what more is known of it."""
        before = self.as_run()
        changed = merged != self.merged
        self.merged, self.facts, self.dirty = merged, facts, True
        if changed or self.as_run() != before:
            self.pilot.mark_changed(min(before.start_us, self.start_us))

    def take_place_of(self, removed: list[OpenRun]) -> None:
        """Go on with what is posted for the run of this key that was removed, if one was."""
        for before in removed:
            if before.key == self.key:
                self.settled, self.counted = before.settled, before.counted
                self.counted_us, self.counted_failure = before.counted_us, before.counted_failure
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
            counted_us={} if counted is None else counted_lengths(row.facts, *times),
            counted_failure=merged.ending.failed_transfer if pilot.known_us else None,
            settled=Counter(dict(row.settled)),
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
        end_us, size = run.end_us, run.merged.size
        if size is not None and end_us is not None and end_us > run.start_us:
            last_us = max(end_us - guard_us, run.start_us + 1)
            edges += [(run.start_us, 1, size), (last_us, 0, size)]
    for _, begins, size in sorted(edges, key=lambda edge: edge[:2]):
        sign = 1 if begins else -1
        for name, amount in size._asdict().items():
            running[name] += sign * amount
            most[name] = max(most[name], running[name])
    return Size(most["cores"], most["memory_mib"], most["gpus"])
