"""What a change moves, where it is plain what must come of it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence

import pytest

from gwmond.model.demand.what_if import WhatIf, what_if
from gwmond.model.entries.evaluation import Capacity
from gwmond.model.facts import DemandGroup, EntryKey, Size, Template
from gwmond.model.states import State
from gwmond.sites.site_time import Facts, Settings
from gwmond.sites.whatif import AllMoves, PlaceNow, Prospects, applied, judged, plain
from tests.build.facts import BIG, NOW, A, B, facts, group, peak, pilot, request, template, totals

MIB = 2000
OPEN = totals(request(A), request(B))


def asked(
    given: Facts,
    what: WhatIf,
    groups: Sequence[DemandGroup] | None = None,
    templates: Sequence[Template] | None = None,
) -> AllMoves:
    after = given._replace(groups=groups or given.groups, templates=templates or given.templates)
    after = applied(given, after, what, MIB)
    return judged(plain(given), plain(after), what, 1, NOW, Settings())[0]


def places(found: AllMoves) -> Mapping[EntryKey, tuple[PlaceNow, PlaceNow]]:
    return {place.entry: (place.before, place.after) for place in found.places}


def limited(units: int) -> dict[tuple[EntryKey, str], Capacity]:
    return {(A, "cpu"): Capacity(units, "limit")}


def test_a_limit_moves_a_capacity_that_a_limit_told() -> None:
    """One pilot runs, two more of 8 units may come: 16 of 40 jobs; with a limit of 5 it is 32."""
    given = facts(
        capacities=limited(24),  # type: ignore[arg-type]
        totals=totals(request(A, running=1, total_running=1)),
        pilots=[pilot()],
        groups=[group(40)],
    )
    more, fewer = (asked(given, what_if("limit", A.entry, n)) for n in ("5", "1"))
    assert places(more)[A] == (
        PlaceNow(State.PROVISIONING_BOTTLENECK, 16, 0, 2),
        PlaceNow(State.PROVISIONING_BOTTLENECK, 32, 0, 4),
    )
    assert places(fewer)[A][1] == PlaceNow(State.FULL, 0, 0, 0)
    (jobs,) = more.groups
    assert (jobs.before, jobs.after, jobs.gain) == (Prospects(0, 16, 24), Prospects(0, 32, 8), 16)
    assert fewer.groups[0].gain == -16


@pytest.mark.parametrize(("limit", "units"), [("100", 16), ("2", 8)])
def test_a_peak_is_the_sites(limit: str, units: float) -> None:
    """A higher limit does not raise it; a lower one leaves less."""
    given = facts(
        capacities=peak({A: 24}),
        totals=totals(request(A, running=1, total_running=1)),
        pilots=[pilot()],
        groups=[group(40)],
    )
    assert places(asked(given, what_if("limit", A.site, limit)))[A][1].units == units


def test_of_other_pilots_as_many_have_room() -> None:
    """By a limit two more of any size; a peak is of units, whatever pilots it is filled with."""
    wide = template(A, Size(16, 32000))
    for capacities, units in ((limited(24), 32), (peak({A: 24}), 16)):
        given = facts(
            capacities=capacities,  # type: ignore[arg-type]
            totals=totals(request(A, running=1, total_running=1)),
            pilots=[pilot()],
            groups=[group(40)],
        )
        what = what_if("pilot", A.entry, "16,32000")
        assert places(asked(given, what, templates=[wide]))[A][1].units == units


def test_jobs_that_ask_for_less_find_more() -> None:
    """A pilot runs one job of 5 cores, and two of 4; the free slot takes one that fits."""
    given = facts(
        capacities=peak({A: 16}),
        totals=OPEN,
        pilots=[pilot(free=[Size(4, 8000)])],
        groups=[group(9, Size(5, 1000))],
    )
    smaller = [group(9, Size(4, 1000))]
    found = asked(given, what_if("cores", "users", "4"), groups=smaller)
    assert found.groups[0].before == Prospects(0, 1, 8)
    assert found.groups[0].after == Prospects(1, 2, 6)
    assert (found.changed, places(found)) == (1, {})  # 8 units are lacking, before and after


@pytest.mark.parametrize("factory", [True, False])
def test_jobs_go_elsewhere_when_a_site_is_down(factory: bool) -> None:
    """Its free slots take none, and what was spare there is spare at no other site."""
    given = facts(
        capacities=peak({A: 16, B: 8}),
        totals=OPEN if factory else None,
        no_totals=not factory,
        pilots=[pilot(A, free=[Size(2, 4000)], factory="" if not factory else "f")],
        groups=[group(10)],
    )
    if not factory:
        given = given._replace(totals={})
    found = asked(given, what_if("down", A.site, ""))
    now, then = zip(*(places(found)[key] for key in (A, B)), strict=True)
    assert sum(place.units for place in now) == 8
    assert [place.units for place in then] == [0, 8]
    assert then[0].state is (State.DOWN if factory else State.FULL)
    assert found.groups[0].before == Prospects(2, 8, 0)
    assert found.groups[0].after == Prospects(0, 8, 2)


def test_pilots_that_may_wait_change_nothing_but_rounds() -> None:
    """The entry is told with what it needs, though nothing differs."""
    given = facts(capacities=peak({A: 16, B: 8}), totals=OPEN, groups=[group(40)])
    found = asked(given, what_if("max-idle", f"{A.site}/{A.entry}", "1"))
    assert list(places(found)) == [A]
    before, after = places(found)[A]
    assert before == after == PlaceNow(State.PROVISIONING_BOTTLENECK, 16, 0, 2)
    assert found.places[0].requested == 0


def test_pilots_of_unknown_size_are_not_counted() -> None:
    given = facts(
        capacities=peak({A: 16}),
        totals=totals(request(A, pilot_size=None)),
        groups=[group(40)],
        templates=[],
        verdicts={},
    )
    assert places(asked(given, what_if("max-idle", A.entry, "1")))[A][0].pilots == 0  # no demand
    more = applied(given, given, what_if("limit", A.entry, "9"), MIB)
    assert more.capacities == given.capacities


def test_what_a_child_is_given_can_be_sent() -> None:
    """Facts without ads: what they say of units is the same."""
    given = facts(capacities=peak({A: 16}), totals=OPEN, pilots=[pilot()], groups=[group(40)])
    small = plain(given)
    assert pickle.loads(pickle.dumps(small)) == small
    assert (small.groups[0].ad, small.templates[0].ad) == ("", "")
    assert small.templates[0].size == BIG
