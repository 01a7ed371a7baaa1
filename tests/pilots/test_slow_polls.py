"""Polls that are late, or lost, make later answers, and not other ones.

Pilots of which the truth is known run under a collector that drops an ad 30 s after its last
update.  Startds update every 5 s, and besides at each change of state.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import NamedTuple

import pytest

from gwmond.model.facts import Size
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobFact, JobRecord, RunFact, Source
from gwmond.pilots.life.merged_runs import merge
from gwmond.pilots.life.rules import Rules
from tests.build.play import DONE, T0, Play, claim, record, shown

S = 1_000_000
LIVES_S, UPDATE_S, POLL_S, LAST_S = 30, 5, 3, 240
RULES = Rules(
    refresh_us=0,
    outcome_wait_us=60 * S,
    verdict_us=90 * S,
    end_tolerance_us=30 * S,
    linger_us=60 * S,
)
LOST = Ending(over=True, vacate_code=1008, began=True)
SHUT_DOWN = Ending(over=True, vacate_code=1013, began=True)


class Life(NamedTuple):
    """A pilot: how it ended, when its ads were renewed, and the run of a job on it, if any."""

    name: str
    end: int
    killed: bool
    updates: tuple[int, ...]
    run: tuple[int, int] | None

    def heard(self, at: int) -> int | None:
        """When its ad was renewed last that its collector shows; None if it shows none."""
        known = [time for time in self.updates if time <= min(at, self.end)]
        gone = at >= self.end and (not self.killed or at >= known[-1] + LIVES_S)
        return None if not known or gone else known[-1]

    @property
    def outcome(self) -> tuple[str, str]:
        """Category and outcome of its run."""
        if self.run is None or self.run[1] < self.end:
            return "goodput", "exit_zero"
        return "preemption_badput", "lost_contact" if self.killed else "pilot_shutdown"

    def told(self, written: int) -> JobRecord:
        """The record of its run."""
        assert self.run is not None
        ending = DONE
        if self.run[1] == self.end:
            ending = LOST if self.killed else SHUT_DOWN
        found = record("1.0", *self.run, startd=self.name, ending=ending)
        return found._replace(fact=found.fact._replace(job=self.name, written_us=written))


def life_of(chance: random.Random, number: int) -> Life:
    """A pilot that ends by any of three ways under a job, after one, or without any."""
    end, first = chance.randrange(100, LAST_S), chance.randrange(UPDATE_S)
    times = {*range(first, end, UPDATE_S), *(chance.randrange(first, end) for _ in range(8))}
    run: tuple[int, int] | None = None
    if (kind := chance.choice(("under it", "after it", "none"))) != "none":
        run = 20, end if kind == "under it" else chance.randrange(30, end - 60)
    return Life(f"glidein{number}@node", end, chance.random() < 0.5, tuple(sorted(times)), run)


def polls_of(chance: random.Random) -> list[int]:
    """When polls are made: most of them in time, some much later."""
    times = [6]
    while times[-1] < LAST_S + 60:
        times.append(times[-1] + POLL_S * chance.choice((1, 1, 1, 1, 2, 3, 5)))
    return times


@pytest.mark.parametrize("seed", range(15))
def test_slow_polls_make_no_other_answers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each outcome is the true one, and each life is as long, but for when nobody looked."""
    monkeypatch.setattr("tests.build.play.POLL_S", POLL_S)
    chance = random.Random(seed)
    lives = [life_of(chance, number) for number in range(12)]
    play, told = Play(RULES), set[str]()
    times = polls_of(chance)
    for at in times:
        heard = {life.name: life.heard(at) for life in lives}
        ads = [shown(name, 0, heard=last) for name, last in heard.items() if last is not None]
        claims, records = [], []
        for life in lives:
            if life.run is None:
                continue
            start, end = life.run
            if heard[life.name] is not None and start <= at and (at < end or end == life.end):
                found = claim("1.0", start, startd=life.name)
                fact = found.fact._replace(job=life.name, written_us=shown_us(heard[life.name]))
                claims.append(found._replace(fact=fact))
            if life.name not in told and at >= end + 25:
                told.add(life.name)
                records.append(life.told(shown_us(end + 25)))
        lost = chance.random() < 0.1
        play.poll(at, ads, records, () if lost else claims, complete=not lost)
    play.rest(times[-1] + 60)
    play.stored.prove()
    outcomes = {row.key.job: row.outcome for row in play.stored.runs.values()}
    late = 2 * max(later - sooner for sooner, later in pairwise(times)) + UPDATE_S
    for life in lives:
        row = play.pilot(life.name)
        ended = ((row.end_us or 0) - shown_us(0)) // S
        assert life.end - late <= ended <= life.end + 2 * UPDATE_S, (life, row.end_source)
        if life.run is not None:
            outcome = outcomes[life.name]
            assert outcome is not None
            assert (outcome.category.value, outcome.label) == life.outcome, (life, ended)


