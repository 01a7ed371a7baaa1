"""The reasons why a job is not running: of each its tier, and by which steps whose move changes it.

What people read and what programs do of a remedy is made of the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, TypeVar

from gwmond.explain.evidence import Proof
from gwmond.model.demand.waiting_job import WaitingJob


class Tier(IntEnum):
    """How far a job has come; the first that holds is the answer."""

    NOT_CONSIDERED = 0
    NOT_WAITING = 1
    NOWHERE = 2
    POLICY = 3
    NO_PILOT = 4
    ON_THEIR_WAY = 5
    PILOTS_THERE = 6
    UNEXPLAINED = 7


class Mover(StrEnum):
    """Who can change something."""

    YOU = "you"
    USERS = "the jobs' users"
    SITE = "the site"
    FRONTEND = "the frontend's administrator"
    FACTORY = "the factory's operator"
    POOL = "the pool's administrator"
    ACCESS_POINT = "the access point's administrator"
    WAIT = "nobody: wait"

    @property
    def text(self) -> str:
        """Who it is in words: whoever reads these need not be the owner of the job."""
        return "the job's owner" if self is Mover.YOU else self.value

    @property
    def of_others(self) -> Mover:
        """Who it is to whom does not ask for a job of their own."""
        return Mover.USERS if self is Mover.YOU else self


class Step(NamedTuple):
    """One step of a remedy, in words: what to do, or to wait for, ``until`` then (epoch seconds).

    ``command`` does it: a tool of HTCondor, and what follows the job that it is given, if any.
    """

    mover: Mover
    words: str
    command: tuple[str, ...] = ()
    until: int | None = None

    def argv(self, job: WaitingJob) -> list[str]:
        """Return the whole command; empty: no command does it."""
        tool, *rest = self.command or ("",)
        of_job = ["-name", job.schedd, job.number] if tool in _OF_JOBS else []
        return [tool, *of_job, *rest] if tool and (job.number or not of_job) else []

    def record(self, job: WaitingJob) -> dict[str, Any]:
        """Return it as JSON has it."""
        record: dict[str, Any] = {"mover": self.mover.value}
        if argv := self.argv(job):
            return record | {"argv": argv}
        if self.mover is Mover.WAIT:
            return record | {"wait_for": self.words, "until": self.until}
        return record | {"do": self.words}


_OF_JOBS = ("condor_qedit", "condor_release", "condor_hold")
RELEASE = Step(Mover.YOU, "condor_release", ("condor_release",))
HOLD = Step(Mover.YOU, "condor_hold", ("condor_hold",))


def wait(words: str, until: int | None = None) -> Step:
    """Return a step that time does; ``until`` is in epoch seconds."""
    return Step(Mover.WAIT, words, until=until)


def edit(words: str, name: str, value: str) -> Step:
    """Return the step that gives an attribute of a job a value, an expression of ClassAds."""
    return Step(Mover.YOU, words, ("condor_qedit", name, value))


class Explanation(NamedTuple):
    """One reason: its tier and bounded name, in words, and what it rests on.

    ``steps``: what would change it, one after the other; empty: nothing has to.
    """

    tier: Tier
    name: str
    text: str
    proof: Proof
    steps: tuple[Step, ...] = ()

    @property
    def change(self) -> str:
        """What would change it, in words."""
        return ", then ".join(step.words for step in self.steps) or "Nothing"

    @property
    def mover(self) -> Mover:
        """Whose move it is."""
        return self.steps[0].mover if self.steps else Mover.WAIT


class Reason(NamedTuple):
    """What is the same whenever a reason holds; ``steps``: what would change it, if that is."""

    tier: Tier
    name: str
    steps: tuple[Step, ...] = ()

    def because(self, text: str, proof: Proof, *steps: Step) -> Explanation:
        """Return the explanation of a job; ``steps``: instead of the reason's own."""
        return Explanation(self.tier, self.name, text, proof, steps or self.steps)


T = TypeVar("T")


def holding(
    rules: Iterable[Callable[[T], Iterable[Explanation]]], here: T, otherwise: Explanation
) -> list[Explanation]:
    """Return all reasons that hold, the first of them as the answer; there is always one."""
    answers = [answer for rule in rules for answer in rule(here)]
    return sorted(answers, key=lambda answer: answer.tier) or [otherwise]


def of_tier(tier: Tier) -> Callable[[str, Mover, str], Reason]:
    """Return what makes the reasons of a tier that one step changes."""

    def made(name: str, mover: Mover, words: str) -> Reason:
        return Reason(tier, name, (Step(mover, words),))

    return made


_new, _idle, _nowhere = map(of_tier, (Tier.NOT_CONSIDERED, Tier.NOT_WAITING, Tier.NOWHERE))
_policy, _there = of_tier(Tier.POLICY), of_tier(Tier.PILOTS_THERE)
_coming, _open = of_tier(Tier.ON_THEIR_WAY), of_tier(Tier.UNEXPLAINED)

NOT_CONSIDERED = _new("not_considered", Mover.WAIT, "The next negotiation")
NEGOTIATOR_SILENT = _new(
    "not_considered", Mover.POOL, "A negotiator that works: its log (NegotiatorLog)"
)

