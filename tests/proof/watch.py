"""The processes of a pool, watched from outside: when each daemon began and when it was gone.

Units: epoch seconds, with a fraction.  A beginning is what the kernel says; an end lies between
two looks (``PAUSE_S`` apart).  HTCondor itself is asked nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.build.meanwhile import Meanwhile
from tests.pool.sandbox import Process

PAUSE_S = 0.1
_YOUNG_S = 15.0
_TICKS = os.sysconf("SC_CLK_TCK")


def _booted() -> float:
    """Return when the machine was started (epoch seconds): the reading of two clocks at once."""
    found = []
    for _ in range(20):
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        now = time.time()
        after = time.clock_gettime(time.CLOCK_BOOTTIME)
        found.append((after - before, now - (before + after) / 2))
    return min(found)[1]


_BOOTED = _booted()


@dataclass
class Life:
    """One process; ``seen`` is the last look at which it lived, ``gone`` the first without it."""

    process: Process
    start: float
    seen: float
    gone: float | None = None

    @property
    def program(self) -> str:
        """The name of its program, without directories."""
        return self.process.argv[0].rpartition("/")[2]


def _stat(pid: int) -> tuple[str, float] | None:
    """State and start of a process (epoch seconds), None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return fields[0], _BOOTED + int(fields[19]) / _TICKS


class ProcessWatch(Meanwhile):
    """Looks at a sandbox's processes in a thread; a context manager."""

    def __init__(self, processes: Callable[[Iterable[int]], Iterable[Process]]) -> None:
        """``processes`` tells those of the given process numbers that are of the sandbox."""
        super().__init__(self._run)
        self._processes = processes
        self._lives: dict[int, Life] = {}
        self._past: list[Life] = []
        self._dismissed: set[int] = set()
        #: the longest time from one look to the end of the next: so much this machine was behind
        self.longest_pause_s = 0.0
        self._lock = threading.Lock()

    def lives(self, program: str) -> list[Life]:
        """All processes of a program so far, in the order of their beginnings."""
        with self._lock:
            everything = [*self._past, *self._lives.values()]
        return sorted(
            (life for life in everything if life.program == program), key=lambda of: of.start
        )

    def _run(self) -> None:
        before = time.monotonic()
        while not self._stop.wait(PAUSE_S):
            self._look()
            now = time.monotonic()
            self.longest_pause_s, before = max(self.longest_pause_s, now - before), now

    def _look(self) -> None:
        now = time.time()
        pids = {int(entry) for entry in os.listdir("/proc") if entry.isdigit()}
        self._dismissed &= pids
        with self._lock:
            for pid, life in list(self._lives.items()):
                before = time.time()
                stat = _stat(pid)
                if stat is None or stat[0] in "ZX" or abs(stat[1] - life.start) > 1:
                    life.gone = time.time()  # on a loaded machine a look takes long
                    self._past.append(self._lives.pop(pid))
                else:
                    life.seen = before
            young = [p for p, life in self._lives.items() if now - life.start < _YOUNG_S]
            wanted = [*(pids - self._dismissed - self._lives.keys()), *young]
        found = {process.pid: process for process in self._processes(wanted)}
        with self._lock:
            for pid in wanted:
                before = time.time()
                stat = _stat(pid)
                if stat is None or stat[0] in "ZX":
                    continue
                process = found.get(pid)
                if process is None:
                    if now - stat[1] > _YOUNG_S and pid not in self._lives:
                        self._dismissed.add(pid)
                elif pid in self._lives:
                    # A daemon's child is at first its parent's image.
                    self._lives[pid].process = process
                else:
                    self._lives[pid] = Life(process, stat[1], before)
