"""Metrics of what factories and frontends say of each other: the values of GlideinWMS's RRDs.

What another family has already is not repeated here; docs/rrd.md maps every name of the RRDs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from gwmond.metrics.family import POLLED, Family, Sample
from gwmond.monitor import Monitor
from gwmond.snapshot import Snapshot

_Samples: TypeAlias = Callable[[Snapshot], Iterator[Sample]]

_PILOTS = {
    "idle": "status_idle",
    "idle_pending": "status_pending",
    "idle_stage_in": "status_stage_in",
    "idle_other": "status_idle_other",
    "stage_out": "status_stage_out",
}
# Of all clients together gwmond_pilots has nothing, so these are told too.
_ENTRY_PILOTS = _PILOTS | {
    "submitted": "status_wait",
    "running": "status_running",
    "held": "status_held",
}
_REQUESTED = {
    "idle": "requested_idle",
    "adjusted_idle": "requested_adjusted_idle",
    "max": "requested_max",
}
_REQUESTED_CORES = {"idle": "requested_idle_cores", "max": "requested_max_cores"}
_RUNNING_CORES = {"": "status_running_cores"}
_RUNNING_JOBS = {"matching": "client_jobs_running", "here": "client_jobs_here"}
_OLD_JOBS = {"": "client_jobs_old"}
_SLOTS = {
    "total": "client_slots_total",
    "idle": "client_slots_idle",
    "running": "client_slots_running",
    "failed": "client_slots_failed",
}
_CORES = {
    "total": "client_cores_total",
    "idle": "client_cores_idle",
    "running": "client_cores_running",
}
_LIMITS = {"idle": "max_idle", "held": "max_held", "total": "max_pilots"}


def _told(monitor: Monitor, fields: dict[str, str]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield what is told, by its first label, of which there is none where its name is empty."""
    for name, field in fields.items():
        value: int | None = getattr(monitor, field)
        if value is not None:
            yield (name,) if name else (), value


def _by_group(fields: dict[str, str]) -> _Samples:
    """Return the samples of an entry and a frontend's group, added over factories.

    What one of the factories does not tell is not told of all.
    """

    def samples(s: Snapshot) -> Iterator[Sample]:
        sums: dict[tuple[str, str, str], Monitor] = {}
        for request in s.requests:
            at = *request.entry, request.group
            sums[at] = sums[at].plus(request.monitor) if at in sums else request.monitor
        for at, monitor in sums.items():
            for first, value in _told(monitor, fields):
                yield Sample((*first, *at), value)

    return samples


def _by_entry(fields: dict[str, str]) -> _Samples:
    """Return the samples of an entry over all clients of its factories."""

    def samples(s: Snapshot) -> Iterator[Sample]:
        for key, numbers in s.entry_monitors.items():
            for first, value in _told(numbers.total, fields):
                yield Sample((*first, *key), value)

    return samples


def _limits(s: Snapshot) -> Iterator[Sample]:
    for key, numbers in s.entry_monitors.items():
        for kind, field in _LIMITS.items():
            value: int | None = getattr(numbers, field)
            if value is not None:
                yield Sample((kind, *key), value)


def _ages(s: Snapshot) -> Iterator[Sample]:
    """Of several factories the oldest information counts."""
    oldest: dict[tuple[str, ...], float] = {}
    for request in s.requests:
        at = *request.entry, request.group
        ages = {"request": request.monitor.client_info_age}
        if request.last_heard:
            ages["advertisement"] = max(0, int(s.pool_time) - request.last_heard)
        for kind, age in ages.items():
            if age is not None:
                oldest[kind, *at] = max(age, oldest.get((kind, *at), 0))
    yield from (Sample(labels, age) for labels, age in oldest.items())


_GROUP = ("site", "entry", "group")
_EXPECTED = (
    "pilots times the cores that the factory expects of one (GLIDEIN_CPUS or "
    "GLIDEIN_ESTIMATED_CPUS), not what they have. Unit: cores."
)

