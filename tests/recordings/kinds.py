"""The jobs of the demo: what each kind asks for, where it may run, and when how many come.

Hours count from the beginning of the recorded day, which repeats: its first hours have the most to
see, for a demo begins there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tests.recordings.world import ANALYSIS, OPEN, PRODUCTION, Entry

DAY_H = 24.0


@dataclass(frozen=True)
class Wave:
    """Jobs that come between two hours of the day: ``jobs`` in all, evenly."""

    begins_h: float
    ends_h: float
    jobs: int

    def arriving(self, from_h: float, to_h: float) -> float:
        """How many of them come between two hours (of the same day)."""
        common = min(to_h, self.ends_h) - max(from_h, self.begins_h)
        return self.jobs * max(0.0, common) / (self.ends_h - self.begins_h)


@dataclass(frozen=True)
class Kind:
    """Jobs that matching cannot distinguish, of one accounting group at one schedd.

    ``schedd`` counts from 0; ``hours`` is the walltime they ask for; they run for a part of it.
    At ``removed_h`` the user removes those that are idle.
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
    avoid: tuple[str, ...] = ()
    needs: str = ""
    removed_h: float = -1.0

    @property
    def community(self) -> str:
        """What an entry must support."""
        return "gpu" if self.gpus else self.group.partition(".")[0]

    @property
    def requirements(self) -> str:
        """The Requirements that the user writes; the schedd adds to them."""
        terms = [f'stringListMember("{self.community}", TARGET.GLIDEIN_Supported_VOs)']
        if self.sites:
            terms.append("stringListMember(TARGET.GLIDEIN_Site, MY.DESIRED_Sites)")
        if self.avoid:
            terms.append("!stringListMember(TARGET.GLIDEIN_Site, MY.UNDESIRED_Sites)")
        if self.needs:
            terms.append(self.needs)
        return " && ".join(terms)

    def runs_at(self, entry: Entry) -> bool:
        """Whether a job of this kind could run on an empty pilot of an entry."""
        return (
            self.community in entry.communities
            and (not self.sites or entry.site in self.sites)
            and entry.site not in self.avoid
            and not self.needs
            and self.cores <= entry.cores
            and self.memory_mib <= entry.memory_mib
            and self.gpus <= entry.gpus
            and self.hours * 3600 <= entry.walltime_s
        )


_STEADY = 24.0
_WORKING = ((0.5, 3, 0.20), (3, 7, 0.45), (7, 11, 0.30), (11, 14, 0.05))


def _all_day(jobs: int) -> tuple[Wave, ...]:
    return (Wave(0, _STEADY, jobs),)


def _working_hours(jobs: int, late_h: float = 0.0) -> tuple[Wave, ...]:
    return tuple(Wave(a + late_h, b + late_h, round(jobs * part)) for a, b, part in _WORKING)


def _campaign(begins_h: float, at_once: int, ends_h: float, later: int) -> tuple[Wave, ...]:
    return Wave(begins_h, begins_h + 0.25, at_once), Wave(begins_h, ends_h, later)


def _production() -> list[Kind]:
    kind = partial(Kind, owner="alice", group=PRODUCTION)
    prod, reco, hpc = "physics.prod", "physics.reco", "physics.hpc"
    return [
        kind("simulation", 0, accounting_group=prod, cores=8, memory_mib=15360, hours=8,
             waves=_campaign(0.6, 1900, 9, 1900)),
        kind("simulation-night", 1, accounting_group=prod, cores=8, memory_mib=15360,
             hours=8, waves=_campaign(15, 1300, 23, 1100)),
        kind("reconstruction", 0, accounting_group=reco, cores=8, memory_mib=23040, hours=6,
             waves=_campaign(3, 350, 8, 300)),
        kind("digitisation", 1, accounting_group=prod, cores=4, memory_mib=7680, hours=6,
             waves=_all_day(2200)),
        kind("merge", 0, accounting_group=prod, cores=1, memory_mib=1920, hours=6,
             waves=_campaign(2, 800, 24, 3600)),
        kind("generator", 1, accounting_group=prod, cores=1, memory_mib=1920, hours=10,
             waves=_campaign(4.5, 1200, 12, 900)),
        kind("whole-node", 1, accounting_group=hpc, cores=64, memory_mib=122880, hours=8,
             waves=_campaign(1, 70, 10, 120)),
        kind("half-node", 1, accounting_group=hpc, cores=16, memory_mib=30720, hours=8,
             waves=_campaign(12, 150, 22, 300)),
        kind("heavy", 0, accounting_group=reco, cores=1, memory_mib=8064, hours=6,
             waves=_campaign(1.5, 900, 6, 500)),
        kind("heavy-4", 0, accounting_group=reco, cores=4, memory_mib=15360, hours=6,
             waves=_campaign(13, 120, 18, 150), avoid=("Elbe", "Loire", "Rhine")),
        kind("tape-recall", 0, accounting_group=reco, cores=8, memory_mib=15360, hours=6,
             sites=("Danube",), waves=_campaign(0.4, 90, 3, 60)),
        kind("data-near", 0, accounting_group=reco, cores=4, memory_mib=7680, hours=6,
             sites=("Elbe", "Loire", "Rhine", "Tagus"), waves=_campaign(5, 160, 9, 200)),
        kind("alignment", 1, accounting_group=reco, cores=8, memory_mib=15360, hours=4,
             sites=("Volga",), waves=(*_campaign(2.5, 60, 4, 20), *_campaign(18, 80, 19, 10))),
        kind("impossible", 1, accounting_group=hpc, cores=128, memory_mib=245760, hours=8,
             waves=_campaign(7, 20, 8, 1), removed_h=12),
    ]  # fmt: skip


