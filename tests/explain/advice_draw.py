"""Jobs as users submit them, and the pools in which they wait, from a seeded generator.

A drawn pool has entries in many states (``ROLES``), and free slots.  A drawn job is the text of a
submit description: what ``condor_submit`` adds to it is left as it is.  Most jobs have one cause
for which they wait (``CAUSES``), among clauses that all pilots pass.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from tests.pool.adtext import Expr, Value

SITES = (
    *("Nebraska", "Wisconsin", "Florida", "Purdue", "Caltech", "Vanderbilt", "Fermilab"),
    *("Lancium", "Bellarmine", "Syracuse", "Manchester", "Karlsruhe", "Bologna", "Barcelona"),
)
_NEVER = "(?!)"
"""What no analysis has: the cause is none that condor_q could see."""


class Entry(NamedTuple):
    """An entry, and what its empty pilots are like: clauses of START, memory in MiB."""

    role: str
    name: str
    site: str
    cores: int
    memory: int
    start: tuple[str, ...] = ()
    gpus: int = 0

    @property
    def attributes(self) -> dict[str, Value]:
        """What pilots say of their origin."""
        return {
            "GLIDEIN_Site": self.site,
            "GLIDEIN_CMSSite": f"T2_US_{self.site}",
            "GLIDEIN_Entry_Name": self.name,
            "GLIDECLIENT_Name": "frontend.main",
            "GLIDECLIENT_Group": "main",
            "HAS_SINGULARITY": self.role == "software",
        }


class Job(NamedTuple):
    """A submit description, its cause, and what condor_q's analysis has if it names the cause.

    ``hopeless``: whatever is changed, no pool of ``ROLES`` runs such a job.  ``then``: a command
    that its owner runs after the submission.
    """

    cause: str
    lines: tuple[str, ...]
    analysis: str
    owner: str = "alice"
    schedd: int = 0
    then: str = ""
    hopeless: bool = False

    @property
    def text(self) -> str:
        """The description; two jobs, of which the second is left alone."""
        return "\n".join((*self.lines, "queue 2", ""))


_RUNS: dict[str, Any] = {"running": 1}
ROLES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("free", "busy", "software", "lists", "vo", "cores", "gpu"), _RUNS),
    **dict.fromkeys(("walltime", "draining", "retiring"), _RUNS),
    "pending": {"pending": 2, "requested_idle": 2},
    "unknown": {"pending": 1, "GLIDEIN_CPUS": "auto", "GLIDEIN_MaxMemMBs": 0},
    "limited": {"limits": {"TotalGlideinsPerEntry": (5, 5)}},
    "full": {"factory_limits": {"TotalGlideinsPerEntry": (7, 7)}},
    "down": {"down": True},
    "held": {"held": 3, "requested_idle": 2},
    "unmatched": {"jobs_idle": 0},
}
"""What the frontend says of an entry, by its role."""
STARTED = frozenset(role for role, signs in ROLES.items() if signs is _RUNS)
"""Roles of entries where real pilots run."""
_ALWAYS = ("free", "busy", "software", "pending", "unknown", "limited", "down")
_START: dict[str, tuple[str, ...]] = {
    "lists": ("stringListIMember(GLIDEIN_CMSSite, TARGET.DESIRED_Sites)",),
    "vo": ('TARGET.VO == "ligo"',),
    "cores": ("TARGET.RequestCpus >= 4",),
    "walltime": ("(TARGET.MaxWallTimeMins ?: 480) * 60 < GLIDEIN_ToDie - time()",),
    "gpu": ("TARGET.RequestGPUs > 0",),
}


class Layout(NamedTuple):
    """A pool: its entries by role."""

    seed: int
    entries: dict[str, Entry]

    def at(self, role: str) -> Entry:
        """Return the entry of a role; KeyError if this pool has none."""
        return self.entries[role]


def layout(seed: int, started: int = 5) -> Layout:
    """Draw a pool with so many entries where real pilots run."""
    rng = random.Random(f"pool {seed}")
    some = rng.sample(sorted(STARTED - set(_ALWAYS)), started - 3)
    rest = rng.sample(sorted(set(ROLES) - STARTED - set(_ALWAYS)), 2)
    sites = rng.sample(SITES, len(SITES))
    entries = {}
    for role, site in zip((*_ALWAYS, *some, *rest), sites, strict=False):
        cores = rng.choice((8, 16))
        start: tuple[str, ...] = _START.get(role, ())
        if role not in _START:
            start = rng.choice(((), ("TARGET.Blacklisted =!= True",), ('TARGET.VO =!= "other"',)))
        if role == "free":
            cores = 32
        entries[role] = Entry(
            role,
            f"{site[:3].upper()}_{role[:2]}{rng.randrange(1, 9)}",
            site,
            2 if role == "busy" else cores,
            cores * rng.choice((2000, 2500, 4000)),
            start,
            2 if role == "gpu" else 0,
        )
    return Layout(seed, entries)


class _Draft:
    """A submit description in the making."""

    def __init__(self, rng: random.Random, pool: Layout) -> None:
        self.rng, self.pool = rng, pool
        self.lines: dict[str, str] = {
            "executable": "/bin/sleep",
            "arguments": "1800",
            "log": "jobs.log",
        }
        self.clauses: list[str] = []

    def at(self, role: str) -> None:
        """Want the entry of a role, or its site, in one of many ways."""
        entry = self.pool.at(role)
        self.clauses.append(self.rng.choice(_of_site(entry)))
        if "MY.Where" in self.clauses[-1]:
            self.lines["+Where"] = f'"{entry.site}"'

    def put(self, text: str) -> None:
        """Put lines of a description into it, divided by semicolons; or ``&`` and a clause."""
        if text.startswith("&"):
            self.clauses.append(text[1:])
            return
        for line in filter(None, text.split(";")):
            name, _, value = line.partition("=")
            now = str(int(time.time()))
            self.lines[name.strip()] = value.strip().replace("{now}", now)

    def job(self, cause: str, analysis: str) -> Job:
        """Return the job, with clauses that all pilots pass among its own."""
        most = 6 - len(self.clauses)
        self.clauses += self.rng.sample(_HARMLESS, self.rng.randint(0, max(0, most)))
        self.rng.shuffle(self.clauses)
        if self.clauses:
            wanted = self.rng.choice((" && ", " && ", ") && (")).join(self.clauses)
            self.lines["requirements"] = f"({wanted})" if ") && (" in wanted else wanted
        self.lines.setdefault("request_memory", self.rng.choice(("", "500", "1GB", "1.5 GB")))
        self.lines.setdefault("request_cpus", self.rng.choice(("", "1")))
        lines = tuple(f"{name} = {value}" for name, value in self.lines.items() if value)
        where = _ELSEWHERE.get(cause, {})
        return Job(cause, lines, analysis, **where, hopeless=cause in _HOPELESS)


def _of_site(entry: Entry) -> tuple[str, ...]:
    return (
        f'TARGET.GLIDEIN_Site == "{entry.site}"',
        f'TARGET.GLIDEIN_Site =?= "{entry.site}"',
        f'GLIDEIN_Site == "{entry.site}"',
        f'stringListMember(TARGET.GLIDEIN_Site, "{entry.site},Elsewhere")',
        f'regexp("^{entry.site}", TARGET.GLIDEIN_Site)',
        f'TARGET.GLIDEIN_Entry_Name == "{entry.name}"',
        f'(TARGET.GLIDEIN_Site == "{entry.site}" || TARGET.GLIDEIN_Site == "Elsewhere")',
        f'TARGET.GLIDEIN_CMSSite == "T2_US_{entry.site}"',
        "stringListIMember(TARGET.GLIDEIN_Site, MY.Where)",
    )


_HARMLESS = (
    'TARGET.OpSys == "LINUX"',
    'Arch == "X86_64"',
    "TARGET.HasFileTransfer",
    'TARGET.GLIDEIN_Factory =?= "factory"',
    "(TARGET.GLIDEIN_ToDie - time()) > 600",
    "TARGET.Memory >= 100",
    "Cpus >= 1",
    'TARGET.GLIDECLIENT_Group =!= "test"',
    'regexp("^T3_", TARGET.GLIDEIN_CMSSite) == false',
    'TARGET.GLIDEIN_Site =!= "Nowhere"',
    "isUndefined(TARGET.Banned)",
    'GLIDEIN_Site != "Elsewhere"',
    "TARGET.Disk > 100000",
    "(TARGET.HasReconnect =?= True || TARGET.Cpus >= 1)",
)


def _typo(rng: random.Random, word: str) -> str:
    """Return a word with two letters swapped, or one dropped, doubled or replaced."""
    while True:
        at = rng.randrange(1, len(word) - 1)
        made = rng.choice(
            (
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
                word[:at] + word[at + 1 :],
                word[:at] + word[at] + word[at:],
                word[:at] + rng.choice("aeiost") + word[at + 1 :],
            )
        )
        if made.lower() != word.lower():
            return made


_CLAUSES: dict[str, tuple[str, ...]] = {
    "site that is not there": ('TARGET.GLIDEIN_Site == "Atlantis"',),
    "system that is not there": (
        'TARGET.OpSysAndVer == "CentOS7"',
        '(TARGET.OpSysAndVer =?= "AlmaLinux8" || TARGET.OpSysAndVer =?= "CentOS7")',
        "TARGET.OpSysMajorVer == 7",
        'TARGET.Arch == "aarch64"',
        'TARGET.Microarch == "x86_64-v9"',
        'TARGET.OpSys == "WINDOWS"',
    ),
    "software that is not there": (
        *("TARGET.HAS_CVMFS_cms_cern_ch =?= True", "HAS_ROOT", "TARGET.HasMatlab"),
    ),
    "case of a value": (
        *('TARGET.GLIDEIN_Site =?= "{site}"', 'stringListMember(TARGET.GLIDEIN_Site, "{site}")'),
        *('TARGET.Arch =?= "x86_64"', 'TARGET.OpSys =?= "Linux"'),
        'TARGET.GLIDEIN_CMSSite =?= "t2_us_{site}"',
    ),
    "group that is not there": ('TARGET.GLIDECLIENT_Group == "cms"',),
    "numbers of slots": ("TARGET.Memory >= 900000", "TARGET.TotalCpus > 500", "Cpus == 33"),
}
"""By cause clauses that no slot meets; {site}: that of free slots, in other letters."""

_TABLE = r"""
memory in wrong units |  0  TARGET.Memory >= RequestMemory | request_memory = 8000 GB ## request_memory = 4000000 ## request_memory = 2TB ## request_memory = 1.5 TB ## request_memory = 1024 * 2048 ## request_memory = 8192000 MB
memory by an expression |  0  TARGET.Memory >= RequestMemory | request_memory = ifThenElse(MemoryUsage =!= undefined, MemoryUsage * 3 / 2, 999999) ## request_memory = RequestCpus * 500000 ## request_memory = max({MemoryUsage ?: 900000, 2000})
disk |  0  TARGET.Disk >= RequestDisk | request_disk = 900TB ## request_disk = 90000000000 ## request_disk = 5000000 GB
cores |  0  TARGET.Cpus >= RequestCpus | request_cpus = 48 ## request_cpus = 64 ## request_cpus = 128
cores and memory |  0  TARGET.Memory >= RequestMemory | request_cpus = 64; request_memory = 512GB
GPUs |  0  .*RequestGPUs | request_gpus = 3 ## request_gpus = 4 ## request_gpus = 8
limit reached | concurrency limit .*matlab.* reached | concurrency_limits = matlab
limit of 0 | concurrency limit .*none.* reached | concurrency_limits = none
limit never met | concurrency limit .*licence.* reached | concurrency_limits = licence:5
quota | quota | accounting_group = group_full; accounting_group_user = alice ## accounting_group = group_none; accounting_group_user = alice ## accounting_group = group_up.low; accounting_group_user = alice ## accounting_group = group_none.low; accounting_group_user = alice
held on submission | Job is held | hold = true
held by its owner | Job is held | -
held by its policy | Job is held | periodic_hold = JobStatus == 1 && RequestCpus > 0;periodic_hold_reason = "too much asked for"
input that is missing | Job is held | transfer_input_files = nowhere.dat; skip_filechecks = true
deferred | (never|not now) .*Deferral | deferral_time = {now} + 3600 ## deferral_time = {now} + 86400
deferred too late | (never|not now) .*Deferral | deferral_time = {now} - 7200; deferral_window = 60
ceiling | ceiling|submitter limit | -
schedd's limit | MAX_JOBS_RUNNING | -
docker |  0  TARGET.Has | universe = docker; docker_image = busybox
container |  0  TARGET.Has | universe = container; container_image = docker://busybox
java |  0  TARGET.Has | universe = java
virtual machine |  0  TARGET.Has | universe = vm; vm_type = kvm; vm_memory = 512; vm_disk = a.qcow2:vda:w
parallel | meaningless | universe = parallel; machine_count = 2
scheduler universe | StartSchedulerUniverse|meaningless | universe = scheduler
grid | Unable to process|meaningless | universe = grid; grid_resource = condor ce.pool.test ce.pool.test:9619
plugin |  0  .*HasFileTransferPluginMethods | transfer_input_files = osdf:///ospool/data.tar ## transfer_input_files = stash:///user/x ## transfer_input_files = pelican://a.b/c
nothing | (?!) | -
"""  # noqa: E501
"""A cause; what condor_q's analysis has if it names the cause; lines of the description (-: none),
of which one of those between ## is drawn."""


