"""Pilots that take the next job while the last one's output is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from gwmond.model.facts import Pilot, Size
from gwmond.model.pilot_life import Run
from gwmond.model.runs.run_facts import JobRecord, Transfer
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.partition import advance, partition, settled_times
from gwmond.reports.pilots.story import story_of
from tests.build.pilots import ONE, hours, job, pilot, us
from tests.build.play import T0, Play, record, shown

RUN_S, IDLE_S, JOBS = 480, 60, 6
"""Graph 1 of the report of 2010: six jobs of eight minutes, a minute until a slot has a new job."""


def _pass(upload_s: int, *, overlap: bool) -> list[Run]:
    """The runs of one pass: each sends its output at its end."""
    period = RUN_S + (IDLE_S if overlap else upload_s)
    return [
        job(str(n), n * period, n * period + RUN_S + upload_s, outcome=None)._replace(
            sends_us=us(n * period + RUN_S) if overlap else None
        )
        for n in range(JOBS)
    ]


@pytest.mark.parametrize("upload_s", [0, 60, 120, 300, 600])
def test_graph_1_of_the_report_of_2010(upload_s: int) -> None:
    """A pass grows by six uploads, overlapping by one; its five idle times are the pilot's own."""
    serial, overlapped = (_pass(upload_s, overlap=overlap) for overlap in (False, True))
    ends = [max(run.end_us or 0 for run in runs) - us(0) for runs in (serial, overlapped)]
    assert ends[0] == (JOBS * RUN_S + JOBS * upload_s) * SECOND_US
    assert ends[1] == (JOBS * RUN_S + (JOBS - 1) * IDLE_S + upload_s) * SECOND_US
    for runs, end_us, busy_s in (
        (serial, ends[0], JOBS * (RUN_S + upload_s)),
        (overlapped, ends[1], JOBS * RUN_S),
    ):
        done = [run._replace(outcome=job("").outcome) for run in runs]
        end_s = end_us / SECOND_US
        found = partition(pilot(*done, size=ONE, end=end_s))
        assert not found.unsettled
        for measure in ("resource", "canonical"):
            amounts = {
                name: round(3600 * amount) for name, amount in hours(found, measure=measure).items()
            }
            own_s = round(end_s - busy_s)
            assert amounts == {"goodput": busy_s} | ({"pilot_overhead": own_s} if own_s else {})


def test_a_run_that_is_not_judged_yet_holds_nothing_while_it_sends() -> None:
    """So that time is settled at once: it is not lost, nor there twice, after the verdict."""
    sends = job("1", 100, 900, outcome=None)._replace(sends_us=us(600))
    life = pilot(sends, job("2", 600, 1000), size=ONE, end=1800)
    judged = life._replace(runs=(sends._replace(outcome=job("").outcome), life.runs[1]))
    assert settled_times(life) == ((us(0), us(100)), (us(600), us(1800)))
    posted: Counter[tuple[str, ...]] = Counter()
    for delta in (advance(None, life), advance(life, judged)):
        assert not delta.corrections
        for account, by_hour in delta.increments.hourly.items():
            posted[account.resource, account.measure, account.category] += sum(by_hour.values())
    settled: Counter[tuple[str, ...]] = Counter()
    for row, micros in partition(judged).settled.items():
        settled[row.resource, row.measure, row.category] += micros
    assert posted == settled


def _sent(record: JobRecord, at: int, end: int) -> JobRecord:
    out = Transfer(start_us=(T0 + at) * SECOND_US, end_us=(T0 + end) * SECOND_US)
    return record._replace(fact=record.fact._replace(transfer_out=out))


ONE_CORE = shown(cores=1, memory=2000)
OVERLAP = ONE_CORE._replace(senders=1)
RECORDS = [_sent(record("1.0", 100, 900), 600, 900), _sent(record("2.0", 660, 1500), 1200, 1500)]
"""Two jobs: the second begins a minute after the first sends."""


def _played(pilots: Sequence[Pilot], *, early: bool) -> Play:
    """The pilot lives for half an hour; ``early``: records come before it is known to overlap."""
    play = Play()
    play.live(0, 900, [ONE_CORE] if early else pilots)
    play.live(960, 1620, [ONE_CORE] if early else pilots, records=RECORDS)
    play.live(1680, 1800, pilots)
    play.rest(1860)
    return play


def test_a_core_is_not_busy_while_its_job_only_sends() -> None:
    """Both programs count, neither upload does; the sum is the pilot's, of what is there."""
    play = _played([OVERLAP], early=False)
    row = play.pilot()
    assert row.steps[0].size == Size(1, 2000)
    busy = (600 - 100) + (1200 - 660)
    seconds = play.seconds()
    assert seconds["goodput"] == play.seconds("canonical")["goodput"] == busy
    life = ((row.end_us or 0) - row.start_us) / SECOND_US
    assert seconds == {"goodput": busy, "pilot_overhead": life - busy}
    ends = {run.key.job: run.end_us for run in play.stored.runs.values()}
    assert sorted(ends.values(), key=str) == [(T0 + at) * SECOND_US for at in (900, 1500)]
    play.restart()
    story = story_of(play.stored, row, row.end_us or 0, play.rules)
    assert not any(story.residual.values())
    play.stored.prove()


def test_another_pilot_holds_its_core_until_the_output_is_sent() -> None:
    """As it always was: what runs at once shares what is there."""
    seconds = _played([ONE_CORE], early=False).seconds()
    assert seconds["goodput"] == 1500 - 100


def test_what_is_known_later_counts_the_same() -> None:
    """The ad that says so may come after the records of the runs: nothing is posted otherwise."""
    late, early = (_played([OVERLAP], early=early) for early in (True, False))
    assert late.seconds() == early.seconds()
    late.stored.prove()


def test_a_job_with_gpus_holds_all_until_its_end() -> None:
    """As overlap.conf has it: GPUs cannot be held twice."""
    play = Play()
    play.live(0, 600, [OVERLAP._replace(size=Size(1, 2000, 1))])
    fact = RECORDS[0].fact._replace(size=Size(1, 2000, 1))
    records = [RECORDS[0]._replace(fact=fact)]
    play.live(660, 1800, [OVERLAP._replace(size=Size(1, 2000, 1))], records=records)
    play.rest(1860)
    assert play.seconds()["goodput"] == play.seconds(resource="gpu")["goodput"] == 900 - 100
