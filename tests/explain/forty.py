"""Forty jobs on a real pool, each kept from running by something else, and what keeps each.

The tests of ``gwmond explain`` use them, and the bench that compares it with ``condor_q
-better-analyze``.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.pool import feign
from tests.pool.adtext import Ad, Value
from tests.pool.condor import CondorPool

_TABLE = r"""
typo | unknown_site | did you mean "Nebraska"? | 0  TARGET.GLIDEIN_Site == "Nebrasca" | @Nebrasca
typo in a list | unknown_site | did you mean "Wisconsin"? | 0  stringListIMember | @LIST | +DESIRED_Sites="Wisconson,Florda"
strange site | requirements | "Atlantis" | 0  TARGET.GLIDEIN_Site == "Atlantis" | @Atlantis
two impossible clauses | requirements | 1 other clause | 0  TARGET.GLIDEIN_Site == "Atlantis" | @Atlantis && regexp("^T2_DE", TARGET.GLIDEIN_Site)
pattern | requirements | T2_DE | 0  regexp | regexp("^T2_DE", TARGET.GLIDEIN_Site)
operating system | requirements | Windows11 | 0  TARGET.OpSysAndVer | @Nebraska && TARGET.OpSysAndVer == "Windows11"
architecture | requirements | ppc64le | 0  TARGET.Arch == "ppc64le" | @Nebraska && TARGET.Arch == "ppc64le"
software | requirements | HAS_ROOT | 0  TARGET.HAS_ROOT | @Nebraska && TARGET.HAS_ROOT =?= true
site and entry | clauses_together | limit-1 | 0  TARGET.GLIDEIN_Entry_Name == "limit-1" | @Nebraska && TARGET.GLIDEIN_Entry_Name == "limit-1"
site and software | clauses_together | HAS_GEANT | 0  TARGET.HAS_GEANT | @Nebraska && TARGET.HAS_GEANT =?= true
memory | too_large | RequestMemory is 64000 | 0  TARGET.Memory >= RequestMemory | @Nebraska | request_memory=64000
cores | too_large | RequestCpus is 64 | 0  TARGET.Cpus >= RequestCpus | @Nebraska | request_cpus=64
GPUs | too_large | RequestGPUs is 4 | 0  .*RequestGPUs | @Nebraska | request_gpus=4
cores and memory | too_large | 64 cores and 64000 MiB | 0  TARGET.Memory >= RequestMemory | @Nebraska | request_cpus=64 request_memory=64000
memory at that site | too_large | no pilot that meets all else | 0  \[\d+\] && \[\d+\] | @Nebraska | request_memory=6000
cores at that site | too_large | no pilot that meets all else | 0  \[\d+\] && \[\d+\] | @Nebraska | request_cpus=3
refused user | start | TARGET.Blacklisted | [1-9]\d* reject your job | @Nebraska | +Blacklisted=true
other VO | start | TARGET.VO | [1-9]\d* reject your job | @Nebraska | +VO="other"
walltime of START | too_long | MaxWallTimeMins | [1-9]\d* reject your job | @Wisconsin | +MaxWallTimeMins=43200
walltime | too_long | 30d00h | does not live | @Nebraska | +MaxWallTimeMins=43200
held on submission | held | submitted on hold | Job is held | @Nebraska | hold=true
held by its owner | held | via condor_hold | Job is held | @Nebraska
deferred | deferred | DeferralTime | never  DeferralTime | @Nebraska | deferral_time=LATER
scheduler universe | other_universe | universe 7 | meaningless for Scheduler universe | true | universe=scheduler
running | running | is running | Job is running | @Wisconsin
removed | removed | was removed | Job is removed | @Nebraska | leave_in_queue=true
concurrency limit | concurrency_limit | matlab reached | concurrency limit matlab reached | @Wisconsin | concurrency_limits=matlab
concurrency limit at a busy site | concurrency_limit | matlab reached | concurrency limit matlab reached | @Nebraska | concurrency_limits=matlab
quota | quota | uses 1 of its quota of 1 | quota | @Wisconsin | accounting_group=group_full accounting_group_user=alice
schedd's limit | schedd_limit | runs 1 job, and no more than 1 (MAX_JOBS_RUNNING) | MAX_JOBS_RUNNING | @Wisconsin
downtime | down | downtime | downtime | @Purdue
frontend's limit | frontend_limit | frontend has hit a limit | limit | @Florida
factory's limit | factory_limit | factory has hit a limit | limit | @MIT
held pilots | held_pilots | Pilots are held | pilots | @Caltech
nothing requested | no_match_in_frontend | no job matches this entry | frontend | @Vanderbilt
pilots pending | pilots_pending | 2 pilots wait | pilots | @Fermi
busy pilot | pilots_busy | It could run on 1 pilot (ne-1) | [1-9]\d* match but are serving|PREEMPTION_REQ | @Nebraska
busy pilot, 2 cores | pilots_busy | none has 2 cores | [1-9]\d* match but are serving|PREEMPTION_REQ | @Nebraska | request_cpus=2
short-lived pilot | too_short_lived | before the 54m | [1-9]\d* reject your job | @Wisconsin | +MaxWallTimeMins=54
just submitted | not_considered | has not come to it yet | not yet been considered | @Nebraska | request_memory=129
"""  # noqa: E501
"""The name of a job; the reason and words of gwmond's first line; what HTCondor's analysis has if
it names the cause; Requirements (``@X``: at site X), and commands and ``+attributes``."""

_POOL = """
MATLAB_LIMIT = 1
GROUP_NAMES = group_full
GROUP_QUOTA_group_full = 1
START_SCHEDULER_UNIVERSE = False
SCHEDD2.MAX_JOBS_RUNNING = 1
MAX_CONCURRENT_UPLOADS_PER_USER = 1000
"""
"""A schedd of HTCondor 25 offers no more jobs of a user at a time than may upload: else 20."""
_START = 'START = TARGET.VO =!= "other" && TARGET.Blacklisted =!= True'
_LIVES = " && ((TARGET.MaxWallTimeMins ?: 1) * 60 + 300 < GLIDEIN_ToDie - time())"
_LIFETIME_S = 3570
_AGE_S = _LIFETIME_S - 54 * 60 - 300
"""From this age on the pilot at Wisconsin refuses a job of 54 minutes."""
_SITES = {
    "LIST": "stringListIMember(TARGET.GLIDEIN_Site, MY.DESIRED_Sites)",
    "true": "true",
}
MOVES = {
    **dict.fromkeys(
        ("start", "frontend_limit", "no_match_in_frontend"), "the frontend's administrator"
    ),
    **dict.fromkeys(("concurrency_limit", "quota"), "the pool's administrator"),
    **dict.fromkeys(("schedd_limit", "other_universe"), "the access point's administrator"),
    **dict.fromkeys(("factory_limit", "held_pilots"), "the factory's operator"),
    **dict.fromkeys(("running", "removed", "pilots_pending", "pilots_busy"), "nobody: wait"),
    **dict.fromkeys(("too_short_lived", "not_considered"), "nobody: wait"),
    "down": "the site",
}
"""Whose move a reason is, if not the user's."""


