"""etc/gwmond-trace.sh on this machine, by several shells (in jobs: test_in_the_job.py)."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from gwmond.traces.spans import SpanName, span_id, trace_id
from tests.build.otlp_sink import Sink, sink

SCRIPT = Path(__file__).resolve().parents[2] / "etc/gwmond-trace.sh"
SHELLS = {"dash": ["dash"], "bash": ["bash"], "busybox": ["busybox", "sh"]}
JOB, BEGAN = "ap1.example.org#1234.0#1700000000", "1700000100"
SUBMITTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OWN = trace_id(SpanName.JOB, JOB), span_id(SpanName.RUN, JOB, BEGAN)


@pytest.fixture
def received() -> Iterator[Sink]:
    with sink() as running:
        yield running


def _as_on_a_node() -> None:
    """Let no signal be ignored: whoever began the tests may ignore some, and a shell keeps that."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


class Node:
    """A job's place on a node: its directory, its ad, its environment."""

    def __init__(self, shell: list[str], place: Path, endpoint: str) -> None:
        self.shell, self.place = shell, place
        self.env = {"PATH": os.environ["PATH"], "_CONDOR_SCRATCH_DIR": str(place)}
        if endpoint:
            self.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
        self.ad()

    def ad(self, **more: object) -> None:
        """Write the job's ad, with these attributes besides."""
        values = {"GlobalJobId": f'"{JOB}"', "JobCurrentStartDate": BEGAN, "TotalSubmitProcs": 1}
        text = "".join(f"{name} = {value}\n" for name, value in {**values, **more}.items())
        (self.place / ".job.ad").write_text(text)
        self.env["_CONDOR_JOB_AD"] = str(self.place / ".job.ad")

    def popen(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.shell, *arguments],
            env={**self.env, **env},
            cwd=self.place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=_as_on_a_node,  # noqa: PLW1509 (no thread of a test holds a lock then)
        )

    def run(self, *arguments: str, stdin: str = "", **env: str) -> tuple[int, str, str]:
        """Exit status, output, errors; nothing of the script's own is left."""
        process = self.popen(*arguments, **env)
        out, errors = process.communicate(stdin, timeout=120)
        assert not list(self.place.glob(".gwmond-trace*"))
        return process.returncode, out, errors

    def source(self, script: str, **env: str) -> tuple[int, str, str]:
        """Run a script that sources gwmond-trace.sh in its second line."""
        head, rest = script.split("\n", 1) if script.startswith("#") else ("", script)
        (self.place / "script").write_text(f"#!/bin/sh\n{head}\n. {SCRIPT}\n{rest}\n")
        return self.run(str(self.place / "script"), **env)


@pytest.fixture(params=SHELLS)
def node(request: pytest.FixtureRequest, tmp_path: Path, received: Sink) -> Node:
    return Node(SHELLS[request.param], tmp_path, received.url)


def found(span: Span) -> dict[str, Any]:
    return {
        one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes
    }


def test_spans_nest_below_the_runs_span(node: Node, received: Sink) -> None:
    before = time.time_ns()
    done = node.source(
        "outer() { gwmond_span inner sh -c 'echo $TRACEPARENT'; echo $TRACEPARENT; }\n"
        "gwmond_span outer outer\necho $TRACEPARENT\ngwmond_span next true"
    )
    after = time.time_ns()
    inner, outer, last = received.accepted
    trace, run = OWN
    assert [span.name for span in received.accepted] == ["inner", "outer", "next"]
    assert {span.trace_id for span in received.accepted} == {trace}
    parents = (inner.parent_span_id, outer.parent_span_id, last.parent_span_id)
    assert parents == (outer.span_id, run, run)
    told = [f"00-{trace.hex()}-{id.hex()}-01\n" for id in (inner.span_id, outer.span_id, run)]
    assert done == (0, "".join(told), "")
    for span in received.accepted:
        assert (span.kind, span.flags, span.status.code) == (Span.SPAN_KIND_INTERNAL, 1, 0)
        assert before - 10**9 < span.start_time_unix_nano <= span.end_time_unix_nano < after
    whole = ExportTraceServiceRequest.FromString(received.received[0].raw)
    (resource,) = whole.resource_spans
    texts = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert texts == {"service.name": "job", "htcondor.job.id": JOB}
    assert [one.path for one in received.received] == ["/v1/traces"]


