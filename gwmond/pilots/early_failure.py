"""Whether a run that soon failed did so by the doing of where it ran.

Units: times are microseconds since the epoch; jobs are counted, not runs.

Source of the rule: design page, section 3 (``misconfiguration_badput``); the 2022 report: "jobs
that fail in the beginning due to a runtime problem not imputable to user errors".  A program that
exits with an error soon after it began is the user's failure (it completed), and so is a fault
that HTCondor reports with a code and that a user's mistake causes as often as a site does (no such
program, image or input: ``outcomes.COMPARED``), unless there is evidence against a place: a pilot,
its node, entry or site at which jobs fail significantly more often than jobs of the same groups do
elsewhere at about the same time (``strata``: what is compared with what; ``exact_test``: the test,
and its correction for many).  That a job succeeded elsewhere is part of that comparison: both runs
are in it, and how often its group fails by itself decides what they say.

**Large places first.**  Site, entry, node, pilot are tested one kind after the other, each without
the runs at what was found to be at fault before: what belongs to a broken site is not held against
its nodes.  A site or entry is only at fault if the *better half* of its nodes fails too often, too:
one black hole among good nodes is a node's fault.

**Which failures are blamed.**  At a place that is at fault, those of groups of which at most half
of the runs fail elsewhere at that time (more likely than not the place's doing): a user's broken
jobs stay his, also on a broken node.

**Successes that are suspicious.**  A black hole may end each job at once with exit code 0.  The
same test, for very short successes instead of failures, finds places where a group's jobs end far
sooner than elsewhere (``suspects``).  That is a suspicion and blames nothing; but such a success
says nothing against other places, so it is left out of the evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from gwmond.model.outcomes import COMPARED, EARLY_EXIT, EXIT_RETRIED
from gwmond.model.pilot_facts import Category, Outcome
from gwmond.model.suspects import FALSE_DISCOVERIES, MIN_FAILURES, Finding, Kind, Suspect
from gwmond.pilots.exact_test import Stratum, compare, finding_of
from gwmond.pilots.strata import RunStart, Strata, groups_of

SHORT_US = 60_000_000
"""A run that succeeded within a minute, transfers included, was very short."""

WINDOW_US = 6 * 3_600_000_000
"""How long a verdict stays open after the run's end."""

MOST_TRIALS = 100_000
"""So many runs are weighed at once, so that this takes a bounded time."""

_ENOUGH = 4
"""So many runs elsewhere in a stratum say how often its group fails there."""

Unit: TypeAlias = tuple[Kind, str]

KINDS: tuple[Kind, ...] = ("site", "entry", "node", "pilot")
_OF_NODES = frozenset({"site", "entry"})


class Result(StrEnum):
    """What a run says about where it ran."""

    FAILED_EARLY = "failed_early"
    SUCCEEDED = "succeeded"
    LASTED = "lasted"  # it neither failed early nor exited 0, for example it failed later


class Trial(NamedTuple):
    """One run of a job that was not ended from outside within ``EARLY_US``.

    ``job`` stands for the job as it was run: if it was changed in between (condor_qedit), it is
    another.  ``group``: see ``strata.Start``.
    """

    job: str
    number: int
    group: str
    pilot: str
    node: str
    entry: str
    site: str
    start_us: int
    end_us: int
    result: Result

    @property
    def units(self) -> tuple[Unit, ...]:
        """Whom this run is evidence for or against, the largest first; a place has a name."""
        places = zip(KINDS, (self.site, self.entry, self.node, self.pilot), strict=True)
        return tuple((kind, place) for kind, place in places if place)

    @property
    def key(self) -> tuple[str, int, str]:
        """What distinguishes a run from others."""
        return self.job, self.number, self.pilot


Blamed: TypeAlias = Mapping[tuple[str, int, str], Kind]
"""The keys of runs whose failures are blamed on a place, and on which kind of it."""


def result_of(outcome: Outcome, early: bool | None) -> Result | None:
    """Return what a run with this outcome says; None if it says nothing of where it ran.

    A run that was cut off early might have failed early or not.

    >>> result_of(Outcome(Category.GOODPUT, "exit_nonzero"), early=True)
    <Result.FAILED_EARLY: 'failed_early'>
    """
    if outcome.label == "exit_zero":
        return Result.SUCCEEDED
    exited = outcome.category is Category.GOODPUT or outcome.label == EXIT_RETRIED
    if outcome.label in COMPARED or (exited and early is True):
        return Result.FAILED_EARLY
    return Result.LASTED if early is False else None


def weigh(trials: Iterable[Trial]) -> Blamed:
    """Return what these runs together blame on places; their order does not matter."""
    known = sorted(set(trials), key=attrgetter("start_us", "key"))
    suspected = _suspects(known)
    if suspected:
        known = [trial for trial in known if not (_is_short(trial) and _at(trial, suspected))]
    starts = [_start(trial, trial.result is Result.FAILED_EARLY) for trial in known]
    groups = groups_of(starts)
    return _blamed(known, starts, groups, _compare(known, starts, groups))


