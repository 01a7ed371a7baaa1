"""Histories: backlogs are fetched while they are accounted; a silent startd is asked later."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gwmond.config.settings import Config
from gwmond.model.cursor_kinds import SCHEDD_KINDS, TRANSFERS
from gwmond.model.facts import Cursor
from gwmond.service.accounting import history_readers
from gwmond.service.accounting.history_readers import HistoryReader, StartdHistoryReader
from gwmond.service.accounting.ledger_keeper import LedgerKeeper
from gwmond.sources.gather import Gatherer
from gwmond.sources.htcondor.access import Access, Daemon
from gwmond.sources.htcondor.histories.history_cursor import (
    Drain,
    HistoryAnswer,
    HistoryState,
    Pair,
    Progress,
)
from tests.build.play import T0, Play, claim, shown
from tests.pool.adtext import ad_text
from tests.sources.feigned_access import Feigned

SCHEDD = Daemon("schedd", "<schedd>", "v")
STARTD, ADDRESS = "glidein@node", "<startd>"
LOCATED = ad_text({"Name": STARTD, "MyAddress": ADDRESS, "CondorVersion": "v"})


class Backlog:
    """Stands for the gatherer: each answer is one step of a backlog; notes after which state."""

    def __init__(self, steps: int, left_s: float) -> None:
        self.left_s = left_s
        self.asked: list[str] = []
        self.third = threading.Event()
        self._steps = steps

    def run(self, *asked: Any, **_: Any) -> HistoryAnswer:
        state = asked[3]
        self.asked.append(state)
        if len(self.asked) == 3:
            self.third.set()
        step = int(state or 0) + 1
        behind = step < self._steps
        return HistoryAnswer((), str(step), None if behind else 7, behind, None, None, (), 0)


@pytest.fixture
def one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedd has one history only."""
    monkeypatch.setattr(history_readers, "SCHEDD_KINDS", SCHEDD_KINDS[:1])


def reader(backlog: Backlog) -> HistoryReader:
    config = Config.model_validate({"ledger": {"url": "sqlite:////x"}})
    # Nothing was stored.
    nothing = dict.fromkeys(("cursor", "add_records", "note_begin"), lambda *_: None)
    keeper = SimpleNamespace(**nothing, ready=True)
    return HistoryReader(config, cast(Gatherer, backlog), cast(LedgerKeeper, keeper))


@pytest.mark.usefixtures("one_kind")
def test_the_next_records_are_fetched_while_the_last_are_accounted() -> None:
    """They are asked for after the state of those that have come, though not stored yet."""
    backlog = Backlog(steps=4, left_s=100.0)
    histories = reader(backlog)
    access = cast(Access, None)
    assert [batch.cursor.state for batch in histories.read(access, [SCHEDD], 0.0)] == ["1"]
    assert histories.behind
    batches = histories.read(access, [SCHEDD], 0.0, only_behind=True)
    assert next(batches).cursor.state == "1"
    assert backlog.third.wait(120), "the next was not asked for while the last is accounted"
    assert [batch.cursor.state for batch in batches] == ["2", "3", "4"]
    assert backlog.asked == ["", "", "1", "2", "3"]
    assert not histories.behind


