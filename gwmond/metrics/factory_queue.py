"""Metrics of the factory's own numbers: events of its queue, sums of completed_jobs, outputs.

gwmond does not account these numbers: see docs/reconcile.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from gwmond.metrics.family import POLLED, Family, Sample
from gwmond.metrics.zeros import places, with_zeros
from gwmond.model.factory.totals import FactoryKind
from gwmond.model.poll.snapshot import Snapshot

_EVENTS = "gwmond_factory_queue_events_total"
_QUEUE = "queue_"
_QUEUE_EVENTS = tuple(
    kind.value.removeprefix(_QUEUE) for kind in FactoryKind if kind.value.startswith(_QUEUE)
)
_KINDS: dict[str, FactoryKind] = {}
_KEPT = " Kept in the ledger: it goes on after restarts." + POLLED
_LINES = " From completed_jobs_*.log, by the time at which each line was written."
_OUTPUTS = " By the time of the pilot's end, else when the output was written."
_CLIENT = " client is frontend.group, of completed_jobs the frontend alone."


def _events(s: Snapshot) -> Iterator[Sample]:
    if s.pilot_time is None:
        return iter(())
    counted = {
        (kind.value.removeprefix(_QUEUE), entry, client): shown
        for (entry, client, kind), shown in s.pilot_time.factory.items()
        if kind.value.startswith(_QUEUE)
    }
    clients = dict.fromkeys(labels[1:] for labels in counted)
    if clients:  # the logs are read: each group that has pilots, or asks for some, is a client
        clients |= {(entry, group): None for _, entry, group in places(s)}
    every = ((event, *client) for client in clients for event in _QUEUE_EVENTS)
    samples = (Sample(labels, shown.micros, shown.created) for labels, shown in counted.items())
    return with_zeros(samples, every)


def _of(kind: FactoryKind, s: Snapshot) -> Iterator[Sample]:
    """Yield a number, 0 where another number from the same files is known of the client."""
    if s.pilot_time is None:
        return iter(())
    files = kind.value.partition("_")[0]
    samples = [
        (factory_kind, Sample((entry, client), shown.micros, shown.created))
        for (entry, client, factory_kind), shown in s.pilot_time.factory.items()
        if factory_kind.value.startswith(f"{files}_")
    ]
    labels = dict.fromkeys(sample.labels for _, sample in samples)
    return with_zeros((sample for factory_kind, sample in samples if factory_kind is kind), labels)


def kinds_of(family: Family) -> dict[FactoryKind, tuple[str, ...]]:
    """Return which numbers a family of these shows, each with the labels before entry, client."""
    if family.name == _EVENTS:
        events = (kind for kind in FactoryKind if kind.value.startswith(_QUEUE))
        return {kind: (kind.value.removeprefix(_QUEUE),) for kind in events}
    return {_KINDS[family.name]: ()}


def _family(kind: FactoryKind, name: str, meaning: str, source: str = _LINES) -> Family:
    _KINDS[name] = kind
    help_text = meaning + source + _KEPT
    return Family(name, help_text, ("entry", "client"), lambda s: _of(kind, s))


TOPIC = "The factory's own numbers"
FAMILIES = (
    Family(
        _EVENTS,
        "Events of pilots as jobs of their factory: submitted, pending (handed to the site), "
        "started, ended, evicted, removed, held, released, failed (could not be handed over or "
        "started). From condor_activity_*.log." + _CLIENT + " Unit: events." + _KEPT,
        ("event", "entry", "client"),
        _events,
    ),
    _family(
        FactoryKind.SUMMARY_PILOTS,
        "gwmond_factory_completed_pilots_total",
        "Pilots in the factory's summary; some that were killed hard are missing. Unit: pilots.",
    ),
    _family(
        FactoryKind.SUMMARY_NO_DURATION,
        "gwmond_factory_completed_pilots_without_duration_total",
        "Pilots in the factory's summary with a duration of -1, 0, or more than 60 days: their "
        "output did not come back whole. Unit: pilots.",
    ),
    _family(
        FactoryKind.SUMMARY_STARTED,
        "gwmond_factory_completed_pilots_condor_started_total",
        "Pilots in the factory's summary in which HTCondor started, if only for a moment. "
        "Unit: pilots.",
    ),
    _family(
        FactoryKind.SUMMARY_SECONDS,
        "gwmond_factory_completed_pilot_seconds_total",
        "Time of the pilots in the factory's summary. Unit: wall-clock seconds of pilots, not of "
        "cores.",
    ),
    _family(
        FactoryKind.SUMMARY_VALIDATION_SECONDS,
        "gwmond_factory_completed_validation_seconds_total",
        "Validation time of the pilots in the factory's summary, exact to a thousandth of each "
        "duration. Unit: wall-clock seconds of pilots.",
    ),
    _family(
        FactoryKind.SUMMARY_CONDOR_SECONDS,
        "gwmond_factory_completed_condor_seconds_total",
        "Time of HTCondor in the pilots of the factory's summary. Unit: wall-clock seconds of "
        "pilots.",
    ),
    _family(
        FactoryKind.SUMMARY_JOBS,
        "gwmond_factory_completed_jobs_total",
        "Jobs in the factory's summary; older factories divide them by the pilot's cores, rounded "
        "up. Unit: jobs.",
    ),
    _family(
        FactoryKind.SUMMARY_JOB_SECONDS,
        "gwmond_factory_completed_job_seconds_total",
        "Time of jobs in the factory's summary; older factories divide it by the pilot's cores. "
        "Unit: seconds.",
    ),
    _family(
        FactoryKind.SUMMARY_GOODPUT_SECONDS,
        "gwmond_factory_completed_goodput_seconds_total",
        "Time of jobs that exited with 0 in the factory's summary, divided by the pilot's cores. "
        "Unit: seconds.",
    ),
    _family(
        FactoryKind.SUMMARY_TERMINATED_SECONDS,
        "gwmond_factory_completed_terminated_seconds_total",
        "Time of jobs that exited by themselves in the factory's summary, divided by the pilot's "
        "cores. Unit: seconds.",
    ),
    _family(
        FactoryKind.OUTPUTS_PILOTS,
        "gwmond_factory_outputs_total",
        "Outputs of pilots (job.*.out and job.*.err, together one) that came back, each once, also "
        "if empty; a streamed output counts while its pilot runs." + _CLIENT + " Unit: pilots.",
        _OUTPUTS,
    ),
    _family(
        FactoryKind.OUTPUTS_EMPTY,
        "gwmond_factory_outputs_empty_total",
        "Outputs of pilots that were empty when they were read first: the pilot was killed, or its "
        "file was there before it began. client is the factory's user for the frontend. "
        "Unit: pilots.",
        _OUTPUTS,
    ),
    _family(
        FactoryKind.OUTPUTS_FILLED,
        "gwmond_factory_outputs_filled_total",
        "Outputs of pilots that were empty at first and had content later; empty less filled are "
        "still empty. Unit: pilots.",
        _OUTPUTS,
    ),
)
