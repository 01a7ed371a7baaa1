"""What commands have in common: exit codes, the configuration and the ledger asked for, errors."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gwmond.model.digits import is_number
from gwmond.model.facts import Place
from gwmond.model.times import SECOND_US

if TYPE_CHECKING:
    import argparse

    from gwmond.config.settings import Config
    from gwmond.config.types import Files
    from gwmond.ledger.reading.reader import LedgerReader
    from gwmond.model.pilots.stored_pilots import PilotRow
    from gwmond.model.times import Period
    from gwmond.reports.ledger.ledger_reading import Age
    from gwmond.reports.render.document import Document
    from gwmond.reports.sites.polls import PastPoll

EXIT_OK, EXIT_FAILED, EXIT_BAD_CONFIG, EXIT_SOURCES_DOWN = 0, 1, 2, 3
_FILES: dict[str, Files] = {"run": "now", "demo": "now", "check": "soon"}
"""Which commands use the token, certificates and keys of [http] and [traces]."""


def configuration(arguments: argparse.Namespace) -> Config:
    """Return the configuration that the common options ask for; raises ConfigError."""
    from gwmond.config.settings import Config, load, parse  # noqa: PLC0415

    config = Config()
    if arguments.config:
        config = load(arguments.config, _FILES.get(arguments.command, "unused"))
    if arguments.collector:
        named = parse({"pool": {"collectors": arguments.collector}}, "--collector").pool
        pool = config.pool.model_copy(update={"collectors": named.collectors})
        replay = config.replay.model_copy(update={"file": ""})
        config = config.model_copy(update={"pool": pool, "replay": replay})
    if arguments.log_level:
        log = config.log.model_copy(update={"level": arguments.log_level})
        config = config.model_copy(update={"log": log})
    return config


def add_period(parser: argparse._ActionsContainer, default: str = "24 h before the end") -> None:
    """Add from when and to when; ``default`` is the beginning's, in words."""
    parser.add_argument(
        "--from", dest="since", metavar="TIME", help=f"beginning (default: {default})"
    )
    parser.add_argument("--to", dest="until", metavar="TIME", help="end (default: now)")


def period_of(arguments: argparse.Namespace, now_us: int) -> Period:
    """Return the period that is asked for; raises ConfigError."""
    from gwmond.reports.render.periods import parse_period  # noqa: PLC0415

    with usage():
        return parse_period(arguments.since, arguments.until, now_us)


def add_place(parser: argparse._ActionsContainer) -> None:
    """Add which pilots are counted."""
    parser.add_argument("--site", help="only this site")
    parser.add_argument("--entry", help="only this entry")
    parser.add_argument("--group", help="only pilots of this group")


def place_of(arguments: argparse.Namespace) -> Place:
    """Return the place that is asked for."""
    return Place(arguments.site or "", arguments.entry or "", arguments.group or "")


def now(config: Config, arguments: argparse.Namespace) -> int:
    """Return the time, in microseconds since the epoch.

    The machine's; of a ledger whose replay has a time of its own, when it was written last.
    """
    from gwmond.ledger.database.errors import LedgerError  # noqa: PLC0415 (SQLAlchemy takes long to load)
    from gwmond.ledger.reading.reader import LedgerReader  # noqa: PLC0415
    from gwmond.service.host.clock import REPLAY  # noqa: PLC0415

    try:
        with LedgerReader.open(arguments.ledger or config.ledger.url) as ledger:
            tick = ledger.tick()
    except LedgerError:
        tick = None  # said by who opens it
    own = tick is not None and tick.boot_id == REPLAY
    return round(tick.wall * SECOND_US) if tick is not None and own else time.time_ns() // 1000


def add_ledger_option(parser: argparse._ActionsContainer) -> None:
    """Add which ledger is read."""
    parser.add_argument(
        "--ledger",
        type=place,
        metavar="URL",
        help="another ledger than [ledger] url: a path or URL",
    )


def place(text: str) -> str:
    """Return what names a ledger; a mere name is that of a file in this directory."""
    return f"./{text}" if re.fullmatch(r"[\w.-]+", text) else text


