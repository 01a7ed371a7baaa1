"""What gwmond says when all is over, against the truth.

What differs is wrong, unless a fault explains that no source had the fact: then it is named, with
the fault.  What no fault excuses: totals that are not the sum of their parts, a counter that falls,
a pilot or a run that is there twice, a category that the job's own record contradicts.
"""

from __future__ import annotations

import contextlib
import urllib.error
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.runs.outcomes import NOT_COMPARED
from tests.build.meanwhile import Meanwhile
from tests.chaos.faults import Fault
from tests.chaos.work import Lived, Ran, Truth
from tests.daemon.running import RunningDaemon
from tests.daemon.scrape import Metrics, Series
from tests.proof.ledger import Said

#: An update of a pilot's ad comes every 5 s, a poll every 3 s; and logs have whole seconds.
TOLERANCE_S = 20.0
#: So long after a fault its effects may last: an ad expires, a lease ends, a query is late.
AFTER_S = 30.0
#: With runs that began so long before or after, an early failure is compared.
_COMPARED_S = 900.0
#: A daemon's clock may be off by so much: times in its files are those of another time.
_STEP_S = 600.0

#: Faults that can hide what a pilot's ads said, or when.
_HIDING = (
    *(
        "daemon stopped COLLECTOR",
        "daemon killed COLLECTOR",
        "network cut",
        "startd",
        "pilot killed",
    ),
    *("gwmond", "ledger restored", "clock stepped", "disk", "ledger locked", "database"),
    *("pilot's clock", "schedd's clock", "network slow", "packets lost"),
)
#: What is done to one pilot or schedd says nothing of another.
_OF_ONE = ("startd", "pilot", "schedd's")


class Watch(Meanwhile):
    """Scrapes all the while, and remembers each counter of the ledger that fell."""

    def __init__(self, daemon: RunningDaemon) -> None:
        super().__init__(self._run)
        self._daemon = daemon
        self._last: dict[Series, float] = {}
        self.scrapes = 0
        #: when polls ended
        self.polls: list[float] = []
        #: until when sites' time was accounted, and how much it was, at all scrapes
        self.accounted: list[tuple[float, float]] = []
        #: names of counters that are kept in the ledger
        self.kept: set[str] = set()
        self.fell: list[str] = []

    def forget(self) -> None:
        """A ledger that was restored begins anew."""
        self._last = {}

    def _run(self) -> None:
        while not self._stop.wait(1):
            last = self._last
            with contextlib.suppress(OSError, urllib.error.HTTPError):
                text = self._daemon.get("/metrics")
                if last is self._last:
                    self._look(text)

    def _look(self, text: str) -> None:
        self.kept |= {
            line.split()[2]
            for line in text.splitlines()
            if line.startswith("# HELP ") and "Kept in the ledger" in line
        }
        metrics = Metrics.parse(text)
        self.scrapes += 1
        if metrics.polled_at and metrics.polled_at not in self.polls[-1:]:
            self.polls.append(metrics.polled_at)
            spent = metrics.sum("gwmond_site_canonical_seconds_total", resource="cpu")
            self.accounted.append((metrics.accounted_at, spent))
        for series, value in metrics.items():
            if series[0] not in self.kept:
                continue
            if value < self._last.get(series, 0.0):
                self.fell.append(f"{series[0]}{dict(series[1])}: {self._last[series]} to {value}")
            self._last[series] = value


@dataclass
class Verdict:
    """What is wrong, and what is named: differences with the fault that took the fact away."""

    faults: list[Fault]
    polls: list[float]
    wrong: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)

    def differs(
        self, text: str, since: float, until: float, kinds: Iterable[str], about: Iterable[str]
    ) -> None:
        """A difference of a fact of that time; of a fault of these kinds then, it is named.

        ``about`` are the pilot or the schedd of which the fact is.  It is named too where no poll
        was seen then: on a machine with much to do.
        """
        reasons = [
            str(fault)
            for fault in self.faults
            if f"{fault.kind} {fault.detail}".startswith(tuple(kinds))
            and (not fault.kind.startswith(_OF_ONE) or fault.detail.startswith(tuple(about)))
            and min(fault.begin, fault.since or fault.begin) - _off(fault) <= until
            and fault.end + AFTER_S + _off(fault) >= since
        ]
        reasons += [
            f"no poll from {earlier:.0f} to {later:.0f}"
            for earlier, later in pairwise(self.polls)
            if later - earlier > TOLERANCE_S / 2 and earlier <= until and later >= since
        ]
        if reasons:
            self.named.append(f"{text}: {'; '.join(reasons[:3])}")
        else:
            self.wrong.append(text)


def _off(fault: Fault) -> float:
    return _STEP_S if "'s clock" in fault.kind else 0.0


def judge(said: Said, truth: Truth, faults: list[Fault], polls: list[float]) -> Verdict:
    """Compare pilots, then runs."""
    verdict = Verdict(faults, polls)
    verdict.wrong += [f"{name} is open" for name in said.open]
    _pilots(verdict, said, truth)
    _runs(verdict, said, truth)
    return verdict


