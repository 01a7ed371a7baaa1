"""Under which names pilots are accounted of which no collector tells."""

from __future__ import annotations

import pytest

from gwmond.model.facts import Berth, EntryKey
from gwmond.model.names import DAY_S, OTHER, OTHER_ENTRY, NameLimits, Names
from gwmond.pilots.accounting import PilotAccounting
from tests.build.pilot_files import JOB, line, output, queue
from tests.build.play import T0, Play, record, shown
from tests.build.played import add_files

BOUND = NameLimits(2, 10, 10, DAY_S)


def bounded(play: Play, names: Names) -> Play:
    """The same with names that are kept apart."""
    play.accounting = PilotAccounting(play.stored.load(), play.rules, names)
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
    posted = {(pilot_series.site, pilot_series.entry) for _, pilot_series in play.stored.posted}
    assert posted == {("S0", "S0"), OTHER_ENTRY}


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


def folded(entry: EntryKey = OTHER_ENTRY) -> Play:
    """A pilot that collectors showed from 300 to 1200 s, at an entry that is not kept apart."""
    play = bounded(Play(), known())
    live = shown(started=300, factory_job=JOB)._replace(entry=entry, group=OTHER)
    play.live(300, 1200, [live], records=[record("1.0", 400, 1000, started=300)])
    play.rest(1260, hours=1)
    return play


@pytest.mark.parametrize("restarted", [False, True])
def test_files_of_a_factory_are_joined_with_a_pilot_of_other(restarted: bool) -> None:
    """Output, queue and summary are those of the pilot that ads show, whatever its entry is called
    there; it is accounted once, stays ``other``, and has its own beginning and end."""
    play = folded()
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 900.0 - 600}
    if restarted:
        bounded(play, known())
    add_files(play, output(0, 1230), *queue(0, 1240), line(1250, 1230), at=6000)
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1230.0 - 600}
    (row,) = play.stored.pilots.values()
    assert (row.identity.key, row.identity.group) == (OTHER_ENTRY, OTHER)
    assert row.end_source == "pilot_output"


def test_the_queue_alone_ends_a_pilot_of_other() -> None:
    """Of a pilot that was killed no output comes back; its time is that of any pilot."""
    play, apart = folded(), folded(EntryKey("Site", "entry"))
    for each in (play, apart):
        add_files(each, *queue(0, 1240), at=6000)
    (row,), (own,) = play.stored.pilots.values(), apart.stored.pilots.values()
    assert (row.identity.key, row.end_source) == (OTHER_ENTRY, "queue")
    assert (own.identity.key, own.end_us) == (EntryKey("Site", "entry"), row.end_us)
    assert (
        play.seconds() == apart.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 940.0 - 600}
    )


def test_a_pilot_of_an_entry_of_files_is_not_one_of_other() -> None:
    """Another factory job with the same number is another pilot."""
    play = folded()
    mine = output(0, 1230)
    add_files(play, mine._replace(name=mine.name._replace(schedd="another")), at=6000)
    assert len(play.stored.pilots) == 2
    assert sum(play.seconds().values()) == 4 * 900.0 + 4 * 1230.0
