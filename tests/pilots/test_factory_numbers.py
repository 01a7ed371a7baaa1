"""The factory's own numbers: each thing that its files and ads tell is in the sum of its hour."""

from __future__ import annotations

from collections import Counter

import pytest

from gwmond.model.factory.jobs import MOST as MOST_OF_PLACE
from gwmond.model.factory.jobs import QueueRecord
from gwmond.model.factory.totals import WATCHED_FIELDS, FactoryKind
from gwmond.model.facts import EntryKey
from gwmond.model.monitor import Monitor
from gwmond.model.pilots.file_facts import (
    CentralEvent,
    CentralKind,
    CompletedPilot,
    PilotName,
    PilotOutput,
    QueueEvent,
    QueueState,
)
from gwmond.model.times import HOUR_US
from gwmond.pilots.factory.numbers import MOST, FactoryNumbers
from gwmond.pilots.factory.records import PlaceFact, add, jobs
from tests.build.facts import request
from tests.build.play import Play

HOUR = 480_000
AT = HOUR * HOUR_US + 59 * 60 * 10**6
LOG = "/x/user_fe/glidein_g/entry_ce1/condor_activity_20260101_FE.main.log"
NAME = PilotName(entry="ce1", user="fe", cluster=7, proc=0)
K = FactoryKind
Sums = dict[tuple[int, str, str, str], int]


