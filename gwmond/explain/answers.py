"""Why a job is not running: rules in the order of their tiers; the first that holds is the answer.

The order is that of proof: what the schedd itself says, then what no place could ever run, then
policy, then places that have no pilots, then those that have.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gwmond.explain import clauses, earlier, order, reasons
from gwmond.explain.movers import Move, limited, without_pilots
from gwmond.explain.reasons import Explanation, Mover, Proof, Reason, Step, Tier, edit, weaker
from gwmond.explain.situation import CYCLE_S, TIMED, Fate, Situation
from gwmond.model.facts import DemandGroup, EntryKey, Rejection, Size
from gwmond.model.order import Limits
from gwmond.model.states import State
from gwmond.model.times import SECOND_US
from gwmond.model.waiting_job import UNKNOWN_JOB, Examined, JobPlace
from gwmond.reports.periods import span
from gwmond.reports.render.formats import counted, number
from gwmond.reports.sites import SiteRow

_RUNNING, _REMOVED, _COMPLETED, _HELD, _TRANSFERRING, _SUSPENDED = 2, 3, 4, 5, 6, 7
_PARALLEL = 11
_WITHOUT_PILOTS = {7: "scheduler", 9: "grid", 12: "local"}
_HELD_BY_USER = (1, 15)  # UserRequest, SubmittedOnHold
_FEW = 3
_LONG_CYCLE_S = 3600


def answers(situation: Situation) -> list[Explanation]:
    """Return all reasons that hold, the first of them as the answer; there is always one."""
    found = [answer for rule in RULES for answer in rule(situation)]
    found.sort(key=lambda answer: answer.tier)
    return found or [_unexplained(situation)]


def _status(here: Situation) -> Iterator[Explanation]:
    """What the queue says of it: it does not wait at all."""
    job = here.job
    if job.status == _HELD:
        reason = reasons.HELD_ON_REQUEST if job.hold_code in _HELD_BY_USER else reasons.HELD
        yield reason.because(f"It is held: {job.hold_reason or 'no reason is given'}")
    elif job.status == _SUSPENDED and not job.has_host and job.vacated is not None:
        ago = duration(here.now - job.vacated)
        text = f"It says that it is suspended, but no slot has it: its run ended {ago} ago"
        yield reasons.NOT_OFFERED.because(text)
    elif job.status in (_RUNNING, _TRANSFERRING, _SUSPENDED):
        doing = {_RUNNING: "running", _TRANSFERRING: "transferring its output"}
        text = f"It is {doing.get(job.status, 'suspended: its slot stays its own')}"
        steps = []
        if (before := earlier.streak(here)) is not None:
            mover = Mover.SITE if before.is_of_the_place else Mover.YOU
            steps = [Step(mover, "What ends its runs (gwmond trace)")]
        yield reasons.RUNNING.because(text, Proof.PROVEN, *steps)
    elif job.status in (_REMOVED, _COMPLETED):
        reason = reasons.REMOVED if job.status == _REMOVED else reasons.COMPLETED
        why = f": {job.hold_reason}" if job.status == _REMOVED and job.hold_reason else ""
        yield reason.because(f"It was {reason.name}, and leaves the queue{why}")
    elif not job.is_matched:
        why, proof = "which gwmond does not match", Proof.NOT_KNOWN
        if name := _WITHOUT_PILOTS.get(job.universe):
            why, proof = f"the {name} universe, whose jobs do not run on pilots", Proof.PROVEN
        yield reasons.OTHER_UNIVERSE.because(f"It is of universe {job.universe}, {why}", proof)
    elif (vacated := job.vacated) is not None and _is_forgotten(here, vacated):
        text = (
            f"It was released while it still ran: its run ended {duration(here.now - vacated)} ago,"
        )
        text += " and its schedd has offered it in no negotiation since"
        yield reasons.NOT_OFFERED.because(text, Proof.ESTIMATED)
    elif job.deferred_until is not None and job.deferred_until > here.now:
        left = duration(job.deferred_until - here.now)
        text = f"It asked to run no earlier than in {left} (DeferralTime)"
        yield reasons.DEFERRED.because(text, Proof.PROVEN, _DEFERRED_TO_NOW)
    elif job.deferred_until is not None and any(
        _WINDOW.search(one.clause) for one in here.impassable
    ):
        ago = duration(here.now - job.deferred_until)
        text = f"It was to run {ago} ago (DeferralTime), and may begin no later than DeferralWindow"
        yield reasons.DEFERRED.because(f"{text} after that", Proof.PROVEN, _DEFERRED_TO_NOW)


_DEFERRED_TO_NOW = edit("condor_qedit DeferralTime, or wait", "DeferralTime", "undefined")
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
    known = here.order
    if known is not None and not known.negotiators and here.free:
        return  # nobody will
    began = known and known.cycle_began
    if began is not None and began > job.since:
        return
    if began is not None and known is not None and known.is_known_after(job.since):
        proof = Proof.PROVEN if known.is_known_after(int(here.now)) else Proof.ESTIMATED
        text = f"It has waited for {duration(age)}, and the negotiator has not come to it yet: the "
        text += f"last negotiation began {duration(here.now - began)} ago"
        is_late = age > _LONG_CYCLE_S
        reason = reasons.NEGOTIATOR_SILENT if is_late else reasons.NOT_CONSIDERED
        yield reason.because(text, proof)
    elif age < CYCLE_S:
        text = f"It has waited for {duration(age)} only: the negotiator may not have come to it yet"
        yield reasons.NOT_CONSIDERED.because(text, Proof.ESTIMATED)


def _nowhere(here: Situation) -> Iterator[Explanation]:
    """No slot and no entry could run it, however many pilots there were."""
    if not here.waits or here.fitting or here.free or here.full:
        return
    if here.leaving:
        pilots = counted(sum(slot.number for slot in here.leaving), "pilot")
        names = names_text(slot.entry for slot in here.leaving)
        text = f"It could run on {pilots} ({names}), but for jobs that come now these are closed: "
        text += "they retire, or are drained"
        yield reasons.RETIRING.because(text, Proof.ESTIMATED)
    elif here.untried:
        text = f"{_kinds(here.untried)} are known, and none matches it; which clauses exclude them"
        text += " was not tried, as other groups of jobs are larger"
        yield reasons.NOT_ANALYSED.because(text, here.proof())
    elif here.pilots:
        yield _impossible(here)
    elif here.entries or here.slots:
        text = "No entry is known by a pilot, or by an ad of its factory"
        yield reasons.NO_PILOT_KNOWN.because(text, Proof.NOT_KNOWN)
    elif here.site:
        text = ". ".join(
            (f"There is no site {here.site}", *clauses.misspelt(f'"{here.site}"', (), here.sites))
        )
        yield reasons.NO_SITE.because(text, here.proof())
    else:
        text = "The pool has neither pilots nor entries"
        yield reasons.EMPTY_POOL.because(text, here.proof())


def _impossible(here: Situation) -> Explanation:
    """Name what excludes all pilots: the first that does, from what is plainest to say."""
    return next(
        answer
        for explain in (
            _too_long,
            _quoted,
            _misspelt,
            _too_large,
            _one_clause,
            _start,
            _two_clauses,
        )
        if (answer := explain(here)) is not None
    )


def _quoted(here: Situation) -> Explanation | None:
    if not here.job.quoted or not here.impassable:
        return None
    worst = max(here.impassable, key=lambda one: one.alone)
    names = " and ".join(f'{name} is "{word}"' for name, word in here.job.quoted)
    text = f"{_none(here)} pass {worst.clause}: it compares a number with a string, {names}"
    steps = [
        edit(f"{name} = {word}, without quotes (condor_qedit)", name, word)
        for name, word in here.job.quoted
    ]
    return reasons.REQUIREMENTS.because(text, here.proof(), *steps)


def _misspelt(here: Situation) -> Explanation | None:
    for one in here.impassable:
        if spelt := clauses.misspelt(one.clause, here.job.words, here.sites):
            return _unknown_site(here, f"{_none(here)} pass {one.clause}: {'; '.join(spelt)}")
    for clause, kinds in clauses.refusals(here.pilots).most_common():
        if spelt := clauses.misspelt_for_start(clause, here.job.words, here.sites):
            text = f"START of {_kinds(kinds)} refuses it by {clause}: {'; '.join(spelt)}"
            return _unknown_site(here, text)
    return None


def _unknown_site(here: Situation, text: str) -> Explanation:
    step = Step(Mover.YOU, "The right name of the site (condor_qedit)")
    return reasons.UNKNOWN_SITE.because(text, here.proof(), step)


def _too_large(here: Situation) -> Explanation | None:
    size, clauses_left = here.job.size, here.impassable
    openings = [one for one in here.openings if one.request in clauses.REQUESTS]
    if not all(clauses.REQUEST.search(one.clause) for one in clauses_left):
        return None
    if openings:
        best = max(openings, key=lambda opening: opening.pilots)
        met = "" if here.impassable else " that meets all else"
        text = f"{best.request} is {best.wanted:g}, and no pilot{met} has that much"
        words = "; ".join(
            f"{one.change} opens {_kinds(one.pilots)} ({names_text(one.entries)})"
            for one in openings
        )
        return reasons.TOO_LARGE.because(
            text, here.proof(), edit(words, best.request, f"{best.most:g}")
        )
    if clauses_left and not any(size.is_within(place.whole) for place in here.pilots):
        largest = max(here.pilots, key=lambda place: (place.whole, place.entry))
        text = f"It asks for {size_text(size)}; the largest pilot, of {largest.entry.entry}, has "
        text += size_text(largest.whole)
        return reasons.TOO_LARGE.because(text, here.proof())
    return None


def _one_clause(here: Situation) -> Explanation | None:
    if not here.impassable:
        return None
    worst = max(here.impassable, key=lambda one: one.alone)
    others = counted(len(here.impassable) - 1, "other clause")
    more = f". The same is true of {others}" if len(here.impassable) > 1 else ""
    alone = f". {counted(worst.alone, 'kind')} {_pass(worst.alone)} all else" if worst.alone else ""
    text = f"{_none(here)} pass {worst.clause}{alone}{more}"
    request = clauses.REQUEST.search(worst.clause)
    change = f"A smaller {request[0]}" if request else "Other Requirements of the job"
    change += " (condor_qedit)"
    if TIMED.search(worst.clause):
        text, change = f"{text}. It is about time", f"Time, if it comes true later. {change}"
    return reasons.REQUIREMENTS.because(text, here.proof(), Step(Mover.YOU, change))


def _start(here: Situation) -> Explanation | None:
    refused = clauses.refusals(here.pilots)
    if not refused:
        return None
    # What refuses it where least else does: other entries' pilots refuse what is not for them, too.
    unblocked = [place for place in here.pilots if not place.blocked and place.refusals]
    least = min(len(place.refusals) for place in unblocked)
    near = clauses.refusals(place for place in unblocked if len(place.refusals) == least)
    clause = max(near.items(), key=lambda item: (item[1], item[0]))[0]
    number = refused[clause]
    met = sum(not place.blocked for place in here.pilots)
    text = f"START of {number} of {_kinds(met)} that meet its Requirements refuses it: {clause}"
    for name in here.job.lacks:
        if scope := re.search(rf"\b(target\.)?{re.escape(name)}\b", clause, re.IGNORECASE):
            text += f". {'The job has no' if scope[1] else 'Neither job nor pilot has'} {name}"
    for name, value in here.job.words:
        if said := re.search(rf"\btarget\.({re.escape(name)})\b", clause, re.IGNORECASE):
            text += f'. The {said[1]} of the job is "{value}"'
    if request := clauses.REQUEST.search(clause):
        step = Step(Mover.YOU, f"A smaller {request[0]} (condor_qedit)")
        return reasons.TOO_LARGE.because(text, here.proof(), step)
    return reasons.START.because(text, here.proof())


def _too_long(here: Situation) -> Explanation | None:
    found = [place for place in here.pilots if place.matches]
    if not found:
        return None
    wanted = duration(here.job.walltime_s or 0)
    longest = duration(max(place.remaining_s or 0 for place in found))
    text = f"It says that it runs for {wanted}, and no pilot that it matches lives for longer than "
    text, proof = text + longest, here.proof()
    asked = here.job.walltime_by.lower()
    if proof is Proof.PROVEN and not all(asked in place.asks for place in found):
        text += ". START does not ask for that, so it may start, and be ended with its pilot"
        proof = Proof.ESTIMATED
    step = Step(Mover.YOU, f"A walltime of at most {longest}")
    return reasons.TOO_LONG.because(text, proof, step)


def _two_clauses(here: Situation) -> Explanation:
    texts = here.job.clauses
    pair = clauses.smallest_pair(here.pilots)
    if pair is not None:
        first, second, opened = pair
        both = sum({first, second}.isdisjoint(place.blocked) for place in here.pilots)
        text = f"{_none(here, both)} pass both {texts[first]} and {texts[second]}"
        change = f"Without these two {_kinds(opened)} fit"
        return reasons.CLAUSES_TOGETHER.because(text, here.proof(), Step(Mover.YOU, change))
    worst = min(clauses.counts(texts, here.pilots), key=lambda one: one.passed)
    text = f"{_none(here)} pass all clauses; the fewest ({worst.passed}) pass {worst.clause}"
    return reasons.REQUIREMENTS.because(text, here.proof())


def _none(here: Situation, number: int = 0) -> str:
    return f"{number} of {_kinds(len(here.pilots))}{f' at {here.site}' if here.site else ''}"


def _pass(number: int) -> str:
    return "passes" if number == 1 else "pass"


def _kinds(number: int) -> str:
    return f"{counted(number, 'kind')} of pilots"


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


def limit_on(group: DemandGroup, said: Rejection, limits: Limits) -> Explanation | None:
    """Return what limits those jobs of a group of which the negotiator said that, if anything."""
    job = UNKNOWN_JOB._replace(
        schedd=group.schedd,
        accounting_group=group.accounting_group,
        size=group.size,
        rejection=said.text,
        rejected=said.at,
    )
    here = Situation(Examined(job, ()), {}, 0, order=limits.order(group.schedd))
    return next(policies(here), None)


def plain(said: Rejection) -> Rejection:
    """Return it without names: a limit may be named like a user."""
    parts = (part for part, *_ in _POLICIES if part in said.text.lower())
    return said._replace(text=next(parts, ""))


def _policy(here: Situation) -> Iterator[Explanation]:
    """The negotiator says that something else than matching keeps it."""
    job = here.job
    is_old = job.rejected is not None and job.since is not None and job.rejected < job.since
    said = "" if is_old else job.rejection.lower()
    for part, reason, meaning in _POLICIES:
        if here.waits and part in said:
            ago = "" if job.rejected is None else f" {duration(here.now - job.rejected)} ago"
            text = f"The negotiator said{ago}: {job.rejection}. That is: {meaning}"
            yield reason.because(text)
            return
    if here.waits and (full := order.full_group(job, here.order)):
        text = f"The group {full.name}"
        text += ", above the job's own," * full.above
        text += f" uses {number(full.used)} of its quota of {number(full.quota)}"
        yield (reasons.QUOTA if full.quota else reasons.NO_QUOTA).because(text)
    if here.waits and (full := order.full_ceiling(job, here.order)):
        text = f"Its submitter uses {number(full.used)} of a ceiling of {number(full.quota)}"
        enough = str(math.ceil(full.used + max(1, job.size.cores)))
        command = "condor_userprio", "-setceiling", job.submitter, enough
        words = "Jobs of the same submitter that end, or a higher ceiling (condor_userprio)"
        yield reasons.CEILING.because(text, Proof.PROVEN, Step(Mover.POOL, words, command))


def _schedd(here: Situation) -> Iterator[Explanation]:
    """Its schedd asks for no slots, or runs as many jobs as it may."""
    if not here.waits or here.order is None:
        return
    load, schedd = here.order.load, here.job.schedd
    if load.curbed:
        text = f"{schedd} is overloaded, and asks for no slots ({load.overload})"
        yield reasons.SCHEDD_LEFT_OUT.because(text)
    if load.running is None or load.most_running is None:
        return
    if load.running >= load.most_running:
        text = f"{schedd} runs {counted(load.running, 'job')}, and no more than "
        text += f"{load.most_running} (MAX_JOBS_RUNNING)"
        yield reasons.SCHEDD_LIMIT.because(text)


def _entries(here: Situation) -> Iterator[Explanation]:
    """The entries where it could run, by what keeps pilots from being there."""
    if not here.waits or here.free:
        return
    names = here.fitting_entries
    known, running = here.fitting_rows, here.running
    pending = {key: row for key, row in known.items() if row.pending_pilots and not row.barren}
    total, proof = counted(len(names), "entry"), here.proof(here.fitting)
    if pending and not running and not here.full:
        waiting = sum(row.pending_pilots or 0 for row in pending.values())
        text = (
            f"{counted(waiting, 'pilot')} wait in the queues of {len(pending)} of {total} where it "
            f"could run ({names_text(pending)}); none runs there yet{_unseen(here)}"
        )
        yield reasons.PILOTS_PENDING.because(text, proof)
        return
    if running or here.full or not known:
        return
    grouped: dict[Move, list[EntryKey]] = {}
    for key, row in known.items():
        grouped.setdefault(without_pilots(row), []).append(key)
    for move, keys in sorted(grouped.items(), key=lambda group: -len(group[1])):
        unknown = all(known[key].state == State.UNKNOWN for key in keys)
        might = "might" if unknown else "could"
        where = f"{len(keys)} of {total} where it {might} run ({names_text(keys)})"
        whole = f"No pilot is at {where}: {move.text}{_unseen(here)}"
        said = weaker(proof, move.proof)
        step = Step(move.mover, move.change)
        yield Reason(Tier.NO_PILOT, move.name).because(whole, said, step)


def _unseen(here: Situation) -> str:
    """Return the clauses that no known pilot passes, where those that are not known may."""
    seen = [set(place.blocked) for place in here.places if place.evidence == "measured"]
    untold = [set(place.untold) for place in here.fitting]
    found = sorted(set.intersection(*seen, *untold)) if seen and untold else []
    if not found:
        return ""
    texts = " && ".join(here.job.clauses[i] for i in found)
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
        wanted = here.job.walltime_s
        end = f"before the {duration(wanted)} that it asks for" if wanted else "too soon for it"
        text = f"{short} of {total} are free, and would take it if they did not end {end}"
        ending = [slot for slot in here.slots if here.fate(slot) is Fate.SHORT_LIVED]
        proof = Proof.ESTIMATED if all(slot.matches for slot in ending) else Proof.PROVEN
        yield reasons.TOO_SHORT_LIVED.because(text, proof)
        if not here.fates[Fate.BUSY] and not here.fates[Fate.SMALL]:
            return
    kinds = {place.entry for place in here.fitting}
    running = {key: row for key, row in here.running.items() if key in kinds}
    others = [slot for slot in here.full if slot.entry not in running]
    pilots = sum(row.registered_pilots or 0 for row in running.values())
    pilots += sum(slot.number for slot in others)
    if pilots and (here.full or not (refusing := _refusing(here))):
        names = names_text({*running, *(slot.entry for slot in others)})
        text = f"It could run on {counted(pilots, 'pilot')} ({names}), but none has "
        text += _too_little(here)
        more = next(filter(None, map(limited, _rows(here, others, running))), None)
        (step,), proof = reasons.PILOTS_BUSY.steps, here.proof()
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
        yield reasons.REFUSED_NOW.because(text)


def _opens_most(here: Situation) -> str:
    """Return the clause without which more kinds of pilots match than do now; empty: none."""
    found = [one for one in here.openings if one.clause]
    best = max(found, key=lambda one: one.pilots, default=None)
    if best is None or best.pilots <= len(here.fitting):
        return ""
    units = here.units(best.entries)
    whole = "" if units is None else f" ({units} canonical units)"
    return f". {capital(best.change)} {best.pilots} more kinds of pilots match{whole}"


def capital(text: str) -> str:
    """Return a text with a capital letter at its begin; names in it stay as they are."""
    return text[:1].upper() + text[1:]


def _too_little(here: Situation) -> str:
    """Return what full slots have too little of; a pool may have resources of its own."""
    size = here.job.size
    for slot in here.full:
        if slot.takes_jobs and size.is_within(slot.size) and (texts := here.objections(slot)):
            return f"enough left: {texts[0]}"
    return f"{size_text(size)} free"


def _refusing(here: Situation) -> Counter[str]:
    """Return the clauses by which free slots of pilots refuse it that would match if empty."""
    found: Counter[str] = Counter()
    for slot in here.slots:
        if slot.takes_jobs and slot.entry in here.running:
            for clause in dict.fromkeys(here.objections(slot)):
                found[clause] += slot.number
    return found


def _untaken(here: Situation) -> Explanation:
    """Return why slots that are free and match are not taken."""
    said = here.job.rejection
    free = f"{here.fates[Fate.FREE]} of {counted(here.fates.total(), 'slot')} are free and match"
    if here.job.universe == _PARALLEL:
        text = (
            f"{free}; a job of the parallel universe needs slots that are dedicated to its schedd"
        )
        text += ", and all its nodes at once: gwmond looks at neither"
        return reasons.NOT_DEDICATED.because(text, Proof.NOT_KNOWN)
    if here.order is not None and not here.order.negotiators:
        text = f"{free}, and no negotiator advertises to the pool's collector"
        return reasons.NO_NEGOTIATOR.because(text)
    last = f"; the negotiator's last word: {said}" if said else ""
    place = order.place(here.job, here.order, here.rivals)
    if place is not None and place.nobody:
        who = "nobody is ahead of it in the order"
        if place.users_ahead or place.own_ahead:
            who += f" that could take one ({place.ahead()})"
        text = f"{free}, {who}, and it was not given one{last}"
        return reasons.SLOTS_UNTAKEN.because(text, Proof.ESTIMATED)
    who = "others are before it in the order" if place is None else place.ahead()
    if place is not None and place.counts_all:
        who += ". These are all idle jobs, also such as could not run where it could"
    text = f"{free}, and it was not given one: {who}{last}"
    return reasons.BEHIND_OTHERS.because(text, Proof.ESTIMATED)


def _rows(
    here: Situation, full: Iterable[JobPlace], running: Mapping[EntryKey, SiteRow]
) -> Iterator[SiteRow]:
    """Yield the rows of entries where pilots run, also of such as came since the last poll."""
    yield from running.values()
    keys = dict.fromkeys(slot.entry for slot in full)
    yield from (here.entries[key] for key in keys if key in here.entries)


def size_text(size: Size) -> str:
    """Return a size in words."""
    gpus = f", {counted(int(size.gpus), 'GPU')}" if size.gpus else ""
    return f"{counted(int(size.cores), 'core')} and {size.memory_mib:g} MiB{gpus}"


def _unexplained(here: Situation) -> Explanation:
    missing = "; ".join(here.missing)
    if missing:
        text = f"Not known: {missing} could not be read"
        return reasons.NOT_READ.because(text, Proof.NOT_KNOWN)
    return reasons.UNEXPLAINED.because("No known reason holds", Proof.NOT_KNOWN)


RULES: Sequence[Callable[[Situation], Iterable[Explanation]]] = (
    *(_status, _new, _nowhere, policies, _entries, _pilots),
)
"""In no order of precedence: that is the tiers'."""


def duration(seconds: float) -> str:
    """Return a time span in its two largest units; of what is just ahead of the poll, none."""
    return span(round(max(0.0, seconds)) * SECOND_US)


def names_text(keys: Iterable[EntryKey]) -> str:
    """Return the names of a few entries, and how many more there are."""
    names = sorted({key.entry for key in keys})
    more = f", and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more
