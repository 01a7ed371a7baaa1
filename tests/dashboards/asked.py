"""Queries of boards as Grafana sends them."""

from __future__ import annotations

from collections.abc import Iterator

from tools.dashboards.record import Board, Panel, Query

#: What Grafana puts in the place of variables; where All is chosen, their allValue.
EVERY = {
    "job": ".+",
    "instance": ".+",
    "site": ".*",
    "entry": ".*",
    "group": ".*",
    "resource": "cpu",
    "poll": "60",
    "__rate_interval": "10m",
    "__range": "10m",
}


def asked(query: Query, **chosen: str) -> str:
    """The PromQL of a query with its variables filled in."""
    text = query.promql
    for name, value in {**EVERY, **chosen}.items():
        text = text.replace(f"${name}", value)
    assert "$" not in text, text
    return text


def numbered(board: Board) -> Iterator[tuple[str, Panel, Query]]:
    """The queries of a board, each with the title of its panel and its legend."""
    return (
        (f"{panel.title}: {query.legend}", panel, query)
        for panel in board.panels
        for query in panel.queries
    )
