"""A poll's batch is stored exactly once and as a whole, whatever instant it is killed at."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.connection import Connection

from gwmond.ledger import LedgerReader
from gwmond.model.stored_pilots import PilotBatch
from tests.ledger import batches
from tests.ledger.batches import await_commits, fork, take_over
from tests.ledger.pilot_batches import batch, prove_pilots

KILLS = 10
MOST = 45


def _commit_for_ever(url: str, every: list[PilotBatch], ready: Connection, done: int) -> None:
    """Commit batch after batch; each is written to the pipe ``done`` once it is acknowledged."""
    ledger = take_over(url)
    number = ledger.load_pilots().batches
    ready.send(number)
    for pilots in every[number:]:
        number += 1
        ledger.commit(batches.batch(number)._replace(problems=(), pilots=pilots))
        os.write(done, b".")
    ledger.close()
    time.sleep(60)


def _prove_sites(ledger: LedgerReader, polls: int) -> None:
    state = ledger.load()
    assert (state.commits, state.tick) == (polls, batches.tick(polls))
    assert batches.totals(state) == batches.expected(polls)


def test_killed_in_a_loop_of_commits(url: str) -> None:
    """After each kill -9 all rows are those of a number of whole batches, and are proven.

    Site time and pilots' time are those of the same number of polls.
    What was acknowledged is there, and at most the one batch that was under way besides.
    """
    every = [batch(number) for number in range(1, MOST + 1)]
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
                polls = prove_pilots(reader, least, least + 1)
                _prove_sites(reader, polls)
        else:
            with take_over(url) as ledger:
                polls = prove_pilots(ledger, least, least + 1)
                _prove_sites(ledger, polls)
    assert polls > 3
