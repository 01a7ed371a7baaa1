"""Why a pilot, or the pilots of an entry, have no job: what keeps each group of idle jobs from it.

Units: times are epoch seconds; jobs are counted, groups are those that matching cannot tell apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from gwmond.explain.answers import limit_on, plain
from gwmond.explain.evidence import Proof, could_run, none_runs, of_rows, told, weaker
from gwmond.explain.movers import (
    Move,
    failed_validation,
    limited,
    of_common,
    without_pilots,
)
from gwmond.explain.phrases import capital, duration, size_text
from gwmond.explain.reasons import PILOTS_PENDING, Explanation, Mover, Step, Tier, wait
from gwmond.explain.situation import CYCLE_S
from gwmond.model.demand.order import NO_LIMITS, Limits, Negotiator
from gwmond.model.demand.place_offers import GroupOffer, PlaceOffers
from gwmond.model.facts import DemandGroup, EntryKey, Pilot, Rejection
from gwmond.model.states import State
from gwmond.reports.failures.common_failures import CommonFailure
from gwmond.reports.render.formats import counted
from gwmond.reports.sites.sites import SiteRow

_FEW_WORDS = 3
SILENT_CYCLES = 5
"""A negotiator that ended no cycle for so many of its own is said to stand still."""


class Obstacle(NamedTuple):
    """What keeps a group from a place: a bounded name, in words, and whose move it is.

    ``limit``: what would change a limit that keeps jobs which fit what is free.
    """

    name: str
    text: str
    mover: Mover
    limit: str = ""


FITS = Obstacle("fits", "they fit a free slot now", Mover.WAIT)
_NOT_EXAMINED = Obstacle(
    "not_examined", "they were not examined clause by clause: other groups are larger", Mover.USERS
)


class Kept(NamedTuple):
    """An obstacle with the groups and idle jobs that it keeps away."""

    obstacle: Obstacle
    groups: int
    jobs: int


class GroupHere(NamedTuple):
    """A group of idle jobs with what keeps it from the place."""

    group: DemandGroup
    offer: GroupOffer
    obstacle: Obstacle


class PlaceSituation:
    """An entry, or one pilot of it (``startd``), among the pool's idle jobs.

    ``row``: the entry's in ``gwmond sites`` for CPUs; ``pilots``: that pilot, or all that run at
    the entry.  ``common``: failures of validation that are no site's.
    """

    def __init__(
        self,
        entry: EntryKey,
        startd: str,
        row: SiteRow | None,
        pilots: Sequence[Pilot],
        found: tuple[Sequence[DemandGroup], PlaceOffers],
        now: float,
        missing: tuple[str, ...] = (),
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.entry, self.startd, self.row, self.pilots = entry, startd, row, tuple(pilots)
        self._groups, self._offers = found
        self.negotiators = self._offers.negotiators
        self.now, self.missing, self.limits = now, missing, limits
        self.common: Sequence[CommonFailure] = ()

    @property
    def without_expressions(self) -> PlaceSituation:
        """The same without the clauses of Requirements and START, and the negotiator's words."""
        groups = [
            one._replace(rejections=tuple(map(plain, one.rejections))) for one in self._groups
        ]
        found = groups, self._offers.without_expressions
        known = self.entry, self.startd, self.row, self.pilots
        here = PlaceSituation(*known, found, self.now, self.missing, self.limits)
        here.common = self.common
        return here

    @property
    def name(self) -> str:
        """What is explained, in words."""
        key = self.entry
        return f"pilot {self.startd}" if self.startd else f"entry {key.entry} of {key.site}"

    def sure(self, *proofs: Proof) -> Proof:
        """Return what an answer rests on that needs all of these, and all that was to be read."""
        return Proof.NOT_KNOWN if self.missing else weaker(*proofs)

    @property
    def refused(self) -> Proof:
        """What rests on that no group could run there."""
        empty = [p for one in self.groups for p in one.offer.places if p.kind == "pilot"]
        return self.sure(none_runs(empty) if empty else told(self.groups))

    @property
    def wanted(self) -> Proof:
        """What rests on that some groups could run there."""
        found = [p for one in self.could_run for p in one.offer.places if p.matches]
        return self.sure(could_run(found) if found else told(self.could_run))

    @cached_property
    def running(self) -> int:
        """Jobs that run there."""
        return sum(len(pilot.jobs) for pilot in self.pilots)

    @cached_property
    def accepting(self) -> tuple[Pilot, ...]:
        """Pilots that take jobs, and have something free."""
        return tuple(p for p in self.pilots if p.accepting and p.free and not p.failed)

    @cached_property
    def groups(self) -> tuple[GroupHere, ...]:
        """All groups of idle jobs, the largest first."""
        return tuple(
            GroupHere(group, offer, self._obstacle(group, offer))
            for offer in self._offers.groups
            for group in (self._groups[offer.group],)
        )

    @property
    def jobs(self) -> int:
        """Idle jobs of the pool."""
        return sum(group.jobs for group in self._groups)

    @cached_property
    def could_run(self) -> tuple[GroupHere, ...]:
        """Groups that could run on an empty pilot there, for as long as they say."""
        never = {"too_long"}
        return tuple(h for h in self.groups if h.offer.runs and h.obstacle.name not in never)

    def kept(self, among: Iterable[GroupHere]) -> list[Kept]:
        """Return what keeps groups away, the most jobs first."""
        sums: dict[Obstacle, Kept] = {}
        for here in among:
            before = sums.get(here.obstacle, Kept(here.obstacle, 0, 0))
            jobs = before.jobs + here.group.jobs
            sums[here.obstacle] = Kept(here.obstacle, before.groups + 1, jobs)
        return sorted(sums.values(), key=lambda kept: (-kept.jobs, kept.obstacle))

    def _obstacle(self, group: DemandGroup, offer: GroupOffer) -> Obstacle:
        """Return the first that keeps a group away: of an empty pilot, then of pilots now."""
        empty = [place for place in offer.places if place.kind == "pilot"]
        if not offer.runs:
            return _of_empty(group, offer) if empty else _NOT_EXAMINED
        lives = [place.remaining_s for place in empty if place.matches]
        wanted = group.walltime_s
        if wanted is not None and lives and all(s is not None and s < wanted for s in lives):
            longest = duration(max(s for s in lives if s is not None))
            text = f"they say that they run for {duration(wanted)}; a pilot has {longest} at most"
            return Obstacle("too_long", text, Mover.USERS)
        return self._of_now(group, offer)

    def _of_now(self, group: DemandGroup, offer: GroupOffer) -> Obstacle:
        if not self.accepting:
            return Obstacle("no_free_slot", "no slot there is free for them", Mover.WAIT)
        roomy = [p for p in self.accepting if any(map(group.size.is_within, p.free))]
        if not roomy:
            text = f"they ask for {size_text(group.size)}, and less than that is free of a pilot"
            return Obstacle("remainder_too_small", text, Mover.WAIT)
        wanted = group.walltime_s or 0
        if all(p.remaining_s is not None and p.remaining_s < wanted for p in roomy):
            text = f"they say that they run for {duration(wanted)}, and pilots with room end sooner"
            return Obstacle("too_short_lived", text, Mover.WAIT)
        slots = [place for place in offer.places if place.kind == "slot"]
        if slots and not any(place.matches for place in slots):
            refused = next(iter(slots[0].refusals), "") or offer.clauses[slots[0].blocked[0]]
            text = f"they fit an empty pilot, but not this one now: {refused}"
            return Obstacle("refused_now", text, Mover.FRONTEND)
        said = next(iter(group.rejections), Rejection("", None, group.jobs))
        limit = limit_on(group, said._replace(at=None), self.limits)
        return (
            FITS if limit is None else Obstacle(limit.name, limit.text, limit.mover, limit.change)
        )


