"""What a job can read of itself on its node: is it what the histories say of the run?

``docs/traces.md`` rests on this: a job computes the id of its run's span from its own ad.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gwmond.model.run_facts import RunFact
from gwmond.model.times import SECOND_US
from gwmond.sources import child, tasks
from gwmond.sources.htcondor.access import LiveAccess
from gwmond.sources.htcondor.history_cursor import HistoryLimits
from tests.pool.condor import CondorPool
from tests.sources import history_scenario as scenario

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

#: Keeps its ad of each run, and waits for the third run's permission to end.
_PROGRAM = """#!/bin/sh
out=$1 job=$2 n=1
while [ -e "$out/ad.$job.$n" ]; do n=$((n + 1)); done
cp "$_CONDOR_JOB_AD" "$out/ad.$job.$n.partial"
mv "$out/ad.$job.$n.partial" "$out/ad.$job.$n"
[ "$job" = 1.0 ] || exit 0
[ "$n" = 3 ] || exec sleep 600
until [ -e "$out/end" ]; do sleep 0.2; done
"""


def read_ad(path: Path) -> dict[str, str]:
    """An ad as a shell reads it: texts without their quotes."""
    found = re.findall(r'^(\w+) = "?(.*?)"?$', path.read_text(), re.MULTILINE)
    return dict(found)


class Played:
    """A job that ran three times: vacated, held, and through a restart of its schedd."""

    def __init__(self, pool: CondorPool) -> None:
        self.pool, self.schedd = pool, pool.schedds[0]
        self.home = pool.local / "alice"
        program = self.home / "program"
        program.write_text(_PROGRAM)
        program.chmod(0o755)
        self.pilot = pool.start_pilot("p1", cores=8)
        self.submit(1, attrs={"TraceParent": PARENT})
        self.began(1)
        pool.act("Vacate", self.schedd, "ClusterId == 1")
        self.began(2)
        pool.act("Hold", self.schedd, "ClusterId == 1")
        pool.act("Release", self.schedd, "ClusterId == 1")
        self.began(3)
        pool.restart("SCHEDD")
        pool.wait_for(
            "the schedd to reconnect",
            lambda: pool.jobs(self.schedd, "NumShadowStarts == 4 && JobStatus == 2"),
        )
        (self.home / "end").touch()
        self.submit(3)
        self.submit(3, max_idle=2)
        pool.wait_for(
            "the ends of all jobs",
            lambda: len(pool.jobs(self.schedd, projection=["ProcId"], history=True)) == 7,
        )

    def submit(self, n: int, **options: object) -> None:
        arguments = f"{self.home} $(ClusterId).$(ProcId)"
        command = {"executable": self.home / "program", "arguments": arguments, **options}
        self.pool.submit(self.schedd, n, **command)  # type: ignore[arg-type]

    def ad(self, job: str, run: int) -> dict[str, str]:
        return read_ad(self.home / f"ad.{job}.{run}")

    def began(self, run: int) -> None:
        file = self.home / f"ad.1.0.{run}"
        self.pool.wait_for(f"run {run}", file.exists)

    def records(self, ad_type: str, name: str, kind: str) -> list[RunFact]:
        """What a history has of the first job, in the order of its runs."""
        asked = scenario.daemon(self.pool, ad_type, name)
        task = (tasks.records, LiveAccess(), asked, kind, "", HistoryLimits(), time.time())
        ((answer, _), _) = child.run(*task, deadline_s=60)
        facts = [record.fact for record in answer.records if "#1.0#" in record.fact.job]
        return sorted(facts, key=lambda fact: fact.start_us or 0)


@pytest.fixture(scope="module")
def played(htcondor: str) -> Iterator[Played]:
    with CondorPool(htcondor=htcondor, config=scenario.CONFIG) as pool:
        yield Played(pool)


def test_a_job_reads_what_identifies_its_run(played: Played) -> None:
    """GlobalJobId and JobCurrentStartDate are the same in the job and in both histories."""
    seen = [
        (ad["GlobalJobId"], int(ad["JobCurrentStartDate"]) * SECOND_US)
        for ad in (played.ad("1.0", run) for run in (1, 2, 3))
    ]
    epochs = played.records("Schedd", played.schedd, "epochs")
    startd = played.records("StartDaemon", played.pilot.name, "startd_history")
    assert [(fact.job, fact.start_us) for fact in epochs] == seen
    assert [(fact.job, fact.start_us) for fact in startd] == seen


def test_a_run_that_was_reconnected_has_two_numbers(played: Played) -> None:
    """So NumShadowStarts is no part of the identity: the job saw another than its schedd."""
    assert [played.ad("1.0", run)["NumShadowStarts"] for run in (1, 2, 3)] == ["1", "2", "3"]
    epochs = played.records("Schedd", played.schedd, "epochs")
    assert [fact.shadow_start for fact in epochs] == [1, 2, 4]
    startd = played.records("StartDaemon", played.pilot.name, "startd_history")
    assert [fact.shadow_start for fact in startd] == [1, 2, 3]


def test_a_job_reads_its_submitters_trace_and_how_large_its_cluster_is(played: Played) -> None:
    assert played.ad("1.0", 3)["TraceParent"] == PARENT
    assert played.ad("1.0", 3)["TotalSubmitProcs"] == "1"
    assert [played.ad(f"2.{proc}", 1)["TotalSubmitProcs"] for proc in range(3)] == ["3"] * 3
    assert [played.ad(f"3.{proc}", 1)["TotalSubmitProcs"] for proc in range(3)] == ["3"] * 3
