"""What happens in simulated pools: users' faults, broken places, and mixes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from tests.pilots.early.simulator import Broken, Run, Slot, Work, names, pool, simulate

Scenario: TypeAlias = Callable[[int], list[Run]]


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


# --- Users' faults -------------------------------------------------------------------------------


def bad_block(bad: int) -> Scenario:
    """Consecutive procs of 3000 fail, whatever node they run on."""

    def scenario(seed: int) -> list[Run]:
        random = Random(seed)
        first = random.randrange(400, 1500)
        block = Work("bob", "run.sh", 3000, bad=range(first, first + bad), seconds=(600, 3000))
        return simulate(pool(nodes=8), [*everyday(random), block], seed=seed)

    return scenario


def many_blocks(seed: int) -> list[Run]:
    """Of each hundred consecutive procs some fail."""
    random = Random(seed)
    bad = frozenset(n for n in range(3000) if n % 100 < random.choice([3, 10, 20]))
    block = Work("bob", "run.sh", 3000, bad=bad, seconds=(600, 3000))
    return simulate(pool(nodes=8), [*everyday(random), block], seed=seed)


def small_pool(seed: int) -> list[Run]:
    """One site of ten nodes, and one of fifty; users whose jobs fail in each way."""
    random = Random(seed)
    slots = [
        *pool(1, 1, 10, 1, 4),
        *(slot for slot in pool(2, 1, 50, 1, 8) if slot.site == "site1"),
    ]
    since = random.uniform(3600, 14400)
    works = [
        Work("dice", "mc", 1500, share=0.3, retries=3, seconds=(300, 2400), apart=True),
        Work("bad", "run.sh", 800, bad=range(200, 260), seconds=(300, 2400)),
        Work("down", "fetch", 800, down=(since, since + 900), seconds=(300, 2400)),
        Work("here", "x", 400, bad=range(400), where=frozenset({"site0"}), at=since),
    ]
    return simulate(slots, [*everyday(random, 2), *works], seed=seed)


def typo(slots: int) -> Scenario:
    """All jobs fail until the user has mended his script, and submits again."""

    def scenario(seed: int) -> list[Run]:
        random = Random(seed)
        mended = random.uniform(3600, 7200)
        apart = seed % 2 == 0
        wrong = Work("bob", "run.sh", 400, at=1800, bad=range(400), apart=apart)
        right = Work("bob", "run.sh", 1500, at=mended, seconds=(600, 3000), apart=apart)
        here = pool(nodes=max(1, slots // 32), pilots=1)[: max(slots, 10)]
        return simulate(here, [*everyday(random, 2), wrong, right], seed=seed)

    return scenario


def never_mended(seed: int) -> list[Run]:
    """600 jobs that all fail."""
    random = Random(seed)
    wrong = Work("bob", "run.sh", 600, at=1800, bad=range(600))
    return simulate(pool(nodes=8), [*everyday(random), wrong], seed=seed)


def service(clusters: int) -> Scenario:
    """A service of the user's is down for a quarter of an hour."""

    def scenario(seed: int) -> list[Run]:
        random = Random(seed)
        since = random.uniform(3600, 14400)
        works = [
            Work(
                "bob",
                "run.sh",
                3000 // clusters,
                seconds=(300, 2400),
                down=(since, since + 900),
                apart=seed % 2 == 0,
            )
            for _ in range(clusters)
        ]
        return simulate(pool(nodes=8), [*everyday(random), *works], seed=seed)

    return scenario


def at_random(share: float, retries: int) -> Scenario:
    """So many of a user's runs fail, and are tried again, with odd seeds at once."""

    def scenario(seed: int) -> list[Run]:
        random = Random(seed)
        flaky = Work("bob", "run.sh", 1200, share=share, retries=retries, seconds=(300, 2400))
        flaky.last = seed % 2 == 0
        return simulate(pool(nodes=8), [*everyday(random), flaky], seed=seed)

    return scenario


