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

**Later failures.**  Only early failures are judged, but a program that fails by itself later has
failed as well: else a bug that shows near five minutes would be the fault of the fastest site.  So
a place is at fault only if its jobs fail there too often, and too often early, too.  A run that
was ended from outside did not fail, if it lasted so long (``LASTED_US``) that slower nodes would
have shown an early failure.

**Large places first.**  Site, entry, node, pilot are tested one kind after the other, each without
the runs at what was found to be at fault before: what belongs to a broken site is not held against
its nodes.  A site or entry is only at fault if the *better half* of its nodes fails too often, too:
one black hole among good nodes is a node's fault.

**Which failures are blamed.**  At a place, while it is at fault (``while_at_fault``), those of
groups of which at most half of the runs fail elsewhere at that time (more likely than not the
place's doing): a user's broken jobs stay his, also on a broken node.

**Successes that are suspicious.**  A black hole may end each job at once with exit code 0.  The
same test, for very short successes instead of failures, finds places where a group's jobs end far
sooner than elsewhere (``suspects``).  That is a suspicion and blames nothing; but such a success
says nothing against other places, so it is left out of the evidence.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeAlias

from gwmond.model.entries.suspects import (
    FALSE_DISCOVERIES,
    MIN_FAILURES,
    Finding,
    Kind,
    Sign,
    Suspect,
)
from gwmond.model.pilot_life import Category, Outcome
from gwmond.model.runs.endings import EARLY_US
from gwmond.model.runs.outcomes import COMPARED, EARLY_EXIT, EXIT_RETRIED, NOT_COMPARED
from gwmond.pilots.early.exact_test import Stratum, compare, finding_of
from gwmond.pilots.early.strata import RunStart, Strata, groups_of

SHORT_US = 60_000_000
"""A run that succeeded within a minute, transfers included, was very short."""

LASTED_US = 2 * EARLY_US
"""A run that was ended from outside sooner might still have failed like an early one elsewhere."""

WINDOW_US = 6 * 3_600_000_000
"""How long a verdict stays open after the run's end."""

MOST_TRIALS = 100_000
"""So many runs are weighed at once, so that this takes a bounded time."""

_ENOUGH = 4
"""So many runs elsewhere in a stratum say how often its group fails there."""

_FAILS = 0.1, 0.3, 0.95
"""What share of its runs a place at fault may fail, besides others."""

Unit: TypeAlias = tuple[Kind, str]

KINDS: tuple[Kind, ...] = ("site", "entry", "node", "pilot")
_OF_NODES = frozenset({"site", "entry"})


class Result(StrEnum):
    """What a run says about where it ran."""

    FAILED_EARLY = "failed_early"
    FAILED_LATE = "failed_late"  # the program failed by itself, but not early
    SUCCEEDED = "succeeded"
    LASTED = "lasted"  # it was ended from outside, or goes on, and has not failed early


_FAILURES = frozenset({Result.FAILED_EARLY, Result.FAILED_LATE})


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
    if early is not False:
        return None
    failed = exited and outcome.label != "exit_unknown"
    return Result.FAILED_LATE if failed else Result.LASTED


def weigh(trials: Iterable[Trial]) -> Blamed:
    """Return what these runs together blame on places; their order does not matter."""
    ordered = sorted(filter(_says, set(trials)), key=attrgetter("start_us", "key"))
    suspected = _suspects(ordered)
    if suspected:
        ordered = [trial for trial in ordered if not (_is_short(trial) and _at(trial, suspected))]
    starts = [_start(trial, trial.result in _FAILURES) for trial in ordered]
    groups = groups_of(starts)
    return _blamed(ordered, starts, groups, _compare(ordered, starts, groups))


def suspects(trials: Iterable[Trial]) -> tuple[Suspect, ...]:
    """Return places at which jobs of the same groups succeed far sooner than elsewhere."""
    ordered = sorted(set(trials), key=attrgetter("start_us", "key"))
    return _named(ordered, _suspects(ordered), "ends_too_soon")


def failing(
    trials: Iterable[Trial], rate: float, before: Iterable[Suspect] = ()
) -> tuple[Suspect, ...]:
    """Return places at which jobs fail early far more often than jobs of the same groups elsewhere.

    ``rate``: the probability that a place is found though none is at fault.  A place suspected
    ``before`` stays where verdicts would find it: few runs an hour make it no better.  Whether a
    site or one of its nodes is at fault is decided at their level, too.
    """
    ordered = sorted(filter(_says, set(trials)), key=attrgetter("start_us", "key"))
    starts = [_start(trial, trial.result in _FAILURES) for trial in ordered]
    groups = groups_of(starts)
    findings = _compare(ordered, starts, groups, rate / len(KINDS), FALSE_DISCOVERIES)
    if again := {suspect[:2] for suspect in before} - findings.keys():
        more = _compare(ordered, starts, groups)
        findings |= {unit: more[unit] for unit in more if unit in again}
    return _named(ordered, findings, "fails")


def _named(
    trials: Iterable[Trial], findings: Mapping[Unit, Finding], sign: Sign
) -> tuple[Suspect, ...]:
    """Return what was found at places, with where these are."""
    runs: defaultdict[Unit, list[Trial]] = defaultdict(list)
    for trial in trials if findings else ():
        for unit in trial.units:
            if unit in findings:
                runs[unit].append(trial)
    return tuple(
        Suspect(
            *unit,
            "" if unit[0] == "site" else runs[unit][-1].entry,
            runs[unit][-1].site,
            finding,
            sign,
            len(runs[unit]),
            sum(map(_ENDED_SO[sign], runs[unit])),
        )
        for unit, finding in sorted(findings.items())
    )


def judge(trial: Trial, outcome: Outcome, blamed: Blamed, *, complete: bool = True) -> Outcome:
    """Return the outcome of a run, which without evidence against its place is ``outcome``.

    Where the evidence is not ``complete`` that is an estimate, and an exit is nobody's fault.
    """
    if not complete:
        outcome = outcome._replace(evidence="estimated")
    if trial.key in blamed:
        label = outcome.label if outcome.label in COMPARED else EARLY_EXIT
        return outcome._replace(category=Category.MISCONFIGURATION_BADPUT, label=label)
    if complete or outcome.category is not Category.GOODPUT:
        return outcome
    return outcome._replace(category=Category.UNCLASSIFIED, label=NOT_COMPARED)


def _start(trial: Trial, failed: bool) -> RunStart:
    return RunStart(trial.job, trial.group, trial.start_us, failed)


def _says(trial: Trial) -> bool:
    return trial.result is not Result.LASTED or trial.end_us - trial.start_us >= LASTED_US


def _at(trial: Trial, units: Collection[Unit]) -> Unit | None:
    """Return the largest place at which a run was that is among these."""
    return next((unit for unit in trial.units if unit in units), None)


def _is_short(trial: Trial) -> bool:
    return trial.result is Result.SUCCEEDED and trial.end_us - trial.start_us <= SHORT_US


_ENDED_SO: Mapping[Sign, Callable[[Trial], bool]] = {
    "fails": lambda trial: trial.result is Result.FAILED_EARLY,
    "ends_too_soon": _is_short,
}


def _suspects(trials: Sequence[Trial]) -> dict[Unit, Finding]:
    ended_well = [trial for trial in trials if trial.result is not Result.FAILED_EARLY]
    starts = [_start(trial, _is_short(trial)) for trial in ended_well]
    if sum(start.failed for start in starts) < MIN_FAILURES:
        return {}
    return _compare(ended_well, starts, groups_of(starts))


def _compare(
    trials: Sequence[Trial],
    starts: Sequence[RunStart],
    groups: Sequence[Hashable],
    level: float = FALSE_DISCOVERIES,
    node_rate: float | None = None,
) -> dict[Unit, Finding]:
    """Return the places that are at fault; ``starts`` and ``groups`` are those of ``trials``.

    ``node_rate``: the probability that a site or entry is named for the fault of one of its nodes;
    None: that of each single place to be found by chance.
    """
    at_fault: dict[Unit, Finding] = {}
    runs = _TrialRuns(trials, starts, groups, "node")
    strata = runs.strata()
    for kind in KINDS:
        if kind == "pilot":
            runs = runs._replace(counted="pilot")
            strata = runs.strata()
        findings = compare(runs.tables(strata, kind), level)
        bad = {name: finding for name, finding in findings.items() if finding.significant(level)}
        rate = level / max(1, len(findings))
        half = node_rate or rate
        if kind in _OF_NODES:
            bad = {n: finding for n, finding in bad.items() if runs.spread(strata, kind, n, half)}
        if bad and Result.FAILED_LATE in {trial.result for trial in runs.trials}:
            early = runs.early()
            bad = {n: finding for n, finding in bad.items() if early.confirms(kind, n, rate, half)}
        at_fault.update(((kind, name), finding) for name, finding in bad.items())
        places = runs.at(kind)
        indices = [i for i, name in enumerate(places) if (kind, name) not in at_fault]
        if len(indices) < len(places):
            runs = runs.of(indices)
            strata = runs.strata()
    return at_fault


class _TrialRuns(NamedTuple):
    """Runs that are compared; the lists belong together.  ``counted``: failures count by this."""

    trials: Sequence[Trial]
    starts: Sequence[RunStart]
    groups: Sequence[Hashable]
    counted: Kind

    def at(self, kind: Kind) -> list[str]:
        """Return where each run was."""
        return [getattr(trial, kind) for trial in self.trials]

    def strata(self) -> Strata:
        """Return what is compared with what."""
        return Strata(self.starts, self.groups, self.at(self.counted))

    def tables(self, strata: Strata, kind: Kind) -> dict[str, list[Stratum]]:
        """Return the strata of each place that has a name, sorted."""
        tables = strata.tables(self.at(kind))
        return {name: tables[name] for name in sorted(tables) if name}

    def early(self) -> _TrialRuns:
        """Return the same where only early failures are failures."""
        starts = [_start(trial, trial.result is Result.FAILED_EARLY) for trial in self.trials]
        return self._replace(starts=starts)

    def confirms(self, kind: Kind, name: str, rate: float, half: float) -> bool:
        """Return whether these fail too often, too, at a place; ``half``: for its better half."""
        strata = self.strata()
        finding = finding_of(self.tables(strata, kind).get(name, []))
        return finding.significant(rate) and (
            kind not in _OF_NODES or self.spread(strata, kind, name, half)
        )

    def spread(self, strata: Strata, kind: Kind, name: str, rate: float) -> bool:
        """Return whether the better half of a place's nodes fails too often, too.

        Which half is the better is decided by every second run of each node, and tested by the
        others, and the other way round: of few failures the better half by the same runs had none.
        """
        places, nodes = self.at(kind), self.at("node")
        here = [i for i, place in enumerate(places) if place == name and strata.counted[i]]
        runs: Counter[str] = Counter()
        second: dict[int, int] = {}
        for index in here:
            second[index] = runs[nodes[index]] % 2
            runs[nodes[index]] += 1
        better = [self._better(strata, runs, [i for i in here if second[i] != n]) for n in (0, 1)]
        half = self.of(
            [
                i
                for i, place in enumerate(places)
                if place != name or (i in second and nodes[i] in better[second[i]])
            ]
        )
        return finding_of(half.tables(half.strata(), kind).get(name, [])).significant(rate)

    def _better(self, strata: Strata, nodes: Collection[str], by: Sequence[int]) -> set[str]:
        """Return the half of these nodes that is the better by some of the runs."""
        excess = strata.excess(self.at("node"), by)
        ordered = sorted(nodes, key=lambda node: (excess.get(node, 0.0), node))
        return set(ordered[: len(ordered) // 2])

    def of(self, indices: Collection[int]) -> _TrialRuns:
        """Return the runs with these numbers in the lists."""
        trials, starts = [self.trials[i] for i in indices], [self.starts[i] for i in indices]
        return self._replace(trials=trials, starts=starts, groups=[self.groups[i] for i in indices])


def _blamed(
    trials: Sequence[Trial],
    starts: Sequence[RunStart],
    groups: Sequence[Hashable],
    at_fault: Collection[Unit],
) -> Blamed:
    """Return the failures at places at fault which are more likely than not their doing."""
    if not at_fault:
        return {}
    strata = Strata(starts, groups, [trial.node for trial in trials])
    runs: Counter[Hashable] = Counter()
    failed: Counter[Hashable] = Counter()
    here: defaultdict[Unit, list[int]] = defaultdict(list)
    for index, trial in enumerate(trials):
        unit = _at(trial, at_fault)
        if unit is not None:
            here[unit].append(index)
        else:
            keys = strata.number[index], groups[index]
            runs.update(keys)
            failed.update(keys if starts[index].failed else ())
    blamed: dict[tuple[str, int, str], Kind] = {}
    for unit, of_unit in here.items():
        shares, odds = [], []
        for index in of_unit:
            number, group = strata.number[index], groups[index]
            elsewhere: Hashable = number if runs[number] >= _ENOUGH else group
            shares.append((failed[elsewhere] + 0.5) / (runs[elsewhere] + 1))
            lasted = strata.counted[index] and not starts[index].failed
            early = strata.counted[index] and trials[index].result is Result.FAILED_EARLY
            odds.append(True if early else False if lasted else None)
        for index, share, bad in zip(of_unit, shares, while_at_fault(shares, odds), strict=True):
            if bad and share <= 0.5 and trials[index].result is Result.FAILED_EARLY:
                blamed[trials[index].key] = unit[0]
    return blamed


def while_at_fault(shares: Sequence[float], failed: Sequence[bool | None]) -> list[bool]:
    """Return of each run at a place, in their order, whether it was at fault then.

    ``shares``: how often such runs fail elsewhere; ``failed``: None: says nothing.  The likeliest
    story (Viterbi 1967) of a place that now and then, as ``FALSE_DISCOVERIES`` says, begins to
    fail a share of its runs, and is as all others at other times.
    """
    return max((_story(shares, failed, fails) for fails in _FAILS), key=itemgetter(0))[1]


def _story(
    shares: Sequence[float], failed: Sequence[bool | None], fails: float
) -> tuple[float, list[bool]]:
    """Return how likely the likeliest story is (its log odds), and when the place was at fault."""
    good, bad = 0.0, -math.inf
    began, ended = [], []  # whether it is as all others, or at fault, only since this run
    for share, whether in zip(shares, failed, strict=True):
        began.append(good + math.log(FALSE_DISCOVERIES) > bad)
        ended.append(bad >= good)
        good, bad = max(good, bad), max(bad, good + math.log(FALSE_DISCOVERIES))
        if whether is not None:
            here = max(fails, share)
            bad += math.log(here / share if whether else (1 - here) / (1 - share))
    at_fault, story = bad >= good, []
    for index in reversed(range(len(shares))):
        story.append(at_fault)
        at_fault = not began[index] if at_fault else ended[index]
    return max(good, bad), story[::-1]
