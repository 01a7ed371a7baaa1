"""Verdicts and the partition of pilots' time, held against a pool of which the truth is known."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gwmond.model.poll.snapshot import OVERHEADS, Overhead
from tests.simulator import story, week, world
from tests.simulator.parts import Pilot
from tests.simulator.pool import Pool
from tests.simulator.truth import Agreement, idle
from tests.simulator.week import Played

HOURS = 16
"""From Wednesday's early morning on: people come, a limit is hit, the evening is calm."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Played, Path]:
    """The first hours of the week, played to gwmond, and the ledger."""
    ledger = tmp_path_factory.mktemp("simulated") / "ledger.sqlite"
    return week.play(Pool(), ledger, HOURS), ledger


@pytest.fixture(scope="module")
def partition(played: tuple[Played, Path]) -> tuple[Agreement, list[Pilot]]:
    """What the ledger says of pilots that have ended, beside what they did."""
    shown, ledger = played
    return week.partition_agrees(shown.pool, ledger)


def test_verdicts_are_what_an_empty_pilot_would_find(played: tuple[Played, Path]) -> None:
    """By canonical seconds; docs/truth.md says what the rest is."""
    verdicts = played[0].verdicts
    assert verdicts.true.total() > 0
    assert verdicts.f1("provisioning_bottleneck") > 0.9
    assert verdicts.f1("insufficient_demand") > 0.95


def test_pilots_that_start_confirm_the_verdicts(played: tuple[Played, Path]) -> None:
    """The daemon's own check of its verdicts: jobs are matched as a negotiator does it."""
    shown = played[0].last
    assert shown is not None
    checked = (shown.verdicts or {}).values()
    assert sum(one.checked for one in checked) > 15
    assert sum(one.agreed for one in checked) > 0.8 * sum(one.checked for one in checked)


def test_idle_units_are_those_of_pilots_without_jobs(played: tuple[Played, Path]) -> None:
    """Polls five minutes apart see each part of the overhead, summed over time, to a tenth.

    Pilots start in step with the polls: those that do are compared at the polls alone.
    """
    shown, pool = played[0], played[0].pool
    true = Counter[Overhead]()
    for pilot in (*pool.ended, *pool.all_pilots()):
        true += idle(pilot, pool.now)
    true["start"] = shown.starting
    for part in OVERHEADS:
        assert shown.idle[part] == pytest.approx(true[part], rel=0.1)


def test_pilots_time_is_what_they_did(partition: tuple[Agreement, list[Pilot]]) -> None:
    """Each pilot that ended is in the ledger, with the time of its own runs."""
    agreement, lacking = partition
    assert not lacking
    assert agreement.f1() > 0.98
    assert agreement.f1("goodput") > 0.999


def test_nothing_but_the_story_is_wrong(played: tuple[Played, Path]) -> None:
    """The pipeline reports no problem of its own with the simulated ads."""
    shown = played[0].last
    assert shown is not None
    names = {name.value for _, name in shown.problems}
    assert names <= {"idle_slots_untaken", "suspected_black_hole"}


def test_the_same_seed_is_the_same_pool() -> None:
    """What is drawn is drawn of the seed alone."""

    def hour(seed: int) -> list[tuple[str, int, int]]:
        pool = Pool(seed)
        for _ in range(180):
            pool.step()
        return [(pilot.name, pilot.started, len(pilot.jobs)) for pilot in pool.all_pilots()]

    assert hour(1) == hour(1) != hour(2)


def test_the_story_names_what_there_is() -> None:
    """Sites, entries, groups and kinds of jobs: a mistyped one would hold nowhere."""
    known = {entry.site for entry in world.ENTRIES} | {entry.name for entry in world.ENTRIES}
    known |= {kind.name for kind in world.KINDS} | {story.BLACK_HOLE_NODE}
    known |= {f"{g} {entry.name}" for entry in world.ENTRIES for g in entry.groups}
    assert {event.where for event in (*story.EVENTS, *story.LATER)} <= known
