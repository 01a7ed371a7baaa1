"""How pilots and their runs are counted: the difference to how they were counted before.

Units: amounts are micros.

How much of a pilot rests on which rule is counted with the pilot, in canonical micros of each
resource on which the rule bears: so it can be set against the canonical time of all pilots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gwmond.model.pilot_life import Assumption, Category, Outcome, divided
from gwmond.model.pilots.stored_pilots import ASSUMED, MICROS, CountKey
from gwmond.model.runs.phases import Measured, bucket_of, counted_lengths
from gwmond.model.totals import Micros
from gwmond.model.units import RESOURCES, Resource
from gwmond.pilots.memory.open_pilot import OpenPilot, OpenRun
from gwmond.pilots.memory.posting import own


def count(pilot: OpenPilot, memory_per_unit_mib: int) -> None:
    """Count a pilot and its runs by what is decided of them now, under its name of now."""
    for run in pilot.removed:
        _run(run, None, known=False)
    pilot.removed.clear()
    if pilot.is_renamed:
        uncount(pilot, memory_per_unit_mib)
    pilot.posted_as = pilot.identity
    for run in pilot.runs.values():
        _run(run, run.outcome, known=True)
    _pilot(pilot, own(pilot), memory_per_unit_mib)


def uncount(pilot: OpenPilot, memory_per_unit_mib: int) -> None:
    """Take a pilot and its runs out, under the name under which they were counted."""
    for run in (*pilot.removed, *pilot.runs.values()):
        _run(run, None, known=False)
    _pilot(pilot, None, memory_per_unit_mib)


def _run(run: OpenRun, outcome: Outcome | None, *, known: bool) -> None:
    """Count a run by its outcome; one that is not ``known`` any more is not counted at all."""
    if run.summarised:
        return  # it is no run of a job
    if run.counted == outcome and not run.dirty and known:
        return
    none, place = Category.UNCLASSIFIED, _labels(run.pilot)
    lengths: Mapping[Measured, Micros] = {}
    if outcome is not None:
        lengths = counted_lengths(run.facts, run.start_us, run.end_us)
    failure = run.merged.ending.failed_transfer if known else None
    now = outcome, lengths, failure
    before = run.counted, run.counted_us, run.counted_failure
    if now == before:
        return
    change = run.pilot.to_store().counts
    for (counted, counted_us, failed), sign in ((before, -1), (now, 1)):
        if counted is not None:
            change[CountKey("runs", counted.category, counted.label, *place)] += sign
        for what, length_us in counted_us.items():
            change[CountKey(what, none, bucket_of(what, length_us), *place)] += sign
            change[CountKey(MICROS[what], none, "", *place)] += sign * length_us
        if failed is not None:
            change[CountKey("failed_transfers", none, failed, *place)] += sign
    run.counted, run.counted_us, run.counted_failure = now
    run.dirty = True


def _pilot(pilot: OpenPilot, category: Category | None, memory_per_unit_mib: int) -> None:
    micros = _assumed(pilot, category, memory_per_unit_mib)
    before, now = (pilot.counted, pilot.counted_micros), (category, micros)
    if now == before:
        return
    change, place = pilot.to_store().counts, _labels(pilot)
    for (counted, amounts), sign in ((before, -1), (now, 1)):
        if counted is not None:
            change[CountKey("pilots", counted, "", *place)] += sign
        for (rule, resource), amount in amounts.items():
            key = CountKey(ASSUMED[resource], counted or Category.UNCLASSIFIED, rule, *place)
            change[key] += sign * amount
    pilot.counted, pilot.counted_micros = now
    pilot.dirty = True  # stored with the count, or it is counted again


def _assumed(
    pilot: OpenPilot, category: Category | None, memory_per_unit_mib: int
) -> Counter[tuple[Assumption, Resource]]:
    """Return how much of a counted pilot rests on which rule."""
    amounts: Counter[tuple[Assumption, Resource]] = Counter()
    for resource in RESOURCES if category is not None and pilot.assumed else ():
        for rule, within in divided(pilot.assumed, resource):
            amounts[rule, resource] += pilot.canonical_total(resource, memory_per_unit_mib, within)
    return +amounts


def _labels(pilot: OpenPilot) -> tuple[str, str, str]:
    """Return the site, entry and group under which a pilot is counted."""
    identity = pilot.posted_as or pilot.identity
    return *identity.key, identity.group
