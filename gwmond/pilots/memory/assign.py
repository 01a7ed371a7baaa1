"""Assign: which pilot each fact is of.  Here pilots begin, and change their names.

Units: times are microseconds since the epoch.

============================ ===================================================================
an ad                        the same startd (name and start), else the same job of the factory,
                             else a pilot of that name which only records of jobs have, else one
                             of that job of which only files tell
an ad that validation failed the same job of the factory, else the startd's name
a job's record               the same startd, else the job of the factory that it names, else one
                             of its startd's name that was there then
a pilot's output             the startd's name, else the job at its entry, by whose and when
a job of the factory         see ``queue_matching``
a line of a central log      see ``log_lines``
============================ ===================================================================

What nothing fits is a new pilot.  A pilot has a new name at once; the time that was posted under
the former name is moved when the pilot is posted next.
"""

from __future__ import annotations

from gwmond.model.factory.jobs import ZONES_US, place_name
from gwmond.model.facts import EntryKey, Pilot
from gwmond.model.names import OTHER, OTHER_ENTRY, Names
from gwmond.model.pilot_life import SizeStep
from gwmond.model.pilots.file_facts import PilotOutput, is_synthetic, same_user, synthetic_name
from gwmond.model.pilots.pilot_facts import PilotFacts, Restart, replace
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.runs.run_facts import JobRecord, RunFact
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import FAR_US, Rules
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.ends import is_failed, is_given_up, known_start, may_run_at
from gwmond.pilots.memory.open_pilot import OpenPilot

_LATER_S = 30
_SAME_US = 60 * SECOND_US
"""No pilot's output has its beginning in two ways that differ more."""