@pytest.mark.usefixtures("one_kind")
def test_the_history_that_is_furthest_behind_is_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is settled before all have been read up to then; what is read waits in memory."""
    monkeypatch.setattr(history_readers, "_BACKLOGS", 1)
    read_to = {"fast": 0, "slow": 0}
    asked = []

    def run(source: str, *_: Any, **__: Any) -> HistoryAnswer:
        asked.append((source, dict(read_to)))
        read_to[source] += 30 if source == "fast" else 10
        done_us, behind = read_to[source], read_to[source] < 120
        progress = Progress(0, done_us, 120)
        return HistoryAnswer((), f"{done_us}", None, behind, progress, None, (), 0)

    histories = reader(cast(Backlog, SimpleNamespace(run=run, left_s=100.0)))
    schedds = [SCHEDD._replace(name=name) for name in read_to]
    access = cast(Access, None)
    list(histories.read(access, schedds, 0.0))
    planned = len(asked)
    list(histories.read(access, schedds, 0.0, only_behind=True))
    assert not histories.behind
    began = [(source, at) for source, at in asked[planned:] if at != asked[planned][1]]
    assert len(began) > 10
    assert all(at[source] == min(at.values()) for source, at in began if max(at.values()) < 120)


DRAINED = HistoryState(Pair(), 0, Drain(False, None, 0, 0, 9, Pair(), ())).dump()


@pytest.mark.usefixtures("one_kind")
@pytest.mark.parametrize(("state", "most"), [(DRAINED, history_readers._BACKLOGS), ("", 10)])
def test_few_backlogs_are_asked_for_at_once(state: str, most: int) -> None:
    """Also right after a start, when only the ledger says which histories have one."""
    running, counts, lock = [0], [0], threading.Lock()

    def run(*_: Any, **__: Any) -> HistoryAnswer:
        with lock:
            running[0] += 1
            counts.append(running[0])
        time.sleep(0.05)
        with lock:
            running[0] -= 1
        return HistoryAnswer((), state, None, bool(state), None, None, (), 0)

    histories = reader(cast(Backlog, SimpleNamespace(run=run, left_s=100.0)))
    cursor = Cursor("", "", state, None)
    cast(SimpleNamespace, histories._keeper).cursor = lambda *_: cursor
    schedds = [SCHEDD._replace(name=f"schedd{number}") for number in range(30)]
    batches = list(histories.read(cast(Access, None), schedds, 0.0))
    assert {batch.cursor.source for batch in batches} == {schedd.name for schedd in schedds}
    assert max(counts) == most
    assert histories.unread(schedds) == (
        dict.fromkeys((x.name for x in schedds), 0) if state else {}
    )
    assert histories.unread([SCHEDD]) == {SCHEDD.name: 0}, "which was not asked"


@pytest.mark.usefixtures("one_kind")
def test_a_history_for_which_there_is_no_time_does_not_keep_others_waiting() -> None:
    """It is not begun again, as it would be killed; the others go on."""
    took_s = {f"schedd{number}": 0.3 if not number else 0.01 for number in range(6)}
    steps = Counter[str]()

    def run(source: str, *_: Any, **__: Any) -> HistoryAnswer:
        time.sleep(took_s[source])
        steps[source] += 1
        behind = steps[source] < 9
        return HistoryAnswer((), "", None, behind, None, None, (), 0)

    gatherer = SimpleNamespace(run=run, left_s=100.0)
    histories = reader(cast(Backlog, gatherer))
    schedds = [SCHEDD._replace(name=name) for name in took_s]
    list(histories.read(cast(Access, None), schedds, 0.0))
    gatherer.left_s = 0.6
    list(histories.read(cast(Access, None), schedds, 0.0, only_behind=True))
    assert steps.pop("schedd0") == 2  # once in each
    assert set(steps.values()) == {9}


@pytest.mark.usefixtures("one_kind")
def test_backlogs_that_fail_do_not_keep_others_from_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In each poll the time suffices for some only: all that answer are asked within a few.

    Which are silent is told by queries that were made.
    """
    monkeypatch.setattr(history_readers, "SILENT_S", 0.2)
    asked = Counter[str]()
    gatherer = SimpleNamespace(left_s=100.0)

    def run(source: str, *_: Any, **__: Any) -> HistoryAnswer | None:
        asked[source] += 1
        if source.startswith("fails"):
            time.sleep(0.05)
            gatherer.left_s = 0.0
            return None
        time.sleep(0.01)
        return HistoryAnswer((), DRAINED, None, True, None, None, (), 0)

    gatherer.run = run
    histories = reader(cast(Backlog, gatherer))
    cursors = {f"fails{n}": 1 for n in range(6)} | {f"good{n}": 5 for n in range(6)}
    cast(SimpleNamespace, histories._keeper).cursor = lambda source, _: Cursor(
        source, "", DRAINED, cursors[source]
    )
    schedds = [SCHEDD._replace(name=name) for name in cursors]
    for _ in range(8):
        gatherer.left_s = 100.0
        list(histories.read(cast(Access, None), schedds, 0.0))
        assert not any(name.startswith("good") for name in histories.silent(schedds))
    assert min(asked[name] for name in cursors) >= 1
    assert histories.unread(schedds) == {
        name: at for name, at in cursors.items() if name not in (histories.silent(schedds))
    }


