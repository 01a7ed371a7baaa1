"""How many attempts and pilots ended how; each is counted once, under its present outcome.

How much of a pilot rests on which rule is counted with the pilot, in canonical micros of each
resource on which the rule bears: so it can be set against the canonical time of all pilots.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

from gwmond.model.pilot_facts import BEARS, Category, Outcome
from gwmond.model.stored_pilots import ASSUMED, CountKey, PilotId
from gwmond.model.units import RESOURCES
from gwmond.pilots.booking import own
from gwmond.pilots.open_attempt import OpenAttempt
from gwmond.pilots.open_pilot import OpenPilot


class Counts:
    """Changes of the counts that are not stored yet, of each pilot."""

    def __init__(self, q: int) -> None:
        self._q = q
        self._changes: defaultdict[PilotId, Counter[CountKey]] = defaultdict(Counter)

    @property
    def pilots(self) -> Collection[PilotId]:
        """The pilots of which changes wait."""
        return self._changes.keys()

    def changes(self, pilots: Iterable[PilotId] | None = None) -> dict[CountKey, int]:
        """Return what is to be added to the stored counts; negative where one was revised."""
        sums: Counter[CountKey] = Counter()
        for change in self._changes if pilots is None else pilots:
            sums.update(self._changes.get(change, ()))
        return {key: n for key, n in sums.items() if n}

    def forget(self, pilot: PilotId) -> None:
        """Take out what waits of a pilot."""
        self._changes.pop(pilot, None)

    def clear(self) -> None:
        """Say that the changes are stored."""
        self._changes.clear()

    def count(self, pilot: OpenPilot) -> None:
        """Count a pilot and its attempts by what is decided of them now."""
        for attempt in pilot.attempts.values():
            self._attempt(attempt, attempt.outcome)
        self._pilot(pilot, own(pilot))

    def uncount(self, pilot: OpenPilot) -> None:
        """Take a pilot and its attempts out, to count them under another name."""
        for attempt in pilot.attempts.values():
            self._attempt(attempt, None)
        self._pilot(pilot, None)

    def remove(self, attempts: Iterable[OpenAttempt]) -> None:
        """Take attempts out that turned out to be others."""
        for attempt in attempts:
            self._attempt(attempt, None)

    def _attempt(self, attempt: OpenAttempt, outcome: Outcome | None) -> None:
        if attempt.summarised:
            return  # it is no run of a job
        if attempt.counted == outcome:
            return
        pilot = attempt.pilot
        (site, entry), group = pilot.identity.key, pilot.identity.group
        for counted, n in ((attempt.counted, -1), (outcome, 1)):
            if counted is not None:
                key = CountKey("attempts", counted.category, counted.label, site, entry, group)
                self._changes[pilot.id][key] += n
        attempt.counted, attempt.dirty = outcome, True

    def _assumed(self, pilot: OpenPilot, category: Category | None) -> None:
        now = {
            (rule, resource): micros
            for rule, within in pilot.assumed.items()
            if category is not None
            for resource in RESOURCES
            if rule in BEARS[resource]
            if (micros := pilot.canonical_total(resource, self._q, within))
        }
        (site, entry), group = pilot.identity.key, pilot.identity.group
        for counted, amounts, sign in (
            (pilot.counted, pilot.counted_micros, -1),
            (category, now, 1),
        ):
            for (rule, resource), micros in amounts.items():
                own_ = counted or Category.UNCLASSIFIED
                key = CountKey(ASSUMED[resource], own_, rule, site, entry, group)
                self._changes[pilot.id][key] += sign * micros
        pilot.dirty |= pilot.counted_micros != now
        pilot.counted_micros = now

    def _pilot(self, pilot: OpenPilot, category: Category | None) -> None:
        self._assumed(pilot, category)
        (site, entry), group = pilot.identity.key, pilot.identity.group
        for counted, n in ((pilot.counted, -1), (category, 1)):
            if counted is not None:
                self._changes[pilot.id][CountKey("pilots", counted, "", site, entry, group)] += n
        pilot.dirty |= pilot.counted != category  # stored with the count, or it is counted again
        pilot.counted = category