class PilotAssignment:
    """Finds the pilots in memory that facts are of; makes pilots and gives them names."""

    def __init__(
        self, cache: PilotCache, rules: Rules, next_id: int, names: Names | None = None
    ) -> None:
        """``names`` says which names of places are kept apart; None: all."""
        self._cache, self._rules, self._next_id, self._names = cache, rules, next_id, names

    def add(self, identity: PilotIdentity, facts: PilotFacts) -> OpenPilot:
        """Return a new pilot; an identity that an ad tells is kept apart already."""
        number, self._next_id = self._next_id, self._next_id + 1
        named = identity if identity.origin == "collector" else self.kept_apart(identity)
        return self._cache.add_pilot(OpenPilot.new(number, named, facts))

    def rename(self, pilot: OpenPilot, named: PilotIdentity) -> None:
        """Take a pilot for another one than before; one that was set aside stays so."""
        identity = self.kept_apart(named, pilot.identity)
        if identity == pilot.identity or self._cache.is_aside(pilot):
            return
        self._cache.unindex(pilot)
        pilot.identity, pilot.dirty = identity, True
        self._cache.index(pilot)
        pilot.derive()
        pilot.mark_changed(pilot.start_us)  # to be counted again

    def kept_apart(
        self, identity: PilotIdentity, before: PilotIdentity | None = None
    ) -> PilotIdentity:
        """Return an identity under names that are kept apart (``model.names``).

        A pilot that was accounted as one of many (``before``) stays so.  An entry that is known
        from files is its factory's own, so only the site is a name that anybody could choose.
        """
        if before is not None and before.key == OTHER_ENTRY:
            return identity._replace(key=before.key, group=before.group)
        files = identity.origin == "files"
        if self._names is None or (files and identity.key.site == OTHER):
            return identity
        key, group = self._names.admit(identity.key, identity.group)
        if key == OTHER_ENTRY and files:
            return identity._replace(key=EntryKey(OTHER, identity.key.entry))
        return identity._replace(key=key, group=group)

    def pilot_of_ad(self, shown: Pilot) -> OpenPilot | None:
        """Return the pilot that an ad is of: the same startd, or the same job of the factory."""
        same = self._cache.by_name.get(shown.name, [])
        for pilot in same:
            if pilot.identity.started == shown.started:
                return pilot
        for pilot in same:
            if shown.factory_job and pilot.identity.factory_job == shown.factory_job:
                return pilot
        guard = self._rules.start_guard_us
        for pilot in same:
            began = shown.started and pilot.last_heard_us >= shown.began * SECOND_US - guard
            if pilot.known_from_jobs_only and began:
                return pilot
        from_files = self._known_from_files(shown) if shown.factory_job else None
        if from_files is None and not shown.started:
            return next((pilot for pilot in same if pilot.end_us is None), None)
        return from_files

    def _known_from_files(self, shown: Pilot) -> OpenPilot | None:
        """Return the pilot known only from its factory's files so far."""
        here = self._cache.at_place(shown.entry.entry, shown.factory_job.rpartition("#")[2])
        if shown.entry == OTHER_ENTRY:
            here += self._cache.by_job.get(shown.factory_job, ())
        for pilot in here:
            near = pilot.start_us - ZONES_US <= shown.began * SECOND_US <= pilot.effective_end_us
            if near and pilot.no_output:
                return pilot
            same_job = pilot.identity.factory_job == shown.factory_job
            if same_job and may_run_at(pilot, shown.began * SECOND_US):
                return pilot
        return None

    def pilot_of_failed_ad(self, shown: Pilot) -> OpenPilot | None:
        """Return the pilot that only advertises that its validation failed, if it is known."""
        cache = self._cache
        if shown.factory_job:
            here = cache.at_place(shown.entry.entry, shown.factory_job.rpartition("#")[2])
            queued = [pilot for pilot in here if pilot.no_output]
            pilots = cache.by_job.get(shown.factory_job) or queued
        else:
            pilots = [pilot for pilot in cache.by_name.get(shown.name, ()) if is_failed(pilot)]
        first_us = min(shown.started, shown.last_heard) * SECOND_US
        same = [pilot for pilot in pilots if first_us <= pilot.effective_end_us + pilot.lifetime_us]
        return max(same, key=lambda pilot: pilot.start_us, default=None)

    def pilot_of_record(self, record: JobRecord) -> OpenPilot | None:
        """Return the pilot on which a job ran: the same startd, else a pilot that was there then.

        Of those that were there, first the job of the factory that the record names.
        """
        same = self._cache.by_name.get(record.startd, [])
        if record.started is not None:
            for pilot in same:
                if pilot.identity.started == record.started:
                    return pilot
        time_us, guard = first_time_us(record.fact), self._rules.start_guard_us
        if job := record.factory_job:
            number = job.rpartition("#")[2]
            files = self._cache.at_place(record.entry, number) + self._cache.by_job.get(job, [])
            same = [*same, *(pilot for pilot in files if is_synthetic(pilot.identity.name))]
        fitting = [
            pilot
            for pilot in same
            if pilot.start_us - guard <= time_us
            and time_us <= (FAR_US if is_given_up(pilot) else pilot.end_us or FAR_US) + guard
            and self._may_be_started(pilot, record.started)
            and _may_be_job(pilot.identity.factory_job, job)
        ]
        exact = [pilot for pilot in fitting if job and pilot.identity.factory_job == job]
        return max(exact or fitting, key=lambda pilot: pilot.start_us, default=None)

    def begun_earlier(self, record: JobRecord) -> OpenPilot | None:
        """Return the pilot of the same factory's job whose known startd came later.

        Its ads were seen before the records of jobs on its first startd were read: the pilot began
        with the first.
        """
        job, started = record.factory_job, record.started
        if not job or started is None:
            return None
        for pilot in self._cache.by_name.get(record.startd, ()):
            ads, identity = pilot.facts.ads, pilot.identity
            if identity.factory_job != job or identity.started <= started:
                continue
            if ads is None or ads.began_us is None or not ads.sizes:
                continue
            start_us, first, sizes = started * SECOND_US, ads.sizes[0], ads.sizes[1:]
            again = Restart(ads.began_us, ads.began_us)
            first = SizeStep(start_us, first.size, first.least)
            ads = replace(ads, began_us=start_us, restarts=(again, *ads.restarts))
            pilot.learn(replace(pilot.facts, ads=replace(ads, sizes=(first, *sizes))))
            self.rename(pilot, identity._replace(started=started))
            return pilot
        return None

    def _may_be_started(self, pilot: OpenPilot, started: int | None) -> bool:
        """Return whether a pilot's startd may have been started then, though it first was not.

        A pilot's master starts its startd again; a claim's number has the time when the startd was
        ready, and its ad when its process began; when a pilot known from jobs only began may not be
        known.
        """
        if started is None or pilot.identity.factory_job:
            return True
        if 0 <= started - pilot.identity.started <= _LATER_S:
            return True
        return (
            pilot.known_from_jobs_only
            and pilot.start_us >= started * SECOND_US - self._rules.start_guard_us
        )

    def pilot_of_output(self, output: PilotOutput) -> OpenPilot | None:
        """Return the pilot whose output this is: by its startd's name, else by its job."""
        for pilot in self._cache.by_name.get(startd_of(output), ()):
            later = output.start_us is None or pilot.start_us >= output.start_us
            if later and _may_be_output_of(pilot, output):
                return pilot
        here = self._cache.at_place(output.name.entry, number_of(output))
        near = [pilot for pilot in here if _may_be_output_of(pilot, output)]
        return min(near, key=lambda pilot: (*_apart(pilot, output), pilot.id), default=None)


