"""A real daemon of this package, run as a user runs it, and what its endpoint and log say."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.poll.pilot_keys import PilotKeys
from tests.build import command_line
from tests.daemon import sooner
from tests.daemon.probe import LatencyProbe
from tests.daemon.scrape import Metrics
from tests.pool.ports import free_port
from tests.pool.sandbox import PATIENCE_S, wait_until

INTERVAL_S = 5.0
_MARK = "GWMOND_TEST_DAEMON"
_SOONER = "sooner"  # not an option: see tests/daemon/sooner.py


def gwmond(
    *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; by default this host has no HTCondor configuration."""
    return subprocess.run(
        [sys.executable, "-m", "gwmond", *arguments],
        env={**os.environ, "CONDOR_CONFIG": "ONLY_ENV", "COLUMNS": "200", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


Tables = Mapping[str, Mapping[str, object]]


def polls(interval_s: float) -> dict[str, dict[str, object]]:
    """Configuration in which a poll comes that often, and its queries have nearly all of that time.

    For tests of what depends on the interval that is configured; see ``patient``.
    """
    deadline = round(interval_s * 975)
    return {"poll": {"interval": f"{interval_s:g}s", "deadline": f"{deadline}ms"}}


def patient(
    interval_s: float, deadline_s: float = 50, configured_s: float = 60
) -> dict[str, dict[str, object]]:
    """Configuration in which polls come that often too, but may take long on a busy machine.

    ``deadline_s``: what queries have, in tests of sources that do not answer at all.
    ``configured_s``: the interval that is configured, in tests of what is missed.
    """
    poll: dict[str, object] = {"interval": f"{configured_s:g}s", "deadline": f"{deadline_s:g}s"}
    return {"poll": {**poll, _SOONER: interval_s}}


def toml(tables: Tables) -> str:
    """Write tables as TOML; a dict among the values becomes an inline table."""
    lines: list[str] = []
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {_inline(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _inline(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def configuration(
    ledger: Path, collectors: Iterable[str], tables: Tables | None = None, port: int = 0
) -> str:
    """Return a configuration with short polls and that ledger; ``tables`` override.

    The test pools' collectors are young; only tests of that distrust them.
    """
    base: dict[str, dict[str, object]] = {
        "pool": {"collectors": list(collectors)},
        **patient(INTERVAL_S),
        "site": {"collector_distrust": "1ms"},
        "http": {"listen": f"127.0.0.1:{port or free_port()}"},
        "ledger": {"url": f"sqlite:///{ledger}"},
        "log": {"format": "json"},
    }
    for name, table in (tables or {}).items():
        base[name] = {**base.get(name, {}), **table}
    base["poll"].pop(_SOONER, None)
    return toml(base)


class RunningDaemon:
    """``gwmond run`` with a configuration file of its own; a context manager.

    ``directory`` is where configuration, log (``name``) and ledger are; daemons may share a ledger.
    With ``ready`` the first poll is waited for.
    """

    def __init__(
        self,
        directory: Path,
        collectors: Iterable[str],
        tables: Tables | None = None,
        *,
        env: Mapping[str, str] | None = None,
        name: str = "gwmond",
        ledger: str = "ledger",
        ready: bool = True,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.config = directory / f"{name}.toml"
        self._ledger, self._collectors = directory / f"{ledger}.sqlite", list(collectors)
        self._ready = ready
        self._env = {"CONDOR_CONFIG": "ONLY_ENV", **(env or {})}
        self._mark = secrets.token_hex(8)
        self._log = directory / f"{name}.log"
        self._log.touch()
        self._process: subprocess.Popen[bytes] | None = None
        #: epoch seconds, before the first process was started
        self.began = time.time()
        self.configure(tables)

    def configure(self, tables: Tables | None = None) -> None:
        """Write the configuration file; a running daemon reads it upon ``hup``."""
        poll = {**patient(INTERVAL_S), **(tables or {})}["poll"]
        self._sooner = poll.get(_SOONER)
        text = configuration(self._ledger, self._collectors, tables, self.port)
        self.config.write_text(text)

    def __enter__(self) -> Self:
        self.start(ready=self._ready)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill9()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # -- the process

    def start(self, *, ready: bool = True) -> None:
        """Start it; returns when it has polled once (with ``ready``) or serves."""
        launcher = ["-P", sooner.__file__, str(self._sooner)]
        program = ["-m", "gwmond"] if self._sooner is None else launcher
        command = [sys.executable, *program, "run", "--config", str(self.config)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                # Killed with the test process, whatever becomes of that.
                ["setpriv", "--pdeathsig", "KILL", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._env, _MARK: self._mark},
            )
        wait_until("the daemon", lambda: self._answers("/-/ready" if ready else "/-/healthy"))

    def _answers(self, path: str) -> bool:
        assert self._process is not None
        code = self._process.poll()
        if code is not None:
            raise RuntimeError(f"the daemon ended with {code}: {self._log.read_text()[-2000:]}")
        try:
            self.get(path)
        except (urllib.error.HTTPError, OSError):
            return False
        return True

    @property
    def pid(self) -> int:
        """The daemon's own process, the last one that was started."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the daemon itself."""
        assert self._process is not None
        self._process.send_signal(number)

    def hup(self) -> None:
        """Have it read its configuration again."""
        self.signal(signal.SIGHUP)

    def kill9(self) -> None:
        """Kill the daemon's own process, as a kernel out of memory does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)

    def stop(self, timeout: float = PATIENCE_S) -> tuple[int, float]:
        """Ask it to end, as a service manager does; its exit code, and how long that took."""
        assert self._process is not None
        began = time.monotonic()
        self._process.terminate()
        return self._process.wait(timeout), time.monotonic() - began

    def processes(self) -> list[int]:
        """All live processes that descend from the daemon, itself included."""
        mark = f"{_MARK}={self._mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    # -- what it says

    def command(self, *words: str) -> str:
        """What a command prints, in the test's process, that has its configuration and succeeds."""
        done = command_line.gwmond(*words, "--config", self.config)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def document(self, *words: str) -> Any:
        """The same as JSON."""
        return json.loads(self.command(*words, "--format", "json"))

    def values(self) -> dict[tuple[str, str], str]:
        """What is set at entries in its ledger, by entry and name."""
        with LedgerReader.open(f"sqlite:///{self._ledger}") as ledger:
            return {(row.key.entry, row.key.name): row.value for row in ledger.values(0)}

    def stored(self, name: str) -> tuple[list[PilotRow], list[RunRow]]:
        """The pilots of a name in its ledger, and the runs on them by their start."""
        with LedgerReader.open(f"sqlite:///{self._ledger}") as ledger:
            pilots = list(ledger.fetch(PilotKeys(startds={name})).pilots)
            runs = ledger.runs_of([pilot.id for pilot in pilots]).values()
        return pilots, sorted((run for of in runs for run in of), key=lambda run: run.start_us)

    def get(self, path: str, accept: str = "*/*") -> str:
        """The body that it serves; HTTPError and OSError are the caller's."""
        request = urllib.request.Request(self.url + path, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=120) as reply:
            body: bytes = reply.read()
            return body.decode()

    def metrics(self) -> Metrics:
        """Scrape it."""
        return Metrics.parse(self.get("/metrics"))

    def value(self, name: str, **labels: str) -> float | None:
        """One sample of a scrape, None if it is not there."""
        lines = (line for line in self.get("/metrics").splitlines() if line.startswith(name))
        return Metrics.parse("\n".join(lines)).value(name, **labels)

    def wait_until(
        self, what: str, predicate: Callable[[Metrics], bool], timeout: float = PATIENCE_S
    ) -> Metrics:
        """The first scrape of which the predicate holds."""
        last = Metrics()

        def probe() -> Metrics | None:
            nonlocal last
            last = self.metrics()
            return last if predicate(last) else None

        try:
            return wait_until(what, probe, timeout, 0.4)
        except TimeoutError as error:
            shown = (f"{name}{dict(labels)} {value}" for (name, labels), value in last.items())
            error.add_note("\n".join(line for line in shown if "_source_" not in line))
            error.add_note(self._log.read_text(errors="replace")[-4000:])
            raise

    def wait_for(
        self,
        name: str,
        labels: Mapping[str, str],
        predicate: Callable[[float | None], bool],
        timeout: float = PATIENCE_S,
    ) -> Metrics:
        """The first scrape in which the predicate holds of one sample."""
        what = f"{name}{dict(labels)}"
        return self.wait_until(what, lambda m: predicate(m.value(name, **labels)), timeout)

    def wait_state(self, **states: str) -> Metrics:
        """The first scrape in which sites are in these states."""
        what = f"states {states}"
        return self.wait_until(
            what, lambda m: all(m.state(s) == name for s, name in states.items())
        )

    def next_polls(self, n: int = 2) -> Metrics:
        """A scrape after ``n`` more polls; the last of two began after this was called."""
        before = self.metrics().polls
        return self.wait_until(f"{n} polls", lambda m: m.polls >= before + n)

    def log(self, event: str = "", **fields: object) -> list[dict[str, Any]]:
        """The log's events in their order: those of a name, which have these fields."""
        found = []
        for line in self._log.read_text(errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if event in {"", entry.get("event")} and fields.items() <= entry.items():
                found.append(entry)
        return found

    def probe(self) -> LatencyProbe:
        """Scrapes all the while; a context manager."""
        return LatencyProbe(f"{self.url}/metrics")
