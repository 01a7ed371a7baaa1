"""``gwmond report --style``, as it is typed, on a real ledger whose sums are known."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from gwmond.ledger.store import Ledger
from gwmond.model.factory.totals import FactoryKey, FactoryKind
from gwmond.model.poll.batch import Batch
from gwmond.reports.factory_tools.analyze_entries import COLUMNS
from gwmond.reports.factory_tools.analyze_frontends import FIELDS
from gwmond.reports.render.formats import flatten
from tests.build.pilot_ledger import BASE, write

Report: TypeAlias = Callable[..., tuple[int, str, str]]
DAY = "--from", "2023-11-15", "--to", "2023-11-16"
ENTRIES = "--style", "analyze-entries"
FRONTENDS = "--style", "analyze-frontends"
GROUP = "frontend.main"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pilots, and an hour in which an entry's ads told of 12 registered slots."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    write(str(path), hostile="\x1b[2J|<b>")
    kinds = FactoryKind.CLIENT_SLOTS_TOTAL_SECONDS, FactoryKind.CLIENT_SLOTS_TOTAL_WATCHED_SECONDS
    amounts = {FactoryKind.WATCHED_SECONDS: 3000, kinds[0]: 36_000, kinds[1]: 3000}
    keys = {
        FactoryKey(BASE // 3600 + 2, "entry-a", GROUP, kind): number
        for kind, number in amounts.items()
    }
    with Ledger.open(str(path)) as writer:
        state = writer.load()
        writer.commit(Batch(state.batches, (BASE + 40_000) * 10**6, factory=keys))
    return path


@pytest.fixture
def report(ledger: Path, run: Report) -> Report:
    return partial(run, "report", "--ledger", ledger)


def parts(report: Report, *arguments: str) -> dict[tuple[str, str | None, str | None], Any]:
    code, told, err = report(*arguments, *DAY, "--format", "json")
    assert code == 0, err
    return {
        (one["part"], one["frontend"], one["entry"]): one for one in json.loads(told)["records"]
    }


def test_a_pilot_of_four_cores_counts_as_one(report: Report) -> None:
    """Jobs held 2 cores for 3600 s, 1 for 1800 s and 4 for 1200 s: 3450 of 7200 s are used."""
    found = parts(report, *ENTRIES)["entry", None, "entry-a"]
    assert (found["pilots"], found["jobs"], found["time_seconds"]) == (1, 3, 7200)
    assert found["used_seconds"] == (3600 * 2 + 1800 * 1 + 1200 * 4) / 4
    assert found["badput_seconds"] == 7200 - 3600 * 2 / 4
    assert found["nosuccess_seconds"] == (1800 * 1 + 1200 * 4) / 4
    assert found["average_job_length_seconds"] == (3600 + 1800 + 1200) / 3
    assert found["slots"] == 7200 / 86_400
    assert found["strt_share"] == 0
    # No output has told when its validation ended.
    assert (found["validating_seconds"], found["idle_seconds"], found["val_share"]) == (None,) * 3
    assert (found["pilots_with_known_start"], found["pilots_with_known_validation"]) == (1, 0)


def test_only_pilots_that_ended_in_the_period(report: Report) -> None:
    """The one that runs still does not count; the period is not made wider."""
    found = parts(report, *ENTRIES)
    assert found["total", None, None]["pilots"] == 2
    assert {entry for _, _, entry in found} == {None, "entry-a", "entry-b"}
    code, told, _ = report(*ENTRIES, "--from", "2023-11-15T00:30", "--to", "2023-11-15T01:30")
    assert code == 0
    assert "Period of 1.0 hours:" in told
    assert "Total Glideins: 1\n" in told


def test_filters(report: Report) -> None:
    """By site, entry and group."""
    only = parts(report, *ENTRIES, "--entry", "entry-b")
    assert only["total", None, None]["pilots"] == 1
    assert parts(report, *ENTRIES, "--site", "Site-A")["total", None, None]["jobs"] == 3
    assert parts(report, *ENTRIES, "--group", GROUP)["total", None, None]["pilots"] == 2
    assert parts(report, *ENTRIES, "--group", "x")["total", None, None]["pilots"] == 0
    slots = parts(report, *FRONTENDS, "--group", GROUP, "--entry", "entry-a")
    assert slots["total", None, None]["client_slots_total"] == 12
    assert parts(report, *FRONTENDS, "--entry", "x")["total", None, None]["asked_idle"] is None


@pytest.mark.parametrize("style", [ENTRIES, FRONTENDS])
def test_formats_agree(report: Report, style: tuple[str, ...]) -> None:
    """CSV has what JSON has; Markdown has the text, as code that nothing can break out of."""
    options = *style, *DAY, "--format"
    records = json.loads(report(*options, "json")[1])["records"]
    lines = list(csv.DictReader(io.StringIO(report(*options, "csv")[1])))
    for row, record in zip(lines, records, strict=True):
        flat = {name: "" if v is None else str(v) for name, v in flatten(record).items()}
        assert row == flat
    text = report(*options, "table")[1]
    markdown = report(*options, "markdown")[1]
    start = text.index("-" * 40)
    for line in text[start:].splitlines():
        assert f"    {line}" in markdown.splitlines()
    assert "\x1b" not in text + markdown


def test_frontends(report: Report) -> None:
    """The mean over the time in which it was told; what was not told is not 0."""
    text = report(*FRONTENDS, *DAY)[1]
    assert "They were watched for 0.8 of 24.0 hours." in text
    (line,) = {line for line in text.splitlines() if line.startswith("entry-a ")}
    assert line.split() == [
        "entry-a",
        "12.0",
        *("-", "-", "|", "-", "|"),
        *("-", "-", "-", "|"),
        *"---",
    ]
    assert f"\nfrontend_{GROUP} " in report(*FRONTENDS, *DAY, "--by", "group")[1]
    hours = "--from", "2023-11-15T02:30", "--to", "2023-11-15T03:30"
    assert "for 0.8 of 2.0 hours." in report(*FRONTENDS, *hours)[1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((*ENTRIES, "--format", "html"), "--format html: not with --style"),
        ((*ENTRIES, "--hours-only"), "--hours-only: not with --style"),
        ((*ENTRIES, "--failures"), "--failures: not with --style"),
        ((*ENTRIES, "--by", "user"), "is by entry (the default) or group"),
        ((*ENTRIES, "--sort", "regd"), "there is only strt, fval, 0job, val"),
        ((*FRONTENDS, "--sort", "val"), "registered"),
        ((*FRONTENDS, "--site", "Site-A"), "--site: what --style analyze-frontends tells"),
        (("--sort", "val"), "--sort is for --style"),
    ],
)
def test_what_cannot_be_asked(report: Report, arguments: tuple[str, ...], told: str) -> None:
    """An error that says what can be."""
    code, out, err = report(*arguments)
    assert (code != 0, out) == (True, "")
    assert told in err


@pytest.mark.parametrize("sort", ["RunDiff", "registered", "%um", "Regd"])
def test_names_to_sort_by(report: Report, sort: str) -> None:
    """Columns, and the original's names, in any case."""
    assert report(*FRONTENDS, *DAY, "--sort", sort)[0] == 0


