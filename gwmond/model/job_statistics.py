"""A pilot's own statistics of its jobs."""

from __future__ import annotations

from typing import NamedTuple


class Jobs(NamedTuple):
    """A number of jobs and their time, summed."""

    jobs: int
    time_s: int


class JobStatistics(NamedTuple):
    """Totals of a pilot's jobs, which the pilot counted from the exits in its starter logs.

    ``good_zero``: exit status 0, ``good_nonzero``: another exit status, ``bad_signal``: ended by a
    signal, ``bad_other``: else.  Jobs without an exit line are in none.

    - ``factor``: *all* of the five were divided by it (the cores; counts rounded up, and cut so
      that the sum is ``total``); 1 if they were not, None if the file does not have it.
    - ``real``: the total before it was divided, if known.
    """

    total: Jobs
    good_zero: Jobs | None = None
    good_nonzero: Jobs | None = None
    bad_signal: Jobs | None = None
    bad_other: Jobs | None = None
    factor: int | None = None
    real: Jobs | None = None
