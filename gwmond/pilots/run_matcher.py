"""Records of jobs are joined to attempts, and attempts to pilots.

Units: times are microseconds since the epoch.

A record names its startd and mostly when that was started; by these its pilot is found, else by
name and time.  If there is none, the record tells of a pilot that no collector has shown: it is
taken to be as large and to have lasted as long as its jobs, and all of it is estimated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from gwmond.model.attempts import AttemptFact, Source
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_facts import Assumption
from gwmond.model.pilot_sources import PilotFacts, RunFacts, replace
from gwmond.model.records import JobRecord
from gwmond.model.stored_pilots import PilotIdentity
from gwmond.model.times import SECOND_US
from gwmond.pilots.attempt_facts import Merged, merge_each
from gwmond.pilots.attempt_runs import TOLERANCE_US, claim_of
from gwmond.pilots.collector_ads import CollectorAds
from gwmond.pilots.missing_end import is_given_up
from gwmond.pilots.open_attempt import OpenAttempt
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.pilot_cache import PilotCache
from gwmond.pilots.rules import FAR_US, Lookup, Rules, sane
from gwmond.pilots.starter_runs import known_better, moved_lines

UNKNOWN = "unknown"
_LATER_S = 30
_AT_EACH_AD = ("written_us", "start_us", "activated_us")
"""What may change with each ad of a slot, though its claim is the same."""


class RunMatcher:
    """Takes records in; ``contradictions`` counts fields on which sources differ.

    ``homeless`` counts records that name no startd, ``late`` those of pilots of which attempts are
    past their retention, ``absurd`` those with times that no clock shows.  ``removed`` are attempts
    which turned out to be others.
    """

    def __init__(self, cache: PilotCache, ads: CollectorAds, rules: Rules) -> None:
        self._cache = cache
        self._ads = ads
        self._rules = rules
        self.contradictions: Counter[str] = Counter()
        self.homeless = 0
        self.late = 0
        self.absurd = 0
        self.removed: list[OpenAttempt] = []
        self._summed_up: set[OpenPilot] = set()  # runs are known of what a summary told of
        self._better: dict[OpenPilot, int] = {}  # since when it has runs that a log may have, too

    def tell(self, records: Sequence[JobRecord], lookup: Lookup) -> None:
        """Join records with attempts, and these with pilots."""
        sound = [
            record
            for record in records
            if sane(record.fact.start_us, record.fact.end_us, record.fact.written_us)
        ]
        self.absurd += len(records) - len(sound)
        records = sound
        self.recall(records, lookup)
        by_job: defaultdict[str, list[AttemptFact]] = defaultdict(list)
        for record in records:
            if not record.startd:
                self.homeless += 1
                continue
            pilot = self._pilot(record)
            if pilot.pruned:
                self.late += not self._cache.is_aside(pilot)
                continue
            by_job[record.fact.job].append(record.fact._replace(pilot=pilot.label))
        for job, facts in by_job.items():
            self.add(job, facts)

    def add(self, job: str, facts: Iterable[AttemptFact]) -> None:
        """Add facts of one job that know their pilot; merge all that is known of it anew."""
        known = {fact for attempt in self._cache.jobs.get(job, ()) for fact in attempt.facts}
        added = set(facts)
        new = {fact for fact in added - known if not _said_again(fact, known)}
        refuted = {fact for fact in known if _is_refuted(fact, added)}
        if new or refuted:
            self._merge(job, (known - refuted) | new)

    def absorb(self, lookup: Lookup) -> None:
        """Take out the runs that only a pilot's logs told of, and now something better tells of."""
        guard_us, cache = self._rules.start_guard_us, self._cache
        for pilot in sorted(self._summed_up & set(cache.pilots.values()), key=lambda one: one.id):
            cache.load_whole(pilot, lookup)
            if pilot.facts.summary is not None:
                summary = replace(pilot.facts.summary, jobs_us=None)
                pilot.learn(replace(pilot.facts, summary=summary))
            for attempt in [attempt for attempt in pilot.attempts.values() if attempt.summarised]:
                self.remove(attempt)
        self._summed_up.clear()
        found: list[tuple[OpenAttempt, OpenAttempt]] = []
        for pilot, since_us in self._better.items():
            if cache.pilots.get(pilot.id) is pilot and not (pilot.pruned or pilot.implied):
                if pilot.end_us is not None and since_us - guard_us <= pilot.loaded_from_us:
                    cache.load_whole(pilot, lookup)
                found += known_better(pilot.attempts.values(), guard_us)
        self._better.clear()
        by_job: defaultdict[str, set[AttemptFact]] = defaultdict(set)
        for attempt, _ in found:
            by_job[attempt.key.job].update(attempt.facts)
        self.recall_jobs(by_job, lookup)
        for job, gone in by_job.items():
            self._merge(job, {fact for attempt in cache.jobs[job] for fact in attempt.facts} - gone)
        for attempt, better in found:
            self.add(better.key.job, moved_lines(attempt, better))

    def _merge(self, job: str, facts: Collection[AttemptFact]) -> None:
        """Let the attempts of a job be those that these facts tell of, which are all."""
        before = list(self._cache.jobs.get(job, ()))
        old = {attempt.key: attempt for attempt in before}
        kept: set[OpenAttempt] = set()
        for merged, its_facts in merge_each(facts):
            attempt = old.get(merged.key)
            if attempt is not None and set(its_facts) == set(attempt.facts):
                kept.add(attempt)
                continue
            pilot = self._pilot_of(merged.pilot, attempt)
            if pilot is None:
                self.homeless += 1
                continue
            for contradiction in set(merged.contradictions) - set(
                attempt.merged.contradictions if attempt is not None else ()
            ):
                self.contradictions[contradiction.field] += 1
            if attempt is not None and attempt.pilot is pilot:
                kept.add(attempt)
                attempt.replace(merged, its_facts)
            else:
                attempt = self._new(pilot, merged, its_facts)
                kept.add(attempt)
            if pilot.end_us is not None and (attempt.merged.end_us or 0) > pilot.end_us:
                pilot.derive()  # it shows that the pilot was still there
            if not attempt.summarised and Assumption.JOBS in pilot.assumed:
                self._summed_up.add(pilot)
            if not attempt.summarised and not job.startswith("#"):
                since_us = self._better.get(pilot, attempt.start_us)
                self._better[pilot] = min(since_us, attempt.start_us)
        for attempt in before:
            if attempt not in kept:
                self.remove(attempt)

    def _new(self, pilot: OpenPilot, merged: Merged, facts: tuple[AttemptFact, ...]) -> OpenAttempt:
        attempt = OpenAttempt(pilot, merged, facts)
        self._cache.add_attempt(attempt)
        pilot.touch(attempt.start_us)
        return attempt

    def remove(self, attempt: OpenAttempt) -> None:
        """An attempt is not what it was taken for: another run, or on another pilot."""
        attempt.pilot.touch(attempt.start_us)
        self.removed.append(attempt)
        if attempt.pilot.attempts.get(attempt.key) is attempt:
            self._cache.drop_attempt(attempt)
            self._cache.moved.add((attempt.pilot.id, attempt.key))
        elif attempt in self._cache.jobs.get(attempt.key.job, ()):
            self._cache.jobs[attempt.key.job].remove(attempt)

    def _pilot_of(self, label: str | None, attempt: OpenAttempt | None) -> OpenPilot | None:
        if label is None:
            return attempt.pilot if attempt is not None else None
        return self._cache.pilots.get(int(label[1:]))

    def recall(self, records: Sequence[JobRecord], lookup: Lookup) -> None:
        """Take in what the ledger knows of the jobs and pilots that are not in memory."""
        cache = self._cache
        self.recall_jobs(
            {record.fact.job for record in records if self._is_new(record.fact)}, lookup
        )
        names = {
            record.startd for record in records if record.startd and self._find(record) is None
        }
        for found in lookup.find_pilots(names).values() if names else ():
            cache.recall_pilots(found)

    def _is_new(self, fact: AttemptFact) -> bool:
        """Return whether a record, which does not know its pilot, may tell something new."""
        if fact.job not in self._cache.partly:
            return fact.job not in self._cache.jobs
        facts = (fact for attempt in self._cache.jobs[fact.job] for fact in attempt.facts)
        known = {fact._replace(pilot=None) for fact in facts}
        return fact not in known and not _said_again(fact, known)

    def recall_jobs(self, jobs: Iterable[str], lookup: Lookup) -> None:
        """Take in all attempts of jobs of which the ledger may know some that are not in memory."""
        cache = self._cache
        jobs = {job for job in jobs if job not in cache.jobs or job in cache.partly}
        stored = lookup.find_attempts(jobs) if jobs else {}
        of_rows = (row.pilot for rows in stored.values() for row in rows)
        ids = {pilot for pilot in of_rows if pilot not in cache.pilots}
        if ids:
            cache.recall_pilots(lookup.pilots_by_id(ids).values())
        for rows in stored.values():
            cache.recall_attempts(rows)
        cache.partly -= jobs

    def _find(self, record: JobRecord) -> OpenPilot | None:
        same = self._cache.by_name.get(record.startd, [])
        if record.started is not None:
            for pilot in same:
                if pilot.identity.started == record.started:
                    return pilot
        time_us, guard = _time(record.fact), self._rules.start_guard_us
        fitting = [
            pilot
            for pilot in same
            if pilot.start_us - guard <= time_us
            and time_us <= (FAR_US if is_given_up(pilot) else pilot.end_us or FAR_US) + guard
            and self._may_be(pilot, record.started)
        ]
        return max(fitting, key=lambda pilot: pilot.start_us, default=None)

    def _may_be(self, pilot: OpenPilot, started: int | None) -> bool:
        """Return whether a pilot's startd may have been started then, though it first was not.

        A pilot's master starts its startd again; a claim's number has the time when the startd
        was ready, and its ad when its process began; when an implied pilot began may not be known.
        """
        if started is None or pilot.identity.factory_job:
            return True
        if 0 <= started - pilot.identity.started <= _LATER_S:
            return True
        return pilot.implied and pilot.start_us >= started * SECOND_US - self._rules.start_guard_us

    def _pilot(self, record: JobRecord) -> OpenPilot:
        found = self._find(record)
        if found is not None:
            return found
        first_us = _time(record.fact)
        started = record.started if record.started is not None else first_us // SECOND_US
        identity = PilotIdentity(
            name=record.startd,
            started=started,
            factory_job="",
            factory="",
            key=EntryKey(
                record.site or record.entry or UNKNOWN, record.entry or record.site or UNKNOWN
            ),
            group=record.group,
            node=record.startd.rpartition("@")[2],
            origin="jobs",
        )
        start_us = first_us if record.started is None else record.started * SECOND_US
        runs = RunFacts(first_us=min(start_us, first_us), last_us=first_us)
        return self._ads.add(identity, PilotFacts(runs=runs))


