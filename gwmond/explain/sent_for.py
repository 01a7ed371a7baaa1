"""Why a pilot that has ended never had a job: for what it was sent, and what became of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gwmond.explain.document import answer_parts, reason_records
from gwmond.explain.evidence import Proof, told
from gwmond.explain.movers import failed_validation, of_common
from gwmond.explain.reasons import Explanation, Mover, Step, Tier, wait
from gwmond.model.entries.experiments import PilotResult
from gwmond.model.facts import EntryKey
from gwmond.model.states import State
from gwmond.reports.pilots.sent_for import DemandAt, SentFor
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.formats import counted, number, words
from gwmond.reports.render.periods import both, short, span
from gwmond.reports.render.table import Column, table

_SHOWN = 20


_RECORDS = "Requests and idle jobs in the ledger: glideresource ads, or the factory's files"


def sent_for_document(here: SentFor) -> Document:
    """Return what is said of a pilot that has ended, in all forms."""
    found = sent_for_answers(here)
    return Document(lambda: _parts(here, found), lambda: _record(here, found))


def sent_for_answers(here: SentFor) -> list[Explanation]:
    """Return all reasons that hold, the first of them as the answer; there is always one."""
    found = [answer for rule in _RULES for answer in rule(here)]
    found.sort(key=lambda answer: answer.tier)
    return found or [
        Explanation(
            Tier.UNEXPLAINED,
            "unexplained",
            "The ledger does not say what it was sent for",
            Proof.NOT_KNOWN,
            (Step(Mover.POOL, _RECORDS),),
        )
    ]


def _no_decision_problem(here: SentFor) -> Iterator[Explanation]:
    """It had jobs, or never registered."""
    jobs, row = here.pilot.jobs, here.pilot.row
    tier = Tier.NOT_WAITING
    if jobs.ran:
        many = "jobs" if jobs.number is None else counted(jobs.number, "job")
        text, change = f"It had {many}", "Nothing: gwmond pilot shows its life"
        yield Explanation(tier, "had_jobs", text, told(jobs.ran), (wait(change),))
    elif here.pilot.failed:
        text = f"Its validation failed ({row.failure or 'no test is named'})"
        mover, change, proof = failed_validation(None)
        if here.common is not None:
            text, mover = f"{text}. {here.common.text}", of_common(here.common)
            proof = told(here.common)
        yield Explanation(tier, "validation_failed", text, proof, (Step(mover, change),))
    elif jobs.ran is None:
        text = "It is not known whether it had jobs: its output ends before it says so"
        change = "Its output as a whole, or a collector that shows it: gwmond pilot"
        steps = (Step(Mover.FACTORY, change),)
        yield Explanation(tier, "jobs_not_known", text, Proof.NOT_KNOWN, steps)
    elif here.registered_us is None:
        text = "No collector has shown it: it ended before it registered, or could not"
        step = Step(Mover.SITE, "What its output says: gwmond pilot")
        yield Explanation(tier, "never_registered", text, Proof.ESTIMATED, (step,))


def _asked(here: SentFor) -> str:
    """Return what was asked for when it was sent, in words; empty if that is not known."""
    demand = here.demand[0]
    if demand.asked is None:
        return ""
    jobs = "" if demand.jobs is None else f", with {number(demand.jobs, 1)} idle jobs there"
    return f"When it was sent, the frontend asked for {number(demand.asked, 1)} idle pilots{jobs}. "


def _registered(here: SentFor) -> bool:
    no_job = here.pilot.jobs.ran is False
    return here.registered_us is not None and no_job and not here.pilot.failed


def _refuted(here: SentFor) -> Iterator[Explanation]:
    """Jobs were there for it as it registered, and none came."""
    if not _registered(here) or here.check is None or here.check.result is not PilotResult.IDLE:
        return
    if here.check.verdict.state is State.PROVISIONING_BOTTLENECK:
        text = f"{_asked(here)}As it registered, idle jobs could have run there, and none came"
        step = Step(Mover.POOL, "What keeps them from such pilots: gwmond explain --entry")
        yield Explanation(Tier.NO_PILOT, "jobs_did_not_come", text, Proof.ESTIMATED, (step,))


def _taken(here: SentFor) -> Iterator[Explanation]:
    """Other pilots of its group took jobs while it was on its way, or there."""
    key, way, there = here.pilot.identity.key, here.on_its_way, here.while_there
    if not _registered(here):
        return
    begun = way.total() + there.total()
    if not begun:
        group = here.pilot.identity.group or "no frontend group"
        text = f"{_asked(here)}No run of a job began on any pilot of {group} while it lived"
        step = Step(Mover.FRONTEND, "Fewer pilots where few jobs wait")
        yield Explanation(Tier.ON_THEIR_WAY, "demand_gone", text, Proof.ESTIMATED, (step,))
        return
    here_too = way[key] + there[key]
    text = (
        f"{_asked(here)}Other pilots of its group took the jobs: {counted(way.total(), 'run')} "
        f"began until it registered, and {there.total()} while it was there; {here_too} of these "
        f"{begun} at its own entry"
    )
    step = Step(Mover.FRONTEND, "Fewer pilots requested at a time, or pilots that start sooner")
    yield Explanation(Tier.PILOTS_THERE, "taken_by_others", text, Proof.ESTIMATED, (step,))


_RULES: Sequence[Callable[[SentFor], Iterable[Explanation]]] = (
    *(_no_decision_problem, _refuted, _taken),
)


def sent_for_line(here: SentFor, first: Explanation) -> str:
    """Return which pilot it is, how long it lived, and why it had no job."""
    life = span(here.end_us - here.pilot.row.start_us)
    had = _HAD[here.pilot.jobs.ran]
    return f"Pilot {here.pilot.identity.name} {had} in {life}: {first.text}."


_HAD = {True: "HAD JOBS", False: "NEVER HAD A JOB", None: "HAD PERHAPS A JOB"}


class _Taken(NamedTuple):
    """Runs that began at an entry on pilots of the group."""

    key: EntryKey
    way: int
    there: int


def _parts(here: SentFor, found: Sequence[Explanation]) -> Iterator[Part]:
    yield from answer_parts(sent_for_line(here, found[0]), found, ())
    identity = here.pilot.identity
    sent = short(here.sent_us, "not known")
    ended = "heard of last" if here.pilot.row.end_us is None else "ended"
    registered = short(here.registered_us, "never")
    yield Paragraph(
        f"Sent: {sent}; began: {short(here.pilot.row.start_us)}; registered: {registered}; "
        f"{ended}: {short(here.end_us)}. Of {identity.key.entry}, {identity.key.site}, for "
        f"{identity.group or 'no frontend group that is known'}."
    )
    if here.check is not None:
        verdict = here.check.verdict
        said = f"{words(verdict.state)} ({words(verdict.reason)})" if verdict.reason else ""
        yield Paragraph(f"The entry, as it registered: {said or words(verdict.state)}.")
    title = "What was asked of the entry for its group, means of the hours in which it was sent, "
    yield table(f"{title}registered and ended:", _DEMAND, here.demand)
    alike = here.alike
    yield Paragraph(
        f"{counted(alike.pilots, 'other pilot')} of this entry and group lived at the same time: "
        f"{alike.ran} ran jobs, {alike.failed} failed validation."
    )
    taken = _taken_rows(here)
    if taken:
        title = "Runs of jobs that began meanwhile on pilots of its group:"
        left = len(taken) - _SHOWN
        note = f"And {counted(left, 'more entry')}." if left > 0 else ""
        yield table(title, _TAKEN, taken[:_SHOWN], note=note)


def _taken_rows(here: SentFor) -> list[_Taken]:
    both_: Counter[EntryKey] = here.on_its_way + here.while_there
    return [
        _Taken(key, here.on_its_way[key], here.while_there[key]) for key, _ in both_.most_common()
    ]


def _units(state: str) -> Callable[[DemandAt], str]:
    return lambda demand: number(demand.units.get(state), 1)


_DEMAND: tuple[Column[DemandAt], ...] = (
    Column("hour (UTC)", lambda demand: short(demand.hour_us), text=True),
    Column("pilots asked for, idle", lambda demand: number(demand.asked, 1)),
    Column("pilots pending", lambda demand: number(demand.pending, 1)),
    Column("idle jobs there", lambda demand: number(demand.jobs, 1)),
    Column("units short of pilots", _units(State.PROVISIONING_BOTTLENECK.value)),
    Column("units without demand", _units(State.INSUFFICIENT_DEMAND.value)),
)
_TAKEN: tuple[Column[_Taken], ...] = (
    Column("site", lambda taken: taken.key.site, name=True),
    Column("entry", lambda taken: taken.key.entry, name=True),
    Column("until it registered", lambda taken: str(taken.way)),
    Column("while it was there", lambda taken: str(taken.there)),
)


def _record(here: SentFor, found: Sequence[Explanation]) -> dict[str, Any]:
    identity, check = here.pilot.identity, here.check
    return {
        "site": identity.key.site,
        "entry": identity.key.entry,
        "pilot": identity.name,
        "group": identity.group,
        "first_line": sent_for_line(here, found[0]),
        "reasons": reason_records(found),
        **both("sent", here.sent_us),
        **both("begin", here.pilot.row.start_us),
        **both("registered", here.registered_us),
        **both("end", here.end_us),
        "demand": [
            {
                **both("hour", one.hour_us),
                "pilots_asked_idle": one.asked,
                "pilots_pending": one.pending,
                "jobs_idle": one.jobs,
                "units": dict(one.units),
            }
            for one in here.demand
        ],
        "verdict": None
        if check is None
        else {
            "state": check.verdict.state.value,
            "reason": check.verdict.reason,
            "result": check.result.value,
        },
        "pilots_alike": here.alike._asdict(),
        "runs_begun": [
            {
                "site": taken.key.site,
                "entry": taken.key.entry,
                "until_it_registered": taken.way,
                "while_it_was_there": taken.there,
            }
            for taken in _taken_rows(here)
        ],
    }
