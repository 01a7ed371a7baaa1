"""Whether a program that soon failed did so by the pilot's doing.

Units: times are microseconds since the epoch; jobs are counted, not runs.

Source of the rule: design page, section 3 (``misconfiguration_badput``); the 2022 report: "jobs
that fail in the beginning due to a runtime problem not imputable to user errors".  A program that
exits with an error soon after it began is goodput (it completed) unless there is evidence that
the pilot or its node is to blame:

1. the same job, unchanged, later exited 0 on another node; or
2. on this pilot or this node the jobs of the same groups fail early significantly more often than
   they do elsewhere.

**The test for 2** is the exact conditional test of stratified 2 x 2 tables, one-sided: of each job
group g there are n_g jobs here and m_g elsewhere, f_g of all failed early; if it made no
difference where they ran, the failures here would be hypergeometric in each group, and
independent between groups.  The p-value is the probability that they sum to at least those seen.
With one group this is Fisher's exact test.  Why this one: the counts are small (a pilot runs a
few jobs), so nothing asymptotic will do; and it compares each group only with itself, so that a
node which happens to run a user's broken jobs is not blamed for them.  A job counts once on each
node or pilot, however often it was tried there, because retries of one job are not independent.

**Many pilots and nodes are tested**, so the p-values are adjusted to a false discovery rate
(``scipy.stats.false_discovery_control``), by Benjamini and Yekutieli, because the tests are not
independent (all compare with the others).  A pilot or node is only blamed if at least
``MIN_FAILURES`` different jobs failed early there.  Where that, or significance, would not have
been possible whatever had happened there, nothing is tested (Tarone 1990, Gilbert 2005); this
depends on the margins alone, so it is not a choice by results, and it leaves out most pilots.

**Verdicts are open** as long as more runs may become known, for ``window_us`` after the attempt
ended (the book judges attempts of some time together, a little later).  Until then it has no
outcome.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache, reduce
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from gwmond.accounting.outcomes import EARLY_EXIT
from gwmond.accounting.pilot_facts import Category, Outcome

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

EARLY_US = 300_000_000
"""A program that ends within five minutes ended early."""

WINDOW_US = 6 * 3_600_000_000
"""How long a verdict stays open after the attempt's end."""

FALSE_DISCOVERIES = 0.01
"""Of the pilots and nodes that are blamed, this share may be blamed by chance."""

MIN_FAILURES = 3

Floats: TypeAlias = "npt.NDArray[np.float64]"
Kind: TypeAlias = Literal["pilot", "node"]
Unit: TypeAlias = tuple[Kind, str]


class Result(StrEnum):
    """What a run says about where it ran."""

    FAILED_EARLY = "failed_early"
    SUCCEEDED = "succeeded"
    LASTED = "lasted"  # it neither failed early nor exited 0, for example it failed later


class Trial(NamedTuple):
    """One run of a job whose program began, and was not ended from outside within ``EARLY_US``.

    ``job`` stands for the job as it was run: if it was changed in between (condor_qedit), it is
    another.  ``group`` are jobs that are expected to behave alike.
    """

    job: str
    run: int
    group: str
    pilot: str
    node: str
    start_us: int
    end_us: int
    result: Result

    @property
    def units(self) -> tuple[Unit, Unit]:
        """Whom this run is evidence for or against."""
        return ("pilot", self.pilot), ("node", self.node)


_KINDS: Mapping[Kind, Callable[[Trial], str]] = {
    "pilot": attrgetter("pilot"),
    "node": attrgetter("node"),
}


class Stratum(NamedTuple):
    """Jobs of one group: here, and on all pilots (or nodes) together."""

    here: int
    failed_here: int
    jobs: int
    failed: int

    @property
    def margins(self) -> tuple[int, int, int]:
        """All that does not depend on where the failures fell."""
        return self.here, self.jobs, self.failed


class Finding(NamedTuple):
    """How a pilot or node compares with the others."""

    jobs: int
    failures: int
    expected: float
    p: float
    adjusted: float

    def significant(self, rate: float) -> bool:
        """Return whether it fails early too often for chance."""
        return self.failures >= MIN_FAILURES and self.adjusted <= rate


class Blame(StrEnum):
    """The evidence that an early failure is the pilot's doing."""

    SUCCEEDED_ELSEWHERE = "succeeded_elsewhere"
    PILOT_FAILS_EARLY = "pilot_fails_early"
    NODE_FAILS_EARLY = "node_fails_early"


class Evidence(NamedTuple):
    """What all known trials together say: successes of each job, and how units compare."""

    successes: Mapping[str, tuple[Trial, ...]]
    findings: Mapping[Unit, Finding]
    rate: float = FALSE_DISCOVERIES


class Verdict(NamedTuple):
    """An outcome, None while it is open; ``blame`` where the pilot is to blame."""

    outcome: Outcome | None
    blame: Blame | None


def is_early(executing_us: int | None, early_us: int = EARLY_US) -> bool | None:
    """Return whether a program that ran so long ended early; None where that is not known."""
    return None if executing_us is None else executing_us <= early_us


def result_of(outcome: Outcome, early: bool | None) -> Result | None:
    """Return what a run with this outcome says; None if it says nothing of where it ran.

    A run that was cut off early might have failed early or not.

    >>> result_of(Outcome(Category.GOODPUT, "exit_nonzero"), early=True)
    <Result.FAILED_EARLY: 'failed_early'>
    """
    if outcome.label == "exit_zero":
        return Result.SUCCEEDED
    if outcome.category is Category.GOODPUT and early is True:
        return Result.FAILED_EARLY
    return Result.LASTED if early is False else None