FAMILIES = (
    Family(
        "gwmond_factory_pilots",
        "gauge",
        "",
        "A client's pilots by the factory's count, as far as gwmond_pilots does not have them: "
        "idle (all that wait), of them idle_pending, idle_stage_in and idle_other (by the "
        "GridJobStatus; the rest of idle is submitted), and stage_out. Unit: pilots." + POLLED,
        ("state", *_GROUP),
        _by_group(_PILOTS),
    ),
    Family(
        "gwmond_factory_running_cores",
        "gauge",
        "",
        "Cores of a client's running pilots as the factory reckons them: " + _EXPECTED + POLLED,
        _GROUP,
        _by_group(_RUNNING_CORES),
    ),
    Family(
        "gwmond_factory_requested_pilots",
        "gauge",
        "",
        "What the factory says a client asks of it: idle pilots (0 at a limit of a factory before "
        "GlideinWMS's issue 520 was solved), adjusted_idle (what limits leave of them), max (most "
        "at once). What the client itself says is gwmond_pilots, requested and requested_max. "
        "Unit: pilots." + POLLED,
        ("kind", *_GROUP),
        _by_group(_REQUESTED),
    ),
    Family(
        "gwmond_factory_requested_cores",
        "gauge",
        "",
        "What the factory says a client asks of it: " + _EXPECTED + POLLED,
        ("kind", *_GROUP),
        _by_group(_REQUESTED_CORES),
    ),
    Family(
        "gwmond_factory_entry_pilots",
        "gauge",
        "",
        "An entry's pilots over all clients of its factories, by the factories' count: idle (all "
        "that wait: submitted, idle_pending, idle_stage_in, idle_other), running, held, stage_out. "
        "Unit: pilots." + POLLED,
        ("state", "site", "entry"),
        _by_entry(_ENTRY_PILOTS),
    ),
    Family(
        "gwmond_factory_entry_running_cores",
        "gauge",
        "",
        "Cores of an entry's running pilots over all clients as the factories reckon them: "
        + _EXPECTED
        + POLLED,
        ("site", "entry"),
        _by_entry(_RUNNING_CORES),
    ),
    Family(
        "gwmond_factory_entry_requested_pilots",
        "gauge",
        "",
        "What the factories say all clients ask of an entry: idle, adjusted_idle, max. "
        "Unit: pilots." + POLLED,
        ("kind", "site", "entry"),
        _by_entry(_REQUESTED),
    ),
    Family(
        "gwmond_factory_entry_limit_pilots",
        "gauge",
        "",
        "The factories' limits for an entry over all clients: pilots idle, held, and in total. "
        "Unit: pilots." + POLLED,
        ("kind", "site", "entry"),
        _limits,
    ),
    Family(
        "gwmond_entry_frontend_running_jobs",
        "gauge",
        "",
        "Running jobs that the frontend group counts: matching (they could run at the entry, "
        "wherever they do; each at every entry it matches), here (they run at the entry). "
        "Unit: jobs." + POLLED,
        ("kind", *_GROUP),
        _by_group(_RUNNING_JOBS),
    ),
    Family(
        "gwmond_entry_frontend_old_idle_jobs",
        "gauge",
        "",
        "Jobs idle for 10 minutes or longer that the frontend group counts for the entry, divided "
        "among the entries that they match. Unit: jobs." + POLLED,
        _GROUP,
        _by_group(_OLD_JOBS),
    ),
    Family(
        "gwmond_entry_frontend_slots",
        "gauge",
        "",
        "Slots of the entry's pilots that the frontend group sees in its collector: total, idle, "
        "running, failed. A pilot with dynamic slots has several. Unit: slots." + POLLED,
        ("kind", *_GROUP),
        _by_group(_SLOTS),
    ),
    Family(
        "gwmond_entry_frontend_cores",
        "gauge",
        "",
        "Cores of the entry's pilots that the frontend group sees in its collector: total, idle, "
        "running. Unit: cores." + POLLED,
        ("kind", *_GROUP),
        _by_group(_CORES),
    ),
    Family(
        "gwmond_entry_information_age_seconds",
        "gauge",
        "seconds",
        "How old information about the entry is, the oldest of several factories': request (when "
        "the factory wrote its ad, it had heard of the frontend group so long ago), advertisement "
        "(the ad that gwmond reads came so long ago). Unit: seconds." + POLLED,
        ("kind", *_GROUP),
        _ages,
    ),
)
