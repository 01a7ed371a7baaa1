"""Faults of sites, in the demo's week, of which it is known what broke where, and when."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Place
from gwmond.model.times import SECOND_US, Period
from gwmond.reports.failures.faults import BegunMark, Fault, faults
from gwmond.reports.failures.ticket import faults_at
from gwmond.reports.ledger.ledger_reading import Unreadable
from tests.promql import ROOT
from tests.simulator.story import EVENTS, Event, What
from tests.simulator.world import BEGINS, DOMAIN, ENTRIES, PRESENT_H

KINDS = {What.BLACK_HOLE: "run", What.STORAGE: "transfer", What.VALIDATION: "validation"}
WEEK = Period(BEGINS * SECOND_US, round((BEGINS + PRESENT_H * 3600) * SECOND_US))
SITES = {entry.site for entry in ENTRIES}


def hours(time_us: int) -> float:
    """The hours of a time since the week began."""
    return (time_us / SECOND_US - BEGINS) / 3600


def site_of(event: Event) -> str:
    """A black hole is at a node such as ``wn04.po``."""
    place = event.where.rpartition(".")[2]
    return next(site for site in SITES if site.lower() == place.lower())


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What gwmond accounted in that week."""
    directory = tmp_path_factory.mktemp("week")
    with zipfile.ZipFile(ROOT / "gwmond" / "data" / "demo.zip") as archive:
        path = Path(archive.extract("past/ledger.sqlite", directory))
    Ledger.open(str(path)).close()  # which upgrades it
    return path


@pytest.fixture(scope="module")
def found(ledger: Path) -> dict[str, list[Fault]]:
    with LedgerReader.open(str(ledger)) as reader:
        return {site: faults_at(reader, WEEK, Place(site)) for site in SITES}


def test_each_fault_is_told_with_its_place_and_times(found: dict[str, list[Fault]]) -> None:
    """What broke, and no more: kind, nodes, begin within what was so, and whether it is over."""
    told = {(site, fault.cause.kind) for site, faults in found.items() for fault in faults}
    events = [event for event in EVENTS if event.what in KINDS]
    assert told == {(site_of(event), KINDS[event.what]) for event in events}
    for event in events:
        (fault,) = [x for x in found[site_of(event)] if x.cause.kind == KINDS[event.what]]
        nodes = [node for node, _, _ in fault.nodes]
        assert nodes == ([f"{event.where}.{DOMAIN}"] if event.what is What.BLACK_HOLE else [])
        # A pilot that is to fail is chosen as it is submitted, and waits before it begins.
        waits_h = 1 if event.what is What.VALIDATION else 0
        assert event.begins_h <= hours(fault.since_us)
        assert hours(fault.last_us) <= event.ends_h + waits_h
        assert fault.gone is (event.ends_h < PRESENT_H)
        assert fault.before > 0
        assert not fault.is_elsewhere


def test_shares_and_begins_are_those_of_the_events(found: dict[str, list[Fault]]) -> None:
    """Of storages: the share of the runs, also of those whose end is still to come."""
    for event in EVENTS:
        if event.what is What.STORAGE:
            (fault,) = [x for x in found[site_of(event)] if x.cause.kind == "transfer"]
            assert fault.failed / fault.begun == pytest.approx(event.share, abs=0.1)
    (tagus,) = found["Tagus"]
    (event,) = [event for event in EVENTS if event.where == "Tagus"]
    assert hours(tagus.since_us) == pytest.approx(event.begins_h, abs=0.1)
    assert hours(tagus.last_us) == pytest.approx(event.ends_h, abs=0.1)


def test_the_text_names_no_user_and_no_job(
    printed: Callable[..., str], ledger: Path, found: dict[str, list[Fault]]
) -> None:
    """Nor the ledger's place; JSON has the same faults."""
    with LedgerReader.open(str(ledger)) as reader:
        runs = reader.run_rows(place=Place("Po"))
        names = {text for run, _ in runs for text in (run.user, run.key.job, run.job_group)}
    command = "ticket", "Po", "--ledger", ledger, "--from", "8d"
    text = printed(*command, "--format", "markdown")
    assert "Po, node wn04.po.demo.example: jobs fail as they begin: early exit, since" in text
    whole = text + printed(*command, "--format", "json")
    assert len(names) > 100
    assert not [name for name in names if name and name in whole]
    assert str(ledger) not in text
    said = json.loads(printed(*command, "--format", "json"))["faults"]
    assert [(x["cause"], x["failed"]) for x in said] == [
        (x.cause.name, x.failed) for x in found["Po"]
    ]


def test_what_a_page_reads_is_bounded(ledger: Path) -> None:
    with LedgerReader.open(str(ledger)) as reader, pytest.raises(Unreadable, match="shorter"):
        faults_at(reader, WEEK, Place("Po"), most=100)


def _marks(pattern: str, node: str = "n1", job_group: str = "g") -> list[BegunMark]:
    """A mark a second: x failed."""
    return [
        BegunMark(at, "e", node, "main", "test" * (what == "x"), user="u", job_group=job_group)
        for at, what in enumerate(pattern)
    ]


@pytest.mark.parametrize(
    ("pattern", "since", "last", "gone"),
    [
        ("....." * 9 + "xxxxxx", 45, 50, False),
        ("....." * 9 + "xxxxxx.....", 45, 50, True),
        ("....." * 9 + "xxx.xxx....", 45, 51, False),
        ("x" + "....." * 18 + "xx.xx.x", 91, 97, False),  # the first was another matter
        ("xxxxxxxx", 0, 7, False),
    ],
)
def test_when_it_began_and_whether_it_is_gone(
    pattern: str, since: int, last: int, gone: bool
) -> None:
    (fault,) = faults("run", _marks(pattern))
    assert (fault.since_us, fault.last_us, fault.gone) == (since, last, gone)
    assert fault.nodes == ()


def test_few_failures_are_no_fault() -> None:
    assert faults("run", _marks("....xxx....")) == []
    assert faults("run", []) == []


def test_a_node_is_bad_where_the_other_ones_did_the_same_work() -> None:
    """Jobs of others say nothing: they may not need what is missing."""
    bad = _marks("xxxxxxxx")
    assert faults("run", [*bad, *_marks("........", "n2")])[0].nodes == (("n1", 8, 8),)
    assert faults("run", [*bad, *_marks("........", "n2", "others")])[0].nodes == ()