def _of_empty(group: DemandGroup, offer: GroupOffer) -> Obstacle:
    """Return what keeps a group from empty pilots: from the one with the fewest obstacles."""
    empty = [place for place in offer.places if place.kind == "pilot"]
    best = min(empty, key=lambda place: len(place.blocked) + len(place.refusals))
    if not group.size.is_within(best.whole):
        text = f"they ask for {size_text(group.size)}; a pilot has {size_text(best.whole)}"
        return Obstacle("too_large", text, Mover.USERS)
    if best.blocked:
        text = f"their Requirements exclude it: {offer.clauses[best.blocked[0]]}"
        return Obstacle("requirements", text, Mover.USERS)
    return Obstacle("start", f"START refuses them: {best.refusals[0]}", Mover.FRONTEND)


def place_answers(here: PlaceSituation) -> list[Explanation]:
    """Return all reasons that hold, the first of them as the answer; there is always one."""
    found = [answer for rule in PLACE_RULES for answer in rule(here)]
    found.sort(key=lambda answer: answer.tier)
    return found or [_unexplained(here)]


def _closed(here: PlaceSituation) -> Iterator[Explanation]:
    """Its pilots take no jobs, or no more, whatever is idle."""
    tier, pilots = Tier.NOT_WAITING, here.pilots
    if not pilots:
        return
    of = "It" if here.startd else f"Each of its {counted(len(pilots), 'pilot')}"
    if all(pilot.failed for pilot in pilots):
        failure = pilots[0].failure or "no test is named"
        text = f"{of} failed its validation ({failure}): no job can start there"
        mover, change, proof = failed_validation(here.row)
        if (found := _no_sites(here, pilots[0].group)) is not None:
            text, mover = f"{text}. {found[0]}", found[1]
            change, proof = _TEST_FOUND, told(found)
        yield Explanation(tier, "validation_failed", text, proof, (Step(mover, change),))
    elif all(pilot.jobs and pilot.idle_claims == len(pilot.jobs) for pilot in pilots):
        number = sum(pilot.idle_claims for pilot in pilots)
        text = (
            f"{of} is claimed ({counted(number, 'claim')}), and no job runs there: the schedd that "
        )
        text += "has the claim has started none, or none yet"
        change = "A schedd that starts its jobs: its load (condor_status -schedd), its log"
        step = Step(Mover.ACCESS_POINT, change)
        yield Explanation(tier, "claimed_idle", text, Proof.ESTIMATED, (step,))
    elif not any(pilot.free for pilot in pilots):
        runs = "runs" if here.startd else "run"
        jobs = counted(here.running, "job")
        text = f"{'It' if here.startd else 'Its pilots'} {runs} {jobs}, and nothing is free"
        more = limited(here.row) if here.row is not None and not here.startd else None
        if more is None:
            rows = [here.row] if here.row is not None and not here.startd else []
            proof = weaker(told(pilots), *map(of_rows, rows))
            yield Explanation(tier, "busy", text, proof, (wait("A job there that ends"),))
        else:
            text += f". It could have more pilots: {more.text}"
            proof = here.sure(told(pilots), more.proof)
            yield Explanation(tier, "busy", text, proof, (more.step,))
    elif not any(pilot.accepting for pilot in pilots):
        retired = [p.retires for p in pilots if p.retires is not None and p.retires <= here.now]
        since = f" for {duration(here.now - min(retired))}" if retired else ""
        why = f"{of} retires{since}" if retired else f"{of} is drained, or closed"
        text = f"{why}: it takes no more jobs"
        yield Explanation(tier, "retiring", text, told(pilots), (wait("A new pilot"),))


