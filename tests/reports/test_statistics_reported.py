"""Reports of pilots whose jobs are known from statistics only; all is computed by hand.

See ``by_hand`` for the pilots: of B and S only statistics tell, R has a run, F and N failed.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.build.command_line import gwmond
from tests.build.gwms import by_hand
from tests.build.gwms.by_hand import BASE, PERIOD

Run: TypeAlias = Callable[..., tuple[int, str, str]]
Tell: TypeAlias = Callable[..., str]
HEAD = "Of 2 of 5 pilots that ended the jobs are known from statistics only"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A ledger into which the five pilots were imported."""
    root = tmp_path_factory.mktemp("factory")
    by_hand.write(root / "files")
    url = f"sqlite:///{root}/ledger.sqlite"
    done = gwmond("import", "--ledger", url, root / "files")
    assert done.returncode == 0, done.stderr
    return url


@pytest.fixture
def tell(ledger: str, printed: Tell) -> Tell:
    """Runs a command on the day of the pilots."""
    return lambda command, *more: printed(command, "--ledger", ledger, *PERIOD, *more)


def groups(tell: Tell) -> dict[str, dict[str, Any]]:
    """The report's groups by entry, and the total."""
    found = json.loads(tell("report", "--by", "entry", "--format", "json"))
    return {**{of["entry"]: of for of in found["groups"]}, "total": found["total"]}


def styled(tell: Tell) -> dict[str | None, dict[str, Any]]:
    """The records of analyze-entries by entry; None: all."""
    text = tell("report", "--style", "analyze-entries", "--format", "json")
    every = json.loads(text)["records"]
    return {of["entry"]: of for of in every if of["part"] in {"total", "entry"}}


def test_jobs_are_not_known(tell: Tell) -> None:
    """Neither how many they were, nor how long each lasted: that is not 0, and none is idle."""
    found = groups(tell)
    for entry in "BS":
        record = found[entry]
        assert record["runs_ended"] == 0
        figures = record["analyze_entries"]
        for name in ("jobs", "jobs_per_pilot", "average_job_length_seconds"):
            assert figures[name] is None
        assert (figures["without_jobs_share_of_pilots"], figures["pilots_with_known_jobs"]) == (
            0,
            1,
        )
        assert figures["pilots_with_jobs_by_statistics"] == 1
    total = found["total"]["analyze_entries"]
    assert (total["jobs"], total["pilots_with_known_number_of_jobs"]) == (1, 3)
    assert (total["jobs_per_pilot"], total["average_job_length_seconds"]) == (1 / 3, 3600)
    assert (total["pilots"], total["pilots_with_jobs_by_statistics"]) == (5, 2)
    assert total["without_jobs_share_of_pilots"] == 2 / 5


