"""Verdicts on entries, checked by the pilots that start there.

A pilot that registers in a collector is an experiment: what the last poll before said of its entry
was right if the pilot runs, within ``wait_us``, a job that waited at that poll where there was a
provisioning bottleneck, or runs no job in that time where demand was insufficient.  Source of the
rule: design page, section 4 ("the truth of a verdict is an experiment").

What is no experiment:

- a pilot of an entry in any other state (of the states of CPUs);
- a pilot of an entry with insufficient demand where pilots ran by the factory's count at that poll
  and had not registered: the verdict has counted on it;
- a pilot that was not seen to register: there was no poll before, one was missed, or not all
  collectors were heard;
- a pilot that takes no jobs, or stops to take any before ``wait_us`` is over;
- a pilot that ends before ``wait_us`` is over without a job;
- a pilot that runs only jobs that were submitted after the poll: frontends request pilots when jobs
  come, so the first one at an entry where no job waited nearly always runs a job that came later.

Units: times are microseconds since the epoch.

An experiment is stored with the batch in which its pilot is, and counted with the one that stores
its result: so each counts once, whenever the process ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gwmond.model.digits import is_number
from gwmond.model.entries.experiments import CHECKED, Experiment, PilotResult, SiteVerdict
from gwmond.model.facts import EntryKey, Pilot
from gwmond.model.pilots.stored_pilots import CountKey, PilotId
from gwmond.model.states import State
from gwmond.model.times import SECOND_US
from gwmond.pilots.memory.open_pilot import OpenPilot

if TYPE_CHECKING:
    from gwmond.model.entries.evaluation import Evaluation

ByName: TypeAlias = Mapping[str, Sequence[OpenPilot]]


class Experiments:
    """Experiments that are open, and those that changed since the last batch was stored."""

    def __init__(self, stored: Iterable[Experiment], wait_us: int) -> None:
        self._open = {key.pilot: key for key in stored}
        self._changed: dict[PilotId, Experiment] = {}
        self._begun = set(self._open)
        self._wait_us = wait_us

    def begin(self, before: Verdicts, shown: Iterable[Pilot], now_us: int, by_name: ByName) -> None:
        """Take in known pilots that have registered since ``before``."""
        for pilot, experiment in registered(before, shown, now_us, self._wait_us):
            same = max(by_name.get(pilot.name, ()), key=attrgetter("start_us"), default=None)
            if same is not None and same.id not in self._begun:
                self._begun.add(same.id)
                self._open[same.id] = experiment._replace(pilot=same.id)
                self._changed[same.id] = self._open[same.id]

    def settle(
        self, pilots: Mapping[PilotId, OpenPilot], known_us: Callable[[OpenPilot], int]
    ) -> None:
        """Decide what can be; an experiment whose pilot is not there any more was none.

        ``known_us``: up to when all runs on a pilot are known.
        """
        self._begun &= pilots.keys()
        for number, key in list(self._open.items()):
            pilot = pilots.get(number)
            result = PilotResult.VOID
            if pilot is not None:
                result = self._result(key, pilot, known_us(pilot))
            if result is not PilotResult.OPEN:
                del self._open[number]
                self._changed[number] = key._replace(result=result)

    def _result(self, experiment: Experiment, pilot: OpenPilot, known_us: int) -> PilotResult:
        starts: dict[bool, list[int]] = {True: [], False: []}
        for run in pilot.runs.values():
            if not run.summarised:
                starts[waited(run.key.job, experiment.verdict_us)].append(run.start_us)
        first_us, other_us = (min(starts[then], default=None) for then in (True, False))
        watched = Watched(first_us, other_us, pilot.end_us, pilot.last_heard_us)
        return result(experiment, watched, known_us, self._wait_us)

    def rows(self) -> tuple[Experiment, ...]:
        """Return what is to be stored."""
        return tuple(self._changed[number] for number in sorted(self._changed))

    def counts(self) -> Counter[CountKey]:
        """Return how many verdicts were confirmed and refuted that are to be stored."""
        return Counter(
            CountKey("verdicts", key.verdict.state, str(key.agreed).lower(), *key.entry, key.group)
            for key in self._changed.values()
            if key.agreed is not None
        )

    def stored(self) -> None:
        """Say that they are stored."""
        self._changed.clear()


ADVERTISED_US = 60 * SECOND_US
"""How long a startd that has begun may take until its first ad is in the collector."""


class Verdicts(NamedTuple):
    """What a poll at ``at_us`` says of entries, and the names of all pilots that it has seen."""

    at_us: int
    entries: Mapping[EntryKey, SiteVerdict]
    pilots: frozenset[str]


class Watched(NamedTuple):
    """What is known of the pilot: its first runs, its end, and when it was last heard of.

    ``first_run_us``: the begin of its first run of a job that waited at the verdict's poll;
    ``other_run_us``: of its first run of any other.  These and ``end_us`` are None where there is
    none yet.
    """

    first_run_us: int | None
    other_run_us: int | None
    end_us: int | None
    last_heard_us: int


def verdicts(evaluation: Evaluation, at_us: int, pilots: Iterable[Pilot]) -> Verdicts:
    """Return what a poll says that has seen all pilots."""
    return Verdicts(
        at_us,
        {
            key: row.verdict
            for (key, resource), row in evaluation.rows.items()
            if resource == "cpu"
            and (row.state is not State.INSUFFICIENT_DEMAND or key not in evaluation.coming)
        },
        frozenset(pilot.name for pilot in pilots),
    )


def registered(
    before: Verdicts, pilots: Iterable[Pilot], now_us: int, wait_us: int
) -> Iterator[tuple[Pilot, Experiment]]:
    """Yield pilots that have registered since ``before``, each with its experiment (of pilot 0).

    ``now_us`` is the time of the next poll, which has seen ``pilots``.  A pilot that began earlier
    than one poll, and than ``ADVERTISED_US``, before ``before`` was only out of sight.
    """
    earliest_us = before.at_us - max(now_us - before.at_us, ADVERTISED_US)
    for pilot in pilots:
        verdict = before.entries.get(pilot.entry)
        if verdict is None or verdict.state not in CHECKED or pilot.name in before.pilots:
            continue
        began_us = pilot.began * SECOND_US
        at_us = min(max(began_us, before.at_us), now_us)
        retires = pilot.retires
        stops = retires is not None and (retires + pilot.clock_s) * SECOND_US < at_us + wait_us
        if pilot.failed or not pilot.accepting or stops or began_us < earliest_us:
            continue
        yield pilot, Experiment(0, pilot.entry, pilot.group, verdict, before.at_us, at_us)


def result(experiment: Experiment, watched: Watched, known_us: int, wait_us: int) -> PilotResult:
    """Return what became of an experiment; ``known_us``: all runs that began before are known."""
    until_us = experiment.registered_us + wait_us
    if watched.first_run_us is not None and watched.first_run_us <= until_us:
        return PilotResult.RAN
    if watched.end_us is not None and watched.end_us < until_us:
        return PilotResult.VOID if known_us >= watched.end_us else PilotResult.OPEN
    there_us = watched.last_heard_us if watched.end_us is None else watched.end_us
    if min(there_us, known_us) < until_us:
        return PilotResult.OPEN
    other_ran = watched.other_run_us is not None and watched.other_run_us <= until_us
    return PilotResult.VOID if other_ran else PilotResult.IDLE


def waited(job: str, verdict_us: int) -> bool:
    """Return whether a job, by its GlobalJobId, was submitted before a poll; False if not known.

    >>> waited("ap1.example.org#4711.0#1763856000", 1763856000_000000)
    True
    """
    submitted = job.rpartition("#")[2]
    return is_number(submitted) and int(submitted) * SECOND_US <= verdict_us
