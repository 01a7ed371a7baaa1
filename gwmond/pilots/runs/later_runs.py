"""Which run of a job came after which, and on what that bears."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from gwmond.model.pilot_life import UNNUMBERED, RunKey
from gwmond.model.runs.outcomes import EARLY_EXIT, NOT_COMPARED, SUMMARISED, classify
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun

_WHETHER = (None, True, False)


def later_runs(starts: Mapping[RunKey, int]) -> dict[RunKey, int | None]:
    """Return, for each run of a job, when the next of them began; None if none did.

    Of runs that began at the same time the one with the higher number is later, and one without a
    number is later than all.
    """
    ordered = sorted(starts, key=lambda key: (starts[key], key.number or UNNUMBERED))
    return dict(zip(ordered, [*(starts[key] for key in ordered[1:]), None], strict=False))


def superseded_otherwise(of_job: Collection[OpenRun]) -> Iterator[OpenRun]:
    """Yield the decided runs of a job of which another run has come, or gone, that bears on them.

    An exit completed nothing if the job runs again (``exit_retried``).
    """
    later = later_runs({run.key: run.start_us for run in of_job})
    for run in of_job:
        ending, decided = run.merged.ending, run.outcome
        if decided is None or run.pilot.pruned or ending.superseded is not None:
            continue
        again = ending._replace(superseded=True if later[run.key] is not None else None)
        possible = (classify(again._replace(startd_ended=whether)) for whether in _WHETHER)
        labels = {outcome.label for outcome in possible if outcome is not None}
        if decided.label not in {*labels, EARLY_EXIT, NOT_COMPARED, SUMMARISED}:
            yield run


class LaterRuns:
    """The same of many jobs, of which each is looked at once until it changes."""

    def __init__(self, cache: PilotCache) -> None:
        self._cache = cache
        self._known: dict[str, dict[RunKey, int | None]] = {}

    def after(self, run: OpenRun) -> int | None:
        """Return when the next run of the same job began, None if there is none."""
        job = run.key.job
        if self._cache.is_only(job):
            return None
        if job not in self._known:
            self._known[job] = later_runs(self._cache.starts(job))
        return self._known[job].get(run.key)

    def missing(self, resting: Iterable[OpenRun]) -> bool:
        """Return whether runs of their jobs are missing that bear on these runs."""
        return not self._cache.has_starts({run.key.job for run in resting})

    def whole(self, jobs: Iterable[str]) -> bool:
        """Return whether all runs of these jobs are in memory."""
        return self._cache.has_jobs(jobs)

    def forget(self, jobs: Iterable[str]) -> None:
        """Say that the runs of these jobs have changed."""
        for job in jobs:
            self._known.pop(job, None)


def resting(pilot: OpenPilot) -> list[OpenRun]:
    """Return the runs on a pilot that are to be decided, and on which others of their jobs bear.

    None bears on a run that a slot shows now.
    """
    return [run for run in pilot.runs.values() if not (is_decided(run) or goes_on(run))]


def goes_on(run: OpenRun) -> bool:
    """Return whether a slot shows a run now, on a pilot that has not ended."""
    return run.pilot.end_us is None and run.is_shown


def is_decided(run: OpenRun) -> bool:
    """Return whether nothing has changed that may change what was decided."""
    if run.outcome is None or not run.merged.ending.over:
        return False
    return run.pilot.changed_since_us > (run.end_us or 0)
