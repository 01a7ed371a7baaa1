"""Exports traces, in a thread of its own: nothing waits for it.

The ledger is the backlog (``ledger.rows.backlog``): what a poll settles is stored with it, read
here some at a time, made into spans and sent, and forgotten when the receiver has it.  So each span
is sent at least once, in requests of the same bytes, whatever ends in between; memory stays bounded
however long the receiver is away, and what waits for too long is skipped, and counted.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import structlog

from gwmond.config.settings import LedgerOptions, Traces
from gwmond.config.tracing import Export
from gwmond.ledger.database.errors import LedgerError
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows.backlog import UnsentChunk, UnsentPosition
from gwmond.ledger.store import Ledger
from gwmond.model.factory.jobs import place_name
from gwmond.model.facts import Problem
from gwmond.model.pilot_life import RunKey
from gwmond.model.pilots.stored_pilots import PilotId, PilotRow, RunRow
from gwmond.model.poll.batch import Settled
from gwmond.model.poll.pilot_keys import PilotKeys
from gwmond.model.poll.snapshot import Exemplar, ExemplarKey, TraceExport
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.service.host.otlp_client import OtlpClient, OtlpReply
from gwmond.traces.job_trace import JobTrace
from gwmond.traces.otlp import Encoder, Request
from gwmond.traces.pilot_trace import pilot_spans
from gwmond.traces.selection import TraceSelection, name_pattern, noting
from gwmond.traces.spans import Span, SpanName
from gwmond.traces.wait_events import WaitsByWants, by_wants, wanted

log = structlog.get_logger()
_SOURCE = "traces"
_FIRST_WAIT_S, _MOST_WAIT_S = 1.0, 60.0
_SPANS_REMEMBERED = 50_000
_EXEMPLARS = 10_000


class TraceCounts:
    """What was exported since gwmond started; also after the configuration was read again."""

    def __init__(self) -> None:
        self.spans: Counter[str] = Counter(accepted=0, refused=0)
        self.requests: Counter[str] = Counter(accepted=0, refused=0, failed=0)
        self.settled: Counter[str] = Counter(exported=0, not_chosen=0, skipped=0, gone=0)
        self.sent_bytes = 0
        self.last_success: float | None = None
        self.exemplars: OrderedDict[ExemplarKey, Exemplar] = OrderedDict()

    def note(self, sent: Mapping[ExemplarKey, Exemplar], at: float) -> None:
        """Say that the receiver has these spans."""
        for key, exemplar in sent.items():
            self.exemplars[key] = exemplar._replace(at=at)
            self.exemplars.move_to_end(key)
        while len(self.exemplars) > _EXEMPLARS:
            self.exemplars.popitem(last=False)


class ChosenSpans:
    """Makes the spans of what was settled, of those that are to be exported."""

    def __init__(self, options: Traces) -> None:
        self._join_at_most = options.join_at_most
        self._selection = TraceSelection(
            jobs=options.jobs,
            pilots=options.pilots,
            ratio=options.ratio,
            parent_based=options.parent_based,
            always=frozenset(options.always),
            slow_us=round(options.slow * SECOND_US),
            sites=name_pattern(options.sites),
            groups=name_pattern(options.groups),
            users=name_pattern(options.users),
        )
        # Spans that several runs may settle: which were sent, and which this chunk has.
        self._sent: OrderedDict[bytes, None] = OrderedDict()
        self._making: dict[bytes, None] = {}

    def of(
        self, reader: LedgerReader, settled: Sequence[Settled], made: Counter[str]
    ) -> Iterator[Span]:
        """Yield the spans of a chunk, and count what was ``made`` of it.

        What cannot be made is left out.
        """
        self._making = {}
        by_job = reader.find_runs({item.job for item in settled if item.job})
        ids = {run.pilot for runs in by_job.values() for run in runs}
        pilots = reader.pilots_by_id(ids | {item.pilot for item in settled})
        every = [run for runs in by_job.values() for run in runs]
        waits = by_wants(reader.waits_by_wants(*wanted(every)))
        for item in settled:
            try:
                spans = (
                    self._of_job(item, by_job.get(item.job, []), pilots, waits)
                    if item.job
                    else self._of_pilot(reader, pilots.get(item.pilot))
                )
            except (ValueError, TypeError, ArithmeticError, LookupError):
                log.exception("no trace can be made; please report this", settled=str(item))
                spans = None
            made["gone" if spans is None else "exported" if spans else "not_chosen"] += 1
            yield from spans or ()

    def note_sent(self) -> None:
        """Say that all spans of the last chunk were sent."""
        self._sent.update(self._making)
        while len(self._sent) > _SPANS_REMEMBERED:
            self._sent.popitem(last=False)

    def _of_pilot(self, reader: LedgerReader, pilot: PilotRow | None) -> list[Span] | None:
        if pilot is None:
            return None
        if not self._selection.pilots:
            return []
        key = pilot.identity.key.entry, pilot.identity.factory_number
        places = reader.fetch(PilotKeys(places={place_name(*key)})).places if key[1] else {}
        runs = reader.runs_of([pilot.id]).get(pilot.id, [])
        spans = pilot_spans(pilot, runs, self._join_at_most, places.get(place_name(*key)))
        return spans if self._selection.has_pilot(pilot, spans) else []

    def _of_job(
        self,
        item: Settled,
        runs: list[RunRow],
        pilots: dict[PilotId, PilotRow],
        waits: WaitsByWants,
    ) -> list[Span] | None:
        if not runs:
            return None
        chosen = [run for run in runs if self._selection.has_run(run, pilots.get(run.pilot))]
        if not chosen:
            return []
        trace = JobTrace(runs, pilots, self._join_at_most, waits=waits)
        if self._selection.of_trace(trace.context) is False:
            return []
        spans: list[Span] = []
        if item.number is not None:
            key = RunKey(item.job, item.number)
            spans = self._of_run(trace, key, chosen)
            following = trace.wait_after(key)
            if following is not None:  # the wait before that was left out as long as this was open
                later = self._of_run(trace, following, chosen)
                spans += [span for span in later if span.name is SpanName.QUEUE]
        last = trace.last()
        if self._selection.has_job(trace.context, chosen, last):
            spans += last
        return list(self._unsent(spans))

    def _of_run(self, trace: JobTrace, key: RunKey, chosen: Sequence[RunRow]) -> list[Span]:
        own = [run for run in chosen if run.key == key]
        spans = trace.of_run(key) if own else []
        return spans if self._selection.has_job(trace.context, own, spans) else []

    def _unsent(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield spans, but those that another run has settled, too, and that were sent with it."""
        for span in spans:
            if span.name in {SpanName.JOB, SpanName.QUEUE}:
                identity = span.context.span_id
                if identity in self._sent or identity in self._making:
                    continue
                self._making[identity] = None
            yield span


