"""The explanation of one job: the answer in three lines, then the evidence."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gwmond.explain import clauses, order, past
from gwmond.explain.answers import answers
from gwmond.explain.clauses import ClauseCount, Opening
from gwmond.explain.evidence import Proof
from gwmond.explain.phrases import duration, kinds, sentence
from gwmond.explain.reasons import Explanation, Tier
from gwmond.explain.situation import Fate, Situation
from gwmond.model.facts import EntryKey
from gwmond.reports.render.document import Document, Paragraph, Part, TextLines
from gwmond.reports.render.formats import counted, words
from gwmond.reports.render.meanings import state_cell
from gwmond.reports.render.table import Column, table
from gwmond.reports.sites.sites import SiteRow

_STATUS = {0: "not submitted", 1: "not running", 2: "running", 5: "not running", 7: "suspended"}


def document(situation: Situation) -> Document:
    """Return what is said of a job, in all forms."""
    reasons = answers(situation)
    return Document(lambda: _parts(situation, reasons), lambda: _record(situation, reasons))


def first_line(situation: Situation, answer: Explanation) -> str:
    """Return for how long the job has not been running, and why."""
    job = situation.job
    since = job.submitted if job.status == 1 and not job.runs else job.since
    age = "" if since is None else f" for {duration(situation.now - since)}"
    status = _STATUS.get(job.status, "leaving the queue").upper()
    text = sentence(answer.text)
    if streak := past.streak(situation):
        return f"{status}{age}. {streak.text}. {text}"
    runs = f", after {counted(job.runs, 'run')}" if job.status == 1 and job.runs else ""
    return f"{status}{age}{runs}: {text}"


def _parts(here: Situation, reasons: Sequence[Explanation]) -> Iterator[Part]:
    commands = [shlex.join(argv) for step in reasons[0].steps if (argv := step.argv(here.job))]
    yield from answer_parts(first_line(here, reasons[0]), reasons, here.missing, commands)
    yield from past.runs(here)
    yield from past.waits(here)
    if here.job.clauses and here.pilots:
        total = len(here.pilots)
        title = f"Requirements of the job, against {counted(total, 'kind')} of empty pilots:"
        rows = clauses.counts(here.job.clauses, here.pilots)
        yield table(title, _CLAUSES, rows, note=_KINDS)
        if here.is_planned and (least := min(rows, key=lambda count: count.passed)).passed < total:
            text = f"{least.clause} ({least.passed} of {kinds(total)} pass)"
            yield Paragraph(f"The clause that leaves out most: {text}.")
    if refused := clauses.refusals(here.pilots):
        rows_ = [f"{number:4}  {clause}" for clause, number in refused.most_common()]
        yield TextLines("START of pilots that meet the Requirements, and refuse the job:", rows_)
    if here.fitting_entries:
        entries = [(key, here.entries.get(key)) for key in here.fitting_entries]
        yield table("Entries where it could run:", ENTRY_COLUMNS, entries)
    if here.waits and here.openings:
        opened = [(opening, here.units(opening.entries)) for opening in here.openings]
        yield table("What one change of the job would open:", _OPENINGS, opened)
    if reasons[0].tier not in (Tier.NOT_WAITING, Tier.NOWHERE):
        if not here.is_planned:
            place = order.words(here.job, here.order, here.rivals)
            yield Paragraph(f"Place in the order: {place}.")
        yield from map(Paragraph, past.expected(here))
    if here.job.is_matched:
        yield Paragraph(_slots(here))
    for missing in here.missing:
        yield Paragraph(f"Not known: {missing} could not be read.", "caution")


def _slots(here: Situation) -> str:
    fates = [f"{here.fates[fate]} {fate}" for fate in Fate if here.fates[fate]]
    return f"Slots now: {here.fates.total()}: {', '.join(fates) or 'none'}."


def answer_parts(
    line: str,
    reasons: Sequence[Explanation],
    missing: Sequence[str],
    commands: Sequence[str] = (),
) -> Iterator[Part]:
    """Yield the answer in three lines, and what else holds; ``missing``: what was not read.

    ``commands``, as they can be pasted into a shell, follow the second line.
    """
    first, *others = reasons
    yield Paragraph(line, "title")
    yield Paragraph(f"What would change that: {first.change}.")
    if commands:
        yield TextLines(None, [f"    {command}" for command in commands])
    yield Paragraph(f"Whose move: {first.mover.text}. ({_proof(missing, first)})")
    if others:
        yield Paragraph("Also true:", "heading")
    for why in others:
        yield Paragraph(f"- {why.text}. {why.change}. ({why.mover.text}; {_proof(missing, why)})")


def reason_records(reasons: Sequence[Explanation]) -> list[dict[str, Any]]:
    """Return reasons as JSON has them."""
    return [
        {
            "tier": int(answer.tier),
            "reason": answer.name,
            "text": answer.text,
            "change": answer.change,
            "whose_move": answer.mover.value,
            "proof": answer.proof.value,
        }
        for answer in reasons
    ]


_KINDS = "A kind is the pilots of one entry and frontend group."
_CLAUSES: tuple[Column[ClauseCount], ...] = (
    Column("clause", lambda count: count.clause, text=True, wrap=30),
    Column("pass", lambda count: f"{count.passed} of {count.total}"),
    Column("it alone excludes", lambda count: str(count.alone), zero=True),
)


_OPENINGS: tuple[Column[tuple[Opening, int | None]], ...] = (
    Column("change", lambda pair: pair[0].change, text=True, wrap=30),
    Column("slots now", lambda pair: str(pair[0].slots), zero=True),
    Column("canonical units", lambda pair: "?" if pair[1] is None else str(pair[1])),
    Column("kinds of pilots", lambda pair: str(pair[0].pilots)),
    Column("entries", lambda pair: str(len(pair[0].entries))),
)
_Row = tuple[EntryKey, SiteRow | None]


def _known(name: str) -> Callable[[_Row], str]:
    """Return what shows a number of an entry; ``?`` where it is not known."""

    def cell(row: _Row) -> str:
        value = getattr(row[1], name, None)
        return "?" if value is None else str(value)

    return cell


ENTRY_COLUMNS: tuple[Column[_Row], ...] = (
    Column("site", lambda row: row[0].site, name=True),
    Column("entry", lambda row: row[0].entry, name=True),
    Column("state", lambda row: state_cell(row[1].state) if row[1] else "?", text=True),
    Column("reason", lambda row: words(row[1].reason) if row[1] else "", text=True),
    *(
        Column(header, _known(f"{header}_pilots"))
        for header in ("registered", "pending", "held", "requested")
    ),
)


def _proof(missing: Sequence[str], answer: Explanation) -> str:
    if answer.proof is Proof.NOT_KNOWN and missing:
        return f"not known: {'; '.join(missing)} could not be read"
    return answer.proof.value


def _record(here: Situation, reasons: Sequence[Explanation]) -> dict[str, Any]:
    job = here.job
    return {
        "job": job.number,
        "schedd": job.schedd,
        "global_job_id": job.global_id,
        "user": job.user,
        "status": job.status,
        "submitted": job.submitted,
        "since": job.since,
        "runs": job.runs,
        "first_line": first_line(here, reasons[0]),
        "reasons": reason_records(reasons),
        "commands": [step.record(job) for step in reasons[0].steps],
        "earlier_runs": past.runs_record(here),
        "history": past.waits_record(here),
        "clauses": [count._asdict() for count in clauses.counts(job.clauses, here.pilots)],
        "start_refusals": dict(clauses.refusals(here.pilots)),
        "openings": [
            x._asdict()
            | {"entries": [key.entry for key in x.entries], "units": here.units(x.entries)}
            for x in here.openings
        ],
        "entries": [
            row._asdict() if (row := here.entries.get(key)) else key._asdict()
            for key in here.fitting_entries
        ],
        "kinds_of_pilots": len(here.pilots),
        "kinds_that_fit": len(here.fitting),
        "slots": sum(place.number for place in here.slots),
        "slots_free": sum(place.number for place in here.free),
        "slots_by_fate": {fate.name.lower(): here.fates[fate] for fate in Fate},
        "order": order.record(order.place(job, here.order, here.rivals)),
        "expected": past.expected_record(here),
        "not_read": list(here.missing),
    }
