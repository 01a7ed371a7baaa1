"""Outputs without an end: of pilots that still run, or that were killed hard."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from gwmond.model.pilot_life import Assumption, Category
from gwmond.model.pilots.file_facts import PilotOutput
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import ExpectedInput
from gwmond.reports.stored.stored_pilot import AsOf, StoredPilot
from tests.build.pilot_files import JOB, SIZE, S, event, line, output, queue, us
from tests.build.play import T0, Play, record, shown
from tests.build.playbook import Playbook, playbooks
from tests.build.played import lives, only

HOUR = 3600


def begun(written: float = 100, **more: Any) -> PilotOutput:
    """An output up to the start of HTCondor, last written then."""
    return output(end=None, condor_start_us=us(60), logs=(), written_us=us(written), **more)


def follow(play: Play, first: int, last: int, *facts: Any) -> None:
    """Files tell something; polls up to ``last``."""
    play.add_facts(facts, SIZE)
    for at in range(first, last + 1, 300):
        play.poll(at)


def ended(play: Play) -> int:
    """How many pilots are counted."""
    return play.counted().get("pilots", 0)


BEGUN = "output 0- condor_start=60 logs=no"
"""An output up to the start of HTCondor."""
PLAYBOOKS = f"""
One that streams is open as long as its queue says, though it writes nothing for hours
  event submitted -300; event started 0; {BEGUN} written=100; look 200-25200; ?restart;
  look 25500-32400; = pilots 0-; = assumed; = time; = counted; event ended 32400; output 0-32395;
  look 32700-43200
  -> pilots 0-32395 pilot_output; time decision_problem 129580; counted pilots 1; corrected 0

Without a queue nothing is known as long as it may be written
  {BEGUN} written=100; look 200-3600; = pilots 0-; = time; = counted; look 3760-10800
  -> pilots 0-60 assumed; assumed end 0-60, validation 0-60; time unclassified 240;
  counted pilots 1

A clock that is ahead does not keep it open: the factory's files are dated from tomorrow on
  {BEGUN} written=80000; look 200-7200
  -> pilots 0-60 assumed

After a restart it may have grown while gwmond was down: it is read before it is given up
  {BEGUN} written=100; look 200-600; restart; look 18000; = pilots 0-; output 0-17900;
  look 18300-21600; rest 25200
  -> pilots 0-17900 pilot_output; counted pilots 1; corrected 0; closed True

A restart just before it is given up delays that a little; and no longer
  {BEGUN} written=100; look 200-600; restart; look 3700-4900; = pilots 0-; look 5200-5500
  -> pilots 0-60 assumed

When its output was written last is known as before after a restart: it is waited for
  {BEGUN} written=100; look 200-600; {BEGUN} written=2990; look 3000-3300; ?restart;
  look 3600-3900; ?restart; look 4500-6290; = pilots 0-; = counted; look 6590
  -> pilots 0-60 assumed

What the queue says of its end is waited with, as the output may be on its way; the output comes
  queue 0-7990; {BEGUN} written=100; look 200-8000; = pilots 0-; = counted; output 0-7980;
  look 8300-15200
  -> pilots 0-7980 pilot_output; counted pilots 1; corrected 0

It does not
  queue 0-7990; {BEGUN} written=100; look 200-8000; look 8300-15200
  -> pilots 0-7990 queue; counted pilots 1; corrected 0

A summary ends it too: its duration tells when
  {BEGUN} written=100; summary 1300 1200; look 200-10800
  -> pilots 0-1200 queue

Given up, and then it goes on: what is posted is corrected; it ends once
  {BEGUN} written=100; look 200-10800; {BEGUN} written=14400 condor_end=14400; look 14400;
  = pilots 0-; = counted; = time; ?restart; output 0-18000; look 17400-32400
  -> pilots 0-18000 pilot_output; time decision_problem 72000; counted pilots 1

A shorter copy takes no end back
  output 0-1200; look 3000-8000; {BEGUN} written=100; look 9000-20000
  -> pilots 0-1200 pilot_output

