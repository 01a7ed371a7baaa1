"""What a factory's files report of pilots: their outputs, its queue, its summary.

Units: times are microseconds since the epoch.

Queue and summary do not have the schedd, so they meet what else is known by entry and
``cluster.proc``, and by time (see ``queue_matching``).  Where two pilots or two jobs may be meant,
none is used (``ambiguous``).  What is reported waits in the ledger for its pilot.  Each execution
of a job is a pilot (see ``records``).  Order of evidence: design page, section 3.

===================== =========================================================================
no end in the output  the queue's end, if it is not before the last contact (or the last time in
                      the output); what lies between is estimated.  Without the queue: the
                      summary's duration, not beyond the time when the summary was written
no beginning in the   the queue's start, if it is not after the first time in the output;
output                what lies between is estimated
no output, no ad      the queue's start and end; else it ended when the summary was written, and had
                      lasted as long as that says; all of it is estimated (``no_output``), its size
                      is the entry's usual one, and what it did is in ``summaries``.  This waits
                      for something better for ``quiet`` after its end
started, and no end   it is waited for as long as it may run (``AGE_US``), and then counted
                      (``no_times``)
never started         it used no time: no pilot
===================== =========================================================================

Where better is known a summary is only compared with it: a duration that differs by more than a
tenth and a minute, and whether HTCondor started, count as contradictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gwmond.model.factory.jobs import FactoryJob, QueueRecord
from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.file_facts import CompletedPilot, FileFact, PilotOutput, QueueEvent
from gwmond.model.pilots.pilot_facts import Decisions, PilotFacts
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.poll.pilot_keys import PilotKeys, PilotRows
from gwmond.model.problem_names import ProblemName
from gwmond.pilots.factory import records, summaries
from gwmond.pilots.factory.entry_defaults import Entries, KnownPilots
from gwmond.pilots.factory.outputs import Outputs
from gwmond.pilots.factory.queue_matching import (
    QueueMatching,
    amend,
    identity_of,
    named,
)
from gwmond.pilots.factory.queue_records import QueueRecords
from gwmond.pilots.factory.records import NewFact, PlaceFact
from gwmond.pilots.factory.summaries import contradictions
from gwmond.pilots.life.derive import MEASURED_ENDS
from gwmond.pilots.life.rules import FAR_US, ExpectedInput, sane
from gwmond.pilots.memory.cache import place_of
from gwmond.pilots.memory.ends import give_up, read_until, waits_until
from gwmond.pilots.memory.open_pilot import OpenPilot


class FactoryFacts:
    """Hands each kind of fact to what joins it with pilots; ``places`` is what waits for them.

    Lets pilots be what was reported at places, and makes those that nothing else has.
    """

    def __init__(self, pilots: KnownPilots) -> None:
        self._cache, self._assignment, self._sizes, self._matcher, self._rules = pilots
        self._entries = Entries(pilots.sizes, pilots.cache)
        self._outputs = Outputs(pilots, self._entries)
        self.places = QueueRecords()
        self._now_us, self._expected = 0, ExpectedInput.EVERYTHING  # as it was settled last

    @property
    def left_out(self) -> Counter[ProblemName]:
        """How many facts could not be accounted so far, by the reason.

        Without outputs without a time, which are named when they are read.
        """
        left_out = Counter({ProblemName.BAD_TIME: self._outputs.absurd})
        left_out[ProblemName.TOO_MANY_RUNS] = self._outputs.crowded
        left_out.update(self.places.left_out)
        return left_out

    def shown(self, reason: ProblemName, number: int) -> str:
        """Say how many facts could not be accounted, and the latest of their pilots, if known."""
        name = self.places.named.get(reason)
        return f"{number} records" + (f", the latest of the pilot {name}" if name else "")

    def resized(self, pilot: OpenPilot) -> None:
        """Say that its cores are others: what a summary reports of it is used anew."""
        if pilot.identity.factory_job and not pilot.pruned:
            self.places.change(place_of(pilot.identity))

    @property
    def entries(self) -> frozenset[str]:
        """The entries for which files have reported since the start."""
        return frozenset(self._entries.known)

    def keys(self, facts: Sequence[FileFact]) -> PilotKeys:
        """Return the keys of what may be stored of the pilots and places of facts."""
        self._entries.forget_old()
        keys = self._outputs.keys([fact for fact in facts if isinstance(fact, PilotOutput)])
        keys.update(self.places.keys(_of_places(facts)))
        return keys

    def load(self, rows: PilotRows) -> None:
        """Take in what was fetched."""
        self._entries.load(rows.keys.entries, rows.entries)
        self.places.load_stored(rows)

    def take(self, facts: Sequence[FileFact]) -> list[NewFact]:
        """Take in facts; return those of the factory that it had not reported before.

        Those that wait for missing runs are taken in when this is called again.
        """
        outputs = [fact for fact in facts if isinstance(fact, PilotOutput)]
        self.places.reported(self._outputs.take(outputs))
        return self.places.take(_of_places(facts))

    def settle(self, now_us: int, expected: ExpectedInput) -> None:
        """Use what can be used by now, and by what more may be reported."""
        self._now_us, self._expected = now_us, expected
        for pilot in self._cache.pilots.values():
            if pilot.changed_since_us < FAR_US and pilot.end_us is not None:
                self._mark_changed(pilot)
        for name in self.places.due(now_us, self._late_us, self._cache.missing):
            if self._entries.unknown([self.places[name].entry]):
                self._cache.missing.entries.add(self.places[name].entry)
                self.places.change(name)
            else:
                self._decide(name)
        for pilot in self._cache.pilots.values():
            if pilot.end_unknown:
                place = place_of(pilot.identity)
                if place not in self.places and not self.places.is_missing(place):
                    give_up(pilot)

    def _mark_changed(self, pilot: OpenPilot) -> None:
        """Say that more is known of a pilot: what was reported at its place is used anew."""
        if not pilot.identity.factory_job or pilot.pruned:
            return
        name = place_of(pilot.identity)
        if name in self.places or not pilot.no_output:
            self.places.change(name)

    @property
    def _late_us(self) -> int:
        """Up to when it was waited for files."""
        return self._now_us + self._expected.files_ahead_us

    def _decide(self, name: str) -> None:
        """Use what is reported at a place; once more later, if runs of a pilot are missing."""
        place, told_us = self.places[name], self.places.told_us(name, self._now_us)
        here = self._cache.at_place(place.entry, place.number)
        made = [pilot for pilot in here if pilot.no_output]
        shown = [pilot for pilot in here if not pilot.no_output]
        jobs = records.jobs(place)
        matches = QueueMatching(place, jobs, shown, made)
        used = {pilot.id: jobs[index] for index, pilot in matches.told.items()}
        waits = False
        for pilot in shown:
            waits |= pilot.end_unknown and self._goes_on(pilot, place, used.get(pilot.id), told_us)
        for index, job in enumerate(jobs):
            due_us = job.due_us(told_us, self._rules.quiet_us)
            late = due_us is not None and (self._now_us if job.runs else self._late_us) >= due_us
            same = matches.told.get(index) or matches.made.get(index)
            if same is not None:
                done = same.pruned or self._use(same, job, place, late=late)
            elif index in matches.alone:
                done = self._alone(place, job, late=late)
            else:
                done = late and (
                    index in matches.covered or self.places.leave(name, ProblemName.AMBIGUOUS)
                )
            waits |= not done
            if not done and not late and due_us is not None:
                self.places.again(name, due_us)
        for pilot in shown:
            if pilot.id not in used and not pilot.pruned and pilot.start_us >= place.cut_us:
                amend(pilot, None)
                self._name(pilot, named(pilot, None))
                self._tell_line(pilot, None, name)
        for pilot in matches.stale:
            self._withdraw(pilot, name)
        self.places.keep(name, waits=waits)

    def _goes_on(
        self, pilot: OpenPilot, place: QueueRecord, job: FactoryJob | None, told_us: int
    ) -> bool:
        """Return whether a pilot without an end is taken to run; if not, let it have ended."""
        now_us = self._now_us
        ended = job is not None and not job.runs
        until_us = job.due_us(told_us, self._rules.quiet_us) if job and ended else None
        if until_us is not None:
            now_us = self._late_us
        elif self._expected is ExpectedInput.NOTHING:
            until_us = read_until(pilot, told_us, self._rules)
        else:
            written_us = place.written_us(pilot.start_us)
            unread = self.places.unread(place.name)
            until_us = waits_until(pilot, job, written_us, told_us, self._rules, unread=unread)
        if now_us < until_us:
            self.places.again(place.name, until_us)
            return True
        give_up(pilot)
        return False

    def _has_whole(self, pilot: OpenPilot, place: str) -> bool:
        """Return whether all runs of a pilot are in memory; if not, the place is due again."""
        if self._cache.has_whole(pilot):
            return True
        self.places.change(place)
        return False

    def _withdraw(self, pilot: OpenPilot, place: str) -> None:
        """Take out a pilot that was made of a job which by now is another, or another's."""
        if pilot.pruned or not self._has_whole(pilot, place):
            return
        if all(run.summarised for run in pilot.runs.values()):
            self._cache.withdraw(pilot)

    def _alone(self, place: QueueRecord, job: FactoryJob, *, late: bool) -> bool:
        """A job of which no pilot is known; return whether nothing more is expected of it."""
        has_run = job.started_us is not None or job.line is not None
        if late and job.life is not None and sane(*job.life):
            self._make(place, job)
        elif late and has_run:
            self.places.leave(place.name, ProblemName.NO_TIMES)
        return late or (job.over and not has_run)

    def _use(self, pilot: OpenPilot, job: FactoryJob, place: QueueRecord, *, late: bool) -> bool:
        """A job that is this pilot; return whether it can say nothing more of it."""
        if pilot.no_output:
            has_life = job.life is not None and sane(*job.life)
            if has_life and self._has_whole(pilot, place.name):
                self._name(
                    pilot, identity_of(place, job, pilot.identity.key.site, pilot.identity.factory)
                )
                self._shape(pilot, job)
        else:
            amend(pilot, job)
            self._name(pilot, named(pilot, job))
            for word in contradictions(pilot, job):
                self._matcher.contradictions[word] += self.places.once(place.name, word)
            self._tell_line(pilot, job.line, place.name)
        return _is_done(pilot, job, late=late)

    def _tell_line(self, pilot: OpenPilot, line: CompletedPilot | None, place: str) -> None:
        if summaries.tells_more(pilot, line) and self._has_whole(pilot, place):
            summaries.tell_line(pilot, line, self._matcher)

    def _make(self, place: QueueRecord, job: FactoryJob) -> None:
        """Make a pilot of a job that no other source has."""
        if job.life is None:
            return
        site = self._entries.site(place.entry) or place.entry
        identity = identity_of(place, job, site, self._entries.factory(place.entry))
        never_seen = 0 < self._cache.looks.watched_us <= job.life[0]
        facts = PilotFacts(queue=job.facts, decisions=Decisions(never_seen=never_seen))
        self._shape(self._assignment.add(identity, facts), job)

    def _name(self, pilot: OpenPilot, identity: PilotIdentity) -> None:
        """Give a pilot the name and group that its factory reports now."""
        if identity._replace(started=pilot.identity.started) != pilot.identity:
            self._assignment.rename(pilot, identity)

    def _shape(self, pilot: OpenPilot, job: FactoryJob) -> None:
        default = pilot.facts.decisions.size  # what was assumed first stays
        summaries.shape(pilot, job, default or self._sizes.default(pilot), self._matcher)


def _of_places(facts: Sequence[FileFact]) -> list[PlaceFact]:
    """Return the facts that are of a job of a factory."""
    return [fact for fact in facts if isinstance(fact, QueueEvent | CompletedPilot | PilotOutput)]


def _is_done(pilot: OpenPilot, job: FactoryJob, *, late: bool) -> bool:
    """Return whether a job can say nothing more of its pilot."""
    if pilot.end_source in MEASURED_ENDS and Assumption.BEGIN not in pilot.assumed:
        return job.settled_us is not None or pilot.end_source == "pilot_output"
    return late and pilot.end_us is not None
