"""What pilots' own output reports meets what collectors and histories report, in one pilot.

Units: times are microseconds since the epoch.

A pilot is known by the factory's job (``schedd#cluster.proc``), else by its startd's name.  The
output is the best evidence of when it began and ended, and of its validation; one that no
collector ever showed (its validation failed, or gwmond was not there) is known from it alone.

Where the output leaves something open:

==================== ==========================================================================
no end               it was killed hard, or still runs: it ends when its collector says; if none
                     has shown it, its end is waited for (see ``memory.ends``); then it ended with
                     the last time in its output (then ``estimated``)
no cores or memory   what most pilots of the entry have, else what the entry is expected to have,
                     else one canonical unit a core (then ``estimated``; see ``sizes``)
no number of GPUs    that of most pilots of the entry (then ``estimated``, if it is not 0)
no size of a run     one canonical unit (a starter's log has none; then ``estimated``)
no site              that of the entry's other pilots, else the entry's name
no group             that of its job in the factory's queue (see ``factory.queue_matching``)
==================== ==========================================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

from gwmond.model.factory.jobs import ZONES_US
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Assumption, Validation
from gwmond.model.pilots.file_facts import PilotOutput, client_name, is_synthetic
from gwmond.model.pilots.pilot_facts import (
    Decisions,
    DefaultSize,
    OutputFacts,
    PilotFacts,
    replace,
)
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.runs.run_facts import RunFact
from gwmond.model.times import SECOND_US
from gwmond.pilots.factory.entry_defaults import Entries, KnownPilots
from gwmond.pilots.factory.summaries import ran_jobs, tell_statistics, withdraw_jobs
from gwmond.pilots.life.rules import FAR_US, LATEST_US, sane
from gwmond.pilots.memory.assign import number_of, place_of_output, startd_of
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.memory.sizes import plausible
from gwmond.pilots.runs.matcher import UNKNOWN
from gwmond.pilots.runs.starter_runs import Better, fact_of, job_of

T = TypeVar("T")

MOST_RUNS = 40_000
"""Several outputs may be of one pilot; each has no more than half of this."""


class Outputs:
    """Takes outputs in; ``absurd`` counts bad times.

    ``crowded`` counts runs on pilots that have ``MOST_RUNS`` already.
    """

    def __init__(self, pilots: KnownPilots, entries: Entries) -> None:
        self._cache, self._assignment, self._sizes, self._matcher, self._rules = pilots
        self._entries = entries
        self.absurd = 0
        self.crowded = 0
        self._waiting: list[PilotOutput] = []

    def keys(self, outputs: Sequence[PilotOutput]) -> PilotKeys:
        """Return the keys of the pilots and runs of outputs that may be stored."""
        records = [record for output in outputs for record in output.records]
        keys = self._matcher.keys(records)
        runs = {job_of(run) for output in outputs for run in output.runs}
        keys.jobs |= self._cache.unknown_jobs(runs)
        keys.startds |= {startd_of(output) for output in outputs} - self._cache.by_name.keys()
        keys.entries = self._entries.unknown(output.name.entry for output in outputs)
        for output in outputs:
            if output.name.cluster is not None:
                keys.add_place(output.name.entry, number_of(output))
        return keys

    def take(self, outputs: Sequence[PilotOutput]) -> set[str]:
        """Join outputs with pilots, and the runs of jobs in them; return their places.

        Outputs of pilots of which runs are missing wait for these: take again then.
        """
        self._entries.learn(outputs)
        waiting, self._waiting = [*self._waiting, *map(_ended, outputs)], []
        places: set[str] = set()
        for output in waiting:
            if not _is_sound(output):
                self.absurd += 1
                continue
            pilot = self._assignment.pilot_of_output(output)
            if pilot is not None and self._needs_whole(pilot, output):
                self._waiting.append(output)
                continue
            pilot = self._pilot(pilot, output)
            if pilot is None or not (output.times or pilot.identity.origin == "collector"):
                continue  # it has no time, which was reported when it was read
            if not pilot.pruned:
                self._apply(pilot, output)
                self._tell(pilot, output)
                self._sum_up(pilot, output)
                places.add(place_of_output(output))
        return places

    def _needs_whole(self, pilot: OpenPilot, output: PilotOutput) -> bool:
        """Return whether runs on an output's pilot are missing that it bears on."""
        tells_runs = bool(output.records or output.runs or ran_jobs(output))
        if pilot.pruned or not (tells_runs or _is_better(pilot)):
            return False
        return not self._cache.has_whole(pilot)

    def _pilot(self, pilot: OpenPilot | None, output: PilotOutput) -> OpenPilot | None:
        """Return the pilot whose output this is, under the name that it tells."""
        times = output.times
        if pilot is not None and not _is_better(pilot):
            self._rename(pilot, output)
        if not times or (pilot is not None and not _is_better(pilot)):
            return pilot
        start_us = output.start_us if output.start_us is not None else min(times)
        identity = self._identity(output, start_us)
        if pilot is None:
            return self._assignment.add(identity, PilotFacts(output=_facts(None, output)))
        if not pilot.pruned:
            # Only the factory's queue, or records of jobs, had it: now its output does.
            withdraw_jobs(pilot, self._matcher)
            facts = replace(pilot.facts, queue=None, summary=None, decisions=Decisions())
            pilot.learn(replace(facts, output=_facts(None, output)))
            self._assignment.rename(pilot, identity)
        return pilot

    def _rename(self, pilot: OpenPilot, output: PilotOutput) -> None:
        """Name a pilot by its output, which has grown since it was read first."""
        pilot_name, own = output.name, pilot.identity
        if own.origin != "files" or pilot.pruned:
            return
        identity = self._identity(output, pilot.start_us)
        before = pilot.facts.output
        new_site = pilot_name.site and before is not None and not before.site
        better = own._replace(
            name=identity.name if pilot_name.startd and is_synthetic(own.name) else own.name,
            factory_job=identity.factory_job if own.factory_job[:1] == "#" else own.factory_job,
            factory=pilot_name.factory or own.factory or identity.factory,
            group=identity.group or own.group,
            node=own.node or identity.node,
            key=identity.key if new_site else own.key,
        )
        if better != own:
            self._assignment.rename(pilot, better)

    def _identity(self, output: PilotOutput, start_us: int) -> PilotIdentity:
        pilot_name = output.name
        site = (
            pilot_name.site or self._entries.site(pilot_name.entry) or pilot_name.entry or UNKNOWN
        )
        return PilotIdentity(
            name=startd_of(output),
            started=start_us // SECOND_US,
            factory_job=pilot_name.factory_job
            or (f"#{number_of(output)}" if pilot_name.entry else ""),
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

    def _tell(self, pilot: OpenPilot, output: PilotOutput) -> None:
        """Join the runs of jobs in it; those in its startd's history first."""
        label = pilot.label
        self._join(pilot, [record.fact._replace(pilot=label) for record in output.records])
        better = Better(pilot.runs.values() if output.runs else (), self._rules.start_guard_us)
        runs = [run for run in output.runs if not better.knows(job_of(run), run.start_us)]
        self._join(pilot, [fact_of(run, pilot, self._rules.memory_per_unit_mib) for run in runs])

    def _sum_up(self, pilot: OpenPilot, output: PilotOutput) -> None:
        """Go by its statistics where no run of a job is known."""
        has_runs = bool(output.records or output.runs)
        has_runs |= pilot.ran_jobs and Assumption.JOBS not in pilot.assumed
        if not has_runs and ran_jobs(output) and pilot.validation is not Validation.FAILED:
            tell_statistics(pilot, output, self._matcher)

    def _join(self, pilot: OpenPilot, facts: Sequence[RunFact]) -> None:
        by_job: defaultdict[str, list[RunFact]] = defaultdict(list)
        for fact in facts:
            by_job[fact.job].append(fact)
        for job, job_facts in by_job.items():
            if job in self._cache.jobs or len(pilot.runs) + len(job_facts) <= MOST_RUNS:
                self._matcher.add(job, job_facts)
            else:
                self.crowded += len(job_facts)


def _facts(before: OutputFacts | None, output: PilotOutput) -> OutputFacts:
    """Return what an output says, and for what it does not what was read of it before."""
    name, times = output.name, output.times
    base = before or OutputFacts(min(times, default=FAR_US), max(times, default=0), unnamed=True)
    failure = output.failure
    cores, memory_mib, gpus = plausible(output.cores, output.memory_mib, output.gpus)
    is_known = output.validation is not Validation.UNKNOWN
    return OutputFacts(
        first_us=min(base.first_us, *times),
        last_us=max(base.last_us, *times),
        start_us=_or(output.start_us, base.start_us),
        end_us=_or(output.end_us, base.end_us),
        validation=output.validation if is_known else base.validation,
        validation_end_us=_or(output.validation_end_us, base.validation_end_us),
        registered=_or(output.registered, base.registered),
        ran_jobs=_or(ran_jobs(output), base.ran_jobs),
        failure=base.failure if failure is None else f"{failure.kind.value} {failure.test}".strip(),
        cores=_or(cores, base.cores),
        memory_mib=_or(memory_mib, base.memory_mib),
        gpus=_or(gpus, base.gpus),
        site=bool(name.site) or base.site,
        pid=None if name.startd else _or(name.pid, base.pid),
        unnamed=base.unnamed and not client_name(name.frontend, name.group),
        tests=output.tests or base.tests,
        more_tests=output.more_tests if output.tests else base.more_tests or output.more_tests,
        offered_cores=_or(output.offered_cores, base.offered_cores),
        offered_memory_mib=_or(output.offered_memory_mib, base.offered_memory_mib),
    )


def _or(value: T | None, before: T | None) -> T | None:
    return before if value is None else value


def _is_better(pilot: OpenPilot) -> bool:
    """Return whether any output says more of a pilot than what is known of it."""
    return pilot.no_output or (pilot.known_from_jobs_only and pilot.facts.output is None)


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
    written_us = output.written_us
    return LATEST_US if written_us is None or not sane(written_us) else written_us + ZONES_US
