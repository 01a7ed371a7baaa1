"""The invented pool: sites, their entries, frontend groups, and what users submit.

Hours count from the beginning of the simulation; ``on`` gives them by day and time.
"""

from __future__ import annotations

from dataclasses import dataclass

SEED = 20260311
DOMAIN = "demo.example"
COLLECTOR, WMS = f"cm.{DOMAIN}", f"wms.{DOMAIN}"
SCHEDDS = tuple(f"schedd{n}@{DOMAIN}" for n in (1, 2, 3))
FACTORY, GLIDEIN = "east", "v3_11"
FACTORY_SCHEDD = f"factory@{FACTORY}.{DOMAIN}"

BEGINS = 1773201600  # Wednesday, 2026-03-11 04:00 UTC
_DAYS = ("Wed", "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed 18", "Thu 19")


def on(day: str, hour: float) -> float:
    """Return the hours since the beginning at a time of a day."""
    return _DAYS.index(day) * 24 + hour - 4


PRESENT_H = on("Wed 18", 10)
"""Where the past ends, and the replay begins."""

PRODUCTION, ANALYSIS, OPEN, GPU = (
    *("physics.production", "physics.analysis"),
    *("open.main", "open.gpu"),
)
STARTS = {
    PRODUCTION: 'TARGET.VO =?= "production"',
    ANALYSIS: 'TARGET.VO =?= "analysis"',
    OPEN: 'TARGET.VO =?= "open" && (TARGET.RequestGPUs ?: 0) == 0',
    GPU: 'TARGET.VO =?= "open" && (TARGET.RequestGPUs ?: 0) > 0',
}
"""Which jobs the pilots of a group start, besides those that are too long for them."""


