"""Source (optional): the factory's side of GlideinWMS.

glidefactoryclient ads of a WMS collector say what each client (frontend and group) asked of each
entry, how old that wish is, and which factory limits are hit; glidefactory ads an entry's limits
and totals; glideclient ads what the frontends themselves ask for.
The factory's schedd holds the pilots as grid jobs: grouped there by entry, client and status, with
those that wait longer than the grace counted apart, it is the one measured source of waiting times.
Held ones are grouped by the reason as well.  A factory removes held pilots in each of its loops
(unless the code is among its ``recoverable`` ones: glideFactoryLib.py, isGlideinUnrecoverable), and
they stay in the queue for 12 hours: those that were removed within the grace count with the held.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.facts import Limit
from gwmond.model.monitor import Monitor
from gwmond.model.units import known_sum
from gwmond.sources.htcondor import ads, monitors
from gwmond.sources.htcondor.access import CollectorSource, Query
from gwmond.sources.htcondor.glideresource import LIMITS_USED, limits
from gwmond.sources.htcondor.monitors import FactoryEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    import classad2

    from gwmond.sources.htcondor.access import Access, Daemon

REMOVED = "queue_removed"
"""The query for pilots that were held until they were removed."""
STATUS = {1: "submitted", 2: "running", 5: "held"}  # JobStatus of a grid job
_REMOVED = 3
_GRID = "JobUniverse == 9 && GlideinEntryName isnt undefined"
_KEYS = (
    *("JobStatus", "JobUniverse", "GridJobStatus"),
    *("GlideinFactory", "GlideinName", "GlideinEntryName", "GlideinClient"),
)
_HOLD = ("HoldReason", "HoldReasonCode")
_LAST_HOLD = ("LastHoldReason", "LastHoldReasonCode")


class FactoryClient(NamedTuple):
    """What the factory knows of one client at one entry; counts are pilots.

    ``factory`` is ``glidein@factory``, ``client`` is ``frontend.group``, ``last_heard`` an epoch.
    """

    entry: str
    factory: str
    client: str
    limits: tuple[Limit, ...]
    monitor: Monitor = Monitor()
    site: str = ""
    last_heard: int = 0


class ClientAsk(NamedTuple):
    """What one glideclient ad asks a factory for; counts are pilots.

    A client may have an ad for each of its credentials, which share what it asks for.
    """

    entry: str
    factory: str
    client: str
    idle: int | None
    most: int | None

    def plus(self, other: ClientAsk) -> ClientAsk:
        """Return what both ask for; a number that one lacks is None."""
        idle = known_sum((self.idle, other.idle))
        most = known_sum((self.most, other.most))
        return self._replace(idle=idle, most=most)


class QueueCount(NamedTuple):
    """Pilots in a factory schedd's queue; ``waiting_long`` of them are pending past the grace.

    ``submitted`` are those of which the site's queue has not said anything yet, ``removed`` those
    that were held until they were removed, within the grace.  Of these and of ``held`` ones
    ``hold`` is why, with its code.
    """

    entry: str
    factory: str
    client: str
    status: str
    pilots: int
    waiting_long: int
    hold: str = ""
    hold_code: int | None = None


_CLIENT = (
    *("Name", "ReqGlidein", "ReqClientName", "ClientName", "GLIDEIN_Site"),
    *(*monitors.CLIENT_NAMES, *LIMITS_USED, "LastHeardFrom", "ClassAdLifetime"),
)
CLIENTS = Query("factoryclient", "Any", 'MyType == "glidefactoryclient"', (), used=_CLIENT)
"""For glidefactoryclient ads."""


_ENTRY = (
    *("Name", "EntryName", "GlideinName", "FactoryName", "GLIDEIN_Site"),
    *(*monitors.ENTRY_NAMES, "LastHeardFrom", "ClassAdLifetime"),
)
ENTRIES = Query("factory", "Any", 'MyType == "glidefactory"', _ENTRY)
"""For glidefactory ads."""


_ASK = (
    *("Name", "ClientName", "ReqGlidein", "ReqIdleGlideins", "ReqMaxGlideins"),
    *("LastHeardFrom", "ClassAdLifetime"),
)
ASKS = Query("glideclient", "Any", 'MyType == "glideclient"', _ASK)
"""For glideclient ads, which hold encrypted credentials besides."""


def decode_clients(client_ads: Sequence[classad2.ClassAd], now: float) -> tuple[FactoryClient, ...]:
    """Turn glidefactoryclient ads into facts."""
    decoded = []
    for ad in ads.fresh(client_ads, now):
        entry, _, factory = (ads.label(ad, ("ReqGlidein", "Name")) or "").partition("@")
        client = ads.label(ad, ("ReqClientName", "ClientName")) or ""
        decoded.append(
            FactoryClient(
                entry=entry,
                factory=factory,
                client=client,
                limits=limits(ad),
                monitor=monitors.of_factory(ad),
                site=ads.label(ad, ("GLIDEIN_Site",)) or "",
                last_heard=ads.integer(ad, "LastHeardFrom") or 0,
            )
        )
    return tuple(decoded)


def decode_entries(entry_ads: Sequence[classad2.ClassAd], now: float) -> tuple[FactoryEntry, ...]:
    """Turn glidefactory ads into facts."""
    decoded = []
    for ad in ads.fresh(entry_ads, now):
        entry, _, factory = (ads.label(ad, ("Name",)) or "").partition("@")
        decoded.append(
            FactoryEntry(
                entry=ads.label(ad, ("EntryName",)) or entry,
                factory=factory,
                numbers=monitors.of_entry(ad),
                site=ads.label(ad, ("GLIDEIN_Site",)) or "",
                last_heard=ads.integer(ad, "LastHeardFrom") or 0,
            )
        )
    return tuple(decoded)


def decode_asks(ask_ads: Sequence[classad2.ClassAd], now: float) -> tuple[ClientAsk, ...]:
    """Turn glideclient ads into facts; one that names no entry or client is left out."""
    decoded = []
    for ad in ads.fresh(ask_ads, now):
        entry, _, factory = (ads.label(ad, ("ReqGlidein",)) or "").partition("@")
        client = ads.label(ad, ("ClientName",))
        if entry and client is not None:
            idle, most = (ads.count(ad, f"Req{name}Glideins") for name in ("Idle", "Max"))
            decoded.append(ClientAsk(entry, factory, client, idle, most))
    return tuple(decoded)


def queue_queries(grace_s: float, now: float) -> tuple[Query, Query, Query]:
    """Return the queries for all pilots, for those pending beyond the grace, and those removed.

    Removed: within the grace, and held until then.
    """
    pending = f"{_GRID} && JobStatus == 1 && GridJobStatus isnt undefined"
    since = int(now - grace_s)
    held = f"{_GRID} && JobStatus == {_REMOVED} && LastJobStatus == 5"
    times = "EnteredCurrentStatus", "LastJobStatus"
    return (
        Query("queue", "", _GRID, (*_KEYS, *_HOLD)),
        Query("queue_waiting", "", f"{pending} && QDate < {since}", (*_KEYS, "QDate")),
        Query(
            *(REMOVED, "", f"{held} && EnteredCurrentStatus >= {since}"),
            (*_KEYS, *_LAST_HOLD, *times),
        ),
    )


def fetch_queue(
    access: Access, schedd: Daemon, grace_s: float, now: float
) -> tuple[QueueCount, ...]:
    """Ask one factory schedd for its pilots, grouped."""
    return decode_queue(*(access.job_ads(schedd, q) for q in queue_queries(grace_s, now)))


def decode_queue(
    jobs: Sequence[classad2.ClassAd],
    waiting: Sequence[classad2.ClassAd],
    removed: Sequence[classad2.ClassAd] = (),
) -> tuple[QueueCount, ...]:
    """Add up rows of pilots by entry, factory, client, status, and why they are or were held."""
    sums: dict[QueueCount, list[int]] = defaultdict(lambda: [0, 0])
    for index, rows in enumerate((jobs, waiting)):
        for ad in rows:
            status = STATUS.get(ads.integer(ad, "JobStatus") or 0, "other")
            if status == "submitted" and ads.evaluate(ad, "GridJobStatus") is not None:
                status = "pending"
            hold = _HOLD if status == "held" else ()
            sums[_of(ad, status, hold)][index] += ads.count(ad, "JobCount") or 0
    for ad in removed:
        sums[_of(ad, "removed", _LAST_HOLD)][0] += ads.count(ad, "JobCount") or 0
    counts = (count._replace(pilots=n, waiting_long=old) for count, (n, old) in sums.items())
    return tuple(sorted(counts, key=lambda count: (count[:4], count.hold, count.hold_code or 0)))


def _of(ad: classad2.ClassAd, status: str, hold: Sequence[str]) -> QueueCount:
    """Return what is counted together; ``hold``: the names of reason and code."""
    glidein, factory = ads.text(ad, "GlideinName") or "", ads.text(ad, "GlideinFactory") or ""
    return QueueCount(
        entry=ads.text(ad, "GlideinEntryName") or "",
        factory="@".join(part for part in (glidein, factory) if part),
        client=ads.text(ad, "GlideinClient") or "",
        status=status,
        pilots=0,
        waiting_long=0,
        hold=(ads.label(ad, hold[:1]) or "") if hold else "",
        hold_code=ads.integer(ad, hold[1]) if hold else None,
    )


SOURCES = tuple(
    CollectorSource(kind, query, decode, pool=False, wms=True)
    for kind, query, decode in (
        ("factoryclient", lambda _: CLIENTS, lambda answer, t: decode_clients(answer, t.now)),
        ("factory", lambda _: ENTRIES, lambda answer, t: decode_entries(answer, t.now)),
        ("glideclient", lambda _: ASKS, lambda answer, t: decode_asks(answer, t.now)),
    )
)
