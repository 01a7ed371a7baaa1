"""A release with other rules: what was posted by the old ones is corrected, and never assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.config.settings import Config
from gwmond.ledger.store import Ledger
from gwmond.model.facts import Pilot
from gwmond.model.packed import Packed
from gwmond.model.pilot_life import Category
from gwmond.model.runs import outcomes
from gwmond.model.runs.outcomes import Rule
from gwmond.model.runs.run_facts import JobRecord, Source
from gwmond.pilots.life import merged_runs
from gwmond.pilots.life.merged_runs import Field
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from tests.build.play import POLL_S, T0, record, shown
from tests.build.truths import Truth, play, truths
from tests.examples import examples

US = 10**6
DAY_S = 86_400


def schedds_first() -> tuple[Field, ...]:
    """Today's merge rules, but the schedd is believed about times and sizes before the startd."""
    rules = []
    for field in merged_runs.FIELDS:
        first = [
            literal
            for literal in (Source.SCHEDD_HISTORY, Source.EPOCH_HISTORY)
            if literal in field.order
        ]
        order = (*first, *(source for source in field.order if source not in first))
        moved = field.names[0] in {"start_us", "end_us", "size"}
        rules.append(field._replace(order=order) if moved else field)
    return tuple(rules)


def exits_are_lost() -> tuple[Rule, ...]:
    """Today's outcomes, but a program's own exit is not counted as good any more."""
    return tuple(
        ending._replace(category=Category.UNCLASSIFIED)
        if ending.category is Category.GOODPUT
        else ending
        for ending in outcomes.RULES
    )


@contextmanager
def releases() -> Iterator[Callable[..., None]]:
    """Yield what puts other rules in force, until the end of the block."""
    with pytest.MonkeyPatch.context() as patch:

        def release(
            fields: tuple[Field, ...] = merged_runs.FIELDS,
            rules: tuple[Rule, ...] = outcomes.RULES,
        ) -> None:
            patch.setattr(merged_runs, "FIELDS", fields)
            patch.setattr(outcomes, "RULES", rules)
            outcomes.rule_of.cache_clear()

        yield release
    outcomes.rule_of.cache_clear()


@pytest.fixture
def release() -> Iterator[Callable[..., None]]:
    """Puts other rules in force."""
    with releases() as made:
        yield made


class Daemon:
    """gwmond with a ledger; ``start`` is a start of it, with the rules of that moment."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.start()

    def start(self) -> None:
        """Forget all that is not in the ledger."""
        self.keeper = LedgerKeeper(Config())
        self.keeper.use(self.ledger)

    def poll(self, at: int, pilots: tuple[Pilot, ...] = (), *records: JobRecord) -> None:
        """One poll; times are seconds from T0."""
        with self.keeper.steps() as steps:
            steps.run(steps.accounting.add_ads((T0 + at) * US, POLL_S * US, pilots, complete=True))
            steps.run(steps.accounting.add_claims((T0 + at) * US, Packed(), complete=True))
        self.keeper.add_records(records, None, None)
        self.keeper.settle((T0 + at) * US, (T0 + at - 120) * US, ())

    def seconds(self) -> dict[str, float]:
        """Core-seconds of all pilots by category; all that the ledger's check proves holds."""
        assert {
            check_pilot.what: check_pilot.micros
            for check_pilot in self.ledger.check()
            if check_pilot.micros
        } == {}
        accounting = self.keeper.accounting
        assert {name: n for name, n in accounting.left_out.items() if n} == {}
        assert not any(accounting.settlement.residual.values())
        sums: Counter[str] = Counter()
        for pilot_hour in self.ledger.pilot_hours(0, 10**7):
            if (pilot_hour.series.resource, pilot_hour.series.measure) == ("cpu", "resource"):
                sums[pilot_hour.series.category.value] += pilot_hour.micros
        return {category: micros / US for category, micros in sums.items() if micros}

    def corrected(self) -> dict[str, float]:
        """Core-seconds by which categories were corrected."""
        sums: Counter[str] = Counter()
        for correction in self.ledger.corrections():
            if (correction.series.resource, correction.series.measure) == ("cpu", "resource"):
                sums[correction.series.category.value] += correction.micros
        return {category: micros / US for category, micros in sums.items() if micros}


