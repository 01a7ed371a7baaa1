"""A black hole while gwmond is stopped: the verdicts are those of a daemon that ran all the time.

So are those of a daemon that was first started when all was over, with an empty ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from gwmond.model.pilot_life import Category, RunKey
from tests.daemon.running import RunningDaemon, patient
from tests.pool.adtext import Value
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.pool.sandbox import wait_until

TABLES: dict[str, dict[str, object]] = {
    **patient(2),
    "pilots": {
        "settle_delay": "4s",
        "outcome_wait": "20s",
        "verdict_after": "60s",
        "claims_every": "4s",
    },
}
GOOD = 'TARGET.GLIDEIN_Site =?= "Good"'
JOBS = 40


def of_site(site: str) -> dict[str, Value]:
    return {"GLIDEIN_Site": site, "GLIDEIN_Entry_Name": site.lower()}


def known(running: RunningDaemon, pilots: Sequence[Pilot]) -> dict[str, dict[RunKey, object]]:
    """What a ledger has of the runs on each pilot; no run is left out."""
    return {
        pilot.name: {
            run.key: (
                *(run.start_us, run.end_us, run.size, run.user, run.outcome, run.result),
                {kind: micros for kind, micros in run.settled.items() if micros},
            )
            for run in running.stored(pilot.name)[1]
        }
        for pilot in pilots
    }


def categories(running: RunningDaemon, pilot: Pilot) -> set[Category | None]:
    """The categories of the runs on a pilot; None: not decided."""
    runs = running.stored(pilot.name)[1]
    return {run.outcome and run.outcome.category for run in runs}


def test_verdicts_do_not_depend_on_when_gwmond_ran(
    epochs: CondorPool, daemon: Callable[..., RunningDaemon]
) -> None:
    """What the pilots did besides is left out: each daemon looks at them at times of its own."""

    def started(name: str) -> RunningDaemon:
        return daemon(epochs.collector, tables=TABLES, name=name, ledger=name)

    schedd = epochs.schedds[0]
    names = ("good1", "good2")
    pilots = [
        epochs.start_pilot(name, cores=2, memory=4096, attrs=of_site("Good")) for name in names
    ]
    hole = epochs.start_pilot("hole", attrs=of_site("Hole"), config="USER_JOB_WRAPPER = /bin/false")
    pilots.append(hole)
    always, stopped = started("always"), started("stopped")
    stopped.stop()

    bad = epochs.submit(schedd, 4, owner="bob", executable="/bin/false", requirements=GOOD)
    either = f'{GOOD} || TARGET.GLIDEIN_Site =?= "Hole"'
    jobs = epochs.submit(schedd, JOBS, seconds=2, requirements=either)
    mine = f"ClusterId == {bad} || ClusterId == {jobs}"
    wait_until("all jobs to end", lambda: not epochs.jobs(schedd, mine))

    def settled(running: RunningDaemon) -> bool:
        runs = [run for of in known(running, pilots).values() for run in of]
        undecided = any(None in categories(running, pilot) for pilot in pilots)
        return len(runs) >= JOBS + 4 and not undecided

    def same(running: RunningDaemon) -> bool:
        return known(running, pilots) == known(always, pilots)

    wait_until("the verdicts", partial(settled, always))
    assert categories(always, hole) == {Category.MISCONFIGURATION_BADPUT}
    for pilot in pilots[:-1]:
        assert categories(always, pilot) == {Category.GOODPUT}

    stopped.start()
    first = started("first")
    for running in (stopped, first):
        wait_until("the same verdicts", partial(settled, running))
        wait_until("the same amounts", partial(same, running), timeout=60)
    for running in (always, stopped, first):
        assert running.metrics().sum("gwmond_ledger_residual_seconds") == 0
        running.command("ledger", "check")
