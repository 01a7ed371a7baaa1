"""Why an entry gets no more pilots, whose move it is, and what that is known by: in one place.

Most reasons of a bottleneck have one mover (``MOVERS``).  Of pilots that do not register the mover
follows from where else that is so: an entry alone is its site's, what all entries of one group have
in common is its frontend's, and what all entries have in common the factory's.  Of held pilots it
follows from the text of the most frequent HoldReason, else from its code.
"""

from __future__ import annotations

import re

from gwmond.explain.evidence import Proof, of_rows
from gwmond.explain.reasons import Explanation, Mover, Step, Tier
from gwmond.model.states import State
from gwmond.reports.failures.common_failures import CommonFailure
from gwmond.reports.render.formats import counted, words
from gwmond.reports.render.meanings import reason_meaning
from gwmond.reports.sites.sites import SiteRow, hold_text
from gwmond.sites.reasons import NO_MATCH

MOVERS: dict[str, tuple[Mover, str]] = {
    "no_factory": (Mover.POOL, "A factory that serves this pool"),
    "frontend_limit": (Mover.FRONTEND, "A higher limit in the frontend's configuration"),
    "frontend_curb": (Mover.FRONTEND, "A higher curb in the frontend's configuration"),
    "factory_limit": (Mover.FACTORY, "A higher limit of the entry"),
    "information_too_old": (Mover.FACTORY, "Factory and frontend that hear from each other again"),
    "few_requested": (Mover.FRONTEND, "More pilots requested at a time"),
    "ramp_up": (Mover.WAIT, "Pilots that are on their way"),
    "not_acknowledged": (Mover.WAIT, "The site's queue reports them"),
    "not_submitted": (Mover.FACTORY, "A factory that submits what is requested"),
    "schedd_left_out": (Mover.ACCESS_POINT, "Less load of these schedds, or higher limits there"),
    "no_match_in_frontend": (Mover.FRONTEND, "The frontend's match expression"),
    "retiring_counted_as_available": (Mover.FRONTEND, "Retiring pilots that end"),
    "idle_slots_counted": (Mover.FRONTEND, "Idle slots that end, or that fit"),
    "nothing_requested": (Mover.FRONTEND, "A frontend that requests pilots there"),
    "unexplained": (Mover.FRONTEND, "Pilots there"),
}
"""Who can change a reason of a bottleneck (see ``sites.reasons``), and what would."""

_UNREGISTERED: dict[str, tuple[Mover, str, str, Proof]] = {
    "here": (
        Mover.SITE,
        "pilots of the same group register elsewhere",
        "What the pilots' validation finds there: their output, gwmond report --failures",
        Proof.ESTIMATED,
    ),
    "group": (
        Mover.FRONTEND,
        "nowhere do pilots of the same group register, and those of others do",
        "The frontend's scripts and credentials: pilots' output, gwmond report --failures",
        Proof.ESTIMATED,
    ),
    "everywhere": (
        Mover.FACTORY,
        "nowhere do pilots register, so it is no site's",
        "The factory's or the frontend's scripts and credentials: pilots' output, "
        "gwmond report --failures",
        Proof.ESTIMATED,
    ),
    "not_known": (
        Mover.SITE,
        "whether that is the site's or the factory's is not known",
        "What the pilots' output says: gwmond report --failures",
        Proof.NOT_KNOWN,
    ),
}

_SEES = "A frontend that sees the jobs: CONDOR_Q_ONLY_MY_JOBS = False there, and its schedds"

_HOLDS: tuple[tuple[re.Pattern[str], Mover, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), mover, change)
    for pattern, mover, change in (
        (
            r"\bdenied\b|not authorized|unauthorized|\(server\) side|permission",
            *(Mover.SITE, "A CE that accepts the factory's pilots"),
        ),
        (
            r"credential|proxy|token|authenticat|certificate|user ?log",
            *(Mover.FACTORY, "Credentials of the pilots that are valid"),
        ),
        (
            r"\brout(e|er)s?\b|job_router|periodic_hold|\bCE\b|queue|\baccount|lrms|batch|sbatch|qsub"
            r"|connecting to|failed to connect|no longer exists|unreachable|remote status",
            *(Mover.SITE, "A CE whose routes, limits and queues take pilots"),
        ),
    )
)
"""What a hold reason says, the first that is found: texts of HTCondor's grid manager, of CEs, and
of factories' queues that their operators made public."""

