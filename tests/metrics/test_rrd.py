"""docs/rrd.md: every value of GlideinWMS's databases has a metric that exists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

from gwmond.metrics import catalog, factory
from gwmond.model.factory.totals import FactoryKind
from gwmond.model.pilot_life import Category
from tests.metrics import golden

PAGE = Path(__file__).parent.parent.parent / "docs" / "rrd.md"
FAMILIES = {family.name: family for family in catalog.FAMILIES}
METRIC = re.compile(r"\bgwmond_[a-z_]+[a-z]\b(?!_|…)")
SELECTOR = re.compile(r"\b(gwmond_[a-z_]+)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')

# The names of the databases' values, as GlideinWMS makes them of attributes
# (factory/glideFactoryMonitoring.py and frontend/glideinFrontendMonitoring.py).
TIMES = ("Unknown", "Minutes", "30mins", "2hours", "8hours", "32hours", "Days")
JOBS = ("None", "1job", "2jobs", "4jobs", "16jobs", "Many")
MILLS = ("None", "5m", "25m", "100m", "250m", "500m", "Most", "All")
LOGGED = ("Running", "Idle", "Wait", "Held")


def names(prefix: str, *endings: str) -> set[str]:
    return {prefix + ending for ending in endings}


PILOTS = ("Idle", "Running", "Held", "Wait", "Pending", "StageIn", "IdleOther", "StageOut")
COUNTS = ("Total", "Idle", "Running")
NAMES: dict[str, set[str]] = {
    "The factory's RRDs/`Status_Attributes`": {
        *names("Status", *PILOTS, "RunningCores"),
        *names("Req", "Idle", "AdjustedIdle", "MaxGlideins", "IdleCores", "MaxCores"),
        *names("Client", "InfoAge", "JobsIdle", "JobsRunning", "JobsRunHere"),
        *names("ClientGlide", *COUNTS),
        *names("ClientCores", *COUNTS),
    },
    "The factory's RRDs/`Log_Counts`": {
        *names("Status", *LOGGED),
        *names("Entered", *LOGGED, "Completed", "Removed"),
        *names("Exited", *LOGGED),
    },
    "The factory's RRDs/`Log_Completed`": {
        *("Glideins", "FailedNr", "Lasted", "CondorLasted"),
        *names("Jobs", "Nr", "Lasted", "Goodput", "Terminated"),
    },
    "The factory's RRDs/`Log_Completed_Stats`": {
        *names("Lasted_", *TIMES),
        *names("JobsLasted_", *TIMES),
        *names("JobsNr_", *JOBS),
    },
    "The factory's RRDs/`Log_Completed_WasteTime`": {
        name
        for waste in ("validation", "idle", "nosuccess", "badput")
        for name in names(f"{waste}_", *MILLS)
    },
    "The frontend's RRDs/": {
        *names("Jobs", "Idle", "OldIdle", "Running", "Total", "Idle_3600"),
        *names("Glidein", *COUNTS),
        *names("MatchJob", "Idle", "EffIdle", "OldIdle", "Running", "RunningHere"),
        *names("MatchGlidein", *COUNTS, "Failed"),
        *names("MatchCore", *COUNTS),
        *names("Req", "Idle", "MaxRun"),
    },
}
# The lines of the report's figures, in its own order and words.
FIGURES = {
    "figure 12": (
        *("running glidein cores", "running glidein jobs", "max requested glideins"),
        *("cores at collector", "cores claimed by user jobs", "cores not matched"),
        *("user jobs running", "user jobs idle", "requested idle glideins"),
        *("idle glidein jobs", "info age"),
    ),
    "figure 13": (
        *(f"status: {line}" for line in ("running", "idle", "waiting", "pending", "staging in")),
        *(f"status: {line}" for line in ("staging out", "unknown", "held", "running cores")),
        *("requested: max glideins", "requested: idle"),
        *(f"client monitor: {line}" for line in ("claimed cores", "user run here")),
        *(f"client monitor: {line}" for line in ("user running", "unmatched cores", "user idle")),
        *(f"client monitor: {line}" for line in ("registered cores", "info age")),
    ),
    "figure 14": (
        *("running glideins", "glidein startup rate", "glidein termination rate"),
        *("glidein completion rate", "held rate"),
    ),
}


class Row(NamedTuple):
    """A row of a table: what the table is of, its heading, and its columns."""

    of: str
    heading: str
    cells: tuple[str, ...]

    @property
    def rrds(self) -> list[str]:
        return re.findall(r"`([^`]+)`", self.cells[0] if self.of == "RRD" else self.cells[1])

    @property
    def expressions(self) -> list[str]:
        """The PromQL of the row, wherever it stands in it."""
        cells = self.cells[1:] if self.of == "RRD" else self.cells[2:]
        return [e for cell in cells for e in re.findall(r"`([^`]+)`", cell) if "gwmond_" in e]


def rows() -> Iterator[Row]:
    """Every row of a table whose first column is of databases' names or of a figure's lines."""
    chapter = section = name = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            chapter, section = line.removeprefix("## "), ""
        elif line.startswith("### "):
            section = line.removeprefix("### ").partition(" (")[0]
        elif not line.startswith("|"):
            name = ""
        elif not name:
            name = line.split("|")[1].strip()
        elif not line.startswith("|---") and (name == "RRD" or name in FIGURES):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            plain = tuple(cell.strip().replace("\\|", "|") for cell in cells)
            yield Row(name, f"{chapter}/{section}", plain)


ROWS = list(rows())
each = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.of} {row.cells[0]}")


def promql() -> list[str]:
    """All PromQL of the page: in tables, and the indented examples."""
    text = PAGE.read_text()
    blocks = re.findall(r"(?:^ {4}.+\n)+", text, re.MULTILINE)
    whole = [e for row in ROWS for e in row.expressions if "gwmond report" not in e]
    return [*whole, *(block.strip() for block in blocks)]


def test_every_value_of_a_database_is_there() -> None:
    """Each database's table has all of its values, and nothing else."""
    of_rrds = [row for row in ROWS if row.of == "RRD"]
    assert {row.heading for row in of_rrds} == set(NAMES)
    for heading, expected in NAMES.items():
        patterns = [name for row in of_rrds if row.heading == heading for name in row.rrds[:1]]
        for name in expected:
            assert any(fnmatchcase(name, p) for p in patterns), f"{heading}: {name}"
        for pattern in patterns:
            assert any(fnmatchcase(name, pattern) for name in expected), f"{heading}: {pattern}"


