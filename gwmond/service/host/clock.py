"""The clocks that the daemon reads, live or at the accelerated speed of a replay."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import NamedTuple, Protocol

from gwmond.model.elapsed import Tick

REPLAY = "replay-"
"""What the ``boot_id`` of a replay's ticks begins with: a ledger shows whether they are its own."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """A source of ticks."""

    speed: float

    def tick(self) -> Tick:
        """Return the time on all clocks."""


class SystemClock:
    """The machine's clocks."""

    speed = 1.0

    def __init__(self) -> None:
        try:
            self._boot_id = _BOOT_ID.read_text().strip()
        except OSError:
            self._boot_id = "unknown"

    def tick(self) -> Tick:
        """Return the time on all clocks of this machine."""
        return Tick(
            wall=time.time(),
            mono=time.clock_gettime(time.CLOCK_MONOTONIC),
            boot=time.clock_gettime(time.CLOCK_BOOTTIME),
            boot_id=self._boot_id,
        )


class Position(NamedTuple):
    """Where a replay is: the recorded time, and the seconds to add to epochs in its ads.

    ``shift`` is whole and the same throughout one pass, so that a pilot's start does not waver.
    """

    time: float
    shift: float


class ReplayClock:
    """A clock that runs ``speed`` times as fast as the machine's, over a recording, repeatedly.

    It starts at the machine's time.
    """

    def __init__(self, first: float, duration_s: float, speed: float) -> None:
        self.speed = speed
        self._first = first
        self._duration = duration_s
        self._system = SystemClock()
        self._start = self._system.tick()

    def tick(self) -> Tick:
        """Return the accelerated time; all its clocks run alike."""
        real = self._system.tick()
        ahead = (real.boot - self._start.boot) * (self.speed - 1)
        boot_id = f"{REPLAY}{self._start.boot}-{real.boot_id}"
        wall = self._start.wall + (real.boot - self._start.boot) * self.speed
        return Tick(wall, real.boot + ahead, real.boot + ahead, boot_id)

    def position(self, tick: Tick) -> Position:
        """Return which instant of the recording ``tick`` is."""
        turns, passed = divmod(tick.wall - self._start.wall, self._duration)
        shift = math.floor(self._start.wall + turns * self._duration - self._first)
        return Position(self._first + passed, shift)
