"""What a poll costs grows with what is shown, whatever that says; calls are counted, not time."""

from __future__ import annotations

from cProfile import Profile

from tests.build.play import Play, claim, shown


def calls(pilots: int) -> int:
    """How many calls a poll makes while so many pilots show one and the same run of a job."""
    play = Play()
    names = [f"glidein_{number}@node" for number in range(pilots)]
    for at in (60, 120):
        ads = [shown(name, heard=at) for name in names]
        claims = [claim("1", 30, startd=name) for name in names]
        profile = Profile()
        profile.runcall(play.poll, at, ads, claims=claims)
    return sum(entry.callcount for entry in profile.getstats())


def test_one_job_in_all_slots_costs_no_more_than_as_many_jobs() -> None:
    """A stranger, or a bug, shows one job everywhere: four times as many cost five times."""
    few, many = calls(50), calls(200)
    assert many < 5 * few