@pytest.mark.parametrize(
    ("procs", "traceparent", "trace"),
    [
        (500, SUBMITTER, SUBMITTER[3:35]),
        (501, SUBMITTER, OWN[0].hex()),
        (1, "", OWN[0].hex()),
        (1, "00-" + 32 * "0" + SUBMITTER[35:], OWN[0].hex()),
        (1, SUBMITTER.upper(), OWN[0].hex()),
    ],
)
def test_a_job_joins_the_trace_of_its_submitter_as_gwmond_does(
    node: Node, received: Sink, procs: int, traceparent: str, trace: str
) -> None:
    """By its ad, and by its environment only where gwmond does so too."""
    node.ad(TotalSubmitProcs=procs, TraceParent=f'"{traceparent}"')
    node.source("gwmond_span a true", TRACEPARENT=SUBMITTER.replace("8", "9"))
    (span,) = received.accepted
    assert (span.trace_id.hex(), span.parent_span_id) == (trace, OWN[1])
    asked = {"TRACEPARENT": SUBMITTER, "GWMOND_TRACE_READ_ENVIRONMENT": "true"}
    node.source("gwmond_span a true", **asked)
    read = SUBMITTER[3:35] if procs <= 500 else OWN[0].hex()
    assert received.accepted[1].trace_id.hex() == read


def test_a_limit_of_its_own(node: Node, received: Sink) -> None:
    node.ad(TotalSubmitProcs=3, TraceParent=f'"{SUBMITTER}"')
    node.source("gwmond_span a true", GWMOND_TRACE_JOIN_AT_MOST="2")
    assert received.accepted[0].trace_id == OWN[0]


def test_what_is_not_sampled_is_not_sent(node: Node, received: Sink) -> None:
    node.ad(TraceParent=f'"{SUBMITTER[:-1]}0"')
    done = node.source("gwmond_span a sh -c 'echo $TRACEPARENT'")
    assert done == (0, f"00-{SUBMITTER[3:35]}-{OWN[1].hex()}-00\n", "")
    assert received.received == []


def test_without_an_endpoint_nothing_happens(tmp_path: Path) -> None:
    node = Node(["dash"], tmp_path, "")
    script = "gwmond_span a sh -c 'echo ${TRACEPARENT-none}; exit 3'"
    assert node.source(script) == (3, "none\n", "")
    assert node.run(str(SCRIPT), "sh", "-c", "echo ${TRACEPARENT-none}; exit 4")[:2] == (
        4,
        "none\n",
    )
    told = node.source(script, OTEL_EXPORTER_OTLP_ENDPOINT="http://x", OTEL_SDK_DISABLED="true")
    assert told == (3, "none\n", "")


def test_errors_have_a_status_and_pass_through(node: Node, received: Sink) -> None:
    done = node.source(
        "gwmond_span fails sh -c 'exit 3'\necho $?\n"
        "gwmond_span killed sh -c 'kill -9 $$' 2>/dev/null\necho $?\n"
        "gwmond_span_begin part\ngwmond_span_end 200\necho $?\nexit 7"
    )
    assert done == (7, "3\n137\n200\n", "")
    told = [(span.name, span.status.code, found(span)) for span in received.accepted]
    assert told == [
        ("fails", Status.STATUS_CODE_ERROR, {"error.type": "exit_nonzero", "process.exit.code": 3}),
        ("killed", 2, {"error.type": "exit_signal", "process.exit.code": 137}),
        ("part", 2, {"error.type": "exit_signal", "process.exit.code": 200}),
    ]


NAMES = ['a "b" \\c\\n', "tab\there", "two\nlines", "ü€😀", "%s $HOME `id` *", "-n", "é" * 200]


