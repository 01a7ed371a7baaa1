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
from gwmond.explain.movers import failed_validation, limited, of_common, without_pilots
from gwmond.explain.phrases import capital, duration, size_text
from gwmond.explain.reasons import (
    PILOTS_PENDING,
    Explanation,
    Mover,
    Reason,
    Step,
    Tier,
    holding,
    of_tier,
    unexplained,
)
from gwmond.explain.situation import CYCLE_S
from gwmond.model.demand.order import NO_LIMITS, Limits, Negotiator
from gwmond.model.demand.waiting_job import GroupOffer, JobPlace, PlaceOffers
from gwmond.model.facts import DemandGroup, EntryKey, Pilot, Rejection
from gwmond.model.states import State
from gwmond.reports.failures.common_failures import CommonFailure
from gwmond.reports.render.formats import counted
from gwmond.reports.sites.sites import SiteRow

_FEW_WORDS = 3
SILENT_CYCLES = 5
"""A negotiator that ended no cycle for so many of its own is said to stand still."""


_at, _none, _open = map(of_tier, (Tier.NOT_WAITING, Tier.NOWHERE, Tier.PILOTS_THERE))
FAILED = Reason(Tier.NOT_WAITING, "validation_failed")
_CLAIMED_IDLE = _at(
    *("claimed_idle", Mover.ACCESS_POINT),
    "A schedd that starts its jobs: its load (condor_status -schedd), its log",
)
_BUSY = _at("busy", Mover.WAIT, "A job there that ends")
_RETIRING = _at("retiring", Mover.WAIT, "A new pilot")
_NO_IDLE_JOB = _none("no_idle_job", Mover.WAIT, "Jobs")
_NO_NEGOTIATOR = _open(
    "no_negotiator", Mover.POOL, "A negotiator that runs: condor_status -negotiator"
)
_NEGOTIATOR_LATE = _open(
    *("negotiator_late", Mover.POOL),
    "A negotiator that comes round: its log, condor_status -negotiator -long",
)
_NEW = _open("new", Mover.WAIT, "The next negotiation")
_NOT_GIVEN = _open(
    *("not_given", Mover.POOL),
    "What the negotiator says of one of these jobs: gwmond explain JOB",
)

# Obstacles: what keeps a group of idle jobs from a place.  A limit is one of the tier of policies.
_TOO_LARGE = _none("too_large", Mover.USERS, "Smaller requests of these jobs, or larger pilots")
_REQUIREMENTS = _none(
    *("requirements", Mover.USERS),
    "Requirements of these jobs that include the place, or other jobs",
)
_START = _none(
    "start", Mover.FRONTEND, "START of the frontend's group, or what START asks of a job"
)
_TOO_LONG = _none(
    "too_long", Mover.USERS, "A smaller walltime of these jobs, or pilots that live longer"
)
_NOT_EXAMINED = _none("not_examined", Mover.USERS, "Other jobs")
_NO_FREE_SLOT = Reason(Tier.PILOTS_THERE, "no_free_slot")
_TOO_SMALL = _open("remainder_too_small", Mover.WAIT, "Jobs there that end, or smaller jobs")
_TOO_SHORT_LIVED = _open(
    "too_short_lived", Mover.WAIT, "A new pilot, which has its whole lifetime before it"
)
_REFUSED_NOW = _open("refused_now", Mover.FRONTEND, "What the clause refers to")
_FITS = Reason(Tier.PILOTS_THERE, "fits")


class Kept(NamedTuple):
    """An obstacle with the groups and idle jobs that it keeps away."""

    obstacle: Explanation
    groups: int
    jobs: int


