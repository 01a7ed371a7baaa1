"""Traces on their way to a receiver: each once, whatever the receiver does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import ssl
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from gwmond.commands.check import CheckResult, check_traces
from gwmond.config.settings import LedgerOptions, Traces
from gwmond.config.tracing import export_of
from gwmond.ledger.rows.backlog import UnsentPosition
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Problem
from gwmond.model.pilot_life import RunKey
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.service import trace_export
from gwmond.service.trace_export import TraceExporter
from tests.build.otlp_sink import OK, Reply, sink
from tests.build.trace_backlog import GOOD, commit_jobs, commit_runs, settled_run
from tests.ledger.batches import take_over
from tests.pool.ports import free_port
from tests.pool.sandbox import PATIENCE_S, wait_until

SECRET = "canary-bearer-token"
Start = Callable[..., AbstractContextManager[TraceExporter]]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_export, "_FIRST_WAIT_S", 0.02)
    monkeypatch.setattr(trace_export, "_MOST_WAIT_S", 0.05)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(str(tmp_path / "ledger.sqlite")) as opened:
        yield opened


@contextmanager
def exporting(ledger: Ledger, url: str, **options: Any) -> Iterator[TraceExporter]:
    """A thread that exports, as the daemon's does."""
    export = export_of(Traces.model_validate({"endpoint": url, **options}), {})
    exporter = TraceExporter(export, LedgerOptions(url=ledger.where), lambda: ledger)
    exporter.start()
    try:
        yield exporter
    finally:
        exporter.stop()


def is_empty(ledger: Ledger) -> bool:
    return ledger.unsent(UnsentPosition(), 1) is None


def await_empty(ledger: Ledger, exporter: TraceExporter | None = None) -> None:
    """Wait for all to be sent, now if the exporter is woken."""
    if exporter is not None:
        exporter.wake()
    wait_until("the backlog is exported", lambda: is_empty(ledger))


def names(spans: Any) -> Counter[str]:
    return Counter(span.name for span in spans)


def problems(exporter: TraceExporter) -> dict[ProblemName, Problem]:
    return {problem.problem: problem for problem in exporter.problems()}


def test_each_span_is_sent_once(ledger: Ledger) -> None:
    """What is settled later goes later, and what was sent is not sent again, by a successor too."""
    commit_jobs(ledger, 1, 30)
    with sink() as receiver, exporting(ledger, receiver.url, batch=7) as exporter:
        await_empty(ledger)
        commit_jobs(ledger, 31, 40)
        await_empty(ledger, exporter)
        assert names(receiver.accepted)["run"] == names(receiver.accepted)["job"] == 40
        ids = [(span.trace_id, span.span_id) for span in receiver.accepted]
        assert len(set(ids)) == len(ids)
        assert {one.path for one in receiver.received} == {"/v1/traces"}
        assert {one.headers["content-type"] for one in receiver.received} == {
            "application/x-protobuf"
        }
        status = exporter.status(0)
        assert status.spans == {"accepted": len(ids), "refused": 0}
        assert status.settled == {"exported": 40, "not_chosen": 0, "skipped": 0, "gone": 0}
        assert status.sent_bytes == sum(len(one.raw) for one in receiver.received)
        assert status.last_success is not None
        assert exporter.problems() == []
        with exporting(ledger, receiver.url):
            commit_jobs(ledger, 41, 41)
            await_empty(ledger, exporter)
        assert names(receiver.accepted)["job"] in {41, 42}  # two at once may both send it


def test_a_wait_is_sent_with_the_later_of_its_runs(ledger: Ledger) -> None:
    """The records of a job's second run may be read first."""
    row = settled_run(1)
    [fact], later_us = row.facts, 600 * SECOND_US
    start_us, end_us = row.start_us + later_us, (row.end_us or 0) + later_us
    fact = fact._replace(shadow_start=2, start_us=start_us, end_us=end_us)
    key = RunKey(row.key.job, 2)
    second = row._replace(key=key, start_us=start_us, end_us=end_us, facts=(fact,))
    with sink() as receiver, exporting(ledger, receiver.url) as exporter:
        commit_runs(ledger, [row._replace(open=True, outcome=None), second])
        await_empty(ledger, exporter)
        assert (names(receiver.accepted)["run"], names(receiver.accepted)["queue"]) == (1, 0)
        for _ in range(2):  # and not again
            commit_runs(ledger, [row])
            await_empty(ledger, exporter)
        found = names(receiver.accepted)
        assert (found["job"], found["queue"]) == (1, 2)


