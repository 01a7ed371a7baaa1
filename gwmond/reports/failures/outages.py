"""Which cache or storage is bad: what plugins' own records have, by server, and outages.

An outage is a time in which no file arrived from or at a server, though runs of jobs tried: from
the first failure to the last, without an arrival between.  The server may have been down for
longer: since the arrival before, until the one after.  ``FEWEST`` runs are needed, else it is too
little to tell from a user's mistake; how many users met it is told, for one alone may have no right
to what he asks for.

Units: times are microseconds since the epoch, amounts are canonical micros of CPUs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from gwmond.ledger.reading.failed import Moved
from gwmond.model.runs.phases import FailedTransfer
from gwmond.reports.render.formats import seconds
from gwmond.reports.render.periods import both

FEWEST = 3


class Outage(NamedTuple):
    """A time without an arrival; ``micros``: settled time of the runs that failed by it.

    ``up_before_us``, ``up_after_us``: of the arrivals around it, None: none is known.
    """

    first_us: int
    last_us: int
    up_before_us: int | None
    up_after_us: int | None
    runs: int
    users: int
    sites: int
    micros: int


class ServerAttempts(NamedTuple):
    """Attempts at files of one server, one way; ``failed`` and ``again`` as of ``Move``."""

    server: FailedTransfer
    sites: int
    files: int
    failed: int
    again: int
    outages: tuple[Outage, ...]


def outage_json(outage: Outage) -> dict[str, Any]:
    """Return an outage for programs."""
    return {
        **both("first_failure", outage.first_us),
        **both("last_failure", outage.last_us),
        **both("arrival_before", outage.up_before_us),
        **both("arrival_after", outage.up_after_us),
        **{name: getattr(outage, name) for name in ("runs", "users", "sites")},
        "cpu_canonical_seconds": seconds(outage.micros),
    }


def servers(moved: Iterable[Moved]) -> list[ServerAttempts]:
    """Return the servers where attempts failed, those with most failures first."""
    by_server: defaultdict[FailedTransfer, list[Moved]] = defaultdict(list)
    for one in moved:
        by_server[FailedTransfer(*one.move[:3])].append(one)
    lines = [
        ServerAttempts(
            server,
            len({one.site for one in of_server}),
            sum(one.move.files for one in of_server),
            sum(one.move.failed for one in of_server),
            sum(one.move.again for one in of_server),
            tuple(outages(of_server)),
        )
        for server, of_server in by_server.items()
    ]
    failing = (line for line in lines if line.failed or line.again)
    return sorted(failing, key=lambda line: (-line.failed, -line.again, line.server))


def outages(moved: Iterable[Moved]) -> list[Outage]:
    """Return the outages of one server, by its transfers in any order.

    Where some files of a run arrived and others did not, the server was there.  An attempt that was
    repeated failed when the transfer began, where that is known.
    """
    events: list[tuple[int, bool, Moved]] = []
    for one in moved:
        move = one.move
        if move.again and move.start_us is not None:
            events.append((move.start_us, False, one))
        events.append((move.end_us, bool(move.files), one))
    events.sort(key=lambda event: event[:2])
    found: list[Outage] = []
    failures: list[tuple[int, Moved]] = []
    up_us: int | None = None
    for time_us, arrived, one in events:
        if not arrived:
            failures.append((time_us, one))
            continue
        found += _outage(failures, up_us, time_us)
        failures, up_us = [], time_us
    return found + _outage(failures, up_us, None)


def _outage(
    failures: list[tuple[int, Moved]], before_us: int | None, after_us: int | None
) -> list[Outage]:
    by_run = {one.run: one for _, one in failures}
    if len(by_run) < FEWEST:
        return []
    lost = (one.micros for one in by_run.values() if one.move.failed)
    users, sites = ({getattr(x, name) for x in by_run.values()} for name in ("user", "site"))
    between = failures[0][0], failures[-1][0], before_us, after_us
    return [Outage(*between, len(by_run), len(users), len(sites), sum(lost))]
