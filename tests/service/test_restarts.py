"""Restarts are invisible: the same facts give the same ledger, wherever gwmond was stopped.

Random histories are told to a daemon's keeper that goes on all the time, and to one that is
stopped and killed at random places (see ``tests.build.restarted``).  At every restart the partition
is exact, the residual 0, no counter falls and ``ledger check`` is clean; in the end both ledgers
hold the same.

What may differ, and is not among these histories, as it rests on what was known when:

- the size that is assumed of a pilot that reported none is the usual one of the entry's pilots:
  after a restart of those that the ledger has, before of those that were shown meanwhile, too.  The
  same where pilots of one entry name several sites.  So all pilots of an entry here are alike;
- where the unit of memory was changed, pilots that were posted keep theirs: sums are exact, and not
  those of a daemon without the change;
- what collectors and slots showed while gwmond was stopped, or in a poll that was killed: by that
  are known the end of a pilot without files, the end of a run without a record, and that a pilot
  never registered.  The other keeper does not see those polls either;
- a pilot whose ads a collector left out for a poll seems to have ended, and comes back: runs that
  were decided by that end are decided anew only while they are in memory.  Where runs are pruned
  before the verdict on them falls, other runs of their pilot are missing after a restart.  Of 8,000
  random histories these two changed ten (``make bench``, seeds from 20,000,000 on).

``tests.daemon.test_stopped_meanwhile`` does it once on a real pool: there records tell all of it.
"""

from __future__ import annotations

import pytest

from tests.build.restarted import history, play

CHUNKS, A_CHUNK = 20, 10


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_restart_changes_nothing(chunk: int) -> None:
    """``make bench BENCH_ARGS=restarts`` tells more of them."""
    for seed in range(chunk * A_CHUNK, (chunk + 1) * A_CHUNK):
        assert play(history(seed)).wrong == [], f"--seed {seed} --histories 1"
