"""Real backends: a submitter's span, gwmond's spans and a job's own arrive as one tree.

A receiver passes on what it gets, as a collector does: arize-phoenix and mlflow get the same.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from gwmond.commands.check import check_traces
from gwmond.config.settings import Traces
from gwmond.config.tracing import Export
from gwmond.model.runs.phases import buckets
from tests.build.otlp_sink import Sink, sink
from tests.daemon.running import RunningDaemon, Tables
from tests.daemon.scene import PUNCTUAL, REAL
from tests.pool.condor import CondorPool
from tests.pool.ports import free_port
from tests.pool.prometheus import Prometheus
from tests.pool.sandbox import USERS, wait_until

SCRIPT = Path(__file__).resolve().parents[2] / "etc/gwmond-trace.sh"
TRACE, SUBMIT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SUBMIT}-01"
_JOB = """#!/bin/sh
. ./gwmond-trace.sh
part() { gwmond_span part true; return 3; }
gwmond_span analysis part
"""
#: The first start of a backend compiles all of its modules.
SLOW_S = 400.0
pytestmark = pytest.mark.timeout(1500)


class Shown(NamedTuple):
    """What a backend has of a span; times in microseconds."""

    name: str
    parent: str
    start_us: int
    end_us: int
    failed: bool
    attributes: dict[str, object]


class Backend(NamedTuple):
    """A backend that runs: where, and with which headers it takes spans."""

    name: str
    url: str
    headers: dict[str, str]

    def post(self, body: bytes) -> None:
        kind = {"Content-Type": "application/x-protobuf", **self.headers}
        request = urllib.request.Request(f"{self.url}/v1/traces", body, kind)
        with urllib.request.urlopen(request, timeout=120) as answer:
            assert answer.status == 200

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=120) as answer:
            return json.load(answer)

    def alive(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def spans(self) -> dict[str, Shown]:
        """The spans of the trace, by their ids."""
        if self.name == "phoenix":
            rows = self.get("/v1/projects/default/spans?limit=1000")["data"]
            own = [row for row in rows if row["context"]["trace_id"] == TRACE]
            return {row["context"]["span_id"]: _phoenix(row) for row in own}
        rows = self.get(f"/api/3.0/mlflow/traces/get?trace_id=tr-{TRACE}")["trace"]["spans"]
        return {_hex(row["span_id"]): _mlflow(row) for row in rows}


def _phoenix(row: dict[str, Any]) -> Shown:
    start, end = (
        round(datetime.fromisoformat(row[name]).timestamp() * 1e6)
        for name in ("start_time", "end_time")
    )
    failed = row["status_code"] == "ERROR"
    return Shown(row["name"], row["parent_id"] or "", start, end, failed, row["attributes"])


def _mlflow(row: dict[str, Any]) -> Shown:
    start, end = (row[f"{name}_time_unix_nano"] // 1000 for name in ("start", "end"))
    failed = row["status"].get("code") == "STATUS_CODE_ERROR"
    known = {one["key"]: next(iter(one["value"].values())) for one in row["attributes"]}
    del known["mlflow.traceRequestId"]
    return Shown(row["name"], _hex(row.get("parent_span_id", "")), start, end, failed, known)


def _hex(text: str) -> str:
    return base64.b64decode(text).hex()


def _sent(span: Span) -> Shown:
    known = {
        one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes
    }
    start, end = span.start_time_unix_nano // 1000, span.end_time_unix_nano // 1000
    parent, failed = span.parent_span_id.hex(), span.status.code == 2
    return Shown(span.name, parent, about(start), about(end), failed, known)


def about(time_us: int) -> Any:
    """Some backends round to a microsecond, some cut."""
    return pytest.approx(time_us, abs=1)


@contextmanager
def _running(
    name: str, place: Path, *arguments: str, **env: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A backend's process and all that it starts, of the environment that make setup-test makes."""
    program = Path(sys.prefix) / name / "bin" / name
    assert program.exists(), f"{program} is not there. Run: make setup-test"
    place.mkdir()
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", str(program), *arguments],
            cwd=place,
            env={**os.environ, "HOME": str(place), **env},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(120)


@pytest.fixture(scope="module")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Backend]]:
    """Both at once, for they take a while; the other fixtures go on meanwhile."""
    place = tmp_path_factory.mktemp("backends")
    ports = [free_port(), free_port(), free_port()]
    quiet = {"PHOENIX_HOST": "127.0.0.1", "PHOENIX_TELEMETRY_ENABLED": "false"}
    phoenix = {"PHOENIX_PORT": str(ports[0]), "PHOENIX_GRPC_PORT": str(ports[1])}
    store = ("--backend-store-uri", f"sqlite:///{place}/mlflow.sqlite")
    serve = ("server", *store, "--port", str(ports[2]), "--workers", "1")
    with ExitStack() as stack:
        stack.enter_context(_running("phoenix", place / "phoenix", "serve", **quiet, **phoenix))
        alone = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        stack.enter_context(_running("mlflow", place / "mlflow", *serve, **alone))
        made = {
            "phoenix": Backend("phoenix", f"http://127.0.0.1:{ports[0]}", {}),
            "mlflow": Backend(
                "mlflow", f"http://127.0.0.1:{ports[2]}", {"x-mlflow-experiment-id": "0"}
            ),
        }
        yield made


