"""Run the daemon on a recorded pool, at accelerated speed: no HTCondor is needed.

The recording is read as live ads would be, again and again. Of a configuration file only [http],
[canonical], [traces], [metrics] and [log] are used. The ledger is a temporary one, not that of the
file.
--ledger names one to keep; a ledger with the time of a live pool, or of an import, is refused.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from importlib import resources
from pathlib import Path

from gwmond.commands import run
from gwmond.commands.common import EXIT_FAILED, complain
from gwmond.config.settings import Config, ConfigError, LedgerOptions, Poll, parse
from gwmond.ledger.database.errors import NOT_THERE, LedgerError, LedgerLocation, LedgerTooOld
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.cursor_kinds import CENTRAL_LOG, FACTORY_FILES, IMPORTED_LOG
from gwmond.reports.ledger import ledger_reading
from gwmond.service.host.clock import REPLAY
from gwmond.sources.recording.recording import Recording

INTERVAL_S = 5.0
DEADLINE_S = 4.5
_FILES = {FACTORY_FILES, IMPORTED_LOG, CENTRAL_LOG}
"""Kinds of cursors that no demo leaves, for it reads no files."""


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--recording", type=Path, metavar="FILE", help="another recording (gwmond record)"
    )
    parser.add_argument(
        "--speed",
        type=float,
        default=60.0,
        help="recorded seconds per second (default: 60, an hour in a minute)",
    )
    parser.add_argument(
        "--ledger",
        type=ledger_reading.place,
        metavar="URL",
        help="a ledger to keep, of demos only: a path or URL (default: a temporary one)",
    )


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Run until told to stop; the temporary ledger is removed."""
    if arguments.ledger is not None and (why := unfit(arguments.ledger)):
        complain(why)
        return EXIT_FAILED
    embedded = resources.files("gwmond") / "data" / "demo.zip"
    with (
        resources.as_file(embedded) as packaged,
        tempfile.TemporaryDirectory(prefix="gwmond-demo-") as directory,
    ):
        path = arguments.recording or packaged
        if arguments.recording is not None:
            try:
                Recording(str(path))
            except ValueError as error:
                raise ConfigError(f"--recording: {error}") from None
        replay = parse({"replay": {"file": str(path), "speed": arguments.speed}}, "--speed").replay
        pace = {"interval": INTERVAL_S, "deadline": DEADLINE_S}
        poll = Poll.model_construct(**{**Poll().model_dump(), **pace})
        demo = Config(
            http=config.http,
            ledger=LedgerOptions(url=arguments.ledger or f"{directory}/ledger.sqlite"),
            canonical=config.canonical,
            traces=config.traces,
            metrics=config.metrics,
            log=config.log,
        ).model_copy(update={"replay": replay, "poll": poll})
        scheme = "https" if demo.http.tls_cert else "http"
        greeting = (
            f"gwmond demo: {scheme}://{demo.http.listen} shows a recorded pool, "
            f"{arguments.speed:g} times as fast as it was. Stop it with Ctrl-C."
        )
        return run.serve(demo, lambda: demo, greeting)


def unfit(url: str) -> str:
    """Return why a ledger is not one to replay into; empty if it is a demo's, or not yet there."""
    try:
        with LedgerReader.open(url) as ledger:
            tick, kinds = ledger.tick(), {kind for _, kind in ledger.cursors()}
    except LedgerLocation as error:
        return _not_made(Path(error.where).parent) if error.what == NOT_THERE else str(error)
    except LedgerTooOld as error:
        return "" if "its schema is empty" in error.what else str(error)
    except LedgerError as error:
        return str(error)
    live = bool(kinds) if tick is None else not tick.boot_id.startswith(REPLAY)
    if not live and not kinds & _FILES:
        return ""
    return (
        f"--ledger: {ledger.where} has a live pool's time, or what was imported, which the demo "
        "would be added to for ever: name another one, or give none"
    )


def _not_made(directory: Path) -> str:
    """Return why no ledger can be made in a directory; empty if one can."""
    if not directory.is_dir():
        return f"--ledger: there is no directory {directory}: make it, or name another place"
    if not os.access(directory, os.W_OK | os.X_OK, effective_ids=True):
        return f"--ledger: {directory} cannot be written: name another place"
    return ""
