"""Which pilots and attempts are in memory, by all the names under which they are asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import nsmallest
from operator import attrgetter

from gwmond.model.factory_jobs import place_name
from gwmond.model.names import OTHER_ENTRY
from gwmond.model.pilot_facts import AttemptKey
from gwmond.model.pilot_keys import PilotKeys, PilotRows
from gwmond.model.records import JobRecord
from gwmond.model.stored_pilots import AttemptRow, PilotIdentity, PilotRow
from gwmond.pilots.open_attempt import OpenAttempt
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.posting import counted
from gwmond.pilots.rules import FAR_US

HEARD_AT_ONCE = 10_000
MOST_ASIDE = 10_000


def place_of(identity: PilotIdentity) -> str:
    """Return where facts of the factory's queue and summary are of a pilot, see ``QueueRecord``."""
    return place_name(identity.key.entry, identity.factory_number)


class PilotCache:
    """Pilots and attempts in memory; both are found by id, pilots by name, attempts by job.

    ``partly``: jobs of which the ledger may have attempts that are not in memory, beside those that
    are.  ``missing``: keys of what a step needed that is not in memory; the step left out what
    needed it, and goes on with that once it is loaded.
    """

    def __init__(self) -> None:
        self.pilots: dict[int, OpenPilot] = {}
        self.by_name: defaultdict[str, list[OpenPilot]] = defaultdict(list)
        self.by_job: defaultdict[str, list[OpenPilot]] = defaultdict(list)  # of the factory
        self.by_place: defaultdict[str, list[OpenPilot]] = defaultdict(list)  # of factory jobs
        self.jobs: defaultdict[str, list[OpenAttempt]] = defaultdict(list)
        self.partly: set[str] = set()
        self.moved: set[tuple[int, AttemptKey]] = set()
        self.withdrawn: set[int] = set()
        self._leaving: list[OpenPilot] = []
        self._aside: dict[int, OpenPilot] = {}
        self._heard: tuple[tuple[int, int], ...] = ()
        self.missing = PilotKeys()

    def take_missing(self) -> PilotKeys:
        """Return the keys of what is missing, and forget them."""
        keys, self.missing = self.missing, PilotKeys()
        return keys

    def has_whole(self, pilot: OpenPilot) -> bool:
        """Return whether all attempts of a pilot are in memory; if not, they are missing."""
        whole = pilot.loaded_from_us <= 0 or pilot.id in self._aside
        if not whole:
            self.missing.whole.add(pilot.id)
        return whole

    def has_jobs(self, jobs: Iterable[str]) -> bool:
        """Return whether all attempts of these jobs are in memory; if not, they are missing."""
        unknown = self.unknown_jobs(jobs)
        self.missing.jobs |= unknown
        return not unknown

    def unknown_jobs(self, jobs: Iterable[str]) -> set[str]:
        """Return those of jobs of which the ledger may have attempts that are not in memory."""
        return {job for job in jobs if job not in self.jobs or job in self.partly}

    def load(self, rows: PilotRows) -> None:
        """Take in what was fetched."""
        self.recall_pilots(rows.pilots)
        self.recall_attempts(rows.runs)
        self.partly -= rows.keys.jobs
        for number in rows.keys.whole:
            pilot = self.pilots.get(number)
            if pilot is not None and pilot.loaded_from_us > 0:
                self._take_whole(pilot, rows.whole.get(number, ()))

    def add_pilot(self, pilot: OpenPilot) -> OpenPilot:
        """Take a pilot in, unless it is."""
        known = self.pilots.setdefault(pilot.id, pilot)
        if known is pilot:
            self.index(pilot)
        return known

    def index(self, pilot: OpenPilot) -> None:
        """Let a pilot be found by its name, and by its factory's job if that is known."""
        for names, name in self._names(pilot):
            names[name].append(pilot)

    def unindex(self, pilot: OpenPilot) -> None:
        """Let it not be found by them any more, as they change or it is forgotten."""
        for names, name in self._names(pilot):
            same = names[name]
            same.remove(pilot)
            if not same:
                del names[name]

    def _names(self, pilot: OpenPilot) -> list[tuple[defaultdict[str, list[OpenPilot]], str]]:
        found = [(self.by_name, pilot.identity.name)]
        if job := pilot.identity.factory_job:
            found += [(self.by_job, job), (self.by_place, place_of(pilot.identity))]
        return found

    def at_place(self, entry: str, number: str) -> list[OpenPilot]:
        """Return the pilots that ran as ``cluster.proc`` at an entry.

        Those that are accounted as one of many may have been of any entry.
        """
        places = dict.fromkeys((place_name(entry, number), place_name(OTHER_ENTRY.entry, number)))
        return [pilot for place in places for pilot in self.by_place.get(place, ())]

    def heard(self, written: Collection[int]) -> tuple[tuple[int, int], ...]:
        """Return last contacts that are to be stored, of pilots that are not ``written`` anyhow.

        So that a pilot that goes while gwmond is away is not cut short.  In a large pool some take
        their turn at each poll.
        """
        waiting = [
            pilot
            for pilot in self.pilots.values()
            if pilot.contact_us > pilot.stored_heard_us
            and pilot.end_us is None
            and pilot.id not in written
        ]
        first = nsmallest(HEARD_AT_ONCE, waiting, key=attrgetter("stored_heard_us"))
        self._heard = tuple((pilot.id, pilot.contact_us) for pilot in first)
        return self._heard

    def stored(self) -> None:
        """Say that the contacts, and what has moved or was withdrawn, are stored."""
        for number, heard_us in self._heard:
            self.pilots[number].stored_heard_us = heard_us
        self._heard = ()
        self.moved.clear()
        self.withdrawn.clear()

    def drop_pilot(self, pilot: OpenPilot) -> None:
        """Forget a pilot and its attempts."""
        for attempt in list(pilot.attempts.values()):
            self.forget_attempt(attempt)
        self.pilots.pop(pilot.id, None)
        self.unindex(pilot)

    def set_aside(self, number: int) -> None:
        """Leave a pilot as the ledger has it, if it does; it is still found, and changes no more.

        What has moved from it, or withdrew it, is not to be stored either.
        """
        self.withdrawn.discard(number)
        self.moved = {attempt_key for attempt_key in self.moved if attempt_key[0] != number}
        pilot = self.pilots.pop(number, None)
        if pilot is None:
            return
        for attempt in list(pilot.attempts.values()):
            self.drop_attempt(attempt)
        pilot.pruned = True  # so that nothing is made of what is told of it
        self._aside[number] = pilot
        if len(self._aside) > MOST_ASIDE:
            self.unindex(self._aside.pop(next(iter(self._aside))))

    def is_aside(self, pilot: OpenPilot) -> bool:
        """Return whether a pilot was set aside."""
        return pilot.id in self._aside

    def withdraw(self, pilot: OpenPilot) -> None:
        """Say that there was no such pilot; all its attempts must be in memory."""
        self._leaving.append(pilot)

    def withdrawing(self) -> Iterator[OpenPilot]:
        """Yield the pilots that there were not, to take out what is booked, and forget each."""
        while self._leaving:
            pilot = self._leaving.pop()
            yield pilot
            self.moved |= {(pilot.id, key) for key in pilot.attempts}
            self.withdrawn.add(pilot.id)
            self.drop_pilot(pilot)

    def add_attempt(self, attempt: OpenAttempt) -> None:
        """Take an attempt in, or put it in the place of the one with its key."""
        pilot = attempt.pilot
        if (before := pilot.attempts.get(attempt.key)) is not None:
            self.drop_attempt(before)
        pilot.attempts[attempt.key] = attempt
        self.jobs[attempt.key.job].append(attempt)
        self.moved.discard((pilot.id, attempt.key))

    def drop_attempt(self, attempt: OpenAttempt) -> None:
        """Take an attempt out that there is not any more."""
        attempt.pilot.attempts.pop(attempt.key, None)
        of_job = self.jobs[attempt.key.job]
        of_job.remove(attempt)
        if not of_job:
            del self.jobs[attempt.key.job]
            self.partly.discard(attempt.key.job)

    def drop_old(self, pilot: OpenPilot, linger_us: int) -> None:
        """Forget attempts on it that are decided, settled and have ended a while before."""
        limit = pilot.mark_us - linger_us
        for attempt in list(pilot.attempts.values()):
            end_us = attempt.end_us
            if end_us is not None and end_us <= limit and not attempt.is_open:
                self.forget_attempt(attempt)
                pilot.loaded_from_us, pilot.ran_jobs = max(pilot.loaded_from_us, end_us), True

    def forget_attempt(self, attempt: OpenAttempt) -> None:
        """Leave an attempt to the ledger, where it is stored."""
        self.drop_attempt(attempt)
        if attempt.key.job in self.jobs:
            self.partly.add(attempt.key.job)

    def show(self, now_us: int, records: Iterable[JobRecord], *, complete: bool) -> None:
        """Note which attempts slots show now; ``complete``: the claims are all there are."""
        shown: set[OpenAttempt] = set()
        on_startds: dict[str, dict[str, list[OpenAttempt]]] = {}
        for record in records:
            job = record.fact.job
            if job not in on_startds:  # garbage may show one job in all slots
                on_startds[job] = self._by_startd(job)
            for attempt in on_startds[job].get(record.startd, ()):
                if attempt.is_claim(record.fact):
                    attempt.seen_us, attempt.gone = now_us, False
                    shown.add(attempt)
        if not complete:
            return
        for attempts in self.jobs.values():
            for attempt in attempts:
                if attempt not in shown and not attempt.merged.ending.over:
                    attempt.gone, attempt.seen_us = True, attempt.seen_us or now_us

    def _by_startd(self, job: str) -> dict[str, list[OpenAttempt]]:
        """Return the attempts of a job by the names of the startds on which they were."""
        found: defaultdict[str, list[OpenAttempt]] = defaultdict(list)
        for attempt in self.jobs.get(job, ()):
            found[attempt.pilot.identity.name].append(attempt)
        return found

    def recall_pilots(self, rows: Iterable[PilotRow]) -> None:
        """Take stored pilots in that are not in memory; their attempts stay in the ledger."""
        for row in rows:
            if row.id not in self.pilots and row.id not in self._aside:
                pilot = OpenPilot.of(row, loaded_from_us=FAR_US)
                pilot.note_booked()
                pilot.counted = counted(pilot)
                self.add_pilot(pilot)

    def recall_attempts(self, rows: Iterable[AttemptRow]) -> None:
        """Take stored attempts in that are not in memory, on pilots that are.

        What today's rules make of an attempt otherwise than it was booked is booked anew.
        """
        for row in rows:
            pilot = self.pilots.get(row.pilot)
            if pilot is None or row.key in pilot.attempts or (row.pilot, row.key) in self.moved:
                continue
            if row.key.job not in self.jobs:
                self.partly.add(row.key.job)
            attempt = OpenAttempt.of(row, pilot)
            self.add_attempt(attempt)
            if attempt.attempt() != row.attempt and not pilot.pruned:
                attempt.dirty = True
                pilot.touch(min(attempt.start_us, row.start_us))

    def _take_whole(self, pilot: OpenPilot, rows: Sequence[AttemptRow]) -> None:
        booked = pilot.booked
        known = {attempt.key for attempt in booked.attempts} if booked is not None else set()
        missing = [row for row in rows if row.key not in known]
        self.recall_attempts(rows)
        pilot.ran_jobs, pilot.loaded_from_us = False, 0
        if booked is not None:
            both = (*booked.attempts, *(row.attempt for row in missing))
            pilot.booked = booked._replace(attempts=both, ran_jobs=False)