def mixed_up(seed: int) -> list[Run]:
    """One program for two kinds of jobs of one user, of which one always fails."""
    random = Random(seed)
    works = [
        Work("bob", "wrapper.sh", 1000, at=random.uniform(0, 3600), seconds=(300, 2400)),
        Work("bob", "wrapper.sh", 1500, at=random.uniform(0, 3600), bad=range(1500)),
        Work("bob", "wrapper.sh", 1000, at=random.uniform(0, 3600), seconds=(300, 2400)),
    ]
    return simulate(pool(nodes=8), [*everyday(random), *works], seed=seed)


def dag_of_the_user(seed: int) -> list[Run]:
    """A DAG whose programs are all different, of which a tenth fails; and then for a while all."""
    random = Random(seed)
    since = random.uniform(3600, 14400)
    down = (since, since + 900)
    dag = Work("eve", "node", 2000, dag="7", programs=True, apart=True, share=0.1, down=down)
    dag.seconds, dag.retries = (120, 1800), 2
    return simulate(pool(nodes=8), [*everyday(random), dag], seed=seed)


def _speeds(slots: list[Slot], random: Random, spread: float) -> dict[str, float]:
    """Return speeds of all nodes; one site's are 1.3 times as fast as the others'."""
    fast = random.choice(names(slots, "site"))
    return {
        slot.node: random.uniform(1 - spread, 1 + spread) * (1.3 if slot.site == fast else 1)
        for slot in slots
    }


def crash(share: float, work: float = 330) -> Scenario:
    """So many jobs of a program fail after a fixed amount of work, on nodes of different speed."""

    def scenario(seed: int) -> list[Run]:
        random = Random(seed)
        slots = pool(nodes=8)
        bad = frozenset(random.sample(range(4000), round(4000 * share)))
        bug = Work("bob", "run.sh", 4000, bad=bad, crash=(work - 15, work + 15))
        bug.seconds, bug.cut = (600, 3000), 0.05
        speed = _speeds(slots, random, 0.1)
        return simulate(slots, [*everyday(random), bug], seed=seed, speed=speed)

    return scenario


def crash_at_random(seed: int) -> list[Run]:
    """A program fails at any time of its work: on fast nodes sooner, and not more often."""
    random = Random(seed)
    slots = pool(nodes=8)
    bug = Work("bob", "run.sh", 4000, share=0.5, crash=(2, 3600), seconds=(3600, 3600))
    speed = _speeds(slots, random, 0.1)
    return simulate(slots, [*everyday(random), bug], seed=seed, speed=speed)


def timeout(share: float) -> Scenario:
    """Clients wait for nearly 300 s, and give up before that or after it by what else they do."""

    def scenario(seed: int) -> list[Run]:
        random = Random(seed)
        slots = pool(nodes=8)
        since = random.uniform(3600, 14400)
        waiting = Work("bob", "fetch", 4000, crash=(5, 60), waits=270, seconds=(600, 3000))
        waiting.share, waiting.down = share, (since, since + 3600)
        near = Work("eve", "get", 2000, crash=(15, 25), waits=280, share=share)
        speed = _speeds(slots, random, 0.2)
        return simulate(slots, [*everyday(random), waiting, near], seed=seed, speed=speed)

    return scenario


def sweep(seed: int) -> list[Run]:
    """Some values of a parameter make a program fail, each after its own amount of work."""
    random = Random(seed)
    slots = pool(nodes=8)
    works = []
    for user in ("bob", "eve"):
        first, length = random.randrange(100, 1000), random.randrange(100, 800)
        bad = frozenset(range(first, first + length)) | frozenset(range(3, 3000, 17))
        works.append(Work(user, "sweep", 3000, bad=bad, crash=(10, 900), seconds=(600, 3000)))
    speed = _speeds(slots, random, 0.3)
    return simulate(slots, [*everyday(random), *works], seed=seed, speed=speed)


