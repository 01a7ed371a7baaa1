"""What an operator without pledges reads of a site that is kept from more pilots: the table.

The rows of docs/sites.md, each through the real functions: from what daemons answer, poll by poll
for a month, to capacity, state, reason and mover.  Forty jobs of one core wait, and fit there only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gwmond.explain.movers import limited
from gwmond.model.demand.order import ScheddLoad
from gwmond.model.entries.evaluation import Evaluation
from gwmond.model.facts import Limit, Verdict
from gwmond.model.states import State
from gwmond.reports.sites.sites import Polled, SiteRow, cpu_rows
from gwmond.service.pool.known_entries import EMPTY, evaluated
from gwmond.service.pool.pool_state import PoolState
from gwmond.sites.site_time import evaluate
from gwmond.sources.htcondor.factory import QueueCount
from tests.build.answers import DAY, Answers
from tests.build.facts import BIG, NOW, A, B, by_group, group, pilot, request

JOBS = 40
EVERY_S = 3 * 3600
PAGE = Path(__file__).parents[2] / "docs" / "sites.md"
FACTORY = "GlideFactoryMonitorStatus_GlideFactoryLimit"


def hit(name: str) -> tuple[Limit, ...]:
    return (Limit(name, "count=3, limit=3"),)


class Throttle(NamedTuple):
    """What the ads of the entry say, and its pilots in the factory's queue but for running ones.

    ``silent``: so many pilots run besides, and do not register.  ``load``: of the jobs' schedd.
    """

    said: dict[str, Any]
    queue: tuple[tuple[str, int, str], ...] = ()
    silent: int = 0
    load: ScheddLoad = ScheddLoad()


THROTTLES = {
    "frontend's limit": Throttle({"limits": hit("GlideClientLimitTotalGlideinsPerEntry")}),
    "frontend's curb": Throttle({"limits": hit("GlideClientCurbCurbTotalGlideinsPerGroup")}),
    "entry's limit": Throttle({"limits": hit(FACTORY + "TotalGlideinsPerEntry"), "max_pilots": 3}),
    "factory's limit of a frontend": Throttle({"limits": hit(FACTORY + "TotalPerClass_x")}),
    "pilots held": Throttle(
        {"held": 12, "requested_idle": 5}, (("held", 12, "not picked up by the job router"),)
    ),
    "not submitted": Throttle({"requested_idle": 5}),
    "not registering": Throttle({"requested_idle": 5}, silent=4),
    "nothing requested": Throttle({}),
    "nothing requested: jobs not counted": Throttle({"jobs_matching": 0}),
    "nothing requested: schedd left out": Throttle({}, load=ScheddLoad(curbed=True)),
}
SITES_OWN = {
    "none: pilots wait at the site": Throttle(
        {"requested_idle": 5, "pending": 2}, (("pending", 2, ""),)
    ),
    "none: pilots wait at the site, up to the entry's limit": Throttle(
        {"pending": 2, "max_pilots": 5, "limits": hit(FACTORY + "TotalGlideinsPerEntry")},
        (("pending", 2, ""),),
    ),
}

MOMENTS = {"first day": 6 * 3600, "after a month": 31 * DAY}


def polls(throttle: Throttle, pilots: int) -> dict[str, PoolState]:
    """The state at each moment of a month of polls; so many pilots of 8 cores run, and are busy."""
    pool, found = Answers(), dict[str, PoolState]()
    pool.collector(NOW - 30 * DAY)
    pool.discovery("ap1")
    pool.chosen = [pool.chosen[0]._replace(load=throttle.load)]
    pool.demand("ap1", group(JOBS, schedd="ap1"))
    running = pilots + throttle.silent
    said = {"pending": 0, "max_pilots": 20, "running": running, "total_running": running}
    pool.requests(request(A, running=1), request(B, **said | throttle.said))
    of = B.entry, "glidein@factory", "frontend.main"
    queue = [QueueCount(*of, "running", running, 0)] if running else []
    queue += [
        QueueCount(*of, status, n, n if status == "pending" else 0, hold)
        for status, n, hold in throttle.queue
    ]
    pool.answer("fs", "queue", (*queue, QueueCount(A.entry, *of[1:], "running", 1, 0)))
    memory = EMPTY
    for at in range(NOW, NOW + max(MOMENTS.values()) + 1, EVERY_S):
        seen = [pilot(key)._replace(jobs=(BIG,), last_heard=at) for key in (A, *[B] * pilots)]
        pool.slots(*seen)
        state = pool.take(memory, at)
        memory = evaluated(state.memory, evaluation(state))
        found |= {name: state for name, after in MOMENTS.items() if at == NOW + after}
    return found


def evaluation(state: PoolState) -> Evaluation:
    """Its evaluation; the jobs fit there only."""
    facts = state.facts
    verdicts = {
        (g.signature, t.signature): Verdict.YES if t.entry == B else Verdict.NO
        for g in facts.groups
        for t in facts.templates
    }
    return evaluate(facts._replace(verdicts=by_group(verdicts)), int(state.memory.contacts.at))


def read(state: PoolState) -> SiteRow:
    """The entry's row."""
    return cpu_rows(Polled(state.pilot_groups, evaluation(state), state.facts.totals or {}))[B]


