"""The figures that operators know from GlideinWMS's analyze_entries, computed exactly.

There they are sums of coarse shares in RRDs; here each pilot that ended in the period counts with
its whole life.  Units: amounts are core-micros (10^-6 core-seconds), so that a pilot of eight
cores counts eight times (``--style analyze-entries`` has wall-clock time of pilots instead).

``CoreTime`` says what the amounts are, docs/analyze.md what each figure is.

Of pilots whose jobs only statistics have, ``used`` is what the ledger's categories give to jobs,
and what is goodput of it counts as exited 0: both are estimated (``by_statistics``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gwmond.model.times import HOUR_US
from gwmond.reports.render.formats import hours, percent, quotient, ratio, seconds
from gwmond.reports.render.table import Column
from gwmond.reports.stored.pilot_sums import CoreTime, KnownJobCounts, PilotSums, core_time

NOT_KNOWN = "n/k"


def as_json(sums: PilotSums | None, period_us: int) -> dict[str, Any]:
    """Return the figures for JSON; all are null where it is not known which pilots ended."""
    if sums is None:
        return dict.fromkeys(as_json(PilotSums(), period_us))
    core, by_statistics = sums.core, core_time(sums.settled_by_statistics)
    average = sums.average_job_us
    return {
        "pilots": sums.pilots,
        "jobs": sums.jobs if sums.numbered or not sums.pilots else None,
        "jobs_per_pilot": ratio(sums.jobs, sums.numbered),
        "average_job_length_seconds": None if average is None else average / 1e6,
        "total_core_seconds": seconds(core.time),
        "used_core_seconds": seconds(core.used),
        "waste_core_seconds": seconds(core.waste),
        "badput_core_seconds": seconds(core.badput),
        "failed_validation_core_seconds": seconds(core.failed_validation),
        "idle_core_seconds": seconds(core.idle),
        "not_known_core_seconds": seconds(core.unknown),
        "slots": core.time / period_us,
        "used_per_waste": ratio(core.used, core.waste),
        "efficiency": ratio(core.used, core.time),
        "goodput_fraction": ratio(core.good, core.time),
        "failed_validation_share_of_pilots": ratio(sums.failed, sums.known_started),
        "without_jobs_share_of_pilots": ratio(sums.without_jobs, sums.known_jobs),
        **sums.known_json(),
        "used_by_statistics_core_seconds": seconds(by_statistics.used),
        "good_by_statistics_core_seconds": seconds(by_statistics.good),
        "failed_validation_share_of_time": ratio(core.failed_validation, core.time),
        "idle_share": ratio(core.idle, core.time),
        "not_known_share": ratio(core.unknown, core.time),
        "waste_share": ratio(core.waste, core.time),
        "badput_share": ratio(core.badput, core.time),
    }


def block(sums: PilotSums, period_us: int) -> list[str]:
    """Return the block of text that analyze_entries prints."""
    core = sums.core
    jobs = number_text(sums.jobs, sums.numbered, sums.pilots)
    average = f"avg jobs/pilot: {per_pilot(sums)}, avg job length: {job_length(sums, 'h')}"
    lines = [f"Pilots: {sums.pilots}", f"Jobs: {jobs} ({average})"]
    for name, micros, of_jobs in (
        ("time", core.time, False),
        ("time used", core.used, True),
        ("time of failed validation", core.failed_validation, False),
        ("time idle, with validation", core.idle, True),
        ("time not known", core.unknown, False),
        ("time wasted", core.waste, True),
        ("badput", core.badput, True),
    ):
        share = "" if name == "time" else f" - {percent(ratio(micros, core.time), 0)}"
        if name == "time not known" and not micros:
            continue
        amount = marked(hours(micros), sums.by_statistics if of_jobs else 0)
        slots = micros / period_us
        lines.append(f"{name + ':':<27}{amount:>12} core-hours - {slots:8.1f} slots{share}")
    for fact, number in (
        ("HTCondor started (strt)", sums.known_started),
        ("jobs ran (0job)", sums.known_jobs),
    ):
        if number < sums.pilots:
            lines.append(f"Whether {fact} is known of {number} of {sums.pilots} pilots.")
    shares = (
        ("Time used/time wasted", ratio(core.used, core.waste)),
        ("Time efficiency", ratio(core.used, core.time)),
        ("Goodput fraction", ratio(core.good, core.time)),
    )
    quotients = ((name, marked(quotient(share), sums.by_statistics)) for name, share in shares)
    lines.append("   ".join(f"{name}: {share}" for name, share in quotients))
    return lines


def notes(sums: KnownJobCounts) -> list[str]:
    """Return what one has to know of pilots of whose jobs not all is known."""
    sentences = []
    if sums.numbered < sums.pilots:
        sentences.append(
            f"How many jobs ran is known of {sums.numbered} of {sums.pilots} pilots that ended; "
            f"averages are of these, {NOT_KNOWN} of others."
        )
    if sums.by_statistics:
        sentences.append(
            f"Of {sums.by_statistics} of {sums.pilots} pilots that ended the jobs are known from "
            "statistics only (their own, or the factory's completed_jobs): how many jobs, and "
            f"how long each lasted, is not known ({NOT_KNOWN}). Their time used is estimated, and "
            "so is what "
            "counts as good of it: the time of jobs that ended by themselves, whatever their exit "
            "status. What rests on these is marked ~."
        )
    return sentences


def number_text(jobs: int, numbered: int, pilots: int) -> str:
    """Return a number of jobs, known of so many of all pilots.

    >>> number_text(5, 2, 2), number_text(5, 1, 2), number_text(0, 0, 2)
    ('5', '5+n/k', 'n/k')
    """
    if numbered >= pilots:
        return str(jobs)
    return f"{jobs}+{NOT_KNOWN}" if numbered else NOT_KNOWN


def marked(text: str, by_statistics: int) -> str:
    """Return a figure with a mark, if it rests on statistics of so many pilots.

    >>> marked("0.49", 1), marked("0.49", 0), marked("-", 1)
    ('~0.49', '0.49', '-')
    """
    return f"~{text}" if by_statistics and text != "-" else text


def job_length(sums: KnownJobCounts, unit: str = "") -> str:
    """Return how many hours a run lasts, for people."""
    average = sums.average_job_us
    if average is not None:
        return f"{average / HOUR_US:.2f}{unit}"
    return NOT_KNOWN if sums.numbered < sums.pilots else "-"


def per_pilot(sums: KnownJobCounts) -> str:
    """Return the runs of jobs on a pilot, for people."""
    counted = sums.numbered or not sums.pilots
    return quotient(ratio(sums.jobs, sums.numbered)) if counted else NOT_KNOWN


def _share(part: Callable[[CoreTime], int]) -> Callable[[PilotSums], str]:
    def cell(sums: PilotSums) -> str:
        core = sums.core
        return percent(ratio(part(core), core.time), 0)

    return cell


def _estimated(cell: Callable[[PilotSums], str]) -> Callable[[PilotSums], str]:
    return lambda sums: marked(cell(sums), sums.by_statistics)


COLUMNS: tuple[Column[PilotSums], ...] = (
    Column("pilots", lambda sums: str(sums.pilots)),
    Column("jobs", lambda sums: number_text(sums.jobs, sums.numbered, sums.pilots)),
    Column("jobs/pilot", per_pilot),
    Column("strt", lambda sums: percent(ratio(sums.failed, sums.known_started), 0)),
    Column("0job", lambda sums: percent(ratio(sums.without_jobs, sums.known_jobs), 0)),
    Column("fval", _share(lambda core: core.failed_validation)),
    Column("idle", _estimated(_share(lambda core: core.idle))),
    Column("unkn", _share(lambda core: core.unknown)),
    Column("wst", _estimated(_share(lambda core: core.waste))),
    Column("badp", _estimated(_share(lambda core: core.badput))),
    Column("job h", job_length),
    Column("used h", _estimated(lambda sums: hours(sums.core.used))),
    Column("waste h", _estimated(lambda sums: hours(sums.core.waste))),
    Column("total h", lambda sums: hours(sums.core.time)),
    Column(
        "used / total", _estimated(lambda sums: quotient(ratio(sums.core.used, sums.core.time)))
    ),
    Column("goodput fr.", _estimated(lambda sums: quotient(ratio(sums.core.good, sums.core.time)))),
)
NOTE = (
    "unkn: time of which nothing is known, in % of time as the columns beside it (fval + idle + "
    "unkn = wst). used / total: the efficiency of analyze_entries."
)
