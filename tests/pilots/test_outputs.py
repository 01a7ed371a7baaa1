"""What pilots' own output tells, alone and beside collectors and histories."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gwmond.model.facts import Size
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import (
    PilotOutput,
    StarterRun,
)
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import Source
from tests.build.pilot_files import FAILED, JOB, output, us
from tests.build.play import DONE, Play, claim, record, shown
from tests.build.played import add_outputs


def test_a_pilot_whose_validation_failed(play: Play) -> None:
    """No collector has ever seen it; all of its time is lost, its deliberate sleep too."""
    add_outputs(play, output(validation=Validation.FAILED, failure=FAILED))
    assert play.seconds() == {"validation_fails": 4 * 1200.0}
    (row,) = play.stored.pilots.values()
    assert row.failure == "WN_Resource main/validate_node.sh"
    assert (row.identity.origin, row.identity.factory_job) == ("files", JOB)
    assert play.counted() == {"pilots": 1}


def test_it_began_before_its_startd_and_ended_after(play: Play) -> None:
    """The collector knows neither the validation nor the end; the output corrects both."""
    live = shown(started=300, factory_job=JOB)
    play.live(300, 1200, [live], records=[record("1.0", 400, 1000, started=300)])
    play.rest(1260, hours=1)
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 900.0 - 600}
    add_outputs(play, output(0, 1230), at=6000)
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1230.0 - 600}
    assert len(play.stored.pilots) == 1
    assert play.pilot().end_source == "pilot_output"


def test_runs_of_its_startds_history_and_of_its_starter_logs(play: Play) -> None:
    """A run that the history has is not taken from the log again."""
    known = record("1.0", 100, 700, source=Source.STARTD_HISTORY, startd="")
    same = StarterRun("1.0", "<submitter>", us(101), us(700), DONE)
    other = StarterRun("2.0", "<submitter>", us(720), us(800), DONE)
    add_outputs(play, output(records=(known,), runs=(same, other)))
    seconds = play.seconds()
    assert len(play.stored.runs) == 2
    # Nothing tells how large the other's slot was: it is taken for one unit.
    assert seconds["goodput"] == 600 + 80
    assert sum(seconds.values()) == 4 * 1200


def test_an_end_that_nothing_tells_is_inferred() -> None:
    """Of a run without an end in its starter's log, and of a claim that is gone."""
    play = Play()
    run = StarterRun("1.0", "<submitter>", us(100), None, Ending(began=True))
    add_outputs(play, output(runs=(run,)))
    (row,) = play.stored.runs.values()
    assert {fact.source for fact in row.facts} == {Source.STARTER_LOG, Source.INFERRED}
    assert row.outcome is not None
    assert row.outcome.evidence == "estimated"
    play = Play()
    live = shown(factory_job=JOB)
    play.live(0, 600, [live], claims=[claim("1.0", 100)])
    play.live(660, 9000, [live])
    (row,) = play.stored.runs.values()
    assert {fact.source for fact in row.facts} == {Source.LIVE_SLOT, Source.INFERRED}
    ended = [record("1.0", 100, 500)]
    play.poll(9060, [live._replace(last_heard=live.started + 9000)], records=ended)
    assert not play.accounting.contradictions  # what was inferred contradicts nothing


def test_a_pilot_that_never_returned_its_end(play: Play) -> None:
    """It ended with the last time in its output; that is an estimate."""
    job = record("1.0", 100, 700, source=Source.STARTD_HISTORY, startd="")
    add_outputs(play, output(end=None, records=(job,), condor_start_us=us(60)))
    (row,) = play.stored.pilots.values()
    assert (row.end_us, row.end_source) == (us(700), "assumed")
    own = [series for series in play.series() if not series.outcome]
    assert {series.evidence for series in own} == {"estimated"}


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


def test_an_output_is_read_again_when_it_has_grown(play: Play) -> None:
    """Nothing counts twice, and what is new is added."""
    first = output(end=None, condor_start_us=us(100))
    add_outputs(play, first, at=2000)
    whole = output(records=(record("1.0", 200, 800, source=Source.STARTD_HISTORY, startd=""),))
    add_outputs(play, whole, at=60_000)
    add_outputs(play, whole, at=120_000)
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1200.0 - 600}


def test_an_empty_output_is_no_pilot(play: Play) -> None:
    """It tells nothing of its pilot; that it does is said where it is read, with its name."""
    add_outputs(play, PilotOutput("job.7.0.out", output().name))
    assert not any(play.accounting.left_out.values())
    assert play.stored.pilots == {}


def test_what_nothing_tells_is_unclassified(play: Play) -> None:
    """Neither that it passed its validation, nor that it failed."""
    add_outputs(play, output(validation=Validation.UNKNOWN))
    assert play.seconds() == {"unclassified": 4 * 1200.0}


def test_a_job_that_was_cut_off_with_its_pilot(play: Play) -> None:
    """The pilot's own output tells that it ended."""
    cut = Ending(over=True, vacate_code=1005, began=True)
    job = record("1.0", 100, 1190, source=Source.STARTD_HISTORY, startd="", ending=cut)
    add_outputs(play, output(records=(job,)))
    assert play.seconds()["preemption_badput"] == 1090


def test_jobs_told_of_it_first(play: Play) -> None:
    """A pilot that only a record of a job told of has an output after all: that tells its life."""
    play.add_records([record("1.0", 400, 1000, started=300)])
    play.rest(2000, hours=3)
    assert play.pilot().identity.origin == "jobs"
    name = output().name._replace(startd="glidein", node="node")
    add_outputs(play, output(0, 1230, name=name), at=20_000)
    row = play.pilot()
    assert (row.start_us, row.end_us, row.end_source) == (us(0), us(1230), "pilot_output")
    assert (row.identity.origin, row.identity.factory_job, row.assumed) == ("files", JOB, {})
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1230.0 - 600}


def test_a_number_of_its_factory_that_is_used_again(play: Play) -> None:
    """Years later another pilot has the number of this one."""
    later = 400 * 86400
    add_outputs(play, output(0, 1200))
    add_outputs(play, output(later, later + 600), at=later + 2000)
    assert sorted(row.end_us or 0 for row in play.stored.pilots.values()) == [
        us(1200),
        us(later + 600),
    ]


def test_an_end_that_was_to_come_when_its_files_were_written() -> None:
    """It is not believed; clocks and zones may differ by a day."""
    for end, until in ((1200 + 86_300, 1200 + 86_300), (1200 + 86_500, 1000), (10**9, 1000)):
        play = Play()
        add_outputs(play, output(0, end, condor_end_us=us(1000), written_us=us(1200)), at=100_000)
        (row,) = play.stored.pilots.values()
        assert (row.end_us, row.closed) == (us(until), True)
        assert sum(play.seconds().values()) == 4.0 * until


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