def pull_workers(seed: int) -> list[Run]:
    """Workers each take task after task; once there are no more they fail, the new ones at once.

    Some fail at any time by a task, and the user removes the last.
    """
    random = Random(seed)
    slots = pool(nodes=8)
    empty = random.uniform(7200, 18000)
    workers = [
        Work(user, "worker", 600, at=random.uniform(0, 1800), seconds=(1e5, 2e5), crash=(5, 20000))
        for user in ("bob", "eve")
    ]
    for worker in workers:
        worker.expires, worker.down, worker.share = empty, (empty, 1e9), 0.3
        worker.removed = empty + random.uniform(3600, 7200)
        worker.retries = 5
    late = [
        Work(worker.user, "worker", 400, at=empty, bad=range(400), crash=(20, 120))
        for worker in workers
    ]
    return simulate(slots, [*everyday(random), *workers, *late], seed=seed)


def expired(users: int) -> Scenario:
    """A token expires: all that runs fails then, and all that begins until there is a new one."""

    def scenario(seed: int) -> list[Run]:
        random = Random(seed)
        slots = pool(nodes=8)
        since = random.uniform(3600, 14400)
        renewed = since + random.uniform(600, 7200)
        works = [
            Work(f"vo{n}", "run.sh", 4000, at=random.uniform(0, 3600), seconds=(300, 5400))
            for n in range(users)
        ]
        for work in works:
            work.expires, work.down = since, (since, renewed)
        return simulate(slots, [*everyday(random), *works], seed=seed)

    return scenario


def fails_late(seed: int) -> list[Run]:
    """A site's storage fails jobs as they end, after an hour; users' typos are not its doing."""
    random = Random(seed)
    slots = pool(nodes=8)
    site = random.choice(names(slots, "site"))
    broken = Broken(frozenset({site}), 0, share=0.5, seconds=(2400, 5400))
    works = [
        *everyday(random, jobs=800),
        Work("dice", "mc", 3000, share=0.1, seconds=(600, 3000)),
    ]
    return simulate(slots, works, [broken], seed=seed)


# --- Broken places -------------------------------------------------------------------------------


def _broken(slots: list[Slot], random: Random, kind: str, number: int = 1) -> Broken:
    since = random.uniform(1800, 7200)
    places = frozenset(random.sample(names(slots, kind), number))
    seconds = random.choice([(2, 20), (30, 280)])
    return Broken(places, since, since + random.uniform(5400, 14400), seconds=seconds)


def black_hole(kind: str, number: int = 1) -> Scenario:
    """All that begins on a slot's pilot, node, entry or site fails for some hours."""

    def scenario(seed: int) -> list[Run]:
        random = Random(seed)
        slots = pool(nodes=8)
        broken = _broken(slots, random, kind, number)
        return simulate(slots, everyday(random, jobs=1500), [broken], seed=seed)

    return scenario


def flaky_node(share: float) -> Scenario:
    """A share of the runs on two nodes fails, all the time."""

    def scenario(seed: int) -> list[Run]:
        random = Random(seed)
        slots = pool(nodes=8)
        broken = Broken(frozenset(random.sample(names(slots, "node"), 2)), share=share)
        return simulate(slots, everyday(random, jobs=1500), [broken], seed=seed)

    return scenario


def broken_site(seed: int) -> list[Run]:
    """Every job fails at one site of 200 nodes, a few on each, beside thousands of good ones."""
    random = Random(seed)
    good = [Slot(f"pilot{n}", f"node{n}", f"entry{n % 5}", f"site{n % 3}") for n in range(600)]
    bad = [Slot(f"bad{n}", f"badnode{n}", "badentry", "badsite") for n in range(200)]
    work = Work("bob", "run.sh", 6000, seconds=(1800, 7200))
    other = Work("eve", "sim", 3000, seconds=(1800, 7200))
    broken = Broken(frozenset({"badsite"}), 0, random.uniform(60, 400))
    return simulate([*good, *bad], [work, other], [broken], seed=seed, hours=6)


