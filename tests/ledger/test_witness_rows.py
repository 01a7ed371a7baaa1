"""Pilots are found by what central logs call them, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from gwmond.ledger.store import Ledger
from gwmond.model.pilots.pilot_facts import OutputFacts, PilotFacts
from gwmond.model.poll.batch import Batch
from gwmond.model.poll.pilot_keys import PilotKeys
from tests.ledger.pilot_batches import pilots_at

S = 10**6
BASE = 1_700_000_000 * S
NAMES = {
    1: ("glidein_1_2@wn1.site.test", "wn1.site.test"),
    2: ("glidein_1_20@wn1", "wn1"),
    3: ("glidein_1_2@wn2", "wn2"),
    4: ("glidein_1_2A@wn2", "WN2.site.test"),
    5: ("glidein_1_2", "wn11"),
}
NAMELESS = {
    1: ("7.0@fe:i.E", "wn1.site.test"),
    2: ("9:@x", "wn1"),
    3: (":9.0@x", "wn1"),
    4: ("/9.0@x", "wn1"),
    5: ("8.0@i.E", "wn1"),
}


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    """Pilots from BASE on, one hour each, one after the other; the last one has not ended."""
    with Ledger.open(url) as opened:
        fill(opened, NAMES)
        yield opened


def facts(number: int) -> PilotFacts:
    """What a pilot's output says, and no more."""
    return PilotFacts(output=OutputFacts(BASE, BASE, pid=number, unnamed=number == 2))


def fill(ledger: Ledger, names: dict[int, tuple[str, str]]) -> None:
    """Store pilots of these names and nodes."""
    row = pilots_at(4)[1].row
    rows = [
        row._replace(
            id=number,
            identity=row.identity._replace(name=name, node=node, factory_job=""),
            start_us=BASE + (number - 1) * 3600 * S,
            end_us=BASE + number * 3600 * S if number < 5 else None,
            closed=number < 5,
            facts=facts(number),
        )
        for number, (name, node) in names.items()
    ]
    ledger.commit(Batch(0, BASE, tuple(rows)))


def numbers(ledger: Ledger, keys: PilotKeys) -> list[int]:
    return sorted(row.id for row in ledger.fetch(keys).pilots)


def test_by_the_startds_name(ledger: Ledger) -> None:
    """All of the name as far as the @, and no longer ones."""
    assert numbers(ledger, PilotKeys(bare_startds={"glidein_1_2"})) == [1, 3]
    some = {"glidein_1_2", "glidein_1_20", "x%_"}
    assert numbers(ledger, PilotKeys(bare_startds=some)) == [1, 2, 3]
    assert numbers(ledger, PilotKeys(bare_startds={"glidein_1_", "%"})) == []
    many = {f"glidein_{n}_{n}" for n in range(700)} | {"glidein_1_20"}
    assert numbers(ledger, PilotKeys(bare_startds=many)) == [2]


@pytest.mark.parametrize(
    ("node", "at_s", "found"),
    [
        ("wn1", 0, [1]),
        ("wn1", 3600, [1, 2]),
        ("wn1", -60, [1]),
        ("wn1", -61, []),
        ("wn1", 7200 + 960, [2]),
        ("wn1", 7200 + 961, []),
        ("wn2", 3.5 * 3600, [4]),
        ("wn2", 3 * 3600, [3, 4]),
        ("wn11", 4.5 * 3600, []),
        ("wn", 0, []),
    ],
)
def test_by_node_and_time(ledger: Ledger, node: str, at_s: float, found: list[int]) -> None:
    """Those that ended and were there then, give or take; with and without a domain."""
    moments = {(node, BASE + round(at_s * S)), ("other", BASE), (node, BASE - 10**12)}
    assert numbers(ledger, PilotKeys(on_nodes=moments, guard_us=60 * S)) == found


@pytest.mark.parametrize(
    ("node", "at_s", "found"),
    [
        ("wn1", 0, [1]),
        ("wn1", -61, []),
        ("wn1", 3540, [1, 2]),
        ("wn1", 60 * 86400, [1, 2]),  # long after they ended; the fifth one has not
        ("wn1", 60 * 86400 + 1, [2]),
        ("wn2", 3600, []),
    ],
)
def test_those_without_a_startds_name(url: str, node: str, at_s: float, found: list[int]) -> None:
    """Up to a time after they began; others are left out, also where the node is the same."""
    with Ledger.open(url) as ledger:
        fill(ledger, NAMELESS)
        moments = {(node, BASE + round(at_s * S)), ("other", BASE), (node, BASE - 10**12)}
        rows = ledger.fetch(PilotKeys(nameless=moments, guard_us=60 * S)).pilots
        assert [row.id for row in rows] == found
        for row in rows:  # and what their outputs told comes back
            assert row.facts == facts(row.id)


def test_names_are_found_by_the_index(file: Path) -> None:
    with Ledger.open(str(file)) as ledger:
        with ledger.transaction() as connection:
            pass
        asked: list[tuple[str, Any]] = []

        def ask(_: object, __: object, statement: str, values: Any, *___: object) -> None:
            asked.append((statement, values))

        event.listen(connection, "before_cursor_execute", ask)
        ledger.fetch(PilotKeys(bare_startds={"glidein_1_2", "glidein_1_3"}))
        event.remove(connection, "before_cursor_execute", ask)
        ((statement, values),) = [of for of in asked if "FROM pilots" in of[0]]
        with ledger.transaction():
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            plans = [row[3] for row in rows]
        assert any("ix_pilots_name" in plan for plan in plans), plans
        assert not [plan for plan in plans if plan.startswith("SCAN")]
