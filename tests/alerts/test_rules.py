"""Rules for the rules: what every alert and every recording rule has to be."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from gwmond.metrics.catalog import FAMILIES
from gwmond.sites.reasons import REASONS
from gwmond.web.parts import render
from tests.alerts.rules import ALERTS, DIRECTORY, RECORDING, THRESHOLD, alerts, recorded, thresholds
from tests.alerts.simulated import cases
from tests.alerts.syntax import Parts, Selector, parts
from tests.metrics import golden
from tests.promql import ROOT
from tools.runbooks import TEMPLATE, template

BOARDS = ROOT / "etc" / "grafana" / "dashboards"
PAGE = ROOT / "docs" / "alerts.md"
FRESH = "instance:gwmond_poll_age_seconds:fresh"
LIMIT = "instance:gwmond_poll_age_seconds:limit"
#: Alerts about polls themselves: there is no fresh one.
OF_POLLS = {"GwmondDown", "GwmondPollStale"}
CRITICAL = {*OF_POLLS, "GwmondLedgerResidual", "GwmondPoolStarved"}
#: Labels that stay as they are while an incident lasts.
IDENTITY = {"job", "instance", "resource", "source", "site", "entry", "severity"}
POLL_S, EVALUATION_S = 60, 60
KINDS = {family.name: family.kind for family in FAMILIES}
LABELS = {family.name: {*family.labels, "job", "instance"} for family in FAMILIES}
COMPARISONS = {">", "<", ">=", "<=", "==", "!="}
OVER_TIME = {"max_over_time", "min_over_time", "avg_over_time", "delta"}

every_alert = pytest.mark.parametrize("name", alerts())
rules = pytest.mark.parametrize(
    "expr",
    [*recorded().values(), *(alert.expr for alert in alerts().values())],
    ids=[*recorded(), *alerts()],
)


def queries(name: str) -> list[str]:
    """The queries in an alert's texts, with something for each value that is filled in."""
    texts = " ".join(alerts()[name].annotations.values())
    found = re.findall(r'printf\s+"((?:[^"\\]|\\.)*gwmond(?:[^"\\]|\\.)*)"', texts)
    assert len(found) == len(re.findall(r"\|\s*query\b", texts))
    return [query.replace('\\"', '"').replace("%q", '"x"') for query in found]


@functools.cache
def emitted() -> dict[str, dict[str, set[str]]]:
    """The values of labels by metric, of a snapshot in which everything occurs."""
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families(golden.exposition().text.decode()):
        for sample in family.samples:
            for label, value in sample.labels.items():
                found.setdefault(sample.name, {}).setdefault(label, set()).add(value)
    return found


def _exists(selector: Selector) -> None:
    """Whether there is such a metric, and such labels and values."""
    if ":" in selector.name:
        assert selector.name in recorded()
    elif selector.name != "up":
        assert selector.name in KINDS
    for label, operator, value in selector.matchers:
        if selector.name in LABELS:
            assert label in LABELS[selector.name], selector
        assert label != "reason" or set(value.split("|")) <= {reason.name for reason in REASONS}
        bounded = label in {"state", "category", "outcome", "resource"} or value == "ledger"
        if selector.name in LABELS and bounded and value != "x":
            values = value.split("|") if operator in {"=~", "!~"} else [value]
            assert set(values) <= emitted()[selector.name][label], selector
        assert operator != "=~" or "|" in value, "equality does"
        assert not re.search(r"[\^$]", value), "matchers are anchored already"


def test_there_are_not_too_many() -> None:
    """Names say what is wrong; few people read many more than twenty."""
    assert 15 <= len(alerts()) <= 21
    assert all(re.fullmatch(r"Gwmond([A-Z][a-z]+)+", name) for name in alerts())


def test_severities() -> None:
    """Who is woken: for a pool that starves, and for accounting that is lost or wrong."""
    assert {alert.labels["severity"] for alert in alerts().values()} == {
        "critical",
        "warning",
        "info",
    }
    found = {alert.name for alert in alerts().values() if alert.labels["severity"] == "critical"}
    assert found == CRITICAL
    assert all(set(alert.labels) == {"severity"} for alert in alerts().values())


@every_alert
def test_texts(name: str) -> None:
    """A summary without numbers, a description with units, and where to read on."""
    notes = alerts()[name].annotations
    assert set(notes) == {"summary", "description", "runbook_url", "dashboard"}
    assert "$value" not in notes["summary"]
    assert "query" not in notes["summary"]
    instance = "{{ with $labels.instance }}http://{{ . }}{{ end }}"
    link = notes["runbook_url"].replace(instance, "http://{{ $labels.instance }}")
    assert link == f"http://{{{{ $labels.instance }}}}/runbooks#{name.lower()}"
    assert "Look first at: " in notes["description"]
    for values in re.findall(r"\$value\b([^}]*)", " ".join(notes.values())):
        assert re.match(r" \| (humanize(Percentage|Duration)|printf)| 1\.0 ", values), values
    assert not re.search(r"\bhumanize\b", notes["description"]), "0.39 is no 390m"
    named = set(re.findall(r"\$labels\.(\w+)", " ".join(notes.values())))
    assert named <= set(cases()[name]["labels"])


