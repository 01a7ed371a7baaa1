"""The sources that collectors are: what each is asked, and how the answer is decoded, once.

A round, a recording, its replay, ``gwmond check`` and the metrics of sources follow from this list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gwmond.sources.htcondor import (
    advertised,
    claims,
    collector,
    factory,
    frontend,
    glideresource,
    schedds,
    slots,
    startds,
)
from gwmond.sources.round import CLAIMS, REQUESTS, SCHEDDS, SLOTS, STARTDS, SUBMITTERS

if TYPE_CHECKING:
    import classad2

    from gwmond.config.settings import Attributes
    from gwmond.sources.htcondor.access import Access, Query


class Terms(NamedTuple):
    """What a collector is asked by, and its answer is decoded by.

    ``host``: empty for the collector of this host's configuration; ``now``: epoch seconds;
    ``claims_since``: only claims of jobs begun since then (epoch seconds; None: all).
    """

    access: Access
    host: str
    attributes: Attributes
    now: float
    claims_since: float | None = None

    @property
    def name(self) -> str:
        """The collector's name for people."""
        return self.host or "local"


class CollectorSource(NamedTuple):
    """One kind of question to a collector; ``kind`` is that of its query.

    ``discovers``: the answer has schedds, which are asked in the same round.
    ``whole``: the ads are asked for without a projection, so a recording has what jobs refer to.
    """

    kind: str
    query: Callable[[Terms], Query]
    decode: Callable[[Sequence[classad2.ClassAd], Terms], Any]
    discovers: bool = False
    whole: bool = False


_SCHEDDS = CollectorSource(
    SCHEDDS, lambda _: schedds.query(), lambda ads, t: schedds.decode(ads, t.now), discovers=True
)

POOL_SOURCES = (
    _SCHEDDS,
    CollectorSource(
        SUBMITTERS,
        lambda _: schedds.submitters_query(),
        lambda ads, t: schedds.decode_submitters(ads, t.now),
        discovers=True,
    ),
    CollectorSource(
        SLOTS,
        lambda t: slots.query(t.attributes),
        lambda ads, t: slots.decode(ads, t.attributes, t.name, t.now),
    ),
    CollectorSource(
        CLAIMS,
        lambda t: claims.query(t.claims_since),
        lambda ads, t: claims.decode(ads, t.name, t.now),
    ),
    CollectorSource(
        STARTDS,
        lambda t: startds.query(t.attributes),
        lambda ads, t: startds.decode(ads, t.attributes, t.now),
    ),
    CollectorSource(
        REQUESTS,
        lambda _: glideresource.query(),
        lambda ads, t: glideresource.decode(ads, t.attributes, t.name, t.now),
        whole=True,
    ),
    CollectorSource(
        "frontendmonitor", lambda _: frontend.query(), lambda ads, t: frontend.decode(ads, t.now)
    ),
    CollectorSource(
        "collector",
        lambda _: collector.query(),
        lambda ads, t: collector.decode(ads, t.access, t.host, t.now),
    ),
)
"""What each collector of the pool is asked, in this order."""

WMS_SOURCES = (
    CollectorSource(
        "factoryclient",
        lambda _: factory.clients_query(),
        lambda ads, t: factory.decode_clients(ads, t.now),
    ),
    CollectorSource(
        "factory",
        lambda _: factory.entries_query(),
        lambda ads, t: factory.decode_entries(ads, t.now),
    ),
    CollectorSource(
        "glideclient",
        lambda _: factory.asks_query(),
        lambda ads, t: factory.decode_asks(ads, t.now),
    ),
    CollectorSource(
        advertised.KIND,
        lambda t: advertised.masters_query(t.attributes),
        lambda ads, t: advertised.decode(ads, t.attributes, t.now),
    ),
    _SCHEDDS,
)
"""What each WMS collector is asked."""

COLLECTOR_KINDS = frozenset(source.kind for source in POOL_SOURCES)
SOURCES = {source.kind: source for source in (*POOL_SOURCES, *WMS_SOURCES)}
