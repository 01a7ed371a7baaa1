"""How many runs of jobs are taken of one pilot, so that one output cannot stop all others.

A pilot of 128 cores with jobs of ten minutes has 18,000 runs in a day.  What accounting costs is
how many runs there are whenever one begins or ends, summed up: that has a limit, too.

Units: times are microseconds since the epoch.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from gwmond.model.pilots.file_facts import StarterRun
from gwmond.model.runs.records import JobRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_RUNS = 20_000
MAX_MEETINGS = 3_000_000
"""So often may runs meet: each counts those that run when it begins, and when it ends."""

_FAR_US = 1 << 62


def bounded(
    records: Sequence[JobRecord], runs: Sequence[StarterRun]
) -> tuple[tuple[JobRecord, ...], tuple[StarterRun, ...], int]:
    """Return the records of a history and the runs of logs that are taken, and how many are not.

    Those of the history come first; of too many that meet, the earlier ones.
    """
    kept, others = tuple(records[:MAX_RUNS]), tuple(runs[: max(0, MAX_RUNS - len(records))])
    spans = [*map(_span, kept), *((run.start_us, run.end_us) for run in others)]
    taken = _taken([(start, _FAR_US if end is None else end) for start, end in spans])
    if len(taken) < len(spans):
        first = len(kept)
        kept = tuple(record for number, record in enumerate(kept) if number in taken)
        others = tuple(run for number, run in enumerate(others, first) if number in taken)
    return kept, others, len(records) + len(runs) - len(kept) - len(others)


def _span(record: JobRecord) -> tuple[int, int | None]:
    fact = record.fact
    end_us = fact.written_us if fact.end_us is None else fact.end_us
    return (end_us if fact.start_us is None else fact.start_us), end_us


def _taken(spans: Sequence[tuple[int, int]]) -> set[int]:
    """Return which intervals, by their number, do not meet more others than is allowed."""
    taken: set[int] = set()
    running: list[int] = []
    meetings = 0
    for number in sorted(range(len(spans)), key=lambda number: spans[number]):
        start_us, end_us = spans[number]
        while running and running[0] <= start_us:
            heappop(running)
        if meetings + 2 * len(running) <= MAX_MEETINGS:
            meetings += 2 * len(running)
            heappush(running, end_us)
            taken.add(number)
    return taken
