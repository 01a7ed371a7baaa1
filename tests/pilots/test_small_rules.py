"""Rules of one line each, at their edges: what a change of a sign or of a word would break."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from gwmond.model.cursor_kinds import LOOKS, SILENT_BEFORE, UPDATE_GAPS
from gwmond.model.factory.jobs import AGE_US, GUARD_US, MOST, FactoryJob
from gwmond.model.facts import Cursor
from gwmond.model.packed import Packed
from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.file_facts import CentralEvent, CentralKind, PilotOutput, QueueState
from gwmond.model.pilots.pilot_facts import AdFacts, Decisions, OutputFacts, PilotFacts
from gwmond.model.pilots.stored_pilots import PilotIdentity
from gwmond.model.pilots.update_gaps import FEW
from gwmond.model.poll.batch import Batch
from gwmond.model.problem_names import ProblemName
from gwmond.model.times import SECOND_US
from gwmond.pilots.factory import records
from gwmond.pilots.factory.entry_defaults import Entries
from gwmond.pilots.factory.queue_records import Agenda, QueueRecords
from gwmond.pilots.life.rules import EARLIEST_US, LATEST_US, ExpectedInput, Rules, sane
from gwmond.pilots.memory.ad_times import (
    SOURCE,
    Looks,
    Silence,
    StoredGaps,
    is_silent,
    silent_before_us,
    silent_pilots,
)
from gwmond.pilots.memory.cache import PilotCache
from gwmond.pilots.memory.ends import is_given_up, may_run_at, read_until, waits_until
from gwmond.pilots.memory.open_pilot import OpenPilot
from gwmond.pilots.memory.posting import REFRESHED, RefreshTurns
from gwmond.pilots.memory.sizes import Sizes
from gwmond.pilots.sources import central_log
from gwmond.pilots.sources.central_log import LineWaits
from tests.build.central_lines import BY_STARTD
from tests.build.facts import A
from tests.build.pilot_files import event, output, us
from tests.build.play import Play, claim, record, shown

LINGER_S = 1800
RULES = Rules(refresh_us=0, linger_us=LINGER_S * SECOND_US)


@pytest.mark.parametrize(("after", "closed"), [(-1, False), (0, True), (1, True)])
def test_an_ended_pilot_is_closed_when_it_has_lingered(after: int, closed: bool) -> None:
    """Late facts find it in memory until then."""
    play = Play(RULES)
    play.live(0, 600, [shown()])
    play.poll(660)
    assert play.pilot().end_us == us(600)
    play.poll(600 + LINGER_S + after)
    assert play.pilot().settled_until_us == us(600)
    assert play.pilot().closed is closed
    assert len(play.accounting.pilots) == (not closed)


@pytest.mark.parametrize(
    ("at_us", "is_sane"),
    [
        (None, True),
        (EARLIEST_US - 1, False),
        (EARLIEST_US, True),
        (LATEST_US - 1, True),
        (LATEST_US, False),
    ],
)
def test_times_that_a_clock_shows(at_us: int | None, is_sane: bool) -> None:
    """One that is not known is none of the others; of several each has to be."""
    assert sane(at_us) is sane(us(0), at_us) is sane(at_us, us(0)) is is_sane


def test_how_much_later_it_is_for_what_waits() -> None:
    """At the end of an import nothing more is read; a daemon's sources may report more."""
    assert {found: (found.ahead_us > 0, found.files_ahead_us > 0) for found in ExpectedInput} == {
        ExpectedInput.EVERYTHING: (False, False),
        ExpectedInput.NO_FILES: (False, True),
        ExpectedInput.NOTHING: (True, True),
    }


def test_until_when_a_pilot_is_settled_outlasts_a_restart() -> None:
    """Before anything new is posted of a pilot that lingers."""
    play = Play(RULES)
    play.live(0, 600, [shown()])
    play.poll(900)
    play.restart()
    (pilot,) = play.accounting.pilots
    assert pilot.settled_until_us == play.pilot().settled_until_us == us(600)


