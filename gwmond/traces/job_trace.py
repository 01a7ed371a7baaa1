"""The trace of a job: ``job``, with a ``queue`` and a ``run`` for each of its runs.

**When a span is settled** (it never changes again but by a correction, which is not exported):

- a run's subtree (``run``, ``stage-in``, ``execute``, ``stage-out``) when the run is over and its
  outcome decided: ``not RunRow.open``;
- the ``queue`` before a run when that run and the one before it are settled, in any order;
- ``job``, and the ``queue`` after its last run, when a schedd's history has the job, and all of its
  runs are settled.

Only settled spans are returned, unless ``now_us`` says until when to show the others; these are
marked ``gwmond.settled`` false, and never exported.  ``of_run`` gives what one run settles,
``last`` what the job's leaving settles, ``spans`` what is shown.  A job that never ran has no
record, and no trace.  Times are whole microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from gwmond.model.pilot_life import Category, Outcome, RunKey
from gwmond.model.pilots.stored_pilots import PilotId, PilotRow, RunRow
from gwmond.model.runs.phases import Phase, moved_bytes, ranked, recorded
from gwmond.model.runs.run_facts import RunFact, Transfer
from gwmond.model.times import SECOND_US
from gwmond.traces.attributes import (
    SpanTimes,
    attributes,
    error_of,
    made,
    place_of,
    result_of,
    run_number,
    sane,
    within,
)
from gwmond.traces.contexts import job_context, job_fact, pilot_context, run_identity
from gwmond.traces.spans import Event, Link, Span, SpanName, Value
from gwmond.traces.wait_events import WaitsByWants, waiting_events, wants_of

Values: TypeAlias = dict[str, Value | None]

RUNS = 1000
"""So many runs are shown, the latest; all are counted, and exported one by one."""

_LEFT = {3: "removed", 4: "completed"}  # JobStatus
_END = "end"
"""The identity of the wait after the last run."""


class JobTrace:
    """The trace of one job, from all of its runs, and those of their pilots that are known.

    ``waits``: for which reasons jobs that want the same waited, as far as known.
    """

    def __init__(
        self,
        runs: Sequence[RunRow],
        pilots: Mapping[PilotId, PilotRow],
        join_at_most: int,
        now_us: int | None = None,
        waits: WaitsByWants = MappingProxyType({}),
    ) -> None:
        # A run that two pilots are said to have had: the better known.
        ranked = sorted(runs, key=lambda run: (run.outcome is not None, run.end_us or 0, run.pilot))
        once = {run.key: run for run in ranked if sane(run.start_us) is not None}
        self._runs = sorted(once.values(), key=lambda run: (run.start_us, run.key))
        self._indexes = {run.key: index for index, run in enumerate(self._runs)}
        self._pilots = pilots
        self._now_us, self._waits = now_us, waits
        self._fact = job_fact(self._runs)
        self.context = job_context(runs[0].key.job, self._fact, join_at_most)
        self._ends: list[int] = []  # the latest end of the runs so far
        for run in self._runs:
            end = self._times(run).end_us
            self._ends.append(max(end, self._ends[-1]) if self._ends else end)

    def spans(self) -> list[Span]:
        """Return the job's spans, then those of its latest runs in the order of time."""
        runs = self._runs[-RUNS:]
        return [*self.last(), *(span for run in runs for span in self.of_run(run.key))]

    def last(self) -> list[Span]:
        """Return the job's span, and its last wait; none while it is in the queue."""
        left_us, settled = sane(self._fact.left_us), not any(run.open for run in self._runs)
        settled = settled and left_us is not None
        if not self._runs or not (settled or self._now_us):
            return []
        run = self._runs[-1]
        done = run.outcome is not None and run.outcome.category is Category.GOODPUT
        end = left_us if left_us is not None else self._ends[-1] if done else self._now_us
        whole = self._whole(end)
        removed = self._fact.status == 3
        error = "removed" if removed else error_of(run.outcome)
        size = {
            "htcondor.job.procs": self._fact.procs,
            "htcondor.job.status": _LEFT.get(self._fact.status or 0),
            "gwmond.runs": len(self._runs),
            "gwmond.outcome": run.outcome.label if run.outcome else None,
            "cicd.pipeline.task.run.result": "cancellation" if removed else result_of(run.outcome),
        }
        context, own = self.context, self.context.own
        values = {**self._job_values(run), **size}
        span = made(SpanName.JOB, own, context.parent_id, whole, values, error, settled=settled)
        submitter = context.submitter
        span = span._replace(
            trace_state=context.trace_state,
            links=() if submitter is None else (Link(submitter),),
        )
        if self._fact.status == 4 or end is None or end <= self._ends[-1]:
            return [span]
        waited = SpanTimes(self._ends[-1], whole.end_us)
        return [span, self._queue(len(self._runs), _END, waited, settled=settled)]

    def of_run(self, key: RunKey) -> list[Span]:
        """Return the wait before a run, the run and its parts; none while it is open.

        The wait is left out while the run before is open.
        """
        index = self._indexes.get(key)
        if index is None or (self._runs[index].open and self._now_us is None):
            return []
        run = self._runs[index]
        times, identity = self._times(run), run_identity(run)
        before = self._waited_since(index)
        settled = not any(run.open for run in self._runs[max(index - 1, 0) : index + 1])
        spans = []
        if before is not None and (settled or self._now_us is not None):
            waited = SpanTimes(min(before, times.start_us), times.start_us)
            spans.append(self._queue(index, identity, waited, settled=settled))
        phases = phases_of(run.facts)
        shared = self._shared(run)
        span = self._run(run, identity, times, phases, shared)
        return [*spans, span, *self._stages(run, identity, span, phases, shared)]

    def wait_after(self, key: RunKey) -> RunKey | None:
        """Return before which run the wait is that follows a run; None if there is none."""
        following = self._indexes.get(key, len(self._runs)) + 1
        return self._runs[following].key if following < len(self._runs) else None

    def _waited_since(self, index: int) -> int | None:
        """Return since when a run was waited for; None if a run before it is not known."""
        if index:
            follows = _follows(self._runs[index - 1], self._runs[index])
            return self._ends[index - 1] if follows else None
        first = self._runs[0].key.shadow_start in {None, 1}
        return sane(self._fact.queued_us) if first else None

    def _times(self, run: RunRow) -> SpanTimes:
        """Return when a run was, in order; one without an end lasts until now."""
        end = sane(self._now_us if run.end_us is None else run.end_us)
        end = run.start_us if end is None else end
        return SpanTimes(run.start_us, max(end, run.start_us), end < run.start_us)

    def _whole(self, end_us: int | None) -> SpanTimes:
        """Return the job's times, within which those of all others are."""
        first = self._runs[0].start_us
        queued = sane(self._fact.queued_us)
        start = first if queued is None else min(queued, first)
        moved = queued is not None and queued > start
        return SpanTimes(start, max(end_us or 0, self._ends[-1]), moved)

    def _job_values(self, run: RunRow) -> Values:
        return {"htcondor.job.id": self.context.job, "htcondor.job.user": run.user}

    def _queue(self, index: int, identity: str, times: SpanTimes, *, settled: bool) -> Span:
        """Return a wait: how the run before it ended, and for which reasons it waited."""
        before = self._runs[index - 1] if index else None
        run = self._runs[min(index, len(self._runs) - 1)]
        values = {
            **self._job_values(run),
            "htcondor.run.number": None if identity == _END else run_number(run),
        }
        context = self.context.child(SpanName.QUEUE, identity)
        span = made(
            SpanName.QUEUE, context, self.context.own.span_id, times, values, settled=settled
        )
        key = self.context.job.partition("#")[0], wants_of(run, self._fact)
        events, dropped = waiting_events(self._waits.get(key, ()), times)
        if before is not None and before.outcome is not None:
            ending = phases_of(before.facts)
            ended = attributes({"gwmond.outcome": before.outcome.label, **ending.codes})
            events.insert(0, Event("run ended", times.start_us, ended))
        return span._replace(events=tuple(events), dropped_events=dropped)

    def _run(
        self, run: RunRow, identity: str, times: SpanTimes, phases: RunPhases, shared: Values
    ) -> Span:
        values = {
            **self._job_values(run),
            **shared,
            **phases.codes,
            **phases.exit,
            "htcondor.slot.cores": run.size.cores,
            "htcondor.slot.memory": run.size.memory_mib,
            "htcondor.slot.gpus": run.size.gpus or None,
        }
        context = self.context.child(SpanName.RUN, identity)
        parent = self.context.own.span_id
        error = error_of(run.outcome)
        span = made(
            *(SpanName.RUN, context, parent, times, values), error=error, settled=not run.open
        )
        pilot = self._pilots.get(run.pilot)
        return span._replace(links=(Link(pilot_context(pilot.identity)),) if pilot else ())

    def _shared(self, run: RunRow) -> Values:
        """Return the attributes of a run that its parts have too."""
        outcome = run.outcome
        return {
            **place_of(self._pilots.get(run.pilot)),
            "htcondor.job.id": self.context.job,
            "htcondor.run.number": run_number(run),
            "gwmond.category": outcome.category.value if outcome else None,
            "gwmond.evidence": outcome.evidence if outcome else None,
            "gwmond.outcome": outcome.label if outcome else None,
            "cicd.pipeline.task.run.result": result_of(outcome),
        }

    def _stages(
        self, run: RunRow, identity: str, parent: Span, phases: RunPhases, shared: Values
    ) -> list[Span]:
        """Return the parts of a run that are known; the last of them has the run's error."""
        interval, spans = (parent.start_us, parent.end_us), list[Span]()
        before, decided = self._transfers_before(run), phases.ended_in(run.outcome)
        for kind, start_us, end_us, transfer in phases.parts:
            times = within(start_us, end_us, interval)
            if times is None:
                continue
            values = {**shared, **(phases.exit if kind is SpanName.EXECUTE else {})}
            if transfer is not None:
                values["htcondor.transfer.bytes"] = transferred_bytes(
                    transfer, before.get(kind), run_number(run)
                )
                values["htcondor.transfer.queue_seconds"] = _waited(transfer)
            error = parent.error if kind is decided else ""
            if kind is not decided:
                values["cicd.pipeline.task.run.result"] = "success"
            context, upper = self.context.child(kind, identity), parent.context.span_id
            spans.append(made(kind, context, upper, times, values, error, settled=not run.open))
        return spans

    def _transfers_before(self, run: RunRow) -> dict[SpanName, Transfer | None]:
        """Return the transfers of the run before, if that is known."""
        index = self._indexes[run.key] - 1
        if index < 0 or not _follows(self._runs[index], run):
            return {}
        parts = phases_of(self._runs[index].facts).parts
        return {kind: transfer for kind, _, _, transfer in parts}