def submitted() -> bytes:
    """The submitter's own span, as jobsub or a workflow system sends it."""
    now = time.time_ns()
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    span = scope.spans.add(name="submit", start_time_unix_nano=now - 10**9, end_time_unix_nano=now)
    span.trace_id, span.span_id = bytes.fromhex(TRACE), bytes.fromhex(SUBMIT)
    return request.SerializeToString()


class Received(NamedTuple):
    """What the receiver has, and the exemplars of queue waits that Prometheus has scraped."""

    sink: Sink
    exemplars: list[dict[str, Any]]


@pytest.fixture(scope="module")
def received(
    backends: dict[str, Backend], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Received]:
    """What the submitter, a real job on a real pool, and the daemon have sent of the job."""
    config = "JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history"
    with sink() as receiver, CondorPool(config=config) as pool:
        Backend("sink", receiver.url, {}).post(submitted())
        pool.start_pilot("one", cores=2, memory=4096, attrs=REAL)
        tables: Tables = {**PUNCTUAL, "traces": {"endpoint": receiver.url, "compression": "none"}}
        place = tmp_path_factory.mktemp("daemon")
        with (
            RunningDaemon(place, [pool.collector], tables) as daemon,
            Prometheus([f"127.0.0.1:{daemon.port}"]) as prometheus,
        ):
            _submit(pool, receiver.url)
            wait_until(
                "all spans of the job",
                lambda: {"job", "run", "part"} <= {span.name for span in _of_trace(receiver)},
            )
            exemplars = wait_until(
                "exemplars", lambda: prometheus.exemplars("gwmond_job_queue_seconds_bucket")
            )
        yield Received(receiver, exemplars)


def _submit(pool: CondorPool, url: str) -> None:
    home = pool.local / "alice"
    (home / "bin").mkdir()
    for name, source in (("bin/nc", shutil.which("busybox")), (SCRIPT.name, SCRIPT)):
        shutil.copy(str(source), home / name)
    (home / "job").write_text(_JOB)
    place = home / "results"
    place.mkdir()
    os.chown(place, USERS["alice"], USERS["alice"])
    environment = f"OTEL_EXPORTER_OTLP_ENDPOINT={url} SECRET=CANARY PATH={home}/bin:/usr/bin:/bin"
    pool.submit(
        pool.schedds[0],
        request_memory=1000,
        attrs={"TraceParent": PARENT},
        executable=home / "job",
        transfer_executable=True,
        arguments="CANARY",
        transfer_input_files=home / SCRIPT.name,
        initialdir=place,
        environment=f'"{environment}"',
    )


def _of_trace(receiver: Sink) -> list[Span]:
    return [span for span in receiver.accepted if span.trace_id.hex() == TRACE]


@pytest.mark.parametrize("name", ["phoenix", "mlflow"])
def test_one_tree(backends: dict[str, Backend], received: Received, name: str) -> None:
    """Names, parents, times, statuses and attributes are those that were sent."""
    backend = backends[name]
    wait_until(name, backend.alive, SLOW_S)
    (checked,) = check_traces(
        Export(
            Traces.model_validate({"timeout": "2m"}),  # what comes first loads modules
            f"{backend.url}/v1/traces",
            tuple(backend.headers.items()),
        )
    )
    assert checked.status.up, checked
    for one in received.sink.received:
        backend.post(one.raw)
    sent = {span.span_id.hex(): _sent(span) for span in _of_trace(received.sink)}
    shown = wait_until(f"the spans in {name}", lambda: _complete(backend, len(sent)))
    assert {key: shown[key] for key in sent} == sent
    paths = sorted(_path(sent, key) for key in sent)
    job = "submit/job"
    assert set(paths) >= {
        *("submit", job, f"{job}/queue", f"{job}/run", f"{job}/run/execute"),
        *(f"{job}/run/analysis", f"{job}/run/analysis/part"),
    }
    failed = {span.name for span in sent.values() if span.failed}
    assert {"run", "analysis"} <= failed
    assert "part" not in failed


def _complete(backend: Backend, number: int) -> dict[str, Shown] | None:
    shown = backend.spans()
    return shown if len(shown) >= number else None


def _path(spans: dict[str, Shown], key: str) -> str:
    span = spans[key]
    return f"{_path(spans, span.parent)}/{span.name}" if span.parent else span.name


def test_prometheus_leads_to_the_trace(received: Received) -> None:
    """A bucket of queue waits has the span of the job's wait as its exemplar."""
    (wait,) = [span for span in _of_trace(received.sink) if span.name == "queue"]
    (series,) = received.exemplars
    assert series["seriesLabels"]["site"] == "Real"
    (exemplar,) = series["exemplars"]
    assert exemplar["labels"] == {"trace_id": TRACE, "span_id": wait.span_id.hex()}
    waited = (wait.end_time_unix_nano - wait.start_time_unix_nano) / 1e9
    bounds = sorted(float(bound) for bound in buckets("queue"))
    assert float(series["seriesLabels"]["le"]) == next(of for of in bounds if waited <= of)
    assert float(exemplar["value"]) == waited
    assert exemplar["timestamp"] >= wait.end_time_unix_nano / 1e9


def test_no_secret_of_a_job_is_in_its_spans(received: Received) -> None:
    assert received.sink.received
    assert not [one for one in received.sink.received if b"CANARY" in one.raw]
