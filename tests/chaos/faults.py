"""What is done to a pool, its pilots, and gwmond: each fault lasts for seconds, then it is undone.

Which, and for how long, is drawn with a seed.  The network is cut by a gate before the collector,
and who is stopped (SIGSTOP) is a host that is silent; packets are neither lost nor late, for many
kernels have no netem.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tests.chaos.work import Work
from tests.daemon.gate import Gate
from tests.daemon.running import RunningDaemon, gwmond
from tests.ledger.tmpfs import Tmpfs

DAEMONS = ("COLLECTOR", "NEGOTIATOR", "SCHEDD", "SCHEDD2")

Done: TypeAlias = tuple[str, Callable[[], object]]
"""To what it was done, and what undoes it."""


@dataclass
class Fault:
    """One that was done: epoch seconds.  ``since``: it made forgotten what was known since then."""

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

    ``gate`` is before the collector of ``daemon``, ``disk`` has its ledger, ``clock`` is its own.
    """

    def __init__(
        self,
        draw: random.Random,
        work: Work,
        daemon: RunningDaemon,
        gate: Gate,
        disk: Tmpfs,
        clock: Clock,
    ) -> None:
        self._draw, self._work, self._daemon = draw, work, daemon
        self._gate, self._disk, self._clock = gate, disk, clock
        self._file = disk.path / "ledger.sqlite"
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
            "gwmond killed": partial(self._away, daemon.kill9),
            "gwmond ended": partial(self._away, self._stop),
            "gwmond stopped": lambda: ("", _signal(daemon.pid, signal.SIGSTOP)),
            "gwmond child killed": partial(self._child, signal.SIGKILL),
            "gwmond child stopped": partial(self._child, signal.SIGSTOP),
            "gwmond reconfigured": lambda: ("", _signal(daemon.pid, signal.SIGHUP)),
            "disk full": self._full,
            "disk read-only": partial(self._away, self._read_only, disk.writable),
            "ledger locked": self._locked,
            "ledger copied": self._copied,
            "ledger restored": self._restored,
            **({"clock stepped": self._stepped} if clock.env else {}),
        }

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

    def _read_only(self) -> None:
        """What is open for writing, Linux does not make read-only: so the daemon ends first."""
        self._stop()
        self._disk.read_only()

    def _child(self, number: signal.Signals) -> Done:
        """A query, the fork server, or what takes care of shared memory."""
        children = [pid for pid in self._daemon.processes() if pid != self._daemon.pid]
        pid = self._draw.choice(children) if children else None
        return str(pid), _signal(pid, number)

    def _stepped(self) -> Done:
        seconds = self._draw.choice((-600, -240, -90, 90, 240, 600))
        self._clock.set(seconds)
        return f"by {seconds} s", partial(self._clock.set, 0)

    # -- the ledger

    def _full(self) -> Done:
        self._disk.fill(self._draw.choice((0, 8, 64)))
        return "", self._disk.free

    def _locked(self) -> Done:
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


def _signal(pid: int | None, number: signal.Signals) -> Callable[[], object]:
    """Send a signal to a process that may be gone; return what undoes that."""
    with contextlib.suppress(ProcessLookupError):
        if pid is not None:
            os.kill(pid, number)
    stopped = number == signal.SIGSTOP
    return partial(_signal, pid, signal.SIGCONT) if stopped else _nothing


class Clock:
    """The wall clock of a program that has ``env``, ahead of the machine's by what it is told."""

    def __init__(self, directory: Path) -> None:
        """Without a C compiler there is none: ``env`` is empty then, and says nothing."""
        self._file, library = directory / "clock", directory / "clock.so"
        self.set(0)
        self.env: dict[str, str] = {}
        compiler = shutil.which("cc")
        if compiler is not None:
            source = str(Path(__file__).with_name("clock.c"))
            subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), source], check=True)
            self.env = {"LD_PRELOAD": str(library), "GWMOND_CHAOS_CLOCK": str(self._file)}

    def set(self, seconds: int) -> None:
        """Step it; in place, for it is mapped into memory."""
        self._file.touch()
        with self._file.open("r+b") as file:
            file.write(struct.pack("l", seconds))