def _drawn(lines: str) -> tuple[str, ...]:
    return ("",) if lines == "-" else tuple(lines.split(" ## "))


_LINES = {
    cause: (analysis, _drawn(lines))
    for cause, analysis, lines in (row.split(" | ") for row in _TABLE.strip().splitlines())
}

_REJECTS = r"[1-9]\d* (slots )?reject your job"
_SERVES = r"match but are serving|PREEMPTION_REQ|[1-9]\d* slots would match if drained"
_AT: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "cores that START wants": ("cores", _REJECTS, ("request_cpus = 1", "request_cpus = 2")),
    "GPUs that START wants": ("gpu", _REJECTS, ("",)),
    "walltime that START refuses": (
        *("walltime", _REJECTS),
        ("+MaxWallTimeMins = 1440", "+MaxWallTimeMins = 43200"),
    ),
    "VO that START wants": ("vo", _REJECTS, ("", '+VO = "lgio"', '+VO = "LIGO_"', '+VO = "cms"')),
    "software of another site": ("free", r" 0  .*(&&|HAS_SING)", ("&TARGET.HAS_SINGULARITY",)),
    "busy": ("busy", _SERVES, ("",)),
    "busy, two cores": ("busy", _SERVES, ("request_cpus = 2",)),
    **{
        f"{role} entry": (role, _NEVER, ("",))
        for role in ("draining", "retiring", "pending", "unknown", "limited", "full", "down")
    },
    "held pilots": ("held", _NEVER, ("",)),
    "unmatched entry": ("unmatched", _NEVER, ("",)),
    "site that is free": ("free", _NEVER, ("",)),
}
"""By cause the role of the only entry that is wanted, the analysis, and lines; &: a clause."""