def test_who_stands_by_exports_nothing(ledger: Ledger) -> None:
    """Another gwmond has the ledger, and exports; this one goes on when the other ends."""
    commit_jobs(ledger, 1, 1)
    held: list[Ledger | None] = [None]
    with sink() as receiver:
        export = export_of(Traces(endpoint=receiver.url), {})
        asked = threading.Event()

        def writer() -> Ledger | None:
            asked.set()
            return held[0]

        exporter = TraceExporter(export, LedgerOptions(url=ledger.where), writer)
        exporter.start()
        assert asked.wait(PATIENCE_S)
        held[0] = ledger
        assert receiver.received == []
        await_empty(ledger, exporter)
        exporter.stop()


def test_a_job_leaves_after_its_run_was_settled(ledger: Ledger) -> None:
    """The job's span comes when its history does, and only then."""
    row = settled_run(1)
    [fact] = row.facts
    assert fact.about_job is not None
    early = fact._replace(about_job=fact.about_job._replace(left_us=None, status=None))
    with sink() as receiver, exporting(ledger, receiver.url) as exporter:
        commit_runs(ledger, [row._replace(facts=(early,))])
        await_empty(ledger, exporter)
        assert names(receiver.accepted)["job"] == 0
        commit_runs(ledger, [row])
        await_empty(ledger, exporter)
        assert names(receiver.accepted)["job"] == 1


def export_for_ever(url: str, endpoint: str) -> None:
    with take_over(url) as ledger, exporting(ledger, endpoint, batch=10):
        time.sleep(600)


def test_killed_while_it_sends(tmp_path: Path) -> None:
    """After kill -9 the request that was not answered comes again, with the same bytes."""
    url = str(tmp_path / "ledger.sqlite")
    with Ledger.open(url) as ledger:
        commit_jobs(ledger, 1, 25)
        commit_jobs(ledger, 26, 30)
    with sink(OK, reply=Reply(hang=True)) as receiver:
        child = multiprocessing.get_context("fork").Process(
            target=export_for_ever, args=(url, receiver.url)
        )
        child.start()
        receiver.await_requests(2)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        with take_over(url) as ledger:
            commit_jobs(ledger, 31, 40)
            receiver.reply = OK
            with exporting(ledger, receiver.url, batch=10):
                await_empty(ledger)
        first, hung, again, *_ = receiver.received
        assert again.raw == hung.raw != first.raw
        found = Counter(span.span_id for span in receiver.accepted if span.name == "run")
        assert (len(found), set(found.values())) == (40, {1})


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_sent_again(ledger: Ledger, status: int) -> None:
    commit_jobs(ledger, 1, 3)
    with sink(*[Reply(status)] * 3) as receiver, exporting(ledger, receiver.url) as exporter:
        await_empty(ledger)
        assert len({one.raw for one in receiver.received}) == 1
        assert exporter.status(0).requests == {"accepted": 1, "refused": 0, "failed": 3}
        assert names(receiver.accepted)["run"] == 3
        assert exporter.problems() == []  # it is over


def test_retry_after_is_honoured(ledger: Ledger) -> None:
    commit_jobs(ledger, 1, 1)
    busy = Reply(503, (("Retry-After", "1"),))
    with sink(busy) as receiver, exporting(ledger, receiver.url):
        receiver.await_requests(2)
        first, second = receiver.received
        assert second.time - first.time >= 1


@pytest.mark.parametrize("status", [302, 401, 413])
def test_what_is_refused_is_not_sent_again(ledger: Ledger, status: int) -> None:
    commit_jobs(ledger, 1, 3)
    refusal = Reply(status, body=b"no\nsuch  thing\x1b[1m")
    with sink(refusal) as receiver, exporting(ledger, receiver.url) as exporter:
        await_empty(ledger)
        commit_jobs(ledger, 4, 4)
        await_empty(ledger, exporter)
        assert names(receiver.accepted)["run"] == 1
        found = problems(exporter)[ProblemName.TRACE_SPANS_REFUSED]
        assert found.records == len(receiver.received[0].spans)
        assert f"HTTP {status}" in found.detail
        assert "no such thing?[1m" in found.detail
        assert exporter.problems() == []


def test_partial_success_is_counted(ledger: Ledger) -> None:
    said = ExportTraceServiceResponse()
    said.partial_success.rejected_spans = 2
    said.partial_success.error_message = "too old"
    commit_jobs(ledger, 1, 3)
    with (
        sink(OK._replace(body=said.SerializeToString())) as receiver,
        exporting(ledger, receiver.url) as exporter,
    ):
        await_empty(ledger)
        status, sent = exporter.status(0), len(receiver.accepted)
        assert status.spans == {"accepted": sent - 2, "refused": 2}
        assert "too old" in problems(exporter)[ProblemName.TRACE_SPANS_REFUSED].detail


