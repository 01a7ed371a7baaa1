"""Types of options, and what an error shows of a value."""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo

from gwmond.model.digits import is_number
from gwmond.model.times import parse_duration

_CENTURY_S = 100 * 365 * 86400
_BILLION = 1_000_000_000
_SHOWN, _PATH_SHOWN = 60, 200  # letters of a value, and of a path, that an error shows


def _attribute(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise ValueError(
            f"{shown(text)} is no name of a ClassAd attribute: write letters, digits and _ only"
        )
    return text


def _host_port(text: str) -> str:
    if not text or re.search(r"[\s,]", text):
        raise ValueError(
            f"{shown(text)} is not one HOST or HOST:PORT: write several as a list, "
            'such as ["cm1.example.org", "cm2.example.org:9620"]'
        )
    if "://" in text:
        raise ValueError(
            f"{shown(text)}: write HOST or HOST:PORT, without {text[: text.index('/')]}//"
        )
    port = re.search(r"^[^<>?]*[^:]:(\w+)$", text)
    if port and not (is_number(port[1]) and 0 < int(port[1]) < 65536):
        raise ValueError(f"{shown(text)}: {port[1]} is no port: write a number from 1 to 65535")
    return text


Files = Literal["unused", "now", "soon"]
"""Whether the files that gwmond serves and exports with are read now, or by the service soon.

A command that does not use them may be run by who cannot read them, or while they are not there.
"""
RUNTIME_DIRECTORY = Path("/run/gwmond")
"""Where gwmond.service keeps secrets as long as it runs."""

Duration = Annotated[float, Field(gt=0, le=_CENTURY_S), BeforeValidator(parse_duration)]
Attribute = Annotated[str, AfterValidator(_attribute)]
HostPort = Annotated[str, AfterValidator(_host_port)]
Number = Annotated[int, Field(gt=0, le=_BILLION)]
NumberOrNone = Annotated[int, Field(ge=0, le=_BILLION)]
Amount = Annotated[float, Field(ge=0, le=_BILLION)]


class Section(BaseModel):
    """A table of the file: every key is known, and nothing changes once it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _with_tuples(cls, values: Any) -> Any:
        """Make a tuple of each list."""
        if isinstance(values, dict):
            return {name: _tuple(value) for name, value in values.items()}
        return values


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def is_duration(field: FieldInfo) -> bool:
    """Return whether an option is written as a duration."""
    return any(isinstance(metadata, BeforeValidator) for metadata in field.metadata)


def shown(value: object) -> str:
    """Return a value as TOML has it, in short, without passwords of URLs.

    >>> shown(True), shown("a"), shown([1, "b"]), shown({"a": 1}), shown("db:/u:p@ss@host")
    ('true', '"a"', '[1, "b"]', 'a table', '"db:..."')
    """
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = json.dumps(without_password(value), ensure_ascii=False)
    elif isinstance(value, dict | BaseModel):
        text = "a table"
    elif isinstance(value, list | tuple):
        text = f"[{', '.join(map(shown, value))}]"
    else:
        text = str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


_WITH_PASSWORD = re.compile(r"\s*([A-Za-z][\w+.-]*):.*(?:@|password=).*", re.DOTALL)


def without_password(text: str) -> str:
    """Return a text; if it looks like a URL with a password, only its scheme."""
    return f"{match[1]}:..." if (match := _WITH_PASSWORD.fullmatch(text)) else text


def unusable(path: str) -> str:
    """Return why a file cannot be read, or is empty; an empty text if it can be used."""
    try:
        return "" if Path(path).read_bytes().strip() else f"{path} is empty"
    except OSError as error:
        name = without_password(path)
        name = name if len(name) <= _PATH_SHOWN else f"{name[:_PATH_SHOWN]}..."
        return f"cannot read {name}: {error.strerror}"
    except ValueError:
        return f"{shown(path)} is not a path"


def check_files(
    section: BaseModel, info: ValidationInfo, pair: tuple[str, str], *others: str
) -> None:
    """Raise ValueError for files that cannot be used, or half of a pair.

    The context of the validation is ``Files``; without one no file is looked at.
    """
    there, missing = sorted(pair, key=lambda key: not getattr(section, key))
    if getattr(section, there) and not getattr(section, missing):
        raise ValueError(f"{there}: goes together with {missing}: set both, or none")
    if info.context not in {"now", "soon"}:
        return
    for key in (*pair, *others):
        path = getattr(section, key)
        comes = info.context == "soon" and comes_with_service(path)
        if path and not comes and (why := unusable(path)):
            raise ValueError(f"{key}: {why}")


def comes_with_service(path: str) -> bool:
    """Return whether a file is not there, and gwmond.service makes it when it starts."""
    return Path(path).parent == RUNTIME_DIRECTORY and not Path(path).exists()


def is_loopback(host: str) -> bool:
    """Return whether an address can only be reached from this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
