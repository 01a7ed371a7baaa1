"""The trace of a pilot: what it waited for, its validation, its idle times, its end.

All spans are settled when the pilot is closed (``PilotRow.closed``); before that there are none,
unless ``now_us`` says until when to show them.  Then those are settled whose time is posted.
Its runs are links of the ``pilot`` span to the runs' spans, at most ``LINKS``.
Times are whole microseconds since the epoch.

- ``requested``: from its submission until its factory handed it to the site; ``pending``: from then
  until it began.  Known where a factory's queue is read.
- ``validation``: from its begin until its last script, with ``test`` for those of its tests that
  failed, and the longest; ``startup``: from then until its startd
  began.  ``idle``: when it ran no job, between its startd's begin and its retirement, or end.
- ``retirement``: when it took no more jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gwmond.model.factory.jobs import AGE_US, QueueRecord
from gwmond.model.pilot_life import Category, Interval, Validation, beside, union
from gwmond.model.pilots.file_facts import QueueState
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.runs.outcomes import SUMMARISED
from gwmond.model.times import SECOND_US
from gwmond.traces.attributes import SpanTimes, attributes, made, place_of, run_number, sane, within
from gwmond.traces.contexts import is_traced, job_context, job_fact, pilot_context, run_identity
from gwmond.traces.spans import Link, Span, SpanName, Value, span_id

LINKS, IDLE = 1000, 200
"""Links to runs, and idle stretches: the first, and the longest; the rest is counted."""

_STATES = {SpanName.IDLE: "available", SpanName.REQUESTED: "offline", SpanName.PENDING: "offline"}
_GUARD_US = 3600 * SECOND_US  # by which clocks of a factory and a node may differ


class _SpanPart(NamedTuple):
    kind: SpanName
    start_us: int
    end_us: int
    error: str = ""


def pilot_spans(
    pilot: PilotRow,
    runs: Sequence[RunRow],
    join_at_most: int,
    queue: QueueRecord | None = None,
    now_us: int | None = None,
    posted: Sequence[Interval] = (),
) -> list[Span]:
    """Return the spans of a closed pilot; ``queue``: its factory's records of it, if known.

    ``posted``: when its time is, sorted and disjoint; it matters while the pilot is not closed.
    """
    start = sane(pilot.start_us)
    if start is None or not (pilot.closed or now_us):
        return []
    ended = sane(now_us if pilot.end_us is None else pilot.end_us)
    end = start if ended is None else max(start, ended)
    waited = list(_waited(queue, start)) if queue is not None else []
    whole = min((start, *(part.start_us for part in waited))), end
    parts = [*waited, *_parts(pilot, runs, (start, end))]
    idle = [part for part in parts if part.kind is SpanName.IDLE]
    longest = sorted(idle, key=lambda part: (part.start_us - part.end_us, part.start_us))[:IDLE]
    spans = [_pilot(pilot, runs, join_at_most, whole, len(idle) - len(longest))]
    root = spans[0].context
    for part in parts:
        times = within(part.start_us, part.end_us, whole)
        if times is None or (part.kind is SpanName.IDLE and part not in longest):
            continue
        own = root._replace(
            span_id=span_id(part.kind, root.trace_id.hex(), str(part.start_us // SECOND_US))
        )
        values: dict[str, Value | None] = {
            **place_of(pilot),
            "cicd.worker.state": _STATES.get(part.kind),
        }
        if part.kind is SpanName.VALIDATION:
            values |= _validated(pilot)
        settled = pilot.closed or any(
            first <= part.start_us and part.end_us <= last for first, last in posted
        )
        span = made(part.kind, own, root.span_id, times, values, part.error, settled=settled)
        spans.append(span)
        if part.kind is SpanName.VALIDATION:
            spans += _tests(pilot, span, settled=settled)
    return spans


def _tests(pilot: PilotRow, validation: Span, *, settled: bool) -> Iterator[Span]:
    """Yield the tests of a validation that are known."""
    interval, context = (validation.start_us, validation.end_us), validation.context
    output = pilot.facts.output
    for test in output.tests if output is not None else ():
        times = within(test.start_us, test.end_us, interval)
        if times is None:
            continue
        identity = context.trace_id.hex(), str(test.start_us // SECOND_US), test.name
        values = {
            **place_of(pilot),
            "gwms.validation.test": test.name,
            "cicd.pipeline.task.run.result": "error" if test.failure else "success",
        }
        own = context._replace(span_id=span_id(SpanName.TEST, *identity))
        yield made(
            *(SpanName.TEST, own, context.span_id, times, values, test.failure), settled=settled
        )


def _pilot(
    pilot: PilotRow, runs: Sequence[RunRow], join_at_most: int, whole: Interval, left_out: int
) -> Span:
    real = [run for run in runs if run.outcome is None or run.outcome.label != SUMMARISED]
    traced = sorted(filter(is_traced, real), key=lambda run: (run.start_us, run.key))
    size = pilot.steps[-1].size if pilot.steps else None
    values = {
        **place_of(pilot),
        "gwmond.category": _category(pilot),
        "gwmond.evidence": "estimated" if pilot.assumed else "measured",
        "gwmond.left_out": left_out or None,
        "gwmond.runs": len(real) + pilot.runs_pruned,
        "htcondor.slot.cores": size and size.cores,
        "htcondor.slot.memory": size and size.memory_mib,
        "htcondor.slot.gpus": (size and size.gpus) or None,
    }
    root, times = pilot_context(pilot.identity), SpanTimes(*whole, pilot.start_us > whole[1])
    span = made(SpanName.PILOT, root, b"", times, values, _error(pilot), settled=pilot.closed)
    return span._replace(
        links=tuple(_link(run, join_at_most) for run in traced[:LINKS]),
        dropped_links=max(0, len(traced) - LINKS) + pilot.runs_pruned,
    )


def _waited(queue: QueueRecord, start_us: int) -> Iterator[_SpanPart]:
    """Yield what it waited for, from its latest submission on, by its factory's queue."""
    plausible = range(start_us - AGE_US, start_us + _GUARD_US)
    before = [event for event in queue.events if event.at_us in plausible and sane(event.at_us)]
    submitted = [event.at_us for event in before if event.state is QueueState.SUBMITTED]
    if not submitted:
        return
    since = submitted[-1]
    handed = [
        event.at_us
        for event in before
        if event.state is QueueState.PENDING and event.at_us >= since
    ]
    if handed:
        yield _SpanPart(SpanName.REQUESTED, min(since, start_us), min(handed[0], start_us))
    yield _SpanPart(SpanName.PENDING, min(handed[0] if handed else since, start_us), start_us)