class GroupHere(NamedTuple):
    """A group of idle jobs with what keeps it from the place."""

    group: DemandGroup
    offer: GroupOffer
    obstacle: Explanation

    @property
    def fits(self) -> bool:
        """Whether nothing keeps it from a free slot."""
        return self.obstacle.name == _FITS.name

    @property
    def is_limited(self) -> bool:
        """Whether it fits what is free, but for a limit."""
        return self.obstacle.tier is Tier.POLICY


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
        matched: tuple[Sequence[DemandGroup], PlaceOffers],
        now: float,
        missing: tuple[str, ...] = (),
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.entry, self.startd, self.row, self.pilots = entry, startd, row, tuple(pilots)
        self._groups, self._offers = matched
        self.negotiators = self._offers.negotiators
        self.now, self.missing, self.limits = now, missing, limits
        self.common: Sequence[CommonFailure] = ()

    @property
    def without_expressions(self) -> PlaceSituation:
        """The same without the clauses of Requirements and START, and the negotiator's words."""
        groups = [
            group._replace(rejections=tuple(map(plain, group.rejections))) for group in self._groups
        ]
        matched = groups, self._offers.without_expressions
        place = self.entry, self.startd, self.row, self.pilots
        here = PlaceSituation(*place, matched, self.now, self.missing, self.limits)
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
        empty = [p for g in self.groups for p in g.offer.places if p.kind == "pilot"]
        return self.sure(none_runs(empty) if empty else told(self.groups))

    @property
    def wanted(self) -> Proof:
        """What rests on that some groups could run there."""
        places = [p for g in self.could_run for p in g.offer.places if p.matches]
        return self.sure(could_run(places) if places else told(self.could_run))

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
        sums: dict[Explanation, Kept] = {}
        for here in among:
            before = sums.get(here.obstacle, Kept(here.obstacle, 0, 0))
            jobs = before.jobs + here.group.jobs
            sums[here.obstacle] = Kept(here.obstacle, before.groups + 1, jobs)
        return sorted(sums.values(), key=lambda kept: (-kept.jobs, *kept.obstacle[1:3]))

    def _obstacle(self, group: DemandGroup, offer: GroupOffer) -> Explanation:
        """Return the first that keeps a group away: of an empty pilot, then of pilots now."""
        empty = [place for place in offer.places if place.kind == "pilot"]
        if not offer.runs and not empty:
            return _keeps(
                _NOT_EXAMINED, "they were not examined clause by clause: other groups are larger"
            )
        if not offer.runs:
            return _of_empty(group, offer, empty)
        lives = [place.remaining_s for place in empty if place.matches]
        wall_s = group.walltime_s
        if wall_s is not None and lives and all(s is not None and s < wall_s for s in lives):
            longest = duration(max(s for s in lives if s is not None))
            text = f"they say that they run for {duration(wall_s)}; a pilot has {longest} at most"
            return _keeps(_TOO_LONG, text)
        return self._of_now(group, offer)

    def _of_now(self, group: DemandGroup, offer: GroupOffer) -> Explanation:
        if not self.accepting:
            return _keeps(_NO_FREE_SLOT, "no slot there is free for them")
        roomy = [p for p in self.accepting if any(map(group.size.is_within, p.free))]
        if not roomy:
            text = f"they ask for {size_text(group.size)}, and less than that is free of a pilot"
            return _keeps(_TOO_SMALL, text)
        wall_s = group.walltime_s or 0
        if all(p.remaining_s is not None and p.remaining_s < wall_s for p in roomy):
            text = f"they say that they run for {duration(wall_s)}, and pilots with room end sooner"
            return _keeps(_TOO_SHORT_LIVED, text)
        slots = [place for place in offer.places if place.kind == "slot"]
        if slots and not any(place.matches for place in slots):
            refused = next(iter(slots[0].refusals), "") or offer.clauses[slots[0].blocked[0]]
            text = f"they fit an empty pilot, but not this one now: {refused}"
            return _keeps(_REFUSED_NOW, text)
        rejection = next(iter(group.rejections), Rejection("", None, group.jobs))
        limit = limit_on(group, rejection._replace(at=None), self.limits)
        if limit is None:
            return _keeps(_FITS, "they fit a free slot now")
        return limit._replace(steps=(Step(limit.mover, limit.change),))  # of any size of jobs


def _keeps(reason: Reason, text: str) -> Explanation:
    """Return what keeps a group away; what it rests on is said where it is an answer."""
    return reason.because(text, Proof.NOT_KNOWN)


def _of_empty(group: DemandGroup, offer: GroupOffer, empty: Sequence[JobPlace]) -> Explanation:
    """Return what keeps a group from empty pilots, by the pilot with the fewest obstacles."""
    best = min(empty, key=lambda place: len(place.blocked) + len(place.refusals))
    if not group.size.is_within(best.whole):
        text = f"they ask for {size_text(group.size)}; a pilot has {size_text(best.whole)}"
        return _keeps(_TOO_LARGE, text)
    if best.blocked:
        text = f"their Requirements exclude it: {offer.clauses[best.blocked[0]]}"
        return _keeps(_REQUIREMENTS, text)
    return _keeps(_START, f"START refuses them: {best.refusals[0]}")


