"""The socket for central logs: the real logger and rsyslog send to it; floods and garbage."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gwmond.config.settings import Config
from gwmond.model.pilots.file_facts import CentralKind
from gwmond.service.accounting import file_readers
from gwmond.service.host import log_socket
from gwmond.service.host.log_socket import LogSocket, PlaceError, Received
from gwmond.sources.child import QueryError
from gwmond.sources.gwms_tasks import central_lines
from tests.build.gwms.figures import FIGURE_7
from tests.pool.sandbox import wait_until

DOCS = Path(__file__).parent.parent.parent / "docs" / "central-log.md"
LOST = "Failed to send job exit status to shadow"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "log.socket")


@pytest.fixture
def listening(path: str) -> Iterator[LogSocket]:
    found = LogSocket(path)
    yield found
    found.close()


def arrived(listening: LogSocket, number: int) -> Received:
    """What has arrived once so many lines have; lines that were dropped do not count."""
    wait_until(f"{number} lines", lambda: listening.waiting >= number)
    return listening.take()


def sender(path: str) -> socket.socket:
    """A client as a syslog daemon is one."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.connect(path)
    return made


def logger(path: str, *parameters: str) -> None:
    """Send a line as a person would."""
    options = [word for one in parameters for word in ("--sd-param", one)]
    command = ["logger", "--socket", path, "--rfc5424", "--tag", "condor_starter"]
    subprocess.run([*command, "--sd-id", "pilot@1", *options, LOST], check=True)


# -- who sends


def test_the_real_logger(listening: LogSocket) -> None:
    """A line of its RFC 5424 is read, with the names among its structured data."""
    before = time.time()
    logger(listening.path, 'GLIDEIN_Name="glidein_1_2"', 'GLIDEIN_Site="X \\"y\\""')
    lines, read = central_lines(listening.path, arrived(listening, 1).lines)
    (event,) = lines.facts
    assert (event.kind, event.program, read) == (CentralKind.EXIT_UNSENT, "condor_starter", 1)
    assert (event.name.startd, event.name.site) == ("glidein_1_2", 'X "y"')
    assert event.at_us / 1e6 == pytest.approx((before + time.time()) / 2, abs=60)


