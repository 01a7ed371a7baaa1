"""The reasons why a job is not running: of each its tier, and by which steps whose move changes it.

What people read and what programs do of a remedy is made of the same steps.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

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
        said: dict[str, Any] = {"mover": self.mover.value}
        if argv := self.argv(job):
            return said | {"argv": argv}
        if self.mover is Mover.WAIT:
            return said | {"wait_for": self.words, "until": self.until}
        return said | {"do": self.words}


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
    """What is the same whenever a reason holds."""

    tier: Tier
    name: str
    steps: tuple[Step, ...] = ()

    def because(self, text: str, proof: Proof, *steps: Step) -> Explanation:
        """Return it of a job; ``steps``: those instead that change it for this one."""
        return Explanation(self.tier, self.name, text, proof, steps or self.steps)


def _one(tier: Tier, name: str, mover: Mover, words: str) -> Reason:
    return Reason(tier, name, (Step(mover, words),))


NOT_CONSIDERED = _one(Tier.NOT_CONSIDERED, "not_considered", Mover.WAIT, "The next negotiation")
NEGOTIATOR_SILENT = _one(
    *(Tier.NOT_CONSIDERED, "not_considered", Mover.POOL),
    "A negotiator that works: its log (NegotiatorLog)",
)

HELD_ON_REQUEST = Reason(
    Tier.NOT_WAITING,
    "held",
    (RELEASE._replace(words="condor_release, as it was held on request"),),
)
HELD = Reason(Tier.NOT_WAITING, "held", (Step(Mover.YOU, "Mend what the reason says"), RELEASE))
DEFERRED = Reason(Tier.NOT_WAITING, "deferred")
OTHER_UNIVERSE = _one(
    Tier.NOT_WAITING, "other_universe", Mover.YOU, "condor_q -better-analyze may say"
)
NOT_OFFERED = Reason(Tier.NOT_WAITING, "not_offered", (HOLD, wait("some seconds"), RELEASE))
RUNNING = Reason(Tier.NOT_WAITING, "running")
REMOVED = Reason(Tier.NOT_WAITING, "removed")
COMPLETED = Reason(Tier.NOT_WAITING, "completed")

UNKNOWN_SITE = Reason(Tier.NOWHERE, "unknown_site")
TOO_LARGE = _one(Tier.NOWHERE, "too_large", Mover.YOU, "Smaller requests")
TOO_SMALL = Reason(Tier.NOWHERE, "too_small")
REQUIREMENTS = _one(
    *(Tier.NOWHERE, "requirements", Mover.YOU),
    "Other Requirements of the job (condor_qedit)",
)
NOT_AT_PILOTS = _one(
    *(Tier.NOWHERE, "requirements", Mover.FRONTEND),
    "Pilots that offer what the job needs, or a job that does not need it",
)
CLAUSES_TOGETHER = Reason(Tier.NOWHERE, "clauses_together", REQUIREMENTS.steps)
START = _one(
    *(Tier.NOWHERE, "start", Mover.FRONTEND),
    "What START asks of the job, or START of the frontend's group",
)
TOO_LONG = Reason(Tier.NOWHERE, "too_long")
NO_SITE = _one(Tier.NOWHERE, "no_site", Mover.YOU, "A site that exists")
EMPTY_POOL = _one(Tier.NOWHERE, "no_site", Mover.POOL, "Pilots")
NOT_ANALYSED = _one(
    *(Tier.NOWHERE, "not_analysed", Mover.YOU),
    "gwmond explain JOB, of one of these jobs",
)
NO_PILOT_KNOWN = _one(
    *(Tier.NOWHERE, "no_pilot_known", Mover.FRONTEND),
    "A pilot that shows what runs there",
)

CONCURRENCY_LIMIT = _one(
    *(Tier.POLICY, "concurrency_limit", Mover.POOL),
    "Jobs with the same limit that end, or a higher limit",
)
LIMIT_TOO_SMALL = _one(
    *(Tier.POLICY, "concurrency_limit", Mover.POOL),
    "A higher limit, or a job that needs less of it (ConcurrencyLimits)",
)
QUOTA = _one(Tier.POLICY, "quota", Mover.POOL, "Jobs of the same group that end, or a larger quota")
NO_QUOTA = _one(
    *(Tier.POLICY, "quota", Mover.POOL),
    "A quota for that group, or another accounting group (condor_qedit)",
)
CEILING = Reason(Tier.POLICY, "submitter_ceiling")
SUBMITTER_LIMIT = _one(
    *(Tier.POLICY, "submitter_limit", Mover.WAIT),
    "Jobs of the same submitter that end, a better priority, or a larger quota",
)
SCHEDD_LEFT_OUT = _one(
    *(Tier.POLICY, "schedd_left_out", Mover.ACCESS_POINT),
    "Less work for that schedd: fewer jobs that start and end, or another schedd",
)
SCHEDD_LIMIT = _one(
    *(Tier.POLICY, "schedd_limit", Mover.ACCESS_POINT),
    "Jobs of that schedd that end, or a higher MAX_JOBS_RUNNING",
)

RETIRING = Reason(Tier.NO_PILOT, "retiring")
PILOTS_PENDING = _one(Tier.ON_THEIR_WAY, "pilots_pending", Mover.WAIT, "A pilot that starts")
PILOTS_BUSY = _one(
    Tier.PILOTS_THERE, "pilots_busy", Mover.WAIT, "A job there that ends, or a new pilot"
)
TOO_SHORT_LIVED = Reason(Tier.PILOTS_THERE, "too_short_lived")
REFUSED_NOW = _one(Tier.PILOTS_THERE, "refused_now", Mover.FRONTEND, "What the clause refers to")
COULD_START = _one(Tier.PILOTS_THERE, "could_start", Mover.WAIT, "The next negotiation")
CLOSED = Reason(Tier.PILOTS_THERE, "retiring")
BEHIND_OTHERS = _one(
    *(Tier.PILOTS_THERE, "behind_others", Mover.WAIT),
    "Its turn: a better priority (condor_userprio, JobPrio)",
)
SLOTS_UNTAKEN = _one(
    *(Tier.PILOTS_THERE, "slots_untaken", Mover.POOL),
    "What the logs say of it (NegotiatorLog, MatchLog, ShadowLog)",
)
NOT_DEDICATED = _one(
    *(Tier.PILOTS_THERE, "slots_untaken", Mover.POOL),
    "Slots that are dedicated to it (DedicatedScheduler)",
)
NO_NEGOTIATOR = _one(Tier.PILOTS_THERE, "no_negotiator", Mover.POOL, "A negotiator that runs")
UNEXPLAINED = _one(
    *(Tier.UNEXPLAINED, "unexplained", Mover.POOL),
    "condor_q -better-analyze may show more",
)
NOT_READ = _one(Tier.UNEXPLAINED, "unexplained", Mover.POOL, "gwmond check")
