"""Structured logs on standard error: readable on a terminal, JSON lines elsewhere."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from structlog.typing import Processor

    from gwmond.config.settings import Log


_events = logging.getLogger("gwmond")
_events.setLevel(logging.DEBUG)


def quiet() -> None:
    """Log only libraries' errors, for a command that prints its result."""
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, force=True)
    _events.setLevel(logging.ERROR)


def event(level: Literal["info", "warning"], text: str, **fields: object) -> None:
    """Log what has happened, unless this command is quiet."""
    if _events.isEnabledFor(getattr(logging, level.upper())):
        import structlog  # noqa: PLC0415 (slow to import; commands that are quiet do without)

        getattr(structlog.get_logger(), level)(text, **fields)


def configure(options: Log) -> None:
    """Set up structlog; what other libraries log at warning and above comes out alike."""
    import structlog  # noqa: PLC0415 (slow to import; commands that are quiet do without)

    _events.setLevel(logging.DEBUG)
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
            # Else the console shows the local variables of each frame, which takes half a minute.
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    logging.getLogger("apscheduler").setLevel(logging.ERROR)  # a poll that is late is no news
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
