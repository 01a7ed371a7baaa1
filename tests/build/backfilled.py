"""A real promtool, and a real Prometheus on the blocks that it made."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.pool.prometheus import Prometheus

Labels = frozenset[tuple[str, str]]


def create_blocks(file: Path, directory: Path) -> list[Path]:
    """Make blocks of OpenMetrics text; a failure has promtool's words."""
    promtool = shutil.which("promtool")
    if promtool is None:
        raise RuntimeError("no promtool on PATH. Run: apt-get install prometheus")
    command = [promtool, "tsdb", "create-blocks-from", "openmetrics", str(file), str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(path.parent for path in directory.glob("*/meta.json"))


class Filled(Prometheus):
    """A Prometheus that scrapes nothing, on a copy of some blocks, however old they are."""

    def __init__(self, blocks: Path) -> None:
        super().__init__(())
        shutil.copytree(blocks, self._dir / "data")
        self._args.append("--storage.tsdb.retention.time=100y")

    def at(self, promql: str, time_s: int) -> dict[Labels, float]:
        """Return the answer of a query at a time, by labels without the name."""
        found = self.api("query", query=promql, time=str(time_s))["result"]
        return {_labels(row["metric"]): float(row["value"][1]) for row in found}

    def hourly(self, promql: str, first_s: int, last_s: int) -> dict[Labels, dict[int, float]]:
        """Return the answers of a query at each hour from the first time to the last."""
        parameters = {"start": str(first_s), "end": str(last_s), "step": "3600"}
        found = self.api("query_range", query=promql, **parameters)["result"]
        return {
            _labels(row["metric"]): {int(time): float(value) for time, value in row["values"]}
            for row in found
        }


def _labels(metric: dict[str, str]) -> Labels:
    return frozenset((name, value) for name, value in metric.items() if name != "__name__")
