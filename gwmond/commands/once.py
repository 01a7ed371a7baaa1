"""Poll every source once and print the metrics, in the Prometheus text format.

Nothing is stored. The capacity that was observed before is read from the ledger, if there is one.
Exit code 0 if all sources are up, 3 if some are down, 2 for bad configuration.
"""

from __future__ import annotations

import argparse
import sys

from gwmond.commands.common import EXIT_OK, EXIT_SOURCES_DOWN
from gwmond.config.settings import Config
from gwmond.metrics import catalog
from gwmond.metrics.render import render
from gwmond.service.host import log
from gwmond.service.poller import poll_once


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("text", "openmetrics"),
        default="text",
        help="exposition format (default: text)",
    )


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Poll and print."""
    log.configure(config.log)
    snapshot = poll_once(config)
    exposition = render(catalog.FAMILIES, snapshot, config.metrics.series_budget)
    exposed = exposition.text if arguments.format == "text" else exposition.openmetrics
    sys.stdout.write(exposed.decode())
    return EXIT_OK if all(s.up for s in snapshot.sources) else EXIT_SOURCES_DOWN
