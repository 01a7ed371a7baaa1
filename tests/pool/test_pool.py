"""The test pool itself: is it what was asked for, and does it leave anything behind?

Whatever else it does, the tests that use it see.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pool.condor import CondorPool
from tests.pool.sandbox import PATIENCE_S, VERSIONS, SetupError, wait_until


def _in_namespace(namespace: str) -> list[int]:
    """Processes of that process namespace, e.g. "pid:[4026532000]"."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "ns/pid") == namespace:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_missing_htcondor_fails_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr("tests.pool.sandbox._installed", lambda: None)
    monkeypatch.setenv("GWMOND_POOL_CHROOTS", "/nonexistent")
    with pytest.raises(SetupError, match="Run: make setup-test"):
        CondorPool(htcondor=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_daemons_are_of_the_version_that_was_asked_for(version: str) -> None:
    """Or of the one that it stands for, the startds of pilots too."""
    with CondorPool(htcondor=version) as pool:
        pool.start_pilot("p1")
        kinds = ("Collector", "Negotiator", "Schedd", "StartDaemon")
        (text,) = {ad["CondorVersion"] for kind in kinds for ad in pool.query(kind)}
        major = int(text.removeprefix("$CondorVersion: ").partition(".")[0])
        assert ("23" if major < 25 else "25") == version


@pytest.mark.parametrize("sig", [None, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_remains(sig: signal.Signals | None) -> None:
    """Neither when the pool is stopped nor when its owner is killed."""
    code = (
        "import os, signal, sys\n"
        "from tests.pool.condor import CondorPool\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in a shell's "&"
        "with CondorPool() as pool:\n"
        "    namespace = os.readlink(f\"/proc/{pool.pid_of('MASTER')}/ns/pid\")\n"
        "    print(namespace, pool.local.parent, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe) as owner:
        assert owner.stdout is not None
        namespace, directory = owner.stdout.readline().decode().split()
        assert len(_in_namespace(namespace)) > 4
        if sig is not None:
            owner.send_signal(sig)
            owner.wait(PATIENCE_S)
    wait_until("the pool's processes to end", lambda: not _in_namespace(namespace))
    wait_until("the pool's directory to go", lambda: not Path(directory).exists())
