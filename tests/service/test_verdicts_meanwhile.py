"""Verdicts on early failures do not depend on when gwmond was running."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gwmond.config.settings import Config
from gwmond.ledger.store import Ledger
from gwmond.model.cursor_kinds import SCHEDD_KINDS
from gwmond.model.facts import Cursor, Gap
from gwmond.model.runs.run_facts import JobRecord
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules
from gwmond.pilots.runs.verdicts import Evidence, TrialKeys, evidence
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from tests.build.play import DONE, T0, record

HOUR_S = 3600
NODES = 12
SICK = 7
FAILED = DONE._replace(exit_code=1, early=True)
EVERY_S = 600
DELAY_S = 120
END_S = 16 * HOUR_S
SCHEDD = "schedd"


def history() -> Iterator[JobRecord]:
    """Three hours: a node whose jobs all fail after 20 s, and others where a few do."""
    for node in range(NODES):
        at, number = 60 + node, 0
        while at < 3 * HOUR_S:
            number += 1
            fails = node == SICK or number == node % 5 + 4
            job, end = f"{1000 * (node + 1) + number}.0", at + (20 if fails else 900)
            ending = FAILED if fails else DONE
            yield record(job, at, end, startd=f"glidein@node{node}", ending=ending)
            at = end + (130 if fails else 5)


RECORDS = tuple(history())


class Stay(NamedTuple):
    """When a daemon runs, when the schedd answers, when the clock is ahead (seconds from T0)."""

    runs: Collection[int]
    silent: Collection[int] = ()
    lookback: int | None = None
    ahead: Collection[int] = ()


def us(seconds: float) -> int:
    return round((T0 + seconds) * SECOND_US)


def lived(path: Path, stay: Stay) -> dict[str, tuple[str, str, str]]:
    """What the ledger has of each job after a daemon has polled; each start is a new one."""
    url = f"sqlite:///{path}"
    config = Config.model_validate({"ledger": {"url": url}})
    keeper, ledger, read = LedgerKeeper(config), None, None
    for at in range(0, END_S + 1, EVERY_S):
        if at not in stay.runs:
            if ledger is not None:
                keeper.close()
            ledger = None
            continue
        if ledger is None:
            keeper, ledger = LedgerKeeper(config), Ledger.open(url)
            keeper.use(ledger)
        answers = at not in stay.silent
        if answers:
            if read is None and stay.lookback is not None:
                read = at - stay.lookback
                for kind in SCHEDD_KINDS:
                    keeper.note_begin(SCHEDD, kind, us(read))
            new = [one for one in RECORDS if us(read or 0) <= one.fact.written_us < us(at)]
            for kind in SCHEDD_KINDS:
                keeper.add_records(new, Cursor(SCHEDD, kind, str(at), us(at)), None)
            read = at
        now = at + (100 * HOUR_S if at in stay.ahead else 0)
        keeper.settle(us(now), us(at - DELAY_S), () if answers else [SCHEDD])
    assert ledger is not None
    try:
        assert [one for one in ledger.check() if one.micros] == []
        return {
            row.key.job.split("#")[1]: (
                *(("", "open") if row.outcome is None else row.outcome[:2]),
                "" if row.outcome is None else row.outcome.evidence,
            )
            for row, _ in ledger.run_rows()
        }
    finally:
        keeper.close()


ALWAYS = range(END_S + 1)


@pytest.fixture(scope="module")
def always(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str, str]]:
    """The ledger of a daemon that ran all the time."""
    found = lived(tmp_path_factory.mktemp("always") / "ledger.sqlite", Stay(ALWAYS))
    labels = Counter(outcome[1] for outcome in found.values())
    assert labels["early_exit"] > 60
    assert 5 <= labels["exit_nonzero"] <= NODES
    assert len(found) == len(RECORDS)
    return found


@pytest.mark.parametrize("since_h", [4, 14])
def test_first_start(tmp_path: Path, always: dict[str, tuple[str, str, str]], since_h: int) -> None:
    """With an empty ledger what failed before is judged as by a daemon that saw it."""
    stay = Stay(range(since_h * HOUR_S, END_S + 1), lookback=24 * HOUR_S)
    assert lived(tmp_path / "ledger.sqlite", stay) == always


@pytest.mark.parametrize(("down_h", "up_h"), [(0, 11), (1, 12)])
def test_downtime(
    tmp_path: Path, always: dict[str, tuple[str, str, str]], down_h: int, up_h: int
) -> None:
    """A black hole while gwmond is stopped for longer than a verdict takes."""
    runs = {at for at in ALWAYS if not down_h * HOUR_S < at < up_h * HOUR_S}
    assert lived(tmp_path / "ledger.sqlite", Stay(runs)) == always


def test_a_clock_that_was_ahead(tmp_path: Path, always: dict[str, tuple[str, str, str]]) -> None:
    """Verdicts fall again once it is stepped back."""
    assert lived(tmp_path / "ledger.sqlite", Stay(ALWAYS, ahead={EVERY_S})) == always


def test_a_schedd_that_is_silent(tmp_path: Path, always: dict[str, tuple[str, str, str]]) -> None:
    """Verdicts wait for the schedd's records."""
    silent = range(HOUR_S + 1, 12 * HOUR_S)
    assert lived(tmp_path / "ledger.sqlite", Stay(ALWAYS, silent)) == always


