"""``gwmond report --failures``: failed validations by class and test, for each entry and node."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from gwmond import cli
from gwmond.commands.common import EXIT_BAD_CONFIG
from gwmond.model.times import HOUR_US, Period
from gwmond.reports.failures.common_failures import split
from gwmond.reports.failures.failures import MOST, FailureKey, Failures
from gwmond.reports.report.report import Group, Scope
from gwmond.reports.report.report import Report as Reported
from gwmond.reports.report.report_document import tables
from gwmond.reports.stored.pilot_sums import PilotSums
from tests.build import failed_pilots
from tests.build.failed_pilots import HOSTILE, LIFE

Report: TypeAlias = Callable[..., str]
FIRST = "The nodes of an entry where most failed are first."


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outputs of eight pilots, and a ninth that only advertised."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    failed_pilots.write(str(path))
    return path


@pytest.fixture
def report(ledger: Path, printed: Report) -> Report:
    day = ("--from", "2023-11-15", "--to", "2023-11-16")
    return partial(printed, "report", "--ledger", ledger, *day, "--failures")


def failures(report: Report, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(report("--format", "json", *more))["validation_failures"]
    return found


def test_by_entry_node_class_and_test(report: Report) -> None:
    """Numbers of pilots, their share of all that ended there, and the time of their lives."""
    found = failures(report)
    names = ("entry", "node", "class", "test", "pilots", "of_pilots")
    assert [tuple(of[name] for name in names) for of in found["groups"]] == [
        ("e1", "n1", "WN_Resource", "main/validate_node.sh", 3, 5),
        ("e1", "n1", "VO_Proxy", "check_proxy.sh", 1, 5),
        ("e1", HOSTILE, "WN_Resource", "main/validate_node.sh", 1, 1),
        ("e2", "n1", "VO_Proxy", "check_proxy.sh", 1, 1),
        ("e2", "n3", None, "check_proxy.sh", 1, 1),
    ]
    first, total = found["groups"][0], found["total"]
    assert first["time"]["cpu"] == {
        "resource_seconds": 3 * 8 * LIFE,
        "canonical_seconds": 3 * 4 * LIFE,
    }
    assert first["share_of_pilots"] == 3 / 5
    assert (total["pilots"], total["of_pilots"]) == (7, 9)
    # e2's others have one core and 1000 MiB, which the advertised one is taken to have.
    cores = 4 * 8 + 4 + 1 + 1
    assert total["time"]["cpu"]["resource_seconds"] == cores * LIFE


def test_they_are_all_of_validation_fails(report: Report) -> None:
    """The same time as the report has in that category, in both measures."""
    whole = json.loads(report("--format", "json", "--by", "node"))
    time = whole["validation_failures"]["total"]["time"]["cpu"]
    for measure in ("resource_seconds", "canonical_seconds"):
        assert whole["total"]["categories"]["cpu"][measure]["validation_fails"] == time[measure]
    assert whole["total"]["analyze_entries"]["failed_validation_share_of_pilots"] == 7 / 9


def test_csv(report: Report) -> None:
    """The same lines, and nothing else."""
    lines = list(csv.DictReader(io.StringIO(report("--format", "csv"))))
    groups = failures(report)["groups"]
    assert len(lines) == len(groups)
    for line, group in zip(lines, groups, strict=True):
        for name in ("site", "entry", "node", "class", "test"):
            assert line[name] == (group[name] or "")
        assert int(line["pilots"]) == group["pilots"]
        seconds = group["time"]["cpu"]["canonical_seconds"]
        assert float(line["time_cpu_canonical_seconds"]) == seconds


def test_table(report: Report) -> None:
    """What is not told is said so."""
    text = report()
    assert "Validation failures of pilots that ended, by entry and node" in text
    row = re.compile(r"^ +WN_Resource +main/validate_node.sh +(.*)$", re.MULTILINE)
    first, *_ = row.findall(text)
    assert first.split() == ["3", "5", "60%", "4.0", "n/k", "n/k", "4.0", "8.0"]
    assert re.search(r"^ +\(not recorded\) +check_proxy.sh ", text, re.MULTILINE)
    assert "sum to these" in re.sub(r"\s+", " ", text)


def test_what_was_asked_for_comes_first(report: Report) -> None:
    """By class and test, then by entry and node, and only then where time went."""
    text = report("--format", "markdown")
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert ["class and test" in title for title in titles[:3]] == [True, False, False]
    assert ["entry and node" in title for title in titles[:3]] == [False, True, False]
    first, second = (text.index(title) for title in titles[:2])
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text[first:second].splitlines()
        if line.startswith("|")
    ][2:]
    assert [row[:6] for row in rows] == [
        ["WN_Resource", "main/validate_node.sh", "1", "2", "4", "44%"],
        ["VO_Proxy", "check_proxy.sh", "2", "1", "2", "22%"],
        ["(not recorded)", "check_proxy.sh", "1", "1", "1", "11%"],
        ["all", "", "", "", "7", "78%"],
    ]
    assert "The share is of all 9 pilots that ended" in text[first:second]
    assert [row[6] for row in rows] == ["4.7", "1.7", "0.3", "6.7"]


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_the_list_is_bounded(report: Report, form: str) -> None:
    """The nodes with most failures; it is said how many lines and pilots are left out."""
    text = report("--format", form, "--limit", "2")
    listed = text[text.index("by entry and node: their") :]
    listed = listed[: listed.index("CPUs: canonical hours")]
    said = re.sub(r"\s+", " ", html.unescape(listed).replace("\\", ""))
    assert "Only the first 2 lines: 3 more have 3 pilots (--limit 0 shows all)." in said
    assert ("e1" in listed, "e2" in listed, "n3" in listed) == (True, False, False)
    for every in (report("--format", form), report("--format", form, "--limit", "0")):
        assert "n3" in every
        assert "Only the first" not in every


def test_the_list_is_bounded_unless_one_says_otherwise() -> None:
    """Of very many nodes the first are shown; CSV and JSON have all."""
    found = Failures()
    for number in range(MOST + 5):
        key = FailureKey("Site", "e", f"n{number:02}", "Network", "a.sh")
        found.of[key] = PilotSums(1)
        found.ended[key.place] = 2
    only = Reported(Scope(Period(0, HOUR_US), ("site",)), {}, Group(), {}, False, found)
    assert len(tables(only)[1].rows) == MOST
    assert (tables(only)[1].total or ())[5:7] == (str(MOST + 5), str(2 * (MOST + 5)))
    assert len(tables(only._replace(most=0))[1].rows) == len(found.records()) == MOST + 5


def test_numbers_of_what_is_left_out() -> None:
    """One is not many."""

    def left_out(lines: int, pilots: int, most: int) -> str:
        found = Failures()
        for number in range(lines):
            found.of[FailureKey("Site", "e", f"n{number}", "Network", "a.sh")] = PilotSums(pilots)
        note = found.tables(most)[1].note.removeprefix(FIRST)
        return note.partition(" (")[0].strip()

    assert left_out(3, 1, 2) == "Only the first 2 lines: 1 more has 1 pilot"
    assert left_out(2, 5, 1) == "Only the first 1 line: 1 more has 5 pilots"
    assert left_out(4, 1, 2) == "Only the first 2 lines: 2 more have 2 pilots"
    assert left_out(2, 1, 2) == ""


@pytest.mark.parametrize("limit", ["-1", "x", "", "²", "٣", "1.5"])
def test_a_limit_that_is_none(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told so."""
    with pytest.raises(SystemExit):
        cli.main(["report", "--failures", f"--limit={limit}"])
    assert f"{limit!r} is not a number of lines, 0 or more" in capsys.readouterr().err


