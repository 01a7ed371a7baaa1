"""Lines of central logs about pilots whose output was cut off, so that it tells no startd."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gwmond.model.factory.jobs import AGE_US
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import (
    CentralEvent,
    CentralKind,
    PilotName,
    PilotOutput,
    QueueEvent,
    QueueState,
)
from gwmond.model.times import SECOND_US
from tests.build.pilot_files import us
from tests.build.play import T0, Play, shown
from tests.examples import examples

STARTD, PID = "glidein_24261_217254492", 24261
FIGURE_7 = PilotName(site="Site", resource="Resource", startd=STARTD, node="node")
BY_PLACE = FIGURE_7._replace(startd="")
HOUR, LATER = 3600, 40_000
DAYS_60 = AGE_US // SECOND_US


def line(at: float, name: PilotName = FIGURE_7) -> CentralEvent:
    """A line that says that a pilot ended then."""
    return CentralEvent("l", name, CentralKind.PILOT_END, us(at), "supervisord", "", "exited")


def output(
    number: int = 7,
    start: float = 0,
    end: float | None = None,
    pid: int | None = PID,
    node: str = "node.example.org",
    entry: str = "entry",
) -> PilotOutput:
    """The output of a pilot that started HTCondor after 100 s, and was cut off there if no end."""
    name = PilotName("factory", "i", entry, number, 0, "schedd", "fe", "main", site="Site")
    return PilotOutput(
        f"job.{number}.0.out",
        name._replace(node=node, pid=pid),
        us(start),
        None if end is None else us(end),
        Validation.PASSED,
        us(start + 100),
        condor_start_us=us(start + 100),
        cores=1,
        memory_mib=2000,
        written_us=us(start + 200 if end is None else end),
    )


def told(play: Play) -> list[tuple[str, float | None]]:
    """How, and when after T0, each pilot ended, by start."""
    rows = sorted(play.stored.pilots.values(), key=lambda pilot: (pilot.start_us, pilot.id))
    return [(row.end_source, row.end_us and row.end_us / SECOND_US - T0) for row in rows]


def played(*facts: CentralEvent | PilotOutput | QueueEvent) -> Play:
    """The accounting with these outputs, and with lines when all is settled."""
    play = Play()
    play.add_facts([fact for fact in facts if not isinstance(fact, CentralEvent)])
    ends = [fact.at_us for fact in facts if isinstance(fact, CentralEvent)]
    at = max([50_000, *(end_us // SECOND_US - T0 for end_us in ends)])
    play.rest(100)
    play.rest(at)
    assert not play.accounting.pilots
    play.add_facts([fact for fact in facts if isinstance(fact, CentralEvent)])
    play.rest(at + 50_000, hours=3)
    return play


BOTH, SEVERAL, NONE = "assumed 100, assumed 150", {"several_pilots": 1}, {"no_pilot": 1}
NO_SITE = output()._replace(name=output().name._replace(site=""))
SOME = [FIGURE_7, BY_PLACE, FIGURE_7._replace(site="", resource="site")]
BY_ENTRY = BY_PLACE._replace(entry="entry")


def queued(at: float, state: QueueState) -> QueueEvent:
    """An event of the pilot."""
    return QueueEvent("condor_activity_20231114_fe.main.log", output().name, state, us(at))


QUEUE = [queued(-10, QueueState.STARTED), queued(2000, QueueState.ENDED)]


@pytest.mark.parametrize(
    ("some", "end", "ends", "unused"),
    [
        # The only one that may have been there: however long nothing was heard of it.
        *(
            ([output()], line(at, name), f"central_log {at}", {})
            for name in SOME
            for at in (900, 1100, 3000, LATER, DAYS_60)
        ),
        ([output()], line(DAYS_60 + 1), "assumed 100", NONE),
        ([output(pid=77)], line(LATER), "assumed 100", NONE),  # another process
        ([output(node="other")], line(LATER), "assumed 100", NONE),
        ([output(start=LATER + 100)], line(LATER), f"assumed {LATER + 200}", NONE),  # not begun
        ([output(pid=None)], line(LATER), f"central_log {LATER}", {}),  # it may be this one
        # The process tells which of two it is, or the entry, or that one had ended.
        ([output(), output(8, 50, pid=77)], line(LATER), f"central_log {LATER}, assumed 150", {}),
        ([output(pid=77), output(8, 50)], line(LATER), f"assumed 100, central_log {LATER}", {}),
        ([output(), output(8, 50, pid=None)], line(LATER), f"central_log {LATER}, assumed 150", {}),
        (
            [output(), output(8, 50, end=2000)],
            *(line(LATER), f"central_log {LATER}, pilot_output 2000", {}),
        ),
        (
            [output(), output(8, 50, entry="other")],
            *(line(LATER, BY_ENTRY), f"central_log {LATER}, assumed 150", {}),
        ),
        # Of two none is meant.
        ([output(), output(8, 50)], line(LATER), BOTH, SEVERAL),
        ([output(pid=None), output(8, 50, pid=None)], line(LATER), BOTH, SEVERAL),
        ([output(), output(8, 50, pid=77)], line(LATER, BY_PLACE), BOTH, SEVERAL),
        ([output(), output(8, 50)], line(LATER, FIGURE_7._replace(startd="x")), BOTH, SEVERAL),
        # Where the site is not known its process, or its entry, and the host tell.
        ([NO_SITE], line(LATER), f"central_log {LATER}", {}),
        ([NO_SITE], line(LATER, BY_ENTRY), f"central_log {LATER}", {}),
        (
            [NO_SITE],
            line(LATER, BY_PLACE),
            "assumed 100",
            NONE,
        ),  # any other of the host may be meant
        (
            [NO_SITE._replace(name=NO_SITE.name._replace(pid=None))],
            line(LATER),
            "assumed 100",
            NONE,
        ),
        ([NO_SITE], line(LATER, FIGURE_7._replace(entry="other")), "assumed 100", NONE),
        # Who is known to be there comes first; the other may have gone long ago.
        (
            [output(pid=77), output(8, 50, end=LATER + 10)],
            *(line(LATER, BY_PLACE), f"assumed 100, pilot_output {LATER + 10}", {}),
        ),
        # An end that the queue tells stays; a line after it is of another pilot.
        ([output(), *QUEUE], line(1990), "queue 2000", {}),
        ([output(), *QUEUE], line(2100), "queue 2000", NONE),
    ],
)
def test_which_one(
    some: list[PilotOutput | QueueEvent], end: CentralEvent, ends: str, unused: dict[str, int]
) -> None:
    """How each pilot ended, by start; and whether the line was of none."""
    play = played(*some, end)
    assert ", ".join(f"{how} {at:.12g}" for how, at in told(play)) == ends
    assert dict(play.accounting.central_log.unused) == unused
    lived = sum((pilot.end_us or 0) - pilot.start_us for pilot in play.stored.pilots.values())
    assert sum(play.seconds().values()) == lived / SECOND_US


def test_without_a_line_it_ends_with_its_output() -> None:
    assert told(played(output())) == [("assumed", 100)]


def test_its_own_startd_comes_first(play: Play) -> None:
    """A collector shows the pilot that is meant after the line has come: the other is not."""
    play.add_facts([output()])
    for at in range(0, 9000, 600):
        play.poll(at)
    play.add_facts([line(8000), line(8001, FIGURE_7._replace(startd="glidein_1_1"))])
    play.poll(9000)
    assert told(play) == [("assumed", 100)]
    play.restart()
    play.poll(10_000, [shown(f"{STARTD}@node.example.org", 500, 7900)])
    play.rest(10_060)
    assert told(play) == [("assumed", 100), ("central_log", 8000)]
    assert dict(play.accounting.central_log.unused) == {"no_pilot": 1}


def test_a_startd_that_was_forgotten_meanwhile_comes_first(play: Play) -> None:
    """The line waits for a run on it, and is not another pilot's when it has waited enough."""
    play.add_facts([output()])
    startd = f"{STARTD}@node.example.org"
    play.live(0, 1200, [shown(startd)])
    unsent = line(1000)._replace(kind=CentralKind.EXIT_UNSENT)
    play.poll(1260)
    play.rest(1320, hours=1)
    play.add_facts([unsent])
    play.rest(6000)
    assert dict(play.accounting.central_log.unused) == {"no_run": 1}


