"""Whatever is told in whatever order, with restarts at any moment: what is posted is exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from cProfile import Profile

from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.pilot_life import Category, Kind
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.poll.batch import Batch, Settled
from gwmond.model.runs.run_facts import JobFact, JobRecord, Source
from gwmond.model.times import SECOND_US
from gwmond.reports.pilots.story import Story, story_of
from tests.build.kept import Kept
from tests.build.play import T0, UPDATE_S, Play, claim, record, shown
from tests.build.truths import RULES, Truth, play, truths
from tests.examples import examples


@settings(max_examples=examples(80))
@given(truths())
def test_what_is_posted_is_what_the_facts_say(truth: Truth) -> None:
    """Each pilot's time is divided exactly as its stored facts say, and sums are sums of it."""
    play(truth).prove()


@settings(max_examples=examples(60))
@given(truths(), st.integers(1, 3))
def test_names_that_are_not_kept_apart_change_no_sum(truth: Truth, bound: int) -> None:
    """Their pilots' time is that of ``other``, all of it, whatever is forgotten in a restart; each
    pilot has one name for ever."""
    named: dict[int, PilotIdentity] = {}

    def keep_names(stored: Kept, _now_us: int) -> None:
        for row in stored.pilots.values():
            if row.identity.origin == "collector":
                before = named.setdefault(row.id, row.identity)
                assert (row.identity.key, row.identity.group) == (before.key, before.group)

    stored = play(truth, after=keep_names, bound=bound)
    stored.prove()
    if all(visible for _, _, _, visible in truth.pilots):  # sizes of others rest on their entry's
        assert _without_places(stored) == _without_places(play(truth))


def _without_places(stored: Kept) -> Counter[tuple[str, ...]]:
    sums: Counter[tuple[str, ...]] = Counter()
    for (hour, pilot_series), micros in stored.posted.items():
        sums[
            str(hour),
            pilot_series.resource,
            pilot_series.measure,
            pilot_series.category,
            pilot_series.outcome,
            pilot_series.evidence,
        ] += micros
    return +sums


@settings(max_examples=examples(20))
@given(truths(), st.integers(0, 600))
def test_records_of_transfers_change_no_sum(truth: Truth, moved_s: int) -> None:
    """However soon they come before the run's own record; each file is counted once at most."""
    stored, without = play(truth._replace(moved_s=moved_s)), play(truth)
    stored.prove()
    assert stored.runs.keys() == without.runs.keys()
    assert +Counter(stored.posted) == +Counter(without.posted)
    files = sum(n for key, n in stored.counts.items() if key.what == "files_moved")
    assert 0 <= files <= len(truth.runs)
    others = {key: n for key, n in stored.counts.items() if n and key.what != "files_moved"}
    assert others == {key: n for key, n in without.counts.items() if n}


@settings(max_examples=examples(40))
@given(truths())
def test_everything_is_settled_in_the_end(truth: Truth) -> None:
    """Days later nothing is open, every pilot is closed, and each run counted once."""
    stored = play(truth)
    assert all(row.closed for row in stored.pilots.values())
    assert not any(row.open for row in stored.runs.values())
    counted: Counter[str] = Counter()
    for key, number in stored.counts.items():
        counted[key.what] += number
    assert counted["runs"] == len(stored.runs)
    assert counted["pilots"] == len(stored.pilots)


def stories(stored: Kept, now_us: int) -> list[Story]:
    """What ``gwmond pilot`` tells of each pilot now."""
    return [story_of(stored, row, now_us, RULES) for row in stored.pilots.values()]


def check(stored: Kept, now_us: int) -> None:
    """Prove that settled and not settled are the pilot's resources times its life so far.

    And that what is shown as settled is what the totals hold.
    """
    for story in stories(stored, now_us):
        assert not any(story.residual.values()), story.pilot.row
        posted: Counter[tuple[str, ...]] = Counter()
        for (resource, measure, category, outcome), micros in story.pilot.row.settled.items():
            posted[resource, measure, category] += 0 if outcome else micros
        own: Counter[tuple[str, ...]] = Counter()
        every: Counter[Kind] = Counter()
        for span in story.own:
            every.update(span.amounts)
            for kind, micros in span.amounts.items():
                own[(*kind, span.category or "")] += micros if span.category else 0
        assert +own == +posted
        for run in story.runs:
            every.update(run.amounts)
        assert {kind: every[kind] for kind in story.pilot.offered} == story.pilot.offered
        assert all(micros >= 0 for micros in story.unsettled.values())
        assert story.pilot.unsettled == story.unsettled


@settings(max_examples=examples(80))
@given(truths(), st.sampled_from([60, 300]), st.sampled_from([0, 900]), st.sampled_from([0, 300]))
def test_what_is_told_of_a_pilot_is_what_is_posted_at_every_moment(
    truth: Truth, every_s: int, ghost_s: int, refresh_s: int
) -> None:
    """After each poll, with restarts at any of them; pilots take leave, or are killed."""
    truth = truth._replace(every_s=every_s, ghost_s=ghost_s)
    play(truth, rules=RULES._replace(refresh_us=refresh_s * SECOND_US), after=check)


def test_a_killed_pilot_has_no_time_after_its_last_contact(play: Play) -> None:
    """Heard of last at 600 s; its ad stays: 240 s later its life is still 600 s, all accounted."""
    play.live(0, 600, [shown()], records=[record("1.0", 100, 500)])
    for at in range(660, 900, 60):
        play.poll(at, [shown(heard=600)])
        (story,) = stories(play.stored, (T0 + at) * SECOND_US)
        assert not any(story.residual.values())
        assert story.pilot.offered["cpu", "resource"] == 4 * 600e6
        assert story.own[-1].end_us == (T0 + 600) * SECOND_US
        check(play.stored, (T0 + at) * SECOND_US)
    overhead = story.pilot.settled["cpu", "resource", Category.PILOT_OVERHEAD]
    assert (overhead, story.unsettled["cpu", "resource"]) == (4 * 600e6 - 400e6, 0)


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


def calls(pilots: int) -> int:
    """How many calls a poll makes while so many pilots show one and the same run of a job."""
    play = Play()
    names = [f"glidein_{number}@node" for number in range(pilots)]
    for at in (60, 120):
        ads = [shown(name, heard=at) for name in names]
        claims = [claim("1", 30, startd=name) for name in names]
        profile = Profile()
        profile.runcall(play.poll, at, ads, claims=claims)
    return sum(entry.callcount for entry in profile.getstats())


def test_one_job_in_all_slots_costs_no_more_than_as_many_jobs() -> None:
    """A stranger, or a bug, shows one job everywhere: four times as many cost five times."""
    few, many = calls(50), calls(200)
    assert many < 5 * few
