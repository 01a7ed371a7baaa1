"""Plays the service manager: starts the daemon as Type=notify does, and notes what it says.

Only the notify protocol is played here.  What a real systemd makes of the unit, the sandbox and the
watchdog's kill, is in test_machine.py.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

_NUMBERS = itertools.count()
_CREDENTIALS = struct.Struct("3i")
#: The manager's own: all that was sent before it has been read.
_MARK = b"MARK"


@dataclass(frozen=True)
class Message:
    """One datagram: when it came, from which process, and its assignments."""

    time: float
    pid: int
    fields: dict[str, str]


class Manager:
    """One run of one service; a context manager that leaves no process behind."""

    def __init__(self, directory: Path, *, abstract: bool = False, watchdog_s: float = 4) -> None:
        """Listen, on a socket in ``directory`` or in the abstract namespace."""
        self.messages: list[Message] = []
        self.log = directory / "log"
        self._watchdog_s = watchdog_s
        number = f"{os.getpid()}-{next(_NUMBERS)}"
        self._name = f"@gwmond-manager-{number}" if abstract else str(directory / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._address = f"\0{self._name[1:]}" if abstract else self._name
        self._socket.bind(self._address)
        self._news = threading.Condition()
        self._marked = False
        self._process: subprocess.Popen[bytes] | None = None
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)
        self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(5)
        self._socket.close()
        # pytest shows this when the test fails
        print(*self.messages, sep="\n")
        print(self.log.read_text(errors="replace")[-4000:] if self.log.exists() else "")

    def _listen(self) -> None:
        while True:
            data, ancillary, _, _ = self._socket.recvmsg(8192, socket.CMSG_SPACE(12))
            if not data:
                return
            if data == _MARK:
                with self._news:
                    self._marked = True
                    self._news.notify_all()
                continue
            pid = _CREDENTIALS.unpack(ancillary[0][2])[0]
            lines = (line.partition("=") for line in data.decode().split("\n") if line)
            fields = {name: value for name, _, value in lines}
            with self._news:
                self.messages.append(Message(time.monotonic(), pid, fields))
                self._news.notify_all()

    def start(
        self,
        config: Path = Path(),
        *,
        command: Sequence[str] = (),
        cwd: str = "/",
        environ: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start ``gwmond run``, or another command, with the variables that systemd sets."""
        environ = {
            **environ,
            "PATH": os.environ["PATH"],
            "HOME": "/",
            "NOTIFY_SOCKET": self._name,
            "WATCHDOG_USEC": str(int(self._watchdog_s * 1e6)),
        }
        command = command or [sys.executable, "-m", "gwmond", "run", "--config", str(config)]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", 'WATCHDOG_PID=$$ exec "$@"', "sh", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environ,
                cwd=cwd,
            )

    def _send_mark(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.sendto(_MARK, self._address)

    @property
    def pid(self) -> int:
        """The service's main process."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the main process."""
        os.kill(self.pid, number)

    def wait(self, timeout: float) -> int:
        """Wait for the end; its exit status."""
        assert self._process is not None
        return self._process.wait(timeout)

    def expect(
        self,
        what: str | Callable[[Message], bool],
        *,
        timeout: float = 240,
        after: Message | None = None,
    ) -> Message:
        """The first message that has the assignment, or fulfils the predicate, after another.

        What a process says last may be read after its end.
        """

        def fits(message: Message) -> bool:
            if isinstance(what, str):
                name, _, value = what.partition("=")
                return message.fields.get(name) == value
            return what(message)

        def first() -> Message | None:
            start = self.messages.index(after) + 1 if after else 0
            return next((m for m in self.messages[start:] if fits(m)), None)

        deadline = time.monotonic() + timeout
        with self._news:
            while (found := first()) is None:
                left = deadline - time.monotonic()
                state = None if self._process is None else self._process.poll()
                if left <= 0 or (state is not None and self._marked):
                    raise AssertionError(f"no {what} within {timeout} s; exit status {state}")
                if state is not None:
                    self._send_mark()
                self._news.wait(min(left, 0.2))
        return found
