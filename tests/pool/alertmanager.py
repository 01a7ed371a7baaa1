"""A real Alertmanager, with the configuration that a test gives it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests.pool.prometheus import Program
from tests.pool.sandbox import PATIENCE_S, wait_until

T = TypeVar("T")


class Shown(NamedTuple):
    """An alert as Alertmanager shows it; ``inhibited`` by another one."""

    name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    inhibited: bool


class Alertmanager(Program):
    """An Alertmanager on loopback; a context manager."""

    def __init__(self, configuration: Path) -> None:
        super().__init__("prometheus-alertmanager", "/-/ready")
        self._args += [
            f"--config.file={configuration}",
            f"--storage.path={self.data}",
            f"--web.listen-address={self.listen}",
            "--cluster.listen-address=",
            "--log.level=warn",
        ]

    def alerts(self) -> list[Shown]:
        """All alerts that have not been resolved, inhibited ones included."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=120) as reply:
            rows: list[dict[str, Any]] = json.load(reply)
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
