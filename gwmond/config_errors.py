"""Makes sentences of pydantic's validation errors: file, key, remedy."""

from __future__ import annotations

import difflib
from typing import Any, get_args

from pydantic import BaseModel


def explain(item: dict[str, Any], origin: str, root: type[BaseModel]) -> str:
    """Return one line for one error of ``root``'s validation; ``origin`` names the file."""
    loc = tuple(item["loc"])
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        known = _known_keys(root, loc[:-1])
        near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else "known are: " + ", ".join(sorted(known))
        message = f"unknown key; {hint}"
    elif item["type"] == "missing":
        message = "is required"
    elif not item["type"].startswith("value_error"):
        message = f"{message} (found {item['input']!r})"
    return f"{origin}: {path or 'configuration'}: {message}"


def _known_keys(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """Return the keys of the table at ``loc``; the tables of an array are of its item's type."""
    for part in loc:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            model = next(
                of
                for of in (*get_args(annotation), annotation)
                if isinstance(of, type) and issubclass(of, BaseModel)
            )
    return list(model.model_fields)