def test_a_limit_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Other tables have none."""
    assert cli.main(["report", "--limit", "5"]) == EXIT_BAD_CONFIG
    assert "--limit is for --failures" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_names_are_escaped(report: Report, form: str) -> None:
    """A node may have any name."""
    text = report("--format", form)
    assert "Validation failures of pilots that ended" in text
    assert HOSTILE not in text
    assert {"markdown": r"\<b>\|n\*", "html": "&lt;b&gt;|n*"}[form] in text


def test_of_a_place_only(report: Report) -> None:
    """As the whole report is."""
    groups = failures(report, "--entry", "e2", "--by", "user")["groups"]
    assert {group["entry"] for group in groups} == {"e2"}
    assert failures(report, "--site", "Other") == {
        "groups": [],
        "total": failures(report, "--site", "Other")["total"],
    }
    assert failures(report, "--site", "Other")["total"]["share_of_pilots"] is None


def test_where_none_failed() -> None:
    """A sentence, not headers and a line of zeros; no second table."""
    none = Failures()
    (table,) = none.tables(MOST)
    assert table.instead == "None: no pilot ended in the period."
    none.ended["site", "e1", "n1"] = 3
    (table,) = none.tables(MOST)
    assert table.instead == "None: 3 pilots ended in the period, and none of them failed."


def test_not_with_a_style(capsys: pytest.CaptureFixture[str]) -> None:
    """That has a layout of its own."""
    assert cli.main(["report", "--failures", "--style", "analyze-entries"]) != 0
    assert "--failures: not with --style" in capsys.readouterr().err


@pytest.mark.parametrize("by", ["failure", "failure,entry", "entry,failure"])
def test_failures_come_first(report: Report, by: str) -> None:
    """Whatever is larger, pilots whose validation did not fail come last."""
    groups = json.loads(report("--by", by, "--format", "json"))["groups"]
    failed = [bool(group["failure"]) for group in groups]
    assert failed == sorted(failed, reverse=True)
    assert {True, False} == set(failed)


def test_the_list_of_pilots_says_why(ledger: Path, printed: Report) -> None:
    """Of one that only advertised it, too."""
    told = printed("pilots", "--ledger", ledger, "--past", "--name", "glidein_1_2")
    assert "failed validation: check_proxy.sh" in told


@pytest.mark.parametrize(
    ("failure", "parts"),
    [
        ("WN_Resource a b", ("WN_Resource", "a b")),
        ("other x", ("other", "x")),
        ("Disk N full", ("", "Disk N full")),
        ("", ("", "")),
    ],
)
def test_what_a_failure_is_made_of(failure: str, parts: tuple[str, str]) -> None:
    """The class is one of GlideinWMS's, or not known."""
    assert split(failure) == parts
