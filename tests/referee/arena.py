"""A scenario in a real pool, and the experiment: one real, empty pilot, and what it is given.

The pool's own negotiator decides all of it. Every wait is for an event: *settled* is a pool in
which two whole negotiation cycles, begun after anything last changed, have considered all idle
jobs and matched none.
"""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.pool import feign
from tests.pool.adtext import Ad, Expr, Value, literal
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.pool.sandbox import wait_until
from tests.referee.draw import (
    GRACE_S,
    UNIT_MIB,
    Entry,
    Group,
    Presence,
    Scenario,
    pilot_attributes,
    start_of,
)

#: Cycles follow each other closely, and the negotiator tells of each at its end.
POOL_CONFIG = """
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_UPDATE_AFTER_CYCLE = True
SCHEDD_INTERVAL = 2
# The factory's jobs keep the state in which they are feigned: nothing manages them.
GRIDMANAGER = /bin/false
"""

_OWNERS = ("alice", "bob")
_LEASE = {"job_lease_duration": 60}
"""So that no job waits for long for the starter of a pilot that has just ended."""
_SHOWN = 'stringListMember(MyType, "Submitter,Negotiator,Scheduler") || SlotType == "Dynamic"'
_CYCLES = tuple(
    (f"LastNegotiationCycleTime{n}", f"LastNegotiationCycleMatches{n}") for n in range(3)
)
_ATTRIBUTES = (
    *("MyType", "Name", "RunningJobs", "IdleJobs", "NumPendingClaims", "State", "Activity"),
    *(name for pair in _CYCLES for name in pair),
)


class Taken(NamedTuple):
    """What jobs took of pilots: canonical units and GPUs, and how many jobs.

    A job takes a pilot's units divided by how many such jobs fit into an empty one.
    """

    units: float
    gpus: int
    jobs: int


class _View(NamedTuple):
    """What the collector shows: jobs that run and wait, slots that run them, claims under way.

    ``cycles`` are the last three negotiation cycles: when each began, and its matches.
    """

    running: int
    idle: int
    claimed: int
    pending: int
    cycles: tuple[tuple[float, float], ...]

    def settled_since(self, moment: float) -> bool:
        """Whether nothing is under way, and no cycle that began since then has matched a job."""
        done = self.running == self.claimed and not self.pending
        return done and all(began > moment and not matches for began, matches in self.cycles)


