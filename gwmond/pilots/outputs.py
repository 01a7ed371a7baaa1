"""What pilots' own output tells meets what collectors and histories tell, in one pilot.

Units: times are microseconds since the epoch.

A pilot is known by the factory's job (``schedd#cluster.proc``), else by its startd's name.  The
output is the best evidence of when it began and ended, and of its validation; one that no
collector ever showed (its validation failed, or gwmond was not there) is told by it alone.

Where the output leaves something open:

==================== ==========================================================================
no end               it was killed hard, or still runs: it ends when its collector says; if none
                     has shown it, its end is waited for (see ``unended``), and then it ended with
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

from gwmond.model.attempts import AttemptFact
from gwmond.model.factory_jobs import ZONES_US, place_name
from gwmond.model.facts import EntryKey
from gwmond.model.own_names import client_name, is_own, may_be_of, own_name
from gwmond.model.pilot_evidence import PilotOutput
from gwmond.model.pilot_facts import Assumption, Validation
from gwmond.model.stored_pilots import PilotIdentity, Told
from gwmond.model.times import SECOND_US
from gwmond.pilots.ends import set_end
from gwmond.pilots.entry_defaults import Entries
from gwmond.pilots.joining import UNKNOWN, Joining
from gwmond.pilots.open_pilot import SIZES, OpenPilot
from gwmond.pilots.rules import LATEST_US, Lookup, Rules, sane
from gwmond.pilots.shelf import Shelf
from gwmond.pilots.sightings import Sightings
from gwmond.pilots.starter_runs import Better, fact_of, job_of
from gwmond.pilots.summaries import forget, ran_jobs, tell_statistics
from gwmond.pilots.unended import known_start, open_again

MOST_RUNS = 40_000
"""Several outputs may be of one pilot; each has no more than half of this."""

_SAME_US = 60 * SECOND_US
"""No pilot's output tells its beginning in two ways that differ more."""


