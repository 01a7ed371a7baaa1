"""Metrics of the numbers that factories and frontends advertise: the values of GlideinWMS's RRDs.

docs/rrd.md maps every name of the RRDs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TypeAlias

from gwmond.metrics.family import POLLED, Family, Sample, known
from gwmond.model.facts import EntryRequest
from gwmond.model.monitor import Monitor
from gwmond.model.poll.snapshot import Snapshot

_Samples: TypeAlias = Callable[[Snapshot], Iterator[Sample]]

_GROUP = ("site", "entry", "group")
_ENTRY = ("site", "entry")
_PILOTS = {
    "submitted": "status_wait",
    "idle_pending": "status_pending",
    "idle_stage_in": "status_stage_in",
    "idle_other": "status_idle_other",
    "running": "status_running",
    "stage_out": "status_stage_out",
    "held": "status_held",
}
_SLOTS = {
    "idle": "client_slots_idle",
    "running": "client_slots_running",
    "failed": "client_slots_failed",
}
_CORES = {"idle": "client_cores_idle", "running": "client_cores_running"}
_STATES = (
    "submitted (the site has not reported the pilot), idle_pending, idle_stage_in and idle_other "
    "(waiting, by the GridJobStatus), running, stage_out, held. Unit: pilots."
)
_EXPECTED = (
    "pilots times the cores that the factory expects of one (GLIDEIN_CPUS or "
    "GLIDEIN_ESTIMATED_CPUS), not what they have. Unit: cores."
)
_REQUESTED_IDLE = (
    "idle pilots (0 at a limit of a factory before GlideinWMS's issue 520 was solved). "
    "Unit: pilots."
)
_ADJUSTED = "idle pilots that limits leave of the request. Unit: pilots."
_MAX = "the most pilots at once. Unit: pilots."


def _by_group(fields: dict[str, str]) -> _Samples:
    """Return the samples of an entry and a frontend's group, added over factories.

    A number that one of the factories does not report is missing.  An empty name is no label.
    """

    def samples(s: Snapshot) -> Iterator[Sample]:
        sums: dict[tuple[str, str, str], Monitor] = {}
        for request in s.requests:
            at = *request.entry, request.group
            sums[at] = sums[at].plus(request.monitor) if at in sums else request.monitor
        return known(
            ((name, *at) if name else at, getattr(monitor, field))
            for at, monitor in sums.items()
            for name, field in fields.items()
        )

    return samples


def _by_entry(fields: dict[str, str]) -> _Samples:
    """Return the samples of an entry over all clients of its factories."""
    values = {name: attrgetter(field) for name, field in fields.items()}
    return lambda s: known(
        ((name, *key) if name else tuple(key), value(numbers))
        for name, value in values.items()
        for key, numbers in s.entry_monitors.items()
    )


def _oldest(s: Snapshot, age_of: Callable[[EntryRequest], int | None]) -> Iterator[Sample]:
    """Return the age of the oldest information, of several factories."""
    oldest: dict[tuple[str, ...], int] = {}
    for request in s.requests:
        if (age := age_of(request)) is not None:
            place = *request.entry, request.group
            oldest[place] = max(age, oldest.get(place, 0))
    return (Sample(place, age) for place, age in oldest.items())


def _gauge(name: str, meaning: str, labels: tuple[str, ...], samples: _Samples) -> Family:
    return Family(name, meaning + POLLED, labels, samples)


def _group(name: str, meaning: str, field: str) -> Family:
    return _gauge(name, meaning, _GROUP, _by_group({"": field}))


def _entry(name: str, meaning: str, field: str) -> Family:
    return _gauge(name, meaning, _ENTRY, _by_entry({"": field}))


_CLIENT = "Of a client, by the factory's count: "
_ALL = "Of all clients of an entry, by the factories' count: "
_ASKED = "A client's requests, by the factory's ad: "
_ALL_ASKED = "The requests of all clients at an entry, by the factories' ads: "
_FRONTEND = "By the frontend group's count: "
_ANSWERED = "Age (of several factories the oldest): "

TOPIC = "Factories and frontends"
FAMILIES = (
    _gauge(
        "gwmond_factory_pilots",
        f"A client's pilots by the factory's count, each once: {_STATES}",
        ("state", *_GROUP),
        _by_group(_PILOTS),
    ),
    _group(
        "gwmond_factory_idle_pilots",
        f"{_CLIENT}all pilots that wait (submitted and idle_...). Unit: pilots.",
        "status_idle",
    ),
    _group(
        "gwmond_factory_running_cores",
        f"{_CLIENT}cores of running pilots: {_EXPECTED}",
        "status_running_cores",
    ),
    _group(
        "gwmond_factory_pilots_requested",
        f"{_ASKED}{_REQUESTED_IDLE} The client's own number is gwmond_pilots_requested.",
        "requested_idle",
    ),
    _group(
        "gwmond_factory_pilots_requested_adjusted",
        f"{_ASKED}{_ADJUSTED}",
        "requested_adjusted_idle",
    ),
    _group("gwmond_factory_pilots_requested_max", f"{_ASKED}{_MAX}", "requested_max"),
    _group(
        "gwmond_factory_cores_requested",
        f"{_ASKED}cores of idle pilots: {_EXPECTED}",
        "requested_idle_cores",
    ),
    _group(
        "gwmond_factory_cores_requested_max",
        f"{_ASKED}the most cores: {_EXPECTED}",
        "requested_max_cores",
    ),
    _gauge(
        "gwmond_factory_entry_pilots",
        f"An entry's pilots over all clients, by the factories' count, each once: {_STATES}",
        ("state", *_ENTRY),
        _by_entry({state: f"total.{field}" for state, field in _PILOTS.items()}),
    ),
    _entry(
        "gwmond_factory_entry_idle_pilots",
        f"{_ALL}all pilots that wait (submitted and idle_...). Unit: pilots.",
        "total.status_idle",
    ),
    _entry(
        "gwmond_factory_entry_running_cores",
        f"{_ALL}cores of running pilots: {_EXPECTED}",
        "total.status_running_cores",
    ),
    _entry(
        "gwmond_factory_entry_pilots_requested",
        f"{_ALL_ASKED}{_REQUESTED_IDLE}",
        "total.requested_idle",
    ),
    _entry(
        "gwmond_factory_entry_pilots_requested_adjusted",
        f"{_ALL_ASKED}{_ADJUSTED}",
        "total.requested_adjusted_idle",
    ),
    _entry(
        "gwmond_factory_entry_pilots_requested_max", f"{_ALL_ASKED}{_MAX}", "total.requested_max"
    ),
    _entry(
        "gwmond_factory_entry_limit_pilots",
        "The factories' limit of an entry's pilots, over all clients. Unit: pilots.",
        "max_pilots",
    ),
    _entry(
        "gwmond_factory_entry_limit_idle_pilots",
        "The factories' limit of an entry's idle pilots, over all clients. Unit: pilots.",
        "max_idle",
    ),
    _entry(
        "gwmond_factory_entry_limit_held_pilots",
        "The factories' limit of an entry's held pilots, over all clients. Unit: pilots.",
        "max_held",
    ),
    _group(
        "gwmond_entry_frontend_running_jobs_matching",
        f"{_FRONTEND}running jobs that could run at the entry, wherever they do; each counts at "
        "every entry that the job matches. Unit: jobs.",
        "client_jobs_running",
    ),
    _group(
        "gwmond_entry_frontend_running_jobs_here",
        f"{_FRONTEND}jobs that run at the entry. Unit: jobs.",
        "client_jobs_here",
    ),
    _group(
        "gwmond_entry_frontend_old_idle_jobs",
        f"{_FRONTEND}jobs idle for 10 minutes or longer, divided among the entries that they "
        "match. Unit: jobs.",
        "client_jobs_old",
    ),
    _gauge(
        "gwmond_entry_frontend_slots",
        f"{_FRONTEND}slots of the entry's pilots by state: idle, running, failed. A pilot with "
        "dynamic slots has several. Unit: slots.",
        ("state", *_GROUP),
        _by_group(_SLOTS),
    ),
    _group(
        "gwmond_entry_frontend_slots_registered",
        f"{_FRONTEND}all slots of the entry's pilots. Unit: slots.",
        "client_slots_total",
    ),
    _gauge(
        "gwmond_entry_frontend_cores",
        f"{_FRONTEND}cores of the entry's pilots by state: idle, running. Unit: cores.",
        ("state", *_GROUP),
        _by_group(_CORES),
    ),
    _group(
        "gwmond_entry_frontend_cores_registered",
        f"{_FRONTEND}all cores of the entry's pilots. Unit: cores.",
        "client_cores_total",
    ),
    _gauge(
        "gwmond_entry_request_age_seconds",
        f"{_ANSWERED}of the frontend group's request, when the factory wrote its ad. "
        "Unit: seconds.",
        _GROUP,
        lambda s: _oldest(s, lambda request: request.monitor.client_info_age),
    ),
    _gauge(
        "gwmond_entry_advertisement_age_seconds",
        f"{_ANSWERED}of the glideresource ad that gwmond reads. Unit: seconds.",
        _GROUP,
        lambda s: _oldest(
            s, lambda x: max(0, int(s.pool_time) - x.last_heard) if x.last_heard else None
        ),
    ),
)
