"""On what a factory's summary differs from what better sources tell of its pilot.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from gwmond.model.factory_jobs import FactoryJob
from gwmond.model.pilot_evidence import CompletedPilot
from gwmond.model.pilot_facts import Assumption, Validation
from gwmond.model.times import SECOND_US
from gwmond.pilots.open_pilot import OpenPilot
from gwmond.pilots.summaries import LINE, jobs_ran, says_none, verdict


def contradictions(pilot: OpenPilot, job: FactoryJob) -> list[str]:
    """Return on what a summary differs from what better sources tell of its pilot."""
    line, found = job.line, []
    if line is None or pilot.ended != "reported" or job.duration_us is None:
        return []
    known_us = pilot.until_us - pilot.start_us
    if abs(job.duration_us - known_us) > known_us // 10 + 60 * SECOND_US:
        found.append("summary_duration")
    told = verdict(line)
    started = pilot.validation in {Validation.PASSED, Validation.STARTED}
    passed = started or bool(pilot.attempts) or pilot.ran_jobs
    failed = pilot.validation is Validation.FAILED and Assumption.VALIDATION not in pilot.assumed
    if (told is Validation.FAILED and passed) or (
        told in {Validation.PASSED, Validation.STARTED} and failed
    ):
        found.append("summary_condor_started")
    if _jobs(pilot, line):
        found.append("summary_jobs")
    return found


def _jobs(pilot: OpenPilot, line: CompletedPilot) -> bool:
    """Return whether a summary and better sources differ on whether jobs ran on a valid pilot."""
    if verdict(line) is not Validation.PASSED:
        return False
    ran = pilot.ran_jobs or any(not attempt.job.startswith(LINE) for attempt in pilot.attempts)
    if ran:
        return not jobs_ran(line)
    return jobs_ran(line) and pilot.validation is Validation.PASSED and says_none(pilot)
