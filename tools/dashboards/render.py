"""Renders boards as the JSON that Grafana loads, with Grafana's own SDK."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as commons
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from gwmond.config.settings import Http
from gwmond.model.states import State
from tools.dashboards.colours import STATES
from tools.dashboards.record import Board, Kind, Panel, Query, Row, Variable

TAG = "gwmond"
_MENU = "inControlsMenu"
_AUTO = {"auto", "auto_count", "auto_min"}
SITE_BOARD = "gwmond-site"
_SOURCE = commons.DataSourceRef(type_val="prometheus", uid="${datasource}")
_MINUTE_S = 60
_NOTHING = "no data: gwmond is not scraped, its last poll is old, or it does not know this yet"
_STEP = "${poll}s"
"""Least step of a query: gwmond's numbers change once a poll, so rates need several polls."""
_KEPT = "&".join(
    ["${__url_time_range}", *(f"${{{name}:queryparam}}" for name in ("datasource", "job"))]
    + [f"${{{name}:queryparam}}" for name in ("instance", "poll", "gwmond")]
)
_BUILDERS: Mapping[Kind, Any] = {
    "lines": timeseries.Panel,
    "stack": timeseries.Panel,
    "bars": bargauge.Panel,
    "stat": stat.Panel,
    "table": table.Panel,
    "states": statetimeline.Panel,
}
_NAMES: Mapping[Variable, str] = {
    "site": "Site",
    "entry": "Entry",
    "group": "Frontend group",
}


