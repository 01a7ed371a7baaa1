"""Jobs of a real pool that wait for what only some pools, or jobs, have: what is said of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from gwmond.commands.explain import asked
from gwmond.config.settings import Config
from gwmond.explain.all_jobs import causes
from gwmond.explain.answers import answers
from gwmond.explain.situation import Situation
from gwmond.model.demand.question import Question
from gwmond.service.pool.explainer import Explainer
from tests.pool.adtext import Value
from tests.pool.condor import CondorPool

_GPUS = """
use feature : GPUs
GPU_DISCOVERY_EXTRA = -extra -simulate:1,2 -uuid
"""
_STUBBORN = '\'trap """" TERM; while true; do sleep 1; done\''
_OFFERED_AGAIN_S = 60
"""After this time a job is said to be offered no more."""

Jobs = dict[str, str]

_TABLE = """
licences in use | pilots_busy | none has enough left: TARGET. | request_licences = 1
more licences than there are | requirements | icences >= Requestlicences | request_licences = 5
GPUs in use | pilots_busy | none has 1 core and 128 MiB, 1 GPU free | request_gpus = 1; require_gpus = Capability >= 2.0
better GPUs | requirements | that it wants (RequireGPUs): Capability >= 19.0 | request_gpus = 1; require_gpus = Capability >= 19.0
disk | requirements too_large | Disk | request_disk = 900000G
cores by what a pilot has | requirements | pass TARGET.Cpus >= RequestCpus | request_cpus = TARGET.TotalSlotCpus * 2
an attribute that START asks for | start | The job has no ProjectName
pilots that retire | retiring | 1 pilot (Leaving)
a time in the past | deferred | It was to run | deferral_time = 1
a time to come | requirements | It is about time
parallel universe | slots_untaken | parallel | universe = parallel; machine_count = 1
grid universe | other_universe | grid | grid_resource = condor a.test b.test
local universe | running | It is running | universe = local
removed by the pool | removed | queue: it was told to go away | leave_in_queue = True
held by itself | held | too greedy | periodic_hold = True; periodic_hold_reason = "too greedy"
suspended | running | suspended
released too early | not_offered | It was released while it still ran
"""  # noqa: E501
KINDS = {name: more for name, *more in (row.split(" | ") for row in _TABLE.strip().splitlines())}
"""The reason of each job, words of its answer, and how it is submitted.

A pilot of HTCondor 25 refuses what is too large for its disk; before, Requirements do.
"""
_AT = {
    **dict.fromkeys(("licences in use", "more licences than there are"), "Licences"),
    **dict.fromkeys(("GPUs in use", "better GPUs"), "GPUs"),
    "an attribute that START asks for": "Strict",
    "pilots that retire": "Leaving",
    "released too early": "Stubborn",
}
_POOL = """
SYSTEM_PERIODIC_REMOVE = MY.GoAway =?= true
SYSTEM_PERIODIC_REMOVE_REASON = "it was told to go away"
PERIODIC_EXPR_INTERVAL = 2
MAX_PERIODIC_EXPR_INTERVAL = 2
"""
_PILOTS: dict[str, dict[str, Any]] = {
    "Free": {"cores": 8, "memory": 8192},
    "Licences": {"cores": 2, "config": "MACHINE_RESOURCE_licences = 2\n"},
    "GPUs": {"cores": 4, "config": _GPUS},
    "Leaving": {"retire_after": 0},
    "Stubborn": {"cores": 2},
    "Strict": {"cores": 2, "config": 'START = TARGET.ProjectName == "x"\n'},
}


def _submit(pool: CondorPool, name: str) -> str:
    given = filter(None, "".join(KINDS[name][2:]).split("; "))
    commands: dict[str, Any] = dict(command.split(" = ", 1) for command in given)
    attrs: dict[str, Value] = {"GoAway": True} if name == "removed by the pool" else {}
    if "grid" in name:
        commands["universe"] = "grid"
    elif "local" not in name:
        wanted = [f'TARGET.GLIDEIN_Site == "{_AT.get(name, "Free")}"']
        if name == "a time to come":
            wanted.append(f"time() > {int(time.time()) + 36_000}")
        commands["requirements"] = " && ".join(wanted)
    if name == "released too early":
        commands |= {"executable": "/bin/sh", "arguments": f'"-c {_STUBBORN}"'}
    return f"{pool.submit(pool.schedds[0], attrs=attrs, seconds=7200, **commands)}.0"