def test_a_real_rsyslog_configured_as_the_documentation_says(
    listening: LogSocket, tmp_path: Path
) -> None:
    """Figure 7's lines come through it as they are; of others only what is asked for is sent."""
    block = re.search(r"    module\(load=\"omuxsock\"\)\n(?:    .*\n|\n)*", DOCS.read_text())
    assert block
    documented = block[0].replace("/run/gwmond/log.socket", listening.path)
    entrance = tmp_path / "in"
    configuration = tmp_path / "rsyslog.conf"
    configuration.write_text(
        f'global(workDirectory="{tmp_path}" net.enableDNS="off")\n'
        'module(load="imuxsock" SysSock.Use="off")\n'
        f'input(type="imuxsock" Socket="{entrance}" UseSpecialParser="off" ParseHostname="on"\n'
        '  IgnoreTimestamp="off" UseSysTimeStamp="off" RateLimit.Interval="0")\n' + documented
    )
    program = shutil.which("rsyslogd", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, "no rsyslogd: make setup-test installs it"
    running = subprocess.Popen(
        [program, "-n", "-f", str(configuration), "-i", "NONE"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        wait_until("rsyslogd", entrance.exists)
        with sender(str(entrance)) as client:
            client.send(b"<13>1 2022-01-28T00:23:36.804Z node other 1 - - nothing of interest")
            for line in FIGURE_7.splitlines():
                client.send(line.encode())
        lines = arrived(listening, 7).lines
    finally:
        running.terminate()
        said, _ = running.communicate(timeout=240)
    assert b"error" not in said, said
    direct, _ = central_lines(listening.path, FIGURE_7.encode().splitlines())
    through, _ = central_lines(listening.path, lines)
    assert through.wrong == direct.wrong == {}
    assert [event._replace(message="") for event in through.facts] == [
        event._replace(message="") for event in direct.facts
    ]


# -- floods and garbage


def test_a_flood_is_bounded_and_counted(
    listening: LogSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit is dropped; not one line is dropped that is not counted."""
    monkeypatch.setattr(log_socket, "BUFFER_LINES", 3000)
    with sender(listening.path) as client:
        for number in range(10_000):
            client.send(b"<13>1 line %d" % number)
        client.send(b"")
    taken = wait_until("all", lambda: (listening.overflow == 7000 and listening.take()) or None)
    assert (len(taken.lines), taken.overflow, taken.too_long) == (3000, 7000, 0)
    assert taken.lines[0] == b"<13>1 line 0"
    assert listening.take() == ((), 0, 0)


def test_bytes_are_bounded_too(listening: LogSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few long lines take as much room as many short ones."""
    monkeypatch.setattr(log_socket, "BUFFER_BYTES", 10_000)
    with sender(listening.path) as client:
        for _ in range(20):
            client.send(b"x" * 1000)
    taken = wait_until("all", lambda: (listening.overflow == 10 and listening.take()) or None)
    assert len(taken.lines) == 10


def test_lines_that_are_too_long(listening: LogSocket) -> None:
    """They are dropped and counted; what is as long as allowed is not."""
    with sender(listening.path) as client:
        client.send(b"x" * (log_socket.LINE_BYTES + 1))
        client.send(b"y" * log_socket.LINE_BYTES)
    taken = arrived(listening, 1)
    assert ([len(line) for line in taken.lines], taken.too_long) == ([log_socket.LINE_BYTES], 1)


def test_garbage_is_counted(listening: LogSocket) -> None:
    """A line is a datagram, also if there are newlines in it."""
    good = FIGURE_7.splitlines()[0].encode()
    with sender(listening.path) as client:
        for line in (os.urandom(500), b"\n\n\0", b"a\nb\nc", good + b"\n", b"<149>1 - h p 1 - -"):
            client.send(line)
        client.send(good)
    lines, read = central_lines(listening.path, arrived(listening, 5).lines)
    assert len(lines.facts) == 2
    assert read == 5
    assert sum(lines.wrong.values()) == 3


# -- the file


def test_its_rights(listening: LogSocket) -> None:
    """Its user and group may send, whatever the umask is."""
    assert stat.S_IMODE(os.stat(listening.path).st_mode) == 0o660


def test_one_that_a_killed_daemon_has_left_is_replaced(path: str) -> None:
    """A client that connects anew finds the new one."""
    left = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.bind(path)
    left.close()
    found = LogSocket(path)
    with sender(path) as client:
        client.send(b"line")
    assert arrived(found, 1).lines == (b"line",)
    found.close()
    assert not os.path.exists(path)


def test_one_in_use_is_not_taken(listening: LogSocket) -> None:
    """Two daemons with the same path: the second does not start, and the first goes on."""
    with pytest.raises(PlaceError, match="is in use by another process: stop that one"):
        LogSocket(listening.path)
    with sender(listening.path) as client:
        client.send(b"line")
    assert arrived(listening, 1).lines == (b"line",)


def test_another_kind_of_file_is_not_touched(path: str) -> None:
    Path(path).write_text("precious")
    with pytest.raises(PlaceError, match=r"factory.log_socket: .* is no socket: remove it"):
        LogSocket(path)
    assert Path(path).read_text() == "precious"


def test_a_streams_socket_is_not_touched(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(path)
        other.listen()
        with pytest.raises(PlaceError, match="another program listens on"):
            LogSocket(path)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match=r"factory.log_socket: .*/none is no directory: make it"):
        LogSocket(str(tmp_path / "none" / "log.socket"))


def test_a_directory_that_cannot_be_written() -> None:
    """Such as one of a read-only file system."""
    with pytest.raises(PlaceError, match=r"factory.log_socket: cannot write in /sys: .*right"):
        LogSocket("/sys/log.socket")


def test_closing_leaves_the_socket_of_another(listening: LogSocket, tmp_path: Path) -> None:
    """Who has replaced the file by now keeps it; until then the failure is told."""
    assert listening.failure == ""
    os.rename(listening.path, tmp_path / "moved")
    assert "was removed or replaced" in listening.failure
    with pytest.raises(QueryError, match="was removed"):
        central_lines(listening.path, (), listening.failure)
    again = LogSocket.renewed(listening, listening.path)
    assert again is not None
    assert again is not listening
    listening.close()
    assert again.failure == ""
    again.close()


def test_a_reload_keeps_it(listening: LogSocket, tmp_path: Path) -> None:
    """With the same path it is the same, with what waits; with another, another; or none."""
    config = Config.model_validate({"factory": {"log_socket": listening.path}})
    assert file_readers.listen(listening, config) is listening
    assert file_readers.listen(listening, Config()) is None
    moved = Config.model_validate({"factory": {"log_socket": str(tmp_path / "other")}})
    other = file_readers.listen(listening, moved)
    assert other is not None
    assert other.path == str(tmp_path / "other")
    other.close()


def test_a_directory_of_logs_that_is_not_there(tmp_path: Path) -> None:
    config = Config.model_validate({"factory": {"central_logs": [str(tmp_path / "none")]}})
    with pytest.raises(PlaceError, match=r"factory.central_logs: .*/none is no directory"):
        file_readers.listen(None, config)


@pytest.mark.parametrize(
    ("value", "said"),
    [("log.socket", "is not an absolute path: begin it with /"), ("/" + "x" * 103, "at most 103")],
)
def test_paths_that_cannot_be(value: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Config.model_validate({"factory": {"log_socket": value}})
