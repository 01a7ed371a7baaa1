"""The text that Prometheus is filled with: how it is written, and which hours it has."""

from __future__ import annotations

import io
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gwmond.ledger.reading.hourly import HourlySeries, Reach
from gwmond.metrics import backfill, factory_queue, pilot_time, sites
from gwmond.metrics.backfill import Hours
from gwmond.metrics.family import Family
from tests.examples import examples

FAMILIES = {
    family.name: family
    for family in (*pilot_time.FAMILIES, *sites.FAMILIES, *factory_queue.FAMILIES)
}


def unit(family: Family) -> int:
    return 10**6 if family.unit == "seconds" else 1


def test_where_it_ends() -> None:
    """At the daemon's first poll, never later than now or than the ledger; full hours only."""
    hour = 3_600_000_000
    found = Reach(100, 200, None)
    now = 150 * hour + 5
    assert backfill.hours_of(found, None, None, now) == (100, 150)
    assert backfill.hours_of(found, None, None, 300 * hour) == (100, 200)
    polled = found._replace(first_poll_s=120.5 * 3600)
    assert backfill.hours_of(polled, None, None, now) == (100, 120)
    assert backfill.hours_of(polled, None, 130 * hour + 1, now) == (100, 130)
    assert backfill.hours_of(polled, 110 * hour + 1, 170 * hour, now) == (111, 150)
    assert backfill.hours_of(polled, 120 * hour, None, now) == (120, 119)
    early = found._replace(first_poll_s=7.0)
    assert backfill.hours_of(early, None, None, now) == (100, 99)


def test_names_are_those_of_live_counters() -> None:
    assert set(backfill.SOURCES) <= set(FAMILIES)
    assert all(FAMILIES[name].kind == "counter" for name in backfill.SOURCES)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
amounts = st.one_of(st.integers(1, 5), st.integers(1, 10**16))


@st.composite
def series(draw: st.DrawFn, width: int) -> HourlySeries:
    hours = draw(st.lists(st.integers(90, 130), unique=True, max_size=8).map(sorted))
    of = tuple((hour, draw(amounts)) for hour in hours)
    before = draw(st.one_of(st.just(0), amounts))
    complete = draw(st.integers(80, 125))
    names = tuple(draw(texts) for _ in range(width))
    return HourlySeries(names, before + sum(amount for _, amount in of), of, complete)


@settings(max_examples=examples(150))
@given(st.data(), st.sampled_from(sorted(backfill.SOURCES)))
def test_what_is_written_is_read_back(data: st.DataObject, name: str) -> None:
    """prometheus_client reads the same; no value falls, and all are at full hours, in order."""
    family = FAMILIES[name]
    width = len(family.labels)
    found = data.draw(
        st.lists(series(width), max_size=5, unique_by=lambda hourly_series: hourly_series.labels)
    )
    hours = Hours(*sorted(data.draw(st.tuples(st.integers(85, 135), st.integers(85, 135)))))
    out = io.StringIO()
    written = backfill.write_family(out, family, found, hours, {"job": 'a"\n\\'})
    read = list(
        text_string_to_metric_families(out.getvalue() + "# EOF\n")  # type: ignore[no-untyped-call]
    )
    assert len(read) == bool(written.series)
    samples = read[0].samples if read else []
    assert len(samples) == written.samples
    wanted = [
        (
            {**dict(zip(family.labels, hourly_series.labels, strict=True)), "job": 'a"\n\\'},
            hour,
            value,
        )
        for hourly_series in found
        for hour, value in backfill.values_of(hourly_series, hours)
    ]
    assert [(s.labels, float(s.timestamp) / 3600, float(s.value)) for s in samples] == [
        (named, hour, value / unit(family)) for named, hour, value in wanted
    ]
    for hourly_series in found:
        stood = backfill.values_of(hourly_series, hours)
        assert [hour for hour, _ in stood] == (
            list(range(stood[0][0], hours.last + 1)) if stood else []
        )
        assert all(a[1] <= b[1] for a, b in pairwise(stood))
        spent = dict(hourly_series.hours)
        for (hour, before), (_, after) in pairwise(stood):
            assert after - before == spent.get(hour, 0)