@pytest.mark.parametrize(
    "answer",
    [
        OK._replace(body=b"\xff\xfe garbage"),
        Reply(body=b"<html>" * 200_000, headers=(("Content-Type", "text/html"),)),
        Reply(body=b"\x1f\x8b", headers=(("Content-Encoding", "gzip"),)),
    ],
)
def test_garbage_with_success_is_success(ledger: Ledger, answer: Reply) -> None:
    commit_jobs(ledger, 1, 3)
    with sink(answer) as receiver, exporting(ledger, receiver.url) as exporter:
        await_empty(ledger)
        commit_jobs(ledger, 4, 4)
        await_empty(ledger, exporter)
        assert exporter.status(0).requests == {"accepted": 2, "refused": 0, "failed": 0}


def test_a_receiver_that_hangs_is_given_up_and_asked_again(ledger: Ledger) -> None:
    commit_jobs(ledger, 1, 3)
    with (
        sink(reply=Reply(hang=True)) as receiver,
        exporting(ledger, receiver.url, timeout="200ms") as exporter,
    ):
        wait_until("it fails", lambda: exporter.status(0).requests["failed"] > 0)
        found = problems(exporter)[ProblemName.TRACE_EXPORT_FAILING]
        assert (found.records, "ReadTimeout" in found.detail) == (None, True)
        assert exporter.status(0).backlog_s > 0
        receiver.reply = OK
        await_empty(ledger)
        assert names(receiver.accepted)["run"] == 3


def test_a_receiver_that_was_down_gets_all(ledger: Ledger) -> None:
    commit_jobs(ledger, 1, 3)
    port = free_port()
    with exporting(ledger, f"http://127.0.0.1:{port}") as exporter:
        wait_until("it fails", lambda: exporter.status(0).requests["failed"] > 1)
        assert ProblemName.TRACE_EXPORT_FAILING in problems(exporter)
        commit_jobs(ledger, 4, 6)
        with sink(port=port) as receiver:
            await_empty(ledger)
            assert names(receiver.accepted)["run"] == 6


