"""The proof of pilot time finds an error of one micro, wherever it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Connection

from gwmond.ledger.database.errors import LedgerCorrupt
from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.ledger.store import Ledger
from gwmond.model.pilots.stored_pilots import PilotResidual
from tests.ledger import batches
from tests.ledger.pilot_batches import batch, now_us
from tests.ledger.server import Server

BATCHES = 22


def _fill(url: str) -> None:
    """Make a ledger with open, closed and pruned pilots, and closed ones whose runs were pruned."""
    with Ledger.open(url) as ledger:
        for number in range(1, BATCHES + 1):
            ledger.commit(batch(number))
        ledger.commit(batches.batch(1)._replace(before=ledger.load().batches))
        h = 3600
        pruned = ledger.prune(now_us(BATCHES) / 1e6, Retention(6 * h, 6.5 * h, 7 * h, 4 * h))
        assert all(pruned[:5])


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def copied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], str]:
    """Makes a copy of such a ledger, of each kind, and returns its URL."""
    if request.param == "sqlite":
        file = tmp_path_factory.mktemp("filled") / "ledger.sqlite"
        _fill(str(file))
        return lambda: str(shutil.copy(file, tmp_path_factory.mktemp("copy") / file.name))
    server: Server = request.getfixturevalue("server")
    url = server.database()
    _fill(url)
    return lambda: server.database(f"TEMPLATE {url.rpartition('/')[2]}")


@pytest.fixture
def filled(copied: Callable[[], str]) -> Iterator[Ledger]:
    """A ledger of the test's own, of each kind."""
    with Ledger.open(copied()) as ledger:
        yield ledger


def _off(ledger: Ledger) -> dict[str, int]:
    return {
        check_pilot.what: check_pilot.micros for check_pilot in ledger.check() if check_pilot.micros
    }


_WHOLE = (
    "SELECT MAX(job) FROM runs JOIN pilots ON pilot = pilots.id "
    "WHERE runs_pruned = 0 AND closed = 1 AND cpu_canonical > 0"
)


def _series(change: str, kind: str, which: str = "micros") -> str:
    """Change the first series of a kind that has any of what is named."""
    first = f"SELECT MIN(id) FROM series WHERE kind = '{kind}' AND {which} > 0"
    return f"UPDATE series SET {change} WHERE id = ({first})"


def _hour(change: str, kind: str) -> str:
    """Change the latest hour of a kind."""
    return (
        f"UPDATE series_hours SET amount = amount {change} WHERE (hour, series) = (SELECT hour, id "
        f"FROM series_hours JOIN series ON series = id WHERE kind = '{kind}' AND amount > 0 "
        "ORDER BY hour DESC, id LIMIT 1)"
    )


def _pilot_end(which: str) -> str:
    """Change the end of the latest pilot."""
    latest = f"SELECT MAX(id) FROM pilots WHERE {which}"
    return f"UPDATE pilots SET end_us = end_us + 1 WHERE id = ({latest})"


_FACTORY = {"factory": 1_000_000}
PLANTED: dict[str, tuple[str, dict[str, int] | None]] = {
    "a factory's total": (_series("micros = micros + 1", "factory", "id"), _FACTORY),
    "a factory's hour": (_hour("+ 1", "factory"), _FACTORY),
    "a factory's carry": (
        _series("pruned_micros = pruned_micros - 1", "factory", "pruned_micros"),
        _FACTORY,
    ),
    "a total": (_series("micros = micros - 1", "pilot"), {"hours": 1, "series": 1}),
    "a counter": (
        _series("high_whole = whole, high_micros = micros - 1", "pilot"),
        {"hours": 1},
    ),
    "a carry": (
        _series("pruned_micros = pruned_micros - 1", "pilot", "pruned_micros"),
        {"hours": 1},
    ),
    "an hour": (_hour("- 1", "pilot"), {"hours": 1}),
    "pruned pilots": (_series("micros = micros - 1", "carried"), {"series": 1}),
    "a run": (
        "UPDATE runs SET cpu_canonical = cpu_canonical + 1 WHERE pilot = (SELECT MAX(pilot) "
        "FROM runs WHERE cpu_canonical > 0) AND cpu_canonical > 0",
        {"runs": 1},
    ),
    "a run's end": (f"UPDATE runs SET end_us = end_us - 1 WHERE job = ({_WHOLE})", None),
    "a run that is gone": (f"DELETE FROM runs WHERE job = ({_WHOLE})", None),
    "a run without pilot": (f"UPDATE runs SET pilot = 10000 WHERE job = ({_WHOLE})", None),
    "a pilot's end": (
        _pilot_end("end_us IS NOT NULL AND runs_pruned = 0 AND known_until_us IS NULL"),
        None,
    ),
    "the end of a pilot whose runs went": (_pilot_end("runs_pruned > 0"), None),
    "site time": (
        "UPDATE series SET micros = micros - 1 WHERE kind = 'site' AND labels LIKE '%%entry-3\"]'",
        {"site_canonical": 1},
    ),
}


