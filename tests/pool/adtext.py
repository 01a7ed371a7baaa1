"""ClassAds written as text, so that no process of the tests has to load the bindings for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Expr(str):
    """ClassAd text which is to be taken as an expression, not as a string."""

    __slots__ = ()


Value = str | int | float | bool | Sequence["Value"]
Ad = dict[str, Value]


def literal(value: Value) -> str:
    """The value as ClassAd text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Expr | int | float):
        return str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    return "{ " + ", ".join(literal(item) for item in value) + " }"


def ad_text(ad: Mapping[str, Value]) -> str:
    """The ad as text, in the new ClassAd syntax."""
    return "[ " + "; ".join(f"{key} = {literal(value)}" for key, value in ad.items()) + " ]"