class TraceExporter:
    """The thread that exports; ``wake`` it after each poll."""

    def __init__(
        self,
        export: Export,
        ledger: LedgerOptions,
        writer: Callable[[], Ledger | None],
        counts: TraceCounts | None = None,
    ) -> None:
        """``writer`` gives the daemon's ledger, while it is open."""
        self.counts = counts or TraceCounts()
        self._options = export.options
        self._url, self._writer = ledger.url, writer
        self._client = OtlpClient(export)
        self._encoder = Encoder(export.service, dict(export.resource))
        self._spans = ChosenSpans(export.options)
        self._reader: LedgerReader | None = None
        self._position = UnsentPosition()
        self._oldest_us: int | None = None
        self._failure = ""
        self._lost: Counter[ProblemName] = Counter()
        self._reported: Counter[ProblemName] = Counter()
        self._refusal = ""
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)

    def start(self) -> None:
        """Begin; what is left of earlier goes first."""
        log.info("traces are exported", endpoint=self._client.where)
        self._thread.start()

    def wake(self) -> None:
        """Say that more may have been settled."""
        self._wake.set()

    def stop(self) -> None:
        """End, at once unless a request is under way; nobody waits for that."""
        self._stopped.set()
        self._wake.set()

    def status(self, corrected: int) -> TraceExport:
        """Return how it does."""
        counts, oldest_us = self.counts, self._oldest_us
        return TraceExport(
            spans=dict(counts.spans),
            requests=dict(counts.requests),
            settled=dict(counts.settled),
            sent_bytes=counts.sent_bytes,
            corrected=corrected,
            backlog_s=0.0 if oldest_us is None else max(time.time() - oldest_us / SECOND_US, 0.0),
            last_success=counts.last_success,
            exemplars=counts.exemplars.copy(),
        )

    def problems(self) -> list[Problem]:
        """Return the problems of now, and the losses since the last call."""
        problems = []
        if failure := self._failure:
            detail = f"{self._client.where}: {failure}"
            problems.append(Problem(_SOURCE, ProblemName.TRACE_EXPORT_FAILING, detail))
        lost = self._lost.copy()
        for name, detail in (
            (ProblemName.TRACE_BACKLOG_SKIPPED, f"waited for {self._client.where}"),
            (ProblemName.TRACE_SPANS_REFUSED, f"{self._client.where}: {self._refusal}"),
        ):
            if number := lost[name] - self._reported[name]:
                problems.append(Problem(_SOURCE, name, detail, number))
        self._reported = lost
        return problems

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                worked = self._step()
            except LedgerError as error:
                log.debug("the backlog of traces cannot be read now", error=str(error))
                self._close()
                worked = False
            except Exception:
                log.exception("the export of traces failed; please report this")
                self._close()
                worked = False
            if not worked:
                self._wake.wait()
                self._wake.clear()
        self._close()
        self._client.close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _step(self) -> bool:
        """Export what is oldest, or skip it; return whether there was anything.

        A gwmond that stands by exports nothing: the one that has the ledger does.
        """
        if self._writer() is None:
            self._oldest_us = None
            return False
        reader = self._reader = self._reader or LedgerReader.open(self._url)
        chunk = reader.unsent(self._position, self._options.batch)
        if chunk is None:
            self._oldest_us = None
            return False
        self._oldest_us = chunk.stored_us
        if self._is_late(chunk):
            limit_us = round((time.time() - self._options.max_age) * SECOND_US)
            upto, number = reader.unsent_before(limit_us)
            self._skip(max(upto, chunk.last), max(number, len(chunk.settled)))
            return True
        made: Counter[str] = Counter()
        exemplars: dict[ExemplarKey, Exemplar] = {}
        refused = self.counts.spans["refused"]
        spans = noting(self._spans.of(reader, chunk.settled, made), exemplars)
        try:
            for request in self._encoder.requests(spans):
                if not self._deliver(request, chunk):
                    return not self._stopped.is_set()
        except (ValueError, TypeError):
            log.exception("spans cannot be encoded: they are skipped; please report this")
            self._skip(chunk.last, len(chunk.settled))
            return True
        self.counts.settled.update(made)
        if self.counts.spans["refused"] == refused:
            self.counts.note(exemplars, time.time())
        self._spans.note_sent()
        self._sent(chunk.last)
        return True

    def _is_late(self, chunk: UnsentChunk) -> bool:
        return time.time() - chunk.stored_us / SECOND_US > self._options.max_age

    def _skip(self, upto: UnsentPosition, number: int) -> None:
        self.counts.settled["skipped"] += number
        self._lost[ProblemName.TRACE_BACKLOG_SKIPPED] += number
        self._sent(upto)

    def _sent(self, upto: UnsentPosition) -> None:
        """Forget what is done; where the ledger is closed now, with what is done next."""
        self._position = upto
        if (ledger := self._writer()) is not None:
            ledger.sent(upto)

    def _deliver(self, request: Request, chunk: UnsentChunk) -> bool:
        """Send a request until that is decided; return False if it is stopped, or too late."""
        wait_s = _FIRST_WAIT_S
        while not self._stopped.is_set():
            answer = self._client.post(request)
            self._count(request, answer)
            if not answer.again:
                return True
            after_s = random.uniform(wait_s / 2, wait_s)
            if answer.after_s is not None:
                after_s = min(max(answer.after_s, after_s), self._options.max_age)
            wait_s = min(2 * wait_s, _MOST_WAIT_S)
            if self._stopped.wait(after_s) or self._is_late(chunk):
                return False
        return False

    def _count(self, request: Request, answer: OtlpReply) -> None:
        counts = self.counts
        result = "accepted" if answer.accepted else "failed" if answer.again else "refused"
        counts.requests[result] += 1
        counts.sent_bytes += answer.sent
        self._failure = answer.detail if answer.again else ""
        if answer.again:
            return
        counts.spans["refused"] += answer.refused
        counts.spans["accepted"] += request.spans - answer.refused
        if answer.accepted:
            counts.last_success = time.time()
        if answer.refused or answer.detail:
            log.warning("the receiver of traces", refused=answer.refused, says=answer.detail)
        if answer.refused:
            self._refusal = answer.detail
            self._lost[ProblemName.TRACE_SPANS_REFUSED] += answer.refused
