"""Why a job is not running: rules in the order of their tiers; the first that holds is the answer.

The order is that of proof: what the schedd itself says, then what no place could ever run, then
policy, then places that have no pilots, then those that have.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gwmond.explain import order, past, reasons
from gwmond.explain.evidence import Proof, could_run, of_rows, sure_if, told, weaker
from gwmond.explain.movers import limited, without_pilots
from gwmond.explain.nowhere import nowhere
from gwmond.explain.phrases import capital, duration, names_text, size_text
from gwmond.explain.reasons import Explanation, Mover, Reason, Step, edit, wait
from gwmond.explain.situation import CYCLE_S, Fate, Situation
from gwmond.model.demand.order import Limits
from gwmond.model.demand.waiting_job import UNKNOWN_JOB, Examined, JobPlace
from gwmond.model.facts import DemandGroup, EntryKey, Rejection
from gwmond.model.states import State
from gwmond.reports.render.formats import counted, number
from gwmond.reports.sites.sites import SiteRow

_RUNNING, _REMOVED, _COMPLETED, _HELD, _TRANSFERRING, _SUSPENDED = 2, 3, 4, 5, 6, 7
_PARALLEL = 11
_WITHOUT_PILOTS = {7: "scheduler", 9: "grid", 12: "local"}
_HELD_BY_USER = (1, 15)  # UserRequest, SubmittedOnHold
_LONG_CYCLE_S = 3600


def answers(situation: Situation) -> list[Explanation]:
    """Return all reasons that hold, the first of them as the answer; there is always one."""
    otherwise = reasons.unexplained(situation.missing, reasons.UNEXPLAINED)
    return reasons.holding(RULES, situation, otherwise)


def _status(here: Situation) -> Iterator[Explanation]:
    """What the queue says of it: it does not wait at all."""
    job, proof = here.job, told(here.job.status)
    if job.status == _HELD:
        reason = reasons.HELD_ON_REQUEST if job.hold_code in _HELD_BY_USER else reasons.HELD
        yield reason.because(f"It is held: {job.hold_reason or 'no reason is given'}", proof)
    elif job.status == _SUSPENDED and not job.has_host and job.vacated is not None:
        ago = duration(here.now - job.vacated)
        text = f"It says that it is suspended, but no slot has it: its run ended {ago} ago"
        yield reasons.NOT_OFFERED.because(text, proof)
    elif job.status in (_RUNNING, _TRANSFERRING, _SUSPENDED):
        doing = {_RUNNING: "running", _TRANSFERRING: "transferring its output"}
        text = f"It is {doing.get(job.status, 'suspended: its slot stays its own')}"
        steps = []
        if (before := past.streak(here)) is not None:
            mover = Mover.SITE if before.is_of_the_place else Mover.YOU
            steps = [Step(mover, "What ends its runs (gwmond trace)")]
            if before.outlasts:
                words = (
                    f"A longer {job.walltime_by or 'walltime'}: pilots that end sooner take it now"
                )
                steps = [Step(mover, words)]
        yield reasons.RUNNING.because(text, proof, *steps)
    elif job.status in (_REMOVED, _COMPLETED):
        reason = reasons.REMOVED if job.status == _REMOVED else reasons.COMPLETED
        why = f": {job.hold_reason}" if job.status == _REMOVED and job.hold_reason else ""
        yield reason.because(f"It was {reason.name}, and leaves the queue{why}", proof)
    elif not job.is_matched:
        yield _without_pilot(here)
    elif (vacated := job.vacated) is not None and _is_forgotten(here, vacated):
        text = (
            f"It was released while it still ran: its run ended {duration(here.now - vacated)} ago,"
        )
        text += " and its schedd has offered it in no negotiation since"
        yield reasons.NOT_OFFERED.because(text, Proof.ESTIMATED)
    elif job.deferred_until is not None and job.deferred_until > here.now:
        left = duration(job.deferred_until - here.now)
        text = f"It asked to run no earlier than in {left} (DeferralTime)"
        yield reasons.DEFERRED.because(text, proof, *_not_deferred(here))
    elif job.deferred_until is not None and any(
        _WINDOW.search(count.clause) for count in here.impassable
    ):
        ago = duration(here.now - job.deferred_until)
        text = f"It was to run {ago} ago (DeferralTime), and may begin no later than DeferralWindow"
        yield reasons.DEFERRED.because(f"{text} after that", proof, *_not_deferred(here))


def _without_pilot(here: Situation) -> Explanation:
    """Return that gwmond does not match jobs of its universe, or that its schedd starts none."""
    job, why = here.job, "which gwmond does not match"
    if name := _WITHOUT_PILOTS.get(job.universe, ""):
        why = f"the {name} universe, whose jobs do not run on pilots"
    text = f"It is of universe {job.universe}, {why}"
    if here.order is None or job.universe not in here.order.load.starts_none:
        return reasons.OTHER_UNIVERSE.because(text, told(name))
    setting = f"START_{name.upper()}_UNIVERSE"
    text += f". {job.schedd} starts none of these now: {setting} is false"
    step = Step(Mover.ACCESS_POINT, f"{setting} that is true there (condor_config_val)")
    return reasons.OTHER_UNIVERSE.because(text, told(name), step)


def _not_deferred(here: Situation) -> tuple[Step, ...]:
    """Return the steps after which a job may begin now, and for a day.

    Without a DeferralTime that its Requirements name a job matches nowhere, and a starter of
    HTCondor 23 holds it.
    """
    words = "DeferralTime now (condor_qedit), or wait"
    return (
        edit("DeferralWindow of a day", "DeferralWindow", "86400"),
        edit(words, "DeferralTime", str(int(here.now))),
    )


_WINDOW = re.compile("DeferralWindow", re.IGNORECASE)
_SHADOW_ENDS_S = 2
"""A job that is vacated, and not held, is idle since that second."""


def _is_forgotten(here: Situation, vacated: int) -> bool:
    """Return whether a schedd offers a job no more that was released before its run ended.

    HTCondor 23.9 and 25.14 do so: such a job is idle since before its shadow ended, and the
    negotiator has neither given nor refused it anything since, in a cycle that began later.
    """
    job, began = here.job, here.order and here.order.cycle_began
    looked = max(job.rejected or 0, job.matched or 0)
    return bool(
        job.since and began and max(job.since + _SHADOW_ENDS_S, looked) < vacated < began - CYCLE_S
    )


def _new(here: Situation) -> Iterator[Explanation]:
    """Nobody has looked at it yet."""
    job = here.job
    if not here.waits or job.since is None or (job.rejected or 0) >= job.since:
        return
    age = here.now - job.since
    order = here.order
    if order is not None and not order.negotiators and here.free:
        return  # nobody will
    began = order and order.cycle_began
    if began is not None and began > job.since:
        return
    if began is not None and order is not None and order.is_known_after(job.since):
        proof = sure_if(order.is_known_after(int(here.now)))
        text = f"It has waited for {duration(age)}, and the negotiator has not come to it yet: the "
        text += f"last negotiation began {duration(here.now - began)} ago"
        is_late = age > _LONG_CYCLE_S
        if is_late:
            yield reasons.NEGOTIATOR_SILENT.because(text, proof)
            return
        (step,) = reasons.NOT_CONSIDERED.steps
        period = max((n.period_s or 0 for n in order.negotiators), default=0)
        step = step._replace(until=began + period if period else None)
        yield reasons.NOT_CONSIDERED.because(text, proof, step)
    elif age < CYCLE_S:
        text = f"It has waited for {duration(age)} only: the negotiator may not have come to it yet"
        yield reasons.NOT_CONSIDERED.because(text, Proof.ESTIMATED)


_POLICIES: tuple[tuple[str, Reason, str], ...] = (
    ("concurrency limit", reasons.CONCURRENCY_LIMIT, "a concurrency limit is reached"),
    ("submitter limit", reasons.SUBMITTER_LIMIT, "its submitter has its share of the pool already"),
    ("quota", reasons.QUOTA, "the quota of its accounting group is used up"),
)
"""What the negotiator says, in lower case (HTCondor, matchmaker.cpp), and what that means."""


def policies(here: Situation) -> Iterator[Explanation]:
    """Yield what keeps a job that could run somewhere: limits, quotas and shares."""
    yield from _policy(here)
    yield from _schedd(here)


def limit_on(group: DemandGroup, rejection: Rejection, limits: Limits) -> Explanation | None:
    """Return what limits those jobs of a group of which the negotiator said that, if anything."""
    job = UNKNOWN_JOB._replace(
        schedd=group.schedd,
        accounting_group=group.accounting_group,
        size=group.size,
        rejection=rejection.text,
        rejected=rejection.at,
    )
    here = Situation(Examined(job, ()), {}, 0, order=limits.order(group.schedd))
    return next(policies(here), None)


def plain(rejection: Rejection) -> Rejection:
    """Return it without names: a limit may be named like a user."""
    parts = (part for part, *_ in _POLICIES if part in rejection.text.lower())
    return rejection._replace(text=next(parts, ""))


def _policy(here: Situation) -> Iterator[Explanation]:
    """The negotiator says that something else than matching keeps it."""
    job = here.job
    is_old = job.rejected is not None and job.since is not None and job.rejected < job.since
    reply = "" if is_old else job.rejection.lower()
    for part, reason, meaning in _POLICIES:
        if here.waits and part in reply:
            ago = "" if job.rejected is None else f" {duration(here.now - job.rejected)} ago"
            text = f"The negotiator said{ago}: {job.rejection}. That is: {meaning}"
            yield _never_met(here, reply, text) or reason.because(text, told(reply))
            return
    if here.waits and (full := order.full_group(job, here.order)):
        text = f"The group {full.name}"
        text += ", above the job's own," * full.above
        text += f" uses {number(full.used)} of its quota of {number(full.quota)}"
        yield (reasons.QUOTA if full.quota else reasons.NO_QUOTA).because(text, told(full))
    if here.waits and (full := order.full_ceiling(job, here.order)):
        text = f"Its submitter uses {number(full.used)} of a ceiling of {number(full.quota)}"
        enough = str(math.ceil(full.used + max(1, job.size.cores)))
        command = "condor_userprio", "-setceiling", job.submitter, enough
        words = "Jobs of the same submitter that end, or a higher ceiling (condor_userprio)"
        yield reasons.CEILING.because(text, told(full), Step(Mover.POOL, words, command))


def _never_met(here: Situation, reply: str, text: str) -> Explanation | None:
    """Return that a limit is too small for a job, however few others run: nobody uses it."""
    named = reply.partition("limit")[2]
    unused = [limit for limit in here.job.limits if limit.name in named and not limit.used]
    if not unused:
        return None
    needs = " and ".join(f"{limit.asked:.15g} of {limit.name}" for limit in unused)
    text = f"{text}. It can never be met: the job needs {needs}, and no claim that is seen has any"
    return reasons.LIMIT_TOO_SMALL.because(text, Proof.ESTIMATED)


def _schedd(here: Situation) -> Iterator[Explanation]:
    """Its schedd asks for no slots, or runs as many jobs as it may."""
    if not here.waits or here.order is None:
        return
    load, schedd = here.order.load, here.job.schedd
    if load.curbed:
        text = f"{schedd} is overloaded, and asks for no slots ({load.overload})"
        yield reasons.SCHEDD_LEFT_OUT.because(text, told(load.overload))
    if load.running is None or load.most_running is None:
        return
    if load.running >= load.most_running:
        text = f"{schedd} runs {counted(load.running, 'job')}, and no more than "
        text += f"{load.most_running} (MAX_JOBS_RUNNING)"
        yield reasons.SCHEDD_LIMIT.because(text, told(load.most_running is not None))


def _entries(here: Situation) -> Iterator[Explanation]:
    """The entries where it could run, by what keeps pilots from being there."""
    if not here.waits or here.free:
        return
    names = here.fitting_entries
    rows, running = here.fitting_rows, here.running
    pending = {key: row for key, row in rows.items() if row.pending_pilots and not row.barren}
    total, proof = counted(len(names), "entry"), here.sure(could_run(here.fitting))
    could = "might" if here.named or here.unseen else "could"
    if here.named:
        proof = Proof.NOT_KNOWN
    if pending and not running and not here.full:
        waiting = sum(row.pending_pilots or 0 for row in pending.values())
        text = (
            f"{counted(waiting, 'pilot')} wait in the queues of {len(pending)} of {total} where it "
            f"{could} run ({names_text(pending)}); none runs there yet{_unseen(here)}"
        )
        yield reasons.PILOTS_PENDING.because(text, proof)
        return
    if running or here.full or not rows:
        return
    grouped: dict[Explanation, list[EntryKey]] = {}
    for key, row in rows.items():
        grouped.setdefault(without_pilots(row), []).append(key)
    for move, keys in sorted(grouped.items(), key=lambda group: -len(group[1])):
        unknown = all(rows[key].state == State.UNKNOWN for key in keys)
        where = f"{len(keys)} of {total} where it {'might' if unknown else could} run"
        where += f" ({names_text(keys)})"
        whole = f"No pilot is at {where}: {move.text}{_unseen(here)}"
        yield move._replace(text=whole, proof=weaker(proof, move.proof))


def _unseen(here: Situation) -> str:
    """Return the clauses that no known pilot passes, where those that are not known may."""
    if here.named:
        return ". What its pilots are like is not known"
    if not here.unseen:
        return ""
    texts = " && ".join(here.job.clauses[i] for i in here.unseen)
    at = f" at {here.site}" if here.site else ""
    return f". Whether pilots there pass {texts} is not known, and no pilot that is seen{at} does"


def _pilots(here: Situation) -> Iterator[Explanation]:
    """Pilots run where it could run."""
    if not here.waits:
        return
    if here.fates[Fate.FREE]:
        yield _untaken(here)
        return
    if short := here.fates[Fate.SHORT_LIVED]:
        total = counted(here.fates.total(), "slot")
        walltime = here.job.walltime_s
        end = f"before the {duration(walltime)} that it asks for" if walltime else "too soon for it"
        text = f"{short} of {total} are free, and would take it if they did not end {end}"
        ending = [slot for slot in here.slots if here.fate(slot) is Fate.SHORT_LIVED]
        proof = here.sure(sure_if(not all(slot.matches for slot in ending)))
        words = f"A new pilot at {names_text(slot.entry for slot in ending)}"
        step = wait(f"{words}, or a smaller walltime" if walltime else words)
        yield reasons.TOO_SHORT_LIVED.because(text, proof, step)
        if not here.fates[Fate.BUSY] and not here.fates[Fate.SMALL]:
            return
    kinds = {place.entry for place in here.fitting}
    running = {key: row for key, row in here.running.items() if key in kinds}
    others = [slot for slot in here.full if slot.entry not in running]
    pilots = sum(row.registered_pilots or 0 for row in running.values())
    pilots += sum(slot.number for slot in others)
    if (closed := here.fates[Fate.CLOSED]) and not here.full:
        names = names_text(s.entry for s in here.slots if here.fate(s) is Fate.CLOSED)
        text = f"{counted(closed, 'slot')} of pilots at {names} would take it, but for jobs that "
        text += "come now these are closed: they retire, or are drained"
        step = wait(f"A new pilot at {names}")
        yield reasons.CLOSED.because(text, here.sure(told(closed)), step)
    elif pilots and (here.full or not (refusing := _refusing(here))):
        names = names_text({*running, *(slot.entry for slot in others)})
        text = f"It could run on {counted(pilots, 'pilot')} ({names}), but none has "
        text += _too_little(here)
        more = next(filter(None, map(limited, _rows(here, others, running))), None)
        (step,), rests = reasons.PILOTS_BUSY.steps, could_run(here.full or here.fitting)
        proof = here.sure(rests, *map(of_rows, running.values()))
        if more is not None:
            text += f". There could be more pilots: {more.text}"
            step = Step(more.mover, f"{step.words}. {more.change}")
            proof = weaker(proof, more.proof)
        step = step._replace(words=step.words + _opens_most(here))
        yield reasons.PILOTS_BUSY.because(text, proof, step)
    elif pilots:
        (clause, times), total = refusing.most_common(1)[0], counted(here.fates.total(), "slot")
        text = f"It could run on an empty pilot of {names_text(running)}, but {times} of {total} "
        text += f"there refuse it as they are now: {clause}"
        yield reasons.REFUSED_NOW.because(text, here.sure(told(refusing)))


def _opens_most(here: Situation) -> str:
    """Return the clause without which more kinds of pilots match than do now; empty: none."""
    openings = [opening for opening in here.openings if opening.clause]
    best = max(openings, key=lambda opening: opening.pilots, default=None)
    if best is None or best.pilots <= len(here.fitting):
        return ""
    units = here.units(best.entries)
    whole = "" if units is None else f" ({units} canonical units)"
    return f". {capital(best.change)} {best.pilots} more kinds of pilots match{whole}"


def _too_little(here: Situation) -> str:
    """Return what full slots have too little of; a pool may have resources of its own."""
    size = here.job.size
    for slot in here.full:
        if slot.takes_jobs and size.is_within(slot.size) and (texts := here.objections(slot)):
            return f"enough left: {texts[0]}"
    return f"{size_text(size)} free"


def _refusing(here: Situation) -> Counter[str]:
    """Return the clauses by which free slots of pilots refuse it that would match if empty."""
    counts: Counter[str] = Counter()
    for slot in here.slots:
        if slot.takes_jobs and slot.entry in here.running:
            for clause in dict.fromkeys(here.objections(slot)):
                counts[clause] += slot.number
    return counts


def _untaken(here: Situation) -> Explanation:
    """Return why slots that are free and match are not taken."""
    reply = here.job.rejection
    if here.is_planned:
        text = f"{here.fates[Fate.FREE]} of {counted(here.fates.total(), 'slot')} are free"
        return reasons.COULD_START.because(f"{text} and match now", Proof.ESTIMATED)
    free = f"{here.fates[Fate.FREE]} of {counted(here.fates.total(), 'slot')} are free and match"
    if here.job.universe == _PARALLEL:
        text = (
            f"{free}; a job of the parallel universe needs slots that are dedicated to its schedd"
        )
        text += ", and all its nodes at once: gwmond looks at neither"
        return reasons.NOT_DEDICATED.because(text, Proof.NOT_KNOWN)
    if here.job.submitter and here.order is not None and not here.order.negotiators:
        text = f"{free}, and no negotiator advertises to the pool's collector"
        return reasons.NO_NEGOTIATOR.because(text, here.sure(told(here.free)))
    last = f"; the negotiator's last word: {reply}" if reply else ""
    place = order.place(here.job, here.order, here.rivals)
    if place is not None and place.nobody:
        ahead = "nobody is ahead of it in the order"
        if place.users_ahead or place.own_ahead:
            ahead += f" that could take one ({place.ahead()})"
        text = f"{free}, {ahead}, and it was not given one{last}"
        return reasons.SLOTS_UNTAKEN.because(text, Proof.ESTIMATED)
    ahead = "others are before it in the order" if place is None else place.ahead()
    if place is not None and place.counts_all:
        ahead += ". These are all idle jobs, also such as could not run where it could"
    text = f"{free}, and it was not given one: {ahead}{last}"
    return reasons.BEHIND_OTHERS.because(text, Proof.ESTIMATED)


def _rows(
    here: Situation, full: Iterable[JobPlace], running: Mapping[EntryKey, SiteRow]
) -> Iterator[SiteRow]:
    """Yield the rows of entries where pilots run, also of such as came since the last poll."""
    yield from running.values()
    keys = dict.fromkeys(slot.entry for slot in full)
    yield from (here.entries[key] for key in keys if key in here.entries)


RULES: Sequence[Callable[[Situation], Iterable[Explanation]]] = (
    *(_status, _new, nowhere, policies, _entries, _pilots),
)
"""In no order of precedence: that is the tiers'."""
