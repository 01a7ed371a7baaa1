"""The figures that operators know from GlideinWMS's analyze_entries, computed exactly.

There they are sums of coarse shares in RRDs; here each pilot that ended in the period counts with
its whole life.  Units: amounts are core-micros (10^-6 core-seconds), so that a pilot of eight
cores counts eight times (``--style analyze-entries`` has wall-clock time of pilots instead).

=================== ===========================================================================
total               all settled time of these pilots ("time")
used                time in which jobs ran, whatever became of them
waste               total - used
badput              total - time of runs that exited 0
failed validation   the whole lives of pilots whose validation failed ("fval"); that of the others
                    is a part of idle
not known           time in which no job is known to have run, and nothing else is known of it; it
                    is what is left of waste
idle                overhead of pilots that ran jobs, and all time of those whose validation passed
                    and that never ran one; their validation is in it
efficiency          used / total
goodput fraction    time of runs that exited 0 / total
jobs per pilot      runs of jobs / pilots of which it is known how many
average job length  wall-clock time of a run, from its start to its end
strt                pilots in which HTCondor never started / pilots of which that is known
0job                pilots that never ran a job / pilots of which that is known
slots               total / length of the period
=================== ===========================================================================

Of pilots whose jobs only statistics tell of, ``used`` is what the ledger's categories give to
jobs, and what is goodput of it counts as exited 0: both are estimated (``by_statistics``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gwmond.model.pilot_facts import Category
from gwmond.model.stored_pilots import AttemptRow, PilotRow
from gwmond.reports.category_time import HOUR, hours, percent, ratio, seconds
from gwmond.reports.pilot_jobs import NOT_KNOWN, CountedJobs, is_good, jobs_of, marked, number_text


@dataclass(slots=True)
class Figures(CountedJobs):
    """Sums over pilots that ended; amounts are core-micros."""

    total: int = 0
    used: int = 0
    exited_zero: int = 0
    failed_validation: int = 0
    idle: int = 0
    unknown: int = 0

    def add(self, row: PilotRow, attempts: Iterable[AttemptRow]) -> None:
        """Count a pilot that ended, with its runs; a run has a length if its end is known."""
        jobs = jobs_of(row, attempts)
        used = good = 0
        for (resource, measure, category, outcome), micros in row.settled.items():
            if (resource, measure) != ("cpu", "resource"):
                continue
            self.total += micros
            if outcome:
                used += micros
                good += micros if is_good(category, outcome) else 0
            elif category is Category.VALIDATION_FAILS:
                self.failed_validation += micros
            elif category in {Category.PILOT_OVERHEAD, Category.DECISION_PROBLEM}:
                self.idle += micros
            else:
                self.unknown += micros
        self.used += used
        self.exited_zero += good
        lengths = [run.end_us - run.start_us for run in jobs.runs if run.end_us is not None]
        self.count(jobs, lengths, used, good)

    @property
    def waste(self) -> int:
        """Time in which no job ran."""
        return self.total - self.used

    @property
    def badput(self) -> int:
        """Time of no run that exited 0."""
        return self.total - self.exited_zero

    @property
    def average_job_us(self) -> float | None:
        """How long a run lasted."""
        return self.lengths_us / self.known_lengths if self.known_lengths else None

    def as_json(self, period_us: int) -> dict[str, Any]:
        """Return them for JSON."""
        average = self.average_job_us
        return {
            "pilots": self.pilots,
            "jobs": self.jobs if self.numbered or not self.pilots else None,
            "jobs_per_pilot": ratio(self.jobs, self.numbered),
            "average_job_length_seconds": None if average is None else average / 1e6,
            "total_core_seconds": seconds(self.total),
            "used_core_seconds": seconds(self.used),
            "waste_core_seconds": seconds(self.waste),
            "badput_core_seconds": seconds(self.badput),
            "failed_validation_core_seconds": seconds(self.failed_validation),
            "idle_core_seconds": seconds(self.idle),
            "not_known_core_seconds": seconds(self.unknown),
            "slots": self.total / period_us,
            "used_per_waste": ratio(self.used, self.waste),
            "efficiency": ratio(self.used, self.total),
            "goodput_fraction": ratio(self.exited_zero, self.total),
            "failed_validation_share_of_pilots": ratio(self.failed, self.known_started),
            "without_jobs_share_of_pilots": ratio(self.without_jobs, self.known_jobs),
            **self.known_json(),
            "used_by_statistics_core_seconds": seconds(self.used_by_statistics),
            "good_by_statistics_core_seconds": seconds(self.good_by_statistics),
            "failed_validation_share_of_time": ratio(self.failed_validation, self.total),
            "idle_share": ratio(self.idle, self.total),
            "not_known_share": ratio(self.unknown, self.total),
            "waste_share": ratio(self.waste, self.total),
            "badput_share": ratio(self.badput, self.total),
        }

    def cells(self) -> list[str]:
        """Return the cells of ``HEADERS``."""
        average = self.average_job_us
        return [
            f"{self.pilots}",
            *(number_text(self.jobs, self.numbered, self.pilots), self._per_pilot),
            percent(ratio(self.failed, self.known_started), 0),
            percent(ratio(self.without_jobs, self.known_jobs), 0),
            percent(ratio(self.failed_validation, self.total), 0),
            self._mark(percent(ratio(self.idle, self.total), 0)),
            percent(ratio(self.unknown, self.total), 0),
            self._mark(percent(ratio(self.waste, self.total), 0)),
            self._mark(percent(ratio(self.badput, self.total), 0)),
            self._length(None if average is None else _number(average / HOUR)),
            *(self._mark(hours(self.used)), self._mark(hours(self.waste)), hours(self.total)),
            self._mark(_number(ratio(self.used, self.total))),
            self._mark(_number(ratio(self.exited_zero, self.total))),
        ]

    def block(self, period_us: int) -> list[str]:
        """Return the block of text that analyze_entries prints."""
        average = self.average_job_us
        length = self._length(None if average is None else f"{average / HOUR:.2f}h")
        jobs = number_text(self.jobs, self.numbered, self.pilots)
        told = [
            f"Pilots: {self.pilots}",
            f"Jobs: {jobs} (avg jobs/pilot: {self._per_pilot}, avg job length: {length})",
        ]
        for name, micros, of_jobs in (
            ("time", self.total, False),
            ("time used", self.used, True),
            ("time of failed validation", self.failed_validation, False),
            ("time idle, with validation", self.idle, True),
            ("time not known", self.unknown, False),
            ("time wasted", self.waste, True),
            ("badput", self.badput, True),
        ):
            share = "" if name == "time" else f" - {percent(ratio(micros, self.total), 0)}"
            slots = micros / period_us
            if name == "time not known" and not micros:
                continue
            amount = self._mark(hours(micros)) if of_jobs else hours(micros)
            told.append(f"{name + ':':<27}{amount:>12} core-hours - {slots:8.1f} slots{share}")
        for what, known in (
            ("HTCondor started (strt)", self.known_started),
            ("jobs ran (0job)", self.known_jobs),
        ):
            if known < self.pilots:
                told.append(f"Whether {what} is known of {known} of {self.pilots} pilots.")
        shares = (
            ("Time used/time wasted", ratio(self.used, self.waste)),
            ("Time efficiency", ratio(self.used, self.total)),
            ("Goodput fraction", ratio(self.exited_zero, self.total)),
        )
        told.append("   ".join(f"{name}: {self._mark(_number(share))}" for name, share in shares))
        return told

    def _mark(self, text: str) -> str:
        return marked(text, self.by_statistics)

    def _length(self, text: str | None) -> str:
        return text or (NOT_KNOWN if self.numbered < self.pilots else "-")

    @property
    def _per_pilot(self) -> str:
        known = self.numbered or not self.pilots
        return _number(ratio(self.jobs, self.numbered)) if known else NOT_KNOWN


HEADERS = (
    *("pilots", "jobs", "jobs/pilot", "strt", "0job", "fval", "idle", "unkn", "wst", "badp"),
    *("job h", "used h", "waste h", "total h", "used / total", "goodput fr."),
)
NOTE = (
    "unkn: time of which nothing is known, in % of time as the columns beside it (fval + idle + "
    "unkn = wst). used / total: the efficiency of analyze_entries."
)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
