"""A snapshot made by hand, in which everything occurs that can be shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gwmond.model.entries.confidence import confidence
from gwmond.model.entries.evaluation import (
    Capacity,
    CapacityEvidence,
    DemandTotals,
    EntryJobs,
    EntryTime,
    Evaluation,
    JobCounts,
    Part,
)
from gwmond.model.entries.suspects import Finding, Suspect
from gwmond.model.factory.reconciliation import Cause, Reconciled, Reconciliation
from gwmond.model.factory.totals import FactoryKind, RunTime
from gwmond.model.facts import (
    Berth,
    Cursor,
    EntryKey,
    Evidence,
    FrontendJobs,
    JobCount,
    Limit,
    Reported,
    Stalled,
    Status,
)
from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.model.names import Together
from gwmond.model.pilot_life import Category, Measure
from gwmond.model.pilots.stored_pilots import Counted, CountKey, PilotSeries
from gwmond.model.poll.snapshot import (
    Checked,
    Credential,
    GpuUse,
    IdleReason,
    KeptNames,
    LedgerStatus,
    PilotGroup,
    PilotTime,
    PilotUnits,
    Snapshot,
    TraceExport,
)
from gwmond.model.problem_names import ProblemName
from gwmond.model.states import State
from gwmond.model.times import HOUR_US, Period
from gwmond.model.totals import SiteKey, Total
from gwmond.model.units import Resource
from gwmond.sites.entry_totals import combine
from tests.build.experiments import experiment
from tests.build.facts import NOW, request

LIMIT = Limit("GlideClientLimitTotalGlideinsPerEntry", "count=10, limit=10")
STALLED = Stalled("", 3, 172_800.0, 1)
GPUS: dict[tuple[str, GpuUse], int] = {("A100", "busy"): 4, ("A100", "idle"): 0}
STARVING = EntryKey("T2_Starving", "starving-ce1")
BORED = EntryKey("T2_Bored", "bored-ce1")
BORED2 = EntryKey("T2_Bored", "bored-ce2")
ODD = EntryKey('<b>&"Odd"\\', "odd")
DARK = EntryKey("T2_Dark", "dark-ce1")
MONITOR = Monitor(*range(101, 101 + len(Monitor._fields)))  # each value tells its field
STATES = {
    STARVING: State.PROVISIONING_BOTTLENECK,
    BORED: State.INSUFFICIENT_DEMAND,
    BORED2: State.FULL,
    ODD: State.FILLING,
    EntryKey("T2_Busy", "busy-ce1"): State.SATURATED,
    EntryKey("T2_Down", "down-ce1"): State.DOWN,
    DARK: State.UNKNOWN,
}


def row(
    key: EntryKey,
    resource: Resource,
    state: State,
    capacity: int,
    provisioned: int | None,
    *parts: tuple[State, str, int],
    evidence: Evidence = "measured",
    rests_on: CapacityEvidence = "peak",
) -> EntryTime:
    """A row whose spare units are those of its parts (state, reason, milliunits)."""
    made = tuple(Part(*part) for part in parts)
    spare = sum(part.amount for part in made) // 1000
    reason = made[0].reason if made else ""
    capacity_of = Capacity(capacity, rests_on)
    untaken = None if provisioned is None else 2500 if key == BORED2 else 0
    return EntryTime(
        key, resource, state, reason, capacity_of, provisioned, spare, made, evidence, untaken
    )


def evaluation() -> Evaluation:
    """Every state, a part that is no whole unit, GPUs, unknown pilots and unknown demand."""
    short = (State.PROVISIONING_BOTTLENECK, "frontend_limit", 6500)
    rows = [
        row(STARVING, "cpu", STATES[STARVING], 100, 90, short, (BORED_STATE, "", 3500)),
        row(STARVING, "gpu", State.FULL, 4, 4),
        row(BORED, "cpu", BORED_STATE, 50, 20, (BORED_STATE, "", 30_000), evidence="estimated"),
        row(BORED2, "cpu", State.FULL, 10, 10, rests_on="pledge"),
        row(ODD, "cpu", State.FILLING, 8, 0, (State.FILLING, "", 8000), rests_on="limit"),
        row(EntryKey("T2_Busy", "busy-ce1"), "cpu", State.SATURATED, 40, 30),
        row(EntryKey("T2_Down", "down-ce1"), "cpu", State.DOWN, 5, 0, (State.DOWN, "", 5000)),
        row(DARK, "cpu", State.UNKNOWN, 7, None, (State.UNKNOWN, "pilots", 7000)),
    ]
    return Evaluation(
        {(r.entry, r.resource): r for r in sorted(rows)},
        {
            ("ap1", "cpu"): DemandTotals(20_000, 5000, 6500, 8500),
            ("ap2", "cpu"): DemandTotals(3000, None, None, None),
        },
        {
            STARVING: EntryJobs(JobCounts(12, 9, 4), 6.5, 2, 0, -1, whole=True),
            DARK: EntryJobs(JobCounts(0, 0, 0), None, None, None, None, whole=False),
        },
    )


MOVED: dict[Counted, int] = {
    "files_moved": 40,
    "files_failed": 2,
    "files_again": 3,
    "bytes_moved": 5_000_000,
    "moving_micros": 61_500_000,
}
BORED_STATE = State.INSUFFICIENT_DEMAND


def status(source: str, kind: str, problem: ProblemName | None = None, **more: Any) -> Status:
    up = not problem
    made = Status(
        source=source,
        kind=kind,
        up=up,
        duration_s=0.25,
        cpu_s=0.125 if up else 0,
        peak_mib=32.0 if up else 0,
        last_success=NOW - 5.0,
        records=7 if up else 0,
        skipped=0,
        problem=problem,
        detail=f"what happened <to> {source}" if problem else "",
    )
    return made._replace(**more)


def pilot_time() -> PilotTime:
    """Pilots' time with two outcomes of one category, a GPU, and a counter that has halted."""
    began = NOW - 3600.0

    def series(
        category: Category,
        outcome: str = "",
        resource: Resource = "cpu",
        measure: Measure = "resource",
    ) -> PilotSeries:
        return PilotSeries(
            resource, measure, category, outcome, *STARVING, "frontend.main", "measured"
        )

    good, own, none = Category.GOODPUT, Category.PILOT_OVERHEAD, Category.UNCLASSIFIED
    short = State.PROVISIONING_BOTTLENECK
    return PilotTime(
        shown={
            series(good, "exit_zero"): Total(7_200_000_000, began),
            series(good, "exit_nonzero"): Total(600_000_001, began + 60),
            series(good, "exit_zero", measure="canonical"): Total(3_600_000_000, began),
            series(own): Total(1_000_000, began),
            series(own, resource="gpu", measure="canonical"): Total(2_000_000, began),
            series(own, measure="canonical")._replace(evidence="estimated"): Total(5, began),
        },
        counted={
            CountKey("runs", good, "exit_zero", *STARVING, "frontend.main"): Total(12, began),
            CountKey("pilots", own, "", *STARVING, "frontend.main"): Total(3, began),
            CountKey("verdicts", short, "true", *STARVING, "frontend.main"): Total(14, began),
            CountKey("verdicts", short, "false", *STARVING, "frontend.main"): Total(1, began),
            CountKey("verdicts", BORED_STATE, "true", *BORED, ""): Total(2, began),
            CountKey(
                "failed_transfers", none, "input root se.example.org", *STARVING, "frontend.main"
            ): Total(7, began),
            **{
                CountKey(
                    what, none, "input osdf cache.example.org", *STARVING, "frontend.main"
                ): Total(number, began)
                for what, number in MOVED.items()
            },
            CountKey("stage_in", none, "60", *STARVING, "frontend.main"): Total(2, began),
            CountKey("stage_in_micros", none, "", *STARVING, "frontend.main"): Total(
                95_000_000, began
            ),
            CountKey("assumed", own, "size", *STARVING, "frontend.main"): Total(5_000_000, began),
            CountKey("assumed_gpu", own, "gpus", *STARVING, "frontend.main"): Total(
                7_000_000, began
            ),
        },
        unsettled={("cpu", STARVING, "frontend.main"): 90_000_000},
        suspects=(
            Suspect(
                "node",
                "n1",
                STARVING.entry,
                STARVING.site,
                Finding(9, 9, 1.5, 1e-9, 1e-7),
                "fails",
                40,
                39,
            ),
        ),
        residual={},
        contradictions={"end_us": 2},
        known_us=round((NOW - 120) * 1e6),
        factory={
            ("starving-ce1", "frontend.main", kind): Total(number, began)
            for number, kind in enumerate(FactoryKind, 1)
        },
    )


