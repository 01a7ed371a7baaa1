"""Run the daemon on a recorded pool, at accelerated speed: no HTCondor is needed.

The recording is replayed through the same sources as live ads, over and over. Of a configuration
file only [http], [canonical], [metrics] and [log] are honoured. The ledger is a temporary one: that
of the file stays as it is. --ledger names one to keep; a live pool's is refused.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path

from gwmond import cli, ledger_reading
from gwmond.clock import REPLAY
from gwmond.commands import run
from gwmond.config import Config, ConfigError, Poll, parse
from gwmond.config_pilots import Ledger
from gwmond.ledger.errors import LedgerError, LedgerLocation, LedgerTooOld
from gwmond.ledger.reader import LedgerReader
from gwmond.sources.recording import Recording

INTERVAL_S = 5.0
DEADLINE_S = 4.5


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gwmond demo``."""
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
    if arguments.ledger is not None and (why := _unfit(arguments.ledger)):
        print(f"gwmond: {why}", file=sys.stderr)
        return cli.EXIT_FAILED
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
        poll = Poll.model_construct(**{**Poll().model_dump(), **_PACE})
        honoured = Config(
            http=config.http,
            ledger=Ledger(url=arguments.ledger or f"{directory}/ledger.sqlite"),
            canonical=config.canonical,
            metrics=config.metrics,
            log=config.log,
        )
        demo = honoured.model_copy(update={"replay": replay, "poll": poll})
        scheme = "https" if demo.http.tls_cert else "http"
        told = (
            f"gwmond demo: {scheme}://{demo.http.listen} shows a recorded pool, "
            f"{arguments.speed:g} times as fast as it was. Stop it with Ctrl-C."
        )
        return run.serve(demo, lambda: demo, told)


def _unfit(url: str) -> str:
    """Return why a ledger is not one to replay into; empty if it is a demo's, or not yet there."""
    try:
        with LedgerReader.open(url) as ledger:
            tick, imported = ledger.load().tick, bool(ledger.cursors())
    except LedgerLocation:  # it is made, or the daemon tells why it cannot be
        return ""
    except LedgerTooOld as error:
        return "" if "its schema is empty" in error.what else str(error)
    except LedgerError as error:
        return str(error)
    live = imported if tick is None else not tick.boot_id.startswith(REPLAY)
    if not live:
        return ""
    return (
        f"--ledger: {ledger.where} has a live pool's time, which the demo would be added to for "
        "ever: name another one, or give none"
    )


_PACE = {"interval": INTERVAL_S, "deadline": DEADLINE_S}
