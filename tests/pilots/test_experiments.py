"""Pilots check verdicts, each once, whatever becomes of the process."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gwmond.model.entries.experiments import PilotResult, SiteVerdict
from gwmond.model.facts import EntryKey, Pilot
from gwmond.model.pilots.stored_pilots import CountKey
from gwmond.model.poll.batch import Batch
from gwmond.model.runs.records import JobRecord
from gwmond.model.states import State
from gwmond.pilots.life.rules import FAR_US
from gwmond.pilots.verdict_check import Verdicts
from tests.build.play import DELAY_S, POLL_S, T0, Play, claim, record, shown

US = 1_000_000
KEY = EntryKey("Site", "entry")
BOTTLENECK = SiteVerdict(State.PROVISIONING_BOTTLENECK, "held_pilots", "measured")
NO_DEMAND = SiteVerdict(State.INSUFFICIENT_DEMAND, "", "estimated")


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


def pilot(at: int = 0, started: int = 0) -> Pilot:
    """The pilot, whose ad is renewed all the while."""
    return shown(started=started, heard=at)


def test_a_pilot_that_runs_a_job_confirms_a_bottleneck() -> None:
    """As soon as the run is known, and once, with the reason and evidence of the verdict."""
    play = Checked(BOTTLENECK)
    play.begin(60, [pilot(60, 30)])
    assert play.verdicts() == {}
    play.poll(120, [pilot(120, 30)], claims=[claim("1.0", 100, started=30)])
    assert play.verdicts() == {("provisioning_bottleneck", "true"): 1}
    play.poll(300, [pilot(300, 30)], [record("1.0", 100, 250, started=30)])
    play.rest(400)
    assert play.verdicts() == {("provisioning_bottleneck", "true"): 1}
    (key,) = play.stored.experiments(0, FAR_US)
    assert (key.verdict, key.entry, key.group, key.registered_us) == (
        *(BOTTLENECK, KEY, "frontend.main"),
        (T0 + 30) * US,
    )


@pytest.mark.parametrize("verdict", [BOTTLENECK, NO_DEMAND])
def test_a_pilot_that_stays_idle_confirms_that_there_is_no_demand(verdict: SiteVerdict) -> None:
    """Ten minutes after it registered, and once all runs of that time are known."""
    play = Checked(verdict)
    play.begin(60, [pilot(60, 30)])
    for at in range(120, 660 + DELAY_S, POLL_S):
        play.poll(at, [pilot(at, 30)])
        assert play.verdicts() == {}
    play.poll(660 + DELAY_S, [pilot(660 + DELAY_S, 30)])
    agreed = "true" if verdict is NO_DEMAND else "false"
    assert play.verdicts() == {(verdict.state.value, agreed): 1}


def test_a_job_that_came_and_went_between_two_polls() -> None:
    """It is known from a history alone, and counts."""
    play = Checked(NO_DEMAND)
    play.begin(60, [pilot(60, 30)])
    for at in range(120, 601, POLL_S):
        play.poll(at, [pilot(at, 30)])
    play.poll(660, [pilot(660, 30)], [record("1.0", 601, 630, started=30)])
    assert play.verdicts() == {("insufficient_demand", "false"): 1}


@pytest.mark.parametrize("verdict", [BOTTLENECK, NO_DEMAND])
@pytest.mark.parametrize("job", [f"schedd#2.0#{T0 + 1}", "3.0"])
def test_a_pilot_that_runs_a_job_that_came_later(verdict: SiteVerdict, job: str) -> None:
    """It was requested for that job: that says nothing of the verdict. Nor does an unknown job."""
    play = Checked(verdict)
    play.begin(60, [pilot(60, 30)])
    for at in range(120, 900, POLL_S):
        play.poll(at, [pilot(at, 30)], claims=[came(claim("2.0", 100, started=30), job)])
    assert (play.verdicts(), play.result()) == ({}, PilotResult.VOID)


@pytest.mark.parametrize("verdict", [BOTTLENECK, NO_DEMAND])
def test_a_pilot_that_runs_a_job_that_waited_after_one_that_came_later(
    verdict: SiteVerdict,
) -> None:
    """The job that waited decides."""
    play = Checked(verdict)
    play.begin(60, [pilot(60, 30)])
    play.poll(120, [pilot(120, 30)], claims=[came(claim("2.0", 100, started=30))])
    play.poll(400, [pilot(400, 30)], [came(record("2.0", 100, 300, started=30))])
    play.poll(460, [pilot(460, 30)], claims=[claim("1.0", 420, started=30)])
    agreed = "true" if verdict is BOTTLENECK else "false"
    assert play.verdicts() == {(verdict.state.value, agreed): 1}


def test_a_pilot_that_dies_early_is_no_experiment() -> None:
    """It ended within ten minutes, and without a job."""
    play = Checked(BOTTLENECK)
    play.begin(60, [pilot(60, 30)])
    play.poll(120, [pilot(120, 30)])
    play.rest(180)
    assert (play.verdicts(), play.result()) == ({}, PilotResult.VOID)


def test_an_experiment_goes_on_after_a_restart() -> None:
    """A pilot registered before, and is judged after; its batch was stored or came again."""
    play = Checked(NO_DEMAND)
    play.begin(60, [pilot(60, 30)])
    play.restart()
    for at in range(120, 900, POLL_S):
        play.poll(at, [pilot(at, 30)])
        play.restart()
    assert play.verdicts() == {("insufficient_demand", "true"): 1}


def test_a_result_that_was_not_stored_counts_once() -> None:
    """The process is killed with the batch that had it; the next one counts it, and no other."""
    play = Checked(BOTTLENECK)
    play.begin(60, [pilot(60, 30)])
    key = CountKey("verdicts", BOTTLENECK.state, "false", *KEY, "frontend.main")
    for at in (900, 960):
        batch = play.lost(at, [pilot(at, 30)])
        assert batch.counts[key] == 1
        assert [experiment.result for experiment in batch.experiments] == [PilotResult.IDLE]
        assert play.verdicts() == {}
    for at in range(1020, 1500, POLL_S):
        play.poll(at, [pilot(at, 30)])
        play.restart()
    assert play.verdicts() == {("provisioning_bottleneck", "false"): 1}


def test_a_pilot_that_was_out_of_sight_for_a_poll_is_one_experiment() -> None:
    """It is seen, is not, and is seen again: it registered once."""
    play = Checked(BOTTLENECK)
    play.begin(60, [pilot(60, 30)])
    play.poll(120, [pilot(60, 30)], claims=[claim("1.0", 100, started=30)])
    play.begin(180, [pilot(180, 30)])
    play.live(240, 1200, [pilot(180, 30)])
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
