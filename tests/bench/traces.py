"""Benchmark: what the export of traces costs, side by side in one process.

A ledger with runs of jobs that are settled (one run a job, which has left: job, queue, run,
stage-in, execute, stage-out), and with pilots that are closed, each after 48 runs, is exported to a
receiver on this host, which is a process of its own and throws away what it gets.  Beside that: the
same spans built directly as protobuf from values that are there already; and encoded by gwmond.
CPU seconds are of the exporting process alone.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any, cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2 as otlp

from gwmond.config.settings import LedgerOptions, Traces
from gwmond.config.tracing import Export
from gwmond.ledger.rows.backlog import UnsentPosition
from gwmond.ledger.store import Ledger
from gwmond.model.pilots.stored_pilots import RunRow
from gwmond.model.poll.batch import Batch, Settled
from gwmond.model.runs.run_facts import Transfer
from gwmond.model.times import SECOND_US
from gwmond.service.trace_export import ChosenSpans, TraceExporter
from gwmond.traces.otlp import MOST_SPANS, Encoder
from gwmond.traces.spans import Attributes, Span
from tests.build.trace_backlog import PILOT, settled_run
from tests.ledger.pilot_batches import HOUR, ORIGIN, identity, pilot_at

RUNS_A_PILOT = 48
"""Two an hour for a day."""


def main() -> None:
    """Make a ledger, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        _Receiver() as url,
        Ledger.open(f"{directory}/ledger.sqlite") as ledger,
    ):
        _settle(ledger, options.runs)
        spans = _spans(ledger)
        sent: list[int] = []

        def export() -> bool:
            sent.append(_exported(ledger, url, len(spans)))
            return True

        rows: dict[str, Callable[[], int]] = {
            "protobuf built directly": lambda: _direct(spans),
            "encoded by gwmond": lambda: _encoded(spans),
            "encoded and packed": lambda: _packed(spans),
            "from ledger to spans": lambda: len(_spans(ledger)),
            "from ledger to receiver": lambda: export() * len(spans),
        }
        for name, measured in rows.items():
            found = [_timed(measured) for _ in range(options.rounds)]
            _show(name, found)
        each = len(spans) / options.runs
        cpu = statistics.median(one[1] for one in found)
        print(f"  {each:.1f} spans a run, {sent[0] / len(spans):.0f} bytes a span")
        seconds, megabytes = cpu * each * 2000, sent[0] / options.runs * 2000 / 1e6
        print(f"  2,000 runs a minute: {seconds:.2f} s of CPU, {megabytes:.2f} MB a minute")


Timed = tuple[int, float, float]
"""How many spans; CPU seconds and wall seconds for each."""


def _timed(measured: Callable[[], int]) -> Timed:
    cpu, wall = time.process_time(), time.perf_counter()
    number = measured()
    return number, (time.process_time() - cpu) / number, (time.perf_counter() - wall) / number


def _show(name: str, found: list[Timed]) -> None:
    cpu = statistics.median(one[1] for one in found)
    wall = statistics.median(one[2] for one in found)
    print(f"  {name:28}{1 / cpu:9,.0f} spans a CPU second {1 / wall:9,.0f} a second", flush=True)


def _settle(ledger: Ledger, runs: int) -> None:
    """Settle runs of many pilots, each of which is closed then: as in a pool of 60,000."""
    template = pilot_at(PILOT, ORIGIN + 24 * HOUR)
    assert template is not None
    pilots = range(1, runs // RUNS_A_PILOT + 1)
    for first in range(0, len(pilots), 40):
        some = pilots[first : first + 40]
        rows = [
            _run(number)._replace(pilot=pilot)
            for pilot in some
            for number in range(pilot * RUNS_A_PILOT, (pilot + 1) * RUNS_A_PILOT)
        ]
        batch = Batch(
            before=ledger.load_sites().batches,
            now_us=ORIGIN + 24 * HOUR,
            pilots=tuple(
                template.row._replace(id=pilot, identity=identity(pilot), closed=True)
                for pilot in some
            ),
            runs=tuple(rows),
            settled=(
                *(Settled(row.pilot, *row.key) for row in rows),
                *(Settled(pilot) for pilot in some),
            ),
            stored_us=time.time_ns() // 1000,
        )
        ledger.commit(batch)


def _run(number: int) -> RunRow:
    row = settled_run(number)
    [fact] = row.facts
    start_us, end_us = row.start_us, row.end_us or 0
    moved = Transfer(start_us, start_us + SECOND_US, start_us + 9 * SECOND_US, 1_000_000)
    back = Transfer(end_us - 9 * SECOND_US, end_us - 8 * SECOND_US, end_us, 1_000_000)
    return row._replace(facts=(fact._replace(transfer_in=moved, transfer_out=back),))


def _spans(ledger: Ledger) -> list[Span]:
    chosen, found, after = ChosenSpans(Traces()), list[Span](), UnsentPosition()
    while (chunk := ledger.unsent(after, 500)) is not None:
        found += chosen.of(ledger, chunk.settled, Counter())
        after = chunk.last
    return found


def _direct(spans: list[Span]) -> int:
    """Build what a program would that has all values at hand."""
    for first in range(0, len(spans), MOST_SPANS):
        made = [
            otlp.Span(
                trace_id=span.context.trace_id,
                span_id=span.context.span_id,
                parent_span_id=span.parent_id,
                name=span.name,
                kind=otlp.Span.SPAN_KIND_INTERNAL,
                start_time_unix_nano=span.start_us * 1000,
                end_time_unix_nano=span.end_us * 1000,
                attributes=_values(span.attributes),
                links=[
                    otlp.Span.Link(
                        trace_id=link.context.trace_id,
                        span_id=link.context.span_id,
                        attributes=_values(link.attributes),
                    )
                    for link in span.links
                ],
            )
            for span in spans[first : first + MOST_SPANS]
        ]
        scope = otlp.ScopeSpans(spans=made)
        ExportTraceServiceRequest(
            resource_spans=[otlp.ResourceSpans(scope_spans=[scope])]
        ).SerializeToString()
    return len(spans)


def _values(attributes: Attributes) -> list[KeyValue]:
    return [
        KeyValue(
            key=name,
            value=AnyValue(string_value=value)
            if isinstance(value, str)
            else AnyValue(double_value=value),
        )
        for name, value in attributes
    ]


def _encoded(spans: list[Span]) -> int:
    return sum(request.spans for request in Encoder().requests(spans))


def _packed(spans: list[Span]) -> int:
    for request in Encoder().requests(spans):
        gzip.compress(request.body, 3, mtime=0)
    return len(spans)


def _exported(ledger: Ledger, url: str, spans: int) -> int:
    """Export all, which is not forgotten; return the bytes that were sent."""
    keeps = cast(Ledger, SimpleNamespace(sent=lambda _: None))
    exporter = TraceExporter(
        Export(Traces(), f"{url}/v1/traces"), LedgerOptions(url=ledger.where), lambda: keeps
    )
    exporter.start()
    while exporter.counts.spans["accepted"] < spans:
        time.sleep(0.05)
    exporter.stop()
    return exporter.counts.sent_bytes


class _Receiver:
    """A receiver in a process of its own."""

    def __enter__(self) -> str:
        ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=_receive, args=(theirs,), daemon=True)
        self._process.start()
        return f"http://127.0.0.1:{ours.recv()}"

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def _receive(pipe: Connection) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    pipe.send(server.server_address[1])
    server.serve_forever()