def test_a_claim_that_could_not_be_looked_up_is_taken_in_by_the_next_poll() -> None:
    """The ledger failed meanwhile: that the claim is shown with the same words says nothing."""
    play = Play(RULES)
    play.live(0, 60, [shown()])
    step = play.accounting.add_claims(us(120), Packed([claim("1", 60)]), complete=False)
    next(step)  # asks for what is stored of its job
    step.close()
    (pilot,) = play.accounting.pilots
    assert not pilot.runs
    for _ in range(2):
        play.add_claims(us(120), [claim("1", 60)], complete=False)
    assert [run.key.job for run in pilot.runs.values()] == [claim("1", 60).fact.job]


def test_the_times_between_updates_outlast_a_restart() -> None:
    """In whole seconds; what is stored already is not offered again."""
    gaps = StoredGaps({})
    assert gaps.cursors(us(0)) == ()
    assert gaps.two_updates_us(us(900) - us(0), us(0)) == 600 * SECOND_US  # two thirds of it
    for _ in range(FEW):
        gaps.note(100 * SECOND_US + 1, timed=True)
    gaps.note(7 * SECOND_US, timed=False)
    assert gaps.two_updates_us(900 * SECOND_US + 1, us(0)) == 200 * SECOND_US
    (cursor,) = gaps.cursors(us(0))
    assert (cursor.source, cursor.kind) == (SOURCE, UPDATE_GAPS)
    assert cursor.state == f"{us(0) // SECOND_US // 3600} 100 100 100 100 100,0 0 0 1 0 0 0 5"
    assert gaps.cursors(us(0)) == (cursor,)
    gaps.stored()
    assert gaps.cursors(us(0)) == ()
    again = StoredGaps({(SOURCE, UPDATE_GAPS): cursor})
    assert again.two_updates_us(900 * SECOND_US, us(0)) == 200 * SECOND_US
    assert again.cursors(us(0)) == ()


