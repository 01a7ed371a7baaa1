"""Pilots that register check the verdict on their entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gwmond.model.entries.experiments import Experiment, PilotResult, SiteVerdict
from gwmond.model.facts import EntryKey, Pilot
from gwmond.model.pilots.stored_pilots import CountKey
from gwmond.model.poll.batch import Batch
from gwmond.model.runs.run_facts import JobRecord, Source
from gwmond.model.states import State
from gwmond.pilots.experiments import (
    Experiments,
    Verdicts,
    Watched,
    registered,
    result,
    verdicts,
    waited,
)
from gwmond.pilots.life.rules import FAR_US
from gwmond.sites.site_time import evaluate
from tests.build.facts import A, facts, group, peak, pilot, request, totals
from tests.build.play import DELAY_S, POLL_S, T0, Play, claim, record, shown

US = 1_000_000
WAIT_US = 600 * US
STARVING = EntryKey("Site", "starving")
BORED = EntryKey("Site", "bored")
FULL = EntryKey("Site", "full")
BOTTLENECK = SiteVerdict(State.PROVISIONING_BOTTLENECK, "held_pilots", "measured")
NO_DEMAND = SiteVerdict(State.INSUFFICIENT_DEMAND, "", "estimated")
BEFORE = Verdicts(
    T0 * US,
    {STARVING: BOTTLENECK, BORED: NO_DEMAND, FULL: SiteVerdict(State.FULL, "", "measured")},
    frozenset({"old@node"}),
)


def test_a_poll_says_what_cpus_of_an_entry_lack() -> None:
    """The state, its reason and evidence; GPUs are not looked at."""
    scene = facts(
        capacities=peak({A: 10}, {A: 10}),
        pilots=[pilot(A)],
        totals=totals(request(A, requested_idle=0)),
        groups=[group(9)],
    )
    evaluation = evaluate(scene, T0)
    row = evaluation.rows[A, "cpu"]
    assert row.reason != evaluation.rows[A, "gpu"].reason
    found = verdicts(evaluation, at(0), [shown("a@node"), shown("b@node")])
    verdict = SiteVerdict(row.state, row.reason, row.evidence)
    assert found == Verdicts(at(0), {A: verdict}, frozenset({"a@node", "b@node"}))
    counted_on = scene._replace(coming={A: {"frontend.main": 1}})
    for jobs, state in ((group(9), State.PROVISIONING_BOTTLENECK), (group(1), None)):
        judged = verdicts(evaluate(counted_on._replace(groups=[jobs]), T0), at(0), []).entries
        assert [one.state for one in judged.values()] == [state] * (state is not None)


def at(seconds: float) -> int:
    """Microseconds since the epoch, from seconds since T0."""
    return round((T0 + seconds) * US)


def begun(*pilots: Pilot) -> dict[str, Experiment]:
    """The experiments that a poll a minute later finds, by the pilot's name."""
    return {p.name: e for p, e in registered(BEFORE, pilots, at(60), WAIT_US)}


def test_a_pilot_that_registers_meets_the_verdict_of_the_poll_before() -> None:
    """With its reason and evidence; where two pilots register, each is an experiment."""
    found = begun(
        shown("old@node", 20, entry="starving"),
        shown("late@node", -61, entry="starving"),
        shown("a@node", 20, entry="starving"),
        shown("b@node", 40, entry="starving"),
        shown("c@node", 50, entry="bored"),
    )
    assert found == {
        "a@node": Experiment(0, STARVING, "frontend.main", BOTTLENECK, at(0), at(20)),
        "b@node": Experiment(0, STARVING, "frontend.main", BOTTLENECK, at(0), at(40)),
        "c@node": Experiment(0, BORED, "frontend.main", NO_DEMAND, at(0), at(50)),
    }


def test_a_pilot_whose_start_and_registration_lie_around_a_poll() -> None:
    """It was not seen by the poll, so what that said stood when it registered."""
    assert begun(shown("a@node", -30, entry="bored"))["a@node"].registered_us == at(0)
    assert begun(shown("a@node", 65, entry="bored"))["a@node"].registered_us == at(60)