class Outputs:
    """Takes outputs in; ``absurd`` counts bad times.

    ``crowded`` counts runs on pilots that have ``MOST_RUNS`` already.
    """

    def __init__(
        self, shelf: Shelf, sightings: Sightings, joining: Joining, entries: Entries, rules: Rules
    ) -> None:
        self._shelf = shelf
        self._sightings = sightings
        self._joining = joining
        self._rules = rules
        self._sizes = sightings.sizes
        self._entries = entries
        self.absurd = 0
        self.crowded = 0

    def take(self, outputs: Sequence[PilotOutput], lookup: Lookup) -> set[str]:
        """Join outputs with pilots, and the runs of jobs that they tell of; return their places."""
        numbers = {_number(output) for output in outputs if output.name.cluster is not None}
        for rows in lookup.find_factory_numbers(numbers).values() if numbers else ():
            self._shelf.recall_pilots(rows)
        names = {name for output in outputs if (name := name_of(output)) not in self._shelf.by_name}
        for rows in lookup.find_pilots(names).values() if names else ():
            self._shelf.recall_pilots(rows)
        self._joining.recall([attempt for output in outputs for attempt in output.attempts], lookup)
        self._joining.recall_jobs(
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
        if pilot is None:
            pilot = self._sightings.imply(None, start_us, self._identity(output, start_us))
            pilot.validation = Validation.UNKNOWN
        elif not pilot.pruned:
            # Only the factory's queue, or records of jobs, have told of it: now its output does.
            self._shelf.load_whole(pilot, lookup)
            forget(pilot, self._joining)
            if pilot.implied and pilot.ended == "assumed":
                open_again(pilot, pilot.until_us, anyhow=True)
            pilot.know(Assumption.LIFE)
            self._sightings.relabelled.append((pilot, self._identity(output, start_us)))
        if output.start_us is None and not pilot.pruned:
            pilot.assume(Assumption.BEGIN, start_us, start_us + 1)
        return pilot

    def _find(self, output: PilotOutput) -> OpenPilot | None:
        for pilot in self._shelf.by_name.get(name_of(output), ()):
            later = output.start_us is None or pilot.start_us >= output.start_us
            if later and _may_be(pilot, output):
                return pilot
        here = self._shelf.at_place(output.name.entry, _number(output))
        near = [pilot for pilot in here if _may_be(pilot, output)]
        return min(near, key=lambda pilot: (*_apart(pilot, output), pilot.id), default=None)

    def _rename(self, pilot: OpenPilot, output: PilotOutput) -> None:
        """Let an output that has grown since it was read first tell what its pilot is called."""
        pilot_name, known = output.name, pilot.identity
        if known.origin != "files" or pilot.pruned:
            return
        told = self._identity(output, pilot.start_us)
        new_site = pilot_name.site and pilot.told is not None and not pilot.told.site
        better = known._replace(
            name=told.name if pilot_name.startd and is_own(known.name) else known.name,
            factory_job=told.factory_job if known.factory_job[:1] == "#" else known.factory_job,
            factory=pilot_name.factory or known.factory or told.factory,
            group=told.group or known.group,
            node=known.node or told.node,
            key=told.key if new_site else known.key,
        )
        if better != known:
            self._sightings.relabelled.append((pilot, better))

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
        """Set what the output knows better."""
        ours = pilot.identity.origin in {"files", "jobs"}
        start_us, assumed = output.start_us, ours and Assumption.BEGIN in pilot.assumed
        if start_us is None and assumed:
            start_us = min(output.times, default=None)
        if start_us is not None and start_us != pilot.start_us:
            pilot.touch(min(start_us, pilot.start_us))
            pilot.start_us = start_us
        if output.validation_end_us not in {None, pilot.validation_end_us}:
            pilot.validation_end_us, pilot.dirty = output.validation_end_us, True
        _validate(pilot, output, ours=ours)
        if output.failure is not None and pilot.validation is Validation.FAILED:
            pilot.failure = f"{output.failure.kind.value} {output.failure.test}".strip()
            pilot.dirty = True
        last_us = max(output.times, default=pilot.start_us)
        if output.end_us is not None:
            self._end(pilot, max(output.end_us, pilot.start_us))
        elif ours:
            open_again(pilot, max(last_us, pilot.start_us))
        if output.start_us is not None:
            pilot.know(Assumption.BEGIN)
        elif assumed:
            pilot.assume(Assumption.BEGIN, pilot.start_us, pilot.until_us)
        if not pilot.steps or ours or Assumption.SIZE in pilot.assumed:
            self._resize(pilot, output)

    def _end(self, pilot: OpenPilot, end_us: int) -> None:
        pilot.contact_us = max(pilot.contact_us, end_us)
        set_end(pilot, "reported", end_us)
        pilot.gone_us, pilot.dirty = end_us, True

    def _resize(self, pilot: OpenPilot, output: PilotOutput) -> None:
        pilot_name, known = (
            output.name,
            pilot.told or Told(unnamed=True),
        )  # by an output that was cut
        size, rules, told = self._sizes.fill(
            pilot_name.entry or pilot.identity.key.entry,
            known.cores if output.cores is None else output.cores,
            known.memory_mib if output.memory_mib is None else output.memory_mib,
            known.gpus if output.gpus is None else output.gpus,
        )
        unnamed = known.unnamed or not pilot.identity.group
        pilot.told = told._replace(
            site=bool(pilot_name.site) or known.site or pilot.identity.origin == "collector",
            pid=None
            if pilot_name.startd
            else known.pid
            if pilot_name.pid is None
            else pilot_name.pid,
            unnamed=unnamed and not client_name(pilot_name.frontend, pilot_name.group),
        )
        pilot.know(*(SIZES - rules))
        for rule in rules:
            pilot.assume(rule, pilot.start_us, pilot.until_us)
        pilot.resize(size)

    def _tell(self, pilot: OpenPilot, output: PilotOutput, lookup: Lookup) -> None:
        """Join the runs of jobs that it tells of; those in its startd's history first."""
        if output.attempts or output.runs:
            self._shelf.load_whole(pilot, lookup)
        self._join(pilot, [attempt.fact._replace(pilot=pilot.label) for attempt in output.attempts])
        better = Better(pilot.attempts.values() if output.runs else (), self._rules.start_guard_us)
        runs = [run for run in output.runs if not better.knows(job_of(run), run.start_us)]
        self._join(pilot, [fact_of(run, pilot, self._rules.q) for run in runs])

    def _sum_up(self, pilot: OpenPilot, output: PilotOutput, lookup: Lookup) -> None:
        """Go by its statistics where no run of a job is known."""
        known = bool(output.attempts or output.runs)
        known |= pilot.ran_jobs and Assumption.JOBS not in pilot.assumed
        if not known and ran_jobs(output) and pilot.validation is not Validation.FAILED:
            self._shelf.load_whole(pilot, lookup)
            tell_statistics(pilot, output, self._joining)

    def _join(self, pilot: OpenPilot, facts: Sequence[AttemptFact]) -> None:
        by_job: defaultdict[str, list[AttemptFact]] = defaultdict(list)
        for fact in facts:
            by_job[fact.job].append(fact)
        for job, told in by_job.items():
            if job in self._shelf.jobs or len(pilot.attempts) + len(told) <= MOST_RUNS:
                self._joining.add(job, told)
            else:
                self.crowded += len(told)


def _validate(pilot: OpenPilot, output: PilotOutput, *, ours: bool) -> None:
    """Set how the validation ended; ``ours``: no collector tells whether it ran jobs."""
    validation = output.validation
    passed = validation is Validation.PASSED or output.validation_end_us is not None
    jobs_told = validation is Validation.PASSED and not (ours and ran_jobs(output) is None)
    if output.registered is False and ours and not (pilot.attempts or pilot.ran_jobs):
        if pilot.validation is not Validation.FAILED:
            pilot.touch(pilot.start_us)
            pilot.validation = Validation.FAILED
        pilot.assume(Assumption.VALIDATION, pilot.start_us, max(pilot.until_us, pilot.start_us + 1))
    elif passed and validation is not Validation.FAILED and not jobs_told:
        if pilot.validation is Validation.UNKNOWN:
            pilot.touch(pilot.start_us)
            pilot.validation = Validation.STARTED
    elif validation is not Validation.UNKNOWN and not (
        validation is Validation.FAILED and pilot.identity.origin == "collector"
    ):
        if pilot.validation is not validation:
            pilot.touch(pilot.start_us)
        pilot.validation = validation
        pilot.know(Assumption.VALIDATION)


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
    return pilot.no_output or (pilot.implied and pilot.told is None)


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