def eaten_dag(seed: int) -> list[Run]:
    """A black hole eats the jobs of DAGs whose programs are all different."""
    random = Random(seed)
    slots = pool(nodes=8)
    broken = Broken(frozenset(random.sample(names(slots, "node"), 1)), 3600, 7200)
    dags = [
        Work(user, "n", 3000, dag="9", programs=True, apart=True, seconds=(300, 2400))
        for user in ("eve", "joe")
    ]
    return simulate(slots, dags, [broken], seed=seed)


def weak(kind: str, share: float, minutes: float) -> Scenario:
    """A share of the runs that begin at one site, or on one node, fails, for so long."""

    def scenario(seed: int) -> list[Run]:
        random = Random(seed)
        slots = pool(nodes=8)
        since = random.uniform(3600, 14400)
        place = frozenset({random.choice(names(slots, kind))})
        broken = Broken(place, since, since + minutes * 60, share=share)
        return simulate(slots, everyday(random, jobs=1500), [broken], seed=seed)

    return scenario


def beside_crashes(seed: int) -> list[Run]:
    """A black hole, where a third of some users' jobs fail late by themselves."""
    random = Random(seed)
    slots = pool(nodes=8)
    works = everyday(random, jobs=1500)
    for work in works[::2]:
        work.share, work.crash = 0.33, (400, 3000)
    bug = Work("bob", "run.sh", 3000, bad=range(0, 3000, 3), crash=(315, 345), seconds=(600, 3000))
    speed = _speeds(slots, random, 0.1)
    broken = _broken(slots, random, "node", 2)
    return simulate(slots, [*works, bug], [broken], seed=seed, speed=speed)


# --- Mixes ---------------------------------------------------------------------------------------


def mix(seed: int) -> list[Run]:
    """All at once: users' faults of every kind, and broken places of every kind."""
    random = Random(seed)
    slots = pool(sites=6, nodes=12)
    since = random.uniform(3600, 14400)
    first = random.randrange(100, 1000)
    works = [
        *everyday(random, users=8, jobs=1200),
        Work("bad", "run.sh", 2000, bad=range(first, first + random.choice([10, 30, 100, 300]))),
        Work("typo", "job.py", 200, at=1800, bad=range(200)),
        Work("typo", "job.py", 1000, at=random.uniform(3600, 7200)),
        Work("down", "fetch", 2000, seconds=(300, 2400), down=(since, since + 900)),
        Work("dice", "mc", 2000, share=random.choice([0.02, 0.1, 0.3]), retries=3),
        Work("dag", "n", 1500, dag="5", programs=True, apart=True, seconds=(300, 1800)),
    ]
    broken = [
        _broken(slots, random, "pilot"),
        *(_broken(slots, random, "node") for _ in range(random.randint(1, 3))),
        Broken(frozenset(random.sample(names(slots, "node"), 1)), share=0.4),
    ]
    if seed % 3 == 0:
        broken.append(_broken(slots, random, "entry"))
    if seed % 3 == 1:
        broken.append(_broken(slots, random, "site"))
    if seed % 3 == 2:
        rack = [f"node2.1.{n}" for n in range(5)]
        broken.append(Broken(frozenset(rack), since, since + random.uniform(3600, 7200)))
    return simulate(slots, works, broken, seed=seed)


def mild_mix(seed: int) -> list[Run]:
    """Long jobs and short ones, users' faults, and only a few places that are broken, or flaky."""
    random = Random(seed)
    slots = pool(sites=5, nodes=16, pilots=1)
    since = random.uniform(3600, 14400)
    first = random.randrange(100, 600)
    works = [
        *everyday(random, users=5, jobs=800),
        Work("long", "sim", 2000, seconds=(28800, 86400), at=random.uniform(0, 3600)),
        Work("here", "run.sh", 400, bad=range(400), where=frozenset({"site0"}), at=since),
        Work("there", "run.sh", 800, share=0.05, where=frozenset({"site0", "site1"}), retries=2),
        Work("bad", "run.sh", 1000, bad=range(first, first + 50)),
        Work("down", "fetch", 1000, seconds=(300, 2400), down=(since, since + 1200)),
        Work("dag", "n", 1000, dag="5", programs=True, apart=True, seconds=(300, 1800), share=0.02),
    ]
    broken = [
        _broken(slots, random, "node"),
        Broken(frozenset(random.sample(names(slots, "node"), 2)), share=0.3),
    ]
    return simulate(slots, works, broken, seed=seed)


