"""Run the daemon on a recorded pool, at accelerated speed: no HTCondor is needed.

The recording is replayed through the same sources as live ads, over and over. Of a configuration
file only [http], [ledger], [canonical], [metrics] and [log] are honoured; without [ledger] it is
temporary.
"""

from __future__ import annotations

import argparse
import tempfile
from importlib import resources
from pathlib import Path

from gwmond.commands import run
from gwmond.config import Config, ConfigError, Poll, parse
from gwmond.config_pilots import Ledger
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


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Run until told to stop; the temporary ledger is removed."""
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
        temporary = Ledger(url=f"{directory}/ledger.sqlite")
        ledger = config.ledger if "ledger" in config.model_fields_set else temporary
        honoured = Config(
            http=config.http,
            ledger=ledger,
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


_PACE = {"interval": INTERVAL_S, "deadline": DEADLINE_S}
