"""Bounds on the CPU time and the memory that one file costs.

What pilots return is anybody's: a file may be made to be slow to read, or to grow in memory, in
ways that no bound on bytes foresees.  A timer of the kernel (setitimer(2), ITIMER_PROF) interrupts
the reading, and the process gets no more address space (setrlimit(2), RLIMIT_AS) than it had when
the reading began, and as much more as a file may cost.
"""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

MIB = 1 << 20


class TooSlow(BaseException):
    """The CPU time is used up; no ``except Exception`` on the way takes it for its own."""


@contextmanager
def cost_limit(seconds: float, memory_mib: int) -> Iterator[None]:
    """Raise TooSlow when the body has used so many seconds of CPU, MemoryError when so many MiB.

    In the main thread only, for it is the whole process that is interrupted and bounded.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, late)
    bounds = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_bound(memory_mib, bounds[0]), bounds[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, bounds)
        signal.signal(signal.SIGPROF, before)


def _bound(memory_mib: int, bound: int) -> int:
    """Return the bound on the address space, in bytes: what it is now, and so much more."""
    with open("/proc/self/statm", "rb", buffering=0) as sizes:  # of each file: no text layer
        pages = int(sizes.read().split()[0])
    most = pages * resource.getpagesize() + memory_mib * MIB
    return most if bound == resource.RLIM_INFINITY else min(most, bound)
