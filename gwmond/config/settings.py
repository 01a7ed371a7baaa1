"""The configuration: one TOML file, validated whole before anything starts.

Every option is declared once, here, with its default and the sentence that explains it; the
example file ``etc/gwmond.toml`` is held equal to these models by a test.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from gwmond.config.errors import explain, key_lines, unquoted
from gwmond.config.pilots import Factory, Histories, Ledger, Pilots
from gwmond.config.types import (
    Amount,
    Attribute,
    Duration,
    HostPort,
    Number,
    NumberOrNone,
    Section,
    is_loopback,
    unusable,
)
from gwmond.model.digits import is_number
from gwmond.model.times import parse_duration as _seconds


class ConfigError(Exception):
    """Bad configuration; the message names the file, the key and the remedy."""


class Wms(Section):
    """Optional: the factory's side, for what only the factory knows."""

    collectors: tuple[HostPort, ...] = Field((), description="WMS collectors, HOST[:PORT].")
    factory_schedds: tuple[str, ...] = Field(
        (), description="Names of the factory's schedds, which hold the pilots as grid jobs."
    )


class Pool(Section):
    """Which HTCondor pool is watched."""

    collectors: tuple[HostPort, ...] = Field(
        (),
        description="Collectors, HOST[:PORT]. Empty: COLLECTOR_HOST of this host's HTCondor.",
    )
    schedds: tuple[str, ...] = Field(
        (),
        description="Schedds to ask, by name; * and ? match. Empty: all that the collectors know, "
        "those that flock here included.",
    )
    replicated: bool = Field(
        False,
        description="The collectors hold the same ads: one that answers suffices. Otherwise each "
        "holds a part, and what a silent one knows is unknown.",
    )
    token_directory: str = Field(
        "", description="Directory with the IDTOKEN to use. Empty: HTCondor's own search."
    )
    wms: Wms = Wms()


class Attributes(Section):
    """Which ClassAd attributes say what; of a list, the first that is defined counts."""

    site: tuple[Attribute, ...] = Field(("GLIDEIN_Site",), description="Slots: the site.")
    entry: tuple[Attribute, ...] = Field(
        ("GLIDEIN_Entry_Name",), description="Slots: the entry. None defined: the site's name."
    )
    frontend: tuple[Attribute, ...] = Field(
        ("GLIDECLIENT_Name",), description="Slots: the frontend a pilot runs for."
    )
    group: tuple[Attribute, ...] = Field(
        ("GLIDECLIENT_Group",), description="Slots: the frontend's group."
    )
    factory: tuple[Attribute, ...] = Field(
        ("GLIDEIN_Factory",), description="Slots: the factory. Its presence marks a pilot."
    )
    retire: tuple[Attribute, ...] = Field(
        ("GLIDEIN_ToRetire", "GLIDEIN_ToDie"),
        description="Slots: the epoch from which a pilot takes no new job.",
    )
    die: tuple[Attribute, ...] = Field(
        ("GLIDEIN_ToDie",), description="Slots: the epoch at which a pilot ends."
    )
    accounting_group: Attribute = Field("AcctGroup", description="Jobs: the accounting group.")
    walltime_minutes: tuple[Attribute, ...] = Field(
        ("MaxWallTimeMins",), description="Jobs: requested wall time in minutes."
    )
    walltime_seconds: tuple[Attribute, ...] = Field(
        ("JOB_EXPECTED_MAX_LIFETIME",), description="Jobs: requested wall time in seconds."
    )


class Poll(Section):
    """How often is asked, and how long is waited."""

    interval: Duration = Field(_seconds("60s"), description="Time between the starts of two polls.")
    deadline: Duration = Field(
        _seconds("45s"), description="A query that takes longer is killed. Less than the interval."
    )
    parallel: Number = Field(8, description="Queries under way at once.")
    memory_limit_mib: Number = Field(
        8192, description="A query whose process grows beyond this (MiB of address space) fails."
    )
    busy_duty_cycle: Annotated[float, Field(gt=0, le=1)] = Field(
        0.95, description="A schedd whose RecentDaemonCoreDutyCycle is above is asked less often."
    )
    busy_factor: Number = Field(5, description="Then, only every so many polls.")


class Canonical(Section):
    """The canonical unit: 1 core and this much memory."""

    memory_mib: Number = Field(2000, description="Memory of a canonical unit in MiB.")


