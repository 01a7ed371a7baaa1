"""All that an explanation of one job rests on, and what it says.

Units: times are epoch seconds, units are canonical, pilots and jobs are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from gwmond.explain.clauses import (
    ClauseCount,
    Opening,
    counts,
    names_place,
    openings,
    without_clause,
)
from gwmond.explain.evidence import Proof, none_runs, weaker
from gwmond.explain.order import Rivals, rivals
from gwmond.model.demand.idle_history import PastWaits, WaitInterval
from gwmond.model.demand.order import Order
from gwmond.model.demand.waiting_job import TIMED, Examined, JobPlace, WaitingJob
from gwmond.model.entries.evaluation import IdleJobs
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Outcome
from gwmond.model.runs.phases import Phases
from gwmond.model.states import State
from gwmond.model.units import known_sum
from gwmond.reports.sites.sites import SiteRow


class Fate(StrEnum):
    """What becomes of a job at a slot, as the slot is now."""

    FREE = "free, and match"
    SHORT_LIVED = "free, but end too soon"
    SMALL = "of pilots that match, but have too little left"
    BUSY = "busy, of pilots that match"
    CLOSED = "of pilots that match, but retire or are drained"
    NO_MATCH = "do not match"


CYCLE_S = 60
"""How long a negotiation cycle lasts where no negotiator says so (NEGOTIATOR_INTERVAL)."""


def is_at(key: EntryKey, site: str) -> bool:
    """Return whether an entry is at a site, or is the entry of that name; empty: anywhere."""
    return site in ("", *key)


class EarlierRun(NamedTuple):
    """A run of a job; times are microseconds since the epoch.  None: it goes on."""

    start_us: int
    end_us: int | None
    entry: EntryKey
    node: str
    outcome: Outcome | None
    phases: Phases = Phases()


class Situation:
    """A job among the pool's places.

    ``entries`` are the rows of ``gwmond sites`` for CPUs; ``missing``: what could not be read, in
    words; ``site``: only places of that site, or of that entry, are looked at (empty: all).
    ``history``: for which reasons jobs like it waited since its submission, in the order of time.
    ``idle``: all idle jobs of the last poll, and where they could run; None: not all are known.
    ``earlier``: runs of the job that the ledger has, the latest first.
    """

    def __init__(
        self,
        examined: Examined,
        entries: Mapping[EntryKey, SiteRow],
        now: float,
        missing: tuple[str, ...] = (),
        site: str = "",
        order: Order | None = None,
        history: Sequence[WaitInterval] = (),
        past: PastWaits | None = None,
        untried: int = 0,
    ) -> None:
        self.job: WaitingJob = examined.job
        self.places, self.entries = examined.places, entries
        self._everywhere = entries, examined.places
        if site and not all(is_at(place.entry, site) for place in examined.places):
            self.places = tuple(place for place in examined.places if is_at(place.entry, site))
        if not self.job.is_matched:
            self.places = ()
        if site:
            self.entries = {key: row for key, row in entries.items() if is_at(key, site)}
        self.history = history
        self.now, self.missing, self.site = now, missing, site
        self.order, self.past, self.untried = order, past, untried
        self.idle: Sequence[IdleJobs] | None = None
        self.earlier: Sequence[EarlierRun] = ()

    @property
    def waits(self) -> bool:
        """Whether the job waits for a slot."""
        return self.job.status in (0, 1) and self.job.is_matched

    @property
    def is_planned(self) -> bool:
        """Whether the job is not submitted yet."""
        return self.job.status == 0

    @cached_property
    def sites(self) -> list[str]:
        """The sites that there are, sorted: also others than are looked at."""
        entries, places = self._everywhere
        return sorted({key.site for key in entries} | {place.entry.site for place in places})

    @cached_property
    def slots(self) -> tuple[JobPlace, ...]:
        """Slots as they are now."""
        return tuple(place for place in self.places if place.kind == "slot")

    @cached_property
    def pilots(self) -> tuple[JobPlace, ...]:
        """Empty pilots, of each entry and frontend group."""
        return tuple(place for place in self.places if place.kind == "pilot")

    @cached_property
    def fitting(self) -> tuple[JobPlace, ...]:
        """Empty pilots on which the job could run."""
        return tuple(p for p in self.pilots if p.matches and self.lives_long_enough(p))

    @cached_property
    def fates(self) -> Counter[Fate]:
        """What becomes of the job at each slot; every slot counts once."""
        fates: Counter[Fate] = Counter()
        for slot in self.slots:
            fates[self.fate(slot)] += slot.number
        return fates

    def fate(self, slot: JobPlace) -> Fate:
        """Return what becomes of the job at a slot, as the slot is now."""
        if slot.takes_jobs and slot.matches:
            return Fate.FREE if self.lives_long_enough(slot) else Fate.SHORT_LIVED
        is_of_kind = self._is_of_kind(slot)
        if slot.closed:
            return Fate.CLOSED if is_of_kind or slot.matches else Fate.NO_MATCH
        if slot.matches or slot.only_full:
            if is_of_kind or self.lives_long_enough(slot):
                return Fate.SMALL if slot.takes_jobs else Fate.BUSY
        elif is_of_kind and all(map(TIMED.search, self.objections(slot))):
            if not slot.blocked and not self._asks_of_jobs(slot):
                return Fate.CLOSED
            return Fate.SHORT_LIVED if slot.takes_jobs else Fate.BUSY
        return Fate.NO_MATCH

    def _is_of_kind(self, slot: JobPlace) -> bool:
        """Return whether a slot is of pilots on which the job could run, and not too small."""
        small = not self.job.size.is_within(slot.whole) or (slot.closed and bool(slot.blocked))
        return not small and (slot.entry, slot.group) in self._fitting_kinds

    def _asks_of_jobs(self, slot: JobPlace) -> bool:
        """Return whether what START of a slot refuses the job by is about jobs."""
        key = slot.entry, slot.group
        asks = {name for p in self.pilots if (p.entry, p.group) == key for name in p.asks}
        words = set(re.findall(r"\w+", " ".join(slot.refusals).lower()))
        return not words.isdisjoint({"target", *asks})

    def objections(self, place: JobPlace) -> list[str]:
        """Return the clauses, of either side, by which a place does not take the job."""
        return [*(self.job.clauses[i] for i in place.blocked), *place.refusals]

    @cached_property
    def _fitting_kinds(self) -> set[tuple[EntryKey, str]]:
        return {(place.entry, place.group) for place in self.fitting}

    @cached_property
    def free(self) -> tuple[JobPlace, ...]:
        """Slots that could take the job now."""
        return tuple(p for p in self.slots if p.matches and p.takes_jobs)

    @cached_property
    def rivals(self) -> Rivals | None:
        """Other idle jobs that could take the same free slots, or else run on the same pilots."""
        lasting = tuple(filter(self.lives_long_enough, self.free))
        places = lasting or self.fitting
        return rivals(self.job, self.idle, places) if self.idle is not None and places else None

    @cached_property
    def full(self) -> tuple[JobPlace, ...]:
        """Slots that would take the job if nothing else ran on their pilots.

        Nodes of one entry may differ: so there are some where the known empty pilot does not match.
        """
        return tuple(slot for slot in self.slots if self.fate(slot) in (Fate.SMALL, Fate.BUSY))

    @cached_property
    def leaving(self) -> tuple[JobPlace, ...]:
        """Slots that the job accepts, of kinds of pilots of which none takes jobs any more.

        What their empty pilots are like is not known.
        """
        kinds = {(place.entry, place.group) for place in self.pilots}
        return tuple(
            slot
            for slot in self.slots
            if not slot.blocked
            and self.job.size.is_within(slot.whole)
            and (slot.entry, slot.group) not in kinds
        )

    @cached_property
    def named(self) -> tuple[EntryKey, ...]:
        """Entries that the job asks for by name, and of whose pilots nothing is known.

        Where only such clauses keep it from all pilots that are known.
        """
        clauses, seen = [count.clause for count in self.impassable], {p.entry for p in self.places}
        if not clauses or self.fitting or self.full:
            return ()
        unknown, words = (key for key in self.entries if key not in seen), self.job.words
        return tuple(
            sorted(key for key in unknown if all(names_place(c, key, words) for c in clauses))
        )

    @cached_property
    def fitting_entries(self) -> tuple[EntryKey, ...]:
        """Entries of which an empty pilot could run the job, or may, sorted."""
        return tuple(sorted({p.entry for p in (*self.fitting, *self.full)} | {*self.named}))

    @cached_property
    def fitting_rows(self) -> dict[EntryKey, SiteRow]:
        """The rows of these entries, as far as they have any."""
        return {key: self.entries[key] for key in self.fitting_entries if key in self.entries}

    @cached_property
    def running(self) -> dict[EntryKey, SiteRow]:
        """The rows of those where pilots run, of a frontend group whose pilots it could run on.

        Where slots of an entry were looked at they say of which groups its pilots are, and how
        large.
        """
        seen = {slot.entry for slot in self.slots}
        ours = {slot.entry for slot in self.slots if self._is_of_kind(slot)}
        return {
            key: row
            for key, row in self.fitting_rows.items()
            if row.registered_pilots and (key in ours or key not in seen)
        }

    @cached_property
    def down(self) -> frozenset[EntryKey]:
        """Entries in downtime."""
        return frozenset(key for key, row in self.entries.items() if row.state == State.DOWN)

    @property
    def is_last_hope(self) -> bool:
        """Whether only pilots may take it that nobody has seen, and none that is seen would.

        By a clause that none of these passes, or by disk, of which no ad of a factory tells.
        """
        asked = {change.name.lower() for edit in self.job.edits[:1] for change in edit.changes}
        seen = any(place.evidence == "measured" for place in self.fitting)
        return bool(self.unseen) or (not seen and "requestdisk" in asked)

    @cached_property
    def openings(self) -> list[Opening]:
        """What other requests, other sites, and each single clause would open.

        Entries in downtime are left out, and what ends before the job would.
        """
        job, lasting = self.job, [p for p in self.places if self.lives_long_enough(p)]
        pilots = [p for p in lasting if p.kind == "pilot" and p.entry not in self.down]
        slots = [slot for slot in lasting if slot.kind == "slot" and slot.takes_jobs]
        return [
            *openings(job.size, job.clauses, pilots, slots),
            *without_clause(job.clauses, pilots, slots),
        ]

    def units(self, entries: Iterable[EntryKey]) -> int | None:
        """Return the capacity of entries in canonical units; None unless all are known."""
        return known_sum(
            row.capacity_units if (row := self.entries.get(key)) else None for key in entries
        )

    @cached_property
    def impassable(self) -> list[ClauseCount]:
        """Clauses of the job's Requirements that no empty pilot passes.

        What is not known of a pilot that nobody has seen is no hope where pilots are seen.
        """
        seen = any(place.evidence == "measured" for place in self.pilots)
        return [
            count
            for count in counts(self.job.clauses, self.pilots)
            if not count.passed and (seen or not count.untold)
        ]

    @cached_property
    def unseen(self) -> tuple[int, ...]:
        """Clauses that no pilot passes that is seen, and where it could run nobody knows."""
        seen = [set(place.blocked) for place in self.places if place.evidence == "measured"]
        untold = [set(place.untold) for place in self.fitting]
        return tuple(sorted(set.intersection(*seen, *untold))) if seen and untold else ()

    def lives_long_enough(self, place: JobPlace) -> bool:
        """Return whether a place runs jobs for as long as the job says it takes."""
        walltime, left = self.job.walltime_s, place.remaining_s
        return walltime is None or left is None or walltime <= left

    def sure(self, *proofs: Proof) -> Proof:
        """Return what an answer rests on that needs all of these, and all that was to be read."""
        return Proof.NOT_KNOWN if self.missing else weaker(*proofs)

    @property
    def refused(self) -> Proof:
        """What rests on that no empty pilot takes the job."""
        return self.sure(none_runs(self.pilots))
