"""A real Alertmanager, with the configuration that a test gives it."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from tests.pool.ports import free_port
from tests.pool.sandbox import PATIENCE_S, wait_until

T = TypeVar("T")


class Shown(NamedTuple):
    """An alert as Alertmanager shows it; ``inhibited`` by another one."""

    name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    inhibited: bool


class Alertmanager:
    """An Alertmanager on loopback; a context manager. `url` is its address."""

    def __init__(self, configuration: Path) -> None:
        program = shutil.which("prometheus-alertmanager")
        if program is None:
            raise RuntimeError(
                "no prometheus-alertmanager on PATH. Run: apt-get install prometheus-alertmanager"
            )
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.address}"
        self._dir = Path(tempfile.mkdtemp(prefix="gwmond-alertmanager-", dir="/tmp"))
        self._process: subprocess.Popen[bytes] | None = None
        self._args = [
            # Killed with the test process, whatever becomes of that.
            *("setpriv", "--pdeathsig", "KILL", program),
            f"--config.file={configuration}",
            f"--storage.path={self._dir}",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
            "--log.level=warn",
        ]

    def __enter__(self) -> Self:
        with (self._dir / "log").open("wb") as log:
            self._process = subprocess.Popen(
                self._args, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            wait_until("Alertmanager", self._ready)
        except BaseException as error:
            error.add_note((self._dir / "log").read_text(errors="replace"))
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(30)
        shutil.rmtree(self._dir, ignore_errors=True)

    def _ready(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"alertmanager ended with status {self._process.returncode}")
        try:
            self._get("/-/ready")
        except OSError:
            return False
        return True

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=120) as reply:
            body: bytes = reply.read()
            return body

    def alerts(self) -> list[Shown]:
        """All alerts that have not been resolved, inhibited ones included."""
        rows: list[dict[str, Any]] = json.loads(self._get("/api/v2/alerts"))
        return [
            Shown(
                row["labels"].pop("alertname"),
                row["labels"],
                row["annotations"],
                bool(row["status"]["inhibitedBy"]),
            )
            for row in rows
        ]

    def wait_for(
        self, name: str, *, inhibited: bool = False, timeout: float = PATIENCE_S, **labels: str
    ) -> Shown:
        """The alert with these labels, once it is there and is (not) inhibited."""

        def probe() -> Shown | None:
            for alert in self.alerts():
                if alert.name == name and labels.items() <= alert.labels.items():
                    return alert if alert.inhibited == inhibited else None
            return None

        return self._wait(
            f"{name} {labels} {'inhibited' if inhibited else 'active'}", probe, timeout
        )

    def wait_gone(self, *names: str, timeout: float = PATIENCE_S) -> None:
        """Wait until no alert of these names is left."""
        self._wait(
            f"the end of {names}",
            lambda: not {alert.name for alert in self.alerts()} & set(names) or None,
            timeout,
        )

    def _wait(self, what: str, probe: Callable[[], T | None], timeout: float) -> T:
        try:
            return wait_until(what, probe, timeout, 0.3)
        except TimeoutError as error:
            error.add_note("\n".join(map(str, self.alerts())))
            raise