@dataclass(frozen=True)
class Entry:
    """One entry: a queue of a site's compute element.

    ``limit`` is how many of our pilots the site has cores for, and the factory's limit; ``others``
    the share of these that other users hold on average, ``swing`` how far that goes up and down.
    ``delay_s``: how long a pilot waits in the queue although there is room.
    """

    site: str
    name: str
    cores: int
    memory_mib: int
    limit: int
    groups: tuple[str, ...]
    walltime_h: int = 24
    others: float = 0.1
    swing: float = 0.1
    delay_s: int = 240
    gpus: int = 0
    preempts: float = 0.0
    """How often an hour the site ends a pilot for others' sake."""

    @property
    def units(self) -> int:
        """Canonical units of a pilot."""
        return max(1, min(self.cores, self.memory_mib // 2000))


ENTRIES = (
    Entry("Danube", "Danube_ce1", 8, 16384, 30, (PRODUCTION, ANALYSIS), others=0.15, swing=0.15),
    Entry("Elbe", "Elbe_ce1", 8, 24576, 20, (PRODUCTION, ANALYSIS)),
    Entry("Loire", "Loire_ce1", 8, 16384, 16, (PRODUCTION,)),
    Entry("Volga", "Volga_ce1", 8, 16384, 20, (PRODUCTION,), others=0.45, swing=0.3, delay_s=2400),
    Entry("Oder", "Oder_ce1", 8, 16384, 14, (PRODUCTION, OPEN)),
    Entry("Seine", "Seine_node", 64, 131072, 4, (PRODUCTION,), walltime_h=36),
    Entry("Rhine", "Rhine_ce1", 8, 16384, 24, (ANALYSIS, OPEN)),
    Entry("Tagus", "Tagus_ce1", 4, 8192, 30, (ANALYSIS,)),
    Entry("Po", "Po_ce1", 8, 16384, 16, (ANALYSIS,)),
    Entry("Glomma", "Glomma_ce1", 16, 32768, 10, (PRODUCTION, ANALYSIS, OPEN), walltime_h=36),
    Entry("Adige", "Adige_ce1", 8, 16384, 20, (OPEN,), others=0.3, swing=0.3, preempts=0.03),
    Entry("Neckar", "Neckar_ce1", 8, 16384, 14, (OPEN,)),
    Entry("Isar", "Isar_1core", 1, 2048, 40, (OPEN,)),
    Entry("Isar", "Isar_gpu", 8, 32768, 8, (GPU,), gpus=1),
    Entry("Kemi", "Kemi_short", 4, 8192, 16, (OPEN,), walltime_h=4),
)


@dataclass(frozen=True)
class Wave:
    """Jobs that come evenly between two hours."""

    begins_h: float
    ends_h: float
    jobs: int


@dataclass(frozen=True)
class Kind:
    """Jobs that matching cannot tell apart, of one user at one schedd.

    ``hours`` is the wall time they ask for, of which they take a part.  ``owner`` is the submitter
    to the negotiator.  At ``removed_h`` the user removes those that are idle.
    """

    name: str
    schedd: int
    owner: str
    group: str
    accounting_group: str
    cores: int
    memory_mib: int
    hours: float
    waves: tuple[Wave, ...]
    gpus: int = 0
    sites: tuple[str, ...] = ()
    removed_h: float = -1.0

    @property
    def vo(self) -> str:
        """The attribute to which the START of pilots refers."""
        return "open" if self.group.startswith("open") else self.group.partition(".")[2]

    def runs_at(self, entry: Entry, group: str) -> bool:
        """Whether such a job could run on an empty pilot of a group at an entry."""
        return (
            group == self.group
            and (not self.sites or entry.site in self.sites)
            and self.cores <= entry.cores
            and self.memory_mib <= entry.memory_mib
            and self.gpus <= entry.gpus
            and self.hours < entry.walltime_h
        )

    @property
    def requirements(self) -> str:
        """The job's Requirements, as a schedd completes them."""
        own = "stringListMember(TARGET.GLIDEIN_Site,MY.DESIRED_Sites)" if self.sites else "true"
        gpus = " && (TARGET.GPUs >= RequestGPUs)" if self.gpus else ""
        return (
            f'({own}) && (TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX")'
            " && (TARGET.Disk >= RequestDisk) && (TARGET.Memory >= RequestMemory)"
            f" && (TARGET.Cpus >= RequestCpus){gpus} && (TARGET.HasFileTransfer)"
        )


def _campaign(day: str, hour: float, lasts_h: float, at_once: int, later: int) -> tuple[Wave, ...]:
    begins = on(day, hour)
    return Wave(begins, begins + 0.5, at_once), Wave(begins + 0.5, begins + lasts_h, later)


def _working_days(jobs: int, late_h: float = 0) -> tuple[Wave, ...]:
    """Jobs of people: by day, few at the weekend."""
    days = ((day, 0.12 if day in ("Sat", "Sun") else 1.0) for day in _DAYS)
    parts = ((8, 12, 0.4), (12, 17, 0.45), (17, 22, 0.15))
    return tuple(
        Wave(on(day, a) + late_h, on(day, b) + late_h, round(jobs * share * part))
        for day, share in days
        for a, b, part in parts
    )


def _always(jobs_a_day: int) -> tuple[Wave, ...]:
    return (Wave(0, 9 * 24, 9 * jobs_a_day),)


def _kinds() -> tuple[Kind, ...]:
    prod, ana = PRODUCTION, ANALYSIS
    return (
        Kind("simulation", 0, "prod", prod, "physics.prod", 8, 15360, 8,
             (*_campaign("Wed", 5, 36, 90, 330), *_campaign("Fri", 9, 24, 120, 200),
              *_campaign("Sun", 6, 20, 60, 150), *_campaign("Mon", 13, 64, 150, 600))),
        Kind("reconstruction", 0, "prod", prod, "physics.reco", 8, 22528, 6,
             (*_campaign("Thu", 8, 12, 30, 40), *_campaign("Tue", 10, 40, 40, 110))),
        Kind("digitisation", 0, "prod", prod, "physics.prod", 4, 7680, 5, _always(170)),
        Kind("whole-node", 0, "hpc", prod, "physics.hpc", 64, 122880, 10,
             (*_campaign("Thu", 12, 30, 8, 10), *_campaign("Tue", 8, 40, 8, 10))),
        Kind("alignment", 0, "calib", prod, "physics.calib", 8, 15360, 4, _always(36),
             sites=("Loire",)),
        Kind("impossible", 0, "hpc", prod, "physics.hpc", 128, 245760, 10,
             _campaign("Mon", 9, 1, 12, 0)),
        Kind("higgs", 1, "carol", ana, "analysis.higgs", 2, 3840, 5, _working_days(420)),
        Kind("top", 1, "bob", ana, "analysis.top", 1, 1920, 4, _working_days(420, 1)),
        Kind("susy", 1, "dave", ana, "analysis.susy", 4, 7680, 5, _working_days(170, 0.5)),
        Kind("heavyion", 1, "erin", ana, "analysis.heavyion", 1, 3968, 5, _working_days(300, 2)),
        Kind("muon", 1, "frank", ana, "analysis.muon", 2, 3840, 4, _working_days(240),
             sites=("Tagus", "Po")),
        Kind("fold", 2, "grace", OPEN, "open.biology", 1, 1920, 5, _always(330)),
        Kind("survey", 2, "heidi", OPEN, "open.astro", 2, 3840, 4, _working_days(300, 3)),
        Kind("dft", 2, "ivan", OPEN, "open.chemistry", 4, 7680, 14, _always(60)),
        Kind("md", 2, "judy", OPEN, "open.chemistry", 8, 15360, 14,
             (*_campaign("Thu", 18, 20, 40, 40), *_campaign("Tue", 16, 30, 40, 70))),
        Kind("neural", 2, "mallory", GPU, "open.imaging", 4, 15360, 6,
             (*_campaign("Thu", 9, 20, 12, 24), *_campaign("Mon", 10, 12, 12, 20),
              *_campaign("Wed 18", 8, 20, 12, 24)), gpus=1),
        Kind("mistyped", 1, "carol", ana, "analysis.higgs", 1, 1920, 4,
             _campaign("Tue", 15, 1, 60, 0), sites=("Tamise",)),
    )  # fmt: skip


KINDS = _kinds()
