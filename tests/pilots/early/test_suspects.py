"""Black holes whose jobs exit with 0: where they are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from random import Random
from typing import cast

import pytest

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.metrics.pilot_time import FAMILIES
from gwmond.model.entries.suspects import Suspect
from gwmond.model.facts import Place
from gwmond.model.poll.snapshot import PilotTime, Snapshot
from gwmond.model.times import Period
from gwmond.pilots.early.comparison import MOST_TRIALS, Result, Trial, failing, suspects
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import FALSE_ALARMS, recent_keys, slice_us
from gwmond.reports.report.report_suspects import suspected, table_of
from tests.pilots.early.scenarios import SCENARIOS, everyday
from tests.pilots.early.simulator import BEGIN_US, Broken, Run, Work, pool, score, simulate
from tests.pilots.early.verdicts import blamed, known_at, known_then, looks

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
    assert f"{found.too_soon} of {found.runs} runs exited with 0" in found.shown
    assert found.runs >= found.too_soon > found.finding.expected


def test_the_metrics_count_places_and_their_runs() -> None:
    found = suspicions(BEGIN_US + 3 * HOUR_US)
    shown = PilotTime({}, {}, {}, {}, {}, None, suspects=found)
    snapshot = cast("Snapshot", type("Shown", (), {"pilot_time": shown}))
    place = "ends_too_soon", "node", "site1", "entry1.0"
    (suspect,) = found
    counted = {
        "gwmond_suspected_black_holes": [(place, 1)],
        "gwmond_suspected_runs": [
            (("too_soon", *place), suspect.too_soon),
            (("other", *place), suspect.runs - suspect.too_soon),
        ],
    }
    for family in FAMILIES:
        if family.name in counted:
            samples = [(sample.labels, sample.value) for sample in family.samples(snapshot)]
            assert samples == counted[family.name]


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
    """All fail there; when it is mended it is suspected for an hour at most."""
    since_s, until_s = 2 * 3600, 3 * 3600
    runs = played(Broken(frozenset({NODE}), since_s, until_s))
    trials = [run.trial for run in runs]
    found = {look.at_s: look.suspects for look in looks(trials, 5, since_s - 600, every=5)}
    first = min(at for at, suspects in found.items() if suspects)
    assert since_s < first <= since_s + 1800
    assert {x.place for suspects in found.values() for x in suspects} == {NODE}
    assert not any(suspects for at, suspects in found.items() if at > until_s + 3600 + 120)
    (suspect,) = found[first]
    assert f"{suspect.too_soon} of {suspect.runs} runs failed" in suspect.shown


def test_a_pilot_that_eats_the_jobs_of_one_user_is_suspected_while_it_does() -> None:
    """One submission of 160 jobs in a small pool: most of them are gone within minutes."""
    slots = pool(sites=2, entries=1, nodes=2, pilots=1, slots=4)
    hole = Broken(frozenset({slots[0].pilot}), seconds=(2, 4))
    runs = simulate(slots, [Work("one", "run.sh", 160, seconds=(60, 300))], [hole], seed=1)
    first = next(look for look in looks([run.trial for run in runs], 1) if look.suspects)
    assert first.at_s <= 600
    (suspect,) = first.suspects
    assert (suspect.kind, suspect.place) == ("node", slots[0].node)  # which has no other pilot
    assert suspect.runs == suspect.too_soon >= 20


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_site_that_fails_most_jobs_stays_suspected(seed: int) -> None:
    """Few runs an hour, on few nodes: from 40 minutes on at each look, and no node alone."""
    since_s = 5400
    works = [Work(f"u{n}", "run.sh", 600, seconds=(1800, 7200)) for n in range(4)]
    storage = Broken(frozenset({"site0"}), since=since_s, share=0.7, seconds=(60, 290))
    slots = pool(sites=4, entries=1, nodes=9, pilots=1)
    trials = [run.trial for run in simulate(slots, works, [storage], seed=seed, hours=4)]
    for look in looks(trials, 3, since_s + 1800, every=5):
        assert {suspect[:2] for suspect in look.suspects} == {("site", "site0")}, look.at_s


def test_a_node_stays_suspected_where_fewer_jobs_run_for_a_while() -> None:
    """They would be too few to be suspected anew."""
    since_s = 5400
    works = [Work(f"u{n}", "run.sh", 600, seconds=(1800, 7200)) for n in range(3)]
    hole = Broken(frozenset({"node0.0.1"}), since=since_s, share=0.7, seconds=(60, 290))
    slots = pool(sites=4, entries=1, nodes=9, pilots=1)
    trials = [run.trial for run in simulate(slots, works, [hole], seed=6, hours=5)]
    shown = {look.at_s: look.suspects for look in looks(trials, 5, since_s, every=5)}
    first = min(at_s for at_s, suspects in shown.items() if suspects)
    later = [at_s for at_s in shown if at_s > first]
    assert {suspect.place for at_s in later for suspect in shown[at_s]} == {"node0.0.1"}
    assert all(shown[at_s] for at_s in later)
    times = [BEGIN_US + round(at_s * 1_000_000) for at_s in later]
    assert not all(failing(known_at(trials, at_us), FALSE_ALARMS) for at_us in times)


SEED = 21
USERS_FAULT = [name for name, trial in SCENARIOS.items() if not trial.broken]
BROKEN = [name for name, trial in SCENARIOS.items() if trial.broken]


@pytest.mark.parametrize("name", USERS_FAULT)
def test_users_faults_are_not_blamed_on_places(name: str) -> None:
    runs = SCENARIOS[name].scenario(SEED)
    of_runs, of_seconds = score(runs, blamed(runs))
    assert of_runs.users > 0
    assert of_runs.false_share <= 0.01
    assert of_seconds.false_share <= 0.01


@pytest.mark.parametrize("name", BROKEN)
def test_what_a_place_did_is_blamed_on_it(name: str) -> None:
    runs = SCENARIOS[name].scenario(SEED)
    for of in score(runs, blamed(runs)):
        assert of.right > 0
        assert of.precision >= 0.95
        assert of.recall >= 0.95
