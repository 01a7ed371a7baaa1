"""A real systemd, as the first process of namespaces of its own, that runs the unit as it is.

So DynamicUser, credentials, every sandbox setting, the seccomp filters and the watchdog are
exercised, and not only read.  Not exercised are limits which need cgroup controllers (MemoryMax,
TasksMax, CPUWeight, IOWeight): a machine within a machine is not given any.  The network is the
host's.  The machine cannot outlive the test process: its keeper waits for the end of its input, and
kills the first process, and with it all others.
"""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

from tests.systemd.unit import REPOSITORY, UNIT

T = TypeVar("T")

_INSIDE = Path(__file__).with_name("machine.sh")
_NAMESPACES = ("--mount", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child=KILL")
_KEEPER = r"""
set -u
cgroup=$1 work=$2; shift 2
mkdir "$cgroup"
setpriv --pdeathsig KILL bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$cgroup" "$@" </dev/null &
outer=$!
cat >/dev/null
kill -KILL "$outer"
wait
for _ in 1 2 3 4 5 6 7 8 9 10; do
    find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null && break
    sleep 0.2
done
rm -rf --one-file-system "$work"
"""
_LAUNCHER = """#!/bin/sh
export PYTHONPATH=/opt/repository:/opt/packages LD_LIBRARY_PATH=/opt/python/lib
exec /opt/python/bin/{python} -m gwmond "$@"
"""
#: What tests add to the unit: nothing of the sandbox.
_DROP_IN = "[Service]\nStandardError=append:/run/log/gwmond\n"


class NoMachineError(RuntimeError):
    """Namespaces or control groups are not to be had here; the text says which."""


def _cgroup() -> Path:
    """Where a control group of this process can be made, in the unified hierarchy."""
    own = Path("/proc/self/cgroup").read_text().splitlines()
    path = next((line[3:] for line in own if line.startswith("0::")), None)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if path is not None and fields[fields.index("-") + 1] == "cgroup2":
            return Path(fields[4] + path)
    raise NoMachineError("no unified control group hierarchy is mounted")


def check() -> None:
    """Raise NoMachineError if this host does not allow a machine, RuntimeError if it could."""
    if os.geteuid() != 0:
        raise NoMachineError("namespaces of one's own need root")
    if not any(Path(d, "systemd/systemd").exists() for d in ("/usr/lib", "/lib")):
        raise RuntimeError("systemd is not installed: apt-get install systemd")
    tried = subprocess.run(
        ["unshare", *_NAMESPACES, "bash", "-c", "mount -t cgroup2 cgroup2 /mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode != 0 or not os.access(_cgroup(), os.W_OK):
        raise NoMachineError(f"no namespaces or control groups here: {tried.stderr.strip()}")


def _children(parent: int, name: str) -> list[int]:
    """The children of a process that run a program of that name."""
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [int(c) for c in children if Path(f"/proc/{c}/comm").read_text() == f"{name}\n"]
    except OSError:
        return []


class Booted:
    """A running systemd in a root that a script makes; a context manager."""

    def __init__(self, script: Path, *arguments: object, namespaces: Sequence[str] = ()) -> None:
        """Give the script a directory, the console's terminal, and then the arguments."""
        self.console = ""
        self._script, self._arguments = script, [*map(str, arguments)]
        self._namespaces = namespaces
        self._work = Path(tempfile.mkdtemp(prefix="gwmond-machine-", dir="/tmp"))
        self._work.chmod(0o755)

    def __enter__(self) -> Self:
        master, slave = pty.openpty()
        threading.Thread(target=self._read_console, args=(master,), daemon=True).start()
        inside = [str(self._script), str(self._work), os.ttyname(slave), *self._arguments]
        apart = [*self._namespaces, *_NAMESPACES, "--propagation", "private"]
        unshare = ["unshare", *apart, "bash", *inside]
        cgroup = _cgroup() / self._work.name
        self._keeper = subprocess.Popen(
            ["bash", "-c", _KEEPER, "keeper", str(cgroup), str(self._work), *unshare],
            stdin=subprocess.PIPE,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        try:
            self._first = self.wait_for("systemd", self._find_first)
            self.wait_for("its bus", lambda: self.run("systemctl", "show").returncode == 0)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        print(f"console:\n{self.console}")
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait(30)
        shutil.rmtree(self._work, ignore_errors=True)

    def _read_console(self, master: int) -> None:
        try:
            while data := os.read(master, 4096):
                self.console += data.decode(errors="replace")
        except OSError:
            os.close(master)  # all others have closed it

    def _find_first(self) -> int | None:
        """The number outside of the machine's first process, once it is systemd."""
        for outer in _children(self._keeper.pid, "unshare"):
            for first in _children(outer, "systemd"):
                return first
        return None

    def wait_for(self, what: str, probe: Callable[[], T | None], timeout: float = 240) -> T:
        """The first true result of ``probe``."""
        deadline = time.monotonic() + timeout
        while not (result := probe()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {timeout} s for {what}; console:\n{self.console}")
            time.sleep(0.1)
        return result

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the machine, as its root, with nothing of this process's environment."""
        apart = ["--mount", "--pid", "--cgroup", *self._namespaces]
        enter = ["nsenter", "--target", str(self._first), *apart, "--"]
        return subprocess.run(
            [*enter, *command],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def systemctl(self, *arguments: str) -> str:
        """Run systemctl, which must succeed."""
        finished = self.run("systemctl", *arguments)
        assert finished.returncode == 0, finished.stderr + self.console
        return finished.stdout

    def show(self, name: str) -> str:
        """One property of the service."""
        return self.systemctl("show", "--property", name, "--value", "gwmond.service").strip()

    def wait_state(self, state: str, sub: str = "", timeout: float = 240) -> None:
        """Wait until the service is active, failed, ..."""

        def reached() -> bool:
            now = self.show("ActiveState")
            assert now == state or now != "failed", f"failed; console:\n{self.console}"
            return now == state and sub in self.show("SubState")

        self.wait_for(f"{state} {sub}", reached, timeout)

    @property
    def pid(self) -> int:
        """The service's main process, as known in the machine."""
        return int(self.show("MainPID"))


class Machine(Booted):
    """One running systemd with the unit ``gwmond.service``."""

    def __init__(
        self, config: str, *, drop_in: str = "", secrets: Mapping[str, str] | None = None
    ) -> None:
        """``config`` is /etc/gwmond/gwmond.toml; ``secrets`` are files beside it, for root only."""
        super().__init__(_INSIDE, REPOSITORY, sysconfig.get_path("purelib"), sys.base_prefix)
        for name in (
            "units/gwmond.service.d",
            "units/multi-user.target.wants",
            "etc/gwmond",
            "log",
        ):
            (self._work / name).mkdir(parents=True)
        units = self._work / "units"
        shutil.copy(UNIT, units)
        (units / "gwmond.service.d" / "test.conf").write_text(_DROP_IN + drop_in)
        (units / "multi-user.target.wants" / UNIT.name).symlink_to(f"../{UNIT.name}")
        self.config = self._work / "etc/gwmond/gwmond.toml"
        self.config.write_text(config)
        for name, text in (secrets or {}).items():
            path = self.config.parent / name
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_text(text)
            path.chmod(0o600)
        launcher = self._work / "gwmond"
        launcher.write_text(
            _LAUNCHER.format(python=f"python{sys.version_info[0]}.{sys.version_info[1]}")
        )
        launcher.chmod(0o755)

    def __exit__(self, *details: object) -> None:
        print(f"log:\n{self.log[-4000:]}")
        super().__exit__(*details)

    @property
    def log(self) -> str:
        """What the service has written to its standard error."""
        path = self._work / "log/gwmond"
        return path.read_text(errors="replace") if path.exists() else ""