def test_a_startd_may_take_longer_to_advertise_than_a_poll() -> None:
    """On a busy node, with polls every few seconds: it has registered, and was not out of sight."""
    slow, unseen = (shown(name, start, entry="bored") for name, start in (("a", -60), ("b", -61)))
    assert [pilot for pilot, _ in registered(BEFORE, (slow, unseen), at(3), WAIT_US)] == [slow]


@pytest.mark.parametrize("ahead", [-7200, 7200])
def test_the_clock_of_a_startd_may_be_wrong(ahead: int) -> None:
    """In both directions: when it began, and when it stops, is by the collector's clock."""
    pilot = shown("a@node", 20 + ahead, entry="bored")._replace(clock_s=-ahead)
    begins = begun(pilot._replace(retires=T0 + 620 + ahead))
    assert begins["a@node"].registered_us == at(20)
    assert not begun(pilot._replace(retires=T0 + 619 + ahead))
    assert not begun(pilot._replace(started=T0 + ahead - 61))


@pytest.mark.parametrize(
    "pilot",
    [
        shown("old@node", 20, entry="starving"),
        shown("a@node", 20, entry="full"),
        shown("a@node", 20, entry="never heard of"),
        shown("a@node", -61, entry="starving"),
        shown("a@node", 20, entry="starving")._replace(started=0),
        shown("a@node", 20, entry="starving")._replace(accepting=False),
        shown("a@node", 20, entry="starving")._replace(failed=True),
        shown("a@node", 20, entry="starving")._replace(retires=T0 + 619),
    ],
)
def test_what_is_no_experiment(pilot: Pilot) -> None:
    """Seen before, in another state, out of sight before, no start, takes no jobs, or not long."""
    assert not begun(pilot)


def test_a_pilot_that_the_accounting_does_not_know_is_no_experiment() -> None:
    """Whether it retires or not."""
    pilot = shown("a@node", 20, entry="starving")
    experiments = Experiments((), WAIT_US)
    experiments.begin(BEFORE, [pilot, pilot._replace(retires=T0 + 9000)], at(60), {})
    assert experiments.rows() == ()


OPEN = Experiment(1, STARVING, "g", BOTTLENECK, at(0), at(0))


@pytest.mark.parametrize(
    ("run", "end", "contact", "known", "expected"),
    [
        (None, None, 0, 0, PilotResult.OPEN),
        (600, None, 600, 500, PilotResult.RAN),  # known from a slot before all histories were read
        (5, 30, 30, 0, PilotResult.RAN),
        (601, None, 700, 599, PilotResult.OPEN),  # a run that began earlier may still be told
        (601, None, 700, 600, PilotResult.IDLE),
        (None, None, 700, 600, PilotResult.IDLE),
        (None, None, 599, 9999, PilotResult.OPEN),  # nothing was heard of it since: it may be dead
        (None, 599, 590, 598, PilotResult.OPEN),
        (None, 599, 590, 599, PilotResult.VOID),
        (None, 600, 600, 600, PilotResult.IDLE),
        (650, 600, 600, 9999, PilotResult.IDLE),
    ],
)
def test_what_becomes_of_it(
    run: int | None, end: int | None, contact: int, known: int, expected: PilotResult
) -> None:
    """A job within ten minutes, none although it was there and all runs are known, or neither."""
    watched = Watched(
        None if run is None else at(run), None, None if end is None else at(end), at(contact)
    )
    assert result(OPEN, watched, at(known), WAIT_US) is expected


