"""The configuration: one TOML file, validated whole before anything starts.

Every option is declared here, with its type and default.  ``etc/gwmond.toml`` explains the options;
a test keeps options and defaults equal in both.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from gwmond.config.errors import explain, key_lines, unquoted
from gwmond.config.types import (
    Amount,
    Attribute,
    Duration,
    Files,
    HostPort,
    Number,
    NumberOrNone,
    Section,
    check_files,
    is_loopback,
    shown,
    without_password,
)
from gwmond.model.digits import is_number
from gwmond.model.times import parse_duration as _seconds

_SCHEMES = {"sqlite", "postgresql", "postgres", "postgresql+psycopg"}
NO_ZONE = "no time zone that is known here: write its name, as Europe/Zurich or UTC"
SOCKET_PATH_BYTES = 103
"""A socket's path has at most 107 bytes (unix(7)), and a new one's suffix takes four."""


class ConfigError(Exception):
    """Bad configuration; the message names the file, the key and the remedy."""


class Wms(Section):
    """Optional: the factory's collectors and schedds."""

    collectors: tuple[HostPort, ...] = ()
    factory_schedds: tuple[str, ...] = ()


class PoolOptions(Section):
    """The HTCondor pool that is watched."""

    collectors: tuple[HostPort, ...] = ()
    schedds: tuple[str, ...] = ()
    replicated: bool = False
    token_directory: str = ""
    wms: Wms = Wms()


class Attributes(Section):
    """Names of ClassAd attributes; in a list, the first that is defined counts."""

    site: tuple[Attribute, ...] = ("GLIDEIN_Site",)
    entry: tuple[Attribute, ...] = ("GLIDEIN_Entry_Name",)
    frontend: tuple[Attribute, ...] = ("GLIDECLIENT_Name",)
    group: tuple[Attribute, ...] = ("GLIDECLIENT_Group",)
    factory: tuple[Attribute, ...] = ("GLIDEIN_Factory",)
    retire: tuple[Attribute, ...] = ("GLIDEIN_ToRetire", "GLIDEIN_ToDie")
    die: tuple[Attribute, ...] = ("GLIDEIN_ToDie",)
    accounting_group: Attribute = "AcctGroup"
    walltime_minutes: tuple[Attribute, ...] = ("MaxWallTimeMins",)
    walltime_seconds: tuple[Attribute, ...] = ("JOB_EXPECTED_MAX_LIFETIME",)


class Poll(Section):
    """How often sources are queried, and their limits."""

    interval: Duration = _seconds("60s")
    deadline: Duration = _seconds("45s")
    parallel: Number = 10
    memory_limit_mib: Number = 8192
    busy_duty_cycle: Annotated[float, Field(gt=0, le=1)] = 0.95
    busy_factor: Number = 5


class Canonical(Section):
    """The canonical unit: 1 core and this much memory."""

    memory_mib: Number = 2000


class Pledge(Section):
    """The capacity that a site or an entry has pledged."""

    site: str = ""
    entry: str = ""
    cores: Amount
    memory_mib: Amount | None = None
    gpus: NumberOrNone = 0

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if bool(self.site) == bool(self.entry):
            raise ValueError(f"give either site or entry{', not both' if self.site else ''}")
        return self


class Site(Section):
    """Thresholds for the state of an entry."""

    pending_grace: Duration = _seconds("30m")
    untaken_grace: Duration = _seconds("10m")
    register_grace: Duration = _seconds("15m")
    verdict_check: Duration = _seconds("10m")
    peak_window: Duration = _seconds("30d")
    peak_after: Duration = _seconds("1d")
    collector_distrust: Duration = _seconds("1h")
    factory_info_max_age: Duration = _seconds("30m")
    pledge: tuple[Pledge, ...] = ()

    @model_validator(mode="after")
    def _pledged_once(self) -> Self:
        names = [(p.site, p.entry) for p in self.pledge]
        if twice := sorted(
            {site or entry for site, entry in names if names.count((site, entry)) > 1}
        ):
            raise ValueError(f"pledge: more than one for {', '.join(twice)}")
        return self


