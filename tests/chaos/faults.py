"""What is done to a pool, its pilots, and gwmond: each fault lasts for seconds, then it is undone.

Which, and for how long, is drawn with a seed.  The network is cut, or slow, by a gate before the
collector; who is stopped (SIGSTOP) is a host that is silent; packets are lost by the firewall.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import psycopg

from tests.chaos.host import Host
from tests.chaos.work import Work
from tests.daemon.gate import Gate
from tests.daemon.running import RunningDaemon, gwmond
from tests.ledger.server import Server
from tests.ledger.tmpfs import Tmpfs
from tests.pool.prometheus import Prometheus

DAEMONS = ("COLLECTOR", "NEGOTIATOR", "SCHEDD", "SCHEDD2")
_STEPS = (-600, -240, -90, 90, 240, 600)
_CHAIN = ("INPUT", "--in-interface", "lo")
_SOME = ("--match", "statistic", "--mode", "random", "--probability")

Done: TypeAlias = tuple[str, Callable[[], object]]
"""To what it was done, and what undoes it."""


@dataclass
class Fault:
    """One that was done, to whom or what: epoch seconds.

    ``since``: it made forgotten what was known since then.
    """

    kind: str
    detail: str
    begin: float
    end: float = 0.0
    since: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.detail} {self.begin:.0f}+{self.end - self.begin:.0f}s"


def _nothing() -> None:
    """Undo what needs no undoing."""


class Faults:
    """Draws and does faults; ``done`` are those so far.

    ``gate`` is before the collector of ``daemon``, ``host`` is its own; ``ledger`` is the disk with
    its SQLite file, or its PostgreSQL.
    """

    def __init__(
        self,
        draw: random.Random,
        work: Work,
        daemon: RunningDaemon,
        gate: Gate,
        ledger: Tmpfs | Server,
        url: str,
        host: Host,
        prometheus: Prometheus,
    ) -> None:
        self._draw, self._work, self._daemon = draw, work, daemon
        self._gate, self._url, self._host = gate, url, host
        self._saved: tuple[Path, float] | None = None
        self.done: list[Fault] = []
        #: how many copies of the ledger were checked
        self.checked = 0
        self.kinds: dict[str, Callable[[], Done]] = {
            "daemon killed": partial(self._condor, signal.SIGKILL),
            "daemon stopped": partial(self._condor, signal.SIGSTOP),
            "pilot killed": partial(self._pilot, "kill -9"),
            "pilot ended": partial(self._pilot, "graceful"),
            "startd killed": partial(self._startd, signal.SIGKILL),
            "startd stopped": partial(self._startd, signal.SIGSTOP),
            "history cut": self._history_cut,
            "network cut": self._cut,
            "network slow": self._slow,
            "gwmond killed": partial(self._away, daemon.kill9),
            "gwmond ended": partial(self._away, self._stop),
            "gwmond stopped": lambda: ("", _signal(daemon.pid, signal.SIGSTOP)),
            "gwmond child killed": partial(self._child, signal.SIGKILL),
            "gwmond child stopped": partial(self._child, signal.SIGSTOP),
            "gwmond reconfigured": lambda: ("", _signal(daemon.pid, signal.SIGHUP)),
            "prometheus killed": partial(_served, prometheus, signal.SIGKILL),
            "prometheus stopped": partial(_served, prometheus, signal.SIGSTOP),
            "ledger locked": self._locked,
        }
        if firewall():
            self.kinds["packets lost"] = self._lost
        if host.env:
            self.kinds |= {
                "clock stepped": self._stepped,
                "pilot's clock stepped": self._pilot_stepped,
                "schedd's clock stepped": self._schedd_stepped,
            }
        if isinstance(ledger, Tmpfs):
            self.kinds |= self._of_disk(ledger)
        else:
            self.kinds |= {
                "database killed": partial(_served, ledger, signal.SIGKILL),
                "database stopped": partial(_served, ledger, signal.SIGSTOP),
            }

    def _of_disk(self, disk: Tmpfs) -> dict[str, Callable[[], Done]]:
        self._file = disk.path / "ledger.sqlite"
        kinds: dict[str, Callable[[], Done]] = {
            "disk full": partial(self._full, disk),
            "disk read-only": partial(self._away, partial(self._read_only, disk), disk.writable),
            "ledger copied": self._copied,
            "ledger restored": self._restored,
        }
        if self._host.env:
            kinds["disk slow"] = self._disk_slow
            kinds["disk broken"] = partial(_spoilt, self._host, "", broken=True)
        return kinds

    @contextmanager
    def one(self, kind: str) -> Iterator[Fault]:
        """Do one of a kind; it lasts as long as the ``with``."""
        fault = Fault(kind, "", time.time())
        fault.detail, undo = self.kinds[kind]()
        if kind == "ledger restored" and self._saved:
            fault.since = self._saved[1]
        try:
            yield fault
        finally:
            undo()
        fault.end = time.time()
        self.done.append(fault)

    # -- HTCondor

    def _condor(self, number: signal.Signals) -> Done:
        name = self._draw.choice(DAEMONS)
        return name, _signal(self._work.pool.find(name), number)

    def _pilot(self, how: str) -> Done:
        if not self._work.living:
            return "none", _nothing
        of = self._draw.choice(self._work.living)
        self._work.end(of, how)
        return of.pilot.name, _nothing

    def _startd(self, number: signal.Signals) -> Done:
        if not self._work.living:
            return "none", _nothing
        pilot = self._draw.choice(self._work.living).pilot
        return pilot.name, _signal(pilot.pid_of("STARTD"), number)

    def _cut(self) -> Done:
        self._gate.silence()
        return "between gwmond and the collector", self._gate.open

    def _slow(self) -> Done:
        seconds = self._draw.choice((0.1, 0.5, 2.0))
        self._gate.delay(seconds)
        return f"by {seconds} s between gwmond and the collector", self._gate.open

    def _lost(self) -> Done:
        """Packets to and from all daemons of the pool, and its pilots, on their ports of now."""
        share = self._draw.choice((0.02, 0.1, 0.3))
        rules = [
            [*_CHAIN, "--protocol", protocol, side, port, *_SOME, str(share), "--jump", "DROP"]
            for port in self._ports()
            for protocol in ("tcp", "udp")
            for side in ("--dport", "--sport")
        ]
        for rule in rules:
            _iptables("--append", *rule)

        def undo() -> None:
            for rule in rules:
                _iptables("--delete", *rule)

        return f"{share:.0%} on {len(rules) // 4} ports", undo

    def _ports(self) -> list[str]:
        """Ports on which processes of the pool listen."""
        told = subprocess.run(["ss", "-ltnpH"], check=True, capture_output=True, text=True).stdout
        pids = {process.pid for process in self._work.pool.processes()}
        rows = [(line.split()[3], re.findall(r"pid=(\d+)", line)) for line in told.splitlines()]
        ports = {address.rpartition(":")[2] for address, of in rows if pids & {*map(int, of)}}
        return sorted(ports)

    def _stepped(self) -> Done:
        seconds = self._draw.choice(_STEPS)
        return _spoilt(self._host, f"by {seconds} s", ahead_s=seconds)

    def _pilot_stepped(self) -> Done:
        """Of all of a pilot's daemons, as of its host."""
        living = self._work.living
        return self._step_of(self._draw.choice(living).pilot.name if living else "none")

    def _schedd_stepped(self) -> Done:
        return self._step_of(self._work.pool.schedds[1])

    def _step_of(self, name: str) -> Done:
        host, seconds = self._work.hosts.get(name), self._draw.choice(_STEPS)
        if host is None:
            return "none", _nothing
        return _spoilt(host, f"{name} by {seconds} s", ahead_s=seconds)

    def _history_cut(self) -> Done:
        """The oldest of a schedd's rotated files goes, as where few are kept."""
        aside = self._work.pool.local / "aside"
        aside.mkdir(exist_ok=True)
        for file in sorted((aside.parent / "spool").glob("history.2*"))[:1]:
            return file.rename(aside / file.name).name, _nothing
        return "none", _nothing

    # -- gwmond

    def _away(self, end: Callable[[], object], undo: Callable[[], object] = _nothing) -> Done:
        """It ends, and begins again: at once, where there is something to undo, else then."""
        end()
        if undo is not _nothing:
            self._daemon.start(ready=False)
            return "", undo
        return "", partial(self._daemon.start, ready=False)

    def _stop(self) -> None:
        code, _ = self._daemon.stop()
        if code:
            raise AssertionError(f"it ended with {code}")

    def _read_only(self, disk: Tmpfs) -> None:
        """What is open for writing, Linux does not make read-only: so the daemon ends first."""
        self._stop()
        disk.read_only()

    def _child(self, number: signal.Signals) -> Done:
        """A query, the fork server, or what takes care of shared memory."""
        children = [pid for pid in self._daemon.processes() if pid != self._daemon.pid]
        pid = self._draw.choice(children) if children else None
        return str(pid), _signal(pid, number)

    # -- the ledger

    def _full(self, disk: Tmpfs) -> Done:
        disk.fill(self._draw.choice((0, 8, 64)))
        return "", disk.free

    def _disk_slow(self) -> Done:
        wait_ms = self._draw.choice((100, 1000, 4000))
        return _spoilt(self._host, f"by {wait_ms} ms a flush", flush_ms=wait_ms)

    def _locked(self) -> Done:
        if self._url.startswith("postgresql"):
            holder = psycopg.connect(self._url)
            holder.execute("LOCK TABLE pilots IN EXCLUSIVE MODE")
            return "", holder.close
        other = sqlite3.connect(self._file, isolation_level=None, timeout=20)
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            other.close()
            return f"refused: {error}", _nothing
        return "", other.close

    def _copied(self) -> Done:
        """A backup by SQLite's own means, which has to be sound."""
        copy = self._daemon.config.with_name("backup.sqlite")
        copy.unlink(missing_ok=True)
        self._saved = copy, time.time()
        with closing(sqlite3.connect(self._file)) as source, closing(sqlite3.connect(copy)) as to:
            source.backup(to)
        done = gwmond("ledger", "check", "--ledger", f"sqlite:///{copy}")
        if done.returncode != 0:
            raise AssertionError(f"a copy is not sound: {done.stdout}{done.stderr}")
        self.checked += 1
        return "", _nothing

    def _restored(self) -> Done:
        """The last backup comes back; what was known since has to be learnt again."""
        if self._saved is None:
            return "none", _nothing
        self._stop()
        for file in self._file.parent.glob("ledger.sqlite*"):
            if not file.name.endswith(".lock"):
                file.unlink()
        shutil.copyfile(self._saved[0], self._file)
        return f"of {self._saved[1]:.0f}", partial(self._daemon.start, ready=False)


def _spoilt(host: Host, detail: str, **how: Any) -> Done:
    host.spoil(**how)
    return detail, host.spoil


def _served(program: Prometheus | Server, number: signal.Signals) -> Done:
    """Kill a program, which is started again then, or stop it."""
    program.signal(number)
    killed = number == signal.SIGKILL
    return "", program.start if killed else partial(program.signal, signal.SIGCONT)


def _signal(pid: int | None, number: signal.Signals) -> Callable[[], object]:
    """Send a signal to a process that may be gone; return what undoes that."""
    with contextlib.suppress(ProcessLookupError):
        if pid is not None:
            os.kill(pid, number)
    stopped = number == signal.SIGSTOP
    return partial(_signal, pid, signal.SIGCONT) if stopped else _nothing


def firewall() -> bool:
    """Whether packets can be lost here: iptables, root, and a kernel that draws by chance."""
    rule = [*_CHAIN, "--protocol", "tcp", "--dport", "1", *_SOME, "0.5", "--jump", "DROP"]
    try:
        _iptables("--append", *rule)
        _iptables("--delete", *rule)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _iptables(*words: str) -> None:
    subprocess.run(["iptables", "--wait", *words], check=True, capture_output=True)
