"""Why no slot and no pilot could run a job, however many there were, and what would change that.

The changes are those that were tried by matching (``Edit``): what keeps the job is what they mend.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from gwmond.explain import clauses, reasons
from gwmond.explain.evidence import Proof, sure_if, told, weaker
from gwmond.explain.phrases import capital, duration, kinds, names_text, sentence, size_text
from gwmond.explain.reasons import Explanation, Mover, Reason, Step, edit, wait
from gwmond.explain.situation import Situation
from gwmond.model.demand.waiting_job import OFFERED, TIMED, Change, Edit
from gwmond.reports.render.formats import counted

_ALIKE = 0.75


def nowhere(here: Situation) -> Iterator[Explanation]:
    """No slot and no entry could run it, however many pilots there were.

    Also where pilots might that nobody has seen, and none that is seen passes one of its clauses.
    """
    if not here.waits or here.free or here.full or here.named:
        return
    if here.fitting and not here.is_last_hope:
        return
    if here.leaving and not here.fitting:
        pilots = counted(sum(slot.number for slot in here.leaving), "pilot")
        names = names_text(slot.entry for slot in here.leaving)
        text = f"It could run on {pilots} ({names}), but for jobs that come now these are closed: "
        text += "they retire, or are drained"
        step = wait(f"A new pilot at {names}")
        yield reasons.RETIRING.because(text, Proof.ESTIMATED, step)
    elif here.untried:
        text = f"{kinds(here.untried)} are known, and none matches it; which clauses exclude them"
        text += " was not tried, as other groups of jobs are larger"
        yield reasons.NOT_ANALYSED.because(text, here.sure(told(here.untried)))
    elif here.pilots:
        yield _impossible(here)
    elif here.entries or here.slots:
        text = "No entry is known by a pilot, or by an ad of its factory"
        yield reasons.NO_PILOT_KNOWN.because(text, Proof.NOT_KNOWN)
    elif here.site:
        text = f"There is no site {here.site}"
        sites = {name.lower(): name for name in here.sites}
        for close in difflib.get_close_matches(here.site.lower(), sites, 1, _ALIKE):
            text += f". {_asked_for('site', here.site, sites[close])}"
        yield reasons.NO_SITE.because(text, here.sure(told(here.sites)))
    else:
        text = "The pool has neither pilots nor entries"
        yield reasons.EMPTY_POOL.because(text, Proof.NOT_KNOWN)


def _impossible(here: Situation) -> Explanation:
    """Name what excludes all pilots: the first that does, from what is plainest to say."""
    answer = None if here.fitting else _too_long(here)
    if answer is not None:
        return answer
    best = _best(here, here.job.edits)
    careful = best and all(change.kind != "clause" for change in best.changes)
    answer = _mended(here, best) if best and careful else None
    answer = answer or (None if here.impassable else _start(here))
    answer = answer or _without(here, best)
    if not here.fitting:
        return answer
    names = names_text(place.entry for place in here.fitting)
    text = f"{sentence(answer.text)} Whether pilots at {names} do is not known"
    return answer._replace(text=text, proof=weaker(answer.proof, Proof.ESTIMATED))


def _best(here: Situation, edits: Sequence[Edit]) -> Edit | None:
    """Return the smallest change of those that open pilots which are seen, and not down."""

    def order(item: tuple[int, Edit]) -> tuple[bool, bool, int]:
        return all(key in here.down for key, _ in item[1].opened), not item[1].sure, item[0]

    return min(enumerate(edits), key=order, default=(0, None))[1]


def _mended(here: Situation, best: Edit) -> Explanation:
    """Return what a change mends, and the change."""
    changes = best.changes
    sizes = all(change.kind == "request" and _is_less(change) for change in changes)
    if sizes and len(changes) > 1:
        largest = max(here.pilots, key=lambda place: (place.whole, place.entry))
        text = f"It asks for {size_text(here.job.size)}; the largest pilot, of "
        text += f"{largest.entry.entry}, has {size_text(largest.whole)}"
        return reasons.TOO_LARGE.because(text, here.refused, *_steps(here, best))
    pairs = [_said(here, change) for change in changes]
    text = "Besides: ".join(f"{sentence(text)} " for _, text in pairs).rstrip().removesuffix(".")
    return pairs[0][0].because(text, here.refused, *_steps(here, best))


def _steps(here: Situation, best: Edit) -> list[Step]:
    """Return the commands that make the changes; of Requirements the last has all of them."""
    made: dict[str, Step] = {}
    for change in best.changes:
        words = _words(change)
        if change.kind == "request" and (most := _most(here, change)) != change.now:
            words += f" (or {most} on an empty pilot)"
        if before := made.pop(change.name, None):
            words = f"{before.words}, {words}"
        made[change.name] = edit(words, change.name, change.value)
    first, *others = made.values()
    *others, last = first._replace(words=capital(first.words)), *others
    names = names_text(dict.fromkeys(key for key, _ in best.opened))
    words = f"{last.words} (condor_qedit): opens {kinds(len(best.opened))} ({names})"
    if best.free:
        words += f", and fits {counted(best.free, 'slot')} free now"
    return [*others, last._replace(words=words)]


def _words(change: Change) -> str:
    match change.kind:
        case "quotes":
            return f"{change.name} = {change.now}, without quotes"
        case "clause":
            return f"without {change.clause}"
        case "gpus":
            return (
                f"RequireGPUs with {change.now} instead of {change.was}"
                if change.now
                else (f"RequireGPUs without {change.was}")
            )
        case "value":
            return f'write "{change.now}" instead of "{change.was}"'
        case "name":
            return f"write {change.now} instead of {change.was}"
        case "request" | "number":
            name = "Requirements with" if change.name == "Requirements" else change.name
            without = ", if it can do without" * (change.kind == "request" and change.now == "0")
            return f"{name} {change.was} -> {change.now}{without}"


def _most(here: Situation, change: Change) -> str:
    """Return the number nearest to what was asked for, of edits that change the same things."""

    def same(edit: Edit) -> list[tuple[str, str]]:
        return [(other.name, other.clause) for other in edit.changes]

    having = [edit for edit in here.job.edits if change in edit.changes]
    alike = [edit for edit in here.job.edits if having and same(edit) == same(having[0])]
    every = (other for edit in alike for other in edit.changes if other.name == change.name)
    asked = float(change.was)
    return min((other.now for other in every), key=lambda now: abs(float(now) - asked))


def _is_less(change: Change) -> bool:
    return float(change.now) < float(change.was)


def _said(here: Situation, change: Change) -> tuple[Reason, str]:
    """Return the reason that a change removes, in words."""
    own = change.clause in here.job.clauses
    text = _passed(here, change.clause) if own else _refused(here, change.clause)
    name, was, now = change.name, change.was, change.now
    match change.kind:
        case "quotes":
            text += f": it compares a number with a string, {name} is {was}"
        case "value":
            noun = "site" if clauses.SITE.search(change.clause) else ""
            return (
                reasons.UNKNOWN_SITE if noun else reasons.REQUIREMENTS if own else reasons.START,
                f"{text}: {_asked_for(noun, was, now)}",
            )
        case "name":
            text += f": no pilot has an attribute {was}; did you mean {now}?"
        case "gpus":
            text = f"No pilot has the GPUs that it wants (RequireGPUs): {change.clause}"
        case "request":
            return _amount(here, change, text, own=own)
        case "number":
            text += f": {name} is {was}" if name != "Requirements" else f": a pilot has {now}"
    return reasons.REQUIREMENTS if own or change.kind == "gpus" else reasons.START, text


def _amount(here: Situation, change: Change, text: str, *, own: bool) -> tuple[Reason, str]:
    """Return what is said of a request, also of time, that is too large, or too small."""
    name, was = change.name, _amount_text(change.name, change.was)
    if name == here.job.walltime_by:
        return reasons.TOO_LONG, f"{text}. The {name} of the job is {was}"
    if not _is_less(change):
        return reasons.TOO_SMALL, f"{text}: {name} is {was}"
    met, most = "" if here.impassable else " that meets all else", _most(here, change)
    text = f"{name} is {was}, and no pilot{met} has {'any' if most == '0' else 'that much'}"
    if not own:
        text += f": START asks for {change.clause}"
    most = "" if most == "0" else f" (at most {_amount_text(name, most)})"
    return reasons.TOO_LARGE, text + most


def _amount_text(name: str, value: str) -> str:
    """Return an amount as people write it."""
    if name.lower() != "requestdisk":
        return value
    gib = float(value) / 2**20
    return f"{value} KiB ({gib:.0f} GiB)" if gib >= 1 else f"{value} KiB"


def _asked_for(noun: str, was: str, now: str) -> str:
    if was.lower() == now.lower():
        return f'"{was}" is written "{now}"'
    none = "no site is called" if noun else "nobody has"
    return f'{none} "{was}"; did you mean "{now}"?'


def _start(here: Situation) -> Explanation | None:
    refused = clauses.refusals(here.pilots)
    if not refused:
        return None
    # What refuses it where least else does: other entries' pilots refuse what is not for them, too.
    unblocked = [place for place in here.pilots if not place.blocked and place.refusals]
    least = min(len(place.refusals) for place in unblocked)
    near = clauses.refusals(place for place in unblocked if len(place.refusals) == least)
    clause = max(near.items(), key=lambda item: (item[1], item[0]))[0]
    text = _refused(here, clause)
    for name in here.job.lacks:
        if scope := re.search(rf"\b(target\.)?{re.escape(name)}\b", clause, re.IGNORECASE):
            text += f". {'The job has no' if scope[1] else 'Neither job nor pilot has'} {name}"
    return reasons.START.because(text + _says(here, clause, r"\btarget\."), here.refused)


def _says(here: Situation, clause: str, scope: str) -> str:
    """Return what the job says of itself to which a clause refers; ``scope``: what is before it."""
    text = ""
    for name, value in here.job.words:
        if match := re.search(rf"{scope}({re.escape(name)})\b", clause, re.IGNORECASE):
            text += f'. The {match[1]} of the job is "{value}"'
    return text


def _refused(here: Situation, clause: str) -> str:
    met = sum(not place.blocked for place in here.pilots)
    number = clauses.refusals(here.pilots)[clause]
    if not number:
        return f"START refuses it: {clause}"
    return f"START of {number} of {kinds(met)} that meet its Requirements refuses it: {clause}"


def _too_long(here: Situation) -> Explanation | None:
    places = [place for place in here.pilots if place.matches]
    if not places:
        return None
    job = here.job
    longest_s = max(place.remaining_s or 0 for place in places)
    length, longest = duration(job.walltime_s or 0), duration(longest_s)
    text = f"It says that it runs for {length}, and no pilot that it matches lives for longer than "
    text, asked, proof = text + longest, job.walltime_by.lower(), here.refused
    asks = all(asked in place.asks for place in places)
    if proof is not Proof.NOT_KNOWN and not asks:
        text += ". START does not ask for that, so it may start, and be ended with its pilot"
        proof = weaker(proof, sure_if(asks))
    words = f"A walltime of at most {longest}"
    if not job.walltime_by:
        return reasons.TOO_LONG.because(text, proof, Step(Mover.YOU, words))
    value = str(longest_s // job.walltime_unit_s)
    return reasons.TOO_LONG.because(text, proof, edit(words, job.walltime_by, value))


def _without(here: Situation, best: Edit | None) -> Explanation:
    """Return the clauses that exclude all pilots, and Requirements without them."""
    steps = _steps(here, best) if best else ()
    worst = max(here.impassable, key=lambda count: count.alone, default=None)
    if worst is None:
        return _together(here, *steps)
    text, reason = _passed(here, worst.clause), reasons.REQUIREMENTS
    text += _says(here, worst.clause, r"(?<![\w.])(?:my\.)?")
    if worst.alone:
        passes = "passes" if worst.alone == 1 else "pass"
        text += f". {counted(worst.alone, 'kind')} {passes} all else"
    if len(here.impassable) > 1:
        text += f". The same is true of {counted(len(here.impassable) - 1, 'other clause')}"
    if TIMED.search(worst.clause):
        text += ". It is about time, and may come true later"
    if not steps and clauses.REQUEST.search(worst.clause):
        if more := _more_than_any(here):
            reason, text = reasons.TOO_LARGE, more
    elif not steps and (OFFERED.search(worst.clause) or "request" in worst.clause.lower()):
        reason = reasons.NOT_AT_PILOTS  # also resources that a pool names itself
    return reason.because(text, here.refused, *steps)


def _together(here: Situation, *steps: Step) -> Explanation:
    """Return the two clauses that exclude all pilots together, or that no two do."""
    reason, texts = reasons.CLAUSES_TOGETHER, here.job.clauses
    pair = clauses.smallest_pair(here.pilots)
    if pair is not None:
        passed = sum(set(pair[:2]).isdisjoint(place.blocked) for place in here.pilots)
        text = f"{_number(here, passed)} pass both {texts[pair[0]]} and {texts[pair[1]]}"
    else:
        reason = reasons.REQUIREMENTS
        least = min(clauses.counts(texts, here.pilots), key=lambda count: count.passed)
        text = f"{_number(here)} pass all clauses; the fewest ({least.passed}) pass {least.clause}"
    return reason.because(text, here.refused, *steps)


def _more_than_any(here: Situation) -> str:
    """Return what a job asks for and no pilot has, or not as much; empty: nothing."""
    for i, name in enumerate(clauses.REQUESTS):
        asked, most = here.job.size[i], max(pilot.whole[i] for pilot in here.pilots)
        if asked > most:
            return f"{name} is {asked:.15g}, and no pilot has that much (at most {most:.15g})"
    return ""


def _passed(here: Situation, clause: str) -> str:
    """Return how many pilots pass a clause; of some that may not be known."""
    every = clauses.counts(here.job.clauses, here.pilots)
    counts = next((count for count in every if count.clause == clause), None)
    passed, untold = (counts.passed, counts.untold) if counts else (0, 0)
    are = "are known to pass" if untold else "pass"
    return f"{_number(here, passed)} {are} {clause}"


def _number(here: Situation, number: int = 0) -> str:
    return f"{number} of {kinds(len(here.pilots))}{f' at {here.site}' if here.site else ''}"