_TEST_FOUND = "What the test found: gwmond report --failures, and the pilots' output"


def _no_sites(here: PlaceSituation, group: str = "") -> tuple[str, Mover] | None:
    """Return the failure of these pilots that is no site's, in words, and whose move it is."""
    found = (one for one in here.common if one.covers(group, here.entry.entry))
    failure = next(found, None)
    if failure is None:
        return None
    return failure.text, of_common(failure)


def _all_fail(here: PlaceSituation) -> Iterator[Explanation]:
    """No pilot is there, as all that begin fail, and not only there."""
    if not here.pilots and (found := _no_sites(here)) is not None:
        text = f"Its pilots fail their validation. {found[0]}"
        steps = (Step(found[1], _TEST_FOUND),)
        yield Explanation(Tier.NO_PILOT, "validation_failed", text, told(found), steps)


def _no_demand(here: PlaceSituation) -> Iterator[Explanation]:
    """No idle job could run there."""
    if not here.groups:
        known = "Whether a job is idle in the queues of this pool is not known"
        text = known if here.missing else "No job is idle in the queues of this pool"
        proof = here.sure(told(here.limits.schedds))
        yield Explanation(Tier.NOWHERE, "no_idle_job", text, proof, (wait("Jobs"),))
    elif not here.could_run:
        first, *others = here.kept(here.groups)
        text = f"0 of {counted(here.jobs, 'idle job')} could run there. {_share(first, here.jobs)}"
        rest = f". {counted(len(others), 'more cause')} below" if others else ""
        step = Step(first.obstacle.mover, _CHANGES.get(first.obstacle.name, "Other jobs"))
        name = first.obstacle.name
        yield Explanation(Tier.NOWHERE, name, text + rest, here.refused, (step,))