def test_an_output_that_is_whole_at_last() -> None:
    """It knows better than the line."""
    play = played(output(), line(3000))
    play.add_facts([output(end=3300)])
    play.rest(200_000)
    assert told(play) == [("pilot_output", 3300)]


TIMES = [60, 150, 900, 1700, 3000, LATER]
NAMES = [
    FIGURE_7,
    BY_PLACE,
    FIGURE_7._replace(startd="glidein_77_1"),
    BY_PLACE._replace(entry="entry"),
]
OUTPUTS = [
    output(),
    output(8, 50, pid=77),
    output(9, 2000, pid=None, node="node"),
    output(10, 1000, end=1800, pid=78),
    output(11, 2500, entry="other"),
]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[PilotOutput], list[CentralEvent], list[CentralEvent]]:
    """Outputs, and lines in two orders, one of them with repetitions."""
    some = draw(st.lists(st.sampled_from(OUTPUTS), unique=True, max_size=4))
    lines = st.builds(line, st.sampled_from(TIMES), st.sampled_from(NAMES))
    one = draw(st.lists(lines, max_size=5))
    again = draw(st.lists(st.sampled_from(one), max_size=3)) if one else []
    return some, one, draw(st.permutations([*one, *again]))


def ordered(
    outputs: Sequence[PilotOutput], lines: Sequence[CentralEvent], cut: int, first: bool
) -> Play:
    """Lines in two parts: both after the outputs, or both before, and the accounting made anew."""
    play = Play()
    if not first:
        play.add_facts(outputs)
        play.rest(100)
    play.rest(50_000, hours=1)
    play.add_facts(lines[:cut])
    play.poll(54_000)
    play.restart()
    play.add_facts(lines[cut:])
    if first:
        play.add_facts(outputs)
    play.rest(54_600)
    return play


