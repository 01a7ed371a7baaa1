"""What the alerts do in time: promtool plays each of the stories of cases.yml."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.alerts.rules import DIRECTORY, FILES, alerts, needed
from tests.alerts.simulated import Case, cases, document, stories


def _promtool(*arguments: object) -> str:
    done = subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _play(directory: Path, tests: list[Case], *names: str) -> None:
    rules, file = directory / "rules.yml", directory / "tests.yml"
    rules.write_text(needed(*names))
    file.write_text(document(tests, rules))
    _promtool("test", "rules", file)


def test_promtool_and_amtool_take_the_files() -> None:
    """Rules without a lint of promtool, and the examples of both configurations."""
    _promtool("check", "rules", "--lint=all", "--lint-fatal", *FILES)
    _promtool("check", "config", DIRECTORY / "prometheus.yml")
    example = DIRECTORY / "alertmanager.yml"
    subprocess.run(["amtool", "check-config", example], capture_output=True, check=True)


def test_each_alert_has_its_case() -> None:
    """With all of its labels and annotations."""
    assert set(cases()) == set(alerts())
    for name, case in cases().items():
        assert set(case["annotations"]) == set(alerts()[name].annotations)
        assert {"severity", "job", "instance"} <= set(case["labels"])


@pytest.mark.parametrize("name", cases())
def test_an_alert(name: str, tmp_path: Path) -> None:
    """Silent just below, firing as it is written, resolved; with a stale poll, without series."""
    _play(tmp_path, list(stories(cases()[name])), name)


def test_what_is_unknown_fires_nothing_else(tmp_path: Path) -> None:
    """Not even where all of the time is unknown."""
    story, *_ = stories(cases()["GwmondUnknownShareHigh"])
    (firing,) = [test for test in story["alert_rule_test"] if test["exp_alerts"]]
    others = [name for name in alerts() if name != firing["alertname"]]
    story["alert_rule_test"] = [
        firing,
        *({**firing, "alertname": name, "exp_alerts": []} for name in others),
    ]
    _play(tmp_path, [story], *alerts())


def test_a_failure_at_some_entries_is_not_said_to_be_at_all(tmp_path: Path) -> None:
    """Where pilots of the group still pass at one entry, the failures may be the sites'."""
    name = "GwmondValidationFailures"
    case = cases()[name]
    *others, failed, passed = case["series"]
    well = [{**one, "incident": one["below"]} for one in (failed, passed)]
    before, _, after = case["annotations"]["description"].partition("Most pilots of fe.main")
    said = f"{before}{after[after.index('Look first') :]}"
    annotations = {**case["annotations"], "description": said}
    story, *_ = stories({**case, "series": [*others, *well], "annotations": annotations})
    _play(tmp_path, [story], name)


def test_a_case_that_is_wrong_fails(tmp_path: Path) -> None:
    """Promtool does look at times, labels and texts."""
    name = "GwmondSourceDown"
    case = cases()[name]
    for wrong in (
        {"fires": case["not_yet"] - 1},
        {"labels": {**case["labels"], "source": "another"}},
        {"annotations": {**case["annotations"], "summary": "another"}},
        {"resolved": -4},
    ):
        with pytest.raises(AssertionError, match=name):
            _play(tmp_path, list(stories(case | wrong)), name)
