"""Each query of each board, in a real Prometheus: of the demo, of all that can be shown, of a
gwmond that has stopped polling."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from tests.build.demos import replay
from tests.build.snapshots import snapshot
from tests.dashboards.asked import asked, numbered
from tests.dashboards.served import Served
from tests.pool.prometheus import Instant, Prometheus, Sample
from tests.pool.sandbox import PATIENCE_S
from tools.dashboards.boards import BOARDS
from tools.dashboards.record import Board

DEMO, FULL, STALE = "test0", "test1", "test2"
LONG_AGO_S = 3600.0
#: Of a gwmond that no longer polls, these are shown: that it does not, and what it was.
KNOWN = {
    *("Last poll", "Age of the last poll", "Version"),
    *("Queries that fail", "Time since a source answered"),
}
each_board = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)


def values(seen: Instant, promql: str) -> list[float]:
    """The values of a query's series."""
    return [value for _, value in seen.query(promql)]


def without_data(seen: Instant, board: Board, job: str) -> set[str]:
    """The queries of a board that give nothing; what the others give are numbers."""
    empty = set()
    for name, _, query in numbered(board):
        found = values(seen, asked(query, job=job))
        assert all(map(math.isfinite, found)), name
        if not found:
            empty.add(name)
    return empty


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instant]:
    """Prometheus, when all sources of the demo's pool answered and its counters had grown."""
    directory = tmp_path_factory.mktemp("demo")
    ready = (
        f'sum(increase(gwmond_pilot_canonical_seconds_total{{job="{DEMO}",category="goodput"}}'
        f'[10m])) > 0 and min(gwmond_source_up{{job="{DEMO}"}}) == 1 and sum(up) == 3'
    )
    with replay(directory) as (listen, demo), Served(0) as full, Served(LONG_AGO_S) as stale:
        targets = (listen, full.target, stale.target)
        with Prometheus(targets, interval="2s", timeout="2s") as prometheus:

            def whole(found: list[Sample]) -> bool:
                """Whether all of the demo is there."""
                assert demo.poll() is None, "it has ended"
                return bool(found)

            then = prometheus.instant(ready, whole, 2 * PATIENCE_S)
            demo.kill()
            yield then


@each_board
def test_queries_have_data_of_all_that_can_be_shown(seen: Instant, board: Board) -> None:
    """Where all occurs, each query gives series."""
    assert without_data(seen, board, FULL) == set()


@each_board
def test_queries_have_data_of_the_demo(seen: Instant, board: Board) -> None:
    """Of the demo as well, or the panel says in which pools it is empty."""
    may_be_empty = {name for name, panel, _ in numbered(board) if panel.empty}
    assert without_data(seen, board, DEMO) <= may_be_empty


@each_board
def test_what_is_stale_is_not_shown(seen: Instant, board: Board) -> None:
    """A gwmond that has not polled for an hour has no number of now on any board.

    What has been counted in the chosen range is of the past, and stays.
    """
    of_now = {
        name
        for name, panel, query in numbered(board)
        if panel.title not in KNOWN and "$__range" not in query.promql
    }
    assert of_now <= without_data(seen, board, STALE)


def test_age_is_of_the_poll_that_is_longest_ago(seen: Instant) -> None:
    """The overview shows how long ago the last poll was, in poll intervals."""
    (query,) = (query for _, panel, query in numbered(BOARDS[0]) if panel.title == "Last poll")
    (age,) = values(seen, asked(query, job=f"{FULL}|{STALE}"))
    assert age == pytest.approx(LONG_AGO_S / snapshot().poll_interval, abs=0.2)


def test_two_gwmonds_are_told_apart(seen: Instant) -> None:
    """A gwmond that is stale hides its own numbers, not those of another beside it."""
    (query,) = (q for _, p, q in numbered(BOARDS[0]) if p.title == "Use of the sites' capacity")
    both, fresh = (values(seen, asked(query, job=job)) for job in (f"{FULL}|{STALE}", FULL))
    assert both == fresh != []