TWO_PILOTS = [output(9, 2000, pid=None, node="node"), output()]
EARLY, LATE = line(60, BY_PLACE), line(LATER, BY_PLACE)


@settings(max_examples=examples(60))
@given(cases(), st.integers(0, 5), st.booleans())
@example((TWO_PILOTS, [line(60), LATE, EARLY], [line(60), EARLY, LATE]), 0, True)
@example((TWO_PILOTS, [LATE, EARLY], [EARLY, LATE]), 1, True)
def test_the_order_makes_no_difference(
    case: tuple[list[PilotOutput], list[CentralEvent], list[CentralEvent]], cut: int, first: bool
) -> None:
    """Lines in any order, before or after the outputs: the same ends and the same time."""
    outputs, one, other = case
    plays = [ordered(outputs, one, len(one), False), ordered(outputs, other, cut, first)]
    assert told(plays[0]) == told(plays[1])
    assert plays[0].seconds() == plays[1].seconds()
    for play in plays:
        life = sum((pilot.end_us or 0) - pilot.start_us for pilot in play.stored.pilots.values())
        assert sum(play.seconds().values()) == life / SECOND_US


@pytest.mark.parametrize("closed", [False, True])
def test_where_no_site_is_known(play: Play, closed: bool) -> None:
    """Neither the line nor the output names one: the process and the host do, also of the past."""
    pilot_name = output()
    pilot_name = pilot_name._replace(name=pilot_name.name._replace(site=""))
    end = line(900, FIGURE_7._replace(site="", resource=""))
    play.add_facts([pilot_name])
    play.rest(100, hours=10 if closed else 0)
    play.add_facts([end])
    play.rest(LATER)
    (row,) = play.stored.pilots.values()
    assert (row.end_source, row.end_us) == ("central_log", us(900))
