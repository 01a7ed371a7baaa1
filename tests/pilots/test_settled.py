"""What is handed to the export of traces: each run, job and pilot once, when it is settled."""

from __future__ import annotations

from collections.abc import Sequence

from gwmond.model.poll.batch import Batch, Settled
from gwmond.model.runs.records import JobRecord
from gwmond.model.runs.run_facts import JobFact, Source
from gwmond.model.times import SECOND_US
from tests.build.play import T0, UPDATE_S, Play, record, shown

JOB = "schedd#1.0#1"


class Watched(Play):
    """Notes what each poll has settled."""

    def __init__(self) -> None:
        super().__init__()
        self.settled: list[Settled] = []

    def store(self, now_us: int) -> Batch:
        batch = super().store(now_us)
        self.settled += batch.settled
        return batch

    def new(self, at: int, records: Sequence[JobRecord] = (), heard: int = 0) -> list[Settled]:
        """What one poll settles; ``heard``: when the pilot was last."""
        self.settled.clear()
        self.poll(at, [shown(heard=heard)] if heard else [], records)
        return list(self.settled)


def left(job: str, start: float, end: float, run: int = 1) -> JobRecord:
    """The record of a schedd's history, which is made as the job leaves."""
    found = record(job, start, end, source=Source.SCHEDD_HISTORY, run=run)
    about = JobFact(left_us=(T0 + round(end)) * SECOND_US, status=4)
    return found._replace(fact=found.fact._replace(about_job=about))


def test_a_run_is_settled_once() -> None:
    """Also when more is said of it, and after a restart."""
    play = Watched()
    assert play.new(60, heard=30) == []
    done = record("1.0", 100, 400)
    [run] = play.new(480, [done], heard=450)
    assert run == Settled(run.pilot, JOB, 1)
    assert play.new(900, [done], heard=850) == []
    startds = record("1.0", 100, 400, source=Source.STARTD_HISTORY)
    assert play.new(960, [startds], heard=950) == []
    play.restart()
    epoch = done._replace(fact=done.fact._replace(written_us=done.fact.written_us + SECOND_US))
    assert play.new(1020, [epoch], heard=1000) == []


def test_a_job_is_settled_when_it_leaves() -> None:
    """With its last run, or later; once, after a restart too."""
    play = Watched()
    play.new(60, heard=30)
    [run] = play.new(480, [left("1.0", 100, 400)], heard=450)
    assert run.number == 1
    assert [one.number for one in play.new(540, [record("2.0", 100, 500)], heard=530)] == [1]
    play.restart()
    assert play.new(600, [left("2.0", 100, 500)], heard=590) == [Settled(run.pilot, "schedd#2.0#1")]
    assert play.new(660, [left("2.0", 100, 500)], heard=650) == []
    play.restart()
    again = left("2.0", 100, 500)
    again = again._replace(fact=again.fact._replace(written_us=again.fact.written_us + SECOND_US))
    assert play.new(720, [again], heard=710) == []


def test_a_pilot_is_settled_when_it_is_closed() -> None:
    """Once, also if a run is found later."""
    play = Watched()
    play.new(60, heard=30)
    play.new(480, [record("1.0", 100, 400)], heard=450)
    found: list[Settled] = []
    for at in range(600, 12_000, UPDATE_S):
        found += play.new(at)
    [pilot] = found
    assert (pilot.job, pilot.number) == ("", None)
    late = play.new(12_100, [record("9.0", 200, 300)])
    for at in range(12_200, 20_000, UPDATE_S):
        late += play.new(at)
    assert [one.job for one in late] == ["schedd#9.0#1"]
