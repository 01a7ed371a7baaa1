"""What if: a change is predicted, then made in the real pool, and the negotiator matches.

Of a scenario's jobs, entries or groups one thing is changed, drawn by the same seed:

- ``memory``, ``cores``: condor_qedit of the jobs of an accounting group;
- ``pilot``: pilots that start from now on have another size;
- ``limit``: so many pilots more are started as the limit lets run;
- ``start``: all pilots of a group are given another START, those that run by a reconfiguration;
- ``down``: an entry starts no pilot, and its free slots refuse all jobs.

Predicted is what one pilot more of an entry (of a limit: all that it lets start) is given; each is
asked for with room for that alone, as in ``trial``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from gwmond.config.settings import load
from gwmond.model.demand.question import Question
from gwmond.model.demand.what_if import WhatIfKind
from gwmond.model.entries.evaluation import Capacity, CapacityEvidence
from gwmond.model.facts import EntryKey
from gwmond.model.units import RESOURCES, Resource
from gwmond.service.poller import Poller
from gwmond.service.pool.explainer import NoAnswer, NotRead
from gwmond.service.pool.pool import Pool
from gwmond.service.pool.whatif import JudgedPoll, answered
from gwmond.sites.capacity import provisioned
from tests.daemon.running import configuration
from tests.pool.condor import CondorPool
from tests.referee.arena import Arena
from tests.referee.draw import GRACE_S, GROUPS, OUTLIVES, Entry, Group, Scenario, Shape

_KINDS: tuple[WhatIfKind, ...] = ("memory", "cores", "pilot", "limit", "start", "down")
_MOST_DRAWN, _MOST_ASKED, _MOST_PROBES = 4, 4, 2


class Change(NamedTuple):
    """What changes, as ``gwmond whatif`` is told it, and the scenario with the change."""

    kind: WhatIfKind
    of: str
    value: str
    after: Scenario

    def __str__(self) -> str:
        return f"seed {self.after.seed}: {self.kind} {self.of} {self.value}"


class Prediction(NamedTuple):
    """What was said of an entry: units that jobs could use, without and with the change."""

    state: str
    before: float
    after: float


class Tried(NamedTuple):
    """A prediction, and what the pilots were given that then started."""

    change: Change
    entry: Entry
    predicted: Prediction
    given: float

    @property
    def is_right(self) -> bool:
        """Whether both differ by less than a pilot."""
        return abs(self.predicted.after - self.given) < self.entry.shape.units

    @property
    def is_exact(self) -> bool:
        """Whether both differ by less than a unit."""
        return abs(self.predicted.after - self.given) < 1

    @property
    def naive(self) -> bool:
        """Whether it would have been right within a pilot to say that nothing changes."""
        return abs(self.predicted.before - self.given) < self.entry.shape.units

    def __str__(self) -> str:
        said = f"{self.predicted.before:g} before, {self.predicted.after:g} predicted"
        return f"{self.change}; {self.entry.name} {self.entry.shape.name}: {said}, {self.given:g}"


def grouped(scenario: Scenario) -> Scenario:
    """Each kind of jobs has an accounting group of its own."""
    jobs = (
        some._replace(attrs={**some.attrs, "AcctGroup": f"g{number}"})
        for number, some in enumerate(scenario.jobs)
    )
    return scenario._replace(jobs=tuple(jobs))


def drawn(scenario: Scenario, number: int) -> Change | None:
    """A change of a scenario; None: there is none of the kind that was drawn."""
    rng = Random(f"{scenario.seed} what if {number}")
    kind = _KINDS[(scenario.seed + number) % len(_KINDS)]
    judged = [entry for entry in scenario.entries if entry.judged and not scenario.hides(entry)]
    if kind == "limit":
        judged = [entry for entry in judged if len(entry.presences) == 1]
    if not judged:
        return None
    if kind in ("memory", "cores"):
        return _of_jobs(rng, scenario, kind)
    entry = rng.choice(judged)
    if kind == "start":
        return _of_start(rng, scenario, rng.choice(entry.presences).group)
    if kind == "down":
        entry = rng.choice([e for e in scenario.entries if e.running] or judged)
        return Change(kind, entry.name, "", _with(scenario, entry, entry._replace(down=True)))
    if kind == "limit":
        more = rng.randint(1, 2 if entry.shape.cores > 8 else 4)
        new = entry._replace(room=more, capacity="limit")
        return Change(kind, entry.name, str(entry.running + more), _with(scenario, entry, new))
    cores = rng.choice((2, 4, 8, 16, 32))
    memory = cores * rng.choice((1000, 2000, 2048, 4096))
    shape = Shape(f"{cores}c/{memory}", cores, memory, entry.shape.gpus)
    after = _with(scenario, entry, entry._replace(shape=shape))
    return Change(kind, entry.name, f"{cores},{memory}", after)


def _of_jobs(rng: Random, scenario: Scenario, kind: WhatIfKind) -> Change:
    number = rng.randrange(len(scenario.jobs))
    jobs = list(scenario.jobs)
    if kind == "memory":
        value = rng.choice((500, 1000, 2048, 4096, 8192, 16384))
        jobs[number] = jobs[number]._replace(memory=value)
    else:
        value = rng.choice((1, 2, 4, 8))
        jobs[number] = jobs[number]._replace(cores=value)
    return Change(kind, f"g{number}", str(value), scenario._replace(jobs=tuple(jobs)))


def _of_start(rng: Random, scenario: Scenario, old: Group) -> Change:
    start = rng.choice([group.start for group in GROUPS if group.start != old.start])
    entries = tuple(
        entry._replace(
            presences=tuple(
                of._replace(group=Group(old.client, start)) if of.group == old else of
                for of in entry.presences
            )
        )
        for entry in scenario.entries
    )
    after = scenario._replace(entries=entries)
    return Change("start", old.client, f"({start}) && {OUTLIVES}", after)


def _with(scenario: Scenario, old: Entry, new: Entry) -> Scenario:
    return scenario._replace(entries=tuple(new if e is old else e for e in scenario.entries))


class Oracle:
    """What gwmond says of changes, as of one poll of a pool."""

    def __init__(self, pool: CondorPool, directory: Path, scenario: Scenario) -> None:
        wms = {"collectors": [pool.collector], "factory_schedds": [pool.schedds[1]]}
        tables: dict[str, dict[str, object]] = {
            "site": {"pending_grace": f"{GRACE_S}s"},
            "pool": {"wms": wms},
            "demand": {"attributes": ["x509UserProxyVOName", "VO", "ProjectName"]},
        }
        path = directory / "whatif.toml"
        path.write_text(configuration(directory / "none", [pool.collector], tables))
        self._config, self._scenario = load(path), scenario
        poller = Poller(self._config, Pool(self._config), None, reasons=False)
        snapshot = poller.poll()
        assert all(source.up for source in snapshot.sources), snapshot.sources
        assert poller.facts is not None
        self._facts, self._now = poller.facts, snapshot.pool_time

    def predict(self, change: Change, entry: Entry) -> Prediction:
        """What is said of an entry with room for one pilot, where nothing else has room."""
        shapes = {each.name: each.shape for each in self._scenario.entries}
        rooms = {each.name: int(each is entry) for each in self._scenario.entries}
        if change.kind == "pilot":
            shapes |= {each.name: each.shape for each in change.after.entries}
        places = self._ask(change, rooms, shapes)
        unmoved = Change("max-idle", entry.name, "1", self._scenario)
        for place in (*(places or ()), *(self._ask(unmoved, rooms, shapes) or ())):
            if place["entry"] == entry.name:
                state = place["state_after"]
                return Prediction(state, place["units_before"], place["units_after"])
        raise AssertionError(f"nothing is said of {entry.name}")

    def moves(self, change: Change) -> bool | None:
        """Whether a change is said to move any entry; None: it is of jobs that all run."""
        shapes = {each.name: each.shape for each in self._scenario.entries}
        rooms = {each.name: each.room for each in self._scenario.entries}
        places = self._ask(change, rooms, shapes)
        if places is None:
            return None
        return any(place["units_before"] != place["units_after"] for place in places)

    def _ask(
        self, change: Change, rooms: Mapping[str, int], shapes: Mapping[str, Shape]
    ) -> list[dict[str, Any]] | None:
        """The entries of the answer, with room for so many pilots; None: none of the jobs waits."""
        facts, mib = self._facts, self._config.canonical.memory_mib
        capacities: dict[tuple[EntryKey, Resource], Capacity] = {}
        for resource in RESOURCES:
            used = provisioned(facts.pilots or (), resource, mib)
            for key in facts.all_entries:
                shape = shapes[key.entry]
                each = shape.gpus if resource == "gpu" else shape.units
                units = used.get(key, 0) + rooms[key.entry] * each
                told: CapacityEvidence = "limit" if change.kind == "limit" else "pledge"
                capacities[key, resource] = Capacity(units, told)
        question = Question(change.of, what="whatif", change=change.kind, value=change.value)
        polled = JudgedPoll(facts._replace(capacities=capacities), self._now)
        try:
            record: Any = answered(self._config, polled, question, 300).record()
        except NotRead:
            raise
        except NoAnswer:
            return None
        assert record["not_read"] == []
        entries: list[dict[str, Any]] = record["entries"]
        return entries


def _chosen(oracle: Oracle, scenario: Scenario, every: list[Change]) -> Change | None:
    """The first change that is said to move something; in every fourth scenario the first."""
    possible = []
    for change in every:
        moves = oracle.moves(change)
        if moves or (moves is not None and scenario.seed % 4 == 0):
            return change
        possible += [change] if moves is not None else []
    return possible[0] if possible else None


def make(arena: Arena, scenario: Scenario, change: Change) -> None:
    """Make the change in the pool, and let it settle; pilots to come have it by themselves."""
    if change.kind in ("memory", "cores"):
        name = {"memory": "RequestMemory", "cores": "RequestCpus"}[change.kind]
        wanted = f'AcctGroup == "{change.of}" && JobStatus == 1'
        for schedd in arena.pool.schedds:
            edit = "condor_qedit", "-name", schedd, "-constraint", wanted, name, change.value
            arena.pool.tool(*edit)
    if change.kind == "down":
        arena.reconfigure([e for e in scenario.entries if e.name == change.of], "", "False")
    if change.kind == "start":
        arena.reconfigure(scenario.entries, change.of, change.value)
    arena.settle()


def judge(arena: Arena, directory: Path, scenario: Scenario) -> Iterator[Tried]:
    """Stage a scenario, ask what its change would move, make it, and probe: those moved first."""
    scenario = grouped(scenario)
    every = [change for n in range(_MOST_DRAWN) if (change := drawn(scenario, n)) is not None]
    if not every:
        return
    try:
        arena.stage(scenario)
        oracle = Oracle(arena.pool, directory, scenario)
        change = _chosen(oracle, scenario, every)
        if change is None:
            return
        after = {entry.name: entry for entry in change.after.entries}
        candidates = [
            entry
            for entry in scenario.entries
            if entry.judged
            and not scenario.hides(entry)
            and not after[entry.name].down
            and (change.kind != "limit" or entry.name == change.of)
        ]
        candidates.sort(key=lambda entry: entry.name != change.of)
        asked = candidates[:_MOST_ASKED]
        said = [oracle.predict(change, entry) for entry in asked]
        known = [pair for pair in zip(asked, said, strict=True) if pair[1].state != "unknown"]
        known.sort(key=lambda pair: pair[1].before == pair[1].after)
        make(arena, scenario, change)
        arena.arrive(change.after)
        for entry, predicted in known[:_MOST_PROBES]:
            new = after[entry.name]
            pilots = new.room if change.kind == "limit" else 1
            taken = arena.probe(new, pilots)
            yield Tried(change, new, predicted, max(of.units for of in taken.values()))
    finally:
        arena.clear()