def place_answers(here: PlaceSituation) -> list[Explanation]:
    """Return all reasons that hold, the first of them as the answer; there is always one."""
    return holding(PLACE_RULES, here, unexplained(here.missing))


def _closed(here: PlaceSituation) -> Iterator[Explanation]:
    """Its pilots take no jobs, or no more, whatever is idle."""
    if not (pilots := here.pilots):
        return
    of = "It" if here.startd else f"Each of its {counted(len(pilots), 'pilot')}"
    if all(pilot.failed for pilot in pilots):
        failure = pilots[0].failure or "no test is named"
        text = f"{of} failed its validation ({failure}): no job can start there"
        mover, change, proof = failed_validation(here.row)
        if (common := _no_sites(here, pilots[0].group)) is not None:
            text, mover = f"{text}. {common[0]}", common[1]
            change, proof = _TEST_FOUND, told(common)
        yield FAILED.because(text, proof, Step(mover, change))
    elif all(pilot.jobs and pilot.idle_claims == len(pilot.jobs) for pilot in pilots):
        number = sum(pilot.idle_claims for pilot in pilots)
        text = (
            f"{of} is claimed ({counted(number, 'claim')}), and no job runs there: the schedd that "
        )
        text += "has the claim has started none, or none yet"
        yield _CLAIMED_IDLE.because(text, Proof.ESTIMATED)
    elif not any(pilot.free for pilot in pilots):
        runs = "runs" if here.startd else "run"
        jobs = counted(here.running, "job")
        text = f"{'It' if here.startd else 'Its pilots'} {runs} {jobs}, and nothing is free"
        more = limited(here.row) if here.row is not None and not here.startd else None
        if more is None:
            rows = [here.row] if here.row is not None and not here.startd else []
            proof = weaker(told(pilots), *map(of_rows, rows))
            yield _BUSY.because(text, proof)
        else:
            text += f". It could have more pilots: {more.text}"
            yield _BUSY.because(text, here.sure(told(pilots), more.proof), *more.steps)
    elif not any(pilot.accepting for pilot in pilots):
        retired = [p.retires for p in pilots if p.retires is not None and p.retires <= here.now]
        since = f" for {duration(here.now - min(retired))}" if retired else ""
        why = f"{of} retires{since}" if retired else f"{of} is drained, or closed"
        yield _RETIRING.because(f"{why}: it takes no more jobs", told(pilots))


_TEST_FOUND = "What the test found: gwmond report --failures, and the pilots' output"


def _no_sites(here: PlaceSituation, group: str = "") -> tuple[str, Mover] | None:
    """Return the failure of these pilots that is no site's, in words, and whose move it is."""
    failures = (f for f in here.common if f.covers(group, here.entry.entry))
    failure = next(failures, None)
    if failure is None:
        return None
    return failure.text, of_common(failure)


def _all_fail(here: PlaceSituation) -> Iterator[Explanation]:
    """No pilot is there, as all that begin fail, and not only there."""
    if not here.pilots and (common := _no_sites(here)) is not None:
        text = f"Its pilots fail their validation. {common[0]}"
        reason = FAILED._replace(tier=Tier.NO_PILOT)
        yield reason.because(text, told(common), Step(common[1], _TEST_FOUND))


def _no_demand(here: PlaceSituation) -> Iterator[Explanation]:
    """No idle job could run there."""
    if not here.groups:
        unknown = "Whether a job is idle in the queues of this pool is not known"
        text = unknown if here.missing else "No job is idle in the queues of this pool"
        yield _NO_IDLE_JOB.because(text, here.sure(told(here.limits.schedds)))
    elif not here.could_run:
        first, *others = here.kept(here.groups)
        text = f"0 of {counted(here.jobs, 'idle job')} could run there. {_share(first, here.jobs)}"
        rest = f". {counted(len(others), 'more cause')} below" if others else ""
        yield first.obstacle._replace(text=text + rest, proof=here.refused)


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
    jobs = counted(sum(g.group.jobs for g in here.could_run), "idle job")
    if row.pending_pilots and not row.barren:
        text = f"{jobs} could run there; {counted(row.pending_pilots, 'pilot')} wait in its queue"
        yield PILOTS_PENDING.because(text, here.wanted)
        return
    yield _moved(
        here, Tier.NO_PILOT, without_pilots(row), f"{jobs} could run there, but it has no pilot: "
    )


