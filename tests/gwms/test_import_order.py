"""A factory's directories imported at once, or in parts in any order: the same ledger."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path

import pytest

from tests.gwms.test_import import factory, run, totals

__all__ = ["factory"]


def parts(factory: Path) -> list[Path]:
    """Directories of which each can be imported alone."""
    return sorted({file.parent for file in factory.rglob("*") if file.is_file()})


def lives(ledger: Path) -> list[tuple[object, ...]]:
    """All that is stored of pilots, and of their runs, without their numbers."""
    columns = "name, site, entry, factory, start_us, end_us, steps, validation, estimated"
    runs = "job, run, start_us, end_us, category, outcome, cpu_resource, cpu_canonical"
    with sqlite3.connect(ledger) as connection:
        found = [
            (*row, json.dumps(json.loads(settled), sort_keys=True))
            for *row, settled in connection.execute(f"SELECT {columns}, settled FROM pilots")
        ]
        found += connection.execute(f"SELECT {runs} FROM attempts WHERE job NOT LIKE 's%#p%#%'")
        found += connection.execute(
            "SELECT labels, whole, micros FROM series WHERE kind = 'count' AND whole + micros > 0"
        )
    return sorted(found, key=repr)


@pytest.fixture(scope="module")
def at_once(factory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger into which all was imported at once."""
    ledger = tmp_path_factory.mktemp("once") / "ledger.sqlite"
    assert run(ledger, factory).returncode == 0
    return ledger


@pytest.mark.parametrize("seed", [1, 2])
def test_in_parts(factory: Path, at_once: Path, tmp_path: Path, seed: int) -> None:
    """Sizes and sites that are not told are those of the entry's others, whoever came first."""
    ledger, some = tmp_path / "ledger.sqlite", parts(factory)
    random.Random(seed).shuffle(some)
    assert len(some) > 5
    for number in range(3):
        done = run(ledger, *some[number::3])
        assert done.returncode == 0, done.stderr
    assert totals(ledger) == totals(at_once)
    assert lives(ledger) == lives(at_once)