def _pilots(verdict: Verdict, said: Said, truth: Truth) -> None:
    rows: dict[str, list[PilotRow]] = {}
    for row in said.pilots:
        rows.setdefault(row.identity.name, []).append(row)
    verdict.wrong += [f"there was no pilot {name}" for name in rows.keys() - truth.pilots.keys()]
    for name, lived in truth.pilots.items():
        verdict.checked["pilots"] += 1
        mine = rows.get(name, [])
        if len(mine) > 1:
            verdict.wrong.append(f"{name} is there {len(mine)} times")
        elif not mine:
            verdict.differs(f"{name} is missing", lived.start, lived.end, _HIDING, [name])
        else:
            _pilot(verdict, mine[0], lived)


def _pilot(verdict: Verdict, row: PilotRow, lived: Lived) -> None:
    name = f"{lived.name} ({lived.how}, {row.end_source})"
    sizes = {step.size.cores for step in row.steps}
    if sizes != {lived.cores}:
        text = f"{name}: cores {sizes}, not {lived.cores}"
        if Assumption.SIZE in row.assumed:  # by jobs that ran at once, by the clock of their schedd
            verdict.differs(text, lived.start, lived.end, ("ledger restored",), [lived.name])
        else:
            verdict.wrong.append(text)
    end = (row.end_us or 0) / 1e6
    for what, seconds, right in (
        ("began", row.start_us / 1e6 - lived.start, lived.start),
        ("ended", end - lived.end, lived.end),
    ):
        if abs(seconds) > TOLERANCE_S:
            text = f"{name} {what} at {right:.0f}, by the ledger {seconds:+.0f} s"
            since, until = sorted((right, right + seconds))
            verdict.differs(text, since, until, _HIDING, [lived.name])
    settled = sum(
        micros
        for (resource, measure, _, _), micros in row.settled.items()
        if (resource, measure) == ("cpu", "resource")
    )
    if row.end_us is not None and {settled} != {
        size * (row.end_us - row.start_us) for size in sizes
    }:
        verdict.wrong.append(f"{name}: {settled} is not its cores times its life")


def _runs(verdict: Verdict, said: Said, truth: Truth) -> None:
    mine: dict[str, list[RunRow]] = {}
    for run in said.runs:
        mine.setdefault(run.key.job, []).append(run)
    for job, outcome in truth.ended.items():
        verdict.checked["jobs"] += 1
        of = mine.get(job, [])
        told = [run.outcome.label for run in of if run.outcome and _good(run)]
        if told == [outcome]:
            continue
        text = f"job {job} ended with {outcome}: {[_shown(run) for run in of]}"
        last = max((ran.end for ran in truth.runs if ran.job == job), default=0.0)
        if told:
            verdict.wrong.append(text)
        else:
            # An early failure is not judged while records of runs about that time are gone.
            about_s = _COMPARED_S if any(NOT_COMPARED in _shown(run) for run in of) else 0.0
            since, until = last - about_s, last + about_s
            verdict.differs(text, since, until, ("ledger restored", "history cut"), [])
    for job, of in mine.items():
        if job not in truth.ended and any(map(_good, of)):
            verdict.wrong.append(f"job {job} did not end by itself: {[_shown(run) for run in of]}")
    rows = {(run.key.job, run.key.number): run for run in said.runs}
    names = {pilot.id: pilot.identity.name for pilot in said.pilots}
    verdict.checked["runs"] += len(truth.runs)
    for ran in truth.runs:
        row = rows.get((ran.job, ran.number))
        name = f"run {ran.number} of {ran.job} on {ran.pilot}"
        if row is None:
            others = [_shown(run) for run in mine.get(ran.job, [])]
            text = f"{name} is missing, of {others}"
            verdict.differs(text, ran.start, ran.end, _HIDING, _about(ran))
            continue
        if names[row.pilot] != ran.pilot:
            verdict.wrong.append(f"{name} is on {names[row.pilot]}")
        off = (row.start_us / 1e6 - ran.start, (row.end_us or 0) / 1e6 - ran.end)
        if max(map(abs, off)) > TOLERANCE_S:
            text = f"{name}: {off[0]:+.0f} and {off[1]:+.0f} s, {_shown(row)}"
            verdict.differs(text, ran.start, ran.end, _HIDING, _about(ran))


def _about(ran: Ran) -> tuple[str, str]:
    """Its pilot and its schedd."""
    return ran.pilot, ran.job.partition("#")[0]


def _good(run: RunRow) -> bool:
    """Whether a run is said to have ended its job by itself."""
    ways = {"exit_zero", "exit_nonzero", "exit_signal"}
    return run.outcome is not None and run.outcome.label in ways


def _shown(run: RunRow) -> str:
    outcome = run.outcome.label if run.outcome else "open"
    sources = ",".join(sorted({fact.source.value for fact in run.facts}))
    return f"{run.key.number} {outcome} {run.start_us // 10**6} ({sources})"
