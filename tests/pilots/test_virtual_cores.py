"""Cores that are not there: virtual slots, and pilots that offer more than they have."""

from __future__ import annotations

from gwmond.model.facts import Size
from gwmond.sources.gwms import pilot_out
from tests.build.pilot_files import JOB, output
from tests.build.play import Play, claim, record, shown
from tests.build.played import add_outputs

VIRTUAL = ("slot2", "slot3")


def test_a_run_on_a_virtual_slot_takes_memory_and_no_cores(play: Play) -> None:
    """All cores stay idle beside it, and the partition is that of the cores that are there."""
    pilot = shown(cores=4, memory=13000)._replace(virtual_slots=VIRTUAL)
    on_virtual = record("1.0", 100, 700)._replace(slot="slot2")
    on_child = record("2.0", 100, 700)._replace(slot="slot3_1")
    live = claim("1.0", 102)._replace(slot="slot2")
    play.live(0, 900, [pilot], claims=[live])
    play.restart()
    play.live(960, 1200, [pilot], records=[on_virtual, on_child])
    play.rest(1260)
    sizes = {row.key.job: row.size for row in play.stored.runs.values()}
    assert set(sizes.values()) == {Size(0, 2000)}
    assert play.seconds() == {"pilot_overhead": 4 * 1200.0}
    assert play.stored.corrected == 0


def test_beside_a_run_on_its_cores_nothing_changes(play: Play) -> None:
    """The run on a core has what it would have alone."""
    pilot = shown(cores=4, memory=13000)._replace(virtual_slots=VIRTUAL)
    runs = [record("1.0", 100, 700)._replace(slot="slot1_1")]
    runs += [record("2.0", 100, 700)._replace(slot="slot2")]
    play.live(0, 1200, [pilot], records=runs)
    play.rest(1260)
    seconds = play.seconds()
    assert sum(seconds.values()) == 4 * 1200
    assert seconds["goodput"] == 600


LINES = (
    b"GLIDEIN_OVERLOAD_CPUS is set to 1.25. Adjusting GLIDEIN_CPUS from base value 4\n"
    b"Tue Nov 24 00:00:01 UTC 2026 Setting GLIDEIN_CPUS=5 \n"
    b"GLIDEIN_OVERLOAD_MEMORY is set to 1.2. Adjusting GLIDEIN_MaxMemMBs from base value 8000\n"
    b"Tue Nov 24 00:00:01 UTC 2026 Setting GLIDEIN_MaxMemMBs=9600\n"
)


def test_what_an_overloaded_pilot_writes() -> None:
    """The lines of glidein_cpus_setup.sh and glidein_memory_setup.sh."""
    found = pilot_out.parse(LINES)
    assert (found.cores, found.offered_cores) == (4, 5)
    assert (found.memory_mib, found.offered_memory_mib) == (8000, 9600)
    plain = pilot_out.parse(b"GLIDEIN_OVERLOAD_ENABLED=true but\n" + LINES.splitlines(True)[1])
    assert (plain.cores, plain.offered_cores) == (5, None)


def test_an_overloaded_pilot_has_the_units_of_the_cores_that_are_there(play: Play) -> None:
    """Its slots offer five cores on four; its output corrects what they said."""
    play.live(0, 1200, [shown(cores=5, memory=9600, factory_job=JOB)])
    told = output(0, 1230)._replace(
        cores=4, memory_mib=8000, offered_cores=5, offered_memory_mib=9600
    )
    add_outputs(play, told, at=6000)
    assert sum(play.seconds().values()) == 4 * 1230.0
    row = play.pilot()
    assert [step.size for step in row.steps] == [Size(4, 8000)]
    assert row.facts.output is not None
    assert (row.facts.output.offered_cores, row.facts.output.offered_memory_mib) == (5, 9600)