NOT_UTF_8 = {
    b"a\xffb": "a?b",
    b"\xc3": "?",
    b"\xc0\xaf": "??",
    b"\xed\xa0\x80": "???",
    b"\xf4\x90\x80\x80": "????",
    b"\xf0\x8f\xbf\xbf": "????",
    b"\xe2\x82\xac\xe2\x82": "€??",
}


def test_any_name_arrives(node: Node, received: Sink) -> None:
    names = [*NAMES, *(os.fsdecode(name) for name in NOT_UTF_8)]
    variables = {f"NAME{number}": name for number, name in enumerate(names)}
    node.source("\n".join(f'gwmond_span "${name}" true' for name in variables), **variables)
    plain = [name.replace("\t", " ").replace("\n", " ")[:125] for name in NAMES]
    assert [span.name for span in received.accepted] == [*plain, *NOT_UTF_8.values()]


def test_a_script_that_stops_at_errors(node: Node, received: Sink) -> None:
    """Its functions stop at errors too; spans that were open have the exit code."""
    done = node.source(
        "#\nset -eu\nIFS=,\nset -fC\nstep() { echo a; false; echo never; }\n"
        "gwmond_span guarded false || echo guarded\ngwmond_span outer gwmond_span step step\n"
        "echo never"
    )
    assert done == (1, "guarded\na\n", "")
    told = [(span.name, found(span)["process.exit.code"]) for span in received.accepted]
    assert told == [("guarded", 1), ("step", 1), ("outer", 1)]


def test_options_set_before(node: Node, received: Sink) -> None:
    done = node.source("# \nset -euf")
    (node.place / "strict").write_text(
        f"set -euCf\nIFS=0\n. {SCRIPT}\ngwmond_span a true\nprintf %s $IFS\nexit 5\n"
    )
    assert (done[0], node.run(str(node.place / "strict"))) == (0, (5, "", ""))
    assert [span.name for span in received.accepted] == ["a"]


def test_traps_that_were_set_before_still_run(node: Node, received: Sink) -> None:
    trap = "trap 'echo \"it'\"'\"'s $?\n EXIT\"; false; exit 9' EXIT\ntrap 'echo usr' USR1"
    (node.place / "trapped").write_text(
        f"{trap}\n. {SCRIPT}\n. {SCRIPT}\ngwmond_span a true\nkill -USR1 $$\nexit 4\n"
    )
    assert node.run(str(node.place / "trapped")) == (9, "usr\nit's 4\n EXIT\n", "")
    assert [span.name for span in received.accepted] == ["a"]


def test_a_trap_set_later_can_send(node: Node, received: Sink) -> None:
    done = node.source("trap 'gwmond_trace_end; echo $?' EXIT\ngwmond_span a true\nexit 4")
    assert done == (4, "4\n", "")
    assert [span.name for span in received.accepted] == ["a"]


def test_subshells_pipes_and_background(node: Node, received: Sink) -> None:
    done = node.source(
        "gwmond_span one echo x | gwmond_span two cat\n"
        "(gwmond_span three true)\ngwmond_span four true &\nwait\n"
        "(gwmond_span_begin five; exit 0)\ntrue"
    )
    assert done == (0, "x\n", "")
    assert sorted(span.name for span in received.accepted) == [
        *("five", "four", "one", "three", "two")
    ]
    (five,) = [span for span in received.accepted if span.name == "five"]
    assert (five.status.code, found(five)) == (2, {"error.type": "unfinished"})


def test_a_script_in_a_wrapped_command_nests(node: Node, received: Sink) -> None:
    (node.place / "inside").write_text(f"#!/bin/sh\n. {SCRIPT}\ngwmond_span a true\nexit 2\n")
    assert node.run(str(SCRIPT), "sh", "inside")[0] == 2
    inside, wrapped = received.accepted
    assert (inside.parent_span_id, wrapped.parent_span_id) == (wrapped.span_id, OWN[1])
    assert [inside.name, wrapped.name] == ["a", "sh"]