def shown_us(second: int | None) -> int:
    """Return microseconds since the epoch."""
    return shown("", second or 0).started * S


def test_an_ad_that_is_still_shown_is_no_pilot_that_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was killed under its job, was shown for 33 s more, and then nobody looked for a minute."""
    monkeypatch.setattr("tests.build.play.POLL_S", POLL_S)
    play = Play(RULES)
    killed = Life("glidein@node", 100, killed=True, updates=tuple(range(0, 100, 5)), run=(20, 100))
    for at in (60, 80, 133):
        ad = shown(killed.name, 0, heard=min(at, 95))._replace(ad_lifetime_s=60)
        play.poll(at, [ad], claims=[claim("1.0", 20, startd=killed.name)])
    play.poll(200, records=[record("1.0", 20, 100, startd=killed.name, ending=LOST)])
    play.rest(260)
    (row,) = play.stored.runs.values()
    assert row.outcome is not None
    assert (row.outcome.category.value, row.outcome.label) == killed.outcome


US = 10**6
HELD = Ending(over=True, hold_code=12, hold_subcode=2, vacate_code=12, began=True)


def test_a_slot_that_shows_a_held_job_for_ten_minutes_shows_one_run() -> None:
    """The starter's end is what the slot was taken for; nothing else ran, whatever is told when."""
    play = Play()
    play.live(0, 60, [shown()])
    held = record("1.0", 118, 123, ending=HELD)
    for at in range(120, 721, 60):
        play.poll(
            at,
            [shown(heard=at)],
            [held] if at >= 180 else [],
            [
                claim("1.0", 119)._replace(
                    fact=claim("1.0", 119).fact._replace(written_us=(T0 + at) * US)
                )
            ],
        )
    assert [row.key.number for row in play.stored.runs.values()] == [1]
    stayed = record("1.0", 118, 722, ending=DONE, source=Source.STARTD_HISTORY)
    play.poll(780, [shown(heard=780)], [stayed])
    play.rest(840)
    (run,) = play.stored.runs.values()
    assert run.outcome is not None
    assert (run.outcome.label, run.end_us) == ("transfer_output_failed", (T0 + 722) * US)


@pytest.mark.parametrize("ahead", [-7200, -90, -59, 0, 59, 61, 90, 7200])
@pytest.mark.parametrize("length", [30, 600])
@pytest.mark.parametrize("runs", [1, 3])
def test_an_access_point_whose_clock_is_wrong_has_each_run_once(
    ahead: int, length: int, runs: int
) -> None:
    """In both directions, however short the runs are; once the job has left, at the latest."""
    facts = []
    for number in range(1, runs + 1):
        start = T0 + number * (length + 120)
        shown_at = (start + 2) * US
        for written in (start + 5, start + length - 5):
            slot = RunFact(Source.LIVE_SLOT, "ap#1.0#1", None, written * US, "p1", shown_at)
            facts.append(slot._replace(size=Size(1, 2000)))
        end = (start + length + ahead) * US
        last = number == runs
        facts.append(
            RunFact(
                Source.SCHEDD_HISTORY if last else Source.EPOCH_HISTORY,
                *("ap#1.0#1", number, end, "p1", (start + ahead) * US, end),
                ending=DONE if last else Ending(over=True, vacate_code=1022, began=True),
                about_job=JobFact(left_us=end, status=4) if last else None,
            )
        )
    assert [merged.key.number for merged in merge(facts)] == list(range(1, runs + 1))


@pytest.mark.parametrize("ahead", [61, 7200])
def test_a_clock_ahead_is_seen_at_once(ahead: int) -> None:
    """The job has not left: its first run cannot have had a run before it."""
    slot = RunFact(Source.LIVE_SLOT, "ap#1.0#1", None, (T0 + 50) * US, "p1", T0 * US)
    end = (T0 + 100 + ahead) * US
    told = RunFact(Source.EPOCH_HISTORY, "ap#1.0#1", 1, end, "p1", (T0 + ahead) * US, end)
    assert len(merge([slot, told._replace(ending=DONE)])) == 1
