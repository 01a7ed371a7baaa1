"""Asking startds: where that pays, and later and later where one does not answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from gwmond.config.settings import Config
from gwmond.service import startd_history_reader
from gwmond.service.startd_history_reader import StartdHistoryReader
from tests.pilots.play import T0, Play, claim, shown
from tests.pool.adtext import ad_text
from tests.sources.feigned_access import Feigned

STARTD, ADDRESS = "glidein@node", "<startd>"
LOCATED = ad_text({"Name": STARTD, "MyAddress": ADDRESS, "CondorVersion": "v"})


def test_a_startd_that_does_not_answer_is_asked_later_and_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a minute, two, four, up to an hour; the problem says when at the earliest."""
    moment = 1000.0
    clock = SimpleNamespace(monotonic=lambda: moment)
    monkeypatch.setattr(startd_history_reader, "time", clock)
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
        records, (problem,) = reader.ask(access, play.book.pilots, T0 + 60)
        assert (records, problem.source, problem.problem) == ([], "startds", "timeout")
        text, _, wait = problem.detail.partition("; asked again in ")
        assert text == f"{STARTD}: as feigned"
        waits.append(wait.removesuffix(" at the earliest"))
        assert reader.ask(access, play.book.pilots, T0 + 60) == ([], []), "not at once"
        moment += 3601
    assert waits == ["1m00s", "2m00s", "4m00s", "8m00s", "16m00s", "32m00s", "1h00m", "1h00m"]
