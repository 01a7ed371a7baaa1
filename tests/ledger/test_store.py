"""What a ledger keeps, on both databases."""

from __future__ import annotations

import threading
from math import inf, nan
from typing import Any

import pytest

from gwmond.ledger import (
    Batch,
    EntryState,
    Increment,
    Ledger,
    LedgerClosed,
    LedgerConflict,
    LedgerReader,
    LedgerRefused,
    LedgerState,
    Peak,
    Retention,
    SiteKey,
    Tick,
    TimedProblem,
)
from gwmond.model.facts import EntryKey, Problem
from gwmond.model.times import HOUR_S
from tests.ledger.batches import EPOCH, SITE, batch, expected, fork, prove, tick, totals

KEY = SiteKey("cpu", "full", "", "S", "e")
FIRST = Tick(EPOCH + 60.1, 60.2, 1e-9, "boot")


def test_a_new_ledger_is_empty(url: str) -> None:
    """A new ledger has no tick, so that the daemon knows that it starts from nothing."""
    with Ledger.open(url) as ledger:
        assert ledger.load() == LedgerState(None, 0, {}, {}, {})
        assert ledger.check()[SITE].micros == 0


def test_what_was_committed_is_loaded(url: str) -> None:
    """Totals, entries, peaks, problems and the tick come back equal, by writer and reader."""
    batches = [batch(number) for number in range(1, 6)]
    with Ledger.open(url) as ledger:
        for each in batches:
            ledger.commit(each)
        assert prove(ledger) == 5
        with LedgerReader.open(url) as reader:
            assert prove(reader) == 5
    with Ledger.open(url) as ledger:
        state = ledger.load()
        assert prove(ledger) == 5
    assert state.entries == batches[-1].entries
    assert state.peaks == batches[-1].peaks
    assert {total.created for total in state.totals.values()} == {EPOCH + 0.1 + 60 - 60}


def test_an_interval_is_divided_at_the_hour(url: str) -> None:
    """An interval of which two thirds are in the next hour gives it two thirds."""
    hour = EPOCH // HOUR_S + 1
    increment = Increment(KEY, 300, hour * HOUR_S - 20, hour * HOUR_S + 40)
    with Ledger.open(url) as ledger:
        ledger.commit(Batch(None, FIRST, (increment,)))
        assert [tuple(row) for row in ledger.hours(0, 10**6)] == [
            (hour - 1, KEY, 100),
            (hour, KEY, 200),
        ]
        assert [row.hour for row in ledger.hours(hour, hour)] == [hour]


def test_amounts_beyond_64_bits_are_exact(url: str) -> None:
    """Centuries of a hundred thousand units add up without losing a micro."""
    step = 10**18 + 999_999
    with Ledger.open(url) as ledger:
        before = None
        for number in range(1, 11):
            start = EPOCH + 2 * HOUR_S * number
            increment = Increment(KEY, step, start, start + 2 * HOUR_S)
            after = tick(number)
            assert after is not None
            ledger.commit(Batch(before, after, (increment, increment)))
            before = after
        assert totals(ledger.load()) == {KEY: 20 * step}
        assert ledger.check()[SITE].micros == 0
        ledger.prune(EPOCH + HOUR_S * 30, Retention(hours_s=HOUR_S))
        assert ledger.check()[SITE].micros == 0


def test_a_zero_makes_a_series(url: str) -> None:
    """A series with nothing yet is kept as zero, so that its counter exists before it counts."""
    with Ledger.open(url) as ledger:
        ledger.commit(Batch(None, FIRST, (Increment(KEY, 0, EPOCH, EPOCH),)))
        assert totals(ledger.load()) == {KEY: 0}
        assert ledger.hours(0, 10**6) == []
        assert ledger.check()[SITE].micros == 0


def test_a_replay_adds_nothing(url: str) -> None:
    """A batch that is stored already is refused and says so, before and after opening again."""
    with Ledger.open(url) as ledger:
        for number in (1, 2, 3):
            ledger.commit(batch(number))
        with pytest.raises(LedgerConflict, match="stored already") as error:
            ledger.commit(batch(3))
        assert error.value.replay
        assert prove(ledger) == 3
    with Ledger.open(url) as ledger:
        for number in (1, 2, 3):
            with pytest.raises(LedgerConflict):
                ledger.commit(batch(number))
        assert prove(ledger) == 3
        ledger.commit(batch(4))
        assert prove(ledger) == 4


def test_a_batch_from_elsewhere_adds_nothing(url: str) -> None:
    """A batch that skips a tick, or starts from nothing, tells both ticks and changes nothing."""
    with Ledger.open(url) as ledger:
        ledger.commit(batch(1))
        for wrong in (batch(3), batch(2)._replace(before=None)):
            with pytest.raises(LedgerConflict, match="the stored tick is") as error:
                ledger.commit(wrong)
            assert not error.value.replay
            assert not error.value.reopen
        assert prove(ledger) == 1
        ledger.commit(batch(2))