@every_alert
def test_times_in_texts_are_windows_of_the_rule(name: str) -> None:
    """What an operator edits ("for") is not in the text; windows are those of expr and queries."""
    alert = alerts()[name]
    text = re.sub(r"\{\{.*?\}\}", "", alert.annotations["description"])
    known = set(re.findall(r"(?:\[|rate)(\d+[mhd])\b", f"{alert.expr} {queries(name)}"))
    for said, unit, last in re.findall(r"\b(\d+) (minute|hour)s?\b|\blast (hour|week)\b", text):
        assert {"hour": "1h", "week": "7d"}.get(last, f"{said}{unit[:1]}") in known


@every_alert
def test_the_dashboard_exists(name: str) -> None:
    """With the variables that the link sets."""
    link = re.fullmatch(r"/d/([a-z-]+)\?(.*)", alerts()[name].annotations["dashboard"])
    assert link
    board = json.loads((BOARDS / f"{link[1]}.json").read_text())
    assert board["uid"] == link[1]
    variables = {f"var-{variable['name']}" for variable in board["templating"]["list"]}
    set_ones = dict(part.split("=", 1) for part in link[2].split("&"))
    assert set(set_ones) <= variables
    for variable, value in set_ones.items():
        assert value == f"{{{{ $labels.{variable.removeprefix('var-')} }}}}"


@every_alert
def test_labels_stay_the_same_during_an_incident(name: str) -> None:
    """So an alert does not begin anew when the reason of the incident changes."""
    assert set(cases()[name]["labels"]) <= IDENTITY


@every_alert
def test_the_page_explains_it(name: str) -> None:
    """Each alert has its section, with all five parts, and its severity."""
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^###|\Z)", PAGE.read_text(), re.M | re.S))
    assert set(sections) == set(alerts())
    titles = ["Meaning", "Impact", "Diagnosis", "Mitigation", "Tune or silence"]
    assert re.findall(r"^\*\*([A-Z][a-z ]+)\.\*\*", sections[name], re.M) == titles
    assert re.search(rf"Severity:\s+{alerts()[name].labels['severity']}\.", sections[name])
    diagnosis = sections[name].partition("**Diagnosis.**")[2].partition("**Mitigation")[0]
    assert re.search(r"^    \w", diagnosis, re.M)


def test_the_page_names_thresholds_with_their_numbers() -> None:
    """Each threshold is named; a number beside it is the one in the file."""
    text = re.sub(r"\s+", " ", PAGE.read_text())
    for name, value in thresholds().items():
        assert f"`{name}`" in text
        for said in re.findall(rf"`{name}` \((\d+) %\)", text):
            assert float(said) / 100 == value
        for said in re.findall(rf"`{name}` \((\d+)(?: canonical hours in 2 hours)?\)", text):
            assert float(said) == value
        for said, unit in re.findall(rf"`{name}` \((\d+) (hours|minutes)\)", text):
            assert float(said) * {"hours": 3600, "minutes": 60}[unit] == value


@every_alert
def test_it_holds_for_some_time(name: str) -> None:
    """For two polls and three evaluations at least; settled time is bridged."""
    alert = alerts()[name]
    assert alert.lasting >= max(2 * POLL_S, 3 * EVALUATION_S)
    settled = any(word in alert.expr for word in ("_pilot_canonical_seconds", "_job_runs"))
    assert (alert.keep_firing >= 3600) == settled


@every_alert
def test_it_compares(name: str) -> None:
    """An alert is no bare metric, and compares with a threshold, 0 or 1."""
    compared = [op for op in parts(alerts()[name].expr).operations if str(op.op) in COMPARISONS]
    assert compared
    for operation in compared:
        side = operation.rhs
        number = isinstance(side, promql.NumberLiteral) and side.val in {0, 1}
        # Of an entry's own week there is no number.
        week = name == "GwmondValidationFailures" and "ratio_rate7d" in str(side)
        scalar = isinstance(side, promql.Call) and THRESHOLD in str(side)
        limit = isinstance(side, promql.VectorSelector) and side.name == LIMIT
        assert number or scalar or week or limit, str(operation)


@every_alert
def test_it_needs_a_fresh_poll(name: str) -> None:
    """Its last condition is a young poll of the same gwmond, unless it is about polls."""
    root: Any = promql.parse(alerts()[name].expr)
    if name in OF_POLLS:
        assert FRESH not in alerts()[name].expr
        return
    assert (str(root.op), str(root.modifier.matching)) == ("and", "on (job, instance)")
    assert root.rhs.name == FRESH