def long_jobs(seed: int) -> list[Run]:
    """A black hole eats jobs that elsewhere take longer than a verdict may wait."""
    random = Random(seed)
    slots = pool(nodes=16)
    works = [
        Work(user, "sim", 3000, seconds=(28800, 86400), at=random.uniform(0, 14400))
        for user in ("eve", "joe", "bob")
    ]
    broken = Broken(frozenset(random.sample(names(slots, "node"), 1)), 0, 7200, seconds=(60, 280))
    return simulate(slots, works, [broken], seed=seed)


def two_black_holes(seed: int) -> list[Run]:
    """A mixed pool: users' faults beside two black holes."""
    random = Random(seed)
    slots = pool(nodes=8)
    works = [
        *everyday(random, jobs=1000),
        Work("bad", "run.sh", 3000, bad=range(500, 600), seconds=(600, 3000)),
        Work("typo", "job.py", 200, at=1800, bad=range(200)),
        Work("typo", "job.py", 800, at=5400),
        Work("dice", "mc", 1000, share=0.1, retries=3),
    ]
    return simulate(slots, works, [_broken(slots, random, "node", 2)], seed=seed)


class Expected(NamedTuple):
    """A scenario, and whether a place is at fault in it."""

    scenario: Scenario
    broken: bool


SCENARIOS: Mapping[str, Expected] = MappingProxyType(
    {
        **{f"bad block of {n}": Expected(bad_block(n), False) for n in (10, 30, 100, 300)},
        "bad blocks, many": Expected(many_blocks, False),
        "small pool, users' faults": Expected(small_pool, False),
        **{f"typo mended, {n} slots": Expected(typo(n), False) for n in (10, 100, 500)},
        "typo never mended": Expected(never_mended, False),
        "service down": Expected(service(1), False),
        "service down, 20 clusters": Expected(service(20), False),
        **{f"random {n:.0%}, retries": Expected(at_random(n, 5), False) for n in (0.02, 0.1, 0.3)},
        "random 10%, no retries": Expected(at_random(0.1, 0), False),
        "two kinds of jobs": Expected(mixed_up, False),
        "DAG, the user's fault": Expected(dag_of_the_user, False),
        **{f"crash near 300 s, {n:.0%}": Expected(crash(n), False) for n in (1, 0.5, 0.1)},
        "crash at any time, 50%": Expected(crash_at_random, False),
        **{f"timeout of 300 s, {n:.0%}": Expected(timeout(n), False) for n in (0, 0.1, 0.5)},
        "sweeps": Expected(sweep, False),
        "pull workers": Expected(pull_workers, False),
        **{f"token expires, {n} users": Expected(expired(n), False) for n in (1, 4)},
        "a site fails late, users' faults": Expected(fails_late, False),
        "black hole: pilot": Expected(black_hole("pilot"), True),
        "black hole: node": Expected(black_hole("node"), True),
        "black hole: 6 nodes": Expected(black_hole("node", 6), True),
        "black hole: entry": Expected(black_hole("entry"), True),
        "black hole: site": Expected(black_hole("site"), True),
        "flaky nodes, 30%": Expected(flaky_node(0.3), True),
        "broken site, few each": Expected(broken_site, True),
        "site, 30% for 40 minutes": Expected(weak("site", 0.3, 40), True),
        "black hole, users' crashes": Expected(beside_crashes, True),
        "black hole eats a DAG": Expected(eaten_dag, True),
        "two black holes, users' faults": Expected(two_black_holes, True),
        "black hole, long jobs": Expected(long_jobs, True),
        "mix, mild": Expected(mild_mix, True),
        "mix": Expected(mix, True),
    }
)