@pytest.fixture(scope="module")
def jobs(htcondor: str) -> Iterator[tuple[CondorPool, Jobs]]:
    """All of these jobs, and the numbers by which their schedd knows them."""
    with CondorPool(config=_POOL, htcondor=htcondor) as pool:
        for site, more in _PILOTS.items():
            at = {"GLIDEIN_Site": site, "GLIDEIN_Entry_Name": site}
            pool.start_pilot(site.lower(), attrs=at, **more)
        schedd = pool.schedds[0]

        def status(number: str, *names: str) -> dict[str, Any]:
            cluster = number.partition(".")[0]
            (ad,) = pool.jobs(schedd, f"ClusterId == {cluster}", names or ("JobStatus",))
            return ad

        def run(number: str) -> None:
            pool.wait_for(f"{number} to run", lambda: status(number)["JobStatus"] == 2)

        for name, request in (("Licences", "licences"), ("GPUs", "gpus")):
            there: dict[str, Any] = {"requirements": f'TARGET.GLIDEIN_Site == "{name}"'}
            there[f"request_{request}"] = 2
            run(f"{pool.submit(schedd, owner='bob', seconds=7200, **there)}.0")
        found = {name: _submit(pool, name) for name in KINDS}
        early = [found["released too early"]]
        early += [_submit(pool, "released too early") for _ in range(2)]
        for number in early:
            _release_early(pool, number)
        run(found["suspended"])
        pool.act("Suspend", schedd, f"ClusterId == {found['suspended'].partition('.')[0]}")
        pool.wait_for("a suspension", lambda: status(found["suspended"])["JobStatus"] == 7)
        pool.wait_for("a hold", lambda: status(found["held by itself"])["JobStatus"] == 5)
        pool.wait_for("a removal", lambda: status(found["removed by the pool"])["JobStatus"] == 3)

        def ends() -> list[int]:
            ads = (status(number, "LastVacateTime") for number in early)
            return [ad["LastVacateTime"] for ad in ads if "LastVacateTime" in ad]

        pool.wait_for("the ends of these runs", lambda: len(ends()) == len(early))
        later = f"LastNegotiationCycleTime0 > {max(ends()) + _OFFERED_AGAIN_S}"
        pool.wait_for("negotiations", lambda: pool.query("Negotiator", later))
        found["released too early"] = next(n for n in early if status(n)["JobStatus"] == 1)
        yield pool, found


def _release_early(pool: CondorPool, number: str) -> None:
    """Have a job run, hold it, and release it before its run has ended.

    Its schedd offers it no more if meanwhile another job takes its claim.
    """
    schedd, job = pool.schedds[0], f"ClusterId == {number.partition('.')[0]}"
    begun = f"{job} && JobStatus == 2 && JobCurrentStartExecutingDate isnt undefined"
    pool.wait_for(f"{number} to run", lambda: pool.jobs(schedd, begun))
    pool.act("Hold", schedd, job)
    pool.release_now(schedd, job)


@pytest.fixture(scope="module")
def explainer(jobs: tuple[CondorPool, Jobs]) -> Iterator[Explainer]:
    """One look at the pool, as a user's."""
    pool, _ = jobs
    config = {
        "pool": {"collectors": [pool.collector]},
        "poll": {"interval": "10m", "deadline": "5m"},
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in pool.client_env().items():
            patch.setenv(name, value)
        yield asked(Config.model_validate(config), Question())


def test_groups_wait_for_pilots_that_retire_as_one_job_does(
    jobs: tuple[CondorPool, Jobs], explainer: Explainer
) -> None:
    """Each idle job once."""
    found = causes(explainer.all_jobs(), explainer.memory_per_unit_mib)
    retiring = next(one for one in found if one.reason == "retiring")
    assert (retiring.jobs, "1 pilot (Leaving)" in retiring.example) == (1, True)
    assert sum(one.jobs for one in found) == sum(group.jobs for group in explainer.groups())


@pytest.mark.parametrize("name", KINDS)
def test_what_keeps_it_is_said(
    name: str, jobs: tuple[CondorPool, Jobs], explainer: Explainer
) -> None:
    pool, numbers = jobs
    here: Situation = explainer.job(numbers[name], pool.schedds[0])
    first = answers(here)[0]
    reason, words, *_ = KINDS[name]
    assert (first.name in reason.split(), words in first.text) == (True, True), first
    assert here.fates.total() == (sum(pilot.number for pilot in here.slots))
    assert not explainer.missing
