"""What failed lately, for a page: as far back as can be read in some seconds.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from gwmond.ledger.database.errors import LedgerError
from gwmond.ledger.reading.failed import (
    NOT_JUDGED,
    EndedInPeriod,
    Moved,
    ended_within,
    moved_within,
)
from gwmond.model.entries.suspects import Suspect
from gwmond.model.facts import EntryKey, Place
from gwmond.model.pilots.stored_pilots import PilotFilter
from gwmond.model.runs.phases import FailedTransfer
from gwmond.model.times import SECOND_US, Period
from gwmond.reports.failures.failures import Failures
from gwmond.reports.failures.outages import ServerAttempts, outage_json, servers
from gwmond.reports.ledger.ledger_reading import DEADLINE_S, ledger_for_page
from gwmond.reports.render.categories import CPU
from gwmond.reports.render.formats import seconds
from gwmond.reports.render.periods import both
from gwmond.reports.stored.pilot_sums import PilotSums
from gwmond.reports.stored.stored_pilot import StoredPilot

MOST_PILOTS = 5000
"""Failed pilots that are read for one page."""
MOST_MOVED = 20_000
"""Runs of which transfers are read for one page."""
_FIRST_US = 300 * SECOND_US

Node: TypeAlias = tuple[str, str, str]
"""Site, entry, node; an empty node is not known."""


class RunCause(NamedTuple):
    """Where runs failed early, and as what; of an entry or a cause alone the rest is empty."""

    site: str
    entry: str
    node: str
    outcome: str

    @property
    def place(self) -> Node:
        return self[:3]


class RunCount(NamedTuple):
    """Runs that failed early, of ``ended`` that ended at a place.

    ``failed``: by the doing of the place, with canonical ``micros``; ``open``: not judged yet.
    """

    failed: int = 0
    open: int = 0
    micros: int = 0
    ended: int = 0

    def plus(self, other: RunCount) -> RunCount:
        return RunCount(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class JobOf(NamedTuple):
    """A job, and its user; what is empty is not known, or not shown."""

    job: str = ""
    user: str = ""


@dataclass(slots=True)
class RecentFailures:
    """What ended in a period and failed, since ``since_us``: before was not read if ``partial``.

    ``unknown``: pilots of which it is not known whether their validation failed.  ``jobs``: one for
    each cause.  ``servers``: where transfers failed by plugins' own records, which are read
    since ``moved_since_us``.
    """

    wanted: Period
    since_us: int
    validations: Failures = field(default_factory=Failures)
    unknown: int = 0
    runs: dict[RunCause, RunCount] = field(default_factory=dict)
    runs_ended: Counter[Node] = field(default_factory=Counter)
    transfers: Counter[tuple[str, FailedTransfer]] = field(default_factory=Counter)
    jobs: dict[RunCause, JobOf] = field(default_factory=dict)
    servers: list[ServerAttempts] = field(default_factory=list)
    moved_since_us: int = 0

    @property
    def partial(self) -> bool:
        return self.since_us > self.wanted.since_us

    def take(self, ended: EndedInPeriod, since_us: int) -> None:
        """Add what ended in the part of the period that begins then."""
        for place in ended.pilots:
            self.validations.ended[place[:3]] += place.pilots
            self.unknown += place.unknown
        for row in ended.failed or ():
            self.validations.add(StoredPilot(row))
        for runs in ended.runs:
            self.runs_ended[runs[:3]] += runs.runs
            if runs.outcome:
                pending = runs.outcome == NOT_JUDGED
                count = RunCount(0, runs.runs) if pending else RunCount(runs.runs, 0, runs.micros)
                cause = RunCause(*runs[:4])
                self.jobs.setdefault(cause, JobOf(runs.job, runs.user))
                self.runs[cause] = self.runs.get(cause, RunCount()).plus(count)
        self.transfers.update(ended.transfers)
        self.since_us = since_us

    @property
    def all_runs(self) -> RunCount:
        """All runs that ended, and how many of them failed."""
        none = RunCause("", "", "", "")
        found = self.runs_by(lambda _: none).get(none, RunCount())
        return found._replace(ended=self.runs_ended.total())

    def runs_by(self, key: Callable[[RunCause], RunCause]) -> dict[RunCause, RunCount]:
        """Return the runs that failed, by part of where and why; without how many ended."""
        found: dict[RunCause, RunCount] = {}
        for cause, count in self.runs.items():
            found[key(cause)] = found.get(key(cause), RunCount()).plus(count)
        return found

    @property
    def by_entry(self) -> list[tuple[EntryKey, PilotSums, int, RunCount]]:
        """Return what failed at each entry, how many pilots ended there, and its runs.

        The entries with most failures first, and none without any.
        """
        failed: dict[EntryKey, PilotSums] = {}
        for key, sums in self.validations.of.items():
            failed.setdefault(EntryKey(*key[:2]), PilotSums()).add_up([sums])
        ended, runs_ended = Counter[EntryKey](), Counter[EntryKey]()
        for (site, entry, _), number in self.validations.ended.items():
            ended[EntryKey(site, entry)] += number
        for (site, entry, _), number in self.runs_ended.items():
            runs_ended[EntryKey(site, entry)] += number
        runs = self.runs_by(lambda cause: RunCause(cause.site, cause.entry, "", ""))
        by_entry = {EntryKey(*cause[:2]): count for cause, count in runs.items()}
        found = []
        for place in failed.keys() | by_entry.keys():
            count = by_entry.get(place, RunCount())._replace(ended=runs_ended[place])
            found.append((place, failed.get(place, PilotSums()), ended[place], count))
        lost = {line[0]: line[1].time[CPU] + line[3].micros for line in found}
        return sorted(found, key=lambda line: (-lost[line[0]], -line[3].open, line[0]))


def failures_json(found: RecentFailures, suspects: Sequence[Suspect], most: int) -> dict[str, Any]:
    """Return what failed for programs: at most so many lines of each kind, the worst first."""
    groups = found.validations.records()
    nodes = sorted(
        (
            (cause, count._replace(ended=found.runs_ended[cause.place]))
            for cause, count in found.runs.items()
        ),
        key=lambda line: (-line[1].failed, -line[1].open, line[0]),
    )
    return {
        "period": {**both("from", found.wanted.since_us), **both("to", found.wanted.until_us)},
        "partial": found.partial,
        **both("complete_since", found.since_us),
        "validation_failures": {
            "groups": groups[:most],
            "left_off": max(0, len(groups) - most),
            "total": found.validations.total_record(),
            "pilots_not_known": found.unknown,
        },
        "run_failures": {
            "groups": [
                {key: name or None for key, name in cause._asdict().items()} | _run_json(count)
                for cause, count in nodes[:most]
            ],
            "left_off": max(0, len(nodes) - most),
            "total": _run_json(found.all_runs),
        },
        "failed_transfers": {
            "groups": [
                {
                    **failed._asdict(),
                    "host": failed.host or None,
                    "site": site or None,
                    "runs": runs,
                }
                for (site, failed), runs in found.transfers.most_common(most)
            ],
            "left_off": max(0, len(found.transfers) - most),
            "total": {"runs": found.transfers.total()},
        },
        "transfer_servers": {
            "groups": [_server_json(server) for server in found.servers[:most]],
            "left_off": max(0, len(found.servers) - most),
            **both("complete_since", found.moved_since_us),
        },
        "suspected_black_holes": [
            {
                **{name: getattr(suspect, name) for name in ("site", "entry", "kind", "place")},
                "runs": suspect.finding.jobs,
                "too_soon": suspect.finding.failures,
                "expected": suspect.finding.expected,
            }
            for suspect in suspects[:most]
        ],
    }


def _server_json(line: ServerAttempts) -> dict[str, Any]:
    return {
        **line.server._asdict(),
        "host": line.server.host or None,
        "sites": line.sites,
        "attempts": {"succeeded": line.files, "failed": line.failed, "repeated": line.again},
        "outages": list(map(outage_json, line.outages)),
    }


def _run_json(count: RunCount) -> dict[str, Any]:
    return {
        "runs": count.failed,
        "not_judged": count.open,
        "of_runs": count.ended,
        "cpu_canonical_seconds": seconds(count.micros),
    }


def recent_failures(url: str, period: Period, place: Place) -> RecentFailures:
    """Read what ended at a place in a period, the latest first.  Raises Unreadable."""
    wanted = PilotFilter(place=place)
    found = RecentFailures(period, period.until_us)
    moved: list[Moved] = []
    found.moved_since_us = period.until_us
    left, end = MOST_PILOTS, time.monotonic() + DEADLINE_S
    with ledger_for_page(url) as ledger:
        for window in _backwards(period):
            try:
                ended = ended_within(ledger, wanted._replace(ended=window), left)
                more = MOST_MOVED - len(moved)
                if more > 0 and found.moved_since_us == window.until_us:
                    part, found.moved_since_us = moved_within(ledger, wanted, window, more)
                    moved += part
            except LedgerError:
                if found.since_us < period.until_us and time.monotonic() >= end:
                    break
                raise
            if ended.failed is None:
                break
            left -= len(ended.failed)
            found.take(ended, window.since_us)
    found.servers = servers(moved)
    return found


def _backwards(period: Period) -> Iterator[Period]:
    """Yield the parts of a period, the last first: short ones, then each twice as long."""
    until_us, length_us = period.until_us, _FIRST_US
    while until_us > period.since_us:
        since_us = max(period.since_us, until_us - length_us)
        yield Period(since_us, until_us)
        until_us, length_us = since_us, 2 * length_us
