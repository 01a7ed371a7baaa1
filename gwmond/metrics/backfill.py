"""The past of the counters as OpenMetrics text, to fill Prometheus.

The input of ``promtool tsdb create-blocks-from openmetrics``: the names and labels of the live
metrics, and at each full hour the value of the counter if every second had been settled in the hour
in which it was spent.

- **A value never falls**, as the live counter's: hours are net of corrections and never negative.
  The last value is the net total, from which the live counter goes on.  (Where a correction has
  reduced the total, the live counter stands still at its highest value until the total has caught
  up: it begins that much higher.)
- **A series begins with 0** an hour before its first increment, and then has every hour: without
  the hours in which nothing happened, ``increase()`` extrapolates over them.  What retention has
  deleted from the ledger is in its first value.
- **No** ``_created``: promtool would make further series of these.

The text is written series by series; memory holds one series' hours at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple, TextIO, TypeAlias

from gwmond.config.settings import ConfigError
from gwmond.ledger.reading import hourly
from gwmond.ledger.reading.hourly import HourlySeries, Reach
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.metrics import factory_queue, pilot_time, sites
from gwmond.metrics.family import Family
from gwmond.metrics.render import escaped, metadata
from gwmond.model.pilot_life import Measure
from gwmond.model.times import HOUR_S, HOUR_US
from gwmond.model.units import MICRO

Progress: TypeAlias = Callable[[str, int, int], None]
Read: TypeAlias = Callable[[LedgerReader, tuple[str, ...], hourly.Done], hourly.Found]

_FAMILIES = {
    family.name: family
    for family in (*pilot_time.FAMILIES, *sites.FAMILIES, *factory_queue.FAMILIES)
}


def _factory(family: Family) -> Read:
    """Return the reader of a factory's counter; the ledger has these in whole seconds."""
    kinds = factory_queue.kinds_of(family)
    unit = MICRO if family.unit == "seconds" else 1
    return lambda reader, _, done: hourly.factory_numbers(reader, kinds, unit, done)


def _pilot_time(measure: Measure) -> Read:
    return lambda reader, labels, done: hourly.pilot_time(reader, measure, labels, done)


SOURCES: Mapping[str, Read] = {
    "gwmond_pilot_resource_seconds_total": _pilot_time("resource"),
    "gwmond_pilot_canonical_seconds_total": _pilot_time("canonical"),
    "gwmond_job_runs_total": hourly.ended_runs,
    "gwmond_pilots_ended_total": hourly.ended_pilots,
    "gwmond_site_canonical_seconds_total": hourly.site_time,
    "gwmond_pilot_estimated_canonical_seconds_total": hourly.estimated_time,
    **{family.name: _factory(family) for family in factory_queue.FAMILIES},
}
"""Where the past of a counter is read from; the other counters have none."""

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_TAKEN = {label for name in SOURCES for label in _FAMILIES[name].labels}


class Hours(NamedTuple):
    """The full hours (``epoch // 3600``) at whose beginning there are values, both included."""

    first: int
    last: int


class Written(NamedTuple):
    """How many series and samples were written."""

    series: int
    samples: int


def hours_of(reach: Reach, since_us: int | None, until_us: int | None, now_us: int) -> Hours:
    """Return the hours to write of those that a ledger reaches over.

    They end with ``until_us``; without it, at the daemon's first poll, since Prometheus may have
    scraped from then on.  They never reach beyond ``now_us``.  ``last < first``: there are none.
    """
    ends = [now_us // HOUR_US, reach.stop]
    if until_us is not None:
        ends.append(until_us // HOUR_US)
    elif reach.first_poll_s is not None:
        ends.append(int(reach.first_poll_s // HOUR_S))
    first = reach.start if since_us is None else max(reach.start, -(-since_us // HOUR_US))
    last = min(ends)
    return Hours(first, last) if last > first else Hours(first, first - 1)


def parse_labels(texts: Sequence[str]) -> dict[str, str]:
    """Return the labels of ``NAME=VALUE``; raises ConfigError."""
    labels: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name) or name.startswith("__") or not _utf8(value):
            shown = text.encode("utf-8", "backslashreplace").decode()
            raise ConfigError(f'"{shown}" is not a label such as job=gwmond')
        if name in _TAKEN or name in labels:
            raise ConfigError(f'the label "{name}" is there already')
        labels[name] = value
    return labels


def write(
    reader: LedgerReader,
    out: TextIO,
    hours: Hours,
    labels: Mapping[str, str],
    progress: Progress = lambda *_: None,
) -> Written:
    """Write all counters of some hours, each with further labels.

    Raises LedgerError for the ledger, and OSError for the file.
    """
    series = samples = 0
    for name, read in SOURCES.items() if hours.last > hours.first else ():
        family = _FAMILIES[name]

        def done(series: int, number: int, name: str = name) -> None:
            progress(name, series, max(series, number))

        # Closed also when the file fails: a reading that is left open holds the ledger.
        with closing(read(reader, family.labels, done)) as readings:
            records = write_family(out, family, readings, hours, labels)
        series, samples = series + records.series, samples + records.samples
    out.write("# EOF\n")
    return Written(series, samples)


def write_family(
    out: TextIO,
    family: Family,
    readings: Iterable[HourlySeries],
    hours: Hours,
    labels: Mapping[str, str],
) -> Written:
    """Write a counter: metadata, then series by series, each in the order of time."""
    series = samples = 0
    exact = exact_seconds if family.unit == "seconds" else str
    for hourly_series in readings:
        values = values_of(hourly_series, hours)
        if not values:
            continue
        if not series:
            out.write(metadata(family, family.name.removesuffix("_total")))
        named = {**dict(zip(family.labels, hourly_series.labels, strict=True)), **labels}
        start = f"{family.name}{{{_labels(named)}}}"
        out.writelines(f"{start} {exact(amount)} {hour * HOUR_S}\n" for hour, amount in values)
        series, samples = series + 1, samples + len(values)
    return Written(series, samples)


def values_of(hourly_series: HourlySeries, hours: Hours) -> list[tuple[int, int]]:
    """Return the value of a series, hour by hour; nothing if it begins after the last hour.

    >>> values_of(HourlySeries((), 9, ((11, 4), (13, 5)), 0), Hours(10, 14))
    [(11, 0), (12, 4), (13, 4), (14, 9)]
    >>> values_of(HourlySeries((), 19, ((11, 4), (13, 5)), 0), Hours(12, 14))
    [(12, 14), (13, 14), (14, 19)]
    """
    first = max(hours.first, hourly_series.complete)
    later = {hour: amount for hour, amount in hourly_series.hours if hour >= first and amount}
    value = max(0, hourly_series.total - sum(later.values()))
    if not value:
        first = min(later, default=hours.last)
    if first >= hours.last:
        return []
    values = []
    for hour in range(first, hours.last + 1):
        values.append((hour, min(value, hourly_series.total)))
        value += later.get(hour, 0)
    return values


# --- the format ----------------------------------------------------------------------------------


def exact_seconds(micros: int) -> str:
    """Return seconds with all their digits.

    >>> exact_seconds(0), exact_seconds(1_500_000), exact_seconds(10**22 + 1)
    ('0', '1.5', '10000000000000000.000001')
    """
    whole, rest = divmod(micros, MICRO)
    return f"{whole}.{rest:06}".rstrip("0").rstrip(".") if rest else str(whole)


def _utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
