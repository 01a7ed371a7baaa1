"""``gwmond report``, as it is typed, on a real ledger: the same numbers in every format."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gwmond import cli
from gwmond.commands.common import EXIT_FAILED
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.model.pilot_life import Category
from gwmond.model.times import HOUR_US, Period
from gwmond.reports.render.categories import CATEGORIES, CORES, CPU, GPU
from gwmond.reports.render.formats import flatten, words
from gwmond.reports.render.html import template
from gwmond.reports.render.markdown import escape
from gwmond.reports.render.periods import rfc3339
from gwmond.reports.render.table import Column, Table
from gwmond.reports.report.report import SITE_STATES, Group, Key, Scope
from gwmond.reports.report.report import Report as Reported
from gwmond.reports.report.report_document import measures, notes
from tests.browser import LAPTOP, PAPER, Layout, chromium, layout, printed
from tests.build.pilot_ledger import write
from tests.ledger.pilot_batches import batch

Report: TypeAlias = Callable[..., str]
Run: TypeAlias = Callable[..., tuple[int, str, str]]
HOSTILE = "<script>alert(1)</script>|*_`"
DAY = "--from", "2023-11-15", "--to", "2023-11-16"
BYS = (
    *(
        "site",
        "entry",
        "group",
        "user",
        "project",
        "accounting_group",
        "schedd",
        "factory",
        "node",
        "gpu_model",
        "institution",
        "failure",
    ),
    *("category", "outcome", "transfer", "hour", "day"),
)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    write(str(path), hostile=HOSTILE)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some fifty pilots over three quarters of a day, with corrections and estimates."""
    path = tmp_path_factory.mktemp("large") / "ledger.sqlite"
    with Ledger.open(str(path)) as writer:
        for number in range(1, 37):
            writer.commit(batch(number))
    return path


@pytest.fixture
def report(printed: Report) -> Report:
    return partial(printed, "report", "--ledger")