def reconciliation() -> Reconciliation:
    """A day with every cause for a difference, and an entry without numbers of the factory."""
    until_us = round(NOW // 3600 * 3600 * 1e6)
    row = Reconciled("starving-ce1", 3, 9 * 10**12, 72 * 10**12, RunTime(5 * 10**12, 7), 6 * 10**12)
    row.numbers = {kind: number for number, kind in enumerate(FactoryKind, 1000)}
    row.factory_us = 8_000_000_500_000
    for number, cause in enumerate(Cause, 1):
        row.add(cause, -number * 1_500_000)
    period = Period(until_us - 24 * HOUR_US, until_us)
    return Reconciliation(period, [Reconciled("bored-ce1", pilots_us=1), row], 0)


def snapshot(**changes: Any) -> Snapshot:
    """The snapshot, with changes."""
    requests = (
        request(STARVING, limits=(LIMIT,))._replace(
            monitor=MONITOR._replace(
                status_idle=0, status_wait=0, status_running=11, status_held=2, asked_idle=0
            )
        ),
        request(STARVING, group="frontend.other", requested_max=None, jobs_matching=None),
        request(ODD, pending=3, running=None, submitted_wait=1),
    )
    units: dict[Resource, PilotUnits] = {
        "cpu": PilotUnits(90, 80, 6),
        "gpu": PilotUnits(4, 4, 0),
    }
    pilots = {
        Berth(STARVING, "frontend.main"): PilotGroup(
            *(9, 1, 2, 1, units, 3),
            {("cpu", "beside_jobs"): 2, ("cpu", "retirement"): 4},
            STALLED,
            GPUS,
        ),
        Berth(BORED, ""): PilotGroup(
            0, 5, 0, 0, {"cpu": PilotUnits(20, 0, 20), "gpu": PilotUnits(0, 0, 0)}
        ),
    }
    made = Snapshot(
        pool_time=NOW,
        made_at=NOW + 0.5,
        started_at=NOW - 3600.0,
        poll_interval=60.0,
        poll_seconds=1.25,
        stages={"query": 1.0, "evaluation": 0.25},
        polls=60,
        speed=1.0,
        sources=(
            status("ap1", "demand", skipped=2),
            status("ap2", "demand", ProblemName.TIMEOUT, last_success=None),
            status("cm", "slots"),
            status("cm", "startds"),
        ),
        records={("cm", "slots"): 700, ("ap1", "demand"): 40},
        problems={("ap2", ProblemName.TIMEOUT): 3, ("cm", ProblemName.BAD_SIZE): 1},
        evaluation=evaluation(),
        credentials=(Credential("http.tls_cert", NOW, NOW + 7776000),),
        residual=0,
        entries=combine(requests),
        requests=requests,
        pilots=pilots,
        jobs=(JobCount("ap1", "", "idle", 20), JobCount("ap1", "cms.prod", "running", 90)),
        reported=Reported((FrontendJobs("frontend", 30, 10, None), FrontendJobs("old", 9, 9, 5))),
        ledger=LedgerStatus(True, "", NOW + 0.4, 0),
        totals={
            SiteKey("cpu", "provisioned", "", *STARVING): Total(324_000_000_000, NOW - 3600.0),
            SiteKey("cpu", "provisioning_bottleneck", "frontend_limit", *STARVING): Total(
                1_234_567, NOW - 60.0
            ),
        },
        htcondor_version="25.14.1",
        pilot_time=pilot_time(),
        cursors=(
            Cursor("ap1", "epochs", "", round(NOW * 1e6)),
            Cursor("ap2", "epochs", "", None),
        ),
        reconciliation=reconciliation(),
        idle=(
            IdleReason("no_pilot", "frontend_limit", STARVING.site, "the admin", 12.5, 15.5, 2.0),
            IdleReason("no_pilot", "frontend_limit", STARVING.site, "another", 0.5, 0.5, 0.0),
            IdleReason("nowhere", "unknown_site", "none", "the jobs' users", 7.5, 7.5, 0.0),
        ),
        confidence=confidence(
            experiment(n, State.PROVISIONING_BOTTLENECK, ran=n < 15) for n in range(20)
        ),
        verdicts={STARVING: Checked(14, 15), BORED: Checked(2, 2), BORED2: Checked(0, 1)},
        entry_monitors={STARVING: EntryMonitor(MONITOR._replace(status_stage_out=None), 7, 5, 50)},
        traces=TraceExport(
            spans={"accepted": 1200, "refused": 5},
            requests={"accepted": 3, "refused": 1, "failed": 2},
            settled={"exported": 240, "not_chosen": 60, "skipped": 7, "gone": 0},
            sent_bytes=36_000,
            corrected=4,
            backlog_s=12.5,
            last_success=NOW - 30.0,
        ),
    )
    return replace(made, names=names(made), **changes)


def names(made: Snapshot) -> KeptNames:
    """All that occurs is kept apart, besides which there are many more."""
    series = made.pilot_time.shown if made.pilot_time is not None else {}
    counts = made.pilot_time.counted if made.pilot_time is not None else {}
    places = {
        Berth(EntryKey(pilot_series.site, pilot_series.entry), pilot_series.group)
        for pilot_series in series
    }
    places |= {Berth(EntryKey(count.site, count.entry), count.group) for count in counts}
    places |= {Berth(request.entry, request.group) for request in made.requests}
    entries = {key for key, _ in (*places, *made.evaluation.rows, *made.pilots)}
    entries |= {EntryKey(site_key.site, site_key.entry) for site_key in made.totals}
    together = (Together("entries", 98_000, 2000, ("X/x", "Y/y")),)
    return KeptNames(frozenset(entries), frozenset({*places, *made.pilots}), frozenset(), together)
