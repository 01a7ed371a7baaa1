"""Tells the service manager how the daemon is, by the protocol of sd_notify(3).

A message is one datagram of ``NAME=value`` lines to the socket that ``NOTIFY_SOCKET`` names.  Where
nobody asked for messages every method does nothing, and a message that cannot be delivered is lost:
no manager is a reason for the daemon to stop.
"""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

from gwmond.model.digits import is_number

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_SEND_TIMEOUT_S = 1.0


class Notifier:
    """Sends the messages; make one early, before threads and children exist.

    It takes its variables out of the environment, so that no child speaks for the daemon.
    ``watchdog_interval_s`` is how often :meth:`watchdog` has to be called: half of the time after
    which the manager kills; ``None`` when it does not watch this process.
    """

    def __init__(self, environ: MutableMapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._address = _address(environ.pop("NOTIFY_SOCKET", ""))
        usec, pid = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        watched = bool(self._address) and is_number(usec) and pid in ("", str(os.getpid()))
        self.watchdog_interval_s: float | None = (int(usec) / 2e6 if watched else 0.0) or None

    def ready(self) -> None:
        """Say that startup, or a reload, is complete."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """Say in one line what ``systemctl status`` shows."""
        self._send(f"STATUS={' '.join(text.split())}")

    def reloading(self) -> None:
        """Say that a reload begins; :meth:`ready` has to follow, also when it fails."""
        self._send(
            f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}"
        )

    def stopping(self) -> None:
        """Say that the daemon is about to end."""
        self._send("STOPPING=1")

    def watchdog(self) -> None:
        """Say that the daemon works."""
        self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(_SEND_TIMEOUT_S)
                sender.sendto(message.encode(), self._address)
        except OSError:
            pass  # nobody there, or too busy to listen


def _address(name: str) -> str:
    """Return the socket's address; a leading ``@`` stands for the abstract namespace's NUL."""
    if name.startswith("@") and len(name) > 1:
        return "\0" + name[1:]
    return name if name.startswith("/") else ""