class Pledge(Section):
    """What a site or an entry has promised; it is the capacity then."""

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
    """Rules that turn what is seen at a site into its state."""

    pending_grace: Duration = Field(
        _seconds("30m"),
        description="A pilot that waits longer in the site's queue means the site is saturated.",
    )
    untaken_grace: Duration = Field(
        _seconds("10m"),
        description="Free slots that jobs match for longer, and nobody takes, are told (see "
        "idle_slots_untaken).",
    )
    verdict_check: Duration = Field(
        _seconds("10m"),
        description="A pilot that registers checks the verdict on its entry: does it run a job so "
        "soon?",
    )
    peak_window: Duration = Field(
        _seconds("30d"), description="Capacity is the most that ran at once within this window."
    )
    peak_after: Duration = Field(
        _seconds("1d"),
        description="An entry watched for less than this has no peak yet: its limit counts.",
    )
    collector_distrust: Duration = Field(
        _seconds("1h"),
        description="A collector older than this knows all pilots, whatever updates take.",
    )
    factory_info_max_age: Duration = Field(
        _seconds("30m"), description="Older information of the factory's is named as a reason."
    )
    pledge: tuple[Pledge, ...] = ()

    @model_validator(mode="after")
    def _pledged_once(self) -> Self:
        names = [(p.site, p.entry) for p in self.pledge]
        if twice := sorted(
            {site or entry for site, entry in names if names.count((site, entry)) > 1}
        ):
            raise ValueError(f"pledge: more than one for {', '.join(twice)}")
        return self


class Demand(Section):
    """Which idle jobs count, and what tells them apart."""

    constraint: str = Field("", description="ClassAd expression that jobs must satisfy besides.")
    attributes: tuple[Attribute, ...] = Field(
        ("x509UserProxyVOName",),
        description="Job attributes to group by besides those of Requirements, START and requests.",
    )
    max_groups: Number = Field(
        20000, description="A schedd with more groups is counted, but not matched beyond these."
    )


class Names(Section):
    """How many names are kept apart: pilots and users choose them, whoever they are."""

    entries: Number = Field(2000, description="Entries of sites; pilots of others are `other`.")
    groups: Number = Field(
        10000, description="Frontend groups, each once for each entry; others are `other`."
    )
    accounting_groups: Number = Field(
        1000, description="Accounting groups of jobs; others are `other`."
    )
    forget_after: Duration = Field(
        _seconds("30d"),
        description="A name that was not seen for so long gives its place back, and its counters "
        "leave /metrics.",
    )


class Http(Section):
    """Where metrics and pages are served."""

    listen: str = Field("127.0.0.1:9818", description="ADDRESS:PORT, [ADDRESS]:PORT for IPv6.")
    tls_cert: str = Field("", description="Certificate chain (PEM).")
    tls_key: str = Field("", description="Its private key (PEM).")
    auth_token_file: str = Field(
        "", description="File with the bearer token which clients must send (all but /-/healthy)."
    )
    hosts: tuple[str, ...] = Field(
        (),
        description="Names under which clients may ask, besides addresses, localhost and this "
        "host's own names.",
    )
    allow_insecure: bool = Field(
        False, description="Listen beyond loopback without TLS or token (behind a proxy)."
    )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

    @model_validator(mode="after")
    def _safe(self) -> Self:
        host, _, port = self.listen.rpartition(":")
        if not host or not is_number(port) or int(port) > 65535:
            raise ValueError('listen: write ADDRESS:PORT, such as "127.0.0.1:9818"')
        if bool(self.tls_cert) != bool(self.tls_key):
            there, missing = ("tls_cert", "tls_key") if self.tls_cert else ("tls_key", "tls_cert")
            raise ValueError(f"{there}: goes together with {missing}: set both, or none")
        for key in ("tls_cert", "tls_key", "auth_token_file"):
            if (path := getattr(self, key)) and (why := unusable(path)):
                raise ValueError(f"{key}: {why}")
        secured = self.tls_cert and self.auth_token_file
        if not (is_loopback(host.strip("[]")) or secured or self.allow_insecure):
            raise ValueError(
                f"listen: {self.listen} is not loopback: set tls_cert, tls_key and "
                "auth_token_file, or allow_insecure = true where a proxy protects it"
            )
        return self


class Metrics(Section):
    """What /metrics shows."""

    series_budget: Number = Field(
        10000,
        description='Series per family. Beyond it the smallest are summed as "other".',
    )


class Log(Section):
    """The log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json"] = Field(
        "auto", description="auto: console on a terminal, else json."
    )


class Replay(Section):
    """Instead of a live pool: a recording made by ``gwmond record``."""

    file: str = Field("", description="The recording. Empty: the live pool.")
    speed: Annotated[float, Field(gt=0, le=1e6)] = Field(
        60.0, description="Recorded seconds per real second."
    )


class Config(Section):
    """The whole configuration file."""

    pool: Pool = Pool()
    attributes: Attributes = Attributes()
    poll: Poll = Poll()
    canonical: Canonical = Canonical()
    site: Site = Site()
    demand: Demand = Demand()
    names: Names = Names()
    histories: Histories = Histories()
    factory: Factory = Factory()
    pilots: Pilots = Pilots()
    http: Http = Http()
    ledger: Ledger = Ledger()
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


def load(path: Path) -> Config:
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
    return parse(data, str(path), text)


def parse(data: dict[str, Any], origin: str, text: str = "") -> Config:
    """Validate a table; ``origin`` names it in errors, ``text`` has its lines."""
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        lines = key_lines(text)
        told = [explain(dict(item), origin, Config, lines) for item in error.errors()]
        raise ConfigError("\n".join(told)) from None