def test_before_when_the_silent_were_heard_outlasts_a_restart() -> None:
    """In whole seconds; a poll that says nothing changes nothing, and what is no number is none."""
    silence = Silence({})
    assert (silence.before_us, silence.cursors()) == (0, ())
    silence.note(us(60) + 1)
    silence.note(None)
    assert silence.before_us == us(60) + 1
    (cursor,) = silence.cursors()
    assert (cursor.source, cursor.kind) == (SOURCE, SILENT_BEFORE)
    assert cursor.state == str(us(60) // SECOND_US)
    silence.stored()
    assert silence.cursors() == ()
    stored = {(SOURCE, SILENT_BEFORE): cursor}
    again = Silence(stored)
    assert again.before_us == silent_before_us(stored) == us(60)
    assert again.cursors() == ()
    assert silent_before_us({}) == 0
    assert silent_before_us({(SOURCE, SILENT_BEFORE): cursor._replace(state="x")}) == 0


@pytest.mark.parametrize(
    ("change", "silent"),
    [
        ({}, True),
        ({"last_heard_us": us(60)}, False),
        ({"end_us": us(30)}, False),
        ({"origin": "jobs"}, False),
    ],
)
def test_silent_is_who_was_shown_and_is_heard_of_no_more(
    change: dict[str, Any], silent: bool
) -> None:
    """Neither one that has ended, nor one that only records of jobs have."""
    told = {"origin": "collector", "end_us": None, "last_heard_us": us(60) - 1} | change
    pilot = PilotIdentity("name", 0, "", "", A, "", "", told["origin"])
    assert is_silent(pilot, told["end_us"], told["last_heard_us"], us(60)) is silent


def test_of_silent_pilots_those_that_were_heard_of_latest_come_first(play: Play) -> None:
    """Else in their order; those that only say that they failed have rules of their own."""
    heard = {"a": 0, "b": 30, "c": 30, "d": 60, "failed": 0}
    pilots = [shown(name, 0, at)._replace(failed=name == "failed") for name, at in heard.items()]
    play.poll(60, pilots)
    found = silent_pilots(reversed(list(play.accounting.pilots)), us(60))
    assert [pilot.identity.name for pilot in found] == ["b", "c", "a"]


def test_when_pilots_and_claims_were_looked_at_outlasts_a_restart() -> None:
    """Nothing is told before the first look, and nothing is known of a text of another form."""
    period_us = 60 * SECOND_US
    looks = Looks({})
    looks.settled_us = us(5)
    looks.watch(us(10), period_us, complete=True)
    assert looks.cursors() == ()
    looks.pilots_us = us(10)
    assert len(looks.cursors()) == 1
    looks.claims_us = us(9)
    looks.watch(us(190), period_us, complete=True)
    seen = us(10), us(9), us(5), us(10), us(190)
    (cursor,) = looks.cursors()
    assert cursor == Cursor(SOURCE, LOOKS, " ".join(map(str, seen)), None)
    looks.stored()
    assert looks.cursors() == ()
    again = restored(cursor.state)
    assert known(again) == seen
    assert again.cursors() == ()
    assert known(restored(" ".join(map(str, seen[:3])))) == (*seen[:3], 0, 0)
    assert known(restored("x 1 2")) == known(Looks({})) == (0,) * 5


@pytest.mark.parametrize(
    ("now", "complete", "since"),
    [(180, True, 0), (181, True, 181), (60, False, None)],
)
def test_since_when_collectors_are_watched(now: int, complete: bool, since: int | None) -> None:
    """Three periods without a poll are a gap; so is a look that was not complete."""
    looks = Looks({})
    looks.watch(us(0), 60 * SECOND_US, complete=True)
    looks.watch(us(now), 60 * SECOND_US, complete=complete)
    assert looks.watched_us == (0 if since is None else us(since))


def restored(state: str) -> Looks:
    """What a daemon knows that finds this text."""
    return Looks({(SOURCE, LOOKS): Cursor(SOURCE, LOOKS, state, None)})


def known(looks: Looks) -> tuple[int, ...]:
    """All that is known of looks."""
    return (
        *(looks.pilots_us, looks.claims_us, looks.settled_us),
        *(looks.watched_us, looks.asked_us),
    )


def started(at: int | None, written: int = 0) -> PilotOutput:
    """An output by when its pilot began, if that is told, and when it was written."""
    return output(at, None, written_us=us(written))


def test_an_output_without_a_beginning_is_new_only_where_there_is_no_other() -> None:
    """It may be any of the others, as it was when it had just begun."""
    empty, one, other = started(None, 5), started(1, 6), started(2, 7)
    known, new = records.taken((), [empty])
    assert (known, new) == (((None, us(5)),), [empty])
    known, new = records.taken(((us(1), us(6)),), [empty])
    assert (known, new) == (((us(1), us(6)),), [])
    known, new = records.taken(((us(1), us(6)),), [other])
    assert (known, new) == (((us(1), us(6)), (us(2), us(7))), [other])
    known, new = records.taken((), [empty, one])
    assert (known, new) == (((us(1), us(6)),), [one])


def test_a_problem_counts_once_at_each_place_of_the_queue() -> None:
    """The latest place is named; of one that cannot be stored nothing is left."""
    records = QueueRecords()
    records.take([event(QueueState.STARTED, at, proc=at) for at in (1, 2)])
    names = [place.name for place in records.rows()]
    for name in (*names, *names):
        assert records.leave(name, ProblemName.AMBIGUOUS)
    assert dict(records.left_out) == {ProblemName.AMBIGUOUS: 2}
    assert records.named == {ProblemName.AMBIGUOUS: "entry#7.2"}
    for _ in range(2):
        records.leave_out(names[0])
    assert [place.name for place in records.rows()] == names[1:]
    assert (names[0] in records, names[1] in records) == (False, True)


@pytest.mark.parametrize(("facts", "waits"), [((), False), ((QueueState.STARTED,), True)])
def test_more_is_waited_for_where_the_queue_tells(
    facts: tuple[QueueState, ...], waits: bool
) -> None:
    """An output alone is taken, and nothing more of its place is expected; an event opens it."""
    records = QueueRecords()
    records.take([started(0, 1200), *(event(state, 1) for state in facts)])
    (place,) = records.rows()
    assert (place.outputs, place.open) == (((us(0), us(1200)),), waits)


def test_all_that_a_ledger_refuses_is_counted(play: Play) -> None:
    """Each place of a factory's queue, also one that is not in memory."""
    play.accounting.leave_out(["entry#7.1", "entry#7.2"])
    assert play.accounting.left_out[ProblemName.NOT_STORABLE] == 2


def test_a_batch_is_the_sum_of_its_parts(play: Play) -> None:
    """By pilot and by place, so that what a ledger refuses of one is left out of all of it."""
    now = us(900)
    play.live(0, 600, [shown("a"), shown("b")])
    accounting = play.accounting
    play.add_facts([event(QueueState.STARTED, 100, proc=9)])
    play.add_ads(now, 60, [shown("a", heard=900)], complete=True)
    play.add_records([record("1.0", 100, 200, startd="a")])
    play.settle(now, us(800))
    batch = accounting.batch(now)
    parts = accounting.divide(batch)
    assert {name for name in parts if isinstance(name, str)} == {"entry#7.9"}
    first, second = (parts[row.id] for row in sorted(batch.pilots, key=lambda row: row.id))
    assert sorted([*first.pilots, *second.pilots]) == sorted(batch.pilots)
    assert (first.runs, second.runs) == (batch.runs, ())
    assert parts["entry#7.9"].places == batch.places
    assert sum(map(_micros, parts.values())) == _micros(batch) > 0
    accounting.leave_out([first.pilots[0].id])
    rest = accounting.batch(now)
    assert (rest.increments, rest.counts) == (second.increments, second.counts)


def _micros(batch: Batch) -> int:
    return sum(n for hours in batch.increments.values() for n in hours.values())


def test_of_very_many_outputs_the_first_are_kept() -> None:
    """What is beyond is not counted; one that is known still is when it was written again."""
    many = [started(at, at) for at in range(MOST + 1)]
    known, new = records.taken((), many)
    assert (len(known), new) == (MOST, many[:-1])
    again, new = records.taken(known, [many[0]._replace(written_us=us(9999)), many[-1]])
    assert (dict(again)[us(0)], len(again), new) == (us(9999), MOST, [])


@pytest.mark.parametrize(("room", "kept"), [(0, 2), (-1, 1), (1, 2)])
def test_lines_that_fit_exactly_are_stored(
    monkeypatch: pytest.MonkeyPatch, room: int, kept: int
) -> None:
    """Each counts with the comma after it; what does not fit waits in memory only."""
    waiting = {
        CentralEvent(
            "", BY_STARTD, CentralKind.PILOT_END, us(at), "master", "", "exited"
        ): LineWaits(None, ProblemName.NO_PILOT)
        for at in (1, 2)
    }
    rows = [central_log.dump({event: waits}) for event, waits in waiting.items()]
    whole = sum(len(row) - 2 + 1 for row in rows)
    monkeypatch.setattr(central_log, "MAX_CHARACTERS", whole + room)
    assert central_log.load(central_log.dump(waiting)) == dict(list(waiting.items())[:kept])


def of_output(end: float | None = None, given_up: float | None = None) -> OpenPilot:
    """A pilot whose output has its beginning at 0, and 500 s as its last time."""
    output = OutputFacts(
        us(0), us(500 if end is None else end), us(0), None if end is None else us(end)
    )
    decisions = Decisions(given_up_us=None if given_up is None else us(given_up))
    identity = PilotIdentity("7.0@i.entry", 0, "", "", A, "", "", "files")
    return OpenPilot.new(1, identity, PilotFacts(output=output, decisions=decisions))


RUNS = FactoryJob("i", "fe", "fe.main", us(0), us(100), first_us=us(0))


@pytest.mark.parametrize(
    ("job", "written", "told", "unread", "until_us"),
    [
        (RUNS, None, 900, False, us(500) + AGE_US),
        (RUNS, 900, 1000, False, us(900) + AGE_US),
        (RUNS._replace(started_us=us(700)), 600, 1000, False, us(700) + AGE_US),
        (None, None, 1000, False, us(1000 + 3600)),
        (None, 600, 1000, False, us(600 + 3600)),
        (None, 400, 1000, False, us(500 + 3600)),
        (None, 600, 550, False, us(550 + 3600)),
        (None, 600, 5000, False, us(600 + 3600)),
        (None, 600, 5000, True, us(5000 + LINGER_S)),
        (None, 600, 1000, True, us(600 + 3600)),
    ],
)
def test_until_when_a_pilot_without_an_end_is_taken_to_run(
    job: FactoryJob | None, written: int | None, told: int, unread: bool, until_us: int
) -> None:
    """Nothing was heard of it since 500 s; an output that was not read since a start is awaited."""
    written_us = None if written is None else us(written)
    found = waits_until(of_output(), job, written_us, us(told), RULES, unread=unread)
    assert found == until_us


def test_until_when_it_is_taken_to_run_where_all_was_read() -> None:
    """What is read before its last time bounds it."""
    assert [read_until(of_output(), us(told), RULES) for told in (400, 900)] == [us(4000), us(4100)]


@pytest.mark.parametrize(
    ("pilot", "last_us"),
    [
        (of_output(end=500), us(500)),
        (of_output(given_up=500), us(500) + GUARD_US),
        (of_output(), None),
    ],
)
def test_when_a_pilot_known_from_its_output_may_have_run(
    pilot: OpenPilot, last_us: int | None
) -> None:
    """From its beginning to its end, each by another clock where it is only estimated."""
    last_us = us(10**7) if last_us is None else last_us
    assert [may_run_at(pilot, us(0) - GUARD_US - early) for early in (1, 0)] == [False, True]
    assert may_run_at(pilot, last_us)
    assert may_run_at(pilot, last_us + 1) is (pilot.end_us is None)
    assert is_given_up(pilot) is (pilot.end_source == "assumed")


def test_what_the_ledger_and_outputs_tell_of_an_entry(play: Play) -> None:
    """Absent is empty; sizes are those of pilots that ended, sites those that were told last."""
    play.live(0, 600, [shown(cores=8, memory=16_000)])
    play.rest(660)
    row = play.pilot()
    sizes = Sizes(2000)
    entries = Entries(sizes, PilotCache({}))
    assert (entries.site("entry"), entries.factory("entry")) == ("", "")
    assert entries.unknown(["entry", "other"]) == {"entry", "other"}
    entries.load({"entry"}, {"entry": [row]})
    assert (entries.site("entry"), entries.factory("entry")) == ("Site", "factory")
    assert entries.unknown(["entry", "other"]) == {"other"}
    assert sizes.fill("entry").size == (8, 16_000, 0)
    assert sizes.reported("entry") == {Assumption.SIZE, Assumption.GPUS}
    one = output(gpus=1)
    entries.learn([one._replace(name=one.name._replace(entry="other", site="There", factory="f"))])
    assert (entries.site("other"), entries.factory("other")) == ("There", "f")
    assert sizes.fill("other").size == (4, 8000, 1)


def test_records_of_no_known_place_are_counted_without_a_name(play: Play) -> None:
    """The latest pilot is named where there is one."""
    files = play.accounting.files
    assert files.shown(ProblemName.AMBIGUOUS, 2) == "2 records"
    files.places.named[ProblemName.AMBIGUOUS] = "entry#7.0"
    found = files.shown(ProblemName.AMBIGUOUS, 2)
    assert found == "2 records, the latest of the pilot entry#7.0"


def test_each_name_when_it_is_due_first() -> None:
    """The earliest time counts, and what is later is to be added again."""
    agenda = Agenda()
    for name, due_us in (("a", 50), ("b", 20), ("a", 30), ("a", 70)):
        agenda.add(name, due_us)
    assert agenda.take(19) == set()
    assert agenda.take(30) == {"a", "b"}
    agenda.add("a", 40)
    assert agenda.take(60) == {"a"}
    assert agenda.take(100) == set()


def test_what_is_put_off_again_and_again_takes_no_room() -> None:
    """As a pilot whose output grows, which is waited for anew each time."""
    agenda = Agenda()
    for due_us in range(1000):
        agenda.add("a", due_us)
    assert len(agenda) == 1


@pytest.mark.parametrize(("pilots", "times"), [(1, 4), (REFRESHED, 4), (REFRESHED + 1, 2)])
def test_each_pilot_has_its_turn_as_often_however_polls_fall(pilots: int, times: int) -> None:
    """Within 20 minutes of polls: every five minutes, and of very many every ten."""
    number, waits_us = 7, Rules().refresh_us
    identity = PilotIdentity("glidein_7@node", 0, "", "", A, "", "node", "collector")
    pilot = OpenPilot.new(number, identity, PilotFacts(ads=AdFacts(last_heard_us=us(0))))
    for period_s in (1, 45, 60, 299):
        polls = [us(at) for at in range(0, 4 * 300 + period_s + 1, period_s)]
        until_us = polls[0] + 4 * waits_us
        turns = [
            min(now_us, until_us)
            for before_us, now_us in pairwise(polls)
            if before_us < until_us
            and RefreshTurns.of(before_us, min(now_us, until_us), pilots, Rules()).is_next(pilot)
        ]
        assert len(turns) == times, period_s