def both(job: str, start: float, end: float) -> tuple[JobRecord, JobRecord]:
    """A run that its startd ended half a minute before its schedd wrote that down."""
    startd, epoch = Source.STARTD_HISTORY, Source.EPOCH_HISTORY
    return (
        record(job, start, end, source=startd),
        record(job, start, end + 30, source=epoch),
    )


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """gwmond with a ledger on a disk."""
    with Ledger.open(str(tmp_path / "ledger.sqlite")) as ledger:
        yield Daemon(ledger)


def test_a_pilot_known_by_its_jobs_is_shown_by_a_collector(
    daemon: Daemon, release: Callable[..., None]
) -> None:
    """Jobs from 0 to 600, or 630, and from 900 to 1500; the pilot has four cores until 1800."""
    daemon.poll(100, (), *both("1", 0, 600), record("2", 900, 1500))
    daemon.poll(20_000)
    assert daemon.seconds() == {"goodput": 1200, "pilot_overhead": 300}
    release(schedds_first())
    daemon.start()
    seen = shown(started=0, heard=1800, cores=4)
    daemon.poll(20_060, (seen,))
    daemon.poll(20_120, (seen,))
    daemon.poll(20_120 + DAY_S)
    assert daemon.seconds() == {"goodput": 1230, "pilot_overhead": 4 * 1800 - 1230}
    assert daemon.corrected()


@pytest.mark.parametrize("closed", [False, True])
def test_a_late_record_of_a_pilot_with_old_runs(
    daemon: Daemon, release: Callable[..., None], closed: bool
) -> None:
    """Each run is posted as today's rules have it as soon as its pilot is posted anew."""
    for at in range(0, 3001, 300):
        records = both("1", 0, 600) if at == 900 else ()
        daemon.poll(at, (shown(heard=at),), *records)
    if closed:
        daemon.poll(3300)
        daemon.poll(3300 + DAY_S)
    before = daemon.seconds()
    assert before["goodput"] == 600
    release(schedds_first())
    daemon.start()
    daemon.poll(4000 + DAY_S, (), *both("2", 1200, 1800))
    daemon.poll(4000 + 2 * DAY_S)
    after = daemon.seconds()
    assert after == {"goodput": 1260, "pilot_overhead": 4 * 3000 - 1260}
    assert daemon.corrected() == {"goodput": 660, "pilot_overhead": -660}


def test_an_outcome_of_the_old_rules(daemon: Daemon, release: Callable[..., None]) -> None:
    """It stays until its pilot's time changes there; then it is corrected, and counted anew."""
    for at in range(0, 1201, 300):
        daemon.poll(at, (shown(heard=at),), *(both("1", 0, 600) if at == 900 else ()))
    daemon.poll(1500)
    daemon.poll(1500 + DAY_S)
    assert daemon.seconds() == {"goodput": 600, "pilot_overhead": 4 * 1200 - 600}
    release(rules=exits_are_lost())
    daemon.start()
    daemon.poll(2000 + DAY_S)
    assert daemon.seconds()["goodput"] == 600
    daemon.poll(2100 + DAY_S, (), *both("2", 100, 700))
    daemon.poll(2100 + 2 * DAY_S)
    assert daemon.seconds() == {"unclassified": 1200, "pilot_overhead": 4 * 1200 - 1200}
    assert daemon.corrected()["goodput"] == -600


@settings(max_examples=examples(60))
@given(truths(), st.data())
def test_rules_may_change_at_any_restart(truth: Truth, data: st.DataObject) -> None:
    """Whatever is told: what is posted is exact, and proves itself, whichever rules posted it."""
    merge_rules = st.sampled_from([merged_runs.FIELDS, schedds_first()])
    outcome_rules = st.sampled_from([outcomes.RULES, exits_are_lost()])
    with releases() as release:
        stored = play(truth, lambda: release(data.draw(merge_rules), data.draw(outcome_rules)))
    stored.prove()