Cause = Callable[[_Draft], str]
"""Puts itself into a draft; returns what condor_q's analysis has if it names the cause."""


def _site_typo(d: _Draft) -> str:
    entry = d.pool.at("free")
    wrong = entry._replace(site=_typo(d.rng, entry.site), name=_typo(d.rng, entry.name))
    d.clauses.append(d.rng.choice(_of_site(wrong)[:8]))
    return rf" 0  .*({wrong.site}|{wrong.name})"


def _typos_in_a_list(d: _Draft) -> str:
    sites = ",".join(_typo(d.rng, d.pool.at(role).site) for role in ("free", "software"))
    d.lines["+DESIRED_Sites"] = f'"{sites}"'
    d.clauses.append("stringListIMember(TARGET.GLIDEIN_Site, MY.DESIRED_Sites)")
    return " 0  stringListIMember"


def _attribute_typo(d: _Draft) -> str:
    name = d.rng.choice(("GLIDEIN_Site", "GLIDEIN_CMSSite", "GLIDEIN_Entry_Name"))
    wrong = name[:8] + _typo(d.rng, name[8:])
    d.clauses.append(f'TARGET.{wrong} == "{d.pool.at("free").attributes[name]}"')
    return rf" 0  .*{wrong}"


def _memory_at_a_site(d: _Draft) -> str:
    entry = d.pool.at("software")
    d.clauses.append(f'TARGET.GLIDEIN_Site == "{entry.site}"')
    d.lines["request_memory"] = str(entry.memory + d.rng.randrange(1, 4000))
    return r" 0  (\[\d+\] && \[\d+\]|TARGET.Memory)"