def test_what_waits_for_too_long_is_skipped(ledger: Ledger) -> None:
    """It is counted and said; what is young enough is sent once the receiver is back."""
    old_us = (time.time_ns() // 1000) - 7_200_000_000
    for first in (1, 11, 21):
        commit_jobs(ledger, first, first + 9, stored_us=old_us)
    commit_jobs(ledger, 31, 33)
    with sink() as receiver, exporting(ledger, receiver.url, batch=4) as exporter:
        await_empty(ledger)
        assert names(receiver.accepted)["run"] == 3
        assert exporter.status(0).settled["skipped"] == 30
        assert problems(exporter)[ProblemName.TRACE_BACKLOG_SKIPPED].records == 30
        assert exporter.problems() == []


def test_it_becomes_too_late_while_the_receiver_is_down(ledger: Ledger) -> None:
    commit_jobs(ledger, 1, 3)
    with exporting(ledger, f"http://127.0.0.1:{free_port()}", max_age="500ms") as exporter:
        await_empty(ledger)
        assert exporter.status(0).settled == {
            "exported": 0,
            "not_chosen": 0,
            "skipped": 3,
            "gone": 0,
        }
        assert exporter.status(0).spans == {"accepted": 0, "refused": 0}


def test_memory_is_bounded_however_much_waits(ledger: Ledger) -> None:
    commit_jobs(ledger, 1, 4000)
    with sink(reply=Reply(503)) as receiver:
        tracemalloc.start()
        try:
            with exporting(ledger, receiver.url, batch=100):
                receiver.await_requests(3)
                peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 8_000_000


def test_tls_with_certificates_of_both_sides(
    ledger: Ledger, tmp_path: Path, certificate: tuple[str, str]
) -> None:
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.load_verify_locations(cert)
    context.verify_mode = ssl.CERT_REQUIRED
    commit_jobs(ledger, 1, 2)
    own = {"client_certificate": cert, "client_key": key}
    with sink(context=context) as receiver:
        with exporting(ledger, receiver.url, **own) as exporter:
            wait_until("it fails", lambda: exporter.status(0).requests["failed"] > 0)
            found = problems(exporter)[ProblemName.TRACE_EXPORT_FAILING]
            assert "CERTIFICATE_VERIFY_FAILED" in found.detail
        assert receiver.received == []
        with exporting(ledger, receiver.url, certificate=cert, **own):
            await_empty(ledger)
        assert names(receiver.accepted)["run"] == 2


def checked(url: str, **options: Any) -> CheckResult:
    export = export_of(Traces.model_validate({"endpoint": url, "timeout": "10s", **options}), {})
    (found,) = check_traces(export)
    assert found.status.source == f"{url}/v1/traces"
    return found


@pytest.mark.parametrize(
    ("reply", "problem", "remedy"),
    [
        (OK, None, ""),
        (Reply(401, body=b"who?"), ProblemName.TRACE_SPANS_REFUSED, "traces.headers_file, for"),
        (Reply(403), ProblemName.TRACE_SPANS_REFUSED, "Authorization: Bearer TOKEN"),
        (Reply(404), ProblemName.TRACE_SPANS_REFUSED, "the whole URL"),
        (Reply(400), ProblemName.TRACE_SPANS_REFUSED, "OTLP over HTTP in protobuf"),
        (Reply(503), ProblemName.TRACE_EXPORT_FAILING, "see its log"),
    ],
)
def test_check_says_what_the_receiver_answers_and_what_to_do(
    reply: Reply, problem: ProblemName | None, remedy: str
) -> None:
    """Nothing arrives but a resource; what is refused is said with a remedy of its own."""
    with sink(reply=reply) as receiver:
        found = checked(receiver.url)
        (request,) = receiver.received
    assert (request.path, request.spans) == ("/v1/traces", [])
    assert (found.status.up, found.status.problem) == (problem is None, problem)
    assert remedy in found.remedy
    assert bool(found.remedy) == (problem is not None)
    assert found.status.detail.startswith("" if problem is None else f"HTTP {reply.status}")


def test_check_of_a_receiver_that_is_away_or_has_another_tls(
    certificate: tuple[str, str], tmp_path: Path
) -> None:
    """A certificate nobody vouches for, TLS where there is none, and a closed port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with sink(context=context) as receiver:
        unknown = checked(receiver.url)
        assert checked(receiver.url, certificate=certificate[0]).status.up
    with sink() as receiver:
        plain = checked(receiver.url.replace("http:", "https:"))
    away = checked(f"http://127.0.0.1:{free_port()}")
    headers = tmp_path / "headers"
    headers.write_text("no header\n")
    bad = checked(f"http://127.0.0.1:{free_port()}", headers_file=str(headers))
    for found, detail, remedy in (
        (unknown, "CERTIFICATE_VERIFY_FAILED", "name the CA"),
        (plain, "WRONG_VERSION_NUMBER", "without TLS: write http://"),
        (away, "Connection refused", "see whether the receiver runs"),
        (bad, f"{headers}:1", "the files that [traces] names"),
    ):
        assert found.status.problem == ProblemName.TRACE_EXPORT_FAILING
        assert detail in found.status.detail
        assert remedy in found.remedy


def test_check_asks_nobody_where_no_traces_are_exported() -> None:
    assert check_traces(export_of(Traces(), {})) == []


def test_headers_are_sent_and_never_said(
    ledger: Ledger, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A token is read again after a failure, so that it may be renewed."""
    token = tmp_path / "headers"
    token.write_text(f"# renewed daily\nAuthorization: Bearer {SECRET}-1\n")
    commit_jobs(ledger, 1, 1)
    with (
        sink(reply=Reply(503)) as receiver,
        exporting(ledger, f"{receiver.url}/in?key={SECRET}", headers_file=str(token)) as exporter,
    ):
        receiver.await_requests(1)
        told = str(exporter.problems())
        token.write_text(f"Authorization: Bearer {SECRET}-2\n")
        assert receiver.received[0].headers["authorization"] == f"Bearer {SECRET}-1"
        renewed = f"Bearer {SECRET}-2"
        wait_until(
            "the token is read again",
            lambda: receiver.received[-1].headers["authorization"] == renewed,
        )
        assert receiver.received[0].path == f"/in?key={SECRET}"
    printed = capfd.readouterr()
    assert SECRET not in told + printed.out + printed.err


def test_only_what_is_chosen_is_exported(ledger: Ledger) -> None:
    rows = [settled_run(1, user="ada"), settled_run(2, user="bob"), settled_run(3, GOOD)]
    commit_runs(ledger, rows)
    with sink() as receiver, exporting(ledger, receiver.url, users=["b*"]) as exporter:
        await_empty(ledger)
        users = {
            attribute.value.string_value
            for span in receiver.accepted
            for attribute in span.attributes
            if attribute.key == "htcondor.job.user"
        }
        assert users == {"bob"}
        assert exporter.status(0).settled["not_chosen"] == 2