@every_alert
def test_unknown_fires_its_own_alert_only(name: str) -> None:
    """No other alert asks for the state."""
    selectors = parts(alerts()[name].expr).selectors
    asks = any(("state", "=", "unknown") in selector.matchers for selector in selectors)
    assert asks == (name == "GwmondUnknownShareHigh")


def _is_fragile(found: Parts) -> set[str]:
    fragile = {"topk", "bottomk", "quantile", "avg", "limitk", "holt_winters", "predict_linear"}
    return fragile & {*found.functions, *(of.operator for of in found.aggregations)}


@rules
def test_selectors(expr: str) -> None:
    """Metrics, labels and values exist; all are of the job gwmond; gauges are of several polls."""
    found = parts(expr)
    assert not _is_fragile(found)
    for selector in found.selectors:
        _exists(selector)
        if ":" in selector.name:
            continue
        assert ("job", "=", "gwmond") in selector.matchers
        if KINDS.get(selector.name) == "counter":
            assert selector.around[0] == "rate", selector
            assert selector.window_s >= 4 * POLL_S
        elif selector.around[0] == "absent":
            assert all(operator == "=" for _, operator, _ in selector.matchers)
        else:
            assert selector.around[0] in OVER_TIME, selector
            assert selector.window_s >= 2 * POLL_S


@rules
def test_two_gwmonds_never_mix(expr: str) -> None:
    """Aggregations and matches keep job and instance; each match says by which labels."""
    found = parts(expr)
    for aggregation in found.aggregations:
        assert aggregation.without
        assert not aggregation.labels & {"job", "instance"}
    for operation in found.operations:
        modifier = operation.modifier
        if modifier is None or modifier.matching is None:
            continue
        labels = set(modifier.matching.labels)
        assert ({"job", "instance"} <= labels) == str(modifier.matching).startswith("on")


@every_alert
def test_queries_in_texts(name: str) -> None:
    """They are PromQL about metrics that exist, of the same gwmond."""
    for query in queries(name):
        for selector in parts(query).selectors:
            _exists(selector)
            if selector.name in KINDS and "and on (" not in query:
                assert {"job", "instance"} <= {label for label, _, _ in selector.matchers}


def test_recording_rules_are_named_by_what_they_do() -> None:
    """LEVEL:METRIC:OPERATION, of a metric without _total; with the range that is used."""
    for name, expr in recorded().items():
        level, metric, operation = name.split(":")
        if name.startswith(THRESHOLD):
            assert float(expr) > 0
            continue
        assert re.fullmatch(r"[a-z_]+", level)
        assert not metric.endswith("_total")
        window = re.search(r"rate(\d+[mhd])$", operation)
        assert window is None or f"[{window[1]}" in expr or f":rate{window[1]}" in expr


def test_recording_rules_are_used() -> None:
    """By an alert, by another rule, or by a dashboard."""
    boards = "".join(file.read_text() for file in (ROOT / "etc").rglob("*.json"))
    texts = [text for a in alerts().values() for text in (a.expr, *a.annotations.values())]
    for name in recorded():
        others = [expr for other, expr in recorded().items() if other != name]
        used = any(re.search(rf"\b{name}\b", text) for text in [*texts, *others, boards])
        assert used, name


def test_alertmanager_knows_the_alerts() -> None:
    """What is inhibited, and by what, are alerts; nothing inhibits itself."""
    example = yaml.safe_load((DIRECTORY / "alertmanager.yml").read_text())
    for rule in example["inhibit_rules"]:
        source, target = (
            set(re.findall(r"Gwmond\w+", rule[f"{side}_matchers"][0]))
            for side in ("source", "target")
        )
        assert source | target <= set(alerts())
        assert not source & target
        assert {"job", "instance"} <= set(rule["equal"])


@pytest.mark.parametrize("name", ["prometheus.yml", "remote-write.yml"])
def test_the_examples_load_the_rules(name: str) -> None:
    """Under the name of the job that the rules select, and Prometheus takes them."""
    example = yaml.safe_load((DIRECTORY / name).read_text())
    assert example["rule_files"] == [RECORDING.name, ALERTS.name]
    assert [job["job_name"] for job in example["scrape_configs"]] == ["gwmond"]
    check = ["promtool", "check", "config", str(DIRECTORY / name)]
    assert subprocess.run(check, check=False, stdout=subprocess.DEVNULL).returncode == 0


def test_the_daemon_serves_the_runbooks() -> None:
    """As the page of documents has them, where the alerts' links lead."""
    assert TEMPLATE.read_text() == template(), "Run: python -m tools.runbooks"
    served = render("runbooks")
    for alert in alerts().values():
        anchor = alert.annotations["runbook_url"].partition("/runbooks#")[2]
        assert f'<h2 id="{anchor}">{alert.name}</h2>' in served
