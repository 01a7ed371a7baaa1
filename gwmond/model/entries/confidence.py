"""How sure a verdict is: how often verdicts like it were right, by the pilots that checked them.

The verdict of one poll on one entry counts once, however many pilots check it: a job that had
waited ran on one of them, or on none.  So pilots that start together, and share the jobs of one,
are no ten checks.

Verdicts of the same state, reason and evidence are alike; those of the same entry more so.  The
share of few is drawn towards that of many (beta-binomial, with the weight of ``WEIGHT`` checks), so
that one check decides nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from gwmond.model.entries.experiments import CHECKED, Experiment, PilotResult, SiteVerdict
from gwmond.model.facts import EntryKey
from gwmond.model.states import State

FEWEST = 10
"""Of fewer verdicts of a state that were checked, nothing is said."""
WEIGHT = 10.0
MOST = 10_000
"""So many checks, the latest, are looked at."""
BINS = 10

Tally: TypeAlias = tuple[int, int]
"""How many verdicts were right, and how many were checked."""
_NONE: Tally = (0, 0)


class Bin(NamedTuple):
    """Verdicts of about the same probability: how many, its mean, and the share that was right."""

    number: int
    said: float
    right: float


class Confidence(NamedTuple):
    """What is known of verdicts that were checked; none were, if ``number`` is 0.

    ``brier``: the mean square of what each verdict's probability, by the checks before it, was off
    (Brier score, 0 is best); None where none had a probability.  ``bins``: the same verdicts by
    their probability, from the least.
    """

    tallies: Mapping[Hashable, Tally] = MappingProxyType({})
    number: int = 0
    brier: float | None = None
    bins: tuple[Bin, ...] = ()

    def probability(self, entry: EntryKey, verdict: SiteVerdict) -> float | None:
        """Return how probable it is that a verdict is right; None: too little data, or no state
        that can be checked.
        """
        return _probability(self.tallies, entry, verdict)


NO_CHECKS = Confidence()
"""What is known before any verdict was checked."""


def confidence(experiments: Iterable[Experiment]) -> Confidence:
    """Return what experiments say, in the order of their verdicts."""
    ran: defaultdict[tuple[int, EntryKey, SiteVerdict], bool] = defaultdict(bool)
    for one in experiments:
        if one.agreed is not None:
            ran[one.verdict_us, one.entry, one.verdict] |= one.result is PilotResult.RAN
    tallies: dict[Hashable, Tally] = {}
    said: list[tuple[float, bool]] = []
    for _, entry, verdict in sorted(ran, key=lambda key: key[:2]):
        right = ran[_, entry, verdict] == (verdict.state is State.PROVISIONING_BOTTLENECK)
        probability = _probability(tallies, entry, verdict)
        if probability is not None:
            said.append((probability, right))
        for name in _names(entry, verdict):
            before = tallies.get(name, _NONE)
            tallies[name] = before[0] + right, before[1] + 1
    brier = sum((p - right) ** 2 for p, right in said) / len(said) if said else None
    return Confidence(tallies, len(ran), brier, tuple(bins(said)))


def _names(entry: EntryKey, verdict: SiteVerdict) -> tuple[Hashable, ...]:
    """Return what verdicts are alike by, from the widest."""
    state = verdict.state
    return state, verdict, (state, entry)


def _probability(
    tallies: Mapping[Hashable, Tally], entry: EntryKey, verdict: SiteVerdict
) -> float | None:
    widest, *closer = (tallies.get(name, _NONE) for name in _names(entry, verdict))
    if verdict.state not in CHECKED or widest[1] < FEWEST:
        return None
    share = (widest[0] + 1) / (widest[1] + 2)
    for right, checked in closer:
        share = (right + WEIGHT * share) / (checked + WEIGHT)
    return share


def bins(said: Iterable[tuple[float, bool]]) -> Iterable[Bin]:
    """Yield bins of probabilities, each with whether it was right, from the least."""
    numbers: Counter[int] = Counter()
    sums: Counter[int] = Counter()
    shares: defaultdict[int, float] = defaultdict(float)
    for probability, right in said:
        place = min(int(probability * BINS), BINS - 1)
        numbers[place] += 1
        sums[place] += right
        shares[place] += probability
    for place, number in sorted(numbers.items()):
        yield Bin(number, shares[place] / number, sums[place] / number)
