"""From a snapshot to what a scrape returns."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from gwmond.metrics import catalog
from gwmond.metrics.family import Family, Sample
from gwmond.metrics.render import DuplicateSeries, Exposition, render
from gwmond.model.facts import Berth, EntryKey
from gwmond.model.names import OTHER
from gwmond.model.poll.snapshot import KeptNames, LedgerStatus
from tests.build.facts import request
from tests.build.snapshots import DARK, ODD, STARVING, snapshot
from tests.metrics import golden

REMEDY = "Run: python -m tests.metrics.golden, and look at what has changed with git diff"


def family(name: str, *samples: Sample, labels: Sequence[str] = ("site",)) -> Family:
    return Family(name, "Help. Unit: things.", tuple(labels), lambda _: samples)


def rendered(*families: Family, budget: int = 100) -> Exposition:
    return render(families, snapshot(), budget)


def shown(text: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample of an exposition in the text format."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for found in parse_text(text.decode())
        for sample in found.samples
    }


def openmetrics(text: bytes) -> list[Metric]:
    return list(parse_openmetrics(text.decode()))  # type: ignore[no-untyped-call]


def value(text: bytes, name: str, **labels: str) -> float | None:
    return shown(text).get((name, frozenset(labels.items())))


def test_golden_text() -> None:
    """The text format of a whole snapshot is what the golden file says."""
    assert golden.exposition().text.decode() == golden.TEXT.read_text(), REMEDY


def test_golden_openmetrics() -> None:
    """OpenMetrics of a whole snapshot is what the golden file says."""
    made = golden.exposition().openmetrics.decode()
    assert made == golden.OPENMETRICS.read_text(), REMEDY


def test_promtool_has_nothing_to_say() -> None:
    """Prometheus's own linter accepts every metric."""
    promtool = shutil.which("promtool")
    assert promtool, "no promtool on PATH. Run: apt-get install prometheus"
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=golden.TEXT.read_bytes(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_both_formats_say_the_same() -> None:
    """OpenMetrics has the text format's samples, and besides only when counters were created."""
    made = golden.exposition()
    found = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in openmetrics(made.openmetrics)
        for sample in family.samples
    }
    created = {at for at in found if at[0].endswith("_created")}
    assert {at: v for at, v in found.items() if at not in created} == shown(made.text)
    begun = {name for (name, _), n in shown(made.text).items() if name.endswith("_total") and n}
    assert {name.replace("_created", "_total") for name, _ in created} == begun
    assert b"_created" not in made.text
    assert made.openmetrics.endswith(b"# EOF\n")


def test_created_is_when_the_total_began() -> None:
    """A counter tells in OpenMetrics when its total began; without that, nothing."""
    total = family("a_total", Sample(("x",), 5, 1000.0), Sample(("y",), 1))
    made = rendered(total)
    assert b'a_created{site="x"} 1000.0' in made.openmetrics
    assert b'a_created{site="y"}' not in made.openmetrics


@pytest.mark.parametrize("name", ["a_total", "a"])
def test_duplicates_are_a_defect(name: str) -> None:
    """Two samples of the same labels are not shown but raised, with what they are."""
    twice = family(name, Sample(("x",), 1), Sample(("x",), 2))
    with pytest.raises(DuplicateSeries, match=rf"{name}\('x',\)"):
        rendered(twice)


def test_family_without_samples_is_not_there() -> None:
    """A family of which nothing is known has neither samples nor a header."""
    made = rendered(family("nothing"), family("something", Sample(("x",), 1)))
    assert b"nothing " not in made.text.replace(b'family="nothing"', b"")
    assert value(made.text, "something", site="x") == 1


def test_label_values_are_escaped() -> None:
    """Any site name survives both formats."""
    name = 'a"b\\c\nd<&é'
    made = rendered(family("a", Sample((name,), 1)))
    assert value(made.text, "a", site=name) == 1
    (sample,) = openmetrics(made.openmetrics)[0].samples
    assert sample.labels == {"site": name}


def test_units_are_told_in_openmetrics() -> None:
    """A family of seconds says so in OpenMetrics, and its name is the same in both formats."""
    made = golden.exposition()
    assert b"# UNIT gwmond_poll_duration_seconds seconds" in made.openmetrics
    for one in catalog.FAMILIES:
        assert not one.unit or one.name.removesuffix("_total").endswith(f"_{one.unit}")


