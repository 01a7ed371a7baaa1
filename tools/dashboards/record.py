"""What a dashboard is made of: boards, rows, panels, queries. A panel is one record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["lines", "stack", "bars", "stat", "table", "states"]
Variable: TypeAlias = Literal["resource", "site", "entry", "group"]


class Query(NamedTuple):
    """One query.

    ``legend`` names the series; in a table, the column, which may have a unit of its own.
    ``exemplars``: those of the series are shown too.
    """

    promql: str
    legend: str
    unit: str = ""
    exemplars: bool = False


class Panel(NamedTuple):
    """One panel.

    - ``kind``: lines and stack show a range of time; states does so for a number that stands for a
      state; bars, stat and table show one instant.
    - ``unit``: of Grafana's list, of all queries that have none of their own.
    - ``description``: what is shown, in which unit, and what to do about it.
    - ``empty``: in which pools the panel is empty; empty where it never is.
    - ``page``: the part of gwmond's own pages to which the series lead. ``drill``: labels of the
      series, by which they lead to the board and the page of a site or entry instead.
    - ``colours``: of series, by what their names begin with.
    - ``warn_above``: from where on a stat is red.
    - ``width`` of 24, ``height`` of Grafana's rows.
    """

    title: str
    kind: Kind
    unit: str
    queries: tuple[Query, ...]
    description: str
    empty: str = ""
    page: str = "#sites"
    drill: tuple[Literal["site", "entry"], ...] = ()
    colours: Mapping[str, str] | None = None
    warn_above: float | None = None
    width: int = 12
    height: int = 8

    @property
    def instant(self) -> bool:
        """Whether the panel shows one instant."""
        return self.kind in {"bars", "stat", "table"}


class Row(NamedTuple):
    """Panels under a title, from left to right."""

    title: str
    panels: tuple[Panel, ...]


class Board(NamedTuple):
    """One dashboard; ``uid`` never changes, because links lead to it.

    ``variables``: by what the board can be restricted, besides data source, job and instance.
    """

    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels, from the top."""
        return (panel for row in self.rows for panel in row.panels)
