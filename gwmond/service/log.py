"""Structured logs on standard error: readable on a terminal, JSON lines elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import Processor

    from gwmond.config.settings import Log


def quiet() -> None:
    """Let a command that only reads a ledger log nothing but errors of libraries."""
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, force=True)


def configure(options: Log) -> None:
    """Set up structlog; what other libraries log at warning and above comes out alike."""
    import structlog  # noqa: PLC0415 (slow to import; commands that read a ledger log nothing)

    level = getattr(logging, options.level.upper())
    console = options.format == "console" or (options.format == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if console
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.getLogger("apscheduler").setLevel(logging.ERROR)  # a poll that is late is no news
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
