"""Real jobs whose outputs are sent by etc/gwmond-path-transfer, whatever storages and pilots do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gwmond.sources.htcondor.histories.history_endings import server_of
from tests.path_transfer import PLUGIN, STORE
from tests.pool.condor import CondorPool
from tests.pool.sandbox import USERS

HOSTILE = {"a;b,c", 'say "no" $(x) `id`', "\u4e2d\u6587 \u00e9", "-upload", "%41", "] [ Url = x"}
PROGRAMS = {
    "quick": "echo content >out",
    "hostile": "set -f\n" + "\n".join(f"echo content >./'{name}'" for name in sorted(HOSTILE)),
    "counted": 'echo ran >>"$1"; echo content >out; exit 3',
}


class Played:
    """What became of four jobs: an outage, hostile names, a lost storage, a killed pilot."""

    def __init__(self, pool: CondorPool) -> None:
        self.pool, self.schedd, self.home = pool, pool.schedds[0], pool.local / "alice"
        self.programs = [pool.local / path.name for path in (STORE, PLUGIN)]
        for source, target in zip((STORE, PLUGIN), self.programs, strict=True):
            shutil.copy(source, target)
        for name, text in PROGRAMS.items():
            (self.home / name).write_text(f"#!/bin/sh\n{text}\n")
            (self.home / name).chmod(0o755)
        down = [self.store(name) / ".down" for name in ("late", "never", "last")]
        for path in down:
            path.touch()
        first = self.pilot("first")
        self.outage = self.submit("quick", ("file", "near"), ("store", "late"))
        self.hostile = self.submit("hostile", ("file", "hostile"))
        counted: dict[str, Any] = {"transfer_input_files": self.home / "counted"}
        run = f"run ./counted {self.home}/ran.held"
        tree = (("file", "kept"), ("store", "never"))
        self.lost = self.submit(PLUGIN.name, *tree, run, retry_for=1, **counted)
        run = f"run ./counted {self.home}/ran"
        again = '(MY.NumShadowStarts ?: 0) == 0 || TARGET.GLIDEIN_Site == "second"'
        counted.update(job_lease_duration=20, requirements=again)
        self.killed = self.submit(PLUGIN.name, ("file", "site"), ("store", "last"), run, **counted)
        pool.wait_for("two tries", lambda: len(self.asked("late")) >= 2)
        down[0].unlink()
        pool.wait_for("a hold", lambda: self.status(self.lost) == 5)
        names = ("HoldReason", "HoldReasonCode")
        (self.hold,) = pool.jobs(self.schedd, f"ClusterId == {self.lost}", names)
        down[1].unlink()
        pool.act("Release", self.schedd, f"ClusterId == {self.lost}")
        ends = (self.outage, self.hostile, self.lost)
        pool.wait_for("three ends", lambda: not any(map(self.status, ends)))
        pool.wait_for("a word", lambda: list(self.store("site").glob("path-tree-*")))
        pool.wait_for("a try", lambda: self.asked("last"))
        first.kill9()
        self.before = len(self.asked("last"))
        down[2].unlink()
        self.pilot("second")
        pool.wait_for("the end of the other start", lambda: self.status(self.killed) is None)

    def pilot(self, name: str) -> Any:
        own = ", ".join(map(str, self.programs))
        config = f"FILETRANSFER_PLUGINS = $(LIBEXEC)/curl_plugin, {own}"
        return self.pool.start_pilot(
            name, cores=4, memory=8000, attrs={"GLIDEIN_Site": name}, config=config
        )

    def store(self, name: str) -> Path:
        """A storage of that name, which belongs to the user."""
        path = self.pool.local / "stores" / name
        if not path.exists():
            path.mkdir(parents=True)
            os.chown(path, USERS["alice"], USERS["alice"])
        return path

    def submit(
        self,
        program: str,
        *tree: tuple[str, str] | str,
        retry_for: int = 3600,
        **more: object,
    ) -> int:
        """A job whose outputs go to these storages, one after the other; its cluster's number."""
        path = ",".join(
            f"{one[0]}://{self.store(one[1])}/" for one in tree if not isinstance(one, str)
        )
        executable = self.programs[1] if program == PLUGIN.name else self.home / program
        named = {} if program == "hostile" else {"transfer_output_files": "out"}
        limits = {"PathTreeRetryFor": retry_for, "PathTreeFirstPause": 1}
        commands = {
            "executable": executable,
            "transfer_executable": True,
            "arguments": next((one for one in tree if isinstance(one, str)), ""),
            "output_destination": "tree://PathTree",
            **named,
            **more,
        }
        return self.pool.submit(self.schedd, attrs={"PathTree": path, **limits}, **commands)  # type: ignore[arg-type]

    def status(self, job: int) -> int | None:
        """The job's status in the queue, None if it has left."""
        found = self.pool.jobs(self.schedd, f"ClusterId == {job}")
        return int(found[0]["JobStatus"]) if found else None

    def ad(self, job: int, *names: str) -> dict[str, Any]:
        """Attributes of a job that has left the queue."""
        (ad,) = self.pool.jobs(self.schedd, f"ClusterId == {job}", names, history=True)
        return ad

    def asked(self, name: str) -> list[str]:
        """What the storage's plugin was asked for."""
        log = self.store(name) / ".log"
        return log.read_text().splitlines() if log.exists() else []

    def record(self, job: int) -> str:
        """What HTCondor 25 recorded of the job's output."""
        history = (self.pool.local / "spool/epoch_history").read_text()
        ads = [f"\n{ad}" for ad in history.split("\n*** ")]
        (found,) = (ad for ad in ads if f"\nClusterId = {job}\n" in ad and "OutputPluginRes" in ad)
        return found


