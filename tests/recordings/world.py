"""The invented pool of the demo: sites, their entries, and what may run where.

Sites are named after rivers.  Everything is drawn from one seed, so it is the same each time.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property

SEED = 20260310
PRODUCTION, ANALYSIS, OPEN = "physics.production", "physics.analysis", "open.main"
GROUPS = (PRODUCTION, ANALYSIS, OPEN)
FACTORIES = ("east", "west")
GLIDEIN = "v3_11"
DOMAIN = "demo.example"

_NAMES = (
    "Adige Amur Arno Aare Avon Bann Bug Clyde Congo Danube Dniester Douro Drava Drina Ebro "
    "Elbe Ems Enns Firth Gambia Garonne Glomma Havel Ibar Indus Inn Isar Jordan Kemi Kura "
    "Lagan Lech Lena Loire Main Marne Mekong Meuse Minho Mosel Neckar Neva Niger Oder Ohio "
    "Orinoco Parana Po Rhine Rhone Saar Sava Seine Severn Shannon Tagus Tiber Tisza Vistula "
    "Volga "
)
_RIVERS = _NAMES.split()


@dataclass(frozen=True)
class Shape:
    """Pilots of a kind: cores, GPUs, and between which numbers the limits of entries are."""

    suffix: str
    cores: int
    gpus: int
    least: int
    most: int


ONE = Shape("1core", 1, 0, 60, 140)
FOUR = Shape("4core", 4, 0, 40, 90)
EIGHT = Shape("8core", 8, 0, 28, 96)
SIXTEEN = Shape("16core", 16, 0, 16, 48)
NODE = Shape("node", 64, 0, 6, 26)
GPU = Shape("gpu", 8, 1, 10, 30)
GPU2 = Shape("2gpu", 16, 2, 8, 16)
GPU8 = Shape("8gpu", 64, 8, 4, 6)

_FIRST = [EIGHT] * 35 + [ONE] * 8 + [FOUR] * 6 + [SIXTEEN] * 5 + [NODE] * 6
_SECOND = [GPU] * 5 + [GPU2] * 2 + [GPU8] + [ONE] * 5 + [NODE] * 7


@dataclass(frozen=True)
class Entry:
    """One entry: a queue of a site's compute element, as the factory describes it.

    ``room`` is the share of ``max_pilots`` that the site has for us on average; ``acknowledges_s``
    how long the site takes to report a submitted pilot; ``at_once`` that pilots start immediately.
    """

    site: str
    name: str
    factory: str
    shape: Shape
    memory_mib: int
    max_pilots: int
    room: float
    communities: tuple[str, ...]
    walltime_s: int
    slow_to_acknowledge: bool
    at_once: bool

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The frontend groups that ask for pilots here."""
        if "gpu" in self.communities:
            return (ANALYSIS, OPEN)
        return tuple(g for g in GROUPS if g.partition(".")[0] in self.communities)

    @property
    def cores(self) -> int:
        """Cores of each pilot."""
        return self.shape.cores

    @property
    def gpus(self) -> int:
        """GPUs of each pilot."""
        return self.shape.gpus

    @property
    def retires_after_s(self) -> int:
        """Age at which a pilot takes no more jobs."""
        return self.walltime_s - 10 * 3600


def entries() -> tuple[Entry, ...]:
    """Return all entries, sorted by site."""
    draw = random.Random(SEED)
    first, second = list(_FIRST), list(_SECOND)
    draw.shuffle(first)
    seconds = dict(zip(draw.sample(_RIVERS, len(second)), second, strict=True))
    made = []
    for number, (site, shape) in enumerate(zip(_RIVERS, first, strict=True)):
        factory = FACTORIES[number % 3 == 2]
        made.append(_entry(draw, site, "ce1", factory, shape))
        if site in seconds:
            made.append(_entry(draw, site, "ce2", factory, seconds[site]))
    return tuple(made)


def _entry(draw: random.Random, site: str, ce: str, factory: str, shape: Shape) -> Entry:
    per_core = draw.choices((2048, 2560, 3072, 4096), (45, 25, 20, 10))[0]
    communities = draw.choices((("physics",), ("physics", "open"), ("open",)), (45, 40, 15))[0]
    return Entry(
        site=site,
        name=f"{site}_{ce}_{shape.suffix}",
        factory=factory,
        shape=shape,
        memory_mib=(4096 if shape.gpus else per_core) * shape.cores,
        max_pilots=draw.randint(shape.least, shape.most),
        room=draw.choice((0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25)),
        communities=("gpu",) if shape.gpus else communities,
        walltime_s=draw.choices((24, 36, 48), (50, 30, 20))[0] * 3600,
        slow_to_acknowledge=draw.random() < 0.08,
        at_once=draw.random() < 0.06,
    )
