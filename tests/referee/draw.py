"""Scenarios drawn by a seeded generator: entries, frontend groups, pilots and idle jobs.

Cores and GPUs are counted, memory is MiB, lifetimes are seconds, walltimes minutes.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from tests.pool.adtext import Expr, Value, literal

UNIT_MIB = 2000
HOUR_S = 3600

#: How long pilots may wait at a site (site.pending_grace); one waits for a minute, or for a day.
GRACE_S = 2 * HOUR_S
FRESH_S, STUCK_S = 60, 24 * HOUR_S


class Shape(NamedTuple):
    """The size of an entry's pilots."""

    name: str
    cores: int
    memory: int
    gpus: int = 0

    @property
    def units(self) -> int:
        """Canonical units: at least one, whatever the memory."""
        return max(1, min(self.cores, self.memory // UNIT_MIB))

    def holds(self, cores: int, memory: int) -> int:
        """How many jobs of this size fit an empty pilot: GPUs are a resource of their own."""
        return min(self.cores // cores, self.memory // memory)


SHAPES = (
    Shape("1c/1900", 1, 1900),
    Shape("8c/16384", 8, 16384),
    Shape("64c/256000", 64, 256000),
    Shape("8c/32768+2g", 8, 32768, 2),
)


class Group(NamedTuple):
    """A frontend's group: its client name ("frontend.group"), and the START of its pilots.

    START is in no ad but its pilots', as with GlideinWMS; ads of its entries have ``query``: which
    jobs it counts.
    """

    client: str
    start: str

    @property
    def query(self) -> str:
        """The same of a job, as the frontend asks schedds for jobs."""
        return self.start.replace("TARGET.", "")


GROUPS = (
    Group("frontend.open", "True"),
    Group("frontend.cms", 'TARGET.x509UserProxyVOName =?= "cms"'),
    Group("frontend.ligo", 'TARGET.VO =?= "ligo"'),
    Group("fermi.nova", 'stringListMember(TARGET.ProjectName, "nova,dune")'),
    Group("fermi.gpu", "TARGET.RequestGPUs =!= undefined && TARGET.RequestGPUs > 0"),
)

#: What jobs of a community say of themselves.
_ALL: dict[str, Value] = {"x509UserProxyVOName": "cms", "VO": "ligo", "ProjectName": "dune"}
COMMUNITIES: tuple[dict[str, Value], ...] = (
    {"x509UserProxyVOName": "cms"},
    {"VO": "ligo"},
    {"ProjectName": "nova"},
    _ALL,
    {},
)

#: What the jobs that a group's START accepts say of themselves; of the others' groups: anything.
WELCOME: dict[str, tuple[dict[str, Value], ...]] = {
    "frontend.cms": ({"x509UserProxyVOName": "cms"}, _ALL),
    "frontend.ligo": ({"VO": "ligo"}, _ALL),
    "fermi.nova": ({"ProjectName": "nova"}, _ALL),
}

#: Each pilot refuses jobs that it may not outlive.
OUTLIVES = (
    "(TARGET.MaxWallTimeMins is undefined"
    " || TARGET.MaxWallTimeMins * 60 < MY.GLIDEIN_ToDie - time())"
)

#: What the frontend and the factory say of an entry: options of ``feign.glideresource``.
SIGNS: tuple[dict[str, object], ...] = (
    {"requested_idle": 0, "jobs_idle": 0},
    {"requested_idle": 0, "jobs_idle": 50},
    {"requested_idle": 3},
    {"requested_idle": 3, "staging": 2},
    {"requested_idle": 0, "limits": {"TotalGlideinsPerEntry": (5, 5)}},
    {"requested_idle": 1, "curbs": {"IdleGlideinsPerGroup": (9, 8)}},
    {"requested_idle": 2, "factory_limits": {"HeldGlideinsPerEntry": (50, 50)}},
    {"requested_idle": 2, "held": 4},
)


class Presence(NamedTuple):
    """Pilots of one frontend's group at an entry.

    ``busy`` are feigned: nothing is free in them. ``open`` are real, and take what the negotiator
    gives them before anybody is asked. ``pending`` wait at the site, for ``waited_s`` by now.
    """

    group: Group
    busy: int = 0
    open: int = 0
    pending: int = 0
    waited_s: int = FRESH_S


class Entry(NamedTuple):
    """An entry; ``room`` is how many more pilots its capacity has, which ``capacity`` tells."""

    name: str
    site: str
    shape: Shape
    lifetime_s: int
    presences: tuple[Presence, ...]
    room: int
    capacity: str  # "pledge" or "limit"
    down: bool
    signs: dict[str, object]

    @property
    def running(self) -> int:
        """Pilots that run."""
        return sum(presence.busy + presence.open for presence in self.presences)

    @property
    def saturated(self) -> bool:
        """Whether a pilot has waited for longer than the grace."""
        return any(p.pending and p.waited_s > GRACE_S for p in self.presences)

    @property
    def judged(self) -> bool:
        """Whether a verdict on demand is due: there is room, and nothing waits there."""
        pending = any(presence.pending for presence in self.presences)
        return self.room > 0 and not self.down and not pending


class Jobs(NamedTuple):
    """Idle jobs that are alike; ``sites`` None: any. ``hopeless`` ones match nothing."""

    n: int
    cores: int
    memory: int
    gpus: int
    sites: tuple[str, ...] | None
    walltime_min: int | None
    attrs: dict[str, Value]
    schedd: int
    owner: str
    hopeless: bool

    @property
    def requirements(self) -> str:
        """What they ask of a slot besides its size."""
        if self.hopeless:
            return 'TARGET.GLIDEIN_Site =?= "NoSuchSite"'
        return (
            "true" if self.sites is None else "stringListMember(TARGET.GLIDEIN_Site, DESIRED_Sites)"
        )

    @property
    def submission(self) -> dict[str, object]:
        """Commands of the submit description."""
        attrs = dict(self.attrs)
        if self.sites is not None:
            attrs["DESIRED_Sites"] = ",".join(self.sites)
        if self.walltime_min is not None:
            attrs["MaxWallTimeMins"] = self.walltime_min
        commands: dict[str, object] = {
            "owner": self.owner,
            "attrs": attrs,
            "request_cpus": self.cores,
            "request_memory": self.memory,
            "requirements": self.requirements,
            "seconds": HOUR_S,
        }
        return commands | ({"request_gpus": self.gpus} if self.gpus else {})


class Scenario(NamedTuple):
    """All that a pool is set up with; ``tells``: frontends say which jobs their groups count."""

    seed: int
    entries: tuple[Entry, ...]
    jobs: tuple[Jobs, ...]
    tells: bool

    def hides(self, entry: Entry) -> bool:
        """Whether nobody knows which jobs some pilots of an entry would start.

        No pilot of their group runs anywhere, and its frontend does not tell which jobs it counts.
        """
        presences = [presence for other in self.entries for presence in other.presences]
        known = {presence.group for presence in presences if presence.busy or presence.open}
        return not self.tells and any(of.group not in known for of in entry.presences)


def draw(seed: int) -> Scenario:
    """The scenario of a seed: always the same one."""
    rng = Random(seed)
    groups = rng.sample(GROUPS, rng.randint(2, 3))
    told = Random(f"{seed} told")
    tells, away = told.random() < 0.7, told.choice((*groups, None))
    entries: list[Entry] = []
    for number in range(rng.randint(3, 8)):
        entry = _entry(rng, f"s{seed}-e{number}", entries, groups)
        there = (of._replace(busy=0, open=0) if of.group == away else of for of in entry.presences)
        entries.append(entry._replace(presences=tuple(there)))
    sites = sorted({entry.site for entry in entries})
    jobs = tuple(_jobs(rng, sites, entries) for _ in range(rng.randint(2, 5)))
    return Scenario(seed, tuple(entries), jobs, tells)


def _entry(rng: Random, name: str, others: list[Entry], groups: list[Group]) -> Entry:
    site = f"Site-{name}"
    if others and rng.random() < 0.2:
        site = rng.choice(others).site
    shape = rng.choice(SHAPES)
    real = sum(presence.open for entry in others for presence in entry.presences)
    kind = rng.random()
    presences = []
    for group in rng.sample(groups, rng.choice((1, 1, 2))):
        pending, waited = 0, FRESH_S
        if kind < 0.2:  # pilots wait at the entry
            pending, waited = rng.randint(1, 2), FRESH_S if kind < 0.12 else STUCK_S
        started = 1 if real < 2 and shape.cores < 64 and rng.random() < 0.25 else 0
        real += started
        busy = rng.randint(1, 2) if not started and rng.random() < 0.8 else 0
        presences.append(Presence(group, busy, started, pending, waited))
    return Entry(
        name,
        site,
        shape,
        rng.choice((6, 24, 72)) * HOUR_S,
        tuple(presences),
        room=rng.choice((0, 1, 1, 2, 3, 10)),
        capacity=rng.choice(("pledge", "limit")),
        down=kind > 0.92,
        signs=rng.choice(SIGNS),
    )


def _jobs(rng: Random, sites: list[str], entries: list[Entry]) -> Jobs:
    """Jobs that fit the pilots of one of the entries, a whole one perhaps.

    Most of them are for that entry: its site is among theirs, and one of its groups accepts them.
    """
    entry = rng.choice(entries)
    shape, client = entry.shape, rng.choice(entry.presences).group.client
    aimed = rng.random() < 0.75
    wanted = rng.sample(sites, rng.randint(1, len(sites))) if rng.random() < 0.6 else None
    if wanted is not None and aimed and entry.site not in wanted:
        wanted[0] = entry.site
    kind = rng.random()
    if kind < 0.25:  # a whole node
        cores, memory = shape.cores, rng.choice((shape.memory, shape.memory // 2))
        count = rng.randint(1, 3)
    elif kind < 0.7:  # "2 GB" a core
        cores = rng.choice((1, 1, 1, 2, 4))
        memory = cores * rng.choice((1000, 1800, 2000, 2048))
        count = rng.randint(1, 12)
    else:  # much memory, or an odd number of cores
        cores, memory = rng.choice(((1, 4096), (1, 12000), (5, 8000), (3, 6144), (2, 2048)))
        count = rng.randint(1, 6)
    return Jobs(
        n=count,
        cores=cores,
        memory=memory,
        gpus=1 if shape.gpus and (rng.random() < 0.6 or (aimed and client == "fermi.gpu")) else 0,
        sites=None if wanted is None else tuple(wanted),
        walltime_min=rng.choice((None, None, 60, 12 * 60, 48 * 60)),
        attrs=rng.choice(WELCOME.get(client, COMMUNITIES) if aimed else COMMUNITIES),
        schedd=rng.randint(0, 1),
        owner=rng.choice(("alice", "bob")),
        hopeless=rng.random() < 0.1,
    )


def pilot_attributes(entry: Entry, group: Group) -> dict[str, Value]:
    """What a pilot says of its origin."""
    return {
        "GLIDEIN_Site": entry.site,
        "GLIDEIN_Entry_Name": entry.name,
        "GLIDEIN_Factory": "factory",
        "GLIDEIN_Name": "glidein",
        "GLIDECLIENT_Name": group.client,
        "GLIDECLIENT_Group": group.client.rpartition(".")[2],
    }


def start_of(group: Group) -> Expr:
    """The START expression of a pilot of that group."""
    return Expr(f"({group.start}) && {OUTLIVES}")


def described(scenario: Scenario) -> str:
    """The scenario in words, for an error message."""
    lines = [f"seed {scenario.seed}"]
    for entry in scenario.entries:
        parts = [f"{entry.name} ({entry.site}) {entry.shape.name} {entry.lifetime_s // HOUR_S} h"]
        parts += [f"room for {entry.room} ({entry.capacity})"] + (["down"] if entry.down else [])
        for p in entry.presences:
            counts = f"busy {p.busy}, open {p.open}, pending {p.pending} ({p.waited_s} s)"
            parts.append(f"{p.group.client} [{p.group.start}]: {counts}")
        lines.append("; ".join(parts))
    for jobs in scenario.jobs:
        size = f"{jobs.cores}c/{jobs.memory}" + (f"+{jobs.gpus}g" if jobs.gpus else "")
        attrs = ", ".join(f"{key}={literal(value)}" for key, value in jobs.attrs.items())
        where = (
            "nowhere" if jobs.hopeless else "any" if jobs.sites is None else ",".join(jobs.sites)
        )
        lines.append(f"{jobs.n} jobs {size}, {jobs.walltime_min} min, {{{attrs}}} at {where}")
    return "\n".join(lines)
