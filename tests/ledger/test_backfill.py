"""The past that a real Prometheus is filled with is what the ledger has, hour by hour."""

from __future__ import annotations

import io
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gwmond.config.settings import Config
from gwmond.ledger.database.errors import LedgerCorrupt
from gwmond.ledger.reading import hourly
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows.counters import Kind
from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.ledger.store import Ledger
from gwmond.metrics import backfill, factory_queue, pilot_time, sites
from gwmond.metrics.backfill import Hours
from gwmond.model.factory.totals import FactoryKey, FactoryKind
from gwmond.model.pilot_life import Assumption, Category
from gwmond.model.pilots.stored_pilots import ASSUMED, CountKey
from gwmond.model.poll.batch import Batch
from gwmond.model.poll.snapshot import PilotTime, Snapshot
from gwmond.model.totals import SiteKey, Total
from gwmond.model.units import RESOURCES
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from tests.build.backfilled import Filled, Labels, create_blocks
from tests.build.pilot_ledger import write
from tests.ledger.pilot_batches import HOUR, batch, now_us, poll

FAMILIES = {
    family.name: family
    for family in (*pilot_time.FAMILIES, *sites.FAMILIES, *factory_queue.FAMILIES)
}
RESOURCE, CANONICAL, RUNS, ENDED, SITE, ESTIMATED, *FACTORY = backfill.SOURCES
BATCHES = 40
Steps = dict[Labels, Counter[int]]
"""What each series had in each hour: seconds, or numbers."""


def labels(name: str, *values: str, **more: str) -> Labels:
    """Return labels as Prometheus stores them: an empty one is none."""
    named = {**dict(zip(FAMILIES[name].labels, map(str, values), strict=True)), **more}
    return frozenset((label, value) for label, value in named.items() if value)


def steps(reader: LedgerReader, **more: str) -> dict[str, Steps]:
    """Say from the rows of a ledger what it knows, by metric; time in micros."""
    found: dict[str, Steps] = {name: defaultdict(Counter) for name in backfill.SOURCES}
    for hour, pilot_series, micros in reader.pilot_hours(0, 10**7):
        name = RESOURCE if pilot_series.measure == "resource" else CANONICAL
        place = pilot_series.site, pilot_series.entry, pilot_series.group
        found[name][
            labels(
                name,
                pilot_series.resource,
                pilot_series.category,
                *place,
                pilot_series.evidence,
                **more,
            )
        ][hour] += micros
    for hour, key, micros in reader.hours(0, 10**7):
        found[SITE][labels(SITE, *key, **more)][hour] += micros
    kinds = {
        kind: (name, first)
        for name in FACTORY
        for kind, first in factory_queue.kinds_of(FAMILIES[name]).items()
    }
    for told, number in reader.factory_hours(0, 10**7).items():
        if told.kind in kinds:
            name, first = kinds[told.kind]
            labelled = labels(name, *first, told.entry, told.client, **more)
            found[name][labelled][told.hour] += number * unit(name)
    ran = set()
    for run, pilot in reader.run_rows():
        ran.add(run.pilot)
        if run.outcome is not None and run.end_us is not None:
            at = *pilot.key, pilot.group
            hour = (run.end_us - 1) // HOUR
            found[RUNS][labels(RUNS, *run.outcome[:2], *at, **more)][hour] += 1
    for row in reader.pilot_rows():
        if row.end_us is None:
            continue
        for (rule, resource), micros in row.assumed_micros.items():
            of_rule = resource, rule.value, *row.identity.key, row.identity.group
            found[ESTIMATED][labels(ESTIMATED, *of_rule, **more)][(row.end_us - 1) // HOUR] += (
                micros
            )
        decided = row.known_until_us is None or row.known_until_us >= row.end_us
        if decided or row.id in ran:
            category = "pilot_overhead" if row.id in ran else "decision_problem"
            at = *row.identity.key, row.identity.group
            hour = (row.end_us - 1) // HOUR
            found[ENDED][labels(ENDED, category, *at, **more)][hour] += 1
    return {
        name: {key: +hours for key, hours in series.items() if +hours}
        for name, series in found.items()
    }