class Kind(NamedTuple):
    """A job, and by which words an answer names what keeps it (see ``_TABLE``)."""

    name: str
    reason: str
    words: str
    analysis: str
    requirements: str
    commands: str = ""


KINDS = tuple(
    Kind(*(part.strip() for part in re.split(r" \|(?= |$)", line)))
    for line in _TABLE.strip().splitlines()
)


def submit(pool: CondorPool, schedd: str, kind: Kind) -> str:
    """Submit a job, and return its number."""
    text = re.sub(
        r"@(\w+)",
        lambda m: _SITES.get(m[1], f'TARGET.GLIDEIN_Site == "{m[1]}"'),
        kind.requirements,
    )
    commands: dict[str, Any] = {"requirements": text, "seconds": 7200}
    attrs: dict[str, Value] = {}
    for word in kind.commands.split():
        name, _, value = word.partition("=")
        if name.startswith("+"):
            attrs[name[1:]] = {"true": True}.get(
                value, int(value) if value.isdigit() else value.strip('"')
            )
        else:
            commands[name] = int(time.time()) + 86400 if value == "LATER" else value
    return f"{pool.submit(schedd, attrs=attrs, **commands)}.0"


def _entries() -> list[Ad]:
    def entry(name: str, site: str, **more: Any) -> Ad:
        return feign.glideresource(name, site, **{"jobs_idle": 1, **more})

    return [
        entry("down-1", "Purdue", down=True),
        entry("limit-1", "Florida", limits={"TotalGlideinsPerEntry": (5, 5)}),
        entry("pending-1", "Fermi", pending=2, requested_idle=2),
        entry("full-1", "MIT", factory_limits={"TotalGlideinsPerEntry": (7, 7)}),
        entry("held-1", "Caltech", held=3, requested_idle=2, HAS_GEANT=True),
        entry("none-1", "Vanderbilt", jobs_idle=0),
    ]


