"""What a ledger keeps, on both databases."""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from gwmond.ledger.database.errors import LedgerClosed, LedgerConflict
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.rows.pilot_prune import Retention
from gwmond.ledger.store import Ledger
from gwmond.model.elapsed import Tick
from gwmond.model.facts import EntryKey, Problem
from gwmond.model.poll.batch import Batch, EntryState, LedgerState, Peak, TimedProblem, Totals
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import HOUR_S
from gwmond.model.totals import SiteKey, Total
from tests.ledger.batches import EPOCH, SITE, batch, expected, fork, prove, tick, totals
from tests.ledger.pilot_batches import poll

KEY = SiteKey("cpu", "full", "", "S", "e")
FIRST = Tick(EPOCH + 60.1, 60.2, 1e-9, "boot")


def sites(before: int, site_time: Mapping[tuple[int, SiteKey], int]) -> Batch:
    """A poll that has seen no pilot."""
    now = FIRST._replace(wall=FIRST.wall + 60 * before)
    now_us = round(now.wall * 10**6)
    return Batch(before, now_us, tick=now, site_time=site_time, site_since=now.wall - 60)


def test_a_new_ledger_is_empty(url: str) -> None:
    """A new ledger has no tick, so that the daemon knows that it starts from nothing."""
    with Ledger.open(url) as ledger:
        assert ledger.load() == LedgerState()
        assert ledger.tick() is None
        assert ledger.check()[SITE].micros == 0


def test_hours_are_read_by_themselves(url: str) -> None:
    """Hours come back in their order, those that are asked for."""
    hour = EPOCH // HOUR_S
    with Ledger.open(url) as ledger:
        ledger.commit(sites(0, {(hour + 1, KEY): 200, (hour, KEY): 100}))
        assert [tuple(row) for row in ledger.hours(0, 10**6)] == [
            (hour, KEY, 100),
            (hour + 1, KEY, 200),
        ]
        assert [row.hour for row in ledger.hours(hour + 1, hour + 1)] == [hour + 1]


def test_a_commit_returns_the_totals_that_it_names(url: str) -> None:
    """They are as they are loaded: what is shown of them need not be added up again."""
    other = KEY._replace(entry="other")
    with Ledger.open(url) as ledger:
        ledger.commit(sites(0, {(1, KEY): 5, (1, other): 7}))
        changed = ledger.commit(sites(1, {(1, KEY): 2, (2, KEY): 1}))
        assert changed == Totals(site={KEY: Total(8, FIRST.wall - 60)})
        assert ledger.load().totals.site == {**changed.site, other: Total(7, FIRST.wall - 60)}


def test_amounts_beyond_64_bits_are_exact(url: str) -> None:
    """Centuries of a hundred thousand units add up without losing a micro."""
    step, hour = 10**18 + 999_999, EPOCH // HOUR_S
    with Ledger.open(url) as ledger:
        for number in range(10):
            at = hour + 2 * number
            ledger.commit(sites(number, {(at, KEY): step, (at + 1, KEY): step}))
        assert totals(ledger.load()) == {KEY: 20 * step}
        assert ledger.check()[SITE].micros == 0
        ledger.prune(EPOCH + HOUR_S * 30, Retention(hours_s=HOUR_S))
        assert ledger.check()[SITE].micros == 0


def test_a_zero_makes_a_series(url: str) -> None:
    """A series with nothing yet is kept as zero, so that its counter exists before it counts."""
    with Ledger.open(url) as ledger:
        ledger.commit(sites(0, {(1, KEY): 0}))
        assert totals(ledger.load()) == {KEY: 0}
        assert ledger.hours(0, 10**6) == []
        assert ledger.check()[SITE].micros == 0


def test_a_replay_adds_nothing(url: str) -> None:
    """A batch that is stored already is refused and says so, before and after opening again."""
    with Ledger.open(url) as ledger:
        for number in (1, 2, 3):
            ledger.commit(poll(number))
        with pytest.raises(LedgerConflict, match="stored already") as error:
            ledger.commit(poll(3))
        assert error.value.replay
        assert prove(ledger) == 3
    with Ledger.open(url) as ledger:
        for number in (1, 2, 3):
            with pytest.raises(LedgerConflict):
                ledger.commit(poll(number))
        assert prove(ledger) == 3
        ledger.commit(poll(4))
        assert prove(ledger) == 4


