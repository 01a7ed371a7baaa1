"""From states to counters: canonical seconds over the real time that elapsed.

Units: increments are in micro canonical seconds (1/``SCALE`` unit x 1 ms), so they are exact whole
numbers and sum up however an interval is cut.

Source of the rules: design page, section 4.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from gwmond.model.elapsed import Elapsed
from gwmond.model.entries.evaluation import SCALE, Evaluation
from gwmond.model.facts import EntryKey
from gwmond.model.states import State
from gwmond.model.units import Resource


class SiteTime(NamedTuple):
    """Micro canonical seconds to add to the counter of one entry, resource, state and reason."""

    resource: Resource
    state: str
    reason: str
    entry: EntryKey
    amount: int


def integrate(
    evaluation: Evaluation, elapsed: Elapsed, known_entries: AbstractSet[EntryKey]
) -> list[SiteTime]:
    """Return the increments of the counters for the interval that ends with ``evaluation``.

    Invariant: the increments of one of ``known_entries`` sum to (provisioned + spare) x elapsed;
    where the interval is unknown to capacity x elapsed, all ``unknown`` with the interval's reason.
    Entries seen for the first time add nothing: the time before is not known.  But what was pledged
    of a site that is known, it had before too: entries that are new there only share it.
    """
    increments: list[SiteTime] = []
    sites = {key.site for key in known_entries}
    for (key, resource), row in sorted(evaluation.rows.items()):
        pledged = row.capacity.evidence == "pledge" and key.site in sites
        if key not in known_entries and not pledged:
            continue
        if elapsed.known:
            amounts = list(row.uses)
        else:
            amounts = [(State.UNKNOWN.value, elapsed.reason, row.capacity.units * SCALE)]
        increments += [
            SiteTime(resource, state, reason, key, amount * elapsed.ms)
            for state, reason, amount in amounts
            if amount * elapsed.ms > 0
        ]
    return increments
