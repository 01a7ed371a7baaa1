"""Which logs there are, how a record of each ends, and what reads its records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gwmond.model.pilots.file_facts import EVENT_LOG
from gwmond.sources.gwms import central_log, completed_jobs, condor_events, layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import tzinfo

    from gwmond.model.pilots.file_facts import PilotName
    from gwmond.sources.gwms.directory_cursor import ParsedLog


class LogKind(NamedTuple):
    """Logs with names like this: how a record ends, and what reads whole records.

    What reads them gets path, records, place, when the log was last written (epoch seconds) and
    the zone of times without one (None: this host's).
    """

    names: re.Pattern[str]
    end: bytes
    parse: Callable[[str, bytes, PilotName, float, tzinfo | None], ParsedLog[Any]]


def of(name: str, kinds: Iterable[LogKind]) -> LogKind | None:
    """Return which kind of log has such a name."""
    return next((kind for kind in kinds if kind.names.fullmatch(name)), None)


FACTORY = (
    LogKind(layout.COMPLETED, b"\n", completed_jobs.parse),
    LogKind(EVENT_LOG, condor_events.END, condor_events.parse),
)
COMPRESSED = frozenset({".gz", ".xz", ".bz2", ".zst"})
CENTRAL = (LogKind(re.compile(r"(?!.*\.(?:gz|xz|bz2|zst)$).*", re.S), b"\n", central_log.parse),)
"""Every file of a directory of central logs, but those that are compressed."""
