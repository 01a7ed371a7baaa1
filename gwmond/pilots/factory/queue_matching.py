"""Which pilots are which jobs of their factory, and what their jobs change of them.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from gwmond.model.factory.jobs import GUARD_US, ZONES_US, FactoryJob, QueueRecord
from gwmond.model.facts import EntryKey
from gwmond.model.pilot_life import Assumption, End
from gwmond.model.pilots.file_facts import same_user, synthetic_name
from gwmond.model.pilots.pilot_facts import replace
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.derive import MEASURED_ENDS, ends_of, start_of
from gwmond.pilots.memory.open_pilot import OpenPilot

_Submission: TypeAlias = tuple[object, ...]


class QueueMatching:
    """Which pilots that are known are which jobs of their factory, by the index of the job.

    A pilot may be a job if it began while that was there, by clocks that differ by ``GUARD_US``.
    Of the executions of one job, which follow each other and may be as near, it is the likeliest:
    where its beginning and end differ least.  Another execution through most of which it lived is
    no pilot: a job runs once at a time.

    - ``told``: which a source of its own has; ``made``: of which only its factory does.
    - ``alone``: jobs of which no pilot is known, ``made`` apart; the others are not certain.
    - ``covered``: executions of which no pilot is known, as one of the same job lived then.
    - ``stale``: pilots that were made of a job which by now is none, or another's.  Of pilots
      that began before the first event that is kept it is not known.
    """

    def __init__(
        self,
        place: QueueRecord,
        jobs: Sequence[FactoryJob],
        pilots: Sequence[OpenPilot],
        made: Sequence[OpenPilot],
    ) -> None:
        fitting = [[pilot for pilot in pilots if _fits(pilot, job)] for job in jobs]
        chosen = {pilot.id: _choose(pilot, jobs, fitting) for pilot in pilots}
        claims = Counter(pilot.id for some in fitting for pilot in some)
        self.told: dict[int, OpenPilot] = {}
        self.alone: set[int] = set()
        self.covered: set[int] = set()
        for index, (job, some) in enumerate(zip(jobs, fitting, strict=True)):
            if len(some) == 1 and claims[some[0].id] == 1:
                self.told[index] = some[0]
            elif not some and any(
                _covers(pilot, job) and _submission(job) in chosen[pilot.id] for pilot in pilots
            ):
                self.covered.add(index)
            elif not some and not any(
                _fits(pilot, job, ZONES_US) and _submission(job) not in chosen[pilot.id]
                for pilot in pilots
            ):
                self.alone.add(index)
        of_one = {pilot.id for job in jobs for pilot in _of_job(made, job)}
        of_jobs = [pilot for pilot in made if pilot.id in of_one or _is_of(place, pilot)]
        alone = {index: jobs[index] for index in self.alone if jobs[index].life is not None}
        self.made = _made_of(of_jobs, alone, place.cut_us)
        self.stale = [
            pilot
            for pilot in of_jobs
            if pilot not in self.made.values() and pilot.start_us >= place.cut_us
        ]


def _choose(
    pilot: OpenPilot, jobs: Sequence[FactoryJob], fitting: Sequence[list[OpenPilot]]
) -> set[_Submission]:
    """Keep one execution of each job for a pilot; return the jobs, by their submissions."""
    same: defaultdict[_Submission, list[int]] = defaultdict(list)
    for index, some in enumerate(fitting):
        if pilot in some and (submission := _submission(jobs[index])):
            same[submission].append(index)
    for indices in same.values():
        best = min(indices, key=lambda index: (_differs(pilot, jobs[index]), -index))
        for index in indices:
            if index != best:
                fitting[index].remove(pilot)
    return set(same)


def _fits(pilot: OpenPilot, job: FactoryJob, guard_us: int = GUARD_US) -> bool:
    """Return whether a pilot may be a job: by when it began, and by whose it is."""
    return same_user(pilot.identity.name, job.user) and job.fits(_first_us(pilot), guard_us)


def _of_job(pilots: Sequence[OpenPilot], job: FactoryJob) -> list[OpenPilot]:
    """Return which pilots that are known from their factory only may be this job.

    A pilot made of a line alone may have begun long before it was thought to have.
    """
    first, last = job.start_within_us()
    ends = {*job.written_us, job.ended_us}
    return [
        pilot
        for pilot in pilots
        if first <= pilot.start_us <= last or pilot.end_us in ends
        if same_user(pilot.identity.name, job.user)
    ]


def _is_of(place: QueueRecord, pilot: OpenPilot) -> bool:
    """Return whether a pilot was made of what is reported at a place: some of that was its end."""
    ends = [(event.at_us, event.name.user) for event in place.events]
    ends += [(line.written_us or 0, line.name.user) for line in place.lines]
    return any(at == pilot.end_us and same_user(pilot.identity.name, user) for at, user in ends)


def _made_of(
    pilots: Sequence[OpenPilot], jobs: dict[int, FactoryJob], cut_us: int
) -> dict[int, OpenPilot]:
    """Return which pilot known from its factory only is which job: the nearest are the same.

    What began since ``cut_us`` is none that began before.
    """
    pairs = [
        (abs((job.life or (0, 0))[0] - pilot.start_us), index, pilot.id, pilot)
        for index, job in jobs.items()
        for pilot in _of_job(pilots, job)
        if pilot.start_us >= cut_us or (job.life or (0, 0))[0] < cut_us
    ]
    made: dict[int, OpenPilot] = {}
    for _, index, _, pilot in sorted(pairs, key=lambda pair: pair[:3]):
        if index not in made and pilot not in made.values():
            made[index] = pilot
    return made


def _covers(pilot: OpenPilot, job: FactoryJob) -> bool:
    """Return whether a pilot lived through more than half of an execution.

    Clocks differ, so that it may seem to have lived in a part of another pilot's execution.
    """
    if job.life is None or Assumption.BEGIN in pilot.assumed:
        return False
    start_us, end_us = job.life
    both_us = min(_last_us(pilot), end_us) - max(pilot.start_us, start_us)
    return 2 * both_us > end_us - start_us


def _submission(job: FactoryJob) -> _Submission:
    """Return what executions of one job have in common; empty for a summary alone."""
    return () if job.first_us is None else (job.instance, job.user, job.first_us)


def _differs(pilot: OpenPilot, job: FactoryJob) -> int:
    """Return by how much an execution differs from what is known of a pilot."""
    first_us = _first_us(pilot)
    early_us = (job.started_us if job.started_us is not None else first_us) - first_us
    differs_us = max(0, early_us) if Assumption.BEGIN in pilot.assumed else abs(early_us)
    if job.ended_us is None:
        return differs_us
    late_us = _last_us(pilot) - job.ended_us
    source, _ = _end_without_queue(pilot)
    return differs_us + (abs(late_us) if source in MEASURED_ENDS else max(0, late_us))


def _first_us(pilot: OpenPilot) -> int:
    """Return the first that is known of a pilot, whatever its job says of its beginning."""
    first_us = start_of(pilot.known).first_us
    return pilot.start_us if first_us is None else first_us


def _end_without_queue(pilot: OpenPilot) -> tuple[End, int]:
    """Return the best source of a pilot's end beside the queue, and what it says."""
    known = pilot.known
    ends = ends_of(known._replace(facts=replace(known.facts, queue=None)))
    return next(iter(ends.items()), ("", 0))


