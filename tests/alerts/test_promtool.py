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


def test_input_that_fails_at_one_site_is_told_at_once(tmp_path: Path) -> None:
    """Before the runs are judged, at a site with most of the pool's runs, too.

    Not where another site fails alike, as by a misspelt URL, nor where too few runs are elsewhere.
    """
    name = "GwmondTransferFailures"
    case = cases()[name]
    _, good, _, failed = case["series"]
    description = case["annotations"]["description"].replace(
        "Most often: transfer_input_failed at entry ce1. ", ""
    )

    def played(a_second: float) -> Case:
        well = {"name": good["name"].replace("T2_Example", "T2_Well")}
        series = [good, failed, well | dict.fromkeys(("below", "incident"), a_second)]
        annotations = {**case["annotations"], "description": description}
        story, *_ = stories({**case, "series": series, "annotations": annotations})
        return story

    elsewhere = [
        {**one, "name": one["name"].replace("T2_Example", "T2_Other")} for one in (good, failed)
    ]
    alike, *_ = stories({**case, "series": [good, failed, *elsewhere]})
    few = played(0.001)
    for test in (*alike["alert_rule_test"], *few["alert_rule_test"]):
        test["exp_alerts"] = []
    _play(tmp_path, [played(1), played(0.02), alike, few], name)


def test_few_held_pilots_are_told_where_no_other_comes(tmp_path: Path) -> None:
    """After two hours; not while one waits, nor where none is requested, or the entry is down."""
    name = "GwmondEntryPilotsHeld"
    case = cases()[name]
    place = 'site="T2_Example", entry="ce1"'

    def series(name: str, below: int, incident: int) -> Case:
        metric, _, labels = name.partition(" ")
        return {"name": f"{metric}{{{place}, {labels}}}", "below": below, "incident": incident}

    held = series('gwmond_pilots group="fe.main", state="held"', 0, 2)
    busy = series('gwmond_pilots group="fe.main", state="busy"', 20, 20)
    asked = series('gwmond_pilots_requested group="fe.main"', 5, 5)
    none, waits = (series('gwmond_pilots group="fe.main", state="pending"', n, n) for n in (0, 1))
    more = busy | {"below": 0, "incident": 0, "lag": True}  # one a second
    down = series('gwmond_site_state state="down"', 1, 1)
    said = case["annotations"]["description"].replace("30 pilots", "2 pilots")
    changed = {"not_yet": 149, "annotations": {**case["annotations"], "description": said}}

    def played(fires: int, *shown: Case) -> Case:
        story, *_ = stories({**case, **changed, "fires": fires, "series": shown})
        return story

    there = held, busy
    told = [played(157, *there, asked, none)]
    silent = [played(157, *there, *of) for of in ([none], [asked, waits], [asked, none, down])]
    silent.append(played(157, held, more, asked, none))
    for test in (of for story in silent for of in story["alert_rule_test"]):
        test["exp_alerts"] = []
    _play(tmp_path, told, name)
    _play(tmp_path, silent, name)


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