_CHANGES = {
    "too_large": "Smaller requests of these jobs, or larger pilots",
    "requirements": "Requirements of these jobs that include the place, or other jobs",
    "start": "START of the frontend's group, or what START asks of a job",
    "too_long": "A smaller walltime of these jobs, or pilots that live longer",
    "too_short_lived": "A new pilot, which has its whole lifetime before it",
    "remainder_too_small": "Jobs there that end, or smaller jobs",
    "refused_now": "What the clause refers to",
}


def _share(kept: Kept, jobs: int) -> str:
    """Return an obstacle, with how many of these idle jobs it keeps away."""
    return f"{kept.jobs} of {jobs}: {kept.obstacle.text}"


def _no_pilots(here: PlaceSituation) -> Iterator[Explanation]:
    """Jobs could run there, but no pilot does."""
    row = here.row
    if here.startd or row is None:
        return
    if row.state == State.DOWN:  # also where nothing could run
        yield _moved(here, Tier.NOT_WAITING, without_pilots(row))
    if here.pilots or not here.could_run or row.state == State.DOWN:
        return
    jobs = counted(sum(one.group.jobs for one in here.could_run), "idle job")
    if row.pending_pilots and not row.barren:
        text = f"{jobs} could run there; {counted(row.pending_pilots, 'pilot')} wait in its queue"
        yield PILOTS_PENDING.because(text, here.wanted)
        return
    yield _moved(
        here, Tier.NO_PILOT, without_pilots(row), f"{jobs} could run there, but it has no pilot: "
    )


def _moved(here: PlaceSituation, tier: Tier, move: Move, before: str = "") -> Explanation:
    """Return why an entry has no pilots, ``before`` which something is said."""
    text, proof = capital(before + move.text), here.sure(move.proof)
    proof = weaker(proof, here.wanted) if before else proof
    return Explanation(tier, move.name, text, proof, (move.step,))


def _not_now(here: PlaceSituation) -> Iterator[Explanation]:
    """Jobs could run on an empty pilot, but on none as it is now."""
    here_now = [one for one in here.could_run if not one.obstacle.limit]
    if not here.accepting or not here_now or any(one.obstacle is FITS for one in here_now):
        return
    first = here.kept(here_now)[0]
    number = sum(one.group.jobs for one in here_now)
    text = (
        f"{counted(number, 'idle job')} could run on an empty pilot, but none on what is free. "
        f"{_share(first, number)}"
    )
    step = Step(first.obstacle.mover, _CHANGES.get(first.obstacle.name, "A new pilot"))
    proof = here.sure(told(here.accepting), here.wanted)
    yield Explanation(Tier.PILOTS_THERE, first.obstacle.name, text, proof, (step,))


def _limited(here: PlaceSituation) -> Iterator[Explanation]:
    """Idle jobs fit what is free, but for a limit."""
    if any(one.obstacle is FITS for one in here.could_run):
        return
    for kept in here.kept(one for one in here.could_run if one.obstacle.limit):
        name, text, mover, change = kept.obstacle
        fit = f"{counted(kept.jobs, 'idle job')} {'fits' if kept.jobs == 1 else 'fit'}"
        whole = f"{fit} what is free, but for a limit. {text}"
        proof = here.sure(told(kept.jobs))
        yield Explanation(Tier.POLICY, name, whole, proof, (Step(mover, change),))


