"""gwmond explain asks the daemon that runs, and no other program, and only one of the same pool."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from gwmond.commands import check
from gwmond.config import settings
from gwmond.config.settings import Traces
from gwmond.config.tracing import Export
from gwmond.web.connections import Connections
from tests.build.certificates import self_signed
from tests.build.rest import serve
from tests.build.snapshots import snapshot
from tests.build.web import Daemon, Waiting

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]
COLLECTOR = "cm.example.org"


@contextmanager
def serving(asked: Waiting, **http: Any) -> Iterator[tuple[str, Connections]]:
    """A daemon of the pool of ``COLLECTOR``: its address, and its connections."""
    with serve(Daemon(snapshot(), asked=asked), **http) as (server, listener):
        yield server.url.partition("//")[2], listener.connections


@pytest.fixture
def config(tmp_path: Path) -> Write:
    """Writes a configuration: of the address, and further lines of [http]."""

    def write(address: str, *lines: str, collector: str = COLLECTOR) -> str:
        file = tmp_path / "gwmond.toml"
        http = "\n".join((f'listen = "{address}"', *lines))
        file.write_text(f'[pool]\ncollectors = ["{collector}"]\n[http]\n{http}\n')
        return str(file)

    return write


@pytest.fixture
def token(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.write_text("se-cret\n")
    return str(file)


def test_the_daemon_says_what_a_change_would_move(run: Run, config: Write) -> None:
    """What cannot be a change is not asked."""
    asked = Waiting()
    words = "whatif", "memory", "cms", "2000"
    with serving(asked) as (address, _):
        code, out, _ = run(*words, "--config", config(address))
        assert (code, asked.asked[-1].query) == (
            0,
            {"whatif": "memory", "of": "cms", "value": "2000"},
        )
        assert out.startswith("16 JOBS MORE COULD RUN")
        code, _, err = run("whatif", "memory", "cms", "much", "--config", config(address))
        assert (code, "no whole number" in err, len(asked.asked)) == (2, True, 1)
    code, _, err = run(*words, "--ask", "daemon", "--config", config(address))
    assert (code, "daemon" in err) == (1, True)


def test_the_daemon_answers(run: Run, config: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """For people with a line of which poll it is, and for programs; proxies are not used."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    asked = Waiting()
    with serving(asked) as (address, _):
        file = config(address)
        code, out, err = run("explain", "4711.0", "--schedd", "ap1", "--config", file)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[0].startswith("NOT RUNNING for 3h03m: ")
        assert lines[-1].startswith("Pilots, entries and groups of jobs are as of the daemon's ")
        for words, name in (
            (["4711.0"], "NOT RUNNING"),
            (["--pilot", "p1"], "Pilot p1 HAS NO JOB"),
            (["--entry", "E", "--site", "S"], "Entry E of S HAS NO JOB"),
        ):
            code, out, _ = run("explain", *words, "--format", "json", "--config", file)
            assert code == 0
            assert json.loads(out)["first_line"].startswith(name)
        code, out, _ = run("explain", "--all", "--ask", "daemon", "--config", file)
        assert out.startswith("3 idle jobs of ")
        for form in ("table", "json"):
            code, out, err = run("explain", "0.0", "--format", form, "--config", file)
            assert (code, out) == (1, "")
            assert err == "gwmond: no job 0.0 is in the queue of ap1\n"
    kinds = ["job", "job", "pilot", "entry", "all", "job", "job"]
    assert [question.what for question in asked.asked] == kinds


def refused(run: Run, *words: str) -> str:
    """What a command says that may ask the daemon only, and gets no answer."""
    code, out, err = run("explain", "4711.0", "--ask", "daemon", *words)
    assert (code, out) == (1, "")
    return err


def test_a_daemon_of_another_pool(run: Run, config: Write) -> None:
    """Its answer is not shown, also where the command line names the pool."""
    with serving(Waiting()) as (address, _):
        other = "watches another pool"
        assert other in refused(run, "--config", config(address, collector="cm2.example.org"))
        assert other in refused(run, "--config", config(address, collector=f"{COLLECTOR}:9620"))
        file = config(address)
        assert other in refused(run, "--config", file, "--collector", "cm2.example.org")
        same = "--config", file, "--collector", "CM.example.org:9618"
        assert run("explain", "4711.0", "--ask", "daemon", *same)[0] == 0