def _follows(before: RunRow, run: RunRow) -> bool:
    """Return whether a run is the next of its job; as far as known: a lost one is not excluded.

    Records of a run have several numbers where its schedd was restarted under it.
    """
    number = run.key.shadow_start
    last = max((fact.shadow_start or 0 for fact in before.facts), default=0)
    return number is None or not last or number <= last + 1


def _waited(transfer: Transfer) -> float | None:
    """Return how long a transfer waited for its turn (s)."""
    queued, start = sane(transfer.queued_us), sane(transfer.start_us)
    return None if queued is None or start is None else max(0, start - queued) / SECOND_US


_BLAMED = {
    "transfer_input_failed": SpanName.STAGE_IN,
    "transfer_output_failed": SpanName.STAGE_OUT,
    "output_cut_off": SpanName.STAGE_OUT,
}


class RunPhases(NamedTuple):
    """What is known of a run's parts.

    - ``parts``: kind, begin, end (None: until the run's end), and the transfer.
    - ``codes``, ``exit``: attributes of how it ended.
    """

    parts: tuple[tuple[SpanName, int | None, int | None, Transfer | None], ...]
    codes: dict[str, Value | None]
    exit: dict[str, Value | None]

    def ended_in(self, outcome: Outcome | None) -> SpanName | None:
        """Return the part that decided how the run ended: by its outcome, else the last."""
        label = "" if outcome is None else outcome.label
        if label.startswith("exit_"):
            return SpanName.EXECUTE
        begun = [kind for kind, start_us, *_ in self.parts if start_us is not None]
        return _BLAMED.get(label, begun[-1] if begun else None)