def text(
    reader: LedgerReader, hours: Hours | None = None, more: dict[str, str] | None = None
) -> str:
    """Return what is written of some hours, of all if none are named."""
    out = io.StringIO()
    reach = hourly.reach(reader)
    backfill.write(reader, out, hours or Hours(reach.start, reach.stop), more or {})
    return out.getvalue()


def values(written: str) -> dict[str, dict[Labels, dict[int, float]]]:
    """Return what a text says, as prometheus_client reads it: by hour."""
    found: dict[str, dict[Labels, dict[int, float]]] = {}
    for metric in text_string_to_metric_families(written):  # type: ignore[no-untyped-call]
        assert metric.type == "counter"
        for sample in metric.samples:
            series = found.setdefault(sample.name, {})
            key = frozenset((name, value) for name, value in sample.labels.items() if value)
            assert sample.timestamp is not None
            hour, rest = divmod(float(sample.timestamp), 3600)
            assert rest == 0
            series.setdefault(key, {})[int(hour)] = sample.value
    return found


def unit(name: str) -> int:
    return 10**6 if FAMILIES[name].unit == "seconds" else 1


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ledger]:
    """The ledger that tests share which only read it."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('filled') / 'ledger.sqlite'}"
    else:
        url = request.getfixturevalue("server").schema()
    with Ledger.open(url) as opened:
        fill(opened)
        yield opened


def fill(ledger: Ledger) -> None:
    """Store polls of which outcomes were revised, with time of sites.

    And what is counted when a pilot ends (all ran jobs), and all of a factory.
    """
    for number in range(1, 5):
        ledger.commit(poll(number))
    for number in range(5, BATCHES + 1):
        ledger.commit(batch(number))
    rows = [
        row._replace(
            assumed_micros={
                of: row.id * 10**6 + n for n, of in enumerate(product(Assumption, RESOURCES))
            }
        )
        for row in ledger.pilot_rows()
        if row.end_us is not None and row.id % 3
    ]
    counts: Counter[CountKey] = Counter()
    for row in rows:
        category = Category.PILOT_OVERHEAD if row.id % 2 else Category.UNCLASSIFIED
        for (rule, resource), micros in row.assumed_micros.items():
            place = *row.identity.key, row.identity.group
            counts[CountKey(ASSUMED[resource], category, rule.value, *place)] += micros
    hour = now_us(BATCHES // 2) // HOUR
    numbers = {
        FactoryKey(hour + n % 3, f"entry-{n % 2}", "fe.main", kind): 5 + n
        for n, kind in enumerate(FactoryKind)
    }
    told = Batch(BATCHES, now_us(BATCHES), tuple(rows), counts=counts, factory=numbers)
    ledger.commit(told)
    ended = Counter(
        CountKey("pilots", Category.PILOT_OVERHEAD, "", *row.identity.key, row.identity.group)
        for row in ledger.pilot_rows()
        if row.end_us is not None
    )
    ledger.commit(Batch(BATCHES + 1, now_us(BATCHES), counts=ended))


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[LedgerReader]:
    """A small ledger with a site whose name has to be escaped."""
    url = f"sqlite:///{tmp_path / 'hostile.sqlite'}"
    write(url, hostile='"\\\n,} 1 2\n# EOF ü\r\\n{')
    with LedgerReader.open(url) as reader:
        yield reader


def prove(reader: LedgerReader, tmp_path: Path, **more: str) -> dict[str, Steps]:
    """Fill a real Prometheus, and compare all that it then knows with the ledger."""
    reach = hourly.reach(reader)
    file = tmp_path / "past.om"
    file.write_text(text(reader, None, more), encoding="utf-8", newline="\n")
    create_blocks(file, tmp_path / "blocks")
    first, last = reach.start * 3600, reach.stop * 3600
    wanted = steps(reader, **more)
    with Filled(tmp_path / "blocks") as prometheus:
        names = set(prometheus.api("label/__name__/values"))
        assert names == {name for name, series in wanted.items() if series}
        for name, series in wanted.items():
            stood = prometheus.hourly(name, first, last)
            rises = prometheus.hourly(f"increase({name}[1h])", first, last)
            whole = prometheus.at(f"increase({name}[{reach.stop - reach.start}h])", last)
            assert set(stood) == set(series) == set(whole)
            for key, hours in series.items():
                total, begins = 0, min(hours)
                assert min(stood[key]) == begins * 3600
                assert stood[key][begins * 3600] == 0
                for hour in range(begins, reach.stop):
                    total += hours[hour]
                    at = (hour + 1) * 3600
                    assert stood[key][at] == total / unit(name)
                    assert math.isclose(
                        rises[key][at], hours[hour] / unit(name), rel_tol=1e-9, abs_tol=1e-6
                    )
                assert math.isclose(whole[key], total / unit(name), rel_tol=1e-9)
    return wanted


def test_prometheus_has_what_the_ledger_has(filled: Ledger, tmp_path: Path) -> None:
    """Each hour of each series exactly, though outcomes were revised."""
    assert len(filled.corrections()) > 10
    wanted = prove(filled, tmp_path, job="gwmond", instance="127.0.0.1:9818")
    assert all(wanted.values())


def test_the_live_counter_goes_on(filled: Ledger) -> None:
    """The same series; what it has last is the net total, and never more than the counter."""
    keeper = LedgerKeeper(Config())
    keeper.use(filled)
    shown, totals = keeper.shown(), filled.load().totals
    assert shown is not None
    net = shown._replace(
        shown={key: Total(total.net, 0) for key, total in totals.pilots.items()},
        counted={key: Total(total.net, 0) for key, total in totals.counts.items()},
    )
    written = values(text(filled))
    last = hourly.reach(filled).stop
    below = 0
    for name in (RESOURCE, CANONICAL, RUNS, ENDED, ESTIMATED, *FACTORY):
        live, exact = _live(name, shown), _live(name, net)
        stood = {key: found[last] for key, found in written[name].items()}
        assert stood == {key: value for key, value in exact.items() if value}
        assert all(value <= live[key] for key, value in stood.items())
        below += sum(value < live[key] for key, value in stood.items())
    assert below  # a correction has taken something away
    site = {labels(SITE, *key): total.micros / 10**6 for key, total in totals.site.items()}
    assert {key: found[last] for key, found in written[SITE].items()} == {
        key: value for key, value in site.items() if value
    }


def _live(name: str, shown: PilotTime) -> dict[Labels, float]:
    """Return what a live metric shows."""
    now = cast("Snapshot", SimpleNamespace(pilot_time=shown, requests=(), pilots={}, traces=None))
    return {labels(name, *sample.labels): sample.value for sample in FAMILIES[name].samples(now)}


def test_names_that_have_to_be_escaped(hostile: LedgerReader, tmp_path: Path) -> None:
    wanted = prove(hostile, tmp_path)
    assert any("# EOF" in value for key in wanted[CANONICAL] for _, value in key)


def test_an_empty_ledger(url: str, tmp_path: Path) -> None:
    """Nothing but the end of the file; promtool takes it, and makes no block of it."""
    Ledger.open(url).close()
    with LedgerReader.open(url) as reader:
        assert text(reader) == "# EOF\n"
    (tmp_path / "past.om").write_text("# EOF\n")
    assert create_blocks(tmp_path / "past.om", tmp_path / "blocks") == []


@pytest.fixture
def own(url: str) -> Iterator[Ledger]:
    """The same for the test that changes it."""
    with Ledger.open(url) as opened:
        fill(opened)
        yield opened


def test_what_retention_took_is_in_the_first_value(own: Ledger) -> None:
    """Counters begin, at the first hour that is whole, with what was spent before it."""
    before = values(text(own))
    now = now_us(BATCHES) / 1e6
    pruned = own.prune(now, Retention(8 * 3600, 10 * 3600, 11 * 3600, 0))
    assert all((pruned.hours, pruned.pilots, pruned.runs))
    after = values(text(own))
    assert set(after) == set(before)
    for name, series in after.items():
        assert set(series) == set(before[name])
        for key, found in series.items():
            old = before[name][key]
            assert found == {hour: value for hour, value in old.items() if hour in found}
            assert max(found) == max(old)
            assert min(found) >= min(old)
    assert any(min(record.values()) > 0 for record in after[CANONICAL].values())
    assert any(min(record.values()) > 0 for record in after[RUNS].values())


def test_a_part(filled: Ledger) -> None:
    """From and to cut the text; what is left stands where it stood."""
    every = values(text(filled))
    reach = hourly.reach(filled)
    part = Hours(reach.start + 4, reach.stop - 3)
    for name, series in values(text(filled, part)).items():
        for key, found in series.items():
            whole = every[name][key]
            assert found == {h: v for h, v in whole.items() if part.first <= h <= part.last}
    assert text(filled, Hours(5, 4)) == "# EOF\n"


def test_each_hour_has_what_the_rows_of_the_ledger_have(filled: Ledger) -> None:
    """A value is the sum of all hours before it, of each metric and series."""
    written, wanted = values(text(filled)), steps(filled)
    assert {name: set(series) for name, series in written.items()} == {
        name: set(series) for name, series in wanted.items()
    }
    for name, series in written.items():
        for key, stood in series.items():
            hours = wanted[name][key].items()
            sums = {at: sum(n for hour, n in hours if hour < at) / unit(name) for at in stood}
            assert stood == pytest.approx(sums, rel=1e-12)


def test_series_are_fetched_by_few_at_a_time(
    filled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Series that are one outside, whatever their numbers, are never apart."""
    every = text(filled)
    monkeypatch.setattr(hourly, "_PAIRS", 1)
    assert text(filled) == every