class Arena:
    """One pool, for one scenario after the other."""

    def __init__(self, pool: CondorPool) -> None:
        self.pool = pool
        self._number = 0
        self._feigned: list[tuple[str, str]] = []  # MyType, Name
        self._pilots: dict[Pilot, tuple[str, str]] = {}  # entry, client
        self._jobs = 0

    # -- the scenario

    def stage(self, scenario: Scenario) -> int:
        """Set it up; return how many jobs are idle once the pool has settled."""
        ads: list[Ad] = []
        started: list[Pilot] = []
        for entry in scenario.entries:
            for presence in entry.presences:
                ads += [self._busy_pilot(entry, presence.group) for _ in range(presence.busy)]
                started += [self._start(entry, presence.group) for _ in range(presence.open)]
                ads.append(_resource(entry, presence, scenario.tells))
                self._queue(entry, presence)
        for command in sorted(set(feign.COMMANDS.values())):
            self.pool.advertise(
                [ad for ad in ads if feign.COMMANDS[str(ad["MyType"])] == command], command
            )
        self._feigned = [(str(ad["MyType"]), str(ad["Name"])) for ad in ads]
        self._await_slots(started)
        for jobs in scenario.jobs:
            schedd = self.pool.schedds[jobs.schedd]
            self.pool.submit(schedd, jobs.n, **(_LEASE | jobs.submission))  # type: ignore[arg-type]
        self._jobs = sum(jobs.n for jobs in scenario.jobs)
        return self.settle().idle

    def arrive(self, scenario: Scenario) -> None:
        """Let the pilots start that wait, where they may: verdicts count on them."""
        started = []
        for entry in scenario.entries:
            for presence in entry.presences:
                if presence.pending and presence.waited_s <= GRACE_S and not entry.down:
                    started += [self._start(entry, presence.group) for _ in range(presence.pending)]
        if started:
            self._await_slots(started)
            self.settle()

    def probe(self, entry: Entry, pilots: int = 1) -> dict[str, Taken]:
        """Start empty pilots of each of the entry's groups in turn; what these are given."""
        found = {}
        for presence in entry.presences:
            started = [self._start(entry, presence.group) for _ in range(pilots)]
            self._await_slots(started)
            self.settle()
            taken = [self._taken(entry, pilot) for pilot in started]
            found[presence.group.client] = Taken(*map(sum, zip(*taken, strict=True)))
            for pilot in started:
                self._end(pilot)
        return found

    def reconfigure(self, entries: Iterable[Entry], client: str, start: str) -> None:
        """Give the real pilots of entries, and of a client (empty: any), another START."""
        names = {entry.name for entry in entries}
        chosen = [
            pilot
            for pilot, (entry, of) in self._pilots.items()
            if entry in names and client in ("", of)
        ]
        self._number += 1
        for pilot in chosen:
            with pilot.config.open("a") as config:
                config.write(f"START = {start}\nTimesChanged = {self._number}\n")
                config.write("STARTD_ATTRS = $(STARTD_ATTRS) TimesChanged\n")
            pilot.signal("MASTER", signal.SIGHUP)
        wanted = {f"slot1@{pilot.name}" for pilot in chosen}

        def known() -> bool:
            changed = f'SlotType == "Partitionable" && TimesChanged == {self._number}'
            return wanted <= {slot["Name"] for slot in self.pool.query("Slot", changed, ["Name"])}

        self.pool.wait_for(f"another START of {sorted(wanted)}", known)

    def clear(self) -> None:
        """Remove jobs, pilots and ads; returns when nothing is left of them."""
        for schedd in self.pool.schedds:
            for owner in _OWNERS:
                self.pool.remove(schedd, f"Owner == {literal(owner)}", user=owner)
        for pilot in list(self._pilots):
            self._end(pilot)
        for kind, command in (
            ("Machine", "INVALIDATE_STARTD_ADS"),
            ("glideresource", "INVALIDATE_ADS_GENERIC"),
        ):
            names = ",".join(name for of, name in self._feigned if of == kind)
            wanted = Expr(f'stringListMember(Name, "{names}")')
            query: Ad = {"MyType": "Query", "TargetType": kind, "Requirements": wanted}
            self.pool.advertise([query], command)
        self._feigned = []

        def empty() -> bool:
            return not any(
                self.pool.jobs(schedd, "JobUniverse == 5") for schedd in self.pool.schedds
            )

        self.pool.wait_for("empty queues", empty)
        self.pool.wait_for(
            "no slot",
            lambda: (
                not self.pool.query("Slot", None, ["Name"])
                and not self.pool.query("Any", 'MyType == "glideresource"', ["Name"])
            ),
        )

    # -- pilots

    def _name(self, entry: Entry) -> str:
        self._number += 1
        return f"p{self._number}-{entry.name}"

    def _start(self, entry: Entry, group: Group) -> Pilot:
        """Start a real, empty pilot, which refuses what its group's START refuses."""
        shape = entry.shape
        pilot = self.pool.start_pilot(
            self._name(entry),
            cores=shape.cores,
            memory=shape.memory,
            gpus=shape.gpus,
            attrs=pilot_attributes(entry, group),
            lifetime=entry.lifetime_s,
            config=f"START = ($(START)) && ({start_of(group)})",
            wait=False,
        )
        self._pilots[pilot] = entry.name, group.client
        return pilot

    def _await_slots(self, pilots: Iterable[Pilot]) -> None:
        names = {f"slot1@{pilot.name}" for pilot in pilots}

        def known() -> bool:
            slots = self.pool.query("Slot", 'SlotType == "Partitionable"', ["Name"])
            return names <= {slot["Name"] for slot in slots}

        self.pool.wait_for(f"the slots of {sorted(names)}", known)

    def _end(self, pilot: Pilot) -> None:
        """End a pilot; its jobs wait again, and its ads are gone."""
        pilot.stop_graceful()
        del self._pilots[pilot]
        mine = _slots_of(pilot)

        def gone() -> bool:
            view = self._view()
            left = self.pool.query("Slot", mine, ["Name"])
            return view.running == view.claimed and not left

        self.pool.wait_for(f"the end of {pilot.name}", gone)

    def _busy_pilot(self, entry: Entry, group: Group) -> Ad:
        """Feign a pilot that one job fills, an hour old: nothing can be matched with it."""
        shape, now = entry.shape, time.time()
        name = f"{self._name(entry)}@feigned"
        started = now - 3600
        origin: dict[str, Value] = {
            **pilot_attributes(entry, group),
            "GLIDEIN_ToRetire": int(started + entry.lifetime_s),
            "GLIDEIN_ToDie": int(started + entry.lifetime_s),
        }
        cpus, memory, gpus = shape.cores, shape.memory, shape.gpus
        child = feign.dynamic_slot(name, cpus=cpus, memory=memory, gpus=gpus, started=started)
        return feign.partitionable_slot(
            name,
            cpus=cpus,
            memory=memory,
            gpus=gpus,
            children=[child],
            started=started,
            glidein=origin,
            Start=start_of(group),
        )

    def _queue(self, entry: Entry, presence: Presence) -> None:
        """Put the pilots that wait into the factory's queue, which is the second schedd's."""
        if presence.pending:
            self.pool.submit(
                self.pool.schedds[1],
                presence.pending,
                universe="grid",
                grid_resource="batch slurm",
                requirements="true",
                attrs={
                    "GridJobStatus": "PENDING",
                    "QDate": int(time.time()) - presence.waited_s,
                    "GlideinFactory": "factory",
                    "GlideinName": "glidein",
                    "GlideinEntryName": entry.name,
                    "GlideinClient": presence.group.client,
                },
            )

    # -- what the pool does

    def _view(self) -> _View:
        ads = self.pool.query("Any", _SHOWN, list(_ATTRIBUTES))
        by_type: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for ad in ads:
            by_type[ad["MyType"]].append(ad)
        (negotiator,) = by_type["Negotiator"]
        states = [(ad["State"], ad["Activity"]) for ad in by_type["Machine"]]
        return _View(
            sum(ad["RunningJobs"] for ad in by_type["Submitter"]),
            sum(ad["IdleJobs"] for ad in by_type["Submitter"]),
            states.count(("Claimed", "Busy")),
            sum(ad["NumPendingClaims"] for ad in by_type["Scheduler"]),
            tuple((negotiator.get(began, 0), negotiator.get(name, 0)) for began, name in _CYCLES),
        )

    def settle(self) -> _View:
        """Wait until nothing is matched any more; what there is then."""
        view, since = self._view(), time.time()

        def settled() -> bool:
            nonlocal view, since
            before, view = view, self._view()
            if before[:4] != view[:4]:
                since = time.time()
            return view.running + view.idle == self._jobs and view.settled_since(since)

        try:
            wait_until("a pool that has settled", settled, pause=1.0)
        except TimeoutError as error:
            error.add_note(f"{view} of {self._jobs} jobs")
            raise
        return view

    def _taken(self, entry: Entry, pilot: Pilot) -> Taken:
        slots: list[dict[str, Any]] = self.pool.query(
            "Slot",
            f'SlotType == "Dynamic" && State == "Claimed" && {_slots_of(pilot)}',
            ["Cpus", "Memory", "GPUs"],
        )
        shape = entry.shape
        each = (shape.units / shape.holds(slot["Cpus"], slot["Memory"]) for slot in slots)
        gpus = sum(int(slot.get("GPUs", 0)) for slot in slots)
        return Taken(min(float(shape.units), sum(each)), gpus, len(slots))


