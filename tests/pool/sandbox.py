"""Namespaces of their own for the processes of one test pool, so that nothing can be left behind.

A keeper process makes a mount namespace and a process namespace. In them the root is a Debian with
HTCondor (read-only), sysctls cannot be set, no cgroups are to be seen, /tmp and /run are empty, and
the working directory has the same path as outside. The keeper waits for the end of its standard
input, which comes when the test process closes it *or dies, however*. It then kills the namespace's
first process, at which the kernel kills every other one and drops all mounts, and removes the
working directory.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TypeVar

T = TypeVar("T")

_CLONE_NEWNET = 0x40000000  # linux/sched.h

#: How long a test waits for what has to come, however much else the machine does; it costs nothing
#: where all is well.
PATIENCE_S = 240.0

#: The versions of HTCondor with which pools are run, and the Debian that has each (setup.sh).
VERSIONS = {"23": "trixie", "25": "forky"}
#: The directory with a Debian for each version.
CHROOTS = "/var/cache/gwmond-pool"

#: Users that exist only within a sandbox (name: uid), for HTCondor refuses the jobs of root.
USERS = {"alice": 4001, "bob": 4002, "carol": 4003}

_KEEPER = r"""
set -u
work=$1 root=$2
setpriv --pdeathsig KILL \
    unshare --mount --pid $4 --fork --kill-child=KILL --propagation private \
    bash -c "$3" inside "$work" "$root" "$5" </dev/null &
outer=$!
cat >/dev/null
first=$outer
[ ! -s "$work/first" ] || read -r first <"$work/first"
kill -KILL "$first"
wait
rm -rf --one-file-system "$work"
"""

_INSIDE = r"""
set -eu
work=$1 root=${2%/}
# The outer /proc is still mounted: it tells by which number this process is known outside.
read -r first _ </proc/self/stat
echo "$first" >"$work/first"
if [ -n "$root" ]; then
    mount --bind "$root" "$root"
    mount -o remount,bind,ro "$root"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mkdir "$root$work"
    mount --bind "$work" "$root$work"
else
    mount -t tmpfs -o ro tmpfs /sys/fs/cgroup
fi
mount -t proc proc "$root/proc"
# Most sysctls are the whole machine's: nothing in here may change them.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount --bind "$work/passwd" "$root/etc/passwd"
mount --bind "$work/group" "$root/etc/group"
eval "$3"
touch "$work/ready"
# This shell has to reap the namespace's orphans, which bash does of itself.
while :; do sleep 3600 & wait $!; done
"""


class SetupError(RuntimeError):
    """There is no HTCondor for the tests; the text tells the remedy."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"no HTCondor pool for the tests: {reason}. "
            "Run: make setup-test (which runs tests/pool/setup.sh as root)"
        )


def wait_until(
    what: str, probe: Callable[[], T | None], timeout: float = PATIENCE_S, pause: float = 0.1
) -> T:
    """The first result of `probe` that is true; TimeoutError after `timeout` seconds.

    A probe that takes long comes less often than `pause` says: who waits leaves others the machine.
    """
    deadline = time.monotonic() + timeout
    while True:
        began = time.monotonic()
        result = probe()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:.0f} s in vain for {what}; last seen: {result!r}")
        time.sleep(max(pause, min(5 * (time.monotonic() - began), 2.0)))


