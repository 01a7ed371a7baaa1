"""A real HTCondor pool on loopback: collector, negotiator, two schedds, and pilots on demand.

Everything runs in a sandbox of its own (sandbox.py); clients outside reach it by TCP. Intervals are
seconds instead of minutes, and whoever connects from this machine may do all, unless the pool is
made with `deny_read`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from subprocess import CompletedProcess, Popen
from typing import Self, TypeVar

from tests.pool.adtext import Value
from tests.pool.client import ClientError, PoolClient
from tests.pool.config import COMMON_CONFIG, POOL_CONFIG, deny_read_config
from tests.pool.pilot import Pilot, make_local_dirs
from tests.pool.ports import free_port
from tests.pool.sandbox import PATIENCE_S, USERS, Process, Sandbox, htcondor_root, wait_until

T = TypeVar("T")

#: Requirements of jobs which no slot shall ever match.
NEVER = "TARGET.GwmondTestNever =?= True"

#: Requirements of jobs that are vacated: HTCondor 25 would try the same claim again, and once more,
#: while it is still being cleaned.
CLEANED = "time() > (MY.LastVacateTime ?: 0) + 3"

#: Daemon name -> what its command line has, and what it has not.
_DAEMONS = {
    "MASTER": ("condor_master", "", "-local-name"),
    "COLLECTOR": ("condor_collector", "", "-local-name"),
    "NEGOTIATOR": ("condor_negotiator", "", "-local-name"),
    "SCHEDD": ("condor_schedd", "", "-local-name"),
    "SCHEDD2": ("condor_schedd", "-local-name", ""),
}


class CondorPool(PoolClient):
    """One pool; a context manager. `collector` is its address, `schedds` their two names."""

    def __init__(
        self,
        *,
        htcondor: str = "23",
        deny_read: bool = False,
        config: str = "",
        domain: str = "pool.test",
    ) -> None:
        """`config` is added to the pool's configuration; `domain` ends the names of the schedds.

        `htcondor` is the version of all daemons, a key of sandbox.VERSIONS. With `deny_read` the
        pool is a collector only, which answers nobody but the user "reader".
        """
        self.schedds: tuple[str, ...] = ()
        if not deny_read:
            self.schedds = (f"schedd1@{domain}", f"schedd2@{domain}")
        self.pilots: list[Pilot] = []
        self.htcondor = htcondor
        self._deny_read = deny_read
        self._extra = POOL_CONFIG.format(domain=domain)
        self._extra += (deny_read_config("COLLECTOR") if deny_read else "") + config + "\n"
        self._sandbox = Sandbox(htcondor_root(htcondor))
        self._others: dict[str, Sandbox] = {}
        self.local = self._sandbox.work / "pool"
        super().__init__(self.local, "reader" if deny_read else "alice")
        self._config = self.local / "condor_config"
        self._master: Popen[bytes] | None = None

    # -- start and stop

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, timeout: float = PATIENCE_S) -> None:
        """Start the daemons; returns when the collector knows all of them."""
        try:
            self._sandbox.start(timeout)
            names = ("log", "spool", "spool2", "execute", "lock", "run")
            make_local_dirs(self._sandbox, self.local, names)
            self._write_config()
            with (self.local / "log" / "stdout").open("wb") as log:
                env = {"CONDOR_CONFIG": str(self._config)}
                self._master = self._sandbox.spawn(["condor_master", "-f"], env, log)
            self.wait_for("the pool's daemons", self._complete, timeout, 0.3)
        except BaseException as error:
            error.add_note(self.logs())
            self.stop()
            raise

    def _write_config(self) -> None:
        self.collector = f"127.0.0.1:{free_port()}"
        daemons = "MASTER COLLECTOR"
        if not self._deny_read:
            daemons += " NEGOTIATOR SCHEDD SCHEDD2"
        text = COMMON_CONFIG.format(local=self.local, collector=self.collector, daemons=daemons)
        self._config.write_text(text + self._extra)
        for user, uid in {**USERS, "reader": 0}.items():
            home = self.local / user
            home.mkdir()
            os.chown(home, uid, uid)
            (home / "condor_config").write_text(
                f"COLLECTOR_HOST = {self.collector}\n"
                "UID_DOMAIN = pool.test\n"
                "SEC_CLIENT_AUTHENTICATION = REQUIRED\n"
                "SEC_CLIENT_AUTHENTICATION_METHODS = CLAIMTOBE\n"
                f"SEC_CLAIMTOBE_USER = {user}\n"
            )

    def _complete(self) -> bool:
        """Whether the collector has the ads of all daemons."""
        if self._master is not None and self._master.poll() is not None:
            raise RuntimeError(f"condor_master ended with status {self._master.returncode}")
        try:
            ads = self.query("Any", projection=["Name", "MyType"])
        except ClientError:
            return False
        kinds = {ad.get("MyType") for ad in ads}
        wanted = {"Collector"} if self._deny_read else {"Collector", "Negotiator"}
        return wanted <= kinds and set(self.schedds) <= {ad.get("Name") for ad in ads}

    def stop(self) -> None:
        """Kill all daemons, pilots and jobs; nothing remains. May be called again."""
        processes = (self._master, *(pilot.popen for pilot in self.pilots))
        for process in processes:
            if process is not None:
                process.send_signal(signal.SIGCONT)  # nsenter stops with a master that is stopped
        for sandbox in (self._sandbox, *self._others.values()):
            sandbox.stop()
        for process in processes:
            if process is not None:
                process.wait(30)

    # -- the daemons

    def wait_for(
        self,
        what: str,
        probe: Callable[[], T | None],
        timeout: float = PATIENCE_S,
        pause: float = 0.3,
    ) -> T:
        """The first true result of `probe`; TimeoutError (with `what`) after `timeout` seconds."""
        return wait_until(what, probe, timeout, pause)

    def processes(self, among: Iterable[int] | None = None) -> Iterable[Process]:
        """Live processes of the daemons, pilots and jobs, or those among these numbers."""
        numbers = None if among is None else tuple(among)
        for sandbox in (self._sandbox, *self._others.values()):
            yield from sandbox.processes(numbers)

    def find(self, daemon: str) -> int | None:
        """Process number of a daemon, as known outside; None if it does not run at the moment."""
        program, needs, lacks = _DAEMONS[daemon]
        for process in self._sandbox.processes():
            if (
                process.condor_config == str(self._config)
                and Path(process.argv[0]).name == program
                and (not needs or needs in process.argv)
                and (not lacks or lacks not in process.argv)
            ):
                return process.pid
        return None

    def pid_of(self, daemon: str) -> int:
        """Process number of MASTER, COLLECTOR, NEGOTIATOR, SCHEDD or SCHEDD2, waited for."""
        return self.wait_for(f"a {daemon}", lambda: self.find(daemon))

    def signal(self, daemon: str, sig: signal.Signals) -> None:
        """Send a signal to a daemon. One killed by it comes back after a second or two."""
        os.kill(self.pid_of(daemon), sig)

    def restart(self, daemon: str) -> None:
        """Kill a daemon hard; returns when its successor answers."""
        before = self.pid_of(daemon)
        os.kill(before, signal.SIGKILL)
        self.wait_for(f"a new {daemon}", lambda: self.find(daemon) not in {None, before})
        self.wait_for(f"{daemon} to answer", lambda: self.answers(daemon))

    def off(self, daemon: str) -> None:
        """End a daemon in an orderly way; it stays away until `on`."""
        self.tool("condor_off", "-fast", "-subsystem", daemon)
        self.wait_for(f"the end of {daemon}", lambda: self.find(daemon) is None)

    def on(self, daemon: str) -> None:
        """Undo `off`; returns when the daemon answers."""
        self.tool("condor_on", "-subsystem", daemon)
        self.wait_for(f"{daemon} to answer", lambda: self.answers(daemon))

    def answers(self, daemon: str) -> bool:
        """Whether COLLECTOR, SCHEDD or SCHEDD2 answers a small query within a few seconds."""
        try:
            if daemon in {"SCHEDD", "SCHEDD2"}:
                self.jobs(self.schedds[daemon == "SCHEDD2"], "false", timeout=5)
            else:
                self.query("Collector", timeout=5)
            return True
        except (ClientError, TimeoutError):
            return False

    def logs(self, lines: int = 15) -> str:
        """The ends of all logs, for an error message."""
        parts = []
        sandboxes = (self._sandbox, *self._others.values())
        for path in (p for sandbox in sandboxes for p in sorted(sandbox.work.glob("*/log/*"))):
            if path.is_file():
                tail = path.read_text(errors="replace").splitlines()[-lines:]
                parts.append("\n".join([f"--- {path.parent.parent.name}/{path.name}", *tail]))
        return "\n".join(parts)

    def tool(
        self, *args: str, user: str = "", timeout: float = PATIENCE_S
    ) -> CompletedProcess[str]:
        """Run one of HTCondor's commands inside (killed after `timeout` seconds: status 137)."""
        env = self.client_env(user) if user else {"CONDOR_CONFIG": str(self._config)}
        return self._sandbox.run(args, env, timeout)

    # -- pilots

    def _sandbox_of(self, htcondor: str) -> Sandbox:
        """The sandbox of pilots of that version: the pool's, or another, made when needed."""
        if htcondor == self.htcondor:
            return self._sandbox
        if htcondor not in self._others:
            sandbox = self._others[htcondor] = Sandbox(htcondor_root(htcondor))
            sandbox.start()
        return self._others[htcondor]

    def start_pilot(
        self,
        name: str,
        *,
        cores: int = 1,
        memory: int = 2048,
        gpus: int = 0,
        attrs: Mapping[str, Value] | None = None,
        lifetime: float = 3600.0,
        retire_after: float | None = None,
        retirement: int = 0,
        config: str = "",
        wait: bool = True,
        htcondor: str = "",
    ) -> Pilot:
        """Start a real pilot with a partitionable slot of `cores` and `memory` MiB.

        `attrs` override the GLIDEIN_* attributes. After `lifetime` seconds it ends itself, after
        `retire_after` (by default not before) it takes no more jobs; jobs are given
        `retirement` seconds when it is ended gracefully. Its HTCondor is the pool's, or that other
        version. Returns when its slot is in the collector.
        """
        pilot = Pilot(
            self._sandbox_of(htcondor or self.htcondor),
            self.collector,
            name,
            cores=cores,
            memory=memory,
            gpus=gpus,
            attrs=attrs or {},
            lifetime=lifetime,
            retire_after=retire_after,
            retirement=retirement,
            config=config,
        )
        self.pilots.append(pilot)
        if wait:
            mine = f'Name == "slot1@{pilot.name}"'
            try:
                self.wait_for(f"pilot {name}", lambda: self.query("Slot", mine, ["Name"]))
            except TimeoutError as error:
                error.add_note(self.logs())
                raise
        return pilot
