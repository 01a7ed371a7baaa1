"""Exactly once, whatever instant the daemon is killed at."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from gwmond.ledger.database import sqlite
from gwmond.ledger.database.errors import LedgerLocked
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.poll.batch import Batch
from tests.ledger.batches import await_commits, batch, commit_many, fork, prove, take_over
from tests.ledger.pilot_batches import poll, prove_polls

KILLS = 6
MOST = 30


def _commit_for_ever(url: str, every: list[Batch], ready: Connection, done: int) -> None:
    """Commit batch after batch; each is written to the pipe ``done`` once it is acknowledged."""
    ledger = take_over(url)
    number = ledger.load().batches
    ready.send(number)
    for following in every[number:]:
        ledger.commit(following)
        os.write(done, b".")
    ledger.close()
    time.sleep(60)


def test_killed_in_a_loop_of_commits(url: str) -> None:
    """After each of many kill -9 all rows are those of a number of whole batches, and are proven.

    Site time and pilots' time are those of the same number of polls.
    What was acknowledged is there, and at most the one batch that was under way besides.  Every
    other time the successor finds the log just as the kill left it.
    """
    every = [poll(number) for number in range(1, MOST + 1)]
    polls = 0
    for kill in range(KILLS):
        done_r, done_w = os.pipe()
        ready_r, ready_w = fork.Pipe(duplex=False)
        child = fork.Process(target=_commit_for_ever, args=(url, every, ready_w, done_w))
        child.start()
        os.close(done_w)
        assert ready_r.poll(120)
        assert ready_r.recv() == polls
        acknowledged = await_commits(done_r, kill % 3)
        time.sleep(0.005 * kill)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        while data := os.read(done_r, 65536):
            acknowledged += len(data)
        os.close(done_r)
        least = polls + acknowledged
        if not url.startswith("sqlite"):
            take_over(url).close()  # a server may still be about to finish the last commit
        if kill % 2:
            with LedgerReader.open(url) as reader:
                polls = prove_polls(reader, least, least + 1)
        else:
            with take_over(url) as ledger:
                polls = prove_polls(ledger, least, least + 1)
    assert polls > KILLS // 2


def test_killed_while_it_is_made(file: Path) -> None:
    """A kill -9 at any moment of creation leaves no ledger or a whole one, and nothing to clean."""
    made = 0
    for kill in range(20):
        child = fork.Process(target=commit_many, args=(str(file), 0))
        child.start()
        time.sleep(0.004 * kill)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        if kill % 4 == 3:
            with Ledger.open(str(file)) as ledger:
                assert ledger.load().batches == 0
                ledger.commit(batch(1))
            made += 1
            for path in file.parent.glob("ledger.sqlite*"):
                path.unlink()
    assert made == 5


def test_takeover(url: str) -> None:
    """The ledger of a living process is refused, naming it; once it is killed it is free."""
    ready_r, ready_w = fork.Pipe(duplex=False)
    done_r, done_w = os.pipe()
    every = [batch(number) for number in range(1, MOST + 1)]
    child = fork.Process(target=_commit_for_ever, args=(url, every, ready_w, done_w))
    child.start()
    try:
        assert ready_r.poll(120)
        with pytest.raises(LedgerLocked, match=rf"pid {child.pid} on ") as error:
            Ledger.open(url)
        assert "another gwmond" in str(error.value)
    finally:
        child.kill()
        child.join()
    os.close(done_w)
    os.close(done_r)
    with take_over(url) as ledger:
        prove(ledger)


def test_a_hanging_child_does_not_keep_the_lock(file: Path) -> None:
    """A child of the killed daemon that still hangs in a query does not keep its ledger locked."""
    ready_r, ready_w = fork.Pipe(duplex=False)

    def daemon() -> None:
        ledger = Ledger.open(str(file))
        ledger.commit(batch(1))
        hanging = os.fork()
        if hanging == 0:
            ready_w.send(os.getpid())
            time.sleep(60)
            os._exit(0)
        time.sleep(60)

    parent = fork.Process(target=daemon)
    parent.start()
    assert ready_r.poll(120)
    hanging = ready_r.recv()
    try:
        with pytest.raises(LedgerLocked):
            Ledger.open(str(file))
        parent.kill()
        parent.join()
        os.kill(hanging, 0)
        with Ledger.open(str(file)) as ledger:
            assert prove(ledger) == 1
    finally:
        os.kill(hanging, signal.SIGKILL)


def test_a_ledger_that_is_dropped(file: Path) -> None:
    """A ledger that nobody closed is free again once nothing refers to it."""
    ledger = Ledger.open(str(file))
    with pytest.raises(LedgerLocked, match=rf"pid {os.getpid()} on "):
        Ledger.open(str(file))
    del ledger
    gc.collect()
    Ledger.open(str(file)).close()


def test_another_program_in_a_transaction(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that holds a transaction delays a commit, then fails it; afterwards it succeeds."""
    monkeypatch.setattr(sqlite, "BUSY_S", 0.2)
    with Ledger.open(str(file)) as ledger:
        ledger.commit(batch(1))
        shell = sqlite3.connect(file, isolation_level=None)
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerLocked, match="other program's transaction") as error:
            ledger.commit(batch(2))
        assert not error.value.reopen
        with LedgerReader.open(str(file)) as reader:
            assert prove(reader) == 1
        shell.close()
        ledger.commit(batch(2))
        assert prove(ledger) == 2
