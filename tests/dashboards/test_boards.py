"""Rules that hold for all boards, read off the records and the committed JSON."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import promql_parser as promql
import pytest
from fastapi.testclient import TestClient
from grafana_foundation_sdk.models import units

from gwmond.metrics.catalog import TOPICS
from gwmond.model.states import State
from gwmond.reports.render.categories import INFOS
from gwmond.web.app import create
from tests.build.snapshots import STARVING, snapshot
from tests.build.web import Daemon
from tests.dashboards.asked import asked
from tests.metrics import golden
from tests.promql import ROOT
from tools.dashboards import colours
from tools.dashboards.boards import BOARDS, DIRECTORY
from tools.dashboards.record import Board, Panel, Query
from tools.dashboards.render import rendered

FAMILIES = {family.name: family for families in TOPICS.values() for family in families}
FAMILIES |= {
    f"{name}_bucket": family._replace(labels=(*family.labels, "le"))
    for name, family in FAMILIES.items()
    if family.buckets
}
UNITS = {
    value for kind in vars(units).values() for value in get_args(kind) if isinstance(value, str)
} | {value for value in vars(units).values() if isinstance(value, str)}
each_board = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
PANELS = [(board, panel) for board in BOARDS for panel in board.panels]


def document(board: Board) -> Any:
    """The committed JSON."""
    return json.loads((DIRECTORY / f"{board.uid}.json").read_text())


def shown(board: Board) -> list[Any]:
    """The panels of the committed JSON."""
    return [panel for panel in document(board)["panels"] if panel["type"] != "row"]


@functools.cache
def client() -> TestClient:
    """gwmond's own pages, of a poll in which everything occurs."""
    return TestClient(create(Daemon(snapshot()), ""), base_url="http://localhost")


def titled(board: Board, panel: Panel) -> Any:
    """A panel of the committed JSON."""
    (made,) = (one for one in shown(board) if one["title"] == panel.title)
    return made


def nodes(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every part of an expression, with what it is within."""
    yield node, above
    children = [getattr(node, name, None) for name in ("expr", "lhs", "rhs", "vector_selector")]
    for child in (*children, *getattr(node, "args", ())):
        if child is not None:
            yield from nodes(child, (*above, node))


def selectors(query: Query) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The selectors of a query, with what each is within."""
    for node, above in nodes(promql.parse(asked(query))):
        if isinstance(node, promql.VectorSelector):
            yield node, above


@each_board
def test_committed_boards_are_those_of_the_records(board: Board) -> None:
    """python -m tools.dashboards writes what is committed."""
    assert (DIRECTORY / f"{board.uid}.json").read_text() == rendered(board)


def test_there_is_no_other_board() -> None:
    """Each file is made from a record; uids and titles are unique, and stay short."""
    assert {path.stem for path in DIRECTORY.iterdir()} == {board.uid for board in BOARDS}
    assert len({board.title for board in BOARDS}) == len(BOARDS)
    assert all(len(board.uid) <= 40 for board in BOARDS)  # Grafana's limit


@each_board
def test_a_board_is_like_the_others(board: Board) -> None:
    """Tags, links, tooltip, time range; nothing of one installation."""
    made = document(board)
    assert made["id"] is None
    assert (made["uid"], made["tags"], made["editable"]) == (board.uid, ["gwmond"], False)
    assert made["graphTooltip"] == 2
    assert made["description"] == board.description
    assert [link["type"] for link in made["links"]] == ["dashboards", "link"]
    assert made["links"][0]["tags"] == made["tags"]
    assert made["links"][0]["includeVars"]
    assert len(shown(board)) <= 20
    text = json.dumps(made)
    assert not re.search(r"localhost|example|DS_PROMETHEUS", text)


@each_board
def test_variables_choose_what_is_shown(board: Board) -> None:
    """Data source, job and instance come first; each variable that a query names exists."""
    made = document(board)
    variables = {variable["name"]: variable for variable in made["templating"]["list"]}
    assert [*variables][:3] == ["datasource", "job", "instance"]
    assert variables["datasource"]["label"] == "Data source"
    for name in ("job", "instance"):
        assert (variables[name]["type"], variables[name]["allValue"]) == ("query", ".+")
        assert variables[name]["multi"]
    for variable in variables.values():
        if variable["type"] == "query":
            assert variable["refresh"] == 2  # on time range change
            assert variable["datasource"]["uid"] == "${datasource}"
    named = set(re.findall(r"\$\{?(\w+)", json.dumps(made["panels"])))
    assert {name for name in named if not name.startswith("__")} <= set(variables)
    used = {name for name in board.variables if f"${name}" in json.dumps(made["panels"])}
    assert used == set(board.variables)


@each_board
def test_panels_lie_side_by_side(board: Board) -> None:
    """None overlaps another, all are within the 24 columns, ids are unique."""
    made = document(board)["panels"]
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in made):
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in made}) == len(made)


