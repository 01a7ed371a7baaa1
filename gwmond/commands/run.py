"""Run the daemon: poll, account, keep the ledger, serve metrics, pages and REST.

It stays in the foreground and logs to standard error, as service managers expect. SIGHUP makes it
read the configuration again (if the file is wrong, the old one stays in use), SIGTERM stops it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import structlog

from gwmond.commands.common import EXIT_FAILED, EXIT_OK, complain, configuration
from gwmond.config.settings import Config
from gwmond.service.daemon import Service
from gwmond.service.host import log, places
from gwmond.service.host.log_socket import PlaceError
from gwmond.web.server import PortError


def options(parser: argparse.ArgumentParser) -> None:
    """``gwmond run`` has no options of its own."""


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Run until told to stop."""
    log.configure(config.log)

    def reload() -> Config:
        new_config = configuration(arguments)
        _warn(new_config, arguments)
        return new_config

    _warn(config, arguments)
    try:
        return serve(config, reload)
    except PlaceError as error:
        raise PlaceError(f"{arguments.config}: {error}") from None


def _warn(config: Config, arguments: argparse.Namespace) -> None:
    """Say which directories cannot be read: the daemon runs without them."""
    for place in places.places(config):
        if place.problem and place.key == "directories":
            structlog.get_logger().warning(
                f"factory.directories: {place.path} {place.detail}",
                file=str(arguments.config or "-"),
                remedy=place.problem.remedy,
            )


def serve(config: Config, reload: Callable[[], Config], greeting: str = "") -> int:
    """Run until told to stop; ``reload`` says what the configuration is after SIGHUP.

    ``greeting`` is printed once nothing stands in the way: the address is ours, the pool is there.
    """
    log.configure(config.log)
    try:
        daemon = Service(config, reload)
        if greeting:
            print(greeting, flush=True)
        daemon.run()
    except PortError as error:
        complain(str(error))
        return EXIT_FAILED
    return EXIT_OK
