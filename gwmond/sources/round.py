"""What one round of queries asks and returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from gwmond.model.facts import EntryKey, Problem, Status, Template
from gwmond.model.names import Standing

if TYPE_CHECKING:
    from gwmond.sources.htcondor.schedds import ScheddSeen

SLOTS, STARTDS, REQUESTS, DEMAND = "slots", "startds", "glideresource", "demand"
CLAIMS, SUBMITTERS = "claims", "submitters"
SCHEDDS, WMS = "schedds", "wms:"  # and what the names of WMS collectors as sources begin with


class Answer(NamedTuple):
    """The last good answer of a source to one kind of query; ``at_s`` by the monotonic clock."""

    value: Any
    at_s: float


class Targets(NamedTuple):
    """Who is asked: names for people, as in the configuration.

    ``groups``: schedds group jobs by what they are asked for (recordings by what was asked when
    they were made).  ``kinds`` of sources that a recording has; None: all are asked.
    """

    collectors: tuple[str, ...]
    wms_collectors: tuple[str, ...]
    factory_schedds: tuple[str, ...]
    groups: bool = True
    kinds: frozenset[str] | None = None


class Round(NamedTuple):
    """What is known after one round; templates by entry and frontend group.

    ``entries``: those that are kept apart, and when they were seen; None: all are.  ``aside``:
    signatures of groups of jobs and of templates that are not matched, as that would cost too much.
    ``accounting_groups``: those that are kept apart, with jobs now or before.
    """

    answers: dict[tuple[str, str], Answer]
    statuses: tuple[Status, ...]
    problems: tuple[Problem, ...]
    templates: dict[tuple[EntryKey, str], Template]
    chosen: tuple[ScheddSeen, ...]
    entries: Mapping[EntryKey, Standing] | None = None
    aside: frozenset[str] = frozenset()
    accounting_groups: frozenset[str] = frozenset()
