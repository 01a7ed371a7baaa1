"""What it would gain to send a job's output while the next job already runs.  Pure.

The serial model: a slot transfers input and runs (``run``), then sends output (``upload``).  The
overlapping model: the output is sent from a slot of its own, and the next job begins in a new slot,
which first waits for that job (``idle``).  The gain in throughput is

    (upload - idle) / (upload + run)

which is negative where the upload is shorter than the wait (E. Boldt, "Improvements to GlideinWMS
Data Handling System", 2010, section 3.2).  It holds while jobs wait in the queue, while the
network has room, and while no upload is longer than the next run.

Units: lengths are seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles
from typing import NamedTuple

LEAST = 20
"""With fewer runs, or fewer waits of new slots, nothing is said: too little data."""


class Quartiles(NamedTuple):
    """The quartiles of ``number`` lengths."""

    number: int
    low: float
    median: float
    high: float


class Overlap(NamedTuple):
    """What is measured at an entry for a group, and the gain by that.

    ``gain``: of the medians; ``least`` and ``most``: with each quartile where it is worst and best.
    """

    upload: Quartiles
    run: Quartiles
    idle: Quartiles
    gain: float
    least: float
    most: float


def gain(upload_s: float, run_s: float, idle_s: float) -> float | None:
    """Return the change in throughput as a share; None where a job takes no time.

    >>> round(gain(30 * 60, 3600, 60), 4), round(gain(0, 3600, 60), 4), gain(0, 0, 60)
    (0.3222, -0.0167, None)
    """
    return (upload_s - idle_s) / (upload_s + run_s) if upload_s + run_s > 0 else None


def quartiles(lengths: Sequence[float]) -> Quartiles | None:
    """Return the quartiles; None for too little data."""
    if len(lengths) < LEAST:
        return None
    return Quartiles(len(lengths), *quantiles(lengths, n=4, method="inclusive"))


def overlap(
    uploads: Sequence[float], runs: Sequence[float], idles: Sequence[float]
) -> Overlap | None:
    """Return the projection from what was measured; None for too little data.

    ``uploads`` and ``runs`` are of the same runs of jobs; ``idles`` are of new slots: how long each
    waited for its first job.
    """
    upload, run, idle = map(quartiles, (uploads, runs, idles))
    if upload is None or run is None or idle is None:
        return None
    expected = gain(upload.median, run.median, idle.median)
    least = gain(upload.low, run.high, idle.high)
    most = gain(upload.high, run.low, idle.low)
    if expected is None or least is None or most is None:
        return None
    return Overlap(upload, run, idle, expected, min(least, expected), max(most, expected))