def weigh(trials: Iterable[Trial], rate: float = FALSE_DISCOVERIES) -> Evidence:
    """Return the evidence; it does not depend on the order of the trials."""
    known = list(trials)
    successes: defaultdict[str, list[Trial]] = defaultdict(list)
    for trial in known:
        if trial.result is Result.SUCCEEDED:
            successes[trial.job].append(trial)
    in_order = {job: tuple(sorted(set(of))) for job, of in successes.items()}
    return Evidence(in_order, _compare(known, rate), rate)


def judge(
    trial: Trial,
    outcome: Outcome,
    evidence: Evidence,
    now_us: int,
    window_us: int = WINDOW_US,
) -> Verdict:
    """Return the outcome of a run, which without evidence against the pilot is ``outcome``.

    That the job succeeded elsewhere is final; otherwise the verdict is open until the window is
    over, because more runs may change what is significant, either way.
    """
    if trial.result is not Result.FAILED_EARLY:
        return Verdict(outcome, None)
    blamed = outcome._replace(category=Category.MISCONFIGURATION_BADPUT, label=EARLY_EXIT)
    if any(
        later.start_us >= trial.end_us and later.node != trial.node
        for later in evidence.successes.get(trial.job, ())
    ):
        return Verdict(blamed, Blame.SUCCEEDED_ELSEWHERE)
    is_open = now_us < trial.end_us + window_us
    pilot, node = (evidence.findings.get(unit) for unit in trial.units)
    for finding, blame in ((node, Blame.NODE_FAILS_EARLY), (pilot, Blame.PILOT_FAILS_EARLY)):
        if finding is not None and finding.significant(evidence.rate):
            return Verdict(None if is_open else blamed, blame)
    return Verdict(None if is_open else outcome, None)


def p_value(strata: Iterable[Stratum]) -> float:
    """Return the probability of at least as many failures here, if it made no difference.

    >>> round(p_value([Stratum(here=3, failed_here=3, jobs=6, failed=3)]), 9)
    0.05
    """
    import numpy as np  # noqa: PLC0415 (SciPy and NumPy take a second to load: only who tests pays)

    groups = list(strata)
    observed = sum(of.failed_here for of in groups)
    if observed == 0:
        return 1.0
    distribution = reduce(np.convolve, (_chances(*of.margins) for of in groups), np.ones(1))
    return min(1.0, float(distribution[observed:].sum()))


def least_p(strata: Iterable[Stratum]) -> float:
    """Return the p-value that there would be with as many failures here as possible."""
    return math.prod(float(_chances(*of.margins)[-1]) for of in strata)


def _level(least: Sequence[float], rate: float) -> float:
    """Return how small a p-value must be able to become for a unit to be tested (Tarone's K).

    ``least`` is sorted.  K is the smallest number with at most K units that could reach rate / K.
    """
    k = next((k for k in range(1, len(least)) if bisect_right(least, rate / k) <= k), len(least))
    return rate / max(k, 1)


@lru_cache(maxsize=65536)
def _chances(here: int, jobs: int, failed: int) -> Floats:
    """Return the probability of 0, 1, ... failures here, up to the most that there can be."""
    import numpy as np  # noqa: PLC0415
    from scipy.stats import hypergeom  # noqa: PLC0415

    return np.asarray(hypergeom.pmf(np.arange(min(here, failed) + 1), jobs, failed, here))


def _strata(known: Sequence[Trial], name: Callable[[Trial], str]) -> dict[str, list[Stratum]]:
    """Return the groups of each unit on which ``MIN_FAILURES`` jobs could have failed early."""
    every = {(name(of), of.group, of.job) for of in known}
    # A job that once did better there did not fail there.
    better = {(name(of), of.group, of.job) for of in known if of.result is not Result.FAILED_EARLY}
    failed_on = every - better
    here = Counter((unit, group) for unit, group, _ in every)
    failed_here = Counter((unit, group) for unit, group, _ in failed_on)
    jobs = Counter(group for _, group, _ in every)
    failed_jobs = Counter(group for _, group, _ in failed_on)
    most: defaultdict[str, int] = defaultdict(int)
    for (unit, group), number in here.items():
        most[unit] += min(number, failed_jobs[group])
    found: defaultdict[str, list[Stratum]] = defaultdict(list)
    for of in sorted(of for of in here if most[of[0]] >= MIN_FAILURES):
        unit, group = of
        found[unit].append(Stratum(here[of], failed_here[of], jobs[group], failed_jobs[group]))
    return found


def _compare(known: Sequence[Trial], rate: float) -> dict[Unit, Finding]:
    """Test each pilot and node that could be found to fail early too often, whether it does or not.

    Leaving out those where nothing failed would be to choose the tests by their results.
    """
    possible: dict[Unit, tuple[int, list[Stratum], float]] = {}
    for kind, name in _KINDS.items():
        for called, every in _strata(known, name).items():
            strata = [of for of in every if of.failed]  # other groups say nothing
            possible[kind, called] = sum(of.here for of in every), strata, least_p(strata)
    level = _level(sorted(least for _, _, least in possible.values()), rate)
    findings = {}
    for unit, (jobs, strata, least) in sorted(possible.items()):
        if least <= level:
            p = p_value(strata)
            findings[unit] = Finding(
                jobs,
                sum(of.failed_here for of in strata),
                sum(of.here * of.failed / of.jobs for of in strata),
                p,
                p,
            )
    if not findings:
        return {}
    from scipy.stats import false_discovery_control  # noqa: PLC0415

    adjusted = false_discovery_control([of.p for of in findings.values()], method="by")
    return {
        unit: finding._replace(adjusted=float(value))
        for (unit, finding), value in zip(findings.items(), adjusted, strict=True)
    }
