"""What facts of files are joined with: the pilots in memory, and all that finds and names them."""

from __future__ import annotations

from typing import NamedTuple

from gwmond.pilots.life.rules import Rules
from gwmond.pilots.memory.assign import PilotAssignment
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.sizes import Sizes
from gwmond.pilots.runs.matcher import RunMatcher


class KnownPilots(NamedTuple):
    """The pilots in memory, which pilot each fact is of, their sizes, their runs."""

    cache: PilotCache
    assignment: PilotAssignment
    sizes: Sizes
    matcher: RunMatcher
    rules: Rules
