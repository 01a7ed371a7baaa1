"""Records of jobs are joined to runs, and runs to pilots.

Units: times are microseconds since the epoch.

A record names its startd and mostly when that was started; by these its pilot is found, else by
name and time.  If there is none, the record is of a pilot that no collector has shown: it is
taken to be as large and to have lasted as long as its jobs, and all of it is estimated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from operator import attrgetter

from gwmond.model.facts import EntryKey, Size
from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.pilot_facts import PilotFacts, RunBounds, replace
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.runs.run_facts import JobRecord, RunFact, Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.merged_runs import Merged, merge_each
from gwmond.pilots.life.rules import Rules, sane
from gwmond.pilots.life.same_run import TOLERANCE_US, claim_of
from gwmond.pilots.memory.assign import PilotAssignment, first_time_us
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun
from gwmond.pilots.runs.later_runs import superseded_otherwise
from gwmond.pilots.runs.starter_runs import known_better, moved_lines

UNKNOWN = "unknown"
_AT_EACH_AD = {"written_us", "start_us", "activated_us"}
"""What may change with each ad of a slot, though its claim is the same."""

_LASTING = attrgetter(*(name for name in RunFact._fields if name not in _AT_EACH_AD))


class RunMatcher:
    """Takes records in; ``contradictions`` counts fields on which sources differ.

    ``homeless`` counts records that name no startd, or of transfers on a pilot that nothing else
    knows, which have no place; ``late`` those of pilots of which runs are
    past their retention, ``absurd`` those with times that no clock shows.
    """

    def __init__(self, cache: PilotCache, assignment: PilotAssignment, rules: Rules) -> None:
        self._cache, self._assignment, self._rules = cache, assignment, rules
        self.contradictions: Counter[str] = Counter()
        self.homeless = 0
        self.late = 0
        self.absurd = 0
        self._summed_up: set[OpenPilot] = set()  # runs are known of what a summary reported of
        self._better: dict[OpenPilot, int] = {}  # since when it has runs that a log may have, too

    def tell(self, records: Iterable[JobRecord]) -> None:
        """Join records with runs, and these with pilots."""
        by_job: defaultdict[str, list[RunFact]] = defaultdict(list)
        for record in records:
            if not _is_sound(record):
                self.absurd += 1
                continue
            known = self._assignment.pilot_of_record(record) if record.startd else None
            if not record.startd or (known is None and record.fact.moves):
                self.homeless += 1
                continue
            pilot = known or self._pilot(record)
            if pilot.pruned:
                self.late += not self._cache.is_aside(pilot)
                continue
            fact = record.fact._replace(pilot=pilot.label, size=_size(record, pilot))
            by_job[record.fact.job].append(pilot.told(fact))
        for job, facts in by_job.items():
            self.add(job, facts)

    def add(self, job: str, facts: Iterable[RunFact]) -> None:
        """Add facts of one job that know their pilot; merge all that is known of it anew."""
        before = [fact for run in self._cache.jobs.get(job, ()) for fact in run.facts]
        reported = list(facts)
        if len(reported) == 1 and before and not any(map(_is_inferred, before)):
            (fact,) = reported
            if fact in before or _Shown(before).has(fact):
                return  # as most claims that slots show
        if not before:
            if reported:
                self._merge(job, set(reported))
            return
        stored, added = set(before), set(reported)
        shown = _Shown(stored)
        new = {fact for fact in added - stored if not shown.has(fact)}
        refuted = {fact for fact in stored if _is_refuted(fact, added)}
        if new or refuted:
            self._merge(job, (stored - refuted) | new)

    def absorb(self) -> None:
        """Take out the runs that only a pilot's logs had, and that a better source has now."""
        cache = self._cache
        for pilot in sorted(self._summed_up, key=lambda pilot: pilot.id):
            in_memory = cache.pilots.get(pilot.id) is pilot
            if in_memory and not cache.has_whole(pilot):
                continue
            self._summed_up.discard(pilot)
            if not in_memory:
                continue
            if pilot.facts.summary is not None:
                summary = replace(pilot.facts.summary, jobs_us=None)
                pilot.learn(replace(pilot.facts, summary=summary))
            for run in [run for run in pilot.runs.values() if run.summarised]:
                self.remove(run)
        pairs: list[tuple[OpenRun, OpenRun]] = []
        for pilot, since_us in list(self._better.items()):
            better = self._known_better(pilot, since_us)
            if better is not None:
                del self._better[pilot]
                pairs += better
        by_job: defaultdict[str, set[RunFact]] = defaultdict(set)
        for run, _ in pairs:
            by_job[run.key.job].update(run.facts)
        for job, gone in by_job.items():
            self._merge(job, {fact for run in cache.jobs[job] for fact in run.facts} - gone)
        for run, better_run in pairs:
            self.add(better_run.key.job, moved_lines(run, better_run))

    def _known_better(
        self, pilot: OpenPilot, since_us: int
    ) -> list[tuple[OpenRun, OpenRun]] | None:
        """Return a pilot's runs of logs, each with the run that it is; None: some are missing."""
        cache, guard_us = self._cache, self._rules.start_guard_us
        if cache.pilots.get(pilot.id) is not pilot or pilot.pruned or pilot.known_from_jobs_only:
            return []
        ended = pilot.end_us is not None and since_us - guard_us <= pilot.loaded_from_us
        if ended and not cache.has_whole(pilot):
            return None
        pairs = list(known_better(pilot.runs.values(), guard_us))
        return pairs if cache.has_jobs({run.key.job for run, _ in pairs}) else None

    def _merge(self, job: str, facts: Collection[RunFact]) -> None:
        """Make the runs of a job from these facts, which are all."""
        before = list(self._cache.jobs.get(job, ()))
        old = {run.key: run for run in before}
        runs: set[OpenRun] = set()
        for merged, its_facts in merge_each(facts):
            run = old.get(merged.key)
            if run is not None and set(its_facts) == set(run.facts):
                runs.add(run)
                continue
            pilot = run.pilot if run is not None else None
            if merged.pilot is not None:
                pilot = self._cache.pilots.get(int(merged.pilot[1:]))
            if pilot is None:
                self.homeless += 1
                continue
            for contradiction in set(merged.contradictions) - set(
                run.merged.contradictions if run is not None else ()
            ):
                self.contradictions[contradiction.field] += 1
            if run is not None and run.pilot is pilot:
                runs.add(run)
                run.replace(merged, its_facts)
            else:
                run = self._new(pilot, merged, its_facts)
                runs.add(run)
            if pilot.end_us is not None and (run.merged.end_us or 0) > pilot.end_us:
                pilot.derive()  # it shows that the pilot was still there
            if not run.summarised and Assumption.JOBS in pilot.assumed:
                self._summed_up.add(pilot)
            if not run.summarised and not job.startswith("#"):
                since_us = self._better.get(pilot, run.start_us)
                self._better[pilot] = min(since_us, run.start_us)
        if len(runs.union(before)) > 1 or not runs:
            self._have_become(job, before, runs)

    def _have_become(self, job: str, before: Iterable[OpenRun], runs: set[OpenRun]) -> None:
        """Take out what are no runs of a job any more, and look at those before and after them."""
        for run in before:
            if run not in runs:
                self.remove(run)
        for run in superseded_otherwise(self._cache.jobs.get(job, ())):
            run.pilot.mark_changed(run.start_us)

    def _new(self, pilot: OpenPilot, merged: Merged, facts: tuple[RunFact, ...]) -> OpenRun:
        run = OpenRun(pilot, merged, facts)
        run.take_place_of(pilot.removed)
        self._cache.add_run(run)
        # What begins now bears on nothing that is posted, but for a pilot's first run.
        if run.merged.ending.over or run.start_us < pilot.known_us or len(pilot.runs) == 1:
            pilot.mark_changed(run.start_us)
        return run

    def remove(self, run: OpenRun) -> None:
        """A run is not what it was taken for: another run, or on another pilot."""
        run.pilot.mark_changed(run.start_us)
        run.pilot.removed.append(run)
        if run.pilot.runs.get(run.key) is run:
            self._cache.drop_run(run)
            self._cache.moved[run.pilot.id].add(run.key)
        elif run in self._cache.jobs.get(run.key.job, ()):
            self._cache.jobs[run.key.job].remove(run)

    def keys(self, records: Iterable[JobRecord]) -> PilotKeys:
        """Return the keys of the jobs and pilots of records that may be stored."""
        sound = [record for record in records if _is_sound(record)]
        keys = PilotKeys()
        keys.jobs = self._cache.unknown_jobs(self._new_jobs(record.fact for record in sound))
        for record in sound:
            if record.startd and self._assignment.pilot_of_record(record) is None:
                keys.startds.add(record.startd)
                if record.factory_job:
                    keys.factory_numbers.add(record.factory_job.rpartition("#")[2])
        return keys

    def _new_jobs(self, facts: Iterable[RunFact]) -> set[str]:
        """Return the jobs of which records, which do not know their pilots, may tell news."""
        cache, new = self._cache, set[str]()
        by_job: dict[str, tuple[set[RunFact], _Shown]] = {}
        for fact in facts:
            job = fact.job
            if job not in cache.partly:
                if job not in cache.jobs:
                    new.add(job)
                continue
            if job not in by_job:
                stored = (fact for run in cache.jobs[job] for fact in run.facts)
                nowhere = {fact._replace(pilot=None, yields=False) for fact in stored}
                by_job[job] = nowhere, _Shown(nowhere)
            before, shown = by_job[job]
            if fact not in before and not shown.has(fact):
                new.add(job)
        return new

    def _pilot(self, record: JobRecord) -> OpenPilot:
        """Return the pilot of a record that fits none: one that began earlier, or a new one."""
        pilot = self._assignment.begun_earlier(record)
        if pilot is not None:
            return pilot
        first_us = first_time_us(record.fact)
        started = record.started if record.started is not None else first_us // SECOND_US
        identity = PilotIdentity(
            name=record.startd,
            started=started,
            factory_job=record.factory_job,
            factory=record.factory,
            key=EntryKey(
                record.site or record.entry or UNKNOWN, record.entry or record.site or UNKNOWN
            ),
            group=record.group,
            node=record.startd.rpartition("@")[2],
            origin="jobs",
        )
        start_us = first_us if record.started is None else record.started * SECOND_US
        runs = RunBounds(first_us=min(start_us, first_us), last_us=first_us)
        return self._assignment.add(identity, PilotFacts(runs=runs))