A collector says when it was gone: it is not waited for as if only its output were known
  output 0- condor_start=20 written=20; look 30; ad 0-600 job=factory#7.0;
  ad 660-1440 job=factory#7.0 heard=600; none 1560; rest 1620 3
  -> pilots 0-600 ad_expired; validation passed
"""


@pytest.mark.parametrize("playbook", playbooks(PLAYBOOKS))
def test_unended(playbook: Playbook) -> None:
    playbook.check()


def test_what_is_written_keeps_it_open(play: Play) -> None:
    """Each time when it has grown it is waited for anew."""
    for hour in range(4):
        grown = begun(100 + hour * HOUR, validation_end_us=us(50 + hour * HOUR))
        follow(play, 200 + hour * HOUR, 200 + hour * HOUR + 3000, grown)
    assert (only(play).end_us, play.seconds()) == (None, {})
    follow(play, 4 * HOUR, 9 * HOUR)
    assert only(play).end_us == us(50 + 3 * HOUR)


def imported(
    play: Play, at: int, *facts: Any, comes: ExpectedInput = ExpectedInput.NOTHING
) -> None:
    """An import at some time: nothing is waited for, unless a daemon keeps the ledger."""
    play.restart()
    now = us(at)
    play.add_facts(facts, SIZE)
    play.accounting.settlement.expected = comes
    for _ in range(2):
        play.settle(now, now)
        play.store(now)


def test_an_import() -> None:
    """Old logs are accounted at once, whenever they were copied; what may still run is not."""
    play = Play()
    imported(play, 60 + HOUR - 10, begun())
    assert (only(play).end_us, play.seconds()) == (None, {})
    imported(play, 60 + HOUR + 10)
    assert (only(play).end_us, ended(play)) == (us(60), 1)
    for facts in ([begun(400_000)], [begun(400_000), event(S.STARTED, 0)]):
        play = Play()
        imported(play, 400_060, *facts)
        assert (only(play).end_us, only(play).end_source) == (us(60), "assumed")
    play = Play()
    imported(play, 400, begun(), *queue(0, 300))
    assert (only(play).end_us, only(play).end_source) == (us(300), "queue")


def _shown(play: Play) -> None:
    live = shown(started=70, factory_job=JOB)
    play.live(120, 1200, [live], records=[record("1.0", 400, 1000, started=70)])


@pytest.mark.parametrize("order", sorted(permutations(["begun", "shown", "whole"])))
def test_a_collector_shows_what_streams(order: tuple[str, ...]) -> None:
    """It is one pilot; the output tells when it began and ended, the collector the rest."""
    play, at = Play(), 1300
    for what in order:
        if what == "shown":
            _shown(play)
        else:
            its = begun() if what == "begun" else output(0, 1230)
            play.add_facts([its], SIZE)
        play.poll(at)
        at += 60
    play.rest(at, hours=12)
    row = only(play)
    assert (row.start_us, row.end_us, row.end_source) == (us(0), us(1230), "pilot_output")
    assert (row.identity.origin, row.identity.name) == ("collector", "glidein@node")
    assert play.seconds() == {"goodput": 600.0, "pilot_overhead": 4 * 1230.0 - 600}


def test_its_name_and_site_are_told_later(play: Play) -> None:
    """The first lines tell neither; what is learnt then is its own."""
    follow(play, 200, 600, begun())
    assert only(play).identity.name.startswith("7.0@")
    name = output().name._replace(startd="glidein_1_2", site="Here")
    follow(play, 900, 5000, output(0, 1200, name=name))
    key: PilotRow = only(play)
    assert (key.identity.name, key.identity.key) == ("glidein_1_2@node", ("Here", "entry"))
    assert key.start_us == T0 * SECOND_US


def test_it_makes_no_difference_what_is_told_first() -> None:
    """Neither for a pilot that was killed, with and without its queue."""
    grown = begun(900, condor_end_us=us(800))
    for facts in ([begun(), grown], [begun(), grown, *queue(0, 1000)]):
        found = []
        for order in ([*facts], [*facts[1:], facts[0]], [*facts[::-1]]):
            play = Play()
            for at, fact in enumerate(order):
                follow(play, 1000 + at * 300, 1000 + at * 300, fact)
            play.rest(9000, hours=8)
            found.append(lives(play))
        assert found[0] == found[1] == found[2]


def test_the_list_of_pilots_does_not_call_it_idle(play: Play) -> None:
    """Nothing tells what it does."""
    follow(play, 200, 600, event(S.STARTED, 0), begun())
    listed = StoredPilot(only(play), (), AsOf(us(600)))
    assert (listed.state, listed.doing) == ("open", "runs, jobs not known")


@pytest.mark.parametrize("end", [700, 3000])
def test_a_run_on_it_tells_that_it_was_there(end: int) -> None:
    """Whether the record or the output comes first; what it rests on is said."""
    name = output().name._replace(startd="glidein", node="node")
    its = begun(validation_end_us=us(50), name=name)
    found = []
    for order in ("record first", "output first"):
        play = Play()
        if order == "output first":
            follow(play, 200, 4000, its)
        play.poll(4060, records=[record("1.0", 400, end, started=62)])
        play.rest(4120, hours=6)
        if order == "record first":
            follow(play, 30_000, 30_000, its)
        play.rest(31_000, hours=6)
        row = only(play)
        assert (row.end_us, row.end_source) == (us(end), "assumed")
        assert row.assumed[Assumption.END] == (us(0), us(end))
        found.append(lives(play))
    assert found[0] == found[1]


def test_what_a_summary_told_is_taken_back_after_a_restart(play: Play) -> None:
    """Another that it may be of comes while the first is waited for: neither ran a job by it."""
    others = begun()._replace(name=output().name._replace(schedd="factory2"))
    follow(play, 120, 120, begun(), line(1300, 1200, jobs=1, jobs_s=100, idle=0))
    play.restart()
    follow(play, 300, 20_000, others)
    counted = {key.category for key, n in play.stored.counts.items() if n and key.what == "pilots"}
    assert counted == {Category.UNCLASSIFIED}
    assert play.seconds() == {"unclassified": 2 * 4 * 60.0}


def test_an_import_into_a_ledger_that_a_daemon_keeps(play: Play) -> None:
    """It gives up nothing that the daemon follows."""
    follow(play, 200, 600, event(S.STARTED, 0), begun())
    imported(play, 5 * HOUR, comes=ExpectedInput.NO_FILES)
    assert (only(play).end_us, play.seconds()) == (None, {})


def test_a_restart_does_not_begin_the_queues_time_anew(play: Play) -> None:
    """One whose end the queue never tells ends after 60 days, also with a restart each month."""
    follow(play, 200, 600, event(S.SUBMITTED, -300), event(S.STARTED, 0), begun())
    day = 86400
    for month in range(1, 4):
        play.restart()
        for at in range(month * 30 * day, (month + 1) * 30 * day, day):
            play.poll(at)
            assert (only(play).end_us is None) is (at < 60 * day + 100), at / day
    assert (only(play).end_us, only(play).end_source) == (us(60), "assumed")


def test_each_pilot_of_a_number_has_its_own_files_time(play: Play) -> None:
    """The first execution was silent since long, while the second still writes."""
    follow(play, 200, 600, begun())
    for hour in range(1, 6):
        second = output(
            1000,
            None,
            condor_start_us=us(1060),
            logs=(),
            written_us=us(hour * HOUR),
            validation_end_us=us(hour * HOUR - 50),
        )
        follow(play, hour * HOUR + 60, hour * HOUR + 3000, second)
    ends = sorted((pilot.start_us, pilot.end_us) for pilot in play.stored.pilots.values())
    assert ends == [(us(0), us(60)), (us(1000), None)]
