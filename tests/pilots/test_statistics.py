"""Jobs of which a pilot's statistics, or its factory's summary, are all that is known."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.file_facts import FileFact, Jobs, JobStatistics, PilotOutput
from gwmond.model.runs.records import JobRecord
from gwmond.model.runs.run_facts import Source
from tests.build.pilot_files import JOB, SIZE, line, lost, output, queue, us
from tests.build.play import Play, record, shown
from tests.build.played import add_outputs, only, runs_counted

STATISTICS = JobStatistics(Jobs(31, 700), good_zero=Jobs(20, 400), good_nonzero=Jobs(5, 100))
IDLE = JobStatistics(Jobs(0, 0))
SUMMED_UP = {
    "goodput": 4 * 500.0,
    "unclassified": 4 * 200.0,
    "pilot_overhead": 4 * (1200.0 - 700),
}
RAN = {"goodput": 600.0, "pilot_overhead": 4 * 1200.0 - 600}


def run(**more: Any) -> JobRecord:
    """A run of a job on it, from 100 to 700."""
    return record("1.0", 100, 700, **more)


def evidence(play: Play) -> dict[str, set[str]]:
    """On what each category of CPU time rests."""
    found: dict[str, set[str]] = {}
    for series in play.series():
        if series.resource == "cpu":
            found.setdefault(series.category.value, set()).add(series.evidence)
    return found


@pytest.mark.parametrize("summary", [(), (line(1300, 1200, jobs=31, jobs_s=700, idle=400),)])
def test_its_statistics_tell_of_jobs(play: Play, summary: tuple[FileFact, ...]) -> None:
    """Its stderr is lost: what ended by itself is goodput; none of it is a run, or measured."""
    add_outputs(play, lost(jobs=STATISTICS, activations=31), *summary)  # type: ignore[arg-type]
    assert play.seconds() == SUMMED_UP
    assert evidence(play)["goodput"] == evidence(play)["unclassified"] == {"estimated"}
    assert only(play).assumed == {Assumption.JOBS: (us(60), us(1190))}
    assert {series.outcome for series in play.series()} == {"", "summarised"}
    assert runs_counted(play) == 0
    assert play.accounting.contradictions == {}
    play.stored.prove()


@pytest.mark.parametrize("jobs", [None, IDLE])
def test_only_the_number_of_claims_is_told(play: Play, jobs: JobStatistics | None) -> None:
    """Jobs ran for a time that nothing tells."""
    add_outputs(play, lost(activations=31, jobs=jobs))
    assert play.seconds() == {"unclassified": 4 * 1130.0, "pilot_overhead": 4 * 70.0}
    assert evidence(play)["unclassified"] == {"estimated"}
    assert set(only(play).assumed) == {Assumption.JOBS}


def test_jobs_of_no_whole_second() -> None:
    """They ran: it is no decision problem, though their numbers are cut to 0 s."""
    of_line: list[FileFact] = [*queue(0, 1200), line(1300, 1200, jobs=1)]
    for facts in ([lost(jobs=JobStatistics(Jobs(1, 0)))], of_line):
        play = Play()
        add_outputs(play, *facts, expected=SIZE)
        assert play.seconds() == {"unclassified": 4.0, "pilot_overhead": 4 * 1199.0}


@pytest.mark.parametrize("logs", [(), ("=== Encoded XML description of glidein activity ===",)])
def test_nothing_tells_whether_jobs_ran(play: Play, logs: tuple[str, ...]) -> None:
    """Without statistics, and without a log, it cannot be said that none did."""
    add_outputs(play, lost(logs=logs))
    assert play.seconds() == {"unclassified": 4 * 1200.0}
    assert evidence(play) == {"unclassified": {"estimated"}}
    assert set(only(play).assumed) == {Assumption.VALIDATION}


@pytest.mark.parametrize("more", [{"jobs": IDLE}, {"activations": 0}, {"logs": ("StartdLog",)}])
def test_a_whole_output_tells_that_none_ran(play: Play, more: dict[str, Any]) -> None:
    """By its statistics, or as no log of a starter is among HTCondor's logs."""
    add_outputs(play, lost(**more))
    assert play.seconds() == {"decision_problem": 4 * 1200.0}
    assert evidence(play) == {"decision_problem": {"measured"}}
    cut = Play()
    add_outputs(cut, lost(**more)._replace(end_us=None))
    assert set(cut.seconds()) == {"unclassified"}


