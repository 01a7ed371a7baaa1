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

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gwmond.model.pilot_facts import Category
from gwmond.model.stored_pilots import AttemptRow, PilotRow
from gwmond.model.times import HOUR_US
from gwmond.reports.categories import CORES
from gwmond.reports.pilot_jobs import NOT_KNOWN, CountedJobs, is_good, jobs_of, marked, number_text
from gwmond.reports.render.formats import hours, percent, quotient, ratio, seconds
from gwmond.reports.render.table import Column


@dataclass(slots=True)
class Figures(CountedJobs):
    """Sums over pilots that ended; amounts are core-micros."""

    failed_validation: int = 0
    idle: int = 0
    unknown: int = 0

    def add(self, row: PilotRow, attempts: Iterable[AttemptRow]) -> None:
        """Count a pilot that ended, with its runs; a run has a length if its end is known."""
        jobs = jobs_of(row, attempts)
        used = good = 0
        for (resource, measure, category, outcome), micros in row.settled.items():
            if (resource, measure) != CORES:
                continue
            self.time += micros
            if outcome:
                used += micros
                good += micros if is_good(category, outcome) else 0
            elif category is Category.VALIDATION_FAILS:
                self.failed_validation += micros
            elif category in {Category.PILOT_OVERHEAD, Category.DECISION_PROBLEM}:
                self.idle += micros
            else:
                self.unknown += micros
        lengths = [run.end_us - run.start_us for run in jobs.runs if run.end_us is not None]
        self.count(jobs, lengths, used, good)

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
            "total_core_seconds": seconds(self.time),
            "used_core_seconds": seconds(self.used),
            "waste_core_seconds": seconds(self.waste),
            "badput_core_seconds": seconds(self.badput),
            "failed_validation_core_seconds": seconds(self.failed_validation),
            "idle_core_seconds": seconds(self.idle),
            "not_known_core_seconds": seconds(self.unknown),
            "slots": self.time / period_us,
            "used_per_waste": ratio(self.used, self.waste),
            "efficiency": ratio(self.used, self.time),
            "goodput_fraction": ratio(self.good, self.time),
            "failed_validation_share_of_pilots": ratio(self.failed, self.known_started),
            "without_jobs_share_of_pilots": ratio(self.without_jobs, self.known_jobs),
            **self.known_json(),
            "used_by_statistics_core_seconds": seconds(self.used_by_statistics),
            "good_by_statistics_core_seconds": seconds(self.good_by_statistics),
            "failed_validation_share_of_time": ratio(self.failed_validation, self.time),
            "idle_share": ratio(self.idle, self.time),
            "not_known_share": ratio(self.unknown, self.time),
            "waste_share": ratio(self.waste, self.time),
            "badput_share": ratio(self.badput, self.time),
        }

    def block(self, period_us: int) -> list[str]:
        """Return the block of text that analyze_entries prints."""
        length = self.length("h")
        jobs = number_text(self.jobs, self.numbered, self.pilots)
        lines = [
            f"Pilots: {self.pilots}",
            f"Jobs: {jobs} (avg jobs/pilot: {self.per_pilot}, avg job length: {length})",
        ]
        for name, micros, of_jobs in (
            ("time", self.time, False),
            ("time used", self.used, True),
            ("time of failed validation", self.failed_validation, False),
            ("time idle, with validation", self.idle, True),
            ("time not known", self.unknown, False),
            ("time wasted", self.waste, True),
            ("badput", self.badput, True),
        ):
            share = "" if name == "time" else f" - {percent(ratio(micros, self.time), 0)}"
            slots = micros / period_us
            if name == "time not known" and not micros:
                continue
            amount = self.mark(hours(micros)) if of_jobs else hours(micros)
            lines.append(f"{name + ':':<27}{amount:>12} core-hours - {slots:8.1f} slots{share}")
        for what, known in (
            ("HTCondor started (strt)", self.known_started),
            ("jobs ran (0job)", self.known_jobs),
        ):
            if known < self.pilots:
                lines.append(f"Whether {what} is known of {known} of {self.pilots} pilots.")
        shares = (
            ("Time used/time wasted", ratio(self.used, self.waste)),
            ("Time efficiency", ratio(self.used, self.time)),
            ("Goodput fraction", ratio(self.good, self.time)),
        )
        lines.append("   ".join(f"{name}: {self.mark(quotient(share))}" for name, share in shares))
        return lines

    def mark(self, text: str) -> str:
        """Return a figure with a mark if it is estimated."""
        return marked(text, self.by_statistics)

    def length(self, unit: str = "") -> str:
        """How many hours a run lasts, for people."""
        average = self.average_job_us
        if average is not None:
            return f"{average / HOUR_US:.2f}{unit}"
        return NOT_KNOWN if self.numbered < self.pilots else "-"

    @property
    def per_pilot(self) -> str:
        """Runs of jobs on a pilot, for people."""
        known = self.numbered or not self.pilots
        return quotient(ratio(self.jobs, self.numbered)) if known else NOT_KNOWN


def _share(
    part: Callable[[Figures], int], whole: Callable[[Figures], int]
) -> Callable[[Figures], str]:
    return lambda figures: percent(ratio(part(figures), whole(figures)), 0)


def _estimated(cell: Callable[[Figures], str]) -> Callable[[Figures], str]:
    return lambda figures: figures.mark(cell(figures))


COLUMNS: tuple[Column[Figures], ...] = (
    Column("pilots", lambda f: str(f.pilots)),
    Column("jobs", lambda f: number_text(f.jobs, f.numbered, f.pilots)),
    Column("jobs/pilot", lambda f: f.per_pilot),
    Column("strt", _share(lambda f: f.failed, lambda f: f.known_started)),
    Column("0job", _share(lambda f: f.without_jobs, lambda f: f.known_jobs)),
    Column("fval", _share(lambda f: f.failed_validation, lambda f: f.time)),
    Column("idle", _estimated(_share(lambda f: f.idle, lambda f: f.time))),
    Column("unkn", _share(lambda f: f.unknown, lambda f: f.time)),
    Column("wst", _estimated(_share(lambda f: f.waste, lambda f: f.time))),
    Column("badp", _estimated(_share(lambda f: f.badput, lambda f: f.time))),
    Column("job h", lambda f: f.length()),
    Column("used h", _estimated(lambda f: hours(f.used))),
    Column("waste h", _estimated(lambda f: hours(f.waste))),
    Column("total h", lambda f: hours(f.time)),
    Column("used / total", _estimated(lambda f: quotient(ratio(f.used, f.time)))),
    Column("goodput fr.", _estimated(lambda f: quotient(ratio(f.good, f.time)))),
)
NOTE = (
    "unkn: time of which nothing is known, in % of time as the columns beside it (fval + idle + "
    "unkn = wst). used / total: the efficiency of analyze_entries."
)