DARK_AT = {"site": DARK.site, "entry": DARK.entry}
ODD_AT = {"site": ODD.site, "entry": ODD.entry, "group": "frontend.main"}
PROVISIONED = {"resource": "cpu", "state": "provisioned", "reason": ""}
LATE = {"source": "ap2", "kind": "demand"}
LIMIT = {"limit": "GlideClientLimitTotalGlideinsPerEntry", "site": "T2_Busy", "entry": "busy-ce1"}


@pytest.mark.parametrize(
    ("name", "labels", "number"),
    [
        ("gwmond_site_capacity_canonical_units", {"resource": "cpu", **DARK_AT}, 7),
        ("gwmond_site_canonical_units", {**PROVISIONED, **DARK_AT}, None),
        ("gwmond_entry_idle_jobs_assigned", DARK_AT, None),
        ("gwmond_demand_idle_canonical_units", {"resource": "cpu", "schedd": "ap2"}, 3),
        (
            "gwmond_demand_canonical_units",
            {"resource": "cpu", "schedd": "ap2", "fate": "assigned"},
            None,
        ),
        ("gwmond_frontend_old_idle_jobs", {"frontend": "frontend"}, 10),
        ("gwmond_frontend_hour_old_idle_jobs", {"frontend": "frontend"}, None),
        ("gwmond_pilots", {"state": "pending", **ODD_AT}, 3),
        ("gwmond_factory_pilots", {"state": "running", **ODD_AT}, None),
        ("gwmond_source_cpu_seconds", LATE, None),
        ("gwmond_source_last_success_timestamp_seconds", LATE, None),
        ("gwmond_replay_speed_ratio", {}, None),
        ("gwmond_entry_limit_hit", LIMIT, None),
    ],
)
def test_absent_facts_have_no_samples(
    name: str, labels: dict[str, str], number: float | None
) -> None:
    """What is unknown has no sample, where a zero would be a statement; what is known has one."""
    assert value(golden.exposition().text, name, **labels) == number


def test_states_are_a_set() -> None:
    """Of an entry's states exactly one is 1, the one that it is in."""
    found: dict[str, list[str]] = {}
    for (name, labels), number in shown(golden.exposition().text).items():
        if name == "gwmond_site_state" and number == 1:
            found.setdefault(dict(labels)["entry"], []).append(dict(labels)["state"])
    assert found[STARVING.entry] == ["provisioning_bottleneck"]
    assert all(len(states) == 1 for states in found.values())
    assert len(found) == 7


def _sums(name: str, *by: str) -> dict[tuple[str, ...], float]:
    """A family of the golden exposition, summed by some labels."""
    found: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for (of, labels), number in shown(golden.exposition().text).items():
        if of == name:
            found[tuple(dict(labels)[label] for label in by)] += number
    return dict(found)


def test_states_sum_to_the_capacity() -> None:
    """What becomes of an entry's units sums to its capacity, where it is saturated to what is
    provisioned."""
    at = ("site", "entry", "resource")
    units = _sums("gwmond_site_canonical_units", *at)
    capacities = _sums("gwmond_site_capacity_canonical_units", *at)
    saturated = ("T2_Busy", "busy-ce1", "cpu")
    assert (units.pop(saturated), capacities.pop(saturated)) == (30, 40)
    assert units == capacities
    assert len(units) == 7


def test_each_pilot_is_in_one_state() -> None:
    """Registered pilots are busy, idle or retiring; their units are busy, idle or a remainder."""
    states = _sums("gwmond_pilots", "state", "entry", "group")
    main = ("starving-ce1", "frontend.main")
    here = {of[0]: number for of, number in states.items() if of[1:] == main}
    assert here == {
        "busy": 9,
        "idle": 1,
        "retiring": 2,
        "failed": 3,
        "submitted": 0,
        "pending": 0,
        "held": 2,
    }
    units = _sums("gwmond_pilot_canonical_units", "resource", "entry", "group")
    assert units[("cpu", *main)] == 90


@pytest.mark.parametrize("kind", ["submitted_wait", "pending", "held", "requested_idle"])
def test_a_number_of_pilots_that_no_ad_says_has_no_sample(kind: str) -> None:
    """Two factories' numbers are added; a number that neither says is absent, not 0."""
    name, labels = {
        "requested_idle": ("gwmond_pilots_requested", {}),
        "submitted_wait": ("gwmond_pilots", {"state": "submitted"}),
    }.get(kind, ("gwmond_pilots", {"state": kind}))
    at = {"site": ODD.site, "entry": ODD.entry, "group": "frontend.main"}
    for numbers, expected in (((3, 4), 7), ((3, None), 3), ((None, None), None)):
        told: list[dict[str, Any]] = [{kind: number} for number in numbers]
        asks = tuple(request(ODD, factory=f"f{n}", **record) for n, record in enumerate(told))
        made = render(catalog.FAMILIES, snapshot(requests=asks), 1000)
        assert value(made.text, name, **labels, **at) == expected