_HOLD_CODES: dict[int, tuple[Mover, str]] = {
    1: (Mover.FACTORY, "condor_release, or condor_rm: they are held on request"),
    4: (Mover.FACTORY, "Credentials of the pilots that are valid"),
    **dict.fromkeys((6, 7, 8, 14, 22), (Mover.FACTORY, "The factory's files and directories")),
    **dict.fromkeys((26, 27), (Mover.SITE, "The CE's policy (SYSTEM_PERIODIC_HOLD)")),
}
"""By HoldReasonCode (condor_holdcodes.h).  A schedd's policy (26) is the CE's, whose hold the grid
manager copies: GlideinWMS gives its factory's schedd none."""


def _move(name: str, text: str, mover: Mover, change: str, proof: Proof) -> Explanation:
    """Return why an entry gets no more pilots; ``proof``: of the mover."""
    return Explanation(Tier.NO_PILOT, name, text, proof, (Step(mover, change),))


def without_pilots(row: SiteRow) -> Explanation:
    """Return why an entry has no pilots."""
    limits, meaning = f" ({row.limits})" if row.limits else "", reason_meaning(row.reason)
    proof = of_rows(row)
    if row.state == State.DOWN:
        return _move(
            "down", "the entry is in downtime", Mover.SITE, "The end of the downtime", proof
        )
    if (limit := limited(row)) is not None:
        return limit
    if row.state == State.UNKNOWN:
        change = "What is not known: gwmond check"
        return _move(row.reason, meaning or row.reason, Mover.POOL, change, Proof.NOT_KNOWN)
    if row.state == State.INSUFFICIENT_DEMAND:
        text = "other entries' pilots are expected to take the job"
        change, proof = "Pilots at these entries", Proof.ESTIMATED
        return _move("assigned_elsewhere", text, Mover.WAIT, change, proof)
    text = f"the entry is {words(row.state)}{limits}"
    return _move("no_pilots", text, Mover.FRONTEND, "Pilots there", proof)


def limited(row: SiteRow) -> Explanation | None:
    """Return why an entry gets no more pilots that take jobs; None where that is no bottleneck."""
    if row.barren and (row.unregistered_pilots or 0) > (row.registered_pilots or 0):
        return _unregistered(row)
    is_bottleneck = row.state == State.PROVISIONING_BOTTLENECK
    if row.barren or (is_bottleneck and row.reason == "held_pilots"):
        return _held(row)
    if not is_bottleneck or row.reason not in MOVERS:
        return None
    limits = f" ({row.limits})" if row.limits else ""
    mover, change = MOVERS[row.reason]
    if row.reason == NO_MATCH and row.limits:
        return _move(row.reason, row.limits, mover, _SEES, Proof.ESTIMATED)
    proof = Proof.NOT_KNOWN if row.reason == "unexplained" else of_rows(row)
    return _move(row.reason, reason_meaning(row.reason) + limits, mover, change, proof)


def of_common(failure: CommonFailure) -> Mover:
    """Return whose move a failed validation is that is no site's."""
    return Mover.FRONTEND if failure.group else Mover.FACTORY


def failed_validation(row: SiteRow | None) -> tuple[Mover, str, Proof]:
    """Return whose move it is that a validation failed, what to do, and what that rests on."""
    mover, _, change, proof = _UNREGISTERED["not_known" if row is None else row.failing_reach]
    return mover, change, proof


def _unregistered(row: SiteRow) -> Explanation:
    mover, why, change, proof = _UNREGISTERED[row.failing_reach]
    pilots = counted(row.unregistered_pilots or 0, "pilot")
    text = f"by the factory's count {pilots} ran there, and did not register with the pool; {why}"
    if row.failing_test:
        text += f". Their validation fails: {row.failing_test}"
    return _move("run_but_do_not_register", text, mover, change, proof)


UNKNOWN_HOLD = Mover.FACTORY, "What condor_q -hold says at the factory"


def of_hold(reason: str, code: int | None) -> tuple[Mover, str] | None:
    """Return whose move a hold reason is, and what would change it; None: nothing says that."""
    by_text = (hold[1:] for hold in _HOLDS if hold[0].search(reason))
    return next(by_text, _HOLD_CODES.get(code or 0))


def _held(row: SiteRow) -> Explanation:
    """Return why pilots are held; where the factory's queue is not asked, that is not known."""
    text = reason_meaning("held_pilots")
    text += f" ({row.limits})" if row.limits else ""
    (mover, change), proof = UNKNOWN_HOLD, Proof.NOT_KNOWN
    if row.hold_share is not None:
        text += f". The most frequent reason: {hold_text(row)}"
        if move := of_hold(row.hold_reason, row.hold_code):
            (mover, change), proof = move, Proof.ESTIMATED
    return _move("held_pilots", text, mover, change, proof)
