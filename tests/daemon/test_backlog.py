"""Records that real schedds have written while gwmond was away: each is accounted once."""

from __future__ import annotations

import sqlite3
from argparse import Namespace
from pathlib import Path

from gwmond.ledger.store import Ledger
from tests.bench.backlog import Bench
from tests.bench.feigned_runs import EPOCHS
from tests.bench.harness import NO_DNS, schedds
from tests.pool.condor import CondorPool

RUNS, SCHEDDS, PILOTS = 9000, 2, 500


def test_a_backlog_is_accounted_once_and_nothing_is_corrected(tmp_path: Path) -> None:
    """Nine hours of runs on pilots most of which have ended; those that are there are shown.

    The records are those of a real job, many times over; a third of a schedd's is read at once.
    """
    options = Namespace(pilots=PILOTS, schedds=SCHEDDS, period=1800, records=3000)
    config = NO_DNS + EPOCHS + schedds(SCHEDDS)
    with CondorPool(config=config) as pool:
        bench = Bench(pool, tmp_path, options)
        bench.write(RUNS)
        told = bench.gwmond()
    assert told["records"] == RUNS
    assert told["corrections"] == 0
    with sqlite3.connect(tmp_path / "ledger") as connection:
        rows = connection.execute("SELECT job, start_us, end_us, cores FROM runs").fetchall()
    truth = [bench.feigned.run(number) for number in range(RUNS)]
    of_truth = [(run.job, run.start * 10**6, run.end * 10**6, 1 + run.first % 2) for run in truth]
    assert sorted(rows) == sorted(of_truth)
    ledger = Ledger.open(str(tmp_path / "ledger"))
    assert not [found for found in ledger.check() if found.micros]
    ledger.close()
