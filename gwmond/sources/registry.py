"""All questions to collectors, as the modules of ``htcondor`` register them in ``SOURCES``.

A round, a recording, its replay, ``gwmond check`` and the metrics of sources follow from this list.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from gwmond.sources import htcondor
from gwmond.sources.htcondor.access import CollectorSource
from gwmond.sources.round import SLOTS


def _registered() -> Iterator[CollectorSource]:
    for module in pkgutil.walk_packages(htcondor.__path__, f"{htcondor.__name__}."):
        yield from getattr(import_module(module.name), "SOURCES", ())


def _order(source: CollectorSource) -> tuple[object, ...]:
    """Return what sorts questions: of the large ones that for slots first, as all rests on it."""
    return not source.discovers, not source.large, source.kind != SLOTS, source.kind


SOURCES = {source.kind: source for source in sorted(_registered(), key=_order)}
"""By their kind, in the order in which they are asked."""

POOL_SOURCES = tuple(source for source in SOURCES.values() if source.pool)
"""What each collector of the pool is asked."""

WMS_SOURCES = tuple(source for source in SOURCES.values() if source.wms)
"""What each WMS collector is asked."""