_RELEASED = RELEASE._replace(words="condor_release, as it was held on request")
HELD_ON_REQUEST = Reason(Tier.NOT_WAITING, "held", (_RELEASED,))
HELD = Reason(Tier.NOT_WAITING, "held", (Step(Mover.YOU, "Mend what the reason says"), RELEASE))
DEFERRED = Reason(Tier.NOT_WAITING, "deferred")
OTHER_UNIVERSE = _idle("other_universe", Mover.YOU, "condor_q -better-analyze may say")
NOT_OFFERED = Reason(Tier.NOT_WAITING, "not_offered", (HOLD, wait("some seconds"), RELEASE))
RUNNING = Reason(Tier.NOT_WAITING, "running")
REMOVED = Reason(Tier.NOT_WAITING, "removed")
COMPLETED = Reason(Tier.NOT_WAITING, "completed")

UNKNOWN_SITE = Reason(Tier.NOWHERE, "unknown_site")
TOO_LARGE = _nowhere("too_large", Mover.YOU, "Smaller requests")
TOO_SMALL = Reason(Tier.NOWHERE, "too_small")
REQUIREMENTS = _nowhere("requirements", Mover.YOU, "Other Requirements of the job (condor_qedit)")
NOT_AT_PILOTS = _nowhere(
    *("requirements", Mover.FRONTEND),
    "Pilots that offer what the job needs, or a job that does not need it",
)
CLAUSES_TOGETHER = Reason(Tier.NOWHERE, "clauses_together", REQUIREMENTS.steps)
START = _nowhere(
    "start", Mover.FRONTEND, "What START asks of the job, or START of the frontend's group"
)
TOO_LONG = Reason(Tier.NOWHERE, "too_long")
NO_SITE = _nowhere("no_site", Mover.YOU, "A site that exists")
EMPTY_POOL = _nowhere("no_site", Mover.POOL, "Pilots")
NOT_ANALYSED = _nowhere("not_analysed", Mover.YOU, "gwmond explain JOB, of one of these jobs")
NO_PILOT_KNOWN = _nowhere("no_pilot_known", Mover.FRONTEND, "A pilot that shows what runs there")

CONCURRENCY_LIMIT = _policy(
    "concurrency_limit", Mover.POOL, "Jobs with the same limit that end, or a higher limit"
)
LIMIT_TOO_SMALL = _policy(
    *("concurrency_limit", Mover.POOL),
    "A higher limit, or a job that needs less of it (ConcurrencyLimits)",
)
QUOTA = _policy("quota", Mover.POOL, "Jobs of the same group that end, or a larger quota")
NO_QUOTA = _policy(
    *("quota", Mover.POOL),
    "A quota for that group, or another accounting group (condor_qedit)",
)
CEILING = Reason(Tier.POLICY, "submitter_ceiling")
SUBMITTER_LIMIT = _policy(
    *("submitter_limit", Mover.WAIT),
    "Jobs of the same submitter that end, a better priority, or a larger quota",
)
SCHEDD_LEFT_OUT = _policy(
    *("schedd_left_out", Mover.ACCESS_POINT),
    "Less work for that schedd: fewer jobs that start and end, or another schedd",
)
SCHEDD_LIMIT = _policy(
    *("schedd_limit", Mover.ACCESS_POINT),
    "Jobs of that schedd that end, or a higher MAX_JOBS_RUNNING",
)

RETIRING = Reason(Tier.NO_PILOT, "retiring")
PILOTS_PENDING = _coming("pilots_pending", Mover.WAIT, "A pilot that starts")
PILOTS_BUSY = _there("pilots_busy", Mover.WAIT, "A job there that ends, or a new pilot")
TOO_SHORT_LIVED = Reason(Tier.PILOTS_THERE, "too_short_lived")
REFUSED_NOW = _there("refused_now", Mover.FRONTEND, "What the clause refers to")
COULD_START = _there("could_start", Mover.WAIT, "The next negotiation")
CLOSED = Reason(Tier.PILOTS_THERE, "retiring")
BEHIND_OTHERS = _there(
    "behind_others", Mover.WAIT, "Its turn: a better priority (condor_userprio, JobPrio)"
)
SLOTS_UNTAKEN = _there(
    "slots_untaken", Mover.POOL, "What the logs say of it (NegotiatorLog, MatchLog, ShadowLog)"
)
NOT_DEDICATED = _there(
    "slots_untaken", Mover.POOL, "Slots that are dedicated to it (DedicatedScheduler)"
)
NO_NEGOTIATOR = _there("no_negotiator", Mover.POOL, "A negotiator that runs")
UNEXPLAINED = _open("unexplained", Mover.POOL, "condor_q -better-analyze may show more")
NOT_READ = _open("unexplained", Mover.POOL, "gwmond check")


def unexplained(missing: Sequence[str], reason: Reason = NOT_READ) -> Explanation:
    """Return that no reason is known, and what could not be read."""
    if missing:
        text = f"Not known: {'; '.join(missing)} could not be read"
        return NOT_READ.because(text, Proof.NOT_KNOWN)
    return reason.because("No known reason holds", Proof.NOT_KNOWN)
