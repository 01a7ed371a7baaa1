"""TCP ports of loopback that no other test takes, in this process or in another.

A port that the kernel picks is free only at that moment: another process may get the same port
before the first one listens.  Each test process therefore locks a block of ports below the range
from which the kernel picks, and hands out each of them in turn.
"""

from __future__ import annotations

import fcntl
import itertools
import socket
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

_LOCKS = Path("/tmp/gwmond-test-ports")
_FIRST, _SIZE, _BLOCKS = 10_000, 200, 100  # the kernel picks from 32768 on


@cache
def _block() -> tuple[object, Iterator[int]]:
    """The first block that no living process has: its lock, and its ports again and again."""
    _LOCKS.mkdir(mode=0o777, exist_ok=True)
    for number in range(_BLOCKS):
        lock = (_LOCKS / str(number)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        first = _FIRST + number * _SIZE
        return lock, itertools.cycle(range(first, first + _SIZE))
    raise RuntimeError(f"all {_BLOCKS} blocks of ports are taken: {_LOCKS}")


def free_port() -> int:
    """A TCP port on loopback on which nothing listens, and which no other test is given."""
    _, ports = _block()
    for port in itertools.islice(ports, _SIZE):
        with closing(socket.socket()) as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("something listens on all ports of this process's block")