def _gpu_property(d: _Draft) -> str:
    d.pool.at("gpu")
    wanted = (
        ("require_gpus", "Capability >= 8.0"),
        ("require_gpus", 'DeviceName == "NVIDIA A100"'),
        ("gpus_minimum_capability", "8.6"),
        ("gpus_minimum_memory", "40GB"),
        ("gpus_minimum_runtime", "13.0"),
        ("gpus_maximum_capability", "6.0"),
        ("require_gpus", "GlobalMemoryMb > 40000 && Capability >= 7"),
    )
    d.lines |= {"request_gpus": "1", **dict([d.rng.choice(wanted)])}
    return " 0  .*(RequireGPUs|AvailableGPUs)"


def _refused(d: _Draft) -> str:
    name, value = d.rng.choice((("Blacklisted", "True"), ("VO", '"other"')))
    refusing = f"TARGET.{name} =!= {value}"
    roles = [
        role
        for role, entry in d.pool.entries.items()
        if role in ("free", "software", "draining") and refusing in entry.start
    ]
    d.lines[f"+{name}"] = value
    d.at(dict(enumerate(roles))[0])
    return _REJECTS


def _list_for_start(d: _Draft) -> str:
    entry = d.pool.at("lists")
    d.at("lists")
    if d.rng.random() < 0.8:
        d.lines["+DESIRED_Sites"] = f'"T2_US_{_typo(d.rng, entry.site)},T2_DE_Elsewhere"'
    return _REJECTS


