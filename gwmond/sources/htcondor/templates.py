"""The templates that are known: an empty pilot for each frontend group of each entry.

Times are seconds of the monotonic clock.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TypeAlias

from gwmond.model.facts import EntryKey, Template
from gwmond.sources.htcondor.matching import with_start
from gwmond.sources.htcondor.pilots.slots import SampleSlot

TTL_S = 1800.0
"""The whole ad of a sample is fetched again after this."""

UNUSED_S = 3600.0
"""How long a template stays of a group that neither runs pilots at the entry nor has an ad."""

Berth: TypeAlias = tuple[EntryKey, str]


class Templates:
    """Remembers templates between rounds.

    One made of a live slot goes before an estimated one as long as the group runs pilots there.
    The last template of an entry stays, whoever it was of: nothing else says what could run.

    A frontend that was reconfigured gives new pilots another START: the START of the group's newest
    pilots stands for it at once, at all entries, and is estimated where none of them runs.
    """

    def __init__(self) -> None:
        self._known: dict[Berth, tuple[Template, float]] = {}
        self._seen: dict[Berth, float] = {}
        self._sampled: dict[Berth, SampleSlot] = {}
        self._made_of: dict[Berth, SampleSlot] = {}

    def wants(self, sample: SampleSlot, now: float) -> bool:
        """Note that a slot can stand for its group; return whether its ad is to be fetched."""
        berth = sample.entry, sample.group
        if berth in self._sampled:
            return False  # another collector has one, too
        self._sampled[berth] = sample
        self._seen[berth] = now
        template, at = self._known.get(berth, (None, 0.0))
        return (
            template is None
            or template.size != sample.size
            or template.evidence != "measured"
            or sample.version != self._made_of[berth].version
            or now - at > TTL_S
        )

    def add(self, template: Template, now: float) -> None:
        """Add a template; an estimated one does not replace a group that runs pilots."""
        berth = template.entry, template.group
        if template.evidence == "estimated":
            self._seen[berth] = now
            if berth in self._sampled:
                return
        elif berth in self._sampled:
            self._made_of[berth] = self._sampled[berth]
        self._known[berth] = template, now

    def forget(self, now: float) -> None:
        """End a round: drop templates that are not of use any more."""
        self._sampled.clear()
        current = {entry for (entry, _), at in self._seen.items() if now - at <= UNUSED_S}
        for berth in list(self._known):
            if berth[0] in current and now - self._seen.get(berth, now) > UNUSED_S:
                del self._known[berth]
                self._made_of.pop(berth, None)
                self._seen.pop(berth, None)

    def start_references(self) -> tuple[str, ...]:
        """Return the job attributes to which any START refers, once each, sorted."""
        names: dict[str, str] = {}
        for template in self.current().values():
            for name in template.refers:
                names[name.lower()] = min(name, names.get(name.lower(), name))
        return tuple(names[name] for name in sorted(names))

    def current(self) -> dict[Berth, Template]:
        """Return the templates by entry and frontend group.

        The START of a group's newest pilots elsewhere stands for that of its estimated templates,
        and of those that older pilots have left.
        """
        newest: dict[str, tuple[int, str]] = {}
        for (_, group), sample in self._made_of.items():
            stamp = sample.started, sample.version
            newest[group] = max(stamp, newest.get(group, stamp))
        old = {b for b, sample in self._made_of.items() if sample.version != newest[b[1]][1]}
        starts: defaultdict[str, set[str]] = defaultdict(set)
        for berth, (template, _) in self._known.items():
            if template.evidence == "measured" and template.start and berth not in old:
                starts[berth[1]].add(template.start)
        templates = {}
        for berth, (template, _) in self._known.items():
            if template.evidence == "measured" and berth in old and starts[berth[1]]:
                template = template._replace(evidence="estimated")  # noqa: PLW2901
            if template.evidence == "estimated":
                template = with_start(template, starts[berth[1]])  # noqa: PLW2901
            templates[berth] = template
        return templates
