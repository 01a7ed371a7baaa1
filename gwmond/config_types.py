"""What options of the configuration are made of."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PositiveFloat, StringConstraints

from gwmond.durations import parse_duration

Duration = Annotated[PositiveFloat, BeforeValidator(parse_duration)]
Attribute = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
HostPort = Annotated[str, StringConstraints(pattern=r"^[^\s,]+$")]


class Section(BaseModel):
    """A table of the file: every key is known, and nothing changes once it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def has_content(path: str) -> bool:
    """Return whether a file can be read and is not empty."""
    try:
        return bool(Path(path).read_bytes().strip())
    except OSError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
