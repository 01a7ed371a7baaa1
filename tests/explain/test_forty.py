"""Forty jobs of a real pool, each kept from running by something else: what keeps it is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from gwmond.commands.explain import _asked
from gwmond.config.settings import Config
from gwmond.explain.answers import answers
from gwmond.explain.document import first_line
from tests.explain.forty import KINDS, MOVES, forty
from tests.pool.condor import CondorPool

Jobs = tuple[CondorPool, dict[str, tuple[str, str]]]


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    """A busy pilot, one with free slots, and entries that are down, at limits, and filling."""
    with forty() as found:
        yield found


@pytest.fixture
def pool(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> CondorPool:
    """Their pool; this process asks it as a user does."""
    for name, value in jobs[0].client_env().items():
        monkeypatch.setenv(name, value)
    return jobs[0]


def test_the_first_line_is_right_for_forty_jobs(jobs: Jobs, pool: CondorPool) -> None:
    """One look at the pool, then each job: what keeps it, in words, and whose move it is."""
    patient = {
        "pool": {"collectors": [pool.collector]},
        "poll": {"interval": "10m", "deadline": "5m"},
    }
    explainer = _asked(Config.model_validate(patient), "")
    wrong = []
    for kind in KINDS:
        schedd, number = jobs[1][kind.name]
        here = explainer.job(number, schedd)
        first, *_ = found = answers(here)
        line = first_line(here, first)
        assert [one.tier for one in found] == sorted(one.tier for one in found)
        assert here.fates.total() == sum(slot.number for slot in here.slots)
        moves = first.mover.value == MOVES.get(kind.reason, "you")
        if first.name != kind.reason or kind.words not in line or not moves:
            wrong.append((kind.name, first.name, first.mover.value, line))
    assert not wrong
    assert len(KINDS) == 40
    assert not explainer.missing


def test_its_place_in_the_order(
    jobs: Jobs, pool: CondorPool, run: Callable[..., tuple[int, str, str]]
) -> None:
    """Bob has no idle jobs; those of alice that were submitted before are offered before."""
    schedd, number = jobs[1]["busy pilot"]
    code, out, _ = run(
        "explain", number, "--collector", pool.collector, "--schedd", schedd, "--format", "json"
    )
    assert code == 0
    order = json.loads(out)["order"]
    idle = 'JobStatus == 1 && JobUniverse == 5 && User == "alice@pool.test"'
    before = f"{idle} && ClusterId < {number.split('.')[0]} && AccountingGroup is undefined"
    assert order["own_ahead"] == len(pool.jobs(schedd, before)) > 20
    assert (order["users"], order["users_ahead"]) == (1, 0)  # the other is alice of group_full
    assert order["share"] > order["used"] == 1
    _, out, _ = run("explain", number, "--collector", pool.collector, "--schedd", schedd)
    assert "Place in the order: 0 of 1 other user with idle jobs are ahead" in out
