"""What happens in simulated pools: users' faults, broken places, and mixes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tests.pilots.early.simulator import NO_SPEEDS, Broken, Run, Slot, Work, names, pool, simulate

Scenario: TypeAlias = Callable[[int], list[Run]]


class Scene:
    """A pool; what happens in it is drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, Random(seed)
        self.slots: Sequence[Slot] = pool(nodes=8)
        self.hours: float = 8
        self.speed: Mapping[str, float] = NO_SPEEDS
        """Of nodes."""

    def at(self, first: float = 3600, last: float = 14400) -> float:
        """Return a moment between two."""
        return self.random.uniform(first, last)

    def some(self, kind: str, number: int = 1) -> frozenset[str]:
        """Return some pilots, nodes, entries or sites."""
        return frozenset(self.random.sample(names(self.slots, kind), number))

    def everyday(self, users: int = 6, jobs: int = 600) -> list[Work]:
        """Return users whose jobs are fine, or fail at random now and then."""
        return everyday(self.random, users, jobs)

    def broken(self, kind: str, number: int = 1) -> Broken:
        """Return that all that begins on some places fails for some hours."""
        since, places = self.at(1800, 7200), self.some(kind, number)
        seconds = self.random.choice([(2, 20), (30, 280)])
        return Broken(places, since, since + self.at(5400, 14400), seconds=seconds)

    def vary(self, spread: float) -> None:
        """Give nodes other speeds; one site's are 1.3 times as fast as the others'."""
        fast = self.random.choice(names(self.slots, "site"))
        self.speed = {
            slot.node: self.at(1 - spread, 1 + spread) * (1.3 if slot.site == fast else 1)
            for slot in self.slots
        }


Happens: TypeAlias = Iterable[Work | Broken]
Make = TypeVar("Make", bound=Callable[..., Happens])


class Expected(NamedTuple):
    """A scenario, and whether a place is at fault in it."""

    scenario: Scenario
    broken: bool


SCENARIOS: dict[str, Expected] = {}


def played(make: Callable[..., Happens], *of: object) -> Scenario:
    """Return the runs of what happens, by seed."""

    def play(seed: int) -> list[Run]:
        scene = Scene(seed)
        found = list(make(scene, *of))
        works = [one for one in found if isinstance(one, Work)]
        broken = [one for one in found if isinstance(one, Broken)]
        return simulate(scene.slots, works, broken, seed=seed, hours=scene.hours, speed=scene.speed)

    return play


def scenario(name: str, *of: object, broken: bool = False) -> Callable[[Make], Make]:
    """Have a scenario by this name, with these arguments."""

    def add(make: Make) -> Make:
        SCENARIOS[name] = Expected(played(make, *of), broken)
        return make

    return add


def everyday(random: Random, users: int = 6, jobs: int = 600) -> list[Work]:
    """Return users whose jobs are fine, or fail at random now and then."""
    return [
        Work(
            user=f"user{n}",
            program="run.sh",
            jobs=jobs,
            at=random.uniform(0, 3600),
            seconds=random.choice([(300, 1200), (1200, 5400), (3600, 14400)]),
            share=random.choice([0, 0, 0.002, 0.01]),
            cores=random.choice([1, 1, 4]),
        )
        for n in range(users)
    ]


def bob(jobs: int, program: str = "run.sh", user: str = "bob", **how: Any) -> Work:
    """Return jobs of a quarter of an hour and more, about which there is something."""
    return Work(user, program, jobs, **{"seconds": (600, 3000), **how})


# --- Users' faults -------------------------------------------------------------------------------


@scenario("bad block of 300", 300)
@scenario("bad block of 100", 100)
@scenario("bad block of 30", 30)
@scenario("bad block of 10", 10)
def bad_block(scene: Scene, bad: int) -> Happens:
    """Consecutive procs of 3000 fail, whatever node they run on."""
    first = scene.random.randrange(400, 1500)
    return [*scene.everyday(), bob(3000, bad=range(first, first + bad))]


@scenario("bad blocks, many")
def many_blocks(scene: Scene) -> Happens:
    """Of each hundred consecutive procs some fail."""
    bad = frozenset(n for n in range(3000) if n % 100 < scene.random.choice([3, 10, 20]))
    return [*scene.everyday(), bob(3000, bad=bad)]