@pytest.mark.parametrize("place", PLANTED)
def test_one_micro_is_found(filled: Ledger, place: str) -> None:
    """One micro less or more is found where it is, and where it belongs to."""
    statement, wanted = PLANTED[place]
    assert _off(filled) == {}
    with filled.transaction() as connection:
        assert connection.exec_driver_sql(statement).rowcount > 0
    found = _off(filled)
    assert found
    if wanted is not None:
        assert found == wanted


def _change_settled(connection: Connection, pilot: int) -> str:
    """Take one micro from what is posted for a pilot; return the statement that undoes it."""
    query = f"SELECT settled FROM pilots WHERE id = {pilot}"
    before = str(connection.exec_driver_sql(query).scalar())
    settled = json.loads(before)
    settled["cpu"]["canonical"]["goodput"]["exit_zero"] -= 1
    change = "UPDATE pilots SET settled = '{}' WHERE id = {}"
    connection.exec_driver_sql(change.format(json.dumps(settled), pilot))
    return change.format(before, pilot)


def test_what_is_posted_for_a_pilot(filled: Ledger) -> None:
    """One micro less for a pilot is missing there, and in the sum over pilots."""
    rows = [row for row in filled.pilot_rows() if row.closed]
    pruned = next(row for row in rows if row.runs_pruned)
    whole = next(row for row in rows if not row.runs_pruned)
    with filled.transaction() as connection:
        sound = _change_settled(connection, whole.id)
    assert _off(filled) == {"pilots": 1, "series": 1}
    with filled.transaction() as connection:
        connection.exec_driver_sql(sound)
        _change_settled(connection, pruned.id)
    found = _off(filled)
    assert found["series"] == 1
    assert found["pilots"] >= 1


def test_it_says_what_it_did(filled: Ledger) -> None:
    """What was checked is counted, progress is told, and the worst are named."""
    told: list[tuple[str, int, int]] = []
    found = {
        check_pilot.what: check_pilot for check_pilot in filled.check(lambda *of: told.append(of))
    }
    rows = filled.pilot_rows()
    assert found["pilots"].checked == len(rows)
    assert found["pilots"].skipped == sum(1 for row in rows if row.runs_pruned) > 0
    assert found["runs"].skipped == sum(row.runs_pruned for row in rows)
    assert found["runs"].checked == len(list(filled.run_rows()))
    assert found["hours"].checked == len(filled.pilot_hours(0, 10**7))
    assert found["series"].checked == len(filled.load().totals.pilots)
    assert found["site_canonical"].checked == 20
    assert told[-1] == ("pilots", len(rows), len(rows))
    with filled.transaction() as connection:
        connection.exec_driver_sql("UPDATE series SET whole = whole + id WHERE kind = 'pilot'")
    (hours, *_) = filled.check()
    assert isinstance(hours, PilotResidual)
    assert len(hours.worst) == 10
    sizes = [abs(pilot_difference.micros) for pilot_difference in hours.worst]
    assert sizes == sorted(sizes, reverse=True)


def test_the_unit_belongs_to_what_was_posted(filled: Ledger) -> None:
    """Another canonical unit that is configured now changes no proof of what was posted before."""
    filled.note_unit(2000)
    assert not any(residual.micros for residual in filled.check(memory_mib=4000))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE pilots SET settled = '{' WHERE id = 20",
        "UPDATE pilots SET validation = 'maybe' WHERE id = 20",
        "UPDATE pilots SET steps = '[[1]]' WHERE id = 20",
        "UPDATE runs SET facts = '[{}]'",
        "UPDATE runs SET category = 'wasted' WHERE category IS NOT NULL",
    ],
)
def test_a_row_that_cannot_be_read(filled: Ledger, damage: str) -> None:
    """Damage within a row is told as such."""
    with filled.transaction() as connection:
        assert connection.exec_driver_sql(damage).rowcount > 0
    with pytest.raises(LedgerCorrupt, match="a row cannot be read"):
        filled.check()
