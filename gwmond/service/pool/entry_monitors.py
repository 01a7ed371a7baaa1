"""What is shown of requests and entries: glideresource ads, and what WMS collectors know better.

The factory's numbers are taken from its own ads where a WMS collector is asked, else from their
copy in glideresource ads; the frontend's from its own ad before what the factory heard of it.  A
client that has no glideresource ad (on a factory's host, whose collector has none) is shown by the
factory's ads alone.  The accounting does not use these: it rests on glideresource ads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from gwmond.model.facts import EntryKey, EntryRequest, EntryTotals
from gwmond.model.freshest import freshest
from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.service.pool.freshness import Fresh
from gwmond.service.pool.known_entries import ours
from gwmond.sources.htcondor.factory import ClientAsk, FactoryClient
from gwmond.sources.htcondor.monitors import FactoryEntry
from gwmond.sources.round import REQUESTS

_Of: TypeAlias = tuple[str, str, str]


class Monitored(NamedTuple):
    """Requests with what is known of each, and the numbers of entries over all clients."""

    requests: tuple[EntryRequest, ...]
    entries: Mapping[EntryKey, EntryMonitor]


def monitored(
    fresh: Fresh,
    requests: tuple[EntryRequest, ...],
    totals: Mapping[EntryKey, EntryTotals] | None,
) -> Monitored:
    """Return what is to be shown of a round's requests, each glideresource ad once."""
    ads: Iterator[FactoryClient] = (
        ad for answer in fresh.all("factoryclient")[0] for ad in ours(answer, totals or {})
    )
    clients = freshest(ads, lambda ad: (ad.entry, ad.factory, ad.client))
    asks = _asks(fresh)
    sites = {key.entry: key for key in totals or ()}
    shown = [
        _asked(_by_factory(request, clients.pop(client_key, None)), asks.get(client_key))
        for request in requests
        for client_key in [(request.entry.entry, request.factory, request.group)]
    ]
    for client_key, client in clients.items():
        key = sites.get(client.entry, EntryKey(client.site or client.entry, client.entry))
        shown.append(_asked(_request(key, client), asks.get(client_key)))
    return Monitored(tuple(sorted(shown, key=_identity)), _entries(fresh, sites))


def _identity(request: EntryRequest) -> tuple[EntryKey, str, str]:
    return request.entry, request.factory, request.group


def _asks(fresh: Fresh) -> dict[_Of, ClientAsk]:
    """Return what each client asks for: of several collectors the first, of its ads the sum."""
    asks: dict[_Of, ClientAsk] = {}
    for answer in fresh.all("glideclient")[0]:
        of_one: dict[_Of, ClientAsk] = {}
        for ask in answer:
            before = of_one.get(ask[:3])
            of_one[ask[:3]] = ask if before is None else before.plus(ask)
        asks = of_one | asks
    return asks


def _by_factory(request: EntryRequest, client: FactoryClient | None) -> EntryRequest:
    """Return the request with the factory's own counts instead of their copy."""
    if client is None:
        return request
    factory = client.monitor
    return request._replace(monitor=factory.told_by_factory().over(request.monitor).over(factory))


def _asked(request: EntryRequest, ask: ClientAsk | None) -> EntryRequest:
    """Return the request with what the glideclient ad asks for, where nothing else has it."""
    if ask is None:
        return request
    asked = Monitor(asked_idle=ask.idle, asked_max=ask.most)
    return request._replace(monitor=request.monitor.over(asked))


def _request(key: EntryKey, client: FactoryClient) -> EntryRequest:
    """Return a request that only the factory knows."""
    monitor = client.monitor
    return EntryRequest(
        entry=key,
        group=client.client,
        factory=client.factory,
        down=False,
        limits=client.limits,
        jobs_matching=monitor.client_jobs_idle,
        slots_idle=monitor.client_slots_idle,
        last_heard=client.last_heard,
        monitor=monitor,
    )


def _entries(fresh: Fresh, sites: Mapping[str, EntryKey]) -> dict[EntryKey, EntryMonitor]:
    """Return each entry's numbers, added over its factories.

    Where glideresource ads name entries, those of a factory which serves others too are not
    ours to show.
    """
    copies = _by_name(e for answer in fresh.all(REQUESTS)[0] for e in answer.entries)
    own = _by_name(
        e for answer in fresh.all("factory")[0] for e in answer if not sites or e.entry in sites
    )
    monitors: dict[EntryKey, EntryMonitor] = {}
    for name in sorted(copies.keys() | own.keys()):
        entry = own.get(name) or copies[name]
        numbers = entry.numbers.over(copies.get(name, entry).numbers)
        key = sites.get(entry.entry, EntryKey(entry.site or entry.entry, entry.entry))
        monitors[key] = monitors[key].plus(numbers) if key in monitors else numbers
    return monitors


def _by_name(entries: Iterable[FactoryEntry]) -> dict[tuple[str, str], FactoryEntry]:
    return freshest(entries, lambda entry: (entry.entry, entry.factory))