def _moved(here: PlaceSituation, tier: Tier, move: Explanation, before: str = "") -> Explanation:
    """Return why an entry has no pilots, ``before`` which something is said."""
    proof = here.sure(move.proof)
    proof = weaker(proof, here.wanted) if before else proof
    return move._replace(tier=tier, text=capital(before + move.text), proof=proof)


def _not_now(here: PlaceSituation) -> Iterator[Explanation]:
    """Jobs could run on an empty pilot, but on none as it is now."""
    here_now = [g for g in here.could_run if not g.is_limited]
    if not here.accepting or not here_now or any(g.fits for g in here_now):
        return
    first = here.kept(here_now)[0]
    number = sum(g.group.jobs for g in here_now)
    text = (
        f"{counted(number, 'idle job')} could run on an empty pilot, but none on what is free. "
        f"{_share(first, number)}"
    )
    proof = here.sure(told(here.accepting), here.wanted)
    yield first.obstacle._replace(text=text, proof=proof)


def _limited(here: PlaceSituation) -> Iterator[Explanation]:
    """Idle jobs fit what is free, but for a limit."""
    if any(g.fits for g in here.could_run):
        return
    for kept in here.kept(g for g in here.could_run if g.is_limited):
        fit = f"{counted(kept.jobs, 'idle job')} {'fits' if kept.jobs == 1 else 'fit'}"
        text = f"{fit} what is free, but for a limit. {kept.obstacle.text}"
        yield kept.obstacle._replace(text=text, proof=here.sure(told(kept.jobs)))


def _not_given(here: PlaceSituation) -> Iterator[Explanation]:
    """Idle jobs fit a free slot, and none was given to it."""
    fitting = [g for g in here.could_run if g.fits]
    if not fitting:
        return
    number = sum(g.group.jobs for g in fitting)
    fit = f"{counted(number, 'idle job')} {'fits' if number == 1 else 'fit'} what is free"
    youngest = max((pilot.began for pilot in here.accepting if not pilot.jobs), default=0)
    if here.negotiators is not None and not here.negotiators:
        text = f"{fit}, but the collectors know no negotiator: nobody gives jobs to pilots"
        yield _NO_NEGOTIATOR.because(text, here.wanted)
    elif late := _late(here):
        text = f"{fit}, but the negotiator ended its last cycle {duration(late)} ago"
        yield _NEGOTIATOR_LATE.because(text, here.wanted)
    elif here.startd and youngest and here.now - youngest < CYCLE_S:
        text = f"{fit}; it began {duration(here.now - youngest)} ago, and may not have had its turn"
        yield _NEW.because(text, Proof.ESTIMATED)
    else:
        text = f"{fit}, and none was given to it{_last_words(fitting)}"
        yield _NOT_GIVEN.because(text, Proof.ESTIMATED)


def _last_words(fitting: Iterable[GroupHere]) -> str:
    """Return what the negotiator said last of these jobs."""
    counts: Counter[str] = Counter()
    for group in fitting:
        counts.update(dict(group.offer.words))
    if not counts:
        return ": priorities, limits, or jobs that are new"
    words = "; ".join(f'"{text}" of {number}' for text, number in counts.most_common(_FEW_WORDS))
    return f"; the negotiator's last word: {words}"


def _late(here: PlaceSituation) -> float:
    """Return for how long no negotiator has ended a cycle; 0 where that is usual, or not known."""
    negotiators = here.negotiators or ()
    late = min(
        ((here.now if n.as_of is None else n.as_of) - n.ended for n in negotiators if n.ended),
        default=0,
    )
    usual = max((n.period_s or 0 for n in negotiators), default=0)
    return late if late > SILENT_CYCLES * max(CYCLE_S, usual) else 0


PLACE_RULES: Sequence[Callable[[PlaceSituation], Iterable[Explanation]]] = (
    *(_closed, _no_demand, _all_fail, _no_pilots, _limited, _not_now, _not_given),
)
"""In no order of precedence: that is the tiers'."""


def negotiator_text(negotiators: Sequence[Negotiator] | None, now: float) -> str:
    """Return when each negotiator ended its last cycle, in words; empty if nobody asked."""
    if not negotiators:
        return "" if negotiators is None else "The collectors know no negotiator."
    ended = "; ".join(
        f"{n.name} ended its last cycle {duration(now - n.ended)} ago"
        if n.ended
        else f"{n.name} has not ended a cycle"
        for n in negotiators
    )
    return f"Negotiator: {ended}."