def _parts(pilot: PilotRow, runs: Sequence[RunRow], life: Interval) -> Iterator[_SpanPart]:
    start, end = life
    validated = sane(pilot.validation_end_us)
    began = pilot.facts.ads.began_us if pilot.facts.ads is not None else None
    began = sane(began if began is not None else pilot.identity.started * SECOND_US)
    error = _error(pilot)
    if validated is not None:
        yield _SpanPart(SpanName.VALIDATION, start, validated, error)
    if error:
        return
    ready = start if began is None else min(max(began, start), end)
    if began is not None and ready > start:
        yield _SpanPart(
            SpanName.STARTUP, start if validated is None else min(validated, ready), ready
        )
    retired = sane(pilot.retire_us)
    last = end if retired is None else min(max(retired, ready), end)
    held = ((run.start_us, run.as_run.held_until_us) for run in runs)
    busy = ((since, end if until is None else until) for since, until in held)
    if not pilot.runs_pruned:
        for since, until in beside((ready, last), union(busy)):
            yield _SpanPart(SpanName.IDLE, since, until)
    if last < end:
        yield _SpanPart(SpanName.RETIREMENT, last, end)


def _link(run: RunRow, join_at_most: int) -> Link:
    outcome = run.outcome
    context = job_context(run.key.job, job_fact([run]), join_at_most).child(
        SpanName.RUN, run_identity(run)
    )
    seconds = None if run.end_us is None else max(0, run.end_us - run.start_us) / SECOND_US
    values = {
        "gwmond.category": outcome.category.value if outcome else None,
        "gwmond.outcome": outcome.label if outcome else None,
        "gwmond.run.seconds": seconds,
        "htcondor.job.id": run.key.job,
        "htcondor.run.number": run_number(run),
    }
    return Link(context, attributes(values))


def _category(pilot: PilotRow) -> str | None:
    """Return where most of the pilot's own time went, None if nothing is posted of that."""
    own = [
        (micros, category.value)
        for (resource, measure, category, outcome), micros in pilot.settled.items()
        if (resource, measure, outcome) == ("cpu", "canonical", "")
    ]
    return max(own)[1] if own else None


def _error(pilot: PilotRow) -> str:
    """Return the class of a failed validation, empty where it did not fail."""
    if pilot.validation is not Validation.FAILED or pilot.ran_jobs:
        return ""
    return pilot.failure.partition(" ")[0] or Category.VALIDATION_FAILS.value


def _validated(pilot: PilotRow) -> dict[str, Value | None]:
    output = pilot.facts.output
    return {
        "gwmond.left_out": (output and output.more_tests) or None,
        "gwms.validation.test": pilot.failure.partition(" ")[2],
        "cicd.pipeline.task.run.result": "error" if _error(pilot) else "success",
    }
