"""Reads what a report is made of, some pilots at a time, while the daemon writes.

Units: times are microseconds since the epoch, amounts are micros.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gwmond.config.settings import Config
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.facts import Place
from gwmond.model.pilot_life import KINDS, Assumption, Measure, Outcome
from gwmond.model.pilots.stored_pilots import PilotFilter, PilotId, PilotRow
from gwmond.model.times import HOUR_US
from gwmond.model.units import Resource
from gwmond.reports.failures.failures import Failures
from gwmond.reports.ledger.ledger_reading import pilots_ended, rows_ended, windows
from gwmond.reports.ledger.open_runs import later_us, open_runs, rules
from gwmond.reports.render.categories import CPU
from gwmond.reports.report.groupings import (
    GROUPINGS,
    OF_ADS,
    STEPS,
    Facts,
    of_ads,
    of_pilot,
    of_run,
    of_series,
)
from gwmond.reports.report.report import SITE_STATES, Group, Key, Report, Scope
from gwmond.reports.report.report_suspects import suspected
from gwmond.reports.stored.parts import by_part
from gwmond.reports.stored.phases import divided
from gwmond.reports.stored.pilot_sums import PilotSums
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot, stands_in
from gwmond.reports.stored.unsettled import unsettled


@dataclass(slots=True)
class _Made:
    """A report in the making."""

    scope: Scope
    memory_per_unit_mib: int
    groups: dict[Key, Group] = field(default_factory=dict)
    total: Group = field(default_factory=Group)
    series: dict[int, Group] = field(default_factory=dict)

    def of(self, facts: Facts, *, series: bool = False) -> Iterator[Group]:
        """Yield the groups to which something belongs: its own, all, and its step of time."""
        yield self.groups.setdefault(self._key(facts), Group())
        yield from self.whole(facts) if series else [self.total]

    def whole(self, facts: Facts) -> Iterator[Group]:
        """Yield the groups to which all belongs that is counted: all, and its step of time."""
        step = self.scope.step_us
        yield self.total
        yield self.series.setdefault(facts["time_us"] // step * step, Group())

    def known(self, facts: Facts) -> Iterator[Group]:
        """Yield the groups to which something belongs, its own only if it is there already."""
        if (group := self.groups.get(self._key(facts))) is not None:
            yield group
        yield self.total

    def _key(self, facts: Facts) -> Key:
        return tuple(GROUPINGS[name].key(facts) for name in self.scope.by)

    def every(self) -> list[Group]:
        return [*self.groups.values(), self.total, *self.series.values()]


def gather(
    ledger: LedgerReader,
    scope: Scope,
    config: Config,
    *,
    counted: bool = True,
    failures: bool = False,
) -> Report:
    """Make a report as a deployment is configured, with what its runs wait for.

    Without counting it is only possible for time spent, and fast.  ``failures``: with those of
    validations, and places where jobs succeed far too soon.
    """
    made = _Made(scope, config.canonical.memory_mib)
    if scope.basis == "time_spent":
        _hours(ledger, made)
        if scope.of_pilots:
            _unsettled(ledger, made)
    if scope.counts_pilots and (counted or scope.basis == "pilots_ended"):
        _pilots_ended(ledger, made)
    if counted or scope.basis == "runs_ended":
        _runs_ended(ledger, made)
    if scope.of_sites:
        _site_time(ledger, made)
    if scope.of_verdicts:
        _verdicts(ledger, made)
    _fill(made, counted or scope.basis != "time_spent")
    why = Failures() if failures else None
    if why is not None:
        for rows in rows_ended(ledger, scope.period, scope.place):
            why.take(rows)
    suspects = suspected(ledger, scope.period, scope.place) if failures else ()
    waits = open_runs(ledger, rules(config), later_us(config), scope.place, scope.period)
    return Report(
        *(scope, made.groups, made.total, made.series, counted, why), suspects=suspects, waits=waits
    )


def _hours(ledger: LedgerReader, made: _Made) -> None:
    first, last = made.scope.period.hours
    for day in range(first, last + 1, 24):  # not all of a year in memory
        for hour, series, micros in ledger.pilot_hours(day, min(day + 23, last)):
            if not micros or not made.scope.place.covers(series.site, series.entry, series.group):
                continue
            for group in made.of(of_series(series, hour * HOUR_US), series=True):
                group.sums[series.resource, series.measure, series.category] += micros
                if not series.outcome and group.own is not None:
                    group.own[series.resource, series.measure] += micros
                if series.evidence == "estimated" and group.estimated is not None:
                    group.estimated[series.resource, series.measure] += micros


def _unsettled(ledger: LedgerReader, made: _Made) -> None:
    """Add the pilots' time in the period that is not settled."""
    scope = made.scope
    step = min((STEPS[by] for by in scope.by if by in STEPS), default=scope.period.length_us)
    for pilot, since, amounts in unsettled(
        ledger, scope.place, scope.period, step, made.memory_per_unit_mib
    ):
        for group in made.of(of_pilot(pilot, since)):
            group.unsettled = (group.unsettled or Counter()) + Counter(amounts)


