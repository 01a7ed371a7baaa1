"""A bound on the CPU time that one file costs.

What pilots return is anybody's: a file may be made to be slow to read, in ways that no bound on
bytes foresees.  A timer of the kernel (setitimer(2), ITIMER_PROF) interrupts the reading.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooSlow(BaseException):
    """The CPU time is used up; no ``except Exception`` on the way takes it for its own."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlow when the body has used so many seconds of CPU; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
