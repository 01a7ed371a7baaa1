"""Under which names pilots are accounted of which no collector tells."""

from __future__ import annotations

from gwmond.model.facts import Berth, EntryKey
from gwmond.model.names import DAY_S, OTHER, OTHER_ENTRY, Limits, Names
from gwmond.pilots.accounting import PilotAccounting
from tests.pilots.play import T0, Play, record

BOUND = Limits(2, 10, 10, DAY_S)


def bounded(play: Play, names: Names) -> Play:
    """The same with names that are kept apart."""
    play.book = PilotAccounting(play.stored.load(), play.rules, names)
    return play


def known() -> Names:
    names = Names(BOUND)
    names.note({Berth(EntryKey("A", "a"), "g"): 1}, frozenset(), T0)
    return names


def test_sites_that_job_records_name_are_bounded() -> None:
    """A user may write any site into a job: what is beyond the bound is ``other``, its time too."""
    play = bounded(Play(), known())
    records = [
        record(f"{n}.0", 100, 200, startd=f"glidein_{n}@node", site=f"S{n}") for n in range(5)
    ]
    play.poll(300, records=records)
    play.rest(600)
    places = {row.identity.name: row.identity.key for row in play.stored.pilots.values()}
    assert places == {
        "glidein_0@node": EntryKey("S0", "S0"),
        **{f"glidein_{n}@node": OTHER_ENTRY for n in range(1, 5)},
    }
    assert play.seconds()["goodput"] == 500
    booked = {(pilot_series.site, pilot_series.entry) for _, pilot_series in play.stored.hours}
    assert booked == {("S0", "S0"), OTHER_ENTRY}


def test_a_pilot_that_was_accounted_as_other_stays_so() -> None:
    """When there is room again, and also after a restart that has forgotten all names."""
    play = bounded(Play(), Names(BOUND._replace(entries=1)))
    first = record("1.0", 100, 200, startd="glidein_1@node", site="S1")
    second = record("2.0", 100, 200, startd="glidein_2@node", site="S2")
    play.poll(300, records=[first, second])
    bounded(play, known())
    again = record("3.0", 300, 400, startd="glidein_2@node", site="S2")
    play.poll(500, records=[again])
    play.rest(600)
    assert play.pilot("glidein_2@node").identity.key == OTHER_ENTRY
    assert play.pilot("glidein_2@node").identity.group == OTHER
    assert play.pilot("glidein_1@node").identity.key == EntryKey("S1", "S1")
    assert play.seconds()["goodput"] == 300
