"""What happens in the demo's day, besides the tides of jobs: downtimes, limits, faults.

Hours count from the beginning of the recorded day.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.recordings.world import ANALYSIS, OPEN, Entry


@dataclass(frozen=True)
class Times:
    """When something holds, and where: at a site or one of its entries, or at a factory."""

    where: str
    begins_h: float
    ends_h: float

    def holds(self, entry: Entry, hour: float) -> bool:
        """Whether it holds for an entry at an hour of the day."""
        return self.begins_h <= hour < self.ends_h and self.where in (
            entry.site,
            entry.name,
            entry.factory,
        )


#: Downtimes; at the first sites in the list the pilots are lost when they begin.
DOWN = (
    Times("Mosel", 1.2, 4.0),
    Times("Niger", 5.0, 9.0),
    Times("Garonne", 14.0, 17.0),
    Times("Bug", 0.0, 2.5),
    Times("Shannon", 0.5, 2.0),
    Times("Ohio", 1.8, 3.2),
    Times("Indus_ce2_1core", 2.2, 5.0),
    Times("Seine_ce2_gpu", 3.0, 6.0),
    Times("Ems", 3.5, 8.0),
    Times("Rhone", 6.5, 10.5),
    Times("Drina_ce2_node", 7.0, 11.0),
    Times("Sava", 9.0, 13.0),
    Times("Havel", 10.0, 12.0),
    Times("Kemi", 12.0, 20.0),
    Times("Enns", 15.0, 19.0),
    Times("Minho", 18.0, 21.0),
    Times("Avon", 20.0, 24.0),
    Times("Bug", 23.0, 24.0),
)
LOST = frozenset(("Mosel", "Niger", "Garonne"))

#: Pilots that are submitted are held at once (an expired credential at the site's gate).
HELD = (
    Times("Aare_ce1_8core", 0.3, 3.5),
    Times("Firth", 1.0, 5.0),
    Times("Neva", 4.0, 8.0),
    Times("Tisza_ce1_1core", 11.0, 15.0),
    Times("Lagan", 17.0, 20.0),
)

#: The factory submits nothing although asked (its own queue is stuck for the entry).
STUCK = (
    Times("Clyde", 0.7, 2.4),
    Times("Jordan_ce1_4core", 2.0, 3.5),
    Times("Main", 5.5, 7.5),
    Times("Congo", 9.0, 11.0),
    Times("Mekong", 16.0, 18.0),
)

#: The factory and the frontends do not hear of each other.
SILENT = (Times("west", 2.6, 4.2), Times("west", 21.0, 22.0))

#: The frontend's expression for the entry is wrong: in its count nothing matches.
MISCONFIGURED = (Times("Tagus_ce1_16core", 0.0, 4.5), Times("Saar", 8.0, 14.0))

#: No frontend advertises the entry any more, though pilots run there.
FORGOTTEN = (Times("Gambia_ce2_1core", 1.0, 2.2), Times("Vistula", 10.0, 16.0))

#: Schedds that do not answer.
DEAF = ((1, 1.5, 1.95), (2, 6.0, 6.5), (3, 13.0, 13.5), (0, 22.0, 22.5))

#: A schedd whose main loop is busy: its duty cycle is above what gwmond considers polite.
BUSY = ((2, 4.0, 5.0),)

#: Frontend limits: pilots of a group at each entry, and of a group in all.
PER_ENTRY = {ANALYSIS: {"Dniester": 12, "Rhine": 8}, OPEN: {"Douro": 10, "Niger": 14}}
PER_GROUP = {ANALYSIS: 900, OPEN: 1000}

#: Curbs: above that many pilots of the group at an entry half as many are asked for.
CURB = {OPEN: 30, ANALYSIS: 40}

#: Factory limits: pilots of one frontend at an entry, below the entry's own limit.
PER_FRONTEND = {"Drava_ce1_node": 7, "Elbe_ce1_8core": 26, "Parana_ce1_node": 9}

#: How runs of jobs end that go on to the end of their pilots: shares, and the exit code.
ENDINGS = (
    (0.030, "exit", 1),
    (0.008, "exit", 139),
    (0.008, "signal", 11),
    (0.012, "removed", 0),
    (0.006, "held_by_user", 0),
    (0.010, "held_for_memory", 0),
    (0.006, "no_output", 0),
)

#: Runs that take longer than their users thought, perhaps than their pilots last.
OVERLONG = 0.02

#: Jobs whose program is broken: some fail at once, wherever they run.
BROKEN = ("analysis-susy", "astro-survey")

#: Sites some nodes of which (one in so many) break what runs there.
SICK = (
    Times("Danube", 0.5, 4.0),
    Times("Oder", 1.0, 3.0),
    Times("Neckar", 2.5, 7.0),
    Times("Severn", 9.0, 12.0),
    Times("Tagus", 14.0, 18.0),
)
SICK_NODES = 11

#: Where input files do not arrive, or containers do not start, and for which share of jobs.
NO_STAGE_IN = (
    (Times("Marne", 0.4, 2.5), 0.25),
    (Times("Po", 3.0, 6.0), 0.3),
    (Times("Isar", 11.0, 15.0), 0.2),
)
NO_CONTAINER = (
    (Times("Rhine", 0.8, 3.0), 0.25),
    (Times("Lena", 8.0, 11.0), 0.25),
)

#: Sites that end pilots for others' sake, and how often an hour; nodes that die, anywhere.
PREEMPTS = {"Adige": 0.03, "Glomma": 0.05, "Mekong": 0.04, "Orinoco": 0.06, "Severn": 0.03}
DIES = 0.002


def any_holds(times: Iterable[Times], entry: Entry, hour: float) -> bool:
    """Whether any of them holds."""
    return any(time.holds(entry, hour) for time in times)


def schedds_in(times: Iterable[tuple[int, float, float]], hour: float) -> frozenset[int]:
    """Return the schedds for which it holds."""
    return frozenset(schedd for schedd, begins, ends in times if begins <= hour < ends)