@pytest.mark.parametrize("figure", FIGURES)
def test_every_line_of_a_figure_is_there(figure: str) -> None:
    """Each figure's table has its lines in the report's order, and says which RRD draws each."""
    known = {name for of_one in NAMES.values() for name in of_one}
    found = [row for row in ROWS if row.of == figure]
    assert tuple(row.cells[0] for row in found) == FIGURES[figure]
    assert all(set(row.rrds) <= known and len(row.rrds) == 1 for row in found)


def test_figures_and_tables_agree() -> None:
    """Where a figure's line and its RRD's own row are both plain metrics they are the same."""
    status = "The factory's RRDs/`Status_Attributes`"
    own = {row.rrds[0]: row.expressions[0] for row in ROWS if row.heading == status}
    for row in ROWS:
        if row.of in {"figure 12", "figure 13"}:
            assert row.expressions == [own[row.rrds[0]]]


@each
def test_a_row_names_a_metric(row: Row) -> None:
    """Each row has a metric in its column, and all that it names exist."""
    assert METRIC.search(row.cells[1] if row.of == "RRD" else row.cells[2])


def test_every_metric_of_the_page_exists() -> None:
    """No metric is named that gwmond does not have."""
    named = set(METRIC.findall(PAGE.read_text()))
    assert named <= set(FAMILIES)
    assert len(named) > 20


def test_every_monitored_family_is_in_the_page() -> None:
    """What is there for the sake of these values is named for one of them."""
    made = {family.name for family in factory.FAMILIES}
    assert made <= set(METRIC.findall(PAGE.read_text()))


def shown(metric: str, label: str) -> set[str]:
    """The values that a label of a metric can have."""
    if label == "category":
        return {category.value for category in Category}
    if label == "event":
        events = (kind.value for kind in FactoryKind)
        return {event.removeprefix("queue_") for event in events if event.startswith("queue_")}
    text = golden.exposition().text.decode()
    return set(re.findall(rf'^{metric}\{{.*?\b{label}="([^"]*)"', text, re.MULTILINE))


SELECTIONS = sorted(set(SELECTOR.findall(PAGE.read_text().replace("\\|", "|"))))


@pytest.mark.parametrize(("metric", "matchers"), SELECTIONS)
def test_selections_can_select(metric: str, matchers: str) -> None:
    """Each label that is selected by is one of the metric's, and can have that value."""
    for label, operator, value in MATCHER.findall(matchers):
        assert label in FAMILIES[metric].labels
        can = shown(metric, label)
        for one in value.split("|") if "~" in operator else [value]:
            assert any(re.fullmatch(one, have) for have in can), (label, one)


def test_prometheus_understands_every_expression(tmp_path: Path) -> None:
    """promtool takes every expression of the page as PromQL."""
    promtool = shutil.which("promtool")
    assert promtool, "no promtool on PATH. Run: apt-get install prometheus"
    found = promql()
    assert len(found) > 80
    rules = [{"record": f"a:{n}", "expr": e} for n, e in enumerate(found)]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "rrd", "rules": rules}]}))
    done = subprocess.run(
        [promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(found)} rules found" in done.stdout
