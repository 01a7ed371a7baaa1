"""What pilots' own output tells meets what collectors and histories tell, in one pilot.

Units: times are microseconds since the epoch.

A pilot is known by the factory's job (``schedd#cluster.proc``), else by its startd's name.  The
output is the best evidence of when it began and ended, and of its validation; one that no
collector ever showed (its validation failed, or gwmond was not there) is told by it alone.

Where the output leaves something open:

==================== ==========================================================================
no end               it was killed hard: it ended when its collector says; if none has shown it,
                     with the last thing that its output tells of (then ``estimated``)
no cores or memory   what most pilots of the entry have, else what the entry is expected to have,
                     else one canonical unit (then ``estimated``)
no size of a run     one canonical unit (a starter's log has none; then ``estimated``)
no site              that of the entry's other pilots, else the entry's name
==================== ==========================================================================
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from gwmond.accounting.attempts import AttemptFact, Source
from gwmond.accounting.pilot_evidence import PilotOutput, StarterRun
from gwmond.accounting.pilot_facts import Resources, Step, Validation
from gwmond.book.joining import UNKNOWN, Joining
from gwmond.book.open_pilot import OpenPilot
from gwmond.book.rules import SECOND_US, Lookup, Rules, sane
from gwmond.book.shelf import Shelf
from gwmond.book.sightings import Sightings
from gwmond.facts import EntryKey
from gwmond.ledger.pilot_model import PilotIdentity


class Outputs:
    """Takes outputs in; ``empty`` counts those that tell nothing, ``absurd`` bad times."""

    def __init__(self, shelf: Shelf, sightings: Sightings, joining: Joining, rules: Rules) -> None:
        self._shelf = shelf
        self._sightings = sightings
        self._joining = joining
        self._rules = rules
        self._sizes: defaultdict[str, Counter[Resources]] = defaultdict(Counter)
        self._sites: dict[str, str] = {}
        self.expected: Mapping[str, Resources] = {}
        self.empty = 0
        self.absurd = 0

    def take(self, outputs: Sequence[PilotOutput], lookup: Lookup) -> None:
        """Join outputs with pilots, and the runs of jobs that they tell of."""
        jobs = {job for of in outputs if (job := factory_job(of))}
        for rows in lookup.find_factory_jobs(jobs).values() if jobs else ():
            self._shelf.recall_pilots(rows)
        names = {name_of(of) for of in outputs}
        for rows in lookup.find_pilots(names - set(self._shelf.by_name)).values() if names else ():
            self._shelf.recall_pilots(rows)
        for output in outputs:
            size = _size(output)
            if size is not None:
                self._sizes[output.name.entry][size] += 1
            if output.name.site:
                self._sites[output.name.entry] = output.name.site
        for output in outputs:
            if not sane(*_times(output), *(of.start_us for of in output.runs)):
                self.absurd += 1
                continue
            pilot = self._pilot(output)
            if pilot is None:
                self.empty += 1
                continue
            if not pilot.pruned:
                self._apply(pilot, output)
                self._tell(pilot, output, lookup)

    def _pilot(self, output: PilotOutput) -> OpenPilot | None:
        job = factory_job(output)
        for pilot in self._shelf.by_name.get(name_of(output), ()):
            if output.start_us is None or pilot.start_us >= output.start_us:
                return pilot
        for pilot in self._shelf.by_job.get(job, ()) if job else ():
            return pilot
        times = _times(output)
        if not times:
            return None
        start_us = output.start_us if output.start_us is not None else min(times)
        of = output.name
        site = of.site or self._sites.get(of.entry, "") or of.entry or UNKNOWN
        group = ".".join(part for part in (of.frontend, of.group) if part)
        identity = PilotIdentity(
            name=name_of(output),
            started=start_us // SECOND_US,
            factory_job=job,
            factory=of.factory,
            key=EntryKey(site, of.entry or site),
            group=of.frontend if of.frontend.endswith(f".{of.group}") else group,
            node=of.node,
            origin="files",
        )
        pilot = self._sightings.imply(None, start_us, identity)
        pilot.validation = Validation.UNKNOWN
        return pilot

    def _apply(self, pilot: OpenPilot, output: PilotOutput) -> None:
        """Set what the output knows better."""
        start_us = output.start_us
        if start_us is not None and start_us != pilot.start_us:
            pilot.touch(min(start_us, pilot.start_us))
            pilot.start_us = start_us
        if output.validation is not Validation.UNKNOWN and not (
            output.validation is Validation.FAILED and pilot.identity.origin == "collector"
        ):
            if pilot.validation is not output.validation:
                pilot.touch(pilot.start_us)
            pilot.validation = output.validation
        if output.failure is not None and pilot.validation is Validation.FAILED:
            pilot.failure = f"{output.failure.kind.value} {output.failure.test}".strip()
            pilot.dirty = True
        last_us = max(_times(output), default=pilot.start_us)
        if output.end_us is not None:
            self._end(pilot, max(output.end_us, pilot.start_us), "reported")
        elif pilot.identity.origin == "files":
            self._end(pilot, max(last_us, pilot.start_us), "assumed")
            self._estimate(pilot)
        if not pilot.steps or pilot.identity.origin == "files":
            self._resize(pilot, output)

    def _end(self, pilot: OpenPilot, end_us: int, how: str) -> None:
        if pilot.end_us != end_us:
            pilot.touch(min(end_us, pilot.until_us))
            pilot.end_us = end_us
        pilot.ended = "reported" if how == "reported" else "assumed"
        pilot.contact_us = max(pilot.contact_us, end_us)
        pilot.gone_us = end_us
        pilot.dirty = True

    def _estimate(self, pilot: OpenPilot) -> None:
        """Say that all of it is estimated."""
        whole = ((pilot.start_us, max(pilot.until_us, pilot.start_us)),)
        if pilot.estimated != whole:
            pilot.estimated = whole
            pilot.touch(pilot.start_us)

    def _resize(self, pilot: OpenPilot, output: PilotOutput) -> None:
        size = _size(output)
        if size is None:
            size = self._usual(output)
            self._estimate(pilot)
        if not pilot.steps or pilot.steps[0].size != size:
            pilot.steps = (Step(pilot.start_us, size),)
            pilot.touch(pilot.start_us)

    def _usual(self, output: PilotOutput) -> Resources:
        """Return a size for a pilot whose own is not known, or only in part."""
        known = self._sizes.get(output.name.entry)
        entry = min(known, key=lambda of: (-known[of], of)) if known else None
        usual = entry or self.expected.get(output.name.entry) or Resources(1, self._rules.q)
        cores = usual.cores if output.cores is None else output.cores
        memory = usual.memory_mib if output.memory_mib is None else output.memory_mib
        return Resources(cores, memory, usual.gpus if output.gpus is None else output.gpus)

    def _tell(self, pilot: OpenPilot, output: PilotOutput, lookup: Lookup) -> None:
        """Join the runs of jobs that it tells of; those in its startd's history first."""
        records = [of._replace(startd=pilot.identity.name) for of in output.attempts]
        self._joining.recall(records, lookup)
        for record in records:
            fact = record.fact._replace(pilot=pilot.label)
            self._joining.add(fact.job, [fact])
        for run in output.runs:
            if not self._is_known(pilot, run):
                fact = _of_starter(run, pilot, self._rules.q)
                self._joining.add(fact.job, [fact])

    def _is_known(self, pilot: OpenPilot, run: StarterRun) -> bool:
        """Return whether a better source has told of a run: same job, about the same time."""
        guard = self._rules.start_guard_us
        return any(
            _numbers(of.key.job) == run.job and abs(of.start_us - run.start_us) <= guard
            for of in pilot.attempts.values()
            if Source.STARTER_LOG not in of.merged.sources
        )


