"""What a ledger does with batches, in memory: for tests that make many books."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from gwmond.model.batch import Batch, LedgerState
from gwmond.model.endings import EARLY_US
from gwmond.model.experiments import Experiment
from gwmond.model.factory_jobs import QueueRecord
from gwmond.model.facts import Cursor
from gwmond.model.pilot_evidence import short_node
from gwmond.model.pilot_facts import AttemptKey, PilotLife, estimates
from gwmond.model.stored_pilots import (
    AttemptRow,
    CountKey,
    PilotId,
    PilotKind,
    PilotRow,
    PilotSeries,
)
from gwmond.pilots.early_failure import MOST_TRIALS, Result, Trial


class NoTrials:
    """No run that is evidence about another."""

    def trials(self, *_: object) -> list[Trial]:
        """Return none."""
        return []


class Stored:
    """Pilots, attempts and totals as a ledger would hold them."""

    def __init__(self) -> None:
        self.batches = 0
        self.pilots: dict[PilotId, PilotRow] = {}
        self.attempts: dict[tuple[PilotId, AttemptKey], AttemptRow] = {}
        self.hours: Counter[tuple[int, PilotSeries]] = Counter()
        self.counts: Counter[CountKey] = Counter()
        self.corrections = 0
        self.places: dict[str, QueueRecord] = {}
        self.cursors: dict[tuple[str, str], Cursor] = {}
        self.experiments: dict[PilotId, Experiment] = {}

    def commit(self, batch: Batch) -> None:
        """Store a batch as the ledger does."""
        assert batch.before == self.batches
        assert all(micros > 0 for micros in batch.increments.values())
        self.batches += 1
        for gone in batch.withdrawn:
            self.pilots.pop(gone, None)
        self.pilots |= {row.id: row for row in batch.pilots}
        for number, heard_us in batch.heard:
            self.pilots[number] = self.pilots[number]._replace(heard_us=heard_us)
        for attempt_key in batch.moved:
            self.attempts.pop(attempt_key, None)
        self.attempts |= {(row.pilot, row.key): row for row in batch.attempts}
        self.hours.update(batch.increments)
        for correction in batch.corrections:
            self.hours[correction.hour, correction.series] += correction.micros
        self.corrections += len(batch.corrections)
        self.counts.update(batch.counts)
        self.places |= {place.name: place for place in batch.places}
        self.cursors |= {(cursor.source, cursor.kind): cursor for cursor in batch.cursors}
        self.experiments |= {experiment.pilot: experiment for experiment in batch.experiments}
        assert all(row.pilot in self.pilots for row in self.attempts.values())

    def load(self) -> LedgerState:
        """Return what a book starts from."""
        running = {row.id: row for row in self.pilots.values() if not row.closed}
        late = [
            row
            for row in self.attempts.values()
            if row.pilot in running
            and (row.open or row.end_us is None or row.end_us > running[row.pilot].mark_us)
        ]
        next_id = max(self.pilots, default=0) + 1
        pilots = tuple(running.values())
        waiting = tuple(place for place in self.places.values() if place.open)
        pending = tuple(
            experiment for experiment in self.experiments.values() if not experiment.result
        )
        return LedgerState(
            batches=self.batches,
            next_id=next_id,
            pilots=pilots,
            attempts=tuple(late),
            cursors=self.cursors,
            places=waiting,
            experiments=pending,
        )

    def find_pilots(self, names: Collection[str]) -> dict[str, list[PilotRow]]:
        """Return all pilots with these startd names."""
        found = defaultdict(list)
        for row in self.pilots.values():
            if row.identity.name in names:
                found[row.identity.name].append(row)
        return dict(found)

    def find_startds(self, startds: Collection[str]) -> list[PilotRow]:
        """Return all pilots with one of these names up to the @."""
        rows = self.pilots.values()
        return [row for row in rows if row.identity.name.partition("@")[0] in startds]

    def find_on_nodes(
        self, moments: Collection[tuple[str, int]], early_us: int, late_us: int
    ) -> list[PilotRow]:
        """Return pilots that ended and were on a node at one of these moments."""
        return [
            row
            for row in self.pilots.values()
            if row.end_us is not None
            and any(
                node == short_node(row.identity.node)
                and row.start_us - early_us <= at_us <= row.end_us + late_us
                for node, at_us in moments
            )
        ]

    def find_nameless(
        self, moments: Collection[tuple[str, int]], early_us: int, age_us: int
    ) -> list[PilotRow]:
        """Return pilots without a startd's name that were on a node before."""
        return [
            row
            for row in self.pilots.values()
            if row.end_us is not None
            and row.identity.name[:1].isdigit()
            and any(
                node == short_node(row.identity.node)
                and row.start_us - early_us <= at_us <= row.start_us + age_us
                for node, at_us in moments
            )
        ]

    def find_factory_jobs(self, jobs: Collection[str]) -> dict[str, list[PilotRow]]:
        """Return all pilots that ran as these jobs of a factory."""
        found = defaultdict(list)
        for row in self.pilots.values():
            if row.identity.factory_job in jobs:
                found[row.identity.factory_job].append(row)
        return dict(found)

    def find_factory_numbers(self, numbers: Collection[str]) -> dict[str, list[PilotRow]]:
        """Return all pilots that ran as these numbers at any schedd."""
        found = defaultdict(list)
        for row in self.pilots.values():
            number = row.identity.factory_job.rpartition("#")[2]
            if number in numbers:
                found[number].append(row)
        return dict(found)

    def pilots_of_entries(self, entries: Collection[str]) -> dict[str, list[PilotRow]]:
        """Return all pilots of these entries."""
        found = defaultdict(list)
        for row in self.pilots.values():
            if row.identity.key.entry in entries:
                found[row.identity.key.entry].append(row)
        return dict(found)

    def pilots_by_kind(self, entry: str) -> dict[PilotKind, list[PilotId]]:
        """Return an entry's pilots by what is told and assumed of them."""
        found = defaultdict(list)
        for row in self.pilots.values():
            key = row.identity
            if key.key.entry == entry and key.origin != "jobs" and row.steps:
                rules = frozenset(row.assumed)
                who = key.key.site, key.factory, key.group, key.origin
                found[
                    PilotKind(row.facts.reported(key.origin), row.steps[-1].size, rules, *who)
                ].append(row.id)
        return dict(found)

    def find_places(self, names: Collection[str]) -> dict[str, QueueRecord]:
        """Return what the factory's queue told at these places."""
        return {name: self.places[name] for name in names if name in self.places}

    def pilots_by_id(self, ids: Collection[PilotId]) -> dict[PilotId, PilotRow]:
        """Return pilots by their number."""
        return {number: self.pilots[number] for number in ids if number in self.pilots}

    def find_attempts(self, jobs: Collection[str]) -> dict[str, list[AttemptRow]]:
        """Return all attempts of these jobs."""
        found = defaultdict(list)
        for row in self.attempts.values():
            if row.key.job in jobs:
                found[row.key.job].append(row)
        return dict(found)

    def attempts_of(self, ids: Collection[PilotId]) -> dict[PilotId, list[AttemptRow]]:
        """Return all attempts on these pilots."""
        found = defaultdict(list)
        for row in self.attempts.values():
            if row.pilot in ids:
                found[row.pilot].append(row)
        return dict(found)

    def trials(
        self,
        since_us: int,
        until_us: int,
        known_us: int,
        users: Collection[str] | None = None,
        limit: int = MOST_TRIALS,
    ) -> list[Trial]:
        """Return the runs of these users that began in an interval, as known then."""
        rows = [
            row
            for row in self.attempts.values()
            if since_us <= row.start_us <= until_us and (users is None or row.user in users)
        ]
        found = [trial for row in rows if (trial := self._trial(row, known_us)) is not None]
        assert len(found) <= limit
        return found

    def _trial(self, row: AttemptRow, known_us: int) -> Trial | None:
        identity = self.pilots[row.pilot].identity
        name, end_us = row.result, row.end_us
        if end_us is None or end_us > known_us:
            end_us = known_us
            name = Result.LASTED if row.start_us < known_us - EARLY_US else ""
        where = str(row.pilot), identity.node, identity.key.entry, identity.key.site
        group = row.job_group or row.user
        return Trial(*row.key, group, *where, row.start_us, end_us, Result(name)) if name else None

    def life(self, row: PilotRow) -> PilotLife:
        """Return a pilot as it is stored, with all its attempts."""
        from gwmond.model.pilot_facts import Attempt  # noqa: PLC0415

        return PilotLife(
            row.start_us,
            row.end_us,
            row.contact_us,
            row.steps,
            tuple(
                Attempt(a.key, a.start_us, a.end_us, a.size, a.outcome)
                for a in self.attempts.values()
                if a.pilot == row.id
            ),
            row.validation,
            row.known_until_us,
            estimates(row.assumed),
        )
