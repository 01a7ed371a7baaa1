"""A pilot's life as JSON: times twice, amounts in seconds, what is not known is null."""

from __future__ import annotations

from typing import Any

from gwmond.model.stored_pilots import PilotCorrection
from gwmond.model.times import HOUR_US
from gwmond.reports.category_time import kinds_json, seconds
from gwmond.reports.periods import both
from gwmond.reports.pilot_story import OwnSpan, Run, Story
from gwmond.reports.pilot_tables import as_json
from gwmond.reports.validation_phases import phases_json, phases_of


def story_json(story: Story, now_us: int) -> dict[str, Any]:
    """Return all of it."""
    return {
        "pilot": as_json(story.line, now_us),
        "steps": [
            {**both("from", step.at_us), **step.size._asdict()} for step in story.line.row.steps
        ],
        "runs": [_run(run) for run in story.runs],
        **both("validation_end", story.line.row.validation_end_us),
        **phases_json(phases_of(story.line.row, story.life.until_us)),
        "rules": [rule.as_json() for rule in story.rules],
        "own_time": [_own(estimated) for estimated in story.own],
        "corrections": [_correction(correction) for correction in story.corrections],
        "corrections_complete": story.corrections_complete,
        "total": kinds_json(story.total),
        "unsettled": kinds_json(story.unsettled),
        "residual": kinds_json(story.residual),
    }


def _run(run: Run) -> dict[str, Any]:
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
