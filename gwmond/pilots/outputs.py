"""What pilots' own output tells meets what collectors and histories tell, in one pilot.

Units: times are microseconds since the epoch.

A pilot is known by the factory's job (``schedd#cluster.proc``), else by its startd's name.  The
output is the best evidence of when it began and ended, and of its validation; one that no
collector ever showed (its validation failed, or gwmond was not there) is told by it alone.

Where the output leaves something open:

==================== ==========================================================================
no end               it was killed hard, or still runs: it ends when its collector says; if none
                     has shown it, its end is waited for (see ``missing_end``); then it ended with
                     the last thing that its output tells of (then ``estimated``)
no cores or memory   what most pilots of the entry have, else what the entry is expected to have,
                     else one canonical unit a core (then ``estimated``; see ``sizes``)
no number of GPUs    that of most pilots of the entry (then ``estimated``, if it is not 0)
no size of a run     one canonical unit (a starter's log has none; then ``estimated``)
no site              that of the entry's other pilots, else the entry's name
no group             that of its job in the factory's queue (see ``factory_pilots``)
==================== ==========================================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

from gwmond.model.attempts import AttemptFact
from gwmond.model.factory_jobs import ZONES_US, place_name
from gwmond.model.facts import EntryKey
from gwmond.model.own_names import client_name, is_own, may_be_of, own_name
from gwmond.model.pilot_evidence import PilotOutput
from gwmond.model.pilot_facts import Assumption, Validation
from gwmond.model.pilot_sources import (
    Decisions,
    DefaultSize,
    OutputFacts,
    PilotFacts,
    replace,
)
from gwmond.model.stored_pilots import PilotIdentity
from gwmond.model.times import SECOND_US
from gwmond.pilots.collector_ads import CollectorAds
from gwmond.pilots.entry_defaults import Entries
from gwmond.pilots.missing_end import known_start
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.pilot_cache import PilotCache
from gwmond.pilots.rules import FAR_US, LATEST_US, Lookup, Rules, sane
from gwmond.pilots.run_matcher import UNKNOWN, RunMatcher
from gwmond.pilots.sizes import plausible
from gwmond.pilots.starter_runs import Better, fact_of, job_of
from gwmond.pilots.summaries import ran_jobs, tell_statistics, withdraw_jobs

T = TypeVar("T")

MOST_RUNS = 40_000
"""Several outputs may be of one pilot; each has no more than half of this."""

_SAME_US = 60 * SECOND_US
"""No pilot's output tells its beginning in two ways that differ more."""


