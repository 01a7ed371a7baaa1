"""Renders a snapshot as the texts that a scrape returns, once after each poll."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, exposition
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.registry import Collector

from gwmond.metrics import budget, kept
from gwmond.metrics.family import POLLED, Family, Sample

if TYPE_CHECKING:
    from gwmond.model.snapshot import Snapshot

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = openmetrics_exposition.CONTENT_TYPE_LATEST

FOLDED = Family(
    "gwmond_series_folded",
    'Series of a family that are summed under "other", to stay within metrics.series_budget; '
    "those at 0 are not counted. Unit: series." + POLLED,
    ("family",),
    lambda _: (),
)


class DuplicateSeries(Exception):
    """A family gave two samples with the same labels: a defect of gwmond."""


class Exposition(NamedTuple):
    """The same metrics in both formats, ready to send; only OpenMetrics has ``_created``.

    They are packed once a poll, not once a scrape.
    """

    text: bytes
    openmetrics: bytes
    text_gzip: bytes = b""
    openmetrics_gzip: bytes = b""


class _Fixed(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def render(families: Sequence[Family], snapshot: Snapshot, series_budget: int) -> Exposition:
    """Render every family that has samples; raises DuplicateSeries."""
    made: list[tuple[Family, Sequence[Sample]]] = []
    folded: list[Sample] = []
    for family in families:
        found = kept.shown(family, family.samples(snapshot), snapshot.names)
        is_weak = kept.weak(family, snapshot.names)
        samples, over = budget.within(found, family.labels, series_budget, is_weak)
        if samples:
            made.append((family, samples))
        folded.append(Sample((family.name,), over))
    made.append((FOLDED, folded))
    plain, dated = CollectorRegistry(auto_describe=False), CollectorRegistry(auto_describe=False)
    plain.register(_Fixed([_metric(family, samples, created=False) for family, samples in made]))
    dated.register(_Fixed([_metric(family, samples, created=True) for family, samples in made]))
    text = exposition.generate_latest(plain)
    openmetrics: bytes = openmetrics_exposition.generate_latest(dated)  # type: ignore[no-untyped-call]
    return Exposition(text, openmetrics, gzip.compress(text, 6), gzip.compress(openmetrics, 6))


def _metric(family: Family, samples: Sequence[Sample], *, created: bool) -> Metric:
    seen: set[tuple[str, ...]] = set()
    labels = list(family.labels)
    metric: CounterMetricFamily | GaugeMetricFamily | InfoMetricFamily
    if family.kind == "counter":
        metric = CounterMetricFamily(family.name, family.help, labels=labels, unit=family.unit)
    elif family.kind == "info":
        metric = InfoMetricFamily(family.name.removesuffix("_info"), family.help, labels=[])
    else:
        metric = GaugeMetricFamily(family.name, family.help, labels=labels, unit=family.unit)
    for sample in sorted(samples, key=lambda s: s.labels):
        if sample.labels in seen:
            raise DuplicateSeries(f"{family.name}{sample.labels}")
        seen.add(sample.labels)
        if isinstance(metric, CounterMetricFamily):
            began = sample.created if created else None
            metric.add_metric(list(sample.labels), sample.value, created=began)
        elif isinstance(metric, InfoMetricFamily):
            metric.add_metric([], dict(zip(labels, sample.labels, strict=True)))
        else:
            metric.add_metric(list(sample.labels), sample.value)
    return metric
