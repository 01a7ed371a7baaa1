"""One pilot's life as a document: a picture of lanes, tables of its parts, and records.

In JSON times are there twice, amounts are seconds, what is not known is null.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from gwmond.model.attempts import Source
from gwmond.model.pilot_facts import MEASURES, Category
from gwmond.model.stored_pilots import PilotCorrection
from gwmond.model.times import HOUR_US
from gwmond.model.units import Resource
from gwmond.reports.categories import CATEGORIES, CPU, GPU, KINDS, LOOK, Kind, kinds_json, of_kind
from gwmond.reports.ledger_reading import Age
from gwmond.reports.periods import both, short, span
from gwmond.reports.pilot_story import OwnSpan, RunStory, Story
from gwmond.reports.pilots import record, size_text
from gwmond.reports.render.document import Document, Paragraph, Part, Spans
from gwmond.reports.render.formats import exact_seconds, hours, percent, ratio, seconds, words
from gwmond.reports.render.table import Cell, Column, Table, table
from gwmond.reports.timeline import BLANK, axis, ends, lanes
from gwmond.reports.validation_phases import phases_json, phases_of, validation_text

_LABEL = 8
_ORIGINS = {
    "collector": "",
    "jobs": "; no collector showed it, records of jobs tell",
    "files": "; no collector showed it, its factory's files tell",
}


def document(story: Story, age: Age, width: int, most: int) -> Document:
    """Return it in all forms; the picture has so many columns, and at most so many runs."""
    return Document(
        lambda: _parts(story, age, width, most),
        lambda: {**age.as_json(), **story_json(story, age.now_us)},
    )


def _parts(story: Story, age: Age, width: int, most: int) -> Iterator[Part]:
    yield from _head(story, age)
    yield from _picture(story, width, most)
    yield from _runs(story)
    if story.own:
        yield table("The pilot's own time (hours: canonical)", _own_columns(story), story.own)
    if story.corrections:
        yield table("Corrections of what was settled before", _CORRECTIONS, story.corrections)
    if not story.corrections_complete:
        yield Paragraph(
            "(the ledger has many corrections since: older ones may not be listed)", "soft"
        )
    yield _sums(story)


def _head(story: Story, age: Age) -> Iterator[Part]:
    row, key = story.summary.row, story.summary.row.identity
    yield Paragraph(age.text)
    yield Paragraph(f"pilot {row.id}  {key.name}", "heading")
    yield Paragraph(f"{key.key.site}, entry {key.key.entry}, node {key.node or '?'}")
    job = f", its job {key.factory_job}" if key.factory_job else ""
    yield Paragraph(f"group {key.group}, factory {key.factory}{job}")
    yield Paragraph(f"{ends(story)}; {size_text(story.summary)}{_ORIGINS[key.origin]}")
    retire, die = story.summary.left_us(age.now_us)
    left = "".join(
        f"; {what} in {span(time)}" if time >= 0 else f"; should have {past} {span(-time)} ago"
        for what, past, time in (("retires", "retired", retire), ("dies", "died", die))
        if time is not None
    )
    for rule in story.rules:
        yield Paragraph(rule.line(), "caution")
    yield Paragraph(f"{story.summary.doing}{left}; {validation_text(row, story.life.until_us)}")


def _picture(story: Story, width: int, most: int) -> Iterator[Part]:
    columns = max(20, width - _LABEL - 1)
    drawn = lanes(story, columns, most)
    ticks, times = axis(story.life.start_us, story.life.until_us, columns)
    yield Paragraph("")
    yield Spans([Cell(f"{'':{_LABEL}}{times}", "bright_black")])
    yield Spans([Cell(f"{'':{_LABEL}}{ticks}", "bright_black")])
    for lane in drawn:
        yield Spans(
            [
                Cell(f"{lane.label:<{_LABEL}}"),
                *(
                    Cell(
                        mark.text,
                        _style(mark.category) if mark.text not in BLANK else "bright_black",
                    )
                    for mark in lane.marks
                ),
            ]
        )
    if len(story.runs) > most:
        yield Paragraph(f"({len(story.runs) - most} more runs: --lanes {len(story.runs)})")
    if pruned := story.summary.row.attempts_pruned:
        yield Paragraph(f"({pruned} runs were taken out by retention, so own time is not drawn)")
    used = {mark.category: None for lane in drawn for mark in lane.marks if mark.text not in BLANK}
    legend = [Cell(" " * _LABEL)]
    for category in used:
        legend.append(Cell(LOOK[category].letter, _style(category)))
        legend.append(Cell(f" {words(category) if category else 'not settled'}   "))
    yield Spans(legend)


def _style(category: Category | None) -> str:
    return f"reverse {LOOK[category].colour}"


class _Numbered(NamedTuple):
    """A run with its number on this pilot, and when it ended, or until when it is known."""

    number: int
    run: RunStory
    end_us: int


def _runs(story: Story) -> Iterator[Part]:
    if not story.runs:
        yield Paragraph("No job is known to have run on it.", "heading")
        return
    runs = [
        _Numbered(n, run, story.life.until_us if run.row.end_us is None else run.row.end_us)
        for n, run in enumerate(story.runs, 1)
    ]
    yield table("Runs of jobs (hours: canonical)", _run_columns(story), runs)
    decided = {run.rule or "?": run.rule_source for run in story.runs if run.outcome}
    for rule, source in sorted(decided.items()):
        yield Paragraph(f"{rule}: {source}", "soft")
    for number, run in enumerate(story.runs, 1):
        for contradiction in run.merged.contradictions:
            kept, other = contradiction.kept.value, contradiction.other.value
            text = f"run {number}: {kept} and {other} differ on {contradiction.field}; "
            yield Paragraph(f"{text}{kept} is believed", "caution")


def _run_columns(story: Story) -> list[Column[_Numbered]]:
    gpus = bool(story.total[GPU])

    def sources(line: _Numbered) -> str:
        merged = line.run.merged.sources
        return ", ".join(source.value for source in Source if source in merged)

    columns: list[Column[_Numbered]] = [
        Column("run", lambda line: str(line.number), name=True),
        Column("from (UTC)", lambda line: short(line.run.row.start_us), text=True),
        Column("to (UTC)", lambda line: short(line.run.row.end_us, "runs"), text=True),
        Column("for", lambda line: span(line.end_us - line.run.row.start_us), text=True),
        Column("category", lambda line: _category(line.run.category), text=True),
        Column(
            "outcome", lambda line: line.run.outcome.label if line.run.outcome else "", text=True
        ),
        Column("user", lambda line: line.run.row.user, text=True),
        Column("cores", lambda line: f"{line.run.row.size.cores:g}"),
        Column("hours", lambda line: hours(line.run.amounts.get(CPU, 0), 2)),
        Column("GPU hours", lambda line: hours(line.run.amounts.get(GPU, 0), 2) if gpus else ""),
        Column("decided by", lambda line: line.run.rule, text=True),
        Column("codes", lambda line: _codes(line.run), text=True, wrap=24),
        Column("told by", sources, text=True, wrap=16),
        Column(
            "evidence",
            lambda line: line.run.outcome.evidence if line.run.outcome else "",
            text=True,
        ),
        Column(
            "job",
            lambda line: f"{line.run.row.key.job} run {line.run.row.key.number or '?'}",
            text=True,
        ),
    ]
    return columns


def _own_columns(story: Story) -> list[Column[OwnSpan]]:
    gpus = bool(story.total[GPU])
    return [
        Column("from (UTC)", lambda part: short(part.start_us), name=True),
        Column("to (UTC)", lambda part: short(part.end_us), name=True),
        Column("for", lambda part: span(part.end_us - part.start_us), text=True),
        Column("category", lambda part: _category(part.category), text=True),
        Column("of the pilot", lambda part: _FREE[part.free], text=True),
        Column("hours", lambda part: hours(part.amounts[CPU], 2)),
        Column("GPU hours", lambda part: hours(part.amounts[GPU], 2) if gpus else ""),
        Column("evidence", _evidence, text=True),
    ]


_FREE = {"all": "all, no job runs", "part": "what is free beside jobs", "none": ""}
_CORRECTIONS: tuple[Column[PilotCorrection], ...] = (
    Column("made (UTC)", lambda made: short(made.time_us), name=True),
    Column("hour (UTC)", lambda made: short(made.hour * HOUR_US), name=True),
    Column("of", lambda made: f"{made.series.resource} {made.series.measure}", text=True),
    Column("category", lambda made: _category(made.series.category), text=True),
    Column("outcome", lambda made: made.series.outcome, text=True),
    Column("hours", lambda made: f"{made.micros / HOUR_US:+.4f}"),
    Column("cause", lambda made: made.cause, text=True, wrap=24),
)


class _Sum(NamedTuple):
    """A line of the sums: an amount for each kind, and perhaps its share."""

    label: str
    amounts: dict[Kind, str]
    shares: dict[Kind, str] = {}  # noqa: RUF012 (it is never changed)


def _sums(story: Story) -> Table:
    headers: dict[Kind, str] = {}
    for kind in KINDS:
        resource, measure = kind
        if measure == "resource" and (resource == "cpu" or story.total[kind]):
            headers[kind] = f"{resource} {'core' if resource == 'cpu' else 'chip'}-hours"
        elif measure == "canonical" and story.total[kind]:
            if _measures_agree(story, resource):
                headers[resource, "resource"] += " = canonical"
            else:
                headers[kind] = f"{resource} canonical"
    columns: list[Column[_Sum]] = [Column("booked, hours", lambda line: line.label, name=True)]
    for kind, header in headers.items():
        columns += _sum_columns(kind, header)
    return table("Where its time went", columns, _sum_lines(story))


def _sum_columns(kind: Kind, header: str) -> list[Column[_Sum]]:
    return [
        Column(header, lambda line: line.amounts[kind]),
        Column("share", lambda line: line.shares.get(kind, ""), share=True),
    ]


def _sum_lines(story: Story) -> Iterator[_Sum]:
    settled = story.summary.settled
    for category in CATEGORIES:
        micros = {kind: settled.get((*kind, category), 0) for kind in KINDS}
        shares = {kind: ratio(micros[kind], of_kind(settled, kind)) for kind in KINDS}
        yield _Sum(
            _category(category),
            {kind: hours(amount, 4) for kind, amount in micros.items()},
            {kind: percent(share) for kind, share in shares.items()},
        )
    yield _Sum("not settled", {kind: hours(story.unsettled[kind], 4) for kind in KINDS})
    yield _Sum("total", {kind: hours(story.total[kind], 4) for kind in KINDS})
    left = {kind: story.residual[kind] for kind in KINDS}
    yield _Sum(
        "residual", {kind: f"{exact_seconds(us)} s" if us else "0" for kind, us in left.items()}
    )


def _measures_agree(story: Story, resource: Resource) -> bool:
    """Return whether both measures are the same in all that is shown of them."""
    shown = [
        [
            *(
                story.summary.settled.get((resource, measure, category), 0)
                for category in CATEGORIES
            ),
            *(
                record[resource, measure]
                for record in (story.unsettled, story.total, story.residual)
            ),
        ]
        for measure in MEASURES
    ]
    return shown[0] == shown[1]


def _category(category: Category | None) -> Cell:
    return Cell(words(category) if category else "not settled", LOOK[category].colour)


def _codes(run: RunStory) -> str:
    codes = [f"{name.replace('_', ' ')} {code}" for name, code in run.codes.items()]
    return ", ".join([*codes, *([run.reason.value] if run.reason else [])])


def _evidence(own_span: OwnSpan) -> str:
    if own_span.category is Category.UNCLASSIFIED:
        return "nothing tells what it ran"
    cpu, gpu, _ = own_span.estimated
    if not own_span.amounts["gpu", "resource"] or cpu == gpu:
        return "estimated" if cpu else "measured"
    return "estimated (CPU)" if cpu else "estimated (GPUs)"


def story_json(story: Story, now_us: int) -> dict[str, Any]:
    """Return all of it."""
    return {
        "pilot": record(story.summary, now_us),
        "steps": [
            {**both("from", step.at_us), **step.size._asdict()} for step in story.summary.row.steps
        ],
        "runs": [_run(run) for run in story.runs],
        **both("validation_end", story.summary.row.validation_end_us),
        **phases_json(phases_of(story.summary.row, story.life.until_us)),
        "rules": [rule.as_json() for rule in story.rules],
        "own_time": [_own(part) for part in story.own],
        "corrections": [_correction(correction) for correction in story.corrections],
        "corrections_complete": story.corrections_complete,
        "total": kinds_json(story.total),
        "unsettled": kinds_json(story.unsettled),
        "residual": kinds_json(story.residual),
    }


def _run(run: RunStory) -> dict[str, Any]:
    row, outcome = run.row, run.outcome
    length = None if row.end_us is None else row.end_us - row.start_us
    return {
        "job": row.key.job,
        "run": row.key.number,
        **both("start", row.start_us),
        **both("end", row.end_us),
        "duration_seconds": seconds(length),
        "user": row.user or None,
        "job_group": row.job_group or None,
        "cores": row.size.cores,
        "memory_mib": row.size.memory_mib,
        "gpus": row.size.gpus,
        "settled": outcome is not None,
        "category": outcome.category.value if outcome else None,
        "outcome": outcome.label if outcome else None,
        "evidence": outcome.evidence if outcome else None,
        "rule": run.rule or None,
        "rule_source": run.rule_source or None,
        "codes": run.codes,
        "reason": run.reason.value if run.reason else None,
        "sources": [source.value for source in run.merged.sources],
        "contradictions": [
            {
                "field": contradiction.field,
                "kept": contradiction.kept.value,
                "other": contradiction.other.value,
            }
            for contradiction in run.merged.contradictions
        ],
        "result": row.result or None,
        "amounts": kinds_json(dict(run.amounts)),
    }


def _own(own_span: OwnSpan) -> dict[str, Any]:
    return {
        **both("start", own_span.start_us),
        **both("end", own_span.end_us),
        "duration_seconds": seconds(own_span.end_us - own_span.start_us),
        "settled": own_span.category is not None,
        "category": own_span.category.value if own_span.category else None,
        "free": own_span.free,
        "evidence": "estimated" if own_span.estimated.cpu else "measured",
        "gpu_evidence": "estimated" if own_span.estimated.gpu else "measured",
        "amounts": kinds_json(dict(own_span.amounts)),
    }


def _correction(pilot_correction: PilotCorrection) -> dict[str, Any]:
    series = pilot_correction.series
    return {
        **both("made", pilot_correction.time_us),
        **both("hour", pilot_correction.hour * HOUR_US),
        "resource": series.resource,
        "measure": series.measure,
        "category": series.category.value,
        "outcome": series.outcome or None,
        "evidence": series.evidence,
        "seconds": seconds(pilot_correction.micros),
        "cause": pilot_correction.cause,
    }