def _pilot(pool: CondorPool, site: str, entry: str, **more: Any) -> None:
    attrs: dict[str, Value] = {"GLIDEIN_Site": site, "GLIDEIN_Entry_Name": entry}
    attrs |= {"GLIDECLIENT_Name": "frontend", "GLIDECLIENT_Group": "main"}
    pool.start_pilot(entry, attrs=attrs, **more)


@contextmanager
def forty(htcondor: str = "23") -> Iterator[tuple[CondorPool, dict[str, tuple[str, str]]]]:
    """Yield a pool and, by the name of its kind, the schedd and number of each job.

    A busy pilot (Nebraska), one with free slots (Wisconsin), and six entries without pilots.  One
    job each uses up a quota, a concurrency limit, and what a schedd may run.  The negotiator has
    looked at all jobs but the last, and is stopped: its ads stay.
    """
    with CondorPool(config=_POOL, htcondor=htcondor) as pool:
        first, second = pool.schedds
        pool.advertise(_entries(), "UPDATE_AD_GENERIC")
        began = time.time()
        wisconsin = {"cores": 6, "memory": 8192, "lifetime": _LIFETIME_S}
        _pilot(pool, "Wisconsin", "wi-1", config=_START + _LIVES, **wisconsin)
        _pilot(pool, "Nebraska", "ne-1", cores=2, memory=4096, config=_START)
        _fill(pool)
        pool.wait_for("the other pilot to be old", lambda: time.time() > began + _AGE_S)
        found = {}
        for kind in KINDS[:-1]:
            schedd = second if kind.reason == "schedd_limit" else first
            found[kind.name] = schedd, submit(pool, schedd, kind)
        one = {name: f"ClusterId == {number.split('.')[0]}" for name, (_, number) in found.items()}
        pool.tool("condor_hold", "-name", first, found["held by its owner"][1], user="alice")
        pool.remove(first, one["removed"])
        _looked_at(pool, one)
        pool.signal("NEGOTIATOR", signal.SIGSTOP)
        found[KINDS[-1].name] = first, submit(pool, first, KINDS[-1])
        yield pool, found


def _fill(pool: CondorPool) -> None:
    """Have one pilot busy, and one job each run that uses up a limit."""
    first, second = pool.schedds

    def fill(schedd: str, number: int, site: str, **commands: Any) -> None:
        commands["requirements"] = f'TARGET.GLIDEIN_Site == "{site}"'
        pool.submit(schedd, number, owner="bob", seconds=7200, **commands)

    fill(first, 2, "Nebraska")
    fill(first, 1, "Wisconsin", concurrency_limits="matlab")
    fill(first, 1, "Wisconsin", accounting_group="group_full", accounting_group_user="bob")
    fill(second, 1, "Wisconsin")
    running = "JobStatus == 2"
    pool.wait_for("four to run", lambda: len(pool.jobs(first, running)) == 4)
    pool.wait_for("one of the other", lambda: pool.jobs(second, running))


def _looked_at(pool: CondorPool, one: dict[str, str]) -> None:
    """Wait until the negotiator has said all that it will say of these jobs."""
    first = pool.schedds[0]
    pool.wait_for("a job to run", lambda: pool.jobs(first, f"{one['running']} && JobStatus == 2"))
    since = int(time.time())
    pool.wait_for(
        "a negotiation after all jobs were submitted",
        lambda: pool.query("Negotiator", f"LastNegotiationCycleTime0 > {since}"),
    )
    last = one[KINDS[-2].name]
    pool.wait_for(
        "the negotiator to look at the last job",
        lambda: pool.jobs(first, f"{last} && LastRejMatchTime isnt undefined"),
    )
    matlab = f"{one['concurrency limit']} && LastRejMatchReason isnt undefined"
    pool.wait_for("the limit to be hit", lambda: pool.jobs(first, matlab))
    quota = 'Name == "group_full" && Requested > 0'
    pool.wait_for(
        "the quota to be advertised",
        lambda: pool.query("Accounting", f"{quota} && WeightedResourcesUsed == 1"),
    )
    second = f'Name == "{pool.schedds[1]}"'
    pool.wait_for(
        "the other schedd's job to be advertised",
        lambda: pool.query("Schedd", f"{second} && TotalRunningJobs == 1"),
    )