def suspects(trials: Iterable[Trial]) -> tuple[Suspect, ...]:
    """Return places at which jobs of the same groups succeed far sooner than elsewhere."""
    known = sorted(set(trials), key=attrgetter("start_us", "key"))
    found = _suspects(known)
    where = (
        {unit: trial for trial in known for unit in trial.units if unit in found} if found else {}
    )
    return tuple(
        Suspect(*unit, "" if unit[0] == "site" else where[unit].entry, where[unit].site, finding)
        for unit, finding in sorted(found.items())
    )


def judge(trial: Trial, outcome: Outcome, blamed: Blamed) -> Outcome:
    """Return the outcome of a run, which without evidence against its place is ``outcome``."""
    if trial.key not in blamed:
        return outcome
    label = outcome.label if outcome.label in COMPARED else EARLY_EXIT
    return outcome._replace(category=Category.MISCONFIGURATION_BADPUT, label=label)


def _start(trial: Trial, failed: bool) -> RunStart:
    return RunStart(trial.job, trial.group, trial.start_us, failed)


def _at(trial: Trial, units: Collection[Unit]) -> Kind | None:
    """Return the largest kind of place at which a run was that is among these."""
    return next((unit[0] for unit in trial.units if unit in units), None)


def _is_short(trial: Trial) -> bool:
    return trial.result is Result.SUCCEEDED and trial.end_us - trial.start_us <= SHORT_US


def _suspects(known: Sequence[Trial]) -> dict[Unit, Finding]:
    ended_well = [trial for trial in known if trial.result is not Result.FAILED_EARLY]
    starts = [_start(trial, _is_short(trial)) for trial in ended_well]
    if sum(start.failed for start in starts) < MIN_FAILURES:
        return {}
    return _compare(ended_well, starts, groups_of(starts))


def _compare(
    known: Sequence[Trial], starts: Sequence[RunStart], groups: Sequence[Hashable]
) -> dict[Unit, Finding]:
    """Return the places that are at fault; ``starts`` and ``groups`` are those of ``known``."""
    at_fault: dict[Unit, Finding] = {}
    runs = _TrialRuns(known, starts, groups, "node")
    strata = runs.strata()
    for kind in KINDS:
        if kind == "pilot":
            runs = runs._replace(counted="pilot")
            strata = runs.strata()
        findings = compare(runs.tables(strata, kind), FALSE_DISCOVERIES)
        for name, finding in findings.items():
            if finding.significant(FALSE_DISCOVERIES) and (
                kind not in _OF_NODES
                or runs.better_half(strata, kind, name).significant(
                    FALSE_DISCOVERIES / len(findings)
                )
            ):
                at_fault[kind, name] = finding
        places = runs.at(kind)
        kept = [i for i, name in enumerate(places) if (kind, name) not in at_fault]
        if len(kept) < len(places):
            runs = runs.of(kept)
            strata = runs.strata()
    return at_fault


class _TrialRuns(NamedTuple):
    """Runs that are compared; the lists belong together.  ``counted``: failures count by this."""

    known: Sequence[Trial]
    starts: Sequence[RunStart]
    groups: Sequence[Hashable]
    counted: Kind

    def at(self, kind: Kind) -> list[str]:
        """Return where each run was."""
        return [getattr(trial, kind) for trial in self.known]

    def strata(self) -> Strata:
        """Return what is compared with what."""
        return Strata(self.starts, self.groups, self.at(self.counted))

    def tables(self, strata: Strata, kind: Kind) -> dict[str, list[Stratum]]:
        """Return the strata of each place that has a name, sorted."""
        found = strata.tables(self.at(kind))
        return {name: found[name] for name in sorted(found) if name}

    def better_half(self, strata: Strata, kind: Kind, name: str) -> Finding:
        """Return how the better half of a place's nodes compares with what is elsewhere."""
        places, nodes = self.at(kind), self.at("node")
        excess = strata.excess(nodes, lambda index: places[index] == name)
        better = set(sorted(excess, key=lambda place: (excess[place], place))[: len(excess) // 2])
        half = self.of([i for i, place in enumerate(places) if place != name or nodes[i] in better])
        return finding_of(half.tables(half.strata(), kind).get(name, []))

    def of(self, kept: Collection[int]) -> _TrialRuns:
        """Return some of them."""
        known, starts = [self.known[i] for i in kept], [self.starts[i] for i in kept]
        return self._replace(known=known, starts=starts, groups=[self.groups[i] for i in kept])


def _blamed(
    known: Sequence[Trial],
    starts: Sequence[RunStart],
    groups: Sequence[Hashable],
    at_fault: Collection[Unit],
) -> Blamed:
    """Return the failures at places at fault which are more likely than not their doing."""
    if not at_fault:
        return {}
    where = [_at(trial, at_fault) for trial in known]
    strata = Strata(starts, groups, [trial.node for trial in known])
    runs: Counter[Hashable] = Counter()
    failed: Counter[Hashable] = Counter()
    for start, group, number, kind in zip(starts, groups, strata.number, where, strict=True):
        if kind is None:
            runs.update((number, group))
            failed.update((number, group) if start.failed else ())
    blamed: dict[tuple[str, int, str], Kind] = {}
    for index, kind in enumerate(where):
        if kind is not None and starts[index].failed:
            number, group = strata.number[index], groups[index]
            elsewhere: Hashable = number if runs[number] >= _ENOUGH else group
            if failed[elsewhere] * 2 <= runs[elsewhere]:
                blamed[known[index].key] = kind
    return blamed
