"""Options about pilots' time: which records are read, when time is settled, what is kept."""

from __future__ import annotations

import os
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator

from gwmond.config.types import (
    Duration,
    Number,
    NumberOrNone,
    Section,
    shown,
    without_password,
)
from gwmond.model.times import parse_duration as _seconds

_SCHEMES = {"sqlite", "postgresql", "postgres", "postgresql+psycopg"}
NO_ZONE = "no time zone that is known here: write its name, as Europe/Zurich or UTC"
SOCKET_PATH_BYTES = 103
"""A socket's path has at most 107 bytes (unix(7)), of which a new one's suffix takes four."""


class Histories(Section):
    """Which records of finished runs of jobs are read."""

    schedds: bool = Field(
        True, description="Ask each schedd for its epoch history and its history."
    )
    lookback: Duration = Field(
        _seconds("1d"), description="How far back at the first start; later, all since then."
    )
    records: Number = Field(
        20000, description="Records fetched at once; more are left for the next query."
    )
    startds: tuple[str, ...] = Field(
        ("*",),
        description="Entries whose startds are asked for their history, near a pilot's end or "
        "where the schedds' records leave a hole; * and ? match. Empty: none.",
    )
    startds_per_poll: NumberOrNone = Field(
        20, description="At most so many startds are asked in a poll."
    )
    startd_deadline: Duration = Field(
        _seconds("5s"), description="A startd that takes longer is asked again later, and later."
    )
    files: tuple[str, ...] = Field(
        (), description="Startds' history files to read besides; * and ? match."
    )


class Factory(Section):
    """GlideinWMS's own files, where they can be read: the best evidence of pilots."""

    directories: tuple[str, ...] = Field(
        (), description="Where a factory keeps pilots' output (job.*.out, job.*.err)."
    )
    every: Duration = Field(_seconds("5m"), description="How often they are looked through.")
    timezone: str = Field(
        "",
        description="The factory's time zone (as Europe/Zurich), for times in its logs that tell "
        "none. Empty: this host's.",
    )
    central_logs: tuple[str, ...] = Field(
        (), description="Directories with logs of pilots' daemons (RFC 5424), sent there by syslog."
    )
    log_socket: str = Field(
        "", description="Unix datagram socket to make and receive the same lines on. Empty: none."
    )

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


class Pilots(Section):
    """When the time of pilots is settled."""

    settle_delay: Duration = Field(
        _seconds("2m"), description="Time is not settled before it is this old."
    )
    outcome_wait: Duration = Field(
        _seconds("1h"),
        description="A job that left its slot without a record is unclassified after this.",
    )
    silent_wait: Duration = Field(
        _seconds("1d"), description="The same, while its schedd does not answer."
    )
    verdict_after: Duration = Field(
        _seconds("6h"),
        description="An error soon after a job's start is the user's, unless by then evidence "
        "says that it was the pilot's.",
    )
    end_tolerance: Duration = Field(
        _seconds("5m"), description="A run that ended this long before its pilot ended with it."
    )
    assumed_end: Duration = Field(
        _seconds("1h"),
        description="A pilot that no collector has shown ended when for so long no job ran on it, "
        "or its output was not written to. What its queue says waits as long for its output.",
    )
    claims_every: Duration = Field(
        _seconds("10m"), description="How often all claims are asked for, not only new ones."
    )


def _default_ledger() -> str:
    directory = os.environ.get("STATE_DIRECTORY", "/var/lib/gwmond").partition(":")[0]
    return f"sqlite:///{directory}/ledger.sqlite"


class Ledger(Section):
    """The durable memory: totals, peaks, and the time up to which was accounted."""

    url: str = Field(
        default_factory=_default_ledger,
        description="sqlite:////absolute/path or postgresql://user@host/database.",
    )
    hours_retention: Duration = Field(
        _seconds("5y"), description="How long hourly totals are kept; totals stay for ever."
    )
    pilots_retention: Duration = Field(
        _seconds("180d"), description="How long pilots that have ended are kept."
    )
    attempts_retention: Duration = Field(
        _seconds("90d"), description="How long runs of jobs are kept."
    )
    corrections_retention: Duration = Field(
        _seconds("5y"), description="How long corrections of settled time are kept."
    )
    problems_retention: Duration = Field(
        _seconds("90d"), description="How long recorded problems are kept."
    )

    @field_validator("url")
    @classmethod
    def _place(cls, value: str) -> str:
        scheme, found, _ = value.partition("://")
        path = "/" in value and without_password(value) == value
        if (found and scheme not in _SCHEMES) or (not found and not path):
            # the value is not shown: it may hold a password
            raise ValueError(
                "is neither a path nor a URL of a ledger: write sqlite:////var/lib/gwmond/"
                "ledger.sqlite, a path with a slash, or postgresql://user@host/database"
            )
        return value
