"""Records that were written while gwmond was away are read in parts, oldest first.

A run has its record once it has ended: at a time in a backlog those runs are unknown that ended
later.  So time of pilots that went on then is not posted before all is read.
"""

from __future__ import annotations

import pytest

from gwmond.model.pilot_life import Category
from gwmond.model.runs.run_facts import JobRecord
from gwmond.pilots import settlement
from gwmond.pilots.life.rules import Rules
from tests.build.play import T0, Play, record, shown

BACK_S = 20_000
"""When gwmond is back; it has polled until 600 s."""


def runs(startd: str) -> list[JobRecord]:
    """Four runs from 1000 to 19,000 s; two are under way at most times."""
    return [
        record(f"{number}.0", 1000 + 4000 * number, 7000 + 4000 * number, startd=startd)
        for number in range(4)
    ]


def away(play: Play, parts: int) -> None:
    """Poll, be away, and read what was written meanwhile in parts; the pilot is still there."""
    play.live(0, 600, [shown()])
    records = runs("glidein@node")
    there = [shown(heard=BACK_S)]
    size = len(records) // parts
    for part in range(parts):
        some = records[size * part : size * (part + 1)]
        last = some[-1].fact.end_us or 0
        behind = part + 1 < parts
        known = last // 10**6 - T0 - 120 if behind else None
        at = BACK_S if not part else BACK_S + part
        play.poll(at, there, some, known=known, behind=behind)
    play.live(BACK_S + 60, BACK_S + 600, [shown(heard=BACK_S)])


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_what_is_read_in_parts_is_posted_once_and_the_same(parts: int) -> None:
    """Nothing is corrected; the runs have four times 6000 s of one core, the pilot the rest."""
    play = Play(Rules(refresh_us=0))
    away(play, parts)
    assert play.stored.corrected == 0
    seconds = play.seconds()
    assert seconds[Category.GOODPUT] == 24_000
    assert sum(seconds.values()) % 4 == 0


def test_without_waiting_idle_time_would_be_posted_that_was_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where memory cannot hold the backlog: all is right at last, but was corrected."""
    monkeypatch.setattr(settlement, "MOST_RUNS", 0)
    play = Play(Rules(refresh_us=0))
    away(play, 4)
    assert play.stored.corrected > 0
    assert play.seconds()[Category.GOODPUT] == 24_000


def test_a_pilot_that_has_ended_is_settled_while_the_rest_is_read() -> None:
    """Its runs had ended by then; else all of a long backlog would have to be in memory."""
    play = Play(Rules(refresh_us=0))
    ends, goes_on = shown("glidein_1@node"), shown("glidein_2@node")
    play.live(0, 600, [ends, goes_on])
    old = runs("glidein_1@node")[:1]
    there = [goes_on._replace(last_heard=goes_on.last_heard + BACK_S)]
    play.poll(BACK_S, there, old, known=BACK_S - 1000, behind=True)
    gone, left = (play.pilot(f"glidein_{number}@node") for number in (1, 2))
    assert gone.settled_until_us == gone.end_us
    assert left.settled_until_us <= left.start_us + 600 * 10**6
    assert play.stored.corrected == 0
