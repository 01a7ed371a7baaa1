"""A real PostgreSQL server for the tests, in a temporary directory, gone with the tests."""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

import psycopg

PASSWORD = "very-secret"
REMEDY = "run tests/ledger/setup.sh as root, it installs PostgreSQL"


def _program(name: str) -> str:
    places = [*glob.glob("/usr/lib/postgresql/*/bin"), *glob.glob("/usr/pgsql-*/bin")]
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(sorted(places)[::-1]))
    if found is None:
        raise RuntimeError(f"{name} of PostgreSQL is not here: {REMEDY}")
    return found


class Server:
    """A server on a free port of 127.0.0.1, with user ``gwmond`` who needs ``PASSWORD``."""

    def __init__(self) -> None:
        initdb, postgres = _program("initdb"), _program("postgres")
        self._numbers = itertools.count()
        self.root = Path(tempfile.mkdtemp(prefix="gwmond-pg-"))
        # It refuses to be root, and must not outlive the tests whatever kills them.
        self._as = ["setpriv", "--pdeathsig", "KILL"]
        if os.geteuid() == 0:
            try:
                user = pwd.getpwnam("postgres")
            except KeyError:
                raise RuntimeError(f"there is no user postgres: {REMEDY}") from None
            os.chown(self.root, user.pw_uid, user.pw_gid)
            self._as += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        secret = self.root / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        data = str(self.root / "data")
        self._run(
            *[*self._as, initdb, "-D", data, "-U", "gwmond", "-A", "scram-sha-256"],
            *["--pwfile", str(secret), "-E", "UTF8", "--no-locale", "--no-sync"],
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        options = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.root,
            "fsync": "off",
            "shared_buffers": "16MB",
        }
        settings = [word for k, v in options.items() for word in ("-c", f"{k}={v}")]
        self._command = [*self._as, postgres, "-D", data, *settings]
        self.start()

    def start(self) -> None:
        """Start it, also after it was killed; returns when it answers."""
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd="/")
        self._wait()

    @property
    def pid(self) -> int:
        """Return the number of its first process."""
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all of its processes; killed, it can be started again with its data."""
        parent = self.pid
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        for pid in (parent, *map(int, text.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGKILL:
            self._process.wait(30)

    @staticmethod
    def _run(*command: str) -> None:
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/")
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}\n{REMEDY}")

    def _wait(self) -> None:
        end = time.monotonic() + 240
        while time.monotonic() < end and self._process.poll() is None:
            try:
                psycopg.connect(self.dsn("postgres")).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError(f"PostgreSQL did not start: {(self.root / 'log').read_text()}")

    def dsn(self, database: str) -> str:
        return f"postgresql://gwmond:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def database(self, options: str = "TEMPLATE template0") -> str:
        """Create an empty database and return its URL."""
        name = f"ledger{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} {options}")
        return self.dsn(name)

    def schema(self) -> str:
        """Create an empty schema in the database postgres, which is quicker; return its URL."""
        name = f"ledger{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.dsn('postgres')}?options=-csearch_path%3D{name}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.root, ignore_errors=True)
