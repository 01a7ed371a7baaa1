"""Makes sentences of what is wrong with a configuration: file, line, key, what to write instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gwmond.config.types import is_duration, shown

Loc: TypeAlias = tuple[str | int, ...]
"""Keys, and numbers in arrays, from the outermost on."""

_KEY = r"[A-Za-z0-9_-]+"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]\]?\s*(?:#.*)?")
_ASSIGNMENT = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")
_LIMITS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def explain(
    item: dict[str, Any], origin: str, root: type[BaseModel], lines: Mapping[Loc, int] | None = None
) -> str:
    """Return one line for one error of ``root``'s validation.

    ``origin`` names the file, ``lines`` has the lines of its keys.
    """
    loc: Loc = tuple(item["loc"])
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "value_error" and (named := re.match(r"([a-z_.]+): ", message)):
        inner = (*loc, *named[1].split("."))  # of two options, or more, one is named
        if _field(root, inner) is not None:
            loc, message = inner, message[named.end() :]
    field = _field(root, loc)
    if item["type"] == "extra_forbidden":
        message = _unknown(root, loc)
    elif item["type"] == "missing":
        message = "is required"
    elif item["type"] in _LIMITS:
        message = _limit(item, field)
    elif item["type"] == "finite_number":
        message = f"write a finite number (found {shown(item['input'])}){_default(field)}"
    elif item["type"] != "value_error":
        message = _wrong_type(item, field, str(loc[-1]))
    elif field is not None and is_duration(field) and loc == tuple(item["loc"]):
        message = f"{message} (found {shown(item['input'])})"
    parent = ".".join(part for part in loc[:-1] if isinstance(part, str))
    message = message.replace("[...", f"[{parent}." if parent else "[")  # a table's whole name
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")
    line = _line(loc, lines or {})
    where = f"{origin}:{line}" if line else origin
    return f"{where}: {path or 'configuration'}: {message}"


def key_lines(text: str) -> dict[Loc, int]:
    """Return the lines (from 1) in which keys and tables of a TOML text begin.

    What is within texts of several lines may be taken for a key; the first of a name counts.
    """
    lines: dict[Loc, int] = {}
    table: Loc = ()
    arrays: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            name = re.sub(r"\s", "", header[2])
            table = tuple(name.split("."))
            if header[1] == "[[":
                arrays[name] = arrays.get(name, -1) + 1
                lines.setdefault(table, number)
                table = (*table, arrays[name])
            lines.setdefault(table, number)
        elif key := _ASSIGNMENT.match(line):
            lines.setdefault((*table, *re.sub(r"\s", "", key[1]).split(".")), number)
    return lines


def unquoted(text: str, error: str) -> str:
    r"""Return a hint where the line that an error of TOML names has a text without quotes.

    What may be a secret is not shown.

    >>> unquoted("[poll]\ninterval = 60s  # often", "Expected newline (at line 2, column 14)")
    '; texts, durations too, are quoted: interval = "60s"'
    """
    match = re.search(r"\(at line ([0-9]+), ", error)
    lines = text.splitlines()
    if match is None or not 0 < int(match[1]) <= len(lines):
        return ""
    bare = re.fullmatch(rf"\s*({_KEY})\s*=\s*([\w./:@*-]+)\s*(?:#.*)?", lines[int(match[1]) - 1])
    if bare is None or bare[2].lower() in {"true", "false"} or _is_number(bare[2]):
        return ""
    value = bare[2] if re.fullmatch(r"[0-9]+[a-z]{1,3}", bare[2]) else "…"
    return f'; texts, durations too, are quoted: {bare[1]} = "{value}"'


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _line(loc: Loc, lines: Mapping[Loc, int]) -> int | None:
    """Return the line of a key, else of what it is in."""
    for length in range(len(loc), 0, -1):
        if loc[:length] in lines:
            return lines[loc[:length]]
    return None


_WRITE = {
    "bool_type": "write true or false, without quotes",
    "float_type": "write a number, without quotes",
    "int_type": "write a whole number, without quotes",
    "string_type": "write one text, in quotes",
}


def _wrong_type(item: dict[str, Any], field: FieldInfo | None, name: str) -> str:
    """Return what to write instead of a value of another type; "[..." stands for outer tables."""
    kind, value = item["type"], item["input"]
    ending = f"(found {shown(value)})"
    if kind in _WRITE:
        return f"{_WRITE[kind]} {ending}"
    if kind == "literal_error" and field is not None:
        return f"write one of {', '.join(map(shown, get_args(field.annotation)))} {ending}"
    if kind == "model_type":
        is_array = isinstance(value, tuple) and all(isinstance(table, dict) for table in value)
        if is_array:
            return f"write the table once, in single brackets: [...{name}]"
        return f"is a table: write [...{name}], and its keys in the lines below {ending}"
    return _no_list(value, field, name) if kind == "tuple_type" else f"cannot be {shown(value)}"


def _no_list(value: object, field: FieldInfo | None, name: str) -> str:
    if field is not None and _inner(field):
        return f"write a table [[...{name}]], in double brackets, for each"
    if isinstance(value, str):
        return f"write a list: [{shown(value)}]"
    return f'write a list of texts, such as ["a", "b"] (found {shown(value)})'


def _limit(item: dict[str, Any], field: FieldInfo | None) -> str:
    name, words = _LIMITS[item["type"]]
    most, value = item["ctx"][name], shown(item["input"])
    if field is not None and is_duration(field):
        value, most = _duration(item["input"]), _duration(most) if most else 0
    else:
        most = f"{most:.12g}"
    return f"must be {words} {most} (found {value}){_default(field)}"


def _default(field: FieldInfo | None) -> str:
    """Return the default of a number or text, as an example."""
    if field is None or not isinstance(field.default, int | float | str):
        return ""
    value: object = field.default
    if is_duration(field) and isinstance(value, int | float):
        return f"; the default is {_duration(value)}"
    return f"; the default is {shown(value)}"


def _duration(seconds: float) -> str:
    for unit, length in (("y", 31_536_000), ("d", 86400), ("h", 3600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f'"{seconds / length:g}{unit}"'
    return f'"{seconds:g}s"'


def _unknown(root: type[BaseModel], loc: Loc) -> str:
    name = str(loc[-1])
    model = _model(root, loc[:-1])
    names = list(model.model_fields) if model else []
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"unknown key; did you mean '{near[0]}'?"
    if elsewhere := _tables_with(root, name):
        return f"unknown key; it belongs to {' or '.join(f'[{section}]' for section in elsewhere)}"
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"unknown key; did you mean '{near[0]}'?"
    return "unknown key; known are: " + ", ".join(sorted(names))


def _tables_with(model: type[BaseModel], name: str, path: str = "") -> list[str]:
    """Return the tables that have a key of this name."""
    tables = [path] if path and name in model.model_fields else []
    for key, field in model.model_fields.items():
        if inner := _inner(field):
            tables += _tables_with(inner, name, f"{path}.{key}".lstrip("."))
    return tables


def _inner(field: FieldInfo) -> type[BaseModel] | None:
    """Return the table that an option is, or, of an array of tables, that of its items."""
    for arg in (*get_args(field.annotation), field.annotation):
        if isinstance(arg, type) and issubclass(arg, BaseModel):
            return arg
    return None


def _model(model: type[BaseModel], loc: Loc) -> type[BaseModel] | None:
    """Return the table at ``loc``."""
    table: type[BaseModel] | None = model
    for part in loc:
        if isinstance(part, str):
            field = table.model_fields.get(part) if table else None
            table = _inner(field) if field else None
    return table


def _field(root: type[BaseModel], loc: Loc) -> FieldInfo | None:
    """Return the option at ``loc``."""
    names = [part for part in loc if isinstance(part, str)]
    model = _model(root, tuple(names[:-1])) if names else None
    return model.model_fields.get(names[-1]) if model else None