def _slots_of(pilot: Pilot) -> str:
    """What a pilot's slots satisfy."""
    return f'regexp("@{pilot.name}$", Name)'


def _resource(entry: Entry, presence: Presence, tells: bool) -> Ad:
    """What the frontend's group says of the entry: the frontend's part of START, for all groups."""
    pending = sum(p.pending for p in entry.presences)
    limit = entry.running + entry.room if entry.capacity == "limit" else 10_000
    held = int(str(entry.signs.get("held", 0)))
    total = "GlideFactoryMonitorTotalStatus"
    numbers: dict[str, Value] = {
        "GlideClientConstraintFactoryCondorExpr": "True",
        "GlideFactoryConfigPerEntryMaxGlideins": limit,
        f"{total}Running": entry.running,
        f"{total}Idle": pending,
        f"{total}Pending": pending,
        f"{total}Held": held * len(entry.presences),
    }
    query = presence.group.query if tells else Expr("undefined")
    numbers["GlideClientConstraintJobCondorExpr"] = query
    options: dict[str, Any] = {**entry.signs, **numbers}
    return feign.glideresource(
        entry.name,
        entry.site,
        client=presence.group.client,
        pending=presence.pending,
        running=presence.busy + presence.open,
        down=entry.down,
        cpus=entry.shape.cores,
        memory=entry.shape.memory,
        gpus=entry.shape.gpus,
        walltime=entry.lifetime_s,
        **options,
    )


__all__ = ["POOL_CONFIG", "UNIT_MIB", "Arena", "Taken"]
