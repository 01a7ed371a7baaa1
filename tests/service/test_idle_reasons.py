"""Which kinds of jobs that match no pilot each poll analyses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gwmond.config.settings import Config
from gwmond.explain.idle import NOT_ANALYSED
from gwmond.model.demand.order import NO_LIMITS
from gwmond.model.demand.waiting_job import UNKNOWN_JOB, Examined
from gwmond.model.entries.evaluation import Evaluation, IdleJobs
from gwmond.model.facts import DemandGroup, Size
from gwmond.service.pool.idle_reasons import AGAIN_S, AT_ONCE, IdleReasons
from tests.build.waiting import place

GROUPS = [
    DemandGroup("ap", "cms", f"s{number}", "", 100 - number, Size(1, 2000), None)
    for number in range(2 * AT_ONCE)
]
IDLE = tuple(IdleJobs(group, group.jobs, 0.0, ()) for group in GROUPS)


class Gatherer:
    """Analyses what it is given, unless the first group is among that: it takes too long."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.aside = frozenset[str]()

    def run(self, *given: Any, keep: bool) -> tuple[Examined, ...] | None:
        *_, groups, _terms = given
        assert not keep
        self.asked.append([group.signature for group in groups])
        if GROUPS[0] in groups:
            return None
        return tuple(Examined(UNKNOWN_JOB, (place(refusals=("VO",)),)) for _ in groups)


def test_one_group_that_cannot_be_analysed_keeps_no_other_from_it() -> None:
    gatherer = Gatherer()
    pool: Any = SimpleNamespace(
        gatherer=gatherer,
        recording=None,
        targets=SimpleNamespace(collectors=()),
        clock=SimpleNamespace(tick=lambda: None),
        access=lambda _tick: None,
    )
    facts = SimpleNamespace(totals={}, templates=(), pilots=())
    silent = frozenset[str]()
    state: Any = SimpleNamespace(pilot_groups={}, facts=facts, limits=NO_LIMITS, silent=silent)
    evaluation = Evaluation({}, {}, {}, idle=IDLE)
    reasons = IdleReasons(Config(), pool)

    def found(now: float) -> list[str]:
        causes = reasons.causes(state, evaluation, now)
        return [causes.main(idle).cause for idle in IDLE]

    names = [group.signature for group in GROUPS]
    assert found(1000.0) == [NOT_ANALYSED.cause] * (2 * AT_ONCE)
    assert found(1001.0) == [NOT_ANALYSED.cause] * AT_ONCE + ["start"] * AT_ONCE
    assert gatherer.asked == [names[:AT_ONCE], names[AT_ONCE:]]
    found(1002.0)
    assert len(gatherer.asked) == 2
    found(1001.0 + AGAIN_S)
    assert gatherer.asked[2:] == [names[:AT_ONCE]]
