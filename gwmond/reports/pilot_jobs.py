"""What is known of the jobs that a stored pilot ran.  Pure.

Where only a summary tells of them (the factory's, or the pilot's own statistics), stand-ins are
stored in their place (``pilots.summaries``): they have the jobs' time, and are no runs.  Such
a pilot ran jobs, but how many, and how long each lasted, is not known.  As good counts what is
goodput of it: the time of jobs that ended by themselves, whatever their exit status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gwmond.model.attempts import Source
from gwmond.model.outcomes import SUMMARISED
from gwmond.model.pilot_facts import Assumption, Category, Validation
from gwmond.model.stored_pilots import AttemptRow, PilotRow

NOT_KNOWN = "n/k"
_ZERO = "exit_zero"


class KnownJobs(NamedTuple):
    """What is known of a pilot's jobs.

    - ``runs``: those that are kept; ``number``: of all, None if nothing tells how many.
    - ``started``: whether HTCondor did, ``ran``: whether any job ran; None if nothing tells.
    - ``by_statistics``: only statistics tell of them.
    """

    runs: tuple[AttemptRow, ...]
    number: int | None
    started: bool | None
    ran: bool | None
    by_statistics: bool = False


def jobs_of(row: PilotRow, attempts: Iterable[AttemptRow]) -> KnownJobs:
    """Return what is known of a pilot's jobs; ``attempts`` are all that are kept."""
    kept = tuple(attempts)
    runs = tuple(run for run in kept if not stands_in(run))
    if len(runs) < len(kept) or Assumption.JOBS in row.assumed:
        return KnownJobs(runs, None, True, True, True)
    jobs = len(runs) + row.attempts_pruned
    ran = has_run_jobs(row, jobs)
    number = jobs if jobs or ran is False else None
    return KnownJobs(runs, number, has_started(row, jobs), ran)


def stands_in(row: AttemptRow) -> bool:
    """Return whether it stands for the jobs of a summary, and is no run of a job."""
    if row.outcome is not None:
        return row.outcome.label == SUMMARISED
    return any(fact.source is Source.SUMMARY for fact in row.facts)


def is_good(category: Category, outcome: str) -> bool:
    """Return whether time counts as that of jobs that exited 0; of a summary, as goodput."""
    return outcome == _ZERO or (outcome == SUMMARISED and category is Category.GOODPUT)


def has_run_jobs(row: PilotRow, jobs: int) -> bool | None:
    """Return whether a pilot with so many known runs ran jobs; None if nothing tells."""
    if jobs or row.ran_jobs:
        return True
    return None if row.validation in {Validation.UNKNOWN, Validation.STARTED} else False


def has_started(row: PilotRow, jobs: int) -> bool | None:
    """Return whether HTCondor started on a pilot with so many known runs; None: nothing tells."""
    if jobs or row.ran_jobs or row.validation in {Validation.PASSED, Validation.STARTED}:
        return True
    if row.validation is Validation.FAILED:
        return False
    return None if row.validation_end_us is None else True  # a hard kill cut its output off


@dataclass(slots=True)
class CountedJobs:
    """Counts over pilots that ended, of what is known of their jobs.

    - ``failed``: pilots in which HTCondor never started, ``known_started``: of how many that is
      known; ``without_jobs``, ``known_jobs``: the same of jobs that ran.
    - ``jobs``: runs of jobs on the pilots of which is known how many (``numbered``).
    - ``lengths_us``: the wall-clock time (microseconds) of so many runs (``known_lengths``).
    - ``time``: all time of these pilots, ``used``: that in which jobs ran, ``good``: that of jobs
      that exited 0; each in the unit of the figures that are counted.
    - ``by_statistics``: pilots of whose jobs only statistics tell, ``used_by_statistics`` and
      ``good_by_statistics`` their time.
    """

    pilots: int = 0
    jobs: int = 0
    numbered: int = 0
    failed: int = 0
    known_started: int = 0
    without_jobs: int = 0
    known_jobs: int = 0
    lengths_us: int = 0
    known_lengths: int = 0
    by_statistics: int = 0
    used_by_statistics: int = 0
    good_by_statistics: int = 0
    time: int = 0
    used: int = 0
    good: int = 0

    @property
    def waste(self) -> int:
        """Time in which no job ran."""
        return self.time - self.used

    @property
    def badput(self) -> int:
        """Time of no job that exited 0."""
        return self.time - self.good

    def count(self, known_jobs: KnownJobs, lengths_us: Sequence[int], used: int, good: int) -> None:
        """Count a pilot with the lengths of its runs, and its time used and that of good jobs."""
        self.pilots += 1
        self.jobs += known_jobs.number or 0
        self.numbered += known_jobs.number is not None
        self.failed += known_jobs.started is False
        self.known_started += known_jobs.started is not None
        self.without_jobs += known_jobs.ran is False
        self.known_jobs += known_jobs.ran is not None
        self.used += used
        self.good += good
        self.lengths_us += sum(lengths_us)
        self.known_lengths += len(lengths_us)
        if known_jobs.by_statistics:
            self.by_statistics += 1
            self.used_by_statistics += used
            self.good_by_statistics += good

    def known_json(self) -> dict[str, int]:
        """Return of how many pilots what is known."""
        return {
            "pilots_with_known_start": self.known_started,
            "pilots_with_known_jobs": self.known_jobs,
            "pilots_with_known_number_of_jobs": self.numbered,
            "pilots_with_jobs_by_statistics": self.by_statistics,
        }


def number_text(jobs: int, numbered: int, pilots: int) -> str:
    """Return a number of jobs, known of so many of all pilots.

    >>> number_text(5, 2, 2), number_text(5, 1, 2), number_text(0, 0, 2)
    ('5', '5+n/k', 'n/k')
    """
    if numbered >= pilots:
        return str(jobs)
    return f"{jobs}+{NOT_KNOWN}" if numbered else NOT_KNOWN


def told_numbered(numbered: int, pilots: int) -> str:
    """Return what one has to know of pilots of which nothing tells how many jobs they ran.

    >>> told_numbered(1, 2)
    'How many jobs ran is known of 1 of 2 pilots that ended; averages are of these, n/k of others.'
    """
    return (
        f"How many jobs ran is known of {numbered} of {pilots} pilots that ended; "
        f"averages are of these, {NOT_KNOWN} of others."
    )


def marked(text: str, by_statistics: int) -> str:
    """Return a figure with a mark, if it rests on statistics of so many pilots.

    >>> marked("0.49", 1), marked("0.49", 0), marked("-", 1)
    ('~0.49', '0.49', '-')
    """
    return f"~{text}" if by_statistics and text != "-" else text


def told_by_statistics(some: int, pilots: int) -> str:
    """Return what one has to know of pilots of which only statistics tell that jobs ran."""
    return (
        f"Of {some} of {pilots} pilots that ended only statistics tell of jobs (their own, or the "
        f"factory's completed_jobs): how many jobs, and how long each lasted, is not known "
        f"({NOT_KNOWN}). Their time used is estimated, and so is what counts as good of it: the "
        "time of jobs that ended by themselves, whatever their exit status. What rests on these "
        "is marked ~."
    )