def test_many_series_cost_what_they_have(file: Path) -> None:
    """SQLite's steps are as many as rows, and not as rows times series."""
    steps = [0]

    def count() -> None:
        steps[0] += 1

    keys = [SiteKey("cpu", "provisioned", "", "site", f"e{number}") for number in range(400)]
    spent = {(hour, key): HOUR for hour in range(1, 41) for key in keys}
    with Ledger.open(str(file)) as opened:
        opened.commit(Batch(before=0, now_us=now_us(0), site_time=spent, site_since=0.0))
        with opened.reading() as connection:
            connection.connection.driver_connection.set_progress_handler(count, 1000)  # type: ignore[union-attr]
        hours = hourly.spent(opened, Kind.SITE, lambda labels: labels[:1], 1, 40)
    assert hours == {("cpu",): dict.fromkeys(range(1, 41), 400 * HOUR)}
    assert steps[0] < len(spent) // 10


def test_estimated_time_has_its_own_labels(filled: Ledger) -> None:
    with pytest.raises(ValueError, match="labels of estimated time"):
        next(hourly.estimated_time(filled, ("site",), lambda *_: None))


def test_hours_more_than_their_total(url: str) -> None:
    """A ledger that does not sum up gives no history that looks right."""
    with Ledger.open(url) as opened:
        for number in range(1, 9):
            opened.commit(batch(number))
        with opened.transaction() as connection:
            connection.exec_driver_sql("UPDATE series SET whole = 0 WHERE kind = 'pilot'")
        with pytest.raises(LedgerCorrupt, match="gwmond ledger check"):
            text(opened)


def test_the_first_poll(filled: Ledger) -> None:
    """It is when the first entry was seen, or when the first time of a site began."""
    found = hourly.reach(filled).first_poll_s
    state = filled.load()
    times = [entry.first_seen for entry in state.entries.values()]
    assert found == min(times + [total.created for total in state.totals.site.values()])


def test_only_pilots_no_poll(tmp_path: Path) -> None:
    """A ledger into which only files were imported was never polled for."""
    with Ledger.open(str(tmp_path / "ledger.sqlite")) as opened:
        opened.commit(batch(1))
        opened.commit(batch(2))
        assert hourly.reach(opened).first_poll_s is None
        assert hourly.reach(opened).start == now_us(0) // HOUR - 2  # what the factory told late