@pytest.mark.usefixtures("one_kind")
def test_a_history_that_did_not_answer_may_have_a_backlog() -> None:
    """So what is missing of it is not taken to be nothing."""
    answers: list[HistoryAnswer | None] = [
        None,
        HistoryAnswer((), "", 7, False, None, None, (), 0),
        None,
    ]
    run = lambda *_, **__: answers.pop(0)  # noqa: E731
    histories = reader(cast(Backlog, SimpleNamespace(run=run, left_s=100.0)))
    unread = []
    while answers:
        list(histories.read(cast(Access, None), [SCHEDD], 0.0))
        unread.append(bool(histories.unread([SCHEDD])))
    assert unread == [True, False, True]


@pytest.mark.usefixtures("one_kind")
def test_without_time_left_the_rest_waits() -> None:
    """Of a poll's last seconds nothing is begun that would be killed at its end."""
    backlog = Backlog(steps=4, left_s=0.0)
    histories = reader(backlog)
    access = cast(Access, None)
    list(histories.read(access, [SCHEDD], 0.0))
    batches = histories.read(access, [SCHEDD], 0.0, only_behind=True)
    assert [batch.cursor.state for batch in batches] == ["1"]
    assert histories.behind


@pytest.mark.usefixtures("one_kind")
def test_what_was_begun_is_read_once() -> None:
    """A poll asks schedds before it evaluates, and takes in what they said afterwards."""
    backlog = Backlog(steps=1, left_s=100.0)
    histories = reader(backlog)
    access = cast(Access, None)
    histories.begin(access, [SCHEDD], 0.0)
    assert [batch.cursor.state for batch in histories.read(access, [SCHEDD], 0.0)] == ["1"]
    assert backlog.asked == [""]
    assert [batch.cursor.state for batch in histories.read(access, [SCHEDD], 0.0)] == ["1"]
    assert backlog.asked == ["", ""], "nothing that was begun is left"


@pytest.mark.usefixtures("one_kind")
def test_what_was_begun_in_a_poll_that_failed_is_asked_for_anew() -> None:
    """Else a later poll would take in what a cursor that moved meanwhile has behind it."""
    backlog = Backlog(steps=1, left_s=100.0)
    histories = reader(backlog)
    access = cast(Access, None)
    histories.begin(access, [SCHEDD], 0.0)
    histories.begin(access, [SCHEDD], 60.0)
    assert len(list(histories.read(access, [SCHEDD], 60.0))) == 1
    assert len(backlog.asked) <= 2


def test_without_a_ledger_nothing_is_begun() -> None:
    """What schedds say could not be taken in."""
    backlog = Backlog(steps=1, left_s=100.0)
    histories = reader(backlog)
    cast(SimpleNamespace, histories._keeper).ready = False
    histories.begin(cast(Access, None), [SCHEDD], 0.0)
    assert not backlog.asked


def test_a_schedd_that_is_gone_is_not_waited_for() -> None:
    """The rest of its history cannot be asked for, so nothing is behind."""
    histories = reader(Backlog(steps=4, left_s=0.0))
    access = cast(Access, None)
    assert len(list(histories.read(access, [SCHEDD], 0.0))) == len(SCHEDD_KINDS)
    assert histories.behind
    assert not list(histories.read(access, [], 0.0))
    assert not histories.behind