def test_time_of_jobs_is_that_of_the_categories(tell: Tell) -> None:
    """B: 2500 s and 1000 s of 7200 s ended by themselves; S: 7000 s of 10,000 s."""
    found = groups(tell)
    for entry, cores, life, used, good in (
        ("B", 4, 7200, 4000, 3500),
        ("S", 1, 10_000, 9000 * 889 // 1000, 7000),
    ):
        figures = found[entry]["analyze_entries"]
        assert figures["total_core_seconds"] == cores * life
        assert figures["used_core_seconds"] == cores * used
        assert figures["used_by_statistics_core_seconds"] == cores * used
        assert figures["good_by_statistics_core_seconds"] == cores * good
        assert figures["badput_core_seconds"] == cores * (life - good)
        assert figures["goodput_fraction"] == good / life
        assert figures["goodput_fraction"] == found[entry]["shares"]["cpu"]["resource"]["goodput"]
        assert figures["idle_core_seconds"] == cores * (life - used)
    assert found["R"]["analyze_entries"]["goodput_fraction"] == 3600 / 28_800
    assert found["R"]["analyze_entries"]["used_by_statistics_core_seconds"] == 0


def test_the_head_says_so_and_figures_are_marked(tell: Tell) -> None:
    """In all formats that people read; and lines of pilots with runs have no mark."""
    text = tell("report", "--by", "entry")
    assert HEAD in text
    assert "Jobs: 1+n/k (avg jobs/pilot: 0.33, avg job length: 1.00h)" in text
    assert "Goodput fraction: ~0.30" in text
    section = text.partition("in the columns of analyze_entries")[2]
    lines = {
        line.split()[0]: line.split() for line in section.splitlines() if line[:2] in {"B ", "R "}
    }
    assert lines["B"][2:4] == ["n/k", "n/k"]
    assert lines["B"][-5:] == ["~4.4", "~3.6", "8.0", "~0.56", "~0.49"]
    assert lines["R"][2:4] == ["1", "1.00"]
    assert "~" not in " ".join(lines["R"])
    for form in ("markdown", "html"):
        page = tell("report", "--by", "entry", "--format", form)
        assert HEAD in page
        assert "1+n/k" in page
        assert "~0.49" in page
    assert any(HEAD in note for note in json.loads(tell("report", "--format", "json"))["notes"])


def test_csv(tell: Tell) -> None:
    """What is not known is empty, not 0."""
    text = tell("report", "--by", "entry", "--format", "csv")
    lines = {record["entry"]: record for record in csv.DictReader(io.StringIO(text))}
    assert (lines["B"]["analyze_entries_jobs"], lines["F"]["analyze_entries_jobs"]) == ("", "0")
    assert lines["S"]["analyze_entries_goodput_fraction"] == "0.7"
    text = tell("report", "--style", "analyze-entries", "--format", "csv")
    rows = {
        record["entry"]: record
        for record in csv.DictReader(io.StringIO(text))
        if record["part"] == "entry"
    }
    assert (rows["B"]["jobs"], rows["R"]["jobs"], rows["N"]["jobs"]) == ("", "1", "0")


def test_in_the_layout_of_analyze_entries(tell: Tell) -> None:
    """The same in wall-clock time, as a pilot of four cores counts once."""
    found = styled(tell)
    b, s, every = found["B"], found["S"], found[None]
    assert (b["jobs"], b["jobs_per_pilot"], b["average_job_length_seconds"]) == (None,) * 3
    assert (b["used_seconds"], b["badput_seconds"], b["nosuccess_seconds"]) == (4000, 3700, 500)
    assert (b["validating_seconds"], b["idle_seconds"]) == (100, 3100)
    assert (s["used_seconds"], s["badput_seconds"], s["goodput_fraction"]) == (8001, 3000, 0.7)
    assert (b["0job_share"], b["strt_share"]) == (0, 0)
    assert (every["jobs"], every["jobs_per_pilot"]) == (1, 1 / 3)
    assert every["average_job_length_seconds"] == 3600
    assert every["used_by_statistics_seconds"] == 4000 + 8001
    assert every["good_by_statistics_seconds"] == 3500 + 7000
    text = tell("report", "--style", "analyze-entries")
    assert re.sub(r"\s+", " ", text).count(HEAD) == 1
    assert "Total Jobs: 1+n/k (Avg jobs/glidein: 0.33, avg job len: 1.00h)" in text
    assert re.search(r"^Total time used: +~12\.9K ", text, re.MULTILINE)
    assert re.search(r"^B .* ~43\.1% ~44\.4% ~51\.4% ", text, re.MULTILINE)
    assert re.search(r"^R .* 86\.1%  87\.5%  87\.5% ", text, re.MULTILINE)
    text = tell("report", "--style", "analyze-entries", "--by", "group")
    assert re.search(r"~0\.1 ~47\.6%\| +0\.0  12\.5%\| .* ~0\.91 +~0\.48$", text, re.MULTILINE)


def test_reconcile_has_no_records_of_them(tell: Tell) -> None:
    """Their time is by summaries; a line is not compared with what is made of it."""
    text = tell("reconcile", "--format", "json")
    rows = {of["entry"]: of for of in json.loads(text)["entries"]}
    for entry, records, summaries in (("B", 0, 16_000), ("S", 0, 8001), ("R", 3600, 0)):
        of = rows[entry]
        assert of["job_core_seconds"] == records
        assert of["job_core_seconds_by_summaries"] == summaries
        assert of["job_core_seconds_by_category"] == records + summaries
        assert of["job_core_seconds_shared"] == 0
    assert rows["S"]["factory_job_seconds"] == 8000
    assert rows["S"]["factory_job_seconds_are"] is None
    table = tell("reconcile")
    (line,) = re.findall(r"^S +0\.00 +2\.22 +2\.22 +2\.22$", table, re.MULTILINE)
    assert line
    assert "which are" in table.partition("Not shown, as nothing is known of it: ")[2]


def test_the_list_of_pilots(tell: Tell) -> None:
    """How many runs there were is not known of B and S; F and N had none."""
    pilots = json.loads(tell("pilots", "--past", "--format", "json"))["pilots"]
    runs = {pilot["entry"]: pilot["runs"] for pilot in pilots}
    assert runs == {"B": None, "S": None, "R": 1, "F": 0, "N": 0}


def test_how_long_they_validated_and_slept(tell: Tell, ledger: str, run: Run) -> None:
    """F validated for 301 s and slept for 1199 s; of N nothing tells."""
    report = json.loads(tell("report", "--failures", "--format", "json"))["validation_failures"]
    f, n = sorted(report["groups"], key=lambda of: str(of["entry"]))
    names = "validating", "asleep", "not_known", "times_estimated"
    seconds = {
        of["entry"]: [of[name]["cpu"]["canonical_seconds"] for name in names] for of in (f, n)
    }
    assert seconds == {"F": [8 * 301, 8 * 1199, 0, 0], "N": [None, None, 1200, None]}
    assert report["total"]["pilots_with_known_validation_end"] == 1
    assert report["total"]["asleep"]["cpu"]["resource_seconds"] == 8 * 1199
    text = tell("report", "--failures")
    assert "asleep (from the failure to the end, deliberately)" in text
    row = r"^ +WN_Resource +main/validate_node.sh +1 +1 +100% +3\.3 +0\.7 +2\.7 +0\.0 +3\.3$"
    assert re.search(row, text, re.MULTILINE)
    assert re.search(r"n/k +n/k +0\.3 +0\.3$", text, re.MULTILINE)
    for name, expected in (
        ("4.0@", "validated for 5m01s, then asleep for 19m59s from 2025-11-01 11:11:41 on"),
        ("5.0@", "how long it validated, and then slept, is not known"),
        ("3.0@", "validated for 1m40s\n"),
    ):
        code, told, errors = run("pilot", name, "--ledger", ledger)
        assert code == 0, errors
        assert expected in told
    found = json.loads(run("pilot", "4.0@", "--ledger", ledger, "--format", "json")[1])
    assert (found["validating_seconds"], found["asleep_seconds"]) == (301, 1199)
    assert found["asleep_from_epoch_seconds"] == BASE + 40_301
    assert found["validating_and_asleep_estimated_seconds"] == 0
