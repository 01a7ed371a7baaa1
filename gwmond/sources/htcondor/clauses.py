"""Expressions divided into clauses.

The bindings show no tree of an expression, so its text is divided at the ``&&`` that are not within
brackets or strings (HTCondor manual, "ClassAd Mechanism", syntax of expressions).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from gwmond.sources.htcondor import ads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import classad2

_TOKEN = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|&&|\|\||[?:()\[\]{}]|.)""", re.DOTALL)
_NAME = re.compile(r"(?:my\.)?([a-z_]\w*)", re.IGNORECASE)
_REAL = re.compile(r"\b[0-9]\.[0-9]{15}E[-+][0-9]{2,3}\b")
"""As classad2 writes real numbers."""
_MOST_DEPTH = 8
_LITERAL = re.compile(
    r'true|false|undefined|error|[-+]?[0-9][-+.\w]*|"(?:[^"\\]|\\.)*"', re.IGNORECASE
)
MOST = 200
"""So many clauses of an expression are kept apart; the others are one."""


@lru_cache(4096)  # most slots have the same expressions
def divide(text: str) -> tuple[str, ...]:
    """Return the clauses of an expression; all hold if, and only if, the expression does.

    >>> divide('(A == "x && y") && (B || C) && ((D && E))')
    ('A == "x && y"', 'B || C', 'D', 'E')
    """
    tokens = _TOKEN.findall(text)
    ends = _brackets(tokens)
    clauses: list[str] = []
    todo = [(0, len(tokens))]
    while todo:
        begin, end = _bare(tokens, ends, *todo.pop())
        parts: list[tuple[int, int]] = []
        at = first = begin
        while at < end:
            if tokens[at] in ("||", "?"):
                parts, first = [], begin
                break
            if tokens[at] == "&&":
                parts.append((first, at))
                first = at + 1
            at = ends.get(at, at) + 1
        if parts:
            todo += reversed([*parts, (first, end)])
        elif begin < end:
            clauses.append("".join(tokens[begin:end]))
    return _bounded(clauses)


def _brackets(tokens: Sequence[str]) -> dict[int, int]:
    """Return where each bracket ends that is opened."""
    opened: list[int] = []
    ends = {}
    for at, token in enumerate(tokens):
        if token in "([{":
            opened.append(at)
        elif token in ")]}" and opened:
            ends[opened.pop()] = at
    return ends


def _bare(tokens: Sequence[str], ends: Mapping[int, int], begin: int, end: int) -> tuple[int, int]:
    """Return the bounds of a part without spaces and brackets around the whole."""
    while begin < end:
        if tokens[begin].isspace():
            begin += 1
        elif tokens[end - 1].isspace():
            end -= 1
        elif tokens[begin] == "(" and ends.get(begin) == end - 1:
            begin, end = begin + 1, end - 1
        else:
            break
    return begin, end


def _bounded(clauses: Iterable[str]) -> tuple[str, ...]:
    """Return each clause once; those beyond ``MOST`` as one."""
    distinct = tuple(dict.fromkeys(clauses))
    if len(distinct) <= MOST:
        return distinct
    return *distinct[: MOST - 1], " && ".join(f"({clause})" for clause in distinct[MOST - 1 :])


def attribute_clauses(ad: classad2.ClassAd, name: str) -> tuple[str, ...]:
    """Return the clauses of an attribute; the name of another expression stands for its clauses."""
    by_name: dict[str, tuple[str, ...]] = {}

    def divided(name: str) -> tuple[str, ...]:
        return divide(written(ads.expression_text(ad, name) or ""))

    def clauses_of(name: str, depth: int) -> tuple[str, ...]:
        if name not in by_name:
            by_name[name] = ()  # of one that names itself
            by_name[name] = tuple(
                _bounded(clause for part in divided(name) for clause in inner(part, depth))
            )
        return by_name[name]

    def inner(clause: str, depth: int) -> tuple[str, ...]:
        named = _NAME.fullmatch(clause)
        clauses = clauses_of(named[1].lower(), depth - 1) if named and depth else ()
        plain = len(clauses) == 1 and _LITERAL.fullmatch(clauses[0])
        return clauses if clauses and not plain else (clause,)

    return clauses_of(name.lower(), _MOST_DEPTH)


def written(text: str) -> str:
    """Return an expression with its numbers as people write them.

    >>> written("Capability >= 8.000000000000000E+00 && Level > 1.500000000000000E-03")
    'Capability >= 8.0 && Level > 0.0015'
    """
    return _REAL.sub(lambda match: repr(float(match[0])), text)
