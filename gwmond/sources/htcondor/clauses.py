"""Expressions divided into clauses, and the names to which they refer.

The bindings show no tree of an expression, so its text is divided at the ``&&`` that are not within
brackets or strings (HTCondor manual, "ClassAd Mechanism", syntax of expressions).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from gwmond.sources.htcondor import ads

if TYPE_CHECKING:
    import classad2

_TOKEN = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|&&|\|\||[?:()\[\]{}]|.)""", re.DOTALL)
_NAME = re.compile(r"(?:my\.)?([a-z_]\w*)", re.IGNORECASE)
_MOST_DEPTH = 8


@lru_cache(4096)  # most slots have the same expressions
def divide(text: str) -> tuple[str, ...]:
    """Return the clauses of an expression; all hold if, and only if, the expression does.

    >>> divide('(A == "x && y") && (B || C) && ((D && E))')
    ('A == "x && y"', 'B || C', 'D', 'E')
    """
    text = _bare(text)
    parts, depth, part = [], 0, ""
    for token in _TOKEN.findall(text):
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        if depth == 0 and token in ("||", "?"):
            return (text,)
        if depth == 0 and token == "&&":
            parts.append(part)
            part = ""
        else:
            part += token
    if not parts:
        return (text,) if text else ()
    return tuple(clause for one in (*parts, part) for clause in divide(one))


def _bare(text: str) -> str:
    """Return a text without spaces and brackets around the whole."""
    text = text.strip()
    while text.startswith("("):
        depth = 0
        tokens = _TOKEN.findall(text)
        for position, token in enumerate(tokens):
            depth += (token == "(") - (token == ")")
            if depth == 0:
                if position < len(tokens) - 1:
                    return text
                break
        else:
            return text
        text = text[1:-1].strip()
    return text


def attribute_clauses(ad: classad2.ClassAd, name: str, depth: int = _MOST_DEPTH) -> tuple[str, ...]:
    """Return the clauses of an attribute; one that only names another expression is that one's."""
    try:
        text = str(ad.lookup(name))
    except (KeyError, UnicodeDecodeError, ValueError):
        return ()
    found: list[str] = []
    for clause in divide(text):
        named = _NAME.fullmatch(clause)
        inner = attribute_clauses(ad, named[1], depth - 1) if named and depth else ()
        found += inner if inner and inner != (clause,) else (clause,)
    return tuple(dict.fromkeys(found))


def references(ad: classad2.ClassAd, name: str) -> set[str]:
    """Return all names, of either ad, on which an attribute depends, in lower case."""
    found: set[str] = set()
    todo = [name.lower()]
    while todo:
        here = todo.pop()
        if here in found:
            continue
        found.add(here)
        try:
            expression = ad.lookup(here)
            names = [*ad.internalRefs(expression), *ad.externalRefs(expression)]
        except (KeyError, TypeError, UnicodeDecodeError, ValueError):
            continue
        todo += [one.lower().removeprefix("my.").removeprefix("target.") for one in names]
    return {one for one in found if one and "." not in one and one not in ads.SECRET}
