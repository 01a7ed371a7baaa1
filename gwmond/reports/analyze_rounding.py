"""What GlideinWMS's analyze_entries makes of pilots whose figures are known.  Pure.

The original prints sums that have been rounded five times over; the same steps are taken here, so
that its figures can stand beside exact ones.  Units: seconds; mills are per-mille of a length.

Source (glideinWMS, master of 2026-02; FM = factory/glideFactoryMonitoring.py, AE =
factory/tools/analyze_entries, LIB = factory/tools/lib/analyze.py; PS =
creation/web_base/parse_starterlog.awk):

1. the log parser: whole seconds.  Since 3.10.12 the number and the time of jobs are real sums, the
   first line of the statistics ("(Real) Total jobs"), and only the time with exit status 0 is
   divided by the pilot's cores and cut (PS; factory/glideFactoryLogParser.py, _extract_log_data).
   So more time may be used than there is, and waste be negative;
2. ``mills`` (FM:1069-1158, get_completed_stats): validation in parts of the pilot's life, idle in
   parts of HTCondor's, which is shorter; a pilot without HTCondor: all of it is validation;
3. ``mill_range`` (FM, getMillRange): each pilot's mills fall into one of eight ranges, and its
   whole life is added up under that range (FM, summarize_completed_stats);
4. ``Archive`` (FM, MonitoringConfig and FactoryStatusData): sums become rates per second in rows
   of five minutes (for long periods of an hour or twelve), and their mean times the length of the
   period is cut to a whole number, separately for each frontend, entry and value (AE);
5. ``MILLS_OF`` (AE): a range counts as one value, so that 2 ... 14 mills are 5, 700 ... 998 are
   750, and what is printed is cut to a whole per cent and hour (AE, lineprint; LIB, km, printline).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

STEP_S = 300
ROWS = 740
STEPS = (1, 12, 144)
"""Rows of five minutes, an hour, twelve hours; so many of each are kept (FM, rrd_archives)."""

MILLS_OF: Mapping[str, int] = {
    "None": 0,
    "5m": 5,
    "25m": 25,
    "100m": 100,
    "250m": 250,
    "500m": 500,
    "Most": 750,
    "All": 1000,
}
_BELOW = ((2, "None"), (15, "5m"), (60, "25m"), (180, "100m"), (400, "250m"), (700, "500m"))
_TOO_SHORT_S = 5  # HTCondor that ran for less counts as if it had not started (FM)


def mill_range(mills: float) -> str:
    """Return the range into which a pilot falls.

    >>> mill_range(1.99), mill_range(14.9), mill_range(31), mill_range(998), mill_range(998.5)
    ('None', '5m', '25m', 'Most', 'All')
    """
    for limit, name in _BELOW:
        if mills < limit:
            return name
    return "All" if mills > 998 else "Most"


class Finished(NamedTuple):
    """A pilot as the factory's log parser hands it on.

    ``validation_s`` None: it is not known when validation ended; ``jobs`` None: some ran, it is not
    known how many; ``jobs_s``: the sum of their times.  ``good_zero_s``: of programs with exit
    status 0, whoever ended them, divided by the cores.
    """

    duration_s: int
    started: bool
    validation_s: int | None
    jobs: int | None
    jobs_s: int
    good_zero_s: int

    @property
    def condor_s(self) -> int | None:
        """How long HTCondor ran: here, from the end of validation on."""
        if not self.started:
            return 0
        return None if self.validation_s is None else self.duration_s - self.validation_s

    @property
    def useless(self) -> bool:
        """Whether all of it counts as validation."""
        condor_s = self.condor_s
        return not self.started or (condor_s is not None and condor_s < _TOO_SHORT_S)

    @property
    def numberless_s(self) -> int:
        """How long jobs ran of which it is not known how many they were."""
        return self.jobs_s if self.jobs is None and not self.useless else 0


def divided(seconds: float, cores: float) -> int:
    """Return a time of jobs as the parser of starter logs divides it.

    >>> divided(10_000, 8), divided(100.9, 1)
    (1250, 100)
    """
    return int(seconds / max(1, round(cores)))


def mills(finished: Finished) -> dict[str, float]:
    """Return what of a pilot's life is validation, and what of HTCondor's is idle, in per-mille.

    What is not known has no entry.
    """
    if finished.useless:
        return {"validation": 1000.0, "idle": 0.0}
    if finished.validation_s is None or finished.condor_s is None:
        return {}
    return {
        "validation": 1000.0 * finished.validation_s / finished.duration_s,
        "idle": 1000.0 * (finished.condor_s - finished.jobs_s) / finished.condor_s,
    }


def data_sets(finished: Finished) -> dict[str, int]:
    """Return what one pilot adds to the factory's data sets, by their names there."""
    jobs, jobs_s, good_s = (
        (0, 0, 0) if finished.useless else (finished.jobs, finished.jobs_s, finished.good_zero_s)
    )
    found = {
        "Glideins": 1,
        "Lasted": finished.duration_s,
        "FailedNr": int(not finished.started),
        "JobsNr": jobs or 0,
        "JobsNr_None": int(jobs is not None and jobs < 1),
        "JobsLasted": jobs_s,
        "JobsGoodput": min(good_s, jobs_s),
    }
    for waste, value in mills(finished).items():
        found[f"{waste}_{mill_range(value)}"] = finished.duration_s
    return found


NUMBERLESS = "numberless"
"""Time used by jobs of which it is not known how many they were.  The factory has no such data set;
it is cut as its data sets are, so that it can be taken out of an average."""


class Archive:
    """Data sets of one frontend at one entry, as a round-robin database keeps them.

    A pilot's values count in the row in which it ended; the factory notices it in one of its next
    loops, and divides the values between the rows since the loop before.
    """

    def __init__(self, period_s: int) -> None:
        steps = next((n for n in STEPS if period_s // (n * STEP_S) < ROWS), STEPS[-1])
        self._row_s = steps * STEP_S
        self._number = period_s // self._row_s
        self._rows: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._counts: Counter[str] | None = None

    def add(self, before_end_s: float, values: Mapping[str, int]) -> None:
        """Add a pilot's values; ``before_end_s``: how long before the period's end it ended."""
        self._counts = None
        row = int(before_end_s // self._row_s)
        if 0 <= row < self._number:
            for name, value in values.items():
                self._rows[name][row] += value

    def counts(self) -> Counter[str]:
        """Return the sums as analyze_entries gets them: the mean rate times the period, cut."""
        if self._counts is None:
            self._counts = Counter({name: self._cut(rows) for name, rows in self._rows.items()})
        return self._counts

    def _cut(self, rows: Counter[int]) -> int:
        rates = [rows[row] / self._row_s for row in reversed(range(self._number))]
        return int(sum(rates) / len(rates) * (self._number * self._row_s))


def ranges(counts: Counter[str], waste: str) -> float:
    """Return the seconds of ``validation`` or ``idle`` from the lives in each range."""
    return math.fsum(counts[f"{waste}_{name}"] * (by * 1e-3) for name, by in MILLS_OF.items())


def km(number: float) -> str:
    """Return a number as the original writes it: one decimal, K, M and G (LIB).

    >>> km(497.7), km(719_000), km(-31_300_000), km(2.5e9)
    ('497.7', '719.0K', '-31.3M', '2.5G')
    """
    sign, size = ("-" if number < 0 else ""), abs(number)
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if int(size) >= unit:
            return f"{sign}{size / unit:.1f}{letter}"
    return f"{sign}{size:.1f}"