@pytest.mark.parametrize(
    ("run", "other", "known", "expected"),
    [
        (None, 600, 599, PilotResult.OPEN),  # a job that waited may have run there, too
        (None, 600, 600, PilotResult.VOID),
        (None, 601, 600, PilotResult.IDLE),
        (600, 5, 5, PilotResult.RAN),
        (601, 5, 600, PilotResult.VOID),
    ],
)
def test_jobs_that_came_after_the_verdict(
    run: int | None, other: int, known: int, expected: PilotResult
) -> None:
    """They say nothing of the verdict, also where the pilot ran nothing else."""
    watched = Watched(None if run is None else at(run), at(other), None, at(700))
    assert result(OPEN, watched, at(known), WAIT_US) is expected


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (f"ap#1.0#{T0}", True),
        (f"ap#1.0#{T0 + 1}", False),
        ("1.0", False),
        ("ap#1.0#", False),
        ("ap#1.0#soon", False),
    ],
)
def test_when_a_job_waited(job: str, *, expected: bool) -> None:
    """By the time of its submission in its GlobalJobId."""
    assert waited(job, at(0)) is expected


def test_when_a_verdict_was_right() -> None:
    """A bottleneck if the pilot ran a job, insufficient demand if not."""
    found = {
        (verdict.state.value, outcome.value): OPEN._replace(verdict=verdict, result=outcome).agreed
        for verdict in (BOTTLENECK, NO_DEMAND)
        for outcome in PilotResult
    }
    assert found == {
        ("provisioning_bottleneck", ""): None,
        ("provisioning_bottleneck", "ran"): True,
        ("provisioning_bottleneck", "idle"): False,
        ("provisioning_bottleneck", "void"): None,
        ("insufficient_demand", ""): None,
        ("insufficient_demand", "ran"): False,
        ("insufficient_demand", "idle"): True,
        ("insufficient_demand", "void"): None,
    }


KEY = EntryKey("Site", "entry")


class Checked(Play):
    """Polls that take verdicts along, and that can lose what they would have stored."""

    def __init__(self, verdict: SiteVerdict) -> None:
        super().__init__()
        self.verdict = verdict
        self.seen: frozenset[str] = frozenset()

    def begin(self, at: int, pilots: Sequence[Pilot]) -> None:
        """Pilots register before the poll at ``at``."""
        before = Verdicts((T0 + at - POLL_S) * US, {KEY: self.verdict}, self.seen)
        now_us = (T0 + at) * US
        self.add_ads(now_us, POLL_S * US, pilots, complete=True)
        self.accounting.check(now_us, before, pilots)
        self.poll(at, pilots)

    def lost(self, at: int, pilots: Sequence[Pilot]) -> Batch:
        """Poll, and be killed before the batch is stored; return what it would have been."""
        now_us, known_us = (T0 + at) * US, (T0 + at - DELAY_S) * US
        self.add_ads(now_us, POLL_S * US, pilots, complete=True)
        self.settle(now_us, known_us)
        batch = self.accounting.batch(now_us)
        self.restart()
        return batch

    def verdicts(self) -> dict[tuple[str, str], int]:
        """How many were checked, by state and whether they agreed."""
        counts = self.stored.counts.items()
        return {
            (count_key.category.value, count_key.outcome): n
            for count_key, n in counts
            if count_key.what == "verdicts"
        }

    def result(self) -> PilotResult:
        """What became of the one experiment."""
        (key,) = self.stored.experiments(0, FAR_US)
        return key.result


def came(run: JobRecord, job: str = f"schedd#2.0#{T0 + 59}") -> JobRecord:
    """The same run of a job that was submitted after the poll of the verdict."""
    return run._replace(fact=run.fact._replace(job=job))


def ad(at: int = 0, started: int = 0) -> Pilot:
    """The pilot, whose ad is renewed all the while."""
    return shown(started=started, heard=at)


