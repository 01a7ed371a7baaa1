"""Run the daemon on an invented pool with a week behind it, at accelerated speed.

No HTCondor is needed. The week is a ledger, the two days that follow it are a recording, which is
read as live ads would be. The time is that of the recording, and stands at its end. A poll comes
after the one before, however long that takes: a slow machine is slower, and shows the same.
Of a configuration file only [http], [canonical], [traces], [metrics] and [log] are used. The ledger
is a temporary one, not that of the file.
--ledger names one to keep; a ledger with the time of a live pool, or of an import, is refused.
--recording FILE replays another recording, without a past, again and again.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from gwmond.commands import run
from gwmond.commands.common import (
    EXIT_FAILED,
    complain,
    place,
)
from gwmond.config.settings import (
    Config,
    ConfigError,
    Http,
    LedgerOptions,
    Log,
    Poll,
    parse,
)
from gwmond.ledger.database import location
from gwmond.ledger.database.errors import NOT_THERE, LedgerError, LedgerLocation, LedgerTooOld
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.cursor_kinds import CENTRAL_LOG, FACTORY_FILES, IMPORTED_LOG
from gwmond.service.host.clock import REPLAY
from gwmond.sources.recording.recording import Recording

INTERVAL_S = 5.0
DEADLINE_S = 600.0
"""A poll of a replay takes what it takes."""
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
        type=place,
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
        try:
            recording = Recording(str(path))
        except ValueError as error:
            raise ConfigError(f"--recording: {error}") from None
        url = arguments.ledger or f"{directory}/ledger.sqlite"
        if recording.past:
            _begin(recording, url)
        replay = parse({"replay": {"file": str(path), "speed": arguments.speed}}, "--speed").replay
        pace = {"interval": INTERVAL_S, "deadline": DEADLINE_S}
        poll = Poll.model_construct(**{**Poll().model_dump(), **pace})
        demo = Config(
            http=_http(config.http, recording),
            ledger=LedgerOptions(url=url),
            canonical=config.canonical,
            traces=config.traces,
            metrics=config.metrics,
            log=_log(config.log),
        ).model_copy(update={"replay": replay, "poll": poll})
        scheme = "https" if demo.http.tls_cert else "http"
        address = f"{scheme}://{demo.http.listen}"
        named = f" --config {shlex.quote(str(arguments.config))}" if arguments.config else ""
        return run.serve(demo, lambda: demo, _greeting(recording, demo, address, named))


def _http(http: Http, recording: Recording) -> Http:
    """Return how it serves: of an invented pool, everybody may see the jobs."""
    invented = recording.past and http.jobs == "token"
    return http.model_copy(update={"jobs": "all"}) if invented else http


def _log(log: Log) -> Log:
    """Return how it logs: for people, unless the configuration says how."""
    return log.model_copy(update={"format": "console"}) if log.format == "auto" else log


def _begin(recording: Recording, url: str) -> None:
    """Put the ledger of what was before where a new one is to be, if that is a file."""
    place = location.parse(url)
    if isinstance(place, location.SqliteFile) and not place.path.exists():
        recording.unpack(recording.past[0], place.path)


def _greeting(recording: Recording, demo: Config, address: str, named: str) -> str:
    """Return what is printed as the demo starts; ``named``: the option of the configuration."""
    fast = f"{demo.replay.speed:g} times as fast as it was"
    if not recording.past:
        return f"gwmond demo: {address} shows a recorded pool, {fast}. Stop it with Ctrl-C."
    begins = time.strftime("%A, %Y-%m-%d %H:%M UTC", time.gmtime(recording.times[0]))
    called = sys.argv[0]  # a path, or __main__.py
    program = called if called.endswith("/gwmond") and not shutil.which("gwmond") else "gwmond"
    lines = [
        f"gwmond demo: {address} shows an invented pool with a week behind it. Its time",
        f"begins on {begins}, and goes on {fast}. Stop it with Ctrl-C.",
        "What there is to see:",
        *(f"  {stop.text}\n    {address}/{stop.link}" for stop in recording.tour),
        "  In another terminal: where time went, since when more is lost, what would waste less,",
        "  why a job waits:",
        *(
            f"    {program} {cmd} --from 7d --ledger {demo.ledger.url}"
            for cmd in ("report", "changes", "advise")
        ),
        *(f"    {program} explain {job} --ask daemon{named}" for job in _waiting(recording)),
    ]
    return "\n".join(lines)


def _waiting(recording: Recording) -> Iterator[str]:
    """Yield the job that the tour explains, as ``gwmond explain`` takes it."""
    for stop in recording.tour:
        asked = parse_qs(urlsplit(stop.link).query)
        if stop.link.startswith("explain?job=") and "schedd" in asked:
            yield f"{asked['job'][0]} --schedd {asked['schedd'][0]}"


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
