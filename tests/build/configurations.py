"""Options of the configuration, and what is said of a file that is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from gwmond.config import settings as config
from gwmond.config.settings import ConfigError


def defaults(model: type[BaseModel], path: str = "") -> dict[str, Any]:
    """Every option by its dotted name, with its default; arrays of tables are left out."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found |= defaults(annotation, f"{path}{name}.")
        elif name != "pledge":
            found[path + name] = field.get_default(call_default_factory=True, validated_data={})
    return found


def errors(text: str, tmp_path: Path) -> list[str]:
    """The lines of what is wrong with a file, without its name and the line in it."""
    path = tmp_path / "gwmond.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.load(path, "now")
    lines = str(caught.value).splitlines()
    assert all(re.match(rf"{re.escape(str(path))}:\d+: ", line) for line in lines)
    return [re.sub(r"^\d+: ", "", line.removeprefix(f"{path}:")) for line in lines]