@scenario("small pool, users' faults")
def small_pool(scene: Scene) -> Happens:
    """One site of ten nodes, and one of fifty; users whose jobs fail in each way."""
    fifty = [slot for slot in pool(2, 1, 50, 1, 8) if slot.site == "site1"]
    scene.slots, since = [*pool(1, 1, 10, 1, 4), *fifty], scene.at()
    return [
        *scene.everyday(2),
        Work("dice", "mc", 1500, share=0.3, retries=3, seconds=(300, 2400), apart=True),
        Work("bad", "run.sh", 800, bad=range(200, 260), seconds=(300, 2400)),
        Work("down", "fetch", 800, down=(since, since + 900), seconds=(300, 2400)),
        Work("here", "x", 400, bad=range(400), where=frozenset({"site0"}), at=since),
    ]


@scenario("typo mended, 500 slots", 500)
@scenario("typo mended, 100 slots", 100)
@scenario("typo mended, 10 slots", 10)
def typo(scene: Scene, slots: int) -> Happens:
    """All jobs fail until the user has mended his script, and submits again."""
    mended, apart = scene.at(3600, 7200), scene.seed % 2 == 0
    scene.slots = pool(nodes=max(1, slots // 32), pilots=1)[: max(slots, 10)]
    wrong = Work("bob", "run.sh", 400, at=1800, bad=range(400), apart=apart)
    return [*scene.everyday(2), wrong, bob(1500, at=mended, apart=apart)]


@scenario("typo never mended")
def never_mended(scene: Scene) -> Happens:
    """600 jobs that all fail."""
    return [*scene.everyday(), Work("bob", "run.sh", 600, at=1800, bad=range(600))]


@scenario("service down, 20 clusters", 20)
@scenario("service down", 1)
def service(scene: Scene, clusters: int) -> Happens:
    """A service of the user's is down for a quarter of an hour."""
    since, apart = scene.at(), scene.seed % 2 == 0
    of: dict[str, Any] = {"seconds": (300, 2400), "down": (since, since + 900), "apart": apart}
    return [*scene.everyday(), *(bob(3000 // clusters, **of) for _ in range(clusters))]


@scenario("random 10%, no retries", 0.1, 0)
@scenario("random 30%, retries", 0.3, 5)
@scenario("random 10%, retries", 0.1, 5)
@scenario("random 2%, retries", 0.02, 5)
def at_random(scene: Scene, share: float, retries: int) -> Happens:
    """So many of a user's runs fail, and are tried again, with odd seeds at once."""
    of: dict[str, Any] = {"share": share, "retries": retries, "last": scene.seed % 2 == 0}
    return [*scene.everyday(), bob(1200, seconds=(300, 2400), **of)]


@scenario("two kinds of jobs")
def mixed_up(scene: Scene) -> Happens:
    """One program for two kinds of jobs of one user, of which one always fails."""
    works = [
        Work("bob", "wrapper.sh", 1000, at=scene.at(0, 3600), seconds=(300, 2400)),
        Work("bob", "wrapper.sh", 1500, at=scene.at(0, 3600), bad=range(1500)),
        Work("bob", "wrapper.sh", 1000, at=scene.at(0, 3600), seconds=(300, 2400)),
    ]
    return [*scene.everyday(), *works]


@scenario("DAG, the user's fault")
def dag_of_the_user(scene: Scene) -> Happens:
    """A DAG whose programs are all different, of which a tenth fails; and then for a while all."""
    since = scene.at()
    dag = Work("eve", "node", 2000, dag="7", programs=True, apart=True, share=0.1, retries=2)
    dag.seconds, dag.down = (120, 1800), (since, since + 900)
    return [*scene.everyday(), dag]


@scenario("crash near 300 s, 10%", 0.1)
@scenario("crash near 300 s, 50%", 0.5)
@scenario("crash near 300 s, 100%", 1)
def crash(scene: Scene, share: float) -> Happens:
    """So many jobs of a program fail after a fixed amount of work, on nodes of different speed."""
    bad = frozenset(scene.random.sample(range(4000), round(4000 * share)))
    scene.vary(0.1)
    return [*scene.everyday(), bob(4000, bad=bad, crash=(315, 345), cut=0.05)]


@scenario("crash at any time, 50%")
def crash_at_random(scene: Scene) -> Happens:
    """A program fails at any time of its work: on fast nodes sooner, and not more often."""
    scene.vary(0.1)
    return [*scene.everyday(), bob(4000, share=0.5, crash=(2, 3600), seconds=(3600, 3600))]


@scenario("timeout of 300 s, 50%", 0.5)
@scenario("timeout of 300 s, 10%", 0.1)
@scenario("timeout of 300 s, 0%", 0)
def timeout(scene: Scene, share: float) -> Happens:
    """Clients wait for nearly 300 s, and give up before that or after it by what else they do."""
    since = scene.at()
    waiting = bob(4000, "fetch", crash=(5, 60), waits=270, share=share, down=(since, since + 3600))
    near = Work("eve", "get", 2000, crash=(15, 25), waits=280, share=share)
    scene.vary(0.2)
    return [*scene.everyday(), waiting, near]


@scenario("sweeps")
def sweep(scene: Scene) -> Happens:
    """Some values of a parameter make a program fail, each after its own amount of work."""
    works = []
    for user in ("bob", "eve"):
        first, length = scene.random.randrange(100, 1000), scene.random.randrange(100, 800)
        bad = frozenset(range(first, first + length)) | frozenset(range(3, 3000, 17))
        works.append(bob(3000, "sweep", user, bad=bad, crash=(10, 900)))
    scene.vary(0.3)
    return [*scene.everyday(), *works]


@scenario("pull workers")
def pull_workers(scene: Scene) -> Happens:
    """Workers each take task after task; once there are no more they fail, the new ones at once.

    Some fail at any time by a task, and the user removes the last.
    """
    empty, users = scene.at(7200, 18000), ("bob", "eve")
    workers = [
        Work(user, "worker", 600, at=scene.at(0, 1800), seconds=(1e5, 2e5), crash=(5, 20000))
        for user in users
    ]
    for worker in workers:
        worker.expires, worker.down, worker.share = empty, (empty, 1e9), 0.3
        worker.removed, worker.retries = empty + scene.at(3600, 7200), 5
    late = [Work(user, "worker", 400, at=empty, bad=range(400), crash=(20, 120)) for user in users]
    return [*scene.everyday(), *workers, *late]


@scenario("token expires, 4 users", 4)
@scenario("token expires, 1 users", 1)
def expired(scene: Scene, users: int) -> Happens:
    """A token expires: all that runs fails then, and all that begins until there is a new one."""
    since = scene.at()
    renewed = since + scene.at(600, 7200)
    of: dict[str, Any] = {"seconds": (300, 5400), "expires": since, "down": (since, renewed)}
    works = [bob(4000, user=f"vo{n}", at=scene.at(0, 3600), **of) for n in range(users)]
    return [*scene.everyday(), *works]


@scenario("a site fails late, users' faults")
def fails_late(scene: Scene) -> Happens:
    """A site's storage fails jobs as they end, after an hour; users' typos are not its doing."""
    site = frozenset({scene.random.choice(names(scene.slots, "site"))})
    dice = Work("dice", "mc", 3000, share=0.1, seconds=(600, 3000))
    return [*scene.everyday(jobs=800), dice, Broken(site, 0, share=0.5, seconds=(2400, 5400))]


# --- Broken places -------------------------------------------------------------------------------


@scenario("black hole: site", "site", broken=True)
@scenario("black hole: entry", "entry", broken=True)
@scenario("black hole: 6 nodes", "node", 6, broken=True)
@scenario("black hole: node", "node", broken=True)
@scenario("black hole: pilot", "pilot", broken=True)
def black_hole(scene: Scene, kind: str, number: int = 1) -> Happens:
    """All that begins on a slot's pilot, node, entry or site fails for some hours."""
    return [scene.broken(kind, number), *scene.everyday(jobs=1500)]


@scenario("flaky nodes, 30%", 0.3, broken=True)
def flaky_node(scene: Scene, share: float) -> Happens:
    """A share of the runs on two nodes fails, all the time."""
    return [Broken(scene.some("node", 2), share=share), *scene.everyday(jobs=1500)]


@scenario("broken site, few each", broken=True)
def broken_site(scene: Scene) -> Happens:
    """Every job fails at one site of 200 nodes, a few on each, beside thousands of good ones."""
    good = [Slot(f"pilot{n}", f"node{n}", f"entry{n % 5}", f"site{n % 3}") for n in range(600)]
    bad = [Slot(f"bad{n}", f"badnode{n}", "badentry", "badsite") for n in range(200)]
    scene.slots, scene.hours = [*good, *bad], 6
    works = [bob(6000, seconds=(1800, 7200)), bob(3000, "sim", "eve", seconds=(1800, 7200))]
    return [*works, Broken(frozenset({"badsite"}), 0, scene.at(60, 400))]


@scenario("site, 30% for 40 minutes", "site", 0.3, 40, broken=True)
def weak(scene: Scene, kind: str, share: float, minutes: float) -> Happens:
    """A share of the runs that begin at one site, or on one node, fails, for so long."""
    since = scene.at()
    place = frozenset({scene.random.choice(names(scene.slots, kind))})
    broken = Broken(place, since, since + minutes * 60, share=share)
    return [broken, *scene.everyday(jobs=1500)]


@scenario("black hole, users' crashes", broken=True)
def beside_crashes(scene: Scene) -> Happens:
    """A black hole, where a third of some users' jobs fail late by themselves."""
    works = scene.everyday(jobs=1500)
    for work in works[::2]:
        work.share, work.crash = 0.33, (400, 3000)
    scene.vary(0.1)
    bug = bob(3000, bad=range(0, 3000, 3), crash=(315, 345))
    return [*works, bug, scene.broken("node", 2)]


@scenario("black hole eats a DAG", broken=True)
def eaten_dag(scene: Scene) -> Happens:
    """A black hole eats the jobs of DAGs whose programs are all different."""
    of: dict[str, Any] = {"dag": "9", "programs": True, "apart": True, "seconds": (300, 2400)}
    dags = [bob(3000, "n", user, **of) for user in ("eve", "joe")]
    return [*dags, Broken(scene.some("node"), 3600, 7200)]


@scenario("two black holes, users' faults", broken=True)
def two_black_holes(scene: Scene) -> Happens:
    """A mixed pool: users' faults beside two black holes."""
    return [
        *scene.everyday(jobs=1000),
        Work("bad", "run.sh", 3000, bad=range(500, 600), seconds=(600, 3000)),
        Work("typo", "job.py", 200, at=1800, bad=range(200)),
        Work("typo", "job.py", 800, at=5400),
        Work("dice", "mc", 1000, share=0.1, retries=3),
        scene.broken("node", 2),
    ]


@scenario("black hole, long jobs", broken=True)
def long_jobs(scene: Scene) -> Happens:
    """A black hole eats jobs that elsewhere take longer than a verdict may wait."""
    scene.slots, users = pool(nodes=16), ("eve", "joe", "bob")
    works = [bob(3000, "sim", u, seconds=(28800, 86400), at=scene.at(0, 14400)) for u in users]
    return [*works, Broken(scene.some("node"), 0, 7200, seconds=(60, 280))]


# --- Mixes ---------------------------------------------------------------------------------------


@scenario("mix, mild", broken=True)
def mild_mix(scene: Scene) -> Happens:
    """Long jobs and short ones, users' faults, and only a few places that are broken, or flaky."""
    scene.slots, since = pool(sites=5, nodes=16, pilots=1), scene.at()
    first = scene.random.randrange(100, 600)
    return [
        *scene.everyday(users=5, jobs=800),
        Work("long", "sim", 2000, seconds=(28800, 86400), at=scene.at(0, 3600)),
        Work("here", "run.sh", 400, bad=range(400), where=frozenset({"site0"}), at=since),
        Work("there", "run.sh", 800, share=0.05, where=frozenset({"site0", "site1"}), retries=2),
        Work("bad", "run.sh", 1000, bad=range(first, first + 50)),
        Work("down", "fetch", 1000, seconds=(300, 2400), down=(since, since + 1200)),
        Work("dag", "n", 1000, dag="5", programs=True, apart=True, seconds=(300, 1800), share=0.02),
        scene.broken("node"),
        Broken(scene.some("node", 2), share=0.3),
    ]


@scenario("mix", broken=True)
def mix(scene: Scene) -> Happens:
    """All at once: users' faults of every kind, and broken places of every kind."""
    scene.slots, since = pool(sites=6, nodes=12), scene.at()
    random, first = scene.random, scene.random.randrange(100, 1000)
    yield from scene.everyday(users=8, jobs=1200)
    bad = range(first, first + random.choice([10, 30, 100, 300]))
    yield Work("bad", "run.sh", 2000, bad=bad)
    yield Work("typo", "job.py", 200, at=1800, bad=range(200))
    yield Work("typo", "job.py", 1000, at=scene.at(3600, 7200))
    yield Work("down", "fetch", 2000, seconds=(300, 2400), down=(since, since + 900))
    yield Work("dice", "mc", 2000, share=random.choice([0.02, 0.1, 0.3]), retries=3)
    yield Work("dag", "n", 1500, dag="5", programs=True, apart=True, seconds=(300, 1800))
    yield scene.broken("pilot")
    yield from [scene.broken("node") for _ in range(random.randint(1, 3))]
    yield Broken(scene.some("node"), share=0.4)
    if scene.seed % 3 < 2:
        yield scene.broken(("entry", "site")[scene.seed % 3])
    else:
        rack = [f"node2.1.{n}" for n in range(5)]
        yield Broken(frozenset(rack), since, since + scene.at(3600, 7200))
