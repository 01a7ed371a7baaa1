"""What a played pool shows to Prometheus, and which alerts Prometheus then fires.

promtool evaluates the rules as they are shipped, at each poll: what is scraped is a poll's, so
between two polls nothing changes.  Times are hours from the beginning of the play.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

import yaml

from gwmond.metrics import catalog
from gwmond.metrics.render import render
from gwmond.model.poll.snapshot import Snapshot
from tests.alerts.rules import ALERTS, FILES, RECORDING
from tests.simulator.play import POLL_S
from tests.simulator.world import BEGINS

NEEDED = set(re.findall(r"\bgwmond_\w+(?=[{\[])", "".join(file.read_text() for file in FILES)))
_FAMILIES = [family for family in catalog.FAMILIES if family.name in NEEDED]
_AT_ONCE = re.compile(
    r"alertname: (\w+), time: (\w+), \n\s+exp:\[\], \n\s+got:\[\n(.*?)\n\s+\]", re.DOTALL
)
_LABELS = re.compile(r"Labels:\{(.*)\}\n")
_UNITS = {"w": 168.0, "d": 24.0, "h": 1.0, "m": 1 / 60, "s": 1 / 3600}


class Firing(NamedTuple):
    """An alert that fires from one time to another; ``labels``: which one it is."""

    alert: str
    labels: dict[str, str]
    begins_h: float
    ends_h: float

    @property
    def place(self) -> str:
        """Its entry, else its site, else empty."""
        return self.labels.get("entry") or self.labels.get("site", "")


class Samples:
    """The series that the rules need, a sample a poll."""

    def __init__(self) -> None:
        self.polls = 0
        self._series: defaultdict[str, list[tuple[str, int, int]]] = defaultdict(list)

    def note(self, snapshot: Snapshot) -> None:
        """Take in what is scraped after a poll."""
        text = render(_FAMILIES, snapshot, 1_000_000).text.decode()
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            name, _, value = line.rpartition(" ")
            runs = self._series[name]
            if runs and runs[-1][0] == value and runs[-1][2] == self.polls:
                runs[-1] = value, runs[-1][1], self.polls + 1
            else:
                runs.append((value, self.polls, self.polls + 1))
        self.polls += 1

    def series(self) -> Iterator[dict[str, str]]:
        """Yield all in promtool's notation, with the time of the first poll at ``POLL_S``."""
        yield {"series": 'up{job="gwmond", instance="gw:9818"}', "values": f"1x{self.polls}"}
        for name, runs in self._series.items():
            shift = BEGINS if "_timestamp_seconds" in name else 0
            parts, at = ["_"], 0
            for value, first, end in runs:
                if first > at:
                    parts += ["_"] * (at == 0) + ["stale"] * (at > 0) + [f"_x{first - at - 1}"]
                shown = f"{float(value) - shift:.17g}" if shift else value
                parts.append(f"{shown}x{end - first - 1}")
                at = end
            parts += ["stale"] * (at < self.polls)
            metric, _, labels = name.rstrip("}").partition("{")
            own = f'job="gwmond", instance="gw:9818"{labels and ", "}{labels}'
            yield {"series": f"{metric}{{{own}}}", "values": " ".join(parts)}


def firing(samples: Samples, names: Collection[str]) -> list[Firing]:
    """Return when which of these alerts fires, by promtool's evaluation of all rules."""
    groups = {f: [g["name"] for g in yaml.safe_load(f.read_text())["groups"]] for f in FILES}
    thresholds, *others = groups[ALERTS]
    test = {
        "name": "played",
        "interval": f"{POLL_S}s",
        "input_series": list(samples.series()),
        "alert_rule_test": [
            {"eval_time": f"{POLL_S * poll}s", "alertname": name, "exp_alerts": []}
            for poll in range(1, samples.polls + 1)
            for name in names
        ],
    }
    document = {
        "rule_files": [str(file) for file in FILES],
        "group_eval_order": [thresholds, *groups[RECORDING], *others],
        "evaluation_interval": f"{POLL_S}s",
        "tests": [test],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump(document, file)
        file.flush()
        command = ["promtool", "test", "rules", file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "name: played" not in done.stderr:
        raise RuntimeError(done.stderr[:2000])
    return _firings(done.stderr)


def _firings(told: str) -> list[Firing]:
    """Return what promtool found against its expectation that nothing fires."""
    step_h = POLL_S / 3600
    last: dict[tuple[str, str], Firing] = {}
    found: list[Firing] = []
    for name, time, got in _AT_ONCE.findall(told):
        at_h = sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+)([wdhms])", time))
        for text in _LABELS.findall(got):
            before = last.get((name, text))
            if before is not None and at_h - before.ends_h < 1.5 * step_h:
                last[name, text] = before._replace(ends_h=at_h)
                continue
            if before is not None:
                found.append(before)
            labels = dict(re.findall(r'(\w+)="([^"]*)"', text))
            last[name, text] = Firing(name, labels, at_h, at_h)
    return sorted([*found, *last.values()], key=lambda one: (one.begins_h, one.alert, one.place))
