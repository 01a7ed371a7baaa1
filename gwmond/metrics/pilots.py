"""Metrics of pilots now: how many in which state, and how their units are used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from operator import attrgetter

from gwmond.metrics.family import POLLED, Family, Sample
from gwmond.model.facts import EntryRequest
from gwmond.model.names import OTHER
from gwmond.model.poll.snapshot import OVERHEADS, GpuUse, Snapshot

_PLACE = ("site", "entry", "group")
_MODELS = 50
_WAITING = {
    "submitted": "monitor.status_wait",
    "pending": "monitor.pending",
    "held": "monitor.status_held",
}


def _pilots(s: Snapshot) -> Iterator[Sample]:
    for (key, group), pilots in s.pilots.items():
        for state in ("busy", "idle", "retiring", "failed"):
            yield Sample((state, *key, group), getattr(pilots, state))
    for state, field in _WAITING.items():
        yield from (Sample((state, *x.labels), x.value) for x in requested(field)(s))


def requested(field: str) -> Callable[[Snapshot], Iterator[Sample]]:
    """Return the samples of a field of requests, summed over the factories of an entry."""
    number_of: Callable[[EntryRequest], int | None] = attrgetter(field)

    def samples(s: Snapshot) -> Iterator[Sample]:
        sums: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        for request in s.requests:
            if (number := number_of(request)) is not None:
                sums[*request.entry, request.group] += number
        return (Sample(place, number) for place, number in sums.items())

    return samples


def _units(s: Snapshot) -> Iterator[Sample]:
    for (key, group), pilots in s.pilots.items():
        for resource, units in pilots.units.items():
            if resource == "cpu" or units.total > 0:
                for use in ("busy", "idle", "remainder"):
                    yield Sample((resource, use, *key, group), getattr(units, use))


def _overhead(s: Snapshot) -> Iterator[Sample]:
    for (key, group), pilots in s.pilots.items():
        for resource, units in pilots.units.items():
            if resource == "cpu" or units.total > 0:
                for why in OVERHEADS:
                    number = pilots.overhead.get((resource, why), 0)
                    yield Sample((resource, why, *key, group), number)


def _gpus(s: Snapshot) -> Iterator[Sample]:
    """Yield them by model; pilots choose the names, so only those of most GPUs stand apart."""
    models: Counter[str] = Counter()
    for pilots in s.pilots.values():
        for (model, _), number in pilots.gpus.items():
            models[model] += number
    apart = sorted(models, key=lambda model: (-models[model], model))[:_MODELS]
    for (key, group), pilots in s.pilots.items():
        gpus: Counter[tuple[str, GpuUse]] = Counter()
        for (model, use), number in pilots.gpus.items():
            gpus[model if model in apart else OTHER, use] += number
        yield from (Sample((*kind, *key, group), number) for kind, number in gpus.items())


def _stalled(s: Snapshot) -> Iterator[Sample]:
    for (key, group), pilots in s.pilots.items():
        if pilots.stalled is not None:
            yield Sample(("none", *key, group), pilots.stalled.jobs)
            yield Sample(("not_known", *key, group), pilots.stalled.unknown)


def _stalled_time(s: Snapshot) -> Iterator[Sample]:
    for (key, group), pilots in s.pilots.items():
        if pilots.stalled is not None:
            yield Sample((*key, group), pilots.stalled.core_s)


TOPIC = "Pilots"
FAMILIES = (
    Family(
        "gwmond_pilots",
        "Pilots by state, each pilot once. Registered in the collector: busy (runs jobs), idle "
        "(runs none), retiring (takes no more jobs). failed: the validation failed, and the pilot "
        "says so in the collector until its end. Not there yet, by the factory's count: submitted "
        "(the site has not reported the pilot), pending (in the site's queue), held. "
        "Unit: pilots." + POLLED,
        ("state", *_PLACE),
        _pilots,
    ),
    Family(
        "gwmond_pilots_unused",
        "Registered pilots that have not run a job yet. Unit: pilots." + POLLED,
        _PLACE,
        lambda s: (
            Sample((*key, group), pilot_units.unused)
            for (key, group), pilot_units in s.pilots.items()
        ),
    ),
    Family(
        "gwmond_pilots_requested",
        "Idle pilots that the frontend group requests of the entry. Unit: pilots." + POLLED,
        _PLACE,
        requested("monitor.asked_idle"),
    ),
    Family(
        "gwmond_pilots_requested_max",
        "The most pilots that the frontend group wants to run at the entry. Unit: pilots." + POLLED,
        _PLACE,
        requested("monitor.asked_max"),
    ),
    Family(
        "gwmond_pilot_canonical_units",
        "Registered pilots' units by use: busy (what jobs take: each the pilot's units divided by "
        "how many such jobs fit), idle (a job of one unit would fit), remainder (neither). Unit: "
        "canonical units." + POLLED,
        ("resource", "use", *_PLACE),
        _units,
    ),
    Family(
        "gwmond_pilot_overhead_canonical_units",
        "Pilots' units that no job takes now, by part: start (pilots that run by the factory's "
        "count and are about to register, as they validate their node or start HTCondor; an "
        "estimate), first_job (the pilot ran none yet), between_jobs (it has, and runs none), "
        "beside_jobs (cores and memory that its jobs leave), draining (it is drained), retirement "
        "(it takes no more jobs). Its average over time is an estimate of pilot_overhead and "
        "decision_problem, as they arise. Unit: canonical units." + POLLED,
        ("resource", "part", *_PLACE),
        _overhead,
    ),
    Family(
        "gwmond_pilot_gpus",
        "GPUs of registered pilots by model (GPUs_DeviceName; empty where a pilot's ad has none: "
        f"models differ, parts of GPUs; other beyond {_MODELS} models), and by use: busy (a job "
        "has the GPU, whether it computes or not), idle. Unit: GPUs." + POLLED,
        ("model", "use", *_PLACE),
        _gpus,
    ),
    Family(
        "gwmond_stalled_jobs",
        "Running jobs whose programs began longer ago than demand.stalled_after, by what CPU they "
        "used since: none (less than 1 % of a core), not_known (their schedd has had no update for "
        "an hour). None of them transfers files. A program that worked for long and then hangs is "
        "seen late. Of each schedd 2,000 at most. Unit: jobs." + POLLED,
        ("cpu", *_PLACE),
        _stalled,
    ),
    Family(
        "gwmond_stalled_jobs_core_seconds",
        "Core seconds that stalled jobs (cpu: none) hold, since their programs began. Unit: core "
        "seconds." + POLLED,
        _PLACE,
        _stalled_time,
    ),
)
