"""The record of a job names its pilot's job in the factory: exactly that pilot."""

from __future__ import annotations

import pytest

from tests.build.pilot_files import JOB, output
from tests.build.play import Play, record, shown
from tests.build.played import add_outputs


def test_a_pilot_of_which_only_files_tell(play: Play) -> None:
    """Its output has no startd's name; the job's record has its job."""
    add_outputs(play, output(0, 1230), at=6000)
    (before,) = play.stored.pilots.values()
    told = record("1.0", 100, 700, startd="glidein_5_6@node")
    play.poll(6100, records=[told._replace(factory_job=JOB, entry="entry")])
    (row,) = play.stored.pilots.values()
    assert row.id == before.id
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1230.0 - 600}


def test_a_pilot_that_no_collector_saw(play: Play) -> None:
    """It has the job's name for it, and so its output is found to be its own."""
    told = record("1.0", 100, 700, startd="glidein_5_6@node", site="Site")
    play.poll(2000, records=[told._replace(factory_job=JOB, entry="entry", factory="factory")])
    (row,) = play.stored.pilots.values()
    assert (row.identity.factory_job, row.identity.factory) == (JOB, "factory")
    add_outputs(play, output(0, 1230), at=6000)
    assert len(play.stored.pilots) == 1
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1230.0 - 600}


def test_the_pilot_that_has_the_job_before_one_that_has_none(play: Play) -> None:
    """Its startd was started again at 300 s, within what clocks may differ."""
    both = [shown(started=0, heard=600, factory_job=JOB), shown(started=300, heard=600)]
    play.poll(600, both)
    told = record("1.0", 340, 500, started=None)._replace(factory_job=JOB, entry="entry")
    play.poll(660, both, records=[told])
    (run,) = play.stored.runs.values()
    assert play.stored.pilots[run.pilot].identity.factory_job == JOB


def test_a_collector_shows_the_same_number_of_another_schedd(play: Play) -> None:
    """The pilot of the output may still run, and is another."""
    add_outputs(play, output(0, None), at=600)
    live = shown(started=300, heard=600, factory_job=JOB.replace("factory", "other"))
    play.poll(660, [live])
    assert len(play.stored.pilots) == 2


@pytest.mark.parametrize(("late", "pilots"), [(0, 1), (1, 2)])
def test_a_collector_shows_who_only_jobs_told_of(play: Play, late: int, pilots: int) -> None:
    """Its startd cannot have begun after the job ended, by more than clocks may differ."""
    play.poll(200, records=[record("1.0", 10, 100, started=None)])
    play.poll(300, [shown(started=100 + 60 + late, heard=300)])
    assert len(play.stored.pilots) == pilots


def test_of_two_pilots_with_the_same_startds_name(play: Play) -> None:
    """The one of the job that is named, though the other began later and fits as well."""
    first = shown(started=0, heard=600, factory_job="schedd#1.0")
    second = shown(started=300, heard=600, factory_job="schedd#2.0")
    play.poll(600, [first, second])
    told = record("1.0", 400, 500, started=None)._replace(factory_job="schedd#1.0", entry="entry")
    play.poll(660, [first, second], records=[told])
    (run,) = play.stored.runs.values()
    assert play.stored.pilots[run.pilot].identity.factory_job == "schedd#1.0"