def test_the_overview_fits_on_one_screen() -> None:
    """Its first two questions are answered within 1080 pixels (a row of the grid has 38)."""
    made = document(BOARDS[0])["panels"]
    bottom = max(
        panel["gridPos"]["y"] + panel["gridPos"]["h"]
        for panel in made
        if panel["type"] in {"timeseries", "bargauge", "stat"}
    )
    assert bottom * 38 < 1080 - 140  # Grafana's own bars


@each_board
def test_a_panel_says_what_it_is(board: Board) -> None:
    """Title, description, unit of Grafana's list, a legend for each series."""
    for panel in board.panels:
        made = titled(board, panel)
        assert made["description"].startswith(panel.description)
        assert len(panel.description) > 40
        assert made["description"].endswith(".")
        assert panel.empty in made["description"]
        defaults = made["fieldConfig"]["defaults"]
        assert defaults["unit"] in UNITS
        assert defaults["noValue"]
        assert made["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target, query in zip(made["targets"], panel.queries, strict=True):
            assert target["datasource"] == made["datasource"]
            assert (target["expr"], target["legendFormat"]) == (query.promql, query.legend)
            assert query.legend
            assert target["instant"] == panel.instant != target["range"]
            assert target["interval"] == "${poll}s"
        legends = [query.legend for query in panel.queries]
        assert len(set(legends)) == len(legends)


@each_board
def test_legends_name_labels_of_the_result(board: Board) -> None:
    """A legend's labels, and those by which a series leads further, are kept by the sum."""
    for panel in board.panels:
        for query in panel.queries:
            wanted = {*re.findall(r"\{\{(\w+)\}\}", query.legend), *panel.drill}
            tree = promql.parse(asked(query))
            kept = {
                label
                for node, _ in nodes(tree)
                if isinstance(node, promql.AggregateExpr) and node.modifier is not None
                for label in node.modifier.labels
            }
            of_metrics = {
                label for node, _ in selectors(query) for label in FAMILIES[node.name].labels
            }
            aggregated = any(isinstance(node, promql.AggregateExpr) for node, _ in nodes(tree))
            assert wanted <= (kept if aggregated else {*of_metrics, "job", "instance"})


@each_board
def test_metrics_labels_and_values_exist(board: Board) -> None:
    """What a query selects by is a label of the metric, and can have that value."""
    for panel in board.panels:
        for query in panel.queries:
            for node, _ in selectors(query):
                labels = FAMILIES[node.name].labels
                words = re.findall(r"\w+", FAMILIES[node.name].help)
                matchers = {matcher.name: matcher for matcher in node.matchers.matchers}
                assert {"job", "instance"} <= set(matchers)
                for name in set(matchers) - {"job", "instance"}:
                    assert name in labels
                    if name in {"site", "entry", "group"}:
                        continue
                    for value in matchers[name].value.split("|"):
                        known = {*values(node.name, name), *words}
                        assert value in known, (node.name, name, value)


@functools.cache
def exposition() -> str:
    """Metrics of a snapshot in which everything occurs."""
    return golden.exposition().text.decode()


def values(metric: str, label: str) -> set[str]:
    """The values that a label of a metric has where all occurs."""
    if label == "resource":
        return {"cpu", "gpu"}
    return set(re.findall(rf'^{metric}\{{.*?\b{label}="([^"]*)"', exposition(), re.MULTILINE))


@each_board
def test_a_board_that_chooses_sites_shows_no_others(board: Board) -> None:
    """Each metric that is of an entry is restricted by each variable that could exclude it."""
    for panel in board.panels:
        for query in panel.queries:
            for node, _ in selectors(query):
                labels = FAMILIES[node.name].labels
                if "site" in board.variables and "entry" in labels:
                    assert "site" in labels
                given = {matcher.name for matcher in node.matchers.matchers}
                chosen = set(board.variables) & set(labels)
                assert chosen <= given, node.name


@each_board
def test_counters_are_used_as_counters(board: Board) -> None:
    """Counters within rate or increase alone; a graph's range is $__rate_interval."""
    for panel in board.panels:
        for query in panel.queries:
            for node, above in selectors(query):
                within = any(
                    isinstance(part, promql.Call) and part.func.name in {"rate", "increase"}
                    for part in above
                )
                assert within == (FAMILIES[node.name].kind in {"counter", "histogram"}), node.name
            ranges = set(re.findall(r"\[(.*?)\]", query.promql))
            assert ranges <= ({"$__range"} if panel.instant else {"$__rate_interval"})


@each_board
def test_ratios_are_of_sums(board: Board) -> None:
    """No average; a division is of sums, and by nothing that can be 0."""
    for panel in board.panels:
        for query in panel.queries:
            assert not re.search(r"\bavg\b", query.promql)
            for node, _ in nodes(promql.parse(asked(query))):
                if not isinstance(node, promql.BinaryExpr) or str(node.op) != "/":
                    continue
                whole = node.rhs
                if isinstance(whole, promql.NumberLiteral):
                    assert whole.val > 0
                    continue
                if isinstance(whole, promql.VectorSelector):
                    assert whole.name == "gwmond_poll_interval_seconds"  # which is never 0
                    continue
                assert isinstance(node.lhs, promql.AggregateExpr)
                assert isinstance(whole, promql.ParenExpr)
                assert isinstance(whole.expr, promql.BinaryExpr)
                assert isinstance(whole.expr.rhs, promql.NumberLiteral)
                assert (str(whole.expr.op), whole.expr.rhs.val) == (">", 0)


@each_board
def test_what_counts_at_several_entries_is_not_summed_over_them(board: Board) -> None:
    """A job counts at every entry that it matches."""
    for panel in board.panels:
        for query in panel.queries:
            for node, above in selectors(query):
                if node.name.endswith("_matching"):
                    (by,) = (
                        part.modifier
                        for part in above
                        if isinstance(part, promql.AggregateExpr) and str(part.op) == "sum"
                    )
                    assert by is not None
                    assert "entry" in by.labels, panel.title


@each_board
def test_tables_have_whole_rows(board: Board) -> None:
    """Of a table's columns either none is of the largest alone, or all are: no cell is empty
    because of that, and would be read as not known."""
    for panel in board.panels:
        if panel.kind == "table":
            assert len({"topk(" in query.promql for query in panel.queries}) == 1, panel.title


@each_board
def test_links_lead_to_what_exists(board: Board) -> None:
    """Series lead to a part of gwmond's own page that is there, and to a board that is there."""
    for panel in board.panels:
        made = titled(board, panel)
        links = [link["url"] for link in made["fieldConfig"]["defaults"]["links"]]
        assert links
        for link in links:
            if link.startswith("/d/"):
                uid, _, query = link.removeprefix("/d/").partition("?")
                (target,) = (one for one in BOARDS if one.uid == uid)
                names = set(re.findall(r"var-(\w+)=", query))
                assert names == set(panel.drill) <= set(target.variables)
            else:
                path, _, anchor = link.removeprefix("${gwmond}").partition("#")
                for name, value in STARVING._asdict().items():
                    path = re.sub(rf"\$\{{[\w.]+\.{name}\}}", value, path)
                page = client().get(path)
                assert page.status_code == 200
                assert not anchor or f'id="{anchor}"' in page.text
        assert sum(link.startswith("${gwmond}/") for link in links) == 1


def test_alerts_lead_to_boards() -> None:
    """The annotation dashboard of each alert names a board, and variables that the board has."""
    rules = (ROOT / "etc" / "prometheus" / "gwmond-alerts.yml").read_text()
    links = re.findall(r"/d/([\w-]+)\?(\S.*)", rules)
    assert len(links) > 10
    boards = {board.uid: board for board in BOARDS}
    for uid, query in links:
        known = {v["name"] for v in document(boards[uid])["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", query)) <= known, (uid, query)


def test_colours_are_those_of_the_pages() -> None:
    """Categories have the colours of the reports, states and uses of capacity those of pages."""
    style = client().get("/static/gwmond.css").text
    light, dark_page = style.split("prefers-color-scheme: dark", 1)
    of_page = dict(re.findall(r"--(\w+): (#\w+);", dark_page))
    assert of_page != dict(re.findall(r"--(\w+): (#\w+);", light))
    states = dict(re.findall(r"dark\) {\s*\.s-(\w+) { background: (#\w+);", style))
    assert {name: states[name] for name in colours.CAPACITY} == colours.CAPACITY
    assert {state: states[state] for state in State} == colours.STATES
    assert colours.USE["busy"] == of_page["busy"]
    assert set(colours.CAPACITY) == values("gwmond_site_canonical_units", "state")
    assert set(colours.STATES) == set(State)
    dark = {info.category: info.dark for info in INFOS if info.category}
    for board, panel in PANELS:
        made = titled(board, panel)
        fixed = {
            re.fullmatch(r"/\^(\w+)\( \|\$\)/", rule["matcher"]["options"])[1]: (  # type: ignore[index]
                rule["properties"][0]["value"]["fixedColor"]
            )
            for rule in made["fieldConfig"]["overrides"]
            if rule["properties"][0]["id"] == "color"
        }
        assert fixed == (panel.colours or {})
        if any(query.legend == "{{category}}" for query in panel.queries):
            assert fixed == dark


def test_the_poll_interval_of_the_boards() -> None:
    """Is gwmond's default one."""
    (poll,) = (v for v in document(BOARDS[0])["templating"]["list"] if v["name"] == "poll")
    assert poll["current"]["value"] == "60"


def test_the_provider_names_the_folder_of_the_boards() -> None:
    """The provisioning file says where docs/dashboards.md copies the boards to."""
    provider = ROOT / "etc" / "grafana" / "provisioning" / "dashboards" / "gwmond.yaml"
    (path,) = re.findall(r"path: (\S+)", provider.read_text())
    assert path in (ROOT / "docs" / "dashboards.md").read_text()