def test_a_startd_that_does_not_answer_is_asked_later_and_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a minute, two, four, up to an hour; the problem says when at the earliest."""
    moment = 1000.0
    clock = SimpleNamespace(monotonic=lambda: moment)
    monkeypatch.setattr(history_readers, "time", clock)
    answers: dict[tuple[str, str], tuple[str, ...]] = {
        ("cm", "locate"): (LOCATED,),
        (ADDRESS, "startd_history"): ("!timeout",),
    }
    access = Feigned(answers, str(tmp_path / "log"))
    play = Play()
    ends = shown()._replace(dies=T0 + 200)
    play.poll(60, [ends], claims=[claim("1.0", 30)])
    reader = StartdHistoryReader(Config(), ("cm",))
    waits = []
    for _ in range(8):
        records, (problem,) = reader.ask(access, play.accounting.pilots, T0 + 60)
        assert (records, problem.source, problem.problem) == ([], "startds", "timeout")
        text, _, wait = problem.detail.partition("; asked again in ")
        assert text == f"{STARTD}: as feigned"
        waits.append(wait.removesuffix(" at the earliest"))
        assert reader.ask(access, play.accounting.pilots, T0 + 60) == ([], []), "not at once"
        moment += 3601
    assert waits == ["1m00s", "2m00s", "4m00s", "8m00s", "16m00s", "32m00s", "1h00m", "1h00m"]


def test_startds_that_let_nobody_read_are_asked_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pilots of GlideinWMS are: one problem that lasts, and one startd an hour."""
    moment = 1000.0
    monkeypatch.setattr(history_readers, "time", SimpleNamespace(monotonic=lambda: moment))
    names = [f"glidein_{n}@node" for n in range(5)]
    located = tuple(
        ad_text({"Name": name, "MyAddress": f"<{name}>", "CondorVersion": "v"}) for name in names
    )
    answers: dict[tuple[str, str], tuple[str, ...]] = {("cm", "locate"): located}
    answers |= {(f"<{name}>", "startd_history"): ("!denied",) for name in names}
    access = Feigned(answers, str(tmp_path / "log"))
    play = Play()
    ends = [shown(name)._replace(dies=T0 + 200) for name in names]
    runs = [claim(f"{n}.0", 30, startd=name) for n, name in enumerate(names)]
    play.poll(60, ends, claims=runs)
    reader = StartdHistoryReader(Config(), ("cm",))
    for _ in range(3):
        records, (problem,) = reader.ask(access, play.accounting.pilots, T0 + 60)
        assert (records, problem.source, problem.problem) == ([], "startds", "startds_closed")
        moment += 60
    asked = (tmp_path / "log").read_text().count("startd_history")
    assert asked == 5, "all at first, then none"
    moment += 3600
    _, (problem,) = reader.ask(access, play.accounting.pilots, T0 + 60)
    assert problem.problem == "startds_closed"
    assert (tmp_path / "log").read_text().count("startd_history") == 6


class Kinds(Backlog):
    """Stands for the gatherer: notes which kinds are asked for; epochs may be behind."""

    def __init__(self) -> None:
        super().__init__(steps=1, left_s=0.0)
        self.kinds: list[str] = []
        self.behind, self.read = False, 0

    def run(self, *asked: Any, **_: Any) -> HistoryAnswer:
        kind = asked[1]
        self.kinds.append(kind)
        behind = self.behind and kind == "epochs"
        return HistoryAnswer((), "1", None if behind else 7, behind, None, None, (), self.read)


NEW = Daemon("schedd", "<schedd>", "$CondorVersion: 25.14.1 2026-09-24 $")


def test_transfers_are_read_after_all_epochs_of_a_new_schedd() -> None:
    gatherer, access = Kinds(), cast(Access, None)
    histories = reader(gatherer)
    gatherer.behind = True
    list(histories.read(access, [NEW], 0.0))
    assert sorted(gatherer.kinds) == sorted(SCHEDD_KINDS)
    gatherer.behind, gatherer.kinds = False, []
    batches = list(histories.read(access, [NEW], 0.0))
    assert gatherer.kinds[-1] == batches[-1].cursor.kind == TRANSFERS
    assert sorted(gatherer.kinds[:-1]) == sorted(SCHEDD_KINDS)
    gatherer.kinds = []
    list(reader(gatherer).read(access, [SCHEDD], 0.0))
    assert TRANSFERS not in gatherer.kinds


def test_a_schedd_without_new_transfers_is_asked_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After one poll, three, seven, up to ten minutes; at once again where there were some."""
    moment = 1000.0
    clock = SimpleNamespace(monotonic=lambda: moment)
    monkeypatch.setattr(history_readers, "time", clock)
    gatherer, access = Kinds(), cast(Access, None)
    histories = reader(gatherer)
    asked = []
    for _ in range(60):
        gatherer.kinds = []
        list(histories.read(access, [NEW], 0.0))
        if TRANSFERS in gatherer.kinds:
            asked.append(moment - 1000)
        moment += 60
    assert asked[:6] == [0, 60, 240, 660, 1260, 1860]
    moment, gatherer.read = asked[-1] + 1600.0, 1
    for _ in range(3):
        gatherer.kinds = []
        list(histories.read(access, [NEW], 0.0))
        assert TRANSFERS in gatherer.kinds
        moment += 60