def factory_job(output: PilotOutput) -> str:
    """Return the pilot as its factory knows it, ``schedd#cluster.proc``; empty if not told."""
    of = output.name
    if not of.schedd or of.cluster is None or of.proc is None:
        return ""
    return f"{of.schedd}#{of.cluster}.{of.proc}"


def name_of(output: PilotOutput) -> str:
    """Return the startd's name, else one of the pilot's own that it alone has at its entry."""
    of = output.name
    if of.startd:
        return of.startd if "@" in of.startd or not of.node else f"{of.startd}@{of.node}"
    return f"{of.cluster}.{of.proc}@{of.instance}.{of.entry}"


def _numbers(job: str) -> str:
    """Return ``cluster.proc`` of a GlobalJobId."""
    parts = job.split("#")
    return parts[1] if len(parts) > 1 else ""


def _size(output: PilotOutput) -> Resources | None:
    if output.cores is None or output.memory_mib is None:
        return None
    return Resources(output.cores, output.memory_mib, output.gpus or 0)


def _times(output: PilotOutput) -> list[int]:
    """Return all times that an output tells, but for when its files were written."""
    told = [output.start_us, output.end_us, output.validation_end_us]
    told += [output.condor_start_us, output.condor_end_us]
    told += [output.pause.end_us if output.pause else None]
    told += [of.fact.end_us for of in output.attempts] + [of.end_us for of in output.runs]
    return [time_us for time_us in told if time_us is not None]


def _of_starter(run: StarterRun, pilot: OpenPilot, q: int) -> AttemptFact:
    ending = run.ending if run.end_us is None else run.ending._replace(over=True)
    return AttemptFact(
        source=Source.STARTER_LOG,
        job=f"{run.submitter}#{run.job}#",
        run=None,
        written_us=run.end_us if run.end_us is not None else run.start_us,
        pilot=pilot.label,
        start_us=run.start_us,
        end_us=run.end_us,
        size=Resources(1, q),
        ending=ending,
    )
