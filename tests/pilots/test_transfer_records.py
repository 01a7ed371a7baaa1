"""Records of transfers in the accounting: they join a run, and are counted at once and once."""

from __future__ import annotations

from collections import Counter

from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobRecord, Move, RunFact, Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.same_run import gather
from tests.build.play import T0, Play, claim, record, shown

DOWN = Move("input", "root", "se.org", "plugin", (T0 + 110) * SECOND_US, failed=1)
CACHED = DOWN._replace(host="cache.org", files=2, failed=0, again=3, moved=7, took_us=11)


def moved(number: int, at: float, *moves: Move, job: str = "1.0") -> JobRecord:
    """A record of transfers on the pilot of the story, of a run of a job."""
    like = record(job, at, at + 1)
    failed = next((move.server for move in moves if move.failed), None)
    fact = RunFact(
        *(Source.TRANSFERS, like.fact.job, number, round((T0 + at) * SECOND_US)),
        ending=Ending(failed_transfer=failed),
        moves=moves,
    )
    return JobRecord(fact, like.startd, slot="slot1_1")


def counted(play: Play) -> Counter[tuple[str, str]]:
    """What is counted of transfers."""
    names = {"files_moved", "files_failed", "files_again", "bytes_moved", "moving_micros"}
    names |= {"failed_transfers"}
    counts = ((k.what, k.outcome, n) for k, n in play.stored.counts.items() if k.what in names)
    return Counter({(what, server): n for what, server, n in counts if n})


def test_it_counts_at_once_and_once(play: Play) -> None:
    """Before the run is over; not again by its record, which names another server, nor after a
    restart."""
    play.live(0, 120, [shown()], records=[claim("1.0", 100)])
    play.poll(180, [shown(heard=180)], records=[moved(1, 110, DOWN, CACHED)])
    once = {
        ("failed_transfers", "input root se.org"): 1,
        ("files_failed", "input root se.org"): 1,
        ("files_moved", "input root cache.org"): 2,
        ("files_again", "input root cache.org"): 3,
        ("bytes_moved", "input root cache.org"): 7,
        ("moving_micros", "input root cache.org"): 11,
    }
    assert counted(play) == once
    play.restart()
    ending = Ending(over=True, failed_transfer="input unknown", hold_code=13, hold_subcode=1)
    ended = record("1.0", 100, 130, ending=ending)
    play.live(240, 600, [shown()], records=[ended, moved(1, 110, DOWN, CACHED)])
    play.rest(660)
    assert len(play.stored.runs) == 1
    assert counted(play) == once


def test_its_number_is_that_of_the_claim_that_slots_show(play: Play) -> None:
    """As long as the run goes on no other record has the number, and it is one run."""
    play.live(0, 120, [shown()], records=[claim("1.0", 100)])
    play.poll(180, [shown(heard=180)], records=[moved(7, 110, CACHED)])
    assert [key.number for _, key in play.stored.runs] == [7]
    play.live(240, 600, [shown()], records=[record("1.0", 100, 500, run=7)])
    play.rest(660)
    ((_, key),) = play.stored.runs
    assert (key.number, play.counted()["runs"]) == (7, 1)


def test_a_claim_that_began_later_is_another_run() -> None:
    """Its input failed, and the job began again on the same pilot."""
    first = moved(1, 110, DOWN).fact._replace(pilot="P1")
    again = claim("1.0", 300).fact._replace(pilot="P1")
    assert {len(facts) for facts in gather([first, again]).values()} == {1}
    elsewhere = claim("1.0", 100).fact._replace(pilot="P2")
    assert {len(facts) for facts in gather([first, elsewhere]).values()} == {1}
    same = claim("1.0", 100).fact._replace(pilot="P1")
    assert [(key.number, len(facts)) for key, facts in gather([first, same]).items()] == [(1, 2)]


def test_transfers_on_an_unknown_pilot_make_none(play: Play) -> None:
    """A record of them has no site, so the pilot would be nowhere."""
    play.poll(60, [], records=[moved(1, 110, DOWN)])
    assert not play.stored.pilots
    assert not counted(play)
