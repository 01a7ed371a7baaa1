"""What a job of the factory changes of a pilot that better sources tell of.

Units: times are microseconds since the epoch.  The rules are in ``factory_jobs``.  Each function
may be called again with the same facts, or with others: the last call counts.
"""

from __future__ import annotations

from gwmond.model.factory_jobs import FactoryJob, Place
from gwmond.model.facts import EntryKey
from gwmond.model.own_names import own_name
from gwmond.model.pilot_facts import Assumption
from gwmond.model.stored_pilots import PilotIdentity
from gwmond.model.times import SECOND_US
from gwmond.pilots.ends import holds, set_end
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.sightings import prolong


def amend(pilot: OpenPilot, job: FactoryJob) -> None:
    """Let a pilot begin and end as its job in the queue did, where nothing better tells."""
    if not pilot.implied:
        _begin(pilot, job.started_us)
        if pilot.end_us is not None:
            _end(pilot, job)


def named(pilot: OpenPilot, job: FactoryJob | None) -> PilotIdentity:
    """Return a pilot's identity, where its output does not tell its group with that of its job.

    ``job``: None if that is not known.
    """
    key, told = pilot.identity, pilot.told
    if told is None or not told.unnamed or not pilot.has_output:
        return key
    return key._replace(group=_client(job) if job is not None else "")


def release(pilot: OpenPilot) -> None:
    """No job is this pilot any more, or more than one may be: it ended as is known without."""
    if pilot.no_output:
        return
    if "queue" in pilot.ends:
        _end(pilot, None)
    _begin(pilot, None)


def identity_of(place: Place, job: FactoryJob, site: str, factory: str) -> PilotIdentity:
    """Return the identity of a pilot that only its factory tells of; its schedd is not known."""
    began_us = job.life[0] if job.life is not None else 0
    return PilotIdentity(
        name=own_name(place.number, job.user, job.instance, place.entry),
        started=began_us // SECOND_US,
        factory_job=f"#{place.number}",
        factory=factory,
        key=EntryKey(site, place.entry),
        group=_client(job),
        node="",
        origin="files",
    )


def _client(job: FactoryJob) -> str:
    """Return for whom a job ran, as well as its factory tells that."""
    return job.client or (job.line.name.frontend if job.line is not None else "") or job.user


def _end(pilot: OpenPilot, job: FactoryJob | None) -> None:
    """Let a pilot's job say when it ended; None: no job is this pilot."""
    changed = set_end(pilot, "queue", _end_of(pilot, job))
    if not pilot.ends:
        changed = set_end(pilot, "assumed" if pilot.has_output else "vanished", pilot.contact_us)
    if changed and not pilot.has_output:
        prolong(pilot)


def _end_of(pilot: OpenPilot, job: FactoryJob | None) -> int | None:
    """Return when a job ended, if that is not before its pilot was heard of last."""
    if job is None:
        return None
    end_us, line = job.ended_us, job.line
    if end_us is None and line is not None and None not in {line.written_us, job.duration_us}:
        end_us = min(pilot.start_us + (job.duration_us or 0), line.written_us or 0)
    return end_us if end_us is not None and holds("queue", end_us, pilot.contact_us) else None


def _begin(pilot: OpenPilot, started_us: int | None) -> None:
    """Let a pilot whose output tells no beginning begin when its job did."""
    assumed = pilot.assumed.get(Assumption.BEGIN)
    if assumed is None:
        return
    first_us = assumed[1] if assumed[1] < pilot.until_us else pilot.start_us
    start_us = first_us if started_us is None or started_us > first_us else started_us
    if start_us != pilot.start_us:
        pilot.touch(min(start_us, pilot.start_us))
        pilot.start_us, pilot.dirty = start_us, True
    pilot.assume(Assumption.BEGIN, start_us, first_us if start_us < first_us else pilot.until_us)
