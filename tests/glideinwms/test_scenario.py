"""What gwmond says of a real GlideinWMS, while things happen to it.

The story (story.py) is played once; GWMOND_STORY names the directory of one that was played before
(``python -m tests.glideinwms DIRECTORY``).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.glideinwms.story import LONG_S, tell

pytestmark = pytest.mark.timeout(4 * LONG_S)


class Told:
    """What was said in a story."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, name: str) -> Any:
        return json.loads((self.directory / name).read_text())

    def site(self, moment: str, site: str) -> dict[str, Any]:
        """The site as gwmond saw it at a moment."""
        (found,) = (
            row
            for row in self(f"{moment}.sites.json")["sites"]
            if row["site"] == site and row["resource"] == "cpu"
        )
        return dict(found)

    def answer(self, moment: str, job: str) -> tuple[str, str, str, str]:
        """The first line, the change, the mover and the proof of an explanation."""
        answer = self(f"{moment}.answers.json")[job]
        first = answer["reasons"][0]
        return answer["first_line"], first["change"], first["whose_move"], first["proof"]

    def problems(self, moment: str) -> set[str]:
        return {row["problem"] for row in self(f"{moment}.problems.json")["problems"]}

    def slots(self, moment: str, site: str) -> list[dict[str, str]]:
        """The slots of a site that the users' collector had then."""
        ads = self(f"{moment}.user.json")
        return [
            ad for ad in ads if ad.get("MyType") == "Machine" and ad.get("GLIDEIN_Site") == site
        ]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    played = os.environ.get("GWMOND_STORY")
    directory = Path(played) if played else tmp_path_factory.mktemp("story")
    if not played:
        tell(directory)
    return Told(directory)


# -- early: jobs run, an entry's limit and a group's curb are hit, pilots are held, pilots fail


def test_a_site_has_the_pilots_and_the_jobs_that_the_collector_shows(told: Told) -> None:
    """Registered pilots, provisioned and busy units, within what changes from poll to poll."""
    for name in ("SiteA", "SiteB", "SiteShort"):
        slots, site = told.slots("early", name), told.site("early", name)
        pilots = {ad["Name"].partition("@")[2] for ad in slots}
        busy = sum(ad["State"] == "Claimed" for ad in slots if ad["SlotType"] != "Partitionable")
        assert abs(site["registered_pilots"] - len(pilots)) <= 1
        assert abs(site["busy_units"] - busy) <= 1
        assert site["provisioned_units"] == site["registered_pilots"]  # 1 core, or 2 with 3000 MiB


def test_limits_and_curbs_that_were_hit_are_told(told: Told) -> None:
    assert "TotalGlideinsPerEntry (count=1, limit=1)" in told.site("early", "SiteB")["limits"]
    assert re.search(r"TotalGlideinsPerGroup .*curb=3", told.site("early", "SiteA")["limits"])


def test_only_jobs_that_some_group_sends_pilots_for_match_an_entry(told: Told) -> None:
    """At SiteB only those of group ligo, of which one runs."""
    idle = [ad for ad in told("early.queue.json") if ad["JobStatus"] == "1"]
    of_ligo = sum(ad["WantGroup"] == "ligo" for ad in idle)
    assert abs(told.site("early", "SiteB")["matching_idle_jobs"] - of_ligo) <= 1


@pytest.mark.xfail(strict=False, reason="pilots that never register count as room that is used")
def test_pilots_that_run_and_do_not_register_are_the_reason(told: Told) -> None:
    assert told.site("early", "SiteBroken")["reason"] == "run_but_do_not_register"


@pytest.mark.xfail(strict=False, reason="the factory removes held pilots in each loop: often 0 are")
def test_held_pilots_are_the_reason(told: Told) -> None:
    assert told.site("early", "SiteHeld")["reason"] == "held_pilots"


def test_jobs_whose_owners_have_to_move_are_told_so(told: Told) -> None:
    line, _, mover, proof = told.answer("early", "user_held")
    assert "It is held" in line
    assert (mover, proof) == ("you", "proven")
    line, _, mover, proof = told.answer("early", "too_large")
    assert "RequestMemory is 90000" in line
    assert (mover, proof) == ("you", "proven")
    assert told.answer("early", "victim")[0].startswith("RUNNING")


@pytest.mark.xfail(strict=False, reason="the first line names another reason, or another mover")
@pytest.mark.parametrize(
    ("job", "word", "mover"),
    [
        ("typo", "SiteAA", "you"),
        ("lonely", "lonely", "the frontend's administrator"),
        ("limited", "limit", "the factory's operator"),
        ("held", "held", "the site"),
        ("broken", "register", "the site"),
    ],
)
def test_the_true_reason_is_the_answer(told: Told, job: str, word: str, mover: str) -> None:
    line, _, whose, _ = told.answer("early", job)
    assert word in line
    assert whose == mover


def test_what_is_advised_for_a_job_that_is_too_large_is_at_a_site_that_it_wants(told: Told) -> None:
    assert "SiteB" not in told.answer("early", "too_large")[1]


# -- later: a pilot was killed, one removed by the factory, and SiteB is in downtime


def test_a_downtime_is_the_state_and_the_answer(told: Told) -> None:
    assert told.site("later", "SiteB")["state"] == "down"
