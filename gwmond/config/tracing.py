"""Where traces go, by ``[traces]`` and by OpenTelemetry's environment variables.

What the file has counts before the environment, as what a program says counts in OpenTelemetry's
own SDKs; of variables, one for traces (``..._TRACES_...``) counts before one for all signals.
OTEL_SDK_DISABLED=true turns the export off, whatever else is said.  Sources: OpenTelemetry
specification, "OpenTelemetry Protocol Exporter" and "Environment Variable Specification".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from gwmond.config.settings import ConfigError, Traces
from gwmond.config.types import shown

PATH = "/v1/traces"
_EXPORTER = "OTEL_EXPORTER_OTLP_"
_FILES = {
    "certificate": "CERTIFICATE",
    "client_certificate": "CLIENT_CERTIFICATE",
    "client_key": "CLIENT_KEY",
}
_SAMPLERS: dict[str, tuple[float | None, bool]] = {
    "always_on": (1.0, False),
    "always_off": (0.0, False),
    "traceidratio": (None, False),
    "parentbased_always_on": (1.0, True),
    "parentbased_always_off": (0.0, True),
    "parentbased_traceidratio": (None, True),
}
"""The share of traces, None: as OTEL_TRACES_SAMPLER_ARG says; do submitters' decisions count."""


class Export(NamedTuple):
    """Where traces go; ``url`` is empty where none do.

    ``headers`` are those of the environment; those of ``options.headers_file`` are read when they
    are sent.
    """

    options: Traces
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    service: str = "gwmond"
    resource: tuple[tuple[str, str], ...] = ()


def export_of(options: Traces, environ: Mapping[str, str]) -> Export:
    """Return where traces go; raises ConfigError, which names the variable that is wrong."""
    configured = options.model_fields_set
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return Export(options)
    url = _url(options.endpoint) if options.endpoint else _environments_url(environ)
    if not url:
        return Export(options)
    changed, variables = _changes(environ, url_given=bool(options.endpoint))
    changed = {name: value for name, value in changed.items() if name not in configured}
    files = {name: getattr(options, name) for name in configured & _FILES.keys()}
    try:
        checked = Traces.model_validate({**files, **changed, "endpoint": url}, context="now")
    except ValidationError as error:
        raise ConfigError("\n".join(_explained(error, variables))) from None
    merged = options.model_copy(update={name: getattr(checked, name) for name in changed})
    resource = dict(_pairs(environ, "OTEL_RESOURCE_ATTRIBUTES"))
    named = resource.pop("service.name", "gwmond")
    return Export(
        merged,
        url,
        _pairs(environ, _variable(environ, "HEADERS")),
        environ.get("OTEL_SERVICE_NAME") or named,
        tuple(sorted(resource.items())),
    )


def headers_of(export: Export) -> dict[str, str]:
    """Return the headers to send; raises OSError or ValueError, which do not show their values."""
    headers = dict(export.headers)
    if not (path := export.options.headers_file):
        return headers
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not line.isascii():
            raise ValueError(f'{path}:{number}: write "Name: value"')
        headers[name.strip()] = value.strip()
    return headers


def _url(text: str) -> str:
    """Return the URL to post to: one without a path gets OTLP's."""
    return text.rstrip("/") + PATH if urlsplit(text).path in {"", "/"} else text


def _environments_url(environ: Mapping[str, str]) -> str:
    if environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() not in {"otlp", ""}:
        return ""
    if url := environ.get(f"{_EXPORTER}TRACES_ENDPOINT", "").strip():
        return url
    url = environ.get(f"{_EXPORTER}ENDPOINT", "").strip()
    return url.rstrip("/") + PATH if url else ""


def _variable(environ: Mapping[str, str], name: str) -> str:
    """Return the variable for traces, else the one for all signals."""
    own = f"{_EXPORTER}TRACES_{name}"
    return own if environ.get(own, "").strip() else f"{_EXPORTER}{name}"


def _changes(
    environ: Mapping[str, str], *, url_given: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the environment says of options, and by which variables."""
    changed: dict[str, Any] = {}
    endpoint = _variable(environ, "ENDPOINT")
    variables = {"endpoint": "traces.endpoint" if url_given else endpoint}

    def get(option: str, name: str) -> str:
        variables[option] = name
        return environ.get(name, "").strip()

    for option, name in _FILES.items():
        if value := get(option, _variable(environ, name)):
            changed[option] = value
    if value := get("compression", _variable(environ, "COMPRESSION")):
        changed["compression"] = value
    if value := get("timeout", _variable(environ, "TIMEOUT")):
        changed["timeout"] = f"{value}ms"
    protocol = _variable(environ, "PROTOCOL")
    if not url_given and environ.get(protocol, "").strip() not in {"", "http/protobuf"}:
        raise ConfigError(
            f"{protocol}: gwmond exports http/protobuf only (found {shown(environ[protocol])}): "
            "write that, and the endpoint of OTLP over HTTP"
        )
    if value := get("sampler", "OTEL_TRACES_SAMPLER"):
        if value not in _SAMPLERS:
            raise ConfigError(
                f"OTEL_TRACES_SAMPLER: write one of {', '.join(_SAMPLERS)} (found {shown(value)})"
            )
        ratio, changed["parent_based"] = _SAMPLERS[value]
        argument = get("ratio", "OTEL_TRACES_SAMPLER_ARG")
        changed["ratio"] = _number(argument) if ratio is None and argument else (ratio or 0.0)
        if ratio is None and not argument:
            changed["ratio"] = 1.0
    return changed, variables


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            f"OTEL_TRACES_SAMPLER_ARG: write a number from 0 to 1 (found {shown(text)})"
        ) from None


def _pairs(environ: Mapping[str, str], name: str) -> tuple[tuple[str, str], ...]:
    """Return what a variable lists as ``name=value,name=value``, in W3C's encoding of baggage."""
    pairs = []
    for part in filter(str.strip, environ.get(name, "").split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{name}: write NAME=VALUE,NAME=VALUE")  # it may hold a password
        pairs.append((unquote(key.strip()), unquote(value.strip())))
    return tuple(pairs)


def _explained(error: ValidationError, variables: Mapping[str, str]) -> list[str]:
    lines = []
    for item in error.errors():
        message = str(item["msg"]).removeprefix("Value error, ")
        option = str(item["loc"][0]) if item["loc"] else message.partition(":")[0]
        message = message.removeprefix(f"{option}: ")
        lines.append(f"{variables.get(option, f'traces.{option}')}: {message}")
    return lines
