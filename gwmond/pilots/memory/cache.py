"""Which pilots and runs are in memory, by all the names under which they are asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from operator import attrgetter

from gwmond.model.factory.jobs import place_name
from gwmond.model.facts import Cursor
from gwmond.model.names import OTHER_ENTRY
from gwmond.model.pilot_life import RunKey
from gwmond.model.pilots.stored_pilots import PilotIdentity, PilotRow, RunRow
from gwmond.model.poll.pilot_keys import PilotKeys, PilotRows
from gwmond.model.runs.run_facts import JobRecord
from gwmond.pilots.life.rules import FAR_US
from gwmond.pilots.memory.ad_times import Looks
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun, Unstored
from gwmond.pilots.memory.posting import counted

HEARD_AT_ONCE = 10_000
MOST_ASIDE = 10_000


def place_of(identity: PilotIdentity) -> str:
    """Return where facts of the factory's queue and summary are of a pilot, see ``QueueRecord``."""
    return place_name(identity.key.entry, identity.factory_number)


class PilotCache:
    """Pilots and runs in memory; both are found by id, pilots by name, runs by job.

    ``partly``: jobs of which the ledger may have runs that are not in memory, beside those that
    are; of some of them it is known when those runs began.  ``missing``: keys of what a step
    needed that is not in memory; the step left that out, and goes on with it once it is loaded.
    """

    def __init__(self, cursors: Mapping[tuple[str, str], Cursor]) -> None:
        self.looks = Looks(cursors)
        self.pilots: dict[int, OpenPilot] = {}
        self.by_name: defaultdict[str, list[OpenPilot]] = defaultdict(list)
        self.by_job: defaultdict[str, list[OpenPilot]] = defaultdict(list)  # of the factory
        self.by_place: defaultdict[str, list[OpenPilot]] = defaultdict(list)  # of factory jobs
        self.jobs: defaultdict[str, list[OpenRun]] = defaultdict(list)
        self.partly: set[str] = set()
        self._stored_starts: dict[str, dict[RunKey, int]] = {}  # of runs that are not in memory
        self.moved: defaultdict[int, set[RunKey]] = defaultdict(set)  # not stored yet, by pilot
        self.withdrawn: dict[int, OpenPilot] = {}
        self.sites: dict[str, str] = {}  # by entry, as this and the next
        self.factories: dict[str, str] = {}
        self._leaving: list[OpenPilot] = []
        self._aside: dict[int, OpenPilot] = {}
        self._unstored: set[OpenRun] = set()  # shown at another time than is stored
        self._storing: list[tuple[OpenPilot, int, int | None]] = []
        self._showing: list[tuple[OpenRun, int | None]] = []
        self.missing = PilotKeys()

    def take_missing(self) -> PilotKeys:
        """Return the keys of what is missing, and forget them."""
        keys, self.missing = self.missing, PilotKeys()
        return keys

    def has_whole(self, pilot: OpenPilot) -> bool:
        """Return whether all runs of a pilot are in memory; if not, they are missing."""
        whole = pilot.loaded_from_us <= 0 or pilot.id not in self.pilots
        if not whole:
            self.missing.whole.add(pilot.id)
        return whole

    def has_jobs(self, jobs: Iterable[str]) -> bool:
        """Return whether all runs of these jobs are in memory; if not, they are missing."""
        unknown = self.partly.intersection(jobs)
        self.missing.jobs |= unknown
        return not unknown

    def has_starts(self, jobs: Iterable[str]) -> bool:
        """Return whether it is known when all runs of these jobs began; if not, they are missing.

        Those that were in memory once are remembered as long as another run of the job is.
        """
        return self.has_jobs(set(jobs) - self._stored_starts.keys())

    def starts(self, job: str) -> dict[RunKey, int]:
        """Return when each run of a job began, as far as it is known."""
        starts = dict(self._stored_starts.get(job, {}))
        starts.update((run.key, run.start_us) for run in self.jobs.get(job, ()))
        return starts

    def is_only(self, job: str) -> bool:
        """Return whether a job has one run in memory, and none besides."""
        return len(self.jobs.get(job, ())) == 1 and job not in self.partly

    def unknown_jobs(self, jobs: Iterable[str]) -> set[str]:
        """Return those of jobs of which the ledger may have runs that are not in memory."""
        return {job for job in jobs if job not in self.jobs or job in self.partly}

    def load(self, rows: PilotRows) -> None:
        """Take in what was fetched."""
        self.recall_pilots(rows.pilots)
        self.recall_runs(rows.runs)
        self.partly -= rows.keys.jobs
        for job in rows.keys.jobs:
            self._stored_starts.pop(job, None)
        for number in rows.keys.whole:
            pilot = self.pilots.get(number)
            if pilot is not None and pilot.loaded_from_us > 0:
                self._take_whole(pilot, rows.whole.get(number, ()))

    def add_pilot(self, pilot: OpenPilot) -> OpenPilot:
        """Take a pilot in, unless it is in memory."""
        same = self.pilots.setdefault(pilot.id, pilot)
        if same is pilot:
            self.index(pilot)
        return same

    def index(self, pilot: OpenPilot) -> None:
        """Index a pilot by its name, and by its factory's job if that is known."""
        for names, name in self._names(pilot):
            names[name].append(pilot)
        self.note_place(pilot.identity)

    def note_place(self, identity: PilotIdentity) -> None:
        """Learn the site and the factory of an entry from one of its pilots, if nothing has them.

        So a daemon that goes on knows of what it has stored, as one that asks the ledger does.
        """
        site, entry = identity.key
        if site != entry:
            self.sites.setdefault(entry, site)
        if identity.factory:
            self.factories.setdefault(entry, identity.factory)

    def forget_places(self) -> None:
        """Forget sites and factories of entries but those of pilots in memory."""
        self.sites, self.factories = {}, {}
        for pilot in self.pilots.values():
            self.note_place(pilot.identity)

    def unindex(self, pilot: OpenPilot) -> None:
        """Take a pilot out of the indexes, as its names change or it is forgotten."""
        for names, name in self._names(pilot):
            same = names[name]
            same.remove(pilot)
            if not same:
                del names[name]

    def _names(self, pilot: OpenPilot) -> list[tuple[defaultdict[str, list[OpenPilot]], str]]:
        names = [(self.by_name, pilot.identity.name)]
        if job := pilot.identity.factory_job:
            names += [(self.by_job, job), (self.by_place, place_of(pilot.identity))]
        return names

    def at_place(self, entry: str, number: str) -> list[OpenPilot]:
        """Return the pilots that ran as ``cluster.proc`` at an entry.

        Those that are accounted as one of many may have been of any entry.
        """
        places = dict.fromkeys((place_name(entry, number), place_name(OTHER_ENTRY.entry, number)))
        return [pilot for place in places for pilot in self.by_place.get(place, ())]

    def heard(self, written: Collection[int]) -> tuple[tuple[int, int, int | None], ...]:
        """Return last contacts that are to be stored, of pilots that are not ``written`` anyhow:
        when each was last heard of, and when a poll found it (see ``Looks``).

        So that a pilot that goes while gwmond is away is not cut short.  In a large pool some take
        their turn at each poll.
        """
        waiting = [
            pilot
            for pilot in self.pilots.values()
            if pilot.id not in written
            and (
                (pilot.last_heard_us > pilot.stored_last_heard_us and pilot.end_us is None)
                or self.looks.polled_us(pilot) != pilot.stored_polled_us
            )
        ]
        first = nsmallest(HEARD_AT_ONCE, waiting, key=attrgetter("stored_last_heard_us"))
        contacts = [(pilot, pilot.last_heard_us, self.looks.polled_us(pilot)) for pilot in first]
        self._storing += contacts
        return tuple((pilot.id, heard_us, polled_us) for pilot, heard_us, polled_us in contacts)

    def rows(
        self, changed: Mapping[OpenPilot, Sequence[OpenRun]], memory_per_unit_mib: int
    ) -> tuple[list[PilotRow], list[RunRow]]:
        """Return pilots and runs as they are to be stored whole."""
        pilots, runs = list[PilotRow](), list[RunRow]()
        self._storing, looks = [], self.looks
        for pilot, its_runs in changed.items():
            row, polled_us = pilot.row(), looks.polled_us(pilot)
            unit_mib = row.unit_mib or memory_per_unit_mib
            pilots.append(row._replace(last_polled_us=polled_us, unit_mib=unit_mib))
            self._storing.append((pilot, row.last_heard_us, polled_us))
            runs += [run.row()._replace(last_shown_us=looks.shown_us(run)) for run in its_runs]
        return pilots, runs

    def sights(self) -> tuple[tuple[int, RunKey, int | None], ...]:
        """Return when runs were last shown that are not to be stored whole, some in their turn."""
        looks = self.looks
        self._unstored = {
            run
            for run in self._unstored
            if run.pilot.runs.get(run.key) is run and looks.shown_us(run) != run.stored_shown_us
        }
        clean = (run for run in self._unstored if not run.dirty)
        first = nsmallest(HEARD_AT_ONCE, clean, key=lambda run: run.stored_shown_us or 0)
        self._showing = [(run, looks.shown_us(run)) for run in first]
        return tuple((run.pilot.id, run.key, shown_us) for run, shown_us in self._showing)

    def stored(self) -> None:
        """Say that the contacts, and what has moved or was withdrawn, are stored."""
        for pilot, last_heard_us, polled_us in self._storing:
            pilot.stored_last_heard_us, pilot.stored_polled_us = last_heard_us, polled_us
        for run, shown_us in self._showing:
            run.stored_shown_us = shown_us
            self._unstored.discard(run)
        self._storing.clear()
        self._showing.clear()
        self.looks.stored()
        for number in self.moved:
            if (moved := self.pilots.get(number)) is not None:
                moved.posted_without = frozenset()
        self.moved.clear()
        self.withdrawn.clear()

    def unstored(self) -> dict[int, Unstored]:
        """Return what waits to be stored, by pilot."""
        pilots = (*self.withdrawn.values(), *self.pilots.values())
        return {pilot.id: pilot.unstored for pilot in pilots if pilot.unstored is not None}

    def drop_pilot(self, pilot: OpenPilot) -> None:
        """Forget a pilot and its runs."""
        for run in list(pilot.runs.values()):
            self.forget_run(run)
        self.pilots.pop(pilot.id, None)
        self.unindex(pilot)

    def set_aside(self, number: int) -> None:
        """Leave a pilot as the ledger has it, if it does; it is still found, and changes no more.

        What has moved from it, or withdrew it, is not to be stored either.
        """
        self.withdrawn.pop(number, None)
        self.moved.pop(number, None)
        pilot = self.pilots.pop(number, None)
        if pilot is None:
            return
        for run in list(pilot.runs.values()):
            self.drop_run(run)
        pilot.unstored, pilot.pruned = None, True  # so that nothing is made of what is known of it
        self._aside[number] = pilot
        if len(self._aside) > MOST_ASIDE:
            self.unindex(self._aside.pop(next(iter(self._aside))))

    def is_aside(self, pilot: OpenPilot) -> bool:
        """Return whether a pilot was set aside."""
        return pilot.id in self._aside

    def withdraw(self, pilot: OpenPilot) -> None:
        """Say that there was no such pilot; all its runs must be in memory."""
        self._leaving.append(pilot)

    def withdrawing(self) -> Iterator[OpenPilot]:
        """Yield the pilots that there were not, to take out what is posted, and forget each."""
        while self._leaving:
            pilot = self._leaving.pop()
            yield pilot
            self.moved[pilot.id].update(pilot.runs)
            self.withdrawn[pilot.id] = pilot
            for run in list(pilot.runs.values()):
                self.drop_run(run)
            self.drop_pilot(pilot)

    def add_run(self, run: OpenRun) -> None:
        """Take a run in, or put it in the place of the one with its key."""
        pilot = run.pilot
        if (before := pilot.runs.get(run.key)) is not None:
            self.drop_run(before)
        pilot.runs[run.key] = run
        self.jobs[run.key.job].append(run)
        if pilot.id in self.moved:
            self.moved[pilot.id].discard(run.key)

    def drop_run(self, run: OpenRun) -> None:
        """Take a run out that there is not any more."""
        run.pilot.runs.pop(run.key, None)
        of_job = self.jobs[run.key.job]
        of_job.remove(run)
        if not of_job:
            del self.jobs[run.key.job]
            self.partly.discard(run.key.job)
            self._stored_starts.pop(run.key.job, None)

    def drop_old(self, pilot: OpenPilot, linger_us: int) -> None:
        """Forget runs on it that are decided, settled and have ended a while before."""
        limit = pilot.settled_until_us - linger_us
        for run in [run for run in pilot.runs.values() if run.outcome is not None]:
            end_us = run.end_us
            if end_us is not None and end_us <= limit:
                self.forget_run(run)
                pilot.loaded_from_us, pilot.ran_jobs = max(pilot.loaded_from_us, end_us), True

    def forget_run(self, run: OpenRun) -> None:
        """Leave a run to the ledger, where it is stored."""
        self.drop_run(run)
        job = run.key.job
        if job not in self.jobs:
            return
        if job not in self.partly:
            self.partly.add(job)
            self._stored_starts[job] = {}
        if job in self._stored_starts:
            self._stored_starts[job][run.key] = run.start_us

    def show(self, now_us: int, records: Iterable[JobRecord], *, complete: bool) -> None:
        """Note which runs slots show now; ``complete``: the claims are all there are."""
        shown: set[OpenRun] = set()
        on_startds: dict[str, Mapping[str, Sequence[OpenRun]]] = {}
        for record in records:
            job, startd = record.fact.job, record.startd
            runs: Sequence[OpenRun] = self.jobs.get(job, ())
            if len(runs) > 1:  # garbage may show one job in all slots
                if job not in on_startds:
                    on_startds[job] = self._by_startd(job)
                runs = on_startds[job].get(startd, ())
            for run in runs:
                if run.pilot.identity.name == startd and run.is_claim(record.fact):
                    run.last_shown_us, run.gone = now_us, False
                    shown.add(run)
        if not complete:
            self._unstored |= shown
            return
        self.looks.claims_us = now_us
        for of_job in self.jobs.values():
            for run in of_job:
                if run.merged.ending.over:
                    continue
                if run not in shown:
                    run.gone, run.last_shown_us = True, run.last_shown_us or now_us
                if self.looks.shown_us(run) != run.stored_shown_us:
                    self._unstored.add(run)

    def _by_startd(self, job: str) -> dict[str, list[OpenRun]]:
        """Return the runs of a job by the names of the startds on which they were."""
        runs: defaultdict[str, list[OpenRun]] = defaultdict(list)
        for run in self.jobs.get(job, ()):
            runs[run.pilot.identity.name].append(run)
        return runs

    def recall_pilots(self, rows: Iterable[PilotRow]) -> None:
        """Take stored pilots in that are not in memory; their runs stay in the ledger."""
        for row in rows:
            if row.id not in self.pilots and row.id not in self._aside:
                pilot = OpenPilot.of(row, loaded_from_us=FAR_US)
                pilot.note_posted()
                self.looks.recall_pilot(pilot, row)
                pilot.counted = counted(pilot)
                self.add_pilot(pilot)

    def recall_runs(self, rows: Iterable[RunRow]) -> None:
        """Take stored runs in that are not in memory, on pilots that are.

        What today's rules make of a run otherwise than it was posted is posted anew.
        """
        for row in rows:
            pilot = self.pilots.get(row.pilot)
            if pilot is None or row.key in pilot.runs:
                continue
            if row.key in self.moved.get(row.pilot, ()):
                continue
            if row.key.job not in self.jobs:
                self.partly.add(row.key.job)
            run = OpenRun.of(row, pilot)
            self.looks.recall_run(run, row)
            self.add_run(run)
            if run.as_run() != row.as_run and not pilot.pruned:
                run.dirty = True
                pilot.mark_changed(min(run.start_us, row.start_us))

    def note_posted(self, pilot: OpenPilot) -> None:
        """Say that a pilot was posted as it is now: without the runs that it has lost."""
        pilot.posted_without = frozenset(self.moved.get(pilot.id, ()))

    def _take_whole(self, pilot: OpenPilot, rows: Sequence[RunRow]) -> None:
        """Take in all runs of a pilot.

        Those that were in memory when it was posted last were posted as they were then.  Those
        that it had lost by then were not posted, though the ledger still has them.
        """
        posted = pilot.posted
        posted_keys = {run.key for run in posted.runs} if posted is not None else set()
        posted_keys |= pilot.posted_without
        missing = [row for row in rows if row.key not in posted_keys]
        self.recall_runs(rows)
        pilot.ran_jobs, pilot.loaded_from_us = False, 0
        if posted is not None:
            runs = (*posted.runs, *(row.as_run for row in missing))
            pilot.posted = posted._replace(runs=runs, ran_jobs=False)
