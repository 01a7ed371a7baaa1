"""What is forgotten, and the proof that nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gwmond.ledger.database.columns import Undecodable
from gwmond.ledger.rows import counters, writes
from gwmond.ledger.rows.counters import Kind
from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Problem
from gwmond.model.poll.batch import Batch, TimedProblem
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import HOUR_S
from tests.ledger.batches import EPOCH, SITE, amount, batch, expected, key, spent, tick, totals


def test_problems_are_bounded(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more problems than are kept the newest stay, and prune removes those of an age."""
    monkeypatch.setattr(writes, "PROBLEMS_KEPT", 10)
    seen = tuple(
        TimedProblem(EPOCH + i, Problem("s", ProblemName.FAILED, str(i))) for i in range(25)
    )
    with Ledger.open(url) as ledger:
        ledger.commit(Batch(0, 0, problems=seen[:7]))
        ledger.commit(Batch(1, 0, problems=seen[7:]))
        assert ledger.problems(100) == list(seen[:14:-1])
        assert ledger.prune(EPOCH + 24 + 100, Retention(problems_s=100)).problems == 9
        assert ledger.problems(100) == [seen[-1]]


def test_pruning_keeps_the_proof_exact(url: str) -> None:
    """Old hours go, totals stay, the residual stays 0, also when hours come in late."""

    def wide(number: int) -> Batch:
        usual, now = batch(number), tick(number)
        assert now is not None
        amounts = {key(i): amount(number, i) for i in range(20)}
        return usual._replace(site_time=spent(amounts, now.wall - 4.5 * HOUR_S, now.wall))

    with Ledger.open(url) as ledger:
        for number in range(1, 10):
            ledger.commit(wide(number))
        hours = {row.hour for row in ledger.hours(0, 10**6)}
        now = (max(hours) + 1) * HOUR_S
        assert len(hours) >= 4
        for kept in (3, 2, 2, 0):
            ledger.prune(now, Retention(hours_s=kept * HOUR_S))
            left = {row.hour for row in ledger.hours(0, 10**6)}
            assert left == set(sorted(hours)[len(hours) - kept :])
            assert ledger.check()[SITE].micros == 0
            assert totals(ledger.load()) == expected(9)
        ledger.commit(wide(10))
        assert ledger.check()[SITE].micros == 0
        assert totals(ledger.load()) == expected(10)


def test_a_wrong_row_shows_in_the_residual(url: str) -> None:
    """Errors in two series do not cancel: the residual is their sum, and names the series."""
    with Ledger.open(url) as ledger:
        ledger.commit(batch(1))
        with ledger.transaction() as connection:
            for series, change in ((3, "+ 5"), (4, "- 5")):
                connection.exec_driver_sql(
                    f"UPDATE series SET micros = micros {change} "
                    f"WHERE kind = 'site' AND labels LIKE '%%entry-{series}\"]'"
                )
        residual = ledger.check()[SITE]
        assert residual.what == "site_canonical"
        assert residual.micros == 10
        assert set(residual.worst) == {(" ".join(key(3)), 5), (" ".join(key(4)), -5)}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("[", "series {number}: Input data was truncated"),
        ("[1]", "series {number}: Expected `str`, got `int` - at `$[0]`"),
        ('["one"]', "a series of site: "),
    ],
)
def test_a_damaged_series_is_named(file: Path, labels: str, message: str) -> None:
    """By its number where its labels cannot be read, by its kind where they are of no such one."""
    with Ledger.open(str(file)) as ledger:
        ledger.commit(batch(1))
        with ledger.transaction() as connection:
            number = connection.exec_driver_sql("SELECT MAX(id) FROM series").scalar_one()
            connection.exec_driver_sql(
                "UPDATE series SET labels = ? WHERE id = ?", (labels, number)
            )
            with pytest.raises(Undecodable) as caught:
                counters.stored_totals(connection, [Kind.SITE])
            assert str(caught.value).startswith(message.format(number=number))
            none = counters.stored_totals(connection, [Kind.FACTORY])
            assert (none.site, none.pilots, none.counts) == ({}, {}, {})


def test_hours_are_read_by_kind_and_series(file: Path) -> None:
    """The first and the last of them, their sums, and the number of each series: ends included."""
    with Ledger.open(str(file)) as ledger:
        hour = EPOCH // HOUR_S
        times = {(hour + later, key(i)): 10 * i + later for i in (1, 2) for later in range(3)}
        ledger.commit(batch(1)._replace(site_time=times))
        one, two = tuple(key(1)), tuple(key(2))
        with ledger.reading() as connection:
            rows = list(counters.hour_rows(connection, Kind.SITE, hour + 1, hour + 2))
            assert rows == [
                (hour + 1, one, 11),
                (hour + 1, two, 21),
                (hour + 2, one, 12),
                (hour + 2, two, 22),
            ]
            found = counters.sums(connection, Kind.SITE, hour, hour + 1)
            assert found == {one: 10 + 11, two: 20 + 21}
            ends = counters.spans(connection, Kind.SITE, hour + 1, hour + 9)
            assert ends == {one: (hour + 1, hour + 2), two: (hour + 1, hour + 2)}
            assert counters.span(connection, Kind.SITE) == (hour, hour + 2)
            assert counters.span(connection, Kind.FACTORY) == (None, None)
            proven = list(counters.prove(connection, Kind.SITE))
            assert [(p.series.total, p.difference, p.hours) for p in proven] == [
                (33, 0, 3),
                (63, 0, 3),
            ]