@pytest.fixture(scope="module")
def played(htcondor: str) -> Iterator[Played]:
    with CondorPool(htcondor=htcondor) as pool:
        yield Played(pool)


def contents(store: Path) -> dict[str, str]:
    """The files at a storage, but the faults and the log."""
    files = (path for path in store.iterdir() if path.name not in {".log", ".down"})
    return {path.name: path.read_text() for path in files}


def test_an_outage_costs_no_run(played: Played) -> None:
    """Graph 2 of the 2010 report: one start, one file at each waypoint, whatever lay between."""
    assert played.ad(played.outage, "NumShadowStarts") == {"NumShadowStarts": 1}
    assert contents(played.store("near")) == {"out": "content\n"}
    assert contents(played.store("late")) == {"out": "content\n"}
    assert len(played.asked("late")) >= 3


def test_hostile_names_arrive(played: Played) -> None:
    assert contents(played.store("hostile")) == dict.fromkeys(HOSTILE, "content\n")


def test_a_storage_that_stays_down_holds_the_job_with_its_name(played: Played) -> None:
    assert played.hold["HoldReasonCode"] == 12
    assert f"store://{played.store('never')}/: it does not" in played.hold["HoldReason"]
    assert server_of(played.hold["HoldReason"]) == "store"


def test_a_job_that_is_released_resumes_at_the_transfer(played: Played) -> None:
    """As by its periodic_release, once the storage is back."""
    names = ("NumShadowStarts", "ExitCode")
    assert played.ad(played.lost, *names) == {"NumShadowStarts": 2, "ExitCode": 3}
    assert (played.home / "ran.held").read_text() == "ran\n"
    assert contents(played.store("never"))["out"] == "content\n"


def test_a_program_runs_once_though_its_pilot_is_killed(played: Played) -> None:
    """Its outputs were at the first waypoint: the second start sends them to the next."""
    names = ("NumShadowStarts", "ExitCode")
    assert played.ad(played.killed, *names) == {"NumShadowStarts": 2, "ExitCode": 3}
    assert (played.home / "ran").read_text() == "ran\n"
    (record,) = (path.name for path in played.store("site").glob("path-tree-*"))
    assert contents(played.store("site")).keys() == {"out", record}
    last = contents(played.store("last"))
    assert last.pop("out") == "content\n"
    assert set(last) == {record}
    assert set(played.asked("last")[played.before :]) == {"to 'out'", f"to '{record}'"}


def test_htcondor_25_records_each_try(played: Played, htcondor: str) -> None:
    if htcondor == "23":
        pytest.skip("HTCondor 23 records no transfer of a plugin")
    record = played.record(played.outage)
    assert 'PluginBasename = "gwmond-path-transfer"' in record
    assert record.count('ErrorType = "Contact"') == len(played.asked("late")) - 1
    assert f'Waypoint = "store://{played.store("late")}/"' in record
