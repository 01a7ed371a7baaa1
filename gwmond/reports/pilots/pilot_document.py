"""One pilot's life as a document: a picture of lanes, tables of its parts, and records.

In JSON times are there twice, amounts are seconds, what is not known is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gwmond.model.pilot_life import KINDS, MEASURES, Category, Kind, Validation
from gwmond.model.pilots.stored_pilots import PilotCorrection, RunRow
from gwmond.model.runs.run_facts import Source
from gwmond.model.times import HOUR_US
from gwmond.model.units import Resource
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.pilots.listing import record, size_text
from gwmond.reports.pilots.runs import AMOUNTS, CATEGORY, OF_RUN, category_cell
from gwmond.reports.pilots.story import OwnSpan, RunStory, Story
from gwmond.reports.pilots.timeline import BLANK, axis, ends, lanes
from gwmond.reports.render import fields
from gwmond.reports.render.categories import CATEGORIES, CPU, GPU, INFO, kinds_json, of_kind
from gwmond.reports.render.document import Document, Paragraph, Part, Spans
from gwmond.reports.render.fields import LENGTH, TIME, Datum
from gwmond.reports.render.formats import exact_seconds, hours, percent, ratio, seconds, words
from gwmond.reports.render.periods import both, short, span
from gwmond.reports.render.table import Cell, Column, Table, table
from gwmond.reports.stored.phases import phase_fields
from gwmond.reports.stored.stored_pilot import StoredPilot, ValidationPhases

_LABEL = 8
_ORIGINS = {
    "collector": "",
    "jobs": "; no collector showed it: known from records of jobs",
    "files": "; no collector showed it: known from its factory's files",
}


def document(story: Story, age: Age, width: int, most: int) -> Document:
    """Return it in all forms; the picture has so many columns, and at most so many runs."""
    return Document(
        lambda: _parts(story, age, width, most),
        lambda: {**age.as_json(), **story_json(story)},
    )


def _parts(story: Story, age: Age, width: int, most: int) -> Iterator[Part]:
    yield from _head(story, age)
    yield from _picture(story, width, most)
    yield from _runs(story)
    if story.own:
        own = fields.columns(_own_fields(story))
        yield table("The pilot's own time (hours: canonical)", own, story.own)
    if story.corrections:
        corrections = fields.columns(_CORRECTION)
        yield table("Corrections of what was settled before", corrections, story.corrections)
    if not story.corrections_complete:
        yield Paragraph(
            "(the ledger has many corrections since: older ones may not be listed)", "soft"
        )
    yield _sums(story)


def _head(story: Story, age: Age) -> Iterator[Part]:
    row, key = story.pilot.row, story.pilot.identity
    yield Paragraph(age.text)
    yield Paragraph(f"pilot {row.id}  {key.name}", "heading")
    yield Paragraph(f"{key.key.site}, entry {key.key.entry}, node {key.node or '?'}")
    job = f", its job {key.factory_job}" if key.factory_job else ""
    yield Paragraph(f"group {key.group}, factory {key.factory}{job}")
    yield Paragraph(f"{ends(story)}; {size_text(story.pilot)}{_ORIGINS[key.origin]}")
    retire, die = story.pilot.left_us(row.retire_us), story.pilot.left_us(row.die_us)
    left = "".join(
        f"; {verb} in {span(time)}" if time >= 0 else f"; should have {past} {span(-time)} ago"
        for verb, past, time in (("retires", "retired", retire), ("dies", "died", die))
        if time is not None
    )
    for rule in story.rules:
        yield Paragraph(rule.line(), "caution")
    failure = f" ({row.failure})" if row.failure else ""
    phases = phases_text(story.pilot, story.pilot.life_now.effective_end_us)
    validation = f"validation {row.validation.shown}{failure}"
    yield Paragraph(f"{story.pilot.doing}{left}; {validation}" + (f"\n{phases}" if phases else ""))


def _picture(story: Story, width: int, most: int) -> Iterator[Part]:
    columns, life = max(20, width - _LABEL - 1), story.pilot.life_now
    drawn = lanes(story, columns, most)
    ticks, times = axis(life.start_us, life.effective_end_us, columns)
    yield Paragraph("")
    yield Spans([Cell(f"{'':{_LABEL}}{times}", "bright_black")])
    yield Spans([Cell(f"{'':{_LABEL}}{ticks}", "bright_black")])
    for lane in drawn:
        marks = (
            Cell(mark.text, "bright_black" if mark.text in BLANK else _style(mark.category))
            for mark in lane.marks
        )
        yield Spans([Cell(f"{lane.label:<{_LABEL}}"), *marks])
    if len(story.runs) > most:
        draws = f"gwmond pilot {story.pilot.row.id} --lanes {len(story.runs)}"
        yield Paragraph(f"({len(story.runs) - most} more runs are not drawn: {draws} draws all)")
    if pruned := story.pilot.row.runs_pruned:
        yield Paragraph(f"({pruned} runs were taken out by retention, so own time is not drawn)")
    used = {mark.category: None for lane in drawn for mark in lane.marks if mark.text not in BLANK}
    legend = [Cell(" " * _LABEL)]
    for category in used:
        legend.append(Cell(INFO[category].letter, _style(category)))
        legend.append(Cell(f" {words(category) if category else 'not settled'}   "))
    yield Spans(legend)


def _style(category: Category | None) -> str:
    return f"reverse {INFO[category].colour}"


class _RunLine(NamedTuple):
    """A run with its number on this pilot, and until when it is known; ``gpus``: there are some."""

    number: int
    run: RunStory
    until_us: int
    gpus: bool

    @property
    def row(self) -> RunRow:
        return self.run.row

    def hours(self, kind: Kind) -> str:
        """Its canonical hours; of GPUs only where the pilot has some."""
        return hours(self.run.amounts.get(kind, 0), 2) if self.gpus or kind == CPU else ""


def _run_lines(story: Story) -> list[_RunLine]:
    until_us, gpus = story.pilot.life_now.effective_end_us, bool(story.pilot.offered[GPU])
    return [
        _RunLine(number, run, until_us if run.row.end_us is None else run.row.end_us, gpus)
        for number, run in enumerate(story.runs, 1)
    ]


def _runs(story: Story) -> Iterator[Part]:
    if not story.runs:
        yield Paragraph("No job is known to have run on it.", "heading")
        return
    yield table("Runs of jobs (hours: canonical)", fields.columns(_RUN), _run_lines(story))
    decided = {run.rule or "?": run.rule_source for run in story.runs if run.row.outcome}
    for rule, source in sorted(decided.items()):
        yield Paragraph(f"{rule}: {source}", "soft")
    for number, run in enumerate(story.runs, 1):
        for contradiction in run.merged.contradictions:
            kept, other = contradiction.kept.value, contradiction.other.value
            text = f"run {number}: {kept} and {other} differ on {contradiction.field}; "
            yield Paragraph(f"{text}{kept} is believed", "caution")


def _sources(line: _RunLine) -> str:
    merged = line.run.merged.sources
    return ", ".join(source.value for source in Source if source in merged)


def _codes(line: _RunLine) -> str:
    run = line.run
    codes = [f"{name.replace('_', ' ')} {code}" for name, code in run.codes.items()]
    reason = run.merged.ending.reason
    return ", ".join([*codes, *([reason.value] if reason else [])])


def _phases(line: _RunLine) -> str:
    """Return how long each phase of a run lasted, and the server of a transfer that failed."""
    phases, failed = line.run.phases, line.run.failed
    lengths = ["n/k" if length is None else span(length) for length in phases[:3]]
    if phases.queued_us:
        lengths.append(f"{span(phases.queued_us)} queued")
    text = ", ".join(lengths) if phases.lengths else ""
    return f"{text} ({failed.way} failed: {failed.server})" if failed else text


_RUN: tuple[Datum[_RunLine], ...] = (
    Datum("", lambda line: line.number, 1, "run", name=True, text=True),
    *OF_RUN,
    Datum("", lambda line: short(line.row.end_us, "runs"), 3, "to (UTC)", text=True),
    Datum("", lambda line: span(line.until_us - line.row.start_us), 4, "for", text=True),
    Datum("", lambda line: line.hours(CPU), 9, "hours"),
    Datum("", lambda line: line.hours(GPU), 10, "GPU hours"),
    Datum("rule", lambda line: line.run.rule or None, 11, "decided by", text=True),
    Datum("rule_source", lambda line: line.run.rule_source or None),
    Datum("codes", lambda line: line.run.codes, 12, cell=_codes, text=True, wrap=24),
    Datum("reason", lambda line: line.run.merged.ending.reason or None),
    Datum("", _sources, 13, "known from", text=True, wrap=16),
    Datum("sources", lambda line: [source.value for source in line.run.merged.sources]),
    Datum(
        "contradictions",
        lambda line: [
            {"field": clash.field, "kept": clash.kept.value, "other": clash.other.value}
            for clash in line.run.merged.contradictions
        ],
    ),
    *phase_fields(lambda line: line.run.phases, lambda line: line.run.failed),
    Datum("", _phases, 15, "in, run, out", text=True, wrap=24),
    Datum("result", lambda line: line.row.result or None),
    Datum("amounts", lambda line: line.run.amounts, unit=AMOUNTS),
)
_FREE = {"all": "all, no job runs", "part": "what is free beside jobs", "none": ""}


def _own_fields(story: Story) -> tuple[Datum[OwnSpan], ...]:
    gpus = bool(story.pilot.offered[GPU])
    return (
        Datum("start", lambda part: part.start_us, 1, "from (UTC)", TIME, name=True),
        Datum("end", lambda part: part.end_us, 2, "to (UTC)", TIME, name=True),
        Datum("duration", lambda part: part.end_us - part.start_us, 3, "for", LENGTH, text=True),
        Datum("settled", lambda part: part.category is not None),
        Datum("category", lambda part: part.category, 4, unit=CATEGORY, text=True),
        Datum("free", lambda p: p.free, 5, "of the pilot", cell=lambda p: _FREE[p.free], text=True),
        Datum("", lambda part: hours(part.amounts[CPU], 2), 6, "hours"),
        Datum("", lambda part: hours(part.amounts[GPU], 2) if gpus else "", 7, "GPU hours"),
        Datum("", _evidence, 8, "evidence", text=True),
        Datum("evidence", lambda part: "estimated" if part.estimated.cpu else "measured"),
        Datum("gpu_evidence", lambda part: "estimated" if part.estimated.gpu else "measured"),
        Datum("amounts", lambda part: part.amounts, unit=AMOUNTS),
    )


_CORRECTION: tuple[Datum[PilotCorrection], ...] = (
    Datum("made", lambda made: made.time_us, 1, "made (UTC)", TIME, name=True),
    Datum("hour", lambda made: made.hour * HOUR_US, 2, "hour (UTC)", TIME, name=True),
    Datum("", lambda made: f"{made.series.resource} {made.series.measure}", 3, "of", text=True),
    Datum("resource", lambda made: made.series.resource),
    Datum("measure", lambda made: made.series.measure),
    Datum("category", lambda made: made.series.category, 4, unit=CATEGORY, text=True),
    Datum("outcome", lambda made: made.series.outcome or None, 5, text=True),
    Datum("evidence", lambda made: made.series.evidence),
    Datum("", lambda made: f"{made.micros / HOUR_US:+.4f}", 6, "hours"),
    Datum("seconds", lambda made: seconds(made.micros)),
    Datum("cause", lambda made: made.cause, 7, text=True, wrap=24),
)


def _sums(story: Story) -> Table:
    """Return where its time went; a line has an amount for each kind, and perhaps its share."""
    headers: dict[Kind, str] = {}
    for kind in KINDS:
        resource, measure = kind
        if measure == "resource" and (resource == "cpu" or story.pilot.offered[kind]):
            headers[kind] = f"{resource} {'core' if resource == 'cpu' else 'chip'}-hours"
        elif measure == "canonical" and story.pilot.offered[kind]:
            if _measures_agree(story, resource):
                headers[resource, "resource"] += " = canonical"
            else:
                headers[kind] = f"{resource} canonical"

    def line(label: str, amounts: Mapping[Kind, str]) -> dict[object, str]:
        return {"label": label, **{kind: amounts[kind] for kind in headers}}

    settled, lines = story.pilot.settled, []
    for category in CATEGORIES:
        micros = {kind: settled.get((*kind, category), 0) for kind in KINDS}
        shares = {kind: ratio(micros[kind], of_kind(settled, kind)) for kind in KINDS}
        amounts = {kind: hours(amount, 4) for kind, amount in micros.items()}
        cells = line(category_cell(category), amounts)
        lines.append(cells | {(kind, "share"): percent(share) for kind, share in shares.items()})
    for label, totals in (("not settled", story.unsettled), ("total", story.pilot.offered)):
        lines.append(line(label, {kind: hours(totals[kind], 4) for kind in KINDS}))
    left = {kind: f"{exact_seconds(us)} s" if us else "0" for kind, us in story.residual.items()}
    lines.append(line("residual", left))

    def column(header: str, key: object, **layout: Any) -> Column[dict[object, str]]:
        return Column(header, lambda line: line.get(key, ""), **layout)

    columns = [column("posted, hours", "label", name=True)]
    for kind, header in headers.items():
        columns += [column(header, kind), column("share", (kind, "share"), share=True)]
    return table("Where its time went", columns, lines)


def _measures_agree(story: Story, resource: Resource) -> bool:
    """Return whether both measures are the same in all that is shown of them."""
    shown = [
        [
            *(story.pilot.settled.get((resource, measure, category), 0) for category in CATEGORIES),
            *(
                record[resource, measure]
                for record in (story.unsettled, story.pilot.offered, story.residual)
            ),
        ]
        for measure in MEASURES
    ]
    return shown[0] == shown[1]


def _evidence(own_span: OwnSpan) -> str:
    if own_span.category is Category.UNCLASSIFIED:
        return "it is not known what it ran"
    cpu, gpu, _ = own_span.estimated
    if not own_span.amounts["gpu", "resource"] or cpu == gpu:
        return "estimated" if cpu else "measured"
    return "estimated (CPU)" if cpu else "estimated (GPUs)"


def phases_text(pilot: StoredPilot, until_us: int) -> str:
    """Return a pilot's phases for people; empty if there is nothing to say."""
    phases = pilot.phases(until_us)
    if phases is None:
        failed = pilot.row.validation is Validation.FAILED
        return "how long it validated, and then slept, is not known" if failed else ""
    text = f"validated for {span(phases.validating_us)}"
    if phases.asleep is not None and phases.asleep_us is not None:
        text += (
            f", then asleep for {span(phases.asleep_us)} from {short(phases.asleep[0])} on "
            "(deliberately, so that its successors do not drain the site)"
        )
    return f"{text}; begin or end is estimated" if phases.estimated_us else text