def test_check_names_the_daemon_of_another_pool(config: Write, token: str) -> None:
    """Whose address it is, is a failure; one that does not tell its pool may be this daemon."""

    def listening(file: str) -> tuple[bool, str]:
        found = check.check_own(settings.load(Path(file)), Export(Traces()))
        (status,) = (verdict.status for verdict in found if verdict.status.source == "http")
        return status.up, status.detail

    with serving(Waiting()) as (address, _):
        assert listening(config(address)) == (True, "")
        other = f"{address} is the address of another gwmond, of {COLLECTOR}:9618"
        assert listening(config(address, collector="cm2.example.org")) == (False, other)
    with serving(Waiting(), auth_token_file=token) as (address, _):
        assert listening(config(address, collector="cm2.example.org")) == (True, "")


def test_a_daemon_that_shows_no_single_jobs(run: Run, config: Write) -> None:
    """What it says to people who see its page is not repeated: the command asks the pool."""
    with serving(Waiting(shows_jobs=False)) as (address, _):
        said = refused(run, "--config", config(address))
    assert said == f"gwmond: the daemon at {address} shows no single jobs ([http] jobs)\n"


def test_token_and_certificate(
    run: Run, config: Write, certificate: tuple[str, str], token: str, tmp_path: Path
) -> None:
    """The token is sent to who has the key of the configured certificate, and to nobody else."""
    secured = {"tls_cert": certificate[0], "tls_key": certificate[1]}
    lines = [f'{name} = "{value}"' for name, value in secured.items()]
    tokens = f'auth_token_file = "{token}"'
    with serving(Waiting(), auth_token_file=token, **secured) as (address, connections):
        assert "a bearer token is needed" in refused(run, "--config", config(address, *lines))
        asked = "--ask", "daemon", "--config", config(address, *lines, tokens)
        assert run("explain", "4711.0", *asked)[0] == 0
        cert, key = self_signed(tmp_path / "other")
        lines = [f'tls_cert = "{cert}"', f'tls_key = "{key}"', tokens]
        assert "CERTIFICATE_VERIFY_FAILED" in refused(run, "--config", config(address, *lines))
        assert [one.problem.value for one in connections.problems()] == ["no_token"]


def test_a_token_that_may_not_be_read(run: Run, config: Write, token: str) -> None:
    """The command goes on without the token, as its help says: it is no mistake in the file."""
    with serving(Waiting(), auth_token_file=token) as (address, _):
        file = config(address, 'auth_token_file = "/none/that/can/be/read"')
        assert "a bearer token is needed" in refused(run, "--config", file)
    code, _, err = run("pilots", "--ledger", "./none", "--config", file)
    assert (code, "token" in err) == (1, False)  # there is no ledger
    for command in ("run", "check", "demo"):
        code, _, err = run(command, "--config", file)
        assert (code, "auth_token_file: cannot read /none" in err) == (2, True)


def test_what_is_not_gwmond(run: Run, config: Write, token: str) -> None:
    """It gets no token; what pretends to be gwmond gets nothing onto the terminal."""
    said: dict[str, bytes] = {"/-/healthy": b"hello"}
    heard: list[str | None] = []

    class Stranger(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            heard.append(self.headers["Authorization"])
            body = said.get(self.path, "No job \x1b[31mred\x9b\r\n".encode())
            self.send_response(200)
            self.send_header("Gwmond-Pool", f"{COLLECTOR}%3A9618")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Be silent."""

    server = HTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        file = config(f"127.0.0.1:{server.server_port}", f'auth_token_file = "{token}"')
        assert "is not gwmond" in refused(run, "--config", file)
        assert heard == [None]
        said["/-/healthy"] = b"gwmond is healthy\n"
        code, out, _ = run("explain", "4711.0", "--ask", "daemon", "--config", file)
        assert (code, out.startswith("No job ")) == (0, True)
        assert not {"\x1b", "\x9b", "\r"} & set(out)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_no_daemon(run: Run, config: Write) -> None:
    """It is said where none answers."""
    with serving(Waiting()) as (address, _):
        pass
    assert f"no daemon answers at {address}" in refused(run, "--config", config(address))