def test_a_history_that_does_not_reach_back(
    tmp_path: Path, always: dict[str, tuple[str, str, str]]
) -> None:
    """What is not blamed on a place then is nobody's, and the rest is estimated."""
    stay = Stay(range(3 * HOUR_S, END_S + 1), lookback=2 * HOUR_S)
    found = lived(tmp_path / "ledger.sqlite", stay)
    assert 0 < len(found) < len(always)
    for job, outcome in found.items():
        category, label, _ = always[job]
        if label == "exit_zero":
            assert outcome == always[job]
        elif label == "early_exit":
            assert outcome == (category, label, "estimated")
        else:
            assert outcome == ("unclassified", "early_exit_not_compared", "estimated")


def test_what_is_missing_for_good() -> None:
    """A schedd is waited for, for a day; after that its records of that day are missing."""
    rules = Rules()
    read = Cursor(SCHEDD, "history", "", us(0))
    for hours, until, complete in ((7, 0, True), (24, 24, False), (26, 26, False), (60, 60, True)):
        now_us = us(hours * HOUR_S)
        known = evidence(now_us, now_us, [read], rules)
        assert known.until_us == us(until * HOUR_S), hours
        assert known.complete(TrialKeys(now_us - 9 * HOUR_S * SECOND_US, 0, now_us)) is complete
    assert evidence(us(60 * HOUR_S), us(0), [read], rules) == Evidence(us(0))  # read as all others


def test_what_a_schedd_has_lost_is_missing() -> None:
    lost = Gap(SCHEDD, "history", us(0), us(HOUR_S), "")
    known = Evidence(us(END_S)).without([lost, lost._replace(kind="files", end_us=us(END_S))])
    within = TrialKeys(us(HOUR_S) - 1, us(2 * HOUR_S), us(7 * HOUR_S))
    assert not known.complete(within)
    assert known.complete(within._replace(since_us=us(HOUR_S)))


def test_what_is_suspected_within_minutes_the_verdict_confirms(tmp_path: Path) -> None:
    """Jobs of two users fail at a node; it is named while they do, and counted hours later."""
    keeper = LedgerKeeper(Config())
    records = list(_of_two_users())
    seen: dict[int, set[str]] = {}
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:
        keeper.use(ledger)
        read = 0
        for at in (*range(0, 2 * HOUR_S, 360), *range(2 * HOUR_S, 10 * HOUR_S, 1800)):
            new = [one for one in records if us(read) <= one.fact.written_us < us(at)]
            keeper.add_records(new, None, None)
            keeper.settle(us(at), us(at), ())
            keeper.suspect()
            read, seen[at] = at, {x.place for x in keeper.suspects if x.sign == "fails"}
    assert set().union(*seen.values()) == {f"node{SICK}"}
    assert min(at for at, places in seen.items() if places) <= HOUR_S
    assert not any(places for at, places in seen.items() if at > 3.5 * HOUR_S)
    shown = keeper.shown()
    assert shown is not None
    assert shown.suspicions == {"confirmed": 1}


def _of_two_users() -> Iterator[JobRecord]:
    """Two hours: on a node all jobs fail, elsewhere none does; each slot runs both users' jobs."""
    for node in range(24):
        at, number = 10 + 17 * node, 0
        while at < 2 * HOUR_S:
            number += 1
            fails = node == SICK
            job, end = f"{1000 * (node + 1) + number}.0", at + (20 if fails else 400)
            ending = FAILED if fails else DONE
            one = record(job, at, end, startd=f"glidein@node{node}", ending=ending)
            user = f"user{number % 2}"
            yield one._replace(fact=one.fact._replace(user=user, job_group=f"{user} run.sh"))
            at = end + (60 if fails else 5)


def test_where_a_history_begins_is_not_how_far_it_was_read(tmp_path: Path) -> None:
    """Metrics and lists of cursors do not have it."""
    keeper = LedgerKeeper(Config())
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:
        keeper.use(ledger)
        keeper.note_begin(SCHEDD, "history", us(0))
        read = Cursor(SCHEDD, "history", "", us(60))
        keeper.add_records([], read, None)
        assert keeper.cursors == (read,)
