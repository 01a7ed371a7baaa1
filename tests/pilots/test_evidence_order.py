"""Outputs, events and lines in any order, any number of times: the same pilots, the same totals."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import FileFact, Jobs, JobStatistics, PilotOutput, QueueState
from gwmond.model.runs.run_facts import Source
from tests.build.pilot_files import SIZE, event, line, output, queue, us
from tests.build.play import Play, record
from tests.build.played import add_files, booked, lives
from tests.examples import examples

KINDS = ("cut", "no_start", "whole", "failed", "silent", "summed_up", "counted", "ran")
WHOLE = frozenset({"whole", "silent", "summed_up", "counted", "ran"})
LATEST = 400_000
LATE_S = 3 * 86400


class Told(NamedTuple):
    """What a test tells: facts in order, with repetitions; after which of them there is a poll."""

    facts: list[FileFact]
    again: list[FileFact]
    polls: frozenset[int]
    restarts: frozenset[int]


@st.composite
def truths(draw: st.DrawFn) -> list[FileFact]:
    """A few pilots, of each of which some of its evidence is there."""
    facts: list[FileFact] = []
    for number in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, 3000))
        lasted = draw(st.integers(100, 6000))
        kind = draw(st.sampled_from(["none", "empty", *KINDS]))
        if draw(st.booleans()):
            how = draw(st.sampled_from([QueueState.ENDED, QueueState.REMOVED, QueueState.EVICTED]))
            facts += queue(start - 5, start + lasted + draw(st.integers(-20, 60)), how, proc=number)
            facts += draw(st.just([]) | earlier(start, number))
        if draw(st.booleans()):
            jobs = draw(st.integers(0, 3))
            made = line(
                start + lasted + draw(st.integers(10, 1000) | st.integers(1000, LATE_S)),
                draw(st.sampled_from([None, 0, lasted, lasted + 700])),
                jobs=jobs,
                jobs_s=jobs * 100,
                terminated_s=draw(st.integers(0, 9000)),
                idle=draw(st.integers(-100, 1100)),
                condor_started=draw(st.booleans()),
            )
            facts.append(made._replace(name=made.name._replace(proc=number)))
        if kind != "none":
            facts.append(_output(kind, start, lasted, number))
        if kind in WHOLE and draw(st.booleans()):
            facts.append(_output("cut", start, lasted, number))  # as it was when it had just begun
        if kind not in {"none", "empty"} and draw(st.booleans()):
            # Another schedd's pilot of this number, so that the queue may mean either.
            other = draw(st.sampled_from(KINDS))
            late = start + draw(st.integers(-3000, 9000))
            facts.append(_output(other, max(0, late), lasted, number, "factory2"))
    return facts


@st.composite
def earlier(draw: st.DrawFn, start: int, number: int) -> list[FileFact]:
    """Another execution before, or, of another factory, another job at the same time."""
    first = start - draw(st.integers(100, 250))
    if draw(st.booleans()):
        gone = draw(st.sampled_from([[QueueState.EVICTED], [QueueState.HELD, QueueState.RELEASED]]))
        ran = [QueueState.STARTED, *gone]
        return [event(how, first + 40 * n, proc=number) for n, how in enumerate(ran)]
    if draw(st.booleans()):
        # The end of one before was lost; or it comes after this one's, and is another factory's.
        ran = [QueueState.SUBMITTED, QueueState.STARTED]
        lost = [event(how, first + 10 * n - 300, proc=number) for n, how in enumerate(ran)]
        late = event(QueueState.ENDED, start + draw(st.integers(6000, 12000)), proc=number)
        return [*lost, *([late] if draw(st.booleans()) else [])]
    return [event(QueueState.SUBMITTED, start + 20, proc=number)]


def _output(
    kind: str, start: int, lasted: int, number: int, schedd: str = "factory"
) -> PilotOutput:
    made = output(start, start + lasted)
    if kind == "empty":
        made = output(None, None, validation=Validation.UNKNOWN)
    elif kind == "cut":
        made = output(start, None, condor_start_us=made.start_us)
    elif kind == "no_start":
        # Without its head, where it tells for whom it ran.
        made = output(None, start + lasted, condor_start_us=us(start + 60))
        made = made._replace(name=made.name._replace(frontend="", group=""))
    elif kind == "failed":
        made = output(start, start + lasted, validation=Validation.FAILED)
    elif kind == "silent":
        made = made._replace(logs=())
    elif kind == "summed_up":
        total = Jobs(3, lasted // 2)
        made = made._replace(logs=(), jobs=JobStatistics(total, good_zero=Jobs(1, lasted // 3)))
    elif kind == "counted":
        made = made._replace(logs=(), activations=3)
    elif kind == "ran":
        job, history = f"{number}.{schedd}", Source.STARTD_HISTORY
        run = record(job, start + 10, start + lasted - 10, source=history, startd="")
        made = made._replace(records=(run,))
    return made._replace(name=made.name._replace(proc=number, schedd=schedd))


@st.composite
def tellings(draw: st.DrawFn, facts: list[FileFact]) -> Told:
    """The facts in some order, some of them again."""
    order = draw(st.permutations(facts))
    again = draw(st.lists(st.sampled_from(facts), max_size=4)) if facts else []
    polls = draw(st.frozensets(st.integers(0, 12), max_size=4))
    return Told(order, again, polls, draw(st.frozensets(st.integers(0, 12), max_size=2)))


def play(pilot_name: Told) -> Play:
    """Tell it, with hours between some of the facts."""
    made, at = Play(), LATEST
    for number, fact in enumerate([*pilot_name.facts, *pilot_name.again]):
        made.add_facts([fact], SIZE)
        if number in pilot_name.polls:
            made.poll(at)
            made.rest(at + 60, hours=2)
            at += 3 * 3600
        else:
            made.poll(at)
        if number in pilot_name.restarts:
            made.restart()
    add_files(made, at=at + 60, hours=3)
    return made


@settings(max_examples=examples(60))
@given(st.data())
def test_the_order_does_not_matter(data: st.DataObject) -> None:
    """Two tellings of the same facts give the same; and each proves itself."""
    facts = data.draw(truths())
    one, other = (play(data.draw(tellings(facts))) for _ in range(2))
    assert lives(one) == lives(other)
    for made in (one, other):
        made.stored.prove()
        assert all(row.closed for row in made.stored.pilots.values())
        assert not any(made.accounting.settlement.residual.values())
    assert booked(one) == booked(other)