def rendered(board: Board) -> str:
    """Return the JSON of a board."""
    made = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags([TAG])
        .timezone("browser")
        .readonly()
        .tooltip(model.DashboardCursorSync.TOOLTIP)
        .time("now-24h", "now")
        .refresh("1m")
        .link(
            dashboard.DashboardLink("Boards of gwmond")
            .type(model.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
        .link(
            dashboard.DashboardLink("gwmond's own page")
            .type(model.DashboardLinkType.LINK)
            .url("${gwmond}/")
            .target_blank(True)
        )
        .variables([*_variables(board)])
        .build()
    )
    made.panels = [*_laid_out(board)]
    document = json.loads(json.dumps(made, cls=JSONEncoder))
    document["id"] = None
    return json.dumps(_clean(document), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _clean(part: Any) -> Any:
    """Leave out defaults of the SDK: links in a menu; what only variables of intervals have."""
    if isinstance(part, dict):
        kept = {key: value for key, value in part.items() if value != _MENU and key not in _AUTO}
        return {key: _clean(value) for key, value in kept.items()}
    return [_clean(each) for each in part] if isinstance(part, list) else part


def _variables(board: Board) -> Iterator[Any]:
    yield dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    yield _queried("job", "Job", "label_values(gwmond_build_info, job)", ".+")
    found = 'label_values(gwmond_build_info{job=~"$job"}, instance)'
    yield _queried("instance", "Instance", found, ".+").description(
        "Choose one if several instances of gwmond watch the same pool: sums would count it twice."
    )
    chosen = 'job=~"$job",instance=~"$instance"'
    for name in board.variables:
        if name == "resource":
            yield _custom("resource", "Resource", "cpu,gpu", "cpu")
            continue
        within = ',site=~"$site"' if name == "entry" and "site" in board.variables else ""
        metric = "gwmond_pilots" if name == "group" else "gwmond_site_state"
        found = f"label_values({metric}{{{chosen}{within}}}, {name})"
        yield _queried(name, _NAMES[name], found, ".*")
    yield _custom("poll", "Poll interval", "5,30,60,120,300,600", str(_MINUTE_S)).description(
        "poll.interval of gwmond, in seconds: the least step of graphs. gwmond demo: 5."
    )
    yield (
        dashboard.TextBoxVariable("gwmond")
        .label("URL of gwmond")
        .default_value(f"http://{Http().listen}")
        .description("Where the browser reaches gwmond's own page.")
    )


def _queried(name: str, label: str, query: str, every: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(_SOURCE)
        .query({"query": query, "refId": name})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(every)
        .current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def _custom(name: str, label: str, values: str, chosen: str) -> dashboard.CustomVariable:
    return (
        dashboard.CustomVariable(name)
        .label(label)
        .values(values)
        .current(model.VariableOption(selected=True, text=chosen, value=chosen))
        .options(
            [
                model.VariableOption(selected=value == chosen, text=value, value=value)
                for value in values.split(",")
            ]
        )
    )


def _laid_out(board: Board) -> Iterator[Any]:
    """Yield rows and panels, each with its place on the grid of 24 columns."""
    top, number = 0, 0
    for row in board.rows:
        number += 1
        yield _title(row, number, top)
        top, left, tallest = top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > 24:
                top, left, tallest = top + tallest, 0, 0
            number += 1
            made = _panel(panel).build()
            made.id_val = number
            made.grid_pos = model.GridPos(h=panel.height, w=panel.width, x=left, y=top)
            yield made
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest


def _title(row: Row, number: int, top: int) -> model.RowPanel:
    made = dashboard.Row(row.title).collapsed(False).id(number).build()
    made.grid_pos = model.GridPos(h=1, w=24, x=0, y=top)
    return made


def _panel(panel: Panel) -> Any:
    made = (
        _BUILDERS[panel.kind]()
        .title(panel.title)
        .description(
            f"{panel.description} Empty {panel.empty}." if panel.empty else panel.description
        )
        .datasource(_SOURCE)
        .unit(panel.unit)
        .targets([_target(panel, n, query) for n, query in enumerate(panel.queries)])
        .data_links([*_links(panel)])
        .no_value(f"none: empty {panel.empty}" if panel.empty else _NOTHING)
    )
    for name, colour in (panel.colours or {}).items():
        fixed = {"mode": "fixed", "fixedColor": colour}
        found = f"/^{name}( |$)/"
        made.override_by_regexp(found, [model.DynamicConfigValue(id_val="color", value=fixed)])
    _STYLES[panel.kind](made, panel)
    return made


def _target(panel: Panel, number: int, query: Query) -> Any:
    target = (
        prometheus.Dataquery()
        .ref_id(chr(ord("A") + number))
        .datasource(_SOURCE)
        .expr(query.promql)
        .legend_format(query.legend)
        .interval(_STEP)
    )
    if panel.kind == "table":
        target.format(PromQueryFormat.TABLE)
    if query.exemplars:
        target.exemplar(True)
    return target.instant() if panel.instant else target.range()


def _links(panel: Panel) -> Iterator[Any]:
    """Yield where a click on a series leads."""
    page = panel.page
    if panel.drill:
        labels = "__data.fields" if panel.kind == "table" else "__field.labels"
        names = {name: f"${{{labels}.{name}}}" for name in panel.drill}
        chosen = "&".join(f"var-{name}={value}" for name, value in names.items())
        yield dashboard.DashboardLink("Board of this site or entry").url(
            f"/d/{SITE_BOARD}?{chosen}&{_KEPT}"
        )
        if "site" in names:
            query = "&".join(f"{name}={value}" for name, value in names.items())
            page = f"{panel.drill[-1]}?{query}"
    yield (
        dashboard.DashboardLink("gwmond's own page").url(f"${{gwmond}}/{page}").target_blank(True)
    )


def _series(made: Any, panel: Panel) -> None:
    made.min(0) if panel.unit == "percentunit" else None
    made.legend(
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(commons.LegendDisplayMode.TABLE)
        .placement(commons.LegendPlacement.RIGHT)
        .calcs(["lastNotNull"])
    )
    made.tooltip(
        common.VizTooltipOptions()
        .mode(commons.TooltipDisplayMode.MULTI)
        .sort(commons.SortOrder.DESCENDING)
    )
    made.span_nulls(False)
    made.color_scheme(dashboard.FieldColor().mode(model.FieldColorModeId.PALETTE_CLASSIC))
    if panel.kind == "stack":
        made.stacking(
            common.StackingConfig().mode(commons.StackingMode.NORMAL).group("A")
        ).fill_opacity(70).line_width(0)


def _bars(made: Any, _panel: Panel) -> None:
    _coloured(made, "blue")
    made.orientation(commons.VizOrientation.HORIZONTAL)
    made.display_mode(commons.BarGaugeDisplayMode.BASIC)
    made.value_mode(commons.BarGaugeValueMode.COLOR)
    made.min(0)
    made.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))


def _stat(made: Any, panel: Panel) -> None:
    made.graph_mode(commons.BigValueGraphMode.NONE)
    made.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
    _coloured(made, "text", panel.warn_above)


def _coloured(made: Any, colour: str, warn_above: float | None = None) -> None:
    """Give one colour to all values, and red to those above; else Grafana draws 80 red."""
    steps = [model.Threshold(color=colour, value=None)]
    if warn_above is not None:
        steps.append(model.Threshold(color="red", value=warn_above))
    made.thresholds(dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps))


def _table(made: Any, panel: Panel) -> None:
    made.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    hidden = {"Time": True}
    made.with_transformation(
        model.DataTransformerConfig(id_val="organize", options={"excludeByName": hidden})
    )
    several = len(panel.queries) > 1
    for n, query in enumerate(panel.queries):
        value = f"Value #{chr(ord('A') + n)}" if several else "Value"
        rules = [model.DynamicConfigValue(id_val="displayName", value=query.legend)]
        if query.unit:
            rules.append(model.DynamicConfigValue(id_val="unit", value=query.unit))
        made.override_by_name(value, rules)
    made.sort_by([common.TableSortByFieldState().display_name(panel.queries[0].legend).desc(True)])


def _states(made: Any, _panel: Panel) -> None:
    made.merge_values(True).show_value(commons.VisibilityMode.NEVER).row_height(0.8)
    made.legend(
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(commons.LegendDisplayMode.LIST)
        .placement(commons.LegendPlacement.BOTTOM)
        .calcs([])
    )
    texts = {
        str(number): model.ValueMappingResult(
            text=state.replace("_", " "), color=STATES[state], index=number
        )
        for number, state in enumerate(State)
    }
    made.mappings([model.ValueMap(options=texts)])
    made.per_page(20)


_STYLES: Mapping[Kind, Any] = {
    "lines": _series,
    "stack": _series,
    "bars": _bars,
    "stat": _stat,
    "table": _table,
    "states": _states,
}