def _not_given(here: PlaceSituation) -> Iterator[Explanation]:
    """Idle jobs fit a free slot, and none was given to it."""
    fitting = [one for one in here.could_run if one.obstacle is FITS]
    if not fitting:
        return
    number = sum(one.group.jobs for one in fitting)
    fit = f"{counted(number, 'idle job')} {'fits' if number == 1 else 'fit'} what is free"
    youngest = max((pilot.began for pilot in here.accepting if not pilot.jobs), default=0)
    if here.negotiators is not None and not here.negotiators:
        text = f"{fit}, but the collectors know no negotiator: nobody gives jobs to pilots"
        step = Step(Mover.POOL, "A negotiator that runs: condor_status -negotiator")
        yield Explanation(Tier.PILOTS_THERE, "no_negotiator", text, here.wanted, (step,))
    elif late := _late(here):
        text = f"{fit}, but the negotiator ended its last cycle {duration(late)} ago"
        change = "A negotiator that comes round: its log, condor_status -negotiator -long"
        steps = (Step(Mover.POOL, change),)
        yield Explanation(Tier.PILOTS_THERE, "negotiator_late", text, here.wanted, steps)
    elif here.startd and youngest and here.now - youngest < CYCLE_S:
        text = f"{fit}; it began {duration(here.now - youngest)} ago, and may not have had its turn"
        steps = (wait("The next negotiation"),)
        yield Explanation(Tier.PILOTS_THERE, "new", text, Proof.ESTIMATED, steps)
    else:
        text = f"{fit}, and none was given to it{_last_words(fitting)}"
        change = "What the negotiator says of one of these jobs: gwmond explain JOB"
        steps = (Step(Mover.POOL, change),)
        yield Explanation(Tier.PILOTS_THERE, "not_given", text, Proof.ESTIMATED, steps)


def _last_words(fitting: Iterable[GroupHere]) -> str:
    """Return what the negotiator said last of these jobs."""
    said: Counter[str] = Counter()
    for one in fitting:
        said.update(dict(one.offer.words))
    if not said:
        return ": priorities, limits, or jobs that are new"
    words = "; ".join(f'"{text}" of {number}' for text, number in said.most_common(_FEW_WORDS))
    return f"; the negotiator's last word: {words}"


def _late(here: PlaceSituation) -> float:
    """Return for how long no negotiator has ended a cycle; 0 where that is usual, or not known."""
    known = here.negotiators or ()
    late = min(
        ((here.now if one.as_of is None else one.as_of) - one.ended for one in known if one.ended),
        default=0,
    )
    usual = max((one.period_s or 0 for one in known), default=0)
    return late if late > SILENT_CYCLES * max(CYCLE_S, usual) else 0


def _unexplained(here: PlaceSituation) -> Explanation:
    missing = "; ".join(here.missing)
    return Explanation(
        *(Tier.UNEXPLAINED, "unexplained"),
        f"Not known: {missing} could not be read" if missing else "No known reason holds",
        Proof.NOT_KNOWN,
        (Step(Mover.POOL, "gwmond check"),),
    )


PLACE_RULES: Sequence[Callable[[PlaceSituation], Iterable[Explanation]]] = (
    *(_closed, _no_demand, _all_fail, _no_pilots, _limited, _not_now, _not_given),
)
"""In no order of precedence: that is the tiers'."""


def negotiator_text(found: Sequence[Negotiator] | None, now: float) -> str:
    """Return when each negotiator ended its last cycle, in words; empty if nobody asked."""
    if not found:
        return "" if found is None else "The collectors know no negotiator."
    ended = "; ".join(
        f"{one.name} ended its last cycle {duration(now - one.ended)} ago"
        if one.ended
        else f"{one.name} has not ended a cycle"
        for one in found
    )
    return f"Negotiator: {ended}."
