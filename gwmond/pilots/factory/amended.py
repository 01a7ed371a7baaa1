"""What a job of the factory changes of a pilot that better sources know.

Units: times are microseconds since the epoch.  The rules are in ``factory.jobs``.  Each function
may be called again with the same facts, or with others: the last call counts.
"""

from __future__ import annotations

from gwmond.model.factory.jobs import FactoryJob, QueueRecord
from gwmond.model.facts import EntryKey
from gwmond.model.pilots.pilot_facts import QueueFacts, replace
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.pilots.synthetic_names import synthetic_name
from gwmond.model.times import SECOND_US
from gwmond.pilots.memory.open_pilot import OpenPilot


def queue_facts(job: FactoryJob) -> QueueFacts:
    """Return the times of a job, as facts of the pilot that it is."""
    written_us = job.line.written_us if job.line is not None else None
    return QueueFacts(job.started_us, job.ended_us, written_us, job.duration_us, job.killed)


def amend(pilot: OpenPilot, job: FactoryJob | None) -> None:
    """Take in the job that is this pilot; None: no job is, or more than one may be."""
    if not pilot.known_from_jobs_only and not (job is None and pilot.no_output):
        pilot.learn(replace(pilot.facts, queue=None if job is None else queue_facts(job)))


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
