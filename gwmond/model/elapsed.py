"""How much real time an interval between two polls lasted, and whether it may be accounted.

Units: a tick is in seconds as the clocks give them; elapsed time is in whole milliseconds.

Source of the rules: design page, section 4 ("counters integrate canonical seconds over real
elapsed time; an interval longer than twice the poll period counts as unknown").

Invariants:

- Every clock is floored to absolute milliseconds before the difference is taken, so no
  millisecond is lost or counted twice however an interval is cut: for ticks a, b, c of one boot,
  ``elapsed(a, b).ms + elapsed(b, c).ms == elapsed(a, c).ms``.
- ``ms`` is never negative, and is real time also when ``known`` is false (0 if no clock has it).
"""

from __future__ import annotations

import math
from typing import NamedTuple

CLOCK_STEP_S = 1.0
"""A wall clock that moved this much against boot time was stepped, not slewed.

NTP slews both clocks alike, so they drift apart only by steps; chrony's usual ``makestep`` is 1 s.
"""

SUSPEND_S = 1.0
"""CLOCK_BOOTTIME runs on while the machine is suspended, CLOCK_MONOTONIC does not."""

REASONS: dict[str, str] = {
    "first_poll": "there is no earlier poll to measure from",
    "reboot": "the machine was booted again since the last poll",
    "suspended": "the machine was suspended since the last poll",
    "clock_step": "the wall clock was stepped since the last poll",
    "missed_poll": "the last poll was longer ago than two poll periods",
}
"""Why an interval is unknown.  The vocabulary is bounded: it becomes a label."""


class Tick(NamedTuple):
    """One reading of the clocks, in seconds.

    ``wall`` is CLOCK_REALTIME, ``mono`` CLOCK_MONOTONIC, ``boot`` CLOCK_BOOTTIME and ``boot_id``
    the kernel's id of this boot.  ``mono`` and ``boot`` count from boot, so they compare across
    restarts of the process, but only within one boot.
    """

    wall: float
    mono: float
    boot: float
    boot_id: str


class Elapsed(NamedTuple):
    """Real time in milliseconds; ``reason`` is empty if and only if ``known``."""

    ms: int
    known: bool
    reason: str


def _ms(seconds: float) -> int:
    return math.floor(seconds * 1000)


def elapsed(before: Tick | None, now: Tick, period_s: float) -> Elapsed:
    """Return the time from ``before`` to ``now``, and whether it may be accounted.

    Within one boot the time is that of CLOCK_BOOTTIME.  Across a boot only the wall clock is
    left, and the interval is unknown.  A stepped wall clock leaves the elapsed time right, but
    ages of facts were computed with it: that interval is unknown as well.  Of several reasons
    the first of ``reboot``, ``suspended``, ``clock_step``, ``missed_poll`` is returned.
    """
    if before is None:
        return Elapsed(0, False, "first_poll")
    wall_ms = _ms(now.wall) - _ms(before.wall)
    if before.boot_id != now.boot_id:
        return Elapsed(max(wall_ms, 0), False, "reboot")
    boot_s = now.boot - before.boot
    ms = max(_ms(now.boot) - _ms(before.boot), 0)
    if boot_s - (now.mono - before.mono) > SUSPEND_S:
        return Elapsed(ms, False, "suspended")
    if abs((now.wall - before.wall) - boot_s) > CLOCK_STEP_S:
        return Elapsed(ms, False, "clock_step")
    if ms > 2 * period_s * 1000:
        return Elapsed(ms, False, "missed_poll")
    return Elapsed(ms, True, "")
