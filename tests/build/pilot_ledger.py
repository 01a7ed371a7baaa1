"""A real ledger with a few pilots, written poll by poll by the accounting, whose sums are known.

Times are seconds from a base.  Three pilots, all of 4 cores and 8000 MiB (4 canonical units):

- ``glidein_1@wn1`` (Site-A, entry-a, one GPU) from 0 to 7200, then it takes leave.  alice's job 1
  runs from 600 to 4200 on 2 cores and exits 0, bob's job 2 from 1200 to 3000 on 1 core and 1 GPU
  and exits 1; job 3 of alice's is cut off from 6000 on by the pilot's end, on 4 cores.
- ``glidein_2@wn2`` (Site-B, entry-b) from 0 to 3600, never runs a job.
- ``glidein_3@wn3`` (Site-A, entry-a2) from 3600 on, runs ``<b>carol`` 's job 4 on 4 cores from
  3900 on, and is still there at the last poll, at 30000.
"""

from __future__ import annotations

from typing import NamedTuple

from gwmond.ledger.store import Ledger
from gwmond.model.elapsed import Tick
from gwmond.model.facts import EntryKey, Pilot, Size
from gwmond.model.poll.batch import Batch
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobRecord, RunFact, Source
from gwmond.model.times import SECOND_US
from gwmond.model.totals import SiteKey, split_hours
from gwmond.pilots.accounting import PilotAccounting
from gwmond.pilots.life.rules import Rules
from gwmond.reports.sites.polls import packed
from gwmond.reports.sites.sites import entry_rows
from tests.build.accounting import Steps
from tests.build.snapshots import snapshot

LAST = 30_000
POLL = 300
BASE = 1_700_006_400  # a full hour: 2023-11-15 00:00 UTC
ZERO = Ending(over=True, completed=True, exit_code=0, own_accord=True, began=True, early=False)
ONE = ZERO._replace(exit_code=1)
CUT = Ending(over=True, vacate_code=1005, began=True)


class Told(NamedTuple):
    """A run of a job; ``end`` None: it still runs."""

    job: int
    pilot: int
    user: str
    start: int
    end: int | None
    cores: int
    gpus: int
    ending: Ending
    sources: tuple[Source, ...] = (Source.EPOCH_HISTORY,)


LIVES = {
    1: (0, 7200, "Site-A", "entry-a", 1),
    2: (0, 3600, "Site-B", "entry-b", 0),
    3: (3600, LAST + 1, "Site-A", "entry-a2", 0),
}
RUNS = (
    Told(
        *(1, 1, "alice@example.org", 600, 4200, 2, 0, ZERO),
        (Source.STARTD_HISTORY, Source.EPOCH_HISTORY, Source.SCHEDD_HISTORY),
    ),
    Told(2, 1, "bob@example.org", 1200, 3000, 1, 1, ONE),
    Told(3, 1, "alice@example.org", 6000, 7200, 4, 0, CUT),
    Told(4, 3, "<b>carol|*", 3900, None, 4, 0, Ending()),
)


def write(url: str, base: int = BASE, hostile: str = "") -> None:
    """Make the ledger; ``hostile`` is put into the name of Site-B."""
    with Ledger.open(url) as ledger:
        steps = Steps(PilotAccounting(ledger.load(), Rules(refresh_us=0)), ledger)
        done = 0
        for at in range(0, LAST + 1, POLL):
            now = (base + at) * SECOND_US
            shown = [
                _shown(pilot, base, at, hostile)
                for pilot, (start, end, *_) in LIVES.items()
                if start <= at <= end
            ]
            steps.add_ads(now, POLL * SECOND_US, shown, complete=True)
            claims = [_claim(run, base) for run in RUNS if run.start <= at < (run.end or LAST + 1)]
            steps.add_claims(now, claims, complete=True)
            records = [
                _record(run, source, base)
                for run in RUNS
                if run.end is not None and done < run.end + 60 <= at
                for source in run.sources
            ]
            steps.add_records(records)
            done = at
            steps.settle(now, (base + at - 120) * SECOND_US)
            steps.store(now)
        _site_time(ledger, base)


def _shown(pilot: int, base: int, at: int, hostile: str) -> Pilot:
    start, _, site, entry, gpus = LIVES[pilot]
    return Pilot(
        name=f"glidein_{pilot}@wn{pilot}.example.org",
        started=base + start,
        entry=EntryKey(site + (hostile if pilot == 2 else ""), entry),
        group="frontend.main",
        factory=f"factory-{pilot % 2}",
        size=Size(4, 8000, gpus),
        free=(),
        jobs=(),
        accepting=True,
        remaining_s=None,
        last_heard=base + at,
        node=f"wn{pilot}.example.org",
        factory_job=f"ce.example.org#{pilot}.0",
        retires=base + start + 40_000,
        dies=base + start + 50_000,
    )


def _fact(run: Told, source: Source, base: int) -> RunFact:
    end = run.end if source is not Source.LIVE_SLOT else None
    later = 200 if source is Source.SCHEDD_HISTORY else 0  # which contradicts the others
    return RunFact(
        source,
        f"schedd.example.org#{run.job}.0#{base}",
        None if source is Source.LIVE_SLOT else 1,
        (base + (run.start if end is None else end)) * SECOND_US,
        None,
        (base + run.start) * SECOND_US,
        None if end is None else (base + end + later) * SECOND_US,
        Size(run.cores, run.cores * 2000, run.gpus),
        run.user,
        f"{run.user} run.sh",
        Ending() if end is None else run.ending,
    )


def _record(run: Told, source: Source, base: int) -> JobRecord:
    fact = _fact(run, source, base)
    return JobRecord(fact, f"glidein_{run.pilot}@wn{run.pilot}.example.org", None)


def _claim(run: Told, base: int) -> JobRecord:
    return _record(run, Source.LIVE_SLOT, base)


def _site_time(ledger: Ledger, base: int) -> None:
    tick = Tick(float(base + LAST), float(LAST), float(LAST), "boot")
    states = ("provisioning_bottleneck", 7200.0), ("insufficient_demand", 1800.0)
    spent = {
        (hour, SiteKey("cpu", state, "reason", "Site-A", "entry-a")): micros
        for state, seconds in states
        for hour, micros in split_hours(
            round(seconds * SECOND_US), base * SECOND_US, (base + 3600) * SECOND_US
        )
    }
    before, now_us = ledger.load().batches, (base + LAST) * SECOND_US
    early = Tick(float(base), 0.0, 0.0, "boot")
    rows = entry_rows(snapshot())
    ledger.commit(Batch(before, now_us, tick=early, found=packed(rows, (), ())))
    ledger.commit(Batch(before + 1, now_us, tick=tick, site_time=spent, site_since=float(base)))