def line(**changes: object) -> CompletedPilot:
    """A line of a pilot that lasted 1000 s, a tenth of it in validation."""
    made = CompletedPilot(
        *("/x/completed_jobs_20260101.log", NAME._replace(frontend="FE"), AT, 1000, True, 900),
        *(3, 800, 700, 750, 100, 0, 0, 0),
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def test_the_longest_duration_is_one() -> None:
    """What is longer is none."""
    hour, entry = HOUR, "ce1"
    found = [sums(line(duration_s=duration)) for duration in (MOST, MOST + 1)]
    none = [(hour, entry, "FE", kind.value) for kind in (K.SUMMARY_NO_DURATION, K.SUMMARY_SECONDS)]
    assert [[some.get(key) for key in none] for some in found] == [[None, MOST], [1, None]]


STATES = [state for state in QueueState if state is not QueueState.KILLED]
"""One that was killed has ended, and counts as that."""


def sums(*facts: PlaceFact) -> Sums:
    """What is to be stored of facts, but zeros."""
    numbers = FactoryNumbers()
    numbers.take(facts)
    return {
        (*factory_key[:3], factory_key.kind.value): n
        for factory_key, n in numbers.changes().items()
        if n
    }


def test_every_event_counts_in_its_own_hour() -> None:
    """Each state has a kind; the last microsecond of an hour belongs to it."""
    events = [QueueEvent(LOG, NAME, state, AT) for state in STATES]
    late = QueueEvent(LOG, NAME, QueueState.STARTED, (HOUR + 1) * HOUR_US)
    last = QueueEvent(LOG, NAME, QueueState.STARTED, (HOUR + 1) * HOUR_US - 1)
    found = sums(*events, late, last)
    assert {kind: n for (hour, *_, kind), n in found.items() if hour == HOUR} == {
        **{f"queue_{state.value}": 1 for state in STATES},
        "queue_started": 2,
    }
    assert found[HOUR + 1, "ce1", "FE.main", "queue_started"] == 1
    ((*_, kind),) = sums(QueueEvent(LOG, NAME, QueueState.KILLED, AT))
    assert kind == "queue_ended"


@pytest.mark.parametrize(
    ("name", "path", "client"),
    [
        (NAME, LOG, "FE.main"),
        (NAME, "/x/condor_activity_20260101.log", "fe"),
        (NAME._replace(frontend="FE.main", group="main"), LOG, "FE.main"),
        (NAME._replace(frontend="FE", group="other"), LOG, "FE.other"),
        (NAME._replace(frontend="UCSD-v5.3", group="main"), LOG, "UCSD-v5.3.main"),
    ],
)
def test_the_client_has_one_form(name: PilotName, path: str, client: str) -> None:
    """What is told for one client by several sources is of one client."""
    ((_, _, found, _),) = sums(QueueEvent(path, name, QueueState.HELD, AT))
    assert found == client


def test_a_line_is_summed() -> None:
    """Every value of it, in its units."""
    assert {kind: n for (*_, kind), n in sums(line(), line(condor_started=False)).items()} == {
        "summary_pilots": 2,
        "summary_started": 1,
        "summary_seconds": 2000,
        "summary_validation_seconds": 200,
        "summary_condor_seconds": 1800,
        "summary_jobs": 6,
        "summary_job_seconds": 1600,
        "summary_goodput_seconds": 1400,
        "summary_terminated_seconds": 1500,
    }


@pytest.mark.parametrize("duration", [None, 0, MOST + 1])
def test_a_line_without_a_duration(duration: int | None) -> None:
    """-1, 0 and nonsense count as a line that tells none, and take nothing from the sum."""
    found = sums(line(duration_s=duration), line())
    of = HOUR, "ce1", "FE"
    assert found[*of, "summary_pilots"] == 2
    assert found[*of, "summary_no_duration"] == 1
    assert found[*of, "summary_seconds"] == 1000


def test_outputs_count_by_their_end() -> None:
    """One that is empty is told by when it was written."""
    whole = PilotOutput("a.out", NAME, start_us=5, end_us=AT, written_us=AT + HOUR_US)
    empty = PilotOutput("b.out", NAME, written_us=AT + HOUR_US)
    assert sums(whole, empty) == {
        (HOUR, "ce1", "fe", "outputs_pilots"): 1,
        (HOUR + 1, "ce1", "fe", "outputs_pilots"): 1,
        (HOUR + 1, "ce1", "fe", "outputs_empty"): 1,
    }


@pytest.mark.parametrize("restart", [False, True])
def test_an_output_that_is_empty_at_first(restart: bool) -> None:
    """A pilot that waits has an empty file already; when it has come it is no more among these."""
    early = PilotOutput("a.out", NAME, written_us=AT)
    whole = PilotOutput(
        "a.out", NAME, start_us=AT + 5, end_us=AT + HOUR_US, written_us=AT + HOUR_US
    )
    other = PilotOutput("b.out", NAME._replace(proc=1), written_us=AT)
    play, numbers = Play(), FactoryNumbers()
    for some in ([early, other], [early], [whole], [early, whole], [whole]):
        numbers.take(play.add_facts(some))
        if restart:
            play.rest(100_000_000, hours=3)
            play.restart()
    found = {
        (factory_key.hour, factory_key.kind.value): n
        for factory_key, n in numbers.changes().items()
        if n
    }
    assert found == {
        (HOUR, "outputs_pilots"): 2,
        (HOUR, "outputs_empty"): 2,
        (HOUR + 1, "outputs_filled"): 1,
    }
    at_once = FactoryNumbers()
    at_once.take(Play().add_facts([early, whole, early, other]))
    told = Counter[str]()
    for factory_key, n in at_once.changes().items():
        told[factory_key.kind.value] += n
    assert told == {"outputs_pilots": 2, "outputs_empty": 1, "outputs_filled": 0}


def test_what_has_no_time_or_entry_is_in_no_sum() -> None:
    """It is counted as that."""
    numbers = FactoryNumbers()
    nowhere = PilotName(cluster=1, proc=0)
    wrong: list[PlaceFact] = [
        line(written_us=None),
        QueueEvent(LOG, nowhere, QueueState.HELD, AT),
        PilotOutput("a.out", NAME),
    ]
    numbers.take([*wrong, *wrong])
    assert (numbers.undated, numbers.changes()) == (6, {})


COPY = "/old/condor_activity_20260101.log"
EVENTS: list[PlaceFact] = [
    QueueEvent(LOG, NAME, state, AT + n * 10**6) for n, state in enumerate(STATES)
]
OUTPUTS: list[PlaceFact] = [
    PilotOutput("a.out", NAME, start_us=AT - HOUR_US, end_us=AT, written_us=AT),
    PilotOutput("b.out", NAME._replace(proc=1), written_us=AT),
]


def copied(fact: PlaceFact) -> PlaceFact:
    """The same in a copy, at a path that tells less of whose it is, and written later."""
    name = fact.name._replace(user="", instance="")
    if isinstance(fact, PilotOutput):
        return fact._replace(path="/old/a.out", name=name, written_us=AT + 9 * HOUR_US)
    if isinstance(fact, QueueEvent):
        return fact._replace(path=COPY, name=name)
    return fact._replace(path="/old/x.log")


@pytest.mark.parametrize("restart", [False, True])
def test_copies_of_files_count_once(restart: bool) -> None:
    """Events, lines and outputs, read together, later, or after a restart; each still counts."""
    facts = [*EVENTS, line(), line(written_us=AT + 1), *OUTPUTS]
    play, numbers = Play(), FactoryNumbers()
    again = PilotOutput("a.out", NAME, start_us=AT + HOUR_US, end_us=AT + 2 * HOUR_US)
    for some in ([*facts, *facts], facts, list(map(copied, facts)), [again], [again, *facts]):
        numbers.take(play.add_facts(some))
        if restart:
            play.rest(100_000_000, hours=3)
            play.restart()
    found: Counter[str] = Counter()
    for factory_key, number in numbers.changes().items():
        found[factory_key.kind.value] += number
    assert {kind: n for kind, n in found.items() if kind.startswith("queue")} == {
        f"queue_{state.value}": 1 for state in STATES
    }
    assert (found["summary_pilots"], found["summary_seconds"]) == (2, 2000)
    assert (found["outputs_pilots"], found["outputs_empty"]) == (3, 1)
    assert {change.client for change in numbers.changes() if change.kind is K.QUEUE_HELD} == {
        "FE.main"
    }


def test_a_copy_is_not_another_job() -> None:
    """Whose a log is its path tells; a copy at another path tells less, in any order."""
    copies = list(map(copied, EVENTS))
    place = QueueRecord("ce1", "7.0")
    assert add(place, [*EVENTS, *copies]).place == add(place, EVENTS).place
    assert add(add(place, copies).place, EVENTS).place == add(place, EVENTS).place
    assert len(jobs(add(place, [*copies, *EVENTS]).place)) == 1


def test_very_many_events_of_one_place() -> None:
    """What is too old to be kept is not counted again; of one reading no more than are kept."""
    events: list[PlaceFact] = [
        QueueEvent(LOG, NAME, QueueState.HELD, AT + n) for n in range(3 * MOST_OF_PLACE)
    ]
    play, numbers = Play(), FactoryNumbers()
    parts = [events[n : n + MOST_OF_PLACE] for n in range(0, len(events), MOST_OF_PLACE)]
    for some in (*parts, *parts, events):
        numbers.take(play.add_facts(some))
    assert sum(numbers.changes().values()) == 3 * MOST_OF_PLACE


def test_a_central_log_is_of_no_factory(play: Play) -> None:
    central = CentralEvent("c", NAME, CentralKind.PILOT_END, AT, "x", "", "")
    assert play.add_facts([central]) == []


def test_what_ads_say_is_summed_over_time() -> None:
    """Of each value the time in which it was told is known; what is not told is not zero."""
    numbers = FactoryNumbers()
    entry = EntryKey("Site", "ce1")
    told = Monitor(status_running=5, client_slots_total=40, client_slots_running=0)
    asks = [
        request(entry, group="FE.main")._replace(monitor=told),
        request(entry, group="FE.main", factory="other")._replace(
            monitor=Monitor(status_running=2)
        ),
        request(entry, group="FE.dark")._replace(monitor=Monitor()),
    ]
    numbers.watch(asks, HOUR, 60)
    numbers.watch(asks[:1], HOUR, 30)
    found = {
        (factory_key.client, factory_key.kind.value): n
        for factory_key, n in numbers.changes().items()
    }
    assert found == {
        ("FE.main", "watched_seconds"): 90,
        ("FE.dark", "watched_seconds"): 60,
        ("FE.main", "status_running_seconds"): 7 * 60 + 5 * 30,
        ("FE.main", "status_running_watched_seconds"): 90,
        ("FE.main", "client_slots_total_seconds"): 40 * 90,
        ("FE.main", "client_slots_total_watched_seconds"): 90,
        ("FE.main", "client_slots_running_seconds"): 0,
        ("FE.main", "client_slots_running_watched_seconds"): 90,
    }


def test_no_part_of_a_second_is_lost() -> None:
    """Seconds are summed whole, and what is left goes to the next time."""
    numbers = FactoryNumbers()
    asks = [request(EntryKey("Site", "ce1"))._replace(monitor=Monitor())]
    for _ in range(1000):
        numbers.watch(asks, HOUR, 0.25)
    (watched,) = numbers.changes().values()
    assert watched == 250


def test_what_is_stored_is_forgotten() -> None:
    """Until then it comes again, and grows."""
    numbers = FactoryNumbers()
    numbers.take([line()])
    assert numbers.changes() == numbers.changes() != {}
    numbers.clear()
    assert numbers.changes() == {}


def test_every_watched_field_is_of_the_monitor() -> None:
    """Kinds are named like the fields that they sum."""
    assert set(WATCHED_FIELDS) <= set(Monitor._fields)
    assert all(f"{name}_seconds" in set(K) for name in WATCHED_FIELDS)
