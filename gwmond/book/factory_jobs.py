"""What a factory's queue and summary tell meets pilots.

Units: times are microseconds since the epoch.

Neither tells the schedd, so they meet what else is known by entry and ``cluster.proc``, and by
time (see ``same_job``).  Where two pilots or two jobs may be meant, none is used (``ambiguous``).
What is told waits in the ledger for its pilot.  Each execution of a job is a pilot (see
``queue_jobs``).  Order of evidence: design page, section 3.

===================== =========================================================================
killed hard, or no    the queue's end, if it is not before the last contact (or the last thing that
end in the output     the output tells); what lies between is estimated.  Without the queue: the
                      summary's duration, not beyond the time when the summary was written
no beginning in the   the queue's start, if it is not after the first thing that the output tells;
output                what lies between is estimated
no output, no ad      the queue's start and end; else it ended when the summary was written, and had
                      lasted as long as that says; all of it is estimated (``no_output``), its size
                      is the entry's usual one, and what it did is in ``summaries``.  This waits
                      for something better for ``quiet`` after its end
never started         it used no time: no pilot
===================== =========================================================================

Where better is known a summary is only compared with it: a duration that differs by more than a
tenth and a minute, and whether HTCondor started, count as contradictions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from gwmond.accounting import factory_jobs
from gwmond.accounting.factory_jobs import NewFact, Place, PlaceFact, place_name
from gwmond.accounting.pilot_evidence import CompletedPilot, PilotOutput
from gwmond.accounting.pilot_facts import Assumption, Validation
from gwmond.accounting.queue_jobs import FactoryJob
from gwmond.book import summaries
from gwmond.book.agenda import Agenda
from gwmond.book.contradictions import contradictions
from gwmond.book.entries import Entries
from gwmond.book.factory_pilots import amend, identity_of, release
from gwmond.book.joining import Joining
from gwmond.book.open_pilot import OpenPilot
from gwmond.book.rules import Lookup, Rules, sane
from gwmond.book.same_job import KNOWN_ENDS, Matches
from gwmond.book.shelf import Shelf, place_of
from gwmond.book.sightings import Sightings
from gwmond.book.unended import give_up, waits_until
from gwmond.ledger.pilot_model import PilotIdentity


class FactoryJobs:
    """Places of which more may follow; ``left_out`` counts what could not be used, and why."""

    def __init__(
        self, shelf: Shelf, sightings: Sightings, joining: Joining, entries: Entries, rules: Rules
    ) -> None:
        self._shelf = shelf
        self._sightings = sightings
        self._joining = joining
        self._entries = entries
        self._rules = rules
        self._places: dict[str, Place] = {}
        self._told_us: dict[str, int] = {}
        self._changed: set[str] = set()
        self._fresh: set[str] = set()
        self._dirty: set[str] = set()
        self._agenda = Agenda()
        self.ahead_us = 0  # how much later it is for what waits
        self._hurried = False  # no source tells more, not even a daemon's
        self.left_out: Counter[str] = Counter()

    def load(self, places: Iterable[Place]) -> None:
        """Go on with places that are open."""
        for place in places:
            self._places[place.name] = place
            self._changed.add(place.name)
            self._fresh.add(place.name)

    def take(self, facts: Sequence[PlaceFact], lookup: Lookup) -> list[NewFact]:
        """Take in events and lines, and that outputs have come; return those not told before.

        What is of no place, or of no time that makes sense, is among them.
        """
        told: defaultdict[tuple[str, str], list[PlaceFact]] = defaultdict(list)
        new: list[NewFact] = []
        for fact in facts:
            name = fact.name
            at_us = fact.written_us if isinstance(fact, CompletedPilot) else fact.at_us
            if not sane(at_us):
                self.left_out["bad_time"] += not isinstance(fact, PilotOutput)
                new.append(fact)
            elif name.cluster is not None and name.proc is not None:
                told[name.entry, f"{name.cluster}.{name.proc}"].append(fact)
            else:
                new.append(fact)
        unknown = {place_name(*of) for of in told} - self._places.keys()
        stored = lookup.find_places(unknown) if unknown else {}
        for of, some in told.items():
            name_ = place_name(*of)
            before = self._places.get(name_) or stored.get(name_) or Place(*of, open=False)
            after = before.told(some)
            new += before.new(some, after)
            if after == before:
                continue
            more = after._replace(outputs=before.outputs) != before
            self._places[name_] = after._replace(open=True) if more else after
            self._dirty.add(name_)
            self._changed.add(name_)
            self._fresh |= {name_} if more or name_ in stored else set()
        return new

    def touch(self, pilot: OpenPilot) -> None:
        """Say that more is known of a pilot: what was told at its place is used anew."""
        if not pilot.identity.factory_job or pilot.pruned:
            return
        name = place_of(pilot.identity)
        if name in self._places or Assumption.NO_OUTPUT not in pilot.assumed:
            self._changed.add(name)

    def reported(self, places: Collection[str]) -> None:
        """Say that outputs at places have come: all that is told there is used anew."""
        self._changed.update(places)
        self._fresh.update(places)

    def knows(self, pilot: OpenPilot) -> bool:
        """Return whether what was told at a pilot's place is in memory."""
        return place_of(pilot.identity) in self._places

    def settle(self, now_us: int, clock_us: int, watched_us: int | None, lookup: Lookup) -> None:
        """Use what can be used; collectors were watched without a gap since ``watched_us``.

        ``clock_us`` is the time by the clock, ``now_us`` for what waits.
        """
        self._hurried = now_us > clock_us
        told_us, now_us = now_us, now_us + self.ahead_us
        self._changed |= self._agenda.take(now_us)
        if not self._changed:
            return
        unknown = self._changed - self._places.keys()
        stored = lookup.find_places(unknown) if unknown else {}
        self._places |= stored
        self._fresh |= stored.keys()  # so that what is open again is waited for, but not for ever
        names = sorted(self._changed & self._places.keys())
        self._told_us |= dict.fromkeys(self._fresh & self._places.keys(), told_us)
        self._fresh.clear()
        self._changed.clear()
        numbers = {self._places[name].number for name in names}
        for rows in lookup.find_factory_numbers(numbers).values():
            self._shelf.recall_pilots(rows)
        self._entries.recall({self._places[name].entry for name in names}, lookup)
        for name in names:
            self._decide(name, (now_us, clock_us), watched_us, lookup)

    def leave_out(self, name: str) -> None:
        """Forget what is not stored of a place, as it cannot be."""
        self._places.pop(name, None)
        self._told_us.pop(name, None)
        for names in (self._dirty, self._changed, self._fresh):
            names.discard(name)

    def rows(self) -> tuple[Place, ...]:
        """Return the places that are not stored as they are."""
        return tuple(self._places[name] for name in sorted(self._dirty))

    def stored(self) -> None:
        """Say that they are stored; forget those of which nothing more is expected."""
        self._dirty.clear()
        for name in [name for name, of in self._places.items() if not of.open]:
            if name not in self._changed:
                del self._places[name]
                self._told_us.pop(name, None)

    def _decide(
        self, name: str, now: tuple[int, int], watched_us: int | None, lookup: Lookup
    ) -> None:
        """Use what is told at a place; ``now``: for what waits, and by the clock."""
        place, now_us = self._places[name], now[0]
        here = list(self._shelf.by_place.get(name, ()))
        made = [pilot for pilot in here if Assumption.NO_OUTPUT in pilot.assumed]
        told = [pilot for pilot in here if pilot not in made]
        jobs = factory_jobs.jobs(place)
        matches = Matches(place, jobs, told, made)
        used = {pilot.id: jobs[index] for index, pilot in matches.told.items()}
        waits = False
        for pilot in told:
            waits |= pilot.waits and self._goes_on(pilot, name, used.get(pilot.id), now)
        for index, job in enumerate(jobs):
            due_us = self._due(job, self._told_us.get(name, now_us))
            late = due_us is not None and now_us >= due_us
            same = matches.told.get(index) or matches.made.get(index)
            if same is not None:
                done = same.pruned or self._use(same, job, place, lookup, late=late)
            elif index in matches.alone:
                done = self._alone(place, job, watched_us, late=late)
            else:
                done = late and (index in matches.covered or self._once(place, "ambiguous"))
            waits |= not done
            if not done and not late and due_us is not None:
                self._agenda.add(name, due_us)
        for pilot in told:
            if pilot.id not in used and not pilot.pruned and pilot.start_us >= place.cut_us:
                release(pilot)
                self._tell_line(pilot, None, lookup)
        for pilot in matches.stale:
            self._withdraw(pilot, lookup)
        place = self._places[name]
        if place.open is not waits:
            self._places[name] = place._replace(open=waits)
            self._dirty.add(name)

    def _goes_on(
        self, pilot: OpenPilot, name: str, job: FactoryJob | None, now: tuple[int, int]
    ) -> bool:
        """Return whether a pilot without an end is taken to run; if not, let it have ended."""
        now_us, clock_us = now
        told_us = self._told_us.get(name, clock_us)
        until_us = self._due(job, told_us) if job is not None else None
        if until_us is None:
            quiet_us, hurried, now_us = self._rules.quiet_us, self._hurried, clock_us
            until_us = waits_until(pilot, job, told_us, quiet_us, hurried=hurried)
        if now_us < until_us:
            self._agenda.add(name, until_us)
            return True
        give_up(pilot)
        return False

    def _withdraw(self, pilot: OpenPilot, lookup: Lookup) -> None:
        """Take out a pilot that was made of a job which by now is another, or another's."""
        self._shelf.load_whole(pilot, lookup)
        if not pilot.pruned and all(of.summarised for of in pilot.attempts.values()):
            self._shelf.withdraw(pilot)

    def _due(self, job: FactoryJob, told_us: int) -> int | None:
        """Return when a job is not waited for any more; None as long as it is not over."""
        if job.settled_us is None:
            return None
        return max(told_us, job.settled_us) + self._rules.quiet_us

    def _alone(self, place: Place, job: FactoryJob, watched_us: int | None, *, late: bool) -> bool:
        """A job of which no pilot is known; return whether nothing more is expected of it."""
        told = job.started_us is not None or job.line is not None
        if late and job.life is not None and sane(*job.life):
            self._make(place, job, watched_us)
        elif late and told:
            self._once(place, "no_times")
        return late or (job.over and not told)

    def _use(
        self, pilot: OpenPilot, job: FactoryJob, place: Place, lookup: Lookup, *, late: bool
    ) -> bool:
        """A job that is this pilot; return whether it can tell nothing more of it."""
        if Assumption.NO_OUTPUT in pilot.assumed:
            if job.life is not None and sane(*job.life):
                self._shelf.load_whole(pilot, lookup)
                self._name(
                    pilot, identity_of(place, job, pilot.identity.key.site, pilot.identity.factory)
                )
                self._shape(pilot, job)
        else:
            amend(pilot, job)
            for word in contradictions(pilot, job):
                self._once(place, word, self._joining.contradictions)
            self._tell_line(pilot, job.line, lookup)
        return _is_done(pilot, job, late=late)

    def _tell_line(self, pilot: OpenPilot, line: CompletedPilot | None, lookup: Lookup) -> None:
        if summaries.tells_more(pilot, line):
            self._shelf.load_whole(pilot, lookup)
            summaries.tell_line(pilot, line, self._joining)

    def _make(self, place: Place, job: FactoryJob, watched_us: int | None) -> None:
        """Let there be a pilot that nothing else tells of."""
        if job.life is None:
            return
        site = self._entries.site(place.entry) or place.entry
        identity = identity_of(place, job, site, self._entries.factory(place.entry))
        pilot = self._sightings.imply(None, job.life[0], identity)
        pilot.validation = Validation.UNKNOWN
        self._shape(pilot, job)
        if watched_us is not None and watched_us <= pilot.start_us:
            summaries.fail(pilot)

    def _name(self, pilot: OpenPilot, identity: PilotIdentity) -> None:
        """Give a pilot the name and group that its factory tells now."""
        if identity._replace(started=pilot.identity.started) != pilot.identity:
            self._sightings.relabelled.append((pilot, identity))

    def _shape(self, pilot: OpenPilot, job: FactoryJob) -> None:
        filled = self._sightings.sizes.fill(pilot.identity.key.entry)
        size = filled.size
        if Assumption.SIZE in pilot.assumed and pilot.steps:
            size = pilot.steps[0].size  # what was assumed first stays
        summaries.shape(pilot, job, size, self._joining)
        for rule in filled.rules & {Assumption.GPUS}:
            pilot.assume(rule, pilot.start_us, pilot.until_us)

    def _once(self, place: Place, word: str, counter: Counter[str] | None = None) -> bool:
        """Count a word, once for a place; return True."""
        place = self._places[place.name]
        if word not in place.checked:
            (self.left_out if counter is None else counter)[word] += 1
            self._places[place.name] = place._replace(checked=(*place.checked, word))
            self._dirty.add(place.name)
        return True


def _is_done(pilot: OpenPilot, job: FactoryJob, *, late: bool) -> bool:
    """Return whether a job can tell nothing more of its pilot."""
    if pilot.ended in KNOWN_ENDS and Assumption.BEGIN not in pilot.assumed:
        return job.settled_us is not None or pilot.ended == "reported"
    return late and pilot.end_us is not None