def _wrong() -> list[dict[str, Any]]:
    interval = (float(EPOCH), EPOCH + 60.0)
    increments: list[Any] = [
        Increment(KEY, -1, *interval),
        Increment(KEY, 1.0, *interval),  # type: ignore[arg-type]
        Increment(KEY, True, *interval),
        Increment(KEY, 10**22, *interval),
        Increment(KEY, 1, EPOCH, EPOCH - 1),
        Increment(KEY, 1, nan, EPOCH),
        Increment(KEY, 1, 0, EPOCH),
    ]
    entry = EntryKey("S", "e")
    inexact: Any = {"cpu": 1.5}
    return [
        *({"increments": (increment,)} for increment in increments),
        {"tick": FIRST._replace(wall=inf)},
        {"before": FIRST},
        {"entries": {entry: EntryState(nan, None, {})}},
        {"entries": {entry: EntryState(1.0, None, inexact)}},
        {"peaks": {entry: (Peak("cpu", 1, -1),)}},
        {"problems": (TimedProblem(nan, Problem("a", "b", "c")),)},
    ]


@pytest.mark.parametrize("wrong", _wrong(), ids=lambda wrong: repr(next(iter(wrong.values())))[:60])
def test_a_senseless_batch_is_refused(file: Any, wrong: dict[str, Any]) -> None:
    """Negative or inexact amounts and times that are none are refused whole."""
    with Ledger.open(str(file)) as ledger:
        with pytest.raises(LedgerRefused, match="refused a batch"):
            ledger.commit(Batch(None, FIRST, (Increment(KEY, 1, 0, 1),))._replace(**wrong))
        assert ledger.load().commits == 0
        ledger.commit(Batch(None, FIRST))


def test_any_name_can_be_stored(url: str) -> None:
    """A site name with NUL, broken UTF-8 or a megabyte stops nothing; equal ones share a series."""
    names = ["a\0b", "x\udcff", "é中😀", "😀" * 1_000_000, "😀" * 1_000_001, ""]
    keys = [SiteKey("cpu", name, name, name, name) for name in names]
    increments = tuple(Increment(key, 5, EPOCH, EPOCH + 60) for key in keys)
    problems = tuple(TimedProblem(EPOCH, Problem(n, n, n)) for n in names)
    entry = EntryKey(names[0], names[3])
    with Ledger.open(url) as ledger:
        ledger.commit(
            Batch(
                None,
                FIRST,
                increments,
                {entry: EntryState(EPOCH, None, {"gpu": 3})},
                {entry: (Peak("gpu", 4, 3),)},
                problems,
            )
        )
        state = ledger.load()
        assert sum(total.micros for total in state.totals.values()) == 30
        assert len(state.totals) == 5
        assert keys[2] in state.totals
        assert list(state.entries.values()) == [EntryState(EPOCH, None, {"gpu": 3})]
        assert list(state.peaks) == list(state.entries)


def test_peaks_are_replaced_per_entry(url: str) -> None:
    """The peaks of a named entry are those of the batch, also none; others stay."""
    one, two = EntryKey("S", "1"), EntryKey("S", "2")
    peaks = (Peak("cpu", 1, 9), Peak("cpu", 5, 4), Peak("gpu", 5, 1))
    second, third = tick(8), tick(9)
    assert second is not None
    assert third is not None
    with Ledger.open(url) as ledger:
        ledger.commit(Batch(None, FIRST, peaks={one: peaks, two: peaks}))
        assert ledger.load().peaks == {one: peaks, two: peaks}
        ledger.commit(Batch(FIRST, second, peaks={one: (Peak("cpu", 6, 2),)}))
        assert ledger.load().peaks == {one: (Peak("cpu", 6, 2),), two: peaks}
        ledger.commit(Batch(second, third, peaks={one: ()}))
        assert ledger.load().peaks == {two: peaks}


def test_every_read_sees_one_state(url: str) -> None:
    """Threads of the writer, and a reader beside it, never see half a commit."""
    failures: list[BaseException] = []
    with Ledger.open(url) as ledger, LedgerReader.open(url) as reader:

        def read(which: LedgerReader) -> None:
            try:
                for _ in range(30):
                    state = which.load()
                    assert totals(state) == expected(state.commits)
                    assert which.check()[SITE].micros == 0
            except BaseException as exc:
                failures.append(exc)

        threads = [threading.Thread(target=read, args=(w,)) for w in (ledger, ledger, reader)]
        for thread in threads:
            thread.start()
        for number in range(1, 30):
            ledger.commit(batch(number))
        for thread in threads:
            thread.join()
        assert prove(reader) == 29
    assert failures == []


def test_a_closed_ledger_says_so(url: str) -> None:
    """Using a closed ledger is a clear error, closing twice is none."""
    ledger = Ledger.open(url)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerClosed, match="open it again"):
        ledger.load()


def test_a_forked_child_cannot_harm_the_ledger(url: str) -> None:
    """A child that inherits an open ledger gets an error, its close does nothing to the parent."""
    with Ledger.open(url) as ledger:
        ledger.commit(batch(1))

        def child() -> None:
            with pytest.raises(LedgerClosed, match="forked child"):
                ledger.commit(batch(2))
            ledger.close()

        process = fork.Process(target=child)
        process.start()
        process.join(30)
        assert process.exitcode == 0
        ledger.commit(batch(2))
        assert prove(ledger) == 2
