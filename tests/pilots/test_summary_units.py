"""Jobs of which only a summary tells: in whatever unit it does, and where it cannot be read."""

from __future__ import annotations

from itertools import permutations

import pytest

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.file_facts import CompletedPilot, FileFact, Jobs, JobStatistics
from tests.build.pilot_files import line, lost, queue
from tests.build.play import Play
from tests.build.played import one, only, revise

SIZE = {"entry": Size(8, 16_000)}
LIFE, CONDOR = 8300, 8000


def add_files(play: Play, *facts: FileFact, at: int = 2000, sizes: bool = False) -> None:
    """Files are read at some time; ``sizes``: ads tell how large the entry's pilots are."""
    play.add_facts(facts, SIZE if sizes else {})
    play.poll(at)
    play.rest(at + 60)


def summary(jobs_s: int, terminated_s: int, idle: int, jobs: int = 1) -> CompletedPilot:
    """A pilot of 8300 s; its HTCondor ran for 8000 s."""
    made = line(LIFE + 100, LIFE, jobs=jobs, jobs_s=jobs_s, terminated_s=terminated_s, idle=idle)
    return made._replace(condor_s=CONDOR, validation=12, goodput_s=terminated_s)


ONE = summary(4000, 500, 500)
FOUR = summary(32_000, 4000, -3000, jobs=4)
FOUR_DIVIDED = summary(4000, 4000, 500)
KILLED = summary(64_000, 4000, -7000, jobs=8)


@pytest.mark.parametrize(
    ("completed_pilot", "good", "rest"),
    [(ONE, 500, 0), (FOUR, 4000, 0), (FOUR_DIVIDED, 4000, 0), (KILLED, 4000, 4000)],
)
def test_only_its_summary_tells(
    play: Play, completed_pilot: CompletedPilot, good: float, rest: float
) -> None:
    """Jobs of one core on eight: what they did not use is the pilot's own time."""
    add_files(play, *queue(0, LIFE), completed_pilot, sizes=True)
    expected = {
        "goodput": 8.0 * good,
        "unclassified": 8.0 * rest,
        "pilot_overhead": 8.0 * (LIFE - good - rest),
    }
    assert play.seconds() == {category: number for category, number in expected.items() if number}
    assert Assumption.JOBS in only(play).assumed
    play.stored.prove()


def test_an_output_without_statistics() -> None:
    """It tells its cores, the summary the rest."""
    summed = line(1300, 1200, jobs=4, jobs_s=1600, terminated_s=200, idle=-404)
    both: list[FileFact] = [lost(cores=8, memory_mib=16_000), summed]
    for facts in permutations(both):
        play = Play()
        for number, fact in enumerate(facts):
            add_files(play, fact, at=2000 + number * 60_000)
        assert play.seconds() == {"goodput": 8 * 200.0, "pilot_overhead": 8 * 1000.0}


@pytest.mark.parametrize("factor", [None, 1])
def test_its_own_statistics(play: Play, factor: int | None) -> None:
    """They are of more time than HTCondor ran, so that they are not divided."""
    statistics = JobStatistics(Jobs(6, 4520), Jobs(4, 2260), factor=factor)
    add_files(play, lost(jobs=statistics))
    assert play.seconds() == {
        "goodput": 4 * 565.0,
        "unclassified": 4 * 565.0,
        "pilot_overhead": 4 * 70.0,
    }


def test_statistics_of_a_pilot_whose_cores_nothing_tells(play: Play) -> None:
    """They are taken as they are, and cut to the 1130 s that HTCondor ran."""
    statistics = JobStatistics(Jobs(4, 2000), Jobs(2, 1000))
    add_files(play, lost(jobs=statistics, cores=None, memory_mib=None))
    assert play.seconds() == {"goodput": 1000.0, "unclassified": 130.0, "pilot_overhead": 70.0}


def test_cores_that_are_learnt_later() -> None:
    """Whichever comes first: the pilots of the entry that tell their cores, or the summary."""
    facts: list[FileFact] = [*queue(0, LIFE), summary(36_000, 4000, -3500)]
    sizes = [one(n, cores=8, memory_mib=16_000) for n in (3, 4)]
    found = []
    for before, after in ((facts, sizes), (sizes, facts)):
        play = Play()
        add_files(play, *before, at=20_000)
        add_files(play, *after, at=90_000)
        if before is facts:
            assert play.seconds()["unclassified"] == 4000.0  # of one core, as nothing tells them
        revise(play, 160_000)
        found.append(play.seconds())
        play.stored.prove()
    assert found[0] == found[1]
    assert (found[0]["goodput"], found[0]["unclassified"]) == (8 * 4000.0, 8 * 500.0)


def test_a_number_of_jobs_that_cannot_be_read() -> None:
    """It is no zero: if any time is told jobs ran, else it is not known whether any did."""
    unread = line(1300, 1200, jobs=None, jobs_s=None, goodput_s=None, terminated_s=None, idle=None)
    play = Play()
    add_files(play, *queue(0, 1200), unread, sizes=True)
    assert play.seconds() == {"unclassified": 8 * 1200.0}
    assert Assumption.VALIDATION in only(play).assumed
    for pilot_name in (unread._replace(terminated_s=1000), unread._replace(goodput_s=1000)):
        play = Play()
        add_files(play, *queue(0, 1200), pilot_name._replace(idle=122), sizes=True)
        assert play.seconds() == {"goodput": 8 * 1000.0, "pilot_overhead": 8 * 200.0}
    play = Play()
    add_files(play, *queue(0, 1200), unread._replace(condor_s=None), sizes=True)
    assert play.seconds() == {"unclassified": 8 * 1200.0}


def test_statistics_of_a_pilot_whose_cores_others_tell() -> None:
    """They are not divided by what is assumed: when that is known makes no difference."""
    pilot_name = lost(
        jobs=JobStatistics(Jobs(16, 8000), Jobs(8, 4000)), cores=None, memory_mib=None
    )
    others = [one(number, cores=8, memory_mib=16_000) for number in (3, 4)]
    found = []
    for before, after in (([pilot_name], others), (others, [pilot_name])):
        play = Play()
        add_files(play, *before, at=20_000)
        add_files(play, *after, at=90_000)
        revise(play, 160_000)
        found.append(play.seconds())
    assert found[0] == found[1]
    assert "unclassified" not in found[0]
