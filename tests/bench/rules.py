"""Benchmark: how long a Prometheus takes to evaluate the rules of etc/prometheus.

A real Prometheus is given the past of a gwmond with many entries, a sample a minute: what the
hand-made snapshot of the tests has of one entry, with its counters growing, for each.  The rules
are evaluated as they are shipped.  Printed is how long each group, and the slowest rules, took, as
Prometheus reports it: the median of the evaluations; and the CPU time of one evaluation of all.

``--days`` adds the recorded series of the days before, at which the rule of a week looks back.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tests.alerts.rules import FILES, recorded
from tests.metrics import golden
from tests.pool.prometheus import Prometheus

_STEP_S = 60
_FIRST = 2  # evaluations that are not counted: they have no recorded series yet
_TEMPLATE = "starving-ce1"
_SAMPLE = re.compile(r"(gwmond_\w+)\{(.*)\} (\S+)")
_RECORDED = {
    "entry:gwmond_pilot_canonical_seconds:rate6h": "",
    "entry_category:gwmond_pilot_canonical_seconds:rate6h": ',category="validation_fails"',
}
"""What the rule of a week looks back at: names and further labels."""


def main() -> None:
    """Write the past, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=500)
    parser.add_argument("--evaluations", type=int, default=5)
    parser.add_argument("--days", type=float, default=0.0)
    parser.add_argument("--ahead", type=int, default=900, help="seconds that writing may take")
    options = parser.parse_args()
    now = int(time.time()) + options.ahead  # Prometheus takes no samples before the last block's
    prometheus = Prometheus((), interval="15s", rules=FILES)
    with tempfile.TemporaryDirectory() as directory:
        text = Path(directory) / "past.om"
        with text.open("w") as file:
            series = _write(file, options.entries, options.days * 86400, now)
        _say(f"{series} series, {text.stat().st_size >> 20} MiB of samples")
        blocks = ["create-blocks-from", "openmetrics", str(text), str(prometheus.data)]
        subprocess.run(["promtool", "tsdb", *blocks], check=True, stdout=subprocess.DEVNULL)
    _say(f"written, {now - time.time():.0f} s are left")
    time.sleep(max(0.0, now - time.time()))
    with prometheus:
        _report(prometheus, options.evaluations)


def _needed() -> set[str]:
    """The metrics that rules ask for."""
    return set(re.findall(r"\bgwmond_\w+(?=[{\[])", "".join(f.read_text() for f in FILES)))


def _templates() -> dict[str, list[tuple[str, float]]]:
    """The labels and values of one entry, and of what is of no entry (under "")."""
    found: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
    for name, labels, value in _SAMPLE.findall(golden.exposition().text.decode()):
        if name in _needed() and ("entry=" not in labels or f'"{_TEMPLATE}"' in labels):
            found[name].append((labels, float(value)))
    return found


def _write(file: TextIO, entries: int, past_s: float, now: int) -> int:
    """Write all samples, by metric as the format wants it; return the number of series."""
    written = 0
    job = 'job="gwmond",instance="gw:9818"'
    for name in ("gwmond_poll_timestamp_seconds", "gwmond_poll_interval_seconds", "up"):
        file.write(f"# TYPE {name} gauge\n")
        for at in range(now - 300, now, _STEP_S):
            value = {"gwmond_poll_interval_seconds": 60, "up": 1}.get(name, at)
            file.write(f"{name}{{{job}}} {value} {at}\n")
        written += 1
    for name, rows in _templates().items():
        counter = name.endswith("_total")
        family = name.removesuffix("_total")
        file.write(f"# TYPE {family} {'counter' if counter else 'gauge'}\n")
        since = now - (_range_s(name) if counter else 300)
        for labels in _labels(rows, entries):
            for at in range(since, now, _STEP_S):
                value = 40 * (at - since) if counter else 1
                file.write(f"{name}{{{labels},{job}}} {value} {at}\n")
            written += 1
    for name, more in _RECORDED.items() if past_s else ():
        file.write(f"# TYPE {name} gauge\n")
        for number in range(entries):
            labels = f'site="s{number // 3}",entry="e{number}",resource="cpu"{more},{job}'
            for at in range(now - int(past_s), now, _STEP_S):
                file.write(f"{name}{{{labels}}} {number} {at}\n")
            written += 1
    file.write("# EOF\n")
    return written


def _range_s(metric: str) -> int:
    """The longest range over which a rule looks at a counter."""
    hours = re.findall(rf"{metric}{{[^}}]*}}\[(\d+)h\]", "".join(recorded().values()))
    return 3600 * max(map(int, hours), default=1)


def _labels(rows: list[tuple[str, float]], entries: int) -> Iterator[str]:
    for labels, _ in rows:
        if _TEMPLATE not in labels:
            yield labels
            continue
        for number in range(entries):
            text = re.sub(r'\bsite="[^"]*"', f'site="s{number // 3}"', labels)
            yield text.replace(_TEMPLATE, f"e{number}")


def _report(prometheus: Prometheus, evaluations: int) -> None:
    groups: defaultdict[str, list[float]] = defaultdict(list)
    rules: defaultdict[str, list[float]] = defaultdict(list)
    seen, number, cpu = "", 0, 0.0
    while number < evaluations + _FIRST:
        found: list[dict[str, Any]] = prometheus.api("rules")["groups"]
        if found[0]["lastEvaluation"] != seen:
            seen, number = found[0]["lastEvaluation"], number + 1
            if number == _FIRST:
                cpu = _cpu_s(prometheus)
            for group in found:
                groups[group["name"]].append(group["evaluationTime"])
                for rule in group["rules"]:
                    rules[rule["name"]].append(rule["evaluationTime"])
                    if rule["health"] == "err":
                        _say(f"{rule['name']}: {rule['lastError']}")
        time.sleep(0.5)
    cpu = (_cpu_s(prometheus) - cpu) / evaluations
    _say(f"{cpu:8.3f} s of CPU an evaluation of all, Prometheus's other work included")
    took = {name: statistics.median(times[_FIRST:]) for name, times in groups.items()}
    for name, median in took.items():
        _say(f"{median:8.3f} s  group {name}")
    _say(f"{sum(took.values()):8.3f} s  all")
    slowest = {name: statistics.median(times[_FIRST:]) for name, times in rules.items()}
    for name, median in sorted(slowest.items(), key=lambda row: -row[1])[:6]:
        _say(f"{median:8.3f} s  rule {name}")


def _cpu_s(prometheus: Prometheus) -> float:
    with urllib.request.urlopen(f"{prometheus.url}/metrics") as reply:
        found = re.search(rb"^process_cpu_seconds_total (\S+)$", reply.read(), re.MULTILINE)
    assert found
    return float(found[1])


def _say(text: str) -> None:
    print(text, flush=True)
