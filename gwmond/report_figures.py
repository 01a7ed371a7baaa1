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
jobs per pilot      runs of jobs / pilots
average job length  wall-clock time of a run, from its start to its end
strt                pilots in which HTCondor never started / pilots of which that is known
0job                pilots that never ran a job / pilots of which that is known
slots               total / length of the period
=================== ===========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gwmond.accounting.pilot_facts import Category
from gwmond.analyze_pilots import has_run_jobs, has_started
from gwmond.category_time import HOUR, hours, percent, ratio, seconds
from gwmond.ledger.pilot_model import AttemptRow, PilotRow


@dataclass(slots=True)
class Figures:
    """Sums over pilots that ended; ``lengths_us`` sums ``known_lengths`` runs.

    ``known_started``, ``known_jobs``: of how many it is known.
    """

    pilots: int = 0
    jobs: int = 0
    failed: int = 0
    known_started: int = 0
    without_jobs: int = 0
    known_jobs: int = 0
    total: int = 0
    used: int = 0
    exited_zero: int = 0
    failed_validation: int = 0
    idle: int = 0
    unknown: int = 0
    lengths_us: int = 0
    known_lengths: int = 0

    def add(self, row: PilotRow, attempts: Iterable[AttemptRow]) -> None:
        """Count a pilot that ended, with its runs."""
        known = [of.end_us - of.start_us for of in attempts if of.end_us is not None]
        jobs = len(known) + row.attempts_pruned
        self.pilots += 1
        self.jobs += jobs
        started, ran = has_started(row, jobs), has_run_jobs(row, jobs)
        self.failed += started is False
        self.known_started += started is not None
        self.without_jobs += ran is False
        self.known_jobs += ran is not None
        self.lengths_us += sum(known)
        self.known_lengths += len(known)
        for (resource, measure, category, outcome), micros in row.settled.items():
            if (resource, measure) != ("cpu", "resource"):
                continue
            self.total += micros
            if outcome:
                self.used += micros
                self.exited_zero += micros if outcome == "exit_zero" else 0
            elif category is Category.VALIDATION_FAILS:
                self.failed_validation += micros
            elif category in {Category.PILOT_OVERHEAD, Category.DECISION_PROBLEM}:
                self.idle += micros
            else:
                self.unknown += micros

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
            "jobs": self.jobs,
            "jobs_per_pilot": ratio(self.jobs, self.pilots),
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
            "pilots_with_known_start": self.known_started,
            "pilots_with_known_jobs": self.known_jobs,
            "failed_validation_share_of_time": ratio(self.failed_validation, self.total),
            "idle_share": ratio(self.idle, self.total),
            "not_known_share": ratio(self.unknown, self.total),
            "waste_share": ratio(self.waste, self.total),
            "badput_share": ratio(self.badput, self.total),
        }

    def cells(self) -> list[str]:
        """Return the cells of ``HEADERS``."""
        return [
            f"{self.pilots}",
            f"{self.jobs}",
            _number(ratio(self.jobs, self.pilots)),
            percent(ratio(self.failed, self.known_started), 0),
            percent(ratio(self.without_jobs, self.known_jobs), 0),
            percent(ratio(self.failed_validation, self.total), 0),
            percent(ratio(self.idle, self.total), 0),
            percent(ratio(self.unknown, self.total), 0),
            percent(ratio(self.waste, self.total), 0),
            percent(ratio(self.badput, self.total), 0),
            _number(None if (us := self.average_job_us) is None else us / HOUR),
            hours(self.used),
            hours(self.waste),
            hours(self.total),
            _number(ratio(self.used, self.total)),
            _number(ratio(self.exited_zero, self.total)),
        ]

    def block(self, period_us: int) -> list[str]:
        """Return the block of text that analyze_entries prints."""
        average = self.average_job_us
        length = "-" if average is None else f"{average / HOUR:.2f}h"
        per_pilot = _number(ratio(self.jobs, self.pilots))
        told = [
            f"Pilots: {self.pilots}",
            f"Jobs: {self.jobs} (avg jobs/pilot: {per_pilot}, avg job length: {length})",
        ]
        for name, micros in (
            ("time", self.total),
            ("time used", self.used),
            ("time of failed validation", self.failed_validation),
            ("time idle, with validation", self.idle),
            ("time not known", self.unknown),
            ("time wasted", self.waste),
            ("badput", self.badput),
        ):
            share = "" if name == "time" else f" - {percent(ratio(micros, self.total), 0)}"
            slots = micros / period_us
            if name == "time not known" and not micros:
                continue
            told.append(
                f"{name + ':':<27}{hours(micros):>12} core-hours - {slots:8.1f} slots{share}"
            )
        for what, known in (
            ("HTCondor started (strt)", self.known_started),
            ("jobs ran (0job)", self.known_jobs),
        ):
            if known < self.pilots:
                told.append(f"Whether {what} is known of {known} of {self.pilots} pilots.")
        told.append(
            f"Time used/time wasted: {_number(ratio(self.used, self.waste))}   "
            f"Time efficiency: {_number(ratio(self.used, self.total))}   "
            f"Goodput fraction: {_number(ratio(self.exited_zero, self.total))}"
        )
        return told


HEADERS = (
    *("pilots", "jobs", "jobs/pilot", "strt", "0job", "fval", "idle", "n/k", "wst", "badp"),
    *("job h", "used h", "waste h", "total h", "efficiency", "goodput fr."),
)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
