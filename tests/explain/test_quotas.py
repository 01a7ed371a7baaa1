"""Quotas of a real negotiator: of which group an idle job is told that its quota is used up."""

from __future__ import annotations

from typing import Any

import pytest

from gwmond.commands.explain import asked
from gwmond.config.settings import Config
from gwmond.explain.answers import answers
from gwmond.model.demand.question import Question
from tests.pool.condor import CondorPool

_QUOTAS = """
GROUP_NAMES = group_zero, group_a, group_a.sub, group_b, group_b.sub, group_b.tic
GROUP_NAMES = $(GROUP_NAMES), group_c, group_d, group_d.sub, group_zero.sub
GROUP_NAMES = $(GROUP_NAMES), group_e, group_e.sub, group_f, group_f.sub
GROUP_QUOTA_group_zero = 0
GROUP_QUOTA_group_zero.sub = 4
GROUP_QUOTA_group_a = 1
GROUP_QUOTA_group_a.sub = 4
GROUP_QUOTA_group_b = 2
GROUP_QUOTA_group_b.sub = 1
GROUP_QUOTA_group_b.tic = 1
GROUP_ACCEPT_SURPLUS_group_b.sub = true
GROUP_ACCEPT_SURPLUS_group_b.tic = true
GROUP_QUOTA_group_c = 3
GROUP_QUOTA_group_d = 2
GROUP_QUOTA_group_d.sub = 1
GROUP_ACCEPT_SURPLUS_group_d = true
GROUP_ACCEPT_SURPLUS_group_d.sub = true
GROUP_QUOTA_group_e = 1
GROUP_QUOTA_group_e.sub = 4
GROUP_AUTOREGROUP_group_e = true
GROUP_QUOTA_group_f = 0
GROUP_QUOTA_group_f.sub = 1
GROUP_AUTOREGROUP_group_f.sub = true
CLAIM_PARTITIONABLE_LEFTOVERS = false
"""
_JOBS = {
    "group_zero": (1, 1),
    "group_zero.sub": (1, 1),
    "group_a.sub": (3, 1),
    "group_b.sub": (4, 1),
    "group_c": (3, 2),
    "group_d.sub": (4, 1),
    "group_e.sub": (3, 1),
    "group_f.sub": (3, 1),
    "": (3, 2),
}
"""How many jobs of each group, and their cores; without a group: of a user with a ceiling."""
_LATER = {"group_b.tic": (2, 1), "group_a": (2, 1)}
_SAID = {
    "group_zero": "The group group_zero uses 0 of its quota of 0",
    "group_zero.sub": "The group group_zero, above the job's own, uses 0 of its quota of 0",
    "group_a.sub": "The group group_a, above the job's own, uses 1 of its quota of 1",
    "group_a": "The group group_a uses 1 of its quota of 1",
    "group_b.sub": "The group group_b, above the job's own, uses 2 of its quota of 2",
    "group_b.tic": "The group group_b, above the job's own, uses 2 of its quota of 2",
    "group_c": "The group group_c uses 4 of its quota of 3",
    "group_e.sub": "The group group_e, above the job's own, uses 1 of its quota of 1",
    "": "Its submitter uses 4 of a ceiling of 3",
}
"""What is said of an idle job; jobs of the others all run."""


def test_whose_quota_is_used_up(htcondor: str) -> None:
    """With free cores that match all of them, so that nothing else keeps them."""
    with CondorPool(config=_QUOTAS, htcondor=htcondor) as pool:
        at = {"GLIDEIN_Site": "Big", "GLIDEIN_Entry_Name": "Big"}
        pool.start_pilot("big", attrs=at, cores=32, memory=32_000)
        schedd = pool.schedds[0]
        pool.tool("condor_userprio", "-setceil", "bob@pool.test", "3")
        clusters: dict[str, list[int]] = {}

        def submit(group: str, number: int, cores: int) -> None:
            commands: dict[str, Any] = {"owner": "alice" if group else "bob", "request_cpus": cores}
            if group:
                commands |= {"accounting_group": group, "accounting_group_user": "alice"}
            clusters[group] = [pool.submit(schedd, seconds=7200, **commands) for _ in range(number)]

        def settled() -> bool:
            """As many run as may, by the settings above, and the negotiator has told of it."""
            used = {"group_a.sub": 1, "group_b.sub": 2, "group_c": 4, "group_d.sub": 4}
            used |= {"group_e.sub": 1, "group_f.sub.alice@pool.test": 3}
            ads = pool.query("Accounting", "true")
            by_name = {ad["Name"]: ad.get("WeightedResourcesUsed", 0) for ad in ads}
            return all(by_name.get(name) == n for name, n in (used | {"bob@pool.test": 4}).items())

        for group, (number, cores) in _JOBS.items():
            submit(group, number, cores)
        pool.wait_for("all that may run", settled)
        for group, (number, cores) in _LATER.items():
            submit(group, number, cores)
        known = 'regexp("^group_(b.tic|a)$", Name) && Requested > 0'
        pool.wait_for("the later ones", lambda: len(pool.query("Accounting", known)) == 2)
        assert settled()
        config = {
            "pool": {"collectors": [pool.collector]},
            "poll": {"interval": "10m", "deadline": "5m"},
        }
        with pytest.MonkeyPatch.context() as patch:
            for name, value in pool.client_env().items():
                patch.setenv(name, value)
            explainer = asked(Config.model_validate(config), Question())
            idle = {ad["ClusterId"] for ad in pool.jobs(schedd, "JobStatus == 1", ("ClusterId",))}
            waiting = {group: [n for n in some if n in idle] for group, some in clusters.items()}
            assert {group for group, some in waiting.items() if some} == _SAID.keys()
            for group, said in _SAID.items():
                first = answers(explainer.job(f"{waiting[group][-1]}.0", schedd))[0]
                assert first.text == said, (group, first)