def _analysis() -> list[Kind]:
    kinds = []
    table = (
        # topic, jobs a day, cores, memory, hours, begins later, sites
        ("higgs", 3600, 1, 1920, 4, 0, ()),
        ("top", 2400, 1, 1920, 4, 1, ()),
        ("susy", 1000, 2, 3840, 5, 0, ()),
        ("heavyion", 900, 1, 3968, 5, 2, ()),
        ("btag", 1200, 1, 2944, 4, 4, ()),
        ("muon", 900, 1, 1920, 3, 8, ("Po", "Tiber", "Arno", "Adige")),
        ("jets", 600, 4, 7680, 6, 3, ()),
        ("dilepton", 900, 1, 1920, 4, 6, ("Seine", "Marne", "Rhone", "Garonne", "Meuse")),
        ("exotica", 400, 2, 5888, 4, 10, ()),
        ("calibration", 400, 1, 1920, 2, -0.5, ("Isar", "Inn", "Lech", "Main", "Neckar")),
        ("bphysics", 1800, 1, 1920, 4, 12, ()),
    )
    for number, (topic, jobs, cores, memory, hours, late, sites) in enumerate(table):
        kinds.append(
            Kind(f"analysis-{topic}", 2, "bob" if number % 2 else "carol", ANALYSIS,
                 f"analysis.{topic}", cores, memory, hours, _working_hours(jobs, late), 0, sites)
        )  # fmt: skip
    kinds += [
        Kind("training", 2, "bob", ANALYSIS, "analysis.ml", 8, 15360, 4, gpus=1,
             waves=(*_campaign(0.7, 180, 3, 60), *_campaign(12, 120, 14, 40))),
        Kind("training-2", 2, "carol", ANALYSIS, "analysis.ml", 8, 30720, 6, gpus=2,
             waves=_campaign(2, 30, 5, 20)),
        Kind("mistyped-site", 2, "carol", ANALYSIS, "analysis.top", 1, 1920, 4,
             waves=_campaign(5, 200, 6, 1), sites=("Tamise",), removed_h=9),
    ]  # fmt: skip
    return kinds


def _open() -> list[Kind]:
    table: tuple[tuple[str, int, int, float, tuple[Wave, ...]], ...] = (
        ("biology.fold", 1, 1920, 4, _campaign(0.2, 900, 10, 1500)),
        ("biology.dock", 1, 2944, 6, _campaign(6, 600, 9, 300)),
        ("astro.survey", 1, 1920, 3, _all_day(2600)),
        ("astro.lightcurve", 2, 3840, 5, _campaign(10, 500, 16, 600)),
        ("chemistry.dft", 4, 7680, 8, _all_day(700)),
        ("chemistry.md", 8, 15360, 8, _campaign(3.5, 250, 12, 200)),
        ("climate.ensemble", 16, 30720, 10, _campaign(1.2, 60, 5, 40)),
        ("materials.scan", 1, 5888, 5, _campaign(17, 700, 23, 500)),
        ("economics.sim", 1, 1920, 2, _campaign(4, 800, 5, 50)),
        ("linguistics.parse", 1, 3968, 4, _campaign(13, 700, 17, 300)),
    )
    kinds = [
        Kind(name.replace(".", "-"), 3, "carol" if number % 2 else "bob", OPEN, f"open.{name}",
             cores, memory, hours, waves)
        for number, (name, cores, memory, hours, waves) in enumerate(table)
    ]  # fmt: skip
    return [
        *kinds,
        Kind("neural-1", 3, "bob", OPEN, "open.imaging", 4, 15360, 6, gpus=1,
             waves=(*_campaign(2.5, 100, 6, 80), *_campaign(19, 90, 22, 40))),
        Kind("neural-8", 3, "bob", OPEN, "open.imaging", 32, 122880, 10, gpus=8,
             waves=_campaign(3, 12, 6, 6)),
        Kind("licensed", 3, "carol", OPEN, "open.chemistry.dft", 1, 1920, 6,
             waves=_campaign(8, 150, 9, 10), needs="TARGET.HAS_LICENCE =?= true",
             removed_h=20),
    ]  # fmt: skip


def kinds() -> tuple[Kind, ...]:
    """Return all kinds; production goes first where several want a free core."""
    return (*_production(), *_analysis(), *_open())
