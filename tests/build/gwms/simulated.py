"""Simulated pilots with a known truth: what was, and which of it their files can tell.

The same seed and number give the same pilots, one by one, in constant memory.  Times are seconds
since the epoch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

BASE = 1_760_000_000
SPREAD_S = 5 * 86400
FACTORY, INSTANCE, SCHEDD = "OSGTEST", "gfactory_instance", "schedd_glideins1@gfactory.test"
USERS = ("feosg", "fecms", "feligo")
ENTRIES = 80
OFFSETS = (-28800, -21600, -18000, 0, 3600, 7200, 19800, 32400)
"""Time zones of entries; one of them is not of whole hours."""

FAILURES = (
    ("WN_Resource", "main/validate_node.sh"),
    ("Network", "perform_curl"),
    ("Config", "condor_startup.sh"),
    ("VO_Config", "client/check_vo.sh"),
    ("Corruption", "check_file_signature"),
    ("VO_Proxy", "client_group/setup_x509.sh"),
    ("Unknown", "entry/site_check.sh"),
)
KINDS = {
    "good": 60,
    "idle": 8,
    "failed": 6,
    "early": 1,
    "condor_error": 2,
    "evicted": 6,
    "no_history": 4,
    "hard_kill": 4,
    "truncated": 3,
    "no_xml": 2,
    "empty": 2,
    "no_files": 2,
}
"""Kinds of pilots, and how frequent they are."""


class Job(NamedTuple):
    """One run of a job: its id on its schedd, its slot, and its end."""

    cluster: int
    slot: int
    start: int
    end: int
    code: int | None
    signal: int | None
    evicted: bool = False


class Pilot(NamedTuple):
    """One pilot.  ``offset`` of its host's clock; ``form`` of the statistics (0: the oldest).

    ``zone``: the name of the clock's time zone, where the offset is not always the same.
    """

    number: int
    kind: str
    user: str
    entry: int
    cluster: int
    proc: int
    pid: int
    offset: int
    start: int
    end: int
    last_script: int | None
    condor: tuple[int, int] | None
    failure: tuple[str, str] | None
    failed_at: int | None
    exit_code: int
    cores: int
    memory: int
    gpus: int
    tells_cores: bool
    tells_memory: bool
    mode: str
    form: int
    jobs: tuple[Job, ...]
    zone: str = ""

    @property
    def entry_name(self) -> str:
        return f"Entry_T2_{self.entry:03d}"

    @property
    def site(self) -> str:
        return f"Site{self.entry // 2:02d}"

    @property
    def directory(self) -> str:
        return f"user_{self.user}/glidein_{INSTANCE}/entry_{self.entry_name}"

    @property
    def stem(self) -> str:
        return f"job.{self.cluster}.{self.proc}"

    @property
    def startd(self) -> str:
        return f"glidein_{self.pid}_{self.number * 7919 + 1000}"

    @property
    def node(self) -> str:
        return f"node{self.number % 997}.{self.site.lower()}.test"

    @property
    def returned(self) -> bool:
        """Whether its output came back whole."""
        return self.kind not in {"hard_kill", "truncated", "empty", "no_files"}


def pilots(seed: int, number: int) -> Iterator[Pilot]:
    """Yield so many pilots."""
    kinds, weights = list(KINDS), list(KINDS.values())
    for n in range(number):
        rng = random.Random(seed * 1_000_003 + n)
        (kind,) = rng.choices(kinds, weights)
        yield _pilot(n, kind, rng)


def _pilot(n: int, kind: str, rng: random.Random) -> Pilot:
    entry = rng.randrange(ENTRIES)
    start = BASE + rng.randrange(SPREAD_S)
    mode = rng.choice(("std", "std", "nodebug", "fast"))
    pause = 150 if mode == "fast" else 1199
    cores = rng.choice((1, 1, 4, 8))
    last = start + rng.randrange(5, 200)
    condor: tuple[int, int] | None = (last + 2, last + 2 + rng.randrange(1200, 86400))
    failure, failed_at, code = None, None, 0
    jobs: tuple[Job, ...] = ()
    last_script: int | None = last
    end = 0
    if kind in {"failed", "early"}:
        condor, last_script, code = None, None, 1
        failed_at = start + rng.randrange(1, 300) if kind == "failed" else start + 1
        end = failed_at + pause
        failure = rng.choice(FAILURES) if kind == "failed" else ("WN_RESOURCE", "")
        if failure[1] == "condor_startup.sh":
            last_script = failed_at - 1
            failed_at = max(failed_at, last_script)
    elif condor is not None:
        if kind == "condor_error":
            code, failure, failed_at = 1, ("Unknown", "main/condor_startup.sh"), condor[1] + 3
            end = failed_at + pause
        else:
            end = condor[1] + rng.randrange(3, 20)
        if kind != "idle":
            jobs = _jobs(rng, condor, cores, evicted=kind in {"evicted", "hard_kill"})
    return Pilot(
        number=n,
        kind=kind,
        user=rng.choice(USERS),
        entry=entry,
        cluster=100_000 + n // 5,
        proc=n % 5,
        pid=rng.randrange(1000, 99999),
        offset=OFFSETS[entry % len(OFFSETS)],
        start=start,
        end=end,
        last_script=last_script,
        condor=condor,
        failure=failure,
        failed_at=failed_at,
        exit_code=code,
        cores=cores,
        memory=cores * rng.choice((2000, 2500, 4096)),
        gpus=rng.choice((0, 0, 0, 1, 4)),
        tells_cores=rng.random() > 0.05,
        tells_memory=rng.random() > 0.05,
        mode=mode,
        form=rng.randrange(3),
        jobs=jobs,
    )


def _jobs(
    rng: random.Random, condor: tuple[int, int], cores: int, *, evicted: bool
) -> tuple[Job, ...]:
    found: list[Job] = []
    number = rng.randrange(10**6)
    for slot in range(1, cores + 1):
        at = condor[0] + rng.randrange(30, 300)
        for _ in range(rng.choice((1, 1, 2, 3))):
            last = at + rng.randrange(60, 20_000)
            number += 1
            if last >= condor[1] - 60:
                if evicted and at < condor[1] - 120:
                    # A program that catches SIGTERM ends with status 0.
                    code, signal = rng.choice(((0, None), (None, 15)))
                    found.append(Job(number, slot, at, condor[1] - 5, code, signal, evicted=True))
                break
            ends: tuple[tuple[int | None, int | None], ...]
            ends = ((0, None), (0, None), (0, None), (3, None), (None, 9))
            found.append(Job(number, slot, at, last, *rng.choice(ends)))
            at = last + rng.randrange(2, 60)
    return tuple(found)


def one(kind: str, **wanted: object) -> Pilot:
    return next(
        pilot
        for pilot in pilots(3, 300)
        if pilot.kind == kind and all(getattr(pilot, k) == v for k, v in wanted.items())
    )
