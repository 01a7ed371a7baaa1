"""Client operations on a test pool, each in a process of its own (client_child.py).

The bindings hold Python's global lock for the length of every network call, and they read their
configuration once per process; so nothing in the test process itself may use them.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.pool.adtext import Expr, Value, ad_text, literal
from tests.pool.sandbox import wait_until

_CHILD = Path(__file__).resolve().with_name("client_child.py")
_STARTING = threading.Lock()
_READING, _TRIES = frozenset({"query", "jobs", "histories"}), 3


class ClientError(RuntimeError):
    """The operation failed in the child; `kind` is the name of the exception's type there."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """What clients connect to, and a process that has loaded the bindings and forks for each.

    The process ends with this one, which holds its standard input.
    """
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("")  # Linux finds an abstract name
    listening.listen(64)
    number = listening.fileno()
    command = [sys.executable, "-P", str(_CHILD), str(number)]
    # With ONLY_ENV the bindings would never read a file.
    env = {**os.environ, "CONDOR_CONFIG": os.devnull}
    return listening, subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[number], env=env)


def _ask(request: dict[str, object], timeout: float) -> bytes:
    """The reply; empty if the process died without a word."""
    with _STARTING:
        listening, _ = _server()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(listening.getsockname())
        connection.sendall(json.dumps(request).encode())
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as reply:
            return reply.read()


def call(operation: str, env: Mapping[str, str], timeout: float = 120.0, **request: object) -> Any:
    """Run `operation` in a child with these variables added to the environment.

    Raises ClientError for an exception in the child, TimeoutError after `timeout` seconds (the
    child is killed then).  A child that only reads is started again if it died without a word, as
    the bindings do now and then.
    """
    whole = {"operation": operation, "env": {**os.environ, **env}, "timeout": timeout, **request}
    for _ in range(_TRIES if operation in _READING else 1):
        if answer := _ask(whole, timeout):
            break
    else:
        raise ClientError("ChildError", f"{operation} ended without a word")
    reply = json.loads(answer)
    if "error" in reply:
        raise ClientError(*reply["error"])
    return reply["result"]


class PoolClient:
    """What users, pilots, frontends and monitors do with a pool."""

    def __init__(self, homes: Path, user: str = "alice") -> None:
        """`homes` has a directory with a condor_config for each user; `user` is the default one."""
        #: address of the collector, 127.0.0.1:PORT
        self.collector = ""
        self._homes = homes
        self._user = user

    def client_env(self, user: str = "") -> dict[str, str]:
        """Variables with which the bindings act as that user of the pool."""
        return {"CONDOR_CONFIG": str(self._homes / (user or self._user) / "condor_config")}

    def _call(self, operation: str, user: str, timeout: float, **request: object) -> Any:
        env = self.client_env(user)
        return call(operation, env, timeout, collector=self.collector, **request)

    def submit(
        self,
        schedd: str,
        n: int = 1,
        *,
        owner: str = "alice",
        seconds: float = 600,
        attrs: Mapping[str, Value] | None = None,
        **commands: object,
    ) -> int:
        """Submit n jobs which sleep for some seconds each; the cluster's number.

        `attrs` are additional attributes of the job ad, such as DESIRED_Sites; `commands` are
        those of a submit description: requirements=NEVER, hold=True, universe="local",
        request_gpus=1, accounting_group="a.b", max_idle=5 (late materialisation) and so on.
        """
        lines = {
            "executable": "/bin/sleep",
            "transfer_executable": False,
            "should_transfer_files": "YES",
            "arguments": f"{seconds:g}",
            "initialdir": self._homes / owner,
            "request_cpus": 1,
            "request_memory": 128,
            "request_disk": 1024,
            **commands,
            **{f"My.{key}": literal(value) for key, value in (attrs or {}).items()},
        }
        text = "".join(f"{key} = {value}\n" for key, value in lines.items()) + f"queue {n}\n"
        return int(self._call("submit", owner, 300, schedd=schedd, text=text, count=0))

    def remove(self, schedd: str, constraint: str = "true", *, user: str = "") -> Any:
        """condor_rm of one's own jobs: how many succeeded and failed."""
        return self.act("Remove", schedd, constraint, user=user)

    def act(self, action: str, schedd: str, constraint: str, *, user: str = "") -> Any:
        """Hold, Release, Remove, Vacate … one's own jobs: how many succeeded and failed.

        Held jobs are released once their shadows are gone: HTCondor 23 leaves a job idle for ever
        that is released while its shadow still ends.
        """
        if action == "Release":
            ending = f"({constraint}) && CurrentHosts > 0"
            wait_until("the shadows' ends", lambda: not self.jobs(schedd, ending, ["ClusterId"]))
        return self._act(action, schedd, constraint, user)

    def release_now(self, schedd: str, constraint: str) -> Any:
        """Release one's own jobs, also such whose shadows still end."""
        return self._act("Release", schedd, constraint, "")

    def _act(self, action: str, schedd: str, constraint: str, user: str) -> Any:
        return self._call("act", user, 120, schedd=schedd, action=action, constraint=constraint)

    def advertise(self, ads: Iterable[Mapping[str, Value]], command: str) -> int:
        """Put ads made with tests.pool.feign into the collector, e.g. by UPDATE_STARTD_AD."""
        texts = [ad_text(ad) for ad in ads]
        return int(self._call("advertise", "", 120, texts=texts, command=command))

    def invalidate(self, my_type: str, command: str, constraint: str = "true") -> None:
        """Take ads out of the collector, as who sent them does when it ends."""
        ad = {"MyType": "Query", "TargetType": my_type, "Requirements": Expr(constraint)}
        self.advertise([ad], command)

    def query(
        self,
        ad_type: str,
        constraint: str | None = None,
        projection: list[str] | None = None,
        *,
        timeout: float = 120.0,
    ) -> list[dict[str, Any]]:
        """Ads of a type (a name of htcondor2.AdType) in the collector, evaluated."""
        request = {"ad_type": ad_type, "constraint": constraint, "projection": projection}
        rows: list[dict[str, Any]] = self._call("query", "", timeout, **request)
        return rows

    def jobs(
        self,
        schedd: str,
        constraint: str = "true",
        projection: Iterable[str] = ("ClusterId", "ProcId", "JobStatus"),
        *,
        history: bool = False,
        timeout: float = 120.0,
    ) -> list[dict[str, Any]]:
        """Job ads of a schedd's queue, or of its history."""
        request = {"constraint": constraint, "projection": list(projection), "history": history}
        rows: list[dict[str, Any]] = self._call("jobs", "", timeout, schedd=schedd, **request)
        return rows