class Outputs:
    """Takes outputs in; ``absurd`` counts bad times.

    ``crowded`` counts runs on pilots that have ``MOST_RUNS`` already.
    """

    def __init__(
        self,
        cache: PilotCache,
        ads: CollectorAds,
        matcher: RunMatcher,
        entries: Entries,
        rules: Rules,
    ) -> None:
        self._cache = cache
        self._ads = ads
        self._matcher = matcher
        self._rules = rules
        self._sizes = ads.sizes
        self._entries = entries
        self.absurd = 0
        self.crowded = 0

    def take(self, outputs: Sequence[PilotOutput], lookup: Lookup) -> set[str]:
        """Join outputs with pilots, and the runs of jobs that they tell of; return their places."""
        numbers = {_number(output) for output in outputs if output.name.cluster is not None}
        for rows in lookup.find_factory_numbers(numbers).values() if numbers else ():
            self._cache.recall_pilots(rows)
        names = {name for output in outputs if (name := name_of(output)) not in self._cache.by_name}
        for rows in lookup.find_pilots(names).values() if names else ():
            self._cache.recall_pilots(rows)
        self._matcher.recall([attempt for output in outputs for attempt in output.attempts], lookup)
        self._matcher.recall_jobs(
            {job_of(run) for output in outputs for run in output.runs}, lookup
        )
        self._entries.learn(outputs, lookup)
        places: set[str] = set()
        for output in map(_ended, outputs):
            if not _is_sound(output):
                self.absurd += 1
                continue
            pilot = self._pilot(output, lookup)
            if pilot is None or not (output.times or pilot.identity.origin == "collector"):
                continue  # it tells no time, which was said when it was read
            if not pilot.pruned:
                self._apply(pilot, output)
                self._tell(pilot, output, lookup)
                self._sum_up(pilot, output, lookup)
                places.add(_place(output))
        return places

    def _pilot(self, output: PilotOutput, lookup: Lookup) -> OpenPilot | None:
        pilot, times = self._find(output), output.times
        if pilot is not None and not _is_better(pilot):
            self._rename(pilot, output)
        if not times or (pilot is not None and not _is_better(pilot)):
            return pilot
        start_us = output.start_us if output.start_us is not None else min(times)
        identity = self._identity(output, start_us)
        if pilot is None:
            return self._ads.add(identity, PilotFacts(output=_facts(None, output)))
        if not pilot.pruned:
            # Only the factory's queue, or records of jobs, had it: now its output does.
            self._cache.load_whole(pilot, lookup)
            withdraw_jobs(pilot, self._matcher)
            facts = replace(pilot.facts, queue=None, summary=None, decisions=Decisions())
            pilot.learn(replace(facts, output=_facts(None, output)))
            self._ads.relabelled.append((pilot, identity))
        return pilot

    def _find(self, output: PilotOutput) -> OpenPilot | None:
        for pilot in self._cache.by_name.get(name_of(output), ()):
            later = output.start_us is None or pilot.start_us >= output.start_us
            if later and _may_be(pilot, output):
                return pilot
        here = self._cache.at_place(output.name.entry, _number(output))
        near = [pilot for pilot in here if _may_be(pilot, output)]
        return min(near, key=lambda pilot: (*_apart(pilot, output), pilot.id), default=None)

    def _rename(self, pilot: OpenPilot, output: PilotOutput) -> None:
        """Let an output that has grown since it was read first tell what its pilot is called."""
        pilot_name, known = output.name, pilot.identity
        if known.origin != "files" or pilot.pruned:
            return
        identity = self._identity(output, pilot.start_us)
        before = pilot.facts.output
        new_site = pilot_name.site and before is not None and not before.site
        better = known._replace(
            name=identity.name if pilot_name.startd and is_own(known.name) else known.name,
            factory_job=identity.factory_job if known.factory_job[:1] == "#" else known.factory_job,
            factory=pilot_name.factory or known.factory or identity.factory,
            group=identity.group or known.group,
            node=known.node or identity.node,
            key=identity.key if new_site else known.key,
        )
        if better != known:
            self._ads.relabelled.append((pilot, better))

    def _identity(self, output: PilotOutput, start_us: int) -> PilotIdentity:
        pilot_name = output.name
        site = (
            pilot_name.site or self._entries.site(pilot_name.entry) or pilot_name.entry or UNKNOWN
        )
        return PilotIdentity(
            name=name_of(output),
            started=start_us // SECOND_US,
            factory_job=pilot_name.factory_job
            or (f"#{_number(output)}" if pilot_name.entry else ""),
            factory=pilot_name.factory,
            key=EntryKey(site, pilot_name.entry or site),
            group=client_name(pilot_name.frontend, pilot_name.group),
            node=pilot_name.node,
            origin="files",
        )

    def _apply(self, pilot: OpenPilot, output: PilotOutput) -> None:
        """Take in what the output says, and a size for what it does not."""
        facts = replace(pilot.facts, output=_facts(pilot.facts.output, output))
        if facts.ads is None or not facts.ads.sizes:
            entry = output.name.entry or pilot.identity.key.entry
            facts = replace(facts, decisions=self._sized(entry, facts))
        pilot.learn(facts)

    def _sized(self, entry: str, facts: PilotFacts) -> Decisions:
        """Return decisions with a size, as far as its output does not say it."""
        output = facts.output
        if output is None:
            return facts.decisions
        size, rules = self._sizes.fill(entry, output.cores, output.memory_mib, output.gpus)
        return replace(facts.decisions, size=DefaultSize(size, tuple(sorted(rules))))

    def _tell(self, pilot: OpenPilot, output: PilotOutput, lookup: Lookup) -> None:
        """Join the runs of jobs that it tells of; those in its startd's history first."""
        if output.attempts or output.runs:
            self._cache.load_whole(pilot, lookup)
        self._join(pilot, [attempt.fact._replace(pilot=pilot.label) for attempt in output.attempts])
        better = Better(pilot.attempts.values() if output.runs else (), self._rules.start_guard_us)
        runs = [run for run in output.runs if not better.knows(job_of(run), run.start_us)]
        self._join(pilot, [fact_of(run, pilot, self._rules.q) for run in runs])

    def _sum_up(self, pilot: OpenPilot, output: PilotOutput, lookup: Lookup) -> None:
        """Go by its statistics where no run of a job is known."""
        known = bool(output.attempts or output.runs)
        known |= pilot.ran_jobs and Assumption.JOBS not in pilot.assumed
        if not known and ran_jobs(output) and pilot.validation is not Validation.FAILED:
            self._cache.load_whole(pilot, lookup)
            tell_statistics(pilot, output, self._matcher)

    def _join(self, pilot: OpenPilot, facts: Sequence[AttemptFact]) -> None:
        by_job: defaultdict[str, list[AttemptFact]] = defaultdict(list)
        for fact in facts:
            by_job[fact.job].append(fact)
        for job, job_facts in by_job.items():
            if job in self._cache.jobs or len(pilot.attempts) + len(job_facts) <= MOST_RUNS:
                self._matcher.add(job, job_facts)
            else:
                self.crowded += len(job_facts)


