"""Promtool's tests of the alerts, made of the table in cases.yml.

Each case is a story of two gwmonds.  The first has an incident: before it, all is just below the
thresholds; then the alert has to fire, once; and to resolve afterwards.  The second one is just
below all the time, with a poll that is nearly too old.  The story is told three times more: of a
daemon that stops to poll when the incident begins, of two that stand by, and without the series
that the alert is about.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.alerts.rules import seconds

CASES = Path(__file__).parent / "cases.yml"
FIRST, SECOND = "gw1.example.org:9818", "gw2.example.org:9818"
POLLED = "gwmond_poll_timestamp_seconds"
STANDBY = "gwmond_ledger_standby"
#: How often each polls, in seconds, and the age of the second one's poll: just below the threshold.
INTERVAL_S = {FIRST: 60, SECOND: 300}
AGE_S = 1490

Case = dict[str, Any]


@functools.cache
def cases() -> dict[str, Case]:
    """Return the cases by the name of their alert."""
    found = {case["alert"]: case for case in yaml.safe_load(CASES.read_text())}
    for case in found.values():
        times = ("warmup", "not_yet", "fires", "resolved")
        case |= {name: int(seconds(case[name]) // 60) for name in times if name in case}
        counters = any("_total" in row["name"] for row in case["series"])
        case.setdefault("warmup", 150 if counters else 10)
    return found


def _levels(series: str, levels: list[tuple[int, float]], lag: bool) -> str:
    """Return values a minute in promtool's notation: of a counter its rate a second is given.

    With ``lag``: a time that is so many seconds ago, or that does not move ("frozen": -1).
    """
    parts: list[str] = []
    minute, value = 0, 0.0
    for minutes, level in levels:
        if lag and level >= 0:
            parts.append(f"{minute * 60 - level:g}+60x{minutes - 1}")
            value = (minute + minutes - 1) * 60 - level
        elif lag:
            parts.append(f"{value:g}x{minutes - 1}")
        elif series.partition("{")[0].endswith("_total"):
            parts.append(f"{value:g}+{level * 60:g}x{minutes - 1}")
            value += level * 60 * minutes
        else:
            parts.append(f"{level:g}x{minutes - 1}")
        minute += minutes
    return " ".join(parts)


def _series(name: str, instance: str) -> str:
    metric, _, labels = name.rstrip("}").partition("{")
    return f'{metric}{{job="gwmond", instance="{instance}"{labels and ", "}{labels}}}'


def _input(case: Case, *, stale: bool, absent: bool, standby: bool) -> Iterator[dict[str, str]]:
    spans = [case["warmup"], case["fires"] + 5, case["resolved"] + 5]
    rows = [] if absent else case["series"]
    named = {row["name"].partition("{")[0] for row in case["series"]}
    if "up" not in named:
        rows = [*rows, {"name": "up", "below": 1, "incident": 1}]
    if POLLED not in named:
        rows = [*rows, {"name": POLLED, "lag": True, "below": 0, "incident": -1 if stale else 0}]
    for instance, interval in INTERVAL_S.items():
        for name, value in (("gwmond_poll_interval_seconds", interval), (STANDBY, int(standby))):
            values = _levels(name, [(sum(spans), value)], False)
            yield {"series": _series(name, instance), "values": values}
    for row in rows:
        below, incident, lag = row["below"], row["incident"], row.get("lag", False)
        first = zip(spans, (below, incident, incident if stale else below), strict=True)
        yield {
            "series": _series(row["name"], FIRST),
            "values": _levels(row["name"], list(first), lag),
        }
        quiet = AGE_S if row["name"] == POLLED else below
        yield {
            "series": _series(row["name"], SECOND),
            "values": _levels(row["name"], [(sum(spans), quiet)], lag),
        }


def _expected(case: Case) -> dict[str, Any]:
    return {
        "exp_labels": case["labels"],
        "exp_annotations": case["annotations"],
    }


def _test(case: Case, what: str, at: dict[int, list[dict[str, Any]]], **how: bool) -> Case:
    return {
        "name": f"{case['alert']}: {what}",
        "interval": "1m",
        "input_series": list(
            _input(case, **{"stale": False, "absent": False, "standby": False, **how})
        ),
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": case["alert"], "exp_alerts": expected}
            for minute, expected in sorted(at.items())
        ],
    }


def stories(case: Case) -> Iterator[Case]:
    """Yield promtool's tests of a case."""
    begin = case["warmup"]
    fires = begin + case["fires"]
    firing = [_expected(case)]
    yield _test(
        case,
        "silent just below, fires after its time, resolves, and the other gwmond stays silent",
        {
            begin - 1: [],
            begin + case["not_yet"]: [],
            fires: firing,
            fires + 5 + case["resolved"]: [],
        },
    )
    of_polls = case.get("of_polls", False)
    yield _test(
        case, "a daemon that does not poll", {fires: firing if of_polls else []}, stale=True
    )
    yield _test(case, "a standby", {fires: firing if of_polls else []}, standby=True)
    for number, description in case.get("alone", {}).items():
        only = {**case, "series": [case["series"][number]]}
        said = {**case["annotations"], "description": description}
        expected = [_expected({**case, "annotations": said})]
        yield _test(only, f"{only['series'][0]['name']} alone", {fires: expected})
    nothing = [_expected(alert) for alert in case.get("absent", ())]
    yield _test(case, "no such series", {fires: nothing}, absent=True)


def document(tests: list[Case], rules: Path) -> str:
    """Return a file for promtool test rules; it is given the order, or it takes any."""
    groups = yaml.safe_load(rules.read_text())["groups"]
    whole = {
        "rule_files": [str(rules)],
        "group_eval_order": [group["name"] for group in groups],
        "evaluation_interval": "1m",
        "tests": tests,
    }
    return str(yaml.safe_dump(whole, sort_keys=False, width=1000))