def test_only_the_summary_tells_of_jobs() -> None:
    """The output has neither statistics nor logs; the summary has what it needs."""
    summary = line(1300, 1200, jobs=3, jobs_s=500, terminated_s=400, idle=500)
    for facts in permutations([lost(), summary]):
        play = Play()
        for number, fact in enumerate(facts):
            add_outputs(play, fact, at=2000 + number * 60_000)  # type: ignore[arg-type]
        assert play.seconds() == {
            "goodput": 4 * 400.0,
            "unclassified": 4 * 170.0,
            "pilot_overhead": 4 * (1200.0 - 570),
        }
        assert only(play).assumed == {Assumption.JOBS: (us(60), us(1200))}
        play.stored.prove()


@pytest.mark.parametrize("summary", [(), (line(1300, 1200, jobs=3, jobs_s=500),)])
@pytest.mark.parametrize("statistics", [STATISTICS, None])
def test_a_run_that_becomes_known_takes_their_place(
    summary: tuple[FileFact, ...], statistics: JobStatistics | None
) -> None:
    """From a history, or from its own output with its logs, sooner or later, told twice or not."""
    name = output().name._replace(startd="glidein")
    short = lost(jobs=statistics, name=name)
    whole = short._replace(records=(run(source=Source.STARTD_HISTORY, startd=""),), logs=("x",))
    for other in (whole, run()):
        for facts in permutations([short, other, short, *summary]):
            play = Play()
            for number, fact in enumerate(facts):
                at = 2000 + number * 60_000
                if isinstance(fact, JobRecord):
                    play.poll(at, records=[fact])
                    play.rest(at + 60)
                else:
                    play.add_facts([fact], SIZE)
                    play.poll(at)
                    play.rest(at + 60, hours=3)
                if number == 1:
                    play.restart()
            assert play.seconds() == RAN
            assert runs_counted(play) == 1
            assert "summarised" not in {series.outcome for series in play.series()}
            assert Assumption.JOBS not in only(play).assumed
            play.stored.prove()


def test_a_pilot_that_a_collector_has_shown(play: Play) -> None:
    """No history told of its jobs: its statistics do."""
    play.live(300, 1200, [shown(started=300, factory_job=JOB)])
    play.rest(1260, hours=1)
    add_outputs(play, lost(jobs=STATISTICS), at=6000)
    assert play.seconds() == SUMMED_UP
    play.poll(90_000, records=[run(started=300)])
    play.rest(90_060)
    assert play.seconds() == RAN
    play.stored.prove()


@pytest.mark.parametrize(
    ("one", "jobs", "number"),
    [
        (lost(jobs=IDLE), 31, 1),
        (lost(jobs=IDLE), 0, 0),
        (lost(jobs=STATISTICS), 31, 0),
        (lost(jobs=STATISTICS), 0, 1),
        (lost(records=(run(source=Source.STARTD_HISTORY, startd=""),)), 0, 1),
        (lost(), 31, 0),
        (lost(), 0, 0),
    ],
)
def test_a_summary_that_differs_on_whether_jobs_ran(
    one: PilotOutput, jobs: int, number: int
) -> None:
    """The output is believed, and the contradiction is counted, once."""
    for facts in permutations([one, line(1300, 1200, jobs=jobs, jobs_s=60 * jobs), one]):
        play = Play()
        for at, fact in enumerate(facts):
            add_outputs(play, fact, at=2000 + at * 60_000)  # type: ignore[arg-type]
        assert play.accounting.contradictions.get("summary_jobs", 0) == number
        assert ("decision_problem" in play.seconds()) == (one.jobs == IDLE)