def test_an_empty_period(report: Report) -> None:
    """It is said, and of pilots also which hours there are."""
    for style in (ENTRIES, FRONTENDS):
        for by in ("entry", "group"):
            code, text, err = report(
                *style, "--from", "2001-01-01", "--to", "2001-01-02", "--by", by
            )
            assert code == 0
            assert "in this period" in text
            said = "nothing in this period: the ledger has the hours from 2023-11-1" in err
            assert said == (style == ENTRIES)
    for style in (ENTRIES, FRONTENDS):
        _, _, err = report(*style, *DAY, "--entry", "no-such")
        assert "the ledger knows no pilot at all of --entry no-such: are the names right?" in err
        _, _, err = report(*style, *DAY, "--entry", "entry-a")
        assert "are the names right" not in err


@pytest.mark.parametrize(("terminal", "width"), [(True, 90), (False, 120)])
def test_notes_have_the_room_of_tables(
    report: Report, monkeypatch: pytest.MonkeyPatch, terminal: bool, width: int
) -> None:
    """That of the terminal, if it is one."""
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    code, text, _ = report(*ENTRIES, *DAY)
    assert code == 0
    notes = text.partition("\n\n")[0].splitlines()[2:]
    assert width - 20 < max(map(len, notes)) <= width


def test_the_page_that_explains_it() -> None:
    """It has every column."""
    page = (Path(__file__).parent.parent.parent / "docs" / "analyze.md").read_text()
    for column in (*COLUMNS, *FIELDS, "RunDiff", "%UM", "%RD"):
        assert f"`{column}`" in page