def _pilots_ended(ledger: LedgerReader, made: _Made) -> None:
    scope, whole = made.scope, made.scope.basis == "pilots_ended"
    as_of = AsOf(memory_per_unit_mib=made.memory_per_unit_mib)
    for pilot in pilots_ended(ledger, scope.period, scope.place, as_of):
        assert pilot.row.end_us is not None
        facts = of_pilot(pilot, pilot.row.end_us)
        divide = "part" in scope.by
        for part, settled in by_part(pilot).items() if divide else ():
            group, *_ = made.of({**facts, "part": part})
            group.sums.update(settled)
            group.own = group.estimated = None
        for group in made.whole(facts) if divide else made.of(facts, series=whole):
            group.ended = group.ended or PilotSums()
            group.ended.add(pilot)
            if whole:
                _add(group, pilot)


def _add(group: Group, pilot: StoredPilot) -> None:
    group.sums.update(pilot.settled)
    group.unsettled = (group.unsettled or Counter()) + Counter(pilot.unsettled)
    for (resource, measure, _, outcome), micros in pilot.row.settled.items():
        if group.own is not None and not outcome:
            group.own[resource, measure] += micros
    if pilot.estimated is None:
        group.estimated = None
    elif group.estimated is not None:
        group.estimated.update(pilot.estimated)


def _runs_ended(ledger: LedgerReader, made: _Made) -> None:
    scope = made.scope
    whole = scope.basis == "runs_ended"
    sized = _of_assumed_size(ledger, scope) if whole else frozenset()
    by_pilot = _of_ads(ledger, scope) if OF_ADS.intersection(scope.by) else {}
    nothing = dict.fromkeys(OF_ADS, "")
    for run, identity in ledger.run_rows(scope.period, scope.place):
        end_us, outcome = run.end_us, run.outcome
        if end_us is None or not scope.period.since_us <= end_us < scope.period.until_us:
            continue
        if outcome is None and {"category", "outcome"} & set(scope.by):
            made.total.open_runs = (made.total.open_runs or 0) + 1
            continue
        facts = {**of_run(run, identity, end_us, scope.by), **by_pilot.get(run.pilot, nothing)}
        phases = divided(run) if "phase" in scope.by else {"": run.settled}
        for at, (phase, settled) in enumerate(phases.items()):
            for group in made.of({**facts, "phase": phase}, series=whole):
                if not stands_in(run) and not (at and group is made.total):
                    group.runs = (group.runs or 0) + 1
                    group.open_runs = (group.open_runs or 0) + (outcome is None)
                if outcome is not None and whole:
                    _add_run(group, outcome, settled, sized=run.pilot in sized)


def _add_run(
    group: Group,
    outcome: Outcome,
    settled: Mapping[tuple[Resource, Measure], int],
    *,
    sized: bool,
) -> None:
    """Add time of a run, all or of a phase; ``sized``: the size of its pilot is assumed."""
    for (resource, measure), micros in settled.items():
        group.sums[resource, measure, outcome.category] += micros
        guess = outcome.evidence == "estimated" or (sized and (resource, measure) == CPU)
        if guess and group.estimated is not None:
            group.estimated[resource, measure] += micros


def _of_assumed_size(ledger: LedgerReader, scope: Scope) -> frozenset[PilotId]:
    """Return the pilots on whose assumed size canonical time of their runs rests."""
    return frozenset(row.id for row in _there(ledger, scope) if Assumption.SIZE in row.assumed)


def _of_ads(ledger: LedgerReader, scope: Scope) -> dict[PilotId, Facts]:
    """Return what the ads of pilots say."""
    return {row.id: of_ads(StoredPilot(row)) for row in _there(ledger, scope)}


def _there(ledger: LedgerReader, scope: Scope) -> Iterator[PilotRow]:
    """Yield the pilots that lived in the period, without their runs; some more than once."""
    for window in windows(scope.period):
        yield from ledger.pilot_rows(PilotFilter(*window, place=scope.place))


def _site_time(ledger: LedgerReader, made: _Made) -> None:
    """Add spare time of sites; where no state of a site was recorded, nothing is known of it."""
    for hour, site_key, micros in ledger.hours(*made.scope.period.hours):
        if made.scope.place.covers(site_key.site, site_key.entry):
            spare = site_key.state in SITE_STATES
            find = made.of if spare else made.known
            where = {"site": site_key.site, "entry": site_key.entry}
            for group in find({**where, "time_us": hour * HOUR_US}):
                group.site_time = group.site_time if group.site_time is not None else Counter()
                if spare:
                    group.site_time[site_key.resource, site_key.state] += micros


def _verdicts(ledger: LedgerReader, made: _Made) -> None:
    """Add verdicts that pilots have checked which registered in the period."""
    made.total.verdicts = Counter()
    for experiment in ledger.experiments(*made.scope.period):
        place = Place(*experiment.entry, experiment.group)
        if experiment.agreed is not None and made.scope.place.covers(*place):
            for group in made.of({**place._asdict(), "time_us": experiment.registered_us}):
                group.verdicts = group.verdicts if group.verdicts is not None else Counter()
                group.verdicts[experiment.verdict.state.value, experiment.agreed] += 1


def _fill(made: _Made, counted: bool) -> None:
    """Say 0 where what is known is that there was nothing."""
    scope = made.scope
    for group in made.every():
        if scope.of_pilots:
            group.unsettled = group.unsettled if group.unsettled is not None else Counter()
            if counted:
                group.ended = group.ended or PilotSums()
        if counted:
            group.runs, group.open_runs = group.runs or 0, group.open_runs or 0
        if scope.basis == "runs_ended":
            group.own = None
        if scope.of_verdicts:
            group.verdicts = group.verdicts if group.verdicts is not None else Counter()
        for kind in KINDS:
            if group.estimated is not None:
                group.estimated.setdefault(kind, 0)
