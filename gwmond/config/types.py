"""Types of options, and the error messages for values of another type."""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
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


Duration = Annotated[float, Field(gt=0, le=_CENTURY_S), BeforeValidator(parse_duration)]
Attribute = Annotated[str, AfterValidator(_attribute)]
HostPort = Annotated[str, AfterValidator(_host_port)]
Number = Annotated[int, Field(gt=0, le=_BILLION)]
NumberOrNone = Annotated[int, Field(ge=0, le=_BILLION)]
Amount = Annotated[float, Field(ge=0, le=_BILLION)]


class Section(BaseModel):
    """A table of the file: every key is known, and nothing changes once it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _of_its_type(cls, value: object, info: ValidationInfo) -> object:
        field = cls.model_fields[str(info.field_name)]
        if is_duration(field):  # parse_duration reports a wrong type
            return value
        if wrong := wrong_type(field.annotation, value, str(info.field_name)):
            raise ValueError(wrong)
        return value


def is_duration(field: FieldInfo) -> bool:
    """Return whether an option is written as a duration."""
    return any(isinstance(metadata, BeforeValidator) for metadata in field.metadata)


def wrong_type(wanted: Any, value: object, name: str) -> str:
    """Return what is wrong with a value's type, with the remedy; empty if the type is right.

    >>> wrong_type(tuple[str, ...], "cm", "collectors")
    'write a list: ["cm"]'
    >>> wrong_type(bool, "yes", "replicated")
    'write true or false, without quotes (found "yes")'
    """
    found = f"(found {shown(value)})"
    kinds = _kinds(wanted)
    if any(isinstance(kind, type) and issubclass(kind, Section) for kind in kinds):
        return _wrong_table(wanted, value, name)
    if get_origin(kinds[0]) is tuple:
        return _wrong_list(value)
    if get_origin(kinds[0]) is Literal:
        words = [json.dumps(word) for word in get_args(kinds[0])]
        known = isinstance(value, str) and value in get_args(kinds[0])
        return "" if known else f"write one of {', '.join(words)} {found}"
    if bool in kinds:
        return "" if isinstance(value, bool) else f"write true or false, without quotes {found}"
    if isinstance(value, bool) or not _is(kinds, value):
        return f"{_WRITE[kinds[0]]} {found}"
    return ""


_WRITE = {
    int: "write a whole number, without quotes",
    float: "write a number, without quotes",
    str: "write one text, in quotes",
}


def _kinds(wanted: Any) -> list[Any]:
    """Return the types of an option, without None and annotations."""
    if get_origin(wanted) is Annotated:
        return _kinds(get_args(wanted)[0])
    if isinstance(wanted, type) or get_origin(wanted) is Literal:
        return [wanted]
    if get_origin(wanted) is tuple:
        item = get_args(wanted)[0]
        return [item] if isinstance(item, type) and issubclass(item, BaseModel) else [wanted]
    return [inner for kind in get_args(wanted) if kind is not NoneType for inner in _kinds(kind)]


def _is(kinds: list[Any], value: object) -> bool:
    if value is None:
        return True  # only from Python: TOML has no such thing
    return isinstance(value, (int, float) if float in kinds else kinds[0])


def _wrong_table(wanted: Any, value: object, name: str) -> str:
    many = get_origin(wanted) is tuple
    of_tables = isinstance(value, list | tuple) and all(
        isinstance(item, dict | Section) for item in value
    )
    if many:
        return "" if of_tables else f"write a table [[...{name}]], in double brackets, for each"
    if isinstance(value, dict | Section):
        return ""
    if of_tables:
        return f"write the table once, in single brackets: [...{name}]"
    return f"is a table: write [...{name}], and its keys in the lines below (found {shown(value)})"


def _wrong_list(value: object) -> str:
    if isinstance(value, str):
        return f"write a list: [{shown(value)}]"
    if not isinstance(value, list | tuple):
        return f'write a list of texts, such as ["a", "b"] (found {shown(value)})'
    for item in value:
        if not isinstance(item, str):
            return (
                f'write a list of texts in quotes, such as ["a", "b"] (found {shown(item)} in it)'
            )
    return ""


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
    return f"{found[1]}:..." if (found := _WITH_PASSWORD.fullmatch(text)) else text


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


def is_loopback(host: str) -> bool:
    """Return whether an address can only be reached from this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