def _facts(before: OutputFacts | None, output: PilotOutput) -> OutputFacts:
    """Return what an output says, and for what it does not what was read of it before."""
    name, times = output.name, output.times
    known = before or OutputFacts(min(times, default=FAR_US), max(times, default=0), unnamed=True)
    failure = output.failure
    cores, memory_mib, gpus = plausible(output.cores, output.memory_mib, output.gpus)
    is_known = output.validation is not Validation.UNKNOWN
    return OutputFacts(
        first_us=min(known.first_us, *times),
        last_us=max(known.last_us, *times),
        start_us=_or(output.start_us, known.start_us),
        end_us=_or(output.end_us, known.end_us),
        validation=output.validation if is_known else known.validation,
        validation_end_us=_or(output.validation_end_us, known.validation_end_us),
        registered=_or(output.registered, known.registered),
        ran_jobs=_or(ran_jobs(output), known.ran_jobs),
        failure=known.failure
        if failure is None
        else f"{failure.kind.value} {failure.test}".strip(),
        cores=_or(cores, known.cores),
        memory_mib=_or(memory_mib, known.memory_mib),
        gpus=_or(gpus, known.gpus),
        site=bool(name.site) or known.site,
        pid=None if name.startd else _or(name.pid, known.pid),
        unnamed=known.unnamed and not client_name(name.frontend, name.group),
    )


def _or(value: T | None, before: T | None) -> T | None:
    return before if value is None else value


def _number(output: PilotOutput) -> str:
    return f"{output.name.cluster}.{output.name.proc}"


def _place(output: PilotOutput) -> str:
    return place_name(output.name.entry, _number(output))


def _may_be(pilot: OpenPilot, output: PilotOutput) -> bool:
    """Return whether no other schedd is told of a pilot, and its time is about the output's."""
    job, known = output.name.factory_job, pilot.identity.factory_job
    if job and known and known != job and not known.startswith("#"):
        return False
    if job != known and not may_be_of(pilot.identity.name, output.name.user):
        return False
    times = output.times
    if not times:
        return True
    begins = known_start(pilot) and output.start_us is not None
    if begins and abs(pilot.start_us - (output.start_us or 0)) > _SAME_US:
        return False  # what it runs as starts again, and its output is written anew
    return pilot.start_us - ZONES_US <= max(times) and min(times) <= pilot.until_us + ZONES_US


def _apart(pilot: OpenPilot, output: PilotOutput) -> tuple[int, int]:
    """Return how far a pilot's life and what its output tells are apart, and their beginnings."""
    first_us, last_us = min(output.times, default=0), max(output.times, default=0)
    start_us = output.start_us if output.start_us is not None else first_us
    apart_us = max(0, first_us - pilot.until_us, pilot.start_us - last_us)
    return apart_us, abs(start_us - pilot.start_us)


def _is_better(pilot: OpenPilot) -> bool:
    """Return whether any output tells more of a pilot than what has told of it."""
    return pilot.no_output or (pilot.implied and pilot.facts.output is None)


def name_of(output: PilotOutput) -> str:
    """Return the startd's name, else one of the pilot's own that it alone has at its entry."""
    pilot_name = output.name
    if pilot_name.startd:
        return (
            pilot_name.startd
            if "@" in pilot_name.startd or not pilot_name.node
            else f"{pilot_name.startd}@{pilot_name.node}"
        )
    return own_name(
        _number(output),
        "" if pilot_name.schedd else pilot_name.user,
        pilot_name.instance,
        pilot_name.entry,
    )


def _ended(output: PilotOutput) -> PilotOutput:
    """Return an output without its end where that is after its files were written."""
    end_us = output.end_us
    return output if end_us is None or end_us < _latest(output) else output._replace(end_us=None)


def _is_sound(output: PilotOutput) -> bool:
    """Return whether all its times are such as a clock shows, and none is yet to come."""
    times, latest = [*output.times, *(run.start_us for run in output.runs)], _latest(output)
    return sane(*times) and all(time_us < latest for time_us in times)


def _latest(output: PilotOutput) -> int:
    """Return what no time of an output reaches: its files were written before, but for clocks."""
    seen_us = output.seen_us
    return LATEST_US if seen_us is None or not sane(seen_us) else seen_us + ZONES_US
