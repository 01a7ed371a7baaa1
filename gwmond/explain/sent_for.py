"""Why a pilot that has ended never had a job: for what it was sent, and what became of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gwmond.explain.document import answer_parts, reason_records
from gwmond.explain.evidence import Proof, told
from gwmond.explain.movers import failed_validation, of_common
from gwmond.explain.places import FAILED
from gwmond.explain.reasons import Explanation, Mover, Step, Tier, holding, of_tier
from gwmond.model.entries.experiments import PilotResult
from gwmond.model.facts import EntryKey
from gwmond.model.states import State
from gwmond.reports.pilots.sent_for import DemandAt, SentFor
from gwmond.reports.render import fields
from gwmond.reports.render.document import Document, Paragraph, Part
from gwmond.reports.render.fields import TIME, Datum, Unit
from gwmond.reports.render.formats import counted, number, words
from gwmond.reports.render.periods import both, short, span
from gwmond.reports.render.table import table

_SHOWN = 20


_at = of_tier(Tier.NOT_WAITING)
_HAD_JOBS = _at("had_jobs", Mover.WAIT, "Nothing: gwmond pilot shows its life")
_JOBS_NOT_KNOWN = _at(
    *("jobs_not_known", Mover.FACTORY),
    "Its output as a whole, or a collector that shows it: gwmond pilot",
)
_NEVER_REGISTERED = _at("never_registered", Mover.SITE, "What its output says: gwmond pilot")
_JOBS_DID_NOT_COME = of_tier(Tier.NO_PILOT)(
    *("jobs_did_not_come", Mover.POOL),
    "What keeps them from such pilots: gwmond explain --entry",
)
_DEMAND_GONE = of_tier(Tier.ON_THEIR_WAY)(
    "demand_gone", Mover.FRONTEND, "Fewer pilots where few jobs wait"
)
_TAKEN_BY_OTHERS = of_tier(Tier.PILOTS_THERE)(
    *("taken_by_others", Mover.FRONTEND),
    "Fewer pilots requested at a time, or pilots that start sooner",
)
_UNEXPLAINED = of_tier(Tier.UNEXPLAINED)(
    *("unexplained", Mover.POOL),
    "Requests and idle jobs in the ledger: glideresource ads, or the factory's files",
)


def sent_for_document(here: SentFor) -> Document:
    """Return what is said of a pilot that has ended, in all forms."""
    reasons = sent_for_answers(here)
    return Document(lambda: _parts(here, reasons), lambda: _record(here, reasons))


def sent_for_answers(here: SentFor) -> list[Explanation]:
    """Return all reasons that hold, the first of them as the answer; there is always one."""
    text = "The ledger does not say what it was sent for"
    return holding(_RULES, here, _UNEXPLAINED.because(text, Proof.NOT_KNOWN))


def _no_decision_problem(here: SentFor) -> Iterator[Explanation]:
    """It had jobs, or never registered."""
    jobs, row = here.pilot.jobs, here.pilot.row
    if jobs.ran:
        many = "jobs" if jobs.number is None else counted(jobs.number, "job")
        yield _HAD_JOBS.because(f"It had {many}", told(jobs.ran))
    elif here.pilot.failed:
        text = f"Its validation failed ({row.failure or 'no test is named'})"
        mover, change, proof = failed_validation(None)
        if here.common is not None:
            text, mover = f"{text}. {here.common.text}", of_common(here.common)
            proof = told(here.common)
        yield FAILED.because(text, proof, Step(mover, change))
    elif jobs.ran is None:
        text = "It is not known whether it had jobs: its output ends before it says so"
        yield _JOBS_NOT_KNOWN.because(text, Proof.NOT_KNOWN)
    elif here.registered_us is None:
        text = "No collector has shown it: it ended before it registered, or could not"
        yield _NEVER_REGISTERED.because(text, Proof.ESTIMATED)


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
        yield _JOBS_DID_NOT_COME.because(text, Proof.ESTIMATED)


def _taken(here: SentFor) -> Iterator[Explanation]:
    """Other pilots of its group took jobs while it was on its way, or there."""
    key, way, there = here.pilot.identity.key, here.on_its_way, here.while_there
    if not _registered(here):
        return
    begun = way.total() + there.total()
    if not begun:
        group = here.pilot.identity.group or "no frontend group"
        text = f"{_asked(here)}No run of a job began on any pilot of {group} while it lived"
        yield _DEMAND_GONE.because(text, Proof.ESTIMATED)
        return
    here_too = way[key] + there[key]
    text = (
        f"{_asked(here)}Other pilots of its group took the jobs: {counted(way.total(), 'run')} "
        f"began until it registered, and {there.total()} while it was there; {here_too} of these "
        f"{begun} at its own entry"
    )
    yield _TAKEN_BY_OTHERS.because(text, Proof.ESTIMATED)


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


def _parts(here: SentFor, reasons: Sequence[Explanation]) -> Iterator[Part]:
    yield from answer_parts(sent_for_line(here, reasons[0]), reasons, ())
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
        state = f"{words(verdict.state)} ({words(verdict.reason)})" if verdict.reason else ""
        yield Paragraph(f"The entry, as it registered: {state or words(verdict.state)}.")
    title = "What was asked of the entry for its group, means of the hours in which it was sent, "
    yield table(f"{title}registered and ended:", fields.columns(_DEMAND), here.demand)
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
        yield table(title, fields.columns(_TAKEN), taken[:_SHOWN], note=note)


def _taken_rows(here: SentFor) -> list[_Taken]:
    both_: Counter[EntryKey] = here.on_its_way + here.while_there
    return [
        _Taken(key, here.on_its_way[key], here.while_there[key]) for key, _ in both_.most_common()
    ]


def _units(state: State) -> Callable[[DemandAt], str]:
    return lambda demand: number(demand.units.get(state.value), 1)


_TENTHS = Unit(lambda key, value: {key: value}, lambda value: number(value, 1))


_DEMAND: tuple[Datum[DemandAt], ...] = (
    Datum("hour", lambda demand: demand.hour_us, 1, "hour (UTC)", TIME, text=True),
    Datum("pilots_asked_idle", lambda x: x.asked, 2, "pilots asked for, idle", _TENTHS),
    Datum("pilots_pending", lambda x: x.pending, 3, "pilots pending", _TENTHS),
    Datum("jobs_idle", lambda demand: demand.jobs, 4, "idle jobs there", _TENTHS),
    Datum("", _units(State.PROVISIONING_BOTTLENECK), 5, "units short of pilots"),
    Datum("", _units(State.INSUFFICIENT_DEMAND), 6, "units without demand"),
    Datum("units", lambda demand: dict(demand.units)),
)
_TAKEN: tuple[Datum[_Taken], ...] = (
    Datum("site", lambda taken: taken.key.site, 1, name=True),
    Datum("entry", lambda taken: taken.key.entry, 2, name=True),
    Datum("until_it_registered", lambda taken: taken.way, 3, "until it registered"),
    Datum("while_it_was_there", lambda taken: taken.there, 4, "while it was there"),
)


def _record(here: SentFor, reasons: Sequence[Explanation]) -> dict[str, Any]:
    identity, check = here.pilot.identity, here.check
    return {
        "site": identity.key.site,
        "entry": identity.key.entry,
        "pilot": identity.name,
        "group": identity.group,
        "first_line": sent_for_line(here, reasons[0]),
        "reasons": reason_records(reasons),
        **both("sent", here.sent_us),
        **both("begin", here.pilot.row.start_us),
        **both("registered", here.registered_us),
        **both("end", here.end_us),
        "demand": [fields.record(_DEMAND, demand) for demand in here.demand],
        "verdict": None
        if check is None
        else {
            "state": check.verdict.state.value,
            "reason": check.verdict.reason,
            "result": check.result.value,
        },
        "pilots_alike": here.alike._asdict(),
        "runs_begun": [fields.record(_TAKEN, taken) for taken in _taken_rows(here)],
    }