class DemandOptions(Section):
    """Which idle jobs count as demand, how they are grouped, and when a running job is stalled."""

    constraint: str = ""
    attributes: tuple[Attribute, ...] = ("x509UserProxyVOName",)
    max_groups: Number = 20000
    stalled_after: Duration = _seconds("6h")


class NamesOptions(Section):
    """How many names, which pilots, users and daemons choose, are kept apart."""

    entries: Number = 2000
    groups: Number = 10000
    accounting_groups: Number = 1000
    schedds: Number = 500
    frontends: Number = 500
    servers: Number = 200
    forget_after: Duration = _seconds("30d")


class Histories(Section):
    """Records of finished runs of jobs: which are read, and how many at once."""

    schedds: bool = True
    lookback: Duration = _seconds("1d")
    records: Number = 20000
    startds: tuple[str, ...] = ("*",)
    startds_per_poll: NumberOrNone = 20
    startd_deadline: Duration = _seconds("5s")


class Factory(Section):
    """Files of the factory and central logs."""

    directories: tuple[str, ...] = ()
    every: Duration = _seconds("5m")
    timezone: str = ""
    central_logs: tuple[str, ...] = ()
    log_socket: str = ""

    @field_validator("timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        try:
            ZoneInfo(value or "UTC")
        except (OSError, ValueError, KeyError):
            raise ValueError(f"{shown(value)} is {NO_ZONE}") from None
        return value

    @field_validator("log_socket")
    @classmethod
    def _place(cls, value: str) -> str:
        if value and not os.path.isabs(value):
            raise ValueError(f"{shown(value)} is not an absolute path: begin it with /")
        if len(os.fsencode(value)) > SOCKET_PATH_BYTES:
            raise ValueError(f"a socket's path has at most {SOCKET_PATH_BYTES} bytes: shorten it")
        return value


class PilotOptions(Section):
    """When pilots' time is settled."""

    settle_delay: Duration = _seconds("2m")
    outcome_wait: Duration = _seconds("1h")
    silent_wait: Duration = _seconds("1d")
    verdict_after: Duration = _seconds("6h")
    end_tolerance: Duration = _seconds("5m")
    assumed_end: Duration = _seconds("1h")
    claims_every: Duration = _seconds("10m")


class Http(Section):
    """HTTP: address, TLS, token."""

    listen: str = "127.0.0.1:9818"
    tls_cert: str = ""
    tls_key: str = ""
    auth_token_file: str = ""
    hosts: tuple[str, ...] = ()
    jobs: Literal["token", "all", "nobody"] = "token"
    allow_insecure: bool = False

    @property
    def shows_jobs(self) -> bool:
        """Whether single jobs of users may be asked for; with a token every request needs it."""
        return self.jobs == "all" or (self.jobs == "token" and bool(self.auth_token_file))

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

    @model_validator(mode="after")
    def _safe(self, info: ValidationInfo) -> Self:
        host, _, port = self.listen.rpartition(":")
        if not host or not is_number(port) or int(port) > 65535:
            raise ValueError('listen: write ADDRESS:PORT, such as "127.0.0.1:9818"')
        check_files(self, info, ("tls_cert", "tls_key"), "auth_token_file")
        secured = self.tls_cert and self.auth_token_file
        if not (is_loopback(host.strip("[]")) or secured or self.allow_insecure):
            raise ValueError(
                f"listen: {self.listen} is not loopback: set tls_cert, tls_key and "
                "auth_token_file, or allow_insecure = true where a proxy protects it"
            )
        return self


def _default_ledger() -> str:
    directory = os.environ.get("STATE_DIRECTORY", "/var/lib/gwmond").partition(":")[0]
    return f"sqlite:///{directory}/ledger.sqlite"


class LedgerOptions(Section):
    """The ledger's database, and how long it keeps what."""

    url: str = Field(default_factory=_default_ledger)
    hours_retention: Duration = _seconds("5y")
    pilots_retention: Duration = _seconds("180d")
    runs_retention: Duration = _seconds("90d")
    corrections_retention: Duration = _seconds("5y")
    problems_retention: Duration = _seconds("90d")
    polls_retention: Duration = _seconds("7d")

    @field_validator("url")
    @classmethod
    def _place(cls, value: str) -> str:
        scheme, separator, _ = value.partition("://")
        path = "/" in value and without_password(value) == value
        if (separator and scheme not in _SCHEMES) or (not separator and not path):
            # the value is not shown: it may hold a password
            raise ValueError(
                "is neither a path nor a URL of a ledger: write sqlite:////var/lib/gwmond/"
                "ledger.sqlite, a path with a slash, or postgresql://user@host/database"
            )
        return value


class Traces(Section):
    """Export of traces (OTLP): where to, and of what; ``gwmond.config.tracing`` adds what the
    environment says.
    """

    endpoint: str = ""
    headers_file: str = ""
    certificate: str = ""
    client_certificate: str = ""
    client_key: str = ""
    compression: Literal["gzip", "none"] = "gzip"
    timeout: Duration = _seconds("10s")
    batch: Number = 500
    max_age: Duration = _seconds("1h")
    jobs: bool = True
    pilots: bool = True
    join_at_most: NumberOrNone = 500
    read_environment: bool = False
    ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    parent_based: bool = True
    always: tuple[Literal["failed", "evicted", "slow"], ...] = ()
    slow: Duration = _seconds("1d")
    sites: tuple[str, ...] = ("*",)
    groups: tuple[str, ...] = ("*",)
    users: tuple[str, ...] = ("*",)

    @field_validator("endpoint")
    @classmethod
    def _url(cls, value: str) -> str:
        if not value:
            return value
        # the value is not shown: it may hold a password
        try:
            url = urlsplit(value)
            valid = url.scheme in {"http", "https"} and url.hostname and url.port != 0
        except ValueError:
            valid = False
        if not valid or not value.isascii() or any(letter.isspace() for letter in value):
            raise ValueError(
                "is no URL of a receiver of OTLP over HTTP: write http://HOST:4318 or https://..."
            )
        if url.username is not None:
            raise ValueError("has a user or password: put them into traces.headers_file instead")
        return value

    @model_validator(mode="after")
    def _files(self, info: ValidationInfo) -> Self:
        check_files(self, info, ("client_certificate", "client_key"), "headers_file", "certificate")
        return self


class Metrics(Section):
    """Limits of /metrics."""

    series_budget: Number = 10000


class Log(Section):
    """The log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json"] = "auto"


class Replay(Section):
    """A recording made by ``gwmond record``, instead of a live pool."""

    file: str = ""
    speed: Annotated[float, Field(gt=0, le=1e6)] = 60.0


class Config(Section):
    """The whole configuration file."""

    pool: PoolOptions = PoolOptions()
    attributes: Attributes = Attributes()
    poll: Poll = Poll()
    canonical: Canonical = Canonical()
    site: Site = Site()
    demand: DemandOptions = DemandOptions()
    names: NamesOptions = NamesOptions()
    histories: Histories = Histories()
    factory: Factory = Factory()
    pilots: PilotOptions = PilotOptions()
    http: Http = Http()
    ledger: LedgerOptions = LedgerOptions()
    traces: Traces = Traces()
    metrics: Metrics = Metrics()
    log: Log = Log()
    replay: Replay = Replay()

    @model_validator(mode="after")
    def _deadline(self) -> Self:
        if self.poll.deadline >= self.poll.interval:
            default = "" if "deadline" in self.poll.model_fields_set else ", the default,"
            raise ValueError(
                f"poll.deadline: {self.poll.deadline:g}s{default} must be shorter than "
                f"poll.interval, {self.poll.interval:g}s: lower it, or make the interval longer"
            )
        return self


def load(path: Path, files: Files = "unused") -> Config:
    """Read and validate ``path``; raise ConfigError with every problem found."""
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot read it: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}{unquoted(text, str(error))}") from None
    return parse(data, str(path), text, files)


def parse(data: dict[str, Any], origin: str, text: str = "", files: Files = "unused") -> Config:
    """Validate a table; ``origin`` names it in errors, ``text`` has its lines."""
    try:
        return Config.model_validate(data, context=files)
    except ValidationError as error:
        lines = key_lines(text)
        problems = [explain(dict(item), origin, Config, lines) for item in error.errors()]
        raise ConfigError("\n".join(problems)) from None
