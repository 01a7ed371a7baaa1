"""Real jobs: what they read of themselves on their node, and the spans that they send.

``docs/traces.md`` rests on this: a job computes the id of its run's span from its own ad.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gwmond.model.runs.run_facts import RunFact
from gwmond.model.times import SECOND_US
from gwmond.sources import child, tasks
from gwmond.sources.htcondor.access import LiveAccess
from gwmond.sources.htcondor.histories.history_cursor import HistoryLimits
from gwmond.traces.spans import SpanName, span_id
from tests.build.otlp_sink import Sink, sink
from tests.pool.condor import CLEANED, CondorPool
from tests.pool.sandbox import USERS
from tests.sources import history_scenario as scenario

SCRIPT = Path(__file__).resolve().parents[2] / "etc/gwmond-trace.sh"
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
        self.submit(1, attrs={"TraceParent": PARENT}, requirements=CLEANED)
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

    def submit(self, n: int, **options: object) -> int:
        arguments = f"{self.home} $(ClusterId).$(ProcId)"
        command = {"executable": self.home / "program", "arguments": arguments, **options}
        return self.pool.submit(self.schedd, n, **command)  # type: ignore[arg-type]

    def ad(self, job: str, run: int) -> dict[str, str]:
        return read_ad(self.home / f"ad.{job}.{run}")

    def began(self, run: int) -> None:
        file = self.home / f"ad.1.0.{run}"
        self.pool.wait_for(f"run {run}", file.exists)

    def records(self, ad_type: str, name: str, kind: str, cluster: int = 1) -> list[RunFact]:
        """What a history has of a cluster's first job, in the order of its runs."""
        asked = scenario.daemon(self.pool, ad_type, name)
        task = (tasks.records, LiveAccess(), asked, kind, "", HistoryLimits(), time.time())
        ((answer, _), _) = child.run(*task, deadline_s=60)
        facts = [record.fact for record in answer.records if f"#{cluster}.0#" in record.fact.job]
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


_SCRIPT = """#!{shell}
. ./gwmond-trace.sh
step() {{ gwmond_span inner cat; echo "to errors" >&2; return 3; }}
echo "to output" | gwmond_span outer step
ls -A >>files
exit 5
"""
_PAYLOAD = """#!/bin/sh
trap 'exit 6' TERM
echo "$@"
[ "$1" = "$(cat {home}/asked 2>/dev/null)" ] && exit 0
printf '%s' "$1" >{home}/asked
while :; do sleep 0.1; done
"""


class Traced:
    """Jobs with gwmond-trace.sh, on nodes that have BusyBox and no other client of HTTP."""

    def __init__(self, played: Played, received: Sink) -> None:
        self.played, self.received = played, received
        self.home = played.home
        self.bin = self.home / "bin"
        self.bin.mkdir(exist_ok=True)
        shutil.copy(SCRIPT, self.home / SCRIPT.name)
        for name in ("busybox", "nc"):
            shutil.copy(str(shutil.which("busybox")), self.bin / name)

    def submit(self, name: str, executable: Path, **options: object) -> int:
        """Submit a job; what it leaves comes to the directory of its name."""
        place = self.home / name
        place.mkdir()
        os.chown(place, USERS["alice"], USERS["alice"])
        environment = f"OTEL_EXPORTER_OTLP_ENDPOINT={self.received.url} CANARY=CANARY"
        return self.played.submit(
            1,
            executable=executable,
            transfer_executable=True,
            initialdir=place,
            output="out",
            error="err",
            environment=f'"{environment} PATH={self.bin}:/usr/bin:/bin"',
            attrs={"TraceParent": PARENT},
            **{"arguments": "CANARY", "transfer_input_files": self.home / SCRIPT.name, **options},
        )

    def ended(self, cluster: int) -> tuple[int, str]:
        """The exit code of a cluster's job, and its GlobalJobId."""
        names = ["ExitCode", "GlobalJobId"]
        asked = (self.played.schedd, f"ClusterId == {cluster}", names)
        (job,) = self.played.pool.wait_for(
            "the job's end", lambda: self.played.pool.jobs(*asked, history=True)
        )
        return job["ExitCode"], job["GlobalJobId"]

    def run_spans(self, cluster: int) -> list[bytes]:
        """The ids that gwmond computes for the spans of its runs, from the schedd's history."""
        runs = self.played.records("Schedd", self.played.schedd, "epochs", cluster)
        began = [str((fact.start_us or 0) // SECOND_US) for fact in runs]
        return [span_id(SpanName.RUN, fact.job, at) for fact, at in zip(runs, began, strict=True)]


@pytest.fixture
def traced(played: Played) -> Iterator[Traced]:
    with sink() as received:
        yield Traced(played, received)


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_spans_of_a_job_are_below_its_runs(traced: Traced, shell: str) -> None:
    program = traced.home / f"{shell}.job"
    path = {"busybox": f"{traced.bin}/busybox sh"}.get(shell, f"/bin/{shell}")
    program.write_text(_SCRIPT.format(shell=path))
    cluster = traced.submit(shell, program)
    code, _ = traced.ended(cluster)
    inner, outer = traced.received.accepted
    (run,) = traced.run_spans(cluster)
    assert [inner.name, outer.name] == ["inner", "outer"]
    assert (inner.parent_span_id, outer.parent_span_id) == (outer.span_id, run)
    assert {inner.trace_id.hex(), outer.trace_id.hex()} == {PARENT[3:35]}
    assert (inner.status.code, outer.status.code) == (0, 2)
    place = traced.home / shell
    assert (code, (place / "out").read_text()) == (5, "to output\n")
    assert (place / "err").read_text() == "to errors\n"
    assert sorted(file.name for file in place.iterdir()) == ["err", "files", "out"]
    assert b"CANARY" not in traced.received.received[0].raw


def test_a_wrapped_program_that_is_vacated(traced: Traced) -> None:
    """It gets the signal; each run has its span, below that of this run."""
    payload = traced.home / "payload"
    payload.write_text(_PAYLOAD.format(home=traced.home))
    payload.chmod(0o755)
    os.chown(traced.home / "payload", USERS["alice"], USERS["alice"])
    cluster = traced.submit(
        "wrapped",
        traced.home / SCRIPT.name,
        arguments="./payload CANARY",
        transfer_input_files=payload,
        requirements=CLEANED,
    )
    traced.played.pool.wait_for("the payload", (traced.home / "asked").exists)
    traced.played.pool.act("Vacate", traced.played.schedd, f"ClusterId == {cluster}")
    assert traced.ended(cluster)[0] == 0
    spans = traced.received.accepted
    assert [span.parent_span_id for span in spans] == traced.run_spans(cluster)
    assert [(span.name, span.status.code) for span in spans] == [("payload", 2), ("payload", 0)]
    assert b"CANARY" not in traced.received.received[0].raw
