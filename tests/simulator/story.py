"""What happens in the week, besides the tides of jobs and of other users: the causes.

``Event.what`` is the cause, ``where`` a site, an entry, a node, a group or a kind of jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from random import Random
from typing import NamedTuple

from tests.simulator.world import ANALYSIS, ENTRIES, KINDS, OPEN, PRESENT_H, PRODUCTION, on


class What(StrEnum):
    """What can happen."""

    DOWNTIME = "downtime"  # announced; pilots are lost as it begins
    HELD = "held"  # pilots that are submitted are held at once
    MISCONFIGURED = "misconfigured"  # the frontend's expression for the entry matches no job
    BLACK_HOLE = "black hole"  # jobs fail in a minute on a node
    STORAGE = "storage"  # most input files do not arrive
    RELEASE = "release"  # a user's program is broken, wherever it runs
    VALIDATION = "validation"  # pilots fail their validation on some nodes
    LIMIT = "limit"  # pilots of a group at an entry (factor: how many)
    STUCK = "stuck"  # the factory submits nothing although asked


class Event(NamedTuple):
    """Something that holds between two hours; ``share``: of runs, nodes or pilots, or a number."""

    what: What
    where: str
    begins_h: float
    ends_h: float
    share: float = 1.0


BLACK_HOLE_NODE = "wn04.po"
END_H = PRESENT_H + 48

EVENTS = (
    Event(What.MISCONFIGURED, "Loire_ce1", on("Sat", 9), END_H),
    Event(What.BLACK_HOLE, BLACK_HOLE_NODE, on("Fri", 10), on("Fri", 13)),
    Event(What.STORAGE, "Tagus", on("Thu", 10), on("Thu", 17), 0.7),
    Event(What.STORAGE, "Po", on("Wed 18", 7), on("Wed 18", 13), 0.4),
    Event(What.RELEASE, "top", on("Tue", 10), on("Tue", 16), 0.85),
    Event(What.DOWNTIME, "Elbe", on("Thu", 16), on("Fri", 4)),
    Event(What.DOWNTIME, "Seine", on("Wed 18", 12), on("Wed 18", 16)),
    Event(What.HELD, "Oder_ce1", on("Sun", 4), on("Mon", 9)),
    Event(What.VALIDATION, "Neckar", on("Tue", 12), END_H, 0.75),
    Event(What.VALIDATION, "Danube", on("Thu", 3), on("Thu", 9), 0.3),
    Event(What.LIMIT, f"{ANALYSIS} Rhine_ce1", on("Wed", 12), on("Thu", 19), 6),
    Event(What.LIMIT, f"{OPEN} Adige_ce1", on("Wed", 4), END_H, 8),
    Event(What.STUCK, "Glomma_ce1", on("Mon", 14), on("Mon", 20)),
    Event(What.LIMIT, f"{PRODUCTION} Volga_ce1", on("Wed", 4), END_H, 18),
)

LATER = (Event(What.HELD, "Oder_ce1", PRESENT_H, PRESENT_H + 10),)
"""What happens besides in the demo's present."""

_SITES = sorted({entry.site for entry in ENTRIES})

INCIDENTS = (
    # Incidents of real pools by their numbers in docs/truth.md, one after the other.
    *(
        Event(What.MISCONFIGURED, entry.name, on("Wed", 12), on("Wed", 18)) for entry in ENTRIES
    ),  # 1
    Event(What.HELD, "Elbe_ce1", on("Thu", 6), on("Thu", 16)),  # 9
    Event(What.STUCK, "Danube_ce1", on("Thu", 20), on("Fri", 4)),  # 10
    Event(What.STORAGE, "Tagus", on("Fri", 8), on("Fri", 14)),  # 13
    *(Event(What.VALIDATION, site, on("Fri", 18), on("Sat", 2)) for site in _SITES),  # 15
    Event(What.BLACK_HOLE, "wn03.danube", on("Fri", 9), on("Fri", 12)),  # 12
)

_OF_SITES = {What.DOWNTIME, What.STORAGE, What.VALIDATION}

#: How other runs end: shares, and how long until then in parts of what the run would take.
REMOVED, HELD_BY_USER, HELD_FOR_MEMORY, EXIT_ONE, SIGNAL = 0.008, 0.004, 0.008, 0.02, 0.006
DIES = 0.0008
"""How often an hour a node dies, with the pilot on it."""


def drawn(seed: int) -> tuple[Event, ...]:
    """Return another story: the same causes, each of which lasts as long, elsewhere and later."""
    draw = Random(seed)
    found = []
    for what, _, begins_h, ends_h, share in EVENTS:
        lasts_h = min(ends_h - begins_h, 48.0)
        since_h = draw.uniform(12, PRESENT_H - lasts_h)
        entry = draw.choice(ENTRIES)
        where = {
            What.BLACK_HOLE: f"wn{draw.randint(1, 9):02}.{entry.site.lower()}",
            What.RELEASE: draw.choice(KINDS).name,
            What.LIMIT: f"{draw.choice(entry.groups)} {entry.name}",
        }.get(what, draw.choice(_SITES) if what in _OF_SITES else entry.name)
        number = max(1, entry.limit // 4) if what is What.LIMIT else share
        found.append(Event(what, where, since_h, since_h + lasts_h, number))
    return tuple(found)


def holding(events: Iterable[Event], what: What, hour: float) -> dict[str, float]:
    """Return where something holds at an hour, and its share."""
    return {e.where: e.share for e in events if e.what is what and e.begins_h <= hour < e.ends_h}