def add_as_of(parser: argparse._ActionsContainer) -> None:
    """Add of which poll of the past the ledger is asked; none: the pool is asked now."""
    parser.add_argument(
        "--as-of", metavar="TIME", help="the daemon's last poll until then, from its ledger"
    )
    add_ledger_option(parser)


def past(config: Config, arguments: argparse.Namespace) -> PastPoll | None:
    """Return the poll that ``--as-of`` names, and say of when it is; None: it is not kept.

    Raises ConfigError, LedgerError.
    """
    from gwmond.reports.render.periods import parse_time  # noqa: PLC0415
    from gwmond.reports.sites.polls import NoPoll, past_poll  # noqa: PLC0415

    now_us = now(config, arguments)
    with usage():
        at_us = parse_time(arguments.as_of, now_us)
    try:
        with opened(config, arguments, now_us) as (ledger, _):
            poll = past_poll(ledger, at_us)
    except NoPoll as error:
        complain(str(error))
        return None
    complain(poll.note(at_us, config.poll.interval))
    return poll


@contextmanager
def opened(
    config: Config, arguments: argparse.Namespace, now_us: int
) -> Iterator[tuple[LedgerReader, Age]]:
    """Open the ledger that is asked for, and say how old it is; raises LedgerError."""
    from gwmond.ledger.reading.reader import LedgerReader  # noqa: PLC0415 (SQLAlchemy takes long to load)
    from gwmond.reports.ledger.ledger_reading import age_of  # noqa: PLC0415

    with LedgerReader.open(arguments.ledger or config.ledger.url) as ledger:
        yield ledger, age_of(ledger, now_us, config.poll.interval)


def one_pilot(ledger: LedgerReader, text: str, noun: str = "pilot") -> PilotRow | None:
    """Return the pilot that a person means; say so where there is none, or more than one."""
    from gwmond.reports.pilots.story import SOME, find  # noqa: PLC0415
    from gwmond.reports.render.periods import short  # noqa: PLC0415

    rows = find(ledger, text)
    if len(rows) == 1:
        return rows[0]
    if not rows:
        complain(
            f'no {noun} "{text}" in ledger {ledger.where}. See gwmond pilots --past --name PART'
        )
        return None
    many = f"more than {SOME}" if len(rows) > SOME else str(len(rows))
    complain(f'{many} pilots fit "{text}"; give one\'s number:')
    for row in rows[:SOME]:
        key, until = row.identity, short(row.end_us, "now")
        complain(f"  {row.id}  {key.name}  {key.key.site}  {short(row.start_us)} to {until}")
    return None


@contextmanager
def usage() -> Iterator[None]:
    """Take a ValueError for something that was typed wrong: raises ConfigError."""
    from gwmond.config.settings import ConfigError  # noqa: PLC0415 (pydantic takes long to load)

    try:
        yield
    except ValueError as error:
        raise ConfigError(str(error)) from None


def limit(text: str) -> int:
    """Return a number of lines; 0: all."""
    from argparse import ArgumentTypeError  # noqa: PLC0415

    if not is_number(text):
        raise ArgumentTypeError(f"{text!r} is not a number of lines, 0 or more")
    return int(text)


def show(document: Document, form: str) -> None:
    """Print a document in the form that ``--format`` names."""
    from gwmond.reports.render.writing import text  # noqa: PLC0415

    sys.stdout.write(text(document, form))


def ledger_error() -> type[Exception]:
    """Return LedgerError; Python asks for it only when something is raised."""
    from gwmond.ledger.database.errors import LedgerError  # noqa: PLC0415 (SQLAlchemy takes long to load)

    return LedgerError


def complain(text: str) -> None:
    """Print a sentence on standard error, if there is one."""
    if text:
        print(f"gwmond: {text}", file=sys.stderr)


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Write a file that is there at once, when it is whole: whoever serves it sees no half.

    Raises OSError.
    """
    import tempfile  # noqa: PLC0415 (seldom needed)

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
