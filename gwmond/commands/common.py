"""What commands have in common: exit codes, and the configuration that their options ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from gwmond.config.settings import Config

EXIT_OK, EXIT_FAILED, EXIT_BAD_CONFIG, EXIT_SOURCES_DOWN = 0, 1, 2, 3


def configuration(arguments: argparse.Namespace) -> Config:
    """Return the configuration that the common options ask for; raises ConfigError."""
    from gwmond.config.settings import Config, load, parse  # noqa: PLC0415

    config = load(arguments.config) if arguments.config else Config()
    if arguments.collector:
        given = parse({"pool": {"collectors": arguments.collector}}, "--collector").pool
        pool = config.pool.model_copy(update={"collectors": given.collectors})
        replay = config.replay.model_copy(update={"file": ""})
        config = config.model_copy(update={"pool": pool, "replay": replay})
    if arguments.log_level:
        log = config.log.model_copy(update={"level": arguments.log_level})
        config = config.model_copy(update={"log": log})
    return config