def test_ledger_is_a_source() -> None:
    """A ledger that was never tried is not shown; one that fails is down."""
    at = {"source": "ledger", "kind": "commit"}
    never = render(catalog.FAMILIES, snapshot(ledger=LedgerStatus(True, "", None, 0)), 1000)
    assert value(never.text, "gwmond_source_up", **at) is None
    failed = render(catalog.FAMILIES, snapshot(ledger=LedgerStatus(False, "full", None, 9)), 1000)
    assert value(failed.text, "gwmond_source_up", **at) == 0
    assert value(failed.text, "gwmond_ledger_waiting_increments") == 9


def test_replay_tells_its_speed() -> None:
    """A replayed pool says how fast it runs."""
    made = render(catalog.FAMILIES, snapshot(speed=60.0), 1000)
    assert value(made.text, "gwmond_replay_speed_ratio") == 60


def test_budget_is_told() -> None:
    """A family beyond its budget says how many series were folded, in a metric of its own."""
    many = family("a", *(Sample((f"s{n}",), n) for n in range(1, 11)))
    made = rendered(many, family("b", Sample(("x",), 1)), budget=4)
    assert value(made.text, "gwmond_series_folded", family="a") == 6
    assert value(made.text, "gwmond_series_folded", family="b") == 0
    assert value(made.text, "a", site="other") == 1 + 2 + 3 + 4 + 5 + 6
    assert value(made.text, "a", site="s10") == 10


def test_whole_snapshot_within_a_small_budget() -> None:
    """Every family can be folded: no two folded samples have the same labels."""
    made = render(catalog.FAMILIES, snapshot(), 1)
    assert re.search(rb'gwmond_pilots\{entry="other"', made.text)
    total = "gwmond_site_canonical_seconds_total"
    kept = sum(v for (name, _), v in shown(made.text).items() if name == total)
    assert kept == pytest.approx(324_000 + 1.234567)


def test_counters_of_entries_that_were_forgotten_leave() -> None:
    """Of their groups, too; gauges, counters of anything else, and what is ``other`` stay."""
    key, gone = EntryKey("A", "a"), EntryKey("B", "b")
    names = KeptNames(frozenset({key}), frozenset({Berth(key, "g")}), frozenset(), ())
    labels = ("site", "entry", "group")
    samples = [
        Sample((*of, group), 1, 1.0)
        for of in (key, gone, EntryKey(OTHER, OTHER))
        for group in ("g", "h", OTHER)
    ]
    seen = replace(snapshot(), names=names)
    made = render([family("x_total", *samples, labels=labels)], seen, 100)
    found = [dict(of) for name, of in shown(made.text) if name == "x_total"]
    assert {tuple(record[label] for label in labels) for record in found} == {
        *(("A", "a", "g"), ("A", "a", OTHER)),
        *((OTHER, OTHER, group) for group in ("g", "h", OTHER)),
    }
    other = [Sample(("b", "client"), 1, 1.0)]
    made = render([family("y_total", *other, labels=("entry", "client"))], seen, 100)
    assert value(made.text, "y_total", entry="b", client="client") == 1
    made = render([family("z", *samples, labels=labels)], seen, 100)
    assert sum(1 for name, _ in shown(made.text) if name == "z") == len(samples)


@pytest.mark.parametrize("name", ["x_total", "x"])
def test_entries_that_came_lately_give_their_series_to_others(name: str) -> None:
    """However large, or old, they are, what is theirs is in ``other``; those that were seen for a
    day, or that a factory names, stay."""
    first, second = EntryKey("A", "a"), EntryKey("B", "b")
    samples = [Sample(first, 5, 1.0), Sample(second, 2, 9.0)]
    if name == "x":
        samples = [sample._replace(created=None) for sample in samples]
    of = family(name, *samples, labels=("site", "entry"))
    for weak, kept in ((frozenset[EntryKey](), first), (frozenset({first}), second)):
        names = KeptNames(frozenset({first, second}), frozenset(), weak, ())
        made = render([of], replace(snapshot(), names=names), 1)
        found = [dict(of) for shown_name, of in shown(made.text) if shown_name == name]
        assert {(record["site"], record["entry"]) for record in found} == {kept, (OTHER, OTHER)}
