"""Reading backlogs: what comes next is fetched while what came is being accounted."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

from gwmond.config.settings import Config
from gwmond.service.history_reader import HistoryReader
from gwmond.service.pilot_keeper import PilotKeeper
from gwmond.sources.gather import Gatherer
from gwmond.sources.htcondor.access import Access
from gwmond.sources.htcondor.history_cursor import HistoryAnswer

PATTERN = "/nowhere/*"


class Backlog:
    """Stands for the gatherer: each answer is one step of a backlog; notes after which state."""

    def __init__(self, steps: int, left_s: float) -> None:
        self.left_s = left_s
        self.asked: list[str] = []
        self.third = threading.Event()
        self._steps = steps

    def run(self, *asked: Any, **_: Any) -> HistoryAnswer:
        state = asked[4]
        self.asked.append(state)
        if len(self.asked) == 3:
            self.third.set()
        step = int(state or 0) + 1
        behind = step < self._steps
        return HistoryAnswer((), str(step), None if behind else 7, behind, None, None, (), 0)


def reader(backlog: Backlog) -> HistoryReader:
    config = Config.model_validate(
        {"histories": {"files": [PATTERN], "schedds": False}, "ledger": {"url": "sqlite:////x"}}
    )
    keeper = SimpleNamespace(cursor=lambda *_: None)  # nothing was stored
    return HistoryReader(config, cast(Gatherer, backlog), cast(PilotKeeper, keeper))


def test_the_next_records_are_fetched_while_the_last_are_accounted() -> None:
    """They are asked for after the state of those that have come, though not stored yet."""
    backlog = Backlog(steps=4, left_s=100.0)
    histories = reader(backlog)
    access = cast(Access, None)
    assert [told.cursor.state for told in histories.ask(access, [], 0.0)] == ["1"]
    assert histories.behind
    told = histories.ask(access, [], 0.0, only_behind=True)
    assert next(told).cursor.state == "1"
    assert backlog.third.wait(10), "the next was not asked for while the last is accounted"
    assert [resources.cursor.state for resources in told] == ["2", "3", "4"]
    assert backlog.asked == ["", "", "1", "2", "3"]
    assert not histories.behind


def test_without_time_left_the_rest_waits() -> None:
    """Of a poll's last seconds nothing is begun that would be killed at its end."""
    backlog = Backlog(steps=4, left_s=0.0)
    histories = reader(backlog)
    access = cast(Access, None)
    list(histories.ask(access, [], 0.0))
    assert [told.cursor.state for told in histories.ask(access, [], 0.0, only_behind=True)] == ["1"]
    assert histories.behind
