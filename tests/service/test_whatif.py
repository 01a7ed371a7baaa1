"""What a change moves, as of a poll: jobs and pilots are matched anew by HTCondor's own library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gwmond.model.demand.question import Question
from gwmond.model.demand.what_if import WhatIfKind
from gwmond.service.pool import whatif
from gwmond.service.pool.explainer import BadQuestion, NoAnswer, NotRead
from gwmond.service.pool.whatif import JudgedPoll, answered
from tests.build.polls import Polls, job

Ask = Callable[..., dict[str, Any]]
LARGE = 'TARGET.GLIDEIN_Site == "Site" && TARGET.Memory >= RequestMemory'


class World(Polls):
    """24 large jobs of group cms wait, which fit no pilot, and 12 small ones of nobody."""

    def hear(self) -> None:
        super().hear()
        large = job(24, LARGE) | {"RequestMemory": 99_000, "AcctGroup": "cms"}
        self.pool.answers["<ap1>", "demand"] = [job(12), large]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.poll()
    yield made
    made.keeper.close()


@pytest.fixture
def ask(world: World) -> Ask:
    def asked(change: WhatIfKind, of: str, value: str = "", **more: Any) -> dict[str, Any]:
        assert world.poller.facts is not None
        polled = JudgedPoll(world.poller.facts, world.pool.time.tick().wall)._replace(**more)
        question = Question(of, what="whatif", change=change, value=value)
        record = answered(world.config, polled, question, 60).record()
        assert isinstance(record, dict)
        return record

    return asked


def units(record: dict[str, Any]) -> tuple[float, float]:
    (entry,) = record["entries"]
    return entry["units_before"], entry["units_after"]


def test_jobs_match_with_another_request(ask: Ask) -> None:
    """Their Requirements compare the memory: without the change they match nothing."""
    found = ask("memory", "cms", "1000")
    assert units(found) == (12, 36)
    assert found["first_line"].startswith("24 JOBS MORE COULD RUN, if each of 24 idle jobs of cms")
    assert {group["accounting_group"]: group["gain"] for group in found["groups"]} == {
        "": 0,
        "cms": 24,
    }
    assert found["not_read"] == []
    assert ask("memory", "none", "99000")["gain"] == -12


def test_pilots_match_with_another_size(ask: Ask) -> None:
    """So do jobs that ask for more memory than the pilots of now have."""
    found = ask("pilot", "Site", "8,200000")
    assert units(found)[1] > units(found)[0] == 12
    assert found["groups"][1]["more_pilots_after"] > 0


def test_another_start_is_tried_on_all_jobs(ask: Ask) -> None:
    """What jobs do not have is known where they are grouped by it, else there is no answer."""
    group = "frontend.main"
    assert units(ask("start", group, "TARGET.RequestMemory > 5000")) == (12, 0)
    found = ask("start", group, "TARGET.MaxWallTimeMins > 5")  # a key
    assert (units(found), found["not_read"]) == ((12, 0), [])
    assert ask("start", group, "TARGET.MaxWallTimeMins =?= undefined")["entries"] == []
    with pytest.raises(NoAnswer, match="not grouped by owner, projectname"):
        ask("start", group, 'TARGET.ProjectName == "x" && GLIDEIN_Site == "Site" && Owner == "y"')
    with pytest.raises(BadQuestion, match="no ClassAd expression"):
        ask("start", group, "1 +")


@pytest.mark.parametrize(
    ("change", "of", "value", "error", "words"),
    [
        ("memory", "x", "1", NoAnswer, "no idle job is of x. Accounting groups: cms, none"),
        ("start", "x", "true", NoAnswer, "no pilot of x is known.*frontend.main"),
        ("limit", "x", "1", NoAnswer, "no site and no entry x. Entries: entry"),
        ("memory", "cms", "much", BadQuestion, "no whole number"),
    ],
)
def test_what_is_not_there_is_said(
    ask: Ask, change: WhatIfKind, of: str, value: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ask(change, of, value)


def test_too_little_data_is_said(world: World, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pilots there is no answer; what is set aside, or missing, is named."""
    facts = world.poller.facts
    assert facts is not None
    with pytest.raises(NotRead, match="which pilots run is not known"):
        ask("limit", "entry", "1", facts=facts._replace(pilots=None))
    found = ask("limit", "entry", "1", facts=facts._replace(demand_complete=False), missing=("a",))
    assert found["not_read"] == [
        "a",
        "the jobs of a schedd, or of groups beyond [demand] max_groups",
    ]
    assert "(known in part)" in found["first_line"]
    aside = frozenset(group.signature for group in facts.groups)
    found = ask("pilot", "Site", "8", aside=aside)
    assert found["not_read"] == ["whether 2 pairs of jobs and empty pilots match"]
    monkeypatch.setattr(whatif, "MOST_PAIRS", 1)
    with pytest.raises(NoAnswer, match="2 pairs of jobs and empty pilots"):
        ask("pilot", "Site", "8")


def test_a_start_that_costs_too_much_stops_nobody(ask: Ask) -> None:
    """Its child ends; what it would have matched is not known."""
    at_limit = f'(regexp("^(a+)+$", "{"a" * 28}b") =?= true)'  # 0.1 s of CPU time
    found = ask("start", "frontend.main", f"RequestCpus > 0 && ({' || '.join([at_limit] * 30)})")
    assert found["not_read"][0].endswith("pairs of jobs and empty pilots match")