def _may_be_job(pilot_job: str, job: str) -> bool:
    """Return whether two names of jobs of a factory may be of one; one may lack the schedd."""
    if not pilot_job or not job or pilot_job == job:
        return True
    return pilot_job[:1] == "#" and job.endswith(pilot_job)


def first_time_us(fact: RunFact) -> int:
    """Return when a run began, else when it ended, else when that was written."""
    for time_us in (fact.start_us, fact.end_us):
        if time_us is not None:
            return time_us
    return fact.written_us


# --- Outputs of pilots ---------------------------------------------------------------------------


def startd_of(output: PilotOutput) -> str:
    """Return the startd's name, else one of the pilot's own that it alone has at its entry."""
    pilot_name = output.name
    if pilot_name.startd:
        return (
            pilot_name.startd
            if "@" in pilot_name.startd or not pilot_name.node
            else f"{pilot_name.startd}@{pilot_name.node}"
        )
    return synthetic_name(
        number_of(output),
        "" if pilot_name.schedd else pilot_name.user,
        pilot_name.instance,
        pilot_name.entry,
    )


def number_of(output: PilotOutput) -> str:
    """Return ``cluster.proc`` of a pilot's job in its factory."""
    return f"{output.name.cluster}.{output.name.proc}"


def place_of_output(output: PilotOutput) -> str:
    """Return where facts of the factory's queue and summary are of an output's pilot."""
    return place_name(output.name.entry, number_of(output))


def _may_be_output_of(pilot: OpenPilot, output: PilotOutput) -> bool:
    """Return whether no other schedd is known for a pilot, and its time is about the output's."""
    job, pilot_job = output.name.factory_job, pilot.identity.factory_job
    if job and pilot_job and pilot_job != job and not pilot_job.startswith("#"):
        return False
    if job != pilot_job and not same_user(pilot.identity.name, output.name.user):
        return False
    times = output.times
    if not times:
        return True
    begins = known_start(pilot) and output.start_us is not None
    if begins and abs(pilot.start_us - (output.start_us or 0)) > _SAME_US:
        return False  # what it runs as starts again, and its output is written anew
    return (
        pilot.start_us - ZONES_US <= max(times) and min(times) <= pilot.effective_end_us + ZONES_US
    )


def _apart(pilot: OpenPilot, output: PilotOutput) -> tuple[int, int]:
    """Return how far a pilot's life and its output are apart, and their beginnings."""
    first_us, last_us = min(output.times, default=0), max(output.times, default=0)
    start_us = output.start_us if output.start_us is not None else first_us
    apart_us = max(0, first_us - pilot.effective_end_us, pilot.start_us - last_us)
    return apart_us, abs(start_us - pilot.start_us)
