"""The numbers that a factory and a frontend group exchange about one entry, as both advertise them.

A glideresource ad has the factory's part as ``GlideFactoryMonitor*``, the frontend's own as
``GlideClientMonitor*``; a glidefactoryclient ad the factory's as ``GlideinMonitor*``, and in it the
frontend's as the factory has last heard it (``GlideinMonitorClientMonitor*``).  These are the
values that the factory's and the frontend's round-robin databases keep: docs/rrd.md.

A party's own ad is better than its copy in the other's ad.  So the factory's numbers come from its
own ad if a WMS collector is queried, and the frontend's from its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from gwmond.model.units import known_sum

Numbers: TypeAlias = Sequence[int | None]


class Monitor(NamedTuple):
    """Counts of one entry for one frontend group; a number that no ad has is ``None``.

    ``status_*`` are pilots as the factory counts them (``status_idle`` is the sum of wait,
    pending, stage_in and idle_other), ``status_running_cores`` running pilots times the cores that
    the factory expects.  ``requested_*`` are the requests that the factory has received, in
    pilots or expected cores; ``requested_adjusted_idle`` is what its limits leave (before that
    attribute came, in 2025, ``requested_idle`` itself was 0 at a limit).  ``client_*`` are the
    frontend's: jobs (``client_jobs_idle`` and ``_running`` are counted at every entry that they
    match, ``client_jobs_here`` run at this one, ``client_jobs_old`` are idle for 10 minutes,
    divided among the entries that they match), *slots* (not pilots), cores.
    ``client_info_age`` is how many seconds ago the factory had heard of the frontend when it wrote.
    ``asked_*`` are the frontend's requests (pilots).
    """

    status_idle: int | None = None
    status_running: int | None = None
    status_held: int | None = None
    status_wait: int | None = None
    status_pending: int | None = None
    status_stage_in: int | None = None
    status_idle_other: int | None = None
    status_stage_out: int | None = None
    status_running_cores: int | None = None
    requested_idle: int | None = None
    requested_adjusted_idle: int | None = None
    requested_max: int | None = None
    requested_idle_cores: int | None = None
    requested_max_cores: int | None = None
    client_info_age: int | None = None
    client_jobs_idle: int | None = None
    client_jobs_running: int | None = None
    client_jobs_here: int | None = None
    client_slots_total: int | None = None
    client_slots_idle: int | None = None
    client_slots_running: int | None = None
    client_slots_failed: int | None = None
    client_cores_total: int | None = None
    client_cores_idle: int | None = None
    client_cores_running: int | None = None
    asked_idle: int | None = None
    asked_max: int | None = None
    client_jobs_old: int | None = None

    @property
    def pending(self) -> int | None:
        """Pilots in the site's queue: idle ones which the site has acknowledged.

        ``status_wait`` of ``status_idle`` have no GridJobStatus yet.
        """
        idle, wait = self.status_idle, self.status_wait
        if idle is not None and wait is not None:
            return max(0, idle - wait)
        return idle if self.status_pending is None else self.status_pending

    def over(self, other: Monitor) -> Monitor:
        """Return these values, and those of ``other`` where these have none."""
        return Monitor(*_first(self, other))

    def told_by_factory(self) -> Monitor:
        """Return only the factory's own counts; its ads also have copies of the frontend's."""
        return Monitor(
            *(v if n in _FACTORYS else None for n, v in zip(self._fields, self, strict=True))
        )

    def plus(self, other: Monitor) -> Monitor:
        """Return the field-wise sums; a field that is None in either is None in the result."""
        return Monitor(*_sums(self, other))


def _first(these: Numbers, those: Numbers) -> Iterator[int | None]:
    return (b if a is None else a for a, b in zip(these, those, strict=True))


def _sums(these: Numbers, those: Numbers) -> Iterator[int | None]:
    return map(known_sum, zip(these, those, strict=True))


_FACTORYS = frozenset(
    name
    for name in Monitor._fields
    if name.startswith(("status_", "requested_")) or name == "client_info_age"
)


class EntryMonitor(NamedTuple):
    """An entry's numbers over all clients of its factories, and its limits (pilots)."""

    total: Monitor = Monitor()
    max_idle: int | None = None
    max_held: int | None = None
    max_pilots: int | None = None

    def plus(self, other: EntryMonitor) -> EntryMonitor:
        """Return the sums over two factories, which know nothing of each other."""
        return EntryMonitor(self.total.plus(other.total), *_sums(self[1:], other[1:]))

    def over(self, other: EntryMonitor) -> EntryMonitor:
        """Return these values, and those of ``other`` where these have none."""
        return EntryMonitor(self.total.over(other.total), *_first(self[1:], other[1:]))
