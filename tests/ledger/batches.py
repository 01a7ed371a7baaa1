"""Batches whose totals a test can tell from their number alone, and processes that die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping

from gwmond.ledger.database.errors import LedgerLocked
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.elapsed import Tick
from gwmond.model.facts import EntryKey, Problem
from gwmond.model.poll.batch import Batch, EntryState, LedgerState, Peak, TimedProblem
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import HOUR_S
from gwmond.model.totals import SiteKey, microseconds, split_hours
from gwmond.model.units import Resource

EPOCH = 1_700_000_000 // HOUR_S * HOUR_S - 90  # the second tick crosses an hour
STATES = ("full", "filling", "provisioning_bottleneck", "insufficient_demand")
SITE = 4  # of the residuals of ``check``
fork = multiprocessing.get_context("fork")


def tick(number: int) -> Tick | None:
    """The tick after ``number`` commits, one minute each; none before the first."""
    if number == 0:
        return None
    return Tick(EPOCH + 60.0 * number + 0.1, 1000 + 60.0 * number, 2000 + 60.0 * number, "boot")


def key(series: int) -> SiteKey:
    resource: Resource = "gpu" if series % 7 == 3 else "cpu"
    site = f"Site-{series % 5}"
    return SiteKey(resource, STATES[series % 4], f"reason {series // 4}", site, f"entry-{series}")


def amount(number: int, series: int) -> int:
    """Micros that commit ``number`` adds to ``series``: no two alike, some beyond 32 bits."""
    return number * 999_999_937 + series * 7_368_787 + (10**14 if series == 2 else 0)


def spent(
    amounts: Mapping[SiteKey, int], start: float, end: float
) -> dict[tuple[int, SiteKey], int]:
    """What was spent in each hour of an interval."""
    return {
        (hour, series): micros
        for series, amount in amounts.items()
        for hour, micros in split_hours(amount, microseconds(start), microseconds(end))
    }


def batch(number: int, series: int = 20) -> Batch:
    """The batch that takes a ledger from ``number - 1`` to ``number`` commits."""
    now = tick(number)
    assert now is not None
    return Batch(
        before=number - 1,
        now_us=microseconds(now.wall),
        tick=now,
        site_time=spent(
            {key(i): amount(number, i) for i in range(series)}, now.wall - 60, now.wall
        ),
        site_since=now.wall - 60,
        entries={
            EntryKey(f"Site-{i % 5}", f"entry-{i}"): EntryState(EPOCH, now.wall, {"cpu": number})
            for i in range(series)
        },
        peaks={EntryKey("Site-0", "entry-0"): (Peak("cpu", 1, number), Peak("cpu", 2, 1))},
        problems=(
            TimedProblem(now.wall, Problem("schedd", ProblemName.TIMEOUT, f"commit {number}")),
        ),
    )


def expected(commits: int, series: int = 20) -> dict[SiteKey, int]:
    """The totals after that many commits."""
    if not commits:
        return {}
    return {key(i): sum(amount(n, i) for n in range(1, commits + 1)) for i in range(series)}


def totals(state: LedgerState) -> dict[SiteKey, int]:
    return {key: total.micros for key, total in state.totals.site.items()}


def prove(ledger: LedgerReader, least: int = 0, most: int | None = None) -> int:
    """Assert that all of the ledger is what its number of commits says; return that number."""
    state = ledger.load()
    assert least <= state.batches <= (state.batches if most is None else most)
    assert state.tick == tick(state.batches)
    assert totals(state) == expected(state.batches)
    assert all(residual.micros == 0 for residual in ledger.check())
    hours: Counter[SiteKey] = Counter()
    for row in ledger.hours(0, 10**7):
        hours[row.key] += row.micros
    assert dict(hours) == expected(state.batches)
    if state.batches:
        provisioned = {entry.provisioned["cpu"] for entry in state.entries.values()}
        assert provisioned == {state.batches}
        assert max(peak.units for peak in next(iter(state.peaks.values()))) == state.batches
        latest = {seen.problem.detail for seen in ledger.problems(2)}
        assert f"commit {state.batches}" in latest
    return state.batches


def in_child(work: Callable[[], object]) -> None:
    """Run ``work`` in a forked child, which kills itself with SIGKILL while it has the result."""

    def run() -> None:
        held = work()
        os.kill(os.getpid(), signal.SIGKILL)
        del held

    child = fork.Process(target=run)
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL


def commit_many(url: str, commits: int) -> Ledger:
    """Bring a ledger up to that many commits, and return it open."""
    ledger = Ledger.open(url)
    for number in range(ledger.load().batches + 1, commits + 1):
        ledger.commit(batch(number))
    return ledger


def killed_after(url: str, commits: int) -> None:
    """Bring a ledger up to that many commits in a process that dies of SIGKILL then."""
    in_child(lambda: commit_many(url, commits))


def take_over(url: str, seconds: float = 120) -> Ledger:
    """Open a ledger whose owner was just killed; a server may take a moment to notice."""
    end = time.monotonic() + seconds
    while True:
        try:
            return Ledger.open(url)
        except LedgerLocked:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def await_commits(done: int, number: int) -> int:
    """Read that so many commits were acknowledged from a pipe; return how many, if it ends."""
    seen = 0
    while seen < number and (data := os.read(done, number - seen)):
        seen += len(data)
    return seen