def _last_us(pilot: OpenPilot) -> int:
    """Return the last that is known of a pilot, whatever its job says of its end."""
    _, end_us = _end_without_queue(pilot)
    return (
        max(end_us, pilot.last_heard_us) if pilot.end_source == "queue" else pilot.effective_end_us
    )


# --- What a job changes of its pilot: of several calls the last counts ------------------------


def amend(pilot: OpenPilot, job: FactoryJob | None) -> None:
    """Take in the job that is this pilot; None: no job is, or more than one may be."""
    if not pilot.known_from_jobs_only and not (job is None and pilot.no_output):
        pilot.learn(replace(pilot.facts, queue=None if job is None else job.facts))


def named(pilot: OpenPilot, job: FactoryJob | None) -> PilotIdentity:
    """Return a pilot's identity, where its output does not have its group with that of its job.

    ``job``: None if that is not known.
    """
    key, output = pilot.identity, pilot.facts.output
    if output is None or not output.unnamed or not pilot.has_output:
        return key
    return key._replace(group=_client(job) if job is not None else "")


def identity_of(place: QueueRecord, job: FactoryJob, site: str, factory: str) -> PilotIdentity:
    """Return the identity of a pilot known from its factory only, without a schedd."""
    began_us = job.life[0] if job.life is not None else 0
    return PilotIdentity(
        name=synthetic_name(place.number, job.user, job.instance, place.entry),
        started=began_us // SECOND_US,
        factory_job=f"#{place.number}",
        factory=factory,
        key=EntryKey(site, place.entry),
        group=_client(job),
        node="",
        origin="files",
    )


def _client(job: FactoryJob) -> str:
    """Return for whom a job ran, as well as its factory has that."""
    return job.client or (job.line.name.frontend if job.line is not None else "") or job.user
