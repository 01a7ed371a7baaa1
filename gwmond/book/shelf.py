"""Which pilots and attempts are in memory, by all the names under which they are asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gwmond.accounting.pilot_facts import AttemptKey
from gwmond.book.booking import own
from gwmond.book.open_pilot import OpenAttempt, OpenPilot
from gwmond.book.rules import FAR_US, Lookup
from gwmond.ledger.pilot_model import AttemptRow, PilotRow


class Shelf:
    """Pilots and attempts in memory; both are found by id, pilots by name, attempts by job."""

    def __init__(self) -> None:
        self.pilots: dict[int, OpenPilot] = {}
        self.by_name: defaultdict[str, list[OpenPilot]] = defaultdict(list)
        self.by_job: defaultdict[str, list[OpenPilot]] = defaultdict(list)  # of the factory
        self.jobs: defaultdict[str, list[OpenAttempt]] = defaultdict(list)
        self.moved: set[tuple[int, AttemptKey]] = set()

    def add_pilot(self, pilot: OpenPilot) -> OpenPilot:
        """Take a pilot in, unless it is."""
        known = self.pilots.setdefault(pilot.id, pilot)
        if known is pilot:
            self.by_name[pilot.identity.name].append(pilot)
            self.index_job(pilot)
        return known

    def index_job(self, pilot: OpenPilot) -> None:
        """Let a pilot be found by its factory's job, if that is known."""
        if job := pilot.identity.factory_job:
            self.by_job[job].append(pilot)

    def drop_pilot(self, pilot: OpenPilot) -> None:
        """Forget a pilot and its attempts."""
        for attempt in list(pilot.attempts.values()):
            self.drop_attempt(attempt)
        self.pilots.pop(pilot.id, None)
        same = self.by_name[pilot.identity.name]
        same.remove(pilot)
        if not same:
            del self.by_name[pilot.identity.name]
        if pilot in (of_job := self.by_job.get(pilot.identity.factory_job, [])):
            of_job.remove(pilot)
            if not of_job:
                del self.by_job[pilot.identity.factory_job]

    def add_attempt(self, attempt: OpenAttempt) -> None:
        """Take an attempt in, or put it in the place of the one with its key."""
        pilot = attempt.pilot
        if (before := pilot.attempts.get(attempt.key)) is not None:
            self.drop_attempt(before)
        pilot.attempts[attempt.key] = attempt
        self.jobs[attempt.key.job].append(attempt)
        self.moved.discard((pilot.id, attempt.key))

    def drop_attempt(self, attempt: OpenAttempt) -> None:
        """Forget an attempt."""
        attempt.pilot.attempts.pop(attempt.key, None)
        of_job = self.jobs[attempt.key.job]
        of_job.remove(attempt)
        if not of_job:
            del self.jobs[attempt.key.job]

    def recall_pilots(self, rows: Iterable[PilotRow]) -> None:
        """Take stored pilots in that are not in memory; their attempts stay in the ledger."""
        for row in rows:
            if row.id not in self.pilots:
                pilot = OpenPilot.of(row, kept_us=FAR_US)
                pilot.note_booked()
                pilot.counted = own(pilot)
                self.add_pilot(pilot)

    def recall_attempts(self, rows: Iterable[AttemptRow]) -> None:
        """Take stored attempts in that are not in memory, on pilots that are."""
        for row in rows:
            pilot = self.pilots.get(row.pilot)
            if pilot is None or row.key in pilot.attempts or (row.pilot, row.key) in self.moved:
                continue
            self.add_attempt(OpenAttempt.of(row, pilot))

    def load_whole(self, pilot: OpenPilot, lookup: Lookup) -> None:
        """Take in all attempts of a pilot that are not in memory, as they were booked."""
        rows = lookup.attempts_of([pilot.id]).get(pilot.id, [])
        booked = pilot.booked
        known = {of.key for of in booked.attempts} if booked is not None else set()
        missing = [row for row in rows if row.key not in known]
        self.recall_attempts(rows)
        pilot.ran_jobs, pilot.kept_us = False, 0
        if booked is not None:
            stored = [OpenAttempt.of(row, pilot).attempt() for row in missing]
            both = (*booked.attempts, *stored)
            pilot.booked = booked._replace(attempts=both, ran_jobs=False)