class _Shown:
    """What slots have shown of the runs of a job, by claim."""

    def __init__(self, facts: Iterable[RunFact]) -> None:
        self._latest: dict[tuple[str | None, int | None], RunFact] = {}
        self._ends: list[int] = []
        for fact in facts:
            if fact.source is Source.LIVE_SLOT and not fact.ending.over:
                claim = fact.pilot, claim_of(fact)
                before = self._latest.get(claim)
                if before is None or before.written_us < fact.written_us:
                    self._latest[claim] = fact
            elif fact.ending.over and fact.end_us is not None:
                self._ends.append(fact.end_us + TOLERANCE_US)
        self._ends.sort()

    def has(self, fact: RunFact) -> bool:
        """Return whether this is only a newer copy of a claim's slot ad that is known.

        A claim is shown with another time whenever its slot's ad was renewed; without this a
        run would have as many facts as its slot has sent ads.  It is news that a claim is
        shown after a run of its job was over: it may be of another run (see ``same_run``).
        """
        if fact.source is not Source.LIVE_SLOT or fact.ending.over:
            return False
        latest = self._latest.get((fact.pilot, claim_of(fact)))
        if latest is None or latest.written_us > fact.written_us:
            return False
        if _LASTING(latest) != _LASTING(fact):
            return False
        after = bisect_left(self._ends, latest.written_us)
        return after == len(self._ends) or self._ends[after] >= fact.written_us


def _size(record: JobRecord, pilot: OpenPilot) -> Size | None:
    """Return what a run was given: on a virtual slot of its pilot no cores, which are not there."""
    size, ads = record.fact.size, pilot.facts.ads
    if size is None or ads is None or not record.is_on(ads.virtual_slots):
        return size
    return size.without_cores


def _is_inferred(fact: RunFact) -> bool:
    return fact.source is Source.INFERRED


def _is_refuted(fact: RunFact, new: Iterable[RunFact]) -> bool:
    """Return whether it was assumed that a run was over which a slot goes on to show."""
    return _is_inferred(fact) and any(
        told_fact.source is Source.LIVE_SLOT
        and told_fact.written_us > fact.written_us
        and (told_fact.pilot, claim_of(told_fact)) == (fact.pilot, claim_of(fact))
        for told_fact in new
    )


def _is_sound(record: JobRecord) -> bool:
    """Return whether a record's times are such as a clock shows."""
    return sane(record.fact.start_us, record.fact.end_us, record.fact.written_us)
