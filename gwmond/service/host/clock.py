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

    def next_tick(self, after: Tick | None) -> Tick:
        """Return the time at which a poll begins; ``after``: up to which time all is stored."""


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

    def next_tick(self, after: Tick | None) -> Tick:
        """Return the time: a poll takes it as it comes."""
        del after
        return self.tick()


class Position(NamedTuple):
    """Where a replay is: the recorded time, and the seconds to add to epochs in its ads.

    ``shift`` is whole and the same throughout one pass, so that a pilot's start does not waver.
    """

    time: float
    shift: float


class ReplayClock:
    """A clock over a recording that waits for polls: each is one period after the one before.

    So a slow machine replays slower, and sees the same.  It starts at the machine's time, and
    repeats the recording.  With a past (``own_time``, see ``Recording.past``) it is the recorded
    time, goes on after what is stored, and stands at the end of the recording.
    """

    def __init__(
        self,
        first: float,
        duration_s: float,
        speed: float,
        period_s: float = 300.0,
        *,
        own_time: bool = False,
    ) -> None:
        self.speed = speed
        self._first = first
        self._duration = duration_s
        self._period = period_s
        self._own_time = own_time
        real = SystemClock().tick()
        self._start = first if own_time else real.wall
        self._boot_id = REPLAY if own_time else f"{REPLAY}{real.boot}-{real.boot_id}"
        self._next = self._now = self._start

    def tick(self) -> Tick:
        """Return the time of the last poll; all its clocks run alike."""
        return Tick(self._now, self._now, self._now, self._boot_id)

    def next_tick(self, after: Tick | None) -> Tick:
        """Go on by a period, and return the time."""
        self._now = self._next
        if self._own_time:
            last = self._first + self._duration - 1
            self._now = min(max(self._now, after.wall + self._period if after else 0.0), last)
        self._next = self._now + self._period
        return self.tick()

    def position(self, tick: Tick) -> Position:
        """Return which instant of the recording ``tick`` is."""
        turns, passed = divmod(max(tick.wall - self._start, 0.0), self._duration)
        shift = math.floor(self._start + turns * self._duration - self._first)
        return Position(self._first + passed, shift)
