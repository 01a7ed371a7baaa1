"""What a PromQL expression consists of: a walk through promql-parser's tree."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import promql_parser as promql


class Selector(NamedTuple):
    """A selector, the functions and aggregations around it (innermost first), and its range."""

    name: str
    matchers: tuple[tuple[str, str, str], ...]  # label, operator, value
    around: tuple[str, ...]
    window_s: float


class Aggregation(NamedTuple):
    """An aggregation: its operator, and by or without which labels."""

    operator: str
    without: bool
    labels: frozenset[str]


class Parts(NamedTuple):
    """All selectors, aggregations, functions, binary operations and numbers of an expression."""

    selectors: list[Selector]
    aggregations: list[Aggregation]
    functions: list[str]
    operations: list[Any]


def parts(expr: str) -> Parts:
    """Take an expression apart; ValueError if it is not PromQL."""
    found = Parts([], [], [], [])
    _walk(promql.parse(expr), (), found)
    return found


def _selector(node: Any, around: tuple[str, ...], window: timedelta | None) -> Selector:
    matchers = tuple((m.name, _OPERATORS[str(m.op)], m.value) for m in node.matchers.matchers)
    return Selector(node.name, matchers, around, window.total_seconds() if window else 0)


_OPERATORS = {
    "MatchOp.Equal": "=",
    "MatchOp.NotEqual": "!=",
    "MatchOp.Re": "=~",
    "MatchOp.NotRe": "!~",
}


def _walk(node: Any, around: tuple[str, ...], found: Parts) -> None:
    if isinstance(node, promql.VectorSelector):
        found.selectors.append(_selector(node, around, None))
    elif isinstance(node, promql.MatrixSelector):
        found.selectors.append(_selector(node.vector_selector, around, node.range))
    elif isinstance(node, promql.Call):
        found.functions.append(node.func.name)
        for argument in node.args:
            _walk(argument, (node.func.name, *around), found)
    elif isinstance(node, promql.AggregateExpr):
        modifier = node.modifier
        without = modifier is not None and "Without" in str(modifier.type)
        labels = frozenset(modifier.labels) if modifier is not None else frozenset[str]()
        operator = str(node.op)
        found.aggregations.append(Aggregation(operator, without, labels))
        _walk(node.expr, (operator, *around), found)
    elif isinstance(node, promql.BinaryExpr):
        found.operations.append(node)
        _walk(node.lhs, around, found)
        _walk(node.rhs, around, found)
    elif isinstance(node, promql.SubqueryExpr):
        _walk(node.expr, ("subquery", *around), found)
    elif not isinstance(node, promql.NumberLiteral):
        _walk(node.expr, around, found)
