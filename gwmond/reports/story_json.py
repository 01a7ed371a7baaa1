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
        "rules": [of.as_json() for of in story.rules],
        "own_time": [_own(of) for of in story.own],
        "corrections": [_correction(of) for of in story.corrections],
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
        "sources": [of.value for of in run.merged.sources],
        "contradictions": [
            {"field": of.field, "kept": of.kept.value, "other": of.other.value}
            for of in run.merged.contradictions
        ],
        "result": row.result or None,
        "amounts": kinds_json(dict(run.amounts)),
    }


def _own(of: OwnSpan) -> dict[str, Any]:
    return {
        **both("start", of.start_us),
        **both("end", of.end_us),
        "duration_seconds": seconds(of.end_us - of.start_us),
        "settled": of.category is not None,
        "category": of.category.value if of.category else None,
        "free": of.free,
        "evidence": "estimated" if of.estimated.cpu else "measured",
        "gpu_evidence": "estimated" if of.estimated.gpu else "measured",
        "amounts": kinds_json(dict(of.amounts)),
    }


def _correction(of: PilotCorrection) -> dict[str, Any]:
    series = of.series
    return {
        **both("made", of.time_us),
        **both("hour", of.hour * HOUR_US),
        "resource": series.resource,
        "measure": series.measure,
        "category": series.category.value,
        "outcome": series.outcome or None,
        "evidence": series.evidence,
        "seconds": seconds(of.micros),
        "cause": of.cause,
    }
