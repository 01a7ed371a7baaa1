"""The Unix socket of root and of the daemon's own user."""

from __future__ import annotations

import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gwmond.config.settings import Http
from gwmond.service.host.daemon_client import ask
from gwmond.web.app import create
from gwmond.web.local import connected, listening
from gwmond.web.server import Server, bind
from tests.build.snapshots import snapshot
from tests.build.web import Daemon, Waiting

NOBODY = 65534
JOB = "/explain?job=4711.0&format=json"


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the socket is; everybody could come so far."""
    with TemporaryDirectory(dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        monkeypatch.setenv("RUNTIME_DIRECTORY", directory)
        yield Path(directory, "http.socket")


def test_who_is_root_is_shown_jobs(path: Path, tmp_path: Path) -> None:
    """Without a token, and though the port shows none; the port still needs the token."""
    token = tmp_path / "token"
    token.write_text("secret")
    http = Http(listen="127.0.0.1:0", auth_token_file=str(token), jobs="nobody")
    hidden = Daemon(snapshot(), asked=Waiting(shows_jobs=False))
    server = Server(create(hidden, http.auth_token_file), bind(http), http)
    local = listening(path)
    assert local is not None
    server.serve_locally(create(Daemon(snapshot(), asked=Waiting()), ""), local)
    server.start()
    try:
        reply = ask(http, JOB)
        assert (reply.status, "NOT RUNNING" in reply.text) == (200, True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        server.stop()
    assert not path.exists()


def _asked(path: Path, user: int) -> str:
    """What a user of this host is answered."""
    command = ["curl", "-s", "--unix-socket", str(path), "http://localhost/-/healthy"]
    return subprocess.run(command, user=user, check=False, capture_output=True, text=True).stdout


def test_others_are_refused_by_the_kernels_word(path: Path) -> None:
    """Also where the socket's mode lets them in."""
    local = listening(path)
    assert local is not None
    http = Http(listen="127.0.0.1:0")
    server = Server(create(Daemon(), ""), bind(http), http)
    server.serve_locally(create(Daemon(), ""), local)
    server.start()
    try:
        path.chmod(0o666)
        assert [_asked(path, user) for user in (0, NOBODY)] == ["gwmond is healthy\n", ""]
    finally:
        server.stop()


def test_where_there_is_none(path: Path) -> None:
    """A directory of others, no directory; a socket in use stays, one that was left is replaced."""
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    local = listening(path)
    assert local is not None
    with closing(local):
        assert listening(path) is None
        connected(path, 1).close()
    assert listening(path.parent / "none" / "http.socket") is None
    path.parent.chmod(0o777)
    assert listening(path) is None