def test_a_wrapped_command_is_itself(node: Node, received: Sink) -> None:
    """Arguments, input, output, errors and exit code are its own; no argument is in a span."""
    script = 'cat; printf "%s|" "$@" >&2; exit 3'
    arguments = ("sh", "-c", script, "x", "a b", "", "CANARY", "*")
    assert node.run(str(SCRIPT), *arguments, stdin="in") == (3, "in", "a b||CANARY|*|")
    (span,) = received.accepted
    assert (span.name, found(span)["process.exit.code"]) == ("sh", 3)
    assert b"CANARY" not in received.received[0].raw
    code, out, errors = node.run(str(SCRIPT), "no-such-program")
    assert (code, out, "no-such-program" in errors) == (127, "", True)
    assert node.run(str(SCRIPT))[0] == 2


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "INT"])
def test_a_signal_that_ends_a_command_ends_the_wrapper(
    node: Node, received: Sink, name: str
) -> None:
    number = signal.Signals[f"SIG{name}"]
    code, out, errors = node.run(str(SCRIPT), "sh", "-c", f"kill -{name} $$; echo never")
    quiet = name == "INT"  # shells say nothing of this one
    assert (code, out, errors) == (130 if quiet else -number, "", "")
    assert found(received.accepted[0])["error.type"] == "exit_signal"
    exits = ("sh", "-c", f"exit {128 + number}")
    assert node.run(str(SCRIPT), *exits)[0] == 128 + number


@pytest.mark.parametrize("name", ["TERM", "USR1", "HUP", "INT", "QUIT"])
def test_signals_are_passed_on(node: Node, received: Sink, name: str) -> None:
    script = f"trap 'echo {name}; exit 6' {name}; echo ready; while :; do sleep 0.05; done"
    with node.popen(str(SCRIPT), "sh", "-c", script) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.Signals[f"SIG{name}"])
            out, errors = process.communicate(timeout=120)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, out, errors) == (6, f"{name}\n", "")
    assert found(received.accepted[0])["process.exit.code"] == 6


@pytest.fixture(params=["closed", "silent", "endless"])
def dead(request: pytest.FixtureRequest) -> Iterator[str]:
    """An endpoint that refuses, that never answers, and that answers for ever."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        if request.param == "closed":
            server.close()
        if request.param == "endless":
            endless(server)
        yield url


def endless(server: socket.socket) -> None:
    def answer() -> None:
        try:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.2)
        except OSError:
            return

    threading.Thread(target=answer, daemon=True).start()


@pytest.mark.parametrize("client", ["curl", "wget", "busybox"])
def test_a_dead_endpoint_costs_three_seconds_at_most(
    tmp_path: Path, dead: str, client: str
) -> None:
    """Besides what the script's own programs take, on this machine now."""
    node = Node(["dash"], tmp_path, dead)
    path = only(tmp_path / "bin", client)
    began = time.monotonic()
    assert node.source("exit 3", PATH=path) == (3, "", "")
    usual = time.monotonic() - began
    began = time.monotonic()
    assert node.source("gwmond_span a echo x\nexit 3", PATH=path) == (3, "x\n", "")
    assert time.monotonic() - began < 4.5 + 50 * usual


TOOLS = (
    *("dash", "sh", "od", "tr", "sed", "date", "wc", "sha256sum", "mkdir", "rm", "cat"),
    *("sleep", "timeout", "env"),
)


def only(place: Path, client: str) -> str:
    """A PATH with one client of HTTP, and all else that the script needs."""
    place.mkdir()
    for name in TOOLS:
        (place / name).symlink_to(which(name))
    for name in ("wget", "nc") if client == "busybox" else (client,):
        (place / name).symlink_to(which(client))
    return str(place)


def which(name: str) -> str:
    path = shutil.which(name)
    assert path, name
    return path


@pytest.mark.parametrize("client", ["curl", "wget", "busybox"])
def test_each_client_sends(tmp_path: Path, received: Sink, client: str) -> None:
    node = Node(["dash"], tmp_path, received.url)
    path = only(tmp_path / "bin", client)
    assert node.source("gwmond_span a true", PATH=path) == (0, "", "")
    assert [span.name for span in received.accepted] == ["a"]
    assert received.received[0].headers["content-type"] == "application/x-protobuf"