CLAIM, RECORD = claim("1.0", 100, started=30), record("1.0", 100, 250, started=30)
LATER, LATER_RAN = claim("2.0", 100, started=30), record("2.0", 100, 300, started=30)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("verdict", [BOTTLENECK, NO_DEMAND])
@pytest.mark.parametrize(
    ("told", "last", "decided", "becomes"),
    [
        # A job: as soon as it is known, and once.
        ({120: CLAIM, 300: RECORD}, 840, 120, PilotResult.RAN),
        ({660: record("1.0", 601, 630, started=30)}, 840, 660, PilotResult.RAN),  # of a history
        # None: ten minutes after it registered, and once all runs of that time are known.
        ({}, 840, 660 + DELAY_S, PilotResult.IDLE),
        # It was requested for a later job, or an unknown one: that says nothing of the verdict.
        (dict.fromkeys(range(120, 900, 60), came(LATER)), 840, 780, PilotResult.VOID),
        (dict.fromkeys(range(120, 900, 60), came(LATER, "3.0")), 840, 780, PilotResult.VOID),
        # The job that waited decides.
        (
            {120: came(LATER), 420: came(LATER_RAN), 480: claim("1.0", 420, started=30)},
            *(840, 480, PilotResult.RAN),
        ),
        # It died within ten minutes, and without a job.
        ({}, 120, None, PilotResult.VOID),
    ],
)
def test_what_a_pilot_says_of_a_verdict(
    told: Mapping[int, JobRecord],
    last: int,
    decided: int | None,
    becomes: PilotResult,
    verdict: SiteVerdict,
    *,
    restarts: bool,
) -> None:
    """It registered 30 s after the verdict, which is judged once, whatever restarts there are."""
    play = Checked(verdict)
    play.begin(60, [ad(60, 30)])
    known = []
    for at in range(120, last + 1, POLL_S):
        if restarts:
            play.restart()
        runs = [told[at]] if at in told else []
        claims = [run for run in runs if run.fact.source is Source.LIVE_SLOT]
        play.poll(at, [ad(at, 30)], [run for run in runs if run not in claims], claims)
        known += [at] if play.result() is not PilotResult.OPEN else []
    play.rest(last + POLL_S)
    (found,) = play.stored.experiments(0, FAR_US)
    registered_us = (T0 + 30) * US
    expected = Experiment(found.pilot, KEY, "frontend.main", verdict, T0 * US, registered_us)
    assert found == expected._replace(result=becomes)
    assert (min(known) if known else None) == decided
    agreed = {} if found.agreed is None else {(verdict.state.value, str(found.agreed).lower()): 1}
    assert play.verdicts() == agreed


def test_a_result_that_was_not_stored_counts_once() -> None:
    """The process is killed with the batch that had it; the next one counts it, and no other."""
    play = Checked(BOTTLENECK)
    play.begin(60, [ad(60, 30)])
    key = CountKey("verdicts", BOTTLENECK.state, "false", *KEY, "frontend.main")
    for at in (900, 960):
        batch = play.lost(at, [ad(at, 30)])
        assert batch.counts[key] == 1
        assert [experiment.result for experiment in batch.experiments] == [PilotResult.IDLE]
        assert play.verdicts() == {}
    for at in range(1020, 1500, POLL_S):
        play.poll(at, [ad(at, 30)])
        play.restart()
    assert play.verdicts() == {("provisioning_bottleneck", "false"): 1}


def test_a_pilot_that_was_out_of_sight_for_a_poll_is_one_experiment() -> None:
    """It is seen, is not, and is seen again: it registered once."""
    play = Checked(BOTTLENECK)
    play.begin(60, [ad(60, 30)])
    play.poll(120, [ad(60, 30)], claims=[claim("1.0", 100, started=30)])
    play.begin(180, [ad(180, 30)])
    play.live(240, 1200, [ad(180, 30)])
    assert play.verdicts() == {("provisioning_bottleneck", "true"): 1}


def test_pilots_that_start_together_each_count() -> None:
    """They share the jobs: one takes the only one, and the other finds the verdict wrong."""
    play = Checked(BOTTLENECK)
    both = [shown("a@node", 30, 60), shown("b@node", 30, 60)]
    play.begin(60, both)
    play.poll(120, both, claims=[claim("1.0", 100, startd="a@node", started=30)])
    for at in range(180, 960, POLL_S):
        play.poll(at, [key._replace(last_heard=T0 + at) for key in both])
    assert play.verdicts() == {
        ("provisioning_bottleneck", "true"): 1,
        ("provisioning_bottleneck", "false"): 1,
    }
