"""Answers of daemons, from which the state of a pool is built."""

from __future__ import annotations

from typing import Any

from gwmond.config.settings import Config
from gwmond.model.demand.order import ScheddLoad
from gwmond.model.facts import (
    DemandGroup,
    EntryKey,
    EntryRequest,
    JobCount,
    Pilot,
    Status,
)
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import HOUR_S
from gwmond.service.pool.known_entries import EMPTY, Memory
from gwmond.service.pool.pool_state import PoolState, build_state
from gwmond.sites.capacity import PeakWindow
from gwmond.sources.htcondor.access import Daemon
from gwmond.sources.htcondor.collector import CollectorInfo
from gwmond.sources.htcondor.demand import ScheddDemand
from gwmond.sources.htcondor.glideresource import Requests
from gwmond.sources.htcondor.pilots.slots import Slots
from gwmond.sources.htcondor.schedds import Schedds, ScheddSeen
from gwmond.sources.round import Answer, Round
from tests.build.facts import NOW, A, B, template

MONO = 5000.0
HOUR = NOW // HOUR_S
DAY = 86400


class Answers:
    """Answers of daemons, from which a state is taken."""

    def __init__(self, **options: Any) -> None:
        self.config = Config.model_validate(options)
        self.answers: dict[tuple[str, str], Answer] = {}
        self.statuses: dict[tuple[str, str], Status] = {}
        self.templates = {(t.entry, t.group): t for t in (template(A), template(B))}
        self.chosen: list[ScheddSeen] = []

    def answer(self, source: str, kind: str, value: Any, age: float = 0, skipped: int = 0) -> None:
        self.answers[source, kind] = Answer(value, MONO - age)
        self.statuses[source, kind] = Status(
            source, kind, True, 0.1, 0.1, 30.0, NOW - age, 1, skipped, None, ""
        )

    def silent(self, source: str, kind: str) -> None:
        """A source of which there is no answer yet."""
        self.statuses[source, kind] = Status(
            source, kind, False, 0.1, 0, 0, None, 0, 0, ProblemName.TIMEOUT, ""
        )

    def slots(self, *pilots: Pilot, source: str = "cm", age: float = 0) -> None:
        named = [p._replace(name=f"{p.name}{number}") for number, p in enumerate(pilots)]
        self.answer(source, "slots", Slots(tuple(named), (), ()), age)

    def collector(self, started: int | None, source: str = "cm") -> None:
        self.answer(source, "collector", CollectorInfo(started, "25.0"))

    def requests(self, *requests: EntryRequest, source: str = "cm", age: float = 0) -> None:
        self.answer(source, "glideresource", Requests(requests, (), ()), age)

    def discovery(self, *names: str, age: float = 0) -> None:
        """The collector knows these schedds, which are asked."""
        self.chosen = [ScheddSeen(Daemon(name, "<>"), ScheddLoad(), False, 0) for name in names]
        self.answer("cm", "schedds", Schedds(tuple(self.chosen), ()), age)
        self.answer("cm", "submitters", Schedds((), ()), age)

    def demand(
        self,
        name: str,
        *groups: DemandGroup,
        age: float = 0,
        complete: bool = True,
        skipped: int = 0,
    ) -> None:
        counts = tuple(JobCount(name, g.accounting_group, "idle", g.jobs) for g in groups)
        self.answer(name, "demand", ScheddDemand(groups, counts, 1, complete, ()), age, skipped)

    def take(self, memory: Memory = EMPTY, now: float = NOW) -> PoolState:
        found = Round(
            self.answers,
            tuple(self.statuses[at] for at in sorted(self.statuses)),
            (),
            self.templates,
            tuple(self.chosen),
        )
        return build_state(found, memory, self.config, now, MONO)


def watched(*keys: EntryKey, units: int = 8, since: int = NOW - 2 * DAY) -> Memory:
    """A memory in which each entry has had that many units, for two days."""
    window = PeakWindow().add(HOUR - 24, units)
    return Memory(
        dict.fromkeys(keys, since),
        {(key, "cpu"): units for key in keys} | {(key, "gpu"): 0 for key in keys},
        {(key, "cpu"): window for key in keys},
        {},
    )
