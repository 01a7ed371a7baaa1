"""A Unix socket on which root, and the daemon's own user, are answered in full: also of jobs.

The kernel says who connects (SO_PEERCRED), so no token is needed.  The socket is in the directory
that systemd makes for the service, which only these two can enter.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from pathlib import Path
from typing import Any

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


def socket_path() -> Path:
    """Return where the socket is: of the service, also for who asks from outside of it."""
    return Path(os.environ.get("RUNTIME_DIRECTORY") or "/run/gwmond", "http.socket")


def connected(path: Path, timeout_s: float) -> socket.socket:
    """Return a connection to the socket; OSError where nobody answers there."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(timeout_s)
        made.connect(str(path))
    except OSError:
        made.close()
        raise
    return made


class LocalListener(socket.socket):
    """Accepts connections of root and of this process's user, and closes all others."""

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, see ``socket.socket.accept``."""
        while True:
            connection, address = super().accept()
            size = _CREDENTIALS.size
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            if _CREDENTIALS.unpack(peer)[1] in {0, os.geteuid()}:
                return connection, address
            connection.close()

    def close(self) -> None:
        """Close it, and remove its name."""
        with contextlib.suppress(OSError):
            os.unlink(self.getsockname())
        super().close()


def listening(path: Path) -> LocalListener | None:
    """Return a listening socket; None where others write into the directory, or it is in use."""
    try:
        owner = path.parent.stat()
        if owner.st_uid != os.geteuid() or owner.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
        with contextlib.suppress(OSError):
            connected(path, 1).close()
            return None
        path.unlink(missing_ok=True)
    except OSError:
        return None
    made = LocalListener(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.bind(str(path))
        path.chmod(0o600)  # nobody can connect before it listens
        made.listen()
    except OSError:
        made.close()
        return None
    return made
