"""The rules of etc/prometheus, as Python sees them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.promql import ROOT

DIRECTORY = ROOT / "etc" / "prometheus"
RECORDING = DIRECTORY / "gwmond-recording.yml"
ALERTS = DIRECTORY / "gwmond-alerts.yml"
FILES = (RECORDING, ALERTS)
THRESHOLD = "gwmond:threshold:"

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_RECORDED = re.compile(r"\b\w+:\w+:\w+")
_DURATION = re.compile(r"\b(\d+)([smhd])\b")


class Alert(NamedTuple):
    """One alert: durations in seconds, ``keep_firing`` 0 if it is not given."""

    name: str
    expr: str
    lasting: float
    keep_firing: float
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


def seconds(duration: str) -> float:
    """Return how long a duration like 30m is."""
    number, unit = duration[:-1], duration[-1]
    return float(number) * _UNITS[unit]


def _rules(file: Path) -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(file.read_text())["groups"]:
        yield from group["rules"]


@functools.cache
def alerts() -> dict[str, Alert]:
    """Return all alerts by name."""
    found = [
        Alert(
            rule["alert"],
            rule["expr"],
            seconds(rule["for"]),
            seconds(rule.get("keep_firing_for", "0s")),
            rule["labels"],
            rule["annotations"],
        )
        for file in FILES
        for rule in _rules(file)
        if "alert" in rule
    ]
    assert len({alert.name for alert in found}) == len(found), "two alerts have one name"
    return {alert.name: alert for alert in found}


@functools.cache
def recorded() -> dict[str, str]:
    """Return the expressions of all recording rules by name, thresholds included."""
    found = [
        (rule["record"], str(rule["expr"]))
        for file in FILES
        for rule in _rules(file)
        if "record" in rule
    ]
    assert len(dict(found)) == len(found), "two rules record one series"
    return dict(found)


def needed(*names_of_alerts: str) -> str:
    """Return a file with these alerts, and with the recording rules of which they are made.

    The groups are in the order of what they need, with the thresholds first.
    """
    names = set(names_of_alerts)
    wanted = [alerts()[name] for name in names_of_alerts]
    texts = [text for alert in wanted for text in (alert.expr, *alert.annotations.values())]
    while texts:
        for name in _RECORDED.findall(texts.pop()):
            if name not in names:
                names.add(name)
                texts.append(recorded()[name])
    groups = [
        group
        for file in (ALERTS, RECORDING)
        for group in yaml.safe_load(file.read_text())["groups"]
    ]
    groups.sort(key=lambda group: "alert" in group["rules"][0])
    for group in groups:
        group["rules"] = [r for r in group["rules"] if r.get("record", r.get("alert")) in names]
    return str(yaml.safe_dump({"groups": [group for group in groups if group["rules"]]}))


def thresholds() -> dict[str, float]:
    """Return the numbers that an operator edits."""
    return {
        name.removeprefix(THRESHOLD): float(expr)
        for name, expr in recorded().items()
        if name.startswith(THRESHOLD)
    }


def scaled(text: str, factor: float, numbers: Mapping[str, float]) -> str:
    """Return a file of rules in which time goes ``factor`` times as fast.

    All durations of ``for``, ``keep_firing_for``, ``interval`` and ranges are divided;
    thresholds are replaced by ``numbers``.  Durations in texts for people stay, and so do factors
    like the hours of a window.
    """

    def shorter(match: re.Match[str]) -> str:
        return f"{max(1, round(_UNITS[match[2]] * int(match[1]) / factor))}s"

    lines = []
    name = ""
    for line in text.splitlines():
        if found := re.search(rf"record: {THRESHOLD}(\w+)", line):
            name = found[1]
        elif name and name in numbers and "expr:" in line:
            line = re.sub(r"expr: .*", f"expr: {numbers[name]:g}", line)  # noqa: PLW2901
        elif re.match(r"\s+(for|keep_firing_for|interval): ", line):
            line = _DURATION.sub(shorter, line)  # noqa: PLW2901
        lines.append(
            re.sub(
                r"\[(\d+[smhd])(?::(\d+[smhd]))?\]", lambda m: _DURATION.sub(shorter, m[0]), line
            )
        )
    return "\n".join(lines) + "\n"
