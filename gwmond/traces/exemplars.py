"""Exemplars: which spans stand for what a counter or a histogram has counted.

Of each series the last span that was exported: of runs that were badput, and of waits of jobs for
their first run.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping

from gwmond.model.pilot_life import BADPUT
from gwmond.model.poll.snapshot import QUEUE_SECONDS, RUNS_TOTAL, Exemplar, ExemplarKey
from gwmond.model.runs.phases import bucket_of
from gwmond.model.times import SECOND_US
from gwmond.traces.ids import SpanName
from gwmond.traces.spans import Span

_PLACE = ("gwms.site", "gwms.entry", "gwms.frontend.group")


def noting(spans: Iterable[Span], found: MutableMapping[ExemplarKey, Exemplar]) -> Iterator[Span]:
    """Yield the spans, and note what they are exemplars of; the time is set when they are sent."""
    wait: Span | None = None
    for span in spans:
        if not span.context.sampled:
            wait = None
        elif span.name is SpanName.QUEUE:
            wait = span
        elif span.name is SpanName.RUN:
            _note(span, wait, found)
            wait = None
        yield span


def _note(run: Span, wait: Span | None, found: MutableMapping[ExemplarKey, Exemplar]) -> None:
    said = dict(run.attributes)
    site, entry, group = (str(said.get(name, "")) for name in _PLACE)
    category = said.get("gwmond.category")
    key: ExemplarKey
    if category in BADPUT:
        key = (RUNS_TOTAL, str(category), str(said.get("gwmond.outcome")), site, entry, group)
        found[key] = _exemplar(run, 1)
    if wait is not None and dict(wait.attributes).get("htcondor.run.number") == 0:
        waited_us = wait.end_us - wait.start_us
        key = (QUEUE_SECONDS, site, entry, bucket_of("queue", waited_us))
        found[key] = _exemplar(wait, waited_us / SECOND_US)


def _exemplar(span: Span, value: float) -> Exemplar:
    return Exemplar(span.context.trace_id.hex(), span.context.span_id.hex(), value)