def _said_again(fact: AttemptFact, known: Iterable[AttemptFact]) -> bool:
    """Return whether a slot goes on to say of a claim what it said before.

    A claim is shown with another time whenever its slot's ad was renewed; without this an attempt
    would have as many facts as its slot has sent ads.  It is news that a claim is shown after a
    run of its job was over: it may be of another run (see ``attempt_runs``).
    """
    if fact.source is not Source.LIVE_SLOT or fact.ending.over:
        return False
    claim = fact.pilot, claim_of(fact)
    before = [
        known_fact
        for known_fact in known
        if known_fact.source is Source.LIVE_SLOT
        and not known_fact.ending.over
        and (known_fact.pilot, claim_of(known_fact)) == claim
    ]
    latest = max(before, key=lambda fact: fact.written_us, default=None)
    if latest is None or latest.written_us > fact.written_us:
        return False
    if latest._replace(**{name: getattr(fact, name) for name in _AT_EACH_AD}) != fact:
        return False
    ends = [
        known_fact.end_us + TOLERANCE_US
        for known_fact in known
        if known_fact.ending.over and known_fact.end_us is not None
    ]
    return not any(latest.written_us <= end_us < fact.written_us for end_us in ends)


def _is_refuted(fact: AttemptFact, new: Iterable[AttemptFact]) -> bool:
    """Return whether it was assumed that a run was over which a slot goes on to show."""
    return fact.source is Source.INFERRED and any(
        told_fact.source is Source.LIVE_SLOT
        and told_fact.written_us > fact.written_us
        and (told_fact.pilot, claim_of(told_fact)) == (fact.pilot, claim_of(fact))
        for told_fact in new
    )


def _time(fact: AttemptFact) -> int:
    for time_us in (fact.start_us, fact.end_us):
        if time_us is not None:
            return time_us
    return fact.written_us
