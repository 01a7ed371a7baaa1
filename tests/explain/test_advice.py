"""What is advised is done on a real pool, and the jobs start (tests/explain/advice.py)."""

from __future__ import annotations

from tests.explain.advice import failures, trials
from tests.explain.advice_draw import CAUSES, draw, layout
from tests.explain.advice_pool import stage
from tests.pool.sandbox import VERSIONS

_SEED, _JOBS = 101, 6


def test_jobs_start_once_what_is_advised_is_done(htcondor: str) -> None:
    """Other jobs for each version.  Those that nobody could help are not counted."""
    seed = _SEED + list(VERSIONS).index(htcondor)
    with stage(layout(seed, started=4), htcondor) as made:
        found = trials(made, draw(made.drawn, _JOBS))
    left = [one for one in found if one.counts and not one.worked]
    assert not left, failures(left)


def test_all_causes_are_drawn_and_a_seed_draws_the_same() -> None:
    drawn = [draw(layout(seed), 20) for seed in range(60)]
    assert {job.cause for jobs in drawn for job in jobs} == set(CAUSES)
    again = draw(layout(7), 20)
    assert [job.cause for job in again] == [job.cause for job in drawn[7]]
