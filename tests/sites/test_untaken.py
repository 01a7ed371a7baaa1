"""Free slots beside matching jobs that nobody takes: one pilot, poll by poll."""

from __future__ import annotations

from typing import Any

import pytest

from gwmond.model.entries.evaluation import SCALE, EntryTime, Taken, residual
from gwmond.model.facts import Berth, Size, Verdict
from gwmond.model.units import Resource
from gwmond.sites.contacts import Contacts
from gwmond.sites.site_time import evaluate
from gwmond.sites.untaken import note, untaken
from tests.build.facts import (
    BIG,
    NOW,
    A,
    B,
    facts,
    group,
    peak,
    pilot,
    request,
    template,
    totals,
)

FREE = Size(3, 6000)
GRACE = 600


class Polls:
    """Polls of a pilot of 8 units at A, with 3 units free, where 92 more could run."""

    def __init__(self, **scene: Any) -> None:
        self.contacts = Contacts()
        self.taken: Taken = {}
        self.scene = scene

    def poll(self, time: int, jobs: int, free: tuple[Size, ...] = (FREE,)) -> EntryTime:
        shown = [pilot(size=BIG, free=free)._replace(last_heard=NOW + time)]
        watched = self.contacts.after(shown, [NOW + time], NOW + time)
        self.contacts = watched.contacts
        scene: dict[str, Any] = {
            "capacities": peak({A: 100}),
            "pilots": shown,
            "totals": totals(request(A, requested_idle=0)),
            "groups": [group(jobs)] if jobs else [],
        }
        found = evaluate(
            facts(**(scene | self.scene))._replace(
                taken=self.taken, resting=watched.resting(NOW + time, GRACE)
            ),
            NOW + time,
        )
        assert residual(found) == 0
        self.taken = found.taken
        return found.rows[A, "cpu"]


def told(row: EntryTime) -> dict[tuple[str, str], int]:
    return {(part.state.value, part.reason): part.amount // SCALE for part in row.parts}


def test_three_jobs_beside_three_free_slots_for_ten_minutes() -> None:
    """Before, they are absorbed; then it is no lack of pilots, and it is said what it is."""
    polls = Polls()
    rows = {time: polls.poll(time, 3) for time in range(0, 1260, 60)}
    assert {rows[time].untaken for time in range(0, 600, 60)} == {None}  # not watched for so long
    assert {told(rows[time])["insufficient_demand", ""] for time in range(0, 600, 60)} == {92}
    for time in range(600, 1260, 60):
        assert rows[time].untaken == 3 * SCALE
        assert rows[time].reason == "idle_slots_untaken"
        assert told(rows[time]) == {
            ("insufficient_demand", "idle_slots_untaken"): 3,
            ("insufficient_demand", ""): 89,
        }


def test_no_more_is_untaken_than_jobs_or_slots() -> None:
    """Of five jobs two find no free slot: they are a bottleneck; two of three jobs leave one."""
    polls = Polls()
    for time in range(0, 660, 60):
        row = polls.poll(time, 5)
    assert told(row) == {
        ("provisioning_bottleneck", "nothing_requested"): 2,
        ("insufficient_demand", "idle_slots_untaken"): 3,
        ("insufficient_demand", ""): 87,
    }
    assert polls.poll(660, 2).untaken == 2 * SCALE
    assert polls.poll(720, 0).untaken == 0
    for time in range(780, 780 + GRACE, 60):
        assert polls.poll(time, 3).untaken == 0  # they are new
    assert polls.poll(780 + GRACE, 3).untaken == 3 * SCALE


def test_a_slot_that_is_taken_now_and_then_is_not_untaken() -> None:
    """Every five minutes a job begins or ends on the pilot: the negotiator comes round."""
    polls = Polls()
    for time in range(0, 3600, 60):
        free = FREE if time // 300 % 2 else Size(2, 4000)
        assert not polls.poll(time, 3, (free,)).untaken


@pytest.mark.parametrize(
    "scene",
    [
        {"verdicts": {("any", A.entry): Verdict.NO}},
        {"verdicts": {}},  # it is only possible that the jobs match
        {"templates": [template(B)]},
    ],
)
def test_slots_that_jobs_do_not_surely_match_are_not_untaken(scene: dict[str, Any]) -> None:
    """They are free because nothing may run there, for all that is known."""
    polls = Polls(**scene)
    for time in range(0, 1260, 60):
        row = polls.poll(time, 3)
    assert row.untaken == 0


def test_what_was_not_watched_closely_is_not_untaken() -> None:
    """Polls are ten minutes apart: slots may have been taken in between."""
    polls = Polls()
    for time in range(0, 7200, GRACE):
        assert not polls.poll(time, 3).untaken


@pytest.mark.parametrize(("gap", "anew"), [(GRACE // 2, False), (GRACE // 2 + 1, True)])
def test_a_history_outlasts_a_gap_of_half_a_grace(gap: int, anew: bool) -> None:
    """One second more, and it begins anew; it ends with what jobs would take."""
    here: tuple[Berth, Resource] = Berth(A, "frontend.main"), "cpu"
    before = note({}, {here: 1}, NOW, GRACE)
    assert before[here].samples[0].time == NOW
    (first, *_) = note(before, {here: 1}, NOW + gap, GRACE)[here].samples
    assert first.time == (NOW + gap if anew else NOW)
    assert note(before, {here: 0}, NOW + 1, GRACE) == {}


def test_free_slots_are_untaken_in_canonical_units() -> None:
    """Of three slots each is at least a unit; the units of a berth's slots sum up."""
    cpu: tuple[Berth, Resource] = Berth(A, "frontend.main"), "cpu"
    gpu: tuple[Berth, Resource] = Berth(A, "frontend.main"), "gpu"
    taken: Taken = {}
    for time in range(0, GRACE + 60, 60):
        taken = note(taken, {cpu: 90 * SCALE, gpu: 90 * SCALE}, NOW + time, GRACE)
    slots = (Size(1, 2000, 1), Size(8, 16000, 2), Size(2, 100))
    resting = [pilot(free=slots[:2]), pilot(free=slots[2:])]
    found = untaken(taken, resting, (), NOW + GRACE, GRACE, 4000)
    assert found == {(A, "cpu"): 6 * SCALE, (A, "gpu"): 3 * SCALE}
    assert untaken(taken, resting, {A}, NOW + GRACE, GRACE) == {}


def test_a_pilot_that_refuses_has_no_untaken_slot() -> None:
    """A retiring pilot takes no more jobs."""
    contacts = Contacts()
    for time in (0, 600, 1200):
        shown = [pilot(free=[FREE], accepting=False)._replace(last_heard=NOW + time)]
        watched = contacts.after(shown, [NOW + time], NOW + time)
        contacts = watched.contacts
    assert watched.resting(NOW + 1200, GRACE) == ()
