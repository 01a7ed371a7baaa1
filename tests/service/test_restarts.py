"""Restarts are invisible: the same facts give the same ledger, wherever gwmond was stopped.

Random histories are told to a daemon's keeper that goes on all the time, and to one that is
stopped and killed at random places (see ``tests.build.restarted``).  At every restart the partition
is exact, the residual 0, no counter falls and ``ledger check`` is clean; in the end both ledgers
hold the same.

What may differ, and is not among these histories, as it rests on what was known when:

- the size that is assumed of a pilot that reported none is the usual one of the entry's pilots:
  after a restart of those that the ledger has, before of those that were shown meanwhile, too.  The
  same where pilots of one entry name several sites.  So all pilots of an entry here are alike.
  What only its factory's queue has is waited for longer after a restart: others of its entry may
  have reported by then.  So one has before;
- where the unit of memory was changed, pilots that were posted keep theirs: sums are exact, and not
  those of a daemon without the change;
- what collectors and slots showed while gwmond was stopped, or in a poll that was killed: by that
  are known the end of a pilot without files, the end of a run without a record, and that a pilot
  never registered.  The other keeper does not see those polls either.

Of 8,000 random histories (``make bench``, seeds from 20,000,000 on) ten differed once; most of them
are examples here.  Of 1,186 later ones (from 31,000,000 on) none did.

``tests.daemon.test_stopped_meanwhile`` does it once on a real pool: there records tell all of it.
"""

from __future__ import annotations

import pytest

from tests.build.restarted import history, play

CHUNKS, A_CHUNK = 6, 10

WERE_WRONG = {
    20_000_235: "a pilot comes back whose end was that of a run",
    20_003_098: "a factory's queue has another end of a pilot, told before and after a decision",
    20_005_504: "a later run of a job is past its retention before the verdict on the first",
    20_006_373: "a later run of a job is on a pilot that is closed",
    20_006_765: "a pilot comes back on which a run had no record",
    20_007_654: "a later run is past its retention before the pilot of the first is closed",
    20_007_686: "the same, of many runs",
    20_007_958: "a pilot comes back, and then its output tells its end",
}
"""Seeds of histories in which a restart once changed something, and what."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_restart_changes_nothing(chunk: int) -> None:
    """``make bench BENCH_ARGS=restarts`` tells more of them."""
    for seed in range(chunk * A_CHUNK, (chunk + 1) * A_CHUNK):
        assert play(history(seed)).wrong == [], f"--seed {seed} --histories 1"


@pytest.mark.parametrize("seed", WERE_WRONG, ids=WERE_WRONG.get)
def test_a_restart_that_once_changed_something_does_not(seed: int) -> None:
    """The classes that random histories have found; each failed before it was mended."""
    assert play(history(seed)).wrong == [], WERE_WRONG[seed]
