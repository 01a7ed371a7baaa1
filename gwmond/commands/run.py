"""Run the daemon: poll, account, keep the ledger, serve metrics and a page.

It stays in the foreground and logs to standard error, as service managers like it. SIGHUP reads
the configuration again (a bad file keeps the old one), SIGTERM stops it.
"""

from __future__ import annotations

import argparse
import sys

from gwmond import cli, log
from gwmond.config import Config
from gwmond.daemon import Daemon
from gwmond.web.server import PortError


def options(parser: argparse.ArgumentParser) -> None:
    """``gwmond run`` has no options of its own."""


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Run until told to stop."""
    log.configure(config.log)
    try:
        daemon = Daemon(config, lambda: cli.configuration(arguments))
        daemon.run()
    except PortError as error:
        print(f"gwmond: {error}", file=sys.stderr)
        return cli.EXIT_FAILED
    return cli.EXIT_OK
