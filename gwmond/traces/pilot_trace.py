"""The trace of a pilot: what it waited for, its validation, its idle times, its end.

All spans are settled when the pilot is closed (``PilotRow.closed``); before that there are none,
unless ``now_us`` says until when to show them.  Its runs are links of the ``pilot`` span to the
runs' spans, at most ``LINKS``.  Times are whole microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence

from gwmond.model.factory_jobs import QueueRecord
from gwmond.model.stored_pilots import PilotRow, RunRow
from gwmond.traces.contexts import Rules
from gwmond.traces.spans import Span

LINKS = 1000


def pilot_spans(
    pilot: PilotRow,
    runs: Sequence[RunRow],
    rules: Rules,
    queue: QueueRecord | None = None,
    now_us: int | None = None,
) -> list[Span]:
    """Return the spans of a closed pilot; ``queue``: its factory's records of it, if known."""
    _ = pilot, runs, rules, queue, now_us
    return []