def as_json(report: Report, ledger: Path, by: str, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(report(ledger, "--by", by, "--format", "json", *DAY, *more))
    return found


def cpu(group: dict[str, Any]) -> dict[str, float]:
    every = group["categories"]["cpu"]["canonical_seconds"]
    return {name: seconds for name, seconds in every.items() if seconds}


def test_by_site(report: Report, ledger: Path) -> None:
    found = as_json(report, ledger, "site")
    assert found["basis"] == "time_spent"
    assert found["period"]["from"] == "2023-11-15T00:00:00Z"
    a, b = found["groups"]
    assert (a["site"], b["site"]) == ("Site-A", f"Site-B{HOSTILE}")
    assert cpu(a) == {"goodput": 9000.0, "preemption_badput": 4800.0, "pilot_overhead": 15_960.0}
    assert cpu(b) == {"decision_problem": 14_400.0}
    assert a["efficiency"]["cpu"] == {"resource": 9000 / 29_760, "canonical": 9000 / 29_760}
    assert a["utilization"]["cpu"]["canonical"] == 13_800 / 29_760
    assert b["utilization"]["cpu"]["canonical"] == 0.0
    assert a["unsettled"]["cpu"]["canonical_seconds"] == 4 * (30_000 - 3600 - 240)
    assert a["settled_share"]["cpu"]["canonical"] == 29_760 / (29_760 + 4 * 26_160)
    assert (a["pilots_ended"], a["runs_ended"], b["runs_ended"]) == (1, 3, 0)
    site = a["site_time"]["cpu"]
    assert site["provisioning_bottleneck_canonical_seconds"] == 7200.0
    assert site["insufficient_demand_canonical_seconds"] == 1800.0
    # Nothing was recorded of its state, which is not the same as 0.
    assert b["site_time"]["cpu"]["provisioning_bottleneck_canonical_seconds"] is None
    assert b["efficiency"]["gpu"]["canonical"] is None


def test_the_figures_that_operators_know(report: Report, ledger: Path) -> None:
    """As the facts of analyze_entries define them, of pilots that ended."""
    found = as_json(report, ledger, "entry")
    figures = {of["entry"]: of["analyze_entries"] for of in found["groups"]}["entry-a"]
    assert figures == {
        "pilots": 1,
        "jobs": 3,
        "jobs_per_pilot": 3.0,
        "average_job_length_seconds": (3600 + 1800 + 1200) / 3,
        "total_core_seconds": 28_800.0,
        "used_core_seconds": 13_800.0,
        "waste_core_seconds": 15_000.0,
        "badput_core_seconds": 28_800.0 - 7200,
        "failed_validation_core_seconds": 0.0,
        "idle_core_seconds": 15_000.0,
        "not_known_core_seconds": 0.0,
        "slots": 28_800 / 86_400,
        "used_per_waste": 13_800 / 15_000,
        "efficiency": 13_800 / 28_800,
        "goodput_fraction": 7200 / 28_800,
        "failed_validation_share_of_pilots": 0.0,
        "without_jobs_share_of_pilots": 0.0,
        "pilots_with_known_start": 1,
        "pilots_with_known_jobs": 1,
        "pilots_with_known_number_of_jobs": 1,
        "pilots_with_jobs_by_statistics": 0,
        "used_by_statistics_core_seconds": 0.0,
        "good_by_statistics_core_seconds": 0.0,
        "failed_validation_share_of_time": 0.0,
        "idle_share": 15_000 / 28_800,
        "not_known_share": 0.0,
        "waste_share": 15_000 / 28_800,
        "badput_share": 21_600 / 28_800,
    }
    total = found["total"]["analyze_entries"]
    assert (total["pilots"], total["jobs"], total["without_jobs_share_of_pilots"]) == (2, 3, 0.5)
    text = report(ledger, "--by", "entry", *DAY)
    assert "Jobs: 3 (avg jobs/pilot: 1.50, avg job length: 0.61h)" in text
    assert "Time efficiency: 0.32   Goodput fraction: 0.17" in text


def test_by_user(report: Report, ledger: Path) -> None:
    """Runs that ended; what no user had a part in is not known of users, so it is absent."""
    found = as_json(report, ledger, "user")
    assert found["basis"] == "runs_ended"
    users = {of["user"]: of for of in found["groups"]}
    assert set(users) == {"alice@example.org", "bob@example.org"}  # carol's still runs
    alice = users["alice@example.org"]
    assert cpu(alice) == {"goodput": 7200.0, "preemption_badput": 4800.0}
    assert "pilot_overhead" not in alice["categories"]["cpu"]["canonical_seconds"]
    assert alice["utilization"]["cpu"]["canonical"] is None
    assert alice["unsettled"]["cpu"]["canonical_seconds"] is None
    assert alice["pilots_ended"] is alice["analyze_entries"]["pilots"] is None
    assert (alice["runs_ended"], alice["runs_ended_not_settled"]) == (2, 0)


def test_by_factory_and_node(report: Report, ledger: Path) -> None:
    """Pilots that ended, with their whole lives: one that ended at two has not ended before."""
    for by in ("factory", "node"):
        found = as_json(report, ledger, by)
        assert found["basis"] == "pilots_ended"
        assert cpu(found["total"]) == {
            "goodput": 9000.0,
            "preemption_badput": 4800.0,
            "pilot_overhead": 15_000.0,
            "decision_problem": 14_400.0,
        }
        assert found["total"]["settled_share"]["cpu"]["canonical"] == 1.0
    early = json.loads(
        report(ledger, "--by", "node", "--format", "json", *DAY[:3], "2023-11-15T02:00:00Z")
    )
    second, first = early["groups"]
    assert (second["node"], second["pilots_ended"]) == ("wn2.example.org", 1)
    assert (first["node"], first["pilots_ended"], first["runs_ended"]) == ("wn1.example.org", 0, 2)
    assert cpu(first) == {}


def test_many_runs_in_few_hours_are_said() -> None:
    """A black hole is far down where groups are in the order of their hours."""
    period = Period(0, 24 * HOUR_US)

    def found(by: tuple[str, ...], hole: int) -> list[str]:
        groups: dict[Key, Group] = {
            key: Group(Counter({(*CPU, Category.GOODPUT): hours * HOUR_US}), runs=runs)
            for key, hours, runs in ((("a", "exit_zero"), 100, 100), (("b", "early_exit"), 1, hole))
        }
        total = Group(Counter({(*CPU, Category.GOODPUT): 101 * HOUR_US}), runs=100 + hole)
        scope = Scope(period, by)
        return [note for note in notes(Reported(scope, groups, total, {}, True)) if "Many" in note]

    (note,) = found(("node", "outcome"), 50)
    assert "b / early_exit (50 runs, 1.0 h)" in note
    assert found(("node", "outcome"), 19) == found(("site", "outcome"), 50) == []


@pytest.mark.parametrize(
    ("by", "said"), [(("outcome",), True), (("site", "category"), True), (("site",), False)]
)
def test_runs_without_an_outcome_are_in_the_last_line(by: tuple[str, ...], *, said: bool) -> None:
    """A note says why the lines do not sum up to it."""
    found = Reported(Scope(Period(0, HOUR_US), by), {}, Group(open_runs=3), {}, False, None)
    assert any("only the last line has their number" in note for note in notes(found)) == said
    none = found._replace(total=Group(open_runs=0))
    assert not any("only the last line" in note for note in notes(none))


@pytest.mark.parametrize("by", [*BYS, "site,day", "user,site", "category,outcome", "node,hour"])
@pytest.mark.parametrize("which", ["ledger", "large"])
def test_sums_are_sums(report: Report, by: str, which: str, request: pytest.FixtureRequest) -> None:
    """Groups sum up to all; hours to hours, lives to lives; and CSV is what JSON is."""
    path: Path = request.getfixturevalue(which)
    found = as_json(report, path, by)
    assert found["groups"]
    for resource in ("cpu", "gpu"):
        for measure in ("resource_seconds", "canonical_seconds"):
            whole = found["total"]["total"][resource][measure]
            parts = [of["total"][resource][measure] for of in found["groups"]]
            assert sum(parts) == pytest.approx(whole, abs=1e-6)
            series = [sum(of["categories"][resource][measure].values()) for of in found["series"]]
            assert sum(series) == pytest.approx(whole, abs=1e-6)
            for of in found["groups"]:
                every = of["categories"][resource][measure].values()
                assert sum(every) == pytest.approx(of["total"][resource][measure], abs=1e-6)
    for name in ("pilots_ended", "runs_ended"):
        if found["total"][name] is not None:
            assert sum(of[name] for of in found["groups"]) == found["total"][name]
    text = report(path, "--by", by, "--format", "csv", *DAY)
    rows = list(csv.DictReader(io.StringIO(text)))
    for row, of in zip(rows, found["groups"], strict=True):
        told = {k: "" if v is None else str(v) for k, v in flatten(of).items()}
        assert row == told


def test_verdicts_that_pilots_checked(report: Report, large: Path) -> None:
    """By state, and of how many how many were right, as counted by hand from the ledger's rows."""
    with LedgerReader.open(str(large)) as reader:
        rows = [
            experiment
            for experiment in reader.experiments(0, 10**17)
            if experiment.agreed is not None
        ]
    day = [row for row in rows if rfc3339(row.registered_us)[:10] == "2023-11-15"]
    assert len(rows) > len(day) > 5
    found = as_json(report, large, "entry")
    for state, told in found["total"]["verdicts_checked"].items():
        mine = [bool(key.agreed) for key in day if key.verdict.state == state]
        assert told == {"agreed": sum(mine), "disagreed": len(mine) - sum(mine)}
    agreed = sum(of["verdicts_checked"][s]["agreed"] for of in found["groups"] for s in SITE_STATES)
    assert agreed == sum(bool(key.agreed) for key in day)
    text = report(large, "--by", "entry", "--format", "markdown", *DAY)
    assert "verdicts right" in text
    assert f"{100 * agreed / len(day):.0f}% of {len(day)}" in text
    assert "docs/verdicts.md" in text
    nobody = as_json(report, large, "user")["total"]["verdicts_checked"]
    assert nobody["insufficient_demand"] == {"agreed": None, "disagreed": None}


def test_hours_are_those_of_the_ledger(report: Report, large: Path) -> None:
    """All groupings of time spent have the same total: that of the ledger's hours."""
    with Ledger.open(str(large)) as reader:
        first, last = 1_700_006_400 // 3600, 1_700_092_800 // 3600 - 1
        wanted = sum(
            pilot_hour.micros
            for pilot_hour in reader.pilot_hours(first, last)
            if pilot_hour.series[:2] == ("cpu", "canonical")
        )
    assert wanted
    for by in ("site", "entry", "group", "category", "outcome", "hour", "day", "site,hour"):
        found = as_json(report, large, by)["total"]["total"]["cpu"]["canonical_seconds"]
        assert found == pytest.approx(wanted / 1e6, abs=1e-6)


def test_adjacent_periods_sum_up(report: Report, large: Path) -> None:
    """Whatever ended counts in exactly one period."""
    bounds = ["2023-11-14T22:00:00Z", "2023-11-15T03:00:00Z", "2023-11-15T08:00:00Z", "2023-11-17"]
    for by in ("user", "node", "site"):
        parts = [
            json.loads(report(large, "--by", by, "--format", "json", "--from", a, "--to", b))
            for a, b in [*pairwise(bounds), (bounds[0], bounds[-1])]
        ]
        for name in ("runs_ended", "pilots_ended"):
            numbers = [part["total"][name] for part in parts]
            assert None in numbers or sum(numbers[:-1]) == numbers[-1]
        amounts = [part["total"]["total"]["cpu"]["resource_seconds"] for part in parts]
        assert sum(amounts[:-1]) == pytest.approx(amounts[-1], abs=1e-6)


def test_estimates_and_what_is_not_settled(report: Report, large: Path) -> None:
    """Shares by hours and by whole lives are both between none and all, and known."""
    for by in ("site", "node"):
        total = as_json(report, large, by)["total"]
        assert 0 < total["estimated_share"]["cpu"]["canonical"] < 0.2
        assert 0.5 < total["settled_share"]["cpu"]["canonical"] <= 1


def test_only_some(report: Report, ledger: Path) -> None:
    found = as_json(report, ledger, "site", "--entry", "entry-a")
    assert cpu(found["total"])["pilot_overhead"] == 15_000.0
    assert found["total"]["pilots_ended"] == 1
    grouped = as_json(report, ledger, "site", "--group", "none")
    assert grouped["groups"] == []
    assert "Nothing was settled" in report(ledger, "--group", "none", *DAY)


def test_hours_only(report: Report, ledger: Path) -> None:
    """Fast: nothing is counted, which is not zero."""
    found = as_json(report, ledger, "site", "--hours-only")["groups"][0]
    assert found["pilots_ended"] is found["runs_ended"] is None
    assert found["analyze_entries"]["pilots"] is None
    assert cpu(found)["goodput"] == 9000.0


def test_table_and_markdown_have_the_same_numbers(report: Report, ledger: Path) -> None:
    text = report(ledger, *DAY)
    (line,) = [line for line in text.splitlines() if re.match(r"Site-A\s+8.3\s+67.4%", line)]
    assert re.search(r"2\.5\s+30%", line)
    assert re.search(r"^Site-A.*30\.2%\s+46\.4%", text, re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 120
    marked = report(ledger, "--format", "markdown", *DAY)
    assert "| Site-A | 8.3 | 67.4% |" in marked
    assert r"Site-B\<script>alert(1)\</script>\|\*\_\`" in marked
    assert r"\(" not in marked
    assert HOSTILE not in marked
    rows = [line for line in marked.splitlines() if line.startswith("| Site")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows[:2]}) == 1


_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@given(st.text(st.sampled_from("ab _*`~[](){}<>!&;#+-=|\\/.:1"), max_size=12))
@example("a &amp; &#35; <br> <!-- -->")
@example("![x](http://y) __a__ a_b ~~c~~")
def test_markdown_shows_what_was_escaped(text: str) -> None:
    """A renderer shows a cell and a sentence as they are, and nothing else becomes of them."""
    shown = html.escape(" ".join(text.split()))
    made = _MARKDOWN.render(f"A: {escape(text)}")
    assert made == f"<p>{f'A: {shown}'.strip()}</p>\n"
    cells = re.findall("<td>(.*)</td>", _MARKDOWN.render(f"| A |\n|---|\n| {escape(text)} |"))
    assert cells == [shown]


@pytest.mark.parametrize("text", ["(0s ago)", "of 2023-11-15 (2 of 3), a_b", "node#1.0 + 3 > 2!"])
def test_markdown_has_no_needless_escapes(text: str) -> None:
    assert escape(text) == text


class _Tags(html.parser.HTMLParser):
    """Finds whatever a page should not have, and its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.cells: list[str] = []
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag == "td":
            self.cells.append("")
        if tag not in {"meta", "br", "wbr"}:
            self.open.append(tag)
        self.bad += [f"{name}={value}" for name, value in attrs if name in {"src", "href"}]
        self.bad += [name for name, _ in attrs if name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def test_html_is_one_file(report: Report, ledger: Path, tmp_path: Path) -> None:
    """It fetches and runs nothing, escapes all names, and has the table's numbers."""
    path = tmp_path / "report.html"
    assert report(ledger, "--format", "html", "--output", path, *DAY) == ""
    text = path.read_text()
    page = _Tags()
    page.feed(text)
    assert page.open == []
    assert page.bad == []
    assert "script" not in page.seen
    assert {"svg", "rect", "table"} <= page.seen
    assert f"Site-B{HOSTILE}" in page.cells
    assert {"8.3", "67.4%", "30.2%"} <= set(page.cells)
    assert "goodput 2.5 h (30.2%)" in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_bars_of_very_many_groups(report: Report, large: Path) -> None:
    """The largest is first and fills the width; the others are told of, and have no bar."""
    text = report(large, "--by", "site,hour", "--format", "html", *DAY)
    found = as_json(report, large, "site,hour")["groups"]
    hours = sorted((sum(cpu(of).values()) / 3600 for of in found if cpu(of)), reverse=True)
    assert len(hours) > 25
    heading = "<h2>By site and hour: canonical hours of CPUs (the 25 largest)</h2>"
    figure = text[text.index(heading) :].partition("</section>")[0]
    told = [float(of.replace(",", "")) for of in re.findall(r">([\d,.]+) h</text>", figure)]
    assert told == [pytest.approx(hour, abs=0.051) for hour in hours[:25]]
    (others,) = re.findall(r"<p class=\"soft\">(\d+) others: ([\d,.]+) h together</p>", figure)
    assert int(others[0]) == len(hours) - 25
    assert float(others[1].replace(",", "")) == pytest.approx(sum(hours[25:]), abs=0.051)
    widths = [float(of) for of in re.findall(r'<rect [^>]*y="4.00" width="([\d.]+)"', figure)]
    assert sum(widths) == pytest.approx(960 - 230 - 110, abs=0.1)


def test_bars_in_the_order_of_time(report: Report, large: Path) -> None:
    """Where the first key is time, bars are as time goes; few groups have no others."""
    text = report(large, "--by", "hour,site", "--format", "html", *DAY)
    figure = text[text.index("<h2>By hour and site:") :].partition("</section>")[0]
    labels = re.findall(r'class="label"[^>]*>([^<]+)<', figure)
    assert labels == sorted(labels, key=lambda label: label[:16])
    few = report(large, "--by", "site", "--format", "html", *DAY)
    assert " others: " not in few


def test_core_hours_that_are_canonical_hours_are_shown_once(report: Report, ledger: Path) -> None:
    """One table where both measures agree, with a title that says so."""
    text = report(ledger, *DAY)
    assert "CPUs: canonical hours (core-hours are the same)" in text
    assert "CPUs: core-hours" not in text


def as_table(
    title: str, headers: tuple[str, ...], *lines: tuple[str, ...], names: int = 1
) -> Table:
    """Lines that are written by hand; the last is the total."""
    columns: tuple[Column[None], ...] = tuple(
        Column(header, lambda _: "", name=at < names, share=header == "%")
        for at, header in enumerate(headers)
    )
    return Table(title, columns, lines[:-1], lines[-1])


def test_of_core_hours_only_rows_that_differ_are_shown() -> None:
    """The table of canonical hours has columns more, and says of the second what is not there."""
    lines = ("a", "1.0", "9"), ("b", "2.0", "9"), ("c", "3.0", "9"), ("all", "6.0", "27")
    headers = ("site", "total", "runs")
    canonical = as_table("CPUs: canonical hours", headers, *lines)
    resource = as_table("CPUs: core-hours", headers[:2], *(line[:2] for line in lines))
    other = as_table("GPUs", headers, *lines)

    def shown(resource: Table) -> list[Table]:
        return measures({CPU: canonical, CORES: resource, GPU: other})

    first, second = shown(resource)
    assert (first.title, first.rows) == (
        "CPUs: canonical hours (core-hours are the same)",
        canonical.rows,
    )
    assert second == other
    same = lines[0][:2], lines[2][:2]
    (_, found, _) = shown(as_table("", headers[:2], same[0], ("b", "2.5"), same[1], ("all", "6.5")))
    assert (found.rows, found.total) == ((("b", "2.5"),), ("all", "6.5"))
    assert found.note == "Rows that are not here have the same core-hours as canonical hours."
    other_lines = ("a", "2.0"), ("b", "2.5"), ("c", "7.0"), ("all", "11.5")
    everywhere = as_table("", headers[:2], *other_lines)
    assert shown(everywhere)[1] == everywhere


def test_html_in_a_browser(report: Report, large: Path, tmp_path: Path) -> None:
    """A real browser draws it, with nothing to scroll sideways on a laptop, and prints it."""
    path = tmp_path / "report.html"
    report(large, "--by", "site,entry", "--failures", "--format", "html", "--output", path, *DAY)
    text = path.read_text()
    assert layout(text, LAPTOP, tmp_path).scrolled == []
    assert layout(printed(text), PAPER, tmp_path).scrolled == []
    for how, made in (("screenshot", "page.png"), ("print-to-pdf", "page.pdf")):
        chromium(f"--{how}={tmp_path / made}", path.as_uri(), profile=tmp_path / "profile")
        assert (tmp_path / made).stat().st_size > 10_000


def test_the_widest_table_fits_a_laptop_and_paper(
    report: Report, ledger: Path, tmp_path: Path
) -> None:
    """All columns, each with a large number: shares are below what they are shares of then."""
    parts = [header for name in CATEGORIES for header in (words(name), "%")]
    last = ("efficiency", "utilization", "estimated", "settled", "bottleneck", "no demand")
    headers = ("site", "user", "total", "of all", *parts, *last)
    headers = (*headers, "verdicts right", "pilots", "runs", "runs open")
    names = ("T2_US_Some_University_Far", "user-2318f626@demo.example", "123,456.7", "100.0%")
    cells = (*names, *("12,345.6", "100%") * len(CATEGORIES), *("100.0%",) * 4)
    cells = (*cells, "123,456.7", "123,456.7", "100% of 1234", "12345", "123456", "1234")
    whole = report(ledger, "--format", "html", *DAY)
    wide = as_table("wide", headers, *[cells] * 4, names=2)
    made = vars(template("table.html.j2").module)["table"](wide)
    text = f"{whole.partition('<body>')[0]}<body>{made}</body></html>"
    assert layout(text, LAPTOP, tmp_path) == Layout([], 1)
    assert layout(printed(text), PAPER, tmp_path) == Layout([], 1)


def test_a_file_that_cannot_be_written(
    ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "no" / "report.csv"
    arguments = ["report", "--ledger", str(ledger), "--output", str(there), *DAY]
    assert cli.main(arguments) == EXIT_FAILED
    assert "cannot write" in capsys.readouterr().err