def test_a_batch_from_elsewhere_adds_nothing(url: str) -> None:
    """A batch that skips one, or starts from nothing, tells both numbers and changes nothing.

    So does another one with the number of one that is stored: somebody else was here.
    """
    with Ledger.open(url) as ledger:
        for number in (1, 2):
            ledger.commit(batch(number))
        elsewhere = batch(2)._replace(tick=tick(7))
        for wrong in (batch(4), batch(1), elsewhere):
            with pytest.raises(LedgerConflict, match="others, but 2 are stored") as error:
                ledger.commit(wrong)
            assert not error.value.replay
            assert not error.value.reopen
        assert prove(ledger) == 2
        ledger.commit(batch(3))


def test_any_name_can_be_stored(url: str) -> None:
    """A site name with NUL, broken UTF-8 or a megabyte stops nothing; equal ones share a series."""
    names = ["a\0b", "x\udcff", "é中😀", "😀" * 1_000_000, "😀" * 1_000_001, ""]
    keys = [SiteKey("cpu", name, name, name, name) for name in names]
    problems = tuple(TimedProblem(EPOCH, Problem(n, ProblemName.FAILED, n)) for n in names)
    entry = EntryKey(names[0], names[3])
    with Ledger.open(url) as ledger:
        ledger.commit(
            sites(0, {(1, key): 5 for key in keys})._replace(
                entries={entry: EntryState(EPOCH, None, {"gpu": 3})},
                peaks={entry: (Peak("gpu", 4, 3),)},
                problems=problems,
            )
        )
        state = ledger.load()
        found = state.totals.site
        assert sum(total.micros for total in found.values()) == 30
        assert len(found) == 5
        assert keys[2] in found
        assert list(state.entries.values()) == [EntryState(EPOCH, None, {"gpu": 3})]
        assert list(state.peaks) == list(state.entries)


def test_peaks_are_replaced_per_entry(url: str) -> None:
    """The peaks of a named entry are those of the batch, also none; others stay."""
    one, two = EntryKey("S", "1"), EntryKey("S", "2")
    peaks = (Peak("cpu", 1, 9), Peak("cpu", 5, 4), Peak("gpu", 5, 1))
    with Ledger.open(url) as ledger:
        ledger.commit(sites(0, {})._replace(peaks={one: peaks, two: peaks}))
        assert ledger.load().peaks == {one: peaks, two: peaks}
        ledger.commit(sites(1, {})._replace(peaks={one: (Peak("cpu", 6, 2),)}))
        assert ledger.load().peaks == {one: (Peak("cpu", 6, 2),), two: peaks}
        ledger.commit(sites(2, {})._replace(peaks={one: ()}))
        assert ledger.load().peaks == {two: peaks}


def test_every_read_sees_one_state(url: str) -> None:
    """Threads of the writer, and a reader beside it, never see half a commit."""
    failures: list[BaseException] = []
    with Ledger.open(url) as ledger, LedgerReader.open(url) as reader:

        def read(which: LedgerReader) -> None:
            try:
                for _ in range(30):
                    state = which.load()
                    assert totals(state) == expected(state.batches)
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
        process.join(120)
        assert process.exitcode == 0
        ledger.commit(batch(2))
        assert prove(ledger) == 2


def test_a_page_leaves_no_garbage(url: str) -> None:
    """Who opens a ledger again and again makes no cycles, which would wait for Python's look."""

    def read() -> None:
        with LedgerReader.open(url) as reader:
            reader.load()

    Ledger.open(url).close()
    read()
    gc.collect()
    gc.disable()
    try:
        read()
        assert gc.collect() < 100  # 1,200 and more, when each had an engine of its own
    finally:
        gc.enable()


def test_an_hour_is_small(file: Path) -> None:
    """Sixty entries with five series each take under 16 KiB an hour: 140 MB a year at the most."""
    hours = 20
    with Ledger.open(str(file)) as ledger:
        first = batch(1, series=300)
        ledger.commit(first)
    start = file.stat().st_size
    with Ledger.open(str(file)) as ledger:
        for hour in range(1, hours + 1):
            site_time = {(at + hour, series): n for (at, series), n in first.site_time.items()}
            ledger.commit(first._replace(before=hour, site_time=site_time))
    each = (file.stat().st_size - start) / hours
    print(f"{each:.0f} bytes for each hour of 60 entries with 5 series")
    assert each < 16 * 1024
