"""A real pilot: a master of its own with one startd, as a glidein has them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from tests.pool.adtext import Value, literal
from tests.pool.config import COMMON_CONFIG, PILOT_CONFIG
from tests.pool.sandbox import PATIENCE_S, Process, Sandbox, wait_until


def make_local_dirs(sandbox: Sandbox, local: Path, names: tuple[str, ...]) -> None:
    """Directories for daemons, which belong to HTCondor's own user within the sandbox."""
    passwd = (sandbox.work / "passwd").read_text().splitlines()
    ids = {f[0]: (int(f[2]), int(f[3])) for f in (line.split(":") for line in passwd)}
    for path in (local, *(local / name for name in names)):
        path.mkdir(exist_ok=True, mode=0o755)
        os.chown(path, *ids.get("condor", (0, 0)))


class Pilot:
    """A running pilot; made by CondorPool.start_pilot."""

    def __init__(
        self,
        sandbox: Sandbox,
        collector: str,
        name: str,
        *,
        cores: int,
        memory: int,
        gpus: int,
        attrs: Mapping[str, Value],
        lifetime: float,
        retire_after: float | None,
        retirement: int,
        config: str,
    ) -> None:
        self.name = f"{name}@pool.test"
        self._sandbox = sandbox
        self.local = sandbox.work / f"pilot-{name}"
        make_local_dirs(sandbox, self.local, ("log", "spool", "execute", "lock", "run"))
        now = int(time.time())
        #: epoch seconds, as in the startd's ad
        self.to_die = int(now + lifetime)
        self.to_retire = int(now + (lifetime if retire_after is None else retire_after))
        glidein: dict[str, Value] = {
            "GLIDEIN_Site": "Site",
            "GLIDEIN_Entry_Name": "entry",
            "GLIDEIN_Factory": "factory",
            "GLIDEIN_Name": "glidein",
            "GLIDECLIENT_Name": "frontend.main",
            "GLIDECLIENT_Group": "main",
            "GLIDEIN_ToRetire": self.to_retire,
            "GLIDEIN_ToDie": self.to_die,
            **attrs,
        }
        lines = [f"{key} = {literal(value)}" for key, value in glidein.items()]
        lines.append(f"STARTD_ATTRS = $(STARTD_ATTRS) {' '.join(glidein)}")
        if gpus:
            lines.append("MACHINE_RESOURCE_GPUs = " + " ".join(f"GPU-{n}" for n in range(gpus)))
        text = COMMON_CONFIG.format(
            local=self.local, collector=collector, daemons="MASTER STARTD"
        ) + PILOT_CONFIG.format(name=self.name, cores=cores, memory=memory, retirement=retirement)
        self.config = self.local / "condor_config"
        self.config.write_text("\n".join([text, *lines, config, ""]))
        with (self.local / "log" / "stdout").open("wb") as log:
            self.popen: subprocess.Popen[bytes] = sandbox.spawn(
                ["condor_master", "-f"], {"CONDOR_CONFIG": str(self.config)}, log
            )

    def processes(self) -> list[Process]:
        """The pilot's processes, jobs included (as long as these have a living parent)."""
        everything = list(self._sandbox.processes())
        found = [p for p in everything if p.condor_config == str(self.config)]
        wanted = {p.pid for p in found}
        while more := [p for p in everything if p.parent in wanted and p.pid not in wanted]:
            found += more
            wanted |= {p.pid for p in more}
        return found

    def pid_of(self, daemon: str) -> int | None:
        """Process number (outside) of MASTER or STARTD, None if it does not run."""
        program = f"condor_{daemon.lower()}"
        for process in self.processes():
            if Path(process.argv[0]).name == program:
                return process.pid
        return None

    def alive(self) -> bool:
        """Whether the pilot's master runs."""
        return self.popen.poll() is None

    def signal(self, daemon: str, sig: signal.Signals) -> None:
        """Send a signal to MASTER or STARTD alone."""
        pid = self.pid_of(daemon)
        if pid is None:
            raise ProcessLookupError(f"{daemon} of {self.name} does not run")
        os.kill(pid, sig)

    def stop_graceful(self) -> None:
        """The orderly end: jobs are vacated, the ads withdrawn."""
        self.signal("MASTER", signal.SIGTERM)
        self.wait_gone()

    def kill9(self) -> None:
        """The hard end, as by a batch system or a power cut: the ads stay behind as ghosts.

        Parents are killed before their children: none sees the end of another, and records it.
        """

        def dead() -> bool:
            left = self.processes()
            parents = {process.pid: process.parent for process in left}

            def depth(pid: int) -> int:
                return 1 + depth(parents[pid]) if pid in parents else 0

            for process in sorted(left, key=lambda process: depth(process.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            return not left and not self.alive()

        wait_until(f"the death of {self.name}", dead)

    def drain(self) -> None:
        """Accept no more jobs, let the running ones end (condor_drain)."""
        env = {"CONDOR_CONFIG": str(self.config)}
        done = self._sandbox.run(["condor_drain", "-graceful", self.name], env)
        if done.returncode != 0:
            raise RuntimeError(f"condor_drain: {done.stdout}{done.stderr}")

    def wait_gone(self, timeout: float = PATIENCE_S) -> None:
        """Until the master and all it started have ended."""
        what = f"the end of {self.name}"
        wait_until(what, lambda: not self.alive() and not self.processes(), timeout)
