"""Records that were written while gwmond was away are read in parts, oldest first.

A run has its record once it has ended: at a time in a backlog those runs are unknown that ended
later.  So time of pilots that went on then is not posted before all is read.
"""

from __future__ import annotations

import pytest

from gwmond.model.facts import Pilot
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.file_facts import CentralKind
from gwmond.model.runs.run_facts import JobRecord
from gwmond.model.times import SECOND_US
from gwmond.pilots import settlement
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.settlement import Unread
from tests.build.central_lines import line
from tests.build.play import T0, Play, claim, record, shown

AWAY_S, BACK_S = 600, 20_000
"""When gwmond polled last, and when it is back."""

STAYS, GOES = "glidein_stays@node", "glidein_goes@node"


def records() -> list[JobRecord]:
    """Runs on two pilots, by their end: two are under way when gwmond stops, others overlap.

    On the pilot that stays they hold 11,900 + 4 * 6000 core-seconds, on the other 14,000.
    """
    under_way = [record("8.0", 100, 12_000, startd=STAYS), record("9.0", 100, 14_100, startd=GOES)]
    others = [
        record(f"{number}.0", 1000 + 4000 * number, 7000 + 4000 * number, startd=STAYS)
        for number in range(4)
    ]
    return sorted([*under_way, *others], key=lambda item: item.fact.end_us or 0)


def away(play: Play, parts: int) -> None:
    """Poll, be away, and read what was written meanwhile in parts; one pilot has gone."""
    claims = [claim("8.0", 100, startd=STAYS), claim("9.0", 100, startd=GOES)]
    play.live(0, 60, [shown(STAYS), shown(GOES)])
    play.live(120, AWAY_S, [shown(STAYS), shown(GOES)], claims=claims)
    every, there = records(), [shown(STAYS, heard=BACK_S)]
    size = len(every) // parts
    for part in range(parts):
        some = every[size * part : size * (part + 1)]
        read_to = (some[-1].fact.end_us or 0) // 10**6 - T0
        behind = part + 1 < parts
        known = read_to - 120 if behind else None
        play.poll(BACK_S, there, some, known=known, behind=behind)
    play.rest(BACK_S + 60)


@pytest.fixture(scope="module")
def at_once() -> dict[str, float]:
    """What is posted where all is read at once."""
    play = Play(Rules(refresh_us=0))
    away(play, 1)
    assert play.stored.corrected == 0
    return play.seconds()


@pytest.mark.parametrize("parts", [2, 3, 6])
def test_what_is_read_in_parts_is_posted_once_and_the_same(
    parts: int, at_once: dict[str, float]
) -> None:
    """Nothing is corrected, nor given up before its record was read."""
    play = Play(Rules(refresh_us=0))
    away(play, parts)
    assert play.stored.corrected == 0
    assert play.seconds() == at_once
    assert at_once[Category.GOODPUT] == 11_900 + 4 * 6000 + 14_000
    assert Category.UNCLASSIFIED not in at_once


def test_without_waiting_idle_time_would_be_posted_that_was_none(
    monkeypatch: pytest.MonkeyPatch, at_once: dict[str, float]
) -> None:
    """As where memory cannot hold the backlog: all is right at last, but was corrected."""
    monkeypatch.setattr(settlement, "MOST_RUNS", 0)
    play = Play(Rules(refresh_us=0))
    away(play, 6)
    assert play.stored.corrected > 0
    assert play.seconds() == at_once


def test_a_pilot_that_had_ended_before_is_settled_while_the_rest_is_read() -> None:
    """Else all of a long backlog would have to be in memory."""
    play = Play(Rules(refresh_us=0))
    old, young = shown("glidein_1@node"), shown("glidein_2@node")
    play.live(0, 60, [old, young])
    play.live(120, AWAY_S, [old, young], claims=[claim("1.0", 100, startd="glidein_1@node")])
    play.live(AWAY_S + 60, 1200, [young])
    run = record("1.0", 100, 590, startd="glidein_1@node")
    known = AWAY_S + 60 + 3600

    def read(known: int) -> tuple[bool, bool]:
        """Read up to a time; return which of the two are settled whole."""
        there: list[Pilot] = [young._replace(last_heard=T0 + BACK_S)]
        play.poll(BACK_S, there, [run], known=known, behind=True)
        rows = [play.pilot(f"glidein_{number}@node") for number in (1, 2)]
        return rows[0].settled_until_us == rows[0].end_us, rows[1].settled_until_us > (
            rows[1].start_us + 1200 * 10**6
        )

    assert read(known - 1) == (False, False)
    assert read(known) == (True, False)
    assert play.stored.corrected == 0


def test_a_pilot_that_only_jobs_have_is_not_taken_to_have_ended_while_jobs_are_unread() -> None:
    """Nothing ended on it for hours, but a long run has not been read yet."""
    play = Play(Rules(refresh_us=0))
    short, long = record("1.0", 100, 3000), record("2.0", 200, 18_000)
    play.poll(BACK_S, [], [short], known=12_000, behind=True)
    play.poll(BACK_S, [], [long])
    play.rest(BACK_S + 60)
    assert play.stored.corrected == 0
    assert play.seconds()[Category.GOODPUT] == 2900 + 17_800


@pytest.mark.parametrize(("read_to", "given_up"), [(600 + 3599, False), (600 + 3601, True)])
def test_a_record_is_waited_for_by_what_was_read_of_its_schedd(
    read_to: int, given_up: bool
) -> None:
    """It is late by the clock, but may be among what its schedd has to say yet."""
    play = Play(Rules(refresh_us=0))
    play.live(0, AWAY_S, [shown()], claims=[claim("1.0", 100)])
    play.live(AWAY_S + 60, AWAY_S + 120, [shown()])
    unread = Unread({"schedd": (T0 + read_to) * SECOND_US})
    now_us = (T0 + BACK_S) * SECOND_US
    play.settle(now_us, now_us, (), unread)
    (pilot,) = play.accounting.pilots
    (run,) = pilot.runs.values()
    assert run.merged.ending.over is given_up


@pytest.mark.parametrize("known", [0, 3000])
def test_a_live_line_of_a_central_log_counts_while_a_backlog_is_read(known: int) -> None:
    """It is of now, however far back the records are that are read."""
    play = Play(Rules(refresh_us=0))
    play.live(0, AWAY_S, [shown()])
    play.add_facts([line(CentralKind.PILOT_END, BACK_S - 50)])
    play.poll(BACK_S, [], known=known, behind=True)
    assert not play.accounting.central_log.unused
