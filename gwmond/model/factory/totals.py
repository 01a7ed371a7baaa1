"""The factory's own numbers, summed by hour, as the ledger has them.

Units: an hour is ``epoch // 3600`` (UTC), times are whole seconds.

``entry`` is the entry's name.  ``client`` is for whom, by the source: ``frontend.group``
of event logs (CLIENT in the log's name), outputs (client_name) and glideresource ads
(GlideClientName); only ``frontend`` of completed_jobs, which has no group; the factory's user
for the frontend if neither is known (an empty output).  Neither name has a point in it:
GlideinWMS refuses that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from gwmond.model.factory.jobs import FactoryJob
from gwmond.model.pilot_life import Category
from gwmond.model.totals import Hour


class FactoryKind(StrEnum):
    """What is summed.

    - ``queue_*``: events of pilots as jobs of their factory, by the event's time.
    - ``summary_*``: lines of completed_jobs, by the time at which each was written, which is after
      the pilot's end; seconds are of the pilots' whole lives.  ``no_duration``: lines without one
      (-1, and 0 where the output is missing); ``started``: HTCondor was started.
    - ``outputs_*``: outputs that came back, by the pilot's end, else when they were written; of
      them ``empty`` those that were empty when they were read first (the pilot was killed, or
      still waits), ``filled`` those of these that had content later.
    - ``watched_seconds``: for how long an ad of the entry and client was seen; ``F_seconds``: a
      value in it times the seconds for which it was seen; ``F_watched_seconds``: for how long
      the ad had that value.  The mean is ``F_seconds / F_watched_seconds``.
    """

    QUEUE_SUBMITTED = "queue_submitted"
    QUEUE_PENDING = "queue_pending"
    QUEUE_STARTED = "queue_started"
    QUEUE_ENDED = "queue_ended"
    QUEUE_EVICTED = "queue_evicted"
    QUEUE_REMOVED = "queue_removed"
    QUEUE_HELD = "queue_held"
    QUEUE_RELEASED = "queue_released"
    QUEUE_FAILED = "queue_failed"
    SUMMARY_PILOTS = "summary_pilots"
    SUMMARY_NO_DURATION = "summary_no_duration"
    SUMMARY_SECONDS = "summary_seconds"
    SUMMARY_VALIDATION_SECONDS = "summary_validation_seconds"
    SUMMARY_CONDOR_SECONDS = "summary_condor_seconds"
    SUMMARY_JOBS = "summary_jobs"
    SUMMARY_JOB_SECONDS = "summary_job_seconds"
    SUMMARY_GOODPUT_SECONDS = "summary_goodput_seconds"
    SUMMARY_TERMINATED_SECONDS = "summary_terminated_seconds"
    SUMMARY_STARTED = "summary_started"
    OUTPUTS_PILOTS = "outputs_pilots"
    OUTPUTS_EMPTY = "outputs_empty"
    OUTPUTS_FILLED = "outputs_filled"
    WATCHED_SECONDS = "watched_seconds"
    ASKED_IDLE_SECONDS = "asked_idle_seconds"
    ASKED_IDLE_WATCHED_SECONDS = "asked_idle_watched_seconds"
    STATUS_IDLE_SECONDS = "status_idle_seconds"
    STATUS_IDLE_WATCHED_SECONDS = "status_idle_watched_seconds"
    STATUS_RUNNING_SECONDS = "status_running_seconds"
    STATUS_RUNNING_WATCHED_SECONDS = "status_running_watched_seconds"
    STATUS_HELD_SECONDS = "status_held_seconds"
    STATUS_HELD_WATCHED_SECONDS = "status_held_watched_seconds"
    CLIENT_SLOTS_TOTAL_SECONDS = "client_slots_total_seconds"
    CLIENT_SLOTS_TOTAL_WATCHED_SECONDS = "client_slots_total_watched_seconds"
    CLIENT_SLOTS_RUNNING_SECONDS = "client_slots_running_seconds"
    CLIENT_SLOTS_RUNNING_WATCHED_SECONDS = "client_slots_running_watched_seconds"
    CLIENT_SLOTS_IDLE_SECONDS = "client_slots_idle_seconds"
    CLIENT_SLOTS_IDLE_WATCHED_SECONDS = "client_slots_idle_watched_seconds"
    CLIENT_JOBS_IDLE_SECONDS = "client_jobs_idle_seconds"
    CLIENT_JOBS_IDLE_WATCHED_SECONDS = "client_jobs_idle_watched_seconds"
    CLIENT_JOBS_RUNNING_SECONDS = "client_jobs_running_seconds"
    CLIENT_JOBS_RUNNING_WATCHED_SECONDS = "client_jobs_running_watched_seconds"
    CLIENT_JOBS_HERE_SECONDS = "client_jobs_here_seconds"
    CLIENT_JOBS_HERE_WATCHED_SECONDS = "client_jobs_here_watched_seconds"


WATCHED_FIELDS = tuple(
    kind.value.removesuffix("_watched_seconds")
    for kind in FactoryKind
    if kind.value.endswith("_watched_seconds")
)
"""The fields of ``Monitor`` that are summed over time."""

FactoryTotalKey: TypeAlias = tuple[str, str, FactoryKind]
"""Entry, client and kind."""


class FactoryKey(NamedTuple):
    """One sum of one hour; see ``FactoryKind``."""

    hour: Hour
    entry: str
    client: str
    kind: FactoryKind

    @property
    def total(self) -> FactoryTotalKey:
        """The series that it belongs to."""
        return self.entry, self.client, self.kind


class FactoryLife(NamedTuple):
    """A pilot, for the comparison with its factory's numbers; times are microseconds.

    ``end_us``: None while it runs.  ``number`` is ``cluster.proc`` of the factory, or empty.
    ``estimated``: its begin or its end is estimated.  ``cores`` are those at first,
    ``jobs_wall_us`` how long the runs of jobs on it lasted by their records, one after the other.
    """

    entry: str
    number: str
    start_us: int
    end_us: int | None
    origin: str
    estimated: bool
    cores: float
    jobs_wall_us: int = 0


class RunTime(NamedTuple):
    """Core-time (core-microseconds) of an entry's runs of jobs within a period.

    ``open_core_us`` is the part whose outcome is not known yet.  ``summarised_core_us`` is not in
    it: time of jobs without records, from a summary (the factory's, or pilots' own statistics).
    """

    core_us: int = 0
    open_core_us: int = 0
    summarised_core_us: int = 0


class FactoryLives(NamedTuple):
    """The input of a reconciliation of one period.

    - ``lives``: pilots that live in the period, and those of lines written in it.
    - ``jobs``: the factory's records of its jobs, by entry and ``cluster.proc``.
    - ``numbers``: the factory's sums of the period; ``reported``: entries with any of them.
    - ``runs``, and ``posted``: core-micros of runs by entry and category.
    - ``pruned_us``: pilots that ended before are not in the ledger any more.
    """

    lives: Sequence[FactoryLife]
    jobs: Mapping[tuple[str, str], Sequence[FactoryJob]]
    numbers: Mapping[tuple[str, FactoryKind], int]
    reported: frozenset[str]
    runs: Mapping[str, RunTime]
    posted: Mapping[tuple[str, Category], int]
    pruned_us: int = 0
