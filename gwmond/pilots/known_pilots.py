"""What facts of files are joined with: the pilots in memory, and all that finds and names them."""

from __future__ import annotations

from typing import NamedTuple

from gwmond.pilots.assign import PilotAssignment
from gwmond.pilots.pilot_cache import PilotCache
from gwmond.pilots.rules import Rules
from gwmond.pilots.run_matcher import RunMatcher
from gwmond.pilots.sizes import Sizes


class KnownPilots(NamedTuple):
    """The pilots in memory, which pilot each fact is of, their sizes, their runs."""

    cache: PilotCache
    assignment: PilotAssignment
    sizes: Sizes
    matcher: RunMatcher
    rules: Rules
