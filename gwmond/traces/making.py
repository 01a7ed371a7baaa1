"""Making a span: its times are put in order, its attributes sorted, its error named.

Times are whole microseconds since the epoch.  A span never ends before it begins, and never sticks
out of its parent; what was moved by more than ``SLACK_US`` is marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gwmond.model.pilot_life import Interval
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from gwmond.model.times import SECOND_US
from gwmond.traces.attributes import attributes
from gwmond.traces.ids import SpanName
from gwmond.traces.spans import Span, SpanContext, Value

SLACK_US = 5 * SECOND_US
"""Times of one thing by two hosts, in whole seconds, differ by less."""

_FIRST_US, _LAST_US = 10**9 * SECOND_US, 4 * 10**9 * SECOND_US  # 2001 to 2096


def sane(time_us: int | None) -> int | None:
    """Return a time, None for what is none: 0, -1, or one that no nanoseconds of 64 bits hold."""
    return time_us if time_us is not None and _FIRST_US <= time_us <= _LAST_US else None


class SpanTimes(NamedTuple):
    """Begin and end, in order; ``moved``: by more than the slack."""

    start_us: int
    end_us: int
    moved: bool = False


def within(start_us: int | None, end_us: int | None, parent: Interval) -> SpanTimes | None:
    """Return times put in order and within the parent's; None if there is no begin."""
    start, first, last = sane(start_us), *parent
    if start is None:
        return None
    end = sane(end_us)
    end = last if end is None else end
    began = min(max(start, first), last)
    ended = min(max(end, began), last)
    return SpanTimes(began, ended, max(abs(began - start), abs(ended - end)) > SLACK_US)


def made(
    name: SpanName,
    context: SpanContext,
    parent_id: bytes,
    times: SpanTimes,
    values: Mapping[str, Value | None],
    error: str = "",
    *,
    settled: bool = True,
) -> Span:
    """Return a span of these values; ``error``: its ``error.type``."""
    known = values
    if error or times.moved or not settled:
        known = {
            **values,
            "error.type": error,
            "gwmond.clock_skew": times.moved or None,
            "gwmond.settled": None if settled else False,
        }
    return Span(
        *(context, parent_id, name, times.start_us, times.end_us, attributes(known)), error=error
    )


def place_of(pilot: PilotRow | None) -> dict[str, Value | None]:
    """Return the attributes that say which pilot it is, and where."""
    if pilot is None:
        return {}
    identity = pilot.identity
    return {
        "cicd.worker.id": identity.factory_job or identity.name,
        "cicd.worker.name": identity.name,
        "gwms.entry": identity.key.entry,
        "gwms.frontend.group": identity.group,
        "gwms.site": identity.key.site,
        "host.name": identity.node,
    }


def run_number(run: RunRow) -> int | None:
    """Return which run of the job it is, from 0; None if that is not known."""
    number = run.key.shadow_start
    return None if number is None else number - 1