def phases_json(phases: ValidationPhases | None) -> dict[str, Any]:
    """Return it for JSON; null is what is not known, or did not happen."""
    asleep = phases and phases.asleep
    return {
        "validating_seconds": seconds(phases and phases.validating_us),
        **both("asleep_from", asleep and asleep[0]),
        "asleep_seconds": seconds(phases and phases.asleep_us),
        "validating_and_asleep_estimated_seconds": seconds(phases and phases.estimated_us),
    }


def story_json(story: Story) -> dict[str, Any]:
    own = _own_fields(story)
    return {
        "pilot": record(story.pilot),
        "steps": [
            {**both("from", step.at_us), **step.size._asdict()} for step in story.pilot.row.steps
        ],
        "runs": [fields.record(_RUN, line) for line in _run_lines(story)],
        **both("validation_end", story.pilot.row.validation_end_us),
        **phases_json(story.pilot.phases(story.pilot.life_now.effective_end_us)),
        "rules": [rule.as_json() for rule in story.rules],
        "own_time": [fields.record(own, part) for part in story.own],
        "corrections": [fields.record(_CORRECTION, made) for made in story.corrections],
        "corrections_complete": story.corrections_complete,
        "total": kinds_json(story.pilot.offered),
        "unsettled": kinds_json(story.unsettled),
        "residual": kinds_json(story.residual),
    }