@pytest.mark.parametrize("client", ["curl", "wget", "busybox"])
def test_headers_are_sent_and_not_shown(tmp_path: Path, received: Sink, client: str) -> None:
    node = Node(["dash"], tmp_path, received.url)
    path = only(tmp_path / "bin", client)
    shown = tmp_path / "shown"
    real = tmp_path / "bin" / ("nc" if client == "busybox" else client)
    (tmp_path / "real").mkdir()
    real.rename(tmp_path / "real" / real.name)
    real.write_text(f'#!/bin/sh\necho "$@" >>{shown}\nexec {tmp_path}/real/{real.name} "$@"\n')
    real.chmod(0o755)
    headers = 'Authorization=Bearer%20CAN"ARY\\x%3D=,x-mlflow-experiment-id = 1,X=a%0d%0aEvil: 1'
    node.source(
        "gwmond_span a true",
        PATH=path,
        OTEL_EXPORTER_OTLP_HEADERS=headers,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=received.url + "/here",
    )
    (told,) = received.received
    sent = told.headers
    assert sent["authorization"] == 'Bearer CAN"ARY\\x=='
    assert (sent["x-mlflow-experiment-id"], sent["x"]) == ("1", "aEvil: 1")
    assert "evil" not in sent
    assert told.path == "/here"
    assert "CAN" not in shown.read_text()


def test_busybox_sends_nothing_unverified(tmp_path: Path, received: Sink) -> None:
    node = Node(["dash"], tmp_path, received.url.replace("http", "https"))
    assert node.source("gwmond_span a true", PATH=only(tmp_path / "bin", "busybox"))[0] == 0
    assert received.received == []


def test_many_spans_are_bounded(tmp_path: Path, received: Sink) -> None:
    """About a megabyte is kept: the rest of the spans is not sent."""
    node = Node(["dash"], tmp_path, received.url)
    node.source(
        "gwmond_span first true\ni=0\nwhile [ $i -lt 1000 ]; do\n"
        'cat "$_gt_dir"/spans "$_gt_dir"/spans >"$_gt_dir"/x; mv "$_gt_dir"/x "$_gt_dir"/spans\n'
        '[ "$(wc -c <"$_gt_dir"/spans)" -gt 1000000 ] && break\ndone\ngwmond_span last true'
    )
    assert {span.name for span in received.accepted} == {"first"}
    assert len(received.received[0].raw) > 1_000_000


def test_outside_of_a_job(node: Node, received: Sink) -> None:
    """At home it continues TRACEPARENT, else begins a trace."""
    del node.env["_CONDOR_JOB_AD"]
    node.source("gwmond_span a true", TRACEPARENT=SUBMITTER)
    node.source("gwmond_span b true\necho ${TRACEPARENT-none}")
    joined, alone = received.accepted
    assert (joined.trace_id.hex(), joined.parent_span_id.hex()) == (
        SUBMITTER[3:35],
        SUBMITTER[36:52],
    )
    assert (any(alone.trace_id), alone.parent_span_id) == (True, b"")


def test_shellcheck_has_no_remarks() -> None:
    done = subprocess.run(["shellcheck", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("client", ["curl", "wget"])
def test_certificates_are_verified(
    tmp_path: Path, certificate: tuple[str, str], client: str
) -> None:
    """Also where a configuration in the home directory says otherwise."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    (tmp_path / ".curlrc").write_text("insecure\n")
    (tmp_path / ".wgetrc").write_text("check_certificate = off\n")
    with sink(context=context) as received:
        node = Node(["dash"], tmp_path, received.url)
        path = {"PATH": only(tmp_path / "bin", client), "HOME": str(tmp_path)}
        assert node.source("gwmond_span a true", **path)[0] == 0
        assert received.received == []
        known = {"OTEL_EXPORTER_OTLP_CERTIFICATE": certificate[0]}
        assert node.source("gwmond_span a true", **path, **known)[0] == 0
        assert [span.name for span in received.accepted] == ["a"]