@cache
def _installed() -> str | None:
    """The version (a key of VERSIONS) for which an HTCondor that is on PATH stands."""
    if shutil.which("condor_master") is None:
        return None
    text = subprocess.run(["condor_version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"CondorVersion: (\d+)\.", text)
    return "23" if found and int(found[1]) < 25 else "25"


def htcondor_root(version: str) -> Path:
    """The root directory below which the daemons of that version are; SetupError if there is none.

    An installed HTCondor older than 25 stands for "23", any other installed one for "25".
    """
    if os.geteuid() != 0:
        raise SetupError("the tests' pool needs root (mount namespaces, jobs of several users)")
    if _installed() == version:
        return Path("/")
    root = Path(os.environ.get("GWMOND_POOL_CHROOTS", CHROOTS)) / VERSIONS[version]
    if not (root / "usr/sbin/condor_master").exists():
        raise SetupError(f"condor_master {version} is neither on PATH nor in {root}")
    return root


@dataclass(frozen=True)
class Process:
    """A live process of a sandbox, by the numbers which it has outside."""

    pid: int
    parent: int
    argv: tuple[str, ...]
    condor_config: str


def _describe(entry: Path) -> Process | None:
    """What /proc tells of one process, None for one that is gone or a zombie."""
    try:
        argv = tuple((entry / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1])
        environment = (entry / "environ").read_bytes().split(b"\0")
        status = (entry / "status").read_text(errors="replace")
    except OSError:
        return None
    if not argv:
        return None
    parent = next(int(line[5:]) for line in status.splitlines() if line.startswith("PPid:"))
    prefix = b"CONDOR_CONFIG="
    config = next((v[len(prefix) :].decode() for v in environment if v.startswith(prefix)), "")
    return Process(int(entry.name), parent, argv, config)


class Sandbox:
    """One set of namespaces with its working directory."""

    def __init__(self, root: Path, *, alone: bool = False, prepare: str = "") -> None:
        """``root`` is the directory below which the daemons' Debian is (``htcondor_root``).

        ``alone``: with a network and a host name of its own, too. ``prepare``: what bash does in
        the namespaces before anything starts; $work and $root are the two directories.
        """
        self.root = root
        self._more = ("--net --uts" if alone else "", prepare)
        # Short, for the length of a Unix socket's path is limited.
        self.work = Path(f"/tmp/gwmond-pool-{secrets.token_hex(4)}")
        self._keeper: subprocess.Popen[bytes] | None = None
        self._first = 0
        self._namespace = ""

    def start(self, timeout: float = PATIENCE_S) -> None:
        """Make the namespaces; returns when processes can be started in them."""
        self.work.mkdir(mode=0o755)
        for name, line in (("passwd", "{n}:x:{u}:{u}::/tmp:/bin/sh\n"), ("group", "{n}:x:{u}:\n")):
            text = (self.root / "etc" / name).read_text()
            text += "".join(line.format(n=user, u=uid) for user, uid in USERS.items())
            (self.work / name).write_text(text)
        told = (str(self.work), str(self.root), _INSIDE, *self._more)
        with (self.work / "keeper.log").open("wb") as log:
            self._keeper = subprocess.Popen(
                ["bash", "-c", _KEEPER, "keeper", *told],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until("the sandbox", self._made, timeout)
        self._first = int((self.work / "first").read_text())
        self._namespace = os.readlink(f"/proc/{self._first}/ns/pid")

    def _made(self) -> bool:
        if (self.work / "ready").exists():
            return True
        complaint = (self.work / "keeper.log").read_text().strip()
        if complaint:
            raise SetupError(f"cannot make namespaces here: {complaint}")
        return False

    def stop(self, timeout: float = PATIENCE_S) -> None:
        """Kill all, unmount all, remove the working directory. May be called again."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            assert keeper.stdin is not None
            keeper.stdin.close()
            keeper.wait(timeout)
        shutil.rmtree(self.work, ignore_errors=True)

    def processes(self, among: Iterable[int] | None = None) -> Iterator[Process]:
        """Every live process of the sandbox but its first, or those among these numbers."""
        pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
        for pid in pids if among is None else among:
            entry = Path(f"/proc/{pid}")
            if pid == self._first:
                continue
            try:
                inside = os.readlink(entry / "ns/pid") == self._namespace
            except OSError:
                continue
            process = _describe(entry) if inside else None
            if process is not None:
                yield process

    def _inside(self, args: Sequence[str], env: Mapping[str, str]) -> list[str]:
        path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
        variables = [path, *(f"{k}={v}" for k, v in env.items())]
        spaces = ["--mount", "--pid", *self._more[0].split()]
        enter = ["nsenter", "--target", str(self._first), *spaces, "--root", "--"]
        return [*enter, "chroot", str(self.root), "env", "-i", *variables, *args]

    @contextmanager
    def network(self) -> Iterator[None]:
        """This thread, and processes that it starts, have the sandbox's network meanwhile."""
        setns = ctypes.CDLL(None, use_errno=True).setns
        with open("/proc/thread-self/ns/net") as own, open(f"/proc/{self._first}/ns/net") as its:
            if setns(its.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                setns(own.fileno(), _CLONE_NEWNET)

    def spawn(
        self, args: Sequence[str], env: Mapping[str, str], log: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a lasting process inside; the Popen is of nsenter, which ends with it."""
        return subprocess.Popen(
            self._inside(args, env), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
        )

    def run(
        self, args: Sequence[str], env: Mapping[str, str], timeout: float = PATIENCE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside to its end (killed after `timeout` seconds: status 137)."""
        bounded = ["timeout", "-s", "KILL", f"{timeout:.0f}", *args]
        return subprocess.run(
            self._inside(bounded, env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )
