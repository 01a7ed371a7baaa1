"""What pilots' own output tells, alone and beside collectors and histories."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import (
    PilotOutput,
)
from gwmond.model.problem_names import ProblemName
from gwmond.pilots.factory import entry_defaults
from tests.build.pilot_files import JOB, output, us
from tests.build.play import Play
from tests.build.playbook import Playbook, playbooks
from tests.build.played import add_outputs
from tests.build.played import one as numbered

PLAYBOOKS = """
All time of a pilot whose validation failed is lost, its deliberate sleep too
  output 0-1200 validation=failed; done 2000
  -> time validation_fails 4800; failure WN_Resource main/validate_node.sh; origin files;
  counted pilots 1

It began before its startd and ended after: the output corrects what a collector knows
  ad 300-1200 started=300 job=factory#7.0 with record 1.0 400-1000 started=300; rest 1260 1;
  = time goodput 600, pilot_overhead 3000; output 0-1230; done 6000
  -> time goodput 600, pilot_overhead 4320; pilots 0-1230 pilot_output

A run that its startd's history has is not taken from a starter's log again
  output 0-1200 with record 1.0 100-700 startd= source=startd_history, log 1.0 101-700,
  log 2.0 720-800;
  done 2000
  -> time goodput 680, pilot_overhead 4120

An end of a run that nothing tells is inferred, and an estimate
  output 0-1200 with log 1.0 100-; done 2000
  -> runs 1.0/? 100-1200 lost_contact~; facts inferred, starter_log

So is that of a claim that is gone; what was inferred contradicts nothing
  ad 0-600 job=factory#7.0 with claim 1.0 100; ad 660-9000 job=factory#7.0;
  = facts inferred, live_slot; ad 9060 heard=9000 job=factory#7.0 with record 1.0 100-500
  -> contradictions

A pilot that never returned its end ended with the last time in its output: an estimate
  output 0- condor_start=60 with record 1.0 100-700 startd= source=startd_history; done 2000
  -> pilots 0-700 assumed; evidence goodput measured, pilot_overhead estimated

An output that is read again when it has grown: nothing counts twice
  output 0- condor_start=100; done 2000;
  output 0-1200 with record 1.0 200-800 startd= source=startd_history; done 60000;
  output 0-1200 with record 1.0 200-800 startd= source=startd_history; done 120000
  -> time goodput 600, pilot_overhead 4200

What nothing tells is unclassified: neither that it passed its validation, nor that it failed
  output 0-1200 validation=unknown; done 2000
  -> time unclassified 4800

A job that was cut off with its pilot: its own output says that it ended
  output 0-1200 with record 1.0 100-1190 startd= source=startd_history ending=cut; done 2000
  -> time pilot_overhead 3710, preemption_badput 1090

A pilot that only a record of a job told of has an output after all
  record 1.0 400-1000 started=300; rest 2000 3; = origin jobs;
  output 0-1230 startd=glidein node=node; done 20000
  -> pilots 0-1230 pilot_output; origin files; assumed; time goodput 600, pilot_overhead 4320

A number of its factory that is used again years later is another pilot's
  output 0-1200; done 2000; output 34560000-34560600; done 34562000
  -> pilots 0-1200 pilot_output, 34560000-34560600 pilot_output

An end that was to come when its files were written: clocks and zones may differ by a day
  output 0-87500 condor_end=1000 written=1200; done 100000
  -> pilots 0-87500 pilot_output; closed True

More is not believed
  output 0-87700 condor_end=1000 written=1200; done 100000
  -> pilots 0-1000 assumed; closed True; time unclassified 4000
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS))
def test_outputs(playbook: Playbook) -> None:
    playbook.check()


@pytest.mark.parametrize(
    ("others", "expected", "cores"),
    [(2, {}, 8), (0, {"entry": Size(16, 32000)}, 16), (0, {}, 1)],
)
def test_a_pilot_whose_size_is_not_known(
    play: Play, others: int, expected: dict[str, Size], cores: int
) -> None:
    """It is as large as the entry's others, else as the entry's are expected to be, else one."""
    of_others = [
        output(0, 0, cores=8, memory_mib=16000)._replace(
            name=output().name._replace(cluster=8, proc=n)
        )
        for n in range(others)
    ]
    unknown = output(cores=None, memory_mib=None, validation=Validation.FAILED)
    add_outputs(play, *of_others, unknown, expected=expected)
    assert play.seconds() == {"validation_fails": cores * 1200.0}
    assert {series.evidence for series in play.series()} == {"estimated"}


def test_an_empty_output_is_no_pilot(play: Play) -> None:
    """It tells nothing of its pilot; that it does is said where it is read, with its name."""
    add_outputs(play, PilotOutput("job.7.0.out", output().name))
    assert not any(play.accounting.left_out.values())
    assert play.stored.pilots == {}


@pytest.mark.parametrize("late", [{"start_us": us(10**9)}, {"condor_end_us": us(10**9)}])
def test_other_times_that_were_to_come(late: dict[str, int]) -> None:
    """Nothing that the output tells is believed; where its files tell no time, it is."""
    play = Play()
    add_outputs(play, output(0, 1200, written_us=us(1200))._replace(**cast(Any, late)))
    assert not play.stored.pilots
    assert play.accounting.left_out[ProblemName.BAD_TIME] == 1
    for written_us in (None, 0):
        play = Play()
        add_outputs(play, output(0, 1200, written_us=written_us))
        assert play.seconds() == {"decision_problem": 4 * 1200.0}


@pytest.mark.parametrize(
    ("schedd", "start"), [("factory2", 0), ("factory2", 100_000), ("factory", 300 * 86400)]
)
def test_a_number_that_another_pilot_had(schedd: str, start: int) -> None:
    """Neither tells its startd: another schedd's, or one long after, is another pilot."""
    failed = output(validation=Validation.FAILED)
    name = failed.name._replace(schedd=schedd)
    later = output(start, start + 1200, validation=Validation.FAILED, name=name)
    for one, other in ((failed, later), (later, failed)):
        play = Play()
        add_outputs(play, one, at=start + 2000)
        add_outputs(play, other, at=start + 90_000)
        rows = play.stored.pilots.values()
        assert sorted((row.identity.factory_job, row.start_us) for row in rows) == sorted(
            [(JOB, us(0)), (f"{schedd}#7.0", us(start))]
        )
        assert play.seconds() == {"validation_fails": 2 * 4 * 1200.0}


def test_sites_of_forgotten_entries_are_asked_of_the_ledger(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names come and go: of those of the past few are in memory."""
    monkeypatch.setattr(entry_defaults, "MOST_ENTRIES", 2)
    for n in range(6):
        add_outputs(play, numbered(n, site=f"S{n}", entry=f"e{n}"), at=2000 + 100_000 * n)
        assert len(play.accounting.files.entries) <= 3
    add_outputs(play, numbered(6000, site="", entry="e0"), at=700_000)
    assert sorted(row.identity.key for row in play.stored.pilots.values())[:2] == [("S0", "e0")] * 2
