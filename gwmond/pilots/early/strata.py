"""Which runs are compared with which: groups of jobs that behave alike, and strata of time.

Units: times are microseconds since the epoch.

Users' own failures cluster in time and place, and a comparison must not take that for a place's
fault.  A fast failure frees its slot, which takes the same user's next job: a bad block of procs,
or a quarter of an hour without the user's service, ends up on the few slots that happened to be
free.  So:

- **Groups.**  Jobs are compared with jobs of the same cluster (condor_submit), if that has at least
  ``MIN_GROUP`` jobs in the evidence; else with those of the same user and program; else, as where
  each job of a DAG has a program of its own, with those of the same batch (DAG, or batch name);
  else with the same user's other jobs.  A job that goes on has the program of its cluster.
- **Strata.**  A group's runs in the order of their starts are cut after ``STRATUM_JOBS``, or
  ``STRATUM_US``: a run is compared with runs that began at about the same time.
- **Stretches.**  Between two runs of a group that did not fail, wherever they were, all failures at
  one place count once.  A bad block is one stretch, however many jobs it ate at one place.  A black
  hole fails in stretch after stretch, while other places go on with jobs in between.
- **A job counts once** at each place, however often it was tried there; if it once did better
  there it did not fail there.

Nothing of this depends on anything but the order of starts, and what is counted at any place is
counted in the same way at all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import NamedTuple

from gwmond.pilots.early.exact_test import Stratum

MIN_GROUP = 20
STRATUM_JOBS = 40
STRATUM_US = 20 * 60_000_000


class RunStart(NamedTuple):
    """A run: its job and what that has in common with others, when it began, and if it failed.

    ``group`` is a ``group_name``, or the user alone.
    """

    job: str
    group: str
    start_us: int
    failed: bool


def groups_of(starts: Sequence[RunStart]) -> list[Hashable]:
    """Return the group of each run."""
    starts = _with_programs(starts)
    levels = {(start.job, start.group): _levels(start.job, start.group) for start in starts}
    size = Counter(level for of_job in levels.values() for level in of_job)
    group = {
        job: next(level for level in of_job if level[0] == "user" or size[level] >= MIN_GROUP)
        for job, of_job in levels.items()
    }
    return [group[start.job, start.group] for start in starts]


def _with_programs(starts: Iterable[RunStart]) -> list[RunStart]:
    """Return runs with the program of their cluster's others where only their user is known.

    No slot tells the program of what runs there: it is known once the run has ended.
    """
    starts = list(starts)
    programs: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for start in starts:
        user, _, program = start.group.partition(" ")
        if program:
            programs[_cluster(start.job), user].add(start.group)
    named = {of: groups.pop() for of, groups in programs.items() if len(groups) == 1}
    return [
        start._replace(group=named.get((_cluster(start.job), start.group), start.group))
        for start in starts
    ]


def _cluster(job: str) -> str:
    """Return a job's schedd and cluster.

    A job is ``schedd#cluster.proc#time``, or at least ends so; a schedd counts its clusters.
    """
    return job.rpartition("#")[0].rpartition(".")[0]


def _levels(job: str, group: str) -> tuple[tuple[str, ...], ...]:
    """Return what jobs can have in common with this one, the closest first."""
    user, _, program = group.partition(" ")
    batch = program.rpartition(" [")[2] if program.endswith("]") else ""
    levels = ("cluster", _cluster(job)), ("program", group), ("batch", user, batch)
    return (*(level for level in levels if level[-1]), ("user", user))


class Strata:
    """Runs in strata: ``number`` is the stratum of each, ``counted`` whether it counts.

    ``places``: where each was, as its failures are counted (its pilot, or its node).
    """

    def __init__(
        self, starts: Sequence[RunStart], groups: Sequence[Hashable], places: Sequence[str]
    ) -> None:
        self._starts = starts
        self.number = [0] * len(starts)
        self.counted = [False] * len(starts)
        self._jobs, self._failed = [0], [0]  # of each stratum
        failed = {start.job for start in starts if start.failed}
        self._better = {
            (place, start.job)
            for start, place in zip(starts, places, strict=True)
            if not start.failed and start.job in failed
        }
        runs = Counter(start.job for start in starts)
        self._again = {job for job, number in runs.items() if number > 1}
        of_group: defaultdict[Hashable, list[int]] = defaultdict(list)
        for index, group in enumerate(groups):
            of_group[group].append(index)
        for order in of_group.values():
            if any(starts[index].failed for index in order):  # others say nothing
                self._cut(order, places)

    def _cut(self, order: Collection[int], places: Sequence[str]) -> None:
        """Cut one group, given in the order of starts."""
        stretch: set[str] = set()
        tried: set[tuple[str, str]] = set()
        first_us, size = 0, STRATUM_JOBS
        for index in order:
            job, _, start_us, failed = self._starts[index]
            place = places[index]
            if size >= STRATUM_JOBS or start_us - first_us > STRATUM_US:
                first_us, size = start_us, 0
                self._jobs.append(0)
                self._failed.append(0)
            self.number[index] = len(self._jobs) - 1
            again = (place, job) in tried
            if failed:
                again = again or place in stretch or (place, job) in self._better
                stretch.add(place)
            else:
                stretch.clear()
            if not again:
                if job in self._again:
                    tried.add((place, job))
                self.counted[index] = True
                self._jobs[-1] += 1
                self._failed[-1] += failed
                size += 1

    def tables(self, units: Sequence[str]) -> dict[str, list[Stratum]]:
        """Return the strata of each unit in which it can be compared with others."""
        here: Counter[tuple[str, int]] = Counter()
        failed_here: Counter[tuple[str, int]] = Counter()
        for index, (number, counts) in enumerate(zip(self.number, self.counted, strict=True)):
            if counts and 0 < self._failed[number] < self._jobs[number]:
                here[units[index], number] += 1
                if self._starts[index].failed:
                    failed_here[units[index], number] += 1
        tables: defaultdict[str, list[Stratum]] = defaultdict(list)
        for key, count in here.items():
            unit, number = key
            jobs = self._jobs[number]
            if count < jobs:
                tables[unit].append(Stratum(count, failed_here[key], jobs, self._failed[number]))
        return dict(tables)

    def excess(self, places: Sequence[str], runs: Iterable[int]) -> dict[str, float]:
        """Return how many more failures than expected each place has, of some of the runs.

        Expected is the share of failures in the stratum.
        """
        excess: defaultdict[str, float] = defaultdict(float)
        for index in runs:
            number = self.number[index]
            expected = self._failed[number] / max(1, self._jobs[number])
            excess[places[index]] += self.counted[index] * (self._starts[index].failed - expected)
        return dict(excess)