def phases_of(facts: Sequence[RunFact]) -> RunPhases:
    """Return the parts of a run: of each the best record, an access point's before a startd's."""
    best = ranked(facts)
    record = recorded(best)
    times = record.times
    endings = [fact.ending for fact in best]

    def first(name: str) -> int | None:
        return next((v for e in endings if (v := getattr(e, name)) is not None), None)

    signal = first("exit_signal")
    return RunPhases(
        parts=(
            (SpanName.STAGE_IN, *times[Phase.STAGE_IN], record.inward),
            (SpanName.EXECUTE, *times[Phase.EXECUTE], None),
            (SpanName.STAGE_OUT, *times[Phase.STAGE_OUT], record.outward),
        ),
        codes={
            "htcondor.hold.code": first("hold_code") or None,
            "htcondor.vacate.code": first("vacate_code") or None,
        },
        exit={
            "htcondor.exit.signal": signal,
            "process.exit.code": first("exit_code") if signal is None else None,
        },
    )


def transferred_bytes(
    transfer: Transfer | None, before: Transfer | None, number: int | None
) -> int | None:
    """Return the bytes of a run's transfer; ``before``: that of the run before it."""
    if transfer is None or number is None:
        return None
    return moved_bytes(transfer, 0 if number == 0 else before.total if before else None)
