"""Outages of caches and storages, by what became of files there."""

from __future__ import annotations

from itertools import permutations

from gwmond.ledger.reading.failed import Moved
from gwmond.model.pilot_life import RunKey
from gwmond.model.runs.run_facts import Move
from gwmond.reports.failures.outages import Outage, outages, servers


def moved(number: int, at: int, *, begun: int | None = None, **counts: int) -> Moved:
    """A run's transfer, with an own user and site for each two runs."""
    move = Move("input", "root", "se.org", "plugin", at, start_us=begun, **counts)
    return Moved(move, RunKey(f"job{number}", 1), f"user{number // 2}", f"Site{number // 2}", 10)


GOOD = [moved(1, 100, files=1), moved(2, 900, files=3)]
BAD = [moved(n, 100 * n, failed=1) for n in (3, 4, 5)]


def test_an_outage_is_between_arrivals() -> None:
    """From the first failure to the last, in whatever order records come."""
    told = Outage(300, 500, 100, 900, runs=3, users=2, sites=2, micros=30)
    assert all(outages(order) == [told] for order in permutations([*GOOD, *BAD]))


def test_what_surrounds_it_may_not_be_known() -> None:
    assert outages(BAD) == [Outage(300, 500, None, None, 3, 2, 2, 30)]


def test_few_runs_are_too_few() -> None:
    """Two runs, or many files of one, may be a user's mistake."""
    assert outages(BAD[:2]) == []
    assert outages([BAD[0]._replace(move=BAD[0].move._replace(end_us=n)) for n in range(9)]) == []


def test_an_arrival_divides() -> None:
    """Also one of a run of which other files failed: the server was there."""
    assert outages([*BAD, moved(6, 350, files=1)]) == []
    assert outages([*BAD, moved(6, 350, files=1, failed=2)]) == []
    more = [moved(n, 100 * n, failed=1) for n in (10, 11, 12)]
    assert [x[:2] for x in outages([*GOOD, *BAD, *more])] == [(300, 500), (1000, 1200)]


def test_attempts_that_were_repeated_failed_as_the_transfer_began() -> None:
    """No run failed by it, so none was thrown away; without a begin they have no place in time."""
    waited = [moved(n, 2000 + n, begun=1000 + n, files=1, again=4) for n in range(3)]
    assert outages(waited) == [Outage(1000, 1002, None, 2000, 3, 2, 2, 0)]
    assert outages([x._replace(move=x.move._replace(start_us=None)) for x in waited]) == []


def test_servers_where_all_arrived_are_not_listed() -> None:
    other = [x._replace(move=x.move._replace(host="good.org")) for x in GOOD]
    (line,) = servers([*GOOD, *BAD, *other])
    assert (line.server.host, line.sites) == ("se.org", 3)
    assert (line.files, line.failed, line.again, len(line.outages)) == (4, 3, 0, 1)