_TOGETHER = (
    *("case of a value", "software that is not there", "system that is not there", "cores", "disk"),
    *("memory in wrong units", "numbers of slots", "GPUs", "GPUs by property"),
    *("typo in a site's name", "typo in an attribute's name"),
)


def _two_at_once(d: _Draft) -> str:
    one, other = d.rng.sample(_TOGETHER, 2)
    analysis = CAUSES[one](d), CAUSES[other](d)
    return "|".join(analysis)


def _limited_and_down(d: _Draft) -> str:
    sites = ",".join(d.pool.at(role).site for role in ("limited", "down"))
    d.clauses.append(f'stringListMember(TARGET.GLIDEIN_Site, "{sites}")')
    return _NEVER


def _clauses(d: _Draft, cause: str) -> str:
    clause, site = d.rng.choice(_CLAUSES[cause]), d.pool.at("free").site
    other = site.upper() if clause.startswith("string") else site.lower()
    d.clauses.append(clause.format(site=other))
    names = re.findall(r"\b(?:TARGET\.)?([A-Z]\w+)", clause)
    return rf" 0  .*\b({'|'.join(names)})\b"


def _lines(d: _Draft, cause: str) -> str:
    analysis, some = _LINES[cause]
    d.put(d.rng.choice(some))
    return analysis


def _at(d: _Draft, cause: str) -> str:
    role, analysis, some = _AT[cause]
    d.at(role)
    d.put(d.rng.choice(some))
    return analysis


CAUSES: dict[str, Cause] = {
    **{name: partial(_clauses, cause=name) for name in _CLAUSES},
    **{name: partial(_lines, cause=name) for name in _LINES},
    **{name: partial(_at, cause=name) for name in _AT},
    "typo in a site's name": _site_typo,
    "typos in a list of sites": _typos_in_a_list,
    "typo in an attribute's name": _attribute_typo,
    "memory at a site": _memory_at_a_site,
    "GPUs by property": _gpu_property,
    "refused by START": _refused,
    "list that START wants": _list_for_start,
    "limited and down entries": _limited_and_down,
    "two causes at once": _two_at_once,
}
_ELSEWHERE: dict[str, dict[str, Any]] = {
    "ceiling": {"owner": "carol"},
    "schedd's limit": {"schedd": 1},
    "held by its owner": {"then": "condor_hold"},
}
_HOPELESS = frozenset(
    ("docker", "container", "java", "virtual machine", "parallel", "grid", "plugin")
)
_RARE = _HOPELESS | {"scheduler universe", "nothing", "site that is free"}


def draw(pool: Layout, number: int) -> list[Job]:
    """Draw so many jobs, each with another cause until all were drawn."""
    rng = random.Random(f"jobs {pool.seed}")
    names: list[str] = []
    jobs: list[Job] = []
    while len(jobs) < number:
        if not names:
            names = sorted(CAUSES, key=lambda name: rng.random() + (name in _RARE) * 0.2)[::-1]
        name, draft = names.pop(), _Draft(rng, pool)
        try:
            analysis = CAUSES[name](draft)
        except KeyError:  # this pool has no such entry
            continue
        jobs.append(draft.job(name, analysis))
    return jobs


def start_of(entry: Entry, without: Iterable[str] = ()) -> Expr:
    """Return START of an entry's pilots, but for some of its clauses."""
    return Expr(" && ".join(f"({one})" for one in entry.start if one not in set(without)) or "True")


__all__ = ["CAUSES", "ROLES", "STARTED", "Entry", "Job", "Layout", "draw", "layout", "start_of"]
