"""Black holes whose jobs exit with 0: where they are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from random import Random
from typing import cast

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.metrics.pilot_time import FAMILIES
from gwmond.model.entries.suspects import Suspect
from gwmond.model.facts import Place
from gwmond.model.poll.snapshot import PilotTime, Snapshot
from gwmond.model.times import Period
from gwmond.pilots.early.comparison import MOST_TRIALS, Result, Trial, suspects
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import recent_keys, slice_us
from gwmond.reports.report.report_suspects import suspected, table_of
from tests.pilots.early.scenarios import everyday
from tests.pilots.early.simulator import BEGIN_US, Broken, Run, Work, pool, simulate
from tests.pilots.early.suspicions import looks
from tests.pilots.early.verdicts import blamed, known_then

HOUR_US = 3_600_000_000
NODE = "node1.0.3"


def played(*broken: Broken) -> list[Run]:
    """Six hours in which a node ends each job at once, from the second hour to the fourth."""
    works = [*everyday(Random(5), jobs=1500), Work("dice", "mc", 1000, share=0.1)]
    return simulate(pool(nodes=8), works, broken, seed=5, hours=6)


EMPTY = played(Broken(frozenset({NODE}), 3600, 4 * 3600, empty=True))


@dataclass
class Trials:
    """Trials as a ledger returns them."""

    every: Iterable[Trial]

    def trials(
        self,
        since_us: int,
        until_us: int,
        known_us: int,
        users: Collection[str] | None = None,
        limit: int = MOST_TRIALS,
    ) -> list[Trial]:
        """Return runs that began in an interval, as they were then."""
        within = [trial for trial in self.every if since_us <= trial.start_us <= until_us]
        assert users is None
        assert len(within) <= limit
        return [known_then(trial, known_us) for trial in within]


TRIALS = Trials([trial.trial for trial in EMPTY])


def suspicions(known_us: int) -> tuple[Suspect, ...]:
    """Return the places that are suspected when all is known up to a time."""
    return suspects(TRIALS.trials(*recent_keys(known_us, Rules())))


def test_a_node_that_ends_all_jobs_at_once_is_suspected_while_it_does() -> None:
    for hours, places in ((1, set()), (3, {NODE}), (6.1, set())):
        known_us = BEGIN_US + round(hours * HOUR_US)
        found = suspicions(known_us)
        assert {finding.place for finding in found} == places, hours
    assert slice_us(Rules()) == HOUR_US


def test_where_nothing_is_wrong_nothing_is_suspected() -> None:
    """Jobs of five minutes and of hours; a node that fails all jobs is no such black hole."""
    fails = played(Broken(frozenset({NODE}), 3600, 4 * 3600))
    assert suspects(fail.trial for fail in fails) == ()
    assert suspects(trial.trial for trial in played()) == ()


def test_a_success_there_convicts_no_other_node() -> None:
    """The users' own failures, now and then, stay theirs."""
    assert any(trial.trial.result is Result.FAILED_EARLY for trial in EMPTY)
    verdict = blamed(EMPTY)
    assert not any(verdict(trial.trial) for trial in EMPTY)


def test_the_problem_names_the_place() -> None:
    (found,) = suspicions(BEGIN_US + 3 * HOUR_US)
    assert found.shown.startswith(f"node {NODE} (site1, entry1.0): ")
    assert f"{found.finding.failures} of {found.finding.jobs} jobs exited with 0" in found.shown


def test_the_metric_counts_places() -> None:
    found = suspicions(BEGIN_US + 3 * HOUR_US)
    shown = PilotTime({}, {}, {}, {}, {}, None, suspects=found)
    snapshot = cast("Snapshot", type("Shown", (), {"pilot_time": shown}))
    (family,) = (sample for sample in FAMILIES if sample.name == "gwmond_suspected_black_holes")
    assert [(sample.labels, sample.value) for sample in family.samples(snapshot)] == [
        (("ends_too_soon", "node", "site1", "entry1.0"), 1)
    ]


def test_the_report_sums_the_periods_of_its_last_day() -> None:
    period = Period(BEGIN_US - 30 * 24 * HOUR_US, BEGIN_US + 6 * HOUR_US)
    reader = cast("LedgerReader", TRIALS)
    (line,) = suspected(reader, period, Place())
    assert (line.site, line.entry, line.kind, line.place) == ("site1", "entry1.0", "node", NODE)
    assert line.periods == 2
    assert line.expected < line.too_soon <= line.runs
    assert (table_of([line]).total or ())[4:7] == ("", str(line.runs), str(line.too_soon))
    assert suspected(reader, period, Place("site2")) == ()
    assert suspected(reader, period, Place("site1", group="any")) == (line,)


def test_a_node_that_fails_all_jobs_is_suspected_within_minutes() -> None:
    """Jobs of several users fail there; when it is mended it is suspected for an hour at most."""
    since_s, until_s = 2 * 3600, 3 * 3600
    runs = played(Broken(frozenset({NODE}), since_s, until_s))
    trials = [run.trial for run in runs]
    found = {look.at_s: look.suspects for look in looks(trials, 5, since_s - 600, every=5)}
    first = min(at for at, suspects in found.items() if suspects)
    assert since_s < first <= since_s + 1800
    assert {x.place for suspects in found.values() for x in suspects} == {NODE}
    assert not any(suspects for at, suspects in found.items() if at > until_s + 3600 + 120)
    (suspect,) = found[first]
    assert f"{suspect.finding.failures} of {suspect.finding.jobs} jobs failed" in suspect.shown


def test_one_users_failures_are_no_suspicion() -> None:
    runs = played(Broken(frozenset({NODE}), 2 * 3600, 3 * 3600))
    trials = [run.trial._replace(group="one run.sh") for run in runs]
    assert not any(look.suspects for look in looks(trials, 3, 2 * 3600, every=5))
