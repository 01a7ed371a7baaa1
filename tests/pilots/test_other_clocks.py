"""Clocks of access points that are wrong, and slots that show what is over: one run stays one."""

from __future__ import annotations

import pytest

from gwmond.model.facts import Size
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobFact, RunFact, Source
from gwmond.pilots.life.merged_runs import merge
from tests.build.play import DONE, T0, Play, claim, record, shown

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