def told(row: SiteRow) -> str:
    """State, reason, and units, as the page has them."""
    capacity = f"of {row.capacity_units} ({row.capacity_evidence})"
    if row.state != State.PROVISIONING_BOTTLENECK:
        return f"`{row.state}`"
    return f"`{row.reason}`, {row.provisioning_bottleneck_units:g} {capacity}"


def line(name: str, pilots: int) -> tuple[str, set[str], bool]:
    """The line of the page, the states at all moments, and whether what ran is a peak then."""
    of = (THROTTLES | SITES_OWN)[name]
    states = [*polls(of, pilots).values()]
    rows = [read(state) for state in states]
    move = limited(rows[-1])
    cells = name, str(pilots or "none"), *map(told, rows), move.mover.value if move else "nobody"
    peak = (B, "cpu") in states[-1].memory.peaks
    return f"| {' | '.join(cells)} |", {row.state for row in rows}, peak


@pytest.mark.parametrize("pilots", [3, 0])
@pytest.mark.parametrize("name", THROTTLES)
def test_a_throttled_site_is_a_bottleneck_on_every_day(name: str, pilots: int) -> None:
    """For the same reason, whoever has to move, with pilots and without; as the page says.

    What ran meanwhile is no peak, so that it is no capacity either when that is over.
    """
    found, states, peak = line(name, pilots)
    assert states == {State.PROVISIONING_BOTTLENECK}
    assert not peak
    assert found in PAGE.read_text()


@pytest.mark.parametrize("pilots", [3, 0])
@pytest.mark.parametrize("name", SITES_OWN)
def test_a_site_that_has_no_room_is_none(name: str, pilots: int) -> None:
    found, states, peak = line(name, pilots)
    assert (states, peak) == ({State.SATURATED}, pilots > 0)
    assert found in PAGE.read_text()


def test_a_limit_that_is_hit_now_and_then_does_not_change_the_capacity_each_time() -> None:
    """One of the pilots that the limit allows ends, and is replaced; what ran is no peak then."""
    pool, memory, at, said = Answers(), EMPTY, NOW, []
    pool.collector(NOW - 30 * DAY)
    for running in (*[7] * 12, 8, 7, 8, 7, *[7] * 9):
        limits = hit("GlideClientLimitTotalGlideinsPerEntry") if running == 8 else ()
        pool.requests(
            request(B, running=running, total_running=running, max_pilots=20, limits=limits)
        )
        pool.slots(*[pilot(B)._replace(jobs=(BIG,), last_heard=at)] * running)
        state = pool.take(memory, at)
        memory, at = state.memory, at + EVERY_S
        said.append(state.facts.capacities[B, "cpu"])
    first, hit_now_and_then, last = said[11], said[12:21], said[-1]
    assert (first, set(hit_now_and_then)) == ((56, "peak"), {(160, "limit")})
    assert last == (56, "peak")  # a day later


def test_the_page_has_these_lines_and_no_others() -> None:
    text = PAGE.read_text().partition("## What is read of a throttled site")[2]
    rows = [row for row in text.partition("\n## ")[0].splitlines() if row.count("`") > 3]
    names = [row.split(" | ")[0].removeprefix("| ") for row in rows if row.startswith("| ")]
    assert sorted(names) == sorted([*THROTTLES, *SITES_OWN] * 2)


if __name__ == "__main__":
    for each in THROTTLES | SITES_OWN:
        for number in (3, 0):
            print(line(each, number)[0])  # the lines of the page
